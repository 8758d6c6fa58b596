"""Partial partitions beside R's salso: items, probability, area under the curve, seconds, and how they vary by seed.

By default on the posterior in tests/golden. The environment variable POSTERIORS names a folder with others, which may
not be redistributed: files NAME_draws.npz. Of each posterior every k-th draw is taken, so that there are 1,000. With
`--held-out`, whether the reported probability is right: that of the same set in the other draws of a longer chain.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import print_table
from benchmarks.search import _has_salso, _posteriors, _written

TIME_CHIPS = Path(__file__).with_name("time_chips.R")
PROBS = (0.5, 0.8, 0.95)
N_DRAWS = 1_000
SEEDS = 10
REPEATS = 3


def main() -> None:
    """Print a row for each posterior and probability, then one for each posterior's area."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--held-out", action="store_true", help="probabilities in draws that did not choose")
    options = parser.parse_args()
    posteriors = list(_posteriors())
    if options.smallest:
        posteriors = [(name, labels[:60, :40]) for name, labels in posteriors]
    if options.held_out:
        _print_held_out(posteriors)
        return
    has_salso = not options.smallest and _has_salso()
    if not has_salso:
        print("R with salso is not there: ours alone.")
    seeds = range(2 if options.smallest else SEEDS)
    rows, areas = [], []
    for name, labels in posteriors:
        thinned = labels[:: max(1, len(labels) // N_DRAWS)]
        for prob in PROBS:
            rows.append(_row(name, thinned, prob, seeds, has_salso))
        areas.append(_area(name, thinned, seeds, has_salso))
    header = [
        "posterior",
        "probability",
        f"items, {len(seeds)} seeds",
        "probability found",
        "at most",
        "ms",
        "completed, ms",
    ]
    print_table(header + (["chips: items", "ms", "completed, ms", "ratios"] if has_salso else []), rows)
    print()
    header = ["posterior", f"least area, {len(seeds)} seeds", "median", "ms"]
    print_table(header + (["chips: area", "ms", "ratio"] if has_salso else []), areas)


def _row(name, labels, prob, seeds, has_salso):
    draws = pc.as_partition_draws(labels)
    found = [pc.partial_partition(draws, prob, random_seed=seed) for seed in seeds]
    pc.partial_partition(draws, prob, complete="vi", random_seed=0)
    ours, completed, theirs, theirs_completed = [], [], [(0.0, 0.0, 0.0)], [(0.0, 0.0, 0.0)]
    for repeat in range(REPEATS):
        ours.append(_seconds(draws, prob, seeds, repeat))
        completed.append(_seconds(draws, prob, seeds, repeat, complete="vi"))
        if has_salso:
            theirs.append(_chips(labels, prob, False))
            theirs_completed.append(_chips(labels, prob, True))
    numbers = sorted({one.n_items for one in found})
    best = max(found, key=lambda one: (one.n_items, one.search_probability))
    milliseconds = [1000 * statistics.median(one) for one in (ours, completed)]
    row = [name, prob, " or ".join(map(str, numbers)), best.search_probability, best.n_items_bound, *milliseconds]
    if not has_salso:
        return row
    their_ms = [1000 * statistics.median(run[0] for run in runs[1:]) for runs in (theirs, theirs_completed)]
    ratios = ", ".join(f"{their / our:.1f}" for their, our in zip(their_ms, milliseconds, strict=True))
    return [*row, int(max(run[1] for run in theirs)), *their_ms, ratios]


def _area(name, labels, seeds, has_salso):
    draws = pc.as_partition_draws(labels)
    areas = [pc.partial_partition(draws, 0.5, random_seed=seed).area for seed in seeds]
    ours, theirs = [], []
    for repeat in range(REPEATS):
        ours.append(_seconds(draws, 0.5, seeds, repeat))
        if has_salso:
            theirs.append(_chips(labels, 0, False))
    seconds = statistics.median(ours)
    row = [name, f"{min(areas):.5g}", f"{statistics.median(areas):.5g}", 1000 * seconds]
    if has_salso:
        their_seconds = statistics.median(run[0] for run in theirs)
        row += [f"{max(run[1] for run in theirs):.5g}", 1000 * their_seconds, round(their_seconds / seconds, 1)]
    return row


def _seconds(draws, prob, seeds, repeat, **options):
    """Median of half of the seeds, begun with draws that are read."""
    runs = []
    for seed in seeds[: len(seeds) // 2]:
        began = time.perf_counter()
        pc.partial_partition(draws, prob, random_seed=len(seeds) * repeat + seed, **options)
        runs.append(time.perf_counter() - began)
    return statistics.median(runs)


def _chips(labels, threshold, complete):
    with tempfile.TemporaryDirectory() as folder:
        file = _written(labels, Path(folder))
        command = ["Rscript", TIME_CHIPS, file, *map(str, labels.shape), str(threshold), str(complete).upper()]
        return tuple(map(float, subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()))


def _print_held_out(posteriors):
    rows = []
    for name, labels in posteriors:
        half = len(labels) // 2
        step = max(1, half // N_DRAWS)
        for prob in PROBS:
            partial = pc.partial_partition(labels[:half:step], prob, random_seed=1)
            sure = np.flatnonzero(partial.labels.values >= 0)
            rest = pc.as_partition_draws(labels[half:, sure]).labels
            share = float(np.all(rest == partial.labels.values[sure], axis=1).mean())
            own = partial.search_probability
            rows.append([name, prob, partial.n_items, own, partial.probability, partial.mcse, share])
    header = ["posterior", "asked for", "items", "in the draws of the search", "probability", "MCSE"]
    print_table([*header, "in the other half of the chain"], rows)


if __name__ == "__main__":
    main()
