"""Time and memory of the posterior similarity matrix, beside R's salso where it is installed."""

import statistics

import posterior_consensus as pc
from benchmarks._data import random_draws
from benchmarks._runner import apart, median_seconds, used
from benchmarks._salso import alternately, has_salso

SIZES = [(1_000, 1_000, 16), (5_000, 1_000, 16), (5_000, 1_000, 256), (10_000, 1_000, 256)]
REPEATS = 3


def tables(smallest):
    beside, sizes, repeats = (False, SIZES[:1], 1) if smallest else (has_salso(), SIZES, REPEATS)
    yield "", (_row(*size, beside, repeats) for size in sizes)


def _row(n_items, n_draws, n_labels, beside, repeats):
    draws = pc.as_partition_draws(random_draws(n_draws, n_items, n_labels))

    def ours(_):
        pc.posterior_similarity_matrix(draws)  # compiles, and takes memory that another process has just given up
        return median_seconds(lambda: pc.posterior_similarity_matrix(draws), repeats=3)[0]

    seconds, theirs = alternately(ours, repeats, beside, "time_salso_psm.R", draws.labels)
    row = {
        "items x draws": f"{n_items:,} x {n_draws:,}",
        "labels": n_labels,
        "seconds": seconds,
        "memory beyond the result": f"{apart(extra_memory, n_draws, n_items, n_labels):.1%}",
    }
    if theirs:
        of_salso = statistics.median(run[0] for run in theirs)
        row |= {"salso psm(), 2 cores, seconds": of_salso, "ratio": round(of_salso / seconds, 1)}
    return row


def extra_memory(n_draws: int, n_items: int, n_labels: int) -> float:
    """Peak memory of a first call beyond what was there before and the result, in its share."""
    draws = pc.as_partition_draws(random_draws(n_draws, n_items, n_labels))
    pc.posterior_similarity_matrix(draws.labels[:, :128])  # compiles
    call = used(pc.posterior_similarity_matrix, draws)
    return 1e9 * call.gigabytes / call.result.nbytes - 1
