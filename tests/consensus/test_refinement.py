import tracemalloc

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.sources.labels import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import noisy_draws, random_draws

ORDERS = ["jacobi", "gauss-seidel"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("passes", [1, 2, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_algorithm_3(order, passes, weighted, seed):
    rng = np.random.default_rng(seed)
    draws = noisy_draws(rng, 30, 20, 4, 0.5)
    start = rng.integers(6, size=20)
    weights = rng.exponential(size=30) if weighted else None
    refined = pc.consensus.refine_partition(
        as_partition_draws(draws, weights=weights), start, order=order, passes=passes
    )
    expected = reference.refine(reference.similarity(draws, weights), start, order, passes)
    np.testing.assert_array_equal(refined, expected)
    assert refined.dtype == np.int32


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("passes", [1, None])
def test_probabilities_count(order, passes):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p, start = rng.dirichlet([0.3] * 4, size=(2, 15, 20)), rng.integers(5, size=20)
        weights = rng.exponential(size=30)
        soft = xr.DataArray(p, dims=("chain", "draw", "obs", "component"))
        soft = pc.as_allocation_probabilities(soft, weights=weights)
        refined = pc.consensus.refine_partition(soft, start, order=order, passes=passes)
        expected = reference.refine(pc.posterior_similarity_matrix(soft).values, start, order, passes)
        np.testing.assert_array_equal(refined, expected)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("start", [[0] * 9, range(9), [0, 0, 0, 0, 0, 0, 0, 0, 1]])
def test_one_cluster_singletons_and_an_item_alone(order, start):
    draws = random_draws(np.random.default_rng(1), 12, 9, 3)
    refined = pc.consensus.refine_partition(draws, start, order=order, passes=None)
    expected = reference.refine(reference.similarity(draws), start, order, None)
    np.testing.assert_array_equal(refined, expected)


def test_a_cycle_of_jacobi_passes_ends():
    """Items 0 and 1 belong together but sit apart: they change places for ever."""
    draws = [[0, 0], [0, 0], [0, 1]]
    refined = pc.consensus.refine_partition(draws, [0, 1], passes=None)
    np.testing.assert_array_equal(refined, [0, 1])
    np.testing.assert_array_equal(pc.consensus.refine_partition(draws, [0, 1], order="gauss-seidel"), [0, 0])


def test_as_a_step_of_the_consensus():
    draws = noisy_draws(np.random.default_rng(2), 40, 30, 4, 0.5)
    plain = pc.consensus_partition(draws, method="basic", n_clusters=5, random_seed=1)
    both = pc.consensus_partition(draws, method="basic", n_clusters=5, random_seed=1, refine="jacobi", passes=2)
    refined = pc.consensus.refine_partition(draws, plain, passes=2)
    np.testing.assert_array_equal(both.labels, refined)
    assert both.method == "basic, jacobi refinement"
    loss = reference.expected(both.labels.values, draws, reference.vi)
    assert both.expected_loss == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_coordinates_are_kept(order):
    names = list("abcdef")
    draws = xr.DataArray(
        noisy_draws(np.random.default_rng(3), 8, 6, 2, 0.2),
        dims=("sample", "city"),
        coords={"city": names},
    )
    refined = pc.consensus.refine_partition(draws, [0, 0, 0, 1, 1, 1], order=order)
    assert refined.dims == ("city",) and refined["city"].values.tolist() == names


@pytest.mark.parametrize("order", ORDERS)
def test_no_matrix_of_all_pairs(order):
    n_items = 30_000
    rng = np.random.default_rng(4)
    truth = rng.integers(5, size=n_items)
    draws = as_partition_draws(np.array([rng.permutation(5)[truth] for _ in range(20)]))
    start = np.where(rng.random(n_items) < 0.1, rng.integers(5, size=n_items), truth)
    pc.consensus.refine_partition(draws, start, order=order)
    tracemalloc.start()
    refined = pc.consensus.refine_partition(draws, start, order=order)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_items**2 / 20
    assert reference.same(refined.values, truth)
