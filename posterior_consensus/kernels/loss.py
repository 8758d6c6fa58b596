"""A loss evaluated from sums over contingency tables.

Every PartitionLoss is numerator / denominator, both linear in eight terms of one dimension: with `top` = h(n), A,
B and C the sums of h over the joint cells, the estimate's and the draw's cluster sizes,

    top, A, B, C, max(B, C), min(B, C), B C / top, sqrt((top - B) (top - C)).

`numerator` and `denominator` hold the eight coefficients; a denominator of zeros means 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, inner, jit
from posterior_consensus.runtime.tolerances import ROUNDING

_ZERO = 1e-14  # relative to top: what coefficients such as 1.5 and 0.5 leave where A = B = C


class LinearLoss(NamedTuple):
    """A weighted sum of top, A, B and C, so that what a move gains depends on two clusters alone."""

    h: np.ndarray  # (n + 1,), with h(0) = h(1) = 0
    numerator: tuple[float, ...]  # the first four


class GeneralLoss(NamedTuple):
    """Any other loss."""

    h: np.ndarray
    numerator: tuple[float, ...]  # eight
    denominator: tuple[float, ...]  # eight


def as_kernels_take_it(
    h: np.ndarray, numerator: tuple[float, ...], denominator: tuple[float, ...]
) -> LinearLoss | GeneralLoss:
    """The loss with these eight coefficients each."""
    if any(denominator) or any(numerator[4:]):
        return GeneralLoss(h, numerator, denominator)
    return LinearLoss(h, numerator[:4])


@inner
def _linear_form(coefficients, top, a, b, c):
    """The sum of coefficients times the eight terms, without a branch within loops over draws: these are vectorized.

    The terms are in the order of `TERMS` in losses/record.py. A root takes as long as everything else, and few losses
    have one: the compiler makes a loop without it.
    """
    root = np.sqrt(max(0.0, (top - b) * (top - c))) if coefficients[7] != 0.0 else 0.0
    return (
        coefficients[0] * top
        + coefficients[1] * a
        + coefficients[2] * b
        + coefficients[3] * c
        + coefficients[4] * max(b, c)
        + coefficients[5] * min(b, c)
        + coefficients[6] / max(top, 1.0) * b * c  # top is 0 for a single item, else at least 1
        + coefficients[7] * root
    )


def _never(loss):
    return False


def _has_denominator(loss):
    for coefficient in loss.denominator:
        if coefficient != 0.0:
            return True
    return False


has_denominator = either(LinearLoss, _never, _has_denominator, "Whether the loss is a ratio.")


def _always(loss):
    return True


is_linear = either(LinearLoss, _always, _never, "Whether the loss is a weighted sum of A, B and C.")


def _linear_value(loss, is_ratio, top, a, b, c):
    numerator = loss.numerator
    value = numerator[0] * top + numerator[1] * a + numerator[2] * b + numerator[3] * c
    return 0.0 if abs(value) <= _ZERO * top else value


def _any_value(loss, is_ratio, top, a, b, c):
    value = _linear_form(loss.numerator, top, a, b, c)
    value = 0.0 if abs(value) <= _ZERO * top else value
    if not is_ratio:
        return value
    divisor = _linear_form(loss.denominator, top, a, b, c)
    # 0/0: both partitions are trivial; the distance is 0 if they are equal, else 1
    if divisor <= ROUNDING * top:
        value, divisor = 0.0 if abs(b - a) + abs(c - a) <= ROUNDING * top else 1.0, 1.0
    return value / divisor


loss_value = either(LinearLoss, _linear_value, _any_value, "The loss, but for its scale.")


def combine(loss: LinearLoss | GeneralLoss, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Losses (P, N) from joint sums a (P, N), sums b of the estimates (P,) and c of the draws (N,)."""
    losses = np.empty_like(a)
    _combine(loss, a, b, c, losses)
    return losses


@jit
def _combine(loss, a, b, c, losses):
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    for p in range(a.shape[0]):
        for t in range(a.shape[1]):
            losses[p, t] = loss_value(loss, is_ratio, top, a[p, t], b[p], c[t])


def combine_pairs(loss: LinearLoss | GeneralLoss, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Losses (P,) of pairs of partitions from the sums a over their tables, b of the estimates and c of the draws."""
    losses = np.empty_like(a)
    _combine_pairs(loss, a, b, c, losses)
    return losses


@jit
def _combine_pairs(loss, a, b, c, losses):
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    for p in range(a.size):
        losses[p] = loss_value(loss, is_ratio, top, a[p], b[p], c[p])


def combine_on_common(loss: LinearLoss | GeneralLoss, sums: np.ndarray) -> np.ndarray:
    """Losses (M,) from sums (M, 4) over tables, those of the partitions and of the draws, and top of each."""
    losses = np.empty(len(sums))
    _combine_on_common(loss, sums, losses)
    return losses


@jit
def _combine_on_common(loss, sums, losses):
    is_ratio = has_denominator(loss)
    for p in range(losses.size):
        losses[p] = loss_value(loss, is_ratio, sums[p, 3], sums[p, 0], sums[p, 1], sums[p, 2])
