"""Plots of experts' reliability by view, and of the clusters of each view."""

from typing import Any

import numpy as np

from posterior_consensus.answers.partition_loss import partition_loss
from posterior_consensus.ensemble.items import Items
from posterior_consensus.experts.views import ExpertViews
from posterior_consensus.plots.colours import NEUTRAL, chain_colour, ink
from posterior_consensus.plots.frame import LONGEST, Axes, Size, check_result, in_small_print, new_axes, short_names
from posterior_consensus.plots.grammar import legend_above, line, point, say
from posterior_consensus.plots.strips import HEIGHT, draw_numbered
from posterior_consensus.results.display import counted

_MEASURES = {"sensitivity": ("o", -0.14), "specificity": ("D", 0.14)}  # marker, and offset from the expert's line


@in_small_print
def plot_experts(views: ExpertViews, *, prob: float = 0.9, figsize: Size = None, ax: Axes | None = None) -> Axes:
    """Plot the reliability of each expert by view: sensitivity and specificity with posterior intervals.

    Parameters
    ----------
    prob : float
        Probability of the intervals.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    See Also
    --------
    experts.expert_views : Fit the views.
    experts.plot_expert_views : Plot the partition of each view.

    Notes
    -----
    Experts are ordered by view, then by weight, which follows their names. Experts no better than chance, whose
    sensitivity and specificity together hardly exceed 1, are grey.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> one, other = [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]
    >>> experts = {"Ann": one, "Bo": one, "Cy": other, "Di": other}
    >>> found = pc.experts.expert_views(pc.experts.as_constraints(experts), n_clusters=2, random_seed=1)
    >>> ax = found.plot()
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['Ann (6.8)', 'Bo (6.8)', 'Cy (6.8)', 'Di (6.8)']
    """
    intervals = views.intervals(prob)
    of_expert, weight = views.expert_view.values, views.expert_weight.values
    sure = views.informative.values
    order = np.lexsort((-weight, of_expert, ~sure))
    ax = new_axes(ax, figsize, 6.2, 2.0 + 0.28 * len(order))
    for measure, (marker, aside) in _MEASURES.items():
        means, ends = getattr(views, measure).values, intervals[measure].values
        for row, expert in enumerate(order):
            colour = chain_colour(int(of_expert[expert]), views.n_views) if sure[expert] else NEUTRAL
            ax.plot(ends[expert], [row + aside] * 2, color=colour, linewidth=1.4)
            ax.plot(means[expert], row + aside, marker, color=colour, markersize=4.5)
    names = short_names(views.view_probability["expert"].values[order], LONGEST)
    captions = [f"{name} ({weight[k]:.1f})" for name, k in zip(names, order, strict=True)]
    ax.set_yticks(np.arange(len(order)), captions, fontsize="small")
    ax.set(
        ylim=(len(order) - 0.4, -0.6),
        xlabel=f"sensitivity or specificity, posterior mean and {intervals.prob:.0%} interval",
        ylabel="expert (weight: log odds, 0 by chance)",
    )
    chance = f"{(~sure).sum():,} of {counted(sure.size, 'expert')} no better than chance"
    say(ax, f"{counted(views.n_views, 'view')}, {chance}")
    _explain(ax, views, sure)
    return ax


def _alike_in_words(views: ExpertViews, sizes: list[int]) -> str:
    """How much the clusters of the views have in common, by the adjusted Rand index."""
    if len(sizes) == 1:
        return f"one view, of {counted(sizes[0], 'cluster')}"
    pairs = np.triu_indices(len(sizes), 1)
    alike = 1.0 - np.asarray(partition_loss(views.labels.values, loss="one_minus_ari"))[pairs]
    first = f"{alike[0]:.2f}".replace("-", "\N{MINUS SIGN}")
    if len(sizes) == 2 and alike[0] <= 0:
        return f"the two views have nothing in common beyond chance: adjusted Rand index {first}"
    if len(sizes) == 2:
        return f"adjusted Rand index of the two views: {first} (by chance: 0)"
    at = int(alike.argmax())
    which = f"{pairs[0][at]} and {pairs[1][at]}"
    return f"most alike are the views {which}: adjusted Rand index {alike[at]:.2f} (by chance: 0)"


def _explain(ax: Axes, views: ExpertViews, sure: Any) -> None:
    """Add a legend of markers and colours."""
    from matplotlib.lines import Line2D

    shown = [point(measure, marker, ink(), markersize=4.5) for measure, (marker, _) in _MEASURES.items()]
    shown.extend(
        Line2D([], [], color=chain_colour(int(view), views.n_views), linewidth=3, label=f"view {view}")
        for view in np.unique(views.expert_view.values[sure])
    )
    if not sure.all():
        shown.append(Line2D([], [], color=NEUTRAL, linewidth=3, label="no better than chance (sum about 1)"))
    legend_above(ax, shown)


@in_small_print
def plot_expert_views(
    views: ExpertViews, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the partition of each view as a strip of items, with the items' uncertainty.

    Parameters
    ----------
    views : ExpertViews
        Result of :func:`experts.expert_views`.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster of the first view, as in the data, or along a coordinate of the items (its name
        or its values), such as time or position along a genome.
    figsize, ax : (float, float) and matplotlib.axes.Axes, optional
        Width and height of a new figure in inches, or the axes to plot on.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `views` is not an ExpertViews.
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    experts.expert_views : Fit the views.
    plot_alluvial : Plot the common items of the views' clusters.

    Notes
    -----
    Items are ordered by their cluster in the first view, then in each of the others. No cluster of one
    view has the colour of another view's cluster, as they are different clusters. The line across a strip has the
    height of the probability of an item's most probable cluster, from 0 at the bottom to 1 at the top.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> one, other = [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]
    >>> experts = {"Ann": one, "Bo": one, "Cy": other, "Di": other}
    >>> found = pc.experts.expert_views(pc.experts.as_constraints(experts), n_clusters=2, random_seed=1)
    >>> ax = pc.experts.plot_expert_views(found)
    >>> [tick.get_text().replace(chr(10), ", ") for tick in ax.get_yticklabels()]
    ['view 0: 2 clusters, 2 experts', 'view 1: 2 clusters, 2 experts']
    """
    check_result("views", views, ExpertViews, "expert_views")
    sharing = np.bincount(views.expert_view.values, minlength=views.n_views)
    sizes = [np.unique(row).size for row in views.labels.values]
    captions = [
        f"view {view}: {counted(size, 'cluster')}\n{counted(int(number), 'expert')}"
        for view, (size, number) in enumerate(zip(sizes, sharing, strict=True))
    ]
    ax = new_axes(ax, figsize, 7.2, 1.2 + 0.5 * len(captions))
    items, starts = Items.along(views.labels[0], str(views.labels.dims[1])), np.cumsum([0, *sizes[:-1]])
    strips = list(views.labels.values + starts[:, np.newaxis].astype(np.int32))  # clusters of their own in each view
    names = [str(k) for size in sizes for k in range(size)]
    shown = draw_numbered(ax, items, strips, names, captions, "cluster of the first view", order)
    edges, own = np.arange(shown.size + 1) - 0.5, views.memberships.max(views.memberships.dims[-1:]).values
    say(ax, _alike_in_words(views, sizes))
    legend_above(ax, [line("probability of the item's cluster, 0 to 1", ink())])
    style: dict[str, Any] = {"fontsize": "small", "va": "center", "textcoords": "offset points"}
    for view, probability in enumerate(own[:, shown]):
        for end, y in (("1", view - HEIGHT), ("0", view + HEIGHT)):
            ax.annotate(end, (1.0, y), (3, 0), ax.get_yaxis_transform(), **style)
        ax.stairs(view + HEIGHT - 2 * HEIGHT * probability, edges, baseline=None, color=ink(), linewidth=1.0)
    return ax
