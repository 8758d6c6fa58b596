"""Products with B, the one-hot matrix (n, R) of all draws: row `starts[t] + labels[t, i]` stands for item i in draw t.

With weights w the posterior similarity matrix is B W B', so that gather(scatter(V)) is its product with V, at O(n N)
cost and without an n x n array. Labels become canonical at the end: numbered by first appearance.
"""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import LANES, ROWS, add_eight, jit
from posterior_consensus.runtime.executor import in_blocks
from posterior_consensus.runtime.tolerances import ROUNDING

_ITEMS_AT_ONCE = 128  # whose sums stay in the fastest cache
_ITEMS_IN_ROW = 1024
_CLUSTERS = 128  # mean number in a draw up to which copies of its rows cost less than the sums
_MOST = 2**31 - 1


@jit
def _scatter(first, last, labels, starts, values, table):
    n_columns = values.shape[1]
    for t in range(first, last):
        block = table[starts[t] : starts[t + 1]]
        for i in range(labels.shape[1]):
            row = block[labels[t, i]]
            value = values[i]
            for c in range(n_columns):
                row[c] += value[c]


def scatter(labels: np.ndarray, starts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """B' V of values (n, c): the sum of an item's row over each cluster of each draw, (R, c)."""
    table = np.zeros((starts[-1], values.shape[1]))
    scatter_more(labels, starts, values, table)
    return table


def scatter_more(labels: np.ndarray, starts: np.ndarray, values: np.ndarray, table: np.ndarray) -> None:
    """Add B' V to `table` (R, c); successive blocks of items give the same sums as all items."""
    in_blocks(_scatter, 0, labels.shape[0], labels, starts, values, table, work=values.size)


@jit
def _gather(first, last, labels, starts, weights, table, out):
    n_columns = table.shape[1]
    for lower in range(first, last, _ITEMS_AT_ONCE):
        upper = min(last, lower + _ITEMS_AT_ONCE)
        for t in range(labels.shape[0]):
            block = table[starts[t] : starts[t + 1]]
            weight = weights[t]
            for i in range(lower, upper):
                row = block[labels[t, i]]
                total = out[i]
                for c in range(n_columns):
                    total[c] += weight * row[c]


def gather(labels: np.ndarray, starts: np.ndarray, weights: np.ndarray, table: np.ndarray) -> np.ndarray:
    """B W T of a table (R, c): for every item the weighted sum of its clusters' rows, (n, c)."""
    out = np.zeros((labels.shape[1], table.shape[1]))
    gather_more(labels, starts, weights, table, out)
    return out


def gather_more(
    labels: np.ndarray, starts: np.ndarray, weights: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """Add B W T to `out` (n, c); successive blocks of draws give the same sums as all draws."""
    n_draws, n_items = labels.shape
    in_blocks(_gather, 0, n_items, labels, starts, weights, table, out, work=n_draws * table.shape[1])


@jit
def _add_counts(first, last, labels, starts, counts, at_once, out):
    n_draws, n_columns = labels.shape[0], counts.shape[1]
    most = (starts[1:] - starts[:-1]).max()
    table, sums = np.empty(ROWS * most * LANES, np.int32), np.empty(_ITEMS_IN_ROW * LANES, np.int32)
    for lower in range(first, last, _ITEMS_IN_ROW):
        n_items = min(_ITEMS_IN_ROW, last - lower)
        for column in range(0, n_columns, LANES):
            width = min(LANES, n_columns - column)
            for begin in range(0, n_draws, at_once):
                end = min(begin + at_once, n_draws)
                sums[:] = 0
                for t in range(begin, end, ROWS):
                    for s in range(ROWS):  # beyond the last draw, its rows are zeros
                        draw = min(t + s, end - 1)
                        for row in range(starts[draw], starts[draw + 1]):
                            at = (s * most + row - starts[draw]) * LANES
                            for k in range(width):
                                table[at + k] = counts[row, column + k] if t + s < end else 0
                    e = end - 1
                    draws = (
                        t,
                        min(t + 1, e),
                        min(t + 2, e),
                        min(t + 3, e),
                        min(t + 4, e),
                        min(t + 5, e),
                        min(t + 6, e),
                        min(t + 7, e),
                    )
                    add_eight(sums, table, most, labels, draws, lower, n_items)
                for b in range(n_items):
                    for k in range(width):
                        out[lower + b, column + k] += sums[b * LANES + k]


def links(labels: np.ndarray, starts: np.ndarray, weights: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """B W T of the contingency counts T with a partition (R, K): the weighted sum of every item's rows, (n, K).

    If the weights are ones, integers are added, in 32 bits for as many draws as cannot exceed them; sums of floats are
    the same.
    """
    n_draws, n_items = labels.shape
    if starts[-1] > _CLUSTERS * n_draws or not (weights == 1.0).all():
        return gather(labels, starts, weights, counts)
    out = np.zeros((n_items, counts.shape[1]))
    at_once = _MOST // int(counts.max())
    in_blocks(
        _add_counts, 0, n_items, labels, starts, counts, at_once, out, work=n_draws * -(-counts.shape[1] // LANES)
    )
    return out


@jit
def _joint_counts(first, last, labels, starts, partition, counts):
    for t in range(first, last):
        block = counts[starts[t] : starts[t + 1]]
        for i in range(labels.shape[1]):
            block[labels[t, i], partition[i]] += 1


def joint_counts(labels: np.ndarray, starts: np.ndarray, partition: np.ndarray, n_clusters: int) -> np.ndarray:
    """B' Z of a partition's one-hot matrix Z: contingency counts (R, n_clusters) with every draw, draw below draw."""
    counts = np.zeros((starts[-1], n_clusters), np.int32)
    add_joint_counts(labels, starts, partition, counts)
    return counts


def add_joint_counts(labels: np.ndarray, starts: np.ndarray, partition: np.ndarray, counts: np.ndarray) -> None:
    """Add them to `counts` (R, n_clusters); successive blocks of items give the same sums as all items."""
    in_blocks(_joint_counts, 0, labels.shape[0], labels, starts, partition, counts, work=labels.shape[1])


@jit
def refine_in_place(
    labels: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    partition: np.ndarray,
    counts: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """One Gauss-Seidel pass of the refinement: each item in turn joins the cluster of greatest mean similarity.

    Changes `partition` (n,), `counts` (R, K) and `sizes` (K,).
    """
    n_draws = labels.shape[0]
    n_clusters = sizes.size
    links = np.empty(n_clusters)
    for i in range(partition.size):
        links[:] = 0.0
        for t in range(n_draws):
            row = counts[starts[t] + labels[t, i]]
            for k in range(n_clusters):
                links[k] += weights[t] * row[k]
        old = partition[i]
        links[old] -= 1.0  # the weights sum to one, and an item is co-clustered with itself in all draws
        best = -1
        best_mean = -1.0
        for k in range(n_clusters):
            others = sizes[k] - (k == old)
            if others > 0 and links[k] / others > best_mean + ROUNDING:
                best = k
                best_mean = links[k] / others
        if best >= 0 and best != old and (sizes[old] == 1 or best_mean > links[old] / (sizes[old] - 1) + ROUNDING):
            partition[i] = best
            sizes[old] -= 1
            sizes[best] += 1
            for t in range(n_draws):
                row = counts[starts[t] + labels[t, i]]
                row[old] -= 1
                row[best] += 1


@jit
def _similarity_rows(first, last, labels, weights, chosen, out):
    for lower in range(first, last, _ITEMS_IN_ROW):
        upper = min(last, lower + _ITEMS_IN_ROW)
        for t in range(labels.shape[0]):
            others = labels[t, lower:upper]
            for c in range(chosen.shape[0]):
                label = chosen[c, t]
                total = out[c, lower:upper]
                for i in range(upper - lower):
                    total[i] += weights[t] * (others[i] == label)


def similarity_rows(labels: np.ndarray, weights: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Rows of B W B': the weight of the draws in which items of labels `chosen` (c, N) are with every item, (c, n)."""
    n_items = labels.shape[1]
    out = np.zeros((chosen.shape[0], n_items))
    in_blocks(_similarity_rows, 0, n_items, labels, weights, chosen, out, work=chosen.size)
    return out


@jit
def _votes(first, last, labels, starts, weights, targets, out):
    for lower in range(first, last, _ITEMS_AT_ONCE):
        upper = min(last, lower + _ITEMS_AT_ONCE)
        for t in range(labels.shape[0]):
            block = targets[starts[t] : starts[t + 1]]
            for i in range(lower, upper):
                target = block[labels[t, i]]
                if target >= 0:
                    out[i, target] += weights[t]


def votes(
    labels: np.ndarray, starts: np.ndarray, weights: np.ndarray, targets: np.ndarray, n_clusters: int
) -> np.ndarray:
    """B W T of the one-hot table T of `targets` (R,): for every item the weight that goes to each target, (n, K).

    A cluster of a draw whose target is negative has no vote.
    """
    n_draws, n_items = labels.shape
    out = np.zeros((n_items, n_clusters))
    in_blocks(_votes, 0, n_items, labels, starts, weights, targets, out, work=n_draws)
    return out


@jit
def _weights_with(first, last, labels, starts, weights, targets, partition, out):
    for lower in range(first, last, _ITEMS_IN_ROW):
        upper = min(last, lower + _ITEMS_IN_ROW)
        own, total = partition[lower:upper], out[lower:upper]
        for t in range(labels.shape[0]):
            block, weight, row = targets[starts[t] : starts[t + 1]], weights[t], labels[t, lower:upper]
            for i in range(upper - lower):
                total[i] += weight if block[row[i]] == own[i] else 0.0


def weights_with(
    labels: np.ndarray, starts: np.ndarray, weights: np.ndarray, targets: np.ndarray, partition: np.ndarray
) -> np.ndarray:
    """The weight (n,) of the draws in which the target of an item's cluster, of `targets` (R,), is `partition[i]`."""
    n_draws, n_items = labels.shape
    out = np.zeros(n_items)
    in_blocks(_weights_with, 0, n_items, labels, starts, weights, targets, partition, out, work=n_draws)
    return out


@jit
def _items_by_cluster(first, last, labels, starts, begins, order):
    for t in range(first, last):
        ends = begins[starts[t] : starts[t + 1]].copy()
        for i in range(labels.shape[1]):
            order[ends[labels[t, i]]] = i
            ends[labels[t, i]] += 1


@jit
def _own_and_nearest(first, last, labels, clusters, weights, total, partition, sizes, out):
    starts, begins, order = clusters
    own, nearest, other = out
    links, met = np.zeros(sizes.size), np.empty(sizes.size, np.int64)
    for i in range(first, last):
        n_met = 0
        for t in range(labels.shape[0]):
            cluster = starts[t] + labels[t, i]
            if weights[t] == 0.0:
                continue
            for s in range(begins[cluster], begins[cluster + 1]):
                k = partition[order[s]]
                if links[k] == 0.0:
                    met[n_met] = k
                    n_met += 1
                links[k] += weights[t]
        home = partition[i]
        own[i] = np.nan
        if sizes[home] > 1:
            own[i] = min(max((links[home] - total) / (total * (sizes[home] - 1)), 0.0), 1.0)
        links[home] = 0.0
        best = 0.0
        for m in range(n_met):
            best = max(best, links[met[m]] / (total * sizes[met[m]]))
        found = sizes.size if best > ROUNDING else np.int64(home == 0)  # the first one, if it is with none
        for m in range(n_met):
            if met[m] != home and links[met[m]] / (total * sizes[met[m]]) >= best - ROUNDING:
                found = min(found, met[m])
        nearest[i], other[i] = found, min(links[found] / (total * sizes[found]), 1.0)
        for m in range(n_met):
            links[met[m]] = 0.0


def own_and_nearest(
    labels: np.ndarray,
    starts: np.ndarray,
    begins: np.ndarray,
    weights: np.ndarray,
    total: float,
    partition: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean similarity (n,) of items to the others of their cluster, the other cluster nearest to each, and that to it.

    Clusters of the draws, whose items stand from `begins` (R + 1,) on where those of all draws stand in a row, are
    gone through item by item: without a table of the draws' clusters by those of the partition, of which there are two
    or more. NaN for items alone; of clusters as near but for rounding the first.
    """
    n_draws, n_items = labels.shape
    order = np.empty(labels.size, np.int32)
    in_blocks(_items_by_cluster, 0, n_draws, labels, starts, begins, order, work=n_items)
    out = np.empty(n_items), np.empty(n_items, np.int32), np.empty(n_items)
    arguments = labels, (starts, begins, order), weights, total, partition, sizes, out
    in_blocks(_own_and_nearest, 0, n_items, *arguments, work=n_draws)
    return out


def canonicalize(codes: np.ndarray, n_codes: int, out: np.ndarray) -> np.ndarray:
    """Write every row of `codes` (N, n), values below `n_codes`, to `out` numbered by first appearance.

    Returns the number of clusters of each row (N,).
    """
    n_clusters = np.empty(codes.shape[0], np.int64)
    _canonicalize(codes, n_codes, out, n_clusters)
    return n_clusters


@jit
def _canonicalize(codes, n_codes, out, n_clusters):
    n_rows, n_items = codes.shape
    number_of = np.empty(n_codes, np.int64)
    seen_in = np.full(n_codes, -1)  # the row that a number is from, so that none of them need be erased between rows
    for t in range(n_rows):
        found = 0
        for i in range(n_items):
            code = codes[t, i]
            if seen_in[code] != t:
                seen_in[code] = t
                number_of[code] = found
                found += 1
            out[t, i] = number_of[code]
        n_clusters[t] = found


@jit
def canonicalize_on(codes: np.ndarray, number_of: np.ndarray, n_clusters: np.ndarray, out: np.ndarray) -> None:
    """Write every row of `codes` (N, m), some of its items, to `out` numbered by first appearance among all items.

    `number_of` (N, n_codes), at first -1, and `n_clusters` (N,), at first 0, hold what the items before have made
    of them, and are brought up to date.
    """
    n_rows, n_items = codes.shape
    for t in range(n_rows):
        found = n_clusters[t]
        for i in range(n_items):
            code = codes[t, i]
            if number_of[t, code] < 0:
                number_of[t, code] = found
                found += 1
            out[t, i] = number_of[t, code]
        n_clusters[t] = found
