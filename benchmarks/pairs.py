"""Scored pairs of records: seconds, memory and proof of the best partition, beside what linkage programs do.

Tables of 10,000, 100,000 and 1,000,000 records with three scored pairs each, and one of 5,200 records, most of which a
hub joins in one component. Scores are calibrated: a pair with the score p is of one entity with probability p. Our call
begins with the table of names, those of `examples/linkage.py` with the positions of the records. Each runs in a process
of its own; ours after a call that warms up.

The last table compares expected precision and recall with the truth. All scores of a block of records are exact
probabilities of one pair by itself, except where the table says so. The estimate by products of odds was chosen on all
families but the two that are called new.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

import posterior_consensus as pc
from benchmarks._runner import apart, used
from tests.helpers import example

SIZES = (10_000, 100_000, 1_000_000)
HUB = 5_200
PAIRS_EACH, SCORED = 3, 0.95  # scored pairs a record, and share of the pairs of one entity that are scored
SHARES = (0.4, 0.3, 0.15, 0.1, 0.05)  # of entities with one to five records
BLOCK = 50  # records among which pairs of different entities are scored
CERTAINTY = 0.15  # parameters of the Beta distribution of all scores add up to this
THRESHOLD, LOWER = 0.5, 0.3
JUDGED, SEEDS, TAUS = 1_500, 4, (0.2, 0.5, 0.8)  # records, tables and thresholds where expected is compared with true
JUDGED_BLOCK = 60  # records among which all pairs are scored
LARGE, LONG = (0.1,) * 10, tuple(0.6**k for k in range(25))  # shares of entities with one record and more
METHODS = {
    "connected components": "connected_components",
    "best links": "best_links",
    "average linkage": "average_linkage",
}


class Scored(NamedTuple):
    """Scored pairs by position, and the entity of each record."""

    left: np.ndarray
    right: np.ndarray
    probability: np.ndarray
    truth: np.ndarray


def tables(smallest):
    yield "", _rows((200,) if smallest else SIZES, is_hub=False)
    yield "A hub", _rows((100,) if smallest else (HUB,), is_hub=True)
    families = dict(list(FAMILIES.items())[:1]) if smallest else FAMILIES
    yield "Expected and true", (_judged(name, *one, 1 if smallest else SEEDS) for name, one in families.items())


def _rows(sizes, is_hub):
    first = None
    for n in sizes:
        scored = make_scored(n, is_hub)
        cells = apart(measured, scored)
        first = first or (n, cells["CPU"])
        slope = math.log(cells["CPU"] / first[1]) / math.log(n / first[0]) if n > first[0] else ""
        yield {"records": n, "method": "ours", **cells, "slope": slope}
        for name, function in METHODS.items():
            empty = dict.fromkeys([*cells, "slope"], "")
            yield {"records": n, "method": name} | empty | apart(compared, scored, function)


def measured(scored: Scored) -> dict[str, object]:
    """One call from the table on, after one of few records."""
    n_records = scored.truth.size
    solved(as_table(make_scored(100, True)))
    call = used(solved, as_table(scored))
    pairs, best = call.result
    lower = best_partition(pairs, LOWER)
    info = best.info
    return {
        "seconds": call.seconds,
        "CPU": call.cpu,
        **quality(*(in_order(one, n_records) for one in (best, lower)), scored),
        "GB beyond the table": call.gigabytes,
        "components": info.n_components,
        "largest": info.largest,
        "proven": f"{info.n_proven / info.n_components:.2%}",
        "gap": f"{sum(info.unproven_gaps):,.1f}",
    }


def compared(scored: Scored, function: str) -> dict[str, object]:
    """One call of another method, from positions of records on."""
    method = partial(getattr(example("linkage"), function), scored.truth.size, *scored[:3])
    call = used(method, THRESHOLD)
    return {"seconds": call.seconds, "CPU": call.cpu} | quality(call.result, method(LOWER), scored)


def solved(table: pd.DataFrame) -> tuple[object, pc.results.ConsensusPartition]:
    pairs = pc.as_pair_similarity(table)
    return pairs, best_partition(pairs, THRESHOLD)


def best_partition(pairs: object, tau: float) -> pc.results.ConsensusPartition:
    return pc.consensus_partition(pairs, loss=pc.binder(tau=tau), random_seed=1, progressbar=False)


def in_order(best: pc.results.ConsensusPartition, n_records: int) -> np.ndarray:
    """Labels of the records in the order of their names; a record that was in no pair is alone."""
    labels = best.labels.to_series().reindex(names(n_records))
    alone = pd.Series(-np.arange(1, n_records + 1), labels.index)
    return labels.fillna(alone).to_numpy(np.int64)


def quality(labels: np.ndarray, lower: np.ndarray, scored: Scored) -> dict[str, object]:
    """Number of clusters, expected number of pairs that are wrong, and F1 of the pairs joined at both thresholds."""
    sizes = np.unique(labels, return_counts=True)[1]
    joined = labels[scored.left] == labels[scored.right]
    wrong = (sizes * (sizes - 1)).sum() // 2 - joined.sum()  # pairs that were not scored
    wrong += np.where(joined, 1 - scored.probability, scored.probability).sum()
    f1, of_lower = (f"{example('linkage').precision_recall(one, scored.truth)[2]:.4f}" for one in (labels, lower))
    cells = {"clusters": sizes.size, "expected wrong pairs": f"{wrong:,.1f}"}
    return cells | {f"F1 at {THRESHOLD}": f1, f"F1 at {LOWER}": of_lower}


def names(n_records: int) -> np.ndarray:
    return np.array([f"r{number:07d}" for number in range(n_records)], dtype=object)


def as_table(scored: Scored) -> pd.DataFrame:
    """Scored pairs as splink has them."""
    of = names(scored.truth.size)
    ids = {"unique_id_l": of[scored.left], "unique_id_r": of[scored.right]}
    return pd.DataFrame(ids | {"match_probability": scored.probability})


def make_scored(n_records: int, is_hub: bool) -> Scored:
    """Records of entities of one to five, with calibrated scores.

    A hub is a record with which the first record of each other entity is scored too, between 0.5 and 0.95: one
    component, and scores that are too high.
    """
    rng = np.random.default_rng(1)
    sizes = rng.choice(len(SHARES), n_records, p=SHARES) + 1
    truth = np.repeat(np.arange(n_records), sizes)[:n_records]
    near = [(np.arange(n_records - step), np.arange(step, n_records)) for step in range(1, len(SHARES))]
    left, right = (np.concatenate(ends) for ends in zip(*near, strict=True))
    kept = (truth[left] == truth[right]) & (rng.random(left.size) < SCORED)
    left, right = left[kept], right[kept]
    place = rng.permutation(n_records)  # blocks hold records of different entities
    own = rng.integers(n_records, size=2 * PAIRS_EACH * n_records)
    other = np.minimum(own // BLOCK * BLOCK + rng.integers(BLOCK, size=own.size), n_records - 1)
    ends = np.unique(np.sort([place[own], place[other]], axis=0), axis=1)
    ends = ends[:, truth[ends[0]] != truth[ends[1]]]
    n_false = PAIRS_EACH * n_records - left.size
    ends = ends[:, np.sort(rng.choice(ends.shape[1], n_false, replace=False))]
    share = left.size / (left.size + n_false)  # the mean of calibrated scores
    a, b = CERTAINTY * share, CERTAINTY * (1 - share)
    probability = np.concatenate([rng.beta(a + 1, b, left.size), rng.beta(a, b + 1, n_false)])
    left, right = np.concatenate([[left, right], ends], axis=1)
    if is_hub:
        firsts = np.flatnonzero(np.diff(truth, prepend=-1))[1:]
        known = (left == 0) | (right == 0)
        left, right, probability = left[~known], right[~known], probability[~known]
        left, right = np.append(left, np.zeros_like(firsts)), np.append(right, firsts)
        probability = np.append(probability, rng.uniform(0.5, 0.95, firsts.size))
    return Scored(left, right, probability, truth)


def _judged(name: str, shares: tuple, scores: Callable, n_seeds: int) -> dict[str, object]:
    """True precision and recall at the threshold 0.5, both estimates, and how far the truth is beyond them at each."""
    row: dict[str, object] = {"scores": name}
    beyond = []
    for tau in TAUS:
        tables = [judged(shares, scores, tau, seed) for seed in range(n_seeds)]
        precision, low, high, recall, expected = np.mean(tables, axis=0)
        beyond.append(f"{max(0.0, low - precision, precision - high):.3f}")
        if tau == THRESHOLD:
            cells = {"precision": precision, "single scores": low, "products": high}
            cells |= {"recall of scored pairs": recall, "expected": expected}
            row |= {column: f"{cell:.3f}" for column, cell in cells.items()}
    return row | {f"beyond at {', '.join(map(str, TAUS))}": ", ".join(beyond)}


def judged_pairs(rng: np.random.Generator, shares: tuple, scores: Callable) -> tuple[object, np.ndarray, np.ndarray]:
    """Scored pairs of all records of a block, the entity of each record, and which pairs are of one entity."""
    sizes = rng.choice(len(shares), JUDGED, p=np.array(shares) / sum(shares)) + 1
    truth = np.repeat(np.arange(JUDGED), sizes)[:JUDGED]
    first, second = np.triu_indices(JUDGED, 1)
    near = first // JUDGED_BLOCK == second // JUDGED_BLOCK
    left, right = first[near], second[near]
    same = truth[left] == truth[right]
    probability = scores(rng, truth, left, right, same)
    table = pd.DataFrame({"unique_id_l": left, "unique_id_r": right, "match_probability": probability})
    return pc.as_pair_similarity(table, items=np.arange(JUDGED)), truth, same


def judged(shares: tuple, scores: Callable, tau: float, seed: int) -> tuple[float, ...]:
    """Precision, both estimates of it, recall of the scored pairs, and its estimate."""
    pairs, truth, same = judged_pairs(np.random.default_rng(seed), shares, scores)
    best = best_partition(pairs, tau)
    found = pc.links(pairs, best)
    precision, _, _ = example("linkage").precision_recall(best.labels.values, truth)
    return precision, *found.precision_range, same[found.joined].sum() / same.sum(), found.recall


def _of_weights(weights: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Probabilities of a match from log likelihood ratios, by the true share of matches."""
    return expit(logit(same.mean()) + weights)


def _normal(rng, truth, left, right, same, d, *, shared=0.0, quality=1.0, slope=1.0):
    """Normal log likelihood ratios that are `d` of their standard deviations apart.

    Of their noise a part may be `shared` by all pairs of a record. `quality` multiplies d of good records and divides
    that of bad ones; log odds are multiplied by `slope`.
    """
    of_records = rng.choice([1 / quality, quality], truth.size)
    d = d * np.sqrt(of_records[left] * of_records[right])
    own = rng.normal(size=truth.size)
    noise = np.sqrt(1 - shared) * rng.normal(size=left.size) + np.sqrt(shared / 2) * (own[left] + own[right])
    return expit(slope * logit(_of_weights(np.where(same, 1, -1) * d**2 / 2 + d * noise, same)))


def _beta(rng, truth, left, right, same, certainty):
    a, b = certainty * same.mean(), certainty * (1 - same.mean())
    return np.where(same, rng.beta(a + 1, b, same.size), rng.beta(a, b + 1, same.size))


def _features(rng, truth, left, right, same, n_features, spread):
    """Normal features of records around those of their entity, of standard deviation `spread`."""
    means = rng.normal(0, spread, (truth.size, n_features))
    features = means[truth] + rng.normal(size=means.shape)
    total, difference = features[left] + features[right], features[left] - features[right]
    both = norm.logpdf(total, scale=np.sqrt(4 * spread**2 + 2)) + norm.logpdf(difference, scale=np.sqrt(2))
    apart_from = [norm.logpdf(one, scale=np.sqrt(2 * spread**2 + 2)) for one in (total, difference)]
    return _of_weights((both - sum(apart_from)).sum(axis=1), same)


def _fields(rng, truth, left, right, same, levels, error, missing=0.0):
    """Fields of some levels, by the model of Fellegi and Sunter.

    Each is replaced at random with probability `error`, and missing with probability `missing`.
    """
    weights = np.zeros(left.size)
    for n_levels in levels:
        value = rng.integers(n_levels, size=truth.size)[truth]
        value = np.where(rng.random(truth.size) < error, rng.integers(n_levels, size=truth.size), value)
        m, u = (1 - error) ** 2 + (1 - (1 - error) ** 2) / n_levels, 1 / n_levels
        known = rng.random(truth.size) >= missing
        agree = np.where(value[left] == value[right], np.log(m / u), np.log((1 - m) / (1 - u)))
        weights += np.where(known[left] & known[right], agree, 0.0)
    return _of_weights(weights, same)


def _counts(rng, truth, left, right, same, rate):
    """Poisson counts of agreements: `rate` for a match, and 1 else."""
    return _of_weights(rng.poisson(np.where(same, rate, 1.0)) * np.log(rate) - (rate - 1), same)


def _laplace(rng, truth, left, right, same, n_scores, distance):
    """Sums of Laplace scores around plus and minus `distance`, whose evidence is bounded."""
    scores = rng.laplace(np.where(same, 1, -1) * distance, size=(n_scores, left.size))
    return _of_weights((np.abs(scores + distance) - np.abs(scores - distance)).sum(axis=0), same)


FAMILIES = {
    "normal log odds, d = 4": (SHARES, partial(_normal, d=4)),
    "d = 2.5, large clusters": (LARGE, partial(_normal, d=2.5)),
    "Beta, strong": (SHARES, partial(_beta, certainty=0.15)),
    "Beta, weak": (SHARES, partial(_beta, certainty=1)),
    "4 features": (SHARES, partial(_features, n_features=4, spread=5)),
    "10 features, large clusters": (LARGE, partial(_features, n_features=10, spread=1.5)),
    "5 fields": (SHARES, partial(_fields, levels=(50, 50, 20, 10, 10), error=0.1)),
    "2 fields": (SHARES, partial(_fields, levels=(200, 20), error=0.05)),
    "counts": (SHARES, partial(_counts, rate=7)),
    "counts, long tail of clusters": (LONG, partial(_counts, rate=12)),
    "noise of each record": (SHARES, partial(_normal, d=4, shared=0.5)),
    "good and bad records": (SHARES, partial(_normal, d=3.3, quality=1.8)),
    "new: Laplace scores": (SHARES, partial(_laplace, n_scores=3, distance=1.6)),
    "new: fields that are missing": (
        LONG,
        partial(_fields, levels=(100, 50, 50, 20, 20, 10), error=0.1, missing=0.25),
    ),
    "log odds x 1.7, not calibrated": (SHARES, partial(_normal, d=4, slope=1.7)),
    "log odds x 0.6, not calibrated": (SHARES, partial(_normal, d=4, slope=0.6)),
}
