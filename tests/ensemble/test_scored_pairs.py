"""Scored pairs say of every quantity what the dense matrix of the same similarities says."""

import numpy as np
import pytest
import xarray as xr
from scipy import sparse

import posterior_consensus as pc
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.scored_pairs import PairConstraints, ScoredPairs

N_ITEMS = 12


def both(unscored):
    """Scored pairs and the dense matrix; items 0 and 1 are twins, and items 2 and 3 have a score of 0."""
    rng = np.random.default_rng(1)
    is_scored = rng.random((N_ITEMS, N_ITEMS)) < 0.3
    is_scored[:2], is_scored[2, 3] = True, True
    is_scored = np.triu(is_scored, 1) | np.triu(is_scored, 1).T
    values = rng.random((N_ITEMS, N_ITEMS))
    values[:2], values[0, 1], values[2, 3] = 0.25, 1.0, 0.0
    values = np.triu(values, 1) + np.triu(values, 1).T
    dense = np.where(is_scored, values, unscored)
    np.fill_diagonal(dense, 1.0)
    row, column = np.nonzero(is_scored)
    scored = sparse.coo_array((values[row, column], (row, column)), values.shape).tocsr()
    items = Items(N_ITEMS, "item", xr.Coordinates())
    return ScoredPairs(items, scored, unscored), PairSimilarity(items, dense)


@pytest.mark.parametrize("unscored", [0.0, 0.4, 1.0])
def test_parts_of_the_matrix_are_those_of_the_dense_matrix(unscored):
    pairs, dense = both(unscored)
    for part in (
        {"nearest": 1},
        {"nearest": 4},
        {"nearest": N_ITEMS - 1},
        {"threshold": 0.0},
        {"threshold": 0.4},
        {"threshold": 0.9},
    ):
        ours, theirs = (pc.posterior_similarity_matrix(source, **part) for source in (pairs, dense))
        assert ours.nnz == theirs.nnz
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_allclose(ours.data, theirs.data)


@pytest.mark.parametrize("unscored", [0.0, 0.4, 1.0])
def test_stable_components_are_those_of_the_dense_matrix(unscored):
    few = np.arange(2, N_ITEMS)  # of whom each has fewer scored pairs than others
    pairs, dense = (source.of_items(few) for source in both(unscored))
    for level in (0.25, 0.4, 0.6, float(pairs.scored.data.max()), 1.0):
        ours, theirs = (pc.stable_components(source, level) for source in (pairs, dense))
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        np.testing.assert_array_equal(ours.curve, theirs.curve)


def test_a_score_of_zero_is_a_scored_pair():
    pairs, _ = both(0.4)
    first, second, values = pairs.pairs
    assert pairs.n_scored == values.size and pairs.n_unscored == N_ITEMS * (N_ITEMS - 1) // 2 - values.size
    assert np.all(first < second) and values[(first == 2) & (second == 3)] == 0


def test_constraints_of_some_items_keep_their_pairs():
    pairs, two = np.array([[0, 2], [1, 3]]), np.array([0, 0, 1, 1, -1], np.int32)
    part = PairConstraints(pairs, pairs[::-1], two).of_items(np.array([3, 1, 4]), 5)
    assert part.must_link.tolist() == part.cannot_link.tolist() == [[1, 0]] and part.data_set.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("labels", "broken"),
    [
        ([0, 1, 0, 1, 1], None),
        ([0, 1, 2, 1, 1], (0, 2)),
        ([0, 0, 0, 1, 1], (0, 1)),
        ([0, 1, 0, 0, 1], (2, 3)),
    ],
)
def test_a_broken_constraint_is_named(labels, broken):
    kept = PairConstraints(np.array([[0, 2]]), np.array([[0, 1]]), np.array([-1, -1, 0, 0, -1], np.int32))
    assert kept.first_broken(np.array(labels)) == broken
