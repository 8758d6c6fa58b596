"""Every bound against the least loss of all partitions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

import posterior_consensus as pc
from posterior_consensus.bounds.binder import binder_bound, cost_step
from posterior_consensus.bounds.budget import Deadline, WorkBudget
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.strategies import small_draws

COSTS = [1.0, 0.5, 1.6, 0.25, 0.8]  # with 0.8 the costs of five draws tie but for rounding


def least(draws, a, weights=None):
    """By the definition alone: the pair costs of every partition."""
    n_items = len(draws[0])
    together = reference.similarity(draws, reference.shares(draws, weights))
    best = np.inf
    for partition in reference.partitions(n_items):
        labels = np.array(partition)
        joined = np.equal.outer(labels, labels)
        cost = np.where(joined, (2 - a) * (1 - together), a * together)
        best = min(best, np.triu(cost, 1).sum() * 2 / n_items**2)
    return best


def bounded(draws, a, incumbent, weights=None, seconds=30.0):
    taken = pc.as_partition_draws(draws, weights=weights)
    return binder_bound(taken, pc.binder(a), taken.as_labels(incumbent), budget=Deadline(seconds))


def assert_proves(draws, a, incumbent, weights=None):
    optimum = least(draws, a, weights)
    bound = bounded(draws, a, incumbent, weights)
    assert bound.value == pytest.approx(optimum, rel=1e-9, abs=1e-12)
    assert bound.value <= optimum + 1e-12
    found = reference.expected(bound.partition, draws, lambda c, z: reference.binder(c, z, a), weights)
    assert found == pytest.approx(optimum, abs=1e-12)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("a", COSTS)
def test_proves_the_optimum_from_any_partition(a, seed):
    rng = np.random.default_rng(seed)
    n_items = rng.integers(3, 8)
    kind = (noisy_draws, lambda *args: random_draws(*args[:-1]))[seed % 2]
    draws = kind(rng, rng.integers(2, 12), n_items, rng.integers(2, 5), 0.5)
    weights = rng.exponential(size=len(draws)) if seed % 3 == 0 else None
    assert_proves(draws, a, rng.integers(3, size=n_items), weights)


@pytest.mark.parametrize("seed", range(25))
def test_equal_items_are_one_whatever_their_number(seed):
    """Signatures that several items share, with and without weights, some of them 0."""
    rng = np.random.default_rng(seed)
    draws = random_draws(rng, 7, 4, 3)[:, rng.integers(4, size=8)]
    weights = rng.integers(0, 3, 7) + np.eye(7)[0] if seed % 2 else None
    bound = bounded(draws, 1.0, np.zeros(8, int), weights)
    assert bound.info.n_signatures <= 4
    assert_proves(draws, (1.0, 0.7)[seed % 2], rng.integers(3, size=8), weights)


@pytest.mark.parametrize("seconds", [1e-9, 1e-3])
@pytest.mark.parametrize("budget", [Deadline, WorkBudget])
@pytest.mark.parametrize("seed", range(40))
def test_holds_whenever_it_stops(seed, budget, seconds):
    rng = np.random.default_rng(100 + seed)
    draws = random_draws(rng, 9, 7, 3)
    a = COSTS[seed % 5]
    taken = pc.as_partition_draws(draws)
    start = taken.as_labels(rng.integers(4, size=7))
    bound = binder_bound(taken, pc.binder(a), start, budget=budget(seconds))
    assert bound.value <= least(draws, a) + 1e-12
    found = reference.expected(bound.partition, draws, lambda c, z: reference.binder(c, z, a))
    assert bound.value <= found + 1e-12


def test_does_not_repeat_the_incumbent_s_claim():
    """A bound that merely took the incumbent's loss would be above the optimum."""
    draws = noisy_draws(np.random.default_rng(1), 20, 8, 3, 0.5)
    for a in COSTS:
        for start in (np.zeros(8, int), np.arange(8)):
            assert_proves(draws, a, start)


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("a", COSTS)
def test_degenerate_draws(name, a):
    draws = DEGENERATE[name]

    for start in (draws[0], np.zeros(draws.shape[1], int), np.arange(draws.shape[1])):
        assert_proves(draws, a, start)


@given(draws=small_draws(max_items=6), data=st.data())
def test_any_draws_and_weights(draws, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(draws), max_size=len(draws)))
    weights = weights if any(weights) else None
    start = data.draw(st.lists(st.integers(0, 2), min_size=draws.shape[1], max_size=draws.shape[1]))
    assert_proves(draws, data.draw(st.sampled_from(COSTS)), start, weights)


def test_every_kind_of_work_is_needed_by_some_draws():
    """Else the tests above would not reach it."""
    methods = set()
    for seed in range(40):
        draws = noisy_draws(np.random.default_rng(seed), 3, 14, 3, 0.5)
        methods.add(bounded(draws, COSTS[seed % 5], np.zeros(14, int)).method)
    assert methods >= {"trivial bound", "packing of triangles", "dual ascent", "linear program", "branch and bound"}


@pytest.mark.parametrize("a", [1.1, 0.8])
@pytest.mark.parametrize("seed", range(6))
def test_closes_where_there_are_too_many_partitions_to_enumerate(seed, a):
    """Two starts, and the items in another order, must end at one optimum."""
    rng = np.random.default_rng(seed)
    draws = noisy_draws(rng, 25, 30, 4, 0.6)
    order = rng.permutation(30)
    one = bounded(draws, a, np.zeros(30, int))
    other = bounded(draws[:, order], a, np.arange(30))
    assert one.value == pytest.approx(other.value, rel=1e-9)
    found = reference.expected(one.partition, draws, lambda c, z: reference.binder(c, z, a))
    assert one.value == pytest.approx(found, rel=1e-9)


def test_a_repeatable_bound_repeats():
    draws = noisy_draws(np.random.default_rng(3), 30, 25, 4, 0.6)
    taken = pc.as_partition_draws(draws)
    labels = taken.as_labels(np.zeros(25, int))
    values = {binder_bound(taken, pc.binder(), labels, budget=WorkBudget(3e-4)).value for _ in range(3)}
    assert len(values) == 1


@pytest.mark.parametrize(("loss", "yes"), [(pc.binder(), True), (pc.binder(0.3), True), (pc.vi(), False)])
def test_losses_are_told_by_their_data(loss, yes):
    assert (loss.as_binder() == loss) is yes
    assert {name for name, factory in (pc.LOSSES | pc.PAIR_LOSSES).items() if factory().as_binder()} == {"binder"}


@pytest.mark.parametrize(("a", "step"), [(1.0, 1.0), (0.5, 0.5), (1.2, 0.4), (0.123456789, 0.0)])
def test_costs_are_multiples_of_a_step(a, step):
    draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 1]])
    assert cost_step(draws, pc.binder(a)) == pytest.approx(step)
    assert cost_step(pc.as_partition_draws(draws.labels, weights=[1, 2]), pc.binder(a)) == 0.0


def integer_program(draws, a, weights):
    """Least expected loss by an integer program with every triangle inequality."""
    n_items = len(draws[0])
    similarity = reference.similarity(draws, reference.shares(draws, weights))
    pairs = {pair: number for number, pair in enumerate(combinations(range(n_items), 2))}
    together = np.array([(2 - a) * (1 - similarity[pair]) for pair in pairs])
    apart = np.array([a * similarity[pair] for pair in pairs])
    rows = []
    for i, j, k in combinations(range(n_items), 3):
        for signs in ([-1, 1, 1], [1, -1, 1], [1, 1, -1]):
            rows.append(np.zeros(len(pairs)))
            rows[-1][[pairs[i, j], pairs[i, k], pairs[j, k]]] = signs
    found = milp(
        apart - together,
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array(rows), lb=0),
        options={"mip_rel_gap": 0},
    )
    return 2 / n_items**2 * (together.sum() + found.fun)


@pytest.mark.parametrize("seed", range(9))
def test_agrees_with_an_integer_program(seed):
    rng = np.random.default_rng(seed)
    draws = noisy_draws(rng, rng.integers(3, 15), 15, 4, 0.55)
    weights = rng.exponential(size=len(draws)) if seed % 2 else None
    a = (1.0, 0.8, 1.3)[seed % 3]
    bound = bounded(draws, a, np.zeros(15, int), weights)
    assert bound.value == pytest.approx(integer_program(draws, a, weights), rel=1e-9)
