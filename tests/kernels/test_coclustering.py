import numpy as np
import pytest

from posterior_consensus.kernels import coclustering
from tests import reference
from tests.kernels.checks import run

# Items in tiles of 32, draws in words of 64, labels in planes of four bits.
SIZES = [(1, 1, 1), (2, 64, 2), (33, 65, 3), (31, 63, 16), (32, 130, 17), (65, 7, 60)]


def draws_of(n_items, n_draws, n_clusters, dtype=np.uint8):
    return np.random.default_rng(n_items).integers(n_clusters, size=(n_draws, n_items)).astype(dtype)


def planes_for(n_clusters):
    return 4 * max(1, -(-(n_clusters - 1).bit_length() // 4))


@pytest.mark.parametrize(("n_items", "n_draws", "n_clusters"), [*SIZES, (40, 5, 400), (35, 3, 5000)])
def test_counts_of_two_blocks_add_up_to_the_similarity(n_items, n_draws, n_clusters):
    labels = draws_of(n_items, n_draws, n_clusters, np.uint16)
    counts = np.full((n_items, n_items), np.nan)  # the first block overwrites
    n_planes = planes_for(n_clusters)
    for first, divisor in [(True, 1.0), (False, 2.0 * n_draws)]:
        planes, _ = run(coclustering.pack_bit_planes, labels, n_planes)
        arguments = (planes, n_draws, counts, first, divisor)
        counts = run(coclustering.add_coclustering_counts, *arguments)[1][2]
    np.testing.assert_array_equal(counts, reference.similarity(labels))


@pytest.mark.parametrize(("n_items", "n_draws", "n_clusters"), SIZES)
def test_weights_add_up_to_the_weighted_similarity(n_items, n_draws, n_clusters):
    labels = draws_of(n_items, n_draws, n_clusters)
    weights = np.random.default_rng(2).dirichlet(np.ones(n_draws))
    out = np.zeros((n_items, n_items))
    _, (_, _, similarity) = run(coclustering.add_coclustering_weights, labels, weights, out)
    np.testing.assert_allclose(similarity, reference.similarity(labels, weights), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(similarity, similarity.T)


def grouped(n_items, n_clusters, sizes):
    labels = [
        draws_of(n_items, size, n_clusters) if k else np.zeros((size, n_items), np.uint8)
        for k, size in enumerate(sizes)
    ]
    planes = [coclustering.pack_bit_planes(group, planes_for(n_clusters)) for group in labels]
    words = np.cumsum([0, *map(len, planes)])
    return labels, (np.concatenate(planes), words, np.array(sizes), n_items)


@pytest.mark.parametrize(("n_items", "sizes"), [(2, (3, 70)), (33, (64, 65, 7)), (65, (1, 5)), (130, (9, 9, 9, 130))])
def test_groups_are_compared_as_their_matrices(n_items, sizes):
    labels, arguments = grouped(n_items, 3, sizes)
    matrices = np.array([reference.similarity(group) for group in labels])
    pairs = np.triu_indices(n_items, 1)
    shares = matrices[:, *pairs]
    (squares, pooled, widest, where), _ = run(coclustering.compare_groups, *arguments)
    np.testing.assert_allclose(squares.sum(axis=0), (shares**2).sum(axis=1), rtol=1e-12)
    assert pooled.sum() == pytest.approx((shares.mean(axis=0) ** 2).sum(), rel=1e-12)
    assert widest.max() == pytest.approx(np.ptp(shares, axis=0).max(), abs=1e-12)
    for size, (i, j) in zip(widest, where, strict=True):
        assert (i, j) == (-1, -1) if size < 0 else i < j and np.ptp(matrices[:, i, j]) == pytest.approx(size)


@pytest.mark.parametrize(("n_items", "sizes"), [(1, (3, 2)), (33, (64, 65, 7)), (65, (1, 5)), (130, (9, 9, 9, 130))])
def test_spread_of_batches_is_that_of_their_counts(n_items, sizes):
    labels, arguments = grouped(n_items, 3, sizes)
    counts = np.array([len(group) * reference.similarity(group) for group in labels])
    expected = ((counts - np.array(sizes)[:, np.newaxis, np.newaxis] * counts.sum(axis=0) / sum(sizes)) ** 2).sum(
        axis=0
    )
    ends = np.arange(len(sizes)) % 2 == 1
    ends[-1] = True
    chains = np.split(np.arange(len(sizes)), np.flatnonzero(ends[:-1]) + 1)
    of_one = counts.sum(axis=0) / sum(sizes)
    of_chains = sum((own - size * of_one) ** 2 for own, size in of_parts(counts, sizes, chains))
    (spread, between), _ = run(coclustering.spread_of_batches, *arguments, ends)
    np.testing.assert_allclose(spread, expected, atol=1e-9)
    np.testing.assert_allclose(between, of_chains, atol=1e-9)
    np.testing.assert_array_equal(np.diag(spread), 0)
    np.testing.assert_array_equal(np.diag(between), 0)


def of_parts(counts, sizes, parts):
    return [(counts[part].sum(axis=0), np.array(sizes)[part].sum()) for part in parts]
