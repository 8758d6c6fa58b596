"""Searches of one large component: exact on small ones, never below what linkage programs do, ended by a flag."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from posterior_consensus.bounds.binder import BranchAndBound
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.problems.component import Component
from posterior_consensus.search import sparse_search
from posterior_consensus.search.sparse_search import search_component
from tests.helpers import COMPONENTS, greatest_weight, random_component, weight_of
from tests.kernels.checks import in_plain_python


def found(component, starts=(), seed=0, stop=0):
    return search_component(component, starts, np.random.default_rng(seed), np.full(1, stop, np.uint8))


def average_linkage(component):
    """Cut where the mean weight of two clusters becomes negative, by SciPy, from groups of one record."""
    weights = component.weights()
    most = weights.max()
    merges = linkage(squareform(most - weights, checks=False)[: weights.size], "average")
    return canonical_labels(fcluster(merges, most, "distance"))


@pytest.mark.parametrize("kind", COMPONENTS)
def test_small_components_are_solved(kind):
    for seed in range(30):
        component = random_component(np.random.default_rng(seed), 8, kind, several=seed % 2 == 1)
        if seed % 3 == 2:
            component = component._replace(limit=float(max(3, *component.sizes)))
        most = greatest_weight(component)
        labels = found(component)
        assert weight_of(component, labels) == pytest.approx(most, rel=1e-12), seed
        assert np.bincount(labels, component.sizes).max() <= component.limit, seed


@pytest.mark.parametrize("kind", COMPONENTS)
def test_middle_sized_components_are_proven_optimal(kind):
    n_proven = 0
    for seed in range(4):
        component = random_component(np.random.default_rng(seed), 24, kind)
        labels, weights = found(component), component.weights()
        bound = BranchAndBound(np.maximum(-weights, 0), np.maximum(weights, 0), labels, 0.0, WorkBudget(1.0))
        for _ in bound.steps():
            pass
        assert weight_of(component, labels) == pytest.approx(weight_of(component, bound.labels), rel=1e-9), seed
        n_proven += bound.bound == pytest.approx(component.most - weight_of(component, labels), rel=1e-9)
    assert n_proven >= 3


@pytest.mark.parametrize("kind", COMPONENTS)
def test_no_start_joins_more(kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        component = random_component(rng, 120, kind)
        n, weights = component.n_groups, component.weights()
        linked = np.zeros((n, n), bool)
        linked[np.arange(n), weights.argmax(axis=1)] = True
        given = canonical_labels(rng.integers(n // 4, size=n))
        labels = found(component, [given], seed)
        for start in (
            np.zeros(n, int),
            given,
            average_linkage(component),
            components(linked),
            components(linked & linked.T),
        ):
            assert weight_of(component, labels) >= weight_of(component, start) - 1e-9


def components(linked):
    return connected_components(linked, directed=False)[1]


@pytest.mark.parametrize("kind", COMPONENTS[:4])  # weights of pairs that must be apart say nothing in a mean
def test_average_linkage_is_that_of_scipy(kind):
    for seed in range(5):
        component = random_component(np.random.default_rng(seed), 80, kind)
        search = sparse_search._Search(component, np.random.default_rng(0), np.zeros(1, np.uint8))
        *_, by_mean, _ = search._usual_starts()
        np.testing.assert_array_equal(canonical_labels(by_mean), average_linkage(component))


def test_no_move_of_one_group_gains():
    """With groups of several records, to any cluster or alone."""
    component = random_component(np.random.default_rng(1), 60, several=True)
    labels = found(component)
    best = weight_of(component, labels)
    for group in range(component.n_groups):
        for k in range(labels.max() + 2):
            moved = labels.copy()
            moved[group] = k
            assert weight_of(component, moved) <= best + 1e-9


def test_a_seed_gives_one_partition():
    component = random_component(np.random.default_rng(2), 90)
    np.testing.assert_array_equal(found(component, seed=3), found(component, seed=3))


def test_plain_python_gives_the_same():
    component = random_component(np.random.default_rng(6), 20, several=True)
    with in_plain_python():
        plain = found(component)
    np.testing.assert_array_equal(found(component), plain)


def test_one_cluster_is_dissolved_within_its_room():
    # A perturbation took all items of a cluster twice, and wrote beyond its array: plain Python checks.
    n = 8
    indices = np.concatenate([np.delete(np.arange(n, dtype=np.int32), i) for i in range(n)])
    component = Component(np.arange(n + 1) * (n - 1), indices, np.ones(n * (n - 1)), np.ones(n, np.int64), 0.0)
    with in_plain_python():
        np.testing.assert_array_equal(found(component), np.zeros(n))


def test_ends_at_the_best_so_far(monkeypatch):
    component = random_component(np.random.default_rng(3), 90)
    stop = np.zeros(1, np.uint8)
    perturb, calls = sparse_search.kernels.perturb, []

    def interrupted(*arguments):
        calls.append(perturb(*arguments))
        stop[0] = 1
        return calls[-1]

    monkeypatch.setattr(sparse_search.kernels, "perturb", interrupted)
    monkeypatch.setattr(sparse_search, "_RANDOMS", 500)  # so that a run takes many calls
    labels = search_component(component, [], np.random.default_rng(0), stop)
    assert len(calls) == 1
    assert weight_of(component, labels) >= weight_of(component, average_linkage(component))


def test_stopped_at_once_gives_a_start():
    component = random_component(np.random.default_rng(4), 90)
    given = found(component)
    assert weight_of(component, found(component, [given], stop=1)) == pytest.approx(weight_of(component, given))


@pytest.mark.parametrize(("stop", "work"), [(1, 10**9), (0, 0)])
def test_nothing_merges_or_moves_once_stopped(stop, work, monkeypatch):
    component = random_component(np.random.default_rng(4), 90)
    monkeypatch.setattr(sparse_search, "_WORK", work)
    search = sparse_search._Search(component, np.random.default_rng(0), np.full(1, stop, np.uint8))
    alone = np.arange(component.n_groups)
    *_, by_mean, by_weight = search._usual_starts()
    np.testing.assert_array_equal([by_mean, by_weight], [alone, alone])
    if stop:  # moves are not counted
        np.testing.assert_array_equal(search.descend(alone.astype(np.int32)).labels, alone)


def test_work_ends_a_search(monkeypatch):
    component = random_component(np.random.default_rng(5), 90)
    monkeypatch.setattr(sparse_search, "_WORK", 1)
    monkeypatch.setattr(sparse_search.kernels, "perturb", None)  # which is not called
    assert weight_of(component, found(component)) > 0
