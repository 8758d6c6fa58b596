"""Tables of scored pairs and sparse arrays: what is taken, in which order, and what is refused."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import xarray as xr
from pyarrow import parquet

import posterior_consensus as pc
from tests.helpers import check, check_all, source_in

IDS = ["unique_id_l", "unique_id_r"]
SETS = ["source_dataset_l", "source_dataset_r"]


def table(*rows, columns=(*IDS, "match_probability")):
    return pd.DataFrame(list(rows), columns=list(columns))


def of_sets(*rows):
    return table(*rows, columns=(SETS[0], IDS[0], SETS[1], IDS[1], "match_probability"))


TABLE = table(("c", "a", 0.9), ("a", "b", 0.25), ("b", "d", 0.0))
DENSE = np.array([[1, 0.25, 0.9, 0], [0.25, 1, 0, 0], [0.9, 0, 1, 0], [0, 0, 0, 1]])
LINKED = of_sets(("crm", 1, "web", 1, 0.9), ("web", 1, "web", 2, 0.5))
RECORDS = pd.DataFrame({"unique_id": [2, 1, 1, 5], "source_dataset": ["web", "web", "crm", "crm"], "age": 3})


def names(pairs):
    return pairs.items.coords["item"].to_index().tolist()


def rows(pairs):
    """The pairs by name."""
    index = names(pairs)
    return [(index[i], index[j], value) for i, j, value in zip(*(one.tolist() for one in pairs.pairs), strict=True)]


class Polars:
    """A table of a library other than pandas, such as polars."""

    def __init__(self, chosen=TABLE):
        self.columns, self.chosen = list(chosen.columns), chosen

    def select(self, columns):
        return Polars(self.chosen[columns])

    def to_pandas(self):
        return self.chosen


class SplinkDataFrame:
    """What splink's predict returns, as far as it is read."""

    def as_pandas_dataframe(self, limit=None):
        return TABLE.assign(match_key=0).iloc[:limit]


class DuckDBPyRelation:
    """A relation of DuckDB, as far as it is read: columns are chosen by expressions."""

    def __init__(self, table=TABLE, is_chosen=False):
        self.columns, self.table, self.is_chosen = list(table.columns), table, is_chosen

    def select(self, *expressions):
        names = [one[1:-1].replace('""', '"') for one in expressions]
        assert [f'"{one}"' for one in names] == [one.replace('""', '"') for one in expressions]
        return DuckDBPyRelation(self.table[names], True)

    def df(self):
        assert self.is_chosen  # no column is read that is not needed
        return self.table


class DuckDBDataFrame(SplinkDataFrame):
    """What splink's predict returns with DuckDB."""

    def as_pandas_dataframe(self, limit=None):
        assert limit == 1
        return super().as_pandas_dataframe(limit)

    def as_duckdbpyrelation(self):
        return DuckDBPyRelation(TABLE.assign(match_key=0))


class SparkDataFrame(SplinkDataFrame):
    """What splink's predict returns with another database, which only its queries narrow."""

    def query_sql(self, sql):
        assert sql == f"select {IDS[0]}, {IDS[1]}, match_probability from {{this}}"
        return SplinkDataFrame()


def forms(path):
    """The same pairs in every form."""
    TABLE.assign(other=1).to_parquet(path / "pairs.parquet")
    (path / "parts.parquet").mkdir()
    for k in range(3):
        parquet.write_table(pa.Table.from_pandas(TABLE[k : k + 1]), path / "parts.parquet" / f"{k}.parquet")
    TABLE.to_csv(path / "pairs.csv")
    TABLE.to_csv(path / "pairs.tsv.gz", sep="\t", index=False)
    swapped = TABLE.set_axis([IDS[1], IDS[0], "match_probability"], axis=1)
    return {
        "str": TABLE,
        **{kind: TABLE.astype(dict.fromkeys(IDS, kind)) for kind in ("object", "category", "string")},
        "Arrow's": TABLE.astype(dict.fromkeys(IDS, pd.ArrowDtype(pa.string()))),
        "one of each": TABLE.astype({IDS[0]: "category", IDS[1]: object, "match_probability": "Float64"}),
        "with an index": TABLE.set_axis([7, 7, 8]),
        "pyarrow": pa.Table.from_pandas(TABLE),
        "polars": Polars(),
        "splink": SplinkDataFrame(),
        "splink in DuckDB": DuckDBDataFrame(),
        "splink in Spark": SparkDataFrame(),
        "DuckDB": DuckDBPyRelation(TABLE.assign(other=1)),
        "Parquet": path / "pairs.parquet",
        "Parquet in parts": str(path / "parts.parquet"),
        "CSV": str(path / "pairs.csv"),
        "TSV": path / "pairs.tsv.gz",
        "both ways": pd.concat([TABLE, swapped, TABLE]),
        "other order": TABLE.iloc[::-1],
        "two scores": TABLE.assign(match_weight=3.0),
    }


def test_a_table_in_every_form(tmp_path):
    for kind, given in forms(tmp_path).items():
        for pairs in (pc.as_pair_similarity(given), source_in(given).source):
            assert isinstance(pairs, pc.results.ScoredPairs) and names(pairs) == list("abcd"), kind
            assert rows(pairs) == [("a", "b", 0.25), ("a", "c", 0.9), ("b", "d", 0.0)], kind
            np.testing.assert_array_equal(pairs.similarity(), DENSE, kind)
            assert pairs.scored.has_sorted_indices and pairs.scored.indices.dtype == np.int32
    assert pc.as_pair_similarity(pairs) is pairs


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_are_named(suffix, tmp_path):
    renamed = TABLE.set_axis(["x y", "Ä", "z"], axis=1)
    path = tmp_path / f"pairs.{suffix}"
    renamed.to_csv(path) if suffix == "csv" else renamed.to_parquet(path)
    for given in (renamed, pa.Table.from_pandas(renamed), path):
        pairs = pc.as_pair_similarity(given, left="x y", right=["Ä"], probability="z", item_dim="record", unscored=0.1)
        assert pairs.items.coords["record"].values.tolist() == list("abcd")
        assert pairs.unscored == 0.1 and pairs.similarity()[2].tolist() == [0.9, 0.1, 1, 0.1]
        assert pairs.similarity()[1].tolist() == [0.25, 1, 0.1, 0]
    numbered = TABLE.set_axis(range(3), axis=1)
    assert rows(pc.as_pair_similarity(numbered, left=0, right=1, probability=2)) == rows(pc.as_pair_similarity(TABLE))


def test_the_scores_of_dedupe():
    scores = np.zeros(3, np.dtype([("pairs", "U8", 2), ("score", "f4")]))
    scores["pairs"], scores["score"] = TABLE[IDS].to_numpy(str), TABLE["match_probability"]
    for pairs in (pc.as_pair_similarity(scores), source_in(scores).source):
        np.testing.assert_array_equal(pairs.similarity(), DENSE.astype(np.float32))
        assert names(pairs) == list("abcd")


def test_match_weights_are_bits():
    weights = [np.log2(0.9 / 0.1), 0.0, -np.inf, 5000.0, -5000.0, np.inf]
    given = table(*[("a", k, weight) for k, weight in zip("bcdefg", weights, strict=True)])
    given = given.set_axis([*IDS, "match_weight"], axis=1)
    of_ids = {"left": IDS[0], "right": IDS[1], "probability": "match_weight"}
    for pairs in (pc.as_pair_similarity(given), pc.as_pair_similarity(given, **of_ids)):
        np.testing.assert_allclose(pairs.pairs[2], [0.9, 0.5, 0, 1, 0, 1], atol=1e-15)


ODD = {
    "integers": ([3, 1, 20], [1, 3, 20]),
    "large integers": ([2**53 + 2, 2**53 + 1, 2**53], [2**53, 2**53 + 1, 2**53 + 2]),
    "floats": ([3.0, 1.0, 20.0], [1, 3, 20]),
    "tuples": ([("b", 1), ("a", 2), ("b", 0)], [("a", 2), ("b", 0), ("b", 1)]),
    "text": (["日本", "", "a-__-b"], ["", "a-__-b", "日本"]),
    "dates": (list(pd.to_datetime(["2020-03-01", "2020-01-01", "2020-02-01"])), None),
}


@pytest.mark.parametrize("kind", ODD)
def test_names_of_any_kind_are_in_order_and_stored(kind, tmp_path):
    (a, b, c), expected = ODD[kind]
    pairs = pc.as_pair_similarity(table((a, b, 0.9), (c, a, 0.1)), must_link=[(a, c)], cannot_link=[(b, c)])
    assert names(pairs) == (sorted([a, b, c]) if expected is None else expected)
    assert [type(name) for name in names(pairs)] == [type(one) for one in expected or [a] * 3]
    best = pc.consensus_partition(pairs, random_seed=1, progressbar=False, loss="binder")
    best.to_dataset().to_netcdf(tmp_path / "best.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "best.nc", engine="h5netcdf") as stored:
        back = pc.results.ConsensusPartition.from_dataset(stored)
    labels = back.labels.to_series()
    assert labels[a] == labels[c] != labels[b]
    assert pc.expected_loss(pairs, back.labels, loss="binder")["expected_loss"].item() == best.expected_loss


def test_integers_of_several_types():
    expected = [(1, 2, 0.5)]
    for one in ("int64", "uint64", "Int64", "int8", "float32", object, pd.ArrowDtype(pa.int32())):
        for other in ("int32", "Int64", "float64"):
            given = table((1, 2, 0.5)).astype({IDS[0]: one, IDS[1]: other, "match_probability": "float32"})
            pairs = pc.as_pair_similarity(given)
            assert rows(pairs) == expected and pairs.items.coords["item"].dtype == np.int64, (one, other)


def test_names_in_text_are_integers_if_written_so(tmp_path):
    cases = [
        ("1,2,0.5\n2,10,0.25", [(1, 2, 0.5), (2, 10, 0.25)]),
        ("01,2,0.5\n2,10,0.25", [("01", "2", 0.5), ("10", "2", 0.25)]),
        ("NA,2,0.5\nnull,a,0.25", [("2", "NA", 0.5), ("a", "null", 0.25)]),
    ]
    for text, expected in cases:
        (tmp_path / "pairs.csv").write_text(",".join(TABLE.columns) + "\n" + text)
        assert rows(pc.as_pair_similarity(tmp_path / "pairs.csv")) == expected


def test_all_records_are_named():
    given = table(("a", "b", 0.5))
    listed = ["z", "b", "a"]
    of_arrow = pa.array(listed), pa.chunked_array([listed[:1], listed[1:]])
    for items in (listed, pd.Index(listed), pd.Series(listed, dtype="category"), np.array(listed), *of_arrow):
        pairs = pc.as_pair_similarity(given, items=items)
        assert names(pairs) == listed and rows(pairs) == [("b", "a", 0.5)] and pairs.n_unscored == 2
    assert names(pc.as_pair_similarity(given.iloc[:0], items=listed)) == listed
    assert pc.as_pair_similarity(given.iloc[:0], items=["alone"]).n_scored == 0
    numbers = pc.as_pair_similarity(given.iloc[:0].astype({IDS[0]: int}), items=RECORDS["age"].iloc[:1])
    assert names(numbers) == [3]


def test_all_records_are_named_by_a_file_or_a_relation(tmp_path):
    listed = pd.DataFrame({"unique_id": ["z", "b", "a"], "source_dataset": list("xyy"), "age": 3})
    listed.to_csv(tmp_path / "records.csv")
    listed.to_parquet(tmp_path / "records.parquet")
    given = table(("a", "b", 0.5))
    relation = DuckDBPyRelation(listed)
    for items in (relation, tmp_path / "records.csv", str(tmp_path / "records.parquet")):
        pairs = pc.as_pair_similarity(given, items=items, max_per_source=1)
        assert names(pairs) == ["z", "b", "a"] and pairs.constraints.data_set.tolist() == [0, 1, 1]
    given = given.assign(unique_id_l=7, unique_id_r=12)
    listed.assign(unique_id=[12, 7, 1]).to_csv(tmp_path / "records.csv")
    assert names(pc.as_pair_similarity(given, items=tmp_path / "records.csv")) == [12, 7, 1]
    with pytest.raises(FileNotFoundError, match="`items`.*'nowhere.csv'"):
        pc.as_pair_similarity(given, items="nowhere.csv")


def test_constraints_from_a_file(tmp_path):
    TABLE[:1].to_csv(tmp_path / "pairs.csv", index=False)
    TABLE[:1].to_parquet(tmp_path / "pairs.parquet")
    for given in (tmp_path / "pairs.csv", str(tmp_path / "pairs.parquet"), DuckDBPyRelation(TABLE[:1])):
        assert pc.as_pair_similarity(TABLE, must_link=given).constraints.must_link.tolist() == [[0, 2]]


def test_integers_of_a_file_are_text_beside_text(tmp_path):
    """A file of some records may have integers alone, where others have names that are text."""
    given, few = table(("1", "2", 0.9), ("2", "a1", 0.3)), pd.DataFrame({"first": ["1"], "second": ["2"]})
    given.to_csv(tmp_path / "pairs.csv", index=False)
    given[:1].to_csv(tmp_path / "one.csv", index=False)
    few.to_csv(tmp_path / "few.csv", index=False)
    pd.DataFrame({"unique_id": ["a1", "2", "1"]}).to_csv(tmp_path / "records.csv", index=False)
    pd.DataFrame({"unique_id": ["3", "2", "1"]}).to_csv(tmp_path / "integers.csv", index=False)
    for source in (given, tmp_path / "pairs.csv"):
        pairs = pc.as_pair_similarity(source, must_link=tmp_path / "few.csv")
        assert names(pairs) == ["1", "2", "a1"] and pairs.constraints.must_link.tolist() == [[0, 1]]
    for items in (tmp_path / "records.csv", ["a1", "2", "1"]):
        pairs = pc.as_pair_similarity(tmp_path / "one.csv", items=items, cannot_link=few)
        assert names(pairs) == ["a1", "2", "1"] and rows(pairs) == [("2", "1", 0.9)]
    for source, found in ((given[:1], ["3", "2", "1"]), (tmp_path / "one.csv", [3, 2, 1])):
        assert names(pc.as_pair_similarity(source, items=tmp_path / "integers.csv")) == found
    linked = of_sets(("crm", "1", "web", "x", 0.9), ("crm", "1", "web", "2", 0.4))
    few.assign(first_source_dataset="crm", second_source_dataset="web").rename(
        columns={"first": "first_unique_id", "second": "second_unique_id"}
    ).to_csv(tmp_path / "review.csv", index=False)
    pairs = pc.as_pair_similarity(linked, must_link=tmp_path / "review.csv")
    assert [names(pairs)[k] for k in pairs.constraints.must_link[0]] == [("crm", "1"), ("web", "2")]
    with pytest.raises(ValueError, match="There is no '2' among names such as 1"):  # of a table, text is no integer
        pc.as_pair_similarity(table((1, 2, 0.9)), must_link=few[["second", "first"]].set_axis(IDS, axis=1))


def test_some_data_sets_have_no_duplicates():
    of = partial(pc.as_pair_similarity, LINKED)
    every = of(max_per_source=1).constraints.data_set
    for one in (["web"], ("web",), {"web": 1}, {"web": 1, "crm": None}):
        chosen = of(max_per_source=one).constraints.data_set
        assert (chosen >= 0).tolist() == [name[0] == "web" for name in names(of())]
    np.testing.assert_array_equal(of(max_per_source=["crm", "web"]).constraints.data_set, every)
    for wrong, parts in ((["shop"], "no 'shop', present"), ({"crm": 2}, "got {'crm': 2}"), ({"shop": None}, "'shop'")):
        with pytest.raises(ValueError, match=f"`max_per_source`.*{parts}"):
            of(max_per_source=wrong)


def test_records_of_several_data_sets():
    pairs = pc.as_pair_similarity(LINKED)
    assert names(pairs) == [("crm", 1), ("web", 1), ("web", 2)]
    assert pairs.items.coords["source_dataset"].values.tolist() == ["crm", "web", "web"]
    assert pairs.items.coords["unique_id"].dtype == np.int64
    assert not pairs.constraints
    split = ["source_dataset_l", IDS[0]], ["source_dataset_r", IDS[1]]
    for options in ({}, {"left": split[0], "right": split[1]}):
        for items in (RECORDS, Polars(RECORDS), [("web", 2), ("web", 1), ("crm", 1), ("crm", 5)]):
            pairs = pc.as_pair_similarity(LINKED, items=items, max_per_source=1, **options)
            assert names(pairs) == [("web", 2), ("web", 1), ("crm", 1), ("crm", 5)]
            assert pairs.constraints.data_set.tolist() == [0, 0, 1, 1]
            assert rows(pairs) == [(("web", 2), ("web", 1), 0.5), (("web", 1), ("crm", 1), 0.9)]


def test_data_sets_of_names_that_do_not_repeat():
    given = table(("a", "b", 0.5), ("b", "c", 0.7))
    sets = {"c": "x", "b": "y", "a": "x", "d": None}
    as_table = pd.DataFrame({"unique_id": list(sets), "source_dataset": list(sets.values())})
    for items in (sets, as_table, as_table.astype("category")):
        pairs = pc.as_pair_similarity(given, items=items, max_per_source=1)
        assert names(pairs) == list(sets)
        assert pairs.constraints.data_set.tolist() == [0, 1, 0, -1]
    array = scipy.sparse.coo_array(([0.5, 0.2], ([0, 1], [1, 2])), (3, 3))
    of_array = pc.as_pair_similarity(array, items=dict(zip("abc", "xyx", strict=True)), max_per_source=1)
    assert of_array.constraints.data_set.tolist() == [0, 1, 0]


def test_constraints_are_pairs_of_names_and_are_added():
    first = pc.as_pair_similarity(TABLE, must_link=[("b", "a"), ("a", "b")], unscored=0.2)
    again = pc.as_pair_similarity(first, cannot_link=TABLE.iloc[2:], must_link=np.array([["d", "c"]]))
    assert again.constraints.must_link.tolist() == [[0, 1], [2, 3]]
    assert again.constraints.cannot_link.tolist() == [[1, 3]]
    assert again.unscored == 0.2 and not pc.as_pair_similarity(TABLE, must_link=[]).constraints
    renamed = TABLE.set_axis(["x", "y", "z"], axis=1)
    by_name = partial(pc.as_pair_similarity, left="x", right="y")
    assert by_name(renamed, probability="z", must_link=renamed[:1]).constraints.must_link.tolist() == [[0, 2]]
    assert by_name(first, cannot_link=renamed[:1]).constraints.cannot_link.tolist() == [[0, 2]]
    linked = pc.as_pair_similarity(LINKED, must_link=LINKED[:1], cannot_link=[(("crm", 1), ("web", 2))])
    assert linked.constraints.must_link.tolist() == [[0, 1]] and linked.constraints.cannot_link.tolist() == [[0, 2]]
    assert pc.as_pair_similarity(linked, max_per_source=1).constraints.data_set.tolist() == [0, 1, 1]


def test_constraints_on_a_matrix_and_on_draws():
    draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 1]])
    for given in (draws, pc.as_pair_similarity(draws), pc.posterior_similarity_matrix(draws)):
        pairs = pc.as_pair_similarity(given, cannot_link=[(0, 1)])
        assert pairs.n_unscored == 0 and pairs.constraints.cannot_link.tolist() == [[0, 1]]
        np.testing.assert_array_equal(pairs.similarity(), draws.similarity())
    named = pd.DataFrame(DENSE, list("abcd"), list("abcd"))
    assert pc.as_pair_similarity(named, must_link=[("a", "d")]).constraints.must_link.tolist() == [[0, 3]]


UPPER = scipy.sparse.coo_array(([0.5, 0.0, 0.2], ([0, 0, 1], [1, 2, 2])), (4, 4))


def test_a_sparse_array_stays_sparse():
    both = scipy.sparse.coo_array(
        (np.tile(UPPER.data, 2), tuple(np.concatenate([*UPPER.coords[::k]]) for k in (1, -1))), (4, 4)
    )
    halves = scipy.sparse.coo_array(([0.25, 0.25, 0.0, 0.2], ([0, 0, 0, 1], [1, 1, 2, 2])), (4, 4))
    with_ones = scipy.sparse.csr_array(both + scipy.sparse.eye_array(4))
    for given in (UPPER, UPPER.T, both, halves, scipy.sparse.csc_matrix(both), UPPER.tolil()):
        before = given.copy()
        pairs = pc.as_pair_similarity(given)
        assert (given != before).nnz == 0 and given.nnz == before.nnz
        assert [one.tolist() for one in pairs.pairs] == [[0, 0, 1], [1, 2, 2], [0.5, 0.0, 0.2]]
        assert pairs.items.dim == "item" and "item" not in pairs.items.coords
    assert pc.as_pair_similarity(with_ones).pairs[2].tolist() == [0.5, 0.2]  # SciPy's sums keep no zeros
    named = pc.as_pair_similarity(UPPER, items=list("dcba"), item_dim="record", must_link=[("a", "d")], unscored=0.1)
    assert named.items.names.tolist() == list("dcba") and named.constraints.must_link.tolist() == [[0, 3]]
    large = pc.as_pair_similarity(scipy.sparse.eye_array(10**6, format="csr"))
    assert large.n_items == 10**6 and large.n_scored == 0


def changed(row, **values):
    return pd.concat([TABLE, TABLE.iloc[[row]].assign(**values)], ignore_index=True)


REFUSED = {
    "two scores": (
        changed(0, match_probability=0.3),
        ValueError,
        "1 of 3 have several",
        "'a' and 'c' with 0.3 and 0.9",
    ),
    "itself": (changed(0, unique_id_r="c"), ValueError, "1 of 4 pairs", "'c' and 'c' with 0.9, row 3"),
    "above 1": (changed(1, match_probability=1.5), ValueError, "1 of 4 are beyond", "'a' and 'b' with", "1.5, row 3"),
    "below 0": (changed(1, match_probability=-0.5), ValueError, "1 of 4 are beyond", "-0.5, row 3"),
    "no score": (changed(1, match_probability=np.nan), ValueError, "1 of 4 are missing", "'a' and 'b', row 3"),
    "no name": (changed(1, unique_id_l=None), ValueError, "missing in 1 of 4 pairs", "'b' with 0.25, row 3"),
    "text": (TABLE.assign(match_probability="x"), TypeError, "`probability`", "numbers; 'match_probability' has"),
    "no pair": (TABLE[:0], ValueError, "at least one", "`items`"),
    "mixed": (table((1, "a", 0.5)), TypeError, "of one type", "1 (int) and 'a' (str)", "astype(str)"),
    "mixed in a column": (table(("b", "a", 0.5), (1, "a", 0.5)), TypeError, "1 (int)", "(str)"),
    "fractions": (table((1.5, 2.0, 0.5)), TypeError, "integers or text", "1.5"),
    "tuples": (table((("a", 1), ("b", 2, 3), 0.5)), TypeError, "of one type"),
    "no left": (TABLE.rename(columns={IDS[0]: "id_l"}), ValueError, "`left`", "no 'unique_id_l'", "mean `id_l`"),
    "no right": (TABLE.drop(columns=IDS[1]), ValueError, "`right`", "no 'unique_id_r'", "present: 'unique_id_l'"),
    "no probability": (TABLE[IDS], ValueError, "`probability`", "no 'match_probability'"),
    "one data set": (LINKED.drop(columns=SETS[1]), ValueError, "`right`", "no 'source_dataset_r'"),
    "a column twice": (pd.concat([TABLE, TABLE[IDS]], axis=1), ValueError, "`left`", "the name of 2"),
    "columns unknown": (TABLE[:2].set_axis(list("xyz"), axis=1), ValueError, "got shape (2, 3)", "left="),
    "draws": (pd.DataFrame(np.zeros((2, 3), int)), ValueError, "must be square", "as_partition_draws", "left="),
    "no file": ("nowhere.csv", FileNotFoundError, "'nowhere.csv'"),
    "a lower entry of others": (
        scipy.sparse.coo_array(([0.5, 0.2], ([0, 2], [1, 0])), (3, 3)),
        ValueError,
        "symmetric",
        "mirror images: 2, the first of 0 and 1",
    ),
    "a mirror image of others": (
        scipy.sparse.coo_array(([0.5, 0.2], ([0, 1], [1, 0])), (3, 3)),
        ValueError,
        "1 of 1 have several, the first 0 and 1 with 0.2 and 0.5",
    ),
    "a diagonal": (UPPER + 0.5 * scipy.sparse.eye_array(4), ValueError, "1 on the diagonal", "0.5 of 4 items", "0."),
    "counts": (UPPER * 4, ValueError, "1 of 3 are beyond, the first of 0 and 1, 2"),
    "NaN": (UPPER * np.nan, ValueError, "3 of 3 are beyond", "nan"),
    "complex": (UPPER * 1j, TypeError, "real numbers", "complex128"),
    "not square": (UPPER.tocsr()[:2], ValueError, "square", "got shape (2, 4)"),
}


def test_what_is_refused():
    check_all(pc.as_pair_similarity, REFUSED.values())


def test_rounding_is_mended():
    pairs = pc.as_pair_similarity(table(("a", "b", 1 + 1e-9), ("c", "b", -1e-9), ("b", "c", 5e-8), ("a", "b", 1.0)))
    assert rows(pairs) == [("a", "b", 1.0), ("b", "c", 2.5e-8)]


OPTIONS = {
    "left alone": ({"left": "x"}, ValueError, "`left` and `right`", "got 'x' and None"),
    "three columns": ({"left": list("xyz"), "right": list("xyz")}, ValueError, "two columns, of data sets"),
    "two columns and one": ({"left": IDS, "right": IDS[0]}, ValueError, "two columns, of data sets"),
    "a misspelt column": ({"left": "uniqe_id_l", "right": IDS[1]}, ValueError, "`left`", "mean `unique_id_l`"),
    "unscored": ({"unscored": 1.5}, ValueError, "`unscored`", "[0, 1]", "got 1.5"),
    "unscored text": ({"unscored": "0"}, TypeError, "`unscored`", "a number; got '0'"),
    "several per source": ({"max_per_source": 2}, ValueError, "`max_per_source` must be 1, a list", "got 2"),
    "no record in a cluster": ({"max_cluster_size": 0}, ValueError, "`max_cluster_size`", "positive", "got 0"),
    "half a record": ({"max_cluster_size": 1.5}, ValueError, "`max_cluster_size`", "positive", "got 1.5"),
    "no data sets": ({"max_per_source": 1}, ValueError, "`max_per_source`", "'source_dataset_l'", "`items`"),
    "item_dim": ({"item_dim": "unique_id"}, ValueError, "`item_dim`", "got 'unique_id'"),
    "missing": ({"missing": "pairwise", "items": ["a"]}, ValueError, "`items` must be left out", "missing"),
    "few items": ({"items": list("abc")}, ValueError, "`items`", "1 of 3 pairs", "'b' and 'd', row 2", "no 'd'"),
    "other types": ({"items": [1, 2]}, ValueError, "3 of 3 pairs", "no 'a' among names such as 1"),
    "items twice": ({"items": [*"abcd", "a"]}, ValueError, "`items`", "1 stand again, the first 'a'"),
    "items missing": ({"items": [*"abcd", None]}, ValueError, "1 of 5 names are missing"),
    "no items": ({"items": []}, ValueError, "`items`", "at least one"),
    "no names": ({"items": pd.DataFrame({"id": [*"abcd"]})}, ValueError, "`items`", "'unique_id'", "present: 'id'"),
    "unknown": ({"must_link": [("a", "b"), ("a", "q")]}, ValueError, "`must_link`", "1 of 2", "'a' and 'q'", "no 'q'"),
    "one twice": ({"cannot_link": [("a", "a")]}, ValueError, "`cannot_link`", "1 of 1", "twice, the first 'a'"),
    "a name": ({"must_link": ("ab", "cd")}, ValueError, "`must_link` must have pairs", "got 'ab'"),
    "text for pairs": ({"cannot_link": "ab"}, TypeError, "`cannot_link`", "pairs of names", "got 'ab'"),
    "a dict for pairs": ({"must_link": {"ab": "cd"}}, TypeError, "`must_link`", "got {'ab'"),
    "no columns": ({"must_link": pd.DataFrame({"a": ["b"]})}, ValueError, "`left`", "`must_link`", "'unique_id_l'"),
    "text for items": ({"items": "abcd"}, TypeError, "`items`", "names", "got 'abcd'"),
    "a number of items": ({"items": 4}, TypeError, "`items`", "names", "got 4"),
    "of data sets": ({"must_link": LINKED}, ValueError, "`must_link`", "no ('crm', 1) among names such as 'a'"),
    "contradiction": (
        {"must_link": [("a", "b"), ("b", "c")], "cannot_link": [("c", "a")]},
        ValueError,
        "`must_link` must agree with the other constraints",
        "'a' and 'c'",
        "`cannot_link`",
    ),
}


def test_options_that_are_refused():
    check_all(lambda options: pc.as_pair_similarity(TABLE, **options), OPTIONS.values())
    of_linked = partial(pc.as_pair_similarity, LINKED)
    check_all(
        lambda options: of_linked(**options),
        [
            ({"items": [1, 2]}, ValueError, "`items`", "by its data set and its name", "such as 1"),
            ({"items": RECORDS[["unique_id"]]}, ValueError, "`items`", "'source_dataset'"),
            ({"must_link": [(1, 2)]}, ValueError, "no 1 among names such as ('crm', 1)"),
            (
                {"must_link": [(("web", 1), ("web", 2))], "max_per_source": 1},
                ValueError,
                "'web: 1' and 'web: 2'",
                "one data set",
            ),
        ],
    )
    made = pc.as_pair_similarity(TABLE)
    for given in (made, UPPER):
        check(lambda one: pc.as_pair_similarity(one, probability="p"), given, ValueError, ["`probability`", "left out"])
    check(lambda one: pc.as_pair_similarity(one, left="x", right="y"), np.eye(3), TypeError, ["`left`", "a table"])
    for name, value in (("items", list("abc")), ("unscored", 0.2)):
        refused = partial(pc.as_pair_similarity, **{name: value})
        check(refused, np.eye(3), ValueError, [f"`{name}` must be left out"])
    check(lambda one: pc.as_pair_similarity(UPPER, items=one), list("abc"), ValueError, ["the 4 rows", "got 3 names"])


def test_what_no_function_takes_for_pairs_is_told_of_the_input(tmp_path):
    named = TABLE.set_axis(["x", "y", "z"], axis=1)
    numbered = pd.DataFrame({"x": [1, 2, 4], "y": [2, 3, 1], "z": [0.9, 0.5, 1.0]})
    for name, given in (("named", named), ("numbered", numbered)):
        given.to_csv(tmp_path / f"{name}.csv", index=False)
        for one in (given, tmp_path / f"{name}.csv", pa.Table.from_pandas(given)):
            for function in (pc.consensus_partition, pc.as_pair_similarity):
                with pytest.raises((TypeError, ValueError), match=r"as_pair_similarity\(table, left=, right="):
                    function(one)
    check(pc.consensus_partition, UPPER, TypeError, ["as_pair_similarity(data)"])


def test_functions_of_draws_refuse_a_table():
    alone = "needs posterior draws; got scored pairs alone"
    for function in (pc.as_partition_draws, pc.diagnose):
        check(function, TABLE, ValueError, [alone])
    for options, instead in (({"loss": "vi"}, "loss='binder'"), ({"method": "best_draw"}, "method='greedy'")):
        check(lambda chosen: pc.consensus_partition(TABLE, **chosen), options, ValueError, [alone, instead])


def test_a_table_of_text_that_cannot_be_read(tmp_path):
    head = ",".join(TABLE.columns)
    (tmp_path / "ragged.csv").write_text(f'{head}\na,b,0.5\n"a,b')
    check(pc.as_pair_similarity, tmp_path / "ragged.csv", ValueError, ["`data`", "'ragged.csv' cannot be read"])
    (tmp_path / "missing.csv").write_text(f"{head}\na,,0.5\n")
    check(pc.as_pair_similarity, tmp_path / "missing.csv", ValueError, ["missing in 1 of 1 pairs", "row 0"])
    (tmp_path / "scores.csv").write_text(f"{head}\na,b,NA\n")
    check(pc.as_pair_similarity, tmp_path / "scores.csv", ValueError, ["1 of 1 are missing", "'a' and 'b'"])


def test_it_shows_itself():
    limits = {"max_per_source": 1, "max_cluster_size": 3}
    shown = repr(pc.as_pair_similarity(LINKED, items=RECORDS, **limits, must_link=LINKED[:1], unscored=0.1))
    text = " ".join(shown.split())
    said = "1 pair must be together", "2 data sets", "most 3 items"
    for part in ("records 4", "2, mean 0.7", "4, taken as 0.1", *said):
        assert part in text
    assert "not known to be non-matches" in repr(pc.as_pair_similarity(TABLE))


def test_random_tables_against_the_dense_matrix(rng):
    for _ in range(30):
        n = int(rng.integers(2, 12))
        pairs = np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1))
        values = rng.random(len(pairs)).round(2)
        dense = np.eye(n)
        dense[tuple(pairs.T)] = dense[tuple(pairs.T[::-1])] = values
        flipped = np.where(rng.random((len(pairs), 1)) < 0.5, pairs, pairs[:, ::-1])
        given = pd.DataFrame({IDS[0]: flipped[:, 0], IDS[1]: flipped[:, 1], "match_probability": values})
        order = rng.permutation(n)
        found = pc.as_pair_similarity(given.sample(frac=1, random_state=1), items=order)
        np.testing.assert_array_equal(found.similarity(), dense[np.ix_(order, order)])
        upper = scipy.sparse.csr_array(np.triu(dense))
        np.testing.assert_array_equal(pc.as_pair_similarity(upper).similarity(), dense)
