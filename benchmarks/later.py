"""Scored pairs of records that come later, hubs under a time limit, and ten million pairs: CPU seconds and memory.

Tables of pairs are those of `benchmarks pairs`. Of the first, 1,000 records come later: the call with the earlier
result is compared with solving anew, of which "searched" is the search and the bounds alone. Hubs are records that are
scored with many entities of one pool, so that these are one component. Each row runs in a process of its own, after a
call that warms up.
"""

import time

import numpy as np
import pandas as pd

import posterior_consensus as pc
from benchmarks._runner import apart, used
from benchmarks.pairs import Scored, as_table, make_scored
from posterior_consensus.search import components

SIZES, NEW = (100_000, 1_000_000), 1_000
HUBS, N_HUBS, POOL, SCORES = 200_000, 40, 9_500, (0.1, 0.8)
LIMITS = (None, 30.0)
MANY = 3_333_334  # records with three pairs each


def tables(smallest):
    sizes, new = ((300,), 10) if smallest else (SIZES, NEW)
    yield "Records that come later", ({"records": n, "new": new} | apart(later, n, new) for n in sizes)
    hubs = (300, 2, 40) if smallest else (HUBS, N_HUBS, POOL)
    yield "Hubs", ({"seconds=": limit or "none"} | apart(limited, hubs, limit) for limit in LIMITS)
    yield "Many pairs", (apart(many, n) for n in ((300,) if smallest else (MANY,)))


def best_partition(pairs: object, **options: object) -> pc.results.ConsensusPartition:
    return pc.consensus_partition(pairs, random_seed=1, progressbar=False, **options)


def warm_up() -> None:
    pairs = pc.as_pair_similarity(as_table(make_scored(200, True)))
    best_partition(pairs, previous=best_partition(pairs))


def later(n_records: int, n_new: int) -> dict[str, object]:
    """CPU seconds with the earlier result and anew, in turn; which records are new is random."""
    warm_up()
    scored = make_scored(n_records, False)
    is_new = np.zeros(n_records, bool)
    is_new[np.random.default_rng(1).choice(n_records, n_new, replace=False)] = True
    table = as_table(scored)
    before = best_partition(pc.as_pair_similarity(table[~(is_new[scored.left] | is_new[scored.right])]))
    pairs = pc.as_pair_similarity(table)
    searched = _timed()
    anew, again = used(best_partition, pairs), used(best_partition, pairs, previous=before)
    changes = used(lambda: again.result.changes)
    return {
        "CPU anew": anew.cpu,
        "CPU later": again.cpu,
        "searched anew": searched[0],
        "searched later": searched[1],
        "share": f"{searched[1] / searched[0]:.3f}",
        "same partition": bool((anew.result.labels == again.result.labels).all()),
        "clusters that changed": changes.result["cluster"].nunique(),
        "CPU of changes": changes.cpu,
    }


def _timed() -> list[float]:
    """CPU seconds of searches and bounds from now on, a number for each call."""
    seconds, search = [], components._solved

    def timed(*arguments):
        began = time.process_time()
        found = search(*arguments)
        seconds.append(time.process_time() - began)
        return found

    components._solved = timed
    return seconds


def limited(sizes: tuple[int, int, int], limit: float | None) -> dict[str, object]:
    """One call with a time limit or none."""
    warm_up()
    pairs = pc.as_pair_similarity(as_table(make_hubs(*sizes)))
    call = used(best_partition, pairs, **({} if limit is None else {"seconds": limit}))
    best = call.result
    return {
        "pairs": pairs.n_scored,
        "largest component": best.info.largest,
        "seconds": call.seconds,
        "CPU": call.cpu,
        "expected wrong pairs": f"{best.expected_loss * pairs.n_items**2 / 2:,.1f}",
        "gap": f"{best.optimality_gap:.2%}",
        "proven": f"{best.info.n_proven:,} of {best.info.n_components:,}",
        "GB beyond the pairs": call.gigabytes,
    }


def make_hubs(n_records: int, n_hubs: int, pool: int) -> Scored:
    """Records as without a hub, and hubs that are scored with the first record of each entity of a pool."""
    scored = make_scored(n_records, False)
    rng = np.random.default_rng(2)
    firsts = np.flatnonzero(np.diff(scored.truth, prepend=-1))[1:]
    hubs = rng.choice(n_records, n_hubs, replace=False)
    left, right = np.repeat(hubs, pool), np.tile(rng.choice(firsts, pool, replace=False), n_hubs)
    ends = np.sort([np.append(scored.left, left), np.append(scored.right, right)], axis=0)
    probability = np.append(scored.probability, rng.uniform(*SCORES, left.size))
    kept = np.unique(ends[0] * n_records + ends[1], return_index=True)[1]
    kept = kept[ends[0, kept] != ends[1, kept]]
    return Scored(ends[0, kept], ends[1, kept], probability[kept], scored.truth)


def many(n_records: int) -> dict[str, object]:
    """From the table of names on; memory beyond the table, whose size is beside it."""
    warm_up()
    table = as_table(make_scored(n_records, False))
    read = used(pc.as_pair_similarity, table)
    call = used(best_partition, read.result)
    return {
        "records": n_records,
        "pairs": read.result.n_scored,
        "CPU to read": read.cpu,
        "GB": read.gigabytes,
        "CPU to solve": call.cpu,
        "GB more": call.gigabytes,
        "GB of the table": table_size(table),
        "proven": f"{call.result.info.n_proven / call.result.info.n_components:.2%}",
    }


def table_size(table: pd.DataFrame) -> float:
    return 1e-9 * float(table.memory_usage(deep=True).sum())
