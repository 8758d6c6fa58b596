"""Contingency tables of a partition with every draw, kept cell by cell or as the cells that are not zero.

A search asks the same of both: the count of a cell, a change of it, new columns, columns renamed, the sums of h; and,
in scores.py and unions.py, what items and unions of clusters add to a loss. The functions at the end take either.

A row stands for a cluster of a draw, a column for a cluster of the partition; `row_of` says which row an item is in.
"""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, inner


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
def _sizes(partition, width):
    for k in partition:
        width = max(width, k + 1)
    sizes = np.zeros(width, np.int64)
    for k in partition:
        if k >= 0:
            sizes[k] += 1
    return sizes


def _dense(draws, partition, width):
    labels, starts, weights = draws
    sizes = _sizes(partition, width)
    counts = np.zeros((starts[-1], sizes.size), np.int32)
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
    return Dense(partition, sizes, np.zeros(n_draws), np.zeros(n_draws), counts)


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
def _wider(sizes, width):
    double = 2 * sizes.size
    while double < width:
        double *= 2
    out = np.zeros(double, np.int64)
    for k in range(sizes.size):
        out[k] = sizes[k]
    return out


def _widened_dense(state, width):
    n_rows, before = state.counts.shape
    if before >= width:
        return state
    sizes = _wider(state.sizes, width)
    counts = np.zeros((n_rows, sizes.size), np.int32)
    for row in range(n_rows):
        for k in range(before):
            counts[row, k] = state.counts[row, k]
    return Dense(state.partition, sizes, state.joint, state.drawn, counts)


def _widened_sparse(state, width):
    if state.sizes.size >= width:
        return state
    return Sparse(
        state.partition, _wider(state.sizes, width), state.joint, state.drawn, state.rows, state.row_of, state.cells
    )


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


tables_of = either(
    Draws,
    _dense,
    _sparse,
    "Tables of a partition with at least `width` columns, of the draws' kind; refresh_sums fills `joint` and `drawn`.",
)
row_of = either(Dense, _row_of_dense, _row_of_sparse, "The row of an item in a draw.")
nth_row = either(Dense, _row_dense, _row_sparse, "The row of cluster `row` of all draws' clusters, draw below draw.")
count = either(Dense, _count_dense, _count_sparse, "Count of a cell, by row and column.")
add = either(Dense, _add_dense, _add_sparse, "Add a number to the count of a cell; return what it is then.")
widened = either(Dense, _widened_dense, _widened_sparse, "The same tables with at least so many columns.")
rename = either(
    Dense, _rename_dense, _rename_sparse, "Give the clusters new names, none above their own; equal ones merge."
)
row_sums = either(
    Dense, _row_sums_dense, _row_sums_sparse, "Sum of h over the cells of a row, and the number of its items."
)
