"""The bound for VI by set partitioning: valid by enumeration, exact where it ends, and at any interruption."""

from itertools import product

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds import vi_sets as module
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.distinct_draws import DistinctDraws
from posterior_consensus.bounds.vi_sets import distinct_blocks, sets_bound
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.kernels import vi_sets as kernels
from posterior_consensus.losses import vi
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws


def optimum(draws):
    """Best of all partitions and its expected VI."""
    blocks = [(block, mean_loss(draws, block.astype(np.int32), vi())) for block in enumerate_partitions(draws.n_items)]
    block, losses = min(blocks, key=lambda pair: pair[1].min())
    return block[losses.argmin()].astype(np.int32), float(losses.min())


def ensemble(seed):
    """Some draws of up to eight items: noisy or without any structure, weighted or not, with equal items or not."""
    rng = np.random.default_rng(seed)
    n_draws, n_items = int(rng.integers(1, 12)), int(rng.integers(1, 9))
    n_clusters = int(rng.integers(1, 5))
    if seed % 2:
        labels = random_draws(rng, n_draws, n_items, n_clusters)
    else:
        labels = noisy_draws(rng, n_draws, n_items, n_clusters, 0.4)
    if seed % 3 == 0:
        labels = labels[:, rng.integers(n_items, size=n_items)]
    return pc.as_partition_draws(labels, weights=rng.exponential(size=n_draws) if seed % 5 == 0 else None)


def bound_of(draws, incumbent, seconds=1.0):
    return sets_bound(draws, incumbent, budget=WorkBudget(seconds), progressbar=False)


@pytest.mark.parametrize("seed", range(30))
def test_no_partition_is_below_the_bound(seed):
    draws = ensemble(seed)
    best, least = optimum(draws)
    for incumbent in (best, draws.labels[0].astype(np.int32), np.arange(draws.n_items, dtype=np.int32)):
        for seconds in (1e-3, 1e-2, 0.1):
            assert 0 <= bound_of(draws, incumbent, seconds).value <= least + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_no_set_falls_short_by_more_than_is_noted(seed, monkeypatch):
    """At each moment, of all sets: what was proven stays proven, and what was not is in some leaf."""
    draws = ensemble(seed)
    problem = DistinctDraws(draws)
    incumbent = optimum(draws)[0] if seed % 2 else draws.labels[0].astype(np.int32)
    bound = module._SetsBound(problem, problem.merged(incumbent), WorkBudget(60.0))
    members = np.array(list(product((False, True), repeat=problem.n))[1:], bool)
    costs = np.array([kernels.cost(bound._blocks, one) for one in members])
    noted = []

    def note(short):
        least = (costs - members @ bound.shares) / (members @ problem.multiplicity)
        assert problem.n_items * least.min() >= -short - 1e-9
        noted.append(short)

    monkeypatch.setattr(bound, "_note", note)
    for _ in bound.run():
        pass
    assert noted[-1] == bound._closed


def test_equal_items_are_merged():
    labels = noisy_draws(np.random.default_rng(3), 20, 4, 3, 0.3)[:, [0, 1, 1, 2, 3, 3, 3]]
    draws = pc.as_partition_draws(labels)
    best, least = optimum(draws)
    bound = bound_of(draws, best)
    assert bound.value == pytest.approx(least, abs=1e-9) and bound.info.n_merged_items == 4


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws_have_a_bound_that_is_finite_and_not_negative(name):
    draws = pc.as_partition_draws(DEGENERATE[name])
    best, least = optimum(draws)
    assert 0 <= bound_of(draws, best).value <= least + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_no_partition_is_below_the_bound_of_parts(seed, monkeypatch):
    monkeypatch.setattr(module, "_MOST_ITEMS", 4)
    monkeypatch.setattr(module, "_ITEMS_A_PART", 3)
    draws = ensemble(seed)
    best, least = optimum(draws)
    bound = bound_of(draws, best)
    assert bound.info.n_parts == (-(-draws.n_items // 3) if draws.n_items > 4 else 1)
    assert 0 <= bound.value <= least + 1e-12


def test_it_proves_the_optimum_of_many_items():
    labels = noisy_draws(np.random.default_rng(0), 40, 20, 4, 0.3)
    best = pc.consensus_partition(labels, random_seed=1, progressbar=False)
    proof = pc.certify(labels, best, progressbar=False)
    assert proof.status == "optimal" and proof.method == "set partitioning"
    assert proof.info.n_nodes > 1 and proof.info.stopped == ""


def test_costs_of_clusters_sum_to_the_expected_vi():
    rng = np.random.default_rng(3)
    draws = pc.as_partition_draws(noisy_draws(rng, 30, 9, 3, 0.5), weights=rng.exponential(size=30))
    problem = DistinctDraws(draws)
    assert problem.n == draws.n_items
    labels = np.arange(9, dtype=np.int32) % 3
    blocks, merged = distinct_blocks(problem), problem.merged(labels)
    total = sum(kernels.cost(blocks, merged == label) for label in range(3))
    expected = mean_loss(draws, labels[np.newaxis], vi())[0]
    assert problem.entropy + total / 9 == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_no_set_of_a_node_is_below_its_bounds(seed):
    """Of all of them, and of those with an item and without it, whatever items see, their shares, and numbers asked."""
    rng = np.random.default_rng(seed)
    labels = noisy_draws(rng, 12, 7, 3, 0.4)[:, rng.integers(7, size=9)]
    problem = DistinctDraws(pc.as_partition_draws(labels, weights=rng.exponential(size=12)))
    blocks, n = distinct_blocks(problem), problem.n
    shares = rng.normal(-1, 1, n)
    chosen = rng.random(n) < 0.3
    free = np.flatnonzero(~chosen & (rng.random(n) < 0.8))
    multiplicity = problem.multiplicity
    minorant = kernels.Minorant(np.empty(free.size), np.empty((free.size,) * 2), np.empty(free.size))
    base = kernels.bend(blocks, shares, free, chosen, rng.random((n, n)).astype(np.float32), minorant)
    n_chosen, n_free = int(multiplicity[chosen].sum()), int(multiplicity[free].sum())
    first = max(n_chosen, 1)
    prices = np.triu(rng.normal(0, 0.2, (free.size,) * 2), 1)
    unknown = [np.full(size, -np.inf) for size in (n_chosen + n_free - first + 1, free.size, free.size)]
    rankings = np.argsort(1 - np.eye(free.size), axis=1, kind="stable").astype(np.int16)
    state = kernels.State(prices - prices.T, rankings, np.zeros_like(prices), *unknown)
    group = rng.integers(3, size=free.size).astype(np.int32)
    number = np.bincount(group, weights=multiplicity[free], minlength=3)
    low = np.floor(rng.random(3) * number) * (seed % 2)
    high = np.ceil(low + rng.random(3) * (number - low)) if seed % 3 else number
    box = kernels.Box(group, low, high, minorant.multiplicity)
    starts = base + blocks.table[first:]
    sizes = minorant, box, starts, first - n_chosen, 0.5
    kernels.raise_bound(*sizes, 0.1, 0.3, 60, state)
    value = kernels.probe(*sizes, state)
    for inside in product((False, True), repeat=free.size):
        inside = np.array(inside, bool)
        members = chosen.copy()
        members[free[inside]] = True
        size = int(multiplicity[members].sum())
        of_group = np.bincount(group[inside], weights=multiplicity[free[inside]], minlength=3)
        if size == 0 or (of_group < box.low).any() or (of_group > box.high).any():
            continue
        cost = kernels.cost(blocks, members) - shares[members].sum()
        x = inside * minorant.multiplicity
        bent = base + blocks.table[size] + x @ (minorant.linear - minorant.quadratic @ x)
        assert bent <= cost + 1e-9
        assert state.least[size - first] <= bent + 1e-9
        if state.least[size - first] < 0.5:
            assert value <= bent + 1e-9
            known = (np.maximum(state.inside, state.outside) >= 0.5) | (size - first == np.argmin(state.least))
            assert (state.inside[inside & known] <= bent + 1e-9).all()
            assert (state.outside[~inside & known] <= bent + 1e-9).all()


def test_ctrl_c_leaves_the_bound_so_far(monkeypatch):
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 40, 20, 3, 0.3))
    best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
    whole = bound_of(draws, best.labels.values, 5.0)
    calls = iter(range(10**6))
    raise_bound = kernels.raise_bound

    def interrupted(*arguments):
        if next(calls) == 30:
            raise KeyboardInterrupt
        return raise_bound(*arguments)

    monkeypatch.setattr(module.kernels, "raise_bound", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        part = bound_of(draws, best.labels.values, 5.0)
    assert part.info.stopped == "interrupted"
    assert 0 < part.value <= whole.value <= best.expected_loss


def test_too_many_items_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "1KB")
    with pytest.raises(MemoryError, match="VI of 6 items"):
        bound_of(pc.as_partition_draws(noisy_draws(np.random.default_rng(4), 20, 6, 3, 0.5)), np.zeros(6, np.int32))
