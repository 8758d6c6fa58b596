"""The way down of a search: scans, merges, chains of moves, clusters taken apart.

The steps are kernels that Python calls one by one: each is compiled by itself, and only if it is needed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels.records import CHAINS, MERGES, MOVES, SCANS

MARGIN = 1e-5  # of an item's score: bounds the rounding of single precision


class Steps(NamedTuple):
    """The steps over draws, or over pairs; those that return a state may have given it more columns."""

    open_clusters: Callable
    scan: Callable
    merge: Callable
    move_chain: Callable
    rearrange: Callable


def n_clusters(state):
    """How many columns have a cluster."""
    return np.count_nonzero(state.sizes)


def descend(steps, search, state, order, most_doubt, effort, stop):
    """Change a partition of all items until nothing lowers its expected loss; return the state and the tally.

    Scans take items to be in doubt up to MARGIN, and up to `most_doubt` before they give up. `order`, `effort` and
    `stop` are those of search.settle.
    """
    margins, targets = np.empty(order.size), np.zeros(order.size, np.int64)
    tally = np.zeros(6, np.int64)
    if n_clusters(state) < search.fewest:
        state = steps.open_clusters(search, state, margins)
    doubt = MARGIN
    while stop[0] == 0 or n_clusters(state) > search.most:
        state, moved = steps.scan(search, state, margins, targets, doubt)
        tally[SCANS] += 1
        tally[MOVES] += moved
        if moved == 0 and doubt < most_doubt:
            doubt = most_doubt
            continue
        doubt = MARGIN
        improved = moved > 0
        if not improved and (effort >= 0 or n_clusters(state) > search.most):
            n_merges = steps.merge(search, state)
            tally[MERGES] += n_merges
            improved = n_merges > 0
        if stop[0] != 0:  # the margins may not be known
            continue
        if not improved and effort > 0:
            improved = steps.move_chain(search, state, margins, targets)
            tally[CHAINS] += improved
        if not improved and effort > 1:
            state, improved = steps.rearrange(search, state, order, margins, tally)
        if not improved:
            break
    return state, tally
