"""Sample a posterior that has two answers, both of which every chain visits.

The data are made up: two traits of 96 plants from four places. The plants of the coast, of the mountains and of the
island differ clearly. Those of the valley lie between coast and mountains, and close together. The model knows of three
species, so that the plants of the valley are of the coast's species or of the mountains', all of them at once. A second
posterior is that of the same model with four species, which has room for the valley.

Run ``python sample_two_answers.py`` to write ``two_answers.nc`` with the groups ``posterior``, ``four_species``
and ``observed_data``. It needs NumPy and xarray only, takes half a minute, and ends with a table that tells how often
each chain visits either answer. Seeds are fixed.
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 20
CHAINS, BURN_IN, DRAWS, THIN = 4, 1_000, 750, 100

PLACES = {  # plants, centre and spread of the traits
    "coast": (26, (0.0, 0.0), 0.75),
    "valley": (14, (2.0, 0.0), 0.2),
    "mountain": (28, (4.5, 0.0), 0.75),
    "island": (28, (2.0, 6.0), 0.75),
}


def make_plants():
    """Make up the traits, from a seed.

    Returns
    -------
    xarray.DataArray
        With the dimensions ``plant`` (such as "coast 1") and ``trait``.
    """
    rng = np.random.default_rng(SEED)
    names, values = [], []
    for place, (size, centre, spread) in PLACES.items():
        names += [f"{place} {number}" for number in range(1, size + 1)]
        values.append(rng.normal(centre, spread, size=(size, 2)))
    return xr.DataArray(
        np.concatenate(values).round(2),
        coords={"plant": names, "trait": ["leaf length", "flower width"]},
        dims=("plant", "trait"),
        name="traits",
    )


def sweep(labels, means, y, rng):
    """One step of the Gibbs sampler, in all chains at once: weights, variances, means, then labels.

    The priors are w ~ Dirichlet(2, ..., 2), mean ~ Normal(mean of the data, 4), 1 / variance ~ Gamma(6, rate 4).

    Parameters
    ----------
    labels : ndarray of shape (chain, plant)
    means : ndarray of shape (chain, species, trait)
    y : ndarray of shape (plant, trait)
    rng : numpy.random.Generator

    Returns
    -------
    labels, means
        The next ones.
    """
    member = (labels[:, np.newaxis] == np.arange(means.shape[1])[:, np.newaxis]).astype(np.float64)
    size = member.sum(axis=-1)[..., np.newaxis]
    squares = (member[..., np.newaxis] * np.square(y - means[:, :, np.newaxis])).sum(axis=2)
    precision = rng.gamma(6.0 + size / 2) / (4.0 + squares / 2)
    of_mean = 1 / 16 + size * precision
    means = rng.normal((y.mean(axis=0) / 16 + precision * (member @ y)) / of_mean, 1 / np.sqrt(of_mean))
    scores = np.log(rng.gamma(2.0 + size)) - 0.5 * np.einsum(
        "ckf,ckif->cki", precision, np.square(y - means[:, :, np.newaxis])
    )
    scores += 0.5 * np.log(precision).sum(axis=-1, keepdims=True)
    return (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), means


def sample(y, n_species):
    """Run the chains from random labels.

    Parameters
    ----------
    y : ndarray of shape (plant, trait)
    n_species : int

    Returns
    -------
    ndarray of shape (chain, draw, plant), dtype uint8
    """
    rng = np.random.default_rng(SEED)
    labels = rng.integers(n_species, size=(CHAINS, len(y)))
    means = rng.normal(y.mean(axis=0), 2.0, size=(CHAINS, n_species, 2))
    draws = np.empty((CHAINS, DRAWS, len(y)), np.uint8)
    for step in range(BURN_IN + DRAWS * THIN):
        labels, means = sweep(labels, means, y, rng)
        if step >= BURN_IN:
            draws[:, (step - BURN_IN) // THIN] = labels
    return draws


def report_visits(z, place):
    """Print how often each chain has most plants of the valley with the coast, and how often it changes.

    Parameters
    ----------
    z : ndarray of shape (chain, draw, plant)
    place : ndarray of shape (plant,)
    """
    usual = {
        name: (z[..., place == name, np.newaxis] == np.arange(3)).sum(axis=2).argmax(axis=-1)
        for name in ("coast", "mountain")
    }
    valley = z[..., place == "valley"]
    shares = {name: (valley == species[..., np.newaxis]).mean(axis=-1) for name, species in usual.items()}
    print("share of the draws in which nine of ten plants of the valley or more are of a species")
    for chain in range(CHAINS):
        coast, mountain = (shares[name][chain] >= 0.9 for name in usual)
        sure = coast | mountain
        n_changes = np.count_nonzero(np.diff(coast[sure]))
        print(f"chain {chain}: coast {coast.mean():.2f}, mountain {mountain.mean():.2f}, {n_changes} changes")


def as_dataset(z, plants, n_species):
    """Draws with what made them.

    Parameters
    ----------
    z : ndarray of shape (chain, draw, plant)
    plants : ndarray of shape (plant,)
    n_species : int

    Returns
    -------
    xarray.Dataset
    """
    return xr.Dataset(
        {"species": (("chain", "draw", "plant"), z)},
        coords={"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "plant": plants},
        attrs={
            "model": f"mixture of {n_species} normals with a variance for each trait, labels explicit",
            "priors": "w ~ Dirichlet(2, ..., 2); mean ~ Normal(mean of the data, 4); 1 / variance ~ Gamma(6, rate 4)",
            "sampler": (
                f"Gibbs, {CHAINS} chains, {BURN_IN} sweeps of burn-in, {DRAWS} draws each of which every {THIN}th is "
                f"kept, seed {SEED}"
            ),
        },
    )


def main(out):
    """Sample, write the file and print the table of visits.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    traits = make_plants()
    plants = traits["plant"].values
    three, four = (sample(traits.values, n_species) for n_species in (3, 4))
    groups = {"posterior": as_dataset(three, plants, 3), "four_species": as_dataset(four, plants, 4)}
    observed = traits.to_dataset()
    observed.attrs = {"source": "made up, see examples/sample_two_answers.py"}
    compressed = {f"/{group}": {"species": {"zlib": True, "complevel": 9}} for group in groups}
    tree = xr.DataTree.from_dict(groups | {"observed_data": observed})
    tree.to_netcdf(out, engine="h5netcdf", encoding=compressed)
    report_visits(three, np.array([name.split()[0] for name in plants]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample a posterior that has two answers.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "two_answers.nc", help="file to write")
    main(parser.parse_args().out)
