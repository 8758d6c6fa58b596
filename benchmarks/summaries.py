"""What `summarize` finds in stored posteriors, and how long it takes.

The posteriors are those of posterior_consensus/example_data. The environment variable POSTERIORS names a folder with
others in its subfolder pymc; those without labels, galaxies_marginal_*.nc, hold w, mu, sigma of ten components and the
observed y, and are summarized with a model of these, where PyMC is installed.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._data import SHIPPED
from benchmarks._runner import used


def tables(smallest):
    folder = os.environ.get("POSTERIORS")
    files = sorted((Path(folder) / "pymc" if folder else SHIPPED).glob("*.nc"))
    files = [file for file in files if file.stem != "wine"]  # which has no labels, and a model of its own
    yield "", _stored(files[: 1 if smallest else None])


def _stored(files):
    """A row for each file; the seconds are those of the second call."""
    for file in files:
        posterior = xr.open_datatree(file, engine="h5netcdf").load()
        is_marginal = "marginal" in file.name
        if is_marginal and find_spec("pymc") is None:
            continue
        model = _model(posterior) if is_marginal else None
        for _ in range(2):
            call = used(pc.summarize, posterior, model=model, random_seed=1, progressbar=False)
        summary = call.result
        yield {
            "file": file.name,
            "input used": summary.source.replace("`", ""),
            "clusters": summary.partition.n_clusters,
            "expected VI (bits)": f"{summary.partition.expected_loss:.3f}",
            "chains": summary.diagnosis.status,
            "seconds": call.seconds,
        }


def _model(posterior: xr.DataTree) -> object:
    """A mixture of normals whose priors do not matter."""
    import pymc as pm

    y, n_components = posterior["observed_data"]["y"].values, posterior["posterior"].sizes["component"]
    with pm.Model(coords={"component": np.arange(n_components)}) as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0)
        w = pm.StickBreakingWeights("w", alpha, K=n_components - 1, dims="component")
        mu = pm.Normal("mu", 20.0, 10.0, dims="component")
        sigma = pm.HalfNormal("sigma", 1.0, dims="component")
        pm.NormalMixture("y", w=w, mu=mu, sigma=sigma, observed=y)
    return model
