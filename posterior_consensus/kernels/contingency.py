"""Contingency tables of estimates against draws, reduced on the fly."""

import numpy as np
from numba import prange

from posterior_consensus.kernels._jit import jit


@jit
def contingency_table(labels, others, n_rows, n_columns):
    """Counts (n_rows, n_columns) of two label vectors (n,)."""
    table = np.zeros((n_rows, n_columns), np.int64)
    for i in range(labels.size):
        table[labels[i], others[i]] += 1
    return table


@jit(parallel=True)
def joint_sums(partitions, n_clusters, labels, n_draw_clusters, h):
    """Sum of h over the cells of the contingency table of every partition (P, n) with every draw (N, n): (P, N)."""
    n_partitions, n_items = partitions.shape
    n_draws = labels.shape[0]
    sums = np.empty((n_partitions, n_draws))
    for t in prange(n_draws):
        width = n_draw_clusters[t]
        draw = labels[t]
        counts = np.zeros(n_clusters.max() * width, np.int64)
        for p in range(n_partitions):
            partition = partitions[p]
            for i in range(n_items):
                counts[np.int64(partition[i]) * width + np.int64(draw[i])] += 1
            total = 0.0
            for cell in range(n_clusters[p] * width):
                total += h[counts[cell]]
                counts[cell] = 0
            sums[p, t] = total
    return sums


@jit
def size_sums(labels, n_clusters, h):
    """Sum of h over the cluster sizes of every label vector (N, n): (N,)."""
    n_rows, n_items = labels.shape
    sums = np.empty(n_rows)
    sizes = np.zeros(n_clusters.max(), np.int64)
    for t in range(n_rows):
        sizes[:] = 0
        for i in range(n_items):
            sizes[labels[t, i]] += 1
        total = 0.0
        for size in sizes:
            total += h[size]
        sums[t] = total
    return sums
