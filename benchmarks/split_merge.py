"""Greedy search for VI where about 300 clusters split and merge between draws: seconds and memory.

300 draws of 20,000 items around 300 clusters, whose shares of the items have a uniform Dirichlet distribution. In each
draw one cluster in ten splits in two at random, one pair of clusters in ten merges, and some items then go where
others are: 3 % of them, and 20 %, with which a cluster meets many more clusters of other draws. Each row is a process
of its own: the median of several calls after one that warms up.
"""

import resource
import statistics
import subprocess
import sys

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import is_smallest, print_table
from benchmarks.search import _ours

N_ITEMS, N_DRAWS, N_CLUSTERS = 20_000, 300, 300
CHANGING = 0.1  # share of the clusters that split, and of the pairs that merge
MOVING = (0.03, 0.2)
REPEATS = 5


def main() -> None:
    """Print one row per share of items that move."""
    if len(sys.argv) == 4:
        print(*_measured(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
        return
    n_items, repeats, moved = (200, 1, MOVING[:1]) if is_smallest() else (N_ITEMS, REPEATS, MOVING)
    rows = []
    for moving in moved:
        command = [sys.executable, "-m", "benchmarks.split_merge", str(n_items), str(moving), str(repeats)]
        printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        seconds, gigabytes, n_clusters, expected = printed.split()
        rows.append([f"{moving:.0%}", float(seconds), float(gigabytes), int(n_clusters), expected])
    print_table(["items moving", "seconds", "GB beyond the draws", "clusters", "expected VI"], rows)


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


def _measured(n_items, moving, repeats):
    """Median seconds of a call, peak memory beyond the draws, and what the calls found."""
    draws = pc.as_partition_draws(split_merge_draws(n_items, moving))
    _ours(pc.as_partition_draws(split_merge_draws(100, moving)), "vi", 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runs = [_ours(draws, "vi", seed) for seed in range(repeats)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = min((run[1] for run in runs), key=lambda one: one.expected_loss)
    seconds = statistics.median(run[0] for run in runs)
    return seconds, peak / 1e6, found.n_clusters, f"{found.expected_loss:.9g}"


if __name__ == "__main__":
    main()
