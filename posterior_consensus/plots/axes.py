"""What the pictures share: axes to draw on, colours, and item labels where they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Paul Tol's "muted" scheme, told apart by colour-blind readers; clusters beyond ten repeat it.
COLOURS = (
    "#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#777777",
)  # fmt: skip
INK = "#222222"
_SMALLEST_FONT = 5.0  # points; smaller is not read


def new_axes(ax: Any, width: float, height: float) -> Axes:
    """The user's axes, or new ones of this size in inches."""
    from matplotlib.axes import Axes

    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"`ax` must be a matplotlib Axes or None; got {type(ax).__name__}.")
    return ax


def label_items(ax: Axes, axis: str, names: npt.NDArray[Any]) -> bool:
    """Write the items' names along "x" or "y" if they can be read at that size; whether they could."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    points = 72 * (box.width if axis == "x" else box.height) / len(names)
    if points < _SMALLEST_FONT * 1.1:
        return False
    font = min(9.0, points / 1.1)
    if axis == "x":
        ax.set_xticks(np.arange(len(names)), names, fontsize=font, rotation=90)
    else:
        ax.set_yticks(np.arange(len(names)), names, fontsize=font)
    return True


def item_names(coords: Any, dim: str, n_items: int) -> npt.NDArray[Any]:
    """The items' coordinate as text, or their numbers."""
    return np.array([str(name) for name in (coords[dim].values if dim in coords else range(n_items))])
