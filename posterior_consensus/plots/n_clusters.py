"""Plot of the posterior distribution of the number of clusters, also by chain."""

from typing import Any

import numpy as np

from posterior_consensus.plots.colours import BARS, PRIOR, chain_colour, chain_labels, chain_marker
from posterior_consensus.plots.frame import Axes, Size, add_legend, mark_value, new_axes, tick_integers
from posterior_consensus.priors.record import PartitionPrior, check_prior
from posterior_consensus.results.display import counted
from posterior_consensus.sources.conversion import as_draws, own_partition

_VISIBLE = 0.01  # share of the largest probability that is visible
_MOST_POINTS = 60


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
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on; by default those of a new figure.

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
    a Dirichlet process mixture with fixed concentration, it is inconsistent (Miller and Harrison 2014). If all draws
    have the same number, the title notes it, and chains have no points.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_n_clusters([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 2]])
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.75, 0.25]
    """
    partition = own_partition(draws, partition)
    draws = as_draws(draws)
    fewest, most = int(draws.n_clusters.min()), int(draws.n_clusters.max())
    numbers = np.arange(fewest, most + 1)
    ax = new_axes(ax, figsize, 5.6, 3.4)
    shares = np.bincount(draws.n_clusters - fewest, draws.weights)
    ax.bar(numbers, shares, width=0.8, color=BARS, label="all chains")
    chains, n_chains = draws.samples.chains, len(draws.samples.chains)
    labels = chain_labels(draws.samples.chain_names, "each chain")
    for k, rows in enumerate(chains if n_chains > 1 and fewest < most else []):
        weights = draws.weights[rows]
        if weights.sum() > 0:
            share = np.bincount(draws.n_clusters[rows] - fewest, weights, minlength=numbers.size) / weights.sum()
            beside = 0.6 * (k + 0.5) / n_chains - 0.3
            style: dict[str, Any] = {"color": chain_colour(k, n_chains), "markersize": 4, "label": labels[k]}
            ax.plot(numbers + beside, share, chain_marker(k, n_chains), **style)
    if prior is not None:
        fewest, most = _draw_prior(ax, check_prior(prior), draws.n_items, fewest, most)
    if partition is not None:
        clusters = int(draws.as_labels(partition).max()) + 1
        mark_value(ax, clusters, f"partition: {clusters}", zorder=1.5)
    if numbers.size == 1:
        ax.set_title(f"Every draw has {counted(int(numbers[0]), 'cluster')}.", fontsize="medium")
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, fewest - 1), max(high, most + 1))  # so that integers have ticks
    tick_integers(ax.xaxis)
    ax.set(xlabel="number of clusters", ylabel="posterior probability" if prior is None else "probability")
    if len(ax.get_legend_handles_labels()[0]) > 1:
        add_legend(ax)
    return ax


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
