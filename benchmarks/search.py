"""Greedy search at its defaults beside R's salso at its own: seconds, expected losses, how often the best is reached.

By default on the posterior in tests/golden. The environment variable POSTERIORS names a folder with others, which may
not be redistributed: files NAME_draws.npz. With `--others`, all losses that salso has, and 5,000 items.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import print_table, random_draws

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
TIME_SALSO = Path(__file__).with_name("time_salso.R")
IN_SALSO = ("vi", "binder", "omari", "nvi", "id", "nid")
ORDER = ("galaxy", "iris", "ex2", "dpmm")
SEEDS = 20
REPEATS = 5


def main() -> None:
    """Print one row per posterior and loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--others", action="store_true", help="all losses and a larger posterior")
    options = parser.parse_args()
    has_salso = not options.smallest and _has_salso()
    if not has_salso:
        print("R with salso is not there: ours alone.")
    if options.others:
        _print_others(has_salso)
    else:
        rows = [
            _row(name, labels[:50, :100] if options.smallest else labels, loss, has_salso, options.smallest)
            for name, labels in _posteriors()
            for loss in ("vi", "binder")
        ]
        header = ["posterior", "items x draws", "loss", "ms", "clusters", "expected loss", f"at that loss, of {SEEDS}"]
        print_table(header + (["salso, ms", "its expected loss", "ratio of times"] if has_salso else []), rows)


def _row(name, labels, loss, has_salso, is_smallest):
    draws = pc.as_partition_draws(labels)
    theirs = []
    with tempfile.TemporaryDirectory() as folder:
        file = _written(labels, Path(folder))
        ours = []
        for repeat in range(1 if is_smallest else REPEATS):
            _ours(draws, loss, 0)
            ours.append(statistics.median(_ours(draws, loss, 10 * repeat + k)[0] for k in range(5)))
            if has_salso:
                theirs.append(_salso(file, labels.shape, loss))
    found = [_ours(draws, loss, seed)[1] for seed in range(2 if is_smallest else SEEDS)]
    best = min(found, key=lambda one: one.expected_loss)
    reached = sum(one.expected_loss <= best.expected_loss * (1 + 1e-12) for one in found)
    seconds = statistics.median(ours)
    size = f"{labels.shape[1]:,} x {labels.shape[0]:,}"
    row = [name, size, loss, 1000 * seconds, best.n_clusters, f"{best.expected_loss:.15g}", reached]
    if has_salso:
        their_seconds = statistics.median(run[0] for run in theirs)
        row += [1000 * their_seconds, f"{min(run[1] for run in theirs):.15g}", round(their_seconds / seconds)]
    return row


def _print_others(has_salso):
    """Every loss, as a ratio to VI, and 5,000 items, as a ratio to 1,000."""
    rows = []
    for name, labels in _posteriors():
        draws = pc.as_partition_draws(labels)
        for loss in pc.LOSSES:
            runs = [_ours(draws, loss, seed) for seed in range(6)][1:]
            seconds = statistics.median(run[0] for run in runs)
            vi = statistics.median(_ours(draws, "vi", seed)[0] for seed in range(5))
            best = min((run[1] for run in runs), key=lambda one: one.expected_loss)
            row = [name, loss, 1000 * seconds, round(seconds / vi, 1), best.n_clusters, f"{best.expected_loss:.15g}"]
            if has_salso:
                row += _beside(labels, loss, seconds) if loss in IN_SALSO else ["", "", ""]
            rows.append(row)
    header = ["posterior", "loss", "ms", "of VI's time", "clusters", "expected loss"]
    print_table(header + (["salso, ms", "its expected loss", "ratio of times"] if has_salso else []), rows)
    print()
    labels = np.load(GOLDEN / "dpmm_draws.npz")["labels"]
    larger = {"dpmm, 1,000 x 1,000": labels, "noisy partition, 5,000 x 1,000": random_draws(1_000, 5_000, 16)}
    rows = []
    for name, labels in larger.items():
        draws = pc.as_partition_draws(labels)
        _ours(draws, "vi", 0)
        seconds = statistics.median(_ours(draws, "vi", seed)[0] for seed in range(5))
        rows.append([name, 1000 * seconds, round(seconds / (rows[0][1] / 1000 if rows else seconds), 1)])
    print_table(["posterior, VI", "ms", "of the first"], rows)


def _beside(labels, loss, seconds):
    with tempfile.TemporaryDirectory() as folder:
        their_seconds, their_loss = _salso(_written(labels, Path(folder)), labels.shape, loss)
    return [1000 * their_seconds, f"{their_loss:.15g}", round(their_seconds / seconds)]


def _ours(draws, loss, seed):
    began = time.perf_counter()
    found = pc.consensus_partition(draws, loss=loss, random_seed=seed, n_jobs=2, progressbar=False)
    return time.perf_counter() - began, found


def _salso(file, shape, loss):
    command = ["Rscript", TIME_SALSO, file, *map(str, shape), loss]
    seconds, expected = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    return float(seconds), float(expected)


def _has_salso() -> bool:
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(salso)"], capture_output=True, check=False).returncode == 0


def _written(labels, folder):
    file = folder / "draws.bin"
    (labels.astype(np.int32) + 1).T.tofile(file)  # R fills a matrix column by column
    return file


def _posteriors():
    folder = Path(os.environ.get("POSTERIORS", GOLDEN))
    found = {path.stem.removesuffix("_draws"): path for path in folder.glob("*_draws.npz")}
    for name in sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)):
        yield name, np.load(found[name])["labels"]


if __name__ == "__main__":
    main()
