from itertools import product

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.refinement import refine_partition
from tests import reference
from tests.catalogue.posteriors import noisy_draws, random_draws

refine = refine_partition
each_order = pytest.mark.parametrize("order", ["jacobi", "gauss-seidel"])


@each_order
@pytest.mark.parametrize("passes", [1, 2, None])
def test_algorithm_3(order, passes):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        draws, start = noisy_draws(rng, 30, 20, 4, 0.5), rng.integers(6, size=20)
        weights = rng.exponential(size=30) if seed else None
        refined = refine(pc.as_partition_draws(draws, weights=weights), start, order=order, passes=passes)
        expected = reference.refine(reference.similarity(draws, weights), start, order, passes)
        np.testing.assert_array_equal(refined, expected)
        assert refined.dtype == np.int32


@each_order
def test_probabilities_count(order):
    for seed, passes in product(range(4), [1, None]):  # clusters become empty too
        rng = np.random.default_rng(seed)
        p, start = rng.dirichlet([0.3] * 4, size=(2, 15, 20)), rng.integers(5, size=20)
        soft = xr.DataArray(p, dims=("chain", "draw", "obs", "component"))
        soft = pc.as_allocation_probabilities(soft, weights=rng.exponential(size=30))
        expected = reference.refine(pc.posterior_similarity_matrix(soft).values, start, order, passes)
        np.testing.assert_array_equal(refine(soft, start, order=order, passes=passes), expected)


@each_order
def test_one_cluster_singletons_and_an_item_alone(order):
    draws = random_draws(np.random.default_rng(1), 12, 9, 3)
    for start in ([0] * 9, range(9), [0, 0, 0, 0, 0, 0, 0, 0, 1]):
        expected = reference.refine(reference.similarity(draws), start, order, None)
        np.testing.assert_array_equal(refine(draws, start, order=order, passes=None), expected)


def test_a_cycle_of_jacobi_passes_ends():
    """Items 0 and 1 belong together but sit apart: they change places for ever."""
    draws = [[0, 0], [0, 0], [0, 1]]
    refined = refine(draws, [0, 1], passes=None)
    np.testing.assert_array_equal(refined, [0, 1])
    np.testing.assert_array_equal(refine(draws, [0, 1], order="gauss-seidel"), [0, 0])


def test_as_a_step_of_the_consensus():
    draws = noisy_draws(np.random.default_rng(2), 40, 30, 4, 0.5)
    plain = pc.consensus_partition(draws, method="basic", n_clusters=5, random_seed=1)
    both = pc.consensus_partition(draws, method="basic", n_clusters=5, random_seed=1, refine="jacobi", passes=2)
    refined = refine(draws, plain, passes=2)
    np.testing.assert_array_equal(both.labels, refined)
    assert both.method == "basic, jacobi refinement"
    loss = reference.expected(both.labels.values, draws, reference.vi)
    assert both.expected_loss == pytest.approx(loss, abs=1e-12)


def test_coordinates_are_kept():
    labels = noisy_draws(np.random.default_rng(3), 8, 6, 2, 0.2)
    draws = xr.DataArray(labels, dims=("sample", "city"), coords={"city": list("abcdef")})
    for order in ("jacobi", "gauss-seidel"):
        refined = refine(draws, [0, 0, 0, 1, 1, 1], order=order)
        assert refined.dims == ("city",) and refined["city"].values.tolist() == list("abcdef")
