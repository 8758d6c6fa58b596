from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import posterior_consensus as pc
from posterior_consensus.bounds import distinct_draws
from posterior_consensus.bounds import vi as module
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.distinct_draws import DistinctDraws
from posterior_consensus.bounds.vi import vi_bound
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.losses import vi
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.strategies import small_draws


def optimum(draws):
    """Best of all partitions and its expected VI."""
    blocks = [(block, mean_loss(draws, block.astype(np.int32), vi())) for block in enumerate_partitions(draws.n_items)]
    block, losses = min(blocks, key=lambda pair: pair[1].min())
    return block[losses.argmin()].astype(np.int32), float(losses.min())


def bound_of(draws, incumbent, seconds=0.05):
    return vi_bound(draws, incumbent, budget=WorkBudget(seconds), progressbar=False)


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


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_is_below_the_bound(seed):
    draws = ensemble(seed)
    best, least = optimum(draws)
    bound = bound_of(draws, best)
    assert 0 <= bound.value <= least + 1e-12


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws_have_a_bound_that_is_finite_and_not_negative(name):
    draws = pc.as_partition_draws(DEGENERATE[name])
    best, least = optimum(draws)
    bound = bound_of(draws, best, seconds=1.0)
    assert 0 <= bound.value <= least + 1e-12
    if name != "one cluster or singletons":  # two draws that differ much: the item problems mix them
        assert bound.value == pytest.approx(least, abs=0.01)


@settings(max_examples=20)
@given(small_draws(), st.integers(0, 2**32 - 1), st.floats(0, 2))
def test_any_prices_bound(labels, seed, scale):
    draws = pc.as_partition_draws(labels)
    rng = np.random.default_rng(seed)
    problem = DistinctDraws(draws)
    ascent = module._Ascent(problem)
    n, n_groups = problem.n, ascent.upper.size
    centre = rng.normal(scale=scale, size=(n_groups, n, n))
    ascent._centre[:] = centre - centre.transpose(0, 2, 1)
    ascent._means.sets[:] = np.eye(n) / n_groups  # so that every group is met
    distinct = [rng.permutation(n)[:3] for _ in range(10 if n >= 3 else 0)]
    ascent._triangles = np.array([[rng.integers(n_groups), *items] for items in distinct], np.int32).reshape(-1, 4)
    ascent._duals_centre = rng.exponential(scale, size=len(distinct))
    ascent.use(problem.blocks(1))
    ascent._set_prices()
    ascent._solve(True)
    value = problem.entropy + float(problem.multiplicity @ ascent._minima.least.min(axis=1)) / draws.n_items
    assert value <= reference.least_expected(labels, reference.vi) + 1e-10


def test_the_bound_is_close_where_many_draws_scatter_around_a_partition():
    gaps = []
    for seed in range(6):
        draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(seed), 100, 7, 3, 0.3))
        best, least = optimum(draws)
        gaps.append(1 - bound_of(draws, best, seconds=0.5).value / least)
    assert np.median(gaps) < 0.05
    assert max(gaps) < 0.25


def test_a_part_of_the_draws_comes_first_but_the_bound_is_that_of_all(monkeypatch):
    monkeypatch.setattr(distinct_draws, "_PILOT_ROWS", 10)
    monkeypatch.setattr(distinct_draws, "_PILOT_DRAWS", 2)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        draws = pc.as_partition_draws(random_draws(rng, 30, 5, 3), weights=rng.exponential(size=30))
        assert DistinctDraws(draws).pilot_stride() > 1
        best, least = optimum(draws)
        assert 0.5 * least <= bound_of(draws, best, seconds=0.3).value <= least + 1e-12


def test_no_tangent_survives_a_change_of_draws():
    rng = np.random.default_rng(11)
    problem = DistinctDraws(pc.as_partition_draws(random_draws(rng, 40, 7, 3)))
    ascent = module._Ascent(problem)
    ascent.use(problem.blocks(20))
    for _ in range(200):
        ascent.step()
    blocks = problem.blocks(1)
    ascent.use(blocks)
    tangents = ascent._tangents
    for x in np.array(list(product([0.0, 1.0], repeat=7))):
        for i in np.flatnonzero(x):
            exact = -2 * blocks.weights @ np.log2((blocks.labels == blocks.labels[:, [i]]) @ x)
            valid = tangents.tags[i] >= 0
            assert np.all(tangents.offsets[i, valid] + tangents.slopes[i, valid] @ x <= exact + 1e-12)


def test_equal_items_are_merged_and_the_work_is_told():
    labels = noisy_draws(np.random.default_rng(3), 20, 4, 3, 0.3)[:, [0, 1, 1, 2, 3, 3, 3]]
    draws = pc.as_partition_draws(labels)
    best, least = optimum(draws)
    bound = bound_of(draws, best)
    assert 0 < bound.value <= least and bound.partition is None
    assert bound.info.n_merged_items == 4 and bound.info.n_steps >= 1
    assert bound.info.size_groups[-1] == draws.n_items


def test_it_ends_where_it_gains_no_more():
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(0), 40, 5, 2, 0.1))
    best, least = optimum(draws)
    one, other = (bound_of(draws, best, seconds) for seconds in (3.0, 6.0))
    assert one.value == pytest.approx(least, abs=1e-6) and one.info.n_steps == other.info.n_steps


def test_too_many_items_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "1KB")
    with pytest.raises(MemoryError, match="VI of .* distinct items"):
        bound_of(pc.as_partition_draws(noisy_draws(np.random.default_rng(4), 20, 6, 3, 0.5)), np.zeros(6, np.int32))
