"""Prices (Lagrange multipliers) of star inequalities: upper bounds of the weight that partitions of a graph can join.

With x = 1 for a pair that is joined, a centre h and a set T of others: the sum of x over the pairs of h with T, less
that over the pairs within T, is at most 1. With two in T this is a triangle inequality. Each row is such an inequality
with a price >= 0. For any prices, no partition joins more than their sum, plus the positive reduced weights: weights
less the prices of the rows that they are in, with their signs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.sparse_moves import Graph

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
_FEW = 40  # neighbours up to which each begins a row; of more, those that are in none yet
_TRIED = 400  # neighbours that a row is offered
_CONVERGED = 1e-12  # change of all prices, in units of the width, at which sweeps end


class Pairs(NamedTuple):
    """Pairs i < j, numbered as they come, so that the pairs of a row lie close together; and a table of these by hash.

    A pair's key is i n + j.
    """

    keys: np.ndarray  # (capacity,) int64, keys by hash; -1 for a free place; the capacity is a power of 2
    at: np.ndarray  # (capacity,) int32, number of the pair at each place
    ends: np.ndarray  # (most,) int64, key of each pair
    weights: np.ndarray  # (most,)
    reduced: np.ndarray  # (most,)
    centre: np.ndarray  # (most,) 1 for a pair that the best known partition joins
    number: np.ndarray  # (1,) int64, of pairs


class Rows(NamedTuple):
    """Inequalities: the numbers of their pairs, first those of the centre."""

    starts: np.ndarray  # (most + 1,) int64
    leaves: np.ndarray  # (most,) int32, members of T
    places: np.ndarray  # (most entries,) int32, numbers of pairs
    prices: np.ndarray  # (most,)
    number: np.ndarray  # (1,) int64, of rows


@inner
def _place(pairs, key):
    """Where a pair is or would be."""
    mask = np.int64(pairs.keys.size - 1)
    at = np.int64((np.uint64(key) * _MIX) >> np.uint64(20)) & mask
    while pairs.keys[at] >= 0 and pairs.keys[at] != key:
        at = (at + 1) & mask
    return at


@inner
def _known(pairs, key):
    """Number of a pair; -1 if it has none."""
    place = _place(pairs, key)
    return pairs.at[place] if pairs.keys[place] >= 0 else -1


@inner
def _solution(pairs, at, width):
    return min(1.0, max(0.0, pairs.centre[at] + pairs.reduced[at] / width))


@inner
def _inserted(graph, labels, pairs, i, j):
    """Number of a pair, which has its default weight if it is new; -1 if there is no room."""
    key = np.int64(min(i, j)) * labels.size + max(i, j)
    place = _place(pairs, key)
    if pairs.keys[place] < 0:
        at = pairs.number[0]
        if at == pairs.weights.size:
            return -1
        pairs.keys[place], pairs.at[place], pairs.ends[at] = key, at, key
        pairs.weights[at] = pairs.reduced[at] = graph.default * graph.sizes[i] * graph.sizes[j]
        pairs.centre[at] = 1.0 if labels[i] == labels[j] else 0.0
        pairs.number[0] += 1
    return pairs.at[place]


@jit
def list_pairs(graph: Graph, labels: np.ndarray, order: np.ndarray, pairs: Pairs) -> None:
    """Write all listed pairs, and those within a cluster as far as there is room, items in `order` of their labels."""
    n = labels.size
    for i in range(n):
        for entry in range(graph.indptr[i], graph.indptr[i + 1]):
            if i < graph.indices[entry]:
                at = _inserted(graph, labels, pairs, i, graph.indices[entry])
                pairs.weights[at] += graph.excess[entry]
                pairs.reduced[at] = pairs.weights[at]
    for one in range(n):
        for other in range(one + 1, n):
            if labels[order[one]] != labels[order[other]]:
                break
            if _inserted(graph, labels, pairs, order[one], order[other]) < 0:
                return


@jit
def reduce_weights(pairs: Pairs, rows: Rows) -> float:
    """Compute the reduced weights anew; return the bound."""
    number = pairs.number[0]
    pairs.reduced[:number] = pairs.weights[:number]
    bound = 0.0
    for row in range(rows.number[0]):
        begin, price = rows.starts[row], rows.prices[row]
        bound += price
        for entry in range(begin, rows.starts[row + 1]):
            pairs.reduced[rows.places[entry]] -= price if entry < begin + rows.leaves[row] else -price
    for at in range(number):
        if pairs.reduced[at] > 0.0:
            bound += pairs.reduced[at]
    return bound


@jit
def ascend(pairs: Pairs, rows: Rows, width: float, n_sweeps: int, stop: np.ndarray) -> None:
    """Raise or lower each price in turn by its row's violation.

    Coordinate ascent on the dual of: greatest weight - width / 2 |x - centre|^2, 0 <= x <= 1, subject to the rows. Its
    solution is x = centre + reduced weight / width, cut off at 0 and 1.
    """
    for _ in range(n_sweeps):
        largest = 0.0
        for row in range(rows.number[0]):
            if stop[0] != 0:
                return
            begin, end = rows.starts[row], rows.starts[row + 1]
            middle = begin + rows.leaves[row]
            violation, n_free = -1.0, 1
            for entry in range(begin, end):
                at = rows.places[entry]
                x = pairs.centre[at] + pairs.reduced[at] / width
                if x > 0.0:
                    if x < 1.0:
                        n_free += 1
                    else:
                        x = 1.0
                    violation += x if entry < middle else -x
            change = max(width * violation / n_free, -rows.prices[row])
            if change != 0.0:
                largest = max(largest, abs(change))
                rows.prices[row] += change
                for entry in range(begin, middle):
                    pairs.reduced[rows.places[entry]] -= change
                for entry in range(middle, end):
                    pairs.reduced[rows.places[entry]] += change
        if largest < _CONVERGED * width:
            break


@jit
def drop_rows(rows: Rows) -> None:
    """Drop the rows without a price."""
    kept, entries = 0, 0
    for row in range(rows.number[0]):
        begin, end = rows.starts[row], rows.starts[row + 1]
        if rows.prices[row] > 0.0:
            for entry in range(begin, end):
                rows.places[entries + entry - begin] = rows.places[entry]
            rows.leaves[kept], rows.prices[kept] = rows.leaves[row], rows.prices[row]
            rows.starts[kept] = entries
            kept, entries = kept + 1, entries + end - begin
            rows.starts[kept] = entries
    rows.number[0] = kept


@jit
def add_rows(
    graph: Graph,
    labels: np.ndarray,
    pairs: Pairs,
    rows: Rows,
    width: float,
    slack: float,
    most_leaves: int,
    stop: np.ndarray,
) -> int:
    """Add rows that the solution violates by more than `slack`, as far as there is room; return how many."""
    n = labels.size
    starts = np.zeros(n + 2, np.int64)
    for at in range(pairs.number[0]):
        if _solution(pairs, at, width) > slack:
            starts[pairs.ends[at] // n + 2] += 1
            starts[pairs.ends[at] % n + 2] += 1
    for i in range(n):
        starts[i + 2] += starts[i + 1]
    near, x = np.empty(starts[n + 1], np.int32), np.empty(starts[n + 1])
    for at in range(pairs.number[0]):
        value = _solution(pairs, at, width)
        if value > slack:
            i, j = pairs.ends[at] // n, pairs.ends[at] % n
            near[starts[i + 1]], near[starts[j + 1]] = j, i
            x[starts[i + 1]] = x[starts[j + 1]] = value
            starts[i + 1] += 1
            starts[j + 1] += 1
    before, leaves = rows.number[0], np.empty(most_leaves, np.int32)
    for h in range(n):
        begin, degree = starts[h], starts[h + 1] - starts[h]
        order = np.argsort(-x[begin : begin + degree])
        is_used = np.zeros(degree, np.uint8)
        for seed in range(degree - 1):
            if stop[0] != 0:
                return rows.number[0] - before
            if is_used[seed] and degree > _FEW:
                continue
            leaves[0] = near[begin + order[seed]]
            number, violation = 1, x[begin + order[seed]] - 1.0
            tried = 0
            for place in range(seed + 1, degree):
                j = near[begin + order[place]]
                gain = x[begin + order[place]]
                if gain <= slack or number == most_leaves or tried > _TRIED:
                    break
                if is_used[place] and degree > _FEW:
                    continue
                for leaf in leaves[:number]:
                    at = _known(pairs, np.int64(min(leaf, j)) * n + max(leaf, j))
                    if at >= 0:
                        gain -= _solution(pairs, at, width)
                        if gain <= slack:
                            break
                tried += 1
                if gain > slack:
                    leaves[number] = j
                    number += 1
                    violation += gain
                    is_used[place] = 1
            if number > 1 and violation > slack and not _write(graph, labels, pairs, rows, h, leaves[:number]):
                return rows.number[0] - before
    return rows.number[0] - before


@inner
def _write(graph, labels, pairs, rows, h, leaves):
    """Add a row at price 0; return whether there was room."""
    row, number = rows.number[0], leaves.size
    begin = rows.starts[row]
    if row == rows.leaves.size or begin + number * (number + 1) // 2 > rows.places.size:
        return False
    entry = begin
    for j in leaves:
        rows.places[entry] = _inserted(graph, labels, pairs, h, j)
        entry += 1
    for one in range(number):
        for other in range(one):
            at = _inserted(graph, labels, pairs, leaves[one], leaves[other])
            if at < 0:
                return False
            rows.places[entry] = at
            entry += 1
    rows.leaves[row], rows.prices[row], rows.starts[row + 1] = number, 0.0, entry
    rows.number[0] += 1
    return True
