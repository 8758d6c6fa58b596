"""Plot of the numbers of clusters by size."""

from typing import Any

import numpy as np

from posterior_consensus.answers.links import Links
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.plots.colours import BARS, COLOURS, MARK, PRIOR
from posterior_consensus.plots.frame import Axes, Size, add_legend, check_result, new_axes, tick_integers
from posterior_consensus.plots.rows import Places


def plot_cluster_sizes(links: Links, *, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the number of clusters of each size: posterior, partition and, if given, prior.

    Parameters
    ----------
    links : Links
        The result of :func:`links`.
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
        If `links` is not a Links, or `ax` is not an Axes.

    See Also
    --------
    links : Compute the links.
    plot_links : Plot the links by probability.

    Notes
    -----
    Bars are posterior means, and lines extend from the 5% to the 95% quantile. Diamonds are the numbers in the
    partition, and points the prior means.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 2], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> ax = pc.plot_cluster_sizes(pc.links(draws, [0, 0, 1, 2]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [2.0, 1.0]
    """
    check_result("links", links, Links, "links")
    ax = new_axes(ax, figsize, 5.6, 3.4)
    table = links.sizes.isel(size=slice(None, -1))
    at = np.arange(table.sizes["size"])
    draw_means(ax, at, table["mean"].values, table["lower"].values, table["upper"].values, table["partition"].values)
    if table["prior"].notnull().all():
        ax.plot(at, table["prior"], "o", color=PRIOR, markersize=5, linestyle="", label="prior mean")
    ax.set_xticks(at, [str(size).replace(" or ", " or\n") for size in table["size"].values])
    tick_integers(ax.yaxis)
    ax.set(xlabel="items per cluster", ylabel="number of clusters")
    add_legend(ax, loc="upper right")
    return ax


def draw_means(ax: Axes, at: Places, mean: Floats, low: Any, high: Any, own: Any) -> None:
    """Plot bars of posterior means with intervals, and the partition's own numbers, at the first places."""
    ax.bar(at, mean, width=0.8, color=BARS, label="posterior mean")
    ax.vlines(at, low, high, colors=COLOURS[0], linewidths=2.5, label="central 90% interval")
    ax.plot(at[: own.size], own, "D", color=MARK, markersize=5, linestyle="", label="partition", clip_on=False)
    ax.set_ylim(0.0, None)
