"""Answers along a parameter: of the loss, of a penalty, of the prior, of how many items or draws must agree."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.agreement.path import EARLY, AgreementPath
from posterior_consensus.answers.links import StableComponents
from posterior_consensus.answers.loss_parameter import LossPath
from posterior_consensus.answers.partial_partition import PartialPartition
from posterior_consensus.answers.prior_sensitivity import PriorSensitivity
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import (
    MARK,
    MOST_CHAINS,
    NEUTRAL,
    OPEN,
    PRIOR,
    as_cmap,
    chain_line,
    check_matplotlib,
    ink,
    on_dark,
)
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.results.display import (
    counted,
    counted_items,
    listed,
    percent,
    plural,
    rounded,
    short_name_of,
    with_unit,
)
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.tolerances import SAME

_MUCH = 10  # ratio of the numbers of clusters from which the axis is logarithmic
_BLUES = "#9ECAE1", "#4A98C9", "#1764AB"  # visible on a white page and, in reverse, on a black one
_LINE = 1.2  # points
_DIGITS = 9  # of equal losses
_MAJORITY = 0.505  # threshold above 1/2
_BESIDE = 0.02  # share of the axis, from a point to another at its number
_MOST_NAMES = 40
_MOST_SLANTED = 8
_LONGEST_PRIOR = 40  # characters
_UNRELIABLE = "unreliable weights: heavy, few effective draws or unseen numbers"


@frame.in_small_print
def plot_loss_path(path: LossPath, *, cmap: Any = None, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the number of clusters against the loss's parameter, with plateaus of the partition.

    Parameters
    ----------
    cmap : str or matplotlib.colors.Colormap, optional
        Colours from the nearest to the farthest neighbours; by default from pale to dark blue.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The colour bar is ``ax.collections[0].colorbar``.

    Raises
    ------
    ValueError
        If `cmap` or `figsize` are invalid.

    See Also
    --------
    loss_path : Compute the path.

    Notes
    -----
    The line between two values is thick if the partition stays the same, else darker, on a dark page lighter, the
    larger the variation of information between their partitions. Long thick stretches are partitions that hardly
    depend on the parameter. The dotted line is at the loss's default. The axis is logarithmic if the number of clusters
    grows tenfold.

    Without draws, an axis on the right has expected precision and recall: what a threshold costs.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 0]]
    >>> ax = pc.loss_path(draws, loss="binder", random_seed=1).plot()
    >>> line = ax.axvline(0.3, color="black")  # a threshold of your own
    """
    check_matplotlib()
    dim, table = path.parameter, path.table
    x, clusters = table[dim].values, table["n_clusters"].values
    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    if x.size > 1:
        _draw_steps(ax, x, clusters, table["distance_to_previous"].values[1:], cmap)
    ax.plot(x, clusters, "o", color=ink(), markersize=3)
    _scale_clusters(ax, clusters)
    default = 0.5 if dim == "tau" else 1.0
    if x.min() <= default <= x.max():
        grammar.mark_limit(ax, default, f"default: {default:g}")
    if path.n_draws is None:
        right = ax.twinx()
        draw_precision_and_recall(right, x, table)
        right.spines["right"].set_visible(True)
        right.set(ylabel="expected share of pairs", ylim=(0.0, 1.05))
    ax.set_xlabel("pair threshold" if dim == "tau" else "cost of separating, a")
    grammar.say(ax, _plateaus_in_words(dim, x, clusters, table["distance_to_previous"].values))
    return ax


def _plateaus_in_words(dim: str, x: Floats, clusters: Integers, distances: Floats) -> str:
    """How often the partition changes along the parameter, and the longest range over which it does not."""
    starts = np.flatnonzero(~(distances < SAME))  # the first has no distance
    ends = np.append(starts[1:], x.size) - 1
    longest = int(np.argmax(x[ends] - x[starts]))
    first, last = starts[longest], ends[longest]
    name = "the threshold" if dim == "tau" else dim
    values = f"{x.size:,} values of {name}"
    if starts.size == 1:
        of = counted(int(clusters[0]), "cluster")
        return f"one partition, of {of}, at all {values}" if x.size > 1 else f"{of} at {name} {x[0]:.2g}"
    changes = f"{counted(starts.size - 1, 'change')} of the partition along {values}"
    if first == last:
        return f"{changes}: each has its own"
    same = f"longest without: {x[first]:.2g} to {x[last]:.2g} ({counted(int(clusters[first]), 'cluster')})"
    return f"{changes}; {same}"


def draw_precision_and_recall(ax: Axes, x: Floats, table: xr.Dataset) -> None:
    """Plot expected precision and recall of pairs as named lines: recall falls, and precision rises."""
    for name, marker in (("precision", "^"), ("recall", "v")):
        y = table[name].values
        ax.plot(x, y, f"{marker}-", color=ink(), linewidth=1.0, markersize=4)
        if known := np.flatnonzero(np.isfinite(y)).tolist():
            place: Any = {"xytext": (0, -7), "textcoords": "offset points", "va": "top"}
            ax.annotate(name, (x[known[-1]], y[known[-1]]), fontsize="small", ha="right", **place)


def _draw_steps(ax: Axes, x: Floats, clusters: Integers, distances: Floats, cmap: Any) -> None:
    """Plot a step between neighbours, thick if their partitions are equal, else fainter with distance."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    is_same = distances < SAME
    blues = LinearSegmentedColormap.from_list("near to far", _BLUES[::-1] if on_dark() else _BLUES)
    colours = (blues if cmap is None else as_cmap(cmap)).with_extremes(under=NEUTRAL)
    middle = (x[:-1] + x[1:]) / 2
    corners = [(x[:-1], clusters[:-1]), (middle, clusters[:-1]), (middle, clusters[1:]), (x[1:], clusters[1:])]
    steps = LineCollection(
        list(np.stack([np.column_stack(corner) for corner in corners], axis=1)),
        array=distances,
        cmap=colours,
        norm=Normalize(SAME, max(distances.max(), 1.0 if is_same.all() else SAME)),
        linewidths=np.where(is_same, 5.0, 2.0),
        capstyle="butt",
        zorder=1.8,
    )
    ax.add_collection(steps)
    hidden = ~is_same & (clusters[:-1] == clusters[1:])
    ax.plot(middle[hidden], clusters[:-1][hidden], "|", color=ink(), markersize=11, markeredgewidth=1.4)
    notes = "thick, grey: no change" * int(is_same.any()), "|: change, same number" * int(hidden.any())
    grammar.add_colour_bar(ax, steps, "\n".join(["VI to the neighbour (bits)", *filter(None, notes)]))


def _scale_clusters(ax: Axes, clusters: Integers) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    if clusters.max() < _MUCH * clusters.min():
        ax.set_ylabel("number of clusters")
        ax.set_ylim(0, 1.05 * clusters.max() + 0.5)
        frame.tick_integers(ax.yaxis)
        return
    ax.set_ylabel("number of clusters (log scale)")
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:.0f}")


@frame.in_small_print
def plot_agreement_path(path: AgreementPath, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the averaged Jaccard index against the penalty weight, and the loss of each chain's partition.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for the agreement and for the losses; by default those of a new figure.

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
    agreement.agreement_path : Compute the path.

    Notes
    -----
    An increase left of the dotted line, the penalty weight 0.25, indicates partitions that differ by search noise or
    few draws. A plateau across it indicates chains in different modes. Losses are over each chain's own draws, minus
    the loss without a penalty. Chains with equal losses share a line in the colour of text.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[[0, 0, 1, 1]] * 4, [[0, 0, 1, 1]] * 4, [[0, 1, 1, 1]] * 4]
    >>> axes = pc.agreement.agreement_path(draws, prices=[0.5, 2.0], random_seed=1).plot()
    >>> axes[0].lines[0].get_ydata().round(2)
    array([0.5, 0.5, 0.5, 1. ])
    """
    grid = frame.grid_axes(axes, figsize, 2, 1, 5.6, 5.0).ravel()
    table, prices = path.table, path.table["price"].values
    line: dict[str, Any] = {"marker": "o", "clip_on": False}
    grid[0].plot(prices, table["averaged_jaccard"].values, color=ink(), linewidth=_LINE, markersize=4, **line)
    grid[0].set(ylabel="agreement (averaged\nJaccard index)", ylim=(0.0, 1.05))
    more = table["own_loss"].values - table["own_loss"].values[0]
    same = np.unique(more.round(_DIGITS), axis=1, return_inverse=True)[1].ravel()
    what, n_chains = ("chain", "chains") if path.of_chains else ("analysis", "analyses"), len(path.names)
    names = [f"{what[0]} {name}" if path.of_chains or isinstance(name, int) else str(name) for name in path.names]
    groups = [np.flatnonzero(same == one) for one in dict.fromkeys(same.tolist())]
    n_alone = 0
    for own in groups:
        if len(own) > 1:
            look: dict[str, Any] = {"color": ink(), "label": f"{_by_ends([names[k] for k in own])} (the same)"}
        else:
            look, n_alone = chain_line(n_alone, n_chains) | {"label": names[own[0]]}, n_alone + 1
        grid[1].plot(prices, more[:, own[0]], linewidth=_LINE, markersize=3, **look, **line)
    increase = grammar.axis_label(f"increase of own\nexpected {short_name_of(path.loss)}", path.loss.unit)
    grid[1].set(ylabel=increase, xlabel="penalty weight on disagreement")
    index = table["averaged_jaccard"].values
    early = "" if index[prices <= EARLY].max() - index[0] > SAME else "no "
    for ax in grid:
        ax.set_xlim(prices[0], prices[-1])
        grammar.mark_limit(ax, EARLY, f"{early}increase left of this: search noise" if ax is grid[0] else "", at=0.0)
    if early:
        grid[0].texts[-1].set_text("no increase left of this, so no search noise")
    grammar.say(grid[0], _modes_in_words(path))
    grammar.say(grid[1], _costs_in_words(names, groups, more[-1], path.loss.unit))
    if n_chains <= MOST_CHAINS:
        grammar.name_ends(grid[1])
    else:
        grid[1].text(0.02, 0.95, f"{n_chains} {what[1]}", transform=grid[1].transAxes, va="top", color=NEUTRAL)
    return grid


def _by_ends(names: list[str]) -> str:
    """Names that end in successive numbers, with the first and the last number; else the names, at most four."""
    stem = names[0].rstrip("0123456789")
    first = names[0].removeprefix(stem)
    if stem and first and names == [f"{stem}{int(first) + k}" for k in range(len(names))] and len(names) > 2:
        return f"{stem.rstrip()}s {first} to {int(first) + len(names) - 1}"
    return listed(names, 4)


def _costs_in_words(names: list[str], groups: list[Positions], costs: Floats, unit: str) -> str:
    """How much the largest penalty weight raises the own loss: of those whose loss rises most, and of the others."""
    groups = sorted(groups, key=lambda own: -float(costs[own[0]]))
    called = [_by_ends([names[k] for k in own]) for own in groups]
    most, least = (float(costs[own[0]]) for own in (groups[0], groups[-1]))
    if most <= SAME:
        return "agreement costs nothing"
    other = "nothing" if least <= SAME else f"at least {grammar.in_digits(least, 2, unit)}"
    others = f", {called[1]} {other}" if len(groups) == 2 else f", the others {other}" if len(groups) > 2 else ""
    return f"agreement costs {called[0]} {grammar.in_digits(most, 2, unit)}{others}"


def _modes_in_words(path: AgreementPath) -> str:
    """Whether chains agree, and otherwise why not and which are on which side."""
    what, groups = "chains" if path.of_chains else "analyses", path.groups
    if path.labels.values[0].max() == 0:
        return f"the {what} agree on one cluster of all items"
    if path.status == "agreement":
        return f"the {what} agree without a penalty"
    if path.status == "search noise":
        return f"the {what} differ by search noise or few draws: they agree at a small penalty"
    sides = " against ".join(_by_ends([str(name) for name in group]) for group in groups[:2])
    more = f" and {counted(len(groups) - 2, 'other group')}" if len(groups) > 2 else ""
    apart = "are in different modes" if path.status == "different modes" else "share modes, but their partitions differ"
    return f"the {what} {apart}: {sides}{more}"


@frame.in_small_print
def plot_prior_sensitivity(sensitivity: PriorSensitivity, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the expected number of clusters, and the excess loss of the partition, under other priors.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for the numbers of clusters and for the excess losses; by default those of a new figure.

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
    prior_sensitivity : Compute the sensitivity.

    Notes
    -----
    If all alternatives have the prior's family, the horizontal axis is the concentration, on a logarithmic scale;
    otherwise it lists the alternatives. Alternatives that the draws represent poorly are shaded. The diamond is the
    prior of the draws; on an axis of concentrations, a dotted line marks its concentration. Error bars are two Monte
    Carlo standard errors; an excess is never below 0.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 2]] * 50
    >>> others = {f"a = {a}": pc.priors.crp(a) for a in (0.5, 2.0)}
    >>> found = pc.prior_sensitivity(draws, pc.priors.crp(1.0), alternatives=others, random_seed=1)
    >>> axes = found.plot()
    >>> title = axes[0].set_title("Does the partition depend on the prior?")
    """
    grid = frame.grid_axes(axes, figsize, 2, 1, 5.6, 5.0).ravel()
    table, own = sensitivity.table, sensitivity.concentration
    places = np.append(table["concentration"].values, np.nan if own is None else own)
    along = bool(np.all(places > 0))
    x = np.log(places) if along else np.append(np.arange(1.0, places.size), 0.0)
    order = np.argsort(x[:-1])
    for ax, value, mcse in zip(grid, ("n_clusters", "excess_loss"), ("n_clusters_mcse", "excess_mcse"), strict=True):
        bars = grammar.ERRORS * np.nan_to_num(table[mcse].values[order])
        y, fmt = table[value].values[order], "o-" if along else "o"
        below = np.minimum(bars, y.clip(min=0.0))  # neither a number of clusters nor an excess is below 0
        style = {"fmt": fmt, "color": ink(), "markersize": 4, "linewidth": 1.0, "elinewidth": 1.0, "capsize": 2}
        ax.errorbar(x[order], y, np.stack([below, bars]), **style)
    error = grammar.ERRORS * np.nan_to_num(sensitivity.n_clusters_mcse)
    name = "" if own is None else f": {frame.shortened(sensitivity.prior, _LONGEST_PRIOR)}"
    random = ", a random concentration, at its median" if "gamma" in sensitivity.prior and along else ""
    own_prior = {
        "fmt": "D",
        "markersize": 5,
        "color": PRIOR,
        "capsize": 2,
        "label": f"prior of the draws{name}{random}",
    }
    grid[0].errorbar(x[-1], sensitivity.n_clusters, error, **own_prior)
    loss, reliable = (
        sensitivity.loss,
        table[["n_clusters", "excess_loss", "excess_mcse"]].isel(alternative=sensitivity.is_reliable),
    )
    grid[0].set_ylabel(grammar.with_errors("expected clusters", table["n_clusters_mcse"]))
    label = grammar.axis_label(f"excess {short_name_of(loss)}", loss.unit)
    grid[1].set_ylabel(grammar.with_errors(label, table["excess_mcse"]))
    grid[1].set_ylim(bottom=0.0)
    for ax in grid:
        _shade(ax, x[order], sensitivity.is_reliable[order])
        _tick(ax, sensitivity, x, along, named=ax is grid[-1])
        if along:
            grammar.mark_limit(ax, x[-1], "" if ax is grid[0] else "prior (median)")
    if n_priors := reliable.sizes["alternative"]:
        low, high = (float(end(reliable["n_clusters"])) for end in (np.min, np.max))
        others = f"the {n_priors} of {places.size - 1} priors with reliable weights"
        under = counted(n_priors, "other prior") if n_priors == places.size - 1 else others
        clusters = " to ".join(dict.fromkeys(f"{number:.1f}" for number in (low, high)))
        grammar.say(grid[0], f"expected number of clusters: {clusters} under {under}")
        worst = reliable.isel(alternative=int(reliable["excess_loss"].values.argmax()))
        excess, beyond = rounded(float(worst["excess_loss"]), grammar.ERRORS * float(worst["excess_mcse"]))
        sure = bool(worst["excess_mcse"] == 0)
        by = with_unit(excess if sure else f"{excess} ± {beyond}", loss.unit) + " (2 MCSE)" * (not sure)
        best = "the partition is as good as the best one found under each"
        most = f"excess of the partition over the best one found: at most {by}"
        grammar.say(grid[1], most if worst["excess_loss"] > SAME else best)
    grammar.legend_above(grid[0])
    if along:
        grid[1].set_xlabel("concentration (log scale)")
    return grid


def _shade(ax: Any, x: Floats, known: Any) -> None:
    """Shade alternatives that the draws represent poorly, halfway to their neighbours."""
    if known.all():
        return
    step = np.diff(x).min(initial=1.0) if x.size < 2 else np.median(np.diff(x))
    edges = np.concatenate([[x[0] - step / 2], (x[1:] + x[:-1]) / 2, [x[-1] + step / 2]])
    words: str | None = _UNRELIABLE
    for k in np.flatnonzero(~known):
        ax.axvspan(edges[k], edges[k + 1], color=NEUTRAL, alpha=0.3, linewidth=0, label=words)
        words = None


def _tick(ax: Any, sensitivity: PriorSensitivity, x: Floats, along: bool, *, named: bool) -> None:
    """Concentrations, or names, at the alternatives."""
    if along:
        values = np.unique(np.exp(x[:-1]))
        step = max(1, -(-values.size // 10))
        ax.set_xticks(np.log(values[::step]), [f"{value:.3g}" for value in values[::step]])
        return
    names = [sensitivity.prior, *map(str, sensitivity.table["alternative"].values)]
    step = max(1, -(-len(names) // _MOST_NAMES))
    shown = [name if named else "" for name in frame.short_names(names, frame.LONGEST)]
    turned = {"rotation": 90} if len(names) > _MOST_SLANTED else {"rotation": 30, "ha": "right"}
    ax.set_xticks(np.roll(x, 1)[::step], shown[::step], parse_math=False, **turned)


@frame.in_small_print
def plot_partial_partition(partial: PartialPartition, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the largest share of draws found that agree against the number of assigned items.

    Parameters
    ----------
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    See Also
    --------
    partial_partition : Compute the partial partition.

    Notes
    -----
    The filled area, as a share of the axes, is `partial.area`. The dotted line is the probability requested, the point
    is the result. Curve and point are shares of the half of the draws that chose the result. The bar is the probability
    estimated on the other half, plus and minus two standard errors. A concentrated posterior has a curve near the top.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1, 0]] * 5 + [[0, 0, 1, 1, 1]] * 4 + [[0, 1, 1, 1, 1]]
    >>> ax = pc.partial_partition(draws, 0.9, random_seed=1).plot()
    >>> title = ax.set_title("How many items are clustered alike?")
    """
    check_matplotlib()
    from matplotlib.ticker import PercentFormatter

    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    sizes, probability, draws = partial.curve["n_items"].values, partial.curve.values, partial.words.draws
    ax.fill_between(sizes, probability, step="post", color=OPEN, alpha=0.35, linewidth=0.0)
    ax.step(sizes, probability, where="post", color=ink(), linewidth=1.2)
    result = f"curve and ring: in the half that chose them, {percent(partial.search_probability)}"
    dot: dict[str, Any] = {"color": MARK, "markerfacecolor": "none", "markersize": 8, "clip_on": False, "zorder": 3}
    ax.plot(partial.n_items, partial.search_probability, "o", label=result, **dot)
    held_out = "bar: in the other half" + (f", {percent(partial.probability)}" if partial.probability >= 0 else "")
    error = grammar.ERRORS * np.nan_to_num(partial.mcse)
    size, share = partial.n_items + _BESIDE * sizes[-1], partial.probability
    bar: dict[str, Any] = {"color": ink(), "markersize": 7, "capsize": 3, "linewidth": 1.2, "zorder": 4}
    held_out += f" ± {grammar.ERRORS:g} {partial.words.mcse}" * bool(error > 0)
    ax.errorbar(size, share, error, fmt="_", label=held_out, clip_on=False, **bar)
    ax.set(xlim=(0, sizes[-1]), ylim=(0, 1))
    label = f"share of {draws} that agree"
    dim = str(partial.labels.dims[0])
    ax.set(ylabel=label, xlabel=f"number of assigned {plural(dim) or 'items'}, of {sizes[-1]}")
    frame.tick_integers(ax.xaxis)
    grammar.mark_limit(ax, partial.prob, f"requested: {100 * partial.prob:.4g}%", "y")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    of = f"{partial.n_items:,} of {counted_items(int(sizes[-1]), dim)}"
    alike = f"{of} are clustered alike in {percent(partial.probability)} of the {draws}"
    grammar.say(ax, of if np.isnan(partial.probability) else alike)
    grammar.legend_above(ax)
    return ax


@frame.in_small_print
def plot_stable_components(components: StableComponents, *, figsize: Size = None, ax: Any = None) -> Axes:
    """Plot the number of stable components against the threshold.

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
    TypeError
        If `ax` is not an Axes.
    ValueError
        If `components` has no curve, or `figsize` is invalid.

    See Also
    --------
    stable_components : Compute the components.

    Notes
    -----
    Components split as more agreement is required. In a flat part, components are the same: the title names the
    longest above 1/2.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.stable_components([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1]]).plot()
    >>> ax.lines[0].get_ydata()[[0, 50, 99]]
    array([1, 2, 3])
    """
    if components.curve is None:
        raise ValueError(
            "`components` must have a curve; it has none, as too many items differ. Give a threshold below 1."
        )
    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    thresholds, numbers = components.curve["threshold"].values, components.curve.values
    style: dict[str, Any] = {"marker": "o", "markersize": 2.0}  # numbers at the thresholds of steps
    ax.plot(thresholds, numbers, color=ink(), linewidth=0.8, drawstyle="steps-pre", **style)
    ax.plot(components.threshold, components.n_components, "o", color=MARK, clip_on=False, zorder=3)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.05 * numbers.max()))
    grammar.mark_limit(ax, components.threshold, f"requested: {components.threshold:g}", at=0.5)
    above = int(np.searchsorted(thresholds, _MAJORITY))  # below, half of the draws can disagree
    starts = above + frame.runs_of(numbers[above:])
    longest = int(np.argmax(np.diff(starts)))
    first, last = thresholds[starts[longest]], thresholds[starts[longest + 1] - 1]
    here = f"{counted(components.n_components, 'stable component')} at {components.threshold:g}"
    also = ", the same" if first <= components.threshold <= last else f"; the same {numbers[starts[longest]]:,}"
    agree = f"threshold: least share of the {components.words.draws} that agree"
    ax.set(xlabel=agree, ylabel="number of stable components")
    grammar.say(ax, f"{here}{also} from {first:g} to {last:g}")
    frame.tick_integers(ax.yaxis)
    return ax
