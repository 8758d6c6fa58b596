"""The similarity matrices of the chains side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.evaluate.chain_gap import largest_gap
from posterior_consensus.plots.axes import (
    MOST_OF_PAIRS,
    SOME_OF_PAIRS,
    Grid,
    Size,
    add_colour_bar,
    grid_axes,
    some_of,
    with_share,
)
from posterior_consensus.plots.colours import MARK, as_cmap
from posterior_consensus.plots.psm import draw_parted, item_order
from posterior_consensus.plots.rows import check_order, label_along
from posterior_consensus.sources.door import as_draws, own_partition

_SIDE = 2.6  # inches
_MOST_COLUMNS = 4


def plot_psm_by_chain(
    draws: Any,
    partition: Any = None,
    *,
    order: Any = "clusters",
    cmap: Any = "Blues",
    figsize: Size = None,
    axes: Any = None,
) -> Grid:
    """Plot the posterior similarity matrix of every chain, in one order and on one scale.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    partition : result object, DataArray or label vector of shape (n_items,), optional
        Orders the items, typically the consensus; its clusters, up to 30, are parted by lines. Without it items are
        ordered by average linkage of the matrix over all chains. A summary has its consensus.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster, as in the data, or along a coordinate of the items (its name or its values),
        such as time or position along a genome.
    cmap : str or matplotlib.colors.Colormap
        Colours of the probabilities from 0 to 1.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    axes : array of matplotlib.axes.Axes, optional
        One for each chain.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (n_chains,)

    Raises
    ------
    ValueError
        If draws or partition are invalid, or there is not one of the `axes` for each chain.
    TypeError
        If `axes` holds other things.

    Notes
    -----
    The title tells the largest gap between two chains, as :func:`diagnose` does; circles mark its pair of items.
    Weights are ignored, as the chains are to be compared as they were sampled. Of more than 10,000 items 2,000 are
    drawn, at random, and the first axis says so; the gap is the largest among their pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> chains = np.array([[[0, 0, 1, 1], [0, 0, 0, 1]] * 5, [[0, 1, 1, 1], [0, 1, 0, 1]] * 5])
    >>> [ax.get_title() for ax in pc.plot_psm_by_chain(chains)]
    ['chain 0', 'chain 1']
    """
    partition = own_partition(draws, partition)
    draws, colours = as_draws(draws), as_cmap(cmap)
    labels = np.zeros(draws.n_items, np.int32) if partition is None else draws.as_labels(partition)
    at = some_of(draws.n_items, MOST_OF_PAIRS, SOME_OF_PAIRS)
    plain, labels = draws.as_sampled(), canonical_labels(labels[at])
    if at.size < draws.n_items:
        plain = plain.of_items(at)
    along = check_order(order, draws.items)
    in_row = item_order(plain.shared_similarity, labels) if along is None else np.argsort(along.rank[at])
    n_chains = len(draws.samples.chains)
    n_columns = min(n_chains, _MOST_COLUMNS)
    n_rows = -(-n_chains // n_columns)
    if axes is None:
        below = 0.0 if along is None else 0.5  # inches for the names of places
        width, height = max(_SIDE * n_columns + 0.9, 4.2), (_SIDE + below) * n_rows + 0.6
        grid = grid_axes(None, figsize, n_rows, n_columns, width, height, framed=True).ravel()
        for unused in grid[n_chains:]:
            unused.remove()
        axes = grid[:n_chains]
    else:
        axes = grid_axes(axes, figsize, 1, n_chains, 0, 0, framed=True)[0]
    gap = largest_gap(plain)
    marked = [int(np.flatnonzero(in_row == item)[0]) for item in gap.items] if gap.size > 0 else []
    for ax, rows in zip(axes, plain.samples.chains, strict=True):
        values = plain.take(rows).shared_similarity[np.ix_(in_row, in_row)]
        image = draw_parted(ax, values, labels[in_row], colours, 0.0, 1.0)
        ax.set_title(f"chain {draws.samples.chain[rows[0]]}", fontsize="medium")
        ax.set(xticks=[], yticks=[])
        if marked:
            ax.plot(marked, marked[::-1], "o", markersize=9, markerfacecolor="none", markeredgecolor=MARK)
        if along is not None:
            ax.set_xlabel(draws.items.dim)
            label_along(ax, "x", along, draws.items, at[in_row])
    if at.size < draws.n_items:
        name = axes[0].get_xlabel() or draws.items.dim
        axes[0].set_xlabel(with_share(name, at.size, draws.n_items), fontsize="small")
    add_colour_bar(list(axes), image, "co-clustering probability", pad=0.02)
    if marked:
        first, second = draws.items.named(at[list(gap.items)])
        title = f"largest difference {gap.size:.2f}: {draws.items.dim} {first} and {second}, "
        title += f"chains {gap.chains[0]} and {gap.chains[1]}"
        axes[0].figure.suptitle(title, fontsize="medium", wrap=True)
    return axes
