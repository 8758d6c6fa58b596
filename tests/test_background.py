"""Every block of Python on these background pages runs."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

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
