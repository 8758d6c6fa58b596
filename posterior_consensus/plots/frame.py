"""Shared parts of figures: axes, sizes of print, and names of items and clusters if they fit."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from posterior_consensus.plots.colours import MARKERS, check_matplotlib, colours_of, patterns_of
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.arguments import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.lines import Line2D as Line2D
else:
    Axes = Line2D = Any  # Matplotlib is optional and loaded at the first plot

Size = tuple[float, float] | None
Width = Literal["column", "page"] | None
Grid = npt.NDArray[np.object_]  # of axes
Given = ParamSpec("Given")
Drawn = TypeVar("Drawn")

LONGEST = 24  # characters of a name in a legend or of a row
CHARACTER = 5.4  # points wide
_SMALLEST_FONT = 6.5  # points; smaller is unreadable in print
_MOST_MOVED = 12.0  # points from a cluster to its name
_WIDTHS = {"column": 89.0, "page": 180.0}  # mm, of journals
_MOST_ROUNDS, _FEWEST = 8, 8  # of wrapping labels, and characters of a line
_MOST_FILLED = 0.97  # share of its axes that a label may have; a text's width varies a little with the resolution
_MOST_DOWN = 240.0  # mm, of a column
_INCH = 25.4  # mm
_PRINTED_FONT = 7.5  # points
_ROOM = 0.75  # of the usual width or height, below which four panels are in small print, and two below each other
_COLUMN = 4.2  # inches of width, up to which a figure is in small print
_STACKED = 5.0  # inches of width, below which four panels are below each other
_WHOLE = 20  # characters of a word that is not broken
_PRINTED: dict[str, Any] = {
    **{f"axes.{text}size": "medium" for text in ("title", "label")},
    **{f"{side}tick.{kind}.width": 0.6 for side in "xy" for kind in ("major", "minor")},
    **{f"{side}tick.{name}": value for side in "xy" for name, value in (("major.size", 2.5), ("major.pad", 2.0))},
    **{"axes.linewidth": 0.6, "axes.labelpad": 2.0, "axes.titlepad": 4.0, "hatch.linewidth": 0.5},
    **{"lines.linewidth": 1.0, "lines.markersize": 4.0},
    **{"legend.handlelength": 1.3, "legend.handletextpad": 0.5, "legend.columnspacing": 1.0},
    **{"figure.subplot.left": 0.2, "figure.subplot.right": 0.97},  # near what the layout will find, for room of names
}
_BETWEEN = 0.1  # inches beside each of several axes: the names of a colour bar and of the next axis do not touch
MOST_OF_PAIRS = 10_000  # items; beyond, a sample of pairs is shown
SOME_OF_PAIRS = 2_000
MOST_IN_ROW = 20_000  # items in a row; beyond, a sample of this size is shown
_STEPS = (1, 2, 5)  # times powers of ten: steps between named items, and counts at ticks
_FARTHEST_NAME = 24.0  # points from an item to the middle of its name
_TICKS_APART = 0.12  # least share of the axis between ticks of counts


def check_result(name: str, value: Any, kind: type | tuple[type, ...], maker: str) -> None:
    """Raise an error unless `value` is a result of the function `maker`, and Matplotlib is installed."""
    check_matplotlib()
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must be what {maker}() returns; got {type(value).__name__}.")


def new_axes(ax: Any, figsize: Any, width: float, height: float, *, layout: str = "constrained") -> Axes:
    """The user's axes, or axes of a new figure of `figsize`, by default `width` x `height` inches."""
    check_matplotlib()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes | None):
        raise TypeError(f"`ax` must be a matplotlib Axes or None; got {type(ax).__name__}.")
    own: Axes = grid_axes(ax, figsize, 1, 1, width, height, layout=layout, name="ax").item()
    return own


def grid_axes(
    axes: Any,
    figsize: Any,
    n_rows: int,
    n_columns: int,
    width: float,
    height: float,
    *,
    layout: str = "constrained",
    name: str = "axes",
    stacked: Sequence[float] | None = None,
    **ratios: Any,
) -> Grid:
    """The user's array of axes, or axes of a new figure of `figsize`, by default `width` x `height` inches.

    `ratios` are ratios of the widths of columns and the heights of rows. Axes have no lines at the top and right. Two
    axes beside each other are below each other if the user's figure has no room for the usual ones, as are two by two;
    `stacked` are the ratios of their heights then. Images of square pixels need the layout "compressed", as
    "constrained" cuts labels.
    """
    check_matplotlib()
    from matplotlib.axes import Axes

    usual = width
    if figsize is not None:
        if axes is not None:
            raise ValueError(f"`figsize` is for a new figure, and `{name}` has one already; give one of the two.")
        width, height = _inches(figsize)
    if axes is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), layout=layout)
        least = {(1, 2): _ROOM * usual, (2, 2): min(_STACKED, usual)}
        if layout == "constrained" and width < least.get((n_rows, n_columns), 0.0):
            axes = figure.subplots(2 * n_rows, 1, squeeze=False, height_ratios=stacked)
        else:
            axes = figure.subplots(n_rows, n_columns, squeeze=False, **ratios)
            if (n_rows, n_columns, layout) == (1, 2, "constrained"):
                axes[0, 0].figure.get_layout_engine().set(w_pad=_BETWEEN)
    grid = np.asarray(axes, dtype=object)
    for ax in grid.flat:
        if not isinstance(ax, Axes):
            raise TypeError(f"`axes` must hold matplotlib Axes; got {type(ax).__name__}.")
        ax.spines[["top", "right"]].set_visible(False)
        keep_print(ax)
    if grid.size != n_rows * n_columns:
        raise ValueError(f"`axes` must hold {n_rows * n_columns} matplotlib Axes; got {grid.size}.")
    return grid.reshape(n_rows, n_columns)


def _inches(figsize: Any) -> list[float]:
    """Width and height of a new figure."""
    size = as_numbers("figsize", figsize)
    if size.shape != (2,) or not np.all((size > 0) & np.isfinite(size)):
        raise ValueError(f"`figsize` must be a width and a height in inches, both positive; got {figsize!r}.")
    sides: list[float] = size.tolist()
    return sides


def keep_print(ax: Axes) -> None:
    """Keep the style's size of the names of ticks for ticks that a later drawing adds."""
    from matplotlib import rcParams

    ax.tick_params("x", labelsize=rcParams["xtick.labelsize"])
    ax.tick_params("y", labelsize=rcParams["ytick.labelsize"])


def in_small_print(plot: Callable[Given, Drawn]) -> Callable[Given, Drawn]:
    """A function that plots on a new figure as narrow as a column of a journal with the fonts and lines of journals."""

    @wraps(plot)
    def drawn(*arguments: Given.args, **options: Given.kwargs) -> Drawn:
        size = options.get("figsize")
        with nullcontext() if size is None or _inches(size)[0] > _COLUMN else _small_print():
            return plot(*arguments, **options)

    return drawn


@contextmanager
def panels(
    figsize: Any, width: Any, default: tuple[float, float], heights: Sequence[float], **ratios: Any
) -> Iterator[Grid]:
    """Four axes of a new figure to plot on, two by two, or below each other in a column of print.

    `default` is the size in inches, `heights` are those of a column's panels in mm, `ratios` those of two by two. In
    print, and where the user's figure has no room for the usual ones, fonts and lines are those of journals, and labels
    are wrapped at the end.
    """
    if width is None:
        axes = grid_axes(None, figsize, 2, 2, *default, **ratios)
        axes[0, 0].figure.get_layout_engine().set(w_pad=_BETWEEN)
        if min(axes[0, 0].figure.get_size_inches() / default) >= _ROOM:
            yield axes
        else:
            with _small_print():
                yield from _printed_on(axes)
        return
    with in_print(width, figsize) as across:
        if width == "page":
            axes = grid_axes(None, None, 2, 2, across, across * default[1] / default[0], **ratios)
        else:
            down = sum(heights) / _INCH
            axes = grid_axes(None, None, 4, 1, across, down, height_ratios=heights)
        yield from _printed_on(axes)


def _printed_on(axes: Grid) -> Iterator[Grid]:
    """Four axes to plot on in small print."""
    for ax in axes.ravel().tolist():
        ax.tick_params(labelsize=font_of_names())  # of ticks that a later drawing adds
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_fontsize("medium")
    yield axes
    fit_labels(axes)


@contextmanager
def in_print(width: Any, figsize: Any) -> Iterator[float]:
    """Style of figures in journals, with their width in inches; `figsize` is the user's, which must be None."""
    check_matplotlib()
    if not isinstance(width, str) or width not in _WIDTHS:
        raise ValueError(f"`width` must be 'column' (89 mm), 'page' (180 mm) or None; got {width!r}.")
    if figsize is not None:
        raise ValueError("`width` and `figsize` both set the size of the figure; give one of the two.")
    with _small_print():
        yield _WIDTHS[width] / _INCH


@contextmanager
def _small_print() -> Iterator[None]:
    check_matplotlib()
    import matplotlib.pyplot as plt

    font = min(_PRINTED_FONT, float(plt.rcParams["font.size"]))
    style: Any = _PRINTED | {"font.size": font, "xtick.labelsize": 0.9 * font, "ytick.labelsize": 0.9 * font}
    with plt.rc_context(style):
        yield


def fit_labels(axes: Grid) -> None:
    """Break labels and titles that are longer than their axes until all fit; a column grows by the lines below axes."""
    from matplotlib.axes import Axes

    figure = axes[0, 0].figure
    (across, down), line = figure.get_size_inches(), 1.2 * axes[0, 0].xaxis.label.get_fontsize() / 72
    labels = [
        (text, ax, side)
        for ax in figure.findobj(Axes)
        for text, side in ((ax.xaxis.label, "width"), (ax.yaxis.label, "height"), (ax.title, "width"))
    ]
    titles = {ax.title for _, ax, _ in labels}  # whose lines have no meaning
    given = [
        [" ".join(text.get_text().split())] if text in titles else text.get_text().split("\n") for text, *_ in labels
    ]
    for _ in range(_MOST_ROUNDS):
        if axes.shape[1] == 1:
            n_more = sum(ax.get_xlabel().count("\n") for ax in axes.ravel().tolist())
            figure.set_size_inches(across, min(down + n_more * line, _MOST_DOWN / _INCH))
        figure.draw_without_rendering()
        shares = [getattr(text.get_window_extent(), side) / getattr(ax.bbox, side) for text, ax, side in labels]
        if max(shares) <= _MOST_FILLED:
            return
        for (text, _, _), lines, share in zip(labels, given, shares, strict=True):
            if share > _MOST_FILLED:
                most = max(_FEWEST, int(max(map(len, text.get_text().split("\n"))) / share) - 1)
                text.set_text("\n".join(part for own in lines for part in balanced(own, most)))


def balanced(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters, or one word, as few as possible and about equally long."""
    least = max(map(len, text.split(" ")), default=width)
    width = max(width, min(least, _WHOLE))
    lines = textwrap.wrap(text, width)
    while width > least and len(closer := textwrap.wrap(text, width - 1)) == len(lines):
        lines, width = closer, width - 1
    return lines


def some_of(n_items: int, most: int, shown: int) -> Positions:
    """Positions of the items to show: all, or beyond `most` items a fixed random sample of `shown`."""
    if n_items <= most:
        return np.arange(n_items)
    return np.sort(np.random.default_rng(0).choice(n_items, shown, replace=False))


def with_share(name: str, shown: int, n_items: int) -> str:
    """Label of an axis of items, with a note if only some are shown."""
    return name if shown == n_items else f"{name} ({shown:,} of {n_items:,}, at random)"


def extent(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return 72 * box.width, 72 * box.height


def length_of(ax: Axes, sides: str) -> float:
    """Length in points of the shortest of `sides`, of "x" and "y"."""
    return min(length for side, length in zip("xy", extent(ax), strict=True) if side in sides)


def font_of_names() -> float:
    """Points of names along an axis: a little smaller than the style's text."""
    from matplotlib import rcParams

    return 0.9 * float(rcParams["font.size"])


def set_ticks(ax: Axes, sides: str, at: Any, names: Any, font: float | None = None, *, upright: bool = False) -> None:
    """Name positions along all `sides`; names below an axis are upright if they would overlap."""
    font = font_of_names() if font is None else font
    for side in sides:
        axis = ax.xaxis if side == "x" else ax.yaxis
        rotation = 90 if upright and side == "x" else 0
        axis.set_ticks(at, names, fontsize=font, rotation=rotation, parse_math=False)


def extend_label(ax: Axes, sides: str, text: str) -> None:
    """Append text to the axes' labels."""
    for side in sides:
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_label_text(axis.get_label_text() + text)


def label_row(
    ax: Axes, sides: str, names: npt.NDArray[Any], clusters: tuple[Positions, list[str]] | None = None
) -> None:
    """Name the items along all `sides`, of "x" and "y", if there is room, else their clusters.

    The axes' labels must be set already; they note which are named.
    """
    if label_items(ax, sides, names):
        return
    if clusters is not None:
        label_clusters(ax, sides, *clusters)
    else:
        set_ticks(ax, sides, [], [])


def label_items(ax: Axes, sides: str, names: npt.NDArray[Any]) -> bool:
    """Write the items' names if they are readable; return whether they are."""
    font = min(font_of_names(), length_of(ax, sides) / len(names) / 1.1)
    longest = 0.6 * font * max(len(name) for name in names)
    if font < _SMALLEST_FONT or longest > max(40.0, 0.3 * length_of(ax, "xy")):
        return False
    set_ticks(ax, sides, np.arange(len(names)), names, font, upright=True)
    return True


def label_some(ax: Axes, sides: str, names: npt.NDArray[Any]) -> None:
    """Name every item along all `sides`, or one in two, five, ten and so on, so that names are readable."""
    needed = 1.1 * font_of_names() * len(names) / length_of(ax, sides)
    step = next(k * 10**power for power in range(len(str(len(names))) + 1) for k in _STEPS if k * 10**power >= needed)
    at = np.arange(0, len(names), step)
    set_ticks(ax, sides, at, short_names(names[at], 16), upright=True)


def label_clusters(ax: Axes, sides: str, sizes: Positions, names: list[str], by: str = "cluster") -> None:
    """Tick every cluster of items in a row along all `sides`, and name clusters with room, the largest first.

    Names move apart if all clusters are then named, so that their order tells which tick is whose.
    """
    centres = np.cumsum(sizes) - (sizes + 1) / 2
    shown, length = short_names(names, 12), length_of(ax, sides)
    places = (centres + 0.5) / sizes.sum() * length
    apart = _moved_apart(places, rooms_of(shown), length)
    named = list(range(sizes.size))
    if np.abs(apart - places).max() > _MOST_MOVED or apart[-1] > length:
        named, apart = with_room(places, shown, np.argsort(-sizes, kind="stable")), places
    set_ticks(ax, sides, apart[named] / length * sizes.sum() - 0.5, [shown[k] for k in named])
    for side in sides:
        (ax.xaxis if side == "x" else ax.yaxis).set_ticks(centres, minor=True)
    extend_label(ax, sides, f", by {by}")


def with_room(places: Floats, names: list[str], order: Iterable[int]) -> list[int]:
    """Names, at positions in points, that are readable without overlap, chosen in `order`."""
    rooms = rooms_of(names)
    named = list[int]()
    for k in order:
        if np.all(np.abs(places[named] - places[k]) >= (rooms[named] + rooms[k]) / 2):
            named.append(int(k))
    return sorted(named)


def side_by_side(places: Floats, names: Sequence[str], length: float) -> tuple[list[int], Floats]:
    """Names, in the order of their importance, that are readable next to each other near their positions in points.

    Return which they are, from left to right, and the positions of their middles.
    """
    named, middles, rooms = list[int](), np.empty(0), rooms_of(names)
    for k in range(len(names)):
        tried = sorted([*named, k], key=places.__getitem__)
        apart = _moved_apart(places[tried], rooms[tried], length)
        if np.abs(apart - places[tried]).max() <= _FARTHEST_NAME and apart[-1] <= length:
            named, middles = tried, apart
    return named, middles


def rooms_of(names: Sequence[str]) -> Floats:
    """Points that each name needs along an axis."""
    font = font_of_names()
    return np.array([4.0 + font * max(0.6 * len(name), 1.0) for name in names])


def _moved_apart(places: Floats, rooms: Floats, length: float) -> Floats:
    """Positions of names without overlap that are nearest to the given ascending ones, in squares.

    They are on the axis if it has room: a tick beyond its end would lengthen it.
    """
    from scipy.optimize import isotonic_regression

    least = np.concatenate([[0.0], np.cumsum((rooms[1:] + rooms[:-1]) / 2)])
    nearest = isotonic_regression(places - least).x
    return np.clip(nearest, 0.0, max(0.0, length - least[-1])) + least


def tick_integers(axis: Any) -> None:
    """Ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True))


def scale_counts(ax: Axes, label: str, most: float, most_below: float = 0.0) -> None:
    """Vertical axis of the square roots of counts, up to the largest one, and down to the largest one below zero."""
    ax.set_yscale("function", functions=(lambda y: np.sign(y) * np.sqrt(np.abs(y)), lambda y: np.sign(y) * y**2))
    high, low = 1.1 * np.sqrt([most, most_below])
    ax.set_ylim(-(low**2), high**2)
    ticks, step = [0.0], _TICKS_APART * (high + low)
    for count in (k * 10.0**power for power in range(19) for k in _STEPS):
        if np.sqrt(ticks[-1]) + step <= np.sqrt(count) <= max(high, low):
            ticks.append(count)
    largest = max(most, most_below)
    power = 10.0 ** np.floor(np.log10(max(largest, 1.0)))
    if np.sqrt(last := largest // power * power) - np.sqrt(ticks[-1]) >= step:
        ticks.append(float(last))
    ax.set_ylabel(f"{label}\n(square-root scale)")
    ax.set_yticks([*(-tick for tick in ticks[:0:-1] if tick <= low**2), *(tick for tick in ticks if tick <= high**2)])
    ax.yaxis.set_major_formatter(lambda y, _: f"{abs(y):,.0f}")


def tick_dates(axis: Any) -> None:
    """Ticks at dates, for Matplotlib's date numbers."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axis.set_major_locator(AutoDateLocator(minticks=3, maxticks=8))
    axis.set_major_formatter(ConciseDateFormatter(axis.get_major_locator()))


def scatter_clusters(ax: Axes, x: Any, y: Any, clusters: npt.NDArray[np.integer], **style: Any) -> None:
    """Plot points in the look of their clusters; arrays in `style` have a value per point."""
    colours, patterns = np.array(colours_of(clusters)), patterns_of(clusters)
    for pattern in np.unique(patterns):
        at = patterns == pattern
        own = {name: value[at] if isinstance(value, np.ndarray) else value for name, value in style.items()}
        ax.scatter(x[at], y[at], c=colours[at], marker=MARKERS[pattern], **own)


def spread(rank: npt.NDArray[np.integer]) -> Floats:
    """Fixed heights from 0 to 1 that spread neighbours evenly: multiples of the golden ratio."""
    return np.asarray(rank * 0.6180339887 % 1.0, np.float64)


def runs_of(labels: npt.NDArray[np.integer]) -> Positions:
    """Start of each run of equal labels, and end of the last run."""
    return np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [labels.size]])


def colour_runs(ax: Axes, edges: Any, clusters: npt.NDArray[np.integer], low: float, high: float, **style: Any) -> None:
    """Plot rectangles in the clusters' colours between `edges`, from a low to a high share of the axes' height."""
    from matplotlib.collections import PolyCollection

    corners = [[(x, low), (end, low), (end, high), (x, high)] for x, end in pairwise(edges)]
    style = {"facecolors": colours_of(clusters), "linewidths": 0, "transform": ax.get_xaxis_transform(), **style}
    ax.add_collection(PolyCollection(corners, **style), autolim=False)


def short_names(names: Iterable[Any], longest: int) -> list[str]:
    """Long names without their middle or, if they would coincide, without their common beginning."""
    given = [str(name) for name in names]
    shown = [shortened(name, longest) for name in given]
    if len(set(shown)) < len(set(given)):
        n_shared = next(at for at, letters in enumerate(zip_longest(*given)) if len(set(letters)) > 1)
        shown = [shortened(f"…{name[n_shared:]}", longest) for name in given]
    return shown


def shortened(name: str, longest: int) -> str:
    """A long name without its middle, as related names often differ at one end."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - half]}…{name[-half:]}"


def save_figure(axes: Any, path: Path) -> None:
    """Write the figure of these axes to a file, in a PDF with fonts of type 42, which journals take."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"pdf.fonttype": 42}):
        np.ravel(axes)[0].figure.savefig(path, dpi=200)


def as_png(axes: Any) -> bytes:
    """The figure of these axes as a PNG file without a background, closed."""
    import matplotlib.pyplot as plt

    figure = np.ravel(axes)[0].figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, transparent=True)
    plt.close(figure)
    return buffer.getvalue()
