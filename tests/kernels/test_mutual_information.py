"""Moves that raise mutual informations, beside their definition."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

from posterior_consensus.kernels import mutual_information as kernels
from tests.kernels import checks
from tests.reference import information_of_table

GO_ON = np.zeros(1, np.uint8)


def some_table(seed, shape=(12, 7)):
    shares = np.random.default_rng(seed).poisson(1.5, shape).astype(float)
    shares[:, 0] += 1
    shares[0] += 1
    return shares / shares.sum()


def some_labels(seed, m, n, k):
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(np.arange(n) % k) for _ in range(m)])


def test_profiles_are_sums_over_clusters_of_columns():
    shares, labels = some_table(1), some_labels(2, 3, 7, 4)
    found = kernels.profiles_of(sparse.csr_array(shares), labels, 4)
    expected = np.concatenate([[shares[:, one == k].sum(axis=1) for k in range(4)] for one in labels])
    np.testing.assert_allclose(found, expected.T, atol=1e-15)


@pytest.mark.parametrize("seed", range(2))
def test_no_single_move_is_left_that_raises_the_sum(seed):
    shares, columns, rows = some_table(seed), some_labels(seed, 2, 7, 3), some_labels(seed + 1, 3, 12, 4)
    profiles = kernels.profiles_of(sparse.csr_array(shares), columns, 3)
    orders = np.stack([np.random.default_rng(k).permutation(12) for k in range(3)])
    labels = rows.copy()
    values = kernels.climb(profiles, shares.sum(axis=1), 2.0, 4, orders, 100, labels, GO_ON)
    sums = [[sum(information_of_table(shares, one, c) for c in columns) for one in both] for both in (rows, labels)]
    np.testing.assert_allclose(values - values[0], np.array(sums[1]) - sums[1][0], atol=1e-12)  # but for a constant
    assert np.all(np.greater(sums[1], sums[0]))
    for found, value in zip(labels, sums[1], strict=True):
        assert np.unique(found).size == 4  # no cluster is emptied
        for item, k in itertools.product(range(12), range(4)):
            moved = found.copy()
            moved[item] = k
            if np.unique(moved).size == 4:
                assert sum(information_of_table(shares, moved, one) for one in columns) <= value + 1e-12


def test_no_item_moves_once_it_is_to_stop():
    shares, columns, labels = some_table(1), some_labels(1, 2, 7, 3), some_labels(2, 1, 12, 4)
    profiles, before = kernels.profiles_of(sparse.csr_array(shares), columns, 3), labels.copy()
    kernels.climb(profiles, shares.sum(axis=1), 2.0, 4, np.arange(12)[np.newaxis], 5, labels, np.ones(1, np.uint8))
    np.testing.assert_array_equal(labels, before)


def test_compiled_or_not_and_on_any_number_of_threads():
    shares, columns = some_table(5), some_labels(5, 2, 7, 3)
    orders = np.stack([np.random.default_rng(k).permutation(12) for k in range(4)])

    def results(way):
        labels = some_labels(6, 4, 12, 4)
        with patch.object(kernels, "in_blocks", way):
            profiles = kernels.profiles_of(sparse.csr_array(shares), columns, 3)
            return profiles, labels, kernels.climb(profiles, shares.sum(axis=1), 2.0, 4, orders, 5, labels, GO_ON)

    found = [results(way) for way in (checks.at_once, checks.one_by_one, checks.on_threads)]
    with checks.in_plain_python():
        found.append(results(checks.at_once))
    for profiles, labels, values in found[1:]:
        np.testing.assert_array_equal(profiles, found[0][0])
        np.testing.assert_array_equal(labels, found[0][1])
        np.testing.assert_allclose(values, found[0][2], rtol=1e-13)  # NumPy's logarithm is not the compiled one
