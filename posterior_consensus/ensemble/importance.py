"""Pareto-smoothed importance sampling: weights that turn draws of one posterior into draws of another."""

from typing import Any, NamedTuple

import numpy as np

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.samples import Samples

_FEWEST = 25  # draws with positive weight: fewer have no tail to fit
_VISITS = 5  # of nearly equal ratios; fewer make them rare
_WIDTH = 0.1  # of an interval of log ratios that are nearly equal
MOST_RARE = 0.05  # share of the weight that rare ratios may have


def most_pareto_k(n_draws: int) -> float:
    """Largest reliable Pareto shape for S draws of positive weight: min(1 - 1 / log10(S), 0.7)."""
    return min(1.0 - 1.0 / float(np.log10(n_draws)), 0.7) if n_draws > 1 else -np.inf


class Smoothed(NamedTuple):
    """Draws with smoothed weights, the tail's Pareto shape and its limit, and the weight of rare ratios.

    The shape is 0 for equal weights and inf for too few draws. A ratio is rare if chains visit its interval
    fewer than five times, and the interval has at most half of the draws.
    """

    samples: Samples
    pareto_k: float
    largest_k: float
    rare: float

    def is_reliable(self, max_pareto_k: float | None = None) -> bool:
        """Whether rare ratios have little weight, or the tail of the weights is light enough."""
        return self.rare <= MOST_RARE or self.pareto_k <= (self.largest_k if max_pareto_k is None else max_pareto_k)


def smoothed(samples: Samples, log_ratio: Floats) -> Smoothed:
    """Multiply the draws' weights by ratios (N,), given as logarithms, and smooth the largest products.

    Ratios of partitions take few values, and a tail of ties has no shape. For the fit, ties are spread evenly over the
    gaps to the neighbouring values. Tied draws keep their own weights, as repeated values need no smoothing. Without
    ties this is ordinary Pareto smoothing.
    """
    with np.errstate(divide="ignore"):
        log_weights = np.log(samples.weights) + log_ratio
    own = np.flatnonzero(log_weights > -np.inf)
    values, group, counts = np.unique(log_weights[own].round(12), return_inverse=True, return_counts=True)
    weights = np.zeros(samples.n_draws)
    weights[own] = np.exp(log_weights[own] - values[-1])
    near = np.unique(np.floor((values[-1] - values) / _WIDTH), return_inverse=True)[1]
    rare, limit = _rare(samples, own, near[group], weights), most_pareto_k(own.size)
    if values.size == 1 or own.size < _FEWEST:
        return Smoothed(samples.weighted(weights), 0.0 if values.size == 1 else np.inf, limit, rare)
    spread = _spread(values, group, counts)
    log_smoothed, pareto_k = _psis(spread)
    log_change = log_smoothed - spread
    log_change -= log_change[spread.argmin()]  # smoothed weights are normalised
    weights[own] *= np.where(counts[group] == 1, np.exp(log_change), 1.0)
    return Smoothed(samples.weighted(weights), pareto_k, limit, rare)


def _rare(samples: Samples, own: Any, group: Any, weights: Floats) -> float:
    """Share of the weight in rare groups of nearly equal ratios: chains enter such a group fewer than five times.

    Good's estimate of the share in groups that were never seen is the share in groups seen once. A group of most draws
    is not rare, though chains seldom leave it.
    """
    at = np.full(samples.n_draws, -1)
    at[own] = group
    begins = [np.append(True, at[rows[1:]] != at[rows[:-1]]) for rows in samples.chains]
    first = np.concatenate([rows[new] for rows, new in zip(samples.chains, begins, strict=True)])
    visits = np.bincount(at[first][at[first] >= 0], minlength=int(group.max()) + 1)
    is_rare = (visits < _VISITS) & (2 * np.bincount(group) <= group.size)
    return float(weights[own][is_rare[group]].sum() / weights.sum())


def _spread(values: Floats, group: Any, counts: Any) -> Floats:
    """Values (N,) with ties spread evenly between the midpoints to the neighbouring values."""
    gaps = np.diff(values)
    below, above = np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])
    order = np.argsort(group, kind="stable")
    rank = np.empty(group.size)
    rank[order] = np.arange(group.size) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (rank + 0.5) / counts[group] - 0.5
    return values[group] + at * np.where(at < 0, below[group], above[group])


def _psis(log_weights: Floats) -> tuple[Floats, float]:
    """Smoothed log weights (N,), whose exponentials sum to 1, and the Pareto shape."""
    from arviz_stats.base import array_stats

    smooth, pareto_k = array_stats.psislw(-log_weights)  # psislw expects log likelihoods, minus log weights
    return smooth, float(pareto_k)
