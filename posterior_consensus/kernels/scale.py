"""What a search asks of blocks of many items: scores against frozen tables, and moves of the few that are in doubt.

The labels are those of a block, or of items in doubt; the tables are those of all items, and dense. How it is done is
in the files of the search: these are ways in from Python, which only searches of large posteriors compile.
"""

import numpy as np

from posterior_consensus.kernels import scan, unions
from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels.allocation import allocate
from posterior_consensus.kernels.columns import compact, n_clusters, up_to
from posterior_consensus.kernels.records import Scores, Scratch, Slopes, search_of
from posterior_consensus.kernels.scores import score_block
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
def score(draws, state, slopes, scores):
    """Score a block of items as `score_block` does; items without a cluster stay for 0."""
    staying, margins, targets, entering = scores
    staying[:] = 0.0
    nothing = np.empty(0, np.int64)
    out = Scratch(np.empty(0), np.empty(0, np.int32), np.empty(0, np.bool_), nothing, np.zeros(1, np.uint8))
    for first in range(0, staying.size, _AT_ONCE):
        last = min(first + _AT_ONCE, staying.size)
        part = Scores(staying[first:last], margins[first:last], targets[first:last], entering[first:last])
        score_block(state, draws, slopes, first, part, out)


@jit
def place(draws, loss, state, slopes, most):
    """Allocate items that have no cluster, in their order; return the state, which may have more columns."""
    slopes = Slopes(np.empty(draws.weights.size), np.empty(1), slopes.steps)
    search = search_of(draws, loss, slopes, state, (1, most), np.zeros(1, np.uint8))
    return allocate(search, state, up_to(state.partition.size))


@jit
def move_doubtful(draws, loss, state, slopes, scores, doubt, limits):
    """Let items that look better elsewhere, or nearly so, move in their order to where the loss is least.

    They are scored anew against the tables as they are by then, as in a scan of all items. Returns the state and how
    many moved.
    """
    search = search_of(draws, loss, slopes, state, limits, np.zeros(1, np.uint8))
    course = scan.Course(level(loss, draws, state), n_clusters(state), state.sizes.size, 0)
    state, course = scan.move_doubtful(search, state, up_to(state.partition.size), scores, doubt, course)
    return state, course.moved


@jit
def merge(draws, loss, state, slopes, limits):
    """Merge clusters as a search does, which needs no labels; return how many merges there were."""
    return unions.merge(search_of(draws, loss, slopes, state, limits, np.zeros(1, np.uint8)), state)
