"""The way down of a search: scans, merges, chains of moves, clusters taken apart."""

import numpy as np

from posterior_consensus.kernels._jit import inner
from posterior_consensus.kernels.columns import n_clusters
from posterior_consensus.kernels.records import CHAINS, MERGES, MOVES, SCANS

MARGIN = 1e-5  # of an item's score: bounds the rounding of single precision


def descent(open_clusters, scan, merge, move_chain, rearrange):
    """The way down that is made of these steps, over draws or over pairs: a function for kernels.

    The steps are known where it is made, so that those who call it are cached on disk as all kernels are.
    """

    @inner
    def descend(search, state, order, most_doubt, effort, stop):
        """Change a partition of all items until nothing lowers its expected loss; return the state and the tally.

        Scans take items to be in doubt up to MARGIN, and up to `most_doubt` before they give up. `order`, `effort` and
        `stop` are those of search.settle.
        """
        margins, targets = np.empty(order.size), np.zeros(order.size, np.int64)
        tally = np.zeros(6, np.int64)
        if n_clusters(state) < search.fewest:
            state = open_clusters(search, state, margins)
        doubt = MARGIN
        while stop[0] == 0 or n_clusters(state) > search.most:
            state, moved = scan(search, state, margins, targets, doubt)
            tally[SCANS] += 1
            tally[MOVES] += moved
            if moved == 0 and doubt < most_doubt:
                doubt = most_doubt
                continue
            doubt = MARGIN
            improved = moved > 0
            if not improved and (effort >= 0 or n_clusters(state) > search.most):
                n_merges = merge(search, state)
                tally[MERGES] += n_merges
                improved = n_merges > 0
            if stop[0] != 0:  # the margins may not be known
                continue
            if not improved and effort > 0:
                improved = move_chain(search, state, margins, targets)
                tally[CHAINS] += improved
            if not improved and effort > 1:
                state, improved = rearrange(search, state, order, margins, tally)
            if not improved:
                break
        return state, tally

    return descend
