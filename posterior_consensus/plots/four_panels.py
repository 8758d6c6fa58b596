"""Figure of four panels for a paper: clusters, or links if clusters are small."""

from typing import Any

import numpy as np

from posterior_consensus.answers.credible import CredibleBall
from posterior_consensus.answers.links import Links
from posterior_consensus.answers.loss_parameter import LossPath
from posterior_consensus.answers.membership import ItemUncertainty
from posterior_consensus.answers.scored_links import ScoredLinks
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.plots.frame import (
    Axes,
    Grid,
    Size,
    Width,
    extent,
    font_of_names,
    new_axes,
    panels,
    tick_integers,
)
from posterior_consensus.plots.grammar import add_legend, legend_above, mark_limit, say
from posterior_consensus.plots.items import plot_item_uncertainty
from posterior_consensus.plots.links import (
    draw_against,
    draw_closest,
    draw_means,
    draw_scores,
    draw_sizes,
    plot_cluster_sizes,
    plot_links,
)
from posterior_consensus.plots.n_clusters import plot_n_clusters
from posterior_consensus.plots.paths import draw_precision_and_recall
from posterior_consensus.plots.psm import plot_psm
from posterior_consensus.plots.strips import plot_credible_ball
from posterior_consensus.results.display import counted

_ABOVE_AXIS = 10.0  # points from the upper axis to the title


def four_panels(
    draws: Any,
    partition: Any,
    ball: CredibleBall,
    items: ItemUncertainty,
    *,
    order: Any = "clusters",
    figsize: Size = None,
    width: Width = None,
) -> Grid:
    """Plot similarity matrix, number or sizes of clusters, credible ball and item uncertainty, lettered."""
    with panels(figsize, width, (11.0, 8.2), (64.0, 48.0, 56.0, 52.0), height_ratios=(1.25, 1.0)) as axes:
        a, b, c, d = axes.ravel().tolist()
        a.set_anchor("NW")  # in line with the panels below and beside
        plot_psm(draws, partition, order=order, ax=a)
        number_or_sizes(draws, partition, ax=b)
        if b.get_legend():
            legend_above(b)
        plot_credible_ball(ball, order=order, ax=c)
        plot_item_uncertainty(items, order=order, ax=d)
        return _lettered(axes)


def number_or_sizes(draws: PartitionDraws, partition: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the number of clusters or, if it is the same in all draws, their sizes."""
    number = int(draws.n_clusters[0])
    if draws.has_noise or draws.lacks_items or np.any(draws.n_clusters != number):
        return plot_n_clusters(draws, partition, ax=ax)
    sizes, own = -np.sort(-draws.backend.sizes.reshape(-1, number)), -np.sort(-np.bincount(draws.as_labels(partition)))
    sizes = np.pad(sizes, ((0, 0), (0, max(0, own.size - number))))  # a consensus may have more clusters than the draws
    low, high = np.quantile(sizes, [0.05, 0.95], axis=0, weights=draws.weights, method="inverted_cdf")
    ax = new_axes(ax, None, 5.6, 3.4)
    mean, name = draws.samples.mean(sizes.T.astype(np.float64)), draws.samples.words.mean
    draw_means(ax, np.arange(1, sizes.shape[1] + 1), mean, low, high, own, name)
    tick_integers(ax.xaxis)
    ax.set(xlabel="cluster, the largest first", ylabel="items")
    say(ax, f"Every {draws.samples.words.draw} has {counted(number, 'cluster')}.")
    add_legend(ax, loc="upper right")
    return ax


def link_panels(draws: Any, links: Links, *, figsize: Size = None, width: Width = None) -> Grid:
    """Plot sizes and number of clusters, links by similarity and the most uncertain links, lettered."""
    with panels(figsize, width, (11.0, 8.2), (48.0, 48.0, 52.0, 72.0), height_ratios=(1.0, 1.2)) as axes:
        a, b, c, d = axes.ravel().tolist()
        plot_cluster_sizes(links, ax=a)
        legend_above(a)
        plot_n_clusters(draws, links.cluster, ax=b)
        if b.get_legend():
            legend_above(b)
        plot_links(links, axes=(c, d))
        return _lettered(axes)


def pair_panels(links: ScoredLinks, curve: LossPath | None, *, figsize: Size = None, width: Width = None) -> Grid:
    """Plot cluster sizes, pairs by score, precision and recall along the threshold, and closest calls, lettered.

    Without a curve, the third panel has the pairs that are decided against their score.
    """
    with panels(figsize, width, (11.0, 8.6), (46.0, 52.0, 60.0, 62.0)) as axes:
        a, b, c, d = axes.ravel().tolist()
        draw_sizes(a, links)
        draw_scores(b, links)
        if curve is None:
            draw_against(c, links)
        else:
            _draw_curve(c, curve, links.tau)
        draw_closest(d, links)
        return _lettered(axes)


def _draw_curve(ax: Axes, curve: LossPath, tau: float) -> None:
    """Plot expected precision and recall against the pair threshold, with the numbers of clusters above."""
    table = curve.table
    at = table["tau"].values
    draw_precision_and_recall(ax, at, table)
    above = ax.secondary_xaxis("top")
    numbers = [str(number) for number in table["n_clusters"].values]
    upright = 45 if font_of_names() * max(map(len, numbers)) > extent(ax)[0] / len(numbers) else 0
    above.set_xticks(at, numbers, fontsize="small", rotation=upright)
    above.set_xlabel("number of clusters")
    above.spines[:].set_visible(False)
    above.tick_params(length=0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.03), xlabel="pair threshold", ylabel="expected share of pairs")
    mark_limit(ax, tau, f"threshold: {tau:.3g}", at=0.0)
    if (here := np.flatnonzero(np.isclose(at, tau))).size:
        shares = (f"{name} {float(table[name][here[0]]):.2f}" for name in ("precision", "recall"))
        say(ax, f"expected {' and '.join(shares)} at {tau:.3g}", pad=_ABOVE_AXIS)


def _lettered(axes: Grid) -> Grid:
    for letter, ax in zip("abcd", axes.ravel().tolist(), strict=True):
        corner = {"xy": (0, 1), "xycoords": "axes fraction", "xytext": (-3.0, 0.6), "textcoords": "offset fontsize"}
        ax.annotate(letter, **corner, fontsize="large", fontweight="bold")
    return axes
