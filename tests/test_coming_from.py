"""Every call in the tables of the pages "Coming from R", "from graph-tool", "from splink" and "from scanpy" runs."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus_command import main
from tests.catalogue.posteriors import noisy_draws

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    page: (DOCS / page).read_text(encoding="utf-8")
    for page in ("from_r.md", "from_graph_tool.md", "from_splink.md", "from_scanpy.md")
}
CALL = re.compile(r"`((?:1 - )?(?:pc|found|density|kde|modes)\.[^`]*)`")
N_DRAWS, N_ITEMS, K = 40, 8, 3


def calls():
    """The page and the code of all columns but the first of every table."""
    rows = [
        (page, line.split(" | ")) for page, text in PAGES.items() for line in text.splitlines() if line.startswith("| ")
    ]
    found = ((page, code) for page, row in rows if len(row) > 2 for cell in row[1:] for code in CALL.findall(cell))
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def names():
    """What the pages call things, by name."""
    rng = np.random.default_rng(3)
    z = noisy_draws(rng, N_DRAWS, N_ITEMS, K, 0.15)
    p = 0.9 * np.eye(K)[z] + 0.1 * rng.dirichlet(np.ones(K), z.shape)
    dims = ("chain", "draw", "obs")
    posterior = {"z": (dims, z[np.newaxis]), "mu": ((*dims[:2], "component"), rng.normal(size=(1, N_DRAWS, K)))}
    draws, first = pc.as_partition_draws(z), z[0]
    similarity = pc.posterior_similarity_matrix(draws)
    return {
        **{"pc": pc, "np": np, "n": N_ITEMS, "x": z, "partitions": z, "train": z[::2], "rest": z[1::2]},
        **dict.fromkeys(("zpivot", "truth", "one", "of_3"), first),
        **{"other": z[1], "z": z[2], "of_2": first % 2, "y": rng.normal(size=N_ITEMS)},
        **{"draws": draws, "psm": similarity, "pairs": pc.as_pair_similarity(similarity)},
        "runs": np.where(rng.random(z.shape) < 0.2, -1, z),
        "soft": pc.as_allocation_probabilities(p),
        "mean_q": pc.membership(draws, first),
        "partial": pc.partial_partition(draws, 0.5, random_seed=1),
        "q": p,
        "q_matrices": xr.Dataset({"q": (("run", "individual", "cluster"), p)}),
        "idata": xr.DataTree.from_dict({"posterior": xr.Dataset(posterior)}),
        "best": pc.consensus_partition(draws, random_seed=1),
        "ball": pc.credible_ball(draws, first),
        "modes": pc.consensus.fit_modes(draws, 2, random_seed=1),
        "density": pc.partition_density(draws, random_seed=1),
        "levels": {0: z, 1: z // 2},
        "prior": pc.priors.crp(1.0),
        "other_prior": pc.priors.crp(2.0),
        "aligned": pc.align_partitions([first, z[1]]),
    }


@pytest.fixture(scope="module")
def linkage():
    """What the page for users of splink calls things."""
    ends = pd.DataFrame({"unique_id_l": ["r1", "r1", "r2", "r3"], "unique_id_r": ["r2", "r3", "r3", "r4"]})
    predictions = ends.assign(match_probability=[0.9, 0.2, 0.7, 0.1])
    pairs = pc.as_pair_similarity(predictions)
    return {
        **{"predictions": predictions, "pairs": pairs, "truth": np.array([0, 0, 1, 2])},
        "linked": predictions.assign(source_dataset_l=["a", "a", "b", "b"], source_dataset_r=["b", "b", "b", "a"]),
        "scores": np.array([(("r1", "r2"), 0.9), (("r2", "r3"), 0.4)], [("pairs", "object", 2), ("score", "f4")]),
        "edges": pd.DataFrame({"n_1": ["r1"], "n_2": ["r2"], "score": [0.9]}),
        "nodes": ["r1", "r2", "r3"],
        "best": pc.consensus_partition(pairs, random_seed=1),
    }


@pytest.fixture(scope="module")
def clustered():
    """What the page for users of scanpy calls things."""
    labels = noisy_draws(np.random.default_rng(3), 20, 15, 3, 0.1)
    topics = [np.where(np.random.default_rng(k).random(15) < 0.3, -1, run) for k, run in enumerate(labels)]
    keys = [f"leiden_{resolution}_{seed}" for resolution in (0.4, 0.6) for seed in range(10)]
    cells = [f"cell{k}" for k in range(15)]
    obs = pd.DataFrame(labels.T.astype(str), cells, keys)
    adata = SimpleNamespace(obs=obs, obs_names=obs.index, uns={})
    runs = pc.as_runs(adata, "leiden_*", groups="leiden_{}_*")
    layers = pc.as_layers(runs)
    sorts = obs.rename_axis("card").reset_index().melt("card", var_name="user", value_name="pile")
    return {
        **{
            "adata": adata,
            "keys": keys,
            "topics": topics,
            "assignments": labels.T,
            "layers": layers,
            "sorts": sorts,
        },
        **{"parts": [obs[key].iloc[k:] for k, key in enumerate(keys[:3])], "resolutions": [0.4, 0.4, 0.6]},
        "topic_runs": pc.as_runs(topics, noise=-1),
        **{"one": labels[0], "other": labels[1], "n": 15},
        "summary": pc.summarize(layers[0.6], random_seed=1, modes=False),
        "found": pc.compare_layers(layers, random_seed=1),
    }


def test_page_for_users_of_splink_prints_what_it_shows(capsys, monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    names = {"pc": pc}
    printing = re.compile(r"^```python\n([^`]*)```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for code, shown in printing.findall(PAGES["from_splink.md"]):
        exec(code, names)
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown.splitlines()
    assert names["before"].n_clusters < names["best"].n_clusters  # the last example ran


def test_page_for_users_of_r_prints_what_it_shows(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = pc.load_example("galaxies")["posterior"]["z"].values
    table = pd.DataFrame(labels.reshape(-1, 82) + 1, columns=[f"X{k}" for k in range(1, 83)])  # as R has them
    table.assign(chain=np.repeat([1, 2, 3, 4], 1000)).to_csv("draws.csv", index=False)
    call = re.search(r'system\("posterior-consensus (.*) --report report.html (.*)"\)', PAGES["from_r.md"])
    assert main(" ".join(call.groups()).split()) == 0
    printed, rows = re.findall(r"^```text\n(.*?)^```$", PAGES["from_r.md"], re.MULTILINE | re.DOTALL)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == printed.splitlines()
    assert Path("items.csv").read_text(encoding="utf-8").startswith(rows)


def test_page_for_users_of_graph_tool_prints_what_it_shows():
    printed = str(pc.summarize(pc.load_example("block_model"), random_seed=1)).splitlines()
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGES["from_graph_tool.md"], re.MULTILINE | re.DOTALL)
    assert [line.rstrip() for line in printed] == shown.splitlines()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of scanpy and anndata
def test_page_for_users_of_scanpy_prints_what_it_shows(capsys, tmp_path, monkeypatch):
    for package in ("scanpy", "igraph"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"^```python\n([^`]*)```", PAGES["from_scanpy.md"], re.MULTILINE):
        exec(code, names)
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", PAGES["from_scanpy.md"], re.MULTILINE | re.DOTALL))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown.splitlines()
    assert (tmp_path / "umap.png").exists()
    assert names["summaries"][1.0].n_clusters == names["adata"].obs["consensus_1.0"].nunique()


@pytest.mark.filterwarnings("ignore")  # of draws that are few
@pytest.mark.parametrize("part", range(8))
def test_calls_run(part, names, linkage, clustered, tmp_path, monkeypatch):
    pd.DataFrame(names["x"]).add_prefix("z").to_csv(tmp_path / "draws.csv", index=False)  # which the pages read
    monkeypatch.chdir(tmp_path)
    own = {
        "from_splink.md": linkage,
        "from_scanpy.md": clustered,
        "from_graph_tool.md": {"runs": pc.as_runs(names["x"])},
    }
    some = calls()[part::8]
    assert len(some) > 5
    for page, code in some:
        eval(code, names | own.get(page, {}))
        plt.close("all")


def test_code_of_the_pages_names_what_there_is():
    failures = []
    for page, text in PAGES.items():
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pc":
                    failures += [] if hasattr(pc, node.attr) else [(page, node.attr)]
    assert not failures
