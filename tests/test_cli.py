"""The command posterior-consensus: what it takes, prints and writes, and what it says of wrong arguments."""

import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.answers import loss_parameter
from posterior_consensus.search import components
from posterior_consensus.sources.formats import TABLES
from posterior_consensus_command import LOSSES, METHODS, main
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import press_ctrl_c, written

pytestmark = pytest.mark.usefixtures("short_look")

COMMAND = [sys.executable, "-c", "import sys; from posterior_consensus_command import main; sys.exit(main())"]


@pytest.fixture
def labels(rng):
    """Draws of two chains of 20 of four items."""
    return noisy_draws(rng, 40, 4, 2, 0.2)


@pytest.fixture
def table(labels, tmp_path):
    pd.DataFrame(labels, columns=list("abcd")).to_csv(tmp_path / "z.csv", index=False)
    return str(tmp_path / "z.csv")


def printed(capsys, *arguments):
    """The JSON that the command prints, without the times."""
    assert main([*map(str, arguments), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    del found["seconds"]
    return found


@pytest.fixture
def file(posterior_tree, tmp_path):
    return str(written(posterior_tree, tmp_path / "posterior.nc"))


@pytest.fixture
def short_page(monkeypatch):
    """A report without figures."""
    monkeypatch.setattr("posterior_consensus.summary.report.page.page", lambda *_, **__: "<!DOCTYPE html> short")


def test_command_prints_and_writes(file, tmp_path, capsys, short_page):
    report, figure, output = (tmp_path / name for name in ("report.html", "figure.pdf", "out.nc"))
    made = ["--report", str(report), "--figure", str(figure), "--output", str(output)]
    assert main([file, "--var", "z", "--loss", "binder", *made]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("20 items (obs) in") and " (z)\n" in captured.out
    assert "\x1b" not in captured.out + captured.err  # no colours without a terminal
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>") and figure.read_bytes().startswith(b"%PDF")
    assert b"/FontFile2" in figure.read_bytes() and b"/Type3" not in figure.read_bytes()
    with xr.open_datatree(output, engine="h5netcdf") as tree:
        assert set(tree.children) == {"posterior", "observed_data", "consensus"}
    assert all(f"wrote {path}" in captured.err for path in (report, figure, output))


def test_the_help_comes_before_the_package():
    asked = (
        "import sys; from posterior_consensus_command import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)
    assert not {"numpy", "pandas", "numba"} & set(done.stdout.splitlines()[-1].split())
    assert set(LOSSES) == set(pc.LOSSES) and set(METHODS) == set(pc.METHODS)
    assert all(f"{one.suffixes[0]}," in done.stdout for one in TABLES[:-1])


def test_json_keeps_items_of_equal_names(tmp_path, capsys):
    labels = xr.DataArray(np.tile([0, 0, 1, 1], (2, 10, 1)), dims=("chain", "draw", "obs"))
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"z": labels.assign_coords(obs=["a", "b", "a", "c"])})})
    assert main([str(written(tree, tmp_path / "p.nc")), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["item"], one["cluster"]) for one in found["items"]] == [("a", 0), ("b", 0), ("a", 1), ("c", 1)]


def test_json_says_times_as_the_tables_do(labels, tmp_path, capsys):
    days = pd.date_range("2020-01-01", periods=4)
    z = xr.DataArray(labels.reshape(2, 20, 4), dims=("chain", "draw", "day"), coords={"day": days})
    found = printed(capsys, written(xr.DataTree.from_dict({"posterior": xr.Dataset({"z": z})}), tmp_path / "p.nc"))
    assert [one["item"] for one in found["items"]] == ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]


def test_names_that_a_terminal_cannot_encode_are_escaped(tmp_path, monkeypatch):
    pd.DataFrame(np.tile([0, 1, 1, 0], (20, 1)), columns=["ä", "b", "c", "d"]).to_csv(tmp_path / "z.csv", index=False)
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main([str(tmp_path / "z.csv"), "--quiet"]) == 0
    assert b"\\xe4" in terminal.buffer.getvalue()


def test_command_prints_json(file, capsys):
    assert main([file, "--json", "--method", "hierarchical", "--n-clusters", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_clusters"] == 3 and len(found["items"]) == 20
    assert found["items"][0]["item"] == "s0" and found["items"][0]["cluster"] == 0
    assert all(0 <= one["similarity"] <= 1 for one in found["items"])
    assert found["chains"]["status"] in ("agree", "short", "disagree", "unknown")


OF_A_FILE = {
    "nowhere.nc": ["nowhere.nc", "there is no"],
    "{file} --var zz": ["--var must name", "'zz'", "'z'"],
    "{file} --group prior": ["--group must", "'prior'"],
    "{file} --prob 2": ["--prob must"],
    "{file} --n-clusters 99": ["--n-clusters must", "20"],
    "{file} --report {dir}/none/report.html": ["--report", "none"],
    "{file} --figure {dir}": ["--figure", "file"],
    "{file} --figure {dir}/figure.doc": ["--figure must end in .pdf, .png, .svg", "figure.doc"],
    "{file} --figure {dir}/figure": ["--figure must end in .pdf, .png, .svg"],
    "{file} --output {dir}/out.rds": ["--output must end in .csv, .parquet, .feather or .nc", "out.rds"],
    "{file} {file}": ["Several files must be CSV, Parquet, Feather or .npy"],
    "-": ["FILE must be a file", "standard input", "> draws.csv"],
    "{dir}/pipe.csv": ["FILE must be a file", "pipe.csv', a pipe"],
    "{dir}/along.nc": ["as_partition_draws(data, sample_dims=('sweep', 'run'))"],
    "{dir}/swapped.nc --var p --item-dim k": ["Give --item-dim='component'"],
    "{file} --random-seed -1": ["--random-seed must be"],
    "{file} --n-clusters 0": ["--n-clusters must be at least 1"],
    "{file} --seconds 0": ["--seconds must be positive"],
    "{file} --burn-in -1": ["--burn-in", "0 or more; got -1"],
    "{file} --burn-in 50": ["--burn-in", "got 50, the shortest has 50"],
    "{file} --thin 0": ["--thin must be at least 1; got 0"],
    "{file} --weights lp": [
        "--weights must be a CSV, Parquet, Feather or .npy file or name a variable",
        "'lp'",
        "'mu'",
    ],
    "{file} --weights mu": ["--weights must be one number per draw", "(100, 4)"],
    "{file} --output {file}": ["--output", "another file"],
    "{file} --output {dir}/out.zarr": ["--output must end in .csv, .parquet, .feather or .nc", "out.zarr"],
    "{file} --item-dim person": ["--item-dim 'person'"],
}
if sys.platform == "linux":  # where even root cannot write to this folder
    OF_A_FILE["{file} --report /proc/report.html"] = ["--report", "can be written", "/proc/report"]
THE_POSTERIORS = "another file than the posterior's"
OF_A_TABLE = {
    "{table} {file}": ["Several files must be CSV, Parquet, Feather or .npy"],
    "{table} {dir}/../{name}/z.csv": ["must have each file once", "z.csv' twice"],
    "{dir}/psm.csv": ["give as_pair_similarity(data)", "with loss='binder'"],
    "{dir}/rows.csv": ["'Unnamed: 1' of 'rows.csv' names the rows. Leave it out"],
    "{dir}/logs.npy": ["got -0.001 at draw 0", "subtract the largest of each item"],
    "{table} --output {dir}/out.nc": ["--output must end in .csv, .parquet or .feather", "if draws are tables"],
    "{table} --output {table}": ["--output", THE_POSTERIORS],
    "{table} --report {table}": ["--report", THE_POSTERIORS],
    "{table} --report {dir}/hard.csv": ["--report", THE_POSTERIORS, "hard.csv"],
    "{table} --output {dir}/soft.csv": ["--output", THE_POSTERIORS, "soft.csv"],
    "{dir}/z.zarr --report {dir}/z.zarr/0": ["--report", THE_POSTERIORS],
    "{table} --weights {dir}/w.csv --output {dir}/w.csv": ["--output", "another file than that of --weights", "w.csv"],
    "{table} --report {dir}/a.csv --output {dir}/../{name}/a.csv": ["--output", "than that of --report", "a.csv"],
    "{table} --group prior": ["--group must be left out for tables", "'prior'"],
    "{table} --var z": ["--var must name columns of 'z.csv'"],
    "{dir}/none.csv": ["the file must be a path", "none.csv"],
    "{table} --weights w": ["--weights must be a CSV, Parquet, Feather or .npy file", "'w'"],
    "{table} --weights {dir}/none.csv": ["there is no", "none.csv"],
    "{table} --weights {table}": ["--weights must be one number per draw", "(40, 4)"],
}


def write_wrong_files(folder, rng):
    os.mkfifo(folder / "pipe.csv")
    along = xr.DataArray(np.tile([0, 1, 1], (4, 10, 1)), dims=("sweep", "run", "obs"))
    p = rng.dirichlet(np.ones(3), (2, 10, 5))
    swapped = xr.DataArray(p, dims=("chain", "draw", "component", "k"))
    for name, dataset in {"along.nc": {"z": along}, "swapped.nc": {"p": swapped}}.items():
        written(xr.DataTree.from_dict({"posterior": xr.Dataset(dataset)}), folder / name)
    (folder / "rows.csv").write_text("".join(["x,,a,b\n", *(f"{k % 2},row {k},0,{k % 3 % 2}\n" for k in range(9))]))
    (folder / "psm.csv").write_text("a,b\n1,0.5\n0.5,1\n")
    np.save(folder / "logs.npy", np.concatenate([[[[-0.001, 0.5, 0.5]] * 5], p[0]]))


@pytest.mark.skipif(sys.platform == "win32", reason="has no pipes with names")
@pytest.mark.parametrize("cases", [OF_A_FILE, OF_A_TABLE], ids=["file", "table"])
def test_command_says_what_is_wrong_before_the_work(file, table, monkeypatch, tmp_path, rng, capsys, cases):
    write_wrong_files(tmp_path, rng)
    monkeypatch.setattr("posterior_consensus.search.engine.Executor", lambda *_: pytest.fail("search has begun"))
    os.link(table, tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to(table)
    (tmp_path / "w.csv").write_text("1\n" * 40)
    (tmp_path / "z.zarr").mkdir()
    before, failures = Path(table).read_bytes(), []
    for case, parts in cases.items():
        code = main(case.format(file=file, table=table, dir=tmp_path, name=tmp_path.name).split())
        message = capsys.readouterr().err
        is_told = message.startswith("posterior-consensus: ") and all(part in message for part in parts)
        is_kept = Path(table).read_bytes() == before and (tmp_path / "w.csv").read_text(encoding="utf-8") == "1\n" * 40
        if code != 2 or not is_told or not is_kept or "Traceback" in message:
            failures.append((case, code, message))
    assert not failures


def test_json_of_chains_that_never_move(tmp_path, capsys):
    stuck = np.repeat([[[0, 0, 1, 1]], [[0, 1, 1, 1]]], 20, axis=1)
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"z": (("chain", "draw", "obs"), stuck)})})
    assert main([str(written(tree, tmp_path / "p.nc")), "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["chains"]["worst_rhat"] is None and found["chains"]["status"] == "disagree"


def test_the_summary_ends_in_time(file, capsys):
    for method in ("greedy", "hierarchical"):  # which has no time limit of its own
        assert main([file, "--seconds", "1e-6", "--var", "z", "--json", "--method", method]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["n_clusters"] >= 1 and found["modes"] is None and {"certificate", "modes"} <= set(found["cut"])


def test_what_an_option_does_not_take_is_refused_by_its_name(file, capsys):
    for option in ("--random-seed", "--burn-in", "--thin", "--n-clusters", "--prob", "--seconds"):
        with pytest.raises(SystemExit) as ended:
            main([file, option, "many"])
        assert ended.value.code == 2 and f"argument {option}: invalid" in capsys.readouterr().err
    for arguments, part in (([], "FILE"), ([file, "--loss", "nearest"], "'vi'")):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2 and part in capsys.readouterr().err


def test_tables_and_arrays(labels, table, tmp_path, capsys):
    found = printed(capsys, table)
    assert (found["n_draws"], found["n_chains"], found["n_items"]) == (40, 1, 4)
    assert [one["item"] for one in found["items"]] == list("abcd")
    best = pc.consensus_partition(labels, random_seed=0, progressbar=False)
    assert [one["cluster"] for one in found["items"]] == best.labels.values.tolist()
    assert found["expected_loss"] == best.expected_loss
    np.save(tmp_path / "z.npy", labels.reshape(2, 20, 4))
    assert printed(capsys, tmp_path / "z.npy")["n_chains"] == 2
    for k in range(2):
        pd.DataFrame(labels[20 * k : 20 * k + 20]).add_prefix("i").to_csv(tmp_path / f"chain{k}.csv")
    several = printed(capsys, tmp_path / "chain0.csv", tmp_path / "chain1.csv")
    assert several["n_chains"] == 2 and several["expected_loss"] == best.expected_loss
    assert main([table, "--output", str(tmp_path / "items.csv")]) == 0
    written_items = pd.read_csv(tmp_path / "items.csv", index_col=0)
    assert written_items.index.tolist() == list("abcd")
    assert_array_equal(written_items["cluster"], best.labels)
    assert_allclose(written_items["similarity"], pc.item_uncertainty(labels, best).similarity, rtol=1e-14)


@pytest.mark.parametrize("log", [False, True])
def test_probabilities_in_numpy_files(rng, log, tmp_path, capsys):
    """Draws x items x components, with chains or without, or a file for each chain."""
    p = rng.dirichlet(np.full(3, 0.2), (2, 20, 4))
    p = np.log(p) - 5 if log else p
    soft = pc.as_allocation_probabilities(p)
    best = pc.consensus_partition(soft, loss="binder", random_seed=0, progressbar=False)
    np.save(tmp_path / "four.npy", p)
    np.save(tmp_path / "three.npy", p.reshape(40, 4, 3))
    np.savez(tmp_path / "named.npz", resp=p, mu=np.ones(3))
    for k in range(2):
        np.save(tmp_path / f"chain{k}.npy", p[k])
    files = [["four.npy"], ["three.npy"], ["named.npz", "--var", "resp"], ["chain0.npy", "chain1.npy"]]
    for (*names, last), n_chains in zip(files, (2, 1, 2, 2), strict=True):
        given = [tmp_path / name if "." in name else name for name in (*names, last)]
        found = printed(capsys, *given, "--loss", "binder")
        assert (found["n_draws"], found["n_chains"], found["n_items"]) == (40, n_chains, 4)
        assert found["expected_loss"] == pytest.approx(best.expected_loss)
        assert found["source"].startswith("allocation probabilities")


def test_burn_in_and_thinning_are_of_each_chain(labels, posterior_tree, tmp_path, capsys):
    np.save(tmp_path / "z.npy", labels.reshape(2, 20, 4))
    found = printed(capsys, tmp_path / "z.npy", "--burn-in", "5", "--thin", "4")
    kept = labels.reshape(2, 20, 4)[:, 5::4]
    assert found["n_draws"] == 8 and found["n_chains"] == 2
    assert found["expected_loss"] == pc.consensus_partition(kept, random_seed=0, progressbar=False).expected_loss
    found = printed(capsys, written(posterior_tree, tmp_path / "p.nc"), "--var", "z", "--burn-in", "10")
    assert found["n_draws"] == 80 and found["source"] == "labels `z`"
    z = posterior_tree["posterior"]["z"].isel(draw=slice(10, None))
    assert found["expected_loss"] == pc.consensus_partition(z, random_seed=0, progressbar=False).expected_loss


def test_weights_of_a_file_or_of_the_group(labels, table, posterior_tree, rng, tmp_path, capsys):
    w = rng.random(40)
    np.save(tmp_path / "w.npy", w)
    pd.DataFrame({"weight": w}).to_csv(tmp_path / "w.csv", index=False)
    np.savetxt(tmp_path / "w.txt", w)
    weighted = pc.as_partition_draws(labels, weights=w)
    for name in ("w.npy", "w.csv", "w.txt"):
        found = printed(capsys, table, "--weights", tmp_path / name, "--burn-in", "10")
        best = pc.consensus_partition(weighted.isel(draw=slice(10, None)), random_seed=0, progressbar=False)
        assert found["expected_loss"] == pytest.approx(best.expected_loss, rel=1e-14)
    posterior = posterior_tree["posterior"].to_dataset().assign(w=(("chain", "draw"), rng.random((2, 50))))
    file = written(xr.DataTree.from_dict({"posterior": posterior}), tmp_path / "p.nc")
    found = printed(capsys, file, "--var", "z", "--weights", "w")
    weighted = pc.as_partition_draws(posterior, "z", weights=posterior["w"])
    best = pc.consensus_partition(weighted, random_seed=0, progressbar=False)
    assert found["expected_loss"] == pytest.approx(best.expected_loss, rel=1e-14)


@pytest.fixture
def layers(rng):
    """Labels of two chains of 20 draws of five items in three years."""
    labels = noisy_draws(rng, 120, 5, 2, 0.2).reshape(2, 20, 3, 5)
    coords = {"year": [1935, 1936, 1940], "firm": list("abcde")}
    return xr.DataArray(labels, coords, ("chain", "draw", "year", "firm"), "z")


def test_layers_of_every_kind_of_file(layers, tmp_path, capsys):
    tree = xr.DataTree.from_dict({"posterior": layers.to_dataset()})
    np.save(tmp_path / "z.npy", layers)
    for year, one in layers.groupby("year"):
        pc.as_partition_draws(one.squeeze("year", drop=True), store=tmp_path / f"{year}.nc")
    table = layers[0].stack(column=["year", "firm"])
    columns = [f"z[{t},{i}]" for t in (1, 2, 3) for i in range(1, 6)]
    pd.DataFrame(table.values, columns=columns).to_csv(tmp_path / "z.csv", index=False)
    expected = pc.summarize(pc.as_layers(layers, layer_dim="year"), random_seed=0, progressbar=False)
    for files, names in (
        ([written(tree, tmp_path / "posterior.nc")], [1935, 1936, 1940]),
        ([tmp_path / "z.npy"], [0, 1, 2]),
        ([tmp_path / f"{year}.nc" for year in (1935, 1936, 1940)], ["1935", "1936", "1940"]),
    ):
        found = printed(capsys, *files, "--layers", "year")
        assert found["dim"] == "year" and [one["layer"] for one in found["layers"]] == names
        assert [one["expected_loss"] for one in found["layers"]] == [
            one.partition.expected_loss for one in expected.values()
        ]
        assert found["comparison"]["distances"][2]["expected_loss"] == pytest.approx(
            expected.comparison.distances["expected_loss"][0, 2].item()
        )
        assert found["findings"]
    found = printed(capsys, tmp_path / "z.csv", "--layers", "year", "--burn-in", "10", "--var", "z")
    assert [(one["layer"], one["n_draws"]) for one in found["layers"]] == [(1, 10), (2, 10), (3, 10)]


@pytest.mark.slow
def test_layers_are_printed_and_written(layers, tmp_path, capsys, undrawn):
    file = written(xr.DataTree.from_dict({"posterior": layers.to_dataset()}), tmp_path / "posterior.nc")
    report, table, output, figure = (tmp_path / name for name in ("report.html", "items.csv", "out.nc", "figure.pdf"))
    assert main([str(file), "--layers", "year", "--report", str(report), "--output", str(table)]) == 0
    assert main([str(file), "--layers", "year", "--figure", str(figure), "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("Summary of 3 layers (year)")
    assert pd.read_csv(table).columns[:3].tolist() == ["year", "firm", "cluster"] and len(pd.read_csv(table)) == 15
    assert figure.read_bytes().startswith(b"%PDF") and "Distances between layers" in report.read_text(encoding="utf-8")
    with xr.open_datatree(output, engine="h5netcdf") as tree:
        assert set(tree["consensus"].children) == {"comparison", "diagnosis", "layers"}
        found = pc.results.LayersSummary.from_datatree(tree["consensus"], pc.as_layers(tree, layer_dim="year"))
    assert found[1940].labels.sizes == {"firm": 5}


def test_stores_and_accumulators_are_read_as_the_functions_do(labels, rng, tmp_path, capsys):
    def best(data):
        return pc.consensus_partition(data, random_seed=0, progressbar=False).expected_loss

    store, folder, w = tmp_path / "ws.nc", tmp_path / "kept", rng.random(40)
    pc.as_partition_draws(labels, weights=w, store=store)
    with pc.PartitionAccumulator(folder) as kept:
        kept.add(labels)
    assert printed(capsys, store)["expected_loss"] == best(store)
    assert printed(capsys, folder)["expected_loss"] == best(labels)
    np.save(tmp_path / "w.npy", w)
    assert printed(capsys, folder, "--weights", tmp_path / "w.npy")["expected_loss"] == best(store)
    content = store.read_bytes()
    at = content.rindex(b" sha256 ")
    store.write_bytes(content[: at + 8] + bytes([content[at + 8] ^ 1]) + content[at + 9 :])
    for arguments, parts in {
        f"{store}": ["damaged", "ws.nc"],
        f"{folder} --layers year": ["the file must hold several partitions in each draw"],
        f"{folder} --var nonsense": ["--var must be left out", "'nonsense'"],
        f"{folder} --group prior": ["--group must be left out", "'prior'"],
        f"{folder} --weights w": ["--weights must be a CSV, Parquet, Feather or .npy file", "a store"],
        f"{folder} --output {tmp_path / 'out.nc'}": ["--output must end in .csv", "a store"],
    }.items():
        assert main(arguments.split()) == 2
        message = capsys.readouterr().err
        assert all(part in message for part in parts), message


def test_log_densities_of_a_file_are_diagnosed(rng, tmp_path, capsys):
    z = np.concatenate([noisy_draws(rng, 50, 12, k, 0.1)[np.newaxis] for k in (2, 3)])
    lp = np.concatenate([[[99.0] * 10, [0.0] * 10], np.full((2, 40), [[5.0], [9.0]])], axis=1)
    groups = {
        name: xr.Dataset({of: (("chain", "draw", "item")[: v.ndim], v)})
        for name, of, v in (("posterior", "z", z), ("sample_stats", "lp", lp))
    }
    file = written(xr.DataTree.from_dict(groups), tmp_path / "p.nc")
    verdict = printed(capsys, file, "--burn-in", "10")["chains"]["verdict"]
    assert "log posterior is 5 in chain 0 and 9 in chain 1" in verdict, verdict


def test_layers_of_files(layers, tmp_path, capsys):
    """Files of one name in two folders are two layers, --var is of each, and several plain files stay chains."""
    for folder, year in (("p", 1935), ("q", 1936)):
        (tmp_path / folder).mkdir()
        one = layers.sel(year=year, drop=True).to_dataset().assign(y=layers.sel(year=1940, drop=True))
        written(xr.DataTree.from_dict({"posterior": one}), tmp_path / folder / "draws.nc")
    files = [tmp_path / folder / "draws.nc" for folder in "pq"]
    found = printed(capsys, *files, "--layers", "year", "--var", "z")
    assert [one["layer"] for one in found["layers"]] == list(map(str, files))
    whole = pc.summarize(pc.as_layers(layers, layer_dim="year"), random_seed=0, progressbar=False)
    assert [one["expected_loss"] for one in found["layers"]] == [
        whole[year].partition.expected_loss for year in (1935, 1936)
    ]
    assert main([*map(str, files), "--layers", "year", "--var", "nonsense"]) == 2
    assert "--var must name a variable" in capsys.readouterr().err
    assert main([str(files[0]), f"{tmp_path}/q/../p/draws.nc", "--layers", "year"]) == 2
    assert "must have each file once" in capsys.readouterr().err
    for k in (0, 1):
        table = layers[k].stack(column=["year", "firm"]).values
        columns = [f"z[{t},{i}]" for t in (1, 2, 3) for i in range(1, 6)]
        pd.DataFrame(table, columns=columns).to_csv(tmp_path / f"{k}.csv", index=False)
    found = printed(capsys, tmp_path / "0.csv", tmp_path / "1.csv", "--layers", "year")
    assert [one["n_chains"] for one in found["layers"]] == [2, 2, 2]


def test_what_is_wrong_with_layers(layers, tmp_path, capsys):
    file = str(written(xr.DataTree.from_dict({"posterior": layers.to_dataset()}), tmp_path / "posterior.nc"))
    other = shutil.copy(file, tmp_path / "other.nc")
    for arguments, parts in {
        f"{file} --layers time": ["--layers must name the dimension", "'time'"],
        f"{file} {file}": ["--layers"],
        f"{file} {other} --layers year --output {tmp_path}/out.nc": ["--output must end in .csv"],
        f"{file} --layers year --burn-in 20": ["--burn-in", "got 20"],
    }.items():
        assert main(arguments.split()) == 2
        message = capsys.readouterr().err
        assert all(part in message for part in parts), message


def to_a_closed_pipe():
    """As in `posterior-consensus z.csv | head -0`: no word, and the exit code that shells give a broken pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


FULL = Path("/dev/full")  # on Linux
UNREAD = {
    "closed pipe": (to_a_closed_pipe, (141, "")),
    "full disk": (
        lambda: FULL.open("w", encoding="utf-8"),
        (1, "posterior-consensus: standard output cannot be written: No space left on device.\n"),
    ),
}


UNREAD_KINDS = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            "closed pipe", marks=pytest.mark.skipif(sys.platform == "win32", reason="pipes have other errors")
        ),
        pytest.param("full disk", marks=pytest.mark.skipif(not FULL.exists(), reason=f"there is no {FULL}")),
    ],
)


@UNREAD_KINDS
def test_standard_output_that_takes_nothing(kind, table, monkeypatch, capsys):
    make, expected = UNREAD[kind]
    for arguments in (["--help"], [table, "--quiet"], [table, "--json"]):
        with make() as output, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", output)
            code = main(arguments)
        assert (code, capsys.readouterr().err) == expected


@pytest.mark.slow
@UNREAD_KINDS
def test_a_process_whose_standard_output_takes_nothing(kind, table):
    make, expected = UNREAD[kind]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with make() as output:
        streams = {"stdout": output, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        done = subprocess.run([*COMMAND, table], check=False, **streams, text=True, env=buffered)
    assert (done.returncode, done.stderr) == expected


def test_outputs_that_cannot_be_written_leave_the_old_ones_and_the_summary(
    file, tmp_path, monkeypatch, capsys, short_page
):
    old = [tmp_path / "out.nc", tmp_path / "report.html"]
    for path in old:
        path.write_text("old")
    figure = tmp_path / "figure.png"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 100, 0))
    arguments = [file, "--var", "z", "--output", str(old[0]), "--figure", str(figure)]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert "20 items (obs) in" in captured.out and figure.stat().st_size > 0
    assert f"--output {str(old[0])!r} cannot be written: No space left on device." in captured.err
    if FULL.exists():
        assert main([file, "--var", "z", "--report", str(FULL)]) == 1
        assert f"--report '{FULL}' cannot be written: No space left on device." in capsys.readouterr().err
    page = "posterior_consensus.summary.report.page.page"
    monkeypatch.setattr(page, lambda *_, **__: "new \ud800")  # fails as it is encoded
    assert main([file, "--var", "z", "--report", str(old[1])]) == 2
    assert [path.read_text(encoding="utf-8") for path in old] == ["old", "old"]
    assert {path.name for path in tmp_path.iterdir()} == {"posterior.nc", "out.nc", "report.html", "figure.png"}


@pytest.mark.skipif(sys.platform == "win32", reason="has other permissions")
def test_outputs_keep_links_and_permissions(table, tmp_path, short_page):
    report, link = tmp_path / "report.html", tmp_path / "link.html"
    report.write_text("old")
    report.chmod(0o640)
    link.symlink_to(report)
    assert main([table, "--report", str(link), "--quiet"]) == 0
    assert link.is_symlink() and report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert report.stat().st_mode & 0o777 == 0o640


@pytest.mark.slow
def test_in_a_pipe_without_a_terminal(table, tmp_path):
    command = [*COMMAND, table, "--report", str(tmp_path / "report.html")]
    done = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True)
    assert done.returncode == 0 and done.stderr.startswith(b"wrote ") and done.stderr.count(b"\n") == 1
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert done.stdout.startswith(b"4 items in") and b"\x1b" not in done.stdout


SPLINK = ["unique_id_l", "unique_id_r", "match_probability"]


@pytest.fixture
def pairs(tmp_path):
    """A table of scored pairs, with splink's columns and with others, as text and as Parquet."""
    table = pd.DataFrame([("a", "b", 0.9), ("b", "c", 0.7), ("a", "c", 0.2), ("d", "e", 0.4)], columns=SPLINK)
    table.to_csv(tmp_path / "pairs.csv", index=False)
    other = table.rename(columns=dict(zip(SPLINK, ["one", "other", "p"], strict=True)))
    other.to_csv(tmp_path / "unnamed.csv", index=False)
    other.assign(source_dataset_l="x", source_dataset_r="x").to_csv(tmp_path / "other.csv", index=False)
    if importlib.util.find_spec("pyarrow"):
        table.to_parquet(tmp_path / "pairs.parquet")
    return tmp_path / "pairs.csv"


def test_scored_pairs_become_clusters(pairs, tmp_path, capsys):
    output = tmp_path / "clusters.csv"
    assert main([str(pairs), "--threshold", "0.5", "-o", str(output)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Summary of scored pairs: 5 records in 4 clusters")
    assert f"wrote {output}" in captured.err
    records = pd.read_csv(output).set_index("unique_id")
    assert records.index.tolist() == list("abcde") and records["cluster_id"].tolist() == [0, 0, 1, 2, 3]
    assert records.loc["c", "outside"] == "b" and records.loc["c", "outside_probability"] == 0.7
    for files in ([tmp_path / "other.csv", "--left", "one", "--right", "other", "--probability", "p"], [pairs]):
        found = printed(capsys, *files, "--threshold", "0.3")
        assert [one["unique_id"] for one in found["items"]] == list("abcde")
        assert [one["cluster_id"] for one in found["items"]] == [0, 0, 0, 1, 1]
        assert found["threshold"] == pytest.approx(0.3) and found["optimality"] == "optimal"
        assert found["precision"] == pytest.approx((0.9 + 0.7 + 0.2 + 0.4) / 4) and found["recall"] == 1
        assert found["precision_range"][0] == found["precision"] < found["precision_range"][1]
        assert len(found["review"]) == 3 and found["n_unscored"] == 6


def test_records_in_no_pair_and_constraints_are_files(pairs, tmp_path, capsys):
    records = pd.DataFrame({"unique_id": list("fedcba"), "source_dataset": list("xxyxyx")})
    records.to_csv(tmp_path / "records.csv", index=False)
    for name, pair in (("must", ("e", "f")), ("cannot", ("a", "b"))):
        pd.DataFrame([pair], columns=["first", "second"]).to_csv(tmp_path / f"{name}.csv")
    with_all = [pairs, "--items", tmp_path / "records.csv"]
    found = printed(capsys, *with_all, "--must-link", tmp_path / "must.csv", "--cannot-link", tmp_path / "cannot.csv")
    labels = {one["unique_id"]: one["cluster_id"] for one in found["items"]}
    assert list(labels) == list("fedcba") and labels["e"] == labels["f"] and labels["a"] != labels["b"] == labels["c"]
    assert any("that keeps the constraints" in one for one in found["findings"])
    for names, expected in (("1", 4), ("y", 3), ("x,y", 4)):
        found = printed(capsys, *with_all, "--threshold", "0.1", "--max-per-source", names)
        assert found["n_clusters"] == expected
    found = printed(capsys, *with_all, "--threshold", "0.1", "--max-cluster-size", "2")
    assert found["n_clusters"] == 4 and any("that keeps the constraints" in one for one in found["findings"])
    assert main([*map(str, with_all), "--output", str(tmp_path / "records.csv")]) == 2
    assert "that of --items" in capsys.readouterr().err


def test_a_clerk_gets_a_file_and_the_answers_give_error_rates(pairs, tmp_path, capsys):
    codes = {name: f"0{k}" for k, name in enumerate("abcde")}
    records, sample = tmp_path / "records.csv", tmp_path / "sample.csv"
    pd.Series(codes, name="code")[::-1].to_csv(records, index_label="unique_id")
    given = [str(pairs), "--items", str(records), "--quiet"]
    assert main([*given, "--audit", str(sample)]) == 0
    table = pd.read_csv(sample, dtype=str, keep_default_na=False)
    assert set(table["match"]) == {""} and (table["code_first"] == table["first"].map(codes)).all()
    table.assign(match=(table["joined"] == "True").astype(int)).sample(frac=1, random_state=1).to_csv(sample)
    capsys.readouterr()
    assert main([*given, "--answers", str(sample)]) == 0
    assert "AuditedLinks: 1 joined pair" in capsys.readouterr().out
    assert printed(capsys, *given, "--answers", sample)["audit"]["precision"]["estimate"] == 1
    assert main([*given, "--answers", str(tmp_path / "none.csv")]) == 2
    assert "--answers" in capsys.readouterr().err
    table.assign(first="z").to_csv(sample)
    assert main([*given, "--answers", str(sample)]) == 2
    assert "--answers must be of pairs" in capsys.readouterr().err


def test_a_search_that_ctrl_c_ended_is_written_and_exits_so(pairs, tmp_path, capsys, monkeypatch):
    path, output = tmp_path / "many.csv", tmp_path / "clusters.csv"
    rng = np.random.default_rng(1)
    many = pd.DataFrame([(i, j, rng.random()) for i in range(40) for j in range(i)], columns=SPLINK)
    many.to_csv(path, index=False)
    press_ctrl_c(monkeypatch, components, "bound_components", 1)
    with pytest.warns(UserWarning, match="interrupted"):
        assert main([str(path), "-o", str(output), "--quiet"]) == 130
    assert len(pd.read_csv(output)) == 40 and "interrupted" in capsys.readouterr().err


def test_ctrl_c_in_a_later_search_is_said_too(pairs, capsys, monkeypatch):
    press_ctrl_c(monkeypatch, loss_parameter, "consensus_partition", 2)  # of the curve
    assert main([str(pairs), "--quiet"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_scored_pairs_of_several_data_sets_are_joined_by_their_columns(tmp_path, capsys):
    columns = ["source_dataset_l", "unique_id_l", "source_dataset_r", "unique_id_r", "match_probability"]
    path, output = tmp_path / "pairs.csv", tmp_path / "clusters.csv"
    pd.DataFrame([("x", 1, "y", 1, 0.9), ("x", 1, "y", 2, 0.6)], columns=columns).to_csv(path, index=False)
    found = printed(capsys, path, "-o", output)
    assert [found["items"][0][name] for name in ("cluster_id", "source_dataset", "unique_id")] == [0, "x", 1]
    assert {one["second"] for one in found["review"]} == {"y: 1", "y: 2"}
    outside = pd.read_csv(output)[["outside_source_dataset", "outside_unique_id"]]
    assert outside.dropna().to_numpy().tolist() == [["y", 2], ["x", 1]]


def test_names_that_are_integers_are_null_where_there_is_none_outside(tmp_path, capsys):
    pd.DataFrame([(1, 2, 0.9), (2, 3, 0.2)], columns=SPLINK).to_csv(tmp_path / "pairs.csv", index=False)
    assert [one["outside"] for one in printed(capsys, tmp_path / "pairs.csv")["items"]] == [None, 3, 2]


def test_scored_pairs_of_parquet_and_back(pairs, tmp_path, capsys, short_pairs_page):
    pytest.importorskip("pyarrow")
    report, figure, output = (tmp_path / name for name in ("report.html", "figure.svg", "clusters.parquet"))
    made = ["--report", report, "--figure", figure, "--output", output]
    assert main([str(tmp_path / "pairs.parquet"), *map(str, made)]) == 0
    table = pd.read_parquet(output)
    assert table["unique_id"].tolist() == list("abcde") and table["cluster_id"].tolist() == [0, 0, 1, 2, 3]
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "<svg" in figure.read_text(encoding="utf-8")
    draws = tmp_path / "items.parquet"
    np.save(tmp_path / "z.npy", np.tile([0, 0, 1], (8, 1)))
    assert main([str(tmp_path / "z.npy"), "--output", str(draws)]) == 0
    assert pd.read_parquet(draws)["cluster"].tolist() == [0, 0, 1]


@pytest.fixture
def short_pairs_page(monkeypatch):
    monkeypatch.setattr("posterior_consensus.summary.report.pairs.pairs_page", lambda *_: "<!DOCTYPE html> short")


def test_a_pair_threshold_of_draws_is_that_of_binders_loss(labels, table, capsys):
    found = printed(capsys, table, "--loss", "binder", "--threshold", "0.7")
    best = pc.consensus_partition(labels, loss="binder", tau=0.7, random_seed=0, progressbar=False)
    assert found["loss"] == best.loss.name and found["expected_loss"] == best.expected_loss


OF_PAIRS = {
    **{
        f"{{pairs}} {option}": [option.split()[0], "scored pairs"]
        for option in (
            *(
                "--burn-in 5",
                "--thin 2",
                "--prob 0.9",
                "--weights w.csv",
                "--log-weights w",
                "--var z",
                "--group prior",
            ),
            *("--item-dim obs", "--layers year"),
        )
    },
    "{pairs} --loss vi": ["loss 'vi'", "'binder'"],
    "{pairs} --threshold 1": ["--threshold must"],
    "{pairs} --output {dir}/out.nc": ["--output must end in .csv, .parquet or .feather"],
    "{dir}/other.csv --left one --right two --probability p": ["'two'", "'other'"],
    "{dir}/other.csv --left one --right other --probability p --max-per-source 2": ["--max-per-source must", "2"],
    "{dir}/other.csv --left one --right other --probability p --max-per-source z": ["per-source needs", "--items"],
    "{pairs} --max-cluster-size 0": ["--max-cluster-size must", "positive", "got 0"],
    "{pairs} --items {dir}/none.csv": ["--items must", "none.csv"],
    "{pairs} --must-link {table}": ["--left", "--must-link"],
    "{pairs} {table} --left a": ["--left", "several files"],
    "{table} --threshold 0.5": ["--threshold is the pair threshold of Binder's loss", "'vi'"],
    "{table} --left a --right b": ["--probability"],
    "{table} --audit {dir}/sample.csv": ["--audit must be left out", "draws"],
    "{pairs} --audit {pairs}": ["--audit must be another file"],
    "{pairs} --answers {dir}/none.csv": ["--answers must be a file", "none.csv"],
    "{dir}/unnamed.csv": ["by --left, --right and --probability."],
}


def test_what_does_not_fit_scored_pairs_is_refused(pairs, table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("posterior_consensus.search.engine.Executor", lambda *_: pytest.fail("search has begun"))
    failures = []
    for case, parts in OF_PAIRS.items():
        code = main(case.format(pairs=pairs, table=table, dir=tmp_path).split())
        message = capsys.readouterr().err
        if code != 2 or not message.startswith("posterior-consensus: ") or not all(part in message for part in parts):
            failures.append((case, code, message))
    assert not failures


@pytest.fixture
def runs(rng, tmp_path):
    """Ten runs of nine cells in columns, next to a column that is no run, in a file."""
    labels = noisy_draws(rng, 10, 9, 2, 0.2)
    names = [f"leiden_{resolution}_{seed}" for resolution in (0.5, 1.0) for seed in "abcde"]
    table = pd.DataFrame(labels.T, [f"cell{k}" for k in range(9)], names)
    table.assign(n_genes=0.5).to_csv(tmp_path / "obs.csv")
    return table


def test_runs_in_columns_in_rows_and_a_file_each(runs, tmp_path, capsys):
    output, options = tmp_path / "labels.csv", ["--runs", "columns", "--var", "leiden_*"]
    expected = printed(capsys, tmp_path / "obs.csv", *options, "-o", output)
    best = pc.consensus_partition(pc.as_runs(runs), random_seed=0, progressbar=False)
    assert expected["expected_loss"] == best.expected_loss
    assert pd.read_csv(output, index_col=0)["cluster"].to_dict() == best.labels.to_series().to_dict()
    runs.T.to_csv(tmp_path / "rows.csv")
    assert printed(capsys, tmp_path / "rows.csv", "--runs", "rows") == expected
    paths = [tmp_path / f"{name}.csv" for name in runs]
    for path, name in zip(paths, runs, strict=True):
        runs[name].to_csv(path)
    assert printed(capsys, *paths, "--runs", "columns") == expected


def test_noise_and_groups_of_runs(runs, tmp_path, capsys):
    path = tmp_path / "noise.csv"
    runs.mask(runs.index.to_series() == "cell3", -1).to_csv(path)
    found = printed(capsys, path, "--runs", "columns", "--noise", "-1", "--groups", "leiden_{}_*")
    assert (found["n_draws"], found["n_chains"], found["n_items"]) == (10, 2, 9)
    of_item = {one["item"]: one for one in found["items"]}
    assert sum(one["cluster"] == of_item["cell3"]["cluster"] for one in found["items"]) == 1


OF_RUNS = {
    "{runs} --runs columns": ["run 'n_genes' of the file", "got 0.5", "left out by --var"],
    "{runs} --runs columns --var louvain*": ["--var must match columns; got 'louvain*'", "'leiden_0.5_a'"],
    "{runs} --runs columns --var leiden* --groups x{{}}": ["--groups", "'x{}'", "'leiden_0.5_a'"],
    "{runs} {table} --runs rows": ["--runs must be columns for several files", "'rows'"],
    "{runs} --runs columns --burn-in 5": ["--burn-in must be left out", "independent runs", "'5'"],
    "{runs} --runs columns --left a": ["--left must be left out", "independent runs"],
    "{runs} --groups leiden_{{}}_*": ["--groups must be left out without --runs"],
    "{runs} --item cell --run none": ["--item, --run and --label must be given together", "'cell', 'none', None"],
    "{runs} --item n_gens --run leiden_0.5_a --label b": ["--item must name one column of the file", "`n_genes`"],
    "{dir}/noise.csv --runs columns": ["got -1 for 1 of 9 items", "give --noise=-1"],
    "{runs} --runs columns -o {dir}/out.nc": ["--output must end in .csv, .parquet or .feather"],
}


def test_what_does_not_fit_runs_is_refused(runs, table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("posterior_consensus.search.engine.Executor", lambda *_: pytest.fail("search has begun"))
    runs.mask(runs.index.to_series() == "cell3", -1).to_csv(tmp_path / "noise.csv")
    failures = []
    for case, parts in OF_RUNS.items():
        code = main(case.format(runs=tmp_path / "obs.csv", table=table, dir=tmp_path).split())
        message = capsys.readouterr().err
        if code != 2 or not message.startswith("posterior-consensus: ") or not all(part in message for part in parts):
            failures.append((case, code, message))
    assert not failures
