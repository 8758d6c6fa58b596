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
    for t in range(n_rows):
        number_of[:] = -1
        found = 0
        for i in range(n_items):
            code = codes[t, i]
            if number_of[code] < 0:
                number_of[code] = found
                found += 1
            out[t, i] = number_of[code]
        n_clusters[t] = found
    return n_clusters
