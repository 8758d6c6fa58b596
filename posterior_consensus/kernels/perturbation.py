"""Averages over all ways to match the clusters of a draw with those of an estimate."""

import numpy as np
from numba import prange

from posterior_consensus.kernels._jit import jit

_DRAWS_AT_ONCE = 16  # that share scratch memory


@jit
def _n_columns(columns):
    """How many columns are in a set, a number with one bit for each."""
    number = 0
    while columns:
        columns &= columns - 1
        number += 1
    return number


@jit
def _matching(gains, probabilities, ahead, behind):
    """Write the probabilities (r, c), r <= c, that a row has a column, and return the logarithm of the sum of weights.

    The weight of a way to give each row a column of its own is exp(sum of its gains). The rows are taken one by one:
    `ahead` is the sum of the weights of the ways to one set of columns, `behind` of those from it to the end, both
    (2^c,) scratch.
    """
    n_rows, n_columns = gains.shape
    last = (1 << n_columns) - 1
    weights = np.empty((n_rows, n_columns))
    shift = 0.0
    for r in range(n_rows):
        shift += gains[r].max()
        weights[r] = np.exp(gains[r] - gains[r].max())
    ahead[: last + 1] = 0.0
    behind[: last + 1] = 0.0
    ahead[0] = 1.0
    for columns in range(last + 1):
        row = _n_columns(columns)
        if ahead[columns] > 0.0 and row < n_rows:
            for c in range(n_columns):
                if not (columns >> c) & 1:
                    ahead[columns | (1 << c)] += ahead[columns] * weights[row, c]
    total = 0.0
    probabilities[:] = 0.0
    for columns in range(last, -1, -1):
        row = _n_columns(columns)
        if ahead[columns] > 0.0 and row == n_rows:
            behind[columns] = 1.0
            total += ahead[columns]
        elif ahead[columns] > 0.0 and row < n_rows:
            for c in range(n_columns):
                if not (columns >> c) & 1:
                    through = weights[row, c] * behind[columns | (1 << c)]
                    behind[columns] += through
                    probabilities[row, c] += ahead[columns] * through
    probabilities /= total
    return shift + np.log(total)


@jit(parallel=True)
def matchings(table, starts, scales, rows, probabilities):
    """Average over all matchings of the clusters of draws `rows` with those of an estimate.

    The weight of a matching is exp(`scales[t]` x the sum of `table` (R, K) over its cells). Writes the probability of
    each match to `probabilities` (R, K) and returns the logarithms of the sums of the weights, one for each of `rows`.
    """
    n_clusters = table.shape[1]
    logs = np.empty(rows.size)
    for block in prange((rows.size + _DRAWS_AT_ONCE - 1) // _DRAWS_AT_ONCE):
        first = block * _DRAWS_AT_ONCE
        at = rows[first : first + _DRAWS_AT_ONCE]
        widest = max(n_clusters, (starts[at + 1] - starts[at]).max())
        ahead, behind = np.empty(1 << widest), np.empty(1 << widest)
        turned = np.empty((n_clusters, widest))
        for s in range(at.size):
            t = at[s]
            gains = scales[t] * table[starts[t] : starts[t + 1]]
            found = probabilities[starts[t] : starts[t + 1]]
            width = gains.shape[0]
            if width <= n_clusters:
                logs[first + s] = _matching(gains, found, ahead, behind)
            else:
                across = np.ascontiguousarray(gains.T)
                logs[first + s] = _matching(across, turned[:, :width], ahead, behind)
                found[:] = turned[:, :width].T
    return logs
