"""The bound of one component: never below the best partition, equal to it where it says so."""

import time
from contextlib import nullcontext

import numpy as np
import pytest

from posterior_consensus.bounds import components, stars
from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.bounds.stars import StarBound, best_labels
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.problems.components import decomposed
from tests.helpers import COMPONENTS, greatest_weight, random_component, scored_pairs, weight_of
from tests.kernels.checks import in_plain_python


def some_labels(component, seed):
    return canonical_labels(np.random.default_rng(seed).integers(3, size=component.n_groups))


@pytest.mark.parametrize("kind", COMPONENTS)
def test_prices_bound_the_best_partition_whatever_is_known(kind):
    for seed in range(20):
        component = random_component(np.random.default_rng(seed), 8, kind, several=seed % 2 == 1)
        bound = StarBound(component, some_labels(component, seed))
        for seconds in (1e-9, 1e-4, 1.0):
            assert bound.raised(0.0, WorkBudget(seconds)) >= greatest_weight(component) - 1e-12, seed
        assert (
            bound.bound < component.most
            or component.n_groups < 4
            or bound.bound == pytest.approx(greatest_weight(component))
        )


@pytest.mark.parametrize("kind", COMPONENTS)
def test_gap_holds_from_any_labels(kind):
    for seed in range(30):
        component = random_component(np.random.default_rng(seed), 9, kind, several=seed % 2 == 1)
        start, optimum = some_labels(component, seed), greatest_weight(component)
        labels, gap = best_labels(component, start, WorkBudget(1.0))
        assert weight_of(component, labels) >= weight_of(component, start) - 1e-12
        assert optimum <= weight_of(component, labels) + gap + 1e-12, seed
        if gap == 0:
            assert weight_of(component, labels) == pytest.approx(optimum, rel=1e-9)


def test_hubs_are_proven():
    """Triangle inequalities alone leave half of a hub's weights open."""
    for seed in range(5):
        component = random_component(np.random.default_rng(seed), 40, "hub")
        labels, gap = best_labels(component, np.zeros(component.n_groups, np.int32), WorkBudget(2.0))
        assert gap == 0
        assert weight_of(component, labels) > 0


@pytest.mark.parametrize("kind", COMPONENTS)
def test_without_memory_for_a_matrix(kind, monkeypatch):
    """What a matrix proves, a bound without one does not contradict."""
    component = random_component(np.random.default_rng(1), 60, kind)
    start = np.arange(component.n_groups, dtype=np.int32)
    labels, gap = best_labels(component, start, WorkBudget(1.0))
    monkeypatch.setattr(stars.memory, "fits", lambda n_bytes: False)
    others, wider = best_labels(component, start, WorkBudget(1.0))
    assert wider < component.most - weight_of(component, others) or wider == 0
    assert weight_of(component, others) + wider >= weight_of(component, labels) - 1e-9
    assert weight_of(component, labels) + gap >= weight_of(component, others) - 1e-9


def test_a_step_closes_gaps_below_it():
    component = random_component(np.random.default_rng(2), 30, "noisy")
    labels, _ = best_labels(component, np.arange(component.n_groups, dtype=np.int32), WorkBudget(1.0))
    assert best_labels(component, labels, WorkBudget(1e-9), step=component.most)[1] == 0.0
    assert best_labels(component, labels, WorkBudget(1e-9))[1] > 0.0


def test_a_round_ends_when_the_time_is_over(monkeypatch):
    component = random_component(np.random.default_rng(3), 12, "noisy")
    bound = StarBound(component, some_labels(component, 0))
    monkeypatch.setattr(Deadline, "stopping", lambda budget: nullcontext(np.ones(1, np.uint8)))
    assert bound.raised(0.0, Deadline(60.0)) == pytest.approx(component.most)
    assert bound._rows.number[0] == 0


def test_another_thread_ends_kernels_at_a_deadline():
    with Deadline(0.01).stopping() as stop:
        assert any(stop[0] or time.sleep(0.01) for _ in range(2000))
    with WorkBudget(0.0).stopping() as stop:
        assert not stop[0]


def test_progress_moves_within_a_component(monkeypatch):
    rng = np.random.default_rng(1)
    source = scored_pairs(60, {(i, j): rng.random() for i in range(60) for j in range(i)})
    parts, shown = decomposed(source, binder()), []
    monkeypatch.setattr(components, "counting", lambda *_, **__: nullcontext(shown.append))
    components.bound_components(parts, parts.solved(), np.zeros(1), WorkBudget(0.1), np.arange(1))
    assert len(set(shown)) > 3 and shown == sorted(shown) and shown[-1] == 60


def test_plain_python_gives_the_same():
    component = random_component(np.random.default_rng(3), 12, "noisy", several=True)
    compiled = StarBound(component, some_labels(component, 0)).raised(0.0, WorkBudget(0.05))
    with in_plain_python(), np.errstate(over="ignore"):
        plain = StarBound(component, some_labels(component, 0)).raised(0.0, WorkBudget(0.05))
    assert plain == pytest.approx(compiled, rel=1e-9)
