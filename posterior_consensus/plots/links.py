"""Links between items, and numbers of clusters by size."""

from typing import Any

import numpy as np

from posterior_consensus.answers.links import SURE, UNLIKELY, Links
from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import BARS, COLOURS, MARK, NEUTRAL, PRIOR, ink
from posterior_consensus.plots.frame import Axes, Grid, Size
from posterior_consensus.plots.rows import Places
from posterior_consensus.results.display import counted

_MOST_NAMED = 20  # links with names
_BINS = np.linspace(0.0, 1.0, 21)


def plot_links(links: Links, *, figsize: Size = None, axes: Any = None) -> Grid:
    """Plot the links by probability, and the most uncertain links with the names of their items.

    Parameters
    ----------
    links : Links
        The result of :func:`links`.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : sequence of two matplotlib.axes.Axes, optional
        Axes to plot on; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, of shape (1, 2)
        The axes with the plots.

    Raises
    ------
    TypeError
        If `links` is not a Links, or `axes` are not Axes.
    ValueError
        If there are not two `axes`.

    See Also
    --------
    links : Compute the links.
    plot_cluster_sizes : Plot the number of clusters of each size.

    Notes
    -----
    On the left, pairs are counted by probability on a logarithmic axis; pairs in different clusters of the partition
    are stacked on co-clustered pairs. On the right are at most 20 links with a probability from 0.05 to 0.95, the
    nearest to 1/2. Lines extend two Monte Carlo standard errors to either side. Names of more than 24 characters lose
    their middle.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 2], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
    >>> axes = pc.plot_links(pc.links(draws, [0, 0, 1, 2]))
    >>> [name.get_text() for name in axes[0, 1].get_yticklabels()]
    ['2 and 3', '0 and 1']
    """
    frame.check_result("links", links, Links, "links")
    grid = frame.grid_axes(axes, figsize, 1, 2, 10.0, 4.4)
    _draw_histogram(grid[0, 0], links)
    _draw_uncertain(grid[0, 1], links)
    return grid


def _draw_histogram(ax: Axes, links: Links) -> None:
    """Plot numbers of pairs by probability, within and between clusters of the partition."""
    probability, within = links.pairs["probability"].values, links.within
    parts = [probability[within], probability[~within]]
    names = ["in one cluster of the partition", "in different clusters"]
    ax.hist(parts, _BINS.tolist(), stacked=True, color=[COLOURS[0], COLOURS[1]], label=names)
    for edge in (UNLIKELY, SURE):
        ax.axvline(edge, color=ink(), linewidth=0.8, linestyle=":")
    if probability.size:
        ax.set_yscale("log")
        ax.set_ylim(0.8, None)
    ax.set(xlim=(0.0, 1.0), xlabel="probability of a link", ylabel=f"pairs with probability > {links.above:g}")
    frame.add_legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.0))


def _draw_uncertain(ax: Axes, links: Links) -> None:
    """Plot the links of probability nearest to 1/2, with their names."""
    items = Items.along(links.cluster, str(links.cluster.dims[0]))
    probability, within = links.pairs["probability"].values, links.within
    nearest = np.argsort(np.abs(probability - 0.5), kind="stable")
    nearest = nearest[(probability[nearest] >= UNLIKELY) & (probability[nearest] <= SURE)]
    shown = nearest[:_MOST_NAMED]
    shown = shown[np.argsort(probability[shown], kind="stable")]
    at, chance = np.arange(shown.size), probability[shown]
    error = frame.ERRORS * np.nan_to_num(links.pairs["mcse"].values[shown])
    ax.hlines(at, np.maximum(chance - error, 0.0), np.minimum(chance + error, 1.0), colors=NEUTRAL, linewidths=1.2)
    ax.scatter(chance, at, c=np.array(COLOURS[:2])[np.where(within[shown], 0, 1)], edgecolors=ink(), linewidths=0.6)
    ax.axvline(0.5, color=MARK, linewidth=0.8, linestyle="--", zorder=0.5)
    ends = np.stack([items.named(links.pairs[end].values[shown]) for end in ("first", "second")], axis=1)
    short = frame.short_names(ends.ravel(), frame.LONGEST)
    names = [" and ".join(pair) for pair in zip(short[::2], short[1::2], strict=True)]
    ax.set_yticks(at, names, fontsize=min(9.0, 160.0 / max(shown.size, 1)), parse_math=False)
    some = f"{shown.size} of " if shown.size < nearest.size else ""
    ax.set_title(f"{some}{counted(nearest.size, 'uncertain link')}", fontsize="medium")
    ax.set(xlim=(0.0, 1.0), xlabel="probability of a link", ylim=(-0.7, max(shown.size, 1) - 0.3))


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
    frame.check_result("links", links, Links, "links")
    ax = frame.new_axes(ax, figsize, 5.6, 3.4)
    table = links.sizes.isel(size=slice(None, -1))
    at = np.arange(table.sizes["size"])
    draw_means(ax, at, table["mean"].values, table["lower"].values, table["upper"].values, table["partition"].values)
    if table["prior"].notnull().all():
        ax.plot(at, table["prior"], "o", color=PRIOR, markersize=5, linestyle="", label="prior mean")
    ax.set_xticks(at, [str(size).replace(" or ", " or\n") for size in table["size"].values])
    frame.tick_integers(ax.yaxis)
    ax.set(xlabel="items per cluster", ylabel="number of clusters")
    frame.add_legend(ax, loc="upper right")
    return ax


def draw_means(ax: Axes, at: Places, mean: Floats, low: Any, high: Any, own: Any) -> None:
    """Plot bars of posterior means with intervals, and the partition's own numbers, at the first places."""
    ax.bar(at, mean, width=0.8, color=BARS, label="posterior mean")
    ax.vlines(at, low, high, colors=COLOURS[0], linewidths=2.5, label="central 90% interval")
    ax.plot(at[: own.size], own, "D", color=MARK, markersize=5, linestyle="", label="partition", clip_on=False)
    ax.set_ylim(0.0, None)
