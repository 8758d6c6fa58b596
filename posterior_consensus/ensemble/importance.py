"""Importance sampling: weights that turn draws of one posterior into draws of another, and whether to trust them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.series import effective_size
from posterior_consensus.runtime.aliases import Floats

_FEWEST = 25  # draws with positive weight: fewer have no tail to fit
_FEWEST_EFFECTIVE = 4  # draws per chain, under the weights
_VISITS = 5  # of nearly equal ratios; fewer make them rare
_MOST_LOG = 300.0  # of a relative weight, whose exponential and its square are finite
_WIDTH = 0.1  # of an interval of log ratios that are nearly equal
_MOST_BEYOND = 3.0  # effective draws of a number that none has
MOST_RARE = 0.05  # share of the weight that rare ratios may have
_MOST_MOVED = 0.05  # share that smoothing may move
MOST_UNSEEN = 1 / 3  # share that draws beyond the range may have, if errors include them
MOST_UNSEEN_ALONE = 0.1  # if errors do not


def most_pareto_k(n_draws: int) -> float:
    """Largest reliable Pareto shape for S draws of positive weight: min(1 - 1 / log10(S), 0.7)."""
    return min(1.0 - 1.0 / float(np.log10(n_draws)), 0.7) if n_draws > 1 else -np.inf


class Smoothed(NamedTuple):
    """Draws with smoothed weights, the share of the weight that smoothing moved, and the tail's Pareto shape.

    The shape is 0 for equal weights and inf for too few draws.
    """

    samples: Samples
    pareto_k: float
    moved: float = 0.0


class Beyond(NamedTuple):
    """Numbers of clusters one below and one above those of the draws, and the weights to expect there.

    Weights are those of one to three effective draws, relative to the total of the draws.
    """

    numbers: Floats
    weights: Floats


class Importance(NamedTuple):
    """Weighted draws of partitions, and how well they represent the other posterior.

    `rare` is the weight of rare ratios, and `effective_draws` Kish's number times the share of draws that are
    independent.
    """

    samples: Samples
    pareto_k: float
    largest_k: float
    moved: float
    rare: float
    effective_draws: float
    beyond: Beyond

    @property
    def fewest_draws(self) -> int:
        """Number of effective draws that are enough."""
        return _FEWEST_EFFECTIVE * len(self.samples.sequences)

    @property
    def unseen(self) -> float:
        """Largest share of the weight that is to be expected on one side beyond the range."""
        return float((self.beyond.weights / (1.0 + self.beyond.weights)).max(initial=0.0))

    def is_light(self, max_pareto_k: float | None = None) -> bool:
        """Whether rare ratios have little weight, or the tail of the weights is light enough and fits them.

        A tail of ties has the shape that spreading gave it. It does not fit if smoothing takes the weight of a few
        large ratios.
        """
        largest_k = self.largest_k if max_pareto_k is None else max_pareto_k
        return self.rare <= MOST_RARE or (self.pareto_k <= largest_k and self.moved <= _MOST_MOVED)

    @property
    def is_reliable(self) -> bool:
        """Whether the draws represent the other posterior, within errors that :meth:`widened` includes."""
        return self.is_light() and self.unseen <= MOST_UNSEEN and self.effective_draws >= self.fewest_draws

    def widened(self, error: Floats, mean: Floats, values: Floats) -> Any:
        """Include the weights beyond both ends, with the given `values` there, in the standard error of a mean."""
        return np.sqrt(np.square(error) + np.square(self.beyond.weights * (values - mean)).sum())


def importance(samples: Samples, log_ratio: Floats, numbers: Any, most: int, steps: Floats | float = 0.0) -> Importance:
    """Weight draws of partitions by ratios (N,), given as logarithms, and judge the weights.

    `log_ratio` is minus infinity for a weight of 0. `numbers` (N,) are the draws' numbers of clusters, of `most` at
    most. `steps` (2,) are changes of the log ratio to one cluster fewer and one more, used only if all draws have
    equally many clusters; else the draws show them.
    """
    weighted = smoothed(samples, log_ratio)
    own = np.flatnonzero((samples.weights > 0) & (log_ratio > -np.inf))
    ratio, base, number = log_ratio[own], samples.weights[own], numbers[own].astype(np.float64)
    independent = _independent_share(samples, numbers)
    seen = numbers[samples.weights > 0]
    ends = np.array([seen.min(), seen.max()])
    places = np.array([seen.min() - 1, seen.max() + 1])
    fitted = _log_ratios_at(ratio, base, number, np.append(number, places))
    residuals = ratio - fitted[:-2]
    at_places = fitted[-2:] if np.ptp(number) else fitted[-2:] + steps
    at_places = at_places + logsumexp(residuals, b=base) - np.log(base.sum())  # a mean of ratios, not of logarithms
    draws = samples.effective_draws * independent
    expected = [_beyond_end(draws, base, number, end, inwards) for end, inwards in zip(ends, (1, -1), strict=True)]
    log_weights = at_places - logsumexp(ratio, b=base) - np.log(draws) + np.log(expected)
    possible = (places >= 1) & (places <= most) & (ends == [number.min(), number.max()])
    near = np.unique(np.floor((residuals.max() - residuals) / _WIDTH), return_inverse=True)[1]
    return Importance(
        weighted.samples,
        weighted.pareto_k,
        most_pareto_k(own.size),
        weighted.moved,
        _rare(samples, own, near, base * np.exp(ratio - ratio.max())),
        weighted.samples.effective_draws * independent,
        Beyond(places[possible].astype(np.float64), np.exp(np.minimum(log_weights[possible], _MOST_LOG))),
    )


def smoothed(samples: Samples, log_ratio: Floats) -> Smoothed:
    """Multiply the draws' weights by ratios (N,), given as logarithms, and smooth the largest products.

    Ratios of partitions take few values, and a tail of ties has no shape. For the fit, ties are spread evenly over the
    spaces to the neighbouring values. Tied draws keep their own weights, as repeated values need no smoothing. Without
    ties this is ordinary Pareto smoothing.
    """
    with np.errstate(divide="ignore"):
        log_weights = np.log(samples.weights) + log_ratio
    own = np.flatnonzero(log_weights > -np.inf)
    values, group, counts = np.unique(log_weights[own].round(12), return_inverse=True, return_counts=True)
    weights = np.zeros(samples.n_draws)
    weights[own] = np.exp(log_weights[own] - values[-1])
    if values.size == 1 or own.size < _FEWEST:
        return Smoothed(samples.weighted(weights), 0.0 if values.size == 1 else np.inf)
    spread = _spread(values, group, counts)
    log_smoothed, pareto_k = _psis(spread)
    log_change = log_smoothed - spread
    log_change -= log_change[spread.argmin()]  # smoothed weights are normalized
    new = weights[own] * np.where(counts[group] == 1, np.exp(log_change), 1.0)
    moved = 0.5 * np.abs(new / new.sum() - weights[own] / weights[own].sum()).sum()
    weights[own] = new
    return Smoothed(samples.weighted(weights), pareto_k, float(moved))


def _log_ratios_at(ratio: Floats, base: Floats, number: Floats, at: Floats) -> Floats:
    """Log ratios `at` numbers of clusters, by least squares: a parabola of the number, as far as it has values."""
    centre, scale = number.mean(), max(float(np.ptp(number)), 1.0)
    degree = min(2, np.unique(number).size - 1)
    root = np.sqrt(base / base.max())[:, np.newaxis]
    powers = np.vander((number - centre) / scale, degree + 1)
    coefficients = np.linalg.lstsq(powers * root, ratio * root[:, 0], rcond=None)[0]
    return np.vander((at - centre) / scale, degree + 1) @ coefficients


def _beyond_end(draws: float, base: Floats, number: Floats, end: int, inwards: int) -> float:
    """Effective draws to expect beyond the last number, by a geometric sequence of the last two: one to three.

    None was drawn, so more than three are improbable; and one cannot be excluded.
    """
    at_end, before = (draws * base[number == k].sum() / base.sum() for k in (end, end + inwards))
    return float(np.clip(at_end**2 / before, 1.0, _MOST_BEYOND)) if before else 1.0


def _independent_share(samples: Samples, numbers: Any) -> float:
    """Number of independent draws per draw, at most 1: the smaller of two estimates.

    The first is the effective sample size of the number of clusters. The second counts visits to numbers other than the
    most frequent one, as a rare number often has too few draws for an autocorrelation. A chain that keeps its number
    with probability s, and else takes an independent one, has an autocorrelation time of (1 + s) / (1 - s). It repeats
    the number of the draw before more often than independent draws do, by s times the other draws.
    """
    if not samples.series:
        return 1.0
    share, counts = 1.0, np.bincount(numbers)
    counts[counts.argmax()] = 0
    others = counts.sum()
    if others == 0:
        return share
    if samples.has_errors:
        size = effective_size(samples.by_chain(numbers.astype(np.float64)))
        share = min(share, float(size) / (len(samples.chains) * samples.shortest))
    by_chance = np.square(counts).sum() / samples.n_draws
    repeats = others - (counts[numbers[_entries(samples, numbers)]] > 0).sum()
    stays = max((repeats - by_chance) / (others - by_chance), 0.0)
    return min(share, (1.0 - stays) / (1.0 + stays))


def _entries(samples: Samples, group: Any) -> Any:
    """Rows at which the chains enter a group: their first draw, and each that differs from the one before; or runs."""
    if not samples.series:
        return np.arange(samples.n_draws)
    begins = [rows[np.append(True, group[rows[1:]] != group[rows[:-1]])] for rows in samples.chains]
    return np.concatenate(begins)


def _rare(samples: Samples, own: Any, group: Any, weights: Floats) -> float:
    """Share of the weight (of the draws `own`) in rare groups: chains enter such a group fewer than five times.

    Good's estimate of the share in groups that were never seen is the share in groups seen once. A group of most draws
    is not rare, though chains seldom leave it.
    """
    at = np.full(samples.n_draws, -1)
    at[own] = group
    entered = at[_entries(samples, at)]
    visits = np.bincount(entered[entered >= 0], minlength=int(group.max()) + 1)
    is_rare = (visits < _VISITS) & (2 * np.bincount(group) <= group.size)
    return float(weights[is_rare[group]].sum() / weights.sum())


def _spread(values: Floats, group: Any, counts: Any) -> Floats:
    """Values (N,) with ties spread evenly between the midpoints to the neighbouring values."""
    spaces = np.diff(values)
    below, above = np.append(spaces[:1], spaces), np.append(spaces, spaces[-1:])
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
