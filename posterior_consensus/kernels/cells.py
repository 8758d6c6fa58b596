"""Contingency tables of a partition with every draw, kept cell by cell or as the cells that are not zero.

A search asks the same of both: the count of a cell, a change of it, new columns, columns renamed, the sums of h, and
what items and unions of clusters add to a loss that is linear in them. The functions at the end of this file take
either.

A row stands for a cluster of a draw, a column for a cluster of the partition; `row_of` says which row an item is in.
"""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, inner
from posterior_consensus.kernels._simd import LANES, ROWS, add_rows
from posterior_consensus.kernels.loss import has_denominator, is_linear, loss_value

_FLUSH = 256  # draws whose scores are summed in single precision
_HALF = LANES // 2


class Draws(NamedTuple):
    """The draws as a search sees them."""

    labels: np.ndarray  # (N, n)
    starts: np.ndarray  # (N + 1,), the first of the R rows of each draw
    weights: np.ndarray  # (N,), summing to 1


class SparseDraws(NamedTuple):
    """The same, of which a search keeps sparse tables."""

    labels: np.ndarray
    starts: np.ndarray
    weights: np.ndarray


class Slopes(NamedTuple):
    """What one unit of A in each draw, and one of B, adds to the expected loss."""

    a: np.ndarray  # (N,)
    b: np.ndarray  # (1,)


class Scratch(NamedTuple):
    """What scores are written to, and whether to write no more of them."""

    scores: np.ndarray  # (width,), of the clusters in `met`
    met: np.ndarray  # (width,), clusters that an item, or a cluster, shares a draw's cluster with
    touched: np.ndarray  # (width,), all False between calls
    seen: np.ndarray  # (most clusters of a draw,)
    stop: np.ndarray  # (1,), which another thread may set to 1


class Dense(NamedTuple):
    """A partition of some or all items, and every cell of its tables."""

    partition: np.ndarray  # (n,), -1 where an item is not allocated
    sizes: np.ndarray  # (width,)
    joint: np.ndarray  # (N,), A of each draw, kept only where the loss is not linear
    drawn: np.ndarray  # (N,), C of each draw
    counts: np.ndarray  # (R, width)


class Sparse(NamedTuple):
    """The same with the cells that are not zero, at most as many in a row as the draw's cluster has items.

    A row is known by the place at which it begins in `cells`: how many cells it has, then the column and the count of
    each. All that a score reads of a row lies side by side, since most of its time goes into waiting for memory.
    """

    partition: np.ndarray
    sizes: np.ndarray
    joint: np.ndarray
    drawn: np.ndarray
    rows: np.ndarray  # (R,)
    row_of: np.ndarray  # (n, N), of each item in each draw
    cells: np.ndarray  # (R + 2 N n,)


@inner
def scratch(width, most, stop):
    """Scratch for so many clusters, and so many of a draw."""
    return Scratch(
        np.empty(width), np.empty(width, np.int32), np.zeros(width, np.bool_), np.empty(most, np.int64), stop
    )


@inner
def _sizes(partition, width):
    sizes = np.zeros(width, np.int64)
    for k in partition:
        if k >= 0:
            sizes[k] += 1
    return sizes


def _dense(draws, partition, width):
    labels, starts, weights = draws
    counts = np.zeros((starts[-1], width), np.int32)
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
    return Dense(partition, _sizes(partition, width), np.zeros(n_draws), np.zeros(n_draws), counts)


def _sparse(draws, partition, width):
    labels, starts, _ = draws
    n_draws, n_items = labels.shape
    rows = np.zeros(starts[-1], np.int64)
    for t in range(n_draws):
        for i in range(n_items):
            rows[starts[t] + labels[t, i]] += 1
    end = 0
    for row in range(rows.size):
        size = rows[row]
        rows[row] = end
        end += 1 + 2 * size
    row_of = np.empty((n_items, n_draws), np.int64)
    for t in range(n_draws):
        for i in range(n_items):
            row_of[i, t] = rows[starts[t] + labels[t, i]]
    sizes = _sizes(partition, width)
    state = Sparse(partition, sizes, np.zeros(n_draws), np.zeros(n_draws), rows, row_of, np.zeros(end, np.int32))
    for i in range(n_items):
        if partition[i] >= 0:
            for t in range(n_draws):
                _add_sparse(state, row_of[i, t], partition[i], 1)
    return state


def _row_of_dense(state, draws, i, t):
    return draws.starts[t] + draws.labels[t, i]


def _row_of_sparse(state, draws, i, t):
    return state.row_of[i, t]


def _row_dense(state, row):
    return row


def _row_sparse(state, row):
    return state.rows[row]


def _count_dense(state, row, k):
    return state.counts[row, k]


@inner
def _count_sparse(state, row, k):
    cells = state.cells
    for at in range(row + 1, row + 1 + 2 * cells[row], 2):
        if cells[at] == k:
            return cells[at + 1]
    return np.int32(0)


def _add_dense(state, row, k, change):
    state.counts[row, k] += change
    return state.counts[row, k]


@inner
def _add_sparse(state, row, k, change):
    cells = state.cells
    end = row + 1 + 2 * cells[row]
    for at in range(row + 1, end, 2):
        if cells[at] == k:
            cells[at + 1] += change
            count = cells[at + 1]
            if count == 0:
                cells[at] = cells[end - 2]
                cells[at + 1] = cells[end - 1]
                cells[row] -= 1
            return count
    cells[end] = k
    cells[end + 1] = change
    cells[row] += 1
    return np.int32(change)


@inner
def _wider(sizes):
    out = np.zeros(2 * sizes.size, np.int64)
    for k in range(sizes.size):
        out[k] = sizes[k]
    return out


def _widened_dense(state):
    n_rows, width = state.counts.shape
    counts = np.zeros((n_rows, 2 * width), np.int32)
    for row in range(n_rows):
        for k in range(width):
            counts[row, k] = state.counts[row, k]
    return Dense(state.partition, _wider(state.sizes), state.joint, state.drawn, counts)


def _widened_sparse(state):
    return Sparse(state.partition, _wider(state.sizes), state.joint, state.drawn, state.rows, state.row_of, state.cells)


@inner
def _rename_sizes(state, names):
    sizes = state.sizes
    for k in range(sizes.size):
        size = sizes[k]
        if size > 0 and names[k] != k:
            sizes[k] = 0
            sizes[names[k]] += size
    for i in range(state.partition.size):
        if state.partition[i] >= 0:
            state.partition[i] = names[state.partition[i]]


def _rename_dense(state, names):
    for k in range(names.size):
        if names[k] != k and state.sizes[k] > 0:
            for row in state.counts:
                row[names[k]] += row[k]
                row[k] = 0
    _rename_sizes(state, names)


def _rename_sparse(state, names):
    cells = state.cells
    for row in state.rows:
        end = row + 1
        for at in range(row + 1, row + 1 + 2 * cells[row], 2):
            k, count = names[cells[at]], cells[at + 1]
            for earlier in range(row + 1, end, 2):
                if cells[earlier] == k:
                    cells[earlier + 1] += count
                    break
            else:
                cells[end], cells[end + 1] = k, count
                end += 2
        cells[row] = (end - row) // 2
    _rename_sizes(state, names)


def _row_sums_dense(state, row, h):
    total, joint = 0, 0.0
    for count in state.counts[row]:
        joint += h[count]
        total += count
    return joint, total


def _row_sums_sparse(state, row, h):
    total, joint = 0, 0.0
    for at in range(row + 1, row + 1 + 2 * state.cells[row], 2):
        joint += h[state.cells[at + 1]]
        total += state.cells[at + 1]
    return joint, total


def _score_item_dense(state, draws, slopes, difference, i, out):
    labels, starts, _ = draws
    old = state.partition[i]
    used = 0
    for k in range(state.sizes.size):
        if state.sizes[k] > 0:
            used = k + 1
    scores = out.scores[:used]
    scores[:] = 0.0
    staying = 0.0
    for t in range(starts.size - 1):
        row = state.counts[starts[t] + labels[t, i]]
        slope = slopes.a[t]
        for k in range(used):
            scores[k] += slope * difference[row[k] + 1]
        if old >= 0:
            staying += slope * difference[row[old]]
    if old >= 0:
        scores[old] = staying
    n_met = 0
    for k in range(used):
        if state.sizes[k] > 0:
            scores[k] += slopes.b[0] * difference[state.sizes[k] + (k != old)]
            out.met[n_met] = k
            n_met += 1
    return n_met


@inner
def _score_item_sparse(state, draws, slopes, difference, i, out):
    cells = state.cells
    scores, met, touched = out.scores, out.met, out.touched
    old = state.partition[i]
    n_met = 0
    for t in range(slopes.a.size):
        row = state.row_of[i, t]
        slope = slopes.a[t]
        for at in range(row + 1, row + 1 + 2 * cells[row], 2):
            k = cells[at]
            if not touched[k]:
                touched[k] = True
                met[n_met] = k
                n_met += 1
                scores[k] = 0.0
            scores[k] += slope * difference[cells[at + 1] + (k != old)]
    for m in range(n_met):
        k = met[m]
        touched[k] = False
        scores[k] += slopes.b[0] * difference[state.sizes[k] + (k != old)]
    return n_met


@inner
def _score_columns(state, draws, slopes, difference, first_item, first, sums, totals):
    """Score a block of items for entering and for staying in eight clusters, all against the tables as they are.

    `totals` (items, 16) receives sum_t slope_t (h(x + 1) - h(x)) over the cells x that the item would enter, then the
    same with h(x) - h(x - 1). The draws are the outer loop: the table of eight draws then stays in the first cache.
    Sums are kept in single precision for _FLUSH draws at most, which bounds their rounding.
    """
    labels, starts, _ = draws
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
                        table[at + k] = slope * difference[count + 1]
                        table[at + _HALF + k] = slope * difference[count]
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


def _score_block_dense(state, draws, slopes, difference, first_item, staying, margins, targets, entering, out):
    sums, totals = np.empty((staying.size, LANES), np.float32), np.empty((staying.size, LANES))
    used = 0
    for k in range(state.sizes.size):
        if state.sizes[k] > 0:
            used = k + 1
    margins[:] = np.inf
    for first in range(0, used, _HALF):
        if out.stop[0] != 0:
            return
        _score_columns(state, draws, slopes, difference, first_item, first, sums, totals)
        for b in range(staying.size):
            old = state.partition[first_item + b]
            for k in range(first, min(first + _HALF, used)):
                if k == old:
                    staying[b] = totals[b, _HALF + k - first] + slopes.b[0] * difference[state.sizes[k]]
                elif state.sizes[k] > 0:
                    score = totals[b, k - first] + slopes.b[0] * difference[state.sizes[k] + 1]
                    if entering.size > 0:
                        entering[b, k] = score
                    if score < margins[b]:
                        margins[b], targets[b] = score, k
    for b in range(staying.size):
        margins[b] -= staying[b]


def _score_block_sparse(state, draws, slopes, difference, first_item, staying, margins, targets, entering, out):
    for b in range(staying.size):
        if out.stop[0] != 0:
            return
        n_met = _score_item_sparse(state, draws, slopes, difference, first_item + b, out)
        old = state.partition[first_item + b]
        margins[b] = np.inf
        for m in range(n_met):
            k = out.met[m]
            if k == old:
                staying[b] = out.scores[k]
            elif out.scores[k] < margins[b] or (out.scores[k] == margins[b] and k < targets[b]):
                margins[b], targets[b] = out.scores[k], k
        margins[b] -= staying[b]


@inner
def _place(k, other):
    """Place of clusters k < other among all pairs."""
    return other * (other - 1) // 2 + k


def _best_unions_dense(state, draws, loss, slopes, n_clusters, members, ends, out, gains, partners):
    h, starts = loss.h, draws.starts
    top = h[-1]
    n_pairs = n_clusters * (n_clusters - 1) // 2
    all_gains, deltas, owns = np.zeros(n_pairs), np.zeros(n_pairs), np.empty(n_pairs)
    there = np.empty(n_clusters, np.int64)
    linear, is_ratio = is_linear(loss), has_denominator(loss)
    before = 0.0
    for k in range(n_clusters):
        before += h[state.sizes[k]]
    gains[:] = np.inf
    for other in range(n_clusters):
        for k in range(other):
            x, y = state.sizes[k], state.sizes[other]
            owns[_place(k, other)] = h[x + y] - h[x] - h[y]
    for t in range(draws.weights.size):
        if out.stop[0] != 0:
            return
        weight = slopes.a[t] if linear else 1.0
        target = all_gains if linear else deltas
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
                all_gains[p] += weight * (loss_value(loss, is_ratio, top, a + deltas[p], before + owns[p], c) - now)
                deltas[p] = 0.0
    for k in range(n_clusters):
        for other in range(k + 1, n_clusters):
            place = _place(k, other)
            gain = all_gains[place] + (slopes.b[0] * owns[place] if linear else 0.0)
            if gain < gains[k]:
                gains[k], partners[k] = gain, other


def _best_unions_sparse(state, draws, loss, slopes, n_clusters, members, ends, out, gains, partners):
    h, cells = loss.h, state.cells
    scores, met, touched, seen, stop = out
    n_draws = draws.weights.size
    seen[:] = -1
    gains[:] = np.inf
    for k in range(n_clusters):
        if stop[0] != 0:
            gains[:] = np.inf
            return
        n_met = 0
        begin = ends[k - 1] if k > 0 else 0
        for t in range(n_draws):
            slope = slopes.a[t]
            for m in range(begin, ends[k]):
                label = draws.labels[t, members[m]]
                if seen[label] == k * n_draws + t:  # another member's row
                    continue
                seen[label] = k * n_draws + t
                row = state.row_of[members[m], t]
                one = _count_sparse(state, row, k)
                for at in range(row + 1, row + 1 + 2 * cells[row], 2):
                    other = cells[at]
                    if other > k:
                        if not touched[other]:
                            touched[other] = True
                            met[n_met] = other
                            n_met += 1
                            scores[other] = 0.0
                        count = cells[at + 1]
                        scores[other] += slope * (h[one + count] - h[one] - h[count])
        for m in range(n_met):
            other = met[m]
            touched[other] = False
            x, y = state.sizes[k], state.sizes[other]
            gain = scores[other] + slopes.b[0] * (h[x + y] - h[x] - h[y])
            if gain < gains[k] or (gain == gains[k] and other < partners[k]):
                gains[k], partners[k] = gain, other


tables_of = either(
    Draws,
    _dense,
    _sparse,
    "The tables of a partition with `width` columns, of the draws' kind; `joint` and `drawn` are left to refresh_sums.",
)
row_of = either(Dense, _row_of_dense, _row_of_sparse, "The row of an item in a draw.")
nth_row = either(Dense, _row_dense, _row_sparse, "The row of cluster `row` of all draws' clusters, draw below draw.")
count = either(Dense, _count_dense, _count_sparse, "Count of a cell, by row and column.")
add = either(Dense, _add_dense, _add_sparse, "Add a number to the count of a cell; return what it is then.")
widened = either(Dense, _widened_dense, _widened_sparse, "The same tables with twice the columns.")
rename = either(
    Dense, _rename_dense, _rename_sparse, "Give the clusters new names, none above their own; equal ones merge."
)
row_sums = either(
    Dense, _row_sums_dense, _row_sums_sparse, "Sum of h over the cells of a row, and the number of its items."
)
score_item = either(
    Dense,
    _score_item_dense,
    _score_item_sparse,
    """What item i, out of its cluster if it is in one, adds in each cluster to a loss with these slopes.

    Returns how many clusters `out.met` holds: those that share a draw's cluster with the item, or all.
    """,
)
score_block = either(
    Dense,
    _score_block_dense,
    _score_block_sparse,
    """Scores of a block of items for staying where they are, and by how much the best other cluster is worse.

    All against the tables as they are; of dense tables in single precision. Those also fill `entering` (items, width),
    if it has any cells, with the scores of the other clusters. Once it is to stop, nothing it writes counts.
    """,
)
best_unions = either(
    Dense,
    _best_unions_dense,
    _best_unions_sparse,
    """Write by how much the union of each cluster with the best of the later ones raises the expected loss, and which.

    The clusters are the first `n_clusters`; `members` holds their items, those of cluster k up to `ends[k]`. Sparse
    tables look at those that share a draw's cluster only, as the union of others lowers no loss, and linear ones.
    Once it is to stop, no union lowers it.
    """,
)
