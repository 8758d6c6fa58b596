"""How many clusters: the posterior, losses by number, merges of clusters, and of similar components."""

from typing import Any

import numpy as np

from posterior_consensus.answers.component_similarity import ComponentSimilarity
from posterior_consensus.answers.n_clusters import ClusterMerges, LossByNClusters
from posterior_consensus.ensemble.items import numbers_of
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import (
    BAR,
    BARS,
    PRIOR,
    chain_cross,
    chain_labels,
    check_matplotlib,
    ink,
    on_page,
)
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.priors.record import PartitionPrior, check_prior
from posterior_consensus.results.display import counted, listed, percent, short_name_of
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.sources.conversion import as_draws, own_partition

_VISIBLE = 0.01  # share of the largest probability that is visible
_MOST_POINTS = 60
_OUTSIDE = 0.22  # opacity of a bar outside of the interval
_CLEAR = 0.9  # opacity of bars below an outline
_LEAST_SHOWN = 8  # numbers of clusters shown at least


@frame.in_small_print
def plot_n_clusters(
    draws: Any,
    partition: Any = None,
    *,
    prior: PartitionPrior | None = None,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the posterior distribution of the number of clusters, over all draws and by chain.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        The posterior.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition whose number of clusters is marked; by default the consensus of a summary. A consensus often has fewer
        clusters than most draws, whose smallest clusters vary.
    prior : PartitionPrior, optional
        Prior whose distribution of the number of clusters is plotted next to the posterior, such as
        ``priors.crp(1.0)``.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `prior` is not a PartitionPrior.
    ValueError
        If draws or partition are invalid.

    See Also
    --------
    loss_by_n_clusters : Compute the minimum expected loss for each number of clusters.

    Notes
    -----
    The number of clusters is a property of partitions of these data. It need not estimate a number of components: under
    a Dirichlet process mixture with fixed concentration, it is inconsistent (Miller and Harrison 2014). The title
    has the central 90% interval of the draws and the share of the draws that it has. If all draws have the same number,
    chains have no crosses.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_n_clusters([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 2]])
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.75, 0.25]
    """
    partition = own_partition(draws, partition)
    draws = as_draws(draws, lacking=True)
    fewest, most = int(draws.n_clusters.min()), int(draws.n_clusters.max())
    numbers = np.arange(fewest, most + 1)
    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    shares = np.bincount(draws.n_clusters - fewest, draws.weights)
    words = draws.samples.words
    low, high = _interval(draws)
    inside = (numbers >= low) & (numbers <= high)
    colours = [BARS if known else (BARS, on_page(_OUTSIDE)) for known in inside]
    label = f"all {words.chains if draws.samples.series else words.draws}"
    bars = ax.bar(numbers, shares, width=0.8, color=colours).patches
    bars[int(inside.argmax())].set_label(label)
    chains, n_chains = draws.samples.chains, len(draws.samples.chains)
    labels = chain_labels(draws.samples.chain_names, f"each {words.chain}", words.chain)
    for k, rows in enumerate(chains if n_chains > 1 and fewest < most else []):
        weights = draws.weights[rows]
        if weights.sum() > 0:
            share = np.bincount(draws.n_clusters[rows] - fewest, weights, minlength=numbers.size) / weights.sum()
            beside = 0.6 * (k + 0.5) / n_chains - 0.3
            share[share == 0] = np.nan  # no point, as many on the axis would look like a row of their own
            ax.plot(numbers + beside, share, label=labels[k], **chain_cross(k, n_chains))
    if prior is not None:
        fewest, most = _draw_prior(ax, check_prior(prior), draws.n_items, fewest, most)
    if partition is not None:
        clusters = int(draws.as_marked_labels(partition).max()) + 1
        grammar.mark_partition(ax, clusters, f"partition: {clusters}")
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, fewest - 1), max(high, most + 1))  # so that integers have ticks
    frame.tick_integers(ax.xaxis)
    ax.set(xlabel="number of clusters", ylabel=words.on_axis if prior is None else words.probability)
    grammar.say(ax, _numbers_in_words(draws))
    if len(ax.get_legend_handles_labels()[0]) > 1:
        grammar.add_legend(ax)
    return ax


def _numbers_in_words(draws: Any) -> str:
    """The most frequent number of clusters, and the interval with the share of the draws in it."""
    words, numbers = draws.samples.words, draws.n_clusters
    low, high = _interval(draws)
    if low == high and np.all(numbers == low):
        return f"Every {words.draw} has {counted(int(low), 'cluster')}."
    share = float(draws.weights[(numbers >= low) & (numbers <= high)].sum())
    range_of = f"{low:.0f}" if low == high else f"{low:.0f}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{high:.0f}"
    shares = np.bincount(numbers, draws.weights)
    most = f"{counted(int(shares.argmax()), 'cluster')} most often, " if low < high else ""
    strong = " (strong bars)" if numbers.min() < low or high < numbers.max() else ""
    return f"{most}{range_of}{' clusters' * (low == high)}{strong} in {percent(share)}"


def _interval(draws: Any) -> tuple[float, float]:
    """Ends of the central 90% interval of the number of clusters."""
    low, high = np.quantile(draws.n_clusters, [0.05, 0.95], weights=draws.weights, method="inverted_cdf")
    return float(low), float(high)


def _draw_prior(ax: Axes, prior: PartitionPrior, n_items: int, fewest: int, most: int) -> tuple[int, int]:
    """Plot the prior's distribution, and return the range in which either distribution is visible."""
    chances = prior.n_clusters(n_items)
    numbers = chances["n_clusters"].values
    visible = numbers[chances.values >= _VISIBLE * chances.values.max()]
    fewest, most = min(fewest, int(visible[0])), max(most, int(visible[-1]))
    shown = (numbers >= fewest) & (numbers <= most)
    line = "o-" if shown.sum() <= _MOST_POINTS else "-"
    ax.plot(numbers[shown], chances.values[shown], line, markersize=3, linewidth=1, color=PRIOR, label="prior")
    return fewest, most


@frame.in_small_print
def plot_loss_by_n_clusters(losses: LossByNClusters, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the minimum expected loss and the posterior probability against the number of clusters.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for losses and probabilities; without draws, one for the losses. By default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,), or (1,) for a similarity matrix alone
        The axes with the plots.

    Raises
    ------
    TypeError
        If `axes` are not Axes.
    ValueError
        If the number of `axes` is wrong, or `figsize` is invalid.

    See Also
    --------
    loss_by_n_clusters : Compute the losses.

    Notes
    -----
    A ring marks the minimum. Error bars are two Monte Carlo standard errors of the difference to the minimum loss,
    which is the right error for comparing points of the curve. The errors of the losses themselves are larger, and
    mostly common to all numbers.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 2]]
    >>> axes = pc.loss_by_n_clusters(draws, random_seed=1).plot()
    >>> [float(bar.get_height()) for bar in axes[1].patches]
    [0.0, 0.75, 0.25, 0.0]
    """
    table = losses.table
    numbers, drawn = table["n_clusters"].values, losses.n_draws is not None
    size, ratios = (5.6, 4.6 if drawn else 3.2), (2.0, 1.0)[: 1 + drawn]
    grid = frame.grid_axes(axes, figsize, 1 + drawn, 1, *size, height_ratios=ratios).ravel()
    errors, words = grammar.ERRORS * table["difference_mcse"].fillna(0.0).values, losses.words
    expected = table["expected_loss"].values
    grid[0].errorbar(numbers, expected, errors, color=ink(), marker="o", markersize=4, linewidth=1.0, capsize=2)
    label_of_loss = f"{words.expected} {short_name_of(losses.loss)}"
    label = grammar.axis_label(label_of_loss, losses.loss.unit)
    grid[0].set_ylabel(grammar.with_errors(label, errors, words, " of difference to ring"))
    if drawn:
        height, error = table["probability"].values, grammar.ERRORS * table["probability_mcse"].fillna(0.0).values
        style = {"ecolor": ink(), "capsize": 2, "error_kw": {"linewidth": 1.0}}
        bars = np.stack([np.minimum(error, height), error])
        grid[1].bar(numbers, height, width=0.8, color=BAR, yerr=bars, **style)
        grid[1].set_ylabel(grammar.with_errors(words.on_axis.replace(" ", "\n", 1), error, words))
        grid[1].set_ylim(0.0, None)
    for ax in grid:
        ax.set_xlim(numbers[0] - 1, numbers[-1] + 1)
        frame.tick_integers(ax.xaxis)
    grid[0].plot(losses.best, expected.min(), "o", color=ink(), markersize=9, fillstyle="none")
    as_low = [number for number in losses.within_error if number != losses.best]
    also = f"; {listed(as_low, 3)} within two {words.mcse}" if as_low else ""
    least = f"{label_of_loss} is least with {counted(losses.best, 'cluster')} (ring)"
    grammar.say(grid[0], f"{least}{also}")
    if drawn:
        often = int(table["probability"].values.argmax())
        shown = percent(float(table["probability"].values[often]))
        most = f"most {words.probable} of the numbers shown: {counted(int(numbers[often]), 'cluster')}, {shown}"
        known = table["probability"].values[often] > 0
        grammar.say(grid[1], most if known else f"no {words.draw} has one of these numbers")
    grid[-1].set_xlabel("number of clusters")
    return grid


@frame.in_small_print
def plot_dendrogram(merges: ClusterMerges, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    r"""Plot the merges of a partition's clusters as a dendrogram of expected losses.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `figsize` is invalid.

    See Also
    --------
    cluster_merges : Compute the merges.

    Notes
    -----
    Leaves are the clusters of the partition, at its expected loss. A merge that is low costs little. It need not join
    similar clusters: two small ones have few pairs, so merging them costs little even if they are always apart. If a
    merge lowers the loss, its bar is below the previous bar, and branches cross it.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1, 2], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 2]]
    >>> ax = pc.cluster_merges(draws, [0, 0, 1, 1, 2], loss="binder").plot()
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['0\nn = 2', '1\nn = 2', '2\nn = 1']
    """
    check_matplotlib()
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import NullLocator

    joined = merges.table[["first", "second"]].to_array().values.T[1:]
    losses = merges.table["expected_loss"].values
    leaves = _leaves(joined)
    x, y, bars = _places_of_unions(joined, losses, leaves)
    ax = frame.new_axes(ax, figsize, 5.8, 3.8)
    ax.add_collection(LineCollection(bars, colors=ink(), linewidths=1.2))
    frame.scatter_clusters(ax, x[leaves], y[leaves], numbers_of(merges.names)[leaves], s=50, zorder=3, clip_on=False)
    ax.autoscale_view()
    ax.set(xlim=(-0.7, leaves.size - 0.3), xlabel="clusters")
    ax.set_ylabel(grammar.axis_label(f"expected {short_name_of(merges.loss)}", merges.loss.unit))
    ax.spines["bottom"].set_visible(False)
    sizes, names = np.bincount(merges.partitions[0].values), frame.short_names([merges.names[k] for k in leaves], 12)
    if leaves.size <= grammar.MOST_NAMED:
        captions = [f"{name}\nn = {sizes[k]}" for name, k in zip(names, leaves, strict=True)]
        ax.set_xticks(range(leaves.size), captions, fontsize="small", parse_math=False)
    elif not frame.label_items(ax, "x", np.array(names)):
        ax.xaxis.set_major_locator(NullLocator())
    ax.tick_params("x", length=0)
    if leaves.size > 1:
        one, other = (f"{merges.names[k]} (n = {sizes[k]:,})" for k in joined[0])
        rise = float(losses[1] - losses[0])
        what = f"{'raises' if rise >= 0 else 'lowers'} the expected {short_name_of(merges.loss)}"
        by = grammar.in_digits(abs(rise), 2, merges.loss.unit)
        grammar.say(ax, f"merging clusters {one} and {other} {what} {'least' if rise >= 0 else 'most'}, by {by}")
    else:
        grammar.say(ax, "one cluster")
    return ax


def _leaves(joined: Integers) -> Integers:
    """The clusters in an order without crossing branches."""
    n_clusters = len(joined) + 1
    below = [[k] for k in range(n_clusters)]
    for first, second in joined:
        below.append(below[first] + below[second])
    return np.array(below[-1])


def _places_of_unions(joined: Integers, losses: Floats, leaves: Integers) -> tuple[Floats, Floats, list[Floats]]:
    """Positions of clusters and unions, and the lines that join them."""
    x, y = np.empty(2 * leaves.size - 1), np.empty(2 * leaves.size - 1)
    x[leaves], y[: leaves.size] = np.arange(leaves.size), losses[0]
    bars = []
    for made, ((first, second), loss) in enumerate(zip(joined, losses[1:], strict=True), leaves.size):
        x[made], y[made] = (x[first] + x[second]) / 2, loss
        ends = [(x[first], y[first]), (x[first], loss), (x[second], loss), (x[second], y[second])]
        bars.append(np.array(ends))
    return x, y, bars


@frame.in_small_print
def plot_component_similarity(similarity: ComponentSimilarity, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the share of the distance between components that is within clusters, and how many clusters draws have.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of two matplotlib.axes.Axes, optional
        For the distances and for the probabilities; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The axes with the plots.

    Raises
    ------
    TypeError
        If `axes` are not Axes.
    ValueError
        If there are not two `axes`, or `figsize` is invalid.

    See Also
    --------
    component_similarity : Compute the similarities.

    Notes
    -----
    Above, the share of the total distance that is within clusters of average linkage: 1 for a single cluster, 0 if all
    components of a cluster are equal. Beyond its elbow, further clusters have similar components. Below, the posterior
    distribution of the number of clusters after merging, as bars, and of the number of components, as an outline.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> labels, mean = [[0, 1, 2, 2], [1, 0, 2, 2]], [[0.0, 0.3, 9.0], [0.2, 0.0, 8.0]]
    >>> axes = pc.component_similarity(labels, mean=mean, sd=1.0).plot()
    >>> axes[0].lines[0].get_ydata().round(2)
    array([1.  , 0.02, 0.  , 0.  ])
    """
    grid = frame.grid_axes(axes, figsize, 2, 1, 5.6, 4.6, height_ratios=(1.4, 1.0)).ravel()
    table = similarity.to_dataframe()
    occurs = table.index[(table["components"] > 0) | (table["clusters"] > 0)]
    table = table.loc[: max(_LEAST_SHOWN, int(occurs.max()) if len(occurs) else 0)]
    numbers, words = table.index.values, similarity.partitions.samples.words
    within = table["distance_within"]
    grid[0].plot(numbers, within, color=ink(), marker="o", markersize=4, linewidth=1.2, clip_on=False)
    grid[0].set(ylim=(0.0, 1.0), ylabel="share of distance within\nclusters (low: alike)", xlabel="number of clusters")
    name = f"clusters in a {words.draw}, after merging"
    grid[1].bar(numbers, table["clusters"], color=(BARS[:-2], _CLEAR), width=0.8, label=name)
    edges = np.append(numbers, numbers[-1] + 1) - 0.5
    name = f"components in a {words.draw}"
    grid[1].stairs(table["components"], edges, color=ink(), linewidth=1.4, label=name)
    grid[1].set(ylim=(0.0, None), ylabel=words.on_axis.replace(" ", "\n", 1), xlabel="number of clusters or components")
    for ax in grid:
        ax.set_xlim(0.5, numbers[-1] + 0.5)
        frame.tick_integers(ax.xaxis)
    most, before = (counted(int(numbers[table[name].argmax()]), name[:-1]) for name in ("clusters", "components"))
    share = percent(float(table["clusters"].max()))
    grammar.say(grid[0], _elbow_in_words(numbers, within.to_numpy(), words.draws))
    grammar.say(grid[1], f"single {words.draws}: most often {most} after merging ({share}); before, {before}")
    grammar.legend_above(grid[1])
    return grid


def _elbow_in_words(numbers: Integers, within: Floats, draws: str) -> str:
    """From which number of clusters to the next the share of the distance within clusters falls most."""
    falls = np.nan_to_num(within[:-1] - within[1:])
    if not np.any(falls > 0):
        return "no number of clusters has less of the distance within clusters"
    k = int(falls.argmax())
    ends = " to ".join(grammar.in_digits(share, 2) for share in within[k : k + 2].tolist())
    return (
        f"over all {draws}, distance within clusters falls most from {numbers[k]} to {numbers[k + 1]} clusters: {ends}"
    )
