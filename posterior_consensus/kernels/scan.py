"""Scans: each item moves to where the expected loss is least."""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, jit
from posterior_consensus.kernels.allocation import best_cluster
from posterior_consensus.kernels.cells import widened
from posterior_consensus.kernels.columns import compact, first_free
from posterior_consensus.kernels.loss import LinearLoss, is_linear
from posterior_consensus.kernels.records import Scores
from posterior_consensus.kernels.scores import score_block, score_item
from posterior_consensus.kernels.tables import expected_after, move, set_slopes

_BLOCK = 256  # items scored against the same tables


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


def move_doubtful(search, state, items, scores, doubt, course):
    """Move the items that look better elsewhere, or nearly so, to the cluster of minimum expected loss.

    They look so by their scores, which may be approximate or out of date, where another cluster is worse by no more
    than the share `doubt` of what their own adds. They are scored again without approximation before they move. An
    item that must not move gets an infinite margin. Once it is to stop, items stay where they are. Returns the state,
    which may have more columns, and the course.
    """
    return _go_on(search, state, items, scores, doubt, course, 0)


def scan(search, state, margins, targets, doubt):
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
