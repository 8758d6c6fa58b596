"""Greedy search where clusters are many and small, as in record linkage: seconds, memory, expected losses.

200 draws of 1,000, 10,000 and 100,000 records, each in a process of its own, after a call that warms up; beside R's
salso at its defaults for the first, one call of each in turn.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks._posteriors import linked_records
from benchmarks._runner import apart
from benchmarks._salso import ask, has_salso, salso_columns, searched
from posterior_consensus.bounds.components import ComponentsInfo

N_DRAWS = 200
SIZES = (1_000, 10_000, 100_000)
REPEATS = 3


def tables(smallest):
    beside = not smallest and has_salso()
    yield "", (_row(n, loss, beside) for n in ((100,) if smallest else SIZES) for loss in ("vi", "binder"))


def _row(n_items, loss, beside):
    seconds, *cells = apart(measured, records(n_items), records(100), loss, REPEATS)
    row = {"records": n_items, "loss": loss, "seconds": seconds}
    row |= dict(zip(("GB beyond the draws", "clusters", "expected loss", "components", "proven"), cells, strict=True))
    theirs = [ask("time_salso.R", records(n_items), loss)] if beside and n_items == SIZES[0] else []
    return row | salso_columns(theirs, seconds, beside, "s")


def measured(labels: np.ndarray, few: np.ndarray, loss: str, repeats: int) -> tuple[float, float, int, str, str, str]:
    """Median seconds of a call after one of few draws, peak memory beyond the draws, and what the calls found.

    Components of co-clustered records, and the share of them whose partition is proven, are of Binder's loss.
    """
    draws = pc.as_partition_draws(labels)
    searched(pc.as_partition_draws(few), loss, 0)
    runs = [searched(draws, loss, seed) for seed in range(repeats)]
    best = min((run.result for run in runs), key=lambda one: one.expected_loss)
    seconds, gigabytes = float(np.median([run.seconds for run in runs])), max(run.gigabytes for run in runs)
    found = best.n_clusters, f"{best.expected_loss:.9g}"
    if not isinstance(best.info, ComponentsInfo):
        return seconds, gigabytes, *found, "", ""
    number = best.info.n_components
    return seconds, gigabytes, *found, f"{number:,}", f"{best.info.n_proven / number:.2%}"


def records(n_items: int, n_draws: int = N_DRAWS) -> np.ndarray:
    """Draws (n_draws, n_items) of clusters of one to four records, some of which leave theirs now and then."""
    rng, sizes = np.random.default_rng(1), {"sizes": (1, 2, 3, 4), "shares": (0.5, 0.3, 0.15, 0.05)}
    return linked_records(rng, n_items, n_draws, is_hard=False, **sizes).labels
