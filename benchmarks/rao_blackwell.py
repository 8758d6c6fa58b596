"""Error of the similarity matrix from allocation probabilities, beside that from sampled labels.

The posterior is that of the galaxies (posterior_consensus/example_data/galaxies.nc), a mixture of normals whose labels
were summed out, so that the probabilities have a closed form. Its 4,000 draws stand for the whole posterior: the matrix
of all of them is the truth, and estimates from a few of them, drawn at random, are compared with it.
"""

import numpy as np
import xarray as xr
from scipy.stats import norm

import posterior_consensus as pc
from benchmarks._data import SHIPPED


def tables(smallest):
    yield "", _rows(*(((20,), 2) if smallest else ((20, 50, 100, 200), 200)))


def _rows(sizes, replications):
    log_joint = log_joint_densities()
    everything = pc.as_allocation_probabilities(log_joint, log=True)
    pairs = np.triu_indices(everything.n_items, 1)
    truth = pc.posterior_similarity_matrix(everything).values[pairs]
    rng = np.random.default_rng(1990)
    for n_draws in sizes:
        errors = np.zeros(2)
        for _ in range(replications):
            chosen = rng.choice(len(log_joint), n_draws, replace=False)
            soft = pc.as_allocation_probabilities(log_joint[chosen], log=True)
            for which, draws in enumerate((soft, soft.sample(rng))):
                matrix = pc.posterior_similarity_matrix(draws).values[pairs]
                errors[which] += np.mean(np.square(matrix - truth)) / replications
        soft_error, hard_error = errors.tolist()
        row = {"draws": n_draws, "mean squared error, sampled labels": hard_error, "probabilities": soft_error}
        yield row | {"ratio": hard_error / soft_error}


def log_joint_densities() -> np.ndarray:
    """log w_tk + log Normal(y_i; mu_tk, sigma_tk), of shape (draw, item, component)."""
    with xr.open_datatree(SHIPPED / "galaxies.nc", engine="h5netcdf") as file:
        tree = file.load()
    draws = tree["posterior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    w, mu, sigma = (draws[name].values[:, np.newaxis, :].astype(np.float64) for name in ("w", "mu", "sigma"))
    y = tree["observed_data"]["velocity"].values[:, np.newaxis]
    with np.errstate(divide="ignore"):  # the weight of an empty component can underflow to 0
        return np.log(w) + norm.logpdf(y, mu, sigma)
