"""The tables that a search over draws keeps, and the scores of items read from them."""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import jit
from posterior_consensus.kernels._simd import LANES, ROWS, add_rows
from posterior_consensus.kernels.loss import has_denominator, loss_value

_STEP = 1e-6  # of the differences that stand for derivatives, relative to h(n)
_FLUSH = 256  # draws whose scores are summed in single precision


class Draws(NamedTuple):
    """The draws as a search sees them."""

    labels: np.ndarray  # (N, n)
    starts: np.ndarray  # (N + 1,), the first of the R rows of each draw
    weights: np.ndarray  # (N,), summing to 1


class State(NamedTuple):
    """A partition of some or all items, and its contingency with every draw over these items."""

    partition: np.ndarray  # (n,), -1 where an item is not allocated
    sizes: np.ndarray  # (width,)
    counts: np.ndarray  # (R, width)
    joint: np.ndarray  # (N,), A of each draw, kept only where the loss is not linear
    drawn: np.ndarray  # (N,), C of each draw


class Slopes(NamedTuple):
    """What one unit of A in each draw, and one of B, adds to the expected loss."""

    a: np.ndarray  # (N,)
    b: np.ndarray  # (1,)


@jit
def tables(draws, partition, width):
    """The state of a partition with `width` columns; `joint` and `drawn` are left to refresh_sums."""
    labels, starts, weights = draws
    sizes = np.zeros(width, np.int64)
    counts = np.zeros((starts[-1], width), np.int32)
    for k in partition:
        if k >= 0:
            sizes[k] += 1
    n_draws = weights.size
    for t in range(0, n_draws, 4):  # four at once: a count waits for the last one in the same place
        t1, t2, t3 = min(t + 1, n_draws - 1), min(t + 2, n_draws - 1), min(t + 3, n_draws - 1)
        one, two, three = np.int32(t1 > t), np.int32(t2 > t1), np.int32(t3 > t2)
        for i in range(partition.size):
            k = partition[i]
            if k >= 0:
                counts[starts[t] + labels[t, i], k] += 1
                counts[starts[t1] + labels[t1, i], k] += one
                counts[starts[t2] + labels[t2, i], k] += two
                counts[starts[t3] + labels[t3, i], k] += three
    return State(partition, sizes, counts, np.zeros(weights.size), np.zeros(weights.size))


@jit
def widened(state):
    """The same state with twice the columns."""
    width = state.sizes.size
    sizes = np.zeros(2 * width, np.int64)
    counts = np.zeros((state.counts.shape[0], 2 * width), np.int32)
    for k in range(width):
        sizes[k] = state.sizes[k]
    for row in range(counts.shape[0]):
        for k in range(width):
            counts[row, k] = state.counts[row, k]
    return State(state.partition, sizes, counts, state.joint, state.drawn)


@jit
def compact(state):
    """Move the clusters to the first columns; return how many there are."""
    partition, sizes, counts = state.partition, state.sizes, state.counts
    columns = np.empty(sizes.size, np.int32)
    n_clusters = 0
    for k in range(sizes.size):
        columns[k] = n_clusters
        if sizes[k] > 0:
            if n_clusters < k:
                sizes[n_clusters] = sizes[k]
                sizes[k] = 0
                for row in counts:
                    row[n_clusters] = row[k]
                    row[k] = 0
            n_clusters += 1
    for i in range(partition.size):
        if partition[i] >= 0:
            partition[i] = columns[partition[i]]
    return n_clusters


@jit
def own_sum(loss, state):
    """B of the state."""
    own = 0.0
    for size in state.sizes:
        own += loss.h[size]
    return own


@jit
def refresh_sums(loss, state, starts):
    """Compute A and C of every draw anew, free of the rounding that moves leave behind."""
    width = state.sizes.size
    for t in range(state.joint.size):
        joint, drawn = 0.0, 0.0
        for row in range(starts[t], starts[t + 1]):
            total = 0
            for k in range(width):
                count = state.counts[row, k]
                joint += loss.h[count]
                total += count
            drawn += loss.h[total]
        state.joint[t], state.drawn[t] = joint, drawn


@jit
def expected(draws, loss, state):
    """Expected loss of a partition of all items, but for the loss's scale."""
    refresh_sums(loss, state, draws.starts)
    return current(draws, loss, state)


@jit
def current(draws, loss, state):
    """The same, from the sums as they are kept."""
    is_ratio = has_denominator(loss)
    own = own_sum(loss, state)
    total = 0.0
    for t in range(state.joint.size):
        total += draws.weights[t] * loss_value(loss, is_ratio, loss.h[-1], state.joint[t], own, state.drawn[t])
    return total


@jit
def expected_in_one(draws, loss, state):
    """The same of all items in one cluster, whose joint cells are the draws' clusters; after `expected`."""
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    total = 0.0
    for t in range(state.drawn.size):
        c = state.drawn[t]
        total += draws.weights[t] * loss_value(loss, is_ratio, top, c, top, c)
    return total


@jit
def set_slopes(draws, loss, state, linear, slopes):
    """Derivatives of the expected loss; for a loss that is not linear, at the state's sums as they are kept."""
    if linear:
        for t in range(draws.weights.size):
            slopes.a[t] = loss.numerator[1] * draws.weights[t]
        slopes.b[0] = loss.numerator[2]
        return
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    own = own_sum(loss, state)
    step = _STEP * max(top, 1.0)  # h(1) = 0
    slopes.b[0] = 0.0
    for t in range(state.joint.size):
        a, c, weight = state.joint[t], state.drawn[t], draws.weights[t] / (2.0 * step)
        more = loss_value(loss, is_ratio, top, a + step, own, c)
        less = loss_value(loss, is_ratio, top, a - step, own, c)
        slopes.a[t] = weight * (more - less)
        more = loss_value(loss, is_ratio, top, a, own + step, c)
        less = loss_value(loss, is_ratio, top, a, own - step, c)
        slopes.b[0] += weight * (more - less)


@jit
def score_block(draws, state, slopes, difference, first_item, first, sums, totals):
    """Score the items of a block for entering and for staying in eight clusters, all against the tables as they are.

    `totals` (items, 16) receives sum_t slope_t (h(x + 1) - h(x)) over the cells x that the item would enter, then the
    same with h(x) - h(x - 1). The draws are the outer loop: the table of eight draws then stays in the first cache.
    Sums are kept in single precision for _FLUSH draws at most, which bounds their rounding.
    """
    labels, starts, _ = draws
    n_draws = labels.shape[0]
    n_block = totals.shape[0]
    half = LANES // 2
    last = min(half, state.sizes.size - first)
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
                        table[at + k] = slope * difference[count + 1]
                        table[at + half + k] = slope * difference[count]
            if together == ROWS:
                z0, z1, z2, z3 = labels[t], labels[t + 1], labels[t + 2], labels[t + 3]
                z4, z5, z6, z7 = labels[t + 4], labels[t + 5], labels[t + 6], labels[t + 7]
                for b in range(n_block):
                    i = np.uint64(first_item + b)
                    rows = (
                        np.intp(z0[i]) * LANES,
                        (np.intp(z1[i]) + most) * LANES,
                        (np.intp(z2[i]) + 2 * most) * LANES,
                        (np.intp(z3[i]) + 3 * most) * LANES,
                        (np.intp(z4[i]) + 4 * most) * LANES,
                        (np.intp(z5[i]) + 5 * most) * LANES,
                        (np.intp(z6[i]) + 6 * most) * LANES,
                        (np.intp(z7[i]) + 7 * most) * LANES,
                    )
                    add_rows(flat, b * LANES, table, rows)
            else:
                for s in range(together):
                    for b in range(n_block):
                        at = (s * most + np.intp(labels[t + s, first_item + b])) * LANES
                        for k in range(LANES):
                            sums[b, k] += table[at + k]
        for b in range(n_block):
            for k in range(LANES):
                totals[b, k] += sums[b, k]


@jit
def score_linear(draws, state, slopes, difference, i, scores):
    """What item i, out of its cluster if it is in one, adds in each cluster to a loss with these slopes."""
    labels, starts, _ = draws
    old = state.partition[i]
    scores[:] = 0.0
    staying = 0.0
    used = 0
    for k in range(scores.size):
        if state.sizes[k] > 0:
            used = k + 1
    for t in range(starts.size - 1):
        row = state.counts[starts[t] + labels[t, i]]
        slope = slopes.a[t]
        for k in range(used):  # a cluster of its own adds h(1) = 0
            scores[k] += slope * difference[row[k] + 1]
        if old >= 0:
            staying += slope * difference[row[old]]
    if old >= 0:
        scores[old] = staying
    for k in range(used):
        scores[k] += slopes.b[0] * difference[state.sizes[k] + (k != old)]


@jit
def change_linear(draws, state, slopes, difference, i, new):
    """What the move of item i to cluster `new` adds to a loss with these slopes."""
    labels, starts, _ = draws
    old = state.partition[i]
    total = slopes.b[0] * (difference[state.sizes[new] + 1] - difference[state.sizes[old]])
    for t in range(starts.size - 1):
        row = state.counts[starts[t] + labels[t, i]]
        total += slopes.a[t] * (difference[row[new] + 1] - difference[row[old]])
    return total


@jit
def expected_after(draws, loss, state, difference, i, new):
    """Expected loss, but for its scale, once item i is in cluster `new`, another than its own."""
    labels, starts, weights = draws
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    old = state.partition[i]
    own = own_sum(loss, state) + difference[state.sizes[new] + 1] - difference[state.sizes[old]]
    values = np.empty(weights.size)
    for t in range(weights.size):
        row = state.counts[starts[t] + labels[t, i]]
        values[t] = state.joint[t] + difference[row[new] + 1] - difference[row[old]]
    for t in range(weights.size):  # apart from the loop above, so that it runs in vector registers
        values[t] = weights[t] * loss_value(loss, is_ratio, top, values[t], own, state.drawn[t])
    total = 0.0
    for value in values:
        total += value
    return total


@jit
def move(draws, state, difference, i, k):
    """Put item i into cluster k, out of the one it is in, if any."""
    labels, starts, _ = draws
    old = state.partition[i]
    for t in range(starts.size - 1):
        row = starts[t] + labels[t, i]
        if old >= 0:
            state.joint[t] -= difference[state.counts[row, old]]
            state.counts[row, old] -= 1
        state.counts[row, k] += 1
        state.joint[t] += difference[state.counts[row, k]]
    if old >= 0:
        state.sizes[old] -= 1
    state.sizes[k] += 1
    state.partition[i] = k


@jit
def take_out(draws, state, i):
    """Take item i out of its cluster; A and C of the draws are not kept."""
    labels, starts, _ = draws
    old = state.partition[i]
    for t in range(starts.size - 1):
        state.counts[starts[t] + labels[t, i], old] -= 1
    state.sizes[old] -= 1
    state.partition[i] = -1


@jit
def choose(scores, state, i, may_open, rounding):
    """The cluster of least score for item i; where rounding leaves a choice, the one it is in, else the first."""
    best = int(state.partition[i])
    for k in range(scores.size):
        if (state.sizes[k] > 0 or may_open) and (best < 0 or scores[k] < scores[best] - rounding):
            best = k
    return best
