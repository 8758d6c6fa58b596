"""Label vectors numbered by first appearance."""

import numpy as np

from posterior_consensus.kernels._jit import jit


def canonicalise(codes, n_codes, out):
    """Write every row of `codes` (N, n), values below `n_codes`, to `out` numbered by first appearance.

    Returns the number of clusters of each row (N,).
    """
    n_clusters = np.empty(codes.shape[0], np.int64)
    _canonicalise(codes, n_codes, out, n_clusters)
    return n_clusters


@jit
def _canonicalise(codes, n_codes, out, n_clusters):
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
def canonicalise_on(codes, number_of, n_clusters, out):
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
