"""Audits of clusters of records: how often 95% intervals of precision and recall hold, whatever the scores.

The families of scores of `python -m benchmarks pairs`, and three distortions of one: too high, too certain, too flat.
The partition is found with the scores that are given; each repetition draws 300 pairs anew, and answers them by the
truth. Errors of the scores alone are those of `links`.
"""

from functools import partial

import numpy as np
from scipy.special import expit, logit

import posterior_consensus as pc
from benchmarks.pairs import FAMILIES, JUDGED, SHARES, THRESHOLD, _normal, best_partition, judged_pairs

REPEATS, REPEATS_OF_SMALLEST = 300, 2
CERTAIN = 1e-12


def distorted(rng, truth, left, right, same, *, shift=0.0, slope=1.0):
    """Calibrated scores whose log odds are multiplied and shifted."""
    scores = np.clip(_normal(rng, truth, left, right, same, d=3.3), CERTAIN, 1 - CERTAIN)
    return expit(slope * logit(scores) + shift)


CASES = {
    "calibrated": (SHARES, distorted),
    "log odds + 3": (SHARES, partial(distorted, shift=3.0)),
    "log odds - 2": (SHARES, partial(distorted, shift=-2.0)),
    "log odds x 2": (SHARES, partial(distorted, slope=2.0)),
    **{name: FAMILIES[name] for name in ("d = 2.5, large clusters", "5 fields", "noise of each record")},
    "new: fields that are missing": FAMILIES["new: fields that are missing"],
}


def tables(smallest):
    cases = dict(list(CASES.items())[:1]) if smallest else CASES
    yield "", (_row(name, *case, REPEATS_OF_SMALLEST if smallest else REPEATS) for name, case in cases.items())


def _row(name, shares, scores, repeats):
    """Coverage and mean error of both estimates, beside the error of the scores alone."""
    pairs, truth, same = judged_pairs(np.random.default_rng(1), shares, scores)
    best = best_partition(pairs, THRESHOLD)
    found = pc.links(pairs, best)
    cluster, joined = best.labels.values, found.joined
    matches = int((same & joined).sum())
    unscored = _unscored_matches(cluster, truth, same, joined)
    true = {
        "precision": (matches + unscored) / found.n_joined,
        "recall": (matches + unscored) / (same.sum() + unscored),
        "bcubed_precision": np.mean([np.mean(truth[cluster == cluster[i]] == truth[i]) for i in range(JUDGED)]),
    }
    audits = [_answered(pairs, best, truth, seed) for seed in range(repeats)]
    row = {"scores": name}
    for what, value in true.items():
        estimates = np.array([getattr(one, what) for one in audits])
        low, high = np.array([getattr(one, f"{what}_interval") for one in audits]).T
        holds = float(((low <= value) & (value <= high)).mean())
        error = float(np.sqrt(np.mean((estimates - value) ** 2)))
        row |= {what: value, f"{what}: holds": holds, f"{what}: error": error}
    alone = (found.precision - true["precision"], found.recall - true["recall"])
    return row | {"scores alone: errors": ", ".join(f"{one:+.3f}" for one in alone)}


def _unscored_matches(cluster, truth, same, joined):
    """Number of matches that are joined without a score."""
    _, sizes = np.unique(np.stack([cluster, truth]), axis=1, return_counts=True)
    return int((sizes * (sizes - 1) // 2).sum() - (same & joined).sum())


def _answered(pairs, best, truth, seed):
    made = pc.audit(pairs, best, n=300, random_seed=seed)
    return made.answered(truth[made.sample["first"].to_numpy()] == truth[made.sample["second"].to_numpy()])
