"""Searches over a similarity matrix for the partition of minimum expected Binder loss, and for memberships.

Binder's loss is a sum over pairs, so that its expectation needs their similarities only: with X_ij the probability that
i and j are together, expected A is the sum of X_ij over the pairs of the partition and B is their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import first_free, n_clusters, up_to
from posterior_consensus.kernels.tables import SPLITS, ZEALOUS
from posterior_consensus.runtime.tolerances import ROUNDING

_LEADERS = 4
_FOLLOWERS = 8


class PairState(NamedTuple):
    """A partition of some or all items, and every item's sum of similarities to each cluster."""

    partition: np.ndarray  # (n,), -1 where an item is not allocated
    sizes: np.ndarray  # (n + 1,)
    links: np.ndarray  # (n + 1, n), of whose rows only those of clusters are ever touched, hence take memory
    top: np.ndarray  # (1,), rows from here on are free


class Costs(NamedTuple):
    """What the similarity of a pair that is joined, and the pair itself, add to the expected loss."""

    a: float
    b: float


class PairSearch(NamedTuple):
    """What is searched, within which limits; all but the partition and its links."""

    similarity: np.ndarray  # (n, n), symmetric, with a diagonal of zeros
    costs: Costs
    rounding: float  # differences of scores that are smaller mean nothing
    fewest: int  # clusters
    most: int
    stop: np.ndarray  # (1,), which another thread may set to 1


def no_clusters(n_items: int) -> PairState:
    """The state in which no item is allocated."""
    sizes, links = np.zeros(n_items + 1, np.int64), np.zeros((n_items + 1, n_items))
    return PairState(np.full(n_items, -1, np.int32), sizes, links, np.zeros(1, np.int64))


@inner
def compact_links(state):
    """Move the clusters to the first rows; return how many there are."""
    partition, sizes, links, top = state
    rows = np.empty(top[0], np.int32)
    n_clusters = 0
    for k in range(top[0]):
        rows[k] = n_clusters
        if sizes[k] > 0:
            if n_clusters < k:
                sizes[n_clusters] = sizes[k]
                sizes[k] = 0
                for i in range(partition.size):
                    links[n_clusters, i] = links[k, i]
            n_clusters += 1
    for i in range(partition.size):
        if partition[i] >= 0:
            partition[i] = rows[partition[i]]
    top[0] = n_clusters
    return n_clusters


@inner
def move_item(similarity, state, i, k):
    """Move item i into cluster k, from its present cluster if it has one."""
    old, links = np.int64(state.partition[i]), state.links
    kept = 1.0 if state.sizes[k] > 0 else 0.0  # what rounding had left in an empty cluster goes
    if old >= 0:
        for j in range(links.shape[1]):
            links[old, j] -= similarity[i, j]
        state.sizes[old] -= 1
    for j in range(links.shape[1]):
        links[k, j] = kept * links[k, j] + similarity[i, j]
    state.sizes[k] += 1
    state.partition[i] = k
    state.top[0] = max(state.top[0], k + 1)


@inner
def score_of(costs, state, i, k):
    """What item i adds to the expected loss in cluster k."""
    return costs.a * state.links[k, i] + costs.b * (state.sizes[k] - (state.partition[i] == k))


@inner
def best_other(costs, state, i):
    """What item i adds to the expected loss in the cluster that suits it best but for its own, and that cluster."""
    best, target = np.inf, -1
    for k in range(state.top[0]):
        if state.sizes[k] > 0 and k != state.partition[i]:
            value = score_of(costs, state, i, k)
            if value < best:
                best, target = value, k
    return best, target


@inner
def place_pairs(search, state, items, margins, targets):
    """Put every item of `items` where the expected loss is least; return how many moved.

    `margins` receives by how much the best other cluster is worse than the item's own, `targets` which it is. Once it
    is to stop, items stay where they are.
    """
    similarity, costs, rounding, fewest, most, stop = search
    number = compact_links(state)
    moved = 0
    for i in items:
        if stop[0] != 0:
            break
        old = state.partition[i]
        alone = old >= 0 and state.sizes[old] == 1
        margins[i], targets[i] = np.inf, old
        if alone and number <= fewest:
            continue
        stay = score_of(costs, state, i, old) if old >= 0 else np.inf
        best, target = best_other(costs, state, i)
        margins[i], targets[i] = best - stay, target
        if number < most and not alone and 0.0 < best - rounding:
            best, target = 0.0, first_free(state)
        if best < stay - rounding:
            number += int(state.sizes[target] == 0) - int(alone)
            move_item(similarity, state, i, target)
            moved += 1
    return moved


def scan_pairs(
    search: PairSearch, state: PairState, margins: np.ndarray, targets: np.ndarray, doubt: float
) -> tuple[PairState, int]:
    """Put every item where the expected loss is least; return the state and how many moved. None is in doubt."""
    return state, _scan_pairs(search, state, margins, targets)


@jit
def _scan_pairs(search, state, margins, targets):
    return place_pairs(search, state, up_to(state.partition.size), margins, targets)


def open_pairs(search: PairSearch, state: PairState, margins: np.ndarray) -> PairState:
    """Make singletons until there are enough clusters, each time the item that costs least; return the state."""
    open_singletons(search, state)
    return state


@jit
def open_singletons(search: PairSearch, state: PairState) -> None:
    """Make singletons until there are enough clusters, each time the item that costs least."""
    similarity, costs, fewest = search.similarity, search.costs, search.fewest
    number = compact_links(state)
    partition, sizes = state.partition, state.sizes
    while number < fewest:
        weakest, most = -1, -np.inf
        for i in range(partition.size):
            if sizes[partition[i]] > 1:
                staying = score_of(costs, state, i, partition[i])
                if staying > most:
                    weakest, most = i, staying
        move_item(similarity, state, weakest, number)
        number += 1


@jit
def merge_pairs(search: PairSearch, state: PairState) -> int:
    """Merge the two clusters whose union lowers the expected loss most; return how many merges there were, 0 or 1.

    If there are more than `most`, the two that raise it least will do.
    """
    partition, sizes, links, _ = state
    costs = search.costs
    number = compact_links(state)
    if number <= search.fewest:
        return 0
    between = np.zeros((number, number))
    for k in range(number):
        for i in range(partition.size):
            between[k, partition[i]] += links[k, i]
    best = np.inf if number > search.most else -search.rounding
    kept, gone = -1, -1
    for k in range(number):
        for other in range(k + 1, number):
            gain = costs.a * between[k, other] + costs.b * sizes[k] * sizes[other]
            if gain < best:
                best, kept, gone = gain, k, other
    if gone < 0:
        return 0
    for i in range(partition.size):
        if partition[i] == gone:
            partition[i] = kept
    sizes[kept] += sizes[gone]
    sizes[gone] = 0
    for i in range(partition.size):
        links[kept, i] += links[gone, i]
    return 1


@jit
def chain_pairs(search: PairSearch, state: PairState, margins: np.ndarray, targets: np.ndarray) -> bool:
    """Move an item although that costs something, and those after it that then gain; whether it pays in all."""
    similarity, costs = search.similarity, search.costs
    order = np.argsort(margins)
    moved = np.empty(_FOLLOWERS + 1, np.int64)
    for lead in order[:_LEADERS]:
        old, new = state.partition[lead], targets[lead]
        if old == new or new < 0 or state.sizes[new] == 0:
            continue
        gain, n_moved, asked = 0.0, 0, 0
        for position in range(-1, order.size):
            i = lead if position < 0 else order[position]
            if state.partition[i] != old or targets[i] != new or asked > _FOLLOWERS:
                continue
            asked += 1
            if state.sizes[old] == 1 and n_clusters(state) <= search.fewest:
                break
            change = score_of(costs, state, i, new) - score_of(costs, state, i, old)
            if n_moved == 0 or change < 0.0:
                gain += change
                move_item(similarity, state, i, new)
                moved[n_moved] = i
                n_moved += 1
        if gain < -search.rounding:
            return True
        for i in moved[:n_moved]:
            move_item(similarity, state, i, old)
    return False


@inner
def _rearrange(search, state, items, margins, apart):
    """Dissolve the cluster of these items and allocate them again; return whether that paid.

    If `apart`, they go into two clusters of their own, begun by the items that are least and most at home, else into
    any. The state changes only where that pays; until then `added` holds what the items allocated so far add to the
    links of the others.
    """
    if items.size == 0 or (apart and items.size == 1):
        return False
    similarity, costs = search.similarity, search.costs
    old, new = state.partition[items[0]], first_free(state)
    number, top = n_clusters(state) - 1, max(state.top[0], new + 1)
    added, n_added = np.zeros((top, items.size)), np.zeros(top, np.int64)
    targets = np.empty(items.size, np.int64)
    gain, least, greatest = 0.0, 0, 0
    for at in range(items.size):
        targets[at] = -1
        gain -= 0.5 * score_of(costs, state, items[at], old)
        if margins[items[at]] < margins[items[least]]:
            least = at
        if margins[items[at]] > margins[items[greatest]]:
            greatest = at
    if apart:
        if greatest == least:  # all margins are equal
            greatest = (least + 1) % items.size
        for at in (least, greatest):
            target = new if at == least else old
            targets[at] = target
            _add(similarity, items, at, added[target])
            n_added[target] = 1
        number += 2
    for at in range(items.size):
        if targets[at] >= 0:
            continue
        target, best = -1, np.inf
        for k in range(top):
            kept = k != old and state.sizes[k] > 0
            size = n_added[k] + (state.sizes[k] if kept else 0)
            if (k != old and k != new) if apart else (size == 0 and (k != old or number >= search.most)):
                continue
            links = added[k, at] + (state.links[k, items[at]] if kept else 0.0)
            value = costs.a * links + costs.b * size if size > 0 else 0.0
            if value < best:
                target, best = k, value
        number += target == old and n_added[old] == 0
        gain += best
        targets[at] = target
        _add(similarity, items, at, added[target])
        n_added[target] += 1
    if number < search.fewest or gain >= -search.rounding:
        return False
    for at in range(items.size):
        if targets[at] != old:
            move_item(similarity, state, items[at], targets[at])
    return True


@inner
def _add(similarity, items, at, links):
    """Add an item's similarities to the sums of a cluster."""
    row = similarity[items[at]]
    for other in range(items.size):
        links[other] += row[items[other]]


def rearrange_pairs(
    search: PairSearch, state: PairState, order: np.ndarray, margins: np.ndarray, tally: np.ndarray
) -> tuple[PairState, bool]:
    """Dissolve or split every cluster if this lowers the loss; return the state and whether any was changed."""
    return state, _rearrange_all(search, state, order, margins, tally)


@jit
def _rearrange_all(search, state, order, margins, tally):
    any_paid = False
    members = np.empty(order.size, np.int64)
    for apart in (False, True):
        number = compact_links(state)
        if apart and number >= search.most:
            break
        for k in range(number):
            if search.stop[0] != 0:
                break
            size = 0
            for i in order:
                if state.partition[i] == k:
                    members[size] = i
                    size += 1
            if _rearrange(search, state, members[:size], margins, apart):
                tally[SPLITS if apart else ZEALOUS] += 1
                any_paid = True
            if apart and n_clusters(state) >= search.most:
                break
    return any_paid


@inner
def allocate_pairs(similarity, state, partition):
    """Allocate the items of a state without clusters as in a partition, but for those that it leaves out."""
    for i in range(partition.size):
        if partition[i] >= 0:
            move_item(similarity, state, i, partition[i])


def begin_pairs(similarity: np.ndarray, costs: Costs, partition: np.ndarray, order: np.ndarray, most: int) -> PairState:
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


def move_best(
    similarity: np.ndarray, costs: Costs, partition: np.ndarray, fewest: int, most: int, changes: np.ndarray
) -> int:
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


@jit
def settle_memberships(
    weights: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    odds: np.ndarray,
    soft: np.ndarray,
    most: int,
    enough: float,
) -> int:
    """Optimize each item's probabilities given all others, in turn, until they hardly change.

    Parameters
    ----------
    weights : float array of shape (n_entries,)
        Of a symmetric sparse matrix without diagonal, row after row: evidence that two items share a cluster.
    indices : int32 array of shape (n_entries,)
        Column of each entry.
    starts : int32 array of shape (n + 1,)
        First entry of each row.
    odds : float array of shape (K,)
        Expected logarithms of the clusters' shares.
    soft : float array of shape (n, K)
        Probabilities; changed in place.
    most : int
        Largest number of passes.
    enough : float
        Largest change of a probability at which to end.

    Returns
    -------
    int
        Number of passes.
    """
    n_items, n_clusters = soft.shape
    logits = np.empty(n_clusters)
    for sweep in range(most):
        change = 0.0
        for i in range(n_items):
            logits[:] = odds
            for entry in range(starts[i], starts[i + 1]):
                for k in range(n_clusters):
                    logits[k] += weights[entry] * soft[indices[entry], k]
            logits -= logits.max()
            total = 0.0
            for k in range(n_clusters):
                logits[k] = np.exp(logits[k])
                total += logits[k]
            for k in range(n_clusters):
                share = logits[k] / total
                change = max(change, abs(share - soft[i, k]))
                soft[i, k] = share
        if change < enough:
            return sweep + 1
    return most
