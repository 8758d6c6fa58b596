"""Misplaced items: their expected number and each item's membership beside the truth, in simulated data sets.

Items are normal around the mean of their cluster, with variance 1; means are normal with standard deviation `spread`.
Partitions come from a Chinese restaurant process, the prior of the sampler, or have fixed sizes. With t-distributed
data, of three degrees of freedom, the sampler's model is wrong. An item is misplaced if its true cluster is not matched
with its cluster of the consensus. A slow chain keeps each draw nine times in ten.
"""

from typing import NamedTuple

import numpy as np
import xarray as xr

import posterior_consensus as pc

OPTIONS = {"--sets": {"type": int, "default": 100, "help": "data sets a row"}}
EDGES = 0.1, 0.25, 0.45, 1.0  # of 1 - membership
CONCENTRATION = 1.0


class Case(NamedTuple):
    """Numbers of items and of draws, spread of means, sizes of clusters if fixed, and what else is different."""

    n_items: int
    n_draws: int
    spread: float
    sizes: tuple[int, ...] = ()
    is_t: bool = False
    stays: float = 0.0


CASES = {
    "7 items, overlapping": Case(7, 400, 2.0),
    "7 items, separated": Case(7, 400, 5.0),
    "12 items, overlapping": Case(12, 400, 2.0),
    "12 items, separated": Case(12, 400, 5.0),
    "60 items, overlapping": Case(60, 200, 2.0),
    "60 items, separated": Case(60, 200, 5.0),
    "60 items, three clusters of 40, 15 and 5": Case(60, 200, 3.0, (40, 15, 5)),
    "60 items, twelve clusters of 5": Case(60, 200, 5.0, (5,) * 12),
    "60 items, t-distributed": Case(60, 200, 5.0, is_t=True),
    "12 items, overlapping, slow": Case(12, 400, 2.0, stays=0.9),
    "60 items, overlapping, slow": Case(60, 200, 2.0, stays=0.9),
}


def tables(smallest, sets):
    cases = dict(list(CASES.items())[:1]) if smallest else CASES
    found = {name: of_sets(case, 3 if smallest else sets) for name, case in cases.items()}
    yield "Numbers of misplaced items, means over data sets", (_row(name, one) for name, one in found.items())
    yield "Items misplaced, by 1 - membership", (_calibration(name, one) for name, one in found.items())


class Found(NamedTuple):
    """Of each data set: expected number of misplaced items, its error, and for each item whether it is misplaced.

    Also 1 - membership, and whether its mean similarity is below a half or smaller than that to another cluster.
    """

    expected: float
    error: float
    misplaced: np.ndarray
    outside: np.ndarray
    dissimilar: np.ndarray


def of_sets(case: Case, sets: int) -> list[Found]:
    """Results of data sets."""
    rng = np.random.default_rng([case.n_items, int(10 * case.spread), len(case.sizes)])
    truth, observed = simulated(case, sets, rng)
    drawn = sampled(observed, case.spread, 2 * case.n_draws + 50, rng)[:, 50::2]
    return [_of_set(case, *one, rng) for one in zip(truth, drawn, strict=True)]


def simulated(case: Case, sets: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """True partitions and observations (sets, n)."""
    size = sets, case.n_items
    fixed = np.repeat(np.arange(len(case.sizes)), case.sizes)
    truth = np.array([fixed if case.sizes else _seated(case.n_items, rng) for _ in range(sets)])
    means = np.take_along_axis(case.spread * rng.normal(size=size), truth, axis=1)
    return truth, means + (rng.standard_t(3, size) if case.is_t else rng.normal(size=size))


def sampled(observed: np.ndarray, spread: float, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Draws (sets, sweeps, n) of the sampler of :func:`dirichlet_process_draws`, for all data sets at once."""
    n_sets, n_items = observed.shape
    each, size = np.arange(n_sets), np.arange(n_items + 1)
    shrinkage = 1 / (size + spread**-2)
    log_weight = np.log(np.where(size > 0, size, CONCENTRATION)) - np.log1p(shrinkage) / 2
    precision = 1 / (1 + shrinkage) / 2
    labels = np.zeros((n_sets, n_items), np.int32)
    sizes, sums = np.zeros((n_sets, n_items), np.int64), np.zeros((n_sets, n_items))
    sizes[:, 0], sums[:, 0] = n_items, observed.sum(axis=1)
    draws = np.empty((n_sets, n_sweeps, n_items), np.int32)
    for sweep in range(n_sweeps):
        for i, x in enumerate(observed.T):
            sizes[each, labels[:, i]] -= 1
            sums[each, labels[:, i]] -= x
            score = log_weight[sizes] - precision[sizes] * (x[:, np.newaxis] - shrinkage[sizes] * sums) ** 2
            empty = sizes == 0
            empty[each, empty.argmax(axis=1)] = False  # one new cluster is enough
            score[empty] = -np.inf
            labels[:, i] = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
            sizes[each, labels[:, i]] += 1
            sums[each, labels[:, i]] += x
        draws[:, sweep] = labels
    return draws


def _of_set(case, truth, drawn, rng):
    if case.stays:
        drawn = drawn[np.maximum.accumulate(np.where(rng.random(len(drawn)) < case.stays, 0, np.arange(len(drawn))))]
    draws = pc.as_partition_draws(xr.DataArray(drawn[np.newaxis], dims=("chain", "draw", "item")))
    best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
    items = pc.item_uncertainty(draws, best)
    dissimilar = (items.similarity.values < 0.5) | (items.margin.values < -1e-12)
    of_truth = pc.item_uncertainty(pc.as_partition_draws([truth]), best).membership.values
    return Found(items.misplaced, items.misplaced_mcse, of_truth < 0.5, 1 - items.membership.values, dissimilar)


def _seated(n_items, rng):
    """A partition from a Chinese restaurant process."""
    tables = np.zeros(n_items, int)
    for i in range(1, n_items):
        weights = np.append(np.bincount(tables[:i]), CONCENTRATION)
        tables[i] = rng.choice(weights.size, p=weights / weights.sum())
    return tables


def _row(name, found):
    numbers = np.array([one.misplaced.sum() for one in found])
    expected, error = np.array([one.expected for one in found]), np.array([one.error for one in found])
    away = expected - numbers
    misplaced, outside, dissimilar = (
        np.concatenate([getattr(one, part) for one in found]) for part in ("misplaced", "outside", "dissimilar")
    )
    return {
        "data": name,
        "sets with a misplaced item": f"{np.mean(numbers > 0):.0%}",
        "misplaced": f"{numbers.mean():.3g}",
        "expected": f"{expected.mean():.3g}",
        "SE of the difference": f"{away.std(ddof=1) / np.sqrt(len(found)):.2g}",
        "mean MCSE": f"{error.mean():.2g}",
        "of these: less similar": _share(dissimilar[misplaced]),
        "membership below 0.5": _share(outside[misplaced] > 0.5),
    }


def _calibration(name, found):
    misplaced, outside = (np.concatenate([getattr(one, part) for one in found]) for part in ("misplaced", "outside"))
    row, low = {"data": name}, 0.0
    for high in EDGES:
        some = (outside >= low) & (outside < high + (high == 1))
        row[f"{low:g} to {high:g}"] = (
            f"{misplaced[some].mean():.2f} for {outside[some].mean():.2f} ({some.sum():,})" if some.any() else "-"
        )
        low = high
    return row


def _share(values):
    return f"{values.mean():.0%}" if values.size else "-"
