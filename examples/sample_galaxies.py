"""Sample cluster labels for the galaxies data: a Dirichlet process mixture in PyMC.

The data are the velocities of 82 galaxies of the Corona Borealis region (Roeder 1990, Journal of
the American Statistical Association 85, 617-624).  The labels are summed out of the model, NUTS
samples what is left, and the labels are then drawn from their exact conditional distribution.
No ordering of the means, and no other device against label switching, is needed: what is read off
at the end (numbers and sizes of clusters, who is with whom) does not depend on the names of the
labels.

Run ``python sample_galaxies.py`` to write ``galaxies.nc`` with the groups ``posterior`` and
``observed_data``.  It works with PyMC 5 (ArviZ 0.23) and with PyMC 6 (ArviZ 1), takes some
minutes, and ends with a table that tells how well the four chains agree.
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
from scipy import stats

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 1990

# The slow moves of this sampler are between explanations of the data: a wide cluster in the middle
# splits in two, or an empty component takes over the galaxies of another.  More draws are the
# honest remedy: 12 000 per chain (with a prior sd of 0.3 for log sigma, slightly wider than the one
# below) left the R-hat of the entropy at 1.012, so each chain runs for 24 000 and keeps every 24th.
# The acceptance target above the default of 0.8 makes the steps shorter and divergences rare.
CHAINS, TUNE, DRAWS, THIN, TARGET_ACCEPT = 4, 2_000, 24_000, 24, 0.9

# Components of the truncated process.  The truncation does not bind if the number of components
# that own a galaxy stays below this, and if the last component, which has all the weight the
# process would spread over the components left out, owns next to nothing: both are printed.
N_COMPONENTS = 20

MODEL = "Dirichlet process mixture of normals, stick-breaking truncated, labels summed out"
PRIORS = (
    "alpha ~ Gamma(shape 4, rate 4); w ~ StickBreaking(alpha); mu ~ Normal(20, sd 10); "
    "sigma ~ LogNormal(log 0.75, 0.25); velocities in 1000 km/s"
)


def load_velocities(path):
    """Read the velocities.

    Parameters
    ----------
    path : path_like
        Text file with one header line and one velocity in km/s per line.

    Returns
    -------
    xarray.DataArray
        Velocities in 1000 km/s, with the dimension ``galaxy`` (1 to 82, in order of velocity).
    """
    # The 78th value is 26960, as in the source.  The copy in R's MASS package has 26690, a slip
    # which its help page points out.
    velocity = np.loadtxt(path, skiprows=1) / 1000
    return xr.DataArray(
        velocity,
        coords={"galaxy": np.arange(1, velocity.size + 1)},
        dims="galaxy",
        name="velocity",
        attrs={"units": "1000 km/s"},
    )


def build_model(velocity):
    """Build the mixture model, without labels.

    Parameters
    ----------
    velocity : xarray.DataArray
        Velocities in 1000 km/s.

    Returns
    -------
    pymc.Model
    """
    coords = {"galaxy": velocity["galaxy"].values, "component": np.arange(N_COMPONENTS)}
    with pm.Model(coords=coords) as model:
        # About 5 clusters of 82 galaxies are expected, and 2 to 9 are well within reach.  The
        # shape of 4 keeps alpha off zero, where the weights of the empty components fall by
        # orders of magnitude from one to the next and NUTS diverges.
        alpha = pm.Gamma("alpha", alpha=4, beta=4)
        w = pm.StickBreakingWeights("w", alpha=alpha, K=N_COMPONENTS - 1, dims="component")
        # Wide enough for all velocities (9 to 34).  Every chain starts from its own draw from
        # this prior, so that chains which agree have come from different places.
        mu = pm.Normal("mu", mu=20, sigma=10, dims="component", initval="prior")
        # Galaxies that belong together scatter by some 450 to 1200 km/s.  The log-normal keeps
        # sigma off zero, where one galaxy or two nearly equal ones would make a cluster.
        sigma = pm.LogNormal("sigma", mu=np.log(0.75), sigma=0.25, dims="component")
        y = velocity.values
        pm.NormalMixture("velocity", w=w, mu=mu, sigma=sigma, observed=y, dims="galaxy")
    return model


def draw_labels(y, w, mu, sigma, rng):
    """Draw the labels from their exact conditional distribution.

    P(z_i = k | w, mu, sigma, y_i) is proportional to w_k Normal(y_i; mu_k, sigma_k).

    Parameters
    ----------
    y : array_like of shape (n,)
        Data.
    w, mu, sigma : array_like of shape (..., K)
        Weights, means and standard deviations of the components, one set per posterior draw.
    rng : numpy.random.Generator
        Source of the random numbers.

    Returns
    -------
    numpy.ndarray of shape (..., n)
        Labels 0 to K - 1, as unsigned 8-bit integers.
    """
    w, mu, sigma = (np.asarray(x)[..., np.newaxis, :] for x in (w, mu, sigma))
    with np.errstate(divide="ignore"):  # the weight of an empty component can underflow to 0
        log_joint = np.log(w) + stats.norm.logpdf(np.asarray(y)[:, np.newaxis], mu, sigma)
    # The largest of log p_k plus Gumbel noise is at k with probability p_k, normalized or not.
    return (log_joint + rng.gumbel(size=log_joint.shape)).argmax(axis=-1).astype(np.uint8)


def cluster_sizes(z):
    """Count the galaxies of each component.

    Parameters
    ----------
    z : xarray.DataArray
        Labels, with the dimensions ``chain``, ``draw`` and ``galaxy``.

    Returns
    -------
    xarray.DataArray
        Sizes, with the dimensions ``chain``, ``draw`` and ``component``.
    """
    component = xr.DataArray(np.arange(N_COMPONENTS), dims="component")
    return (z == component).sum("galaxy").transpose("chain", "draw", "component")


def similarity_per_chain(z):
    """Compute the posterior similarity matrix of each chain on its own.

    Parameters
    ----------
    z : xarray.DataArray
        Labels, with the dimensions ``chain``, ``draw`` and ``galaxy``.

    Returns
    -------
    numpy.ndarray of shape (chain, galaxy, galaxy)
        Share of the draws that put two galaxies into the same cluster.
    """
    same = []
    for labels in z.transpose("chain", "galaxy", "draw").values:
        together = labels[:, :, np.newaxis] == np.arange(N_COMPONENTS)
        indicator = together.reshape(len(labels), -1).astype(np.float32)
        same.append(indicator @ indicator.T / labels.shape[1])
    return np.stack(same)


def report_agreement(posterior, n_divergences):
    """Print how well the chains agree about the partition.

    Parameters
    ----------
    posterior : xarray.Dataset
        Thinned posterior with the labels ``z`` and the weights ``w``.
    n_divergences : int
        Number of divergent transitions of NUTS, of all draws before thinning.
    """
    sizes = cluster_sizes(posterior["z"])
    share = sizes / sizes.sum("component")
    summaries = {
        "occupied clusters": (sizes > 0).sum("component"),
        "entropy of the sizes": -(share * np.log(share.where(share > 0, 1))).sum("component"),
        "largest cluster": sizes.max("component"),
    }
    print(f"{'':22s}{'R-hat':>8s}{'bulk ESS':>10s}   mean of each chain")
    for name, value in summaries.items():
        value = value.transpose("chain", "draw").values
        rhat = array_stats.rhat(value, chain_axis=0, draw_axis=1, method="rank")
        ess = array_stats.ess(value, chain_axis=0, draw_axis=1, method="bulk")
        means = "  ".join(f"{m:.2f}" for m in value.mean(axis=1))
        print(f"{name:22s}{rhat:8.4f}{ess:10.0f}   {means}")

    psm = similarity_per_chain(posterior["z"])
    difference = max(np.abs(a - b).max() for a, b in itertools.combinations(psm, 2))
    occupied = summaries["occupied clusters"]
    last = sizes.isel(component=-1)
    print(f"largest difference between the similarity matrices of two chains: {difference:.3f}")
    print(f"divergent transitions: {n_divergences} of {CHAINS * DRAWS}")
    print(f"occupied clusters: at most {int(occupied.max())} of {N_COMPONENTS} components")
    print(
        f"last component: mean weight {float(posterior['w'].isel(component=-1).mean()):.1e}, "
        f"mean size {float(last.mean()):.3f}, occupied in {float((last > 0).mean()):.1%} of draws"
    )


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
    """Sample, draw the labels, write the file and print the agreement table.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    velocity = load_velocities(DATA / "galaxies.csv")
    with build_model(velocity):
        trace = pm.sample(
            draws=DRAWS,
            tune=TUNE,
            chains=CHAINS,
            cores=min(CHAINS, os.cpu_count()),
            target_accept=TARGET_ACCEPT,
            random_seed=SEED,
            nuts_sampler="pymc",  # the same whatever else is installed
            compute_convergence_checks=False,  # ours look at the partition, see below
            progressbar=False,
        )

    # The means of two components trade places from time to time.  That is no concern here.
    draws = {name: trace["posterior"][name] for name in ("alpha", "w", "mu", "sigma")}
    posterior = xr.Dataset(draws).isel(draw=slice(None, None, THIN))
    posterior = posterior.assign_coords(draw=np.arange(posterior.sizes["draw"]))
    rng = np.random.default_rng(SEED)
    z = draw_labels(velocity.values, posterior["w"], posterior["mu"], posterior["sigma"], rng)
    posterior = posterior.map(compact)  # after the labels, which are drawn with full precision
    posterior["z"] = (("chain", "draw", "galaxy"), z)
    posterior = posterior.assign_coords(galaxy=velocity["galaxy"])

    posterior.attrs = {
        "model": MODEL,
        "priors": PRIORS,
        "sampler": (
            f"NUTS of PyMC, {CHAINS} chains, {TUNE} tuning steps and {DRAWS} draws each of which "
            f"every {THIN}th is kept, target_accept {TARGET_ACCEPT}, seed {SEED}"
        ),
        "labels": "z drawn from its exact conditional given w, mu, sigma and the velocity",
        "versions": (
            f"PyMC {pm.__version__}, NumPy {np.__version__}, xarray {xr.__version__}, "
            f"Python {platform.python_version()}"
        ),
    }
    observed = velocity.to_dataset()
    observed.attrs = {"source": "Roeder (1990), JASA 85, 617-624; 78th value 26.960"}

    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    tree.to_netcdf(
        out,
        encoding={"/posterior": dict.fromkeys(posterior.data_vars, zlib)},
    )
    report_agreement(posterior, int(trace["sample_stats"]["diverging"].sum()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample cluster labels for the galaxies data.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "galaxies.nc", help="file to write")
    main(parser.parse_args().out)
