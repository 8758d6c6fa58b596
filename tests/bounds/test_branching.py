"""Branch and bound on costs that no draws give, where programs are fractional more often."""

from itertools import combinations

import numpy as np
import pytest

from posterior_consensus.bounds.branching import Search
from posterior_consensus.bounds.budget import Deadline, WorkBudget
from tests import reference


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


def least(weights):
    """Least sum over pairs of the weights that a partition does not follow."""
    pairs = list(combinations(range(len(weights)), 2))
    return min(
        sum(max(-weights[i, j], 0) if p[i] == p[j] else max(weights[i, j], 0) for i, j in pairs)
        for p in reference.partitions(len(weights))
    )


def run(weights, step, budget, start=None):
    together, apart = np.maximum(-weights, 0), np.maximum(weights, 0)
    labels = np.zeros(len(weights), np.int32) if start is None else np.asarray(start, np.int32)
    search = Search(together, apart, labels, step, budget)
    for _ in search.steps():
        pass
    return search


@pytest.mark.parametrize("step", [0.0, 1.0])
@pytest.mark.parametrize("n_spokes", [3, 5, 7])
def test_wheels(n_spokes, step):
    search = run(wheel(n_spokes), step, Deadline(60))
    assert search.bound == pytest.approx(least(wheel(n_spokes)), rel=1e-9)


@pytest.mark.parametrize("step", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(60))
def test_sparse_weights(seed, step):
    weights = sparse(seed)
    start = reference.canonical(np.random.default_rng(seed).integers(4, size=len(weights)))
    search = run(weights, step, Deadline(60), start)
    optimum = least(weights)
    assert search.bound == pytest.approx(optimum, rel=1e-9)
    assert search.bound <= optimum
    labels = search.labels
    cost = sum(
        max(-weights[i, j], 0) if labels[i] == labels[j] else max(weights[i, j], 0)
        for i, j in combinations(range(len(weights)), 2)
    )
    assert cost == optimum


@pytest.mark.parametrize("step", [0.0, 1.0])
def test_signs_alone_need_branches(step):
    n_branches = 0
    for seed in range(12):
        weights = np.sign(sparse(seed, 8) + np.where(np.eye(8), 0, 0.5))
        search = run(weights, step, Deadline(60))
        assert search.bound == pytest.approx(least(weights), rel=1e-9)
        n_branches += search.counts["n_branches"]
    assert n_branches > 0 or step > 0


@pytest.mark.parametrize("seconds", [1e-9, 1e-6, 1e-5, 1e-4])
def test_holds_with_any_budget(seconds):
    for seed in range(20):
        assert run(sparse(seed), 0.0, WorkBudget(seconds)).bound <= least(sparse(seed)) + 1e-9


def test_more_budget_does_not_bound_worse():
    for seed in range(10):
        bounds = [run(sparse(seed), 0.0, WorkBudget(s)).bound for s in (1e-9, 1e-6, 1e-5, 1e-4)]
        assert bounds == sorted(bounds)
