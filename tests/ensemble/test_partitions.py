import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from posterior_consensus.ensemble.partitions import (
    as_codes,
    canonical_labels,
    canonical_rows,
    contingency_table,
    distinct_rows,
    enumerate_partitions,
    smallest_dtype,
)
from tests.helpers import check
from tests.strategies import SPARSE, label_draws

BELL = [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147]


def by_first_appearance(row):
    """Canonical form from its definition."""
    return [list(dict.fromkeys(row)).index(label) for label in row]


@given(st.lists(SPARSE, min_size=1, max_size=9))
def test_canonical_labels_number_by_first_appearance(labels):
    canonical = canonical_labels(labels)
    assert canonical.tolist() == by_first_appearance(labels)
    assert canonical.dtype == np.int32
    assert_array_equal(canonical_labels(canonical), canonical)


@given(label_draws(max_label=300))
def test_canonical_rows(draws):
    labels, n_clusters = canonical_rows(*as_codes(draws, "draws"))
    assert labels.tolist() == [by_first_appearance(row) for row in draws.tolist()]
    assert n_clusters.tolist() == [len(set(row)) for row in draws.tolist()]
    assert labels.dtype == np.uint8


def test_the_smallest_type_holds_the_codes():
    for n_codes, dtype in ((0, "u1"), (256, "u1"), (257, "u2"), (2**16, "u2"), (2**16 + 1, "u4")):
        assert smallest_dtype(n_codes) == np.dtype(dtype)
    for n_clusters in (255, 256, 257, 300):
        draws = np.stack([np.zeros(300, int), np.minimum(np.arange(300), n_clusters - 1)])
        labels, counts = canonical_rows(*as_codes(draws[:, ::-1], "draws"))
        assert counts.tolist() == [1, n_clusters]
        assert labels.dtype == smallest_dtype(n_clusters)
        assert labels[1, -1] == n_clusters - 1


KINDS = [
    np.array([[3, 3, 70_000, 0]]),
    np.array([[2**63, 2**63, 2**64 - 1, 0]], dtype=np.uint64),
    np.array([["x", "x", "nan", ""]]),
    np.array([[b"x", b"x", b"y", b"z"]]),
    np.array([["x", "x", "yyyyy", "z"]], dtype=object),
    np.array([["x", "x", "y", "z"]], dtype=np.dtypes.StringDType()),
    np.array([[4.0, 4.0, 9.0, -0.0]]),
    np.array([[2**53 - 1, 2**53 - 1, 5, True]], dtype=object),
]


def test_as_codes_keeps_labels_apart():
    for values in KINDS:
        codes, n_codes = as_codes(values, "labels")
        assert codes.dtype.kind == "u"
        assert codes.shape == values.shape
        assert codes.max() < n_codes
        assert canonical_rows(codes, n_codes)[0].tolist() == [[0, 0, 1, 2]], values.dtype


def test_as_codes_of_booleans_and_of_nothing():
    codes, n_codes = as_codes(np.array([True, False]), "labels")
    assert (codes.tolist(), n_codes) == ([1, 0], 2)
    assert as_codes(np.empty((0, 3), int), "labels")[1] == 0


def test_what_is_no_label_is_refused():
    """What draws hold that is none is refused by tests of bad draws."""
    odd = np.array([0, 2.5, 1], dtype=object)
    for values, error, parts in (
        (odd, ValueError, ["the labels", "integers; got 2.5 at position 1 (from 0)"]),
        (np.array([0.0, 2.0**53]), ValueError, ["finite integers", "got 9007199254740992"]),
        (np.array([10**30, 1], object), ValueError, ["finite integers", "got 1e+30"]),
        (np.array(["1", 1], object), TypeError, ["all strings", "got int, str"]),
        (np.array([[1], [1, 2]], object), TypeError, ["got list"]),
        (np.array([1j]), TypeError, ["got dtype complex128"]),
        (np.array(["2020"], dtype="M8[D]"), TypeError, ["got dtype datetime64"]),
    ):
        check(lambda values: as_codes(values, "the labels"), values, error, parts)
    with pytest.raises(ValueError, match=r"\(from 0\)\.$"):  # and no word of probabilities
        as_codes(np.array([0.0, 1.5]), "labels")
    check(canonical_labels, np.ma.array([0, 1, 2], mask=[0, 1, 1]), ValueError, ["missing; got 2 NaN"])
    vectors = ((3, "int"), ("abc", "str"), ([[0, 1]], "shape (1, 2)"), ({0, 1}, "set"), (None, "NoneType"))
    for labels, got in (([], "shape (0,)"), *vectors):
        check(lambda labels: canonical_labels(labels, "centre"), labels, ValueError, ["`centre`", f"got {got}."])


@given(label_draws(min_draws=2, max_draws=2))
def test_contingency_counts_common_items(draws):
    one, other = (canonical_labels(row) for row in draws)
    table = contingency_table(one, other)
    assert table.shape == (one.max() + 1, other.max() + 1)
    for k, row in enumerate(table):
        assert row.tolist() == [np.sum((one == k) & (other == m)) for m in range(other.max() + 1)]


def test_enumeration_yields_every_partition_once():
    for n_items in range(1, 10):
        blocks = list(enumerate_partitions(n_items))
        partitions = np.concatenate(blocks)
        assert partitions.shape == (BELL[n_items], n_items)
        assert len(np.unique(partitions, axis=0)) == BELL[n_items]
        assert_array_equal(canonical_rows(partitions, n_items)[0], partitions)
        assert len(blocks) == BELL[(n_items + 1) // 2]  # so that memory stays small


@pytest.mark.parametrize(("dtype", "most"), [(np.uint8, 2), (np.uint8, 256), (np.uint16, 600), (np.int32, 70_000)])
def test_distinct_rows_are_those_of_numpy(dtype, most):
    rows = np.random.default_rng(1).integers(0, most, (50, 5)).astype(dtype)[np.arange(80) % 50]
    rows[::7, 0] = 0
    wanted, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    found, found_which = distinct_rows(rows)
    assert np.array_equal(rows[found], wanted)
    assert np.array_equal(found, first) and np.array_equal(found_which, which.ravel())
