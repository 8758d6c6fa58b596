"""How close the lower bound of the expected Binder loss comes to the best partition, and in how many seconds.

By default on the posterior in tests/golden. The environment variable POSTERIORS names a folder with others, which may
not be redistributed: files NAME_draws.npz. `--seconds` gives every posterior that much in place of its own budget.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import print_table

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SECONDS = {"galaxy": 1.0, "iris": 3.0, "ex2": 3.0, "dpmm": 20.0}


def main() -> None:
    """Print one row per posterior; the fastest of three calls, after one that compiles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--seconds", type=float, help="budget of every posterior")
    options = parser.parse_args()
    rows = []
    for name, labels in _posteriors():
        draws = pc.as_partition_draws(labels[:50, :100] if options.smallest else labels)
        best = pc.consensus_partition(draws, "binder", random_seed=1, progressbar=False)
        seconds = options.seconds or SECONDS.get(name, 20.0)
        runs = [_timed(draws, best, seconds) for _ in range(1 if options.smallest else 4)]
        took, proof = min(runs[1:] or runs, key=lambda run: run[0])
        loss = proof.better_loss
        gap = proof.gap if proof.better is None else (loss - proof.lower_bound) / loss
        status = "optimal" if gap < 1e-9 else "bounded"
        bounds = [f"{loss:.9f}", f"{proof.lower_bound:.9f}", f"{gap:.2g}"]
        rows.append([name, seconds, took, *bounds, status, proof.method, f"{best.gap:.2g}"])
    header = ["posterior", "seconds allowed", "taken", "expected loss", "lower bound", "gap", "status", "method"]
    print_table([*header, "gap of consensus_partition"], rows)


def _timed(draws, best, seconds):
    began = time.perf_counter()
    proof = pc.certify(draws, best, "binder", seconds=seconds, progressbar=False)
    return time.perf_counter() - began, proof


def _posteriors():
    folder = Path(os.environ.get("POSTERIORS", GOLDEN))
    for path in sorted(folder.glob("*_draws.npz")):
        yield path.stem.removesuffix("_draws"), np.load(path)["labels"]


if __name__ == "__main__":
    main()
