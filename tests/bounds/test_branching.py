"""Branch and bound on costs that no draws give, where programs are fractional more often."""

import numpy as np
import pytest

from posterior_consensus.bounds.binder import BranchAndBound
from posterior_consensus.bounds.bound import WorkBudget
from tests import reference

each_step = pytest.mark.parametrize("step", [0.0, 1.0])


def wheel(n_spokes):
    """A hub that everyone likes and a rim that nobody likes: its program is fractional for odd numbers of spokes."""
    weights = np.zeros((n_spokes + 1, n_spokes + 1))
    for i in range(n_spokes):
        weights[i, (i + 1) % n_spokes] = weights[(i + 1) % n_spokes, i] = -1.0
        weights[i, n_spokes] = weights[n_spokes, i] = 1.0
    return weights


def sparse(seed, n=7):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], (n, n)), 1)
    return upper + upper.T


def cost(weights, labels):
    """Sum over pairs of the weights that the partition does not follow."""
    together = np.equal.outer(labels, labels)
    return np.triu(np.where(together, np.maximum(-weights, 0), np.maximum(weights, 0)), 1).sum()


def least(weights):
    return min(cost(weights, np.array(p)) for p in reference.partitions(len(weights)))


def run(weights, step, budget, start=None):
    together, apart = np.maximum(-weights, 0), np.maximum(weights, 0)
    labels = np.zeros(len(weights), np.int32) if start is None else np.asarray(start, np.int32)
    search = BranchAndBound(together, apart, labels, step, budget)
    for _ in search.steps():
        pass
    return search


@each_step
def test_wheels(step):
    for n_spokes in (3, 5, 7):
        search = run(wheel(n_spokes), step, WorkBudget(60))
        assert search.bound == pytest.approx(least(wheel(n_spokes)), rel=1e-9)


def test_programs_print_nothing(capfd):
    assert run(wheel(5), 0.0, WorkBudget(60)).counts["n_programs"] > 0
    assert capfd.readouterr() == ("", "")


@each_step
@pytest.mark.parametrize("seed", range(10))
def test_sparse_weights(seed, step):
    weights = sparse(seed)
    start = reference.canonical(np.random.default_rng(seed).integers(4, size=len(weights)))
    search = run(weights, step, WorkBudget(60), start)
    optimum = least(weights)
    assert search.bound == pytest.approx(optimum, rel=1e-9)
    assert search.bound <= optimum
    assert cost(weights, search.labels) == optimum


def test_signs_alone_need_branches():
    n_branches = 0
    for seed in (0, 7, 8, 22):
        weights = np.sign(sparse(seed, 8) + np.where(np.eye(8), 0, 0.5))
        plain, stepped = (run(weights, step, WorkBudget(60)) for step in (0.0, 1.0))
        assert [plain.bound, stepped.bound] == pytest.approx([least(weights)] * 2, rel=1e-9)
        n_branches += plain.counts["n_branches"]
    assert n_branches > 0


@pytest.mark.parametrize("seed", range(10))
def test_holds_with_any_budget_and_more_does_not_bound_worse(seed):
    bounds = [run(sparse(seed), 0.0, WorkBudget(seconds)).bound for seconds in (1e-9, 1e-6, 1e-5, 1e-4)]
    assert bounds == sorted(bounds) and bounds[-1] <= least(sparse(seed)) + 1e-9
