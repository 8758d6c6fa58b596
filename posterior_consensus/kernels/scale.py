"""What a search asks of blocks of many items: scores against frozen tables, and moves of the few that are in doubt.

The labels are those of a block, or of items in doubt; the tables are those of all items, and dense. How it is done is
in search.py and cells.py: these are ways in from Python, which only searches of large posteriors compile.
"""

import numpy as np

from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels.cells import score_block, scratch
from posterior_consensus.kernels.search import allocate, compact, count_clusters, merge_best, move_some, rounding_of
from posterior_consensus.kernels.tables import expected, expected_in_one, level, set_slopes

_AT_ONCE = 4096  # items for which the same tables are made ready, whose sums stay in the second cache


@jit
def survey(draws, loss, state, slopes):
    """Move the clusters to the first columns, and compute the sums and slopes anew.

    Returns the expected loss, but for its scale, and that of the partition of one cluster.
    """
    compact(state)
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
            scratch(1, 1),
        )


@jit
def place(draws, loss, state, difference, most):
    """Allocate items that have no cluster, in their order; return the state, which may have more columns."""
    rounding = rounding_of(loss, difference)
    order = np.arange(state.partition.size)
    out = scratch(state.sizes.size, 1)
    return allocate(draws, loss, state, difference, order, most, rounding, out)[0]


@jit
def move_doubtful(draws, loss, state, slopes, difference, staying, margins, targets, entering, fewest, most, doubt):
    """Let items move, in their order, as `move_some` does; return the state and how many moved."""
    width = state.sizes.size
    top = 0  # columns from here on are free
    for k in range(width):
        if state.sizes[k] > 0:
            top = k + 1
    found = move_some(
        draws,
        loss,
        state,
        slopes,
        difference,
        0,
        staying,
        margins,
        targets,
        entering,
        count_clusters(state),
        top,
        level(loss, draws, state),
        fewest,
        most,
        doubt,
        rounding_of(loss, difference),
        scratch(width, 1),
    )
    return found[0], found[1]


@jit
def merge(draws, loss, state, slopes, difference, fewest, most):
    """Merge clusters as `merge_best` does, which needs no labels; return how many merges there were."""
    out = scratch(state.sizes.size, 1)
    return merge_best(draws, loss, state, slopes, fewest, most, rounding_of(loss, difference), out)
