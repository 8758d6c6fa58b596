import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import check_all


@pytest.mark.parametrize(("loss", "weighted"), [("vi", False), *((loss, True) for loss in pc.LOSSES)])
def test_mean_over_the_draws(loss, weighted):
    rng = np.random.default_rng(1)
    draws, partitions = random_draws(rng, 70, 9, 4), random_draws(rng, 5, 9, 3)
    weights = rng.exponential(size=70) if weighted else None
    found = pc.expected_loss(pc.as_partition_draws(draws, weights=weights), partitions, loss=loss)
    expected = [reference.expected(p, draws, reference.LOSSES[loss], weights) for p in partitions]
    assert found["expected_loss"].dims == ("partition",)
    np.testing.assert_allclose(found["expected_loss"], expected, rtol=0, atol=1e-12)
    one = pc.expected_loss(pc.as_partition_draws(draws, weights=weights), partitions[0], loss=loss)
    assert one["expected_loss"].dims == one["mcse"].dims == ()
    xr.testing.assert_allclose(one, found.isel(partition=0), rtol=1e-14)


def test_one_is_one_however_it_comes_and_many_are_many():
    draws = noisy_draws(np.random.default_rng(2), 30, 6, 3, 0.3)
    best = pc.consensus_partition(draws, random_seed=1)
    labels = best.labels.values
    for one in (best, best.labels, labels, labels.tolist(), tuple(labels.tolist())):
        assert pc.expected_loss(draws, one)["expected_loss"].shape == ()
    array = xr.DataArray([labels, labels], dims=("estimate", "item"))
    for many in ([best, labels], [best.labels], [labels.tolist()], np.array([labels]), array):
        found = pc.expected_loss(draws, many)["expected_loss"]
        assert found.dims == ("partition",)
        np.testing.assert_allclose(found, best.expected_loss, rtol=1e-15)


def test_a_stack_of_partitions_may_have_its_items_first():
    draws = random_draws(np.random.default_rng(3), 8, 4, 3)
    stack = xr.DataArray(random_draws(np.random.default_rng(4), 4, 4, 3), dims=("estimate", "item"))
    xr.testing.assert_equal(pc.expected_loss(draws, stack), pc.expected_loss(draws, stack.T))


@pytest.mark.parametrize("n_chains", [1, 4])
def test_standard_error_is_arviz_s(n_chains):
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(6)
    chains = noisy_draws(rng, n_chains * 50, 10, 3, 0.3).reshape(n_chains, 50, 10)
    labels = chains[0, 0]
    losses = np.array([[reference.vi(labels, draw) for draw in chain] for chain in chains])
    expected = array_stats.mcse(losses, chain_axis=0, draw_axis=1, method="mean")
    assert float(pc.expected_loss(chains, labels)["mcse"]) == pytest.approx(float(expected), rel=1e-9)


def test_standard_error_knows_that_chains_are_slow():
    rng = np.random.default_rng(7)
    fast = noisy_draws(rng, 200, 10, 3, 0.4)
    slow = np.repeat(fast[:20], 10, axis=0)
    errors = [float(pc.expected_loss(draws, fast[0])["mcse"]) for draws in (fast, slow)]
    assert errors[1] > 2 * errors[0] > 0


@pytest.mark.parametrize("loss", pc.LOSSES)
def test_degenerate_draws(loss):
    for name, draws in DEGENERATE.items():
        n_items = draws.shape[1]
        partitions = [np.zeros(n_items, int), np.arange(n_items), draws[-1]]
        found = pc.expected_loss(draws, partitions, loss=loss)["expected_loss"]
        expected = [reference.expected(p, draws, reference.LOSSES[loss]) for p in partitions]
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=name)


def test_bad_partitions():
    cases = [
        ([[0, 1, 1], [0, 1]], ValueError, "must label all 3 items"),
        (np.empty((0, 3), int), ValueError, "at least one partition"),
        (np.zeros((2, 2, 3), int), ValueError, "vector of labels"),
    ]
    check_all(lambda partitions: pc.expected_loss([[0, 0, 1], [0, 1, 1]], partitions), cases)
