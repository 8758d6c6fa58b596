import numpy as np
import pytest

from posterior_consensus.kernels import contingency
from tests.kernels.checks import run

CASES = [(1, 1, 1, 1), (3, 40, 7, 5), (2, 300, 290, 70), (70, 9, 3, 6)]


@pytest.fixture(params=["by items", "by bits"])
def _either_way(request, monkeypatch):
    if request.param == "by bits":
        monkeypatch.setattr(contingency, "_MANY_ITEMS", 0)


def table_of(ours, theirs, shape):
    table = np.zeros(shape, int)
    for k, m in zip(ours, theirs, strict=True):
        table[k, m] += 1
    return table


def some_case(n_rows, n_items, n_clusters, n_draws):
    rng = np.random.default_rng(n_items)
    partitions = rng.integers(n_clusters, size=(n_rows, n_items)).astype(np.uint16)
    labels = rng.integers(n_clusters, size=(n_draws, n_items)).astype(np.uint16)
    return partitions, partitions.max(axis=1) + 1, labels, labels.max(axis=1) + np.int64(1)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("case", CASES)
def test_joint_sums_are_sums_over_the_cells_of_every_table(case):
    partitions, ours, labels, theirs = some_case(*case)
    h = np.arange(labels.shape[1] + 1.0) ** 3  # whole numbers, so that the order of the sum is no matter
    (sums, drawn), _ = run(contingency.joint_sums, partitions, ours.astype(np.int64), labels, theirs, h)
    np.testing.assert_array_equal(drawn, [h[np.bincount(z)].sum() for z in labels])
    expected = [
        [h[table_of(p, z, (ours[i], theirs[t]))].sum() for t, z in enumerate(labels)] for i, p in enumerate(partitions)
    ]
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("case", CASES)
def test_all_joint_sums_are_the_joint_sums_of_draws_with_themselves(case):
    _, _, labels, sizes = some_case(*case)
    h = np.arange(labels.shape[1] + 1.0) ** 3
    sums, _ = run(contingency.all_joint_sums, labels, sizes, h)
    np.testing.assert_array_equal(sums, contingency.joint_sums(labels, sizes, labels, sizes, h)[0])


def test_joint_sums_do_not_depend_on_how_tables_are_made(monkeypatch):
    partitions, ours, labels, theirs = some_case(40, 120, 9, 30)
    h = np.random.default_rng(1).random(121)  # the order of the sum shows
    h[0] = 0.0
    case = partitions, ours.astype(np.int64), labels, theirs, h
    by_items, all_by_items = contingency.joint_sums(*case)[0], contingency.all_joint_sums(labels, theirs, h)
    monkeypatch.setattr(contingency, "_MANY_ITEMS", 0)
    np.testing.assert_array_equal(contingency.joint_sums(*case)[0], by_items)
    np.testing.assert_array_equal(contingency.all_joint_sums(labels, theirs, h), all_by_items)


@pytest.mark.parametrize("case", CASES)
def test_size_sums_are_sums_over_the_clusters(case):
    partitions, ours, _, _ = some_case(*case)
    h = np.arange(partitions.shape[1] + 1.0) ** 2
    sums, _ = run(contingency.size_sums, partitions, ours.astype(np.int64), h)
    np.testing.assert_array_equal(sums, [h[np.bincount(row)].sum() for row in partitions])


@pytest.mark.parametrize("case", CASES)
def test_paired_joint_sums_are_sums_over_the_cells_of_each_table(case):
    _, _, labels, sizes = some_case(*case)
    h = np.arange(labels.shape[1] + 1.0) ** 3
    rows, others = np.random.default_rng(1).integers(len(labels), size=(2, 150))
    sums, _ = run(contingency.paired_joint_sums, labels, sizes, rows, others, h)
    expected = [
        h[table_of(labels[r], labels[o], (sizes[r], sizes[o]))].sum() for r, o in zip(rows, others, strict=True)
    ]
    np.testing.assert_array_equal(sums, expected)
