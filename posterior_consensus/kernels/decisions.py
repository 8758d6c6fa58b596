"""What the opposite decision about a pair costs, at the best of all else: subsets of small sets of groups.

The weights come as a plain tuple: numba's cache on disk would know a class by its module, and fail once that moves.
"""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.components import MOST, fill_weights, forbid_large, sum_weights


@jit
def change_decisions(
    first: int,
    last: int,
    starts: np.ndarray,
    component: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float],
    clusters: np.ndarray,
    pairs_of: np.ndarray,
    pairs: np.ndarray,
    increase: np.ndarray,
    deficit: np.ndarray,
) -> None:
    """Write by how much the weight joined in each of these sets falls if a pair is decided the other way.

    With the pair joined it is the largest value(T) + best[S - T] over the subsets T of the set S that contain both
    groups, with the pair apart over those that contain the first and not the second.

    Parameters
    ----------
    first, last : int
        Sets of at most MOST groups.
    starts : ndarray of shape (n_sets + 1,)
        First group of each set.
    component : tuple
        The fields of a `Component`: weights of the pairs of all groups; minus infinity for those that must be apart.
    clusters : ndarray of shape (n_groups,)
        Cluster of each group, each within a set.
    pairs_of : ndarray of shape (n_sets + 1,)
        First pair of each set.
    pairs : ndarray of shape (2, n_pairs)
        Groups of each pair.
    increase : ndarray of shape (n_pairs,)
        Written.
    deficit : ndarray of shape (n_sets,)
        By how much the best partition of each set exceeds the clusters; written.
    """
    weights = np.empty((MOST, MOST))
    values = np.empty(1 << MOST)
    best = np.empty(1 << MOST)
    indptr, indices, excess, sizes, default, limit = component
    for number in range(first, last):
        begin = starts[number]
        n_groups = starts[number + 1] - begin
        fill_weights(indptr, indices, excess, sizes, default, begin, n_groups, weights)
        sum_weights(weights, n_groups, values)
        if sizes[begin : begin + n_groups].sum() > limit:
            forbid_large(sizes[begin : begin + n_groups], limit, values)
        choose_all(n_groups, values, best)
        everything = (1 << n_groups) - 1
        now = 0.0
        for i in range(n_groups):
            own = 0
            for j in range(n_groups):
                if clusters[begin + j] == clusters[begin + i]:
                    own |= 1 << j
            if own & -own == 1 << i:
                now += values[own]
        deficit[number] = best[everything] - now
        for pair in range(pairs_of[number], pairs_of[number + 1]):
            one, other = 1 << (pairs[0, pair] - begin), 1 << (pairs[1, pair] - begin)
            rest = everything ^ one ^ other
            low = one if clusters[pairs[0, pair]] == clusters[pairs[1, pair]] else one | other
            increase[pair] = now - best_with(rest, low, everything, values, best)


@inner
def best_with(rest, low, everything, values, best):
    """The largest value of a cluster of `low` and some of the `rest`, and the best of all others."""
    most = -np.inf
    part = rest
    while True:
        value = values[part | low] + best[everything ^ part ^ low]
        if value > most:
            most = value
        if part == 0:
            return most
        part = (part - 1) & rest


@inner
def choose_all(n_groups, values, best):
    """Write the largest sum of weights joined within every subset."""
    best[0] = 0.0
    for subset in range(1, 1 << n_groups):
        low = subset & -subset
        best[subset] = best_with(subset ^ low, low, subset, values, best)


@jit
def join_two(
    weights: np.ndarray,
    others: np.ndarray,
    between: np.ndarray,
    sizes: np.ndarray,
    limit: float,
    one: int,
    other: int,
    most: float,
) -> float:
    """The largest sum of weights within two sets if a group of each is joined; `most` if none is larger.

    No pair between the sets has a positive weight.

    Parameters
    ----------
    weights, others : ndarray of shape (n_groups, n_groups), (n_others, n_others)
        Weights within each set of at most MOST groups.
    between : ndarray of shape (n_groups, n_others)
        Weights between the sets; minus infinity for pairs that must be apart.
    sizes : ndarray of shape (n_groups + n_others,)
        Records of each group.
    limit : float
        The most records of a cluster.
    one, other : int
        The two groups, one of each set.
    most : float
        A sum that is reached.
    """
    n_groups, n_others = between.shape
    values, more_values = np.empty(1 << n_groups), np.empty(1 << n_others)
    best, more_best = np.empty(1 << n_groups), np.empty(1 << n_others)
    sum_weights(weights, n_groups, values)
    sum_weights(others, n_others, more_values)
    forbid_large(sizes[:n_groups], limit, values)
    forbid_large(sizes[n_groups:], limit, more_values)
    choose_all(n_groups, values, best)
    choose_all(n_others, more_values, more_best)
    everything, all_others = (1 << n_groups) - 1, (1 << n_others) - 1
    across = np.empty(n_others)
    for part in range(1 << n_groups):
        own = values[part] + best[everything ^ part]
        if not part >> one & 1 or own + more_best[all_others] + between[one, other] <= most:
            continue
        across[:] = 0.0
        room = limit
        for i in range(n_groups):
            if part >> i & 1:
                across += between[i]
                room -= sizes[i]
        for more in range(1 << n_others):
            if not more >> other & 1:
                continue
            total = own + more_values[more] + more_best[all_others ^ more]
            if total + across[other] <= most:
                continue
            n_records = 0
            for j in range(n_others):
                if more >> j & 1:
                    total += across[j]
                    n_records += sizes[n_groups + j]
            if n_records <= room:
                most = max(most, total)
    return most
