"""Several partitions in each draw as pictures: where items go, how far layers are apart, and each item's clusters."""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.answers.alignment import AlignedPartitions
from posterior_consensus.answers.membership import Membership
from posterior_consensus.ensemble.items import NOISE, NUMBER_OF_NOISE, Items
from posterior_consensus.layers.flows import ODDS
from posterior_consensus.layers.record import HasComparison, LayerComparison
from posterior_consensus.layers.stability import LayerStability
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.alluvial import OUTLINE, Column, changes_in_words, draw_alluvial
from posterior_consensus.plots.colours import NEUTRAL, NOISE_GREY, OPEN, as_cmap, colours_of, ink, ink_on, on_page
from posterior_consensus.plots.frame import Axes, Grid, Size, Width
from posterior_consensus.plots.items import draw_shares
from posterior_consensus.plots.rows import item_row, name_row
from posterior_consensus.plots.strips import draw_numbered
from posterior_consensus.results.display import counted, counted_items, joined, listed, percent, plural, short_name_of
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.results.words import RUNS
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.tolerances import SAME

_MOST_COLUMNS = 40
_WIDEST = 7.1  # inches: a page of a journal, 180 mm
_DOWN, _RUNS_DOWN = 3.5, 6.0  # inches of a figure for print: of layers of draws, and of runs
_SHORT = 4  # characters of a layer's name that need no more room below the axes
_MARGIN = 0.3  # beside the columns, for their names
_LEVEL = 8  # characters of a layer's name that is not written upright
_FAINT, _SURE = 0.12, 0.5  # opacities of a flow that may be none, and of one whose interval is a point
_LEAST = 0.05  # expected items of a band
_TOP = 0.95  # the axis of stability ends there or lower
_BESIDE = 0.14  # of a point: the line of the runs
_MOST_MARKS = 12  # of moves, with names
_MOST_MOVED = 3  # items that a title names
_HIDDEN = 0.012  # share of the range, in which a point hides its bar
_ROW = 9.0  # points of a row with names
_NEAR_CHANCE = 0.2  # stability below which random labels are on the axis


@frame.in_small_print
def plot_layers(comparison: LayerComparison, *, figsize: Size = None, axes: Any = None) -> Grid:
    r"""Plot the clusters of each layer, joined by bands as wide as the expected numbers of common items.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of one matplotlib.axes.Axes, optional
        By default of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (1,)

    Raises
    ------
    TypeError
        If `axes` holds other things.
    ValueError
        If there are fewer than two layers, or several `axes`.

    See Also
    --------
    plot_alluvial : the same of partitions without draws.
    plot_layer_items : each item's cluster in each layer.

    Notes
    -----
    Clusters keep their name and colour from layer to layer. Grey are items elsewhere, in draws' clusters that no
    cluster of the partition is matched with. A cluster is as high as the expected number of its items that come from
    the layer before or go on to the next one, whichever is larger. A band is opaque if the number of its items is sure:
    its opacity grows with the ratio of the ends of the number's interval, which has the probability
    ``comparison.prob``. Clusters are ordered such that few bands cross, as in :func:`plot_alluvial`. Of more than 40
    layers, 40 successive ones around the largest change are shown. A cluster has its name where it begins, and at the
    end. The dotted line is at the largest change; bands of items that clearly move then are outlined and named. If
    there is no room for the names of all layers, one in several has its name.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = np.array([[[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]]] * 20)
    >>> (ax,) = pc.compare_layers(draws, random_seed=1).plot()
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['0\n2 clusters', '1\n3 clusters']
    """
    partitions, shown = comparison.partitions, _window(comparison)
    if len(shown) < 2:
        raise ValueError("`comparison` must have at least two layers; got one, which plot_psm shows.")
    reported = partitions.labels.values[shown]
    numbers = [np.append(np.unique(row[row >= 0]), -1).astype(np.int64) for row in reported]
    flows = comparison.flows.to_dataframe()
    before, after = (own_in(comparison.overlaps, end).values[flows["step"]] for end in ("before", "after"))
    tables, opacities, maybe = [], [], []
    for j, sides in zip(shown[:-1], pairwise(numbers), strict=True):
        rows = flows[(before == comparison.layers[j]) & (after == comparison.layers[j + 1])]
        ends = zip(sides, ("source", "target"), strict=True)
        at = tuple(_places_of(side, rows[name].to_numpy()) for side, name in ends)
        table, opacity = np.zeros((2, *(side.size for side in sides)))
        may_be_empty = np.zeros(table.shape, np.bool_)
        table[at] = rows["expected"]
        opacity[at] = on_page(_FAINT) + _SURE * rows["low"] / rows["high"].clip(lower=1)
        may_be_empty[at] = rows["low"] == 0
        tables.append(table)
        maybe.append(may_be_empty & (table >= _LEAST))
        opacities.append(np.where(table < _LEAST, 0.0, opacity))
    sizes = []
    for k, (row, own) in enumerate(zip(reported, numbers, strict=True)):
        leaving, arriving = tables[k : k + 1], tables[max(k - 1, 0) : k]
        sizes.append(np.max([*(t.sum(axis=1) for t in leaving), *(t.sum(axis=0) for t in arriving)], axis=0))
        if not sizes[k].any():  # no items in common with a layer beside it
            sizes[k] = np.bincount(_places_of(own, row[row >= 0]), minlength=own.size).astype(np.float64)
    height = max(size.sum() for size in sizes)
    grid = frame.grid_axes(axes, figsize, 1, 1, min(2.2 + 1.2 * len(shown), _WIDEST), 4.8).ravel()
    clusters = _names_at_ends(numbers, partitions.names)
    columns = list(map(Column, [""] * len(shown), [size / height for size in sizes], clusters, numbers))
    tables = [table / height for table in tables]
    moved = _names_of_bands(comparison, shown, numbers)
    named = {band: ", ".join(names) for band, names in moved.items()}
    ax = draw_alluvial(grid[0], columns, tables, opacities, named, maybe)
    ax.set_xlim(-_MARGIN, len(shown) - 1 + _MARGIN)
    largest = comparison.largest_change
    if largest is not None:
        at_both = [shown.index(comparison.layers.index(end)) for end in (largest.before, largest.after)]
        grammar.mark_limit(ax, sum(at_both) / 2, "")
    items = plural(str(partitions.labels.dims[1])) or "items"
    ax.set_ylabel(f"expected number of {items}")
    _scale(ax, float(height))
    _say_largest(ax, comparison, dict(chain.from_iterable(names.items() for names in moved.values())))
    _add_legend(ax, comparison.prob, elsewhere=any(size[-1] > 0 for size in sizes))
    _name_layers(ax, [comparison.layers[j] for j in shown], [own.size - 1 for own in numbers])
    left_out = len(comparison.layers) - len(shown)
    note = f"{comparison.dim} ({len(shown)} of {left_out + len(shown)}, around the largest change)" * (left_out > 0)
    _label_layers(ax, note or comparison.dim)
    return grid


def _scale(ax: Axes, height: float) -> None:
    """Show at the bottom of the axis how high a few items are, of those of the highest column."""
    from matplotlib.ticker import MaxNLocator

    number = float(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]).tick_values(0.0, height)[1])
    bottom = ax.get_ylim()[0]
    ax.set_yticks([bottom, bottom - number / height], ["0", f"{number:,.0f}"])
    ax.get_yticklabels()[0].set_verticalalignment("bottom")  # not beside the name of the first layer
    ax.tick_params(axis="y", length=3)
    ax.spines["left"].set_visible(True)
    ax.spines["left"].set_bounds(bottom - number / height, bottom)


def comparison_in(summary: HasComparison) -> Any:
    """The comparison of the layers of a summary."""
    if summary.comparison is None:
        raise ValueError("The layers were not compared, because no time was left; give more `seconds`.")
    return summary.comparison


def _comparison(given: Any) -> LayerComparison:
    """The comparison itself, or that of a summary."""
    comparison = comparison_in(given) if isinstance(given, HasComparison) else given
    if isinstance(comparison, LayerStability):
        raise TypeError(
            "`comparison` must be of layers of several partitions in each draw; got LayerStability, which its plot() "
            "shows."
        )
    frame.check_result("comparison", comparison, LayerComparison, "compare_layers")
    own: LayerComparison = comparison
    return own


def _window(comparison: LayerComparison) -> list[int]:
    """Positions of the layers to show: of many, those around the largest change."""
    n_layers = len(comparison.layers)
    largest = comparison.largest_change
    middle = comparison.layers.index(largest.after) if largest is not None else 0
    first = max(0, min(middle - _MOST_COLUMNS // 2, n_layers - _MOST_COLUMNS))
    return list(range(first, min(n_layers, first + _MOST_COLUMNS)))


def _places_of(known: Integers, wanted: npt.NDArray[Any]) -> Positions:
    order = np.argsort(known)
    return order[np.searchsorted(known, wanted, sorter=order)]


def _name_layers(ax: Axes, names: list[Any], n_clusters: list[int]) -> None:
    """Name the columns, all with their numbers of clusters if there is room, else some."""
    room, shown = frame.extent(ax)[0] / len(names), frame.short_names(names, frame.LONGEST)
    lines = [[name, counted(number, "cluster")] for name, number in zip(shown, n_clusters, strict=True)]
    if frame.CHARACTER * max(len(line) for both in lines for line in both) < room:
        ax.set_xticks(range(len(names)), ["\n".join(both) for both in lines], parse_math=False)
    elif (longest := max(map(len, shown))) <= _LEVEL:
        step = int(np.ceil(frame.CHARACTER * (longest + 1) / room))
        at = [*range(0, len(names) - step, step), len(names) - 1]  # the last layer has its name
        ax.set_xticks(at, [shown[k] for k in at], parse_math=False)
    else:
        frame.label_some(ax, "x", np.array(shown))


def _names_at_ends(numbers: list[Integers], names: Sequence[Any]) -> list[list[str]]:
    """Names of the clusters of each column where they begin, and in the last column; empty for others, and noise."""
    named, known = list[list[str]](), {-1, *(k for k, name in enumerate(names) if name == NOISE)}
    for own in numbers[:-1]:
        named.append(["" if k in known else str(names[k]) for k in own.tolist()])
        known.update(own.tolist())
    unnamed = {-1, *(k for k, name in enumerate(names) if name == NOISE)}
    return [*named, ["" if k in unnamed else str(names[k]) for k in numbers[-1].tolist()]]


def _say_largest(ax: Axes, comparison: LayerComparison, named: Mapping[str, float], ringed: str = "") -> None:
    """Write the largest change of ordered layers, and the items that clearly move then, as the title.

    Only the items `named` in the figure have their names, with their probabilities. Of layers without an order, it is
    which two are farthest apart.
    """
    largest = comparison.largest_change
    if largest is None:
        _say_farthest(ax, comparison)
        return
    if largest.expected_loss <= SAME:
        grammar.say(ax, "no layer differs from the one before")
        return
    change = grammar.in_digits(largest.expected_loss, 2, comparison.loss.unit)
    said = f"largest change from {largest.before} to {largest.after}{ringed}: {change}"
    n_moved, dim = len(_moved_most(comparison)[0]), str(comparison.partitions.labels.dims[1])
    chances = [f"{name} ({'probability ' * (k == 0)}{percent(p)})" for k, (name, p) in enumerate(named.items())]
    moves = list(chances)
    if n_moved > len(named) > 0:
        moves.append(f"{n_moved - len(named):,} more")
    moved = " and ".join([", ".join(moves[:-1]), moves[-1]][len(moves) < 2 :]) if moves else ""
    some = moved or (counted_items(n_moved, dim) if n_moved else f"no {dim if plural(dim) else 'item'} clearly")
    grammar.say(ax, f"{said}; {some} moved")


def _say_farthest(ax: Axes, comparison: LayerComparison) -> None:
    """Write which two layers have the largest expected loss as the title."""
    losses = comparison.to_dataframe()["expected_loss"].dropna()
    if losses.size:
        at = int(losses.to_numpy().argmax())
        one, other = losses.index[at]
        apart = grammar.in_digits(float(losses.iloc[at]), 2, comparison.loss.unit)
        grammar.say(ax, f"{one} and {other} are farthest apart: {apart}")
    else:
        grammar.say(ax, "no two layers have items in common")


def _mark_largest(ax: Axes, comparison: LayerComparison, column: str) -> None:
    """Mark the cells of the two layers of the largest change in the matrix of a column with a ring."""
    largest = comparison.largest_change
    if largest is not None:
        at = [comparison.layers.index(end) for end in (largest.before, largest.after)]
        (image,) = ax.images
        (ring,) = ink_on(image.cmap(image.norm(comparison.distances[column].values[at[:1], at[1:]])))
        ax.plot(at[1:], at[:1], "o", markersize=9, markerfacecolor="none", markeredgecolor=ring, clip_on=False)


def _moved_most(comparison: LayerComparison) -> tuple[Positions, Items, Floats]:
    """Positions of the items that clearly move at the largest change, all items, and probabilities (n,) of a move."""
    largest = comparison.largest_change
    assert largest is not None
    before, after = (own_in(comparison.overlaps, end).values for end in ("before", "after"))
    (step,) = np.flatnonzero((before == largest.before) & (after == largest.after))
    clear, probability = (own_in(comparison.overlaps.isel(step=step), name) for name in ("clear", "moved"))
    return np.flatnonzero(clear.values), Items.along(clear, str(clear.dims[0])), probability.values


def _names_of_bands(
    comparison: LayerComparison, shown: list[int], numbers: list[Integers]
) -> dict[tuple[int, int, int], dict[str, float]]:
    """Items of which the title says that they moved, with probabilities, by column, source and target of the band."""
    largest = comparison.largest_change
    if largest is None:
        return {}
    moved, items, probability = _moved_most(comparison)
    ends = [shown.index(comparison.layers.index(end)) for end in (largest.before, largest.after)]
    if ends[1] != ends[0] + 1:  # a layer between has no common items, so no band
        return {}
    moved = moved[:_MOST_MOVED]
    sides = [_places_of(numbers[end], comparison.partitions.labels.values[shown[end], moved]).tolist() for end in ends]
    names: dict[tuple[int, int, int], dict[str, float]] = {}
    shown_names = frame.short_names(items.named(moved), frame.LONGEST)
    for name, item, *band in zip(shown_names, moved.tolist(), *sides, strict=True):
        names.setdefault((ends[0], band[0], band[1]), {})[name] = float(probability[item])
    return names


def _add_legend(ax: Axes, prob: float, *, elsewhere: bool) -> None:
    """Explain the opacity of bands, and grey if it occurs, above the axes."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    looks = {
        "band whose number of items is sure; fainter: less sure": on_page(_FAINT) + _SURE,
        f"outlined: band that may be empty ({prob:.0%} interval)": on_page(_FAINT),
    }
    entries: list[Any] = [
        Patch(facecolor=to_rgba(NEUTRAL, look), edgecolor=NEUTRAL, linewidth=OUTLINE * (look < 1 / 3), label=name)
        for name, look in looks.items()
    ]
    if elsewhere:
        entries.append(grammar.point("grey block: in no cluster of the partition", "s", OPEN))
    grammar.legend_above(ax, entries)


@frame.in_small_print
def plot_layer_stability(comparison: LayerStability, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot how stable layers of runs are, their numbers of clusters, and where the items of each cluster go.

    Parameters
    ----------
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of three matplotlib.axes.Axes, optional
        By default of a new figure; two without consensus partitions.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (3,), or (2,) without consensus partitions

    Raises
    ------
    TypeError
        If `axes` holds other things.
    ValueError
        If there is one layer only, or there are more or fewer `axes`.

    See Also
    --------
    LayerComparison.plot : Plot layers of draws, which are paired.
    plot_alluvial : Plot the consensus partitions alone.

    Notes
    -----
    Above, the stability of each layer with two standard errors to either side: 1 if all runs are equal, 0 for random
    labels of the same cluster sizes, which is dashed if a layer is near it. Bars end at 1. Layers that are not clearly
    less stable than another are filled; rings are the :attr:`LayerStability.shortlist`. In the middle, the fewest and
    the most clusters of a run as a line, and those of the consensus partition as a point. Below, the consensus
    partitions: a cluster is as high as its number of items, and keeps its colour as long as it keeps its name; noise is
    grey. Clusters are ordered such that few bands cross, as in :func:`plot_alluvial`. Of more than 40 layers, the first
    40 are shown. The figure has what a clustering tree has [1]_, with the heights of clusters and bands to scale.

    References
    ----------
    .. [1] Zappia and Oshlack (2018), GigaScience 7(7), giy083. https://doi.org/10.1093/gigascience/giy083

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> runs = [[0, 0, 1, 1]] * 4 + [[0, 0, 1, 2], [0, 1, 2, 2]] * 2
    >>> compared = pc.compare_layers(pc.as_runs(runs, groups=[0.5] * 4 + [1.0] * 4), random_seed=1)
    >>> axes = compared.plot()
    >>> title = axes[0].set_title("At which resolution do runs agree?")
    """
    names = comparison.layers[:_MOST_COLUMNS]
    if len(names) < 2:
        raise ValueError("`comparison` must have at least two layers; got one.")
    partitions, heights = comparison.partitions, [2.0, 1.0]
    if partitions is not None:
        n_clusters = [np.unique(row[row >= 0]).size for row in partitions.labels.values[: len(names)]]
        heights.append(min(max(3.2, 0.22 * max(n_clusters)), 7.0))
    longest = max(len(str(name)) for name in names)
    down = 3.4 + sum(heights[2:]) + 0.06 * min(longest, 16) * (longest > _SHORT)
    size = min(3.4 + 1.1 * len(names), _WIDEST), down
    grid = frame.grid_axes(axes, figsize, len(heights), 1, *size, height_ratios=heights).ravel()
    table = comparison.to_dataframe().iloc[: len(names)]
    _plot_stability(grid[0], table, *([name in some for name in names] for some in _marked(comparison)))
    _plot_numbers(grid[1], table)
    if partitions is not None:
        _plot_flow(grid[2], partitions, len(names))
    left_out = len(comparison.layers) - len(names)
    for ax in grid:
        ax.set_xlim(-_MARGIN, len(names) - 1 + _MARGIN)
        ax.set_xticks(range(len(names)), [""] * len(names))
    captions = [str(name) for name in names]
    last = grid[-1]
    if (longest + 1) * frame.CHARACTER <= frame.extent(last)[0] / len(names):
        frame.set_ticks(last, "x", range(len(names)), captions)
    else:
        frame.label_some(last, "x", np.array(captions))
    note = f" ({len(names)} of {left_out + len(names)})" * (left_out > 0)
    if np.asarray(names).dtype.kind in "iuf" and np.ptp(np.diff(names)) > SAME:
        note += " (not to scale)"
    _label_layers(last, f"{_axis_of_runs(comparison.dim)}{note}")
    return grid


def printed_layers(comparison: LayerComparison | LayerStability, width: Width, figsize: Size) -> Grid:
    """Plot layers of draws, or of runs, at a width of print."""
    with frame.in_print(width, figsize) as across:
        down = _RUNS_DOWN if isinstance(comparison, LayerStability) else _DOWN
        grid: Grid = comparison.plot(figsize=(across, down))
        frame.fit_labels(grid.reshape(-1, 1))
    return grid


def _axis_of_runs(dim: str) -> str:
    """Name of the dimension of layers of runs on an axis."""
    return "group of runs" if dim == "layer" else dim


def _label_layers(ax: Axes, label: str) -> None:
    """Label the axis of layers, above the note on repeated colours if there is one."""
    ax.set_xlabel("\n".join(filter(None, (label, ax.get_xlabel()))))


def _marked(comparison: LayerStability) -> tuple[list[Any], list[Any]]:
    """Layers that may be the most stable, and those on the shortlist if they have an order."""
    return comparison.most_stable, comparison.shortlist if comparison.ordered else []


def _plot_stability(ax: Axes, table: pd.DataFrame, is_best: list[bool], is_listed: list[bool]) -> None:
    """Stability of each layer with its errors; filled points may be the most stable, rings are on the shortlist."""
    at, values = np.arange(len(table)), table["stability"].to_numpy()
    error, best = grammar.ERRORS * table["stability_error"].fillna(0.0).to_numpy(), np.array(is_best)
    ax.plot(at, values, color=NEUTRAL, linewidth=0.8, zorder=1)
    bars = np.stack([error, np.minimum(error, (1.0 - values).clip(min=0.0))])  # no stability is above 1
    ax.errorbar(at, values, bars, fmt="none", color=ink(), elinewidth=1.0, capsize=2, zorder=2)
    others = "less stable than another" if best.any() else "error unknown"
    for some, face, label in ((best, ink(), "not clearly less stable than any"), (~best, ax.get_facecolor(), others)):
        if some.any():
            ax.plot(at[some], values[some], "o", color=ink(), markerfacecolor=face, markersize=5, zorder=3, label=label)
    if any(is_listed):
        ax.scatter(
            at[is_listed],
            values[is_listed],
            s=90,
            edgecolors=ink(),
            facecolors="none",
            label="shortlist: as stable as its neighbours, or more",
        )
        peaks, several = _named_peaks(table.index[is_listed].tolist()), sum(is_listed) > 1
        are = "are local peaks of stability (rings)" if several else "is the local peak of stability (ring)"
        grammar.say(ax, f"{peaks} {are}")
    elif best.any():
        grammar.say(ax, f"no layer is clearly more stable than {listed(table.index[best].tolist(), 4)} (filled)")
    else:
        grammar.say(ax, "the most stable layer is unknown")
    low = float(np.nanmin(np.append(values - error, _TOP)))
    if low < _NEAR_CHANCE:
        low = min(low, 0.0)
        ax.axhline(0.0, color=NEUTRAL, linewidth=1.0, linestyle="--", label="random labels")
    room = 0.12 * (1.0 - low)
    label = grammar.with_errors("stability (1: equal,\n0: random)", error, RUNS, ", cut at 1")
    ax.set(ylabel=label, ylim=(low - room, 1.0 + room))
    grammar.legend_above(ax)


def _named_peaks(names: list[Any]) -> str:
    """Some names in words; of many, the first."""
    return joined(names) if len(names) <= _MOST_MOVED else listed(names, _MOST_MOVED)


def _plot_numbers(ax: Axes, table: pd.DataFrame) -> None:
    """Numbers of clusters of the runs of each layer, and of its consensus partition."""
    at = np.arange(len(table))
    beside = at - _BESIDE
    runs = " to ".join(dict.fromkeys(str(number) for number in (table["n_runs"].min(), table["n_runs"].max())))
    label = f"fewest to most in {runs} runs"
    ax.vlines(beside, table["fewest"], table["most"], color=NEUTRAL, linewidth=2.0, label=label)
    for end in ("fewest", "most"):
        ax.scatter(beside, table[end], marker="_", s=30, color=NEUTRAL)
    if table["n_clusters"].notna().all():
        ax.scatter(at, table["n_clusters"], s=22, color=ink(), label="consensus", zorder=2)
    ax.set_ylim(0, 1.1 * np.nanmax([1, table["most"].max(), table["n_clusters"].max()]))
    frame.tick_integers(ax.yaxis)
    ax.set_ylabel("clusters")
    grammar.legend_above(ax)


def _plot_flow(ax: Axes, partitions: AlignedPartitions, n_layers: int) -> None:
    """The clusters of each layer's consensus partition, and the numbers of items they have in common."""
    labels = partitions.labels.values[:n_layers]
    numbers = [np.unique(row[row >= 0]).astype(np.int64) for row in labels]
    sizes = [np.unique(row[row >= 0], return_counts=True)[1].astype(np.float64) for row in labels]
    tables = []
    for sides, rows in zip(pairwise(numbers), pairwise(labels), strict=True):
        both = (rows[0] >= 0) & (rows[1] >= 0)
        table = np.zeros([side.size for side in sides])
        np.add.at(table, tuple(np.searchsorted(side, row[both]) for side, row in zip(sides, rows, strict=True)), 1.0)
        tables.append(table)
    height = max(size.sum() for size in sizes)
    is_noise = np.array([name == NOISE for name in partitions.names])
    clusters = _names_at_ends(numbers, partitions.names)
    colours = [np.where(is_noise[own], NUMBER_OF_NOISE, own) for own in numbers]
    columns = list(map(Column, [""] * n_layers, [size / height for size in sizes], clusters, colours))
    draw_alluvial(ax, columns, [table / height for table in tables], [on_page(_FAINT) + _SURE * 0.66] * len(tables))
    ax.set_ylabel(counted_items(labels.shape[1], partitions.labels.dims[1]))
    _scale(ax, height)
    if is_noise.any():
        grammar.add_legend(ax, [grammar.point(NOISE, "s", NOISE_GREY)])


@frame.in_small_print
def plot_layer_distances(
    comparison: LayerComparison | HasComparison,
    column: str = "expected_loss",
    *,
    cmap: Any = "viridis",
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot how far layers are apart in the same draw, for each pair of layers and, if layers are ordered, by lag.

    Parameters
    ----------
    comparison : LayerComparison or LayersSummary
        The result of :func:`compare_layers`, or of :func:`summarize` of layers.
    column : {"expected_loss", "ari"}
        What to plot of `comparison.distances`: the expected loss or the expected adjusted Rand index.
    cmap : str or matplotlib.colors.Colormap
        Colours of the matrix. By default "viridis".
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        For the matrix and, if the layers are ordered, for the profile by lag.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,), or (1,) for layers without an order

    Raises
    ------
    TypeError
        If `comparison` is something else, or `axes` holds other things.
    ValueError
        If `column`, `cmap` or `figsize` are invalid, or there are more or fewer `axes`.

    See Also
    --------
    LayerComparison.plot : where the items go from layer to layer.

    Notes
    -----
    White pairs were not compared or have no items in common; rings are at the largest change. On the right, a point is
    a pair of layers, with two Monte Carlo standard errors to either side; the line is their mean by lag, the number of
    steps between them. For the expected loss, dashes are the mean for independent layers: draws of the one with other
    draws of the other.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = np.array([[[0, 0, 0, 1, 1], [0, 0, 1, 2, 2], [0, 0, 1, 2, 2]]] * 20)
    >>> axes = pc.plot_layer_distances(pc.compare_layers(draws, random_seed=1))
    >>> title = axes[0].set_title("When did the clustering change?")
    """
    comparison = _comparison(comparison)
    labels = {
        "expected_loss": grammar.axis_label(f"expected {short_name_of(comparison.loss)}", comparison.loss.unit),
        "ari": "expected adjusted Rand index",
    }
    if column not in labels:
        raise ValueError(f"`column` must be 'expected_loss' or 'ari'; got {column!r}.")
    colours, n_axes = as_cmap(cmap), 1 + comparison.ordered
    grid = frame.grid_axes(
        axes, figsize, 1, n_axes, 4.8 * n_axes, 4.2, stacked=(1.4, 1.0), width_ratios=(1.2, 1.0)[:n_axes]
    )
    grid = grid.ravel()
    image = grid[0].imshow(comparison.distances[column].values, cmap=colours, interpolation="nearest")
    grammar.add_colour_bar(grid[0], image, labels[column])
    grid[0].set(xlabel=comparison.dim, ylabel=comparison.dim)
    frame.label_some(grid[0], "xy", np.array(frame.short_names(comparison.layers, frame.LONGEST)))
    grid[0].tick_params(length=0)
    _say_largest(grid[0], comparison, {}, " (ring)")
    if comparison.ordered:
        _mark_largest(grid[0], comparison, column)
        _plot_by_lag(grid[1], comparison, column, labels[column])
    return grid


def _lags_in_words(means: pd.DataFrame, column: str, label: str, error: pd.Series, many: str) -> str:
    """Up to which lag layers are more alike than independent ones, by two mean errors, else the means at the ends."""
    if column == "expected_loss":
        closer = (means["independent"] - means[column] > grammar.ERRORS * error).to_numpy()
        first, n = means.index[0], int(np.append(closer, False).argmin())
        if n and first == 1:
            until = f" up to lag {means.index[n - 1]}" if n < len(means) else " at every lag"
            return f"{many} are more alike than independent ones{until}"
    ends = [f"{means[column].iloc[k]:.2f} at lag {means.index[k]}" for k in (0, -1)]
    return f"mean {label}: {', '.join(dict.fromkeys(ends))}"


def _plural_of(dim: str) -> str:
    """Layers by the name of their dimension, such as "years"."""
    return plural(dim) or "layers"


def _plot_by_lag(ax: Axes, comparison: LayerComparison, column: str, label: str) -> None:
    table = comparison.to_dataframe()
    at = {name: k for k, name in enumerate(comparison.layers)}
    lags = np.array([at[other] - at[one] for one, other in table.index], dtype=np.int64)
    error = table["mcse" if column == "expected_loss" else "ari_mcse"].fillna(0.0)
    many = _plural_of(comparison.dim)
    style: dict[str, Any] = {"fmt": ".", "color": NEUTRAL, "elinewidth": 0.8, "alpha": 0.6, "label": f"pair of {many}"}
    ax.errorbar(lags, table[column], yerr=grammar.ERRORS * error, **style)
    means = table.groupby(lags).mean()
    ax.plot(means.index, means[column], color=ink(), marker="o", markersize=4, label="mean")
    if column == "expected_loss":
        ax.plot(means.index, means["independent"], color=ink(), linestyle="--", label="mean if independent")
    hidden = 0 < grammar.ERRORS * float(error.max()) < _HIDDEN * float(np.ptp(table[column].dropna()))
    inside = " (in the points)" * hidden
    ax.set(xlabel=f"lag (steps between {many})", ylabel=f"{grammar.with_errors(label, error)}{inside}")
    ax.locator_params(axis="x", integer=True)
    grammar.say(ax, _lags_in_words(means, column, label, error.groupby(lags).mean(), many))
    grammar.legend_above(ax)


@frame.in_small_print
def plot_layer_items(
    layers: LayerComparison | HasComparison | AlignedPartitions | Mapping[Any, Membership],
    *,
    order: Any = "clusters",
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot each item's cluster in each layer as coloured bars, with the same colours in all layers.

    Parameters
    ----------
    layers : LayerComparison, LayersSummary, AlignedPartitions, or dict of Membership
        The result of :func:`compare_layers`, of :func:`summarize` of layers or of :func:`align_partitions`, whose
        partitions are plotted, or memberships by name, whose probabilities are plotted: of layers, or of several
        numbers of clusters.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items, as for :meth:`Membership.plot`: by their clusters in the first layer, then in the next ones.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        One for partitions, one for each of several memberships.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (1,) or (n_layers,)

    Raises
    ------
    TypeError
        If `layers` is of no kind listed above.
    ValueError
        If memberships are not of the same items, or `order`, `figsize` or `axes` are invalid.

    See Also
    --------
    LayerComparison.plot : Plot where the items of each cluster go.
    Membership.plot : Plot the memberships of one partition.

    Notes
    -----
    Items that a layer lacks are left out. A triangle above a layer marks an item that moved to it: it is filled if the
    item clearly moved, see :class:`LayerComparison`, else the partitions alone say so. Memberships have constant
    colours if their partitions have: those of ``comparison.partitions[name]`` do.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = np.array([[[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]]] * 20)
    >>> comparison = pc.compare_layers(draws, random_seed=1)
    >>> axes = pc.plot_layer_items(comparison)
    >>> title = axes[0].set_title("Who moved?")
    """
    if isinstance(layers, (HasComparison, LayerComparison)):
        comparison = _comparison(layers)
        grid, shown = _draw_partitions(comparison.partitions, order, figsize, axes)
        _say_largest(grid[0], comparison, _name_moved(grid[0], comparison, shown))
        _mark_moves(grid[0], comparison, shown)
        grid[0].set_ylabel(comparison.dim)
        return grid
    if isinstance(layers, AlignedPartitions):
        grid, _ = _draw_partitions(layers, order, figsize, axes)
        if len(layers.labels) > 1:
            names = frame.short_names(layers.partitions, frame.LONGEST)
            grammar.say(grid[0], changes_in_words(names, list(layers.labels.values), str(layers.labels.dims[1]))[0])
        return grid
    if not isinstance(layers, Mapping) or not all(isinstance(one, Membership) for one in layers.values()) or not layers:
        raise TypeError(
            "`layers` must be what compare_layers() or align_partitions() returns, or a dict of memberships; got "
            f"{type(layers).__name__}."
        )
    return _draw_memberships(layers, order, figsize, axes)


def _mark_moves(ax: Axes, comparison: LayerComparison, shown: Positions) -> None:
    """Mark the items, of those shown from left to right, that move to a layer: clearly, or in the partition alone."""
    labels, marks = comparison.partitions.labels.values[:, shown], list[tuple[float, float]]()
    for before, after, clear in zip(
        *(own_in(comparison.overlaps, end).values.tolist() for end in ("before", "after")),
        own_in(comparison.overlaps, "clear"),
        strict=True,
    ):
        one, other = (labels[comparison.layers.index(end)] for end in (before, after))
        is_clear, y = clear.values[shown] == 1, comparison.layers.index(after) - 0.5
        unsure = (one != other) & (one >= 0) & (other >= 0) & ~is_clear
        for some, face in ((is_clear, ink()), (unsure, "none")):
            x = np.flatnonzero(some)
            at = x, np.full(x.size, y)
            marks += zip(*at, strict=True)
            ax.scatter(*at, marker="v", s=24, facecolors=face, edgecolors=ink(), linewidths=0.6, zorder=3)
    items = Items.along(comparison.partitions.labels, str(comparison.partitions.labels.dims[1]))
    if len(marks) <= _MOST_MARKS:
        for place, height in marks:
            name = frame.shortened(items.named(shown[[int(place)]])[0], frame.LONGEST)
            _name_mark(ax, place, height, name, shown.size)
    clearly = f"clearly moved (probability above {ODDS / (1 + ODDS):.0%})"
    clear_move, unsure_move = (
        grammar.point(name, "v", ink(), markersize=5, markerfacecolor=face)
        for name, face in ((clearly, ink()), ("may have moved", "none"))
    )
    grammar.legend_above(ax, [clear_move, unsure_move])


def _name_moved(ax: Axes, comparison: LayerComparison, shown: Positions) -> dict[str, float]:
    """Name items that clearly move at the largest change next to their marks if the axis does not.

    Return the names and the probabilities of the moves.
    """
    largest = comparison.largest_change
    if largest is None:
        return {}
    moved, items, probability = _moved_most(comparison)
    visible = moved[np.isin(moved, shown)][:_MOST_MOVED]
    y = comparison.layers.index(largest.after) - 0.5
    names = frame.short_names(items.named(visible), frame.LONGEST)
    for item, name in zip(visible.tolist(), names, strict=True):
        _name_mark(ax, float(np.flatnonzero(shown == item)[0]), y, name, shown.size)
    return dict(zip(names, probability[visible].tolist(), strict=True))


def _name_mark(ax: Axes, x: float, y: float, name: str, n_shown: int) -> None:
    """Write the name of an item next to its mark, if neither the axis nor another mark of the row has it there."""
    known = {tick.get_text() for tick in ax.get_xticklabels()} | {
        one.get_text() for one in ax.texts if one.get_position()[1] == y
    }
    if name in known:
        return
    side = "right" if x > n_shown / 2 else "left"
    place: dict[str, Any] = {"xytext": (-4 if side == "right" else 4, 0), "textcoords": "offset points"}
    style: dict[str, Any] = {"fontsize": "small", "va": "center", "ha": side, "parse_math": False, "zorder": 4}
    ax.annotate(name, (x, y), bbox=grammar.behind_names(ax), **place, **style)


def _draw_partitions(aligned: AlignedPartitions, order: Any, figsize: Size, axes: Any) -> tuple[Grid, Positions]:
    labels, there = aligned.labels, aligned.labels.values >= 0
    rows = np.where(there, labels.values, len(aligned.names))
    captions = frame.short_names(aligned.partitions, frame.LONGEST)
    grid = frame.grid_axes(axes, figsize, 1, 1, 7.6, min(1.2 + 0.3 * len(rows), 12.0))
    items = Items.along(labels, str(labels.dims[1]))
    names = [*map(str, aligned.names), "absent"]
    by, strengths = f"cluster of {captions[0]}", list(1.0 * there)
    shown = draw_numbered(grid.item(), items, list(rows), names, captions, by, order, strengths)
    _name_new(grid.item(), rows[:, shown], names)
    return grid.ravel(), shown


def _name_new(ax: Axes, rows: Integers, names: list[str]) -> None:
    """Name each cluster that the first row lacks where it begins, if there is room."""
    known, (across, down) = set(rows[0].tolist()), frame.extent(ax)
    for y, row in enumerate(rows[1:].tolist(), 1):
        for k in [k for k in dict.fromkeys(row) if k not in known]:
            first, last = row.index(k), len(row) - 1 - row[::-1].index(k)
            fits = frame.CHARACTER * len(names[k]) < across / len(row) * row.count(k)
            if k < len(names) - 1 and fits and down / len(rows) > _ROW:
                (own_ink,) = ink_on(colours_of(np.array([k])))
                style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small", "color": own_ink}
                ax.text((first + last) / 2, y, names[k], parse_math=False, **style)
            known.add(k)


def _draw_memberships(layers: Mapping[Any, Membership], order: Any, figsize: Size, axes: Any) -> Grid:
    first = next(iter(layers.values()))
    items = Items.along(first.cluster, str(first.cluster.dims[0]))
    grid = frame.grid_axes(axes, figsize, len(layers), 1, 7.6, 1.0 + 1.1 * len(layers)).ravel()
    places = {name: Items.along(one.cluster, items.dim).order_of(items, str(name)) for name, one in layers.items()}
    own = [one.cluster.values[places[name]] for name, one in layers.items()]
    row = item_row(grid[0], items, own[0], order, then=[*own[1:], -first.own.values], certainty=first.own.values)
    edges = np.arange(row.at.size + 1, dtype=np.float64) - 0.5
    legends = []
    for ax, (name, one) in zip(grid, layers.items(), strict=True):
        ax.set(ylim=(0, 1), yticks=[], ylabel=frame.shortened(str(name), frame.LONGEST))
        draw_shares(ax, one, places[name][row.at], edges, patterned=row.patterned)
        legends.append(ax.get_legend())
        legends[-1].remove()
        ax.set(xlim=(edges[0], edges[-1]), xticks=[])
    sure = [float(one.own.values.mean()) for one in layers.values()]
    least = int(np.argmin(sure))
    name = frame.shortened(str(list(layers)[least]), frame.LONGEST)
    grammar.say(grid[0], f"mean probability of an item's cluster: least for {name}, {sure[least]:.2f}")
    name_row(grid[-1], row, [str(k) for k in own_in(first.probabilities, "consensus_cluster").values])
    handles = {
        text.get_text(): handle
        for legend in legends
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
    }
    title = {"title": "cluster", "title_fontsize": "small"}
    grammar.add_legend(grid[0], list(handles.values()), labels=list(handles), **title)
    return grid
