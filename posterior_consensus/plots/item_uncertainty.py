"""Plot of the uncertainty of every item."""

from typing import Any

import numpy as np

from posterior_consensus.answers.membership import ItemUncertainty
from posterior_consensus.ensemble.items import Items, numbers_of
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import NEUTRAL, ink, patch_style
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.plots.rows import item_row, name_row


def plot_item_uncertainty(
    items: ItemUncertainty, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the mean posterior similarity of each item to the rest of its cluster, and to the nearest other cluster.

    Parameters
    ----------
    items : ItemUncertainty
        Result of :func:`item_uncertainty`.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, the most certain item of each first; as in the data; or along a coordinate of
        the items (its name or its values), such as time or position along a genome.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `items` is not an ItemUncertainty.
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    item_uncertainty : Compute the similarities.
    plot_membership : Plot the probabilities of clusters for each item.

    Notes
    -----
    The bar, in the cluster's colour, is the mean similarity to the rest of the cluster; an item alone in its cluster
    has none. The point, in the other cluster's colour, is the mean similarity to that cluster. If it is above the bar,
    the item is more similar to the other cluster than to its own. Beyond twenty colours, bars have patterns and points
    other shapes. Items are named if the axes have room for their names, else clusters or values of the coordinate. In
    the order of clusters, the axis needs 12 points per cluster. With less, it shows the largest clusters and those with
    the lowest mean similarity, with at most six evenly spaced items each. Beyond 20,000 items, a random sample of
    20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.plot_item_uncertainty(pc.item_uncertainty(draws, [0, 0, 1, 1]))
    >>> ax.get_ylabel()
    'mean posterior similarity'
    """
    from matplotlib.patches import Patch

    frame.check_result("items", items, ItemUncertainty, "item_uncertainty")
    cluster, single = items.cluster.values, np.isnan(items.similarity.values)
    own, other = np.nan_to_num(items.similarity.values), np.nan_to_num(items.nearest_similarity.values)
    numbers = numbers_of(items.names)
    ax = frame.new_axes(ax, figsize, 7.2, 3.4)
    along = Items.along(items.cluster, str(items.cluster.dims[0]))
    row = item_row(ax, along, cluster, order, then=[-own, other], certainty=np.where(single, 1 - other, own))
    here, heights = cluster[row.at], own[row.at]
    edges = np.arange(row.at.size + 1) - 0.5
    for k in row.clusters:
        (places,) = np.nonzero(here == k)
        span = slice(places[0], places[-1] + 1)
        bars = np.where(here[span] == k, heights[span], np.nan)
        ax.stairs(
            bars, edges[span.start : span.stop + 1], fill=True, alpha=0.6, **patch_style(numbers[k], row.patterned)
        )
    elsewhere = np.flatnonzero(items.nearest.values[row.at] >= 0)
    nearest, height = items.nearest.values[row.at][elsewhere], other[row.at][elsewhere]
    room = frame.extent(ax)[0] / row.at.size  # points per item
    points = {"s": float(np.clip(room, 3.0, 5.0)) ** 2, "edgecolors": ink(), "linewidths": 0.6 if room > 4 else 0.2}
    frame.scatter_clusters(ax, elsewhere, height, numbers[nearest], **points, zorder=2.5, clip_on=False)
    ax.set(ylim=(0, 1.02), ylabel="mean posterior similarity")
    name_row(ax, row, [str(name) for name in items.names])
    bar, dot = (
        Patch(color=NEUTRAL, alpha=0.6, label="with own cluster"),
        frame.point("with nearest other", "o", NEUTRAL, markersize=4),
    )
    frame.add_legend(
        ax, [bar, dot], loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2 if frame.extent(ax)[0] > 250 else 1
    )
    return ax
