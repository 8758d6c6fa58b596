"""Particles beside R's WASABI: distances from the posterior, how many seeds are at or below its, and times.

By default on the posterior in tests/golden. The environment variable POSTERIORS names a folder with others, which may
not be redistributed: files NAME_draws.npz. WASABI's distances are the best of five of its starts, on every
(number of draws // 1,000)-th draw; its seconds are those of the five starts for one number of particles. Ours are of a
whole call with 20 starts, which finds all smaller numbers as well.
"""

import os
import statistics
import time
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import is_smallest, print_table

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
WASABI = {  # distances for two, three, ... particles, and seconds
    "galaxy": ((0.891335698, 0.877799584, 0.888902733), 5.0),
    "iris": ((1.514065739, 1.468260996, 1.43912874), None),
    "ex2": ((0.932726548, 0.917141067, 0.903678219), 5.0),
    "dpmm": ((2.043481398,), 510.0),
}
SEEDS = 20
_ROUNDING = 5e-10  # of WASABI's distances as they are printed here


def main() -> None:
    """Print one row per posterior and number of particles."""
    smallest = is_smallest()
    folder = Path(os.environ.get("POSTERIORS", GOLDEN))
    rows = []
    for name, (distances, seconds) in WASABI.items():
        file = folder / f"{name}_draws.npz"
        if file.exists():
            labels = np.load(file)["labels"]
            labels = labels[:: max(1, len(labels) // 1000)]
            draws = pc.as_partition_draws(labels[:50, :100] if smallest else labels)
            rows += [_row(name, draws, number, theirs, seconds, smallest) for number, theirs in enumerate(distances, 2)]
    header = ["posterior", "particles", "WASABI", "least", "median", "worst", f"at or below, of {SEEDS}"]
    print_table([*header, "seconds", "processor's seconds", "WASABI's seconds"], rows)


def _row(name, draws, number, theirs, their_seconds, smallest):
    pc.particles(draws, number, n_starts=1, random_seed=0, progressbar=False)  # compiles
    found, seconds, busy = [], [], []
    for seed in range(1 if smallest else SEEDS):
        began, worked = time.perf_counter(), time.process_time()
        found.append(pc.particles(draws, number, random_seed=seed, progressbar=False).distance)
        seconds.append(time.perf_counter() - began)
        busy.append(time.process_time() - worked)
    distances = [f"{x:.6f}" for x in (theirs, min(found), statistics.median(found), max(found))]
    reached = sum(x <= theirs + _ROUNDING for x in found)
    times = [f"{statistics.median(x):.2f}" for x in (seconds, busy)]
    return [name, number, *distances, reached, *times, their_seconds or ""]


if __name__ == "__main__":
    main()
