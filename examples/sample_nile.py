"""Sample a hidden Markov model of the Nile's annual flow, its states marginalized and recovered, by PyMC.

The data are the flows at Aswan of 100 years (Cobb 1978, doi:10.1093/biomet/65.2.243), as R's ``datasets::Nile``. NUTS
samples the parameters; ``pymc_extras.marginal.recover`` then samples a path of states for each draw.

Run ``python sample_nile.py`` to write ``nile.nc`` with the groups ``posterior``, ``prior`` and ``observed_data``.
It needs pymc-extras 0.15, takes some minutes, and ends with a table that tells how well the four chains agree.
"""

import argparse
import os
import platform
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pymc_extras
import xarray as xr
from arviz_stats.base import array_stats
from pymc_extras.distributions import DiscreteMarkovChain
from pymc_extras.marginal import marginalize, recover

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 1871
CHAINS, TUNE, DRAWS, THIN, PRIOR_DRAWS = 4, 1_000, 2_000, 4, 1_000


def build_model(flow):
    """Build the model, with its states.

    Parameters
    ----------
    flow : pandas.Series
        Flows by year.

    Returns
    -------
    pymc.Model
    """
    with pm.Model(coords={"year": flow.index, "state": range(3), "next": range(3)}) as model:
        mu = pm.Normal("mu", 900, 200, transform=pm.distributions.transforms.ordered, dims="state")
        variance = pm.InverseGamma("variance", 2, 2 * 120**2)
        transitions = pm.Dirichlet("transitions", 1 + 19 * np.eye(3), dims=("state", "next"))
        first = pm.Categorical.dist(p=np.full(3, 1 / 3))
        z = DiscreteMarkovChain("z", P=transitions, init_dist=first, dims="year", shape=(len(flow),))
        pm.Normal("flow", mu[z], variance**0.5, observed=flow, dims="year")
    return model


def report_agreement(posterior, n_divergences):
    """Print how well the chains agree about parameters and paths.

    Parameters
    ----------
    posterior : xarray.Dataset
    n_divergences : int
        Number of divergent transitions of NUTS, of all draws before thinning.
    """
    paths = posterior["z"].values
    summaries = {f"mu[{k}]": posterior["mu"].values[..., k] for k in range(3)}
    summaries["variance"] = posterior["variance"].values
    summaries["changes of state"] = (paths[..., 1:] != paths[..., :-1]).sum(axis=-1)
    print(f"{'':18s}{'R-hat':>8s}{'bulk ESS':>10s}   mean of each chain")
    for name, value in summaries.items():
        rhat = array_stats.rhat(value, chain_axis=0, draw_axis=1, method="rank")
        ess = array_stats.ess(value, chain_axis=0, draw_axis=1, method="bulk")
        print(f"{name:18s}{rhat:8.4f}{ess:10.0f}   {'  '.join(f'{m:.2f}' for m in value.mean(axis=1))}")
    print(f"divergent transitions: {n_divergences} of {CHAINS * DRAWS}")


def main(out):
    """Sample, write the file and print the agreement table.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    flow = pd.read_csv(DATA / "nile.csv", index_col="year")["volume"]
    model = build_model(flow)
    prior = pm.sample_prior_predictive(PRIOR_DRAWS, model=model, var_names=["z"], random_seed=SEED)
    marginal = marginalize(model, ["z"])
    trace = pm.sample(
        draws=DRAWS,
        tune=TUNE,
        chains=CHAINS,
        cores=min(CHAINS, os.cpu_count()),
        random_seed=SEED,
        initvals={"mu": [700, 900, 1100]},  # the default values are equal, not in order
        nuts_sampler="pymc",  # the same whatever else is installed
        compute_convergence_checks=False,  # ours look at the paths, too, see above
        model=marginal,
        progressbar=False,
    )
    kept = trace["posterior"].to_dataset().isel(draw=slice(None, None, THIN))
    kept = recover(
        xr.DataTree.from_dict({"posterior": kept.assign_coords(draw=range(kept.sizes["draw"]))}),
        model=marginal,
        random_seed=SEED,
    )["posterior"]
    parameters = kept.to_dataset()[["mu", "variance", "transitions"]].astype(np.float32)
    posterior = parameters.assign(z=kept["z"].astype(np.int8))
    posterior.attrs = {
        "model": "hidden Markov model of 3 states, normal emissions with ordered means, states marginalized",
        "priors": (
            "mu ~ Normal(900, sd 200), ordered; variance ~ InverseGamma(2, 2 x 120^2); rows of the transitions ~ "
            "Dirichlet with 20 on the diagonal and 1 elsewhere; first state uniform"
        ),
        "sampler": (
            f"NUTS of PyMC, {CHAINS} chains, {TUNE} tuning steps and {DRAWS} draws each of which every {THIN}th is "
            f"kept, seed {SEED}; paths z by pymc_extras.marginal.recover"
        ),
        "versions": (
            f"PyMC {pm.__version__}, pymc-extras {pymc_extras.__version__}, NumPy {np.__version__}, "
            f"xarray {xr.__version__}, Python {platform.python_version()}"
        ),
    }
    by_year = ("year", flow.to_numpy(), {"units": "10⁸ m³"})
    observed = xr.Dataset({"flow": by_year}, coords={"year": flow.index.to_numpy()})
    observed.attrs = {"source": "Cobb (1978), doi:10.1093/biomet/65.2.243, as datasets::Nile of R"}
    paths = prior["prior"].to_dataset()[["z"]].astype(np.int8)
    tree = xr.DataTree.from_dict({"posterior": posterior, "prior": paths, "observed_data": observed})
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    encoding = {"/posterior": dict.fromkeys(posterior.data_vars, zlib), "/prior": {"z": zlib}}
    tree.to_netcdf(out, engine="h5netcdf", encoding=encoding)
    report_agreement(posterior, int(trace["sample_stats"]["diverging"].sum()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample a hidden Markov model of the Nile's annual flow.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "nile.nc", help="file to write")
    main(parser.parse_args().out)
