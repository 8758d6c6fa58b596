"""One grammar of all figures: titles that say the finding, units, errors, marks with one meaning each, legends.

Colours of clusters are for clusters, and dashed red is the partition that is reported. Another value of an axis that
the reader needs, such as a default, a threshold or a minimum, is a thin line with its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from posterior_consensus.plots.colours import MARK, MARKERS, colours_of, ink, patterns_of
from posterior_consensus.plots.frame import LONGEST, Axes, balanced, extent, font_of_names, keep_print, short_names
from posterior_consensus.results.display import with_unit
from posterior_consensus.results.words import DRAWS, Words
from posterior_consensus.runtime.aliases import Positions

if TYPE_CHECKING:
    from matplotlib.lines import Line2D as Line2D
else:
    Line2D = Any  # Matplotlib is optional and loaded at the first plot

MOST_NAMED = 12  # clusters named in a legend
ERRORS = 2.0  # standard errors that a bar reaches to either side
_MOST_TOGETHER = 4  # names at the common end of lines, after the first
_NARROW = 250.0  # points of axes without room for a legend next to them
_FEWEST = 12  # characters of a line of a legend
_MOST_ABOVE = 0.4  # of the figure's height that a legend may have above the axes
_SIGN, _ROW = 3.5, 1.5  # of the font's size: width of a mark of a legend with its spaces, and height of a line
_CHARACTER = 0.55  # of the font's size: mean width of a character of a title


def say(ax: Axes, finding: str, pad: float | None = None) -> None:
    """Write what a figure shows as its title, and break it and the axes' labels into lines that the axes hold.

    The labels, and the names along the vertical axis, must be set already.
    """
    ax.set_title("\n".join(_lines_of(finding, _room_along(ax))), fontsize="medium", pad=pad, parse_math=False)
    break_labels(ax)


def break_labels(ax: Axes) -> None:
    """Break the axes' labels into lines that the axes hold."""
    for axis, length in ((ax.xaxis, _room_along(ax)), (ax.yaxis, extent(ax)[1])):
        axis.set_label_text("\n".join(_lines_of(axis.get_label_text(), length)))


def _lines_of(text: str, length: float) -> list[str]:
    """Lines of a text, each broken where it is longer than these points."""
    from matplotlib import rcParams

    most = max(16, int(length / (_CHARACTER * float(rcParams["font.size"]))))
    return [part for own in text.split("\n") for part in (balanced(own, most) if len(own) > most else [own])]


def _room_along(ax: Axes) -> float:
    """Points of the axes' width, which long names beside them will make smaller if no other axes are there."""
    width, place = extent(ax)[0], ax.get_subplotspec()
    if place is None or place.get_gridspec().ncols > 1:
        return width
    names = max((len(line) for tick in ax.get_yticklabels() for line in tick.get_text().split("\n")), default=0)
    label = _ROW * (ax.get_ylabel().count("\n") + 1)
    across = 72 * ax.figure.bbox.width / ax.figure.dpi
    return float(np.clip(across - font_of_names() * (_CHARACTER * names + label), width / 2, width))


def in_digits(value: float, digits: int, unit: str = "") -> str:
    """A number with all of its significant digits, zeros too, with the minus of the axes and its unit."""
    shown = f"{value:#.{digits}g}".removesuffix(".") if value else "0"
    return with_unit(shown.replace("-", "\N{MINUS SIGN}", int(value < 0)), unit)


def axis_label(name: str, unit: str) -> str:
    """Label of an axis, with its unit if there is one."""
    return f"{name} ({unit})" if unit else name


def with_errors(label: str, errors: Any, words: Words = DRAWS, of: str = "") -> str:
    """Label of an axis on which bars are two standard errors, of what follows, to either side, if any is known."""
    return f"{label}\n± {ERRORS:g} {words.mcse}{of}" if np.any(np.nan_to_num(errors) > 0) else label


def mark_partition(ax: Axes, value: float, label: str) -> None:
    """Plot a dashed red line where the reported partition is on the horizontal axis."""
    ax.axvline(value, color=MARK, linewidth=1.3, linestyle="--", label=label, zorder=1.5)


def mark_limit(ax: Axes, value: float, label: str, along: Literal["x", "y"] = "x", *, at: float = 1.0) -> None:
    """Plot a thin line at a value other than the partition's, with its name at this share of the line's length.

    The limits of the axes must be set already.
    """
    (ax.axvline if along == "x" else ax.axhline)(value, color=ink(), linewidth=0.8, linestyle=":", zorder=0.5)
    if not label:
        return
    low, high = ax.get_xlim() if along == "x" else ax.get_ylim()
    beyond = value > (low + high) / 2  # the name is on the side that has more room
    style: dict[str, Any] = {"fontsize": "small", "textcoords": "offset points", "parse_math": False}
    style["bbox"] = behind_names(ax)
    if along == "x":
        place: dict[str, Any] = {"xytext": (-3 if beyond else 3, -3 if at else 3), "xycoords": ax.get_xaxis_transform()}
        ax.annotate(
            label, (value, at), ha="right" if beyond else "left", va="top" if at else "bottom", **place, **style
        )
    else:
        place = {"xytext": (-3 if at else 3, -3 if beyond else 3), "xycoords": ax.get_yaxis_transform()}
        ax.annotate(
            label, (at, value), ha="right" if at else "left", va="top" if beyond else "bottom", **place, **style
        )


def behind_names(ax: Axes) -> dict[str, Any]:
    """Box behind a name in the figure, which is readable over lines and points."""
    return {"facecolor": ax.get_facecolor(), "linewidth": 0.0, "pad": 1.0}


def name_ends(ax: Axes) -> None:
    """Write the names of lines next to their ends; lines that end together share a name."""
    low, high = ax.get_ylim()
    room = 1.2 * font_of_names() / extent(ax)[1] * (high - low)
    names, ends = list[str](), list[float]()
    for line in sorted(ax.lines, key=_end):
        name, end = str(line.get_label()), _end(line)
        if name.startswith("_"):
            continue
        if ends and end - ends[-1] < room:
            n_above = names[-1].count("\n")
            names[-1] += f"\n{name}" if n_above < _MOST_TOGETHER else "\n…" * (n_above == _MOST_TOGETHER)
        else:
            names.append(name)
            ends.append(end)
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "va": "bottom", "parse_math": False}
    for name, end in zip(names, ends, strict=True):
        ax.annotate(name, (1.0, end), (5, -0.5 * font_of_names()), ax.get_yaxis_transform(), **style)


def _end(line: Any) -> float:
    """Height of the last point of a line."""
    return float(line.get_ydata()[-1])


def add_colour_bar(ax: Any, shown: Any, label: str, *, pad: float = 0.03, **style: Any) -> None:
    """Add a colour bar of an image or of lines next to one or several axes."""
    _name_bar(shown.figure.colorbar(shown, ax=ax, fraction=0.046, pad=pad, **style), label)


def add_bar_of_height(ax: Axes, shown: Any, label: str) -> None:
    """Add a colour bar next to an image of square pixels, and as high."""
    if ax.figure.get_layout_engine() is None:  # nothing would make room for it
        add_colour_bar(ax, shown, label)
    else:
        _name_bar(shown.figure.colorbar(shown, cax=ax.inset_axes((1.03, 0.0, 0.04, 1.0))), label)


def _name_bar(bar: Any, label: str) -> None:
    keep_print(bar.ax)
    bar.set_label("\n".join(_lines_of(label, extent(bar.ax)[1])))
    bar.outline.set_visible(False)


def add_legend(ax: Axes, handles: Sequence[Any] | None = None, **style: Any) -> None:
    """Add a legend next to the axes, above narrow ones if they have room, or at the style's `loc`."""
    if not style and extent(ax)[0] < _NARROW:
        entries = ax.get_legend_handles_labels()[0] if handles is None else handles
        down = 72 * ax.figure.bbox.height / ax.figure.dpi
        if _ROW * font_of_names() * _rows_above(ax, entries)[2] < _MOST_ABOVE * down:
            legend_above(ax, handles)
            return
    if "loc" not in style:
        style |= {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(handles=handles, frameon=False, fontsize="small", **style)


def legend_above(ax: Axes, handles: Sequence[Any] | None = None) -> None:
    """Add a legend above the axes, in as many columns as they have room for, and below their title."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    labels, n_columns, n_rows = _rows_above(ax, handles)
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label(label)
    add_legend(ax, handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=n_columns)
    if ax.get_title():
        pad = _ROW * font_of_names() * (n_rows + 1)
        ax.set_title(ax.get_title(), fontsize=ax.title.get_fontsize(), pad=pad)


def _rows_above(ax: Axes, handles: Sequence[Any]) -> tuple[list[str], int, int]:
    """Labels of a legend above the axes, in lines that they hold, and its numbers of columns and of lines."""
    room = extent(ax)[0] / font_of_names()
    letters = max(_FEWEST, int((room - _SIGN) / _CHARACTER))
    lines = [balanced(str(handle.get_label()), letters) for handle in handles]
    widest = _SIGN + _CHARACTER * max(len(line) for own in lines for line in own)
    n_columns = int(np.clip(room / widest, 1, len(handles)))
    n_rows = max(sum(map(len, lines[k::n_columns])) for k in range(n_columns))
    return ["\n".join(own) for own in lines], n_columns, n_rows


def point(label: str, marker: str, colour: Any, **style: Any) -> Line2D:
    """A legend entry."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, color=colour, label=label, **style)


def line(label: str, colour: Any) -> Line2D:
    """A legend entry of a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, label=label)


def cluster_entries(
    labels: npt.NDArray[np.integer], names: Sequence[Any], numbers: npt.NDArray[np.integer]
) -> list[Line2D]:
    """Legend entries for the largest clusters; items with a label below 0 are unassigned."""
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


def largest_of(sizes: Positions) -> Positions:
    """The largest clusters, at most as many as a legend names, in order."""
    return np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED])
