"""Greedy search at its defaults beside R's salso at its own: seconds, expected losses, how often the best is reached.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS; with --mixtures on 500 draws of two
Dirichlet process mixtures for 400 observations in the plane, normal clusters of unit variance whose means have a normal
prior. The expected loss is the least of all calls of both programs.
"""

import statistics

import numpy as np

import posterior_consensus as pc
from benchmarks._data import dpmm, posteriors, random_draws
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks._salso import IN_SALSO, ask, compared, has_salso, salso_columns, searched

SEEDS = 20
REPEATS = 5
BURN_IN, THINNING = 100, 2
MIXTURES = {  # number of clusters of the data, spread of their means, concentration
    "about 10 clusters": (10, 4.0, 1.0),
    "about 25 clusters": (24, 6.0, 3.0),
}
OPTIONS = {
    "--others": {"action": "store_true", "help": "all losses, and 5,000 items"},
    "--mixtures": {"action": "store_true", "help": "Dirichlet process mixtures"},
}


def tables(smallest, others, mixtures):
    beside = not smallest and has_salso()
    if others:
        yield "", _by_loss(beside)
        yield "", _larger()
    if mixtures or smallest:
        size = (40, 20) if smallest else (400, 500)
        yield "", _rows({name: _mixture(*of, *size) for name, of in MIXTURES.items()}, beside, smallest)
    if not (others or mixtures):
        yield "", _rows(posteriors(smallest), beside, smallest)


def _rows(found, beside, smallest):
    return (_row(*one, loss, beside, smallest) for one in found.items() for loss in ("vi", "binder"))


def _mixture(n_clusters, spread, concentration, n_items, n_draws):
    rng = np.random.default_rng(n_clusters)
    means = rng.normal(0, spread, (n_clusters, 2))
    observations = means[rng.integers(n_clusters, size=n_items)] + rng.normal(size=(n_items, 2))
    sweeps = BURN_IN + THINNING * n_draws
    return dirichlet_process_draws(observations, spread, concentration, sweeps, rng)[BURN_IN + THINNING - 1 :: THINNING]


def _row(name, labels, loss, beside, smallest):
    """A row of the table, the best of all calls in it."""
    draws = pc.as_partition_draws(labels)
    seconds, theirs = compared(draws, loss, 1 if smallest else REPEATS, beside)
    found = [searched(draws, loss, seed).result for seed in range(2 if smallest else SEEDS)]
    best = min(found, key=lambda one: one.expected_loss)
    least = min([best.expected_loss, *(run[1] for run in theirs)])
    return {
        "posterior": name,
        "items x draws": f"{draws.n_items:,} x {draws.n_draws:,}",
        "clusters in a draw": round(draws.n_clusters.mean(), 1),
        "loss": loss,
        "ms": 1000 * seconds,
        "clusters": best.n_clusters,
        "expected loss": f"{least:.15g}",
        f"at that loss, of {SEEDS}": sum(one.expected_loss <= least * (1 + 1e-12) for one in found),
        **salso_columns(theirs, seconds, beside),
    }


def _by_loss(beside):
    """Every loss, as a ratio to VI."""
    for name, labels in posteriors().items():
        draws = pc.as_partition_draws(labels)
        for loss in pc.LOSSES:
            runs = [searched(draws, loss, seed) for seed in range(6)][1:]
            seconds = statistics.median(run.seconds for run in runs)
            vi = statistics.median(searched(draws, "vi", seed).seconds for seed in range(5))
            best = min((run.result for run in runs), key=lambda one: one.expected_loss)
            theirs = [ask("time_salso.R", labels, loss)] if beside and loss in IN_SALSO else []
            yield {
                "posterior": name,
                "loss": loss,
                "ms": 1000 * seconds,
                "of VI's time": round(seconds / vi, 1),
                "clusters": best.n_clusters,
                "expected loss": f"{best.expected_loss:.15g}",
                **salso_columns(theirs, seconds, beside),
            }


def _larger():
    """5,000 items, as a ratio to 1,000."""
    larger = {"dpmm, 1,000 x 1,000": dpmm(), "noisy partition, 5,000 x 1,000": random_draws(1_000, 5_000, 16)}
    first = None
    for name, labels in larger.items():
        draws = pc.as_partition_draws(labels)
        seconds, _ = compared(draws, "vi", 1, beside=False)
        first = first or seconds
        yield {"posterior, VI": name, "ms": 1000 * seconds, "ratio to the first": round(seconds / first, 1)}
