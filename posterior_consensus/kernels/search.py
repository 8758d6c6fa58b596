"""Search over draws for the partition of least expected loss: allocation, scans, merges, chains of moves."""

import numpy as np

from posterior_consensus.kernels._jit import either, inner, jit
from posterior_consensus.kernels.cells import (
    Slopes,
    best_unions,
    rename,
    score_block,
    score_item,
    scratch,
    tables_of,
    widened,
)
from posterior_consensus.kernels.loss import LinearLoss, has_denominator, is_linear
from posterior_consensus.kernels.tables import (
    change,
    expected,
    expected_after,
    expected_in_one,
    level,
    move,
    refresh_sums,
    set_slopes,
)

_TINY = 1e-12  # relative to the scores compared: what is smaller is rounding
_MARGIN = 1e-5  # of an item's score: bounds the rounding of single precision
_FIRST_ORDER = 8.0  # times 1 / n, of an item's score: bounds what the first order leaves out
_BLOCK = 256  # items scored against the same tables
_WIDTH = 8  # columns to begin with
_NOWHERE = np.int64(-1)
_LEADERS = 4
_FOLLOWERS = 8
_OTHERS = 4
_NEAREST = 16  # items of least margin, whose margins are made exact before a chain of moves
_MERGE_ONE_IN = 64  # clusters that merge at once, in pairs, where the loss is linear

SCANS, MOVES, MERGES, CHAINS, ZEALOUS, SPLITS = range(6)


@inner
def _first_free(state):
    """The first column that no cluster has, or the number of columns."""
    for k in range(state.sizes.size):
        if state.sizes[k] == 0:
            return k
    return state.sizes.size


@inner
def _n_clusters(state):
    n_clusters = 0
    for size in state.sizes:
        n_clusters += size > 0
    return n_clusters


@inner
def _compact(state):
    """Move the clusters to the first columns; return how many there are."""
    names = np.empty(state.sizes.size, np.int64)
    n_clusters = 0
    in_place = True
    for k in range(names.size):
        names[k] = n_clusters
        if state.sizes[k] > 0:
            in_place &= n_clusters == k
            n_clusters += 1
    if not in_place:
        rename(state, names)
    return n_clusters


@inner
def _with_room(state, out, width):
    """The same tables and scratch with at least so many columns."""
    while state.sizes.size < width:
        state = widened(state)
    if out.scores.size < state.sizes.size:
        out = scratch(state.sizes.size, out.seen.size, out.stop)
    return state, out


@inner
def _sorted(values, order):
    """Put the indices in `order` in ascending order of their values, equal ones as they are.

    Shell's sort: NumPy's, compiled into every kernel that sorts, takes a second of a user's first minute.
    """
    gap = order.size // 2
    while gap > 0:
        for place in range(gap, order.size):
            index = order[place]
            value = values[index]
            at = place
            while at >= gap and (
                values[order[at - gap]] > value or (values[order[at - gap]] == value and order[at - gap] > index)
            ):
                order[at] = order[at - gap]
                at -= gap
            order[at] = index
        gap = 1 if gap == 2 else int(gap / 2.2)
    return order


@inner
def _up_to(n):
    """The numbers from 0 to n - 1."""
    numbers = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = i
    return numbers


@inner
def _best_cluster(state, i, out, n_met, may_open, rounding):
    """The cluster of least score for item i, -1 for one of its own, which adds h(1) = 0; the least score.

    Where rounding leaves a choice: the one it is in, else the first, else its own.
    """
    old = state.partition[i]
    least = np.inf
    for m in range(n_met):
        least = min(least, out.scores[out.met[m]])
    if may_open and 0.0 < least - rounding:
        return -1
    best = -1
    for m in range(n_met):
        k = int(out.met[m])
        if out.scores[k] <= least + rounding:
            if k == old:
                return k
            if best < 0 or k < best:
                best = k
    return best


@inner
def _allocate(draws, loss, state, difference, order, most, rounding, out):
    """Put the items of `order` that have no cluster where B + C - 2 A of the items so far grows least.

    Every loss here grows with this difference of the two partitions; those that are linear in A and B are taken as
    they are.
    """
    slopes = Slopes(-2.0 * draws.weights, np.ones(1))
    if is_linear(loss):
        set_slopes(loss, draws, state, slopes)
    n_clusters = _compact(state)
    for i in order:
        if state.partition[i] >= 0:
            continue
        n_met = score_item(state, draws, slopes, difference, i, out)
        k = _best_cluster(state, i, out, n_met, n_clusters < most, rounding)
        if k < 0 and n_clusters < most:
            state, out = _with_room(state, out, n_clusters + 1)
            k = n_clusters
            n_clusters += 1
        elif k < 0:  # it shares no draw's cluster with any of the clusters
            k = _smallest(state)
        move(draws, state, difference, i, k)
    return state, out


@inner
def _smallest(state):
    """The first of the smallest clusters."""
    best = -1
    for k in range(state.sizes.size):
        if state.sizes[k] > 0 and (best < 0 or state.sizes[k] < state.sizes[best]):
            best = k
    return best


def _best_linear_move(loss, draws, state, slopes, difference, i, entering, least, may_open, free, now, rounding, out):
    n_met = score_item(state, draws, slopes, difference, i, out)
    k = _best_cluster(state, i, out, n_met, may_open, rounding)
    return free if k < 0 else k, now


def _best_of_moves(loss, draws, state, slopes, difference, i, entering, least, may_open, free, now, rounding, out):
    old = int(state.partition[i])
    best, target = now - rounding, old
    for k in range(-1, entering.size):
        if k < 0:
            new = free if may_open and least >= 0.0 else -1
        elif state.sizes[k] > 0 and k != old and k != free and entering[k] <= least:
            new = k
        else:
            continue
        if new >= 0:
            value = expected_after(draws, loss, state, difference, i, new)
            if value < best:
                best, target = value, new
    return target, now if target == old else best


_best_move = either(
    LinearLoss,
    _best_linear_move,
    _best_of_moves,
    """The cluster to which the move of item i lowers the expected loss most, or its own, and the level `now` then.

    The column `free` stands for a cluster of its own. Where the loss is not linear, clusters whose score is above
    `least` are not looked at.
    """,
)


@inner
def _scan(draws, loss, state, slopes, difference, fewest, most, doubt, rounding, margins, targets, out):
    """Let every item move once to where the expected loss is least; return the state and how many moved.

    A block of items is scored against frozen tables, of dense ones in single precision and, unless the loss is linear
    in A and B, to first order. Items that look better elsewhere, or worse by no more than the share `doubt` of their
    score, are then scored again without approximation before they move. `margins` receives by how much the best other
    cluster is worse than the item's own, `targets` which it is. Once it is to stop, items stay where they are.
    """
    set_slopes(loss, draws, state, slopes)
    now = level(loss, draws, state)
    n_clusters = _compact(state)
    top = n_clusters  # columns from here on are free
    n_items = state.partition.size
    size = min(_BLOCK, n_items)
    all_staying = np.empty(size)
    entering = np.empty((0, 0))
    moved = 0
    for first_item in range(0, n_items, _BLOCK):
        last_item = min(first_item + _BLOCK, n_items)
        staying = all_staying[: last_item - first_item]
        if not is_linear(loss):
            entering = np.empty((size, state.sizes.size))
            entering[:] = np.inf
        score_block(
            state,
            draws,
            slopes,
            difference,
            first_item,
            staying,
            margins[first_item:last_item],
            targets[first_item:last_item],
            entering,
            out,
        )
        for i in range(first_item, last_item):
            if out.stop[0] != 0:
                return state, moved, out
            old = int(state.partition[i])
            stay = staying[i - first_item]
            alone = state.sizes[old] == 1
            if alone and n_clusters <= fewest:
                margins[i], targets[i] = np.inf, old
                continue
            may_open = n_clusters < most and not alone
            doubtful = doubt * abs(stay - slopes.b[0] * difference[state.sizes[old]])
            if min(margins[i], -stay if may_open else np.inf) > doubtful:
                continue
            if may_open and n_clusters == state.sizes.size:
                state, out = _with_room(state, out, n_clusters + 1)
            free = top if top < state.sizes.size else _first_free(state)
            scores = all_staying if is_linear(loss) else entering[i - first_item]
            k, now = _best_move(
                loss,
                draws,
                state,
                slopes,
                difference,
                i,
                scores,
                stay + doubtful,
                may_open,
                free,
                now,
                rounding,
                out,
            )
            if k != old:
                n_clusters += int(state.sizes[k] == 0) - int(alone)
                top = max(top, k + 1)
                move(draws, state, difference, i, k)
                moved += 1
    return state, moved, out


@inner
def _open_clusters(draws, loss, state, slopes, difference, fewest, margins, out):
    """Give the items that lose least by it clusters of their own until there are `fewest`."""
    n_clusters = _compact(state)
    state, out = _with_room(state, out, fewest)
    set_slopes(loss, draws, state, slopes)
    for i in range(margins.size):
        margins[i] = 0.0
        if out.stop[0] == 0:
            score_item(state, draws, slopes, difference, i, out)
            margins[i] = -out.scores[state.partition[i]]
    for i in _sorted(margins, _up_to(margins.size)):
        if n_clusters < fewest and state.sizes[state.partition[i]] > 1:
            move(draws, state, difference, i, n_clusters)
            n_clusters += 1
    return state, out


@inner
def _members(state, order, n_clusters):
    """The items of the clusters in turn, each in this order, and where each cluster's end."""
    ends = np.zeros(n_clusters, np.int64)
    for k in range(1, n_clusters):
        ends[k] = ends[k - 1] + state.sizes[k - 1]
    members = np.empty(order.size, np.int64)
    for i in order:
        k = state.partition[i]
        members[ends[k]] = i
        ends[k] += 1
    return members, ends


@inner
def _merge(draws, loss, state, slopes, fewest, most, rounding, out):
    """Merge the two clusters whose union lowers the expected loss most; return how many merges there were.

    Where there are more than `most`, the two that raise it least will do. Of many clusters, several pairs merge at
    once: a linear loss falls by the sum of what they gain.
    """
    n_clusters = _compact(state)
    if n_clusters <= fewest or n_clusters < 2:
        return 0
    members, ends = _members(state, _up_to(state.partition.size), n_clusters)
    gains, partners = np.empty(n_clusters), np.zeros(n_clusters, np.int64)
    best_unions(state, draws, loss, slopes, n_clusters, members, ends, out, gains, partners)
    order = _sorted(gains, _up_to(n_clusters))
    names = _up_to(state.sizes.size)
    if n_clusters > most and not np.isfinite(gains[order[0]]):  # no two share a draw's cluster, or it is to stop
        n_merges = n_clusters - most if out.stop[0] != 0 else 1
        for k in range(n_clusters):
            gains[k] = state.sizes[k]
        smallest = _sorted(gains, order)[: n_merges + 1]
        kept = n_clusters
        for k in smallest:
            kept = min(kept, k)
        for k in smallest:
            names[k] = kept
        rename(state, names)
        return n_merges
    wanted = min(n_clusters - fewest, max(1, n_clusters // _MERGE_ONE_IN if is_linear(loss) else 1))
    wanted = max(1, min(wanted, n_clusters - most)) if n_clusters > most else wanted
    is_free = np.ones(n_clusters, np.bool_)
    n_merges = 0
    for k in order:
        other = partners[k]
        if n_merges == wanted or gains[k] >= (np.inf if n_clusters > most else -rounding):
            break
        if is_free[k] and is_free[other]:
            is_free[k] = is_free[other] = False
            names[other] = k
            n_merges += 1
    if n_merges > 0:
        rename(state, names)
        if not is_linear(loss):
            refresh_sums(loss, state, draws.starts)
    return n_merges


@inner
def _sharpen(draws, state, slopes, difference, margins, targets, order, out):
    """Compute the least margins without approximation, and put the items in order."""
    for i in order[:_NEAREST]:
        old = state.partition[i]
        if targets[i] == old:  # it must not move
            continue
        n_met = score_item(state, draws, slopes, difference, i, out)
        margins[i] = np.inf
        for m in range(n_met):
            k = int(out.met[m])
            margin = out.scores[k] - out.scores[old]
            if k != old and (margin < margins[i] or (margin == margins[i] and k < targets[i])):
                margins[i], targets[i] = margin, k
    return _sorted(margins, order)


@inner
def _move_chain(draws, loss, state, slopes, difference, fewest, rounding, margins, targets, out):
    """Move an item although that costs something, and those after it that then gain; whether it pays in all.

    Items that belong together stay where they are because none of them can leave first: Kernighan and Lin's answer to
    the same trap in graphs. The few items of least margin lead. Each is followed by those of the next least that would
    make the same change of cluster, and by a few that would enter or leave one of the two clusters.
    """
    partition, sizes = state.partition, state.sizes
    order = _sorted(margins, _up_to(margins.size))
    if is_linear(loss):
        order = _sharpen(draws, state, slopes, difference, margins, targets, order, out)
    moved = np.empty(_FOLLOWERS + _OTHERS + 1, np.int64)
    origins = np.empty(moved.size, np.int64)
    before = level(loss, draws, state)
    n_clusters = _n_clusters(state)
    for lead in order[:_LEADERS]:
        old, new = partition[lead], targets[lead]
        gain, n_moved, n_alike, n_others, n_gone = 0.0, 0, 0, 0, 0
        for position in range(-1, order.size):
            if position == 0 and n_moved == 0:
                break  # the leader must not move
            i = lead if position < 0 else order[position]
            origin, target = partition[i], targets[i]
            if origin == target or (i == lead and n_moved > 0) or (sizes[origin] == 1 and sizes[target] == 0):
                continue
            alike = origin == old and target == new
            touches = origin == old or origin == new or target == old or target == new
            if not touches or (n_alike > _FOLLOWERS if alike else n_others >= _OTHERS):
                continue
            if not np.isfinite(margins[i]) or (sizes[origin] == 1 and n_clusters - n_gone <= fewest):
                continue
            n_alike += alike
            n_others += not alike
            delta = change(loss, draws, state, slopes, difference, i, target, before + gain)
            if n_moved == 0 or delta < 0.0:
                gain += delta
                n_gone += int(sizes[origin] == 1) - int(sizes[target] == 0)
                move(draws, state, difference, i, target)
                moved[n_moved], origins[n_moved] = i, origin
                n_moved += 1
        if gain < -rounding:
            return True
        for at in range(n_moved):
            move(draws, state, difference, moved[at], origins[at])
    return False


@inner
def _rearrange(draws, loss, state, slopes, difference, items, n_clusters, margins, apart, fewest, most, rounding, out):
    """Dissolve the cluster of these items and allocate them again; return the state and whether that paid.

    The clusters are in the first `n_clusters` columns. If `apart`, the items go into two clusters of their own, begun
    by those that are least and most at home, else into any. Where it does not pay, everything is as before.
    """
    if apart and items.size == 1:
        return state, False, out
    before = level(loss, draws, state)
    top = n_clusters  # columns from here on are free
    state, out = _with_room(state, out, top + items.size)
    old = np.int64(state.partition[items[0]])
    gain = 0.0
    for i in items:
        score_item(state, draws, slopes, difference, i, out)
        gain -= out.scores[old]
        move(draws, state, difference, i, _NOWHERE)
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
        move(draws, state, difference, least, old)
        new = top
        move(draws, state, difference, greatest, new)
        n_clusters += 2
    for i in items:
        if state.partition[i] >= 0:
            continue
        n_met = score_item(state, draws, slopes, difference, i, out)
        if apart:
            # Clusters that are not met add no less than those that are, in which the item shares a draw's cluster.
            one = _score_of(out, n_met, old, slopes.b[0] * difference[state.sizes[old] + 1])
            other = _score_of(out, n_met, new, slopes.b[0] * difference[state.sizes[new] + 1])
            k = new if other < one else old
            gain += min(one, other)
        else:
            k = _best_cluster(state, i, out, n_met, n_clusters < most, rounding)
            if k < 0 and n_clusters < most:
                k = top
                if state.sizes[old] == 0:
                    k = old
                else:
                    top += 1
                n_clusters += 1
            elif k < 0:
                k = _smallest(state)
                gain += slopes.b[0] * difference[state.sizes[k] + 1]
            else:
                gain += out.scores[k]
        move(draws, state, difference, i, k)
    if n_clusters >= fewest:
        if not is_linear(loss):
            gain = level(loss, draws, state) - before
        if gain < -10.0 * rounding:
            return state, True, out
    for i in items:
        if state.partition[i] != old:
            move(draws, state, difference, i, old)
    return state, False, out


@inner
def _score_of(out, n_met, k, otherwise):
    """The score of cluster k, or what it is where the item does not meet it."""
    for m in range(n_met):
        if out.met[m] == k:
            return out.scores[k]
    return otherwise


@inner
def _rearrange_one(draws, loss, state, slopes, difference, order, margins, fewest, most, rounding, tally, out):
    """Dissolve or split the first cluster for which that pays; return the state and whether there was one."""
    for apart in (False, True):
        n_clusters = _compact(state)
        if apart and n_clusters >= most:
            break
        members, ends = _members(state, order, n_clusters)
        for k in range(n_clusters):
            if out.stop[0] != 0:
                return state, False, out
            items = members[ends[k - 1] if k > 0 else 0 : ends[k]]
            state, paid, out = _rearrange(
                draws,
                loss,
                state,
                slopes,
                difference,
                items,
                n_clusters,
                margins,
                apart,
                fewest,
                most,
                rounding,
                out,
            )
            if paid:
                tally[SPLITS if apart else ZEALOUS] += 1
                return state, True, out
    return state, False, out


@inner
def _width(partition):
    width = _WIDTH
    for k in partition:
        width = max(width, k + 1)
    return width


@jit
def settle(draws, loss, partition, order, fewest, most, exactly, effort, stop):
    """Complete a partition and change it until no move of this file lowers the expected loss.

    Parameters
    ----------
    draws : Draws or SparseDraws
        Which tables are kept; sparse ones take a LinearLoss only.
    loss : LinearLoss or GeneralLoss
    partition : int32 array of shape (n,)
        Labels from 0, -1 where an item is to be allocated; changed in place.
    order : integer array
        All items, in the order in which they are allocated.
    fewest, most : int
        Least and largest number of clusters.
    exactly : bool
        Whether a loss that is not linear in A and B is scored without approximation before the search ends.
    effort : int
        -1 for scans alone, 0 for merges too, 1 for chains of moves too, 2 for zealous updates and splits too.
    stop : uint8 array of shape (1,)
        Another thread may set it to 1 to have the partition as it is. Where it has more than `most` clusters, the
        smallest of them merge first, whatever that costs.

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
    most_of_draw = np.int64(0)
    for t in range(draws.weights.size):
        most_of_draw = max(most_of_draw, draws.starts[t + 1] - draws.starts[t])
    state = tables_of(draws, partition, _width(partition))
    out = scratch(state.sizes.size, most_of_draw, stop)
    state, out = _allocate(draws, loss, state, difference, order, most, rounding, out)
    slopes = Slopes(np.empty(draws.weights.size), np.empty(1))
    margins, targets = np.empty(n_items), np.zeros(n_items, np.int64)
    if not linear:
        refresh_sums(loss, state, draws.starts)
    if _n_clusters(state) < fewest:
        state, out = _open_clusters(draws, loss, state, slopes, difference, fewest, margins, out)
    doubt = _MARGIN
    most_doubt = max(_MARGIN, _FIRST_ORDER / n_items) if exactly and not linear else _MARGIN
    while stop[0] == 0 or _n_clusters(state) > most:
        state, moved, out = _scan(
            draws, loss, state, slopes, difference, fewest, most, doubt, rounding, margins, targets, out
        )
        tally[SCANS] += 1
        tally[MOVES] += moved
        if moved == 0 and doubt < most_doubt:
            doubt = most_doubt
            continue
        doubt = _MARGIN
        improved = moved > 0
        if not improved and (effort >= 0 or _n_clusters(state) > most):
            n_merges = _merge(draws, loss, state, slopes, fewest, most, rounding, out)
            tally[MERGES] += n_merges
            improved = n_merges > 0
        if stop[0] != 0:  # the margins may not be known
            continue
        if not improved and effort > 0:
            improved = _move_chain(draws, loss, state, slopes, difference, fewest, rounding, margins, targets, out)
            tally[CHAINS] += improved
        if not improved and effort > 1:
            state, improved, out = _rearrange_one(
                draws, loss, state, slopes, difference, order, margins, fewest, most, rounding, tally, out
            )
        if not improved:
            break
    value = expected(draws, loss, state)
    return value, expected_in_one(draws, loss, state), tally
