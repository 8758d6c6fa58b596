import os
import sys
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import settings

import posterior_consensus as pc

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("default", deadline=None, max_examples=60)  # the first example compiles
settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20180614)


@pytest.fixture
def z(rng):
    """Label draws as a sampler leaves them: names switch between draws, and every dimension has coordinates."""
    labels = rng.permuted(np.arange(5)[:, np.newaxis].repeat(2 * 6, 1), axis=0)[:4].T.reshape(2, 6, 4)
    labels[:, ::2, 1] = labels[:, ::2, 0]
    labels[:, :, 3] = labels[:, :, 2]
    coords = {"chain": [1, 3], "draw": np.arange(10, 16), "obs": list("abcd"), "site": ("obs", [7, 7, 8, 9])}
    return xr.DataArray(labels, dims=("chain", "draw", "obs"), coords=coords, name="z")


@pytest.fixture
def small_draws(z):
    return pc.as_partition_draws(z)


@pytest.fixture(scope="session")
def arviz():
    """ArviZ, whose 0.x versions announce their successor when imported."""
    pytest.importorskip("arviz", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


@pytest.fixture
def posterior(arviz, z):
    """What ArviZ makes of samples: InferenceData before version 1, DataTree since."""
    samples = {"z": z.values, "mu": np.linspace(0.1, 0.9, 24).reshape(2, 6, 2)}
    names = {"dims": {"z": ["obs"], "mu": ["component"]}, "coords": {"obs": list("abcd")}}
    if hasattr(arviz, "convert_to_inference_data"):
        return arviz.from_dict(posterior=samples, observed_data={"y": np.arange(4.0)}, **names)
    return arviz.from_dict({"posterior": samples, "observed_data": {"y": np.arange(4.0)}}, **names)


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test has drawn, where it has drawn anything."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
