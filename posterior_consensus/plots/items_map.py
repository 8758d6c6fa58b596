"""Plot a map of the items by their similarity."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.embedding import item_embedding
from posterior_consensus.answers.item_uncertainty import item_uncertainty
from posterior_consensus.ensemble.items import numbers_of
from posterior_consensus.plots import frame
from posterior_consensus.plots.colours import MARKERS, NEUTRAL, colours_of, ink, patterns_of
from posterior_consensus.plots.frame import Axes, Size
from posterior_consensus.sources.door import as_source, partition_of

_AREA = 16.0  # of a point, in square points; it grows with the root of the number of items there
_DIGITS = 9
_LEAST_SPAN = 1e-9  # of places that are one
_FONT = 9.0  # points
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
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Typically the consensus; by default that of `draws` if these are a summary.
    center : bool
        As :func:`item_embedding` has it: True for classical scaling, False for the singular value decomposition as it
        is, in which an item that is with few others lies near the origin.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If draws or partition are invalid, or `figsize` is.
    TypeError
        If `center` is not a bool.

    See Also
    --------
    item_embedding : the coordinates, on any number of axes.
    plot_draws_map : a map of the draws.

    Notes
    -----
    The squared distance of two items, over all axes, is 2 (1 - PSM_ij); the map has the two axes of most variation, and
    their labels tell how much. If both together have less than half, a title says that dissimilar items can fall
    together. Items that are always co-clustered are one point, the larger the more there are. The exemplar of a cluster
    is the item of greatest mean similarity to the rest of it; names are written as far as there is room, those of large
    clusters first.

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
    found = item_embedding(source, n_axes=min(2, source.n_items), center=center)
    places = np.zeros((source.n_items, 2))
    places[:, : found.sizes["axis"]] = found.values
    shares = np.zeros(2)
    shares[: found.sizes["axis"]] = found["share"].values
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
    """A point for the items of a cluster at one place."""
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
    """Mark each cluster's exemplar, and name those that have room, of the largest clusters first."""
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
            ax.annotate(shown[item], places[item], (6, 6), textcoords="offset points", fontsize=_FONT)
            named.append(item)
