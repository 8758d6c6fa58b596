"""The Jaccard index averaged over pairs of clusterings."""

from itertools import combinations

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import array, check


def index(one, other):
    pairs = list(combinations(range(len(one)), 2))
    a, b = ({(i, j) for i, j in pairs if labels[i] == labels[j]} for labels in (one, other))
    return len(a & b) / len(a | b) if a | b else 1.0


def test_it_is_the_mean_over_all_pairs():
    draws = noisy_draws(np.random.default_rng(1), 9, 8, 3, 0.4)
    pairs = list(combinations(range(9), 2))
    expected = np.mean([index(draws[i], draws[j]) for i, j in pairs])
    assert pc.agreement.averaged_jaccard(draws) == pytest.approx(expected, abs=1e-12)
    assert pc.agreement.averaged_jaccard(list(draws)) == pytest.approx(expected, abs=1e-12)
    weights = np.random.default_rng(2).exponential(size=9)
    products = np.array([weights[i] * weights[j] for i, j in pairs])
    expected = np.average([index(draws[i], draws[j]) for i, j in pairs], weights=products)
    assert pc.agreement.averaged_jaccard(pc.as_partition_draws(draws, weights=weights)) == pytest.approx(
        expected, abs=1e-12
    )


def test_results_and_arrays_are_matched_by_name():
    z = array(noisy_draws(np.random.default_rng(1), 20, 6, 3, 0.2), ("sample", "obs"), obs=list("abcdef"))
    one = pc.consensus_partition(z, loss="binder", random_seed=1, progressbar=False)
    shuffled = one.labels.isel(obs=[3, 1, 5, 0, 2, 4])
    assert pc.agreement.averaged_jaccard([one, shuffled]) == 1.0
    assert pc.agreement.averaged_jaccard([one, xr.zeros_like(shuffled), shuffled]) < 1.0


def test_single_items_agree_and_what_is_refused(monkeypatch):
    assert pc.agreement.averaged_jaccard([[0, 1, 2], [2, 1, 0]]) == 1.0
    assert pc.agreement.averaged_jaccard([[0, 1, 2], [0, 0, 0]]) == 0.0
    for one in ([[0, 1, 2]], pc.as_partition_draws([[0, 1], [0, 0]], weights=[1, 0])):
        check(pc.agreement.averaged_jaccard, one, ValueError, ["`partitions`", "at least two; got 1"])
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "100B")
    check(pc.agreement.averaged_jaccard, np.zeros((5, 3), int), MemoryError, ["of 5 partitions"])
