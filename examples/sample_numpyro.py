"""Sample the galaxies data with NumPyro, and store the allocation probabilities instead of labels.

The model is that of sample_galaxies.py: a Dirichlet process mixture of normals, truncated, with the labels summed out.
NumPyro keeps no model with its samples, so the probabilities are computed where the model is: the deterministic site
``log_prob_z`` holds log P(z_i = k | parameters, y_i) of every draw, which is all that is needed afterwards.

Run ``python sample_numpyro.py`` to write ``galaxies_numpyro.nc``. It needs NumPyro (0.15 or later) beside ArviZ's
arviz-base and arviz-stats, takes some minutes, and ends with a table that tells how well the four chains agree.
"""

import argparse
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr
from arviz_stats.base import array_stats

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 1990
CHAINS, TUNE, DRAWS, THIN, TARGET_ACCEPT = 4, 1_000, 8_000, 40, 0.9
N_COMPONENTS = 12
LEAST_LOG = -12.0  # a probability below 6e-6 is stored as 6e-6


def model(y):
    """Mixture without labels, with the allocation probabilities as a deterministic site.

    Parameters
    ----------
    y : jax.Array of shape (n,)
        Velocities in 1000 km/s.
    """
    alpha = numpyro.sample("alpha", dist.Gamma(4.0, 4.0))
    beta = numpyro.sample("beta", dist.Beta(1.0, alpha).expand([N_COMPONENTS - 1]).to_event(1))
    left = jnp.concatenate([jnp.ones(1), jnp.cumprod(1.0 - beta)])
    w = numpyro.deterministic("w", jnp.append(beta, 1.0) * left)
    with numpyro.plate("component", N_COMPONENTS):
        mu = numpyro.sample("mu", dist.Normal(20.0, 10.0))
        sigma = numpyro.sample("sigma", dist.LogNormal(jnp.log(0.75), 0.25))
    mixture = dist.MixtureSameFamily(dist.Categorical(probs=w), dist.Normal(mu, sigma))
    with numpyro.plate("galaxy", y.size):
        numpyro.sample("velocity", mixture, obs=y)
    joint = mixture.component_log_probs(y)
    numpyro.deterministic("log_prob_z", jax.nn.log_softmax(joint, axis=-1))


def report_agreement(log_prob_z):
    """Print how well the chains agree about the partition, with labels drawn from the probabilities.

    Parameters
    ----------
    log_prob_z : ndarray of shape (chain, draw, galaxy, component)
    """
    rng = np.random.default_rng(SEED)
    labels = (log_prob_z + rng.gumbel(size=log_prob_z.shape)).argmax(axis=-1)
    together = labels[..., np.newaxis] == np.arange(log_prob_z.shape[-1])
    sizes = together.sum(axis=2)
    share = sizes / labels.shape[2]
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
    p = np.exp(log_prob_z.astype(np.float64))
    psm = [np.einsum("tik,tjk->ij", chain, chain, optimize=True) / len(chain) for chain in p]
    difference = max(np.abs(np.triu(a - b, 1)).max() for a, b in itertools.combinations(psm, 2))
    print(f"largest difference between the similarity matrices of two chains: {difference:.3f}")


def compact(values):
    """Round to 8 of the 23 bits after the point, which compress well.

    Parameters
    ----------
    values : ndarray

    Returns
    -------
    ndarray of float32
        The values to a relative error of 0.002.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << 14)) & np.uint32(0xFFFF8000)).view(np.float32)


def main(out):
    """Sample, write the file and print the agreement table.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    # The 78th value is 26960, as in the source; see sample_galaxies.py.
    velocity = np.loadtxt(DATA / "galaxies.csv", skiprows=1) / 1000
    kernel = numpyro.infer.NUTS(model, target_accept_prob=TARGET_ACCEPT, init_strategy=numpyro.infer.init_to_sample)
    mcmc = numpyro.infer.MCMC(
        kernel, num_warmup=TUNE, num_samples=DRAWS, thinning=THIN, num_chains=CHAINS, progress_bar=False
    )
    mcmc.run(jax.random.PRNGKey(SEED), jnp.asarray(velocity), extra_fields=("diverging",))
    samples = {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}
    report_agreement(samples["log_prob_z"])
    print(f"divergent transitions among the kept draws: {int(mcmc.get_extra_fields()['diverging'].sum())}")

    samples["log_prob_z"] = np.maximum(samples["log_prob_z"], LEAST_LOG)
    by_component = ("chain", "draw", "component")
    dims = {
        "alpha": ("chain", "draw"),
        "w": by_component,
        "mu": by_component,
        "sigma": by_component,
        "log_prob_z": ("chain", "draw", "galaxy", "component"),
    }
    posterior = xr.Dataset({name: (dim, compact(samples[name])) for name, dim in dims.items()})
    posterior = posterior.assign_coords(
        chain=np.arange(CHAINS), draw=np.arange(posterior.sizes["draw"]), galaxy=np.arange(1, velocity.size + 1)
    )
    posterior.attrs = {
        "inference_library": "numpyro",
        "inference_library_version": numpyro.__version__,
        "sampler": (
            f"NUTS of NumPyro, {CHAINS} chains, {TUNE} warm-up steps and {DRAWS} draws each of which every {THIN}th is "
            f"kept, target_accept_prob {TARGET_ACCEPT}, seed {SEED}"
        ),
        "rounding": f"single precision with 8 bits after the point; log_prob_z is {LEAST_LOG:g} where it is less",
    }
    of_galaxies = ("galaxy", velocity, {"units": "1000 km/s"})
    observed = xr.Dataset({"velocity": of_galaxies}, coords={"galaxy": posterior["galaxy"]})
    observed.attrs = {"source": "Roeder (1990), JASA 85, 617-624; 78th value 26.960"}
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    tree.to_netcdf(out, engine="h5netcdf", encoding={"/posterior": dict.fromkeys(dims, zlib)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample the galaxies with NumPyro, with allocation probabilities.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "galaxies_numpyro.nc", help="file to write")
    numpyro.set_host_device_count(CHAINS)
    main(parser.parse_args().out)
