"""Audits of clusters of records: how often 95% intervals of error rates hold, whatever the scores.

The families of scores of `python -m benchmarks pairs`, three distortions of one (too high, too low, too certain), and
febrl's records by two models of splink. The partition is found with the scores that are given. Each repetition draws
300 pairs anew, and as many records as have about 300 pairs that are joined or have a score from 0.01, and answers them
by the truth. er-evaluation gets the entities of these records, whether their pairs were scored or not. Its columns are
empty without the dependency group `linkage`, and so are the rows of splink.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

import posterior_consensus as pc
from benchmarks._febrl import febrl_pairs
from benchmarks.pairs import FAMILIES, SHARES, THRESHOLD, _normal, best_partition, judged_pairs
from posterior_consensus.runtime.tolerances import ROUNDING

REPEATS, REPEATS_OF_OTHERS, REPEATS_OF_SMALLEST = 1_000, 100, 2
N_PAIRS = 300
CERTAIN = 1e-12
Z = 1.96  # of er-evaluation's intervals
OTHERS = {  # names of rates in er-evaluation
    "precision": "pairwise_precision",
    "recall": "pairwise_recall",
    "bcubed_precision": "b_cubed_precision",
    "bcubed_recall": "b_cubed_recall",
    "exact_precision": "cluster_precision",
    "exact_recall": "cluster_recall",
}


def distorted(rng, truth, left, right, same, *, shift=0.0, slope=1.0):
    """Calibrated scores whose log odds are multiplied and shifted."""
    scores = np.clip(_normal(rng, truth, left, right, same, d=3.3), CERTAIN, 1 - CERTAIN)
    return expit(slope * logit(scores) + shift)


def _made(scores: Callable, shares: tuple = SHARES):
    return judged_pairs(np.random.default_rng(1), shares, scores)


CASES = {
    "calibrated": partial(_made, distorted),
    "log odds + 3": partial(_made, partial(distorted, shift=3.0)),
    "log odds - 2": partial(_made, partial(distorted, shift=-2.0)),
    "log odds x 2": partial(_made, partial(distorted, slope=2.0)),
    "febrl, splink": partial(febrl_pairs, ("given_name", "surname", "date_of_birth", "soc_sec_id", "postcode")),
    "febrl, splink, three fields": partial(febrl_pairs, ("given_name", "surname", "postcode")),
    **{
        name: partial(_made, FAMILIES[name][1], FAMILIES[name][0])
        for name in ("d = 2.5, large clusters", "5 fields", "noise of each record", "new: fields that are missing")
    },
}


class Judged(NamedTuple):
    """Scored pairs, their best partition, and the entity of each record."""

    pairs: object
    best: pc.results.ConsensusPartition
    truth: np.ndarray


def tables(smallest):
    made = CASES if find_spec("splink") else {name: one for name, one in CASES.items() if "splink" not in name}
    made = dict(list(made.items())[:1]) if smallest else made
    counts = (REPEATS_OF_SMALLEST,) * 2 if smallest else (REPEATS, REPEATS_OF_OTHERS)
    yield "", (row for name, case in made.items() for row in rows(name, case, *counts))


def rows(name, case, repeats, repeats_of_others):
    """Error and coverage of each rate, by pairs, by records and by entities; each is compared with what it is of."""
    pairs, truth, same = case()
    best = best_partition(pairs, THRESHOLD)
    judged, found = Judged(pairs, best, truth), pc.links(pairs, best)
    seen = _answered(pc.audit_records(pairs, best, n=truth.size, random_seed=0), judged)
    every = pc.evaluate(best.labels.values, truth).table
    inside = every.loc["pairs", "precision"] * found.n_joined
    of_scored = {"recall": inside / (inside + same[~found.joined].sum())}
    n_records = max(round(N_PAIRS * truth.size / (2 * len(seen.match))), 2)  # a pair is of two records
    by_pairs, by_records = (
        [_answered(draw(pairs, best, random_seed=seed), judged) for seed in range(repeats)]
        for draw in (partial(pc.audit, n=N_PAIRS), partial(pc.audit_records, n=n_records))
    )
    alone = {"precision": found.precision, "recall": found.recall}
    for rate in OTHERS:
        of_all, of_seen = every.loc[_place(rate)], getattr(seen, rate)
        row = {"scores": name, "rate": rate.replace("bcubed", "B-cubed").replace("_", " "), "true": of_all}
        has_pairs = hasattr(pc.results.AuditedLinks, rate)
        row |= _quality("pairs", _estimates(by_pairs, rate) if has_pairs else None, of_scored.get(rate, of_all))
        row |= _quality("records", _estimates(by_records, rate), of_seen)
        entities = None
        if find_spec("er_evaluation"):
            entities = np.array([_by_entities(judged, rate, n_records, seed) for seed in range(repeats_of_others)])
        row |= _quality("er-evaluation", entities, of_all)
        off = alone[rate] - of_scored.get(rate, of_all) if rate in alone else ""
        yield row | {"records drawn": n_records, "error of the scores alone": off}


def _place(rate):
    """Row and column of a rate in the table of evaluate."""
    kind, _, column = rate.rpartition("_")
    return {"": "pairs", "bcubed": "B-cubed", "exact": "exact clusters"}[kind], column


def _estimates(audits, rate):
    return np.array([(getattr(one, rate), *getattr(one, f"{rate}_interval")) for one in audits])


def _quality(how, found, value):
    """Root mean squared error of estimates (n, 3) with their intervals, and how often these hold."""
    if found is None:
        return {f"{how}: error": "", f"{how}: holds": ""}
    error = float(np.sqrt(np.nanmean((found[:, 0] - value) ** 2)))
    holds = (found[:, 1] <= value + ROUNDING) & (value - ROUNDING <= found[:, 2])
    return {f"{how}: error": error, f"{how}: holds": float(holds.mean())}


def _by_entities(judged, rate, n_records, seed):
    import er_evaluation.estimators as ee  # of the dependency group `linkage`

    drawn = np.random.default_rng(seed).choice(judged.truth.size, n_records, replace=False)
    entity = pd.Series(judged.truth)
    sample = entity[entity.isin(judged.truth[drawn])]
    prediction = pd.Series(judged.best.labels.values)
    value, error = getattr(ee, f"{OTHERS[rate]}_estimator")(prediction, sample, weights="cluster_size")
    return value, value - Z * error, value + Z * error


def _answered(made, judged):
    place = pd.Series(judged.truth, judged.best.labels.to_series().index)
    return made.answered(place[made.sample["first"]].to_numpy() == place[made.sample["second"]].to_numpy())
