"""Every bound against the least loss of all partitions."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.bounds.binder import binder_bound
from tests import reference
from tests.ensembles import noisy_draws, random_draws

COSTS = [1.0, 0.5, 1.6, 0.25]


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
    return binder_bound(taken, pc.binder(a), taken.as_labels(incumbent), seconds=seconds)


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
