"""Plot of links: number of pairs by probability, and the most uncertain links."""

from typing import Any

import numpy as np

from posterior_consensus.answers.links import SURE, UNLIKELY, Links
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.colours import COLOURS, MARK, NEUTRAL, ink
from posterior_consensus.plots.frame import LONGEST, Axes, Grid, Size, add_legend, check_result, grid_axes, short_names
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
    check_result("links", links, Links, "links")
    grid = grid_axes(axes, figsize, 1, 2, 10.0, 4.4)
    draw_histogram(grid[0, 0], links)
    draw_uncertain(grid[0, 1], links)
    return grid


def draw_histogram(ax: Axes, links: Links) -> None:
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
    add_legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.0))


def draw_uncertain(ax: Axes, links: Links) -> None:
    """Plot the links of probability nearest to 1/2, with their names."""
    items = Items.along(links.cluster, str(links.cluster.dims[0]))
    probability, within = links.pairs["probability"].values, links.within
    nearest = np.argsort(np.abs(probability - 0.5), kind="stable")
    nearest = nearest[(probability[nearest] >= UNLIKELY) & (probability[nearest] <= SURE)]
    shown = nearest[:_MOST_NAMED]
    shown = shown[np.argsort(probability[shown], kind="stable")]
    at, chance = np.arange(shown.size), probability[shown]
    error = 2 * np.nan_to_num(links.pairs["mcse"].values[shown])
    ax.hlines(at, np.maximum(chance - error, 0.0), np.minimum(chance + error, 1.0), colors=NEUTRAL, linewidths=1.2)
    ax.scatter(chance, at, c=np.array(COLOURS[:2])[np.where(within[shown], 0, 1)], edgecolors=ink(), linewidths=0.6)
    ax.axvline(0.5, color=MARK, linewidth=0.8, linestyle="--", zorder=0.5)
    ends = np.stack([items.named(links.pairs[end].values[shown]) for end in ("first", "second")], axis=1)
    short = short_names(ends.ravel(), LONGEST)
    names = [" and ".join(pair) for pair in zip(short[::2], short[1::2], strict=True)]
    ax.set_yticks(at, names, fontsize=min(9.0, 160.0 / max(shown.size, 1)), parse_math=False)
    some = f"{shown.size} of " if shown.size < nearest.size else ""
    ax.set_title(f"{some}{counted(nearest.size, 'uncertain link')}", fontsize="medium")
    ax.set(xlim=(0.0, 1.0), xlabel="probability of a link", ylim=(-0.7, max(shown.size, 1) - 0.3))
