"""Every call in the tables of the pages "Coming from R" and "Coming from graph-tool" runs."""

import ast
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import noisy_draws

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("from_r.md", "from_graph_tool.md")
CALL = re.compile(r"`((?:1 - )?(?:pc|found|density|kde)\.[^`]*)`")
N_DRAWS, N_ITEMS, K = 40, 8, 3


def calls():
    """The code of all columns but the first of every table."""
    found = []
    for page in PAGES:
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            cells = line.split(" | ")
            if line.startswith("| ") and len(cells) > 2:
                found += [code for cell in cells[1:] for code in CALL.findall(cell)]
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def names():
    """What the pages call things, by name."""
    rng = np.random.default_rng(3)
    z = noisy_draws(rng, N_DRAWS, N_ITEMS, K, 0.15)
    p = 0.9 * np.eye(K)[z % K] + 0.1 * rng.dirichlet(np.ones(K), z.shape)
    dims = ("chain", "draw", "obs")
    labels, mu = (z % K)[np.newaxis], rng.normal(size=(1, N_DRAWS, K))
    posterior = {"z": (dims, labels), "mu": ((*dims[:2], "component"), mu)}
    draws, estimate = pc.as_partition_draws(z % K), z[0] % K
    runs = np.where(rng.random(z.shape) < 0.2, -1, z)
    similarity = pc.posterior_similarity_matrix(draws)
    return {
        "pc": pc,
        "np": np,
        "n": N_ITEMS,
        "x": z,
        "y": rng.normal(size=N_ITEMS),
        "psm": similarity,
        "draws": draws,
        "pairs": pc.as_pair_similarity(similarity),
        "partitions": z,
        "runs": runs,
        "soft": pc.as_allocation_probabilities(p),
        "mean_q": pc.membership(draws, estimate),
        "q_matrices": xr.Dataset({"q": (("run", "individual", "cluster"), p)}),
        "idata": xr.DataTree.from_dict({"posterior": xr.Dataset(posterior)}),
        "estimate": estimate,
        "best": pc.consensus_partition(draws, random_seed=1),
        "zpivot": estimate,
        "truth": estimate,
        "one": estimate,
        "other": z[1] % K,
        "z": z[2] % K,
        "of_2": estimate % 2,
        "of_3": estimate,
        "ball": pc.credible_ball(draws, estimate),
        "found": pc.particles(draws, 2, random_seed=1),
        "train": z[::2],
        "rest": z[1::2],
        "density": pc.partition_density(draws, random_seed=1),
        "prior": pc.priors.crp(1.0),
        "other_prior": pc.priors.crp(2.0),
        "aligned": pc.align_partitions([estimate, z[1] % K]),
    }


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch, names):
    """The tables that the pages read."""
    pd.DataFrame(names["x"]).add_prefix("z").to_csv(tmp_path / "draws.csv")
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore")  # of draws that are few
@pytest.mark.parametrize("code", calls())
def test_calls_run(code, names, in_a_folder):
    eval(code, dict(names))
    plt.close("all")


@pytest.mark.parametrize("page", PAGES)
def test_code_of_the_pages_names_what_there_is(page):
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pc":
                assert hasattr(pc, node.attr)
