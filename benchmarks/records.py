"""Greedy search where clusters are many and small, as in record linkage: seconds, memory, expected losses.

200 draws of 1,000, 10,000 and 100,000 records, each in a process of its own; beside R's salso at its defaults for the
first, one call of each in turn.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import is_smallest, print_table
from benchmarks.search import _has_salso, _ours, _salso, _written

N_DRAWS = 200
SIZES = (1_000, 10_000, 100_000)
REPEATS = 3


def main() -> None:
    """Print one row per size and loss."""
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        print(*_measured(int(sys.argv[1]), sys.argv[2]))
        return
    smallest = is_smallest()
    has_salso = not smallest and _has_salso()
    rows = []
    for n_items in (100,) if smallest else SIZES:
        for loss in ("vi", "binder"):
            command = [sys.executable, "-m", "benchmarks.records", str(n_items), loss]
            printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
            seconds, gigabytes, n_clusters, expected = printed.split()
            row = [f"{n_items:,}", loss, float(seconds), float(gigabytes), int(n_clusters), expected]
            if has_salso:
                row += _beside(records(n_items), loss, float(seconds)) if n_items == SIZES[0] else ["", "", ""]
            rows.append(row)
    header = ["records", "loss", "seconds", "GB beyond the draws", "clusters", "expected loss"]
    print_table(header + (["salso, s", "its expected loss", "ratio of times"] if has_salso else []), rows)


def records(n_items: int, n_draws: int = N_DRAWS) -> np.ndarray:
    """Draws (n_draws, n_items) of clusters of one to four records, some of which leave theirs now and then."""
    rng = np.random.default_rng(1)
    size = rng.choice([1, 2, 3, 4], n_items, p=[0.5, 0.3, 0.15, 0.05])
    truth = np.repeat(np.arange(n_items), size)[:n_items]
    keep = rng.beta(8, 1.5, n_items)
    alone = np.arange(n_items, 2 * n_items)
    return np.array([np.where(rng.random(n_items) > keep, alone, truth) for _ in range(n_draws)], np.int32)


def _measured(n_items, loss):
    """Median seconds of a call after one that warms up, peak memory beyond the draws, and what the call found."""
    draws = pc.as_partition_draws(records(n_items))
    _ours(pc.as_partition_draws(records(100)), loss, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runs = [_ours(draws, loss, seed) for seed in range(REPEATS)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = min((run[1] for run in runs), key=lambda one: one.expected_loss)
    seconds = statistics.median(run[0] for run in runs)
    return seconds, peak / 1e6, found.n_clusters, f"{found.expected_loss:.9g}"


def _beside(labels, loss, seconds):
    with tempfile.TemporaryDirectory() as folder:
        their_seconds, their_loss = _salso(_written(labels, Path(folder)), labels.shape, loss)
    return [their_seconds, f"{their_loss:.9g}", round(their_seconds / seconds)]


if __name__ == "__main__":
    main()
