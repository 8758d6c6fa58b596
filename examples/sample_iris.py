"""Sample a mixture with explicit labels for 30 irises: a sparse finite mixture in PyMC.

The data are petal length and width of every fifth of Fisher's 150 irises (Fisher 1936, Annals of Eugenics 7, 179-188),
as scikit-learn ships them. The labels stay in the model, as ``pm.Categorical``: Gibbs steps draw them, NUTS all else.

Run ``python sample_iris.py`` to write ``iris.nc`` with the groups ``posterior`` and ``observed_data``. It works
with PyMC 5 (ArviZ 0.23) and with PyMC 6 (ArviZ 1), takes some minutes, and ends with a table that tells how well the
four chains agree.
"""

import argparse
import itertools
import os
import platform
from pathlib import Path

import numpy as np
import pymc as pm
import xarray as xr
from arviz_stats.base import array_stats
from sklearn.datasets import load_iris

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 1936
CHAINS, TUNE, DRAWS, THIN = 4, 500, 20_000, 20

# The weights are Dirichlet(ALPHA / K, ..., ALPHA / K), which tends to the Dirichlet process as K grows (Ishwaran and
# Zarepour 2002, doi:10.2307/3315951).  Stick-breaking weights approximate it as well, but there the order of the
# components matters while explicit labels seldom let two of them change places: chains that began in different orders
# disagree for long.  Here all orders are alike.
N_COMPONENTS = 6
ALPHA = 1.0


def load_petals():
    """Read the petals of every fifth flower.

    Returns
    -------
    xarray.DataArray
        Length and width in cm, with the dimensions ``flower`` (such as "setosa 1") and ``feature``.
    """
    iris = load_iris()
    rows = slice(None, None, 5)
    species = iris.target_names[iris.target[rows]]
    number = [1 + list(species[:i]).count(name) for i, name in enumerate(species)]
    return xr.DataArray(
        iris.data[rows, 2:],
        coords={
            "flower": [f"{name} {k}" for name, k in zip(species, number, strict=True)],
            "feature": ["petal length", "petal width"],
        },
        dims=("flower", "feature"),
        name="petal",
        attrs={"units": "cm"},
    )


def build_model(petal):
    """Build the mixture model, with labels.

    Parameters
    ----------
    petal : xarray.DataArray

    Returns
    -------
    pymc.Model
    """
    y = ((petal - petal.mean("flower")) / petal.std("flower")).values
    coords = {
        "flower": petal["flower"].values,
        "feature": petal["feature"].values,
        "component": np.arange(N_COMPONENTS),
    }
    with pm.Model(coords=coords) as model:
        # Dirichlet weights are gamma variables over their sum, and Gamma(a) is Gamma(a + 1) times U^(1 / a).  The
        # weights of empty components are spread over many orders of magnitude, where NUTS is slow; U is not.
        a = ALPHA / N_COMPONENTS
        g = pm.Gamma("g", a + 1.0, 1.0, dims="component")
        u = pm.Uniform("u", 0.0, 1.0, dims="component")
        w = pm.Deterministic("w", pm.math.softmax(pm.math.log(g) + pm.math.log(u) / a), dims="component")
        # In units of the standard deviation of all flowers: clusters can be anywhere among them, and are about a
        # third as wide as all flowers together.
        mu = pm.Normal("mu", 0.0, 1.2, dims=("component", "feature"), initval="prior")
        sigma = pm.LogNormal("sigma", np.log(0.35), 0.25, dims=("component", "feature"))
        z = pm.Categorical("z", p=w, dims="flower")
        pm.Normal("y", mu[z], sigma[z], observed=y, dims=("flower", "feature"))
    return model


def report_agreement(z):
    """Print how well the chains agree about the partition.

    Parameters
    ----------
    z : ndarray of shape (chain, draw, flower)
    """
    together = z[..., np.newaxis] == np.arange(N_COMPONENTS)
    sizes = together.sum(axis=2)
    share = sizes / z.shape[2]
    summaries = {
        "occupied clusters": (sizes > 0).sum(axis=-1),
        "entropy of the sizes": -(share * np.log(np.where(share > 0, share, 1))).sum(axis=-1),
        "largest cluster": sizes.max(axis=-1),
    }
    print(f"{'':22s}{'R-hat':>8s}{'bulk ESS':>10s}   mean of each chain")
    for name, value in summaries.items():
        rhat = array_stats.rhat(value, chain_axis=0, draw_axis=1, method="rank")
        ess = array_stats.ess(value, chain_axis=0, draw_axis=1, method="bulk")
        print(f"{name:22s}{rhat:8.4f}{ess:10.0f}   {'  '.join(f'{m:.2f}' for m in value.mean(axis=1))}")
    psm = [np.einsum("tik,tjk->ij", c, c, optimize=True) / len(c) for c in together.astype(np.float64)]
    difference = max(np.abs(a - b).max() for a, b in itertools.combinations(psm, 2))
    print(f"largest difference between the similarity matrices of two chains: {difference:.3f}")
    print(f"all {N_COMPONENTS} components occupied in {(sizes > 0).all(axis=-1).mean():.1%} of the draws")


def compact(values):
    """Round to single precision with 12 of the 23 bits after the point, which compress well.

    Parameters
    ----------
    values : xarray.DataArray

    Returns
    -------
    xarray.DataArray
        The values to a relative error of about 1e-4, as 32-bit floats.
    """
    bits = values.values.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(1 << 10)) & np.uint32(0xFFFFF800)
    return values.copy(data=rounded.view(np.float32))


def main(out):
    """Sample, write the file and print the agreement table.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    petal = load_petals()
    with build_model(petal):
        trace = pm.sample(
            draws=DRAWS,
            tune=TUNE,
            chains=CHAINS,
            cores=min(CHAINS, os.cpu_count()),
            random_seed=SEED,
            compute_convergence_checks=False,  # ours look at the partition, see below
            progressbar=False,
        )
    draws = {name: trace["posterior"][name] for name in ("w", "mu", "sigma", "z")}
    posterior = xr.Dataset(draws).isel(draw=slice(None, None, THIN))
    posterior = posterior.assign_coords(draw=np.arange(posterior.sizes["draw"]))
    labels = posterior["z"].transpose("chain", "draw", "flower").astype(np.uint8)
    posterior = posterior[["w", "mu", "sigma"]].map(compact).assign(z=labels)
    posterior.attrs = {
        "model": "finite approximation of a Dirichlet process mixture of normals, explicit labels",
        "priors": (
            f"w ~ Dirichlet({ALPHA:g} / {N_COMPONENTS}); mu ~ Normal(0, 1.2) and sigma ~ LogNormal(log 0.35, 0.25) of "
            "each feature, in units of its standard deviation"
        ),
        "sampler": (
            f"Gibbs for z and NUTS of PyMC, {CHAINS} chains, {TUNE} tuning steps and {DRAWS} draws each of which every "
            f"{THIN}th is kept, seed {SEED}"
        ),
        "versions": (
            f"PyMC {pm.__version__}, NumPy {np.__version__}, xarray {xr.__version__}, "
            f"Python {platform.python_version()}"
        ),
    }
    observed = petal.to_dataset()
    observed.attrs = {"source": "Fisher (1936), Annals of Eugenics 7, 179-188; every fifth flower"}
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    tree.to_netcdf(out, engine="h5netcdf", encoding={"/posterior": dict.fromkeys(posterior.data_vars, zlib)})
    report_agreement(posterior["z"].values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample a mixture with explicit labels for 30 irises.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "iris.nc", help="file to write")
    main(parser.parse_args().out)
