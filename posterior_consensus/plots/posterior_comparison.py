"""Plot of the differences between two posteriors: pairs of items, and items whose co-members differ most."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.compare import PosteriorComparison
from posterior_consensus.ensemble.items import Items, cluster_names
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import NEUTRAL, as_cmap, ink
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.plots.psm import draw_parted, item_order
from posterior_consensus.plots.rows import check_order, label_along
from posterior_consensus.runtime.arguments import check_count

_ERRORS = 2.0  # length of error bars in standard errors
_LEAST_SCALE = 0.05  # smaller differences must not look large


def plot_posterior_comparison(
    comparison: PosteriorComparison,
    partition: Any = None,
    *,
    order: Any = "clusters",
    n_items: int = 12,
    cmap: Any = "RdBu_r",
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot the difference between two similarity matrices, and the items whose co-members differ most.

    Parameters
    ----------
    comparison : PosteriorComparison
        The result of :func:`compare_posteriors`.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition that orders the items, typically the consensus of either posterior; lines separate at most 30
        clusters. Without it, items are ordered by average linkage on the mean of the two matrices.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, as in the data, or along a coordinate of the items (its name or its values),
        such as time or position along a genome.
    n_items : int
        Number of items to show in the second plot.
    cmap : str or matplotlib.colors.Colormap
        Colours from pairs that are co-clustered more often in the first posterior, through pairs without a difference,
        to pairs that are co-clustered more often in the second.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        Two axes, for the matrix and for the items; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2,)
        The colour bar is ``axes[0].images[0].colorbar``.

    Raises
    ------
    TypeError
        If `comparison` is not a PosteriorComparison, or `axes` are not Axes.
    ValueError
        If `partition`, `n_items`, `cmap` or `figsize` are invalid, or there are not two `axes`.

    See Also
    --------
    compare_posteriors : Compute the comparison.

    Notes
    -----
    Error bars are two Monte Carlo standard errors. Grey strokes are the differences expected from Monte Carlo errors
    alone.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> a, b = [[0, 0, 0, 1], [0, 0, 1, 1]] * 8, [[0, 0, 1, 1]] * 16
    >>> axes = pc.plot_posterior_comparison(pc.compare_posteriors(a, b, n_particles=1, random_seed=1))
    >>> [text.get_text() for text in axes[1].get_yticklabels()]
    ['2', '0', '1', '3']
    """
    frame.check_result("comparison", comparison, PosteriorComparison, "compare_posteriors")
    check_count("n_items", n_items)
    colours = as_cmap(cmap)
    difference = comparison.difference
    items = Items.along(difference, str(difference.dims[0]))
    labels = np.zeros(items.n_items, np.int32) if partition is None else items.as_labels(partition)
    grid = frame.grid_axes(axes, figsize, 1, 2, 9.6, 4.4, width_ratios=(1.25, 1.0), framed=True).ravel()
    along = check_order(order, items)
    mean = comparison.similarity.mean("posterior").values
    in_row = item_order(mean, labels, None if along is None else along.rank)
    _draw_matrix(grid[0], difference.values[np.ix_(in_row, in_row)], labels[in_row], colours, comparison.names)
    grid[0].set(xlabel=items.dim, ylabel=items.dim)
    clusters = None
    if partition is not None and along is None:
        clusters = np.bincount(labels), [str(name) for name in cluster_names(partition, items.in_order(partition))]
    if along is None:
        frame.label_row(grid[0], "xy", items.names[in_row], clusters)
    else:
        label_along(grid[0], "xy", along, items, in_row)
    grid[0].tick_params(length=0)
    _draw_items(grid[1], comparison, n_items)
    return grid


def _draw_matrix(
    ax: Axes, values: npt.NDArray[np.float64], labels: npt.NDArray[np.int32], colours: Any, names: tuple[str, str]
) -> None:
    most = max(_LEAST_SCALE, float(np.abs(values).max()))
    image = draw_parted(ax, values, labels, colours, -most, most)
    first, second = frame.short_names(names, frame.LONGEST)
    frame.add_colour_bar(ax, image, f"co-clustering probability,\n{second} minus {first}")


def _draw_items(ax: Axes, comparison: PosteriorComparison, n_items: int) -> None:
    table = comparison.to_dataframe().head(n_items)
    places = np.arange(len(table))
    errors = _ERRORS * table["mcse"].fillna(0.0).to_numpy()
    ax.errorbar(table["difference"], places, xerr=errors, fmt="o", color=ink(), elinewidth=1.0, capsize=2, markersize=4)
    ax.plot(table["by_chance"], places, "|", color=NEUTRAL, markersize=9, markeredgewidth=2.0, label="by chance alone")
    ax.set_yticks(places, frame.short_names(table.index, frame.LONGEST), fontsize="small", parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set(xlabel="mean absolute difference of\nits co-clustering probabilities", ylabel=str(table.index.name or ""))
    ax.spines[["top", "right"]].set_visible(False)
    frame.add_legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))
