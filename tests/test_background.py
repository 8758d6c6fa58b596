"""Every block of Python on these background pages runs, and each page begins with a picture of an example."""

import inspect
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy.stats import binom

import posterior_consensus as pc
from tests.catalogue.posteriors import noisy_draws

PAGES = Path(__file__).parents[1] / "docs" / "background"


@pytest.mark.parametrize("page", ["bounds", "losses", "priors", "search"])
def test_code_of_a_page_runs(page):
    z = noisy_draws(np.random.default_rng(3), 100, 8, 3, 0.15)
    posterior = xr.Dataset({"z": (("chain", "draw", "item"), z[np.newaxis])})
    names = {
        "pc": pc,
        "draws": pc.as_partition_draws(z),
        "idata": xr.DataTree.from_dict({"posterior": posterior}),
    }
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    plt.close("all")


def test_each_page_begins_with_a_picture_of_its_own():
    drawn = runpy.run_path(str(PAGES / "pictures.py"))
    functions = [name for name, one in drawn.items() if inspect.isfunction(one) and not name.startswith("_")]
    shown = []
    for page in sorted(PAGES.glob("*.md")):
        before, picture, _ = page.read_text(encoding="utf-8").partition("\n.. plot:: background/pictures.py ")
        if page.stem != "index":
            assert picture and "\n## " not in before, page.stem
            shown.append(page.stem)
    assert sorted(functions) == shown


def test_numbers_of_the_examples_are_right():
    together, one_out = [0, 0, 1, 1], [0, 0, 0, 1]
    said = (PAGES / "losses.md").read_text(encoding="utf-8")
    assert f"= {pc.partition_loss(together, one_out, loss='vi'):.2f} bits" in said
    assert f"= {pc.partition_loss(together, one_out, loss='binder')}$" in said
    draws = np.repeat([together, [0, 0, 1, 2], [0, 0, 0, 0], one_out, [0, 1, 0, 1]], [60, 12, 5, 20, 3], axis=0)
    ball = pc.credible_ball(draws, together, loss="vi")
    said = (PAGES / "uncertainty.md").read_text(encoding="utf-8")
    assert f"has a radius of {ball.radius:.2f} bits. It has {ball.coverage:.0%} of them" in said
    similarity = np.asarray(pc.posterior_similarity_matrix(draws))
    assert f"in {similarity[0, 1]:.0%} of the draws, c and d in {similarity[2, 3]:.0%}" in said
    said = (PAGES / "priors.md").read_text(encoding="utf-8")
    one, two = (pc.priors.crp(a).n_clusters(4).sel(n_clusters=[1, 2]).values for a in (1.0, 2.0))
    for value in (*one, *two):
        assert f"{value:.2f}" in said
    assert_allclose(two / one, [0.4, 0.8])


def test_the_example_of_modes_has_two():
    said = (PAGES / "modes.md").read_text(encoding="utf-8")
    one, other = [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]
    near = [0, 0, 0, 1, 1, 2], [0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 3]
    draws = np.repeat([one, *near, other], [45, 14, 3, 9, 29], axis=0)
    found = pc.particles(np.random.default_rng(1).permutation(draws), random_seed=1)
    heavy, light = found.weights.values
    assert found.status == "several modes" and f"two modes, of weights {heavy:.2f} and {light:.2f}" in said
    assert f"probability of {binom.cdf(3, 3 + 29, 1 / 3):.3f}" in said.replace("\n", " ")
