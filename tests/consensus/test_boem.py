from functools import partial
from itertools import product

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus import searches as implementation
from tests import reference
from tests.catalogue.posteriors import noisy_draws

find = partial(pc.consensus_partition, method="boem", random_seed=1, loss="binder")


def moved(partition):
    """Every partition that differs by the cluster of one item, and the partition."""
    for item, cluster in product(range(partition.size), range(partition.max() + 2)):
        yield np.where(np.arange(partition.size) == item, cluster, partition)


def moves(draws, weights, a, n_clusters):
    """The definition: losses along the best moves from the best draw, and where they end."""

    def loss(partition):
        return reference.expected(partition, draws, lambda x, y: reference.binder(x, y, a), weights)

    def best(partitions):
        return min((p for p in partitions if n_clusters in (None, np.unique(p).size)), key=loss)

    partition = reference.canonical(best(draws))
    trace = [loss(partition)]
    while loss(following := best(moved(partition))) <= trace[-1] - 1e-12:
        partition = reference.canonical(following)
        trace.append(loss(partition))
    return trace, partition


def test_the_best_moves_from_the_best_draw():
    for seed, (a, n_clusters) in enumerate(product([1.0, 1.5], [None, 4])):
        rng = np.random.default_rng(seed)
        draws, weights = noisy_draws(rng, 12, 10, 4, 0.6), rng.exponential(size=12)
        trace, partition = moves(draws, weights, a, n_clusters)
        best = find(pc.as_partition_draws(draws, weights=weights), loss=pc.binder(a), n_clusters=n_clusters)
        np.testing.assert_allclose(best.info.trace, trace, atol=1e-12)
        assert reference.same(best.labels.values, partition)
        assert best.info.n_iter == len(trace) - 1 and best.info.converged
        assert best.info.objective == pytest.approx(best.expected_loss) == pytest.approx(trace[-1])


def test_the_threshold_is_that_of_the_loss_and_a_half_under_others():
    draws = noisy_draws(np.random.default_rng(1), 30, 40, 4, 0.5)
    assert find(draws, loss=pc.binder(tau=0.3)).info.threshold == pytest.approx(0.3)
    half, other = find(draws), find(draws, loss="vi")
    assert half.info == other.info and half.info.threshold == 0.5
    np.testing.assert_array_equal(half.labels, other.labels)
    assert find(draws, tau=0.2).n_clusters < half.n_clusters


def test_more_moves_than_the_kernel_makes_at_once(monkeypatch):
    rng = np.random.default_rng(4)
    draws = pc.as_partition_draws(noisy_draws(rng, 10, 40, 5, 0.7), weights=rng.exponential(size=10))  # without ties
    plain = find(draws)
    assert plain.info.n_iter > 9
    monkeypatch.setattr(implementation, "_MOVES_AT_ONCE", 3)
    again = find(draws)
    assert again.info.trace == pytest.approx(plain.info.trace, abs=1e-12)
    np.testing.assert_array_equal(again.labels, plain.labels)


def test_numbers_of_clusters_that_no_draw_has():
    draws = [[0, 0, 0, 1, 1, 1]] * 5 + [[0, 0, 2, 1, 1, 1]] * 4
    assert find(draws, max_clusters=1).labels.values.tolist() == [0] * 6
    assert find(draws, n_clusters=4).n_clusters == 4
    assert find(np.tile(np.arange(6), (3, 1)), max_clusters=4).n_clusters == 4


def test_probabilities_count():
    p = np.random.default_rng(3).dirichlet([0.2] * 3, size=(2, 30, 20))
    soft = pc.as_allocation_probabilities(xr.DataArray(p, dims=("chain", "draw", "obs", "component")))
    best = find(soft, tau=0.35)
    assert best.info.objective == pytest.approx(best.expected_loss, abs=1e-12)
    x = 0.35 - pc.posterior_similarity_matrix(soft).values
    costs = [np.sum(x * np.equal.outer(labels, labels)) for labels in (best.labels.values, *moved(best.labels.values))]
    assert min(costs) >= costs[0] - 1e-12
