"""Sample a mixture of multivariate normals for 178 wines, without labels, by NUTS of PyMC.

The data are three of the thirteen measurements of wines of three cultivars (Forina et al., UCI Machine Learning
Repository), as scikit-learn ships them. The labels are summed out of the model, and nothing is done against label
switching: every chain may call the same cluster by another number.

Run ``python sample_wine.py`` to write ``wine.nc`` with the groups ``posterior`` and ``observed_data``. It works
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
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 178
CHAINS, TUNE, DRAWS, THIN = 4, 500, 6_000, 12

N_COMPONENTS = 3
FEATURES = ["flavanoids", "color_intensity", "proline"]


def load_wines():
    """Read three measurements of the wines, in units of their standard deviations from their means.

    Returns
    -------
    xarray.DataArray
        With the dimensions ``wine`` (such as "A 1", by cultivar) and ``feature``.
    """
    data = load_wine()
    values = data.data[:, [data.feature_names.index(name) for name in FEATURES]]
    number = [1 + list(data.target[:i]).count(k) for i, k in enumerate(data.target)]
    return xr.DataArray(
        (values - values.mean(axis=0)) / values.std(axis=0),
        coords={
            "wine": [f"{'ABC'[k]} {j}" for k, j in zip(data.target, number, strict=True)],
            "feature": ["flavanoids", "colour", "proline"],
        },
        dims=("wine", "feature"),
        name="y",
    )


def build_model(y):
    """Build the mixture model, without labels.

    Parameters
    ----------
    y : xarray.DataArray

    Returns
    -------
    pymc.Model
    """
    coords = {"wine": y["wine"].values, "feature": y["feature"].values, "component": np.arange(N_COMPONENTS)}
    n_features = y.sizes["feature"]
    with pm.Model(coords=coords) as model:
        w = pm.Dirichlet("w", np.full(N_COMPONENTS, 2.0), dims="component")
        mu = pm.Normal("mu", 0.0, 1.0, dims=("component", "feature"), initval="prior")
        components, spreads = [], []
        for k in range(N_COMPONENTS):
            spread = pm.LogNormal.dist(np.log(0.6), 0.3, shape=n_features)
            factor, _, sd = pm.LKJCholeskyCov(f"cholesky_{k}", n=n_features, eta=2.0, sd_dist=spread)
            components.append(pm.MvNormal.dist(mu=mu[k], chol=factor))
            spreads.append(sd)
        pm.Deterministic("sigma", pm.math.stack(spreads), dims=("component", "feature"))
        pm.Mixture("y", w=w, comp_dists=components, observed=y.values, dims=("wine", "feature"))
    return model


def allocation_probabilities(y, posterior):
    """P(z_i = k | parameters, y_i) in closed form.

    Parameters
    ----------
    y : xarray.DataArray
    posterior : xarray.Dataset

    Returns
    -------
    ndarray of shape (chain, draw, wine, component)
    """
    rows, columns = np.tril_indices(y.sizes["feature"])
    log_joint = np.empty((posterior.sizes["chain"], posterior.sizes["draw"], y.sizes["wine"], N_COMPONENTS))
    for chain, draw, k in np.ndindex(*log_joint.shape[:2], N_COMPONENTS):
        at = posterior.isel(chain=chain, draw=draw)
        factor = np.zeros((y.sizes["feature"],) * 2)
        factor[rows, columns] = at[f"cholesky_{k}"].values
        density = multivariate_normal(at["mu"].values[k], factor @ factor.T)
        log_joint[chain, draw, :, k] = np.log(at["w"].values[k]) + density.logpdf(y.values)
    joint = np.exp(log_joint - log_joint.max(axis=-1, keepdims=True))
    return joint / joint.sum(axis=-1, keepdims=True)


def report_agreement(p, n_divergences):
    """Print how well the chains agree about the partition, with labels drawn from the probabilities.

    Parameters
    ----------
    p : ndarray of shape (chain, draw, wine, component)
    n_divergences : int
        Number of divergent transitions of NUTS, of all draws before thinning.
    """
    rng = np.random.default_rng(SEED)
    with np.errstate(divide="ignore"):
        labels = (np.log(p) + rng.gumbel(size=p.shape)).argmax(axis=-1)
    sizes = (labels[..., np.newaxis] == np.arange(N_COMPONENTS)).sum(axis=2)
    share = sizes / labels.shape[2]
    summaries = {
        "entropy of the sizes": -(share * np.log(np.where(share > 0, share, 1))).sum(axis=-1),
        "largest cluster": sizes.max(axis=-1),
        "smallest cluster": sizes.min(axis=-1),
    }
    print(f"{'':22s}{'R-hat':>8s}{'bulk ESS':>10s}   mean of each chain")
    for name, value in summaries.items():
        rhat = array_stats.rhat(value, chain_axis=0, draw_axis=1, method="rank")
        ess = array_stats.ess(value, chain_axis=0, draw_axis=1, method="bulk")
        print(f"{name:22s}{rhat:8.4f}{ess:10.0f}   {'  '.join(f'{m:.2f}' for m in value.mean(axis=1))}")
    psm = [np.einsum("tik,tjk->ij", chain, chain, optimize=True) / len(chain) for chain in p]
    difference = max(np.abs(np.triu(a - b, 1)).max() for a, b in itertools.combinations(psm, 2))
    print(f"largest difference between the similarity matrices of two chains: {difference:.3f}")
    print(f"divergent transitions: {n_divergences} of {CHAINS * DRAWS}")


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
    y = load_wines()
    with build_model(y):
        trace = pm.sample(
            draws=DRAWS,
            tune=TUNE,
            chains=CHAINS,
            cores=min(CHAINS, os.cpu_count()),
            random_seed=SEED,
            nuts_sampler="pymc",  # the same whatever else is installed
            compute_convergence_checks=False,  # ours look at the partition, see below
            progressbar=False,
        )
    names = ["w", "mu", "sigma", *(f"cholesky_{k}" for k in range(N_COMPONENTS))]
    draws = {name: trace["posterior"][name] for name in names}
    posterior = xr.Dataset(draws).isel(draw=slice(None, None, THIN)).map(compact)
    posterior = posterior.assign_coords(draw=np.arange(posterior.sizes["draw"]))
    posterior.attrs = {
        "model": "mixture of 3 multivariate normals, labels summed out",
        "priors": (
            "w ~ Dirichlet(2, 2, 2); mu ~ Normal(0, 1); covariances by LKJ(2) and standard deviations "
            "LogNormal(log 0.6, 0.3); data in units of their standard deviations"
        ),
        "sampler": (
            f"NUTS of PyMC, {CHAINS} chains, {TUNE} tuning steps and {DRAWS} draws each of which every {THIN}th is "
            f"kept, seed {SEED}"
        ),
        "versions": (
            f"PyMC {pm.__version__}, NumPy {np.__version__}, xarray {xr.__version__}, "
            f"Python {platform.python_version()}"
        ),
    }
    observed = y.to_dataset()
    observed.attrs = {"source": "Forina et al., PARVUS, doi:10.24432/C5PC7J, three of thirteen measurements"}
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    tree.to_netcdf(out, engine="h5netcdf", encoding={"/posterior": dict.fromkeys(names, zlib)})
    report_agreement(allocation_probabilities(y, posterior), int(trace["sample_stats"]["diverging"].sum()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample a mixture of multivariate normals for 178 wines.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "wine.nc", help="file to write")
    main(parser.parse_args().out)
