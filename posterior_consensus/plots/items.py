"""Each item's certainty: similarity to its cluster, probabilities of clusters, and these along time."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.membership import EVEN, ItemUncertainty, Membership
from posterior_consensus.answers.membership import membership as membership_of
from posterior_consensus.ensemble.items import Items, numbers_for_colours
from posterior_consensus.ensemble.partitions import HasDraws, Labels
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import NEUTRAL, check_matplotlib, ink, on_page, patch_style
from posterior_consensus.plots.data import observed_table
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.plots.rows import ItemRow, check_order, coordinate, item_row, name_row, numbers_along, plain
from posterior_consensus.results.display import counted_items, unit_of
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.runtime.aliases import Floats, Positions

_MOST_FEATURES = 6
_TIMES = ("once", "twice")  # changes of the cluster that a title has
_PALE, _STRONG = 0.3, 0.6  # opacities of the background, and of bars
_BELOW = -0.03  # lower end of the axis, so that points at 0 are whole
_LINES = 1.5  # of the font: height of a name with its space
_ABOVE = 4.0  # points from what is below a name
_OFF_POINT = 3.0  # points from a line's end to the middle of a point
_IN_TITLE = 3  # uncertain items that a title names
_MOST_TRIED = 100  # uncertain items for whose names room is looked for
_PANEL = 7.2, 2.0  # inches: width of the figure, height of a panel
_LEAST_ROOM = 2.5  # points per item; with less, points are invisible


@frame.in_small_print
def plot_membership(
    membership: Membership, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot each item's probabilities of the clusters as a stacked bar.

    Parameters
    ----------
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, the most probable item of each first; as in the data; or along a coordinate of
        the items (its name or its values), such as time or position along a genome.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    membership : Compute the probabilities.
    predict_allocation : Compute the probabilities of new items.

    Notes
    -----
    Population geneticists plot proportions of ancestry in this way. Sorted by cluster, an item's own cluster is at the
    bottom of its bar, the other clusters follow in order, and "elsewhere" is grey at the top; lines separate clusters.
    A new item's own cluster is the most probable cluster. In other orders, the clusters have the same order in all
    bars. The axis names items if there is room, else clusters, some of the items or values of the coordinate. Beyond
    twenty colours, patterns are added. In the order of clusters, the axis needs 12 points per cluster. With less, it
    shows the largest clusters and those with the lowest mean probability, with at most six evenly spaced items each.
    Beyond 20,000 items, a random sample of 20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 2, 1, 1]]
    >>> ax = pc.membership(draws, [0, 0, 0, 1, 1]).plot()
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'elsewhere']
    """
    cluster, own = membership.cluster.values, membership.own.values
    ax = frame.new_axes(ax, figsize, 7.2, 3.0)
    items = Items.along(membership.cluster, str(membership.cluster.dims[0]))
    row = item_row(ax, items, cluster, order, then=[-own], certainty=own)
    ax.set(ylim=(0, 1), ylabel=membership.words.on_axis)
    edges = np.arange(row.at.size + 1, dtype=np.float64) - 0.5
    draw_shares(ax, membership, row.at, edges, by_cluster=row.along is None, patterned=row.patterned)
    names = _cluster_names(membership)[: cluster.max() + 1]
    name_row(ax, row, names)
    if (
        (legend := ax.get_legend())
        and ", by cluster" in ax.get_xlabel()
        and set(names) <= {tick.get_text() for tick in ax.get_xticklabels()}
    ):
        legend.remove()
        ax.set_ylabel(f"{ax.get_ylabel()}\n(grey: elsewhere)")
    if row.along is None:  # own clusters are at the bottom
        ax.axhline(EVEN, color=ink(), linewidth=0.8, linestyle=":")
    _say_doubted(ax, row, own, np.ones(own.size), "membership", pad=True)
    return ax


def _say_doubted(
    ax: Axes,
    row: ItemRow,
    own: Floats,
    tops: Floats,
    measure: str,
    notes: Mapping[int, str] | None = None,
    *,
    pad: bool = False,
) -> None:
    """Name the items whose measure (n,) is less than an even share above their tops (n,), and as the title.

    The title names the least certain of those named in the figure, with `notes`, and has the number of all. Names are
    side by side, above what is below them and beside it, so that no line to an item crosses another name.
    """
    (places,) = np.nonzero(own[row.at] < EVEN)
    places = places[np.argsort(own[row.at[places]], kind="stable")][:_MOST_TRIED]
    names = frame.short_names(row.items.named(row.at[places]), frame.LONGEST)
    (across, along), font = frame.extent(ax), frame.font_of_names()
    named, middles = frame.side_by_side(across * (places + 0.5) / row.at.size, names, across)
    rooms, per_point = frame.rooms_of([names[k] for k in named]), row.at.size / across
    if row.along is None:
        ends = np.cumsum(row.sizes)[np.searchsorted(np.cumsum(row.sizes), places[named], "right")] / per_point
        middles = _moved_left(middles, rooms, ends)
    below = [
        tops[row.at[max(0, int((x - room / 2) * per_point) - 1) : int((x + room / 2) * per_point) + 2]].max(initial=0.0)
        for x, room in zip(middles, rooms, strict=True)
    ]
    height = max(below, default=0.0)
    if not pad:
        height = min(height, 1.0 - (_LINES * font + _ABOVE) / along)  # in the axes
    for k, x in zip(named, middles * per_point - 0.5, strict=True):
        foot = places[k], tops[row.at[places[k]]]
        line = {
            "arrowstyle": "-",
            "shrinkA": 0.0,
            "shrinkB": 0.0 if pad else _OFF_POINT,
            "color": ink(),
            "linewidth": 0.6,
        }
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": "small"}
        style |= {"bbox": grammar.behind_names(ax), "parse_math": False, "zorder": 3}
        ax.annotate("", foot, (x, height + _ABOVE / along), arrowprops=line, zorder=2.4)
        ax.annotate(names[k], (x, height), (0, _ABOVE), **style)
    n_below = int(np.sum(own < EVEN))
    some = f"{n_below:,} of {counted_items(own.size, row.items.dim)} {'has' if n_below == 1 else 'have'}"
    said = f"{some if n_below else 'no item has'} a {measure} below {EVEN:g}"
    if first := [names[k] + (notes or {}).get(int(row.at[places[k]]), "") for k in sorted(named)[:_IN_TITLE]]:
        said += f": {', '.join(first)}" + (f" and {n_below - len(first):,} more" if n_below > len(first) else "")
    grammar.say(ax, said, pad=2 * _ABOVE + _LINES * font if pad and named else None)


def _moved_left(middles: Floats, rooms: Floats, ends: Floats) -> Floats:
    """Positions of names that end before the end of their item's cluster, if all have room on the left."""
    moved, limit = np.empty_like(middles), np.inf
    for k in reversed(range(middles.size)):
        moved[k] = min(middles[k], min(ends[k], limit) - rooms[k] / 2)
        limit = moved[k] - rooms[k] / 2
    return moved if limit >= 0 else middles


def given_membership(given: Any) -> Membership:
    """The membership itself, or that of the partition of a summary."""
    if isinstance(given, HasDraws):
        return membership_of(given)
    frame.check_result("membership", given, Membership, "membership")
    membership: Membership = given
    return membership


def draw_shares(
    ax: Axes,
    membership: Membership,
    at: Positions,
    edges: Floats,
    *,
    by_cluster: bool = False,
    patterned: bool = False,
) -> None:
    """Stack the probabilities of items between `edges`; by cluster, an item's own cluster is at the bottom."""
    from matplotlib.patches import Patch

    shares, numbers = membership.probabilities.values[at], [*membership.numbers, -1]
    home = membership.cluster.values[at] if by_cluster else np.full(at.size, -1)
    floor = membership.own.values[at] if by_cluster else np.zeros(at.size)
    for k, number in enumerate(numbers):
        start = np.where(home == k, 0.0, floor)
        end = start + shares[:, k]
        ax.stairs(end, edges, baseline=start, fill=True, **patch_style(number, patterned))
        floor = np.where(home == k, floor, end)
    names = _cluster_names(membership)
    sizes = np.bincount(membership.cluster.values, minlength=len(names))[:-1]
    largest = [*grammar.largest_of(sizes), -1]
    shown = frame.short_names([names[k] for k in largest], frame.LONGEST)
    looks = [patch_style(numbers[k], patterned) for k in largest]
    entries = [Patch(label=name, **style) for name, style in zip(shown, looks, strict=True)]
    grammar.add_legend(ax, entries, title="cluster", title_fontsize="small")


def _cluster_names(membership: Membership) -> list[str]:
    return [str(name) for name in own_in(membership.probabilities, "consensus_cluster").values]


@frame.in_small_print
def plot_item_uncertainty(
    items: ItemUncertainty, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the mean posterior similarity of each item to the rest of its cluster, and to the nearest other cluster.

    Parameters
    ----------
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, the most certain item of each first; as in the data; or along a coordinate of
        the items (its name or its values), such as time or position along a genome.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    item_uncertainty : Compute the similarities.
    Membership.plot : Plot the probabilities of clusters for each item.

    Notes
    -----
    The bar, in the cluster's colour, is the mean similarity to the rest of the cluster; an item alone in its cluster
    has none. The point, in the other cluster's colour, is the mean similarity to that cluster. If it is above the bar,
    the item is more similar to the other cluster than to its own. Items whose bar ends below the dotted limit, 1/2, are
    named if there is room, the least similar first, with a line. Beyond twenty colours, bars have
    patterns and points other shapes. For runs with noise, a cross is the share of runs that call the item noise. Items
    are named if the axes have room for their names, else clusters or values of the coordinate. In the order of
    clusters, the axis needs 12 points per cluster. With less, it shows the largest clusters and those with the lowest
    mean similarity, with at most six evenly spaced items each. Beyond 20,000 items, a random sample of 20,000 is shown.
    The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.item_uncertainty(draws, [0, 0, 1, 1]).plot()
    >>> title = ax.set_title("Which items are uncertain?")
    """
    check_matplotlib()
    from matplotlib.patches import Patch

    cluster, single = items.cluster.values, np.isnan(items.similarity.values)
    own, other = np.nan_to_num(items.similarity.values), np.nan_to_num(items.nearest_similarity.values)
    numbers = numbers_for_colours(items.names)
    ax = frame.new_axes(ax, figsize, 7.2, 3.4)
    along = Items.along(items.cluster, str(items.cluster.dims[0]))
    by_height = own if items.noise is None else np.where(single, items.noise.values, own)
    row = item_row(ax, along, cluster, order, then=[-by_height, other], certainty=np.where(single, 1 - other, own))
    here, heights = cluster[row.at], own[row.at]
    edges = np.arange(row.at.size + 1) - 0.5
    for k in row.clusters:
        (places,) = np.nonzero(here == k)
        span = slice(places[0], places[-1] + 1)
        bars = np.where(here[span] == k, heights[span], np.nan)
        style = {"alpha": on_page(_STRONG), **patch_style(numbers[k], row.patterned)}
        ax.stairs(bars, edges[span.start : span.stop + 1], fill=True, **style)
    if row.along is None:
        ax.plot(np.repeat(edges, 2)[1:-1], np.repeat(heights, 2), color=ink(), linewidth=0.6, zorder=1.5)
    elsewhere = np.flatnonzero(items.nearest.values[row.at] >= 0)
    nearest, height = items.nearest.values[row.at][elsewhere], other[row.at][elsewhere]
    room = frame.extent(ax)[0] / row.at.size  # points per item
    points = {"s": float(np.clip(room, 3.0, 5.0)) ** 2, "edgecolors": ink(), "linewidths": 0.6 if room > 4 else 0.4}
    frame.scatter_clusters(ax, elsewhere, height, numbers[nearest], **points, zorder=2.5, clip_on=False)
    shares = []
    if items.noise is not None:
        share = items.noise.values[row.at]
        (called,) = np.nonzero(share)
        area = float(np.clip(room, 2.5, 4)) ** 2
        ax.scatter(called, share[called], area, ink(), marker="x", linewidths=0.8, zorder=2.6, clip_on=False)
        shares.append(grammar.point("share as noise", "x", ink(), markersize=4))
    ax.set(ylim=(_BELOW, 1.02), ylabel=f"mean {items.words.similarity}")
    name_row(ax, row, [str(name) for name in items.names])
    bar, dot = (
        Patch(color=NEUTRAL, alpha=on_page(_STRONG), label=f"{items.words.to} own cluster"),
        grammar.point(f"{items.words.to} nearest other cluster (its colour)", "o", NEUTRAL, markersize=4),
    )
    _name_doubted(ax, row, np.where(single, np.inf, items.similarity.values), other, items)
    grammar.legend_above(ax, [bar, dot, *shares])
    return ax


def _name_doubted(ax: Axes, row: ItemRow, own: Floats, other: Floats, items: ItemUncertainty) -> None:
    """Draw the limit of similarities (n,) to an item's own cluster, and name the items below it that are shown."""
    ax.axhline(EVEN, color=ink(), linewidth=0.8, linestyle=":", zorder=2.2)
    measure = f"{items.words.either('mean similarity', 'mean agreement')} {items.words.to} own cluster"
    nearer = np.flatnonzero((own < EVEN) & (other > own)).tolist()
    notes = {k: f" (nearer to cluster {items.names[items.nearest.values[k]]})" for k in nearer}
    _say_doubted(ax, row, own, np.maximum(np.where(np.isfinite(own), own, 0.0), other), measure, notes)


@frame.in_small_print
def plot_regimes(
    data: Any,
    membership: Membership | HasDraws,
    *,
    order: Any = "data",
    features: Sequence[Any] | None = None,
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot values along time or another coordinate, coloured by cluster, with each item's cluster probabilities.

    Parameters
    ----------
    data : array_like, Series, DataFrame or DataArray of shape (n_items,) or (n_items, n_features)
        Numbers, NaN where missing. A DataFrame has a row for each item; a DataArray may have the items second.
    membership : Membership or Summary
        The result of :func:`membership` or :func:`predict_allocation`, with the partition and the probabilities, or of
        :func:`summarize`, with the consensus partition.
    order : "data", name of a coordinate, or array_like of shape (n_items,)
        The horizontal axis: numbers or dates, given as the name of a coordinate of the data or of the partition, or as
        values. With "data", the items' own coordinate if it increases, else their positions.
    features : sequence of names, optional
        Features to plot, at most 6, with a panel each; by default all.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Axes for each feature, and one for the probabilities; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (n_features + 1,)
        The axes with the plots.

    Raises
    ------
    TypeError
        If `membership` is not a Membership, the data or `order` are not numbers or dates, or `axes` are not Axes.
    ValueError
        If the data have other items or more than 6 features, `features`, `order` or `figsize` are invalid, or the
        number of `axes` is wrong.

    See Also
    --------
    Membership.plot : Plot the probabilities of the clusters alone.
    plot_psm : Plot the similarities of all pairs, with ``order="data"``.

    Notes
    -----
    The background has the colour of each item's cluster, and changes midway between neighbours. The last panel stacks
    the posterior probabilities of the clusters, in the same order for all items; "elsewhere" is grey at the top.

    Examples
    --------
    >>> import pandas as pd
    >>> import posterior_consensus as pc
    >>> flow = pd.Series([9.1, 9.3, 5.2, 5.0], index=pd.Index([1897, 1898, 1899, 1900], name="year"), name="flow")
    >>> draws = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]]
    >>> axes = pc.plot_regimes(flow, pc.membership(draws, [0, 0, 1, 1]))
    >>> line = axes[0].axvline(1898.5, color="black")  # the year of a dam
    """
    membership = given_membership(membership)
    table = observed_table(data, membership.cluster, "membership")
    names = table.features if features is None else [str(name) for name in features]
    if not set(names) <= set(table.features) or not 1 <= len(names) <= _MOST_FEATURES:
        present = ", ".join(map(repr, table.features))
        raise ValueError(
            f"`features` must be a list of 1 to {_MOST_FEATURES} of the data's features; got {features!r}, "
            f"present: {present}."
        )
    name, given = _axis(order, table.items)
    in_row = np.argsort(given, kind="stable")
    dated, x = given.dtype.kind == "M", numbers_along(name, given[in_row])
    n = len(names)
    grid = frame.grid_axes(axes, figsize, n + 1, 1, _PANEL[0], _PANEL[1] * n + 1.9).ravel()
    edges = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
    if edges[0] == edges[-1]:  # one item, or all at one position
        edges = edges[0] + np.linspace(-0.5, 0.5, edges.size)
    cluster, numbers = membership.cluster.values[in_row], np.array([*membership.numbers, -1])
    for ax, feature in zip(grid, names, strict=False):
        values = table.values[in_row, table.features.index(feature)]
        _draw_values(ax, x, values, edges, numbers[cluster])
        ax.set_ylabel(table.title_of(feature), wrap=True)
        ax.tick_params(labelbottom=False)
    draw_shares(grid[-1], membership, in_row, edges)
    grid[-1].set(ylim=(0, 1), ylabel=membership.words.on_axis)
    grid[-1].set_xlabel(grammar.axis_label(name, unit_of(table.items.coords.get(name, order))))
    grammar.break_labels(grid[-1])
    _say_regimes(grid[0], cluster, _cluster_names(membership), table.items.dim, given[in_row])
    for ax in grid:
        ax.set_xlim(edges[0], edges[-1])
        if dated:
            frame.tick_dates(ax.xaxis)
    return grid


def _say_regimes(ax: Axes, clusters: Labels, names: list[str], dim: str, values: npt.NDArray[Any]) -> None:
    """Write the changes of the cluster (n,) along the values of the axis (n,) as the title; of many, their number."""
    starts = frame.runs_of(clusters)[1:-1]
    if not starts.size:
        grammar.say(ax, f"all {counted_items(clusters.size, dim)} are in one cluster")
        return
    if starts.size > len(_TIMES):
        grammar.say(ax, f"the cluster changes {starts.size:,} times between {np.unique(clusters).size:,} clusters")
        return
    ends = [np.datetime_as_string(at, unit="auto") if values.dtype.kind == "M" else f"{at:.12g}" for at in values]
    changes = [
        f"{names[clusters[at - 1]]} to {names[clusters[at]]} between {ends[at - 1]} and {ends[at]}" for at in starts
    ]
    grammar.say(ax, f"the cluster changes {_TIMES[starts.size - 1]}: {', '.join(changes)}")


def _axis(order: Any, items: Items) -> tuple[str, npt.NDArray[Any]]:
    """Name and values of the horizontal axis."""
    along = check_order(order, items)
    if along is None:
        raise ValueError("`order` must be 'data', the name of a coordinate, or a value for each item; got 'clusters'.")
    if along.values is not None:
        return along.name or items.dim, along.values
    own = coordinate(items.dim, items)
    if own is not None and own.dtype.kind in "iufM" and np.all(own[1:] > own[:-1]):
        names = [str(name) for name, coord in items.coords.items() if np.array_equal(plain(coord.values), own)]
        return next((name for name in names if name != items.dim), items.dim), own  # the index may have another name
    return items.dim, np.arange(items.n_items)


def _draw_values(ax: Axes, x: Floats, values: Floats, edges: Floats, numbers: npt.NDArray[np.integer]) -> None:
    """Plot a line with points over a rectangle for each run of items of a cluster."""
    runs = frame.runs_of(numbers)
    frame.colour_runs(ax, edges[runs], numbers[runs[:-1]], 0.0, 1.0, alpha=_PALE, zorder=0.5)
    ax.plot(x, values, color=ink(), linewidth=0.8)
    if frame.extent(ax)[0] / x.size > _LEAST_ROOM:
        ax.scatter(x, values, s=12, color=ink(), clip_on=False)
