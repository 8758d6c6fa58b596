"""Sample the galaxies data badly: explicit labels, two chains, few draws.

The run is an example of a posterior that must not be summarized. The labels of a Dirichlet process mixture stay in the
model, as ``pm.Categorical``, and Gibbs steps move one galaxy at a time: chains that have come to different explanations
of the data stay there. sample_galaxies.py samples such a mixture well.

Run ``python sample_not_converged.py`` to write ``galaxies_not_converged.nc`` with the groups ``posterior`` and
``observed_data``. It works with PyMC 5 (ArviZ 0.23) and with PyMC 6 (ArviZ 1), takes about a minute, and ends with a
table that tells how badly the two chains agree. No seed is set, so that every run goes wrong in a way of its own.
"""

import argparse
from pathlib import Path

import numpy as np
import pymc as pm
import xarray as xr
from arviz_stats.base import array_stats

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
CHAINS, TUNE, DRAWS = 2, 300, 300
N_COMPONENTS = 10


def build_model(velocity):
    """Build the mixture model, with labels.

    Parameters
    ----------
    velocity : xarray.DataArray
        Velocities in 1000 km/s.

    Returns
    -------
    pymc.Model
    """
    coords = {"obs": velocity["obs"].values, "component": np.arange(N_COMPONENTS)}
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", alpha=1, beta=1)
        w = pm.StickBreakingWeights("w", alpha=alpha, K=N_COMPONENTS - 1, dims="component")
        mu = pm.Normal("mu", mu=20, sigma=10, dims="component")
        tau = pm.Gamma("tau", alpha=2, beta=1, dims="component")
        z = pm.Categorical("z", p=w, dims="obs")
        pm.Normal("y", mu=mu[z], tau=tau[z], observed=velocity.values, dims="obs")
    return model


def report_agreement(z):
    """Print how badly the chains agree about the partition.

    Parameters
    ----------
    z : ndarray of shape (chain, draw, galaxy)
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
    first, second = (
        np.einsum("tik,tjk->ij", chain, chain, optimize=True) / len(chain) for chain in together.astype(np.float64)
    )
    print(f"largest difference between the similarity matrices of the chains: {np.abs(first - second).max():.3f}")


def main(out):
    """Sample, write the file and print the agreement table.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    y = np.loadtxt(DATA / "galaxies.csv", skiprows=1) / 1000
    velocity = xr.DataArray(y, coords={"obs": np.arange(y.size)}, dims="obs", name="y")
    with build_model(velocity):
        trace = pm.sample(
            draws=DRAWS, tune=TUNE, chains=CHAINS, cores=CHAINS, compute_convergence_checks=False, progressbar=False
        )
    z = trace["posterior"]["z"].transpose("chain", "draw", "obs").astype(np.uint8)
    posterior = z.to_dataset().assign_attrs(
        sampler=(
            f"PyMC {pm.__version__}, {CHAINS} chains, {TUNE} tuning steps and {DRAWS} draws each: NUTS for weights, "
            "means and precisions, CategoricalGibbsMetropolis for the labels z"
        )
    )
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": velocity.to_dataset()})
    tree.to_netcdf(out, engine="h5netcdf", encoding={"/posterior": {"z": {"zlib": True, "complevel": 9}}})
    report_agreement(z.values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample the galaxies data badly.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "galaxies_not_converged.nc", help="file to write")
    main(parser.parse_args().out)
