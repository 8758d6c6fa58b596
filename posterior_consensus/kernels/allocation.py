"""Allocation of items to clusters: the best cluster of each item, and a minimum number of clusters."""

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import count, row_of, widened
from posterior_consensus.kernels.columns import compact, smallest
from posterior_consensus.kernels.loss import is_linear
from posterior_consensus.kernels.scores import score_item
from posterior_consensus.kernels.tables import move, set_slopes


@inner
def best_cluster(search, state, i, n_met, may_open):
    """The cluster of minimum score for item i, -1 for a singleton, which adds h(1) = 0; and this score.

    Ties within rounding: its present cluster, else the first, else a singleton.
    """
    scores, met, rounding = search.out.scores, search.out.met, search.rounding
    old = state.partition[i]
    least = np.inf
    for m in range(n_met):
        least = min(least, scores[met[m]])
    if may_open and 0.0 < least - rounding:
        return -1
    best = -1
    for m in range(n_met):
        k = int(met[m])
        if scores[k] <= least + rounding:
            if k == old:
                return k
            if best < 0 or k < best:
                best = k
    return best


def allocate(search, state, order):
    """Put the items of `order` that have no cluster where B + C - 2 A of the items so far grows least.

    Search relies on a loss that grows with this difference of the two partitions. Losses that are linear in A and B
    are used as they are. Returns the state, which may have more columns.
    """
    draws, slopes = search.draws, search.slopes
    if is_linear(search.loss):
        set_slopes(search.loss, draws, state, slopes)
    else:
        slopes.a[:] = -2.0 * draws.weights
        slopes.b[0] = 1.0
    at, n_clusters = 0, compact(draws, state)
    while at < order.size:
        state = widened(state, n_clusters + 1)
        at, n_clusters = _allocate(search, state, order, at, n_clusters)
    return state


@jit
def _allocate(search, state, order, at, n_clusters):
    """Go on from the item `order[at]`, until all columns are taken; return where, and the number of clusters."""
    draws, slopes, out, most = search.draws, search.slopes, search.out, search.most
    for place in range(at, order.size):
        i = order[place]
        if state.partition[i] >= 0:
            continue
        n_met = score_item(state, draws, slopes, i, out)
        k = best_cluster(search, state, i, n_met, n_clusters < most)
        if k < 0 and n_clusters < most:
            if n_clusters == state.sizes.size:
                return place, n_clusters
            k = n_clusters
            n_clusters += 1
        elif k < 0:  # it shares no draw's cluster with any of the clusters
            k = smallest(state)
        move(draws, state, slopes, i, k)
    return order.size, n_clusters


def open_clusters(search, state, margins):
    """Make singletons until there are enough clusters, each time the item that costs least."""
    n_clusters = compact(search.draws, state)
    state = widened(state, search.fewest)
    set_slopes(search.loss, search.draws, state, search.slopes)
    _open(search, state, margins, n_clusters)
    return state


@inner
def _staying(search, state, i):
    """What item i adds to a loss with these slopes where it is."""
    draws, slopes = search.draws, search.slopes
    k = state.partition[i]
    score = slopes.b[0] * slopes.steps[state.sizes[k]]
    for t in range(draws.weights.size):
        score += slopes.a[t] * slopes.steps[count(state, row_of(state, draws, i, t), k)]
    return score


@jit
def _open(search, state, margins, n_clusters):
    partition, sizes, stop = state.partition, state.sizes, search.out.stop
    for i in range(margins.size):
        margins[i] = _staying(search, state, i)
    for new in range(n_clusters, search.fewest):
        weakest = -1
        for i in range(margins.size):
            if sizes[partition[i]] > 1 and (weakest < 0 or margins[i] > margins[weakest]):
                weakest = i
        old = partition[weakest]
        move(search.draws, state, search.slopes, weakest, new)
        for i in range(margins.size):
            if partition[i] == old and stop[0] == 0:
                margins[i] = _staying(search, state, i)
