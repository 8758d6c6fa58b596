"""Every format of tables and arrays, through every door: one row of the table of formats is all that a door needs."""

import json

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.sources import formats
from posterior_consensus.sources.formats import FORMATS, PLAIN, WRITTEN, content_of
from posterior_consensus_command import main
from tests.helpers import check

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("short_look")

# Writers of each suffix: of a table without an index, or of an array.
TABLES = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    ".txt": lambda table, path: table.to_csv(path, index=False, sep=" "),
    ".csv.gz": lambda table, path: table.to_csv(path, index=False),
    ".tsv.gz": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    ".txt.gz": lambda table, path: table.to_csv(path, index=False, sep=" "),
    ".parquet": lambda table, path: table.to_parquet(path),
    ".pq": lambda table, path: table.to_parquet(path),
    ".feather": lambda table, path: table.to_feather(path),
}
ARRAYS = {".npy": lambda values, path: np.save(path, values), ".npz": lambda values, path: np.savez(path, z=values)}

RNG = np.random.default_rng(1)
Z = RNG.integers(3, size=(2, 12, 5))
NAMES = ["Ada", "Bea", "Cy", "Dan", "Eve"]
LAYERS = RNG.integers(3, size=(12, 2, 5))
MATRIX = pc.posterior_similarity_matrix(Z).values
SCORED = pd.DataFrame({"unique_id_l": ["a", "b", "c"], "unique_id_r": ["b", "c", "d"], "match_probability": 0.5})


def named(rows, columns=NAMES):
    return pd.DataFrame(rows, columns=columns)


def of_draws(path):
    return pc.as_partition_draws(path).labels


def of_command(path, capsys, *options):
    assert main([str(path), *map(str, options), "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def draws(write, path, is_table, capsys):
    both = named(Z.reshape(-1, 5)).assign(chain=np.repeat([0, 1], 12), draw=np.tile(np.arange(12), 2))
    write(both if is_table else Z, path)
    found = pc.as_partition_draws(path)
    np.testing.assert_array_equal(found.labels, of_draws(Z))
    assert found.samples.chain.tolist() == [0] * 12 + [1] * 12
    assert ("item" in found.items.coords) is is_table
    told = of_command(path, capsys)
    assert (told["n_draws"], told["n_chains"], told["n_items"]) == (24, 2, 5)


def files_of_chains(write, path, is_table, capsys):
    paths = [path.with_name(f"chain{k}{path.name}") for k in range(2)]
    for chain, of_chain in zip(Z, paths, strict=True):
        write(named(chain) if is_table else chain, of_chain)
    np.testing.assert_array_equal(of_draws(paths), of_draws(Z))
    assert of_command(paths[0], capsys, paths[1])["n_chains"] == 2


def runs(write, path, is_table, capsys):
    table = named(Z[0].T, [f"run {k}" for k in range(12)])
    table.insert(0, "name", NAMES)
    write(table if is_table else Z[0], path)
    found = pc.as_runs(path)
    np.testing.assert_array_equal(found.labels, of_draws(Z[0]))
    assert found.samples.words.draws == "runs" and found.items.n_items == 5
    axis = "columns" if is_table else "rows"
    assert of_command(path, capsys, "--runs", axis)["n_items"] == 5


def long_runs(write, path, is_table, capsys):
    rows = [(NAMES[i], f"{k:02}", k, Z[0, k, i]) for k in range(12) for i in range(5)]
    write(pd.DataFrame(rows, columns=["card", "by", "n", "pile"]), path)
    found = pc.as_runs(path, item="card", run="by", label="pile")
    np.testing.assert_array_equal(found.labels, of_draws(Z[0]))
    assert found.items.names.tolist() == NAMES
    assert found.samples.draw.tolist() == [f"{k:02}" for k in range(12)]  # in text too
    assert pc.as_runs(path, item="card", run="n", label="pile").samples.draw.tolist() == list(range(12))
    assert of_command(path, capsys, "--item", "card", "--run", "by", "--label", "pile")["n_items"] == 5


def files_of_runs(write, path, is_table, capsys):
    paths = [path.with_name(f"{k}{path.name}") for k in range(12)]
    for labels, of_run in zip(Z[0], paths, strict=True):
        write(pd.DataFrame({"name": NAMES, "label": labels}) if is_table else labels, of_run)
    np.testing.assert_array_equal(pc.as_runs(paths).labels, of_draws(Z[0]))
    assert of_command(paths[0], capsys, *paths[1:], "--runs", "columns")["n_items"] == 5


def layers(write, path, is_table, capsys):
    elements = {f"z[{t + 1},{i + 1}]": LAYERS[:, t, i] for t in range(2) for i in range(5)}
    write(pd.DataFrame(elements) if is_table else LAYERS, path)
    found = pc.as_layers(path)
    for t, of_layer in enumerate(found.values()):
        np.testing.assert_array_equal(of_layer.labels, of_draws(LAYERS[:, t]))
    assert of_command(path, capsys, "--layers", "time")["layers"]


def matrix(write, path, is_table, capsys):
    write(named(MATRIX) if is_table else MATRIX, path)
    np.testing.assert_allclose(pc.as_pair_similarity(path).values, MATRIX, rtol=1e-15)


def weights(write, path, is_table, capsys):
    w = np.arange(1.0, 25.0)
    write(pd.DataFrame({"w": w}) if is_table else w, path)
    np.save(path.with_name("labels.npy"), Z)
    told = of_command(path.with_name("labels.npy"), capsys, "--weights", path)
    best = pc.consensus_partition(pc.as_partition_draws(Z, weights=w), random_seed=0, progressbar=False)
    assert told["expected_loss"] == pytest.approx(best.expected_loss, rel=1e-12)


def pairs(write, path, is_table, capsys):
    write(SCORED, path)
    for found in (pc.as_pair_similarity(path), pc.summarize(path, random_seed=1, progressbar=False).pairs):
        assert isinstance(found, pc.results.ScoredPairs) and found.items.names.tolist() == list("abcd")
    assert of_command(path, capsys)["n_items"] == 4
    renamed = path.with_name(f"renamed{path.name}")
    write(SCORED.set_axis(["one", "other", "p"], axis=1), renamed)
    columns = ("--left", "one", "--right", "other", "--probability", "p")
    assert of_command(renamed, capsys, *columns, "--must-link", renamed)["n_clusters"] == 1


OF_TABLES = (long_runs, pairs)
DOORS = (draws, files_of_chains, runs, files_of_runs, layers, matrix, weights, *OF_TABLES)


def test_every_suffix_of_the_table_is_tried(tmp_path):
    for suffix, write in (TABLES | ARRAYS).items():
        write(named(Z[0]) if suffix in TABLES else Z[0], tmp_path / f"a{suffix}")
        np.testing.assert_array_equal(of_draws(tmp_path / f"a{suffix}"), of_draws(Z[0]))
    assert [suffix for one in PLAIN for suffix in one.suffixes] == [*TABLES, *ARRAYS]
    assert [suffix for one in formats.TABLES for suffix in one.suffixes] == [*TABLES]


EACH = [
    (one.suffixes[0], door) for one in PLAIN for door in DOORS if one.read_columns is not None or door not in OF_TABLES
]


@pytest.mark.parametrize(("suffix", "door"), EACH, ids=lambda one: getattr(one, "__name__", one))
def test_every_door_reads_every_format(suffix, door, tmp_path, capsys):
    door((TABLES | ARRAYS)[suffix], tmp_path / f"a{suffix}", suffix in TABLES, capsys)


@pytest.mark.parametrize("suffix", WRITTEN)
def test_the_command_writes_every_format_of_tables_that_it_reads(suffix, tmp_path, capsys):
    named(Z[0]).to_csv(tmp_path / "z.csv", index=False)
    output = tmp_path / f"items{suffix}"
    told = of_command(tmp_path / "z.csv", capsys, "-o", output)
    found = content_of(output)
    found = found.reset_index() if "item" not in found else found
    assert found[["item", "cluster"]].to_dict("records") == [
        {name: one[name] for name in ("item", "cluster")} for one in told["items"]
    ]


@pytest.mark.parametrize("suffix", [suffix for one in FORMATS if one.needs == "pyarrow" for suffix in one.suffixes[:1]])
def test_what_pyarrow_reads_says_what_is_missing_or_wrong(suffix, tmp_path, monkeypatch):
    path, bad = tmp_path / f"pairs{suffix}", tmp_path / f"bad{suffix}"
    TABLES[suffix](SCORED, path)
    bad.write_text("no table")
    for function in (pc.as_partition_draws, pc.as_pair_similarity, pc.as_runs):
        check(function, bad, ValueError, ["`data`", f"{bad.name!r} is none"])
        check(function, tmp_path / f"none{suffix}", FileNotFoundError, ["there is no", f"none{suffix}"])
    monkeypatch.setattr("posterior_consensus.sources.readers.find_spec", lambda _: None)
    check(pc.as_pair_similarity, path, ImportError, [f"{path.name!r}", "'posterior-consensus[parquet]'"])
