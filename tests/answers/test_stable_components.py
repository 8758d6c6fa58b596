"""Stable components: signatures at threshold 1, below it what pairs of items connect."""

import itertools

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import array, check, scored_pairs


@pytest.fixture(scope="module")
def draws():
    return noisy_draws(np.random.default_rng(4), 20, 30, 3, 0.15)


def largest_first(classes):
    sizes = np.bincount(classes)
    order = sorted(range(sizes.size), key=lambda k: (-sizes[k], classes.tolist().index(k)))
    return np.argsort(order)[classes]


def test_at_level_1_a_component_is_a_signature_of_draws_with_weight(draws):
    few = draws[:3]
    found = pc.stable_components(few)
    signatures = np.unique(few.T, axis=0, return_inverse=True)[1].ravel()
    np.testing.assert_array_equal(found.labels, largest_first(signatures))
    assert found.sizes.values.tolist() == sorted(np.bincount(signatures), reverse=True)
    assert found.n_components == len(np.unique(few.T, axis=0)) == int(found.curve[-1])
    weighted = pc.as_partition_draws(np.concatenate([few, [range(30)]]), weights=[1, 1, 1, 0])
    renamed = np.array([np.random.default_rng(t).permutation(9)[draw] for t, draw in enumerate(few)])
    for other in (weighted, renamed):
        for name in ("labels", "curve"):
            np.testing.assert_array_equal(getattr(pc.stable_components(other), name), getattr(found, name))


@pytest.mark.parametrize(("threshold", "weighted"), [(0.2, True), (0.5, False), (0.75, True), (0.9, False)])
def test_below_it_items_are_connected_by_pairs(draws, threshold, weighted):
    weights = np.random.default_rng(1).exponential(size=20) if weighted else None
    found = pc.stable_components(pc.as_partition_draws(draws, weights=weights), threshold)
    linked = reference.similarity(draws, weights) >= threshold - 1e-12
    _, classes = connected_components(linked, directed=False)
    np.testing.assert_array_equal(found.labels, largest_first(classes))
    assert found.n_components == int(found.curve.sel(threshold=threshold, method="nearest"))


def test_complete_components_hold_the_level_within_and_have_falling_sizes(draws):
    for z, threshold in itertools.product((draws, *DEGENERATE.values()), (0.5, 0.75, 0.9)):
        similarity = reference.similarity(z)
        found, connected = (pc.stable_components(z, threshold, linkage=kind) for kind in ("complete", "single"))
        for members in found.components:
            assert similarity[np.ix_(members, members)].min() >= threshold - 1e-12
            assert np.unique(connected.labels.values[members]).size == 1
        assert found.n_components >= connected.n_components
        assert np.all(np.diff(found.curve) >= 0) and found.curve[-1] == pc.stable_components(z).n_components
        assert found.sizes.sum() == z.shape[1] and np.all(np.diff(found.sizes) <= 0)


def test_a_similarity_matrix_and_probabilities_serve_too(draws):
    pairs = pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))
    for threshold in (0.6, 1.0):
        found = pc.stable_components(pairs, threshold)
        np.testing.assert_array_equal(found.labels, pc.stable_components(draws, threshold).labels)
    assert found.n_draws is None
    soft = pc.as_allocation_probabilities(np.eye(2)[[[0, 0, 1, 1]] * 5])
    assert pc.stable_components(soft).labels.values.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("unscored", [0.0, 0.4])
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.75, 1.0])
def test_components_of_few_scored_pairs_are_those_of_the_matrix(threshold, unscored, rng):
    places = rng.choice(list(itertools.combinations(range(30), 2)), 50, replace=False)
    pairs = scored_pairs(30, {tuple(place): rng.choice([0.2, 0.5, 0.75, 0.9]) for place in places}, unscored)
    matrix = np.full((30, 30), unscored)
    scored = pairs.scored.tocoo()
    matrix[scored.coords] = scored.data
    np.fill_diagonal(matrix, 1.0)
    found, expected = (pc.stable_components(one, threshold) for one in (pairs, pc.as_pair_similarity(matrix)))
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.curve, expected.curve)


def test_items_keep_their_names():
    found = pc.stable_components(array(np.array([[0, 1, 1, 0]] * 3), ("sample", "obs"), obs=list("abcd")))
    assert found.components == [["a", "d"], ["b", "c"]]
    assert found.labels["obs"].values.tolist() == list("abcd")
    assert found.to_dataframe()["obs"].tolist() == ["a, d", "b, c"]


def test_many_items_need_no_matrix_at_level_1(monkeypatch, draws):
    monkeypatch.setattr("posterior_consensus.answers.links._MOST_IN_CURVE", 5)
    found = pc.stable_components(draws)
    assert found.curve is None and found.n_components == len(np.unique(draws.T, axis=0))
    check(lambda x: x.plot(), found, ValueError, ["`components`", "curve"])
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "1KB")
    check(lambda threshold: pc.stable_components(draws, threshold), 0.9, MemoryError, ["At threshold 1"])


def test_bad_arguments():
    for changes, error, part in [
        *(({"threshold": threshold}, ValueError, "between 0, excluded, and 1") for threshold in (0, 1.01, -1, np.nan)),
        ({"threshold": "half"}, TypeError, "number; got 'half'"),
        ({"linkage": "average"}, ValueError, "'single', 'complete'; got 'average'"),
    ]:
        check(lambda x: pc.stable_components([[0, 1]], **x), changes, error, [f"`{next(iter(changes))}`", part])
