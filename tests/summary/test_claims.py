"""What a summary claims holds, in every text, whatever items and layers are called."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc

QUIET = {"n_starts": 1, "modes": False, "random_seed": 1, "progressbar": False}


def texts(found):
    return [" ".join(repr(found).split()), *found.findings(), found.methods_text()]


def apart(name):
    """Layers of two chains that disagree, with this name of their dimension, of layers and of items."""
    labels = np.random.default_rng(1).integers(2, size=(2, 2, 40, 6))
    labels[:, 1, :, :3] = 0
    coords = {"one": [f"{name} {k}" for k in range(6)]}
    layers = [pc.as_partition_draws(xr.DataArray(one, coords, ("chain", "draw", "one"), "z")) for one in labels]
    return pc.as_layers({f"{name} {k}": one for k, one in enumerate(layers)}, layer_dim=name)


@pytest.fixture(scope="module")
def plain():
    """Texts of layers, and of one of them, under a name that means nothing."""
    return [texts(pc.summarize(one, **QUIET)) for one in (apart("Zzzz"), apart("Zzzz")["Zzzz 0"])]


@pytest.mark.parametrize("name", ["Sample", "Run", "noise", "draw", "chain"])
def test_no_sentence_is_left_out_for_a_name(plain, name):
    for expected, source in zip(plain, (apart(name), apart(name)[f"{name} 0"]), strict=True):
        assert "disagree" in expected[-1]
        assert texts(pc.summarize(source, **QUIET)) == [text.replace("Zzzz", name) for text in expected]
