"""Sample which firms invest alike in each year, with a prior on dependent partitions, by Gibbs sampling.

The data are the gross investments of 11 firms in 1935 to 1954 (Grunfeld 1958), as R's ``AER::Grunfeld``; y is their
logarithm, less its mean over firms in each year. Clusters of a year have normal means, and all clusters one variance:

    y_ti ~ Normal(mean_tk, noise) with k = z_ti,   mean_tk ~ Normal(0, SPREAD),   noise ~ InverseGamma(*NOISE).

In year t, each firm stays with probability alpha_t ~ Uniform(0, 1). Firms that stay are clustered among themselves as
in the year before. The others, and all firms in the first year, then join by a Chinese restaurant process (Page,
Quintana and Dahl 2022, doi:10.1080/10618600.2021.1987255). They redraw one firm in one year at a time. Here, one firm
is redrawn in all years at once, by forward filtering and backward sampling.

Run ``python sample_firms.py`` to write ``firms.nc``. It takes half a minute.
"""

import argparse
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import xarray as xr

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 1958
CHAINS, BURN_IN, DRAWS, THIN = 4, 1_000, 1_000, 5
MASS, SPREAD, NOISE = 1.0, 2.0, (2.0, 0.05)  # concentration; variances


@numba.njit(cache=True)
def pick(weights, uniform):
    """Pick a position with probability proportional to its weight."""
    sums = np.cumsum(weights)
    return np.searchsorted(sums, uniform * sums[-1], side="right")


@numba.njit(cache=True)
def redraw(i, z, stays, y, alpha, noise, uniforms):
    """Draw the clusters of firm i, and the years in which it stays, given all other firms; change z and stays in place.

    z (clusters below n), stays (whether a firm stays in its cluster of the year before) and y are of shape (years, n),
    alpha, of which the first is not used, and uniforms (random numbers from [0, 1)) of shape (years,).
    """
    years, n = z.shape
    filtered = np.zeros((years, n))  # probabilities of the clusters, given the years so far
    ratio = np.zeros((years, n))  # alpha / P(cluster | others that stay): a staying firm does not choose its cluster
    before = np.full((years, n), -1)  # by cluster: that of its other firms that stay, in the year before
    no_other = np.ones((years, n), np.bool_)  # by cluster of the year before: whether no other firm stays in it
    for t in range(years):
        size, stay, total = np.zeros(n), np.zeros(n), np.zeros(n)
        for j in range(n):
            if j != i:
                k = z[t, j]
                size[k] += 1
                total[k] += y[t, j]
                if stays[t, j]:
                    stay[k] += 1
                    before[t, k] = z[t - 1, j]
                    no_other[t, z[t - 1, j]] = False
        new = np.flatnonzero(size == 0)[0]
        for k in range(n):
            if size[k] or k == new:
                variance = 1 / (size[k] / noise + 1 / SPREAD)
                residual = y[t, i] - variance * total[k] / noise
                density = np.exp(-(residual**2) / (2 * (variance + noise))) / np.sqrt(variance + noise)
                filtered[t, k] = density * (size[k] or MASS)
                if t:
                    ratio[t, k] = alpha[t] * (stay.sum() + MASS) / (stay[k] or MASS)
                    same = filtered[t - 1, before[t, k]] if stay[k] else filtered[t - 1][no_other[t]].sum()
                    filtered[t, k] *= 1 - alpha[t] + ratio[t, k] * same
        filtered[t] /= filtered[t].sum()
    z[-1, i] = pick(filtered[-1], uniforms[-1])
    for t in range(years - 1, 0, -1):
        k = z[t, i]
        same = no_other[t] if before[t, k] < 0 else np.arange(n) == before[t, k]
        weights = np.concatenate(((1 - alpha[t]) * filtered[t - 1], ratio[t, k] * filtered[t - 1] * same))
        stays[t, i], z[t - 1, i] = divmod(pick(weights, uniforms[t - 1]), n)


def sample(y, n_draws, rng):
    """Run one chain on y (years, n) from a random start; return the clusters (n_draws, years, n), and noise."""
    years, n = y.shape
    z, stays, noise = rng.integers(n, size=(years, n)), np.zeros((years, n), bool), 1.0
    draws, noises = np.empty((n_draws, years, n), np.uint8), np.empty(n_draws)
    for d in range(n_draws):
        alpha = rng.beta(1 + stays.sum(axis=1), 1 + n - stays.sum(axis=1))
        for i in range(n):
            redraw(i, z, stays, y, alpha, noise, rng.random(years))
        member = z[:, :, np.newaxis] == np.arange(n)
        variance = 1 / (member.sum(axis=1) / noise + 1 / SPREAD)
        mean = rng.normal(variance * (member * y[:, :, np.newaxis]).sum(axis=1) / noise, np.sqrt(variance))
        squares = ((y - np.take_along_axis(mean, z, axis=1)) ** 2).sum()
        noise = (NOISE[1] + squares / 2) / rng.gamma(NOISE[0] + y.size / 2)
        draws[d], noises[d] = z, noise
    return draws, noises


def main(out):
    """Sample, and write the NetCDF file `out`."""
    investment = pd.read_csv(DATA / "grunfeld.csv", index_col="year")
    y = np.log(investment).sub(np.log(investment).mean(axis=1), axis=0).to_numpy()
    rng = np.random.default_rng(SEED)
    z, noise = zip(*(sample(y, BURN_IN + THIN * DRAWS, rng) for _ in range(CHAINS)), strict=True)
    z, noise = (np.stack(chains)[:, BURN_IN + THIN - 1 :: THIN] for chains in (z, noise))
    coords = {"year": investment.index.to_numpy(), "firm": investment.columns.to_numpy(str)}
    posterior = xr.Dataset({"z": (("chain", "draw", "year", "firm"), z), "noise": (("chain", "draw"), noise)}, coords)
    posterior.attrs = {"sampler": f"Gibbs, {BURN_IN} sweeps left out, then 1 in {THIN} kept, seed {SEED}"}
    observed = xr.Dataset({"investment": (("year", "firm"), investment.to_numpy())}, coords)
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
    tree.to_netcdf(out, engine="h5netcdf", encoding={"/posterior": {"z": {"zlib": True, "complevel": 9}}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample which of Grunfeld's firms invest alike in each year.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "firms.nc", help="file to write")
    main(parser.parse_args().out)
