"""compare_posteriors: its errors and its verdict over repetitions, what chance gives, and its time."""

import numpy as np

import posterior_consensus as pc
from benchmarks._data import random_draws
from benchmarks._runner import median_seconds

REPETITIONS = 100
LENGTH, CHAINS = 200, 2
TRUTH = np.repeat([0, 1, 2], 6)
MEASURES = ("draws", "mean similarity", "rms similarity")


def tables(smallest):
    repetitions = 3 if smallest else REPETITIONS
    moved = TRUTH.copy()
    moved[[3, 9]] = 2
    for name, other in (("two items moved", moved), ("the same posterior", TRUTH)):
        rng = np.random.default_rng(1)
        found = [_compared(_noisy(rng, TRUTH), _noisy(rng, other)) for _ in range(repetitions)]
        n_differ = sum("the two differ" in one.verdict for one in found)
        yield f"{name}: {n_differ} of {repetitions} verdicts are that the two differ", _errors(found)
    sizes, repeats = ([(100, 400)], 1) if smallest else ([(100, 4000), (1000, 1000)], 3)
    yield "seconds", (_seconds(*size, repeats) for size in sizes)


def _errors(found):
    values = {measure: [one.distances.sel(measure=measure) for one in found] for measure in MEASURES}
    values["difference of an item"] = [one.items.rename(difference="value") for one in found]
    for name, of in values.items():
        value, error, chance = (np.array([one[c].values for one in of]) for c in ("value", "mcse", "by_chance"))
        ratio = (error.mean(axis=0) / value.std(axis=0, ddof=1)).mean()
        columns = "measure", "mean", "by chance", "mean error / spread"
        yield dict(zip(columns, (name, float(value.mean()), float(chance.mean()), float(ratio)), strict=True))


def _seconds(n_items, n_draws, repeats):
    pair = [pc.as_partition_draws(random_draws(n_draws, n_items, 8).reshape(4, -1, n_items)) for _ in range(2)]
    (seconds,) = median_seconds(lambda: _compared(*pair), repeats=repeats)
    return {"items x draws": f"{n_items} x {n_draws}", "s": seconds}


def _noisy(rng, truth):
    shape = (CHAINS, LENGTH, truth.size)
    return np.where(rng.random(shape) < 0.15, rng.integers(4, size=shape), truth)


def _compared(one, other):
    return pc.compare_posteriors(one, other, n_particles=1, random_seed=1, progressbar=False)
