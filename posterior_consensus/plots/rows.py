"""Items in a row: selection, order and names on the axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import ink, is_patterned, repeats
from posterior_consensus.plots.frame import Axes
from posterior_consensus.results.display import unit_of
from posterior_consensus.runtime.aliases import Floats, Positions

_LEAST_ROOM = 12.0  # points per cluster; with less room, some clusters are shown
_ROOM = 20.0  # points per cluster shown
_LEAST_SHOWN = 6  # clusters shown at least
_ITEMS_OF_EACH = 6  # so that small clusters remain visible
_LARGE = 10_000  # smaller numbers can be years, which have no commas


class Along(NamedTuple):
    """An order of all items: name, values (None for the order of the data) and unit of the coordinate, and ranks."""

    name: str
    values: npt.NDArray[Any] | None
    rank: Positions
    unit: str = ""


class ItemRow(NamedTuple):
    """Items from left to right.

    By cluster, `clusters` and `sizes` describe the runs; along a coordinate, `along` is the order. `note` describes
    omissions; `patterned` is whether patterns of clusters are visible.
    """

    items: Items
    at: Positions
    clusters: Positions
    sizes: Positions
    along: Along | None
    note: str
    patterned: bool


def check_order(order: Any, items: Items) -> Along | None:
    """Check the order of the items; None if it is by cluster."""
    if isinstance(order, str) and order == "clusters":
        return None
    if isinstance(order, str) and order == "data":
        own, in_row = coordinate(items.dim, items), np.arange(items.n_items)
        if own is not None and own.dtype.kind == "M" and np.all(own[1:] >= own[:-1]):
            return Along(items.dim, own, in_row)
        return Along("", None, in_row)
    name = order if isinstance(order, str) else str(getattr(order, "name", None) or "given values")
    values = coordinate(order, items) if isinstance(order, str) else plain(items.reordered(order, "order"))
    if values is None or values.shape != (items.n_items,):
        names = ", ".join(repr(str(name)) for name in items.coords)
        present = f", a coordinate of the items ({names})" if names else ""
        raise ValueError(
            f"`order` must be 'clusters', 'data'{present}, or one value for each of the {items.n_items} items; "
            f"got {f'an array of shape {np.shape(order)}' if np.ndim(order) else repr(order)}."
        )
    if pd.isna(values).any():
        raise ValueError(f"`order` must have a value for each item; got {int(pd.isna(values).sum())} missing ones.")
    unit = unit_of(items.coords[name] if isinstance(order, str) else order)
    return Along(name, values, np.argsort(np.argsort(values, kind="stable"), kind="stable"), unit)


def coordinate(name: str, items: Items) -> npt.NDArray[Any] | None:
    """Values of a coordinate of the items; None if there is no such coordinate."""
    return plain(items.coords[name].values) if name in items.coords else None


def plain(values: Any) -> npt.NDArray[Any]:
    """Values as an array, with local times for time zones, and starts for periods."""
    array = np.asarray(values)
    index: Any = pd.Index(array) if array.dtype == object and array.ndim == 1 else None
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    return index.tz_localize(None).to_numpy() if isinstance(index, pd.DatetimeIndex) else array


def numbers_along(name: str, values: npt.NDArray[Any]) -> Floats:
    """Values of a coordinate as numbers along an axis; dates as Matplotlib's date numbers."""
    from matplotlib.dates import date2num

    if values.dtype.kind not in "iufM":
        raise TypeError(f"a coordinate along an axis must be numbers or dates; {name!r} has dtype {values.dtype}.")
    return np.asarray(date2num(values) if values.dtype.kind == "M" else values, dtype=np.float64)


def item_row(
    ax: Axes,
    items: Items,
    labels: Labels,
    order: Any,
    *,
    then: Sequence[npt.NDArray[Any]],
    certainty: Floats,
    doubted: str = "least certain",
) -> ItemRow:
    """Arrange items in a row: along a coordinate, or by cluster, `then` by further keys.

    If there is no room for all clusters, the row has the largest and the least certain clusters, with a few items each.
    """
    along = check_order(order, items)
    at = frame.some_of(items.n_items, frame.MOST_IN_ROW, frame.MOST_IN_ROW)
    keys = [along.rank] if along is not None else [*reversed(then), labels]
    at = at[np.lexsort([key[at] for key in keys])]
    width, note = frame.extent(ax)[0], ""
    present, sizes = np.unique(labels[at], return_counts=True)
    clusters = present.astype(np.intp)
    if along is None and clusters.size > max(_LEAST_SHOWN, width / _LEAST_ROOM):
        most, each = max(_LEAST_SHOWN, int(width / _ROOM)), _ITEMS_OF_EACH
        note = f"\nthe {most - most // 2} largest and the {most // 2} {doubted} of {clusters.size:,} clusters"
        chosen = _clusters_shown(sizes, np.bincount(labels[at], certainty[at])[clusters] / sizes, most)
        note += f",\nat most {each} items of each" if sizes[chosen].max() > each else ""
        starts = np.cumsum(sizes) - sizes
        kept = [_evenly_spaced(at[starts[k] : starts[k] + sizes[k]], each) for k in chosen]
        at, clusters, sizes = np.concatenate(kept), clusters[chosen], np.array([len(some) for some in kept], np.intp)
    n_runs = frame.runs_of(labels[at]).size - 1
    return ItemRow(items, at, clusters, sizes, along, note, is_patterned(width, n_runs))


def _clusters_shown(sizes: Positions, certainty: Floats, most: int) -> Positions:
    """The largest clusters, and the least certain of the others."""
    by_size, n_largest = np.argsort(-sizes, kind="stable"), most - most // 2
    others = by_size[n_largest:]
    doubted = others[np.argsort(certainty[others], kind="stable")][: most // 2]
    return np.append(by_size[:n_largest], doubted)


def _evenly_spaced(members: Positions, most: int) -> Positions:
    """At most `most` members, evenly spaced, with both ends represented as among all."""
    n = min(most, members.size)
    return members[((np.arange(n) + 0.5) * members.size / n).astype(np.intp)]


def name_row(ax: Axes, row: ItemRow, names: Sequence[str], by: str = "cluster") -> None:
    """Name the items, their clusters, or values of the coordinate, and label the axis.

    The limits of the y axis must be set already.
    """
    n_items, name = row.items.n_items, row.items.dim
    ax.set_xlim(-0.5, row.at.size - 0.5)
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel(name if row.note else frame.with_share(name, row.at.size, n_items))
    if row.along is not None:
        label_along(ax, "x", row.along, row.items, row.at)
    else:
        ax.vlines(np.cumsum(row.sizes)[:-1] - 0.5, *ax.get_ylim(), colors=ink(), linewidths=0.8, linestyles=":")
        if not frame.label_items(ax, "x", row.items.named(row.at)):
            frame.label_clusters(ax, "x", row.sizes, [names[k] for k in row.clusters], by)
        elif by != "cluster":
            ax.set_xlabel(f"{ax.get_xlabel()}, by {by}")
    ax.set_xlabel(ax.get_xlabel() + row.note + repeats(len(names), row.patterned))


def label_along(ax: Axes, sides: str, along: Along, items: Items, at: Positions) -> None:
    """Name items in a row, or values of their coordinate, along all `sides`."""
    names, values = items.named(at), None if along.values is None else along.values[at]
    if values is None:
        frame.label_some(ax, sides, names)
        return
    by = grammar.axis_label(along.name, along.unit)
    frame.extend_label(ax, sides, f", by {by}" if along.name not in ("", items.dim) else "")
    length = frame.length_of(ax, sides)
    most = max(3, int(length / 50))
    if (along.name != items.dim or len(names) < most) and frame.label_items(ax, sides, names):
        return
    places, texts, constant = _marks_along(values, most)
    if values.dtype.kind not in "iufM" and places.size > 1 and np.all(np.diff(places) == 1):
        frame.label_some(ax, sides, values)
        return
    named = frame.with_room(places * length / len(values), texts, range(places.size))
    frame.set_ticks(ax, sides, places[named], [texts[k] for k in named])
    frame.extend_label(ax, sides, f" ({constant})" if constant else "")


def _marks_along(values: npt.NDArray[Any], most: int) -> tuple[Floats, list[str], str]:
    """Positions in a row of ascending values, their texts, and the common part of the texts.

    A value is in the middle of its items, or between its neighbours if no item has it.
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date
    from matplotlib.ticker import MaxNLocator

    constant = ""
    if values.dtype.kind == "M":
        values = date2num(values)
        locator = AutoDateLocator(minticks=min(3, most), maxticks=most)
        marks = np.array(locator.tick_values(*num2date(values[[0, -1]])) if values[0] < values[-1] else values[:1])
        marks = marks[(marks >= values[0]) & (marks <= values[-1])]
        formatter = ConciseDateFormatter(locator)
        texts = formatter.format_ticks(marks.tolist())
        constant = formatter.get_offset()
        if marks.size == 1:
            texts, constant = [f"{num2date(marks[0]):%Y-%m-%d}"], ""
    elif values.dtype.kind in "iuf":
        marks = np.array(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(values[0], values[-1]))
        marks = marks[(marks >= values[0]) & (marks <= values[-1])]
        texts = [f"{mark:,.12g}" if np.abs(values[[0, -1]]).max() >= _LARGE else f"{mark:.12g}" for mark in marks]
    else:
        marks = np.unique(values)
        texts = [str(mark) for mark in marks]
    places = (np.searchsorted(values, marks) + np.searchsorted(values, marks, "right") - 1) / 2
    alone = np.flatnonzero(
        np.bincount((2 * places).astype(int))[(2 * places).astype(int)] == 1
    )  # others are between items
    return places[alone], [texts[k] for k in alone], constant
