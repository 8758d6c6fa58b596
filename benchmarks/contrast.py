"""Differences between clusters in data that did not form them: by reported labels, by pooled draws, by `contrast`.

Each data set has 400 items in clusters with the given weights, data that form the clusters, and a value y of each item
that depends on its true cluster alone, but in the last row. A Gibbs sampler gives 200 draws of the labels, from the
truth on and after 100 sweeps. The partition reported has the true number of clusters, and minimizes 1 - ARI: under VI,
overlapping clusters become one. A table has the mean of the estimated differences between the first and the last
cluster as a share of the true one, and how many of the 95% intervals hold it. Intervals of pooled draws have the
variance within and between draws, as for multiple imputations.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import posterior_consensus as pc
from posterior_consensus.ensemble.partitions import contingency_table
from posterior_consensus.ensemble.switching import partners

N_ITEMS, N_DRAWS, BURN_IN = 400, 200, 100
OPTIONS = {"--sets": {"type": int, "default": 400, "help": "data sets for each row"}}


class Case(NamedTuple):
    name: str
    family: Callable
    weights: tuple[float, ...] = (0.5, 0.5)
    values: str = "numeric"
    n_components: int | None = None  # of the model; as many as clusters if it is None
    concentration: float = 1.0  # of the Dirichlet prior of their weights
    moved: float = 1.0  # share of the labels that each sweep samples anew
    sticks: bool = False  # whether weights are those of a Dirichlet process, broken at `n_components`
    separation: float = 2.5
    n_variables: int = 9  # of latent classes


def _normal(rng, truth, case, noise=None):
    """Normal data of unit variance, whose means are `separation` apart."""
    x = case.separation * truth + (rng.normal(size=truth.size) if noise is None else noise)

    def update(z, n):
        counts, sums = np.bincount(z, minlength=n), np.bincount(z, x - x.mean(), minlength=n)
        variance = 1 / (counts + 1 / 25)
        means = x.mean() + rng.normal(variance * sums, np.sqrt(variance))
        return -0.5 * (x[:, np.newaxis] - means) ** 2

    return x, update


def _heavy_tails(rng, truth, case):
    """Data of unit variance with four degrees of freedom, which the model takes as normal."""
    return _normal(rng, truth, case, rng.standard_t(4, truth.size) / np.sqrt(2))


def _skewed(rng, truth, case):
    """Data of unit variance from a gamma distribution of shape 2, which the model takes as normal."""
    return _normal(rng, truth, case, (rng.gamma(2, size=truth.size) - 2) / np.sqrt(2))


def _poisson(rng, truth, case):
    x = rng.poisson(3 * 2.7**truth)

    def update(z, n):
        counts, sums = np.bincount(z, minlength=n), np.bincount(z, x, minlength=n)
        rates = np.maximum(rng.gamma(1 + sums, 1 / (0.1 + counts)), 1e-6)
        return x[:, np.newaxis] * np.log(rates) - rates

    return x, update


def _latent_class(rng, truth, case):
    """Binary variables, of which each cluster has some with probability 0.8, and the others with 0.3."""
    own = np.arange(case.n_variables) % len(case.weights) == truth[:, np.newaxis]
    x = rng.random(own.shape) < np.where(own, 0.8, 0.3)

    def update(z, n):
        counts = np.bincount(z, minlength=n)[:, np.newaxis]
        ones = np.eye(n)[z].T @ x
        shares = rng.beta(1 + ones, 1 + counts - ones).clip(1e-9, 1 - 1e-9)
        return x @ np.log(shares).T + ~x @ np.log1p(-shares).T

    return x, update


def _regression(rng, truth, case):
    """A response with another slope in each cluster, and normal errors."""
    u = rng.normal(size=truth.size)
    x = (3 * truth - 1.5) * u + rng.normal(size=truth.size)

    def update(z, n):
        variance = 1 / (np.bincount(z, u**2, minlength=n) + 1 / 9)
        slopes = rng.normal(variance * np.bincount(z, u * x, minlength=n), np.sqrt(variance))
        return -0.5 * (x[:, np.newaxis] - slopes * u[:, np.newaxis]) ** 2

    return x, update


SKEWED, THREE, FOLLOWS = (0.9, 0.1), (0.6, 0.3, 0.1), "half of what forms the clusters"
CASES = (
    Case("normal, 2 apart", _normal, separation=2.0),
    Case("normal, 3 apart", _normal, separation=3.0),
    Case("normal, 3 apart", _normal, values="binary", separation=3.0),
    Case("normal, 3 apart", _normal, values="three categories", separation=3.0),
    Case("normal, 3 apart", _normal, SKEWED, separation=3.0),
    Case("normal, 3 apart", _normal, THREE, separation=3.0),
    Case("normal, 3.5 apart", _normal, (0.2,) * 5, separation=3.5),
    Case("Poisson", _poisson),
    Case("Poisson", _poisson, THREE),
    Case("Poisson", _poisson, (0.25,) * 4, "binary"),
    Case("latent classes", _latent_class),
    Case("latent classes", _latent_class, THREE, "three categories"),
    Case("latent classes, 20 variables", _latent_class, (0.25,) * 4, "binary", n_variables=20),
    Case("regressions", _regression),
    Case("regressions", _regression, SKEWED, "binary"),
    Case("regressions", _regression, (0.4, 0.3, 0.3), "three categories"),
    Case("four components for two clusters", _normal, n_components=4, concentration=0.2, separation=3.0),
    Case("four components, uniform weights", _normal, n_components=4, separation=3.0),
    Case("Dirichlet process", _normal, n_components=15, sticks=True, separation=3.0),
    Case("Dirichlet process", _normal, (0.5, 0.3, 0.2), "binary", n_components=15, sticks=True, separation=3.0),
    Case("a sweep moves 5% of the labels", _normal, moved=0.05),
    Case("heavy tails, taken as normal", _heavy_tails, separation=3.0),
    Case("skewed, taken as normal", _skewed, separation=3.0),
    Case("normal, 3 apart", _normal, values=FOLLOWS, separation=3.0),
)


def tables(smallest, sets):
    cases = CASES[:1] if smallest else CASES
    yield "", (_row(case, 4 if smallest else sets) for case in cases)


def _row(case, n_sets):
    found = [_estimates(np.random.default_rng(seed), case) for seed in range(n_sets)]
    ratio, holds = np.array([one for one in found if one is not None]).transpose(2, 1, 0)
    names = "reported labels", "pooled draws", "contrast"
    row = {"posterior": case.name, "weights": ", ".join(map(str, case.weights)), "y": case.values}
    for name, ratios, held in zip(names, ratio, holds, strict=True):
        row |= {name: f"{np.mean(ratios):.2f}", f"{name}, hold": f"{np.mean(held):.1%}"}
    return row | {"refused": sum(one is None for one in found)}


def _estimates(rng, case):
    """Share of the true difference by labels, draws and `contrast`, and whether intervals hold it; None if refused."""
    n_clusters = len(case.weights)
    truth = rng.choice(n_clusters, N_ITEMS, p=case.weights)
    x, update = case.family(rng, truth, case)
    draws = pc.as_partition_draws(_sampled(rng, truth, update, case))
    y, difference = _values(rng, truth, x, case)
    options = {"n_clusters": n_clusters, "n_starts": 2, "n_perturbations": 0, "random_seed": 1, "progressbar": False}
    best = pc.consensus_partition(draws, loss="one_minus_ari", **options)
    labels = best.labels.values
    own = partners(contingency_table(labels, truth.astype(np.int32)))
    if not {0, n_clusters - 1} <= set(own.tolist()):
        return None
    first, last = (int(np.flatnonzero(own == k)[0]) for k in (0, n_clusters - 1))
    try:
        found = pc.contrast(draws, best, y=y)
    except ValueError:
        return None
    table = found.differences.sel(category="a") if case.values == "three categories" else found.differences
    (at,) = np.flatnonzero((np.sort([table["first"], table["second"]], axis=0).T == sorted((first, last))).all(axis=1))
    sign = 1 if first < last else -1
    row = table.isel(pair=at)
    numbers = (y == "a").astype(float) if case.values == "three categories" else y.astype(float)
    one, variance = _difference(numbers, labels, first, last)
    pooled, total = _pooled(draws.labels, labels, numbers, first, last)
    holds = (
        abs(one - difference) < 1.96 * np.sqrt(variance),
        abs(pooled - difference) < 1.96 * np.sqrt(total),
        float(row["low"]) < sign * difference < float(row["high"]),
    )
    return np.column_stack([np.array([one, pooled, sign * float(row["difference"])]) / difference, holds])


def _values(rng, truth, x, case):
    """Values y of the items, and the true difference between the last and the first cluster."""
    last = len(case.weights) - 1
    if case.values == "numeric":
        return rng.normal(truth), last
    if case.values == FOLLOWS:
        return rng.normal(truth + 0.5 * (x - case.separation * truth)), last
    if case.values == "binary":
        return rng.random(truth.size) < 0.2 + 0.5 * truth / last, 0.5
    share = 0.6 - 0.4 * truth / last
    u = rng.random(truth.size)
    return np.where(u < share, "a", np.where(u < (1 + share) / 2, "b", "c")), -0.4


def _sampled(rng, truth, update, case):
    n, z = case.n_components or len(case.weights), truth.copy()
    draws = np.empty((N_DRAWS, truth.size), np.int32)
    for t in range(-BURN_IN, N_DRAWS):
        log = update(z, n) + np.log(np.maximum(_weights(rng, z, n, case), 1e-300))
        chances = np.cumsum(np.exp(log - log.max(axis=1, keepdims=True)), axis=1)
        new = (rng.random((truth.size, 1)) * chances[:, -1:] >= chances).sum(axis=1)
        z = np.where(rng.random(truth.size) < case.moved, new, z) if case.moved < 1 else new
        draws[max(t, 0)] = z
    return draws


def _weights(rng, z, n, case):
    counts = np.bincount(z, minlength=n)
    if not case.sticks:
        return rng.dirichlet(case.concentration + counts)
    after = counts[::-1].cumsum()[::-1] - counts
    broken = np.append(rng.beta(1 + counts[:-1], case.concentration + after[:-1]), 1.0)
    return broken * np.append(1.0, np.cumprod(1 - broken[:-1]))


def _difference(y, labels, first, last):
    """Difference of two means and its variance; NaN if a group has fewer than two items."""
    groups = [y[labels == k] for k in (first, last)]
    if min(group.size for group in groups) < 2:
        return np.nan, np.nan
    return groups[1].mean() - groups[0].mean(), sum(group.var(ddof=1) / group.size for group in groups)


def _pooled(draws, labels, y, first, last):
    """Mean of the differences in draws, whose clusters are matched, and the variance of multiple imputations."""
    fits = []
    for draw in draws:
        table = contingency_table(draw.astype(np.int32), labels)
        own = partners(table)
        matched = np.where(own < 0, table.argmax(axis=1), own)[draw]
        fits.append(_difference(y, matched, first, last))
    estimates, variances = np.array([fit for fit in fits if not np.isnan(fit[0])]).T
    return estimates.mean(), variances.mean() + (1 + 1 / estimates.size) * estimates.var(ddof=1)
