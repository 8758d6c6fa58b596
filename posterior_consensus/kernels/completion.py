"""Moves of some items of a partition while the others stay where they are."""

import numpy as np

from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels.cells import Slopes, scratch, tables_of
from posterior_consensus.kernels.loss import has_denominator, is_linear
from posterior_consensus.kernels.search import _TINY, _best_move, _compact, _first_free, _width, _with_room
from posterior_consensus.kernels.tables import level, move, refresh_sums, set_slopes


@jit
def settle_some(draws, loss, partition, items, most):
    """Move each of these items to where the expected loss is least, until none of them moves.

    Parameters
    ----------
    draws : Draws
    loss : LinearLoss or GeneralLoss
    partition : int32 array of shape (n,)
        Labels from 0; changed in place.
    items : integer array
        Those that may move, in the order in which they do.
    most : int
        Largest number of clusters.
    """
    difference = np.zeros(partition.size + 2)
    for x in range(partition.size):
        difference[x + 1] = loss.h[x + 1] - loss.h[x]
    rounding = _TINY * (difference[-2] if is_linear(loss) else 1.0 if has_denominator(loss) else loss.h[-1])
    most_of_draw = np.int64(0)
    for t in range(draws.weights.size):
        most_of_draw = max(most_of_draw, draws.starts[t + 1] - draws.starts[t])
    state = tables_of(draws, partition, _width(partition))
    out = scratch(state.sizes.size, most_of_draw, np.zeros(1, np.uint8))
    slopes = Slopes(np.empty(draws.weights.size), np.empty(1))
    moved = True
    while moved:
        moved = False
        if not is_linear(loss):
            refresh_sums(loss, state, draws.starts)
        set_slopes(loss, draws, state, slopes)
        now = level(loss, draws, state)
        n_clusters = _compact(state)
        for i in items:
            old = int(state.partition[i])
            alone = state.sizes[old] == 1
            may_open = n_clusters < most and not alone
            if may_open and n_clusters == state.sizes.size:
                state, out = _with_room(state, out, n_clusters + 1)
            all_clusters = np.zeros(state.sizes.size)
            free = _first_free(state)
            k, now = _best_move(
                loss, draws, state, slopes, difference, i, all_clusters, 0.0, may_open, free, now, rounding, out
            )
            if k != old:
                n_clusters += int(state.sizes[k] == 0) - int(alone)
                move(draws, state, difference, i, k)
                moved = True
