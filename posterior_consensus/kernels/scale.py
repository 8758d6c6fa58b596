"""What a search asks of blocks of many items: scores against frozen tables, and moves of the few that are in doubt.

The labels are those of a block, or of items in doubt; the tables are those of all items, and dense. How it is done is
in search.py and cells.py: these are ways in from Python, which only searches of large posteriors compile.
"""

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import score_block, scratch
from posterior_consensus.kernels.loss import has_denominator, is_linear
from posterior_consensus.kernels.search import (
    _FIRST_ORDER,
    _MARGIN,
    _TINY,
    _allocate,
    _best_move,
    _compact,
    _first_free,
    _merge,
    _n_clusters,
    _with_room,
)
from posterior_consensus.kernels.tables import expected, expected_in_one, level, move, set_slopes

_AT_ONCE = 4096  # items for which the same tables are made ready, whose sums stay in the second cache

MARGIN, FIRST_ORDER = _MARGIN, _FIRST_ORDER


@inner
def _rounding(loss, difference):
    return _TINY * (difference[-2] if is_linear(loss) else 1.0 if has_denominator(loss) else loss.h[-1])


@jit
def survey(draws, loss, state, slopes):
    """Move the clusters to the first columns, and compute the sums and slopes anew.

    Returns the expected loss, but for its scale, and that of the partition of one cluster.
    """
    _compact(state)
    value = expected(draws, loss, state)
    set_slopes(loss, draws, state, slopes)
    return value, expected_in_one(draws, loss, state)


@jit
def score(draws, state, slopes, difference, staying, margins, targets, entering):
    """Score a block of items as `score_block` does; items without a cluster stay for 0."""
    staying[:] = 0.0
    for first in range(0, staying.size, _AT_ONCE):
        last = min(first + _AT_ONCE, staying.size)
        score_block(
            state,
            draws,
            slopes,
            difference,
            first,
            staying[first:last],
            margins[first:last],
            targets[first:last],
            entering[first:last],
            scratch(1, 1, np.zeros(1, np.uint8)),
        )


@jit
def place(draws, loss, state, difference, most):
    """Allocate items that have no cluster, in their order; return the state, which may have more columns."""
    rounding = _rounding(loss, difference)
    order = np.arange(state.partition.size)
    out = scratch(state.sizes.size, 1, np.zeros(1, np.uint8))
    return _allocate(draws, loss, state, difference, order, most, rounding, out)[0]


@jit
def move_doubtful(draws, loss, state, slopes, difference, staying, margins, entering, fewest, most, doubt):
    """Let items that look better elsewhere, or nearly so, move in their order to where the loss is least.

    They are scored anew against the tables as they are by then, as in a scan of all items. Returns the state and how
    many moved.
    """
    rounding = _rounding(loss, difference)
    out = scratch(state.sizes.size, 1, np.zeros(1, np.uint8))
    now = level(loss, draws, state)
    n_clusters = _n_clusters(state)
    moved = 0
    for i in range(staying.size):
        old = int(state.partition[i])
        alone = state.sizes[old] == 1
        may_open = n_clusters < most and not alone
        doubtful = doubt * abs(staying[i] - slopes.b[0] * difference[state.sizes[old]])
        if (alone and n_clusters <= fewest) or min(margins[i], -staying[i] if may_open else np.inf) > doubtful:
            continue
        if may_open and n_clusters == state.sizes.size:
            state, out = _with_room(state, out, n_clusters + 1)
        free = _first_free(state)
        scores = entering[0 if is_linear(loss) else i]
        least = staying[i] + doubtful
        k, now = _best_move(
            loss, draws, state, slopes, difference, i, scores, least, may_open, free, now, rounding, out
        )
        if k != old:
            n_clusters += int(state.sizes[k] == 0) - int(alone)
            move(draws, state, difference, i, k)
            moved += 1
    return state, moved


@jit
def merge(draws, loss, state, slopes, difference, fewest, most):
    """Merge clusters as `merge_best` does, which needs no labels; return how many merges there were."""
    out = scratch(state.sizes.size, 1, np.zeros(1, np.uint8))
    return _merge(draws, loss, state, slopes, fewest, most, _rounding(loss, difference), out)
