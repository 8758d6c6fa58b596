"""Monte Carlo standard errors of means over draws."""

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from numpy.testing import assert_allclose

import posterior_consensus as pc
from posterior_consensus.ensemble import samples as samples_module
from posterior_consensus.ensemble.similarity import similarity_errors


def chains_of(lengths):
    """Draws in chains of these lengths, their rows shuffled together but in order within a chain."""
    chain = np.random.default_rng(3).permutation(np.repeat(np.arange(len(lengths)), lengths))
    coords = {"chain": ("sample", chain)}
    return pc.as_partition_draws(xr.DataArray(np.zeros((chain.size, 2), int), dims=("sample", "obs"), coords=coords))


@pytest.mark.parametrize("shape", [(1, 4), (3, 5), (1, 50), (2, 30), (4, 25)])
def test_mcse_is_arviz(rng, shape):
    draws = pc.as_partition_draws(np.zeros((*shape, 3), int))
    values = rng.normal(size=(3, *shape)).cumsum(-1) + 5
    expected = array_stats.mcse(values, chain_axis=-2, draw_axis=-1, method="mean")
    assert_allclose(draws.samples.mcse(values.reshape(3, -1)), expected, rtol=1e-10)
    assert draws.samples.mcse(values[0].ravel()) == pytest.approx(expected[0], rel=1e-10)


def test_equal_weights_give_the_unweighted_error(rng, small_draws):
    values = rng.normal(size=12)
    equal = pc.as_partition_draws(small_draws, weights=np.full(12, 0.7))
    assert equal.samples.mcse(values) == small_draws.samples.mcse(values)
    slow = pc.as_partition_draws(small_draws, weights=[1.0 + 1e-14, *np.ones(11)])  # the weighted formula
    assert slow.samples.is_weighted
    assert slow.samples.mean(values) == pytest.approx(small_draws.samples.mean(values), rel=1e-14)
    assert slow.samples.mcse(values) == pytest.approx(small_draws.samples.mcse(values), rel=1e-12)


def test_mcse_of_a_weighted_mean(rng):
    weight, values = rng.exponential(size=200_000), rng.normal(size=200_000)
    draws = pc.as_partition_draws(np.zeros((4, 50_000, 1), int), weights=weight)
    share = weight / weight.sum()
    independent = np.sqrt(np.sum(share**2 * (values - share @ values) ** 2))  # the delta method for independent draws
    assert draws.samples.mcse(values) == pytest.approx(independent, rel=0.05)


def test_mcse_of_chains_of_unequal_length(rng):
    draws = chains_of([20, 35])
    values = rng.normal(size=55)
    short = np.stack([values[draws.samples.chain == k][:20] for k in (0, 1)])
    size = array_stats.ess(short, chain_axis=0, draw_axis=1, method="mean") * 55 / 40
    expected = values.std(ddof=1) / np.sqrt(size)
    assert draws.samples.mcse(values) == pytest.approx(expected, rel=1e-10)


def test_constant_has_no_error(z):
    for weights in (None, np.arange(1.0, 13.0)):
        draws = pc.as_partition_draws(z, weights=weights)
        errors = draws.samples.mcse(np.stack([np.full(12, 0.1), np.arange(12.0)]))
        assert errors[0] == 0 < errors[1]


def test_mcse_needs_four_draws_in_each_chain(rng):
    for lengths, known in (([3], False), ([4], True), ([9, 3], False), ([5, 4], True)):
        draws = chains_of(lengths)
        assert np.all(np.isfinite(draws.samples.mcse(rng.normal(size=(2, draws.n_draws)))) == known)


def test_error_is_unknown_where_a_function_varies_but_not_among_the_draws_compared(rng):
    z = rng.integers(0, 2, (104, 20))
    z[:8] = z[0]
    chain = ("sample", [0] * 4 + [1] * 100)
    draws = pc.as_partition_draws(xr.DataArray(z, dims=("sample", "item"), coords={"chain": chain}))
    assert np.isnan(draws.samples.mcse(z.sum(axis=1).astype(float)))
    assert draws.samples.mcse(np.ones(104)) == 0


def of_share(probability, size):
    """Standard error of a share of `size` draws, to which two events and two others are added."""
    shrunk = (size * probability + 2) / (size + 4)
    return np.sqrt(shrunk * (1 - shrunk) / size)


def test_error_of_a_probability_of_no_draw_and_of_all_rests_on_the_other_function(rng):
    samples = pc.as_partition_draws(np.zeros((4, 50, 1), int)).samples
    slow = rng.normal(size=(4, 50)).cumsum(axis=1).ravel()
    constant = np.stack([np.zeros(200), np.ones(200)])
    _, size = samples.mcse_and_ess(slow)
    assert_allclose(samples.probability_mcse(constant, slow), of_share(np.array([0.0, 1.0]), size), rtol=1e-12)
    # a function that is constant too says nothing of how alike successive draws are
    assert_allclose(samples.probability_mcse(constant, np.ones(200)), of_share(0.0, 200), rtol=1e-12)


def test_error_of_a_probability_is_pooled_over_events(rng):
    samples = pc.as_partition_draws(np.zeros((4, 50, 1), int), weights=rng.exponential(size=200)).samples
    events = np.stack([np.repeat(rng.integers(2, size=50), 4), np.zeros(200), rng.integers(2, size=200)]).astype(float)
    probability, error = samples.mean(events), samples.mcse(events)
    spread = probability * (1 - probability)
    pooled = spread.sum() / np.square(error).sum()
    own = spread[[0, 2]] / np.square(error[[0, 2]])
    assert own[0] < pooled < own[1] < samples.effective_draws * 2
    visits = own[1] * spread[2]
    size = [own[0], pooled, (visits + 4) / (visits / own[1] + 4 / pooled)]
    assert_allclose(samples.probability_mcse(events), of_share(probability, np.array(size)), rtol=1e-12)


def test_errors_of_probabilities_do_not_depend_on_blocks(rng, monkeypatch):
    samples = pc.as_partition_draws(np.zeros((4, 50, 1), int)).samples
    events = rng.integers(2, size=(7, 200)).astype(float)
    expected = samples.probability_mcse(events)
    monkeypatch.setattr(samples_module, "_AT_ONCE", 3)
    assert_allclose(samples.probability_mcse(events), expected, rtol=1e-12)


def test_error_of_a_common_event_is_the_error_of_the_mean(rng):
    samples = pc.as_partition_draws(np.zeros((4, 5_000, 1), int)).samples
    event = (rng.random(20_000) < 0.4).astype(float)
    assert samples.probability_mcse(event) == pytest.approx(samples.mcse(event), rel=0.01)


def test_error_of_a_mean_of_probabilities_is_the_error_of_the_mean(rng):
    samples = pc.as_partition_draws(np.zeros((4, 500, 1), int)).samples
    known = np.stack([0.02 + 0.001 * rng.random(2_000), np.zeros(2_000)])
    error = samples.mcse(known)
    assert_allclose(samples.probability_errors(samples.mean(known), error, np.inf), error, rtol=1e-3)


@pytest.mark.parametrize("event", [0.0, 1.0])
def test_error_of_a_probability_is_unknown_for_chains_of_three_draws(event):
    samples = pc.as_partition_draws(np.zeros((2, 3, 1), int)).samples
    assert np.isnan(samples.probability_mcse(np.full(6, event)))


def test_errors_of_probabilities_are_at_most_a_half():
    samples = pc.as_partition_draws(np.zeros((4, 50, 1), int)).samples
    errors = samples.probability_errors(np.array([0.0, 0.5, 0.9, 1.0]), np.array([0.0, 0.8, 0.4, 0.0]), 0.1)
    assert np.all((errors > 0.3) & (errors <= 0.5))


STUCK = np.stack([np.tile([0, 0, 0, 1, 1, 1], (250, 1))] * 3 + [np.tile([0, 1, 2, 3, 4, 5], (250, 1))])


def test_chains_that_differ_count_as_one_value_each():
    """Three chains say 1 and one 0: the standard deviation of a chain is 1/2, and that of the mean of four 1/4."""
    samples = pc.as_partition_draws(STUCK).samples
    together = np.repeat([1.0, 1.0, 1.0, 0.0], 250)
    error = samples.error_by_batches(samples.mean(together), lambda rows: together[rows].mean())
    assert error == pytest.approx(0.25)
    assert array_stats.mcse(together.reshape(4, 250), chain_axis=-2, draw_axis=-1, method="mean") > 0.2
    found = pc.diagnostics.similarity_mcse(STUCK).values[0, 1], pc.membership(STUCK, STUCK[0, 0]).mcse.values[0, 0]
    assert min(found) >= 0.25


def test_chains_that_agree_keep_the_error_of_their_batches(rng):
    draws = pc.as_partition_draws(rng.integers(2, size=(4, 100, 2)))
    together = (draws.labels[:, 0] == draws.labels[:, 1]).astype(float)
    batches = together.reshape(40, 10).mean(axis=1)
    error = draws.samples.error_by_batches(together.mean(), lambda rows: together[rows].mean())
    assert error == pytest.approx(batches.std(ddof=1) / np.sqrt(40))


def test_errors_of_all_pairs_are_those_of_each(rng):
    """The kernel's integers, and the weighted formula with weights that are almost equal."""
    labels = np.concatenate([rng.integers(3, size=(3, 60, 12)), np.minimum(rng.integers(9, size=(1, 60, 12)), 2)])
    draws = pc.as_partition_draws(labels)
    weighted = pc.as_partition_draws(labels, weights=[1.0 + 1e-13, *np.ones(239)])
    errors, samples = similarity_errors(draws), draws.samples
    assert_allclose(similarity_errors(weighted), errors, atol=1e-10)
    first, second = np.triu_indices(12, 1)
    together = (draws.labels[:, first] == draws.labels[:, second]).astype(float)
    each = samples.error_by_batches(together.mean(axis=0), lambda rows: together[rows].mean(axis=0))
    assert_allclose(errors[first, second], each, rtol=1e-9)
    of_chains = together.reshape(4, 60, -1).mean(axis=1).std(axis=0, ddof=1) / 2
    by_chains = np.isclose(each, of_chains)
    assert 0 < by_chains.sum() < by_chains.size  # some pairs go either way
