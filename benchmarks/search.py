"""Greedy search at its defaults beside R's salso at its own: seconds, expected losses, how often the best is reached.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS.
"""

import statistics

import posterior_consensus as pc
from benchmarks._data import dpmm, posteriors, random_draws
from benchmarks._salso import IN_SALSO, ask, compared, has_salso, salso_columns, searched

SEEDS = 20
REPEATS = 5
OPTIONS = {"--others": {"action": "store_true", "help": "all losses, and 5,000 items"}}


def tables(smallest, others):
    beside = not smallest and has_salso()
    if others:
        yield "", _by_loss(beside)
        yield "", _larger()
    else:
        found = posteriors(smallest).items()
        yield "", (_row(name, labels, loss, beside, smallest) for name, labels in found for loss in ("vi", "binder"))


def _row(name, labels, loss, beside, smallest):
    draws = pc.as_partition_draws(labels)
    seconds, theirs = compared(draws, loss, 1 if smallest else REPEATS, beside)
    found = [searched(draws, loss, seed).result for seed in range(2 if smallest else SEEDS)]
    best = min(found, key=lambda one: one.expected_loss)
    return {
        "posterior": name,
        "items x draws": f"{draws.n_items:,} x {draws.n_draws:,}",
        "loss": loss,
        "ms": 1000 * seconds,
        "clusters": best.n_clusters,
        "expected loss": f"{best.expected_loss:.15g}",
        f"at that loss, of {SEEDS}": sum(one.expected_loss <= best.expected_loss * (1 + 1e-12) for one in found),
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
        yield {"posterior, VI": name, "ms": 1000 * seconds, "of the first": round(seconds / first, 1)}
