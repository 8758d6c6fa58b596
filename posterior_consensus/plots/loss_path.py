"""Plot of the partitions along the loss's parameter."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.loss_parameter import LossPath
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import as_cmap, ink, on_dark
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.runtime.tolerances import SAME

_MUCH = 10  # ratio of the numbers of clusters from which the axis is logarithmic


def plot_loss_path(path: LossPath, *, cmap: Any = None, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the number of clusters against the loss's parameter, with plateaus of the partition.

    Parameters
    ----------
    path : LossPath
        Result of :func:`loss_path`.
    cmap : str or matplotlib.colors.Colormap, optional
        Colours from the nearest to the farthest neighbours; by default blues that fade into the page.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The colour bar is ``ax.collections[0].colorbar``.

    Raises
    ------
    TypeError
        If `path` is not a LossPath.
    ValueError
        If `cmap` or `figsize` are invalid.

    See Also
    --------
    loss_path : Compute the path.

    Notes
    -----
    The line between two values is thick if the partition stays the same, else faint in proportion to the variation of
    information between their partitions. Long strong stretches are partitions that hardly depend on the parameter. The
    dashed line is at the loss's default. The axis is logarithmic if the number of clusters grows tenfold.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 0]]
    >>> ax = pc.plot_loss_path(pc.loss_path(draws, loss="binder", random_seed=1))
    >>> ax.get_xlabel()
    'pair threshold tau'
    """
    frame.check_result("path", path, LossPath, "loss_path")
    dim, table = path.parameter, path.table
    x, clusters = table[dim].values, table["n_clusters"].values
    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    if x.size > 1:
        _draw_steps(ax, x, clusters, table["distance_to_previous"].values[1:], cmap)
    ax.plot(x, clusters, "o", color=ink(), markersize=3)
    default = 0.5 if dim == "tau" else 1.0
    if x.min() <= default <= x.max():
        frame.mark_value(ax, default, f"default, {dim} = {default:g}", zorder=1.5)
        frame.add_legend(ax, loc="best")
    _scale_clusters(ax, clusters)
    ax.set(xlabel="pair threshold tau" if dim == "tau" else "cost of separating, a", ylabel="number of clusters")
    return ax


def _draw_steps(
    ax: Axes, x: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64], distances: npt.NDArray[np.float64], cmap: Any
) -> None:
    """Plot a step between neighbours, thick if their partitions are equal, else fainter with distance."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    strong, faint = ("#DCE6F0", "#2171B5") if on_dark() else ("#08306B", "#DCE6F0")
    fading = LinearSegmentedColormap.from_list("near to far", [strong, "#6BAED6", faint])
    middle = (x[:-1] + x[1:]) / 2
    corners = [(x[:-1], clusters[:-1]), (middle, clusters[:-1]), (middle, clusters[1:]), (x[1:], clusters[1:])]
    steps = LineCollection(
        list(np.stack([np.column_stack(corner) for corner in corners], axis=1)),
        array=distances,
        cmap=fading if cmap is None else as_cmap(cmap),
        norm=Normalize(0.0, distances.max() or 1.0),
        linewidths=np.where(distances < SAME, 5.0, 2.0),
        capstyle="butt",
        zorder=1.8,
    )
    ax.add_collection(steps)
    frame.add_colour_bar(ax, steps, "VI to the neighbour (bits)")


def _scale_clusters(ax: Axes, clusters: npt.NDArray[np.int64]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    if clusters.max() < _MUCH * clusters.min():
        ax.set_ylim(0, 1.05 * clusters.max() + 0.5)
        frame.tick_integers(ax.yaxis)
        return
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:.0f}")
