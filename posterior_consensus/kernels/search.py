"""Search over draws for the partition of least expected loss: allocation, scans, merges, chains of moves."""

import numpy as np

from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels._simd import LANES
from posterior_consensus.kernels.loss import has_denominator, is_linear, loss_value
from posterior_consensus.kernels.tables import (
    Slopes,
    change_linear,
    choose,
    compact,
    current,
    expected,
    expected_after,
    expected_in_one,
    move,
    own_sum,
    refresh_sums,
    score_block,
    score_linear,
    set_slopes,
    tables,
    take_out,
    widened,
)

_TINY = 1e-12  # relative to the scores compared: what is smaller is rounding
_MARGIN = 1e-5  # of an item's score: bounds the rounding of single precision
_FIRST_ORDER = 8.0  # times 1 / n, of an item's score: bounds what the first order leaves out
_BLOCK = 256  # items scored against the same tables
_WIDTH = 8  # columns to begin with
_LEADERS = 4
_FOLLOWERS = 8
_OTHERS = 4

SCANS, MOVES, MERGES, CHAINS, ZEALOUS, SPLITS = range(6)


@jit
def _allocate(draws, loss, state, difference, linear, order, most, rounding):
    """Put the items of `order` that have no cluster where B + C - 2 A of the items so far grows least.

    Every loss here grows with this difference of the two partitions; those that are linear in A and B are taken as
    they are.
    """
    slopes = Slopes(-2.0 * draws.weights, np.ones(1))
    if linear:
        set_slopes(draws, loss, state, linear, slopes)
    scores = np.empty(state.sizes.size)
    n_clusters = np.count_nonzero(state.sizes)
    for i in order:
        if state.partition[i] >= 0:
            continue
        if n_clusters == state.sizes.size and n_clusters < most:
            state = widened(state)
            scores = np.empty(state.sizes.size)
        score_linear(draws, state, slopes, difference, i, scores)
        k = choose(scores, state, i, n_clusters < most, rounding)
        n_clusters += state.sizes[k] == 0
        move(draws, state, difference, i, k)
    return state


@jit
def _score_all(draws, state, slopes, difference, first_item, entering, staying, sums, totals):
    """Scores of a block of items for entering each cluster (items, width) and for staying where they are."""
    half = LANES // 2
    n_block = staying.size
    used = np.flatnonzero(state.sizes)[-1] + 1
    for first in range(0, used, half):
        score_block(draws, state, slopes, difference, first_item, first, sums[:n_block], totals[:n_block])
        last = min(half, state.sizes.size - first)
        for b in range(n_block):
            old = state.partition[first_item + b]
            for k in range(last):
                entering[b, first + k] = totals[b, k] + slopes.b[0] * difference[state.sizes[first + k] + 1]
            if first <= old < first + last:
                staying[b] = totals[b, half + old - first]
    return used


@jit
def _best_change(draws, loss, state, difference, i, doubted, may_open, now, rounding):
    """The cluster of those in doubt to which the move of item i lowers the expected loss `now` most, or its own.

    And the expected loss after the move.
    """
    old = state.partition[i]
    best, target = now - rounding, old
    opened = False
    for k in range(state.sizes.size):
        if state.sizes[k] == 0:
            if not may_open or opened:
                continue
            opened = True
        elif k == old or k >= doubted.size or not doubted[k]:
            continue
        value = expected_after(draws, loss, state, difference, i, k)
        if value < best:
            best, target = value, k
    return target, now if target == old else best


@jit
def _scan(draws, loss, state, slopes, difference, linear, fewest, most, doubt, rounding, margins, targets):
    """Let every item move once to where the expected loss is least; return the state and how many moved.

    A block of items is scored against frozen tables, in single precision and, unless the loss is linear in A and B,
    to first order. Clusters that look better, or worse by no more than the share `doubt` of the item's score, are then
    scored again without approximation before an item moves. `margins` receives by how much the best other cluster is
    worse than the item's own, `targets` which it is.
    """
    set_slopes(draws, loss, state, linear, slopes)
    now = 0.0 if linear else current(draws, loss, state)
    n_clusters = compact(state)
    n_items = state.partition.size
    size = min(_BLOCK, n_items)
    sums, totals = np.empty((size, LANES), np.float32), np.empty((size, LANES))
    scores = np.empty(state.sizes.size)
    moved = 0
    for first_item in range(0, n_items, _BLOCK):
        staying = np.empty(min(_BLOCK, n_items - first_item))
        entering = np.empty((staying.size, state.sizes.size))
        used = _score_all(draws, state, slopes, difference, first_item, entering, staying, sums, totals)
        sizes_before = state.sizes[:used].copy()
        for b in range(staying.size):
            i = first_item + b
            old = state.partition[i]
            alone = state.sizes[old] == 1
            margins[i], targets[i] = np.inf, old
            if alone and n_clusters <= fewest:
                continue
            stay = staying[b] + slopes.b[0] * difference[sizes_before[old]]
            for k in range(used):
                if k != old and state.sizes[k] > 0 and entering[b, k] - stay < margins[i]:
                    margins[i], targets[i] = entering[b, k] - stay, k
            opened = -stay if n_clusters < most and not alone else np.inf  # a cluster of its own adds h(1) = 0
            doubtful = doubt * abs(staying[b])
            if min(margins[i], opened) > doubtful:
                continue
            if n_clusters == state.sizes.size and n_clusters < most:
                state = widened(state)
                scores = np.empty(state.sizes.size)
            if linear:
                score_linear(draws, state, slopes, difference, i, scores)
                k = choose(scores, state, i, n_clusters < most, rounding)
            else:
                doubted = entering[b, :used] - stay <= doubtful
                k, now = _best_change(draws, loss, state, difference, i, doubted, opened <= doubtful, now, rounding)
            if k != old:
                n_clusters += int(state.sizes[k] == 0) - int(alone)
                move(draws, state, difference, i, k)
                moved += 1
    return state, moved


@jit
def _open_clusters(draws, loss, state, slopes, difference, linear, fewest, margins):
    """Give the items that lose least by it clusters of their own until there are `fewest`."""
    n_clusters = compact(state)
    n_items = state.partition.size
    while state.sizes.size < fewest:
        state = widened(state)
    set_slopes(draws, loss, state, linear, slopes)
    size = min(_BLOCK, n_items)
    sums, totals = np.empty((size, LANES), np.float32), np.empty((size, LANES))
    entering = np.empty((size, state.sizes.size))
    for first_item in range(0, n_items, _BLOCK):
        staying = margins[first_item : first_item + _BLOCK]
        _score_all(draws, state, slopes, difference, first_item, entering, staying, sums, totals)
    for i in np.argsort(-margins):
        if n_clusters < fewest and state.sizes[state.partition[i]] > 1:
            move(draws, state, difference, i, n_clusters)
            n_clusters += 1
    return state


@jit
def _place(k, other):
    """Place of clusters k < other among all pairs."""
    return other * (other - 1) // 2 + k


@jit
def _union_gains(draws, loss, state, slopes, linear, n_clusters):
    """What the union of every two clusters adds to the expected loss; `_place` says where it stands."""
    h, starts = loss.h, draws.starts
    top = h[-1]
    n_pairs = n_clusters * (n_clusters - 1) // 2
    gains, deltas, owns = np.zeros(n_pairs), np.zeros(n_pairs), np.empty(n_pairs)
    there = np.empty(n_clusters, np.int64)
    is_ratio = has_denominator(loss)
    before = own_sum(loss, state)
    for other in range(n_clusters):
        for k in range(other):
            x, y = state.sizes[k], state.sizes[other]
            owns[_place(k, other)] = h[x + y] - h[x] - h[y]
    for t in range(draws.weights.size):
        weight = slopes.a[t] if linear else 1.0
        target = gains if linear else deltas
        for row in range(starts[t], starts[t + 1]):
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
                gains[p] += weight * (loss_value(loss, is_ratio, top, a + deltas[p], before + owns[p], c) - now)
                deltas[p] = 0.0
    if linear:
        for p in range(n_pairs):
            gains[p] += slopes.b[0] * owns[p]
    return gains


@jit
def _merge(draws, loss, state, slopes, linear, fewest, most, rounding):
    """Merge the two clusters whose union lowers the expected loss most; whether there were such two.

    Where there are more than `most`, the two that raise it least will do.
    """
    n_clusters = compact(state)
    if n_clusters <= fewest:
        return False
    gains = _union_gains(draws, loss, state, slopes, linear, n_clusters)
    best = np.inf if n_clusters > most else -rounding
    kept, gone = -1, -1
    for k in range(n_clusters):
        for other in range(k + 1, n_clusters):
            gain = gains[_place(k, other)]
            if gain < best:
                best, kept, gone = gain, k, other
    if gone < 0:
        return False
    for i in range(state.partition.size):
        if state.partition[i] == gone:
            state.partition[i] = kept
    state.sizes[kept] += state.sizes[gone]
    state.sizes[gone] = 0
    for row in state.counts:
        row[kept] += row[gone]
        row[gone] = 0
    if not linear:
        refresh_sums(loss, state, draws.starts)
    return True


@jit
def _move_chain(draws, loss, state, slopes, difference, linear, fewest, rounding, margins, targets):
    """Move an item although that costs something, and those after it that then gain; whether it pays in all.

    Items that belong together stay where they are because none of them can leave first: Kernighan and Lin's answer to
    the same trap in graphs. The few items of least margin lead. Each is followed by those of the next least that would
    make the same change of cluster, and by a few that would enter or leave one of the two clusters.
    """
    partition, sizes = state.partition, state.sizes
    order = np.argsort(margins)
    moved = np.empty(_FOLLOWERS + _OTHERS + 1, np.int64)
    origins = np.empty(moved.size, np.int64)
    before = 0.0 if linear else current(draws, loss, state)
    for lead in order[:_LEADERS]:
        old, new = partition[lead], targets[lead]
        gain, n_moved, n_alike, n_others = 0.0, 0, 0, 0
        for position in range(-1, order.size):
            if position == 0 and n_moved == 0:
                break  # the leader must not move
            i = lead if position < 0 else order[position]
            origin, target = partition[i], targets[i]
            if origin == target or (i == lead and n_moved > 0) or (sizes[origin] == 1 and sizes[target] == 0):
                continue
            if sizes[origin] == 1 and np.count_nonzero(sizes) <= fewest:
                continue
            alike = origin == old and target == new
            touches = origin == old or origin == new or target == old or target == new
            if not touches or (n_alike > _FOLLOWERS if alike else n_others >= _OTHERS):
                continue
            n_alike += alike
            n_others += not alike
            if linear:
                delta = change_linear(draws, state, slopes, difference, i, target)
            else:
                delta = expected_after(draws, loss, state, difference, i, target) - (before + gain)
            if n_moved == 0 or delta < 0.0:
                gain += delta
                move(draws, state, difference, i, target)
                moved[n_moved], origins[n_moved] = i, origin
                n_moved += 1
        if gain < -rounding:
            return True
        for at in range(n_moved):
            move(draws, state, difference, moved[at], origins[at])
    return False


@jit
def _rearrange(draws, loss, state, slopes, difference, items, margins, apart, fewest, most, rounding):
    """Dissolve the cluster of these items and allocate them again; return the state and whether that paid.

    If `apart`, they go into two clusters of their own, begun by the items that are least and most at home, else into
    any. Where it does not pay, everything is as before.
    """
    if items.size == 0 or (apart and items.size == 1):
        return state, False
    before = expected(draws, loss, state)
    n_clusters = np.count_nonzero(state.sizes)
    if n_clusters == state.sizes.size and n_clusters < most:
        state = widened(state)
    old = int(state.partition[items[0]])
    scores = np.empty(state.sizes.size)
    for i in items:
        take_out(draws, state, i)
    n_clusters -= 1
    pair = np.array([old, old])
    if apart:
        pair[1] = np.flatnonzero((state.sizes == 0) & (np.arange(state.sizes.size) != old))[0]
        least, greatest = 0, items.size - 1
        for at in range(items.size):
            if margins[items[at]] < margins[items[least]]:
                least = at
            if margins[items[at]] > margins[items[greatest]]:
                greatest = at
        move(draws, state, difference, items[least], pair[1])
        move(draws, state, difference, items[greatest], pair[0])
    for i in items:
        if state.partition[i] >= 0:
            continue
        score_linear(draws, state, slopes, difference, i, scores)
        if apart:
            k = pair[1] if scores[pair[1]] < scores[pair[0]] else pair[0]
        else:
            k = choose(scores, state, i, n_clusters < most, rounding)
            n_clusters += state.sizes[k] == 0
        move(draws, state, difference, i, k)
    if np.count_nonzero(state.sizes) >= fewest and expected(draws, loss, state) < before - 10.0 * rounding:
        return state, True
    for i in items:
        if state.partition[i] != old:
            move(draws, state, difference, i, old)
    return state, False


@jit
def _rearrange_any(draws, loss, state, slopes, difference, order, margins, fewest, most, rounding, tally):
    """Dissolve or split the first cluster for which that pays; return the state and whether there was one."""
    n_clusters = compact(state)
    for apart in (False, True):
        if apart and n_clusters >= most:
            break
        for k in range(n_clusters):
            items = order[state.partition[order] == k]
            state, paid = _rearrange(
                draws, loss, state, slopes, difference, items, margins, apart, fewest, most, rounding
            )
            if paid:
                tally[SPLITS if apart else ZEALOUS] += 1
                return state, True
    return state, False


@jit
def settle(draws, loss, partition, order, fewest, most, exactly, effort, stop):
    """Complete a partition and change it until no move of this file lowers the expected loss.

    Parameters
    ----------
    draws : Draws
    loss : Loss
    partition : int32 array of shape (n,)
        Labels from 0, -1 where an item is to be allocated; changed in place.
    order : integer array
        All items, in the order in which they are allocated.
    fewest, most : int
        Least and largest number of clusters.
    exactly : bool
        Whether a loss that is not linear in A and B is scored without approximation before the search ends.
    effort : int
        0 for scans and merges, 1 for chains of moves as well, 2 for zealous updates and splits too.
    stop : uint8 array of shape (1,)
        Another thread may set it to 1 to have the partition as it is, once it has no more than `most` clusters.

    Returns
    -------
    float
        Expected loss, but for the loss's scale.
    float
        The same for the partition of one cluster.
    int64 array of shape (6,)
        How many scans, moves, merges, chains of moves, zealous updates and splits there were.
    """
    linear = is_linear(loss)
    n_items = partition.size
    difference = np.zeros(n_items + 2)
    for x in range(n_items):
        difference[x + 1] = loss.h[x + 1] - loss.h[x]
    rounding = _TINY * (difference[-2] if linear else 1.0 if has_denominator(loss) else loss.h[-1])
    tally = np.zeros(6, np.int64)
    n_clusters = 0
    for k in partition:
        n_clusters = max(n_clusters, k + 1)
    state = tables(draws, partition, max(n_clusters, _WIDTH))
    state = _allocate(draws, loss, state, difference, linear, order, most, rounding)
    slopes = Slopes(np.empty(draws.weights.size), np.empty(1))
    margins, targets = np.empty(n_items), np.empty(n_items, np.int64)
    if not linear:
        refresh_sums(loss, state, draws.starts)
    if np.count_nonzero(state.sizes) < fewest:
        state = _open_clusters(draws, loss, state, slopes, difference, linear, fewest, margins)
    doubt = _MARGIN
    most_doubt = max(_MARGIN, _FIRST_ORDER / n_items) if exactly and not linear else _MARGIN
    while stop[0] == 0 or np.count_nonzero(state.sizes) > most:
        state, moved = _scan(
            draws, loss, state, slopes, difference, linear, fewest, most, doubt, rounding, margins, targets
        )
        tally[SCANS] += 1
        tally[MOVES] += moved
        if moved == 0 and doubt < most_doubt:
            doubt = most_doubt
            continue
        doubt = _MARGIN
        improved = moved > 0
        if not improved and _merge(draws, loss, state, slopes, linear, fewest, most, rounding):
            tally[MERGES] += 1
            improved = True
        if not improved and effort > 0:
            improved = _move_chain(draws, loss, state, slopes, difference, linear, fewest, rounding, margins, targets)
            tally[CHAINS] += improved
        if not improved and effort > 1:
            state, improved = _rearrange_any(
                draws, loss, state, slopes, difference, order, margins, fewest, most, rounding, tally
            )
        if not improved:
            break
    value = expected(draws, loss, state)
    return value, expected_in_one(draws, loss, state), tally
