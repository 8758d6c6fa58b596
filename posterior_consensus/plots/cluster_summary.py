"""Plot of the parameters of clusters."""

from typing import Any

import numpy as np

from posterior_consensus.answers.cluster_summary import ClusterSummary
from posterior_consensus.plots.colours import colours_of, ink
from posterior_consensus.plots.frame import Axes, Size, check_result, extent, new_axes, scatter_clusters
from posterior_consensus.sources.locations import listing

_MOST_LABELLED = 40  # clusters with labels


def plot_cluster_summary(
    clusters: ClusterSummary, parameter: str | None = None, *, figsize: Size = None, ax: Any = None
) -> Axes:
    """Plot a parameter of each cluster, with its 50% and 90% intervals.

    Parameters
    ----------
    clusters : ClusterSummary
        The result of :func:`cluster_summary`, with parameters.
    parameter : str, optional
        Name of the parameter, such as "mu" or "mu[petal length]". By default the first.
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
        If `clusters` is not a ClusterSummary, or `ax` not an Axes.
    ValueError
        If there is no parameter of this name, or none at all, or `figsize` is invalid.

    See Also
    --------
    cluster_summary : Compute the summary.

    Notes
    -----
    Points are means. Intervals are between quantiles of the draws in which all clusters occur. Labels on the left have
    each cluster's number n of assigned items, and the probability p that they are co-clustered.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> labels, mu = [[0, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 1]], [[1.0, 8.0], [8.2, 1.2], [1.4, 8.1]]
    >>> ax = pc.plot_cluster_summary(pc.cluster_summary(labels, [0, 0, 1, -1], mu=mu))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0 (n = 2, p = 1)', '1 (n = 1, p = 1)']
    """
    check_result("clusters", clusters, ClusterSummary, "cluster_summary")
    if clusters.parameters is None:
        raise ValueError("`clusters` must have parameters; give them, as in cluster_summary(draws, partition, mu=mu).")
    names = clusters.parameters["parameter"].values.tolist()
    if parameter is not None and parameter not in names:
        raise ValueError(f"`parameter` must be one of {listing(names)}; got {parameter!r}.")
    own = clusters.parameters.sel(parameter=names[0] if parameter is None else parameter)
    n = clusters.n_clusters
    ax = new_axes(ax, figsize, 5.6, float(np.clip(1.2 + 0.26 * n, 2.2, 9.0)))
    rows = np.arange(n)
    colours = colours_of(clusters.numbers)
    low, lower, _, upper, high = own["quantiles"].transpose("quantile", "cluster").values
    room = extent(ax)[1] / n  # points per cluster
    ax.hlines(rows, low, high, colors=colours, linewidth=min(1.2, room / 3))
    ax.hlines(rows, lower, upper, colors=colours, linewidth=min(4.0, room / 2))
    style = {"s": min(6.0, room) ** 2, "edgecolors": ink(), "linewidths": 0.6}
    scatter_clusters(ax, own["mean"].values, rows, clusters.numbers, zorder=2.5, **style)
    sizes, names = clusters.sizes, clusters.clusters["cluster"].values
    shown = rows[:: -(-n // _MOST_LABELLED)]
    shares = clusters.clusters["probability"].values
    ax.set_yticks(
        shown,
        [f"{names[k]} (n = {sizes[k]}, p = {shares[k]:.2g})" for k in shown],
        fontsize=min(9.0, 0.9 * room * (n / len(shown))),
        parse_math=False,
    )
    ax.set(ylim=(n - 0.5, -0.5), xlabel=str(own["parameter"].values), ylabel="cluster")
    return ax
