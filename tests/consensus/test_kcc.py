from functools import partial

import numpy as np
import pytest
from sklearn.cluster import KMeans

import posterior_consensus as pc
from posterior_consensus.consensus import one_hot as implementation
from tests import reference
from tests.catalogue.posteriors import around, noisy_draws
from tests.helpers import one_hot

for_each_utility = pytest.mark.parametrize("utility", implementation.UTILITIES)


find = partial(pc.consensus_partition, method="kcc", random_seed=1)


@for_each_utility
def test_objective_is_the_utility_and_only_rises(utility):
    norm = reference.UTILITY_NORMS[utility]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        draws = noisy_draws(rng, 15, 60, 5, 0.6)
        weights = rng.exponential(size=15) * (rng.random(15) < 0.8) if seed else None
        taken = pc.as_partition_draws(draws, weights=weights)
        best = find(taken, n_clusters=5, utility=utility, n_starts=1)
        expected = reference.utility(best.labels.values, draws, norm, weights)
        assert best.info.objective == best.info.trace[-1] == pytest.approx(expected, abs=1e-12)
        assert np.all(np.diff(best.info.trace) >= -1e-12) and best.info.converged
        assert best.info.n_iter == len(best.info.trace) and best.info.utility == utility
        by_category = find(taken, n_clusters=5, n_starts=1)
        assert by_category.info.n_iter > 1
        before = reference.utility(by_category.labels.values, draws, norm, weights)
        assert best.info.trace[0] == pytest.approx(before) or utility == "category"


@for_each_utility
def test_greatest_utility_of_all_partitions(utility):
    norm = reference.UTILITY_NORMS[utility]
    for n_clusters in (2, 3):
        rng = np.random.default_rng(n_clusters)
        draws, weights = noisy_draws(rng, 6, 6, 3, 0.5), rng.exponential(size=6)
        data = pc.as_partition_draws(draws, weights=weights)
        best = find(data, n_clusters=n_clusters, utility=utility, n_starts=100)
        every = (p for p in reference.partitions(6) if max(p) + 1 <= n_clusters)
        greatest = max(reference.utility(p, draws, norm, weights) for p in every)
        assert best.info.objective == pytest.approx(greatest, abs=1e-12)


@pytest.mark.parametrize("p", [300.0, 1e4])
def test_a_norm_of_high_order_is_nearly_the_largest_share(p):
    draws = np.random.default_rng(6).integers(30, size=(10, 60))  # shares whose powers vanish
    best = find(draws, n_clusters=4, utility="lp", p=p)
    shares = [np.array([np.bincount(draw[best.labels.values == k]).max() for k in range(4)]) / 60 for draw in draws]
    least = np.mean([np.bincount(draw).max() / 60 for draw in draws])
    assert best.info.objective == pytest.approx(np.sum(shares) / 10 - least, rel=0.01)
    assert np.all(np.diff(best.info.trace) >= -1e-12)


def test_category_utility_is_k_means_on_the_one_hot_matrix():
    rng = np.random.default_rng(2)
    draws = pc.as_partition_draws(noisy_draws(rng, 20, 80, 4, 0.5), weights=rng.exponential(size=20))
    roots = np.repeat(np.sqrt(draws.weights), draws.n_clusters)
    table = one_hot(draws.labels, draws.starts)
    theirs = KMeans(4, n_init=20, random_state=1).fit(table * roots)
    best = find(draws, n_clusters=4, n_starts=20)
    squares = 80 * (1 - np.sum((roots * table.mean(axis=0)) ** 2) - best.info.objective)
    assert squares == pytest.approx(theirs.inertia_, rel=1e-9)
    assert reference.same(best.labels.values, theirs.labels_)


@for_each_utility
def test_clear_clusters_are_found_with_their_number_from_a_sample_of_the_items_too(utility, monkeypatch):
    rng = np.random.default_rng(3)
    truth = rng.integers(4, size=90)
    draws = around(rng, truth, 60, 0.2)
    best = find(draws, utility=utility)
    assert reference.same(best.labels.values, truth) and best.info.n_clusters_tried == [1, 2, 3, 4]
    monkeypatch.setattr(implementation, "_ITEMS_AT_START", 40)
    sampled = find(draws, utility=utility, n_clusters=4)
    assert reference.same(sampled.labels.values, truth)
    assert sampled.info.objective == pytest.approx(best.info.objective, abs=1e-12)
