"""Map of the items by their similarity."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.encodings import item_embedding
from posterior_consensus.answers.membership import item_uncertainty
from posterior_consensus.ensemble.items import numbers_of
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import MARKERS, NEUTRAL, colours_of, ink, patterns_of
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.sources.conversion import as_source, partition_of

_AREA = 16.0  # of a point, in square points; grows with the root of its number of items
_DIGITS = 9
_LEAST_SPAN = 1e-9  # smaller spans are one position
_FONT = 9.0  # points of a name
_LETTER, _LINE = 0.6 * _FONT, 1.2 * _FONT
_LONGEST = 16  # letters of a name


def plot_items_map(
    draws: Any,
    partition: Any = None,
    *,
    center: bool = True,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a map of the items by similarity, with each cluster's exemplar named.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        The posterior.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Partition that colours the items, typically the consensus; by default the consensus of a summary.
    center : bool
        As in :func:`item_embedding`: True for classical scaling; False for the singular value decomposition without
        centring, in which items with few co-members are near the origin.
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
    ValueError
        If draws, partition or `figsize` are invalid.
    TypeError
        If `center` is not a bool.

    See Also
    --------
    item_embedding : Compute the coordinates, on any number of axes.
    plot_draws_map : Plot a map of the draws.

    Notes
    -----
    Over all axes, the squared distance of two items is 2 (1 - PSM_ij). The map has the two axes of most variation, with
    their shares in the labels. If both together have less than half, the title warns that dissimilar items can
    coincide. Items that are always co-clustered are one point, whose size grows with their number. The exemplar of a
    cluster is the item of greatest mean similarity to the rest of it. Exemplars are named if there is room, those of
    large clusters first.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> ax = pc.plot_items_map(draws, [0, 0, 1, 1])
    >>> [text.get_text() for text in ax.texts]
    ['0', '2']
    """
    source, partition = as_source(draws), partition_of(draws, partition)
    labels = source.as_labels(partition)
    items = item_uncertainty(source, partition)
    embedding = item_embedding(source, n_axes=min(2, source.n_items), center=center)
    places = np.zeros((source.n_items, 2))
    places[:, : embedding.sizes["axis"]] = embedding.values
    shares = np.zeros(2)
    shares[: embedding.sizes["axis"]] = embedding["share"].values
    ax = frame.new_axes(ax, figsize, 6.4, 4.4)
    numbers = numbers_of(items.names)
    _draw_items(ax, places, labels, numbers)
    _draw_exemplars(ax, places, labels, numbers, items.exemplars, source.items.names)
    ax.set_xlabel(f"first axis: {shares[0]:.0%} of the variation")
    ax.set_ylabel(f"second axis: {shares[1]:.0%} of the variation")
    frame.as_map(ax, shares, "Items that are close on it can be dissimilar.")
    exemplar = frame.point("exemplar", "o", NEUTRAL, markeredgecolor=ink(), markersize=8)
    frame.add_legend(ax, [*frame.cluster_entries(labels, items.names, numbers), exemplar])
    return ax


def _draw_items(
    ax: Axes, places: npt.NDArray[np.float64], labels: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64]
) -> None:
    """Plot a point for the items of a cluster at one position."""
    rows = np.column_stack([labels, places.round(_DIGITS)])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    x, y = places[first].T
    frame.scatter_clusters(ax, x, y, numbers[labels[first]], s=_AREA * np.sqrt(counts), alpha=0.7, linewidths=0.0)


def _draw_exemplars(
    ax: Axes,
    places: npt.NDArray[np.float64],
    labels: npt.NDArray[np.int32],
    numbers: npt.NDArray[np.int64],
    exemplars: npt.NDArray[np.intp],
    names: npt.NDArray[np.str_],
) -> None:
    """Mark each cluster's exemplar, and name exemplars with room, large clusters first."""
    order = np.argsort(-np.bincount(labels), kind="stable")
    for k in order[::-1]:
        (colour,), (pattern,) = colours_of(numbers[[k]]), patterns_of(numbers[[k]])
        x, y = places[exemplars[k]]
        ax.scatter(x, y, s=4 * _AREA, color=colour, marker=MARKERS[pattern], edgecolor=ink(), linewidth=1.0, zorder=4)
    points = places * min(np.divide(frame.extent(ax), np.maximum(np.ptp(places, axis=0), _LEAST_SPAN)))
    shown = dict(zip(exemplars.tolist(), frame.short_names(names[exemplars], _LONGEST), strict=True))
    named = list[int]()
    for item in exemplars[order].tolist():
        width = max(_LETTER * len(shown[other]) for other in (item, *named))
        away = np.abs(points[named] - points[item])
        if np.all((away[:, 0] > width) | (away[:, 1] > _LINE)):
            near: dict[str, Any] = {"xytext": (6, 6), "textcoords": "offset points", "fontsize": _FONT}
            ax.annotate(shown[item], places[item], parse_math=False, **near)
            named.append(item)
