"""Dendrogram of a partition's clusters, merged at least expected loss."""

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.n_clusters import ClusterMerges
from posterior_consensus.ensemble.items import numbers_of
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import ink
from posterior_consensus.plots.frame import Axes, Size

Floats = npt.NDArray[np.float64]


def plot_dendrogram(merges: ClusterMerges, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    r"""Plot the merges of a partition's clusters as a dendrogram of expected losses.

    Parameters
    ----------
    merges : ClusterMerges
        Result of :func:`cluster_merges`.
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
        If `merges` is not a ClusterMerges.
    ValueError
        If `figsize` is invalid.

    See Also
    --------
    cluster_merges : Compute the merges.

    Notes
    -----
    Leaves are the clusters of the partition, at its expected loss. Clusters that merge low are hardly separated by the
    posterior; a long branch is a distinct cluster. If a merge lowers the loss, its bar is below the previous bar, and
    branches cross it.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1, 2], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 2]]
    >>> ax = pc.plot_dendrogram(pc.cluster_merges(draws, [0, 0, 1, 1, 2], loss="binder"))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['0\n(n = 2)', '1\n(n = 2)', '2\n(n = 1)']
    """
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import NullLocator

    frame.check_result("merges", merges, ClusterMerges, "cluster_merges")
    joined = merges.table[["first", "second"]].to_array().values.T[1:]
    losses = merges.table["expected_loss"].values
    leaves = _leaves(joined)
    x, y, bars = _places(joined, losses, leaves)
    ax = frame.new_axes(ax, figsize, 5.8, 3.8)
    ax.add_collection(LineCollection(bars, colors=ink(), linewidths=1.2))
    frame.scatter_clusters(ax, x[leaves], y[leaves], numbers_of(merges.names)[leaves], s=50, zorder=3, clip_on=False)
    ax.autoscale_view()
    ax.set(xlim=(-0.7, leaves.size - 0.3), xlabel="clusters")
    ax.set_ylabel(frame.with_unit(f"expected {merges.loss.name}", merges.loss.unit))
    ax.spines["bottom"].set_visible(False)
    sizes, names = np.bincount(merges.partitions[0].values), frame.short_names([merges.names[k] for k in leaves], 12)
    if leaves.size <= frame.MOST_NAMED:
        captions = [f"{name}\n(n = {sizes[k]})" for name, k in zip(names, leaves, strict=True)]
        ax.set_xticks(range(leaves.size), captions, fontsize="small", parse_math=False)
    elif not frame.label_items(ax, "x", np.array(names)):
        ax.xaxis.set_major_locator(NullLocator())
    ax.tick_params("x", length=0)
    return ax


def _leaves(joined: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The clusters in an order without crossing branches."""
    n_clusters = len(joined) + 1
    below = [[k] for k in range(n_clusters)]
    for first, second in joined:
        below.append(below[first] + below[second])
    return np.array(below[-1])


def _places(
    joined: npt.NDArray[np.int64], losses: Floats, leaves: npt.NDArray[np.int64]
) -> tuple[Floats, Floats, list[Floats]]:
    """Positions of clusters and unions, and the lines that join them."""
    x, y = np.empty(2 * leaves.size - 1), np.empty(2 * leaves.size - 1)
    x[leaves], y[: leaves.size] = np.arange(leaves.size), losses[0]
    bars = []
    for made, ((first, second), loss) in enumerate(zip(joined, losses[1:], strict=True), leaves.size):
        x[made], y[made] = (x[first] + x[second]) / 2, loss
        ends = [(x[first], y[first]), (x[first], loss), (x[second], loss), (x[second], y[second])]
        bars.append(np.array(ends))
    return x, y, bars
