"""What the pictures share: axes to draw on, colours, and item labels where they fit."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from posterior_consensus.partitions import Labels, contingency_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Paul Tol's "muted" scheme, told apart by colour-blind readers.
COLOURS = (
    "#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#777777",
)  # fmt: skip
DARK = ("#332288", "#117733", "#882255", "#AA4499", "#777777")  # text on them is white
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


def colours_of(clusters: npt.NDArray[np.integer]) -> list[str]:
    """A colour for each cluster number; they repeat."""
    return [COLOURS[k % len(COLOURS)] for k in clusters]


def matched(labels: Labels, others: Labels) -> Labels:
    """Renumber clusters by those of another partition with most items in common, one to one, the rest after these."""
    table = contingency_table(labels, others)
    rows, columns = linear_sum_assignment(table, maximize=True)
    kept = table[rows, columns] > 0
    number = np.full(table.shape[0], -1, np.int32)
    number[rows[kept]] = columns[kept]
    number[number < 0] = table.shape[1] + np.arange(np.sum(number < 0))
    return number[labels]


def grid_axes(
    axes: Any,
    n_rows: int,
    n_columns: int,
    width: float,
    height: float,
    width_ratios: tuple[float, ...] | None = None,
) -> npt.NDArray[np.object_]:
    """The user's array of axes, or new ones in a figure of this size in inches."""
    from matplotlib.axes import Axes

    if axes is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), layout="constrained")
        return figure.subplots(n_rows, n_columns, squeeze=False, width_ratios=width_ratios)
    grid = np.asarray(axes, dtype=object)
    for ax in grid.flat:
        if not isinstance(ax, Axes):
            raise TypeError(f"`axes` must hold matplotlib Axes; got {type(ax).__name__}.")
    if grid.size != n_rows * n_columns:
        raise ValueError(f"`axes` must hold {n_rows * n_columns} matplotlib Axes; got {grid.size}.")
    return grid.reshape(n_rows, n_columns)


def chain_style(k: int, n_chains: int) -> dict[str, Any]:
    """Colour of chain number `k`; chains beyond the colours there are all look the same."""
    return {"color": COLOURS[k] if n_chains <= len(COLOURS) else COLOURS[0]}


def extent(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return 72 * box.width, 72 * box.height


def label_items(ax: Axes, sides: str, names: npt.NDArray[Any]) -> bool:
    """Write the items' names along all `sides`, of "x" and "y", if they can be read there; whether they could."""
    size = dict(zip("xy", extent(ax), strict=True))
    font = min(9.0, *(size[side] / len(names) / 1.1 for side in sides))
    longest = 0.6 * font * max(len(name) for name in names)
    if font < _SMALLEST_FONT or longest > max(40.0, 0.3 * min(size.values())):
        return False
    for side in sides:
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_ticks(np.arange(len(names)), names, fontsize=font, rotation=90 if side == "x" else 0)
    return True


def label_clusters(ax: Axes, sides: str, sizes: npt.NDArray[np.intp]) -> None:
    """Name, along all `sides`, clusters of items in a row by number, where they are wide enough for the names."""
    length = min(size for side, size in zip("xy", extent(ax), strict=True) if side in sides)
    wide = sizes / sizes.sum() * length >= 12 * len(str(sizes.size))  # points
    centers = (np.cumsum(sizes) - (sizes + 1) / 2)[wide]
    for side in sides:
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_ticks(centers, [str(k) for k in np.flatnonzero(wide)])
        axis.set_label_text(f"{axis.get_label_text()}, by cluster")


def item_names(coords: Any, dim: str, n_items: int) -> npt.NDArray[Any]:
    """The items' coordinate as text, or their numbers."""
    return np.array([str(name) for name in (coords[dim].values if dim in coords else range(n_items))])


def as_png(axes: Any) -> bytes:
    """The figure of these axes as a PNG file, closed."""
    import matplotlib.pyplot as plt

    figure = np.ravel(axes)[0].figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    plt.close(figure)
    return buffer.getvalue()
