"""Each item's probabilities of the clusters as stacked bars."""

from __future__ import annotations

import numpy as np

from posterior_consensus.answers.membership import Membership
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.axes import (
    MOST_IN_ROW,
    MOST_NAMED,
    Axes,
    Size,
    add_legend,
    check_order,
    check_result,
    extent,
    label_row,
    label_some,
    new_axes,
    shortened,
    some_of,
    with_share,
)
from posterior_consensus.plots.colours import ink, is_patterned, patch_style, repeats

_MOST_CLUSTERS = 50  # parted by lines; the lines of more would cover the bars


def plot_membership(
    membership: Membership, *, order: str = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot each item's probabilities of the clusters as a bar in the clusters' colours.

    Parameters
    ----------
    membership : Membership
        What :func:`membership` gives.
    order : {"clusters", "data"}
        Items by cluster and, within it, the most probable first; or in the order of the data, as of time or along a
        genome. Then all bars have the clusters in one order.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `membership` is not a Membership.
    ValueError
        If `order` or `figsize` is invalid.

    Notes
    -----
    Population geneticists draw proportions of ancestry like this. Items stand by cluster and, within it, the most
    probable first, as lines between clusters show. The probability of the item's own cluster is at the bottom of its
    bar, the other clusters follow in their order, and "elsewhere" is grey at the top. Items are named where their names
    can be read at the size of the axes, else clusters are; in the order of the data, one of every few items is. After
    twenty colours come patterns. Of more than 20,000 items so many are drawn, at random, and the axis says so.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 2, 1, 1]]
    >>> ax = pc.plot_membership(pc.membership(draws, [0, 0, 0, 1, 1]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'elsewhere']
    """
    from matplotlib.patches import Patch

    check_result("membership", membership, Membership, "membership")
    by_data = check_order(order)
    n_items, dim = membership.cluster.size, str(membership.cluster.dims[0])
    at = some_of(n_items, MOST_IN_ROW, MOST_IN_ROW)
    cluster, own = membership.cluster.values, membership.own.values
    in_row = at if by_data else at[np.lexsort([-own[at], cluster[at]])]
    shares = membership.probabilities.values[in_row]
    home = np.full(at.size, -1) if by_data else cluster[in_row]  # at the bottom
    numbers, sizes = [*membership.numbers, -1], np.bincount(cluster[at], minlength=len(membership.numbers))
    ax = new_axes(ax, figsize, 7.2, 3.0)
    patterned = is_patterned(extent(ax)[0], sizes.size)
    edges, floor = np.arange(at.size + 1) - 0.5, np.zeros(at.size) if by_data else own[in_row]
    for k, number in enumerate(numbers):
        start = np.where(home == k, 0.0, floor)
        end = start + shares[:, k]
        ax.stairs(end, edges, baseline=start, fill=True, **patch_style(number, patterned))
        floor = np.where(home == k, floor, end)
    if sizes.size <= _MOST_CLUSTERS and not by_data:
        ax.vlines(np.cumsum(sizes)[:-1] - 0.5, 0, 1, colors=ink(), linewidths=0.8, linestyles=":")
    ax.set(xlim=(-0.5, at.size - 0.5), ylim=(0, 1), ylabel="posterior probability")
    ax.set_xlabel(with_share(dim, at.size, n_items))
    ax.tick_params(axis="x", length=0)
    names = [str(name) for name in membership.probabilities["consensus_cluster"].values]
    shown = Items.along(membership.cluster, dim).named(in_row)
    if by_data:
        label_some(ax, "x", shown)
    else:
        label_row(ax, "x", shown, (sizes, names[:-1]))
    ax.set_xlabel(ax.get_xlabel() + repeats(sizes.size, patterned))
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED]).tolist()
    looks = [(shortened(names[k], 24), patch_style(numbers[k], patterned)) for k in (*largest, -1)]
    add_legend(ax, [Patch(label=name, **style) for name, style in looks])
    return ax
