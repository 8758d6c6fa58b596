"""Stable component consensus clustering beside its definition."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import noisy_draws

find = partial(pc.consensus_partition, loss="binder", method="sccc", random_seed=1, progressbar=False)


def by_definition(draws, separation, most):
    """Signatures, the largest first; seeds at least `separation` draws apart; the others with the nearest seed."""
    columns = [tuple(column) for column in draws.T.tolist()]
    signatures = sorted(set(columns), key=lambda s: (-columns.count(s), columns.index(s)))
    seeds = []
    for signature in signatures:
        apart = [sum(a != b for a, b in zip(signature, seed, strict=True)) for seed in seeds]
        if len(seeds) < most and all(distance >= max(separation, 1) for distance in apart):
            seeds.append(signature)

    def nearest(signature):
        return min(range(len(seeds)), key=lambda k: sum(a != b for a, b in zip(signature, seeds[k], strict=True)))

    return np.array([nearest(column) for column in columns]), len(seeds)


@pytest.fixture(scope="module", params=range(2))
def draws(request):
    return noisy_draws(np.random.default_rng(request.param), 8, 40, 4, 0.25)


@pytest.mark.parametrize("n_clusters", [None, 3, 4])
def test_a_separation_gives_what_the_definition_says(draws, n_clusters):
    for separation in (0, 1, 3, 5, 8):
        expected, n_seeds = by_definition(draws, separation, n_clusters or 40)
        too_few = n_clusters is not None and n_seeds < n_clusters
        with pytest.warns(UserWarning, match="The partition has") if too_few else nullcontext():
            found = find(draws, separation=separation, n_clusters=n_clusters)
        assert reference.same(found.labels.values, expected)
        assert found.info.threshold == pytest.approx(1 - separation / 8)
        if separation:
            again = find(draws, threshold=1 - separation / 8, max_clusters=n_clusters)
            assert reference.same(again.labels.values, expected)


def test_infeasible_separations_are_skipped_and_the_others_told(draws):
    found = find(draws, n_clusters=4)
    every = [by_definition(draws, separation, 4) for separation in range(1, 9)]
    feasible = [labels for labels, n_seeds in every if n_seeds == 4]
    assert len(found.info.thresholds) == len(feasible) and found.info.n_infeasible == 8 - len(feasible)
    losses = [reference.expected(labels, draws, reference.LOSSES["binder"]) for labels in feasible]
    np.testing.assert_allclose(found.info.expected_losses, losses, atol=1e-12)
    assert found.expected_loss == pytest.approx(min(losses), abs=1e-12)
    assert found.info.mean_loss == pytest.approx(np.mean(losses)) and found.info.spread == pytest.approx(np.std(losses))
    assert found.info.stability == pytest.approx(pc.agreement.averaged_jaccard(feasible))
    assert found.info.n_components == len(np.unique(draws.T, axis=0))


def test_more_clusters_than_components():
    found = find(np.array([[0, 0, 0, 1, 1]] * 3), n_clusters=4)
    assert found.n_clusters == 4 and found.info.n_components == 2


def test_weights_and_many_draws_try_similarities(draws):
    many = noisy_draws(np.random.default_rng(5), 150, 30, 3, 0.3)
    for some in (
        pc.as_partition_draws(draws, weights=np.arange(1, 9)),
        many,
        pc.as_pair_similarity(pc.posterior_similarity_matrix(many)),
    ):
        info = find(some).info
        assert 1 < len(info.thresholds) <= 100 and info.n_infeasible == 0
        assert info.thresholds == sorted(info.thresholds, reverse=True) and info.thresholds[-1] == 0


def test_a_separation_needs_draws():
    pairs = pc.as_pair_similarity(np.eye(3))
    assert find(pairs).n_clusters == 3
    with pytest.raises(ValueError, match="`separation`.*draws"):
        find(pairs, separation=1)
