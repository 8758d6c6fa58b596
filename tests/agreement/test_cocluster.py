"""Co-clustering of tables by agreement."""

from itertools import cycle, product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import posterior_consensus as pc
from posterior_consensus.runtime import executor
from tests import reference
from tests.helpers import check, check_all, press_ctrl_c
from tests.reference import information_of_table


def planted(seed=0, copies=6, noise=0.0):
    """A table of 3 x 4 blocks, its rows and columns shuffled, and the clusters of both."""
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.5, size=(3, 4)) + 0.02
    rows, columns = rng.permutation(np.repeat(range(3), copies)), rng.permutation(np.repeat(range(4), copies))
    return 1000 * means[np.ix_(rows, columns)] * (1 + noise * rng.random((rows.size, columns.size))), rows, columns


def in_nats(found, table):
    shares = table / table.sum()
    pairs = product(found.row_labels.values, found.column_labels.values)
    return np.mean([information_of_table(shares, *pair) for pair in pairs])


@pytest.mark.parametrize("n_clusterings", [1, 5])
def test_blocks_are_found_and_keep_all_information(n_clusterings):
    table, rows, columns = planted()
    found = pc.agreement.cocluster(
        table, n_row_clusters=3, n_column_clusters=4, n_clusterings=n_clusterings, random_seed=1
    )
    assert all(reference.same(labels, rows) for labels in found.row_labels.values)
    assert all(reference.same(labels, columns) for labels in found.column_labels.values)
    assert float(found.trace["mutual_information"][-1]) == pytest.approx(found.table_information, abs=1e-12)


def test_what_is_told_is_the_definition():
    table, *_ = planted(1, noise=2.0)
    found = pc.agreement.cocluster(table, n_row_clusters=4, n_column_clusters=3, n_clusterings=3, random_seed=2)
    assert float(found.trace["mutual_information"][-1]) == pytest.approx(in_nats(found, table) / np.log(2), abs=1e-12)
    shares = table / table.sum()
    whole = information_of_table(shares, np.arange(shares.shape[0]), np.arange(shares.shape[1])) / np.log(2)
    assert found.table_information == pytest.approx(whole, abs=1e-12)
    assert float(found.trace["row_jaccard"][-1]) == pytest.approx(pc.agreement.averaged_jaccard(found.row_draws))
    assert float(found.trace["column_jaccard"][-1]) == pytest.approx(pc.agreement.averaged_jaccard(found.column_draws))


@pytest.mark.parametrize(("seed", "most_work"), [(0, 1e8), (1, 0)], ids=["small", "large"])
def test_rounds_never_lower_the_information_and_empty_no_cluster(seed, most_work, monkeypatch):
    monkeypatch.setattr("posterior_consensus.agreement.coclustering._MOST_WORK", most_work)
    table = np.random.default_rng(seed).poisson(0.7, size=(40, 15))
    options = {"n_row_clusters": 5, "n_column_clusters": 6, "n_clusterings": 4, "random_seed": seed}
    found, start = (pc.agreement.cocluster(table, n_rounds=n_rounds, **options) for n_rounds in (6, 0))
    assert np.all(np.diff(found.trace["mutual_information"]) >= -1e-12)
    assert all(np.unique(labels).size == 5 for labels in found.row_labels.values)
    assert all(np.unique(labels).size == 6 for labels in found.column_labels.values)
    assert start.trace.sizes["round"] == 1
    assert float(start.trace["mutual_information"][0]) == float(found.trace["mutual_information"][0])


def test_every_kind_of_table_gives_the_same_on_any_number_of_threads(monkeypatch):
    table, *_ = planted(2, noise=1.0)
    counts = table.round().astype(int)
    names = [f"word {k}" for k in range(counts.shape[1])]
    frame = pd.DataFrame(counts, index=pd.Index([f"text {k}" for k in range(len(counts))], name="text"), columns=names)
    array = xr.DataArray(counts, {"site": np.arange(len(counts)) + 5}, ("site", "species"))
    kinds = [counts, counts.tolist(), counts / 7.5, 1e303 * counts, sparse.coo_matrix(counts), sparse.csc_array(counts)]
    kinds += [frame, frame.astype(pd.SparseDtype(int, 0)), array]
    monkeypatch.setattr("posterior_consensus.runtime.executor.n_threads", cycle([1, 3]).__next__)
    found = [
        pc.agreement.cocluster(one, n_row_clusters=3, n_column_clusters=3, n_clusterings=2, random_seed=4)
        for one in kinds
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.row_labels.values, found[0].row_labels.values)
        np.testing.assert_array_equal(other.column_labels.values, found[0].column_labels.values)
    assert found[0].row_labels.dims == ("clustering", "row") and found[0].column_labels.dims == ("clustering", "column")
    assert found[6].row_labels.dims == ("clustering", "text") and found[6].row_labels["text"][3] == "text 3"
    assert found[6].column_labels["column"].values.tolist() == names
    assert found[8].row_labels["site"].values.tolist() == (np.arange(len(counts)) + 5).tolist()
    assert found[8].row_draws.items.dim == "site" and len(found[8].row_draws) == 2


def test_rows_of_zeros_go_with_the_smallest_and_smallest_tables():
    table = np.array([[9, 0, 0], [8, 0, 1], [0, 0, 5], [0, 0, 0], [0, 0, 2], [0, 0, 0]])
    found = pc.agreement.cocluster(table, n_row_clusters=2, n_column_clusters=2, n_clusterings=3, random_seed=1)
    assert np.all(found.row_labels.values == [0, 0, 1, 1, 1, 1])
    assert np.all(found.column_labels.values == [0, 1, 1])
    for table in ([[3]], [[3, 2]], [[1], [2]]):
        found = pc.agreement.cocluster(table, n_row_clusters=1, n_column_clusters=1, n_clusterings=2, random_seed=1)
        assert float(found.trace["mutual_information"][-1]) == pytest.approx(0, abs=1e-15)


def test_what_is_refused(monkeypatch):
    def of(given):
        names = "n_row_clusters", "n_column_clusters", "n_clusterings"
        return pc.agreement.cocluster(given[0], **dict(zip(names, given[1:], strict=False)))

    cases = [
        (([1, 2], 1, 1), ValueError, "`table`", "rows and columns; got shape (2,)"),
        (([[1, -2]], 1, 1), ValueError, "`table`", "finite", "got -2.0"),
        (([[1, np.nan]], 1, 1), ValueError, "`table`", "finite", "got nan"),
        (([[0, 0]], 1, 1), ValueError, "`table`", "above 0; got none"),
        (([["a", "b"]], 1, 1), TypeError, "`table` must hold numbers"),
        (([[1, 2]], 2, 1), ValueError, "`n_row_clusters`", "at most 1", "positive sum; got 2"),
        (([[1, 2], [0, 0]], 1, 3), ValueError, "`n_column_clusters`", "at most 2", "positive sum; got 3"),
        (([[1, 2]], 1, 1.5), TypeError, "`n_column_clusters`", "integer; got 1.5"),
        (([[1, 2]], 1, 1, 0), ValueError, "`n_clusterings`", "at least 1; got 0"),
    ]
    check_all(of, cases)
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "1KB")
    check(of, (np.ones((20, 30)), 5, 5), MemoryError, ["20 items by 50 clusters"])


@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_gives_the_clusterings_so_far(at, monkeypatch):
    table, _, _ = planted(noise=3.0)
    calls = press_ctrl_c(monkeypatch, executor, "wait", at)
    with pytest.warns(UserWarning, match="interrupted after"):
        found = pc.agreement.cocluster(
            table, n_row_clusters=3, n_column_clusters=4, n_starts=10**6 if at == 1 else 2, random_seed=1
        )
    assert found.stopped == "interrupted" and len(calls) <= at + 1 and "until Ctrl-C" in repr(found)
    assert np.unique(found.row_labels).size == 3 and np.unique(found.column_labels).size == 4
    assert pc.results.Coclustering.from_dataset(found.to_dataset()).stopped == "interrupted"


def test_the_best_of_several_starts_is_kept():
    ways = [(0, *labels) for labels in product((0, 1), repeat=4) if any(labels)]
    gains = {1: 0, 10: 0}
    for seed in range(8):
        table = np.random.default_rng(seed).integers(1, 10, (5, 5))
        most = max(information_of_table(table / table.sum(), np.array(x), np.array(y)) for x in ways for y in ways)
        for n_starts in gains:
            sizes = {"n_row_clusters": 2, "n_column_clusters": 2, "n_clusterings": 1}
            found = pc.agreement.cocluster(table, **sizes, n_starts=n_starts, random_seed=1, progressbar=False)
            gains[n_starts] += in_nats(found, table) > most - 1e-9
    assert gains[1] < gains[10] == 8
    check(
        lambda n: pc.agreement.cocluster(table, **sizes, n_starts=n), 0, ValueError, ["`n_starts`", "at least 1; got 0"]
    )
