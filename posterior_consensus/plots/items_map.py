"""Plot a map of the items by their similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.embedding import item_embedding
from posterior_consensus.answers.item_uncertainty import item_uncertainty
from posterior_consensus.plots.axes import cluster_entries, extent, new_axes, point, shortened
from posterior_consensus.plots.colours import MARKERS, NEUTRAL, colours_of, ink, patterns_of
from posterior_consensus.sources.door import as_source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LITTLE = 0.5  # of the variation: where two axes show less, the map says what that means
_AREA = 16.0  # of a point, in square points; it grows with the root of the number of items there
_DIGITS = 9
_LEAST_SPAN = 1e-9  # of places that are one
_FONT = 9.0  # points
_LETTER, _LINE = 0.6 * _FONT, 1.2 * _FONT
_LONGEST = 16  # letters of a name


def plot_items_map(
    draws: Any,
    partition: Any,
    *,
    center: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a map of the items by similarity, with each cluster's exemplar named.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
    partition : result object, DataArray or label vector of shape (n_items,)
        Typically the consensus.
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
    from matplotlib.ticker import MaxNLocator

    source = as_source(draws)
    labels = source.as_labels(partition)
    items = item_uncertainty(source, partition)
    found = item_embedding(source, n_axes=min(2, source.n_items), center=center)
    places = np.zeros((source.n_items, 2))
    places[:, : found.sizes["axis"]] = found.values
    shares = np.zeros(2)
    shares[: found.sizes["axis"]] = found["share"].values
    ax = new_axes(ax, figsize, 6.4, 4.4)
    _draw_items(ax, places, labels)
    _draw_exemplars(ax, places, labels, items.exemplars, source.items.names)
    for axis, name, share in zip((ax.xaxis, ax.yaxis), ("first", "second"), shares, strict=True):
        axis.set_label_text(f"{name} axis: {share:.0%} of the variation")
        axis.set_major_locator(MaxNLocator(5))
    if 0 < shares.sum() < _LITTLE:
        text = f"The map shows {shares.sum():.0%} of the variation.\nItems that are close on it can be dissimilar."
        ax.set_title(text, loc="left", fontsize="small")
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        handles=[
            *cluster_entries(labels, items.names),
            point("exemplar", "o", NEUTRAL, markeredgecolor=ink(), markersize=8),
        ],
        frameon=False,
        fontsize="small",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
    return ax


def _draw_items(ax: Axes, places: npt.NDArray[np.float64], labels: npt.NDArray[np.int32]) -> None:
    """A point for the items of a cluster at one place."""
    rows = np.column_stack([labels, places.round(_DIGITS)])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    colours, patterns = np.array(colours_of(labels)), patterns_of(labels)
    for pattern in np.unique(patterns):
        at = patterns[first] == pattern
        shown = first[at]
        ax.scatter(
            places[shown, 0],
            places[shown, 1],
            s=_AREA * np.sqrt(counts[at]),
            c=colours[shown],
            marker=MARKERS[pattern],
            alpha=0.7,
            linewidths=0.0,
        )


def _draw_exemplars(
    ax: Axes,
    places: npt.NDArray[np.float64],
    labels: npt.NDArray[np.int32],
    exemplars: npt.NDArray[np.intp],
    names: npt.NDArray[np.str_],
) -> None:
    """Mark each cluster's exemplar, and name those that have room, of the largest clusters first."""
    order = np.argsort(-np.bincount(labels), kind="stable")
    for k in order[::-1]:
        (colour,), (pattern,) = colours_of(np.array([k])), patterns_of(np.array([k]))
        x, y = places[exemplars[k]]
        ax.scatter(x, y, s=4 * _AREA, color=colour, marker=MARKERS[pattern], edgecolor=ink(), linewidth=1.0, zorder=4)
    points = places * min(np.divide(extent(ax), np.maximum(np.ptp(places, axis=0), _LEAST_SPAN)))
    named = list[int]()
    for item in exemplars[order]:
        width = max((_LETTER * len(shortened(names[other], _LONGEST)) for other in (item, *named)), default=0.0)
        away = np.abs(points[named] - points[item])
        if np.all((away[:, 0] > width) | (away[:, 1] > _LINE)):
            ax.annotate(
                shortened(names[item], _LONGEST), places[item], (6, 6), textcoords="offset points", fontsize=_FONT
            )
            named.append(item)
