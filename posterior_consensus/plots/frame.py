"""What the pictures share: axes to draw on, and names of items and clusters where they fit."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.plots.colours import MARK, MARKERS, colours_of, ink, patterns_of
from posterior_consensus.runtime.arguments import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.lines import Line2D as Line2D
else:
    Axes = Line2D = Any  # Matplotlib is optional, and loaded when something is drawn

Size = tuple[float, float] | None
Grid = npt.NDArray[np.object_]  # of axes

MOST_NAMED = 12  # clusters in a legend
LONGEST = 24  # characters of a name in a legend or of a row
CHARACTER = 5.4  # points wide
_SMALLEST_FONT = 5.0  # points; smaller is not read
MOST_OF_PAIRS = 10_000  # items of which every pair is drawn; of more, some
SOME_OF_PAIRS = 2_000
MOST_IN_ROW = 20_000  # items that stand in a row; of more, so many
_LITTLE = 0.5  # of the variation: where two axes show less, a map says what that means
_STEPS = (1, 2, 5)  # times powers of ten: every so many items are named


def check_result(name: str, value: Any, kind: type, maker: str) -> None:
    """Refuse what is no result of the function that a plot is of."""
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must be what {maker}() returns; got {type(value).__name__}.")


def new_axes(
    ax: Any, figsize: Any, width: float, height: float, *, framed: bool = False, layout: str = "constrained"
) -> Axes:
    """The user's axes, or new ones in a figure of `figsize`, by default of this width and height in inches."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes | None):
        raise TypeError(f"`ax` must be a matplotlib Axes or None; got {type(ax).__name__}.")
    own: Axes = grid_axes(ax, figsize, 1, 1, width, height, framed=framed, layout=layout, name="ax").item()
    return own


def grid_axes(
    axes: Any,
    figsize: Any,
    n_rows: int,
    n_columns: int,
    width: float,
    height: float,
    *,
    framed: bool = False,
    layout: str = "constrained",
    name: str = "axes",
    **ratios: Any,
) -> Grid:
    """The user's array of axes, or new ones in a figure of `figsize`, by default of this width and height in inches.

    `ratios` are those of the widths and heights of a new figure's columns and rows. Axes have no lines above and on the
    right if they are not `framed`. Images of square pixels need the layout "compressed": "constrained" cuts labels.
    """
    from matplotlib.axes import Axes

    if figsize is not None:
        if axes is not None:
            raise ValueError(f"`figsize` is for a new figure, and `{name}` has one already; give one of the two.")
        size = as_numbers("figsize", figsize)
        if size.shape != (2,) or not np.all((size > 0) & np.isfinite(size)):
            raise ValueError(f"`figsize` must be a width and a height in inches, both positive; got {figsize!r}.")
        width, height = size.tolist()
    if axes is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), layout=layout)
        axes = figure.subplots(n_rows, n_columns, squeeze=False, **ratios)
    grid = np.asarray(axes, dtype=object)
    for ax in grid.flat:
        if not isinstance(ax, Axes):
            raise TypeError(f"`axes` must hold matplotlib Axes; got {type(ax).__name__}.")
        if not framed:
            ax.spines[["top", "right"]].set_visible(False)
    if grid.size != n_rows * n_columns:
        raise ValueError(f"`axes` must hold {n_rows * n_columns} matplotlib Axes; got {grid.size}.")
    return grid.reshape(n_rows, n_columns)


def some_of(n_items: int, most: int, shown: int) -> npt.NDArray[np.intp]:
    """Positions of the items to draw: all, or of more than `most` so many at random, always the same ones."""
    if n_items <= most:
        return np.arange(n_items)
    return np.sort(np.random.default_rng(0).choice(n_items, shown, replace=False))


def with_share(name: str, shown: int, n_items: int) -> str:
    """The name of an axis of items, which says so where not all of them are shown."""
    return name if shown == n_items else f"{name} ({shown:,} of {n_items:,}, at random)"


def with_unit(name: str, unit: str) -> str:
    """What an axis measures, and in which unit if it has one."""
    return f"{name} ({unit})" if unit else name


def extent(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return 72 * box.width, 72 * box.height


def length_of(ax: Axes, sides: str) -> float:
    """Length in points of the shortest of `sides`, of "x" and "y"."""
    return min(length for side, length in zip("xy", extent(ax), strict=True) if side in sides)


def set_ticks(ax: Axes, sides: str, at: Any, names: Any, font: float = 9.0, *, upright: bool = False) -> None:
    """Name places along all `sides`, upright ones turned where they lie below each other's ends."""
    for side in sides:
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_ticks(at, names, fontsize=font, rotation=90 if upright and side == "x" else 0)


def extend_label(ax: Axes, sides: str, text: str) -> None:
    """Say more behind the axes' labels."""
    for side in sides:
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_label_text(axis.get_label_text() + text)


def label_row(
    ax: Axes, sides: str, names: npt.NDArray[Any], clusters: tuple[npt.NDArray[np.intp], list[str]] | None = None
) -> None:
    """Name the items along all `sides`, of "x" and "y", if there is room, else their clusters of these sizes and names.

    The axes' labels are to be there, and say so.
    """
    if label_items(ax, sides, names):
        return
    if clusters is not None:
        label_clusters(ax, sides, *clusters)
    else:
        set_ticks(ax, sides, [], [])


def label_items(ax: Axes, sides: str, names: npt.NDArray[Any]) -> bool:
    """Write the items' names if they can be read there; whether they could."""
    font = min(9.0, length_of(ax, sides) / len(names) / 1.1)
    longest = 0.6 * font * max(len(name) for name in names)
    if font < _SMALLEST_FONT or longest > max(40.0, 0.3 * length_of(ax, "xy")):
        return False
    set_ticks(ax, sides, np.arange(len(names)), names, font, upright=True)
    return True


def label_some(ax: Axes, sides: str, names: npt.NDArray[Any]) -> None:
    """Name, along all `sides`, every item, or one of every two, five, ten and so on, so that names can be read."""
    needed = 10.0 * len(names) / length_of(ax, sides)  # a name takes 10 points
    step = next(k * 10**power for power in range(len(str(len(names))) + 1) for k in _STEPS if k * 10**power >= needed)
    at = np.arange(0, len(names), step)
    set_ticks(ax, sides, at, short_names(names[at], 16), upright=True)


def label_clusters(ax: Axes, sides: str, sizes: npt.NDArray[np.intp], names: list[str], by: str = "cluster") -> None:
    """Tick, along all `sides`, every cluster of items in a row, and name those that have room, the largest first."""
    centers = np.cumsum(sizes) - (sizes + 1) / 2
    shown = short_names(names, 12)
    places = (centers + 0.5) / sizes.sum() * length_of(ax, sides)
    named = with_room(places, shown, np.argsort(-sizes, kind="stable"))
    set_ticks(ax, sides, centers[named], [shown[k] for k in named])
    for side in sides:
        (ax.xaxis if side == "x" else ax.yaxis).set_ticks(centers, minor=True)
    extend_label(ax, sides, f", by {by}")


def with_room(places: npt.NDArray[np.float64], names: list[str], order: Iterable[int]) -> list[int]:
    """Which names at places in points can be read, those first in `order` before others."""
    rooms = np.array([4.0 + max(CHARACTER * len(name), 9.0) for name in names])
    named = list[int]()
    for k in order:
        if np.all(np.abs(places[named] - places[k]) >= (rooms[named] + rooms[k]) / 2):
            named.append(int(k))
    return sorted(named)


def tick_integers(axis: Any) -> None:
    """Ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True))


def tick_dates(axis: Any) -> None:
    """Ticks at dates, of numbers as Matplotlib has them."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axis.set_major_locator(AutoDateLocator(minticks=3, maxticks=8))
    axis.set_major_formatter(ConciseDateFormatter(axis.get_major_locator()))


def as_map(ax: Axes, shares: npt.NDArray[np.float64], caution: str) -> None:
    """Make distances on two axes the same, and say so where they show little of the variation."""
    from matplotlib.ticker import MaxNLocator

    if 0 < shares.sum() < _LITTLE:
        ax.set_title(f"The map shows {shares.sum():.0%} of the variation.\n{caution}", loc="left", fontsize="small")
    ax.set_aspect("equal", adjustable="datalim")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))


def scatter_clusters(ax: Axes, x: Any, y: Any, clusters: npt.NDArray[np.integer], **style: Any) -> None:
    """Points that look like their clusters; what each has of its own in `style` is an array."""
    colours, patterns = np.array(colours_of(clusters)), patterns_of(clusters)
    for pattern in np.unique(patterns):
        at = patterns == pattern
        own = {name: value[at] if isinstance(value, np.ndarray) else value for name, value in style.items()}
        ax.scatter(x[at], y[at], c=colours[at], marker=MARKERS[pattern], **own)


def spread(rank: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Heights from 0 to 1 that spread neighbours evenly, the same way every time: multiples of the golden ratio."""
    return np.asarray(rank * 0.6180339887 % 1.0, np.float64)


def runs_of(labels: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
    """Where each run of equal labels starts, and where the last one ends."""
    return np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [labels.size]])


def colour_runs(ax: Axes, edges: Any, clusters: npt.NDArray[np.integer], low: float, high: float, **style: Any) -> None:
    """Rectangles in the clusters' colours between these edges, from a low to a high share of the axes' height."""
    from matplotlib.collections import PolyCollection

    corners = [[(x, low), (end, low), (end, high), (x, high)] for x, end in pairwise(edges)]
    style = {"facecolors": colours_of(clusters), "linewidths": 0, "transform": ax.get_xaxis_transform(), **style}
    ax.add_collection(PolyCollection(corners, **style), autolim=False)


def largest_of(sizes: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The largest clusters, as many as a legend names, in their order."""
    return np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED])


def add_colour_bar(ax: Any, shown: Any, label: str, *, pad: float = 0.03, **style: Any) -> None:
    """What the colours of an image or of lines mean, beside one or several axes."""
    bar = shown.figure.colorbar(shown, ax=ax, fraction=0.046, pad=pad, **style)
    bar.set_label(label)
    bar.outline.set_visible(False)


def add_legend(ax: Axes, handles: Sequence[Any] | None = None, **style: Any) -> None:
    """A legend beside the axes, or at the place, `loc`, that the style has."""
    beside: dict[str, Any] = {} if "loc" in style else {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(handles=handles, frameon=False, fontsize="small", **beside, **style)


def mark_value(ax: Axes, value: float, label: str | None = None, zorder: float = 0.5) -> None:
    """A dashed line upright at a value that is pointed at."""
    ax.axvline(value, color=MARK, linewidth=1.3, linestyle="--", label=label, zorder=zorder)


def point(label: str, marker: str, colour: Any, **style: Any) -> Line2D:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, color=colour, label=label, **style)


def cluster_entries(
    labels: npt.NDArray[np.integer], names: Sequence[Any], numbers: npt.NDArray[np.integer]
) -> list[Line2D]:
    """Entries of a legend for the largest clusters, by their numbers' looks; items of a label below 0 are in none."""
    sizes = np.bincount(labels[labels >= 0])
    largest = largest_of(sizes)
    shown, looks = short_names([names[k] for k in largest], LONGEST), numbers[largest]
    entries = [
        point(f"{name} (n = {size})", MARKERS[pattern], colour)
        for name, size, pattern, colour in zip(
            shown, sizes[largest], patterns_of(looks), colours_of(looks), strict=True
        )
    ]
    if sizes.size > MOST_NAMED:
        entries.append(point(f"and {sizes.size - MOST_NAMED} smaller ones", "", ink()))
    return entries


def short_names(names: Iterable[Any], longest: int) -> list[str]:
    """Long names without their middle; where they then coincide, without the beginning that they share."""
    given = [str(name) for name in names]
    shown = [shortened(name, longest) for name in given]
    if len(set(shown)) < len(set(given)):
        n_shared = next(at for at, letters in enumerate(zip_longest(*given)) if len(set(letters)) > 1)
        shown = [shortened(f"…{name[n_shared:]}", longest) for name in given]
    return shown


def shortened(name: str, longest: int) -> str:
    """A long name without its middle: names that belong together often differ at one end."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - half]}…{name[-half:]}"


def as_png(axes: Any) -> bytes:
    """The figure of these axes as a PNG file without a background, closed."""
    import matplotlib.pyplot as plt

    figure = np.ravel(axes)[0].figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, transparent=True)
    plt.close(figure)
    return buffer.getvalue()
