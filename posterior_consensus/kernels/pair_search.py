"""Search over a similarity matrix for the partition of least expected Binder loss.

Binder's loss is a sum over pairs, so that its expectation needs their similarities only: with X_ij the probability that
i and j are together, expected A is the sum of X_ij over the pairs of the partition and B is their number.
"""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit

_TINY = 1e-12  # relative to the scores compared: what is smaller is rounding
_WIDTH = 8  # clusters to begin with
_LEADERS = 4
_FOLLOWERS = 8


class PairState(NamedTuple):
    """A partition of some or all items, and every item's sum of similarities to each cluster."""

    partition: np.ndarray  # (n,), -1 where an item is not allocated
    sizes: np.ndarray  # (width,)
    links: np.ndarray  # (width, n)


class Costs(NamedTuple):
    """What the similarity of a pair that is joined, and the pair itself, add to the expected loss."""

    a: float
    b: float


@inner
def _widened(state):
    width = state.sizes.size
    sizes = np.zeros(2 * width, np.int64)
    links = np.zeros((2 * width, state.partition.size))
    sizes[:width] = state.sizes
    links[:width] = state.links
    return PairState(state.partition, sizes, links)


@inner
def _compact(state):
    """Move the clusters to the first rows; return how many there are."""
    partition, sizes, links = state
    rows = np.empty(sizes.size, np.int32)
    n_clusters = 0
    for k in range(sizes.size):
        rows[k] = n_clusters
        if sizes[k] > 0:
            if n_clusters < k:
                sizes[n_clusters] = sizes[k]
                sizes[k] = 0
                links[n_clusters] = links[k]
            n_clusters += 1
    for i in range(partition.size):
        if partition[i] >= 0:
            partition[i] = rows[partition[i]]
    return n_clusters


@inner
def _move(similarity, state, i, k):
    """Put item i into cluster k, out of the one it is in, if any."""
    old = state.partition[i]
    row = similarity[i]
    if old >= 0:
        state.links[old] -= row
        state.sizes[old] -= 1
    if state.sizes[k] == 0:
        state.links[k] = row  # what rounding had left there goes
    else:
        state.links[k] += row
    state.sizes[k] += 1
    state.partition[i] = k


@inner
def _score(costs, state, i, k):
    """What item i adds to the expected loss in cluster k."""
    return costs.a * state.links[k, i] + costs.b * (state.sizes[k] - (state.partition[i] == k))


@inner
def _first_free(sizes):
    for k in range(sizes.size):
        if sizes[k] == 0:
            return k
    return -1


@inner
def _scan(similarity, costs, state, items, fewest, most, margins, targets, stop):
    """Put every item of `items` where the expected loss is least; return the state and how many moved.

    `margins` receives by how much the best other cluster is worse than the item's own, `targets` which it is. Once it
    is to stop, items stay where they are.
    """
    n_clusters = _compact(state)
    rounding = _TINY * state.partition.size
    moved = 0
    for i in items:
        if stop[0] != 0:
            break
        old = state.partition[i]
        alone = old >= 0 and state.sizes[old] == 1
        margins[i], targets[i] = np.inf, old
        if alone and n_clusters <= fewest:
            continue
        stay = _score(costs, state, i, old) if old >= 0 else np.inf
        best, target = np.inf, -1
        for k in range(state.sizes.size):
            if k != old and state.sizes[k] > 0:
                value = _score(costs, state, i, k)
                if value < best:
                    best, target = value, k
        margins[i], targets[i] = best - stay, target
        if n_clusters < most and not alone and 0.0 < best - rounding:
            if _first_free(state.sizes) < 0:
                state = _widened(state)
            best, target = 0.0, _first_free(state.sizes)
        if best < stay - rounding:
            n_clusters += int(state.sizes[target] == 0) - int(alone)
            _move(similarity, state, i, target)
            moved += 1
    return state, moved


@inner
def _open_clusters(similarity, costs, state, fewest):
    """Give the items that lose least by it clusters of their own until there are `fewest`."""
    n_clusters = _compact(state)
    while state.sizes.size < fewest:
        state = _widened(state)
    staying = np.array([_score(costs, state, i, state.partition[i]) for i in range(state.partition.size)])
    for i in np.argsort(-staying):
        if n_clusters < fewest and state.sizes[state.partition[i]] > 1:
            _move(similarity, state, i, n_clusters)
            n_clusters += 1
    return state


@inner
def _merge(costs, state, fewest, most):
    """Merge the two clusters whose union lowers the expected loss most; whether there were such two.

    Where there are more than `most`, the two that raise it least will do.
    """
    partition, sizes, links = state
    n_clusters = _compact(state)
    if n_clusters <= fewest:
        return False
    between = np.zeros((n_clusters, n_clusters))
    for k in range(n_clusters):
        for i in range(partition.size):
            between[k, partition[i]] += links[k, i]
    best = np.inf if n_clusters > most else -_TINY * partition.size
    kept, gone = -1, -1
    for k in range(n_clusters):
        for other in range(k + 1, n_clusters):
            gain = costs.a * between[k, other] + costs.b * sizes[k] * sizes[other]
            if gain < best:
                best, kept, gone = gain, k, other
    if gone < 0:
        return False
    for i in range(partition.size):
        if partition[i] == gone:
            partition[i] = kept
    sizes[kept] += sizes[gone]
    sizes[gone] = 0
    links[kept] += links[gone]
    return True


@inner
def _move_chain(similarity, costs, state, fewest, margins, targets):
    """Move an item although that costs something, and those after it that then gain; whether it pays in all."""
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
            if state.sizes[old] == 1 and np.count_nonzero(state.sizes) <= fewest:
                break
            change = _score(costs, state, i, new) - _score(costs, state, i, old)
            if n_moved == 0 or change < 0.0:
                gain += change
                _move(similarity, state, i, new)
                moved[n_moved] = i
                n_moved += 1
        if gain < -_TINY * state.partition.size:
            return True
        for i in moved[:n_moved]:
            _move(similarity, state, i, old)
    return False


@inner
def _rearrange(similarity, costs, state, items, margins, apart, fewest, most):
    """Dissolve the cluster of these items and allocate them again; return the state and whether that paid.

    If `apart`, they go into two clusters of their own, begun by the items that are least and most at home, else into
    any. The state changes only where that pays; until then `added` holds what the items allocated so far add to the
    links of the others.
    """
    if items.size == 0 or (apart and items.size == 1):
        return state, False
    if _first_free(state.sizes) < 0:
        state = _widened(state)
    old, new = state.partition[items[0]], _first_free(state.sizes)
    n_clusters = np.count_nonzero(state.sizes) - 1
    added, n_added = np.zeros((state.sizes.size, items.size)), np.zeros(state.sizes.size, np.int64)
    targets = np.full(items.size, -1)
    gain = 0.0
    for i in items:
        gain -= 0.5 * _score(costs, state, i, old)
    if apart:
        least, greatest = np.argmin(margins[items]), np.argmax(margins[items])
        if greatest == least:  # all margins are equal
            greatest = (least + 1) % items.size
        for at in (least, greatest):
            target = new if at == least else old
            targets[at] = target
            _add(similarity, items, at, added[target])
            n_added[target] = 1
        n_clusters += 2
    for at in range(items.size):
        if targets[at] >= 0:
            continue
        target, best = -1, np.inf
        for k in range(state.sizes.size):
            kept = k != old and state.sizes[k] > 0
            size = n_added[k] + (state.sizes[k] if kept else 0)
            if (k != old and k != new) if apart else (size == 0 and (k != old or n_clusters >= most)):
                continue
            links = added[k, at] + (state.links[k, items[at]] if kept else 0.0)
            value = costs.a * links + costs.b * size if size > 0 else 0.0
            if value < best:
                target, best = k, value
        n_clusters += target == old and n_added[old] == 0
        gain += best
        targets[at] = target
        _add(similarity, items, at, added[target])
        n_added[target] += 1
    if n_clusters < fewest or gain >= -_TINY * state.partition.size:
        return state, False
    for at in range(items.size):
        if targets[at] != old:
            _move(similarity, state, items[at], targets[at])
    return state, True


@inner
def _add(similarity, items, at, links):
    """Add an item's similarities to those of a cluster."""
    row = similarity[items[at]]
    for other in range(items.size):
        links[other] += row[items[other]]


@inner
def _rearrange_any(similarity, costs, state, order, margins, fewest, most, tally, stop):
    """Dissolve or split every cluster for which that pays; return the state and whether there was one."""
    any_paid = False
    for apart in (False, True):
        n_clusters = _compact(state)
        if apart and n_clusters >= most:
            break
        for k in range(n_clusters):
            if stop[0] != 0:
                break
            items = order[state.partition[order] == k]
            state, paid = _rearrange(similarity, costs, state, items, margins, apart, fewest, most)
            if paid:
                tally[5 if apart else 4] += 1
                any_paid = True
            if apart and np.count_nonzero(state.sizes) >= most:
                break
    return state, any_paid


@inner
def _tables(similarity, partition):
    """The state of a partition."""
    width = _WIDTH
    while width < partition.max() + 1:
        width *= 2
    state = PairState(
        np.full(partition.size, -1, np.int32), np.zeros(width, np.int64), np.zeros((width, partition.size))
    )
    for i in range(partition.size):
        if partition[i] >= 0:
            _move(similarity, state, i, partition[i])
    return state


@jit
def settle_pairs(similarity, costs, partition, order, fewest, most, stop):
    """Complete a partition and change it until no move of this file lowers the expected loss.

    Parameters
    ----------
    similarity : float array of shape (n, n)
        Symmetric, with a diagonal of zeros.
    costs : Costs
    partition, order, fewest, most, stop
        As search.settle takes them.

    Returns
    -------
    float
        The part of the expected loss that depends on the partition, but for the loss's scale.
    int64 array of shape (6,)
        How many scans, moves, merges, chains of moves, zealous updates and splits there were.
    """
    n_items = partition.size
    state = _tables(similarity, partition)
    margins, targets = np.empty(n_items), np.empty(n_items, np.int64)
    tally = np.zeros(6, np.int64)
    unplaced = order[state.partition[order] < 0]
    state, _ = _scan(similarity, costs, state, unplaced, 1, most, margins, targets, np.zeros(1, np.uint8))
    if np.count_nonzero(state.sizes) < fewest:
        state = _open_clusters(similarity, costs, state, fewest)
    items = np.arange(n_items)
    while stop[0] == 0 or np.count_nonzero(state.sizes) > most:
        state, moved = _scan(similarity, costs, state, items, fewest, most, margins, targets, stop)
        tally[0] += 1
        tally[1] += moved
        if moved > 0:
            continue
        if _merge(costs, state, fewest, most):
            tally[2] += 1
        elif stop[0] != 0:  # the margins may not be known
            continue
        elif _move_chain(similarity, costs, state, fewest, margins, targets):
            tally[3] += 1
        else:
            state, paid = _rearrange_any(similarity, costs, state, order, margins, fewest, most, tally, stop)
            if not paid:
                break
    partition[:] = state.partition
    value = 0.0
    for i in range(n_items):
        value += 0.5 * _score(costs, state, i, partition[i])
    return value, tally


@inner
def _best_other(costs, state, i):
    """What item i adds to the expected loss in the cluster that suits it best but for its own, and that cluster."""
    best, target = np.inf, -1
    for k in range(state.sizes.size):
        if state.sizes[k] > 0 and k != state.partition[i]:
            value = _score(costs, state, i, k)
            if value < best:
                best, target = value, k
    return best, target


@jit
def move_best(similarity, costs, partition, fewest, most, changes):
    """Move one item at a time, the one whose move lowers the expected loss most, until no move of any item does.

    Parameters
    ----------
    similarity, costs, fewest, most
        As settle_pairs takes them.
    partition : int32 array of shape (n,)
        Labels without gaps; changed in place. Where there are too few clusters or too many, the items that lose least
        by it first open some, or the two clusters whose union costs least merge.
    changes : float array
        Receives by how much each move changes the expected loss, but for its scale.

    Returns
    -------
    int
        Number of moves; `changes.size` if there may be more.
    """
    state = _tables(similarity, partition)
    if _compact(state) < fewest:
        state = _open_clusters(similarity, costs, state, fewest)
    while np.count_nonzero(state.sizes) > most:
        _merge(costs, state, fewest, most)
    values, targets = np.empty(partition.size), np.empty(partition.size, np.int64)
    for i in range(partition.size):
        values[i], targets[i] = _best_other(costs, state, i)
    n_moves = 0
    while n_moves < changes.size:
        n_clusters = np.count_nonzero(state.sizes)
        best, item, new = -_TINY * partition.size, -1, -1
        for i in range(partition.size):
            alone = state.sizes[state.partition[i]] == 1
            if alone and n_clusters <= fewest:
                continue
            staying = _score(costs, state, i, state.partition[i])
            if values[i] - staying < best:
                best, item, new = values[i] - staying, i, targets[i]
            if n_clusters < most and not alone and -staying < best:
                best, item, new = -staying, i, -1
        if item < 0:
            break
        if new < 0:
            if _first_free(state.sizes) < 0:
                state = _widened(state)
            new = _first_free(state.sizes)
        old = np.int64(state.partition[item])
        _move(similarity, state, item, new)
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
    if i == moved or ((at == old or at == new) and (state.sizes[at] == 0 or _score(costs, state, i, at) > values[i])):
        values[i], targets[i] = _best_other(costs, state, i)
        return
    for k in (old, new):
        if state.sizes[k] > 0 and k != state.partition[i]:
            value = _score(costs, state, i, k)
            if value <= values[i]:
                values[i], targets[i] = value, k
