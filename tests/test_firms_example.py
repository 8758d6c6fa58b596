"""The sampler of the example draws from the prior and the posterior that it claims."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests.helpers import example


@pytest.fixture(scope="module")
def firms():
    return example("sample_firms")


def partitions(n):
    return [tuple(z.tolist()) for z in np.concatenate(list(enumerate_partitions(n)))]


def canonical(z):
    return tuple(list(dict.fromkeys(z)).index(k) for k in z)


def crp(z, mass):
    sizes = np.bincount(z)
    return mass**sizes.size * math.prod(math.factorial(size - 1) for size in sizes)


def transitions(n, mass):
    """P(next | stays, partition) by the definition: the CRP on all partitions that agree on the firms that stay."""
    found = {}
    for z, stays in product(partitions(n), product([False, True], repeat=n)):
        kept = np.flatnonzero(stays)
        agree = [new for new in partitions(n) if canonical(np.array(new)[kept]) == canonical(np.array(z)[kept])]
        total = sum(crp(new, mass) for new in agree)
        for new in agree:
            found[z, stays, new] = crp(new, mass) / total
    return found


def largest_error(counts, expected):
    """Largest difference between a count of independent draws and its expectation, in standard errors."""
    n = counts.total()
    assert set(counts) <= set(expected) and sum(expected.values()) == pytest.approx(1)
    return max(abs(counts[at] - n * p) / math.sqrt(n * p + 1) for at, p in expected.items())


@pytest.mark.slow
def test_without_data_partitions_and_stays_have_their_prior(firms, rng):
    n, years, alpha = 3, 3, np.array([np.nan, 0.6, 0.3])
    steps = transitions(n, firms.MASS).items()
    total = sum(crp(z, firms.MASS) for z in partitions(n))
    expected = Counter()
    for ((z1, s2, z2), p2), ((start, s3, z3), p3) in product(steps, steps):
        if start == z2:
            stayed = np.where([s2, s3], alpha[1:, np.newaxis], 1 - alpha[1:, np.newaxis]).prod()
            for part in ((1, z1, s2, z2), (2, z2, s3, z3), (3, z1, z3), (4, s2, s3)):
                expected[part] += crp(z1, firms.MASS) / total * p2 * p3 * stayed / 4
    z, stays = np.zeros((years, n), int), np.zeros((years, n), bool)
    found = Counter()
    for sweep in range(100_000):
        for i in range(n):
            firms.redraw(i, z, stays, np.zeros((years, n)), alpha, 1e12, rng.random(years))
        if sweep % 5 == 4:
            z1, z2, z3 = (canonical(row) for row in z.tolist())
            _, s2, s3 = (tuple(row) for row in stays.tolist())
            found.update([(1, z1, s2, z2), (2, z2, s3, z3), (3, z1, z3), (4, s2, s3)])
    assert not stays[0].any()
    assert largest_error(found, expected) < 5


@pytest.mark.slow
def test_draws_have_the_posterior_probabilities(firms, rng):
    """Against sums over partitions and stays, and quadrature over the noise."""
    n, y = 4, np.array([[-1.0, -0.7, 0.6, 1.1], [-0.4, 0.3, 0.5, -0.4]])
    noise = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 2001))
    shape, scale = firms.NOISE
    density = noise**-shape * np.exp(-scale / noise)  # times the noise, for steps of its logarithm

    def likelihood(z, row):
        total = np.zeros_like(noise)
        for k in set(z):
            values = row[np.array(z) == k]
            m, between = values.size, firms.SPREAD * values.size + noise
            quadratic = (values @ values - m * values.mean() ** 2) / noise + m * values.mean() ** 2 / between
            total -= ((m - 1) * np.log(noise) + np.log(between) + quadratic) / 2
        return np.exp(total)

    by_year = [{z: likelihood(z, row) for z in partitions(n)} for row in y]
    expected = Counter()
    for (z1, stays, z2), p in transitions(n, firms.MASS).items():
        stayed = 1 / (math.comb(n, sum(stays)) * (n + 1))  # alpha is uniform
        expected[z1, z2] += crp(z1, firms.MASS) * stayed * p * (density * by_year[0][z1] * by_year[1][z2]).sum()
    total = sum(expected.values())
    expected = {at: p / total for at, p in expected.items()}
    draws, _ = firms.sample(y, 100_000, rng)
    found = Counter((canonical(z1), canonical(z2)) for z1, z2 in draws[100::10].tolist())
    assert largest_error(found, expected) < 5


def test_the_posterior_is_stored_with_its_data(firms):
    investment = pd.read_csv(firms.DATA / "grunfeld.csv", index_col="year")
    with xr.open_datatree(firms.EXAMPLES / "firms.nc", engine="h5netcdf") as file:
        tree = file.load()
    assert investment.shape == (20, 11) and investment.to_numpy().sum() == pytest.approx(29328.618)
    assert (tree["observed_data"]["investment"].to_pandas() == investment).all(axis=None)
    assert tree["posterior"]["z"].dims == ("chain", "draw", "year", "firm")
