"""Greedy search for VI where about 300 clusters split and merge between draws: seconds and memory.

300 draws of 20,000 items around 300 clusters, whose shares of the items have a uniform Dirichlet distribution. In each
draw one cluster in ten splits in two at random, one pair of clusters in ten merges, and some items then go where
others are: 3 % of them, and 20 %, with which a cluster meets many more clusters of other draws. Each row is a process
of its own: the median of several calls after one that warms up.
"""

import numpy as np

from benchmarks._runner import apart
from benchmarks.records import measured

N_ITEMS, N_DRAWS, N_CLUSTERS = 20_000, 300, 300
CHANGING = 0.1  # share of the clusters that split, and of the pairs that merge
MOVING = (0.03, 0.2)
REPEATS = 5


def tables(smallest):
    n_items, repeats, shares = (200, 1, MOVING[:1]) if smallest else (N_ITEMS, REPEATS, MOVING)
    yield "", (_row(n_items, moving, repeats) for moving in shares)


def _row(n_items, moving, repeats):
    draws, few = split_merge_draws(n_items, moving), split_merge_draws(100, moving)
    *cells, _, _ = apart(measured, draws, few, "vi", repeats)  # components are of Binder's loss
    columns = "items moving", "seconds", "GB beyond the draws", "clusters", "expected VI"
    return dict(zip(columns, (f"{moving:.0%}", *cells), strict=True))


def split_merge_draws(n_items: int, moving: float) -> np.ndarray:
    """Draws (N_DRAWS, n_items) of the clusters, a share `moving` of the items elsewhere in each."""
    rng = np.random.default_rng(1)
    truth = rng.choice(N_CLUSTERS, n_items, p=rng.dirichlet(np.ones(N_CLUSTERS)))
    draws = np.empty((N_DRAWS, n_items), np.int32)
    for draw in draws:
        share = np.where(rng.random(N_CLUSTERS) < CHANGING, rng.random(N_CLUSTERS), 0)  # that leaves its cluster
        pairs = rng.permutation(N_CLUSTERS)[: 2 * rng.binomial(N_CLUSTERS // 2, CHANGING)].reshape(-1, 2)
        name = np.arange(2 * N_CLUSTERS)
        name[pairs[:, 1]] = pairs[:, 0]
        draw[:] = name[truth + N_CLUSTERS * (rng.random(n_items) < share[truth])]
        moves = rng.random(n_items) < moving
        draw[moves] = draw[rng.integers(n_items, size=moves.sum())]
    return draws
