"""Clusters that are dissolved, and their items allocated again, or split in two."""

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.allocation import best_cluster
from posterior_consensus.kernels.cells import widened
from posterior_consensus.kernels.columns import compact, smallest
from posterior_consensus.kernels.loss import is_linear
from posterior_consensus.kernels.records import SPLITS, ZEALOUS
from posterior_consensus.kernels.scores import score_item
from posterior_consensus.kernels.tables import level, move
from posterior_consensus.kernels.unions import members_of

_NOWHERE = np.int64(-1)


@inner
def _rearrange(search, state, items, n_clusters, margins, apart):
    """Dissolve the cluster of these items and allocate them again; return whether this lowered the loss.

    The clusters are in the first `n_clusters` columns, and there are as many more as items. If `apart`, the items go
    into two new clusters, seeded by the items of least and greatest margin, else into any. Otherwise the state is
    restored.
    """
    if apart and items.size == 1:
        return False
    draws, loss, slopes, out = search.draws, search.loss, search.slopes, search.out
    before = level(loss, draws, state)
    top = n_clusters  # columns from here on are free
    old = np.int64(state.partition[items[0]])
    gain = 0.0
    for i in items:
        score_item(state, draws, slopes, i, out)
        gain -= out.scores[old]
        move(draws, state, slopes, i, _NOWHERE)
    n_clusters -= 1
    least, greatest, new = -1, -1, old
    if apart:
        least, greatest = items[0], items[items.size - 1]
        for i in items:
            if margins[i] < margins[least]:
                least = i
            if margins[i] > margins[greatest]:
                greatest = i
        if least == greatest:  # all margins are equal
            greatest = items[0] if least != items[0] else items[1]
        move(draws, state, slopes, least, old)
        new = top
        move(draws, state, slopes, greatest, new)
        n_clusters += 2
    for i in items:
        if state.partition[i] >= 0:
            continue
        n_met = score_item(state, draws, slopes, i, out)
        if apart:
            # A cluster with which the item shares no draw's cluster adds at least as much as one with which it does.
            one = slopes.b[0] * slopes.steps[state.sizes[old] + 1]
            other = slopes.b[0] * slopes.steps[state.sizes[new] + 1]
            for m in range(n_met):
                if out.met[m] == old:
                    one = out.scores[old]
                elif out.met[m] == new:
                    other = out.scores[new]
            k = new if other < one else old
            gain += min(one, other)
        else:
            k = best_cluster(search, state, i, n_met, n_clusters < search.most)
            if k < 0 and n_clusters < search.most:
                k = top
                if state.sizes[old] == 0:
                    k = old
                else:
                    top += 1
                n_clusters += 1
            elif k < 0:
                k = smallest(state)
                gain += slopes.b[0] * slopes.steps[state.sizes[k] + 1]
            else:
                gain += out.scores[k]
        move(draws, state, slopes, i, k)
    if n_clusters >= search.fewest:
        if not is_linear(loss):
            gain = level(loss, draws, state) - before
        if gain < -10.0 * search.rounding:
            return True
    for i in items:
        if state.partition[i] != old:
            move(draws, state, slopes, i, old)
    return False


@jit
def _first_that_pays(search, state, members, margins, apart):
    """Dissolve or split the first cluster for which this lowers the loss; return whether there was one."""
    items, ends = members
    for k in range(ends.size):
        if search.out.stop[0] != 0:
            break
        own = items[ends[k - 1] if k > 0 else 0 : ends[k]]
        if _rearrange(search, state, own, ends.size, margins, apart):
            return True
    return False


def rearrange_one(search, state, order, margins, tally):
    """Dissolve or split the first cluster for which this lowers the loss; return the state and whether any was."""
    for apart in (False, True):
        n_clusters = compact(search.draws, state)
        if apart and n_clusters >= search.most:
            break
        state = widened(state, n_clusters + state.sizes.max())
        if _first_that_pays(search, state, members_of(state, order, n_clusters), margins, apart):
            tally[SPLITS if apart else ZEALOUS] += 1
            return state, True
    return state, False
