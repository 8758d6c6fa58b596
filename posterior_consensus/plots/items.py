"""The uncertainty of every item as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posterior_consensus.items import ItemUncertainty
from posterior_consensus.plots.axes import INK, colours_of, extent, item_names, label_clusters, label_items, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_item_uncertainty(items: ItemUncertainty, *, ax: Axes | None = None) -> Axes:
    """Draw for every item the probability of being with its own cluster, and with the nearest other one.

    Parameters
    ----------
    items : ItemUncertainty
        What :func:`item_uncertainty` gives.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `items` is not an ItemUncertainty.

    Notes
    -----
    Items stand by cluster and, within it, the most certain first. The bar, in the cluster's colour, is the probability
    of being with the rest of the cluster; an item on its own has none. The point, in the other cluster's colour, is the
    probability of being there: above the bar, the item would rather be there. Ten colours repeat. Items are named where
    their names can be read at the size of the axes, else clusters are.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.plot_item_uncertainty(pc.item_uncertainty(draws, [0, 0, 1, 1]))
    >>> ax.get_ylabel()
    'posterior probability'
    """
    if not isinstance(items, ItemUncertainty):
        raise TypeError(f"`items` must be what item_uncertainty() returns; got {type(items).__name__}.")
    cluster, dim = items.cluster.values, str(items.cluster.dims[0])
    own = np.nan_to_num(items.probability.values)
    order = np.lexsort([np.nan_to_num(items.nearest_probability.values), -own, cluster])
    ax = new_axes(ax, 7.2, 3.4)
    room = extent(ax)[0] / order.size  # points an item
    edges = np.arange(order.size + 1) - 0.5
    sizes = np.bincount(cluster)
    ends = np.cumsum(sizes)
    for k, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        rows = slice(end - size, end)
        ax.stairs(
            own[order[rows]], edges[end - size : end + 1], fill=True, color=colours_of(np.array([k]))[0], alpha=0.6
        )
        if k:
            ax.axvline(end - size - 0.5, color=INK, linewidth=0.8, linestyle=":")
    elsewhere = np.flatnonzero(items.nearest.values[order] >= 0)
    ax.scatter(
        elsewhere,
        items.nearest_probability.values[order[elsewhere]],
        s=np.clip(room, 1.5, 5.0) ** 2,
        c=colours_of(items.nearest.values[order[elsewhere]]),
        edgecolors=INK,
        linewidths=0.6 if room > 4 else 0.0,
        zorder=2.5,
        clip_on=False,
    )
    ax.set(xlim=(-0.5, order.size - 0.5), ylim=(0, 1.02), xlabel=dim, ylabel="posterior probability")
    if not label_items(ax, "x", item_names(items.cluster.coords, dim, order.size)[order]):
        label_clusters(ax, "x", sizes)
    _add_legend(ax)
    ax.tick_params(axis="x", length=0, colors=INK)
    ax.tick_params(axis="y", colors=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _add_legend(ax: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries = [
        Patch(color="#777777", alpha=0.6, label="with own cluster"),
        Line2D([], [], linestyle="", marker="o", markersize=4, color="#777777", label="with nearest other"),
    ]
    ax.legend(
        handles=entries,
        frameon=False,
        fontsize="small",
        ncols=2 if extent(ax)[0] > 250 else 1,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
    )
