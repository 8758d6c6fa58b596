"""The bound of one component: never below the best partition, equal to it where it says so."""

import numpy as np
import pytest

from posterior_consensus.bounds import stars
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.stars import StarBound, best_labels
from posterior_consensus.ensemble.partitions import canonical_labels, enumerate_partitions
from tests.helpers import random_component
from tests.kernels.checks import in_plain_python

KINDS = "chain", "hub", "overlapping", "noisy", "signed"


def value(component, labels):
    """Sum of the dense weights over the pairs that labels join."""
    return float(component.weights()[np.equal.outer(labels, labels)].sum() / 2)


def greatest(component):
    partitions = np.concatenate(list(enumerate_partitions(component.n_groups)))
    first, second = np.triu_indices(component.n_groups, 1)
    return (partitions[:, first] == partitions[:, second]).dot(component.weights()[first, second]).max()


def some_labels(component, seed):
    return canonical_labels(np.random.default_rng(seed).integers(3, size=component.n_groups))


@pytest.mark.parametrize("kind", KINDS)
def test_prices_bound_the_best_partition_whatever_is_known(kind):
    for seed in range(20):
        component = random_component(np.random.default_rng(seed), 8, kind, several=seed % 2 == 1)
        bound = StarBound(component, some_labels(component, seed))
        for seconds in (1e-9, 1e-4, 1.0):
            assert bound.raised(0.0, WorkBudget(seconds)) >= greatest(component) - 1e-12, seed
        assert (
            bound.bound < component.most or component.n_groups < 4 or bound.bound == pytest.approx(greatest(component))
        )


@pytest.mark.parametrize("kind", KINDS)
def test_gap_holds_from_any_labels(kind):
    for seed in range(30):
        component = random_component(np.random.default_rng(seed), 9, kind, several=seed % 2 == 1)
        start, optimum = some_labels(component, seed), greatest(component)
        labels, gap = best_labels(component, start, WorkBudget(1.0))
        assert value(component, labels) >= value(component, start) - 1e-12
        assert optimum <= value(component, labels) + gap + 1e-12, seed
        if gap == 0:
            assert value(component, labels) == pytest.approx(optimum, rel=1e-9)


def test_hubs_are_proven():
    """Triangle inequalities alone leave half of a hub's weights open."""
    for seed in range(5):
        component = random_component(np.random.default_rng(seed), 40, "hub")
        labels, gap = best_labels(component, np.zeros(component.n_groups, np.int32), WorkBudget(2.0))
        assert gap == 0
        assert value(component, labels) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_without_memory_for_a_matrix(kind, monkeypatch):
    """What a matrix proves, a bound without one does not contradict."""
    component = random_component(np.random.default_rng(1), 60, kind)
    start = np.arange(component.n_groups, dtype=np.int32)
    labels, gap = best_labels(component, start, WorkBudget(1.0))
    monkeypatch.setattr(stars.memory, "fits", lambda n_bytes: False)
    others, wider = best_labels(component, start, WorkBudget(1.0))
    assert wider < component.most - value(component, others) or wider == 0
    assert value(component, others) + wider >= value(component, labels) - 1e-9
    assert value(component, labels) + gap >= value(component, others) - 1e-9


def test_a_step_closes_gaps_below_it():
    component = random_component(np.random.default_rng(2), 30, "noisy")
    labels, _ = best_labels(component, np.arange(component.n_groups, dtype=np.int32), WorkBudget(1.0))
    assert best_labels(component, labels, WorkBudget(1e-9), step=component.most)[1] == 0.0
    assert best_labels(component, labels, WorkBudget(1e-9))[1] > 0.0


def test_plain_python_gives_the_same():
    component = random_component(np.random.default_rng(3), 12, "noisy", several=True)
    compiled = StarBound(component, some_labels(component, 0)).raised(0.0, WorkBudget(0.05))
    with in_plain_python(), np.errstate(over="ignore"):
        plain = StarBound(component, some_labels(component, 0)).raised(0.0, WorkBudget(0.05))
    assert plain == pytest.approx(compiled, rel=1e-9)
