"""Numbers of clusters under priors on partitions, item after item or stick after stick."""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import jit


def n_clusters_of_sequence(n_items: int, concentration: float, discount: float, least: float) -> np.ndarray:
    """Probabilities of the number of clusters if each item opens a new cluster or joins an existing one.

    With i items in k clusters, the next opens a cluster with probability (concentration + discount k) / (concentration
    + i): the two-parameter family, with a negative discount where the number of components is finite.

    Parameters
    ----------
    n_items : int
    concentration, discount : float
    least : float
        Ends of the distribution below it are left out.

    Returns
    -------
    float array of shape (most,)
        Probability of 1, 2, ... clusters.
    """
    found = np.zeros(n_items + 1)
    highest = _n_clusters_of_sequence(n_items, concentration, discount, least, found)
    return found[1 : highest + 1]


@jit
def _n_clusters_of_sequence(n_items, concentration, discount, least, found):
    chance, next_chance = np.zeros(n_items + 1), np.zeros(n_items + 1)
    chance[1] = 1.0
    low, high = 1, 1
    for i in range(1, n_items):
        share = 1.0 / (concentration + i)
        for k in range(low, high + 2):  # of two arrays, so that the loop is vectorized
            joins = (i - discount * k) * chance[k]
            opens = max(concentration + discount * (k - 1), 0.0) * chance[k - 1]
            next_chance[k] = (joins + opens) * share
        next_chance[low - 1] = 0.0
        high += 1
        chance, next_chance = next_chance, chance
        while low < high and chance[low] < least:
            chance[low] = 0.0
            low += 1
        while low < high and chance[high] < least:
            chance[high] = 0.0
            high -= 1
    found[low : high + 1] = chance[low : high + 1]  # the rest of `chance` has remainders of earlier steps
    return high


def occupied_sticks(n_items: int, n_components: int, concentration: float) -> np.ndarray:
    """Probabilities of the number of sticks that have items, of Beta(1, concentration) fractions, the last one 1.

    Of m items that earlier sticks have not taken, the next stick leaves j with a probability f(j) / F(m), where F(m) is
    the sum of f(0), ..., f(m), so that one pass over j serves all m.

    Parameters
    ----------
    n_items, n_components : int
    concentration : float

    Returns
    -------
    float array of shape (min(n_items, n_components),)
        Probability of 1, 2, ... sticks.
    """
    chance = np.zeros(min(n_items, n_components))
    _occupied_sticks(n_items, n_components, concentration, chance)
    return chance


@jit
def _occupied_sticks(n_items, n_components, concentration, chance):
    most = chance.size
    left = np.zeros((most + 1, n_items + 1))  # sticks occupied so far, items left
    left[0, n_items] = 1.0
    for stick in range(n_components - 1):
        for k in range(min(stick, most - 1), -1, -1):
            taken = 0.0  # sum over m > j of the chance of m left, times F(j) / F(m)
            for j in range(n_items, -1, -1):
                own = concentration / (concentration + j)  # f(j) / F(j)
                here = left[k, j]
                left[k + 1, j] += own * taken
                left[k, j] = own * here
                taken = (taken + here) * j / (concentration + j)
    for k in range(most + 1):
        chance[max(k - 1, 0)] += left[k, 0]
        if k < most:
            chance[k] += left[k, 1:].sum()
