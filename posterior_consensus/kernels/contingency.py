"""Contingency tables of estimates against draws, reduced on the fly."""

import numpy as np

from posterior_consensus.executor import in_blocks
from posterior_consensus.kernels._jit import inner, jit


@jit
def contingency_table(labels, others, n_rows, n_columns):
    """Counts (n_rows, n_columns) of two label vectors (n,)."""
    table = np.zeros((n_rows, n_columns), np.int64)
    for i in range(labels.size):
        table[labels[i], others[i]] += 1
    return table


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
def _joint_sums(first, last, partitions, n_clusters, most, labels, n_draw_clusters, widest, h, sums, drawn):
    n_items = labels.shape[1]
    counts, sizes = np.zeros(most, np.int64), np.zeros(widest, np.int64)
    order = np.empty(n_items, np.int64)
    cells = np.zeros(min(most * widest, 16 * n_items), np.int64)
    for t in range(first, last):
        draw, width = labels[t], n_draw_clusters[t]
        if most * width <= cells.size:
            for p in range(partitions.shape[0]):
                sums[p, t] = _joint_sum(partitions[p], draw, n_clusters[p], width, h, cells, sizes)
        else:
            _sort_items(draw, width, sizes, order)
            for p in range(partitions.shape[0]):
                sums[p, t] = _joint_sum_by_items(partitions[p], order, sizes[:width], h, counts)
        for size in sizes[:width]:
            drawn[t] += h[size]


def joint_sums(partitions, n_clusters, labels, n_draw_clusters, h):
    """Sums of h over the contingency tables of partitions (P, n) with draws (N, n).

    Those over the joint cells (P, N) and those over the draws' clusters (N,).

    Visiting every cell is several times faster, but a table of many clusters by many has more cells than memory holds.
    """
    n_draws = labels.shape[0]
    sums, drawn = np.empty((partitions.shape[0], n_draws)), np.zeros(n_draws)
    most, widest = n_clusters.max(), n_draw_clusters.max()
    arguments = partitions, n_clusters, most, labels, n_draw_clusters, widest, h, sums, drawn
    in_blocks(_joint_sums, 0, n_draws, *arguments, work=partitions.size)
    return sums, drawn


@jit
def _paired_joint_sums(first, last, labels, n_clusters, rows, others, most, widest, h, sums):
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


def paired_joint_sums(labels, n_clusters, rows, others, h):
    """Sums of h over the contingency tables of draws `rows[p]` with draws `others[p]` of (N, n), one for each p."""
    sums = np.empty(rows.size)
    most, widest = n_clusters[rows].max(initial=0), n_clusters[others].max(initial=0)
    arguments = labels, n_clusters, rows, others, most, widest, h, sums
    in_blocks(_paired_joint_sums, 0, rows.size, *arguments, work=labels.shape[1])
    return sums


@jit
def size_sums(labels, n_clusters, h):
    """Sum of h over the cluster sizes of every label vector (N, n): (N,)."""
    n_rows = labels.shape[0]
    sums = np.zeros(n_rows)
    sizes = np.zeros(n_clusters.max(), np.int64)
    for t in range(n_rows):
        sizes[:] = 0
        for label in labels[t]:
            sizes[label] += 1
        for size in sizes:
            sums[t] += h[size]
    return sums
