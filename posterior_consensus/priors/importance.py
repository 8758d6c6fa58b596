"""Draws of one posterior weighted to those of another, by Pareto-smoothed importance sampling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.priors.concentrations import Floats
from posterior_consensus.runtime.arguments import as_numbers
from posterior_consensus.sources.door import as_draws

_FEWEST = 25  # draws with weight: fewer have no tail to fit
_VISITS = 5  # of a value that is not rare
MOST_RARE = 0.05  # share of the weight


def most_pareto_k(n_draws: int) -> float:
    """Largest Pareto shape at which so many draws with weight can tell: min(1 - 1 / log10(S), 0.7)."""
    return min(1.0 - 1.0 / float(np.log10(n_draws)), 0.7) if n_draws > 1 else -np.inf


class Smoothed(NamedTuple):
    """Draws with smoothed weights, the shape of the weights' tail and its limit, and rare ratios' share of the weight.

    The shape is 0 for equal weights and inf for too few draws. A ratio is rare if chains visit it fewer than five
    times.
    """

    samples: Samples
    pareto_k: float
    largest_k: float
    rare: float

    def can_tell(self, max_pareto_k: float | None = None) -> bool:
        """Whether hardly any weight is at ratios that were rarely seen, or the tail of the weights is light enough."""
        return self.rare <= MOST_RARE or self.pareto_k <= (self.largest_k if max_pareto_k is None else max_pareto_k)


def smoothed(samples: Samples, log_ratio: Floats) -> Smoothed:
    """Multiply the draws' weights by ratios (N,), given as logarithms, and smooth the largest products.

    Ratios of partitions take few values, and a tail of ties has no shape. For the fit, ties are spread evenly over the
    gaps to the neighbouring values; they keep their weights, which need no smoothing where they were seen repeatedly.
    Without ties this is Pareto smoothing as it stands.
    """
    with np.errstate(divide="ignore"):
        log_weights = np.log(samples.weights) + log_ratio
    own = np.flatnonzero(log_weights > -np.inf)
    values, group, counts = np.unique(log_weights[own].round(12), return_inverse=True, return_counts=True)
    weights = np.zeros(samples.n_draws)
    weights[own] = np.exp(log_weights[own] - values[-1])
    rare, limit = _rare(samples, own, group, weights), most_pareto_k(own.size)
    if values.size == 1 or own.size < _FEWEST:
        return Smoothed(samples.weighted(weights), 0.0 if values.size == 1 else np.inf, limit, rare)
    spread = _spread(values, group, counts)
    log_smoothed, pareto_k = _psis(spread)
    log_change = log_smoothed - spread
    log_change -= log_change[spread.argmin()]  # smoothed weights are normalised
    weights[own] *= np.where(counts[group] == 1, np.exp(log_change), 1.0)
    return Smoothed(samples.weighted(weights), pareto_k, limit, rare)


def _rare(samples: Samples, own: Any, group: Any, weights: Floats) -> float:
    """Share of the weight at values that the chains visit fewer than five times; successive equal values are one visit.

    Good's estimate of the share at values that were never seen is the share at values seen once.
    """
    at = np.full(samples.n_draws, -1)
    at[own] = group
    begins = [np.append(True, at[rows[1:]] != at[rows[:-1]]) for rows in samples.chains]
    first = np.concatenate([rows[new] for rows, new in zip(samples.chains, begins, strict=True)])
    visits = np.bincount(at[first][at[first] >= 0], minlength=int(group.max()) + 1)
    return float(weights[own][visits[group] < _VISITS].sum() / weights.sum())


def _spread(values: Floats, group: Any, counts: Any) -> Floats:
    """Values (N,) of which ties are spread evenly between the midpoints to the values below and above."""
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

    found, pareto_k = array_stats.psislw(-log_weights)  # it takes log likelihoods, whose inverse the weights are
    return found, float(pareto_k)


def reweight(draws: Any, log_ratio: Any, *, max_pareto_k: float | None = None) -> PartitionDraws:
    """Weight draws of one posterior to represent another posterior.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    log_ratio : array_like of shape (n_draws,) or (n_chains, n), or DataArray with `chain` and `draw`
        Logarithm of the ratio of the other posterior's density to the density of this one at each draw, up to a
        constant. If only the prior differs, it is the difference of two log priors, as
        :meth:`priors.PartitionPrior.log_prob` gives them. Minus infinity gives a weight of 0.
    max_pareto_k : float, optional
        Largest Pareto shape to accept; infinity accepts any. By default min(1 - 1 / log10(S), 0.7) for S draws with
        weight [1]_.

    Returns
    -------
    PartitionDraws
        Draws of labels with smoothed `weights`, which sum to 1. Every function takes them.

    Raises
    ------
    ValueError
        If the Pareto shape exceeds `max_pareto_k` and more than 5% of the weight is at ratios that the chains visit
        fewer than five times; if `log_ratio` has another shape, NaN or positive infinity, or there are no draws.

    See Also
    --------
    prior_sensitivity : the consensus under several other priors at once.

    Notes
    -----
    The weights are smoothed by Pareto-smoothed importance sampling [1]_. If the estimated shape, the k-hat, is too
    large, the draws hold too little of the other posterior, and standard errors understate the error. Many draws have
    equal ratios, often because they have equally many clusters. For the fit of the shape, ties are spread over the gaps
    to the neighbouring values; tied draws keep their own weights. But a fitted tail is not informative if the ratios
    take few values. If each value was visited often, the draws represent the other posterior, whatever the k-hat is.
    The share of the other posterior at values that no draw has is estimated by the share at values seen once [2]_.
    Values of fewer than five visits may have 5% of the weight.

    If the first posterior excludes partitions that the other allows, no draw shows them, and nothing here detects it.
    Weights of the draws are kept as factors. Allocation probabilities are left out, because they depend on the prior of
    the draws.

    References
    ----------
    .. [1] Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine Learning Research 25(72), 1-58.
       https://jmlr.org/papers/v25/19-556.html
    .. [2] Good (1953), Biometrika 40(3-4), 237-264. https://doi.org/10.1093/biomet/40.3-4.237

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> draws = pc.as_partition_draws([[0, 0, 1], [0, 0, 0], [0, 1, 1], [0, 1, 2]] * 25)
    >>> ratio = pc.priors.crp(2.0).log_prob(draws) - pc.priors.crp(1.0).log_prob(draws)
    >>> other = pc.reweight(draws, ratio)
    >>> float(draws.samples.mean(draws.n_clusters)), round(float(other.samples.mean(other.n_clusters)), 1)
    (2.0, 2.3)
    """
    taken = as_draws(draws).labels_only()
    if max_pareto_k is not None and not (isinstance(max_pareto_k, (int, float, np.floating)) and max_pareto_k > 0):
        raise ValueError(f"`max_pareto_k` must be a positive number or None; got {max_pareto_k!r}.")
    found = smoothed(taken.samples, _ratios(log_ratio, taken.samples))
    if not found.can_tell(max_pareto_k):
        k, limit = found.pareto_k, found.largest_k if max_pareto_k is None else max_pareto_k
        tail = "too few draws with weight to tell" if k == np.inf else f"a Pareto k-hat of {k:.2f}"
        raise ValueError(
            f"`log_ratio` must leave weights with a Pareto k-hat of at most {limit:.3g}; got {tail}, with "
            f"{found.rare:.0%} of the weight at ratios that were rarely seen. The draws hold too little of the other "
            "posterior: sample from it, or accept the weights by max_pareto_k=np.inf."
        )
    return replace(taken, samples=found.samples)


def _ratios(log_ratio: Any, samples: Samples) -> Floats:
    """Check log ratios, one for each draw."""
    given = log_ratio if isinstance(log_ratio, xr.DataArray) else as_numbers("log_ratio", log_ratio)
    values = as_numbers("log_ratio", samples.in_order(given, "`log_ratio`"))
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"`log_ratio` must be finite or minus infinity; got {values[row]} at chain {samples.chain[row]}, draw "
            f"{samples.draw[row]}. The prior of the draws must give each of them a positive probability."
        )
    if np.all((values == -np.inf) | (samples.weights == 0)):
        raise ValueError("`log_ratio` must not be minus infinity for all draws of positive weight: no draw is left.")
    return values
