"""Concentrations, fixed or with a prior that is integrated by quadrature over the log concentration."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import integrate, stats
from scipy.special import betaln, gammaln

from posterior_consensus.runtime.arguments import is_number

Floats = npt.NDArray[np.float64]
Concentration = Any
"""A number, or a frozen SciPy distribution."""

_LEAST, _TAIL = 1e-18, 1e-300  # smallest concentration, and smallest tail probability
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_WIDEST = 4.0  # panel, in units of the log concentration
_WIDTHS = 12.0  # standard deviations per panel that its points integrate to rounding
_GRID = 1_000  # log concentrations at which the panels' widths are computed


class Nodes(NamedTuple):
    """Concentrations (Q,) and the logarithms of their probabilities, or of their weights in a sum over them."""

    values: Floats
    log_weights: Floats


def as_concentration(value: Any, lower: float = 0.0) -> Concentration:
    """Check a number above `lower`, a frozen SciPy distribution of positive numbers, or (shape, rate) of a Gamma."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_number, value)):
        shape, rate = map(float, value)
        if not (0 < shape < np.inf and 0 < rate < np.inf):
            raise ValueError(f"`concentration` must have a positive shape and rate of its Gamma prior; got {value!r}.")
        return stats.gamma(shape, scale=1 / rate)
    if hasattr(value, "logpdf") and hasattr(value, "isf") and hasattr(value, "support"):
        if value.support()[0] < 0:
            raise ValueError(f"`concentration` must have a prior of positive numbers; got support {value.support()}.")
        return value
    if not is_number(value):
        raise TypeError(
            "`concentration` must be a number, a frozen SciPy distribution such as scipy.stats.gamma(2, scale=0.5), or "
            f"(shape, rate) of a Gamma prior; got {value!r}."
        )
    if not lower < value < np.inf:
        raise ValueError(f"`concentration` must be a finite number above {lower:g}; got {value!r}.")
    return float(value)


def in_words(value: Any) -> str:
    """Format a number or a distribution as text, such as ``gamma(2, scale=0.5)``."""
    if is_number(value):
        return f"{value:g}"
    given = [f"{one:g}" for one in value.args] + [f"{name}={one:g}" for name, one in value.kwds.items()]
    return f"{value.dist.name}({', '.join(given)})"


def median(value: Concentration) -> float:
    """Return the concentration, or the median of its prior."""
    return float(value if is_number(value) else value.median())


def nodes(concentration: Concentration, n_items: int, information: Callable[[Floats], Any]) -> Nodes:
    """Quadrature nodes for the likelihood of the concentration, given a partition.

    The nodes are panels of Gauss-Legendre points in the log concentration. The width of a panel is 12 standard
    deviations of the likelihood; `information` returns the inverse variance at concentrations (Q,), or an upper bound.
    The outer nodes take the probability beyond them, where items are all in one cluster or all on their own.
    """
    if is_number(concentration):
        return Nodes(np.array([concentration]), np.zeros(1))
    bottom = max(float(concentration.ppf(1e-17)), _LEAST)
    with np.errstate(divide="ignore"):
        top = max(min(float(concentration.isf(_TAIL)), 1e16 * n_items**2), bottom * (1 + 1e-12))
    inner = np.log(np.clip([concentration.ppf(1e-16), concentration.isf(1e-16)], bottom, top))
    grid = np.linspace(np.log(bottom), np.log(top), _GRID)
    panels = np.maximum(
        np.sqrt(np.broadcast_to(information(np.exp(grid)), _GRID)) / _WIDTHS, 1 / min(_WIDEST, float(np.ptp(inner)) / 2)
    )
    passed = integrate.cumulative_trapezoid(panels, grid, initial=0.0)
    edges = np.interp(np.linspace(0.0, passed[-1], 1 + int(np.ceil(passed[-1]))), passed, grid)
    half = np.diff(edges) / 2
    at = ((edges[:-1] + half)[:, np.newaxis] + half[:, np.newaxis] * _POINTS).ravel()
    weights = np.log(half[:, np.newaxis] * _WEIGHTS).ravel()
    with np.errstate(divide="ignore"):
        values = np.concatenate([[bottom], np.exp(at), [top]])
        ends = np.log([concentration.cdf(bottom), concentration.sf(top)])
        density = concentration.logpdf(values[1:-1]) + at + weights
    kept = Nodes(values, np.concatenate([ends[:1], density, ends[1:]]))
    return Nodes(*(part[kept.log_weights > -np.inf] for part in kept))


def log_rising(x: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Logarithm of the rising factorial x (x + 1) ... (x + n - 1), accurate for large positive x."""
    x, n = np.asarray(x, np.float64), np.asarray(n, np.float64)
    several = np.maximum(n, 1.0)
    rising: Floats = np.where(n > 0, gammaln(several) - betaln(x, several), 0.0)
    return rising
