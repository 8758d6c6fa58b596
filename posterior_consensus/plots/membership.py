"""Each item's probabilities of the clusters as stacked bars."""

from __future__ import annotations

import numpy as np

from posterior_consensus.answers.membership import Membership
from posterior_consensus.plots.axes import (
    MOST_IN_ROW,
    MOST_NAMED,
    Axes,
    Size,
    add_legend,
    check_order,
    check_result,
    extent,
    name_bars,
    new_axes,
    shortened,
    some_of,
)
from posterior_consensus.plots.colours import is_patterned, patch_style


def plot_membership(
    membership: Membership, *, order: str = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot each item's probabilities of the clusters as a stacked bar.

    Parameters
    ----------
    membership : Membership
        The result of :func:`membership`.
    order : {"clusters", "data"}
        Order of the items: by cluster and, within it, the most probable first; or the order of the data, such as time
        or position along a genome.
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
    Population geneticists plot proportions of ancestry in this way. Sorted by cluster, an item's own cluster is at the
    bottom of its bar, the other clusters follow in their order, and "elsewhere" is grey at the top; lines separate
    clusters. In the order of the data, the clusters have one order in all bars. Items are named if the axes have room
    for their names, else clusters are named; in the order of the data, one in every few items is named. Beyond twenty
    colours, patterns are added. Beyond 20,000 items, a random sample of 20,000 is shown, and the axis label notes it.

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
    at = some_of(membership.cluster.size, MOST_IN_ROW, MOST_IN_ROW)
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
    ax.set(ylim=(0, 1), ylabel="posterior probability")
    names = [str(name) for name in membership.probabilities["consensus_cluster"].values]
    name_bars(ax, membership.cluster, in_row, sizes, names[:-1], by_data)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED]).tolist()
    looks = [(shortened(names[k], 24), patch_style(numbers[k], patterned)) for k in (*largest, -1)]
    add_legend(ax, [Patch(label=name, **style) for name, style in looks])
    return ax
