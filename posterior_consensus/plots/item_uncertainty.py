"""The uncertainty of every item as a picture."""

from __future__ import annotations

import numpy as np

from posterior_consensus.answers.item_uncertainty import ItemUncertainty
from posterior_consensus.ensemble.items import numbers_of
from posterior_consensus.plots.axes import (
    MOST_IN_ROW,
    Axes,
    Size,
    check_result,
    extent,
    name_bars,
    new_axes,
    point,
    scatter_clusters,
    some_of,
)
from posterior_consensus.plots.colours import NEUTRAL, ink, is_patterned, patch_style


def plot_item_uncertainty(items: ItemUncertainty, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the mean posterior similarity of each item to the rest of its cluster, and to the nearest other cluster.

    Parameters
    ----------
    items : ItemUncertainty
        What :func:`item_uncertainty` gives.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
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
    Items stand by cluster and, within it, the most certain first. The bar, in the cluster's colour, is the mean
    similarity to the rest of the cluster; an item on its own has none. The point, in the other cluster's colour, is the
    mean similarity to that cluster: above the bar, the item would rather be there. After twenty colours come
    patterns, of points other shapes. Items are named where their names can be read at the size of the axes, else
    clusters are. Of more than 20,000 items so many are drawn, at random, and the axis says so.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.plot_item_uncertainty(pc.item_uncertainty(draws, [0, 0, 1, 1]))
    >>> ax.get_ylabel()
    'mean posterior similarity'
    """
    check_result("items", items, ItemUncertainty, "item_uncertainty")
    at = some_of(items.cluster.size, MOST_IN_ROW, MOST_IN_ROW)
    cluster, own = items.cluster.values, np.nan_to_num(items.probability.values)
    order = at[np.lexsort([np.nan_to_num(items.nearest_probability.values[at]), -own[at], cluster[at]])]
    ax = new_axes(ax, figsize, 7.2, 3.4)
    room = extent(ax)[0] / order.size  # points an item
    edges = np.arange(order.size + 1) - 0.5
    sizes = np.bincount(cluster[at], minlength=int(cluster.max()) + 1)
    ends = np.cumsum(sizes)
    patterned, numbers = is_patterned(extent(ax)[0], sizes.size), numbers_of(items.names)
    for k, size, end in zip(numbers.tolist(), sizes, ends, strict=True):
        rows = slice(end - size, end)
        ax.stairs(own[order[rows]], edges[end - size : end + 1], fill=True, alpha=0.6, **patch_style(k, patterned))
    elsewhere = np.flatnonzero(items.nearest.values[order] >= 0)
    nearest, height = (found.values[order[elsewhere]] for found in (items.nearest, items.nearest_probability))
    points = {"s": float(np.clip(room, 3.0, 5.0)) ** 2, "edgecolors": ink(), "linewidths": 0.6 if room > 4 else 0.2}
    scatter_clusters(ax, elsewhere, height, numbers[nearest], **points, zorder=2.5, clip_on=False)
    ax.set(ylim=(0, 1.02), ylabel="mean posterior similarity")
    name_bars(ax, items.cluster, order, sizes, [str(name) for name in items.names])
    _add_legend(ax)
    return ax


def _add_legend(ax: Axes) -> None:
    from matplotlib.patches import Patch

    entries = [
        Patch(color=NEUTRAL, alpha=0.6, label="with own cluster"),
        point("with nearest other", "o", NEUTRAL, markersize=4),
    ]
    ax.legend(
        handles=entries,
        frameon=False,
        fontsize="small",
        ncols=2 if extent(ax)[0] > 250 else 1,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
    )
