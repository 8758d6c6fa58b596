"""The semidefinite relaxation of Binder's expected loss: below the least, and used where a gap is left."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds import binder
from posterior_consensus.bounds.binder import BranchAndBound, binder_bound, pair_costs
from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.bounds.sdp import PairRelaxation
from tests import reference
from tests.catalogue.posteriors import noisy_draws, random_draws


def costs_of(labels, loss, weights=None):
    draws = pc.as_partition_draws(labels, weights=weights)
    together, apart, signature = pair_costs(draws, loss)
    unit = loss.scale(draws.n_items) / draws.n_draws
    return together, apart, signature, unit


@pytest.mark.parametrize("seed", range(9))
def test_never_above_the_least_of_all_partitions(seed):
    rng, a = np.random.default_rng(seed), (1.0, 0.6, 1.5)[seed // 3]
    labels = random_draws(rng, 8, 6, 3) if seed % 2 else noisy_draws(rng, 8, 6, 3, 0.4)[:, [0, 1, 2, 3, 0, 1]]
    weights = rng.exponential(size=8) if seed % 3 == 0 else None
    together, apart, signature, unit = costs_of(labels, pc.binder(a), weights)
    start = rng.integers(3, size=len(together)).astype(np.int32)
    search = BranchAndBound(together, apart, start, 0.0, WorkBudget(0))
    relaxation = PairRelaxation(search._root, start, WorkBudget(0.05))
    bounds = [unit * value for value in relaxation.bounds()]
    least = reference.least_expected(labels, lambda one, other: reference.binder(one, other, a), weights)
    assert relaxation.n_iter == 25 * len(bounds) >= 25
    assert max(bounds) <= least + 1e-12
    assert max(bounds) >= 0.8 * least  # within a fifth: no useless bound
    assert signature.size == 6


def test_narrows_the_gap_of_very_noisy_draws(monkeypatch):
    labels = noisy_draws(np.random.default_rng(1), 20, 100, 6, 0.75)
    loss = pc.binder(tau=0.2)
    draws = pc.as_partition_draws(labels)
    best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
    start = draws.as_labels(best)
    relaxed = binder_bound(draws, loss, start, budget=WorkBudget(1.0))
    assert relaxed.info.n_steps > 0 and relaxed.method == "semidefinite relaxation"
    monkeypatch.setattr(binder, "SHARE_OF_RELAXATION", 0.0)
    without = binder_bound(draws, loss, start, budget=WorkBudget(1.0))
    assert without.info.n_steps == 0 and without.info.n_branches > 0
    assert best.expected_loss - relaxed.value < 0.5 * (best.expected_loss - without.value)
    assert relaxed.value <= best.expected_loss


def test_what_is_proven_is_not_relaxed():
    labels = noisy_draws(np.random.default_rng(1), 20, 40, 3, 0.3)
    draws = pc.as_partition_draws(labels)
    best = pc.consensus_partition(draws, loss="binder", method="exact", progressbar=False)
    assert best.optimality_gap == 0 and best.info.n_steps == 0


def test_beyond_the_work_but_within_the_time():
    work, clock = WorkBudget(10.0), Deadline(10.0)
    assert work.extra(0.1).left == pytest.approx(1.0) and work.left == 10.0
    assert clock.extra(0.1).left == pytest.approx(1.0, abs=0.01) and clock.left <= 9.01
