"""Every bound against the least loss of all partitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import posterior_consensus as pc
from posterior_consensus.bounds.binder import binder_bound
from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.losses.partition_losses import PAIR_LOSSES
from posterior_consensus.problems.components import cost_step
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.strategies import small_draws

COSTS = [1.0, 0.5, 1.6, 0.25, 0.8]  # with 0.8 the costs of five draws tie but for rounding


def binder(a):
    return lambda one, other: reference.binder(one, other, a)


def bounded(draws, a, incumbent, weights=None, budget=None):
    taken = pc.as_partition_draws(draws, weights=weights)
    return binder_bound(taken, pc.binder(a), taken.as_labels(incumbent), budget=budget or WorkBudget(30.0))


def assert_proves(draws, a, *incumbents, weights=None):
    optimum = reference.least_expected(draws, binder(a), weights)
    for incumbent in incumbents:
        bound = bounded(draws, a, incumbent, weights)
        assert bound.value == pytest.approx(optimum, rel=1e-9, abs=1e-12)
        assert bound.value <= optimum + 1e-12
        assert reference.expected(bound.partition, draws, binder(a), weights) == pytest.approx(optimum, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_proves_the_optimum_from_any_partition(seed):
    rng = np.random.default_rng(seed)
    n_items = rng.integers(3, 8)
    kind = (noisy_draws, lambda *args: random_draws(*args[:-1]))[seed % 2]
    draws = kind(rng, rng.integers(2, 12), n_items, rng.integers(2, 5), 0.5)
    weights = rng.exponential(size=len(draws)) if seed % 3 == 0 else None
    assert_proves(draws, COSTS[seed % 5], rng.integers(3, size=n_items), weights=weights)


@pytest.mark.parametrize("seed", range(8))
def test_equal_items_are_one_whatever_their_number(seed):
    """Signatures that several items share, with and without weights, some of them 0."""
    rng = np.random.default_rng(seed)
    draws = random_draws(rng, 7, 4, 3)[:, rng.integers(4, size=8)]
    weights = rng.integers(0, 3, 7) + np.eye(7)[0] if seed % 2 else None
    assert bounded(draws, 1.0, np.zeros(8, int), weights).info.n_signatures <= 4
    assert_proves(draws, (1.0, 0.7)[seed % 2], rng.integers(3, size=8), weights=weights)


@pytest.mark.parametrize("seed", range(20))
def test_holds_whenever_it_stops(seed):
    rng, a = np.random.default_rng(100 + seed), COSTS[seed % 5]
    draws = random_draws(rng, 9, 7, 3)
    budget = (Deadline, WorkBudget)[seed % 2]((1e-9, 1e-3)[seed // 2 % 2])
    bound = bounded(draws, a, rng.integers(4, size=7), budget=budget)
    assert bound.value <= reference.least_expected(draws, binder(a)) + 1e-12
    assert bound.value <= reference.expected(bound.partition, draws, binder(a)) + 1e-12


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    for a in COSTS[:3]:
        assert_proves(draws, a, draws[0], np.zeros(draws.shape[1], int), np.arange(draws.shape[1]))


@pytest.mark.slow
@settings(max_examples=30)
@given(draws=small_draws(max_items=6), data=st.data())
def test_any_draws_and_weights(draws, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(draws), max_size=len(draws)))
    weights = weights if any(weights) else None
    start = data.draw(st.lists(st.integers(0, 2), min_size=draws.shape[1], max_size=draws.shape[1]))
    assert_proves(draws, data.draw(st.sampled_from(COSTS)), start, weights=weights)


def test_every_kind_of_work_is_needed_by_some_draws():
    """Else the tests above would not reach it."""
    methods = set()
    for seed in range(40):
        draws = noisy_draws(np.random.default_rng(seed), 3, 14, 3, 0.5)
        methods.add(bounded(draws, COSTS[seed % 5], np.zeros(14, int)).method)
    assert methods >= {"trivial bound", "packing of triangles", "dual ascent", "linear program", "branch and bound"}


@pytest.mark.parametrize("seed", range(4))
def test_closes_where_there_are_too_many_partitions_to_enumerate(seed):
    """Two starts, and the items in another order, must end at one optimum."""
    rng, a = np.random.default_rng(seed), (1.1, 0.8)[seed % 2]
    draws = noisy_draws(rng, 25, 30, 4, 0.6)
    one = bounded(draws, a, np.zeros(30, int))
    other = bounded(draws[:, rng.permutation(30)], a, np.arange(30))
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert one.value == pytest.approx(reference.expected(one.partition, draws, binder(a)), rel=1e-9)


def test_a_repeatable_bound_repeats():
    draws = noisy_draws(np.random.default_rng(3), 30, 25, 4, 0.6)
    values = {bounded(draws, 1.0, np.zeros(25, int), budget=WorkBudget(3e-4)).value for _ in range(3)}
    assert len(values) == 1


def test_losses_are_told_by_their_data():
    assert all(loss.as_binder() == loss for loss in (pc.binder(), pc.binder(0.3)))
    assert {name for name, factory in (pc.LOSSES | PAIR_LOSSES).items() if factory().as_binder()} == {"binder"}


def test_costs_are_multiples_of_a_step():
    draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 1]])
    weighted = pc.as_partition_draws(draws.labels, weights=[1, 2])
    for a, step in ((1.0, 1.0), (0.5, 0.5), (1.2, 0.4), (0.123456789, 0.0)):
        assert cost_step(draws, pc.binder(a)) == pytest.approx(step)
        assert cost_step(weighted, pc.binder(a)) == 0.0
