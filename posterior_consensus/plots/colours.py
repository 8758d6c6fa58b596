"""Colours and patterns of figures: hues and patterns for clusters, other hues for chains, ink of the user's style."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import NUMBER_OF_NOISE
from posterior_consensus.results.palette import COLOURS
from posterior_consensus.runtime.aliases import Floats

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")
MARKERS = ("o", "s", "^", "D", "v", "P")  # of points, instead of patterns
N_STYLES = len(COLOURS) * len(HATCHES)
_NARROW = 5.0  # points per cluster, below which patterns are left out

_CHAIN_COLOURS = ("#0077BB", "#EE7733", "#000000", "#6B6B6B")
_CHAIN_COLOURS_ON_DARK = ("#4D99E6", "#CC8000", "#66FF80", "#D9C7D9")  # contrast of at least 3 with dark bars
_CHAIN_LINES = ("-", "--", ":")
_CHAIN_MARKERS = ("o", "D", "^")
_CHAIN_CROSSES = ("x", "+", "1")  # beside clusters, which are areas or filled markers
MOST_CHAINS = len(_CHAIN_COLOURS) * len(_CHAIN_LINES)  # chains with distinct lines

_ON_DARK = 0.6  # power of an opacity on a dark page
_WHITE = 0.3  # share of white in colours of areas on a dark page

# Colormaps. Similarities and differences turn on dark screens, so their colours are far from all others.
SIMILARITIES, DIFFERENCES = "Blues", "PiYG"
MARK = "#C1272D"  # the partition that is reported
NEUTRAL = "#888888"  # legend entries that stand for any cluster
BAR = "#7A93AE"  # bars of a posterior
BARS = f"{BAR}73"  # behind points and lines: pale on a white page, dark on a black one
PRIOR = "#875A87"  # visible on white, on black and on grey bars
OPEN = "#BDBDBD"  # unassigned items of a partial partition
NOISE_GREY = "#7D7D7D"  # items that runs put into no cluster


def check_matplotlib() -> None:
    """Raise an error with the next step if Matplotlib, which is optional, is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError("Figures need the package matplotlib: pip install 'posterior-consensus[plots]'.")


def ink() -> str:
    """Text colour of the user's style, for lines on the page."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def on_dark() -> bool:
    """Whether the user's style has light text."""
    return bool(_luminance(ink())[0] > 0.5)


def on_page(on_white: float) -> float:
    """Opacity of an area: on a dark page higher than on a white one, where it is as visible."""
    return on_white**_ON_DARK if on_dark() else on_white


def ink_on(colours: Any) -> npt.NDArray[np.str_]:
    """Black or white, whichever is readable on each colour."""
    return np.where(_luminance(colours) > 0.4, "#222222", "#FFFFFF")


def _luminance(colours: Any) -> Floats:
    from matplotlib.colors import to_rgba_array

    return to_rgba_array(colours)[:, :3] @ [0.299, 0.587, 0.114]


def colours_of(clusters: npt.NDArray[np.integer]) -> list[str]:
    """Colour of each cluster number, of noise, and of unassigned items, whose number is -1."""
    greys = {NUMBER_OF_NOISE: NOISE_GREY}
    return [COLOURS[k % len(COLOURS)] if k >= 0 else greys.get(int(k), OPEN) for k in clusters]


def patterns_of(clusters: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Number of each cluster's pattern, in `HATCHES` and `MARKERS`; it changes when colours repeat."""
    return np.maximum(clusters, 0) // len(COLOURS) % len(HATCHES)


def patch_style(cluster: int, patterned: bool = True) -> dict[str, Any]:
    """Face colour and, if visible, pattern of a cluster's areas."""
    from matplotlib.colors import to_rgba

    colour = colours_of(np.array([cluster]))[0]
    pattern = HATCHES[patterns_of(np.array([cluster]))[0]] if patterned else ""
    return {"facecolor": colour, "hatch": pattern, "edgecolor": to_rgba(ink_on([colour])[0], 0.6), "linewidth": 0.0}


def is_patterned(length: float, n_clusters: int) -> bool:
    """Whether patterns are visible with `n_clusters` clusters on a length in points; they blacken narrow areas."""
    return bool(length / n_clusters >= _NARROW)


def repeats(n_clusters: int, patterned: bool = True) -> str:
    """Note for an axis if clusters share colours."""
    look, number = ("colours and patterns", N_STYLES) if patterned else ("colours", len(COLOURS))
    return f"\n{look} repeat after {number} clusters" if n_clusters > number else ""


def chain_colour(k: int, n_chains: int) -> str:
    """Colour of chain number `k`; too many chains share one colour."""
    colours = _CHAIN_COLOURS_ON_DARK if on_dark() else _CHAIN_COLOURS
    return colours[k % len(colours) if n_chains <= MOST_CHAINS else 0]


def chain_labels(names: Sequence[Any], together: str | None, chain: str = "chain") -> list[str | None]:
    """Legend entries for the chains, or groups of runs; a single entry for too many."""
    return (
        [f"{chain} {name}" for name in names] if len(names) <= MOST_CHAINS else [together, *[None] * (len(names) - 1)]
    )


def chain_line(k: int, n_chains: int) -> dict[str, Any]:
    """Colour and line style of chain number `k`."""
    style = _CHAIN_LINES[k // len(_CHAIN_COLOURS) if n_chains <= MOST_CHAINS else 0]
    return {"color": chain_colour(k, n_chains), "linestyle": style}


def chain_marker(k: int, n_chains: int) -> str:
    """Marker of chain number `k`."""
    return _CHAIN_MARKERS[k // len(_CHAIN_COLOURS) if n_chains <= MOST_CHAINS else 0]


def chain_cross(k: int, n_chains: int) -> dict[str, Any]:
    """Look of points of chain number `k` in figures that also show clusters.

    No four colours are far from those of the clusters for every colour blindness: the form tells chains from clusters.
    """
    marker = _CHAIN_CROSSES[k // len(_CHAIN_COLOURS) if n_chains <= MOST_CHAINS else 0]
    style = {"color": chain_colour(k, n_chains), "marker": marker, "linestyle": "", "markeredgewidth": 1.3}
    return style | {"markersize": 5 if marker == "x" else 6.5}


def visible_on_page(cmap: Colormap) -> Colormap:
    """A colormap for areas on the page; on a dark one, paler."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(_WHITE + (1 - _WHITE) * cmap(np.linspace(0.0, 1.0, 256))) if on_dark() else cmap


def as_cmap(cmap: Any) -> Colormap:
    """A colormap, given by name or itself."""
    check_matplotlib()
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    if isinstance(cmap, str) and cmap in colormaps:
        return colormaps[cmap]
    if not isinstance(cmap, Colormap):
        raise ValueError(
            f"`cmap` must be a Colormap of Matplotlib or the name of one, such as 'viridis'; got {cmap!r}."
        )
    return cmap


def colours_of_scales() -> npt.NDArray[np.uint8]:
    """Colours (512, 3) of similarities, and of differences, in maps: nearest to white is least."""
    from matplotlib import colormaps

    scales = [colormaps[name](np.arange(256), bytes=True)[:, :3] for name in (SIMILARITIES, DIFFERENCES)]
    return np.concatenate(scales)
