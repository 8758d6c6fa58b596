"""Runs of clustering programs: the forms they come in, what they differ in, items in no cluster, missing items."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.ensemble.similarity import similarity_errors
from posterior_consensus.results.words import RUNS
from tests import reference
from tests.helpers import check_all

ITEMS = ["AAC", "ACC", "CAT"]
TABLE = pd.DataFrame(
    {"leiden_0": ["0", "0", "1"], "leiden_1": ["1", "1", "1"], "louvain_0": ["0", "1", "2"]}, index=ITEMS
)
LABELS = [[0, 0, 1], [0, 0, 0], [0, 1, 2]]
CELLS = TABLE.assign(n_genes=[0.5, 0.25, 7.0])
OTHER_KINDS = pd.DataFrame(
    {
        "category": pd.Categorical(["b", "b", "a"], categories=["unused", "a", "b"]),
        "whole": pd.array([7, 7, 7], dtype="Int64"),
        "truth": [3.0, 1.0, -0.0],
    },
    index=ITEMS,
)


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (TABLE, {}),
        (TABLE.T, {"axis": 0}),
        (CELLS, {"keys": ["leiden_*", "louvain_0"]}),
        (SimpleNamespace(obs=CELLS, obs_names=CELLS.index), {"keys": ["leiden_0", "leiden_1", "louvain_0"]}),
        (SimpleNamespace(obs=CELLS.reset_index(), obs_names=CELLS.index), {"keys": ["l*_0", "l*_1"]}),
        (OTHER_KINDS, {}),
        (TABLE.rename_axis("cell").reset_index(), {}),
        (np.array(LABELS), {}),
        (np.array(LABELS).T, {"axis": 1}),
        (LABELS, {}),
        (np.array(LABELS).T.tolist(), {"axis": 1}),
        ([pd.Series(LABELS[0], ITEMS), LABELS[1], pd.Series(LABELS[2][::-1], ITEMS[::-1])], {}),
        ({name: TABLE[name] for name in TABLE}, {}),
        ({"b": LABELS[1], "a": LABELS[0], "c": np.array(LABELS[2])}, {"keys": ["a", "b", "c"]}),
        (xr.DataArray(LABELS, dims=("x", "y")), {}),
        (xr.DataArray(LABELS, dims=("run", "y")).T, {}),
        (xr.DataArray(LABELS, dims=("x", "y")).T, {"axis": "x"}),
        ([pd.Series(LABELS[0], ITEMS), xr.DataArray([2, 1, 0], {"cell": ITEMS[::-1]}, ("cell",)), LABELS[1]], {}),
    ],
)
def test_runs_of_any_form(data, options):
    runs = pc.as_runs(data, **options)
    assert sorted(runs.labels.tolist()) == sorted(LABELS)
    assert runs.words is RUNS
    assert runs.samples.words.draw == "run"


def test_names_of_runs_and_of_items():
    runs = pc.as_runs(TABLE.rename_axis("cell"), ["louvain_*", "leiden_*"])
    assert runs.samples.draw.tolist() == ["louvain_0", "leiden_0", "leiden_1"]
    assert runs.items.dim == "cell"
    assert runs.items.coords["cell"].values.tolist() == ITEMS
    for name in ("sample", "index"):  # a name of draws in the results, and the one that pandas gives
        unnamed = pc.as_runs(TABLE.rename_axis(name)).items
        assert (unnamed.dim, unnamed.names.tolist()) == ("item", ITEMS)
    assert "item" not in pc.as_runs(LABELS).items.coords
    exact = pd.DataFrame({"a[1]": [0, 0], "a1": [0, 1]})
    assert pc.as_runs(exact, "a[1]").samples.draw.tolist() == ["a[1]"]
    assert pc.as_runs(exact, "a[0-9]").samples.draw.tolist() == ["a1"]


def test_file_of_runs(tmp_path):
    path = tmp_path / "runs.csv"
    TABLE.rename_axis("cell").to_csv(path)
    runs = pc.as_runs(path)
    assert runs.labels.tolist() == LABELS
    assert (runs.items.dim, runs.items.names.tolist()) == ("cell", ITEMS)
    assert runs.samples.draw.tolist() == TABLE.columns.tolist()
    assert pc.as_runs(str(path), "leiden_*").n_draws == 2


SORTS = TABLE.rename_axis("card").reset_index().melt("card", var_name="by", value_name="pile")
LONG = {"item": "card", "run": "by", "label": "pile"}


def test_long_table_in_any_order(rng):
    runs = pc.as_runs(SORTS, **LONG, groups="{}_*")
    assert runs.labels.tolist() == LABELS
    assert (runs.items.dim, runs.items.names.tolist()) == ("card", ITEMS)
    assert runs.samples.chain.tolist() == ["leiden", "leiden", "louvain"]
    shuffled = SORTS.sample(frac=1, random_state=rng).astype({"card": "category", "pile": "int8"})
    again = pc.as_runs(shuffled.set_axis(rng.integers(5, size=9)), **LONG)
    at = [again.items.names.tolist().index(name) for name in ITEMS]
    found = dict(zip(again.samples.draw, again.labels[:, at], strict=True))
    for name, labels in zip(TABLE, LABELS, strict=True):
        assert pc.partition_loss(found[name], labels) == 0


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_long_table_of_another_package(package):
    module = pytest.importorskip(package)
    table = module.from_pandas(SORTS) if package == "polars" else module.Table.from_pandas(SORTS)
    assert pc.as_runs(table, **LONG).labels.tolist() == LABELS


def test_long_table_without_all_rows():
    """Cards that somebody did not sort: missing, or in no pile; as in a table with a column for each run."""
    some = SORTS.drop([4, 8])
    wide = TABLE.mask(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 1]], bool))
    assert_array_equal(pc.as_runs(some, **LONG, missing=np.nan).labels, pc.as_runs(wide, missing=np.nan).labels)
    assert_array_equal(pc.as_runs(some, **LONG, noise=np.nan).noise, pc.as_runs(wide, noise=np.nan).noise)
    check_all(
        lambda data: pc.as_runs(data, **LONG),
        [
            (some, ValueError, "run 'leiden_1'", "NaN for 1 of 3 items", "card 'ACC'", "missing=numpy.nan"),
            (pd.concat([SORTS, SORTS[4:6]]), ValueError, "2 rows repeat", "card 'ACC' of by 'leiden_1'"),
            (SORTS.assign(by=SORTS["by"].mask(SORTS["card"] == "CAT")), ValueError, "`run`", "'by' lacks 3", "row 2"),
            (SORTS.iloc[:0], ValueError, "at least one run of one item"),
            (SORTS.to_numpy(), TypeError, "`item`, `run` and `label`", "got ndarray"),
            (pc.as_runs(TABLE), ValueError, "`item` must be left out for draws", "'card'"),
        ],
    )


def test_columns_of_a_long_table_are_found_or_refused():
    cases = [
        (
            {"item": "crad"},
            ValueError,
            "`item` must name one column",
            "'crad', present: 'card', 'by', 'pile'",
            "`card`",
        ),
        ({"label": None}, ValueError, "given together", "'card', 'by', None"),
        ({"label": "card"}, ValueError, "different columns", "'card', 'by', 'card'"),
        ({"keys": "leiden_*"}, ValueError, "`keys` must be left out", "a long table"),
        ({"axis": 0}, ValueError, "`axis` must be left out", "a long table"),
    ]
    check_all(lambda options: pc.as_runs(SORTS, **LONG | options), cases)


def test_file_of_counted_rows_and_columns_has_no_names(tmp_path):
    pd.DataFrame(np.transpose(LABELS)).to_csv(tmp_path / "runs.csv")
    runs = pc.as_runs(tmp_path / "runs.csv")
    assert runs.labels.tolist() == LABELS
    assert "item" not in runs.items.coords
    np.save(tmp_path / "runs.npy", LABELS)
    assert pc.as_runs(tmp_path / "runs.npy").labels.tolist() == LABELS


def test_files_of_one_run_each_are_matched_by_items(tmp_path):
    paths = [tmp_path / f"seed{k}.csv" for k in range(3)]
    for path, name, order in zip(paths, TABLE, ([0, 1, 2], [2, 1, 0], [1, 2, 0]), strict=True):
        TABLE[name].iloc[order].rename_axis("cell").to_csv(path)
    runs = pc.as_runs(paths)
    assert runs.labels.tolist() == LABELS
    assert runs.samples.draw.tolist() == ["seed0", "seed1", "seed2"]
    assert runs.items.names.tolist() == ITEMS
    TABLE[["leiden_0"]].iloc[:2].to_csv(tmp_path / "part.csv")
    check_all(
        pc.as_runs,
        [
            ([paths[0], tmp_path / "part.csv"], ValueError, "'CAT' is missing", "missing=numpy.nan"),
            ([paths[0], paths[0]], ValueError, "each file once"),
            ([paths[0], tmp_path / "none.csv"], FileNotFoundError, "none.csv"),
        ],
    )
    pairs = pc.as_runs([paths[0], tmp_path / "part.csv"], missing=np.nan)
    assert pairs.similarity().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_store_and_posterior(tmp_path):
    path = tmp_path / "labels.nc"
    pc.as_partition_draws(LABELS, store=path)
    runs = pc.as_runs(path)
    assert runs.labels.tolist() == LABELS
    assert runs.words is RUNS
    other = tmp_path / "posterior.nc"
    xr.Dataset({"z": (("run", "item"), LABELS)}).to_netcdf(other, group="posterior")
    check_all(pc.as_runs, [(other, TypeError, "posterior.nc", "the variable of the labels")])


def test_draws_become_runs_and_runs_stay_runs():
    draws = pc.as_partition_draws(xr.DataArray([LABELS, LABELS], dims=("chain", "draw", "cell")))
    runs = pc.as_runs(draws, groups=[1, 1, 1, 2, 2, 2])
    assert runs.words is RUNS
    assert runs.samples.draw.tolist() == list(range(6))
    assert runs.samples.chain.tolist() == [1, 1, 1, 2, 2, 2]
    again = pc.as_runs(pc.as_runs(TABLE, groups={"leiden_0": "a", "leiden_1": "a", "louvain_0": "b"}))
    assert again.samples.chain.tolist() == ["a", "a", "b"]
    assert again.samples.draw.tolist() == TABLE.columns.tolist()
    assert pc.as_runs(again, groups="{}_*").samples.chain.tolist() == ["leiden", "leiden", "louvain"]
    with pytest.raises(ValueError, match="`noise` must be left out for draws"):
        pc.as_runs(again, noise=-1)


def test_groups_by_place_by_name_and_by_pattern():
    names = ["leiden_0.5_1", "leiden_0.5_2", "leiden_1.0_1"]
    table = TABLE.set_axis(names, axis=1)
    of = {"leiden_1.0_1": 1.0} | dict.fromkeys(names[:2], 0.5)
    for groups in ([0.5, 0.5, 1.0], of, pd.Series(of), pd.Series([0.5, 0.5, 1]), "leiden_{}_*", "leiden_{}_?"):
        assert pc.as_runs(table, groups=groups).samples.chain.tolist() == [0.5, 0.5, 1.0]
    found = pc.as_runs(table, groups="leiden_*_{}").samples.chain
    assert found.tolist() == [1, 2, 1]
    assert found.dtype.kind == "i"
    assert pc.as_runs(table.add_suffix("x"), groups="leiden_*_{}").samples.chain.tolist() == ["1x", "2x", "1x"]
    check_all(
        lambda groups: pc.as_runs(table, groups=groups),
        [
            ([1, 2], ValueError, "`groups` must be one value for each of the 3 runs", "(2,)"),
            ({"leiden_0.5_1": 1}, ValueError, "`groups`", "'leiden_0.5_2' is missing"),
            ("louvain_{}", ValueError, "`groups`", "does not fit 'leiden_0.5_1'"),
            ("leiden_*", ValueError, "`groups`", "{} once"),
            ([1, np.nan, 2], ValueError, "`groups` must not be missing", "'leiden_0.5_2'"),
        ],
    )


def test_groups_that_names_of_runs_show_or_do_not():
    def table(*names):
        return pd.DataFrame({name: [0, 0, 1] for name in names}, index=ITEMS)

    pooled = table(*(f"leiden_r{value}_seed{k}" for value in (0.5, 1, 2.5) for k in range(2)))
    with pytest.warns(UserWarning, match="give groups='leiden_{}_\\*'.* compare_factors.* groups=\\[0\\] \\* 6"):
        pc.as_runs(pooled)
    with pytest.warns(UserWarning, match="give groups='k{}_\\*'"):
        pc.as_runs(table("k4_0", "k4_1", "k6_0", "k6_1"))
    with pytest.warns(UserWarning, match="makes 6 groups of one run. Give groups='leiden_{}_\\*'"):
        pc.as_runs(pooled, groups="leiden_{}")
    seeds = table("my_leiden_0", "my_leiden_1", "my_leiden_2")
    with pytest.warns(UserWarning, match="makes 3 groups of one run. Leave it out"):
        pc.as_runs(seeds, groups="my_leiden_{}")
    with pytest.warns(UserWarning, match="`data`, runs, must have several groups .* got 0 alone"):
        pc.as_layers(pc.as_runs(seeds))
    for one in (pc.as_runs(pooled, groups=[0] * 6), pc.as_runs(table("leiden_0.5_0", "leiden_1.0_0", "leiden_2.0_0"))):
        assert one.samples.chain_names == [0]


@pytest.mark.parametrize("noise", [-1, "-1", -1.0, np.int8(-1)])
def test_noise_is_together_with_nobody(noise):
    runs = pc.as_runs([[0, -1, -1, 0], [0, 0, 1, 1], [-1, -1, -1, -1]], noise=noise)
    assert runs.labels.tolist() == [[0, 1, 2, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
    assert runs.noise.tolist() == [[False, True, True, False], [False] * 4, [True] * 4]
    assert runs.take([1]).noise.tolist() == [[False] * 4]


def test_noise_of_columns_of_every_kind():
    kinds = [pd.Categorical(["0", "-1", "0"]), ["0", "-1", "0"], [0.0, -1.0, 0.0], [0, -1, 0]]
    kinds += [pd.array([0, -1, 0], dtype="Int64"), np.array([0, -1, 0], dtype=object)]
    table = pd.DataFrame({str(k): kind for k, kind in enumerate(kinds)}, index=ITEMS)
    for noise in (-1, "-1"):
        assert pc.as_runs(table, noise=noise).noise.tolist() == [[False, True, False]] * len(kinds)
    absent = pd.DataFrame({"a": pd.Categorical(["x", None, "x"]), "b": [1.0, 2.0, np.nan]})
    assert pc.as_runs(absent, noise=np.nan).noise.tolist() == [[False, True, False], [False, False, True]]


def test_what_has_no_cluster_must_be_said_to_be_noise_or_missing():
    choice = ["into no cluster, give noise={0}", "did not have them, missing={0}"]
    cases = [
        ([[0, 0, 0], [0, -1, -1]], ValueError, "run 1", "got -1 for 2 of 3 items, the first at item '1'", "-1"),
        (TABLE.replace("2", "-1"), ValueError, "run 'louvain_0'", "got -1 for 1 of 3", "item 'CAT'", "'-1'"),
        (TABLE.mask(TABLE == "2"), ValueError, "run 'louvain_0'", "got NaN for 1 of 3", "item 'CAT'", "numpy.nan"),
    ]
    for data, kind, *parts, label in cases:
        check_all(pc.as_runs, [(data, kind, *parts, *(part.format(label) for part in choice))])
    all_noise = [[-1, -1], [-1, -1]]
    check_all(lambda data: pc.as_runs(data, noise=-1), [(all_noise, ValueError, "all noise", "4 labels")])
    check_all(lambda data: pc.as_runs(data, missing=-1), [(all_noise, ValueError, "all missing", "4 labels")])
    for argument in ("noise", "missing"):
        with pytest.warns(UserWarning, match=f"`{argument}` must be a label of the runs; no label is 'none'"):
            pc.as_runs(TABLE, **{argument: "none"})
        check_all(lambda label, name=argument: pc.as_runs(TABLE, **{name: label}), [([-1], TypeError, f"`{argument}`")])


def test_missing_items_are_not_counted(rng):
    labels = rng.integers(0, 3, (40, 9))
    labels[rng.random(labels.shape) < 0.3] = -1
    pairs = pc.as_runs(labels, missing=-1)
    assert_allclose(pairs.similarity(), reference.pairwise_similarities(labels, None), rtol=1e-14)
    as_names = {f"run {k}": pd.Series(row, list("abcdefghi"))[row >= 0] for k, row in enumerate(labels)}
    named = pc.as_runs(as_names, missing=np.nan)
    order = [named.items.names.tolist().index(name) for name in "abcdefghi"]
    assert_array_equal(named.similarity()[np.ix_(order, order)], pairs.similarity())
    assert_array_equal(similarity_errors(named)[np.ix_(order, order)], similarity_errors(pairs))


def test_errors_with_missing_items_are_those_of_the_runs_that_had_both(rng):
    labels = rng.integers(0, 3, (60, 8))
    labels[rng.random(labels.shape) < 0.3] = -1
    labels[:, 7] = -1
    labels[:2] = 1  # the runs that had item 7
    pairs = pc.as_runs(labels, missing=-1)
    samples = pairs.samples
    assert pairs.words is RUNS
    held = (labels >= 0).T.astype(int) @ (labels >= 0)
    p, n = pairs.similarity(), held
    raw = np.sqrt(p * (1 - p) / np.maximum(n - 1, 1))
    expected = np.where(n > 1, samples.probability_errors(p, raw, n.astype(float)), np.nan)
    np.fill_diagonal(expected, 0.0)
    errors = pc.diagnostics.similarity_mcse(pairs).values
    assert_allclose(errors, expected, rtol=1e-12)
    assert errors[0, 7] == pytest.approx(np.sqrt(4 / 6 * 2 / 6 / 2))
    shuffled = pc.as_runs(labels[rng.permutation(60)], missing=-1)
    assert_array_equal(similarity_errors(shuffled), errors)
    complete = pc.as_runs(np.abs(labels), groups=np.arange(60) % 2)
    with pytest.warns(UserWarning, match="`missing`"):
        found = pc.as_runs(np.abs(labels), missing=-1)
    assert_allclose(similarity_errors(found), pc.diagnostics.similarity_mcse(complete).values, rtol=1e-12)


def test_errors_name_what_is_wrong():
    annotated = SimpleNamespace(obs=CELLS, obs_names=CELLS.index)
    doubled = TABLE.set_axis(["AAC", "AAC", "CAT"], axis=0)
    of_one_name = SimpleNamespace(obs=doubled, obs_names=doubled.index)
    twice = ValueError, "`data` must name each item once", "'AAC' is the name of 2 items"
    check_all(lambda data: pc.as_runs(data, "leiden_*"), [(of_one_name, *twice, "adata.obs_names_make_unique()")])
    assert pc.as_runs(pd.DataFrame({"one": range(21)})).n_clusters.tolist() == [21]
    counted = pd.DataFrame({"id": range(21), "a": [0, 1, 0] * 7})
    cases = [
        (annotated, ValueError, "`keys` must name the columns of `obs`", "'n_genes'"),
        (CELLS, ValueError, "run 'n_genes'", "got 0.5 at item 'AAC'", "`keys`"),
        (counted, ValueError, "run 'id'", "21 labels that all differ", "`keys`"),
        (TABLE.rename_axis("draw"), ValueError, "rows are named 'draw'", "axis=0"),
        (TABLE[["leiden_0", "leiden_0"]], ValueError, "name each run once", "'leiden_0' is the name of 2 runs"),
        (TABLE.iloc[:0], ValueError, "at least one run of one item", "0 items"),
        ([], ValueError, "at least one run of one item"),
        (doubled, *twice, "reset_index(drop=True)"),
        ([pd.Series([0, 1, 1], doubled.index)], *twice),
        ([[0, 1, 0], [0, 0]], ValueError, "got 3 labels of run 0 and 2 of run 1", "as a Series"),
        ([0, 1, 0], TypeError, "run 0 is int", "single partition"),
        (5, TypeError, "`data` must be an object with `obs`", "got int"),
        ((row for row in LABELS), TypeError, "`data` must be", "got generator", "list("),
        ([SimpleNamespace(labels_=[0, 1])], TypeError, "run 0 is SimpleNamespace", "`labels_`"),
        ("no*.csv", ValueError, "`data` must be a file, or a list", "got 'no*.csv'", "glob.glob('no*.csv')"),
        (
            pc.as_allocation_probabilities(np.full((4, 3, 2), 0.5)),
            ValueError,
            "`data` must be draws of labels",
            "labels_only()",
        ),
        (np.zeros((2, 3, 4), int), TypeError, "(2, 3, 4)", "as_partition_draws"),
        (xr.Dataset({"z": (("run", "item"), LABELS)}), TypeError, "data['labels']"),
        (pd.DataFrame({"a": [1, "x", 2]}, index=ITEMS), TypeError, "run 'a'", "int, str", "'x' at item 'ACC'"),
        ("posterior.nc", FileNotFoundError, "posterior.nc"),
    ]
    check_all(pc.as_runs, cases)
    assert pc.as_runs(counted, ["id", "a"]).n_clusters.tolist() == [21, 2]
    of_keys = [
        ("louvian*", ValueError, "`keys`", "'louvian*'", "'leiden_0'"),
        ("leiden_", ValueError, "`keys`", "Did you mean 'leiden_*'?"),
    ]
    check_all(lambda keys: pc.as_runs(CELLS, keys), of_keys)
    check_all(lambda axis: pc.as_runs(LABELS, axis=axis), [(2, ValueError, "`axis` must be 0 or 1", "got 2")])
    check_all(lambda axis: pc.as_runs(TABLE, axis=axis), [("cell", ValueError, "`axis`", "'cell'")])


def test_noise_and_missing_items_are_two_labels():
    """An error of labels that need both says so."""
    both = [[0, -1, np.nan, 1], [0, 0, 1, 1]]
    instead = "noise=-1", "missing=numpy.nan"
    for options in ({}, {"noise": -1}, {"missing": np.nan}):
        check_all(lambda data, options=options: pc.as_runs(data, **options), [(both, ValueError, "run 0", *instead)])
    with pytest.raises(ValueError, match="noise='-1', and missing=numpy.nan"):
        pc.as_runs([["a", "-1", None], ["a", "b", "c"]])
    runs = pc.as_runs(both, noise=-1, missing=np.nan)
    assert runs.noise.tolist() == [[False, True, False, False], [False] * 4]
    assert runs.present.tolist() == [[True, True, False, True], [True] * 4]
    assert runs.labels.tolist() == [[0, 2, -1, 1], [0, 0, 1, 1]] and runs.n_clusters.tolist() == [2, 2]
    with pytest.warns(UserWarning, match="`noise` must be a label of the runs; no label is -7"):
        assert not pc.as_runs([[0, np.nan], [1, 1]], noise=-7, missing=np.nan).noise.any()
    text = pd.DataFrame({"a": ["x", "-1", "x"], "b": ["x", None, "y"]}, index=ITEMS)
    assert pc.as_runs(text, noise=-1, missing=np.nan).noise.tolist() == [[False, True, False], [False] * 3]
    assert pc.as_runs([*both, both[1]], missing=-1).similarity()[2, 3] == 1


def test_an_item_that_no_run_has_is_refused():
    cases = [([[0, -1, 1], [0, -1, 1]], ValueError, "1 are in none, such as '1'", "Leave them out")]
    check_all(lambda data: pc.as_runs(data, missing=-1), cases)


def test_groups_of_runs_with_missing_items_are_shown():
    pairs = pc.as_runs([[0, -1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]], groups=[0.5, 0.5, 1.0], missing=-1)
    assert "2 of 1, 2 runs" in repr(pairs)
    assert list(pc.as_layers(pairs)) == [0.5, 1.0]


class Unread(SimpleNamespace):
    """An annotated object that is not to be read as a sequence of its observations."""

    def __len__(self):
        return len(self.obs)

    def __getitem__(self, item):
        raise AssertionError("read as a sequence")


@pytest.mark.parametrize(
    "function", [pc.as_layers, pc.as_partition_draws, pc.as_pair_similarity, pc.compare_layers, pc.summarize]
)
def test_columns_of_runs_are_named_in_as_runs(function, tmp_path):
    path = tmp_path / "cells.h5ad"
    path.touch()
    cells = Unread(obs=CELLS, obs_names=CELLS.index)
    check_all(
        function,
        [
            (cells, TypeError, "got Unread", "as_runs(data, keys='leiden_*')", "groups='leiden_{}_*'"),
            (str(path), ValueError, "'cells.h5ad'", f"as_runs(anndata.read_h5ad({str(path)!r}), keys="),
        ],
    )


def test_counts_that_a_pattern_matches_are_noticed():
    table = pd.DataFrame({"n_0": [0, 1, 0, 2] * 10, "n_genes": [*range(200, 230), *range(200, 210)]})
    with pytest.warns(UserWarning, match=r"run 'n_genes' .* 30 numbers from 200 to 229"):
        pc.as_runs(table, "n_*")
    assert pc.as_runs(table, ["n_0", "n_genes"]).n_clusters.tolist() == [3, 30]


def test_folder_of_files_is_no_run(tmp_path):
    pd.Series([0, 1]).to_csv(tmp_path / "seed.csv")
    check_all(pc.as_runs, [(tmp_path, ValueError, "`data` must be a file, or a list", "glob('*.csv')")])


def test_error_is_that_of_independent_repetitions():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (40, 30))
    runs = pc.as_runs(labels)
    values = runs.n_clusters + rng.random(40)
    error, ess = runs.samples.mcse_and_ess(values)
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(40), rel=1e-12)
    assert ess == 40
    p = pc.posterior_similarity_matrix(runs).values
    errors = pc.diagnostics.similarity_mcse(runs).values
    assert errors[0, 1] == pytest.approx(runs.samples.probability_mcse((labels[:, 0] == labels[:, 1]).astype(float)))
    assert p[0, 1] == np.mean(labels[:, 0] == labels[:, 1])


def test_many_clusters_and_noise_have_wide_labels():
    labels = np.stack([np.arange(70_000), np.zeros(70_000, int), np.full(70_000, -1)])
    labels[2, 0] = 5
    runs = pc.as_runs(labels, noise=-1)
    assert runs.labels.dtype == np.uint32
    assert runs.backend.n_clusters.tolist() == [70_000, 1, 70_000]
    assert runs.n_clusters.tolist() == [70_000, 1, 1]
    assert_array_equal(runs.labels[0], labels[0])


def test_stored_results_are_of_runs():
    labels = np.random.default_rng(0).integers(0, 3, (40, 30))
    runs = pc.as_runs(labels, groups=["a"] * 20 + ["b"] * 20)
    summary = pc.summarize(runs, random_seed=1, progressbar=False)
    found = pc.results.Summary.from_dataset(summary.to_dataset(), runs)
    assert found.diagnosis.verdict == summary.diagnosis.verdict
    assert found.diagnosis.spread == summary.diagnosis.spread
    density = pc.partition_density(runs, random_seed=1)
    same = pc.results.PartitionDensity.from_dataset(density.to_dataset())
    assert same.contains(labels[0], 0.9).values.tolist() == density.contains(labels[0], 0.9).values.tolist()


def test_one_label_is_not_noise_and_missing():
    with pytest.raises(ValueError, match=r"`noise` and `missing`.*-1"):
        pc.as_runs([[0, -1], [0, 0]], noise=-1, missing=-1)
    check_all(lambda noise: pc.as_runs([[0, -1]], noise=noise, missing=-1), [(np.nan, ValueError, "NaN is missing")])
