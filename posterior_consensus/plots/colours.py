"""Colours and patterns of the pictures: clusters by hue and pattern, chains by other hues, ink by the user's style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

# Far apart in CIELAB for normal and for deuteranopic sight, also from the chains' colours, and of a lightness that is
# seen on white and on black.
COLOURS = (
    "#6655BB", "#88CCEE", "#44AA99", "#DDCC77", "#993366", "#228844", "#BB66BB", "#999933", "#EEBFBF", "#F7867D",
    "#1F6A7D", "#F7A3D2", "#4E6144", "#6190F7", "#AC99BF", "#F7B54E", "#AC864E", "#61C890", "#7361A3", "#4E611F",
)  # fmt: skip
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")
MARKERS = ("o", "s", "^", "D", "v", "P")  # of points, in place of patterns
N_STYLES = len(COLOURS) * len(HATCHES)
_NARROW = 5.0  # points

_CHAIN_COLOURS = ("#0077BB", "#EE7733", "#33BBEE", "#6B6B6B")
_CHAIN_LINES = ("-", "--", ":")
_CHAIN_MARKERS = ("o", "D", "^")
MOST_CHAINS = len(_CHAIN_COLOURS) * len(_CHAIN_LINES)  # that are told apart

MARK = "#C1272D"  # the estimate, a default, what is pointed at
NEUTRAL = "#888888"  # legends that stand for any cluster
BARS = "#C9D3DF"  # of a posterior, behind points and lines
PRIOR = "#9A6700"  # seen on white, on black and on grey bars
OPEN = "#BDBDBD"  # items that a partial partition leaves open


def ink() -> str:
    """Colour of text in the user's style, for lines that are drawn on the page."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def on_dark() -> bool:
    """Whether the user's style has light text."""
    return bool(_luminance(ink())[0] > 0.5)


def ink_on(colours: Any) -> npt.NDArray[np.str_]:
    """Black or white, whichever is read on each of the colours."""
    return np.where(_luminance(colours) > 0.4, "#222222", "#FFFFFF")


def _luminance(colours: Any) -> npt.NDArray[np.float64]:
    from matplotlib.colors import to_rgba_array

    return to_rgba_array(colours)[:, :3] @ [0.299, 0.587, 0.114]


def colours_of(clusters: npt.NDArray[np.integer]) -> list[str]:
    """A colour for each cluster number; below 0 unassigned items."""
    return [COLOURS[k % len(COLOURS)] if k >= 0 else OPEN for k in clusters]


def patterns_of(clusters: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Number of each cluster's pattern, in `HATCHES` and `MARKERS`; it changes where the colours start again."""
    return np.maximum(clusters, 0) // len(COLOURS) % len(HATCHES)


def patch_style(cluster: int, patterned: bool = True) -> dict[str, Any]:
    """Face and, where it can be seen, pattern of a cluster's areas."""
    from matplotlib.colors import to_rgba

    colour = colours_of(np.array([cluster]))[0]
    pattern = HATCHES[patterns_of(np.array([cluster]))[0]] if patterned else ""
    return {"facecolor": colour, "hatch": pattern, "edgecolor": to_rgba(ink_on([colour])[0], 0.6), "linewidth": 0.0}


def is_patterned(length: float, n_clusters: int) -> bool:
    """Whether patterns can be seen where so many clusters share a length in points; they would blacken narrow ones."""
    return length / n_clusters >= _NARROW


def repeats(n_clusters: int, patterned: bool = True) -> str:
    """What an axis is to say where clusters look the same."""
    look, number = ("colours and patterns", N_STYLES) if patterned else ("colours", len(COLOURS))
    return f"\n{look} repeat after {number} clusters" if n_clusters > number else ""


def chain_colour(k: int, n_chains: int) -> str:
    """Colour of chain number `k`; more chains than can be told apart all have one."""
    return _CHAIN_COLOURS[k % len(_CHAIN_COLOURS) if n_chains <= MOST_CHAINS else 0]


def chain_labels(names: Sequence[Any], together: str | None) -> list[str | None]:
    """Entries of a legend for the chains; of more than can be told apart, one for all of them."""
    return [f"chain {name}" for name in names] if len(names) <= MOST_CHAINS else [together, *[None] * (len(names) - 1)]


def chain_line(k: int, n_chains: int) -> dict[str, Any]:
    """Colour and line style of chain number `k`."""
    style = _CHAIN_LINES[k // len(_CHAIN_COLOURS) if n_chains <= MOST_CHAINS else 0]
    return {"color": chain_colour(k, n_chains), "linestyle": style}


def chain_marker(k: int, n_chains: int) -> str:
    """Marker of chain number `k`."""
    return _CHAIN_MARKERS[k // len(_CHAIN_COLOURS) if n_chains <= MOST_CHAINS else 0]


def as_cmap(cmap: Any) -> Colormap:
    """A colormap by name or as it is."""
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    if isinstance(cmap, str) and cmap in colormaps:
        return colormaps[cmap]
    if not isinstance(cmap, Colormap):
        raise ValueError(
            f"`cmap` must be a Colormap of Matplotlib or the name of one, such as 'viridis'; got {cmap!r}."
        )
    return cmap
