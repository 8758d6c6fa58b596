"""Alluvial plot of several partitions of the same items."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.answers.alignment import AlignedPartitions, ClusterMatch
from posterior_consensus.answers.credible import CredibleBall
from posterior_consensus.answers.particles import Particles
from posterior_consensus.ensemble.items import NOISE, NUMBER_OF_NOISE, Clusters, Items, items_named_in
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, contingency_table
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.plots import grammar
from posterior_consensus.plots.colours import (
    NEUTRAL,
    colours_of,
    ink,
    ink_on,
    is_patterned,
    on_page,
    patch_style,
    repeats,
)
from posterior_consensus.plots.frame import (
    CHARACTER,
    LONGEST,
    Axes,
    Size,
    balanced,
    extent,
    font_of_names,
    in_small_print,
    new_axes,
    shortened,
)
from posterior_consensus.results.display import counted, counted_items, plural
from posterior_consensus.runtime.aliases import Floats, Integers, Positions

if TYPE_CHECKING:
    from matplotlib.path import Path as MatplotlibPath

_Columns = tuple[list[str], list[Labels], list[list[str]], list[Integers]]

OUTLINE = 0.8  # points, of bands that may be empty
_VISIBLE = 3.0  # points of a band whose outline does not hide it
_LETTER = 0.6  # of the font's size: width of a character
_LINE = 1.2  # of the font's size: height of a line
_BLOCK = 0.09  # width of a cluster, with columns 1 apart
_LOWEST = 8.0  # points of a cluster with its name inside
_SHORT = 3  # characters of a name that fits into a column
_SWEEPS = 20
_STAYING, _CHANGING = 0.3, 0.7  # opacities of bands whose items keep or change their cluster's colour
_ABSENT = -1  # number of the cluster of items that a partition lacks


@in_small_print
def plot_alluvial(partitions: Any, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    r"""Plot partitions as columns of clusters, joined by bands as wide as the number of common items.

    Parameters
    ----------
    partitions : dict, sequence, array (n_partitions, n_items), or result of several partitions
        At least two partitions of the same items: a dict by name, or a sequence. Each is a result object, DataArray or
        label vector of shape (n_items,). In results of :func:`align_partitions`, items that a partition lacks are
        "absent". A CredibleBall stands for its upper vertical bound, partition and lower vertical bound, Particles for
        their partitions, the largest weight first.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If there are fewer than two partitions, or their items differ.
    TypeError
        If `partitions` is of no kind listed above.

    See Also
    --------
    align_partitions : Name corresponding clusters alike.
    compare_partitions : Compare partitions by expected loss.

    Notes
    -----
    Clusters are ordered so that few bands cross: columns are sorted by mean position in a neighbouring column, in
    sweeps both ways, and the best order is kept. A band has the colour of its cluster on the left, and is darker if its
    items change cluster: if the cluster on the right has another colour. Numbers between columns count these items.

    Clusters of the same name have the same colour. If a column has no such names, its clusters have the colours of the
    clusters matched to them in the previous column (most items in common over all one-to-one matchings). In the first
    column, integers have the same colours as in :func:`plot_data`. Beyond twenty colours, patterns are added. Names
    that the user gave are shown if there is room, short names in the column, long names next to it.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> ax = pc.plot_alluvial({"few": [0, 0, 0, 1, 1], "many": [0, 0, 1, 2, 2]})
    >>> [tick.get_text().split()[0] for tick in ax.get_xticklabels()]
    ['few', 'many']
    """
    aligned = isinstance(partitions, (AlignedPartitions, ClusterMatch))
    names, labels, clusters, numbers = _aligned_columns(partitions) if aligned else _columns_of_partitions(partitions)
    counts = [counted(int(np.sum(column >= 0)), "cluster") for column in numbers]
    captions = [
        count if name == count.partition(" ")[0] else f"{name}\n{count}"
        for name, count in zip(names, counts, strict=True)
    ]
    shares = [np.bincount(column) / column.size for column in labels]
    tables = [contingency_table(left, right) / left.size for left, right in itertools.pairwise(labels)]
    columns = list(map(Column, captions, shares, clusters, numbers))
    dark, pale = on_page(_CHANGING), on_page(_STAYING)
    opacities = [np.where(np.not_equal.outer(*sides), dark, pale) for sides in itertools.pairwise(numbers)]
    ax = draw_alluvial(new_axes(ax, figsize, 2.2 + 1.7 * len(columns), 4.4), columns, tables, opacities)
    dim = str(partitions.labels.dims[-1]) if aligned else "item"
    _say_changes(ax, names, [column[label] for column, label in zip(numbers, labels, strict=True)], dim)
    _explain_opacities(ax, plural(dim) or "items")
    return ax


def _explain_opacities(ax: Axes, items: str) -> None:
    """Explain the opacities of bands above the axes."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    looks = {f"{items} that keep their cluster": _STAYING, f"{items} that change it": _CHANGING}
    entries = [
        Patch(facecolor=to_rgba(NEUTRAL, on_page(look)), edgecolor=NEUTRAL, label=name) for name, look in looks.items()
    ]
    ax.set_ylabel(f"bar height: number of {items}")
    grammar.legend_above(ax, entries)


def _say_changes(ax: Axes, names: list[str], numbers: list[Integers], dim: str) -> None:
    """Write between columns how many items change their cluster's number (n_items,), and where most do as the title."""
    said, changing = changes_in_words(names, numbers, dim)
    grammar.say(ax, said)
    notes = [f"{number:,} change" for number in changing]
    captions, room = [tick.get_text().split("\n") for tick in ax.get_xticklabels()], extent(ax)[0] / len(names)
    longest = max(len(line) for lines in captions for line in lines)
    if _LETTER * font_of_names() * max(map(len, notes)) < extent(ax)[0] / len(notes):
        ax.set_xticks(np.arange(len(notes)) + 0.5, notes, minor=True, fontsize="small")
        beside = CHARACTER * (longest + max(map(len, notes)) + 2) < room
        below = 0.0 if beside else _LINE * font_of_names() * max(map(len, captions))
        ax.tick_params(which="minor", length=0, pad=ax.xaxis.get_tick_padding() + below)


def changes_in_words(
    names: Sequence[str], numbers: Sequence[npt.NDArray[np.integer]], dim: str
) -> tuple[str, list[int]]:
    """Between which two partitions most items change their cluster's number (n_items,), and how many in each step."""
    changing, common = [], []
    for one, other in itertools.pairwise(numbers):
        both = (one != _ABSENT) & (other != _ABSENT)
        changing.append(int(np.sum(one[both] != other[both])))
        common.append(int(both.sum()))
    most = max(changing)
    at = [j for j, number in enumerate(changing) if number == most]
    of = f"{most:,} of {counted_items(common[at[0]], dim)}"
    before, after = (shortened(name.partition("\n")[0], LONGEST) for name in names[at[0] : at[0] + 2])
    if before.isdigit():  # a number alone can be read as a cluster's
        counts = [str(np.unique(row[row >= 0]).size) for row in numbers[at[0] : at[0] + 2]]
        before, after = (before, f"{after} clusters") if [before, after] == counts else (f"partition {before}", after)
    if most == 0:
        return f"no {dim if plural(dim) else 'item'} changes its cluster", changing
    if len(at) > 1:
        return f"at most {of} change cluster in a step, first from {before} to {after}", changing
    others = ", the most of any step" if len(changing) > 1 else ""
    return f"{of} change cluster from {before} to {after}{others}", changing


class Column(NamedTuple):
    """A caption, and the clusters' shares of the height, names, and numbers for colours."""

    caption: str
    shares: Floats
    names: list[str]
    numbers: Integers


def draw_alluvial(
    ax: Axes,
    columns: list[Column],
    tables: list[Floats],
    opacities: list[Any],
    names: Mapping[tuple[int, int, int], str] | None = None,
    unsure: Sequence[npt.NDArray[np.bool_]] = (),
) -> Axes:
    """Plot columns of clusters, joined by bands of given widths (n_left, n_right) and opacities.

    Bands with `names`, by column and clusters on the left and on the right, are outlined and named. Those that are
    `unsure` have outlines in their colours.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgba_array
    from matplotlib.patches import PathPatch

    orders = _orders_of_clusters(tables)
    ends = [_ends(column.shares[order], order) for column, order in zip(columns, orders, strict=True)]
    margin = max(-end.min() for end in ends)
    ax.set(xlim=(-_BLOCK, len(columns) - 1 + _BLOCK), ylim=(1 + margin, -margin), yticks=[])
    points = extent(ax)[1] / (1 + 2 * margin)
    for j, (table, opacity) in enumerate(zip(tables, opacities, strict=True)):
        paths, left, right = _bands(j, table, orders[j : j + 2], ends[j : j + 2])
        colours = to_rgba_array(colours_of(columns[j].numbers[left]))
        colours[:, 3] = np.broadcast_to(opacity, table.shape)[left, right]
        rims = (unsure[j] if unsure else np.zeros(table.shape, np.bool_)) & (table * points > _VISIBLE)
        edges = {"edgecolors": colours[:, :3], "linewidths": np.where(rims[left, right], OUTLINE, 0.0)}
        ax.add_collection(PathCollection(paths, facecolors=colours, **edges))
        for path, *sides in zip(paths, left, right, strict=True):
            if name := (names or {}).get((j, sides[0], sides[1])):
                ax.add_patch(PathPatch(path, fill=False, edgecolor=ink(), linewidth=1.0, zorder=3.5))
                _name_band(ax, np.asarray(path.vertices)[:8], name, extent(ax)[0] / len(columns))
    for j, (column, end) in enumerate(zip(columns, ends, strict=True)):
        _draw_column(ax, j, end, column.numbers, column.names, is_last=j == len(columns) - 1)
    ax.set_xticks(range(len(columns)), [column.caption for column in columns], parse_math=False)
    most = max(len(end) for end in ends)
    ax.set_xlabel(repeats(most, is_patterned(extent(ax)[1], most)).lstrip())
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _name_band(ax: Axes, corners: Floats, name: str, room: float) -> None:
    """Write a name in a band, in lines if it has room for them, else above it with a line that leads there."""
    from matplotlib.patheffects import withStroke

    lines = balanced(name, max(1, int(room / CHARACTER)))
    top, low = np.mean(corners[:4], axis=0), np.mean(corners, axis=0)
    high = 2 * abs(low[1] - top[1]) * extent(ax)[1] / abs(np.subtract(*ax.get_ylim()))
    fits = high > _LINE * font_of_names() * len(lines) and CHARACTER * max(map(len, lines)) < room
    style: dict[str, Any] = {"ha": "center", "fontsize": "small", "zorder": 4, "parse_math": False}
    style["path_effects"] = [withStroke(linewidth=2.0, foreground=ax.get_facecolor())]  # readable on the line of a step
    if fits:
        ax.text(float(low[0]), float(low[1]), "\n".join(lines), va="center", **style)
    else:
        leader = {"arrowstyle": "-", "color": ink(), "linewidth": 0.8, "shrinkA": 0.0, "shrinkB": 0.0}
        ax.annotate(name, (top[0], top[1]), (0, 9), textcoords="offset points", va="bottom", arrowprops=leader, **style)


def _aligned_columns(aligned: AlignedPartitions | ClusterMatch) -> _Columns:
    """Columns like :func:`_columns_of_partitions`; items that a partition lacks are in cluster -1."""
    if isinstance(aligned, ClusterMatch):
        rows = {"reference": aligned.reference.values, "partition": aligned.labels.values}
    else:
        rows = dict(zip(map(str, aligned.partitions), aligned.labels.values, strict=True))
    numbers = [np.array(list(dict.fromkeys(row.tolist()))) for row in rows.values()]
    clusters = [["absent" if k < 0 else str(aligned.names[k]) for k in column.tolist()] for column in numbers]
    noise = len(aligned.names) - 1 if aligned.names[-1] == NOISE else None
    numbers = [np.where(column == noise, NUMBER_OF_NOISE, column) for column in numbers]
    return list(rows), [canonical_labels(row + 1) for row in rows.values()], clusters, numbers


def _columns_of_partitions(partitions: Any) -> _Columns:
    """Names, canonical labels, names and colour numbers of clusters, in the order of the first partition's items."""
    is_marked = isinstance(partitions, (CredibleBall, Particles))
    noise_from = partitions.noise_from if is_marked else None
    if isinstance(partitions, CredibleBall):
        ball = partitions
        partitions = {
            "fewest clusters": ball.upper_vertical[0],
            "partition": ball.partition,
            "most clusters": ball.lower_vertical[0],
        }
    if isinstance(partitions, Particles):
        weights = partitions.weights.values
        partitions = {f"particle {k}\nweight {w:.2f}": partitions.partitions[k] for k, w in enumerate(weights)}
    if noise_from is not None:
        partitions = {name: labels.where(labels < noise_from, -1) for name, labels in partitions.items()}
    if isinstance(partitions, Mapping):
        names, given = [str(name) for name in partitions], list(partitions.values())
    elif isinstance(partitions, (list, tuple)) or getattr(partitions, "ndim", 0) == 2:
        names, given = [str(j + 1) for j in range(len(partitions))], list(partitions)
    else:
        raise TypeError(
            "`partitions` must be a dict or a list of partitions, a CredibleBall or Particles; "
            f"got {type(partitions).__name__}."
        )
    if len(given) < 2:
        raise ValueError(f"`partitions` must hold at least two partitions; got {len(given)}.")
    items = items_named_in(given)
    columns = list[Clusters]()
    for name, partition in zip(names, given, strict=True):
        own = items or Items(canonical_labels(partition, f"partitions[{name!r}]").size, "item", xr.Coordinates())
        called = f"partitions[{name!r}]"
        known = own.as_marked_labels(partition, called) if is_marked else None
        columns.append(own.clusters_of(partition, called, known))
        if columns[-1].labels.size != columns[0].labels.size:
            raise ValueError(
                f"`partitions` must label the same items; got {columns[0].labels.size} labels of {names[0]!r} and "
                f"{columns[-1].labels.size} of {name!r}."
            )
    labels = [column.labels for column in columns]
    return names, labels, [list(map(str, column.names)) for column in columns], _colour_numbers(columns)


def _orders_of_clusters(tables: list[Floats]) -> list[Positions]:
    """Clusters of each column from the top, after sweeps by mean position; the order of fewest crossings is kept."""
    orders = [np.arange(tables[0].shape[0])] + [np.arange(table.shape[1]) for table in tables]
    best, fewest = list(orders), _crossings(tables, orders)
    for _ in range(_SWEEPS):
        for j, table in enumerate(tables):
            orders[j + 1] = _by_mean_position(table.T, orders[j])
        for j in range(len(tables) - 1, -1, -1):
            orders[j] = _by_mean_position(tables[j], orders[j + 1])
        crossings = _crossings(tables, orders)
        if crossings >= fewest:
            break
        best, fewest = list(orders), crossings
    return best


def _by_mean_position(table: Floats, order: Positions) -> Positions:
    """Rows of a table by the mean position of their items in columns of this order."""
    sizes = table.sum(axis=0)[order]
    position = np.empty(order.size)
    position[order] = np.cumsum(sizes) - sizes / 2
    totals = table.sum(axis=1)
    means = np.divide(table @ position, totals, out=np.full(totals.size, float(sizes.sum())), where=totals > 0)
    return np.argsort(means, kind="stable")


def _crossings(tables: list[Floats], orders: list[Positions]) -> float:
    """Sum over crossings of the product of the two bands' widths."""
    total = 0.0
    for table, left, right in zip(tables, orders, orders[1:], strict=False):
        ordered = table[np.ix_(left, right)]
        below = np.cumsum(ordered[::-1], axis=0)[::-1] - ordered
        total += float(np.sum(ordered * (np.cumsum(below, axis=1) - below)))
    return total


def _ends(shares: Floats, order: Positions) -> Floats:
    """Top and bottom (n_clusters, 2) of each cluster, in shares of the height, with space between."""
    space = min(0.02, 0.25 / order.size)
    tops = np.cumsum(shares) - shares + space * (np.arange(order.size) - (order.size - 1) / 2)
    ends = np.empty((order.size, 2))
    ends[order] = np.column_stack([tops, tops + shares])
    return ends


def _colour_numbers(columns: list[Clusters]) -> list[Integers]:
    """Colour number of each cluster in each column; clusters of the same name, or matched clusters, share it."""
    first = columns[0]
    numbers, known = [first.numbers], dict(zip(first.names[: first.noise], first.numbers.tolist(), strict=False))
    for before, column in itertools.pairwise(columns):
        own = column.names[: column.noise]
        if any(isinstance(name, str) and name in known for name in own):
            new = (name for name in own if name not in known)
            known |= {name: k for k, name in enumerate(new, max(known.values()) + 1)}
            found = np.array([known[name] for name in own])
        else:
            labels = np.where(column.labels < len(own), column.labels, -1).astype(np.int32)
            of_items = numbered_like(labels, np.maximum(numbers[-1][before.labels], -1).astype(np.int32))
            found = of_items[np.unique(column.labels, return_index=True)[1]][: len(own)].astype(np.int64)
            known |= dict(zip(own, found.tolist(), strict=True))
        numbers.append(found if column.noise is None else np.append(found, NUMBER_OF_NOISE))
    return numbers


def _bands(
    j: int, table: Floats, orders: list[Positions], ends: list[Floats]
) -> tuple[list[MatplotlibPath], list[int], list[int]]:
    """Bands between columns j and j + 1, with their clusters on the left and on the right."""
    from matplotlib.path import Path

    x0, x1 = j + _BLOCK / 2, j + 1 - _BLOCK / 2
    middle = (x0 + x1) / 2
    curve = [Path.LINETO, *[Path.CURVE4] * 3]
    codes = [Path.MOVETO, *curve[1:], *curve, Path.CLOSEPOLY]
    used_left, used_right = ends[0][:, 0].copy(), ends[1][:, 0].copy()
    paths, left, right = [], list[int](), list[int]()
    for a in orders[0]:
        for b in orders[1][table[a, orders[1]] > 0]:
            width = table[a, b]
            top, other = used_left[a], used_right[b]
            upper = [(x0, top), (middle, top), (middle, other), (x1, other)]
            lower = [(x, y + width) for x, y in reversed(upper)]
            paths.append(Path([*upper, *lower, upper[0]], codes))
            left.append(int(a))
            right.append(int(b))
            used_left[a] += width
            used_right[b] += width
    return paths, left, right


def _draw_column(ax: Axes, j: int, ends: Floats, numbers: Integers, names: list[str], *, is_last: bool) -> None:
    from matplotlib.patches import Rectangle

    bottom, top = ax.get_ylim()
    points = extent(ax)[1] / abs(bottom - top)
    patterned = is_patterned(extent(ax)[1], len(ends))
    inside = max(len(name) for name in names) <= _SHORT
    # Names are left of the first column and right of the others, as bands begin at all but the last.
    side = -1 if j == 0 else 1
    inks, beside = ink_on(colours_of(numbers)), list[float]()
    for (start, end), number, name, own_ink in zip(ends, numbers, names, inks, strict=True):
        style = patch_style(int(number), patterned)
        ax.add_patch(Rectangle((j - _BLOCK / 2, start), _BLOCK, end - start, **style))
        middle, low = (start + end) / 2, (end - start) * points < _LOWEST
        if low and not (
            inside and (is_last or j == 0) and all(abs(middle - other) * points >= _LOWEST for other in beside)
        ):
            continue
        if low:
            beside.append(middle)
            x, ha = j + side * 0.6 * _BLOCK, "right" if side < 0 else "left"
            ax.text(x, middle, name, ha=ha, va="center", fontsize=7, parse_math=False)
        elif inside:
            box = {"boxstyle": "round,pad=0.1", "facecolor": style["facecolor"], "linewidth": 0.0}
            ax.text(j, middle, name, ha="center", va="center", fontsize=7, color=own_ink, bbox=box, parse_math=False)
        else:
            x, ha = j + side * 0.6 * _BLOCK, "right" if side < 0 else "left"
            ax.text(x, middle, shortened(name, 24), ha=ha, va="center", fontsize=8, parse_math=False)
