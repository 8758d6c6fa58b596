"""How close the lower bound of the expected Binder loss, or VI, comes to the best partition, and in how many seconds.

By default on the posterior in tests/golden. The environment variable POSTERIORS names a folder with others, which may
not be redistributed: files NAME_draws.npz. `--loss vi` is for VI, `--seconds` gives every posterior that much in place
of its own budget.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import print_table

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SECONDS = {
    "binder": {"galaxy": 1.0, "iris": 3.0, "ex2": 3.0, "dpmm": 20.0},
    "vi": {"galaxy": 60.0, "iris": 60.0, "ex2": 60.0, "dpmm": 120.0},
}


def main() -> None:
    """Print one row per posterior; for Binder the fastest of three calls; after one that compiles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--loss", choices=list(SECONDS), default="binder")
    parser.add_argument("--seconds", type=float, help="budget of every posterior")
    options = parser.parse_args()
    rows = []
    for name, labels in _posteriors():
        draws = pc.as_partition_draws(labels[:50, :100] if options.smallest else labels)
        loss = options.loss
        best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
        seconds = options.seconds or SECONDS[loss].get(name, 20.0)
        _timed(pc.as_partition_draws(labels[:50, :40]), best.labels.values[:40], loss, 5.0)
        runs = [
            _timed(draws, best, loss, seconds) for _ in range(3 if loss == "binder" and not options.smallest else 1)
        ]
        took, proof = min(runs, key=lambda run: run[0])
        least = proof.better_loss
        gap = proof.gap if proof.better is None else (least - proof.lower_bound) / least
        status = "optimal" if gap < 1e-9 else "bounded"
        bounds = [f"{least:.9f}", f"{proof.lower_bound:.9f}", f"{gap:.2g}"]
        at_once = "none" if best.gap is None else f"{best.gap:.2g}"
        rows.append([name, seconds, took, *bounds, status, proof.method, at_once])
    header = ["posterior", "seconds allowed", "taken", "expected loss", "lower bound", "gap", "status", "method"]
    print_table([*header, "gap of consensus_partition"], rows)


def _timed(draws, best, loss, seconds):
    began = time.perf_counter()
    proof = pc.certify(draws, best, loss=loss, seconds=seconds, progressbar=False)
    return time.perf_counter() - began, proof


def _posteriors():
    folder = Path(os.environ.get("POSTERIORS", GOLDEN))
    for path in sorted(folder.glob("*_draws.npz")):
        yield path.stem.removesuffix("_draws"), np.load(path)["labels"]


if __name__ == "__main__":
    main()
