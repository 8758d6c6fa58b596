"""What items add, in each cluster, to a loss that is linear in the sums A and B: exactly, or for blocks of items."""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import LANES, ROWS, add_eight, either, inner, jit
from posterior_consensus.kernels.cells import Dense, Draws, Sparse, SparseDraws
from posterior_consensus.kernels.tables import CLUSTERS_FROM, Scores, Scratch, Slopes, lacks_items

_FLUSH = 256  # draws whose scores are summed in single precision
_HALF = LANES // 2


@inner
def _n_columns(state):
    """How many columns there are up to the last that a cluster has."""
    used = 0
    for k in range(state.sizes.size):
        if state.sizes[k] > 0:
            used = k + 1
    return used


def _score_item_dense(state, draws, slopes, i, out):
    labels, starts, _ = draws
    steps = slopes.steps
    old = state.partition[i]
    used = _n_columns(state)
    scores = out.scores[:used]
    scores[:] = 0.0
    staying = 0.0
    lacking = lacks_items(slopes)
    own = 0.0 if lacking else slopes.b[0]
    for t in range(starts.size - 1):
        row = state.counts[starts[t] + labels[t, i]]
        slope = slopes.a[t]
        if lacking:
            if labels[t, i] == 0:
                continue
            lacked, of_size = state.counts[starts[t]], slopes.b[t + 1]
            for k in range(used):
                scores[k] += of_size * steps[state.sizes[k] - lacked[k] + 1]
            if old >= 0:
                staying += of_size * steps[state.sizes[old] - lacked[old]]
            if labels[t, i] < CLUSTERS_FROM:
                continue
        for k in range(used):
            scores[k] += slope * steps[row[k] + 1]
        if old >= 0:
            staying += slope * steps[row[old]]
    if old >= 0:
        scores[old] = staying
    n_met = 0
    for k in range(used):
        if state.sizes[k] > 0:
            scores[k] += own * steps[state.sizes[k] + (k != old)]
            out.met[n_met] = k
            n_met += 1
    return n_met


@inner
def _score_item_sparse(state, draws, slopes, i, out):
    cells, steps = state.cells, slopes.steps
    scores, met, touched = out.scores, out.met, out.touched
    old = state.partition[i]
    n_met = 0
    for t in range(slopes.a.size):
        row = draws.row_of[i, t]
        slope = slopes.a[t]
        for at in range(row + 1, row + 1 + 2 * cells[row], 2):
            k = cells[at]
            if not touched[k]:
                touched[k] = True
                met[n_met] = k
                n_met += 1
                scores[k] = 0.0
            scores[k] += slope * steps[cells[at + 1] + (k != old)]
    for m in range(n_met):
        k = met[m]
        touched[k] = False
        scores[k] += slopes.b[0] * steps[state.sizes[k] + (k != old)]
    return n_met


@inner
def _score_columns(state, draws, slopes, first_item, first, sums, totals):
    """Score a block of items for entering and for staying in eight clusters, all against the tables as they are.

    `totals` (items, 16) receives sum_t slope_t (h(x + 1) - h(x)) over the cells x that the item would enter, then the
    same with h(x) - h(x - 1). The draws are the outer loop: the table of eight draws then stays in the first cache.
    Sums are kept in single precision for _FLUSH draws at most, which bounds their rounding. Of runs that lack items,
    each cell also has what the run's part of a cluster adds to B. Those of noise have this alone, and those of items
    that the run lacks are 0.
    """
    labels, starts, _ = draws
    steps = slopes.steps
    n_draws = labels.shape[0]
    n_block = totals.shape[0]
    last = min(_HALF, state.sizes.size - first)
    most = 0
    for t in range(n_draws):
        most = max(most, starts[t + 1] - starts[t])
    table = np.zeros(ROWS * most * LANES, np.float32)
    flat = sums.ravel()
    totals[:] = 0.0
    for begin in range(0, n_draws, _FLUSH):
        sums[:] = 0.0
        end = min(begin + _FLUSH, n_draws)
        for t in range(begin, end, ROWS):
            together = min(ROWS, end - t)
            for s in range(together):
                slope = slopes.a[t + s]
                for row in range(starts[t + s], starts[t + s + 1]):
                    at = (s * most + row - starts[t + s]) * LANES
                    for k in range(last):
                        count = state.counts[row, first + k]
                        table[at + k] = slope * steps[count + 1]
                        table[at + _HALF + k] = slope * steps[count]
                if lacks_items(slopes):
                    lacked, of_size = state.counts[starts[t + s]], slopes.b[t + s + 1]
                    for k in range(last):
                        size = state.sizes[first + k] - lacked[first + k]
                        enter, stay = of_size * steps[size + 1], of_size * steps[size]
                        at = s * most * LANES + k
                        for _ in range(CLUSTERS_FROM):
                            table[at] = table[at + _HALF] = 0.0
                            at += LANES
                        at = s * most * LANES + k
                        for _ in range(starts[t + s] + 1, starts[t + s + 1]):
                            at += LANES
                            table[at] += enter
                            table[at + _HALF] += stay
            if together == ROWS:
                draws_now = t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6, t + 7
                add_eight(flat, table, most, labels, draws_now, first_item, n_block)
            else:
                for s in range(together):
                    for b in range(n_block):
                        at = (s * most + np.intp(labels[t + s, first_item + b])) * LANES
                        for k in range(LANES):
                            sums[b, k] += table[at + k]
        for b in range(n_block):
            for k in range(LANES):
                totals[b, k] += sums[b, k]


def _score_block_dense(state, draws, slopes, first_item, last_item, scores, out):
    staying, margins, targets, entering = scores
    steps = slopes.steps
    n_items = last_item - first_item
    sums, totals = np.empty((n_items, LANES), np.float32), np.empty((n_items, LANES))
    used = _n_columns(state)
    own = 0.0 if lacks_items(slopes) else slopes.b[0]
    for i in range(first_item, last_item):
        margins[i] = np.inf
        for k in range(entering.shape[1]):
            entering[i % len(entering), k] = np.inf
    for first in range(0, used, _HALF):
        if out.stop[0] != 0:
            return
        _score_columns(state, draws, slopes, first_item, first, sums, totals)
        for b in range(n_items):
            i = first_item + b
            old = state.partition[i]
            for k in range(first, min(first + _HALF, used)):
                if k == old:
                    staying[i] = totals[b, _HALF + k - first] + own * steps[state.sizes[k]]
                elif state.sizes[k] > 0:
                    score = totals[b, k - first] + own * steps[state.sizes[k] + 1]
                    if entering.size > 0:
                        entering[i % len(entering), k] = score
                    if score < margins[i]:
                        margins[i], targets[i] = score, k
    for i in range(first_item, last_item):
        margins[i] -= staying[i]


def _score_block_sparse(state, draws, slopes, first_item, last_item, scores, out):
    staying, margins, targets, _ = scores
    for i in range(first_item, last_item):
        if out.stop[0] != 0:
            return
        n_met = _score_item_sparse(state, draws, slopes, i, out)
        old = state.partition[i]
        margins[i] = np.inf
        for m in range(n_met):
            k = out.met[m]
            if k == old:
                staying[i] = out.scores[k]
            elif out.scores[k] < margins[i] or (out.scores[k] == margins[i] and k < targets[i]):
                margins[i], targets[i] = out.scores[k], k
        margins[i] -= staying[i]


_item_of_either = either(Dense, _score_item_dense, _score_item_sparse, "Score an item against tables of either kind.")


@inner  # without which each caller would compile its own
def score_item(state, draws, slopes, i, out):
    """Fill `out.scores[k]` with the change of the loss if item i, removed from its cluster, joins cluster k.

    Returns the number of clusters in `out.met`: those that share a draw's cluster with the item, or all.
    """
    return _item_of_either(state, draws, slopes, i, out)


_block_of_either = either(
    Dense, _score_block_dense, _score_block_sparse, "Score a block against tables of either kind."
)


@jit
def score_block(
    state: Dense | Sparse,
    draws: Draws | SparseDraws,
    slopes: Slopes,
    first_item: int,
    last_item: int,
    scores: Scores,
    out: Scratch,
) -> None:
    """Write the scores of a block of items, all against the tables as they are; of dense tables in single precision.

    Item i has row ``i % m`` of the m rows of `entering`, which sparse tables leave as they are. Once it is to stop,
    nothing it writes counts.
    """
    _block_of_either(state, draws, slopes, first_item, last_item, scores, out)
