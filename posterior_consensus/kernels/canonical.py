"""Label vectors numbered by first appearance."""

import numpy as np

from posterior_consensus.kernels._jit import jit


@jit
def canonicalise(codes, n_codes, out):
    """Write every row of `codes` (N, n), values below `n_codes`, to `out` numbered by first appearance.

    Returns the number of clusters of each row (N,).
    """
    n_rows, n_items = codes.shape
    n_clusters = np.empty(n_rows, np.int64)
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
    return n_clusters
