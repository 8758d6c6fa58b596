"""The best partitions of small components, by dynamic programming over their subsets."""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import inner, jit

MOST = 14  # groups of a component: its subsets and theirs are some 3^13 / 2


@jit
def solve_components(
    first: int,
    last: int,
    starts: np.ndarray,
    component: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float],
    clusters: np.ndarray,
) -> None:
    """Write the best partition of each of these components that has at most MOST groups.

    The largest sum of weights over the pairs joined within a set S of groups is that of one of its subsets T with the
    first group of S, plus the largest within S - T.

    Parameters
    ----------
    first, last : int
        Components.
    starts : ndarray of shape (n_components + 1,)
        First group of each component.
    component : tuple
        The fields of a `Component` of the groups of all.
    clusters : ndarray of shape (n_groups,), dtype int32
        First group of each group's cluster; written.
    """
    indptr, indices, excess, sizes, default, limit = component
    weights = np.empty((MOST, MOST))
    values = np.empty(1 << MOST)
    best = np.empty(1 << MOST)
    chosen = np.empty(1 << MOST, np.int32)
    for number in range(first, last):
        begin = starts[number]
        n_groups = starts[number + 1] - begin
        if n_groups > MOST:
            continue
        fill_weights(indptr, indices, excess, sizes, default, begin, n_groups, weights)
        is_limited = sizes[begin : begin + n_groups].sum() > limit
        if not is_limited and all_attract(weights, n_groups):
            clusters[begin : begin + n_groups] = begin
            continue
        sum_weights(weights, n_groups, values)
        if is_limited:
            forbid_large(sizes[begin : begin + n_groups], limit, values)
        choose_subsets(n_groups, values, best, chosen)
        left = (1 << n_groups) - 1
        while left:
            one = first_bit(left)
            for i in range(one, n_groups):
                if chosen[left] >> i & 1:
                    clusters[begin + i] = begin + one
            left ^= chosen[left]


@inner
def fill_weights(indptr, indices, excess, sizes, default, begin, n_groups, weights):
    """Write the weights of all pairs of `n_groups` groups from `begin` on."""
    for i in range(n_groups):
        for j in range(n_groups):
            weights[i, j] = default * sizes[begin + i] * sizes[begin + j]
        for place in range(indptr[begin + i], indptr[begin + i + 1]):
            weights[i, indices[place] - begin] += excess[place]


@inner
def all_attract(weights, n_groups):
    """Whether no pair has a negative weight, so that one cluster is best."""
    for i in range(n_groups):
        for j in range(i):
            if weights[i, j] < 0:
                return False
    return True


@inner
def first_bit(subset):
    """The first group of a subset."""
    i = 0
    while not subset >> i & 1:
        i += 1
    return i


@inner
def sum_weights(weights, n_groups, values):
    """Sum the weights of all pairs within every subset."""
    values[0] = 0.0
    for subset in range(1, 1 << n_groups):
        i = first_bit(subset)
        rest = subset ^ (1 << i)
        total = values[rest]
        for j in range(i + 1, n_groups):
            if rest >> j & 1:
                total += weights[i, j]
        values[subset] = total


@inner
def forbid_large(sizes, limit, values):
    """Write minus infinity for every subset of these groups that has too many records."""
    for subset in range(1, 1 << sizes.size):
        n_records = 0
        for i in range(sizes.size):
            if subset >> i & 1:
                n_records += sizes[i]
        if n_records > limit:
            values[subset] = -np.inf


@inner
def choose_subsets(n_groups, values, best, chosen):
    """Choose the best cluster of the first group of all, and of each set of others; of equals the largest number."""
    best[0] = 0.0
    everything = (1 << n_groups) - 1
    for half in range(1, (1 << (n_groups - 1)) + 1):
        whole = min(2 * half, everything)  # without the first group, but for the last
        low = whole & -whole
        rest = whole ^ low
        part, most = rest, -np.inf
        while True:
            value = values[part | low] + best[rest ^ part]
            if value > most:
                most = value
                chosen[whole] = part | low
            if part == 0:
                break
            part = (part - 1) & rest
        best[whole] = most
