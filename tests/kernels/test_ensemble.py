import numpy as np
import pytest

from posterior_consensus.ensemble.partitions import canonical_rows
from posterior_consensus.kernels import ensemble
from tests import reference
from tests.helpers import one_hot
from tests.kernels.checks import run

SIZES = [(1, 1, 1), (9, 4, 3), (130, 3, 20), (300, 5, 290), (7, 70, 4)]  # items go in blocks of 128


def some_draws(n_items, n_draws, n_clusters):
    codes = np.random.default_rng(n_items).integers(n_clusters, size=(n_draws, n_items))
    labels, counts = canonical_rows(codes.astype(np.uint16), n_clusters)
    weights = np.random.default_rng(3).dirichlet(np.ones(n_draws))
    return labels, np.concatenate([[0], np.cumsum(counts)]), weights


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n_columns", [1, 3, 17])
def test_gather_and_scatter_are_products_with_the_one_hot_matrix(size, n_columns):
    labels, starts, weights = some_draws(*size)
    matrix, rng = one_hot(labels, starts), np.random.default_rng(4)
    values = rng.integers(-9, 10, (size[0], n_columns)).astype(float)
    table, _ = run(ensemble.scatter, labels, starts, values)
    np.testing.assert_array_equal(table, matrix.T @ values)
    gathered, _ = run(ensemble.gather, labels, starts, weights, table)
    np.testing.assert_allclose(gathered, reference.similarity(labels, weights) @ values, atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_joint_counts_are_contingency_tables_one_below_the_other(size):
    labels, starts, _ = some_draws(*size)
    partition = np.random.default_rng(5).integers(4, size=size[0]).astype(np.int32)
    counts, _ = run(ensemble.joint_counts, labels, starts, partition, 4)
    np.testing.assert_array_equal(counts, one_hot(labels, starts).T @ np.eye(4, dtype=int)[partition])


@pytest.mark.parametrize("size", [*SIZES, (2100, 2, 3)])  # these go in blocks of 1024 items
def test_similarity_rows_are_those_of_the_matrix(size):
    labels, _, weights = some_draws(*size)
    items = np.random.default_rng(7).integers(size[0], size=3)
    rows, _ = run(ensemble.similarity_rows, labels, weights, np.ascontiguousarray(labels[:, items].T))
    together = labels[:, items, np.newaxis] == labels[:, np.newaxis]
    np.testing.assert_allclose(rows, np.tensordot(weights, together, 1), rtol=1e-14)


@pytest.mark.parametrize("size", [*SIZES, (2100, 11, 3)])
@pytest.mark.parametrize("n_clusters", [2, 19])  # in one vector of columns, and in two
@pytest.mark.parametrize("most", [2**31 - 1, 2**12])  # of 32 bits, and of few, which add few draws at a time
def test_links_are_sums_of_counts(size, n_clusters, most, monkeypatch):
    monkeypatch.setattr(ensemble, "_MOST", most)
    labels, starts, weights = some_draws(*size)
    partition = np.random.default_rng(5).integers(n_clusters, size=size[0]).astype(np.int32)
    counts, matrix = ensemble.joint_counts(labels, starts, partition, n_clusters), one_hot(labels, starts)
    found, _ = run(ensemble.links, labels, starts, np.ones(len(labels)), counts)
    np.testing.assert_array_equal(found, matrix @ counts)
    weighted, _ = run(ensemble.links, labels, starts, weights, counts)
    np.testing.assert_array_equal(weighted, ensemble.gather(labels, starts, weights, counts))


@pytest.mark.parametrize("size", [*SIZES, (2100, 2, 3)])
def test_the_weight_of_draws_with_the_item_in_its_cluster(size):
    labels, starts, weights = some_draws(*size)
    rng = np.random.default_rng(8)
    targets, partition = rng.integers(-1, 4, size=starts[-1]), rng.integers(-1, 4, size=size[0]).astype(np.int32)
    found, _ = run(ensemble.weights_with, labels, starts, weights, targets, partition)
    np.testing.assert_allclose(found, weights @ (targets[starts[:-1, np.newaxis] + labels] == partition), rtol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_votes_go_to_the_targets_of_the_labels(size):
    labels, starts, weights = some_draws(*size)
    targets = np.random.default_rng(8).integers(-1, 4, size=starts[-1])
    found, _ = run(ensemble.votes, labels, starts, weights, targets, 4)
    table = targets[:, np.newaxis] == np.arange(4)
    np.testing.assert_allclose(found, one_hot(labels, starts) * np.repeat(weights, np.diff(starts)) @ table, atol=1e-14)


@pytest.mark.parametrize("size", SIZES[1:])
def test_refining_in_place_follows_the_definition_and_keeps_its_tables(size):
    labels, starts, weights = some_draws(*size)
    partition = reference.canonical(np.random.default_rng(6).integers(5, size=size[0])).astype(np.int32)
    n_clusters = partition.max() + 1
    counts = ensemble.joint_counts(labels, starts, partition, n_clusters)
    sizes = np.bincount(partition)
    arguments = (labels, starts, weights, partition, counts, sizes)
    _, (_, _, _, refined, counts, sizes) = run(ensemble.refine_in_place, *arguments)
    expected = reference.refine(reference.similarity(labels, weights), partition, "gauss-seidel", 1)
    np.testing.assert_array_equal(reference.canonical(refined), expected)
    np.testing.assert_array_equal(sizes, np.bincount(refined, minlength=n_clusters))
    np.testing.assert_array_equal(counts, ensemble.joint_counts(labels, starts, refined, n_clusters))


@pytest.mark.parametrize(
    ("n_draws", "n_items", "n_codes", "dtype"),
    [(1, 1, 1, np.uint8), (5, 9, 4, np.uint8), (3, 400, 300, np.uint16), (4, 6, 5000, np.uint16)],
)
def test_labels_are_numbered_by_first_appearance(n_draws, n_items, n_codes, dtype):
    codes = np.random.default_rng(1).integers(n_codes, size=(n_draws, n_items)).astype(dtype)
    n_clusters, (_, _, labels) = run(ensemble.canonicalize, codes, n_codes, np.empty_like(codes))
    np.testing.assert_array_equal(labels, [reference.canonical(row) for row in codes])
    np.testing.assert_array_equal(n_clusters, [np.unique(row).size for row in codes])
