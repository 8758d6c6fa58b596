"""Stacked bars of each item's probabilities of the clusters."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.membership import Membership
from posterior_consensus.answers.membership import membership as membership_of
from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.partitions import HasDraws
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import patch_style
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.plots.rows import item_row, name_row


def plot_membership(
    membership: Membership | HasDraws, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot each item's probabilities of the clusters as a stacked bar.

    Parameters
    ----------
    membership : Membership or Summary
        The result of :func:`membership` or :func:`predict_allocation`, or of :func:`summarize`, with the consensus.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, the most probable item of each first; as in the data; or along a coordinate of
        the items (its name or its values), such as time or position along a genome.
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
        If `membership` is not a Membership.
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    membership : Compute the probabilities.
    predict_allocation : Compute the probabilities of new items.

    Notes
    -----
    Population geneticists plot proportions of ancestry in this way. Sorted by cluster, an item's own cluster is at the
    bottom of its bar, the other clusters follow in order, and "elsewhere" is grey at the top; lines separate clusters.
    The own cluster of a new item is the most probable cluster. In other orders, the clusters have the same order in all
    bars. The axis names items if there is room, else clusters, some of the items or values of the coordinate. Beyond
    twenty colours, patterns are added. In the order of clusters, the axis needs 12 points per cluster. With less, it
    shows the largest clusters and those with the lowest mean probability, with at most six evenly spaced items each.
    Beyond 20,000 items, a random sample of 20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 2, 1, 1]]
    >>> ax = pc.plot_membership(pc.membership(draws, [0, 0, 0, 1, 1]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'elsewhere']
    """
    membership = as_membership(membership)
    cluster, own = membership.cluster.values, membership.own.values
    ax = frame.new_axes(ax, figsize, 7.2, 3.0)
    items = Items.along(membership.cluster, str(membership.cluster.dims[0]))
    row = item_row(ax, items, cluster, order, then=[-own], certainty=own)
    ax.set(ylim=(0, 1), ylabel="posterior probability")
    edges = np.arange(row.at.size + 1, dtype=np.float64) - 0.5
    draw_shares(ax, membership, row.at, edges, by_cluster=row.along is None, patterned=row.patterned)
    name_row(ax, row, _names(membership)[: cluster.max() + 1])
    return ax


def as_membership(given: Any) -> Membership:
    """The membership itself, or that of the partition of a summary."""
    if isinstance(given, HasDraws):
        return membership_of(given)
    frame.check_result("membership", given, Membership, "membership")
    membership: Membership = given
    return membership


def draw_shares(
    ax: Axes,
    membership: Membership,
    at: npt.NDArray[np.intp],
    edges: Floats,
    *,
    by_cluster: bool = False,
    patterned: bool = False,
) -> None:
    """Stack the probabilities of items between `edges`; by cluster, an item's own cluster is at the bottom."""
    from matplotlib.patches import Patch

    shares, numbers = membership.probabilities.values[at], [*membership.numbers, -1]
    home = membership.cluster.values[at] if by_cluster else np.full(at.size, -1)
    floor = membership.own.values[at] if by_cluster else np.zeros(at.size)
    for k, number in enumerate(numbers):
        start = np.where(home == k, 0.0, floor)
        end = start + shares[:, k]
        ax.stairs(end, edges, baseline=start, fill=True, **patch_style(number, patterned))
        floor = np.where(home == k, floor, end)
    names = _names(membership)
    sizes = np.bincount(membership.cluster.values, minlength=len(names))[:-1]
    largest = [*frame.largest_of(sizes), -1]
    shown = frame.short_names([names[k] for k in largest], frame.LONGEST)
    looks = [patch_style(numbers[k], patterned) for k in largest]
    frame.add_legend(ax, [Patch(label=name, **style) for name, style in zip(shown, looks, strict=True)])


def _names(membership: Membership) -> list[str]:
    return [str(name) for name in membership.probabilities["consensus_cluster"].values]
