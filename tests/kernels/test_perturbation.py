from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp, softmax

from posterior_consensus.kernels import perturbation
from tests.kernels.checks import run

SHAPES = [(1, 1), (2, 4), (4, 2), (3, 3), (5, 4), (1, 5), (5, 1)]


def matchings(shape, width):
    """Every way to match the rows with the columns of a square of this width, as tables of 0 and 1 of this shape."""
    square = np.eye(width, dtype=int)
    return np.array([square[list(columns)][: shape[0], : shape[1]] for columns in permutations(range(width))])


def mean_matching(table, width, gain=1.0):
    """Logarithm of the sum over all ways, and their mean, each with the exponential of its gain as its weight."""
    ways = matchings(table.shape, width)
    gains = gain * (ways * table).sum(axis=(1, 2))
    return logsumexp(gains), np.tensordot(softmax(gains), ways, 1)


def best_matching(table):
    matches = np.zeros(table.shape)
    matches[linear_sum_assignment(table, maximize=True)] = 1.0
    return matches


@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0, 1e6])
def test_average_of_matchings_is_the_sum_over_all(scale):
    rng = np.random.default_rng(1)
    tables = [rng.random((height, 4)) for height in (1, 3, 4, 6)]
    starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
    matches = np.concatenate([best_matching(table) for table in tables])
    scales, rows, widths = scale * np.array([1.0, 2.0, 0.5, 1.0]), np.arange(4), np.array([4, 4, 4, 6])
    arguments = np.concatenate(tables), starts, widths, scales, rows, matches
    logs, (*_, matches) = run(perturbation.average_matchings, *arguments, rtol=1e-12)
    for t, table in enumerate(tables):
        log, mean = mean_matching(table, widths[t], scales[t])
        assert logs[t] == pytest.approx(log, rel=1e-12)
        np.testing.assert_allclose(matches[starts[t] : starts[t + 1]], mean, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_rectangular_tables_and_labels_without_items(shape):
    table = np.random.default_rng(2).random(shape)
    for width in range(max(shape), 6):
        arguments = table, np.array([0, shape[0]]), np.array([width]), np.ones(1), np.zeros(1, int)
        logs, (*_, matches) = run(perturbation.average_matchings, *arguments, best_matching(table), rtol=1e-12)
        log, mean = mean_matching(table, width)
        assert logs[0] == pytest.approx(log, abs=1e-12)
        np.testing.assert_allclose(matches, mean, atol=1e-12)


def test_draws_that_are_not_named_keep_their_matching():
    table = np.random.default_rng(3).random((40 * 2, 2))
    matches = np.concatenate([best_matching(table[k : k + 2]) for k in range(0, 80, 2)])
    rows = np.arange(1, 40, 2)
    widths = np.full(40, 2)
    arguments = table, np.arange(0, 81, 2), widths, np.ones(40), rows, matches
    _, (*_, after) = run(perturbation.average_matchings, *arguments, rtol=1e-12)
    changed = (after != matches).reshape(40, 4).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(changed), rows)


def test_held_out_votes_average_over_matchings_found_without_the_item():
    rng = np.random.default_rng(4)
    n_items, n_clusters = 5, 3
    labels = np.array([[0, 1, 1, 2, 0], [0, 0, 1, 1, 1], [0, 1, 2, 3, 1]], np.uint8)
    sizes = labels.max(axis=1).astype(int) + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    memberships = rng.dirichlet(np.ones(n_clusters), n_items)
    gains, counts = np.array([0.7, 1.5, 1.1]), np.array([1.0, 2.0, 0.5])
    matches, expected = np.zeros((starts[-1], n_clusters)), np.zeros((n_items, n_clusters))
    for t, row in enumerate(labels):
        ways = matchings((sizes[t], n_clusters), max(sizes[t], n_clusters))
        with_all = np.exp([gains[t] * sum(way[row[i]] @ memberships[i] for i in range(n_items)) for way in ways])
        matches[starts[t] : starts[t + 1]] = np.tensordot(with_all / with_all.sum(), ways, 1)
        for i in range(n_items):
            others = [j for j in range(n_items) if j != i]
            weights = np.exp([gains[t] * sum(way[row[j]] @ memberships[j] for j in others) for way in ways])
            without = np.tensordot(weights / weights.sum(), ways, 1)[row[i]]
            expected[i] += counts[t] * np.log(1 - without + without * np.exp(gains[t]))
    votes, _ = run(perturbation.held_out_votes, labels, starts, counts, gains, matches, memberships, rtol=1e-12)
    np.testing.assert_allclose(votes, expected, atol=1e-12)


def test_sure_matches_give_the_whole_vote_in_blocks_of_items():
    rng = np.random.default_rng(5)
    labels = rng.integers(3, size=(2, 300)).astype(np.uint8)
    matches = np.concatenate([np.eye(3), np.eye(3)[[1, 2, 0]]])
    memberships = rng.dirichlet(np.ones(3), 300)
    gains = np.array([0.5, 2.0])
    arguments = labels, np.array([0, 3, 6]), np.ones(2), gains, matches, memberships
    votes, _ = run(perturbation.held_out_votes, *arguments, rtol=1e-12)
    expected = 0.5 * np.eye(3)[labels[0]] + 2.0 * np.eye(3)[[1, 2, 0]][labels[1]]
    np.testing.assert_allclose(votes, expected, atol=1e-12)
