"""Contingency tables of estimates against draws, reduced on the fly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.coclustering import population_count
from posterior_consensus.runtime.executor import in_blocks

_FEW_CELLS = 256  # of a mean table, up to which counting bits takes a half to a tenth of the time of counting items
_MANY_ITEMS = 1 << 25  # counted in all tables, from which that is worth compiling a kernel for
_ROWS, _COLUMNS = 512, 256  # clusters of a block of partitions and of draws, whose bits the nearest caches hold
_MOST_BITS = 1 << 26  # of a block
_TINY = 1e-20  # probability of a count, relative to that of the mode, from which the others do not matter
_STEPS = 64  # elementary steps of the expectation of a cell, about


class Vectors(NamedTuple):
    """Label vectors."""

    labels: np.ndarray  # (N, n)
    n_clusters: np.ndarray  # (N,)
    most: int  # clusters of one partition


def _vectors(labels, n_clusters):
    return Vectors(labels, n_clusters, n_clusters.max())


@inner
def _joint_sum(partition, draw, n_clusters, width, h, cells, sizes):
    """Sum of h over a contingency table, visiting every cell; `sizes` receives the sizes of the draw's clusters.

    `cells`, all 0 before and after, is scratch.
    """
    for i in range(draw.size):
        cells[np.int64(partition[i]) * width + np.int64(draw[i])] += 1
    total = 0.0
    sizes[:width] = 0
    for k in range(n_clusters):
        for cluster in range(width):
            count = cells[k * width + cluster]
            cells[k * width + cluster] = 0
            sizes[cluster] += count
            total += h[count]
    return total


@inner
def _sort_items(draw, width, sizes, order):
    """Write the sizes of the draw's clusters to `sizes`, the items cluster by cluster to `order`."""
    ends = np.zeros(width + 1, np.int64)
    for label in draw:
        ends[np.int64(label) + 1] += 1
    for cluster in range(width):
        sizes[cluster] = ends[cluster + 1]
        ends[cluster + 1] += ends[cluster]
    for i in range(draw.size):
        order[ends[draw[i]]] = i
        ends[draw[i]] += 1


@inner
def _joint_sum_by_items(partition, order, sizes, h, counts):
    """What _joint_sum returns, visiting items cluster by cluster; `counts`, all 0 before and after, is scratch."""
    total = 0.0
    end = 0
    for size in sizes:
        first, end = end, end + size
        for s in range(first, end):
            counts[partition[order[s]]] += 1
        for s in range(first, end):
            k = partition[order[s]]
            total += h[counts[k]]
            counts[k] = 0
    return total


@jit
def _joint_sums(first, last, vectors, draws, h, same, sums, drawn):
    partitions, n_clusters, most = vectors
    labels, n_draw_clusters, widest = draws
    n_items = labels.shape[1]
    counts, sizes = np.zeros(most, np.int64), np.zeros(widest, np.int64)
    order = np.empty(n_items, np.int64)
    cells = np.zeros(min(most * widest, 16 * n_items), np.int64)
    for t in range(first, last):
        draw, width = labels[t], n_draw_clusters[t]
        end = t + 1 if same else partitions.shape[0]
        if most * width <= cells.size:
            for p in range(end):
                sums[p, t] = _joint_sum(partitions[p], draw, n_clusters[p], width, h, cells, sizes)
        else:
            _sort_items(draw, width, sizes, order)
            for p in range(end):
                sums[p, t] = _joint_sum_by_items(partitions[p], order, sizes[:width], h, counts)
        for size in sizes[:width]:
            drawn[t] += h[size]
        if same:
            for p in range(t):
                sums[t, p] = sums[p, t]


@inner
def _pack_clusters(labels, first, last, n_clusters, words, starts):
    """Write bit masks over the items of the clusters of draws to the columns of `words`, as many draws as fit.

    Return the row after the last of these draws. `starts` receives each draw's first column, and their end.
    """
    words[:] = 0
    end = 0
    one = np.uint64(1)
    t = first
    while t < last and end + n_clusters[t] <= words.shape[1]:
        starts[t - first] = end
        draw = labels[t]
        for i in range(draw.size):
            words[i >> 6, end + np.int64(draw[i])] |= one << np.uint64(i & 63)
        end += n_clusters[t]
        t += 1
    starts[t - first] = end
    return t


@inner
def _count_common(rows, k, columns, counts):
    """Write to `counts` how many items the cluster in column k of `rows` has in common with those in `columns`.

    Four words at a time, so that the counts stay in registers for longer; the loop becomes vector instructions.
    """
    width = counts.size
    counts[:] = 0
    for w in range(0, rows.shape[0], 4):
        a, b, c, d = rows[w, k], rows[w + 1, k], rows[w + 2, k], rows[w + 3, k]
        e, f, g, h = columns[w, :width], columns[w + 1, :width], columns[w + 2, :width], columns[w + 3, :width]
        for j in range(width):
            counts[j] += np.int64(
                population_count(e[j] & a)
                + population_count(f[j] & b)
                + population_count(g[j] & c)
                + population_count(h[j] & d)
            )


@jit
def _joint_sums_by_bits(first, last, vectors, draws, h, same, sums, drawn):
    partitions, n_clusters, most = vectors
    labels, n_draw_clusters, widest = draws
    n_words = (labels.shape[1] + 255) // 256 * 4
    rows = np.empty((n_words, max(most, _ROWS)), np.uint64)
    columns = np.empty((n_words, max(widest, _COLUMNS)), np.uint64)
    row_starts, starts = np.empty(rows.shape[1] + 1, np.int64), np.empty(columns.shape[1] + 1, np.int64)
    counts, totals = np.empty(columns.shape[1], np.int64), np.empty(columns.shape[1])
    row, end = 0, last if same else partitions.shape[0]
    while row < end:
        row_end = _pack_clusters(partitions, row, end, n_clusters, rows, row_starts)
        column = max(first, row) if same else first
        while column < last:
            column_end = _pack_clusters(labels, column, last, n_draw_clusters, columns, starts)
            n_draws = column_end - column
            common = counts[: starts[n_draws]]
            for p in range(row, row_end):
                totals[:n_draws] = 0.0
                for k in range(row_starts[p - row], row_starts[p - row + 1]):
                    _count_common(rows, k, columns, common)
                    for t in range(n_draws):
                        total = totals[t]
                        for j in range(starts[t], starts[t + 1]):
                            total += h[common[j]]
                        totals[t] = total
                for t in range(max(0, p - column) if same else 0, n_draws):
                    sums[p, column + t] = totals[t]
                    if same:
                        sums[column + t, p] = totals[t]
            column = column_end
        row = row_end
    for t in range(first, last):
        counts[: n_draw_clusters[t]] = 0
        for label in labels[t]:
            counts[label] += 1
        for size in counts[: n_draw_clusters[t]]:
            drawn[t] += h[size]


def _fill_joint_sums(vectors, draws, h, same, sums):
    """Write the sums over the tables of P label vectors with N draws to `sums` (P, N); `same`: they are equal.

    Return those over the draws' clusters (N,).

    Counts of items, and so the sums, are the same whichever way the tables are made: by bits if many have few cells.
    """
    n_vectors = len(vectors.labels)
    n_draws, n_items = draws.labels.shape
    by_bits = (
        n_vectors > 1
        and vectors.labels.size * n_draws >= _MANY_ITEMS
        and vectors.n_clusters.mean() * draws.n_clusters.mean() <= _FEW_CELLS
        and n_items * max(vectors.most, draws.most) <= _MOST_BITS
    )
    kernel = _joint_sums_by_bits if by_bits else _joint_sums
    drawn = np.zeros(n_draws)
    work = vectors.labels.size // (2 if same else 1)
    in_blocks(kernel, 0, n_draws, vectors, draws, h, same, sums, drawn, work=work)
    return drawn


def joint_sums(
    partitions: np.ndarray, n_clusters: np.ndarray, labels: np.ndarray, n_draw_clusters: np.ndarray, h: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of h over the contingency tables of partitions (P, n) with draws (N, n).

    Those over the joint cells (P, N) and those over the draws' clusters (N,).
    """
    sums = np.empty((partitions.shape[0], labels.shape[0]))
    return sums, _fill_joint_sums(_vectors(partitions, n_clusters), _vectors(labels, n_draw_clusters), h, False, sums)


def all_joint_sums(labels: np.ndarray, n_clusters: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Sums of h over the contingency tables of all pairs of draws (N, n): (N, N), symmetric, at half the work."""
    sums = np.empty((labels.shape[0], labels.shape[0]))
    vectors = _vectors(labels, n_clusters)
    _fill_joint_sums(vectors, vectors, h, True, sums)
    return sums


@jit
def _paired_joint_sums(first, last, labels, n_clusters, rows, others, shape, h, sums):
    most, widest = shape
    n_items = labels.shape[1]
    counts, sizes = np.zeros(most, np.int64), np.zeros(widest, np.int64)
    cells = np.zeros(min(most * widest, 16 * n_items), np.int64)
    order = np.empty(n_items, np.int64)
    for p in range(first, last):
        partition, draw = labels[rows[p]], labels[others[p]]
        height, width = n_clusters[rows[p]], n_clusters[others[p]]
        if height * width <= cells.size:
            sums[p] = _joint_sum(partition, draw, height, width, h, cells, sizes)
        else:
            _sort_items(draw, width, sizes, order)
            sums[p] = _joint_sum_by_items(partition, order, sizes[:width], h, counts)


def paired_joint_sums(
    labels: np.ndarray, n_clusters: np.ndarray, rows: np.ndarray, others: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """Sums of h over the contingency tables of draws `rows[p]` with draws `others[p]` of (N, n), one for each p."""
    sums = np.empty(rows.size)
    shape = n_clusters[rows].max(initial=0), n_clusters[others].max(initial=0)
    arguments = labels, n_clusters, rows, others, shape, h, sums
    in_blocks(_paired_joint_sums, 0, rows.size, *arguments, work=labels.shape[1])
    return sums


@inner
def _common_by_cells(codes, others, n_clusters, width, h, cells, sizes):
    """Sums of h over the cells, rows and columns of a table of clusters, and the number of items in common.

    It visits every cell; `cells` and `sizes`, all 0 before and after, are scratch.
    """
    joint, rows, columns, total = 0.0, 0.0, 0.0, 0
    for i in range(codes.size):
        cells[np.int64(codes[i]) * width + np.int64(others[i])] += 1
    for k in range(n_clusters):
        size = 0
        for cluster in range(width):
            count = cells[k * width + cluster]
            cells[k * width + cluster] = 0
            if k > 0 and cluster > 0:
                size += count
                sizes[cluster] += count
                if k > 1 and cluster > 1:
                    joint += h[count]
        total += size
        if k > 1:
            rows += h[size]
    for cluster in range(width):
        if cluster > 1:
            columns += h[sizes[cluster]]
        sizes[cluster] = 0
    return joint, rows, columns, total


@inner
def _common_by_items(codes, order, sizes, h, counts, members):
    """What _common_by_cells returns, visiting items cluster by cluster; `counts` and `members` are scratch."""
    joint, rows, columns, total = 0.0, 0.0, 0.0, 0
    end = sizes[0]
    for cluster in range(1, sizes.size):
        first, end = end, end + sizes[cluster]
        size = 0
        for s in range(first, end):
            k = codes[order[s]]
            if k > 0:
                counts[k] += 1
                members[k] += 1
                size += 1
        for s in range(first, end):
            k = codes[order[s]]
            if k > 1 and cluster > 1:
                joint += h[counts[k]]
            counts[k] = 0
        total += size
        if cluster > 1:
            columns += h[size]
    for k in range(members.size):
        if k > 1:
            rows += h[members[k]]
        members[k] = 0
    return joint, rows, columns, total


@jit
def _sums_on_common(first, last, vectors, draws, pairs, h, sums):
    partitions, n_clusters, most = vectors
    labels, n_draw_clusters, widest = draws
    n_items = labels.shape[1]
    counts, members, sizes = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(widest, np.int64)
    cells, order = np.zeros(min(most * widest, 16 * n_items), np.int64), np.empty(n_items, np.int64)
    for m in range(first, last):
        p, t = pairs[m]
        width = n_draw_clusters[t]
        if n_clusters[p] * width <= cells.size:
            found = _common_by_cells(partitions[p], labels[t], n_clusters[p], width, h, cells, sizes)
        else:
            _sort_items(labels[t], width, sizes, order)
            found = _common_by_items(partitions[p], order, sizes[:width], h, counts, members)
            sizes[:width] = 0
        sums[m, 0], sums[m, 1], sums[m, 2], sums[m, 3] = found


def sums_on_common(
    partitions: np.ndarray, labels: np.ndarray, n_clusters: np.ndarray, pairs: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """Sums of h over the tables of partitions (P, n) with draws (N, n), of the items that both have: (M, 4).

    Label 0 is an item that a partition or draw lacks, and 1 one that is together with no other. Row m is of partition
    and draw `pairs[m]`: the sums over the joint cells, over the clusters of the partition and of the draw, and the
    number of items in common.
    """
    sums = np.empty((len(pairs), 4))
    vectors = _vectors(partitions, partitions.max(axis=1).astype(np.int64) + 1)
    arguments = vectors, _vectors(labels, n_clusters), pairs, h, sums
    in_blocks(_sums_on_common, 0, len(pairs), *arguments, work=labels.shape[1])
    return sums


@inner
def _expected(a, b, h):
    """E h(X) of the count X of items that clusters of a and b of n random items have in common.

    X is hypergeometric. Probabilities follow from their ratios, from the mode outwards.
    """
    n = h.size - 1
    mode = (a + 1) * (b + 1) // (n + 2)
    total, value = 1.0, h[mode]
    ratio, x = 1.0, mode
    while ratio > _TINY:
        ratio *= (float(a - x) * float(b - x)) / (float(x + 1) * float(n - a - b + x + 1))
        x += 1
        total += ratio
        value += ratio * h[min(x, n)]  # beyond the last count, where the ratio is 0
    ratio, x = 1.0, mode
    while ratio > _TINY:
        ratio *= (float(x) * float(n - a - b + x)) / (float(a - x + 1) * float(b - x + 1))
        x -= 1
        total += ratio
        value += ratio * h[max(x, 0)]
    return value / total


@jit
def _expected_sums(first, last, sizes, numbers, starts, rows, others, h, sums):
    for p in range(first, last):
        total = 0.0
        for k in range(starts[rows[p]], starts[rows[p] + 1]):
            for other in range(starts[others[p]], starts[others[p] + 1]):
                total += numbers[k] * numbers[other] * _expected(sizes[k], sizes[other], h)
        sums[p] = total


def expected_sums(
    sizes: np.ndarray, numbers: np.ndarray, starts: np.ndarray, rows: np.ndarray, others: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """Expected sums of h (P,) over the joint cells of draws `rows[p]` and `others[p]`, the items of one permuted.

    Draw t has clusters of the distinct sizes from `starts[t]` to `starts[t + 1]`, and `numbers` of each.
    """
    sums = np.empty(rows.size)
    work = int(np.diff(starts).max(initial=0)) ** 2 * _STEPS
    in_blocks(_expected_sums, 0, rows.size, sizes, numbers, starts, rows, others, h, sums, work=work)
    return sums


def size_sums(labels: np.ndarray, n_clusters: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Sum of h over the cluster sizes of every label vector (N, n): (N,)."""
    sums = np.zeros(labels.shape[0])
    _size_sums(labels, n_clusters, h, sums)
    return sums


@jit
def _size_sums(labels, n_clusters, h, sums):
    sizes = np.zeros(n_clusters.max(), np.int64)
    for t in range(labels.shape[0]):
        sizes[:] = 0
        for label in labels[t]:
            sizes[label] += 1
        for size in sizes:
            sums[t] += h[size]


@jit
def _stacked_counts(first, last, labels, starts, columns, counts):
    for t in range(first, last):
        block = counts[starts[t] : starts[t + 1]]
        for p in range(columns.shape[0]):
            column = columns[p]
            for i in range(labels.shape[1]):
                block[labels[t, i], column[i]] += 1


def stacked_counts(labels: np.ndarray, starts: np.ndarray, columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Contingency counts (R, n_columns) of draws (N, m) with partitions whose labels are `columns` (P, m) of it."""
    counts = np.zeros((starts[-1], n_columns), np.int32)
    in_blocks(_stacked_counts, 0, labels.shape[0], labels, starts, columns, counts, work=columns.size)
    return counts


@jit
def _sums_of_counts(first, last, counts, starts, offsets, h, sums):
    for t in range(first, last):
        for p in range(sums.shape[0]):
            total = 0.0  # in the order of _joint_sum, so that sums have the same last bit
            for column in range(offsets[p], offsets[p + 1]):
                for cluster in range(starts[t], starts[t + 1]):
                    total += h[counts[cluster, column]]
            sums[p, t] = total


def sums_of_counts(counts: np.ndarray, starts: np.ndarray, offsets: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Like :func:`joint_sums` (P, N), from counts (R, S) whose columns from `offsets[p]` belong to partition p."""
    sums = np.empty((offsets.size - 1, starts.size - 1))
    work = counts.size // max(sums.shape[1], 1)
    in_blocks(_sums_of_counts, 0, sums.shape[1], counts, starts, offsets, h, sums, work=work)
    return sums


@jit
def _paired_counts(first, last, labels, rows, others, widths, offsets, cells):
    for p in range(first, last):
        partition, draw, own = labels[rows[p]], labels[others[p]], cells[offsets[p] : offsets[p + 1]]
        for i in range(draw.size):
            own[np.int64(partition[i]) * widths[p] + np.int64(draw[i])] += 1


def paired_counts(
    labels: np.ndarray, rows: np.ndarray, others: np.ndarray, widths: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Cells of the contingency tables of draws `rows[p]` with draws `others[p]` of (N, m), from `offsets[p]` on.

    The latter have `widths[p]` clusters.
    """
    cells = np.zeros(offsets[-1], np.int32)
    in_blocks(_paired_counts, 0, rows.size, labels, rows, others, widths, offsets, cells, work=labels.shape[1])
    return cells


@jit
def overlaps(draws: Vectors, others: Vectors, weights: np.ndarray, batches: np.ndarray, out: np.ndarray) -> None:
    """Add weighted Jaccard overlaps of the clusters of each item in two partitions of each draw to `out` (B, n).

    `draws` and `others` are the :class:`Vectors` of the two partitions; draw t counts in row `batches[t]`. A cluster's
    overlap with another one is |C and D| / |C or D|, which is that of the item's co-members where it is one of them.
    """
    labels, n_clusters, most = draws
    other_labels, widths, widest = others
    order, sizes = np.empty(labels.shape[1], np.int64), np.zeros(most, np.int64)
    common, other_sizes = np.zeros(widest, np.int64), np.zeros(widest, np.int64)
    for t in range(labels.shape[0]):
        _sort_items(labels[t], n_clusters[t], sizes, order)
        other = other_labels[t]
        other_sizes[: widths[t]] = 0
        for label in other:
            other_sizes[label] += 1
        total = out[batches[t]]
        end = 0
        for size in sizes[: n_clusters[t]]:
            members = order[end : end + size]
            end += size
            for i in members:
                common[other[i]] += 1
            for i in members:
                both = common[other[i]]
                total[i] += weights[t] * both / (size + other_sizes[other[i]] - both)
            for i in members:
                common[other[i]] = 0
