"""Moves of items: allocation to the best cluster, scans of all items, and chains of moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, inner, jit
from posterior_consensus.kernels.cells import (
    Dense,
    Sparse,
    State,
    compact,
    count,
    first_free,
    in_order,
    n_clusters,
    row_of,
    smallest,
    up_to,
    widened,
)
from posterior_consensus.kernels.loss import LinearLoss, is_linear
from posterior_consensus.kernels.scores import score_block, score_item
from posterior_consensus.kernels.tables import (
    Scores,
    Search,
    change,
    expected_after,
    lacks_items,
    level,
    move,
    set_slopes,
)

_BLOCK = 256  # items scored against the same tables
_LEADERS = 4
_FOLLOWERS = 8
_OTHERS = 4
_NEAREST = 16  # items of least margin, whose margins are made exact before a chain of moves


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


def allocate(search: Search, state: State, order: np.ndarray) -> State:
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


def open_clusters(search: Search, state: State, margins: np.ndarray) -> State:
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
    if lacks_items(slopes):
        score_item(state, draws, slopes, i, search.out)
        return search.out.scores[k]
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


class Course(NamedTuple):
    """Position of a scan."""

    now: float  # the level of the expected loss
    n_clusters: int
    top: int  # columns from here on are free
    moved: int  # items so far


def _best_linear_move(search, state, i, entering, least, may_open, free, now):
    n_met = score_item(state, search.draws, search.slopes, i, search.out)
    k = best_cluster(search, state, i, n_met, may_open)
    return free if k < 0 else k, now


def _best_of_moves(search, state, i, entering, least, may_open, free, now):
    old = int(state.partition[i])
    best, target = now - search.rounding, old
    for k in range(-1, entering.size):
        if k < 0:
            new = free if may_open and least >= 0.0 else -1
        elif state.sizes[k] > 0 and k != old and k != free and entering[k] <= least:
            new = k
        else:
            continue
        if new >= 0:
            value = expected_after(search, state, i, new)
            if value < best:
                best, target = value, new
    return target, now if target == old else best


_best_move = either(
    LinearLoss,
    _best_linear_move,
    _best_of_moves,
    """The cluster to which the move of item i lowers the expected loss most, or its own, and the level `now` then.

    The column `free` means a singleton. If the loss is not linear, clusters whose score is above
    `least` are not considered.
    """,
)


def move_doubtful(
    search: Search, state: State, items: np.ndarray, scores: Scores, doubt: float, course: Course
) -> tuple[State, Course]:
    """Move the items that look better elsewhere, or nearly so, to the cluster of minimum expected loss.

    They look so by their scores, which may be approximate or out of date, where another cluster is worse by no more
    than the share `doubt` of what their own adds. They are scored again without approximation before they move. An
    item that must not move gets an infinite margin. Once it is to stop, items stay where they are. Returns the state,
    which may have more columns, and the course.
    """
    return _go_on(search, state, items, scores, doubt, course, 0)


def scan(search: Search, state: State, margins: np.ndarray, targets: np.ndarray, doubt: float) -> tuple[State, int]:
    """Move every item once to its cluster of minimum expected loss; return the state and the number of moves.

    A block of items is scored against frozen tables, of dense ones in single precision and, unless the loss is linear
    in A and B, to first order; then those in doubt move. `margins` and `targets` receive the scores of all items.
    """
    n_clusters = compact(search.draws, state)
    course = Course(set_slopes(search.loss, search.draws, state, search.slopes), n_clusters, n_clusters, 0)
    scores = Scores(np.empty(margins.size), margins, targets, np.empty((1, 0)))
    state, course = _go_on(search, state, np.arange(margins.size), scores, doubt, course, _BLOCK)
    return state, course.moved


def _go_on(search, state, items, scores, doubt, course, block):
    """Move items in doubt; if `block` is not 0, score all items first, `block` at a time."""
    at = 0
    while True:
        if block and at % block == 0 and not is_linear(search.loss):
            scores = scores._replace(entering=np.empty((min(block, items.size), state.sizes.size)))
        at, *course = _move_doubtful(search, state, items, scores, doubt, block, at, course)
        course = Course(*course)
        if at == items.size:
            return state, course
        state = widened(state, course.n_clusters + 1)


@jit
def _move_doubtful(search, state, items, scores, doubt, block, begin, course):
    """Go on with the item `items[begin]`, until the tables or the scores of a block need more columns."""
    draws, slopes, stop = search.draws, search.slopes, search.out.stop
    staying, margins, targets, entering = scores
    now, n_clusters, top, moved = course
    for at in range(begin, items.size):
        if block > 0 and at % block == 0:
            if not is_linear(search.loss) and entering.shape[1] < state.sizes.size:
                return at, now, n_clusters, top, moved
            score_block(state, draws, slopes, at, min(at + block, items.size), scores, search.out)
        if stop[0] != 0:
            break
        i = items[at]
        old = int(state.partition[i])
        stay = staying[at]
        alone = state.sizes[old] == 1
        if alone and n_clusters <= search.fewest:
            margins[at], targets[at] = np.inf, old
            continue
        may_open = n_clusters < search.most and not alone
        doubtful = doubt * abs(stay - slopes.b[0] * slopes.steps[state.sizes[old]])
        if min(margins[at], -stay if may_open else np.inf) > doubtful:
            continue
        if may_open and n_clusters == state.sizes.size:
            return at, now, n_clusters, top, moved
        free = top if top < state.sizes.size else first_free(state)
        k, now = _best_move(search, state, i, entering[at % len(entering)], stay + doubtful, may_open, free, now)
        if k != old:
            n_clusters += int(state.sizes[k] == 0) - int(alone)
            top = max(top, k + 1)
            move(draws, state, slopes, i, k)
            moved += 1
    return items.size, now, n_clusters, top, moved


@inner
def _sharpen(search, state, margins, targets, order):
    """Compute the least margins without approximation, and put the items in order."""
    draws, slopes, out = search.draws, search.slopes, search.out
    for i in order[:_NEAREST]:
        old = state.partition[i]
        if targets[i] == old:  # it must not move
            continue
        n_met = score_item(state, draws, slopes, i, out)
        margins[i] = np.inf
        for m in range(n_met):
            k = int(out.met[m])
            margin = out.scores[k] - out.scores[old]
            if k != old and (margin < margins[i] or (margin == margins[i] and k < targets[i])):
                margins[i], targets[i] = margin, k
    return in_order(margins, order)


@jit
def move_chain(search: Search, state: Dense | Sparse, margins: np.ndarray, targets: np.ndarray) -> bool:
    """Move an item although that costs something, and those after it that then gain; whether it pays in all.

    Items that belong together stay where they are because none of them can leave first: Kernighan and Lin's answer to
    the same trap in graphs. The few items of least margin lead. Each is followed by those of the next least that would
    make the same change of cluster, and by a few that would enter or leave one of the two clusters.
    """
    draws, slopes = search.draws, search.slopes
    partition, sizes = state.partition, state.sizes
    order = in_order(margins, up_to(margins.size))
    if is_linear(search.loss):
        order = _sharpen(search, state, margins, targets, order)
    moved = np.empty(_FOLLOWERS + _OTHERS + 1, np.int64)
    origins = np.empty(moved.size, np.int64)
    before = level(search.loss, draws, state)
    n_before = n_clusters(state)
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
            if not np.isfinite(margins[i]) or (sizes[origin] == 1 and n_before - n_gone <= search.fewest):
                continue
            n_alike += alike
            n_others += not alike
            delta = change(search, state, i, target, before + gain)
            if n_moved == 0 or delta < 0.0:
                gain += delta
                n_gone += int(sizes[origin] == 1) - int(sizes[target] == 0)
                move(draws, state, slopes, i, target)
                moved[n_moved], origins[n_moved] = i, origin
                n_moved += 1
        if gain < -search.rounding:
            return True
        for at in range(n_moved):
            move(draws, state, slopes, moved[at], origins[at])
    return False
