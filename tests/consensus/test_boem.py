import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus import boem as implementation
from tests import reference
from tests.catalogue.posteriors import noisy_draws


def find(draws, loss="binder", **options):
    return pc.consensus_partition(draws, loss=loss, method="boem", random_seed=1, **options)


def moves(draws, weights, a, n_clusters):
    """The definition: losses along the best moves from the best draw, and where they end."""

    def loss(partition):
        return reference.expected(partition, draws, lambda x, y: reference.binder(x, y, a), weights)

    counts = [len(set(draw)) for draw in draws.tolist()]
    allowed = [draw for draw, count in zip(draws, counts, strict=True) if n_clusters in (None, count)]
    partition = reference.canonical(min(allowed, key=loss))
    trace = [loss(partition)]
    while True:
        every = [partition.copy() for _ in range(partition.size * (partition.max() + 2))]
        for number, moved in enumerate(every):
            item, cluster = divmod(number, partition.max() + 2)
            moved[item] = cluster
        best = min((p for p in every if n_clusters in (None, np.unique(p).size)), key=loss)
        if loss(best) > trace[-1] - 1e-12:
            return trace, partition
        partition = reference.canonical(best)
        trace.append(loss(partition))


@pytest.mark.parametrize("a", [1.0, 1.5])
@pytest.mark.parametrize("n_clusters", [None, 4])
def test_the_best_moves_from_the_best_draw(a, n_clusters):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        draws, weights = noisy_draws(rng, 12, 10, 4, 0.6), rng.exponential(size=12)
        trace, partition = moves(draws, weights, a, n_clusters)
        best = find(pc.as_partition_draws(draws, weights=weights), pc.binder(a), n_clusters=n_clusters)
        np.testing.assert_allclose(best.info.trace, trace, atol=1e-12)
        assert reference.same(best.labels.values, partition)
        assert best.info.n_iter == len(trace) - 1 and best.info.converged
        assert best.info.objective == pytest.approx(best.expected_loss) == pytest.approx(trace[-1])


def test_the_threshold_is_that_of_the_loss_and_a_half_under_others():
    draws = noisy_draws(np.random.default_rng(1), 30, 40, 4, 0.5)
    assert find(draws, pc.binder(tau=0.3)).info.threshold == pytest.approx(0.3)
    half, other = find(draws), find(draws, "vi")
    assert half.info == other.info and half.info.threshold == 0.5
    np.testing.assert_array_equal(half.labels, other.labels)
    fewer = find(draws, tau=0.2)
    assert fewer.n_clusters < half.n_clusters


def test_more_moves_than_the_kernel_makes_at_once(monkeypatch):
    rng = np.random.default_rng(4)
    draws = pc.as_partition_draws(noisy_draws(rng, 10, 40, 5, 0.7), weights=rng.exponential(size=10))  # without ties
    plain = find(draws)
    assert plain.info.n_iter > 9
    monkeypatch.setattr(implementation, "_MOVES_AT_ONCE", 3)
    again = find(draws)
    assert again.info.trace == pytest.approx(plain.info.trace, abs=1e-12)
    np.testing.assert_array_equal(again.labels, plain.labels)


def test_clear_clusters_with_the_threshold_of_the_draws():
    rng = np.random.default_rng(2)
    truth = rng.integers(6, size=120)
    draws = np.where(rng.random((60, 120)) < 0.45, rng.integers(6, size=(60, 120)), truth)
    best = find(draws, tau="auto")
    assert reference.same(best.labels.values, truth)


def test_numbers_of_clusters_that_no_draw_has():
    draws = [[0, 0, 0, 1, 1, 1]] * 5 + [[0, 0, 2, 1, 1, 1]] * 4
    assert find(draws, max_clusters=1).labels.values.tolist() == [0] * 6
    assert find(draws, n_clusters=4).n_clusters == 4
    singletons = np.tile(np.arange(6), (3, 1))
    assert find(singletons, max_clusters=4).n_clusters == 4


def test_probabilities_count():
    p = np.random.default_rng(3).dirichlet([0.2] * 3, size=(2, 30, 20))
    soft = pc.as_allocation_probabilities(xr.DataArray(p, dims=("chain", "draw", "obs", "component")))
    best = find(soft, tau=0.35)
    assert best.info.objective == pytest.approx(best.expected_loss, abs=1e-12)
    psm = pc.posterior_similarity_matrix(soft).values
    x = np.where(np.eye(20, dtype=bool), 0, 0.35 - psm)
    together = np.equal.outer(best.labels.values, best.labels.values)
    cost = np.sum(x * together)
    for item in range(20):
        for cluster in range(best.n_clusters + 1):
            moved = best.labels.values.copy()
            moved[item] = cluster
            assert np.sum(x * np.equal.outer(moved, moved)) >= cost - 1e-12
