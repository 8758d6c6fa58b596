"""Changes of whole clusters: the best unions, and clusters that are dissolved or split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, inner, jit
from posterior_consensus.kernels.cells import Dense, Sparse, State, _count_sparse, compact, rename, smallest, widened
from posterior_consensus.kernels.loss import has_denominator, is_linear, loss_value
from posterior_consensus.kernels.moves import best_cluster
from posterior_consensus.kernels.scores import score_item
from posterior_consensus.kernels.tables import (
    CLUSTERS_FROM,
    SPLITS,
    ZEALOUS,
    Search,
    expected_losses,
    lacks_items,
    level,
    move,
)

_MERGE_ONE_IN = 64  # clusters that merge in one step, in pairs, if the loss is linear
_NOWHERE = np.int64(-1)


class Members(NamedTuple):
    """The items of clusters without gaps."""

    items: np.ndarray  # (n,), cluster after cluster
    ends: np.ndarray  # (K,), where each cluster's items end


@inner
def _place(k, other):
    """Place of clusters k < other among all pairs."""
    return other * (other - 1) // 2 + k


def _unions_dense(state, search, members, gains, partners):
    draws, loss, slopes, stop = search.draws, search.loss, search.slopes, search.out.stop
    h, starts, n_clusters = loss.h, draws.starts, members.ends.size
    top = h[-1]
    n_pairs = n_clusters * (n_clusters - 1) // 2
    all_gains, deltas, owns = np.zeros(n_pairs), np.zeros(n_pairs), np.empty(n_pairs)
    there = np.empty(n_clusters, np.int64)
    linear, is_ratio, lacking = is_linear(loss), has_denominator(loss), lacks_items(slopes)
    before = 0.0
    for k in range(n_clusters):
        before += h[state.sizes[k]]
    for other in range(n_clusters):
        for k in range(other):
            x, y = state.sizes[k], state.sizes[other]
            owns[_place(k, other)] = h[x + y] - h[x] - h[y]
    for t in range(draws.weights.size):
        if stop[0] != 0:
            return
        weight = slopes.a[t] if linear else 1.0
        target = all_gains if linear else deltas
        if lacking:
            lacked = state.counts[starts[t]]
            for other in range(n_clusters):
                y = state.sizes[other] - lacked[other]
                for k in range(other):
                    x = state.sizes[k] - lacked[k]
                    all_gains[_place(k, other)] += slopes.b[t + 1] * (h[x + y] - h[x] - h[y])
        for row in range(starts[t] + (CLUSTERS_FROM if lacking else 0), starts[t + 1]):
            counts = state.counts[row]
            found = 0
            for k in range(n_clusters):
                if counts[k] > 0:
                    there[found] = k
                    found += 1
            for y in range(found):
                other = counts[there[y]]
                for x in range(y):
                    one = counts[there[x]]
                    target[_place(there[x], there[y])] += weight * (h[one + other] - h[one] - h[other])
        if not linear:
            a, c, weight = state.joint[t], state.drawn[t], draws.weights[t]
            now = loss_value(loss, is_ratio, top, a, before, c)
            for p in range(n_pairs):
                all_gains[p] += weight * (loss_value(loss, is_ratio, top, a + deltas[p], before + owns[p], c) - now)
                deltas[p] = 0.0
    for k in range(n_clusters):
        for other in range(k + 1, n_clusters):
            place = _place(k, other)
            gain = all_gains[place] + (slopes.b[0] * owns[place] if linear and not lacking else 0.0)
            if gain < gains[k]:
                gains[k], partners[k] = gain, other


def _unions_sparse(state, search, members, gains, partners):
    draws, slopes = search.draws, search.slopes
    h, cells = search.loss.h, state.cells
    items, ends = members
    scores, met, touched, seen, stop = search.out
    n_draws = draws.weights.size
    seen[:] = -1
    for k in range(ends.size):
        if stop[0] != 0:
            gains[:] = np.inf
            return
        n_met = 0
        begin = ends[k - 1] if k > 0 else 0
        for t in range(n_draws):
            slope = slopes.a[t]
            for m in range(begin, ends[k]):
                label = draws.labels[t, items[m]]
                if seen[label] == k * n_draws + t:  # another member's row
                    continue
                seen[label] = k * n_draws + t
                row = draws.row_of[items[m], t]
                one = _count_sparse(state, row, k)
                for at in range(row + 1, row + 1 + 2 * cells[row], 2):
                    other = cells[at]
                    if other > k:
                        if not touched[other]:
                            touched[other] = True
                            met[n_met] = other
                            n_met += 1
                            scores[other] = 0.0
                        count = cells[at + 1]
                        scores[other] += slope * (h[one + count] - h[one] - h[count])
        for m in range(n_met):
            other = met[m]
            touched[other] = False
            x, y = state.sizes[k], state.sizes[other]
            gain = scores[other] + slopes.b[0] * (h[x + y] - h[x] - h[y])
            if gain < gains[k] or (gain == gains[k] and other < partners[k]):
                gains[k], partners[k] = gain, other


_unions_of_either = either(Dense, _unions_dense, _unions_sparse, "The unions of clusters in tables of either kind.")


@jit
def _best_unions(state, search, members, gains, partners):
    """Write the best later cluster to merge each cluster with, and the rise of the expected loss.

    The clusters are in the first columns. Sparse tables look at those that share a draw's cluster only, as the union of
    others lowers no loss, and linear ones. Once it is to stop, no union lowers it.
    """
    _unions_of_either(state, search, members, gains, partners)


def members_of(state: Dense | Sparse, order: np.ndarray, n_clusters: int) -> Members:
    """The items of the clusters in the first columns, within each cluster in this order."""
    items = order[np.argsort(state.partition[order], kind="stable")]
    return Members(items, np.cumsum(state.sizes[:n_clusters]))


def merge(search: Search, state: Dense | Sparse) -> int:
    """Merge the two clusters whose union lowers the expected loss most; return how many merges there were.

    If there are more than `most`, the two that raise it least will do. Of many clusters, several pairs merge at
    once: a linear loss falls by the sum of their gains.
    """
    draws, loss, fewest, most = search.draws, search.loss, search.fewest, search.most
    n_clusters = compact(draws, state)
    if n_clusters <= fewest or n_clusters < 2:
        return 0
    gains, partners = np.full(n_clusters, np.inf), np.zeros(n_clusters, np.int64)
    items = np.arange(state.partition.size if isinstance(state, Sparse) else 0)  # dense tables do without them
    _best_unions(state, search, members_of(state, items, n_clusters), gains, partners)
    order = np.argsort(gains, kind="stable")
    names = np.arange(state.sizes.size)
    if n_clusters > most and not np.isfinite(gains[order[0]]):  # no two share a draw's cluster, or it is to stop
        n_merges = n_clusters - most if search.out.stop[0] != 0 else 1
        smallest = np.argsort(state.sizes[:n_clusters], kind="stable")[: n_merges + 1]
        names[smallest] = smallest.min()
        rename(draws, state, names)
        return n_merges
    wanted = min(n_clusters - fewest, max(1, n_clusters // _MERGE_ONE_IN if is_linear(loss) else 1))
    wanted = max(1, min(wanted, n_clusters - most)) if n_clusters > most else wanted
    is_free = np.ones(n_clusters, np.bool_)
    n_merges = 0
    for k in order:
        other = partners[k]
        if n_merges == wanted or gains[k] >= (np.inf if n_clusters > most else -search.rounding):
            break
        if is_free[k] and is_free[other]:
            is_free[k] = is_free[other] = False
            names[other] = k
            n_merges += 1
    if n_merges > 0:
        rename(draws, state, names)
        if not is_linear(loss):
            expected_losses(draws, loss, state)  # whose sums are now others
    return n_merges


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
        # A sum of many items' scores has an error of its own: by it alone a cluster would be dissolved and made again.
        if gain < -max(10.0, 0.1 * items.size) * search.rounding:
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


def rearrange_one(
    search: Search, state: State, order: np.ndarray, margins: np.ndarray, tally: np.ndarray
) -> tuple[State, bool]:
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
