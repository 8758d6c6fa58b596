"""Begin of a search over a similarity matrix for Binder's loss, and the search by the best of all moves."""

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.columns import first_free, n_clusters
from posterior_consensus.kernels.pair_moves import (
    PairSearch,
    allocate_pairs,
    best_other,
    compact_links,
    merge_pairs,
    move_item,
    no_clusters,
    open_singletons,
    place_pairs,
    score_of,
)
from posterior_consensus.runtime.tolerances import ROUNDING


def begin_pairs(similarity, costs, partition, order, most):
    """Put each item without a cluster where it costs least, in this order; return the state."""
    state = no_clusters(partition.size)
    _begin_pairs(similarity, costs, partition, order, most, state)
    return state


@jit
def _begin_pairs(similarity, costs, partition, order, most, state):
    unplaced = order[partition[order] < 0]
    allocate_pairs(similarity, state, partition)
    margins, targets = np.empty(partition.size), np.empty(partition.size, np.int64)
    allocation = PairSearch(similarity, costs, ROUNDING * partition.size, 1, most, np.zeros(1, np.uint8))
    place_pairs(allocation, state, unplaced, margins, targets)


def move_best(similarity, costs, partition, fewest, most, changes):
    """Make the single move that lowers the expected loss most, until no move lowers it.

    Parameters
    ----------
    similarity : float array of shape (n, n)
        Symmetric, with a diagonal of zeros.
    costs : Costs
    fewest, most : int
        Least and largest number of clusters.
    partition : int32 array of shape (n,)
        Labels without gaps; changed in place. If there are too few clusters or too many, the items that lose least
        by it first open some, or the two clusters whose union costs least merge.
    changes : float array
        Receives by how much each move changes the expected loss, but for its scale.

    Returns
    -------
    int
        Number of moves; `changes.size` if there may be more.
    """
    search = PairSearch(similarity, costs, ROUNDING * partition.size, fewest, most, np.zeros(1, np.uint8))
    return _move_best(search, no_clusters(partition.size), partition, changes)


@jit
def _move_best(search, state, partition, changes):
    similarity, costs, fewest, most = search.similarity, search.costs, search.fewest, search.most
    allocate_pairs(similarity, state, partition)
    if compact_links(state) < fewest:
        open_singletons(search, state)
    while n_clusters(state) > most:
        merge_pairs(search, state)
    values, targets = np.empty(partition.size), np.empty(partition.size, np.int64)
    for i in range(partition.size):
        values[i], targets[i] = best_other(costs, state, i)
    n_moves = 0
    while n_moves < changes.size:
        number = n_clusters(state)
        best, item, new = -search.rounding, -1, -1
        for i in range(partition.size):
            alone = state.sizes[state.partition[i]] == 1
            if alone and number <= fewest:
                continue
            staying = score_of(costs, state, i, state.partition[i])
            if values[i] - staying < best:
                best, item, new = values[i] - staying, i, targets[i]
            if number < most and not alone and -staying < best:
                best, item, new = -staying, i, -1
        if item < 0:
            break
        if new < 0:
            new = first_free(state)
        old = np.int64(state.partition[item])
        move_item(similarity, state, item, new)
        changes[n_moves] = best
        n_moves += 1
        for i in range(partition.size):
            _update_best(costs, state, i, item, old, new, values, targets)
    partition[:] = state.partition
    return n_moves


@inner
def _update_best(costs, state, i, moved, old, new, values, targets):
    """Bring up to date which other cluster suits item i best, after an item moved from `old` to `new`."""
    at = targets[i]
    if i == moved or ((at == old or at == new) and (state.sizes[at] == 0 or score_of(costs, state, i, at) > values[i])):
        values[i], targets[i] = best_other(costs, state, i)
        return
    for k in (old, new):
        if state.sizes[k] > 0 and k != state.partition[i]:
            value = score_of(costs, state, i, k)
            if value <= values[i]:
                values[i], targets[i] = value, k
