"""The bound for VI by set partitioning: valid by enumeration, exact where it ends, and at any interruption."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds import vi_sets as module
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.distinct_draws import DistinctDraws
from posterior_consensus.bounds.vi_sets import distinct_blocks, sets_bound
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.kernels import vi_sets as kernels
from posterior_consensus.losses import vi
from tests.bounds.test_vi import ensemble, optimum
from tests.catalogue.posteriors import DEGENERATE, noisy_draws


def bound_of(draws, incumbent, seconds=1.0):
    return sets_bound(draws, incumbent, budget=WorkBudget(seconds), progressbar=False)


@pytest.mark.parametrize("seed", range(30))
def test_no_partition_is_below_the_bound(seed):
    draws = ensemble(seed)
    best, least = optimum(draws)
    for incumbent in (best, draws.labels[0].astype(np.int32), np.arange(draws.n_items, dtype=np.int32)):
        for seconds in (1e-3, 1e-2, 0.1):
            assert 0 <= bound_of(draws, incumbent, seconds).value <= least + 1e-12


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws_have_a_bound_that_is_finite_and_not_negative(name):
    draws = pc.as_partition_draws(DEGENERATE[name])
    best, least = optimum(draws)
    assert 0 <= bound_of(draws, best).value <= least + 1e-12


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
    with pytest.raises(MemoryError, match="VI of .* distinct items"):
        bound_of(pc.as_partition_draws(noisy_draws(np.random.default_rng(4), 20, 6, 3, 0.5)), np.zeros(6, np.int32))
