"""Contingency tables of a partition with every draw, kept cell by cell or as the cells that are not zero.

A search asks the same of both: the count of a cell, a change of it, new columns, columns renamed, the sums of h; and,
in scores.py and clusters.py, what items and unions of clusters add to a loss. Functions made by `either` take both.

A row is a cluster of a draw, a column a cluster of the partition, or free; `row_of` gives the row of an item.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar, overload

import numpy as np

from posterior_consensus.kernels._jit import either, inner, jit

_DISPLACED = 12  # places by which an index moves on average, beyond which sorting from scratch is faster

WIDTH = 8  # columns to begin with


class Draws(NamedTuple):
    """The draws as a search sees them."""

    labels: np.ndarray  # (N, n)
    starts: np.ndarray  # (N + 1,), the first of the R rows of each draw
    weights: np.ndarray  # (N,), summing to 1


class SparseDraws(NamedTuple):
    """The same, of which a search keeps sparse tables, and where their rows begin."""

    labels: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    rows: np.ndarray  # (R,), the places in Sparse.cells
    row_of: np.ndarray  # (n, N), of each item in each draw


def searched(labels: np.ndarray) -> np.ndarray:
    """Labels in the type that searches use, so that many clusters compile nothing anew."""
    return labels.astype(np.promote_types(labels.dtype, np.uint16), copy=False)


def sparse_draws(labels: np.ndarray, starts: np.ndarray, weights: np.ndarray) -> SparseDraws:
    """The draws, with a row for each of their clusters that has room for as many cells as the cluster has items."""
    clusters = np.ascontiguousarray(labels.T + starts[:-1])
    lengths = 1 + 2 * np.bincount(clusters.ravel(), minlength=starts[-1])
    rows = np.cumsum(lengths) - lengths
    return SparseDraws(labels, starts, weights, rows, rows[clusters])


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
    cells: np.ndarray  # (R + 2 N n,)


State = TypeVar("State", bound=Dense | Sparse)


@overload
def tables_of(draws: Draws, partition: np.ndarray, width: int) -> Dense: ...


@overload
def tables_of(draws: SparseDraws, partition: np.ndarray, width: int) -> Sparse: ...


def tables_of(draws: Draws | SparseDraws, partition: np.ndarray, width: int) -> Dense | Sparse:
    """Tables of a partition with at least `width` columns, of the draws' kind; the sums `joint` and `drawn` are 0."""
    sizes = np.bincount(partition[partition >= 0], minlength=width)
    n_draws, n_rows = draws.weights.size, draws.starts[-1]
    sums = np.zeros(n_draws), np.zeros(n_draws)
    if isinstance(draws, SparseDraws):
        state: Dense | Sparse = Sparse(partition, sizes, *sums, np.zeros(n_rows + 2 * draws.labels.size, np.int32))
    else:
        state = Dense(partition, sizes, *sums, np.zeros((n_rows, sizes.size), np.int32))
    _fill(state, draws)
    return state


def _fill_dense(state, draws):
    labels, starts, weights = draws
    for t in range(weights.size):
        for i in range(state.partition.size):
            k = state.partition[i]
            if k >= 0:
                state.counts[starts[t] + labels[t, i], k] += 1


def _fill_sparse(state, draws):
    for i in range(state.partition.size):
        if state.partition[i] >= 0:
            for t in range(draws.weights.size):
                _add_sparse(state, draws.row_of[i, t], state.partition[i], 1)


def _row_of_dense(state, draws, i, t):
    return draws.starts[t] + draws.labels[t, i]


def _row_of_sparse(state, draws, i, t):
    return draws.row_of[i, t]


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


def widened(state: State, width: int) -> State:
    """The same tables with at least this many columns."""
    before = double = state.sizes.size
    while double < width:
        double *= 2
    if double == before:
        return state
    sizes = np.zeros(double, np.int64)
    sizes[:before] = state.sizes
    if not isinstance(state, Dense):
        return state._replace(sizes=sizes)
    counts = np.zeros((len(state.counts), double), np.int32)
    counts[:, :before] = state.counts
    return state._replace(sizes=sizes, counts=counts)


def _rename_columns(state, draws, names):
    for row in range(len(state.counts)):
        for k in range(names.size):
            if names[k] != k:
                state.counts[row, names[k]] += state.counts[row, k]
                state.counts[row, k] = 0


def _rename_cells(state, draws, names):
    cells = state.cells
    for row in draws.rows:
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


def _sums_dense(state, draws, t, h):
    joint, drawn = 0.0, 0.0
    for row in state.counts[draws.starts[t] : draws.starts[t + 1]]:
        total, of_row = 0, 0.0
        for count in row:
            of_row += h[count]
            total += count
        joint += of_row
        drawn += h[total]
    return joint, drawn


def _sums_sparse(state, draws, t, h):
    cells = state.cells
    joint, drawn = 0.0, 0.0
    for row in draws.rows[draws.starts[t] : draws.starts[t + 1]]:
        total, of_row = 0, 0.0
        for at in range(row + 1, row + 1 + 2 * cells[row], 2):
            of_row += h[cells[at + 1]]
            total += cells[at + 1]
        joint += of_row
        drawn += h[total]
    return joint, drawn


_fill_either = either(Dense, _fill_dense, _fill_sparse, "Count the items of a partition in tables that hold zeros.")


_rename_either = either(Dense, _rename_columns, _rename_cells, "Give columns new names.")


@jit
def _fill(state, draws):
    _fill_either(state, draws)


row_of = either(Dense, _row_of_dense, _row_of_sparse, "The row of an item in a draw.")
count = either(Dense, _count_dense, _count_sparse, "Count of a cell, by row and column.")
add = either(Dense, _add_dense, _add_sparse, "Add a number to the count of a cell; return what it is then.")
sums_of_draw = either(
    Dense, _sums_dense, _sums_sparse, "A and C of draw t: sums of h over the cells and over the rows."
)


@jit
def rename(draws: Draws | SparseDraws, state: Dense | Sparse, names: np.ndarray) -> None:
    """Give the clusters new names, none above the old one; clusters of equal names merge."""
    _rename_either(state, draws, names)
    for k in range(names.size):
        if names[k] != k:
            state.sizes[names[k]] += state.sizes[k]
            state.sizes[k] = 0
    for i in range(state.partition.size):
        if state.partition[i] >= 0:
            state.partition[i] = names[state.partition[i]]


@inner
def first_free(state):
    """The first column that no cluster has, or the number of columns."""
    for k in range(state.sizes.size):
        if state.sizes[k] == 0:
            return k
    return state.sizes.size


@inner
def n_clusters(state):
    """How many columns have a cluster."""
    number = 0
    for size in state.sizes:
        number += size > 0
    return number


def compact(draws: Draws | SparseDraws, state: Dense | Sparse) -> int:
    """Move the clusters to the first columns; return how many there are."""
    n_clusters = int(np.count_nonzero(state.sizes))
    if np.count_nonzero(state.sizes[:n_clusters]) < n_clusters:
        used = state.sizes > 0
        rename(draws, state, np.cumsum(used) - used)
    return n_clusters


@inner
def smallest(state):
    """The first of the smallest clusters."""
    best = -1
    for k in range(state.sizes.size):
        if state.sizes[k] > 0 and (best < 0 or state.sizes[k] < state.sizes[best]):
            best = k
    return best


@inner
def in_order(values, order):
    """Sort the indices in `order` by their values, stably.

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
def order_anew(values, order):
    """Sort the indices in `order`, nearly sorted by their values, by insertion.

    Where indices move by many places on average, they are sorted from scratch.
    """
    budget = _DISPLACED * order.size
    for place in range(1, order.size):
        index = order[place]
        value = values[index]
        at = place - 1
        while at >= 0 and values[order[at]] > value:
            order[at + 1] = order[at]
            at -= 1
        order[at + 1] = index
        budget -= place - 1 - at
        if budget < 0:
            in_order(values, order)
            return


@inner
def up_to(n):
    """The numbers from 0 to n - 1."""
    numbers = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = i
    return numbers
