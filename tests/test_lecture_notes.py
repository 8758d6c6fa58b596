"""Worked examples of "Lecture 09: Clustering Aggregation", unsigned notes of a course (docs/developers/papers.md)."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import posterior_consensus as pc
from posterior_consensus.search.classical import leading_of

A = np.array([[3.0, 1.0], [2.0, 2.0], [0.0, 1.0]])


def test_co_association():
    """Items 1 and 2 are together in 8 of 10 runs, items 1 and 3 in 3."""
    runs = np.array([[0, 0, 0]] * 2 + [[0, 0, 1]] * 6 + [[0, 1, 0]] + [[0, 1, 2]])
    similarity = pc.posterior_similarity_matrix(runs).values
    assert similarity[0, 1] == 0.8 and similarity[0, 2] == 0.3


def test_disagreement_distance():
    """Four of the ten pairs of five points: Binder's loss counts them twice, among 25 ordered pairs."""
    one, other = [1, 1, 2, 2, 3], [1, 2, 2, 3, 3]
    pairs = [(i, j) for j in range(5) for i in range(j)]
    disagreeing = [p for p in pairs if (one[p[0]] == one[p[1]]) != (other[p[0]] == other[p[1]])]
    assert disagreeing == [(0, 1), (1, 2), (2, 3), (3, 4)]
    n = len(one)
    assert pc.partition_loss(one, other, loss="binder") * n / (n - 1) == pytest.approx(0.4)
    assert pc.partition_loss(one, one, loss="binder") == 0
    apart = pc.partition_loss(np.zeros(n, int), np.arange(n), loss="binder")
    assert apart * n / (n - 1) == pytest.approx(1)  # every pair disagrees


def test_singular_values_and_vectors_of_a_3_by_2_matrix():
    """The eigenvectors that "spectral" takes of A A' are A's left singular vectors, their eigenvalues the squares."""
    np.testing.assert_array_equal(A.T @ A, [[13, 7], [7, 6]])
    squares = (19 + np.array([1, -1]) * np.sqrt(245)) / 2
    np.testing.assert_allclose(squares, [17.326, 1.674], atol=5e-4)
    left = leading_of(aslinearoperator(A @ A.T), 2).vectors
    np.testing.assert_allclose(np.sum(left * (A @ A.T @ left), axis=0), squares, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(squares), [4.16, 1.29], atol=5e-3)
    printed = np.array([[0.741, -0.563], [0.662, 0.504], [0.126, 0.66]])
    np.testing.assert_allclose(np.abs(left), np.abs(printed), atol=3e-3)
    right = (A.T @ left) / np.sqrt(squares)
    np.testing.assert_allclose(np.abs(right), np.array([[0.851, 0.526], [0.526, 0.851]]), atol=1e-3)


def test_best_approximation_of_rank_one():
    """The notes print 1.82 where their own factors, 4.16 x 0.741 x 0.526, make 1.62."""
    first = leading_of(aslinearoperator(A @ A.T), 1).vectors
    one = first @ (first.T @ A)
    np.testing.assert_allclose(one, [[2.62, 1.62], [2.34, 1.45], [0.44, 0.28]], atol=8e-3)
    assert np.sum((A - one) ** 2) == pytest.approx(1.674, abs=5e-4)  # the square of the other singular value


def test_similarities_of_rank_one():
    """All items always together: one axis has all the variation, and after centring there is none."""
    whole = pc.item_embedding(np.zeros((4, 5), int), centred=False)
    np.testing.assert_allclose(whole, np.outer(np.ones(5), [1, 0]), atol=1e-9)
    assert whole["share"].values == pytest.approx([1, 0])
    assert not pc.item_embedding(np.zeros((4, 5), int)).values.any()


def test_centred_columns_covariance_and_scores():
    """The steps of the notes: s_i = sqrt(lambda_i (n - 1)) of the covariance matrix, scores U S, shares of variance."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=(6, 12))
    table = np.hstack([np.eye(3)[row] for row in labels]) / np.sqrt(6)
    centred = table - table.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / 11)
    order = np.argsort(-variances)[:3]
    found = pc.item_embedding(labels, n_axes=3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), np.sqrt(11 * variances[order]), rtol=1e-8)
    np.testing.assert_allclose(np.abs(found), np.abs(centred @ directions[:, order]), atol=1e-8)
    np.testing.assert_allclose(found["share"], variances[order] / variances.sum(), rtol=1e-8)
