"""Allocation of the open items of a partition whose other items stay where they are."""

import numpy as np

from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels.cells import Slopes, scratch, tables_of
from posterior_consensus.kernels.loss import has_denominator, is_linear
from posterior_consensus.kernels.search import (
    _TINY,
    _allocate,
    _best_move,
    _compact,
    _first_free,
    _width,
    _with_room,
)
from posterior_consensus.kernels.tables import expected, level, move, refresh_sums, set_slopes


@jit
def complete(draws, loss, partition, order, most, stop):
    """Allocate the open items, then move each to where the expected loss is least, until none moves.

    Parameters
    ----------
    draws : Draws
    loss : LinearLoss or Loss
    partition : int32 array of shape (n,)
        Labels from 0, -1 where an item is open; changed in place.
    order : integer array
        The open items, in the order in which they are allocated and moved.
    most : int
        Largest number of clusters.
    stop : uint8 array of shape (1,)
        Another thread may set it to 1 to have the partition as it is.

    Returns
    -------
    float
        Expected loss, but for the loss's scale.
    """
    difference = np.zeros(partition.size + 2)
    for x in range(partition.size):
        difference[x + 1] = loss.h[x + 1] - loss.h[x]
    rounding = _TINY * (difference[-2] if is_linear(loss) else 1.0 if has_denominator(loss) else loss.h[-1])
    most_of_draw = np.int64(0)
    for t in range(draws.weights.size):
        most_of_draw = max(most_of_draw, draws.starts[t + 1] - draws.starts[t])
    state = tables_of(draws, partition, _width(partition))
    out = scratch(state.sizes.size, most_of_draw)
    state, out = _allocate(draws, loss, state, difference, order, most, rounding, out)
    slopes = Slopes(np.empty(draws.weights.size), np.empty(1))
    moved = True
    while moved and stop[0] == 0:
        moved = False
        if not is_linear(loss):
            refresh_sums(loss, state, draws.starts)
        set_slopes(loss, draws, state, slopes)
        now = level(loss, draws, state)
        n_clusters = _compact(state)
        for i in order:
            old = int(state.partition[i])
            alone = state.sizes[old] == 1
            may_open = n_clusters < most and not alone
            if may_open and n_clusters == state.sizes.size:
                state, out = _with_room(state, out, n_clusters + 1)
            every = np.zeros(state.sizes.size)
            free = _first_free(state)
            k, now = _best_move(
                loss, draws, state, slopes, difference, i, every, 0.0, may_open, free, now, rounding, out
            )
            if k != old:
                n_clusters += int(state.sizes[k] == 0) - int(alone)
                move(draws, state, difference, i, k)
                moved = True
    return expected(draws, loss, state)
