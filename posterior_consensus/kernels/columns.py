"""Columns of tables, one for each cluster and free ones; and orders of items and clusters."""

import numpy as np

from posterior_consensus.kernels._jit import inner
from posterior_consensus.kernels.cells import rename

WIDTH = 8  # columns to begin with


@inner
def first_free(state):
    """The first column that no cluster has, or the number of columns."""
    for k in range(state.sizes.size):
        if state.sizes[k] == 0:
            return k
    return state.sizes.size


@inner
def n_clusters(state):
    """How many columns have a cluster."""
    number = 0
    for size in state.sizes:
        number += size > 0
    return number


def compact(draws, state):
    """Move the clusters to the first columns; return how many there are."""
    n_clusters = np.count_nonzero(state.sizes)
    if np.count_nonzero(state.sizes[:n_clusters]) < n_clusters:
        used = state.sizes > 0
        rename(draws, state, np.cumsum(used) - used)
    return n_clusters


@inner
def smallest(state):
    """The first of the smallest clusters."""
    best = -1
    for k in range(state.sizes.size):
        if state.sizes[k] > 0 and (best < 0 or state.sizes[k] < state.sizes[best]):
            best = k
    return best


@inner
def in_order(values, order):
    """Sort the indices in `order` by their values, stably.

    Shell's sort: NumPy's, compiled into every kernel that sorts, takes a second of a user's first minute.
    """
    gap = order.size // 2
    while gap > 0:
        for place in range(gap, order.size):
            index = order[place]
            value = values[index]
            at = place
            while at >= gap and (
                values[order[at - gap]] > value or (values[order[at - gap]] == value and order[at - gap] > index)
            ):
                order[at] = order[at - gap]
                at -= gap
            order[at] = index
        gap = 1 if gap == 2 else int(gap / 2.2)
    return order


@inner
def up_to(n):
    """The numbers from 0 to n - 1."""
    numbers = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = i
    return numbers
