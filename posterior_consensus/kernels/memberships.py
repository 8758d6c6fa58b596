"""Free memberships of one view: each item's probabilities given the items that constraints link it with."""

import numpy as np

from posterior_consensus.kernels._jit import jit


@jit
def settle_memberships(weights, indices, starts, odds, soft, most, enough):
    """Optimize each item's probabilities given all others, in turn, until they hardly change.

    Parameters
    ----------
    weights : float array of shape (n_entries,)
        Of a symmetric sparse matrix without diagonal, row after row: evidence that two items share a cluster.
    indices : int32 array of shape (n_entries,)
        Column of each entry.
    starts : int32 array of shape (n + 1,)
        First entry of each row.
    odds : float array of shape (K,)
        Expected logarithms of the clusters' shares.
    soft : float array of shape (n, K)
        Probabilities; changed in place.
    most : int
        Largest number of passes.
    enough : float
        Largest change of a probability at which to end.

    Returns
    -------
    int
        Number of passes.
    """
    n_items, n_clusters = soft.shape
    logits = np.empty(n_clusters)
    for sweep in range(most):
        change = 0.0
        for i in range(n_items):
            logits[:] = odds
            for entry in range(starts[i], starts[i + 1]):
                for k in range(n_clusters):
                    logits[k] += weights[entry] * soft[indices[entry], k]
            logits -= logits.max()
            total = 0.0
            for k in range(n_clusters):
                logits[k] = np.exp(logits[k])
                total += logits[k]
            for k in range(n_clusters):
                share = logits[k] / total
                change = max(change, abs(share - soft[i, k]))
                soft[i, k] = share
        if change < enough:
            return sweep + 1
    return most
