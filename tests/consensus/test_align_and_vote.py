from functools import partial
from itertools import permutations

import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import noisy_draws

find = partial(pc.consensus_partition, method="align_and_vote", random_seed=1)


def votes(labels, draws, weights, width):
    """Weight for each label at each item, every draw renamed as fits the labels best of all permutations."""
    table = np.zeros((len(labels), width))
    for draw, weight in zip(draws, weights, strict=True):
        names = permutations(range(max(width, draw.max() + 1)))
        best = max((np.array(name)[draw] for name in names), key=lambda renamed: np.sum(renamed == labels))
        table += weight * np.equal.outer(best, np.arange(width))
    return table


@pytest.mark.parametrize("n_clusters", [None, 3])
def test_the_distance_only_falls_to_where_no_vote_changes_anything(n_clusters):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        draws = noisy_draws(rng, 12, 20, 3, 0.5)
        weights = rng.exponential(size=12) if seed % 2 else np.ones(12)
        best = find(pc.as_partition_draws(draws, weights=weights), n_clusters=n_clusters)
        labels, trace = best.labels.values, best.info.trace
        distance = reference.expected(labels, draws, reference.misclassification, weights)
        assert best.info.objective == trace[-1] == pytest.approx(distance, abs=1e-12)
        assert trace[-1] == pytest.approx(min(best.info.objectives), abs=1e-12)
        assert np.all(np.diff(trace) < 0) and best.info.converged and best.info.n_iter == len(trace)
        table = votes(labels, np.array([reference.canonical(draw) for draw in draws]), weights, best.n_clusters)
        np.testing.assert_allclose(table[np.arange(20), labels], table.max(axis=1))


def test_one_round_by_hand():
    """From 001 012, the votes 0, 0, 1 and 0, 1, 1: items 1 and 2 change, and again nothing."""
    draws = np.array([[0, 0, 0, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])
    for seed in range(5):
        best = find(draws, random_seed=seed, n_starts=1)
        assert best.labels.values.tolist() == [0, 0, 0, 1, 1]
        assert best.info.objective == pytest.approx(1 / 15)
        assert best.info.trace in ([pytest.approx(1 / 15)], [pytest.approx(2 / 15), pytest.approx(1 / 15)])


def test_the_barycentre_of_small_ensembles():
    reached = 0
    for seed in range(12):
        rng, n_clusters = np.random.default_rng(seed), [None, 2, 3, 4][seed % 4]
        draws, weights = noisy_draws(rng, 8, 5, 3, 0.3), rng.exponential(size=8)
        best = find(pc.as_partition_draws(draws, weights=weights), n_clusters=n_clusters, n_starts=40)
        least = reference.least_expected(draws, reference.misclassification, weights, n_clusters)
        assert best.info.objective >= least - 1e-12
        reached += best.info.objective <= least + 1e-12
    assert reached >= 9


def test_draws_with_more_clusters_than_allowed():
    truth = np.repeat([0, 1, 2], [5, 4, 3])
    apart = np.append(truth[:-1], 3)
    best = find([apart] * 4, max_clusters=2)
    assert best.labels.values.tolist() == [0] * 5 + [1] * 4 + [0] * 3
    assert find([apart] * 4 + [truth], max_clusters=3).n_clusters == 3


def test_more_clusters_than_any_draw_has():
    for n_clusters in (2, 3, 4):
        best = find(np.zeros((3, 4), int), n_clusters=n_clusters)
        assert best.n_clusters == n_clusters
        assert best.info.objective == pytest.approx((n_clusters - 1) / 4)
