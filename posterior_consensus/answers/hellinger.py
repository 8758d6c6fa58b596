"""Hellinger distances between the components of each draw, in closed form or by numerical integration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.runtime import memory

_LEVELS = np.linspace(-27.6, 27.6, 37)  # logits of the quantiles that bound the intervals: 1e-12 to 1 - 1e-12
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_TAIL = 1e-12

Parameters = Mapping[str, Floats]


def similarities(families: Sequence[tuple[Any, Parameters]]) -> Floats:
    """One minus the Hellinger distance (n_draws, K, K) between the components of each draw.

    Parameters
    ----------
    families : sequence of (distribution of scipy.stats or None, mapping of str to ndarray)
        Distribution of each data set, independent given the component; None for multivariate normals. Parameters have
        the shape (n_draws, K or 1, features or 1). Multivariate normals have ``mean`` and ``cov``.

    Raises
    ------
    ValueError
        If the distribution does not allow a parameter.
    """
    logs = sum(_log_affinities(distribution, parameters) for distribution, parameters in families)
    similar: Floats = 1.0 - np.sqrt(-np.expm1(np.minimum(logs, 0.0)))
    similar[:, np.arange(similar.shape[1]), np.arange(similar.shape[1])] = 1.0
    return similar


def _log_affinities(distribution: Any, parameters: Parameters) -> Floats:
    """Logarithms (n_draws, K, K) of the Bhattacharyya affinities, the integrals of sqrt(f g)."""
    shape = np.broadcast_shapes(*(v.shape[:-1] if name == "cov" else v.shape for name, v in parameters.items()))
    n_draws, n_components = shape[:2]
    memory.check(32 * n_draws * n_components**2, f"Distances of {n_components} components in {n_draws} draws")
    if distribution is None:
        return _of_normals(parameters["mean"], parameters["cov"])
    full = {name: np.broadcast_to(v, shape).reshape(n_draws, n_components, -1) for name, v in parameters.items()}
    _check(distribution, full)
    affinity = _affinity_of(distribution, full)
    features = range(next(iter(full.values())).shape[2])
    return np.sum([affinity({name: v[..., f] for name, v in full.items()}) for f in features], axis=0)


def _check(distribution: Any, parameters: Parameters) -> None:
    """Raise ValueError if a parameter is invalid: SciPy's median is then NaN."""
    with np.errstate(all="ignore"):
        median = distribution.ppf(0.5, **parameters)
    if np.isnan(median).any():
        row, k, _ = (int(at) for at in np.argwhere(np.isnan(median))[0])
        given = ", ".join(f"{name} {float(v[row, k].min()):g}" for name, v in parameters.items())
        raise ValueError(
            f"Parameters must have values that the distribution {distribution.name!r} allows; got {given} for "
            f"component {k} in row {row} of the draws."
        )


def _affinity_of(distribution: Any, parameters: Parameters) -> Callable[[Parameters], Floats]:
    """Function that returns the log affinities (n_draws, K, K) for parameters (n_draws, K)."""
    closed = _CLOSED.get(distribution.name)
    if closed is not None:
        names, function = closed
        moved = distribution.name != "norm" and np.any(parameters.get("loc", np.zeros(1)))
        trials = parameters.get("n", np.zeros((1, 1, 1)))
        if not moved and not np.any(np.ptp(trials, axis=1)):
            return lambda own: function(*(own.get(name, np.full((1, 1), default)) for name, default in names.items()))
    return lambda own: _by_quadrature(distribution, own)


def _two(parameter: Floats) -> tuple[Floats, Floats]:
    return parameter[:, :, np.newaxis], parameter[:, np.newaxis]


def _of_normal(mean: Floats, sd: Floats) -> Floats:
    (m1, m2), (s1, s2) = _two(mean), _two(sd)
    return -0.5 * np.log1p((s1 - s2) ** 2 / (2 * s1 * s2)) - (m1 - m2) ** 2 / (4 * (s1**2 + s2**2))


def _of_poisson(rate: Floats) -> Floats:
    r1, r2 = _two(np.sqrt(rate))
    return -0.5 * (r1 - r2) ** 2


def _of_gamma(shape: Floats, scale: Floats) -> Floats:
    (a1, a2), (s1, s2) = _two(shape), _two(scale)
    a = (a1 + a2) / 2
    logs = special.gammaln(a) - (special.gammaln(a1) + special.gammaln(a2)) / 2
    return logs + a * np.log(2 * s1 * s2 / (s1 + s2)) - (a1 * np.log(s1) + a2 * np.log(s2)) / 2


def _of_binomial(n: Floats, p: Floats) -> Floats:
    (p1, p2), (q1, q2) = _two(np.sqrt(p)), _two(np.sqrt(1 - p))
    with np.errstate(divide="ignore"):
        return n[..., np.newaxis] * np.log(p1 * p2 + q1 * q2)


_CLOSED: dict[str, tuple[dict[str, float], Callable[..., Floats]]] = {
    "norm": ({"loc": 0.0, "scale": 1.0}, _of_normal),
    "poisson": ({"mu": 1.0}, _of_poisson),
    "gamma": ({"a": 1.0, "scale": 1.0}, _of_gamma),
    "expon": ({"a": 1.0, "scale": 1.0}, _of_gamma),
    "bernoulli": ({"n": 1.0, "p": 0.5}, _of_binomial),
    "binom": ({"n": 1.0, "p": 0.5}, _of_binomial),
}
"""Closed forms by name of the distribution: parameters with their defaults, and the function of the parameters."""


def _of_normals(mean: Floats, cov: Floats) -> Floats:
    """Log affinities of multivariate normals, pair by pair: there are few components."""
    n_draws, n_components, n_features = np.broadcast_shapes(mean.shape, cov.shape[:-1])
    mean = np.broadcast_to(mean, (n_draws, n_components, n_features))
    cov = np.broadcast_to(cov, (*mean.shape, n_features))
    try:
        np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise ValueError("`cov` must hold positive definite matrices of the features; got others.") from None
    own = np.linalg.slogdet(cov)[1]
    logs = np.zeros((n_draws, n_components, n_components))
    for k in range(1, n_components):
        middle = (cov[:, :k] + cov[:, k : k + 1]) / 2
        difference = (mean[:, :k] - mean[:, k : k + 1])[..., np.newaxis]
        squares = np.sum(difference * np.linalg.solve(middle, difference), axis=(-2, -1))
        log_affinities = (own[:, :k] + own[:, k : k + 1]) / 4 - np.linalg.slogdet(middle)[1] / 2 - squares / 8
        logs[:, :k, k] = logs[:, k, :k] = log_affinities
    return logs


def _by_quadrature(distribution: Any, parameters: Parameters) -> Floats:
    """Log affinities of any distribution, by sums of square roots of densities over points of all components."""
    n_draws, n_components = next(iter(parameters.values())).shape
    logs = np.empty((n_draws, n_components, n_components))
    is_discrete = hasattr(distribution, "logpmf")
    log_density = distribution.logpmf if is_discrete else distribution.logpdf
    points = _integers if is_discrete else _between_quantiles
    n_points = _NODES.size * _LEVELS.size * n_components
    # Integers differ from draw to draw: one at a time.
    for rows in slices(n_draws, 1) if is_discrete else memory.parts(n_draws, 32 * n_components * n_points):
        own = {name: v[rows, :, np.newaxis] for name, v in parameters.items()}
        x, weight = points(distribution, {name: v[rows] for name, v in parameters.items()})
        with np.errstate(all="ignore"):
            roots = np.exp(0.5 * log_density(x[:, np.newaxis], **own)) * np.sqrt(weight)[:, np.newaxis]
        products = roots @ roots.transpose(0, 2, 1)
        norms = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
        with np.errstate(divide="ignore"):
            logs[rows] = np.log(products / (norms[:, :, np.newaxis] * norms[:, np.newaxis]))
    return logs


def _between_quantiles(distribution: Any, parameters: Parameters) -> tuple[Floats, Floats]:
    """Gauss-Legendre points (n_draws, P) and their weights, between quantiles of every component."""
    lower, upper = _LEVELS[_LEVELS <= 0, np.newaxis, np.newaxis], _LEVELS[_LEVELS > 0, np.newaxis, np.newaxis]
    quantiles = [
        distribution.ppf(special.expit(lower), **parameters),
        distribution.isf(special.expit(-upper), **parameters),
    ]
    ends = np.concatenate(quantiles).transpose(1, 0, 2)
    ends = np.sort(ends.reshape(len(ends), -1), axis=1)
    half = np.diff(ends, axis=1)[..., np.newaxis] / 2
    points = ends[:, :-1, np.newaxis] + half * (1 + _NODES)
    return points.reshape(len(ends), -1), (half * _WEIGHTS).reshape(len(ends), -1)


def _integers(distribution: Any, parameters: Parameters) -> tuple[npt.NDArray[Any], Floats]:
    """All integers (1, P) between the extreme quantiles of a draw's components, and a weight of 1."""
    first, last = (function(_TAIL, **parameters) for function in (distribution.ppf, distribution.isf))
    span = np.arange(int(first.min()), int(last.max()) + 1)
    memory.check(32 * first.size * span.size, f"Probabilities of {span.size:,} integers")
    return span[np.newaxis], np.ones((1, 1))
