"""How far successive draws of a chain are alike: autocorrelation times and effective sample sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len
from scipy.special import ndtri

_ALL_LAGS = 32  # beyond, the correlation is smooth, and lags grow in steps of a tenth
_GROWTH = 1.1


def autocorrelation_time(correlation: Callable[[int], float], length: int) -> float:
    """Number of successive draws per independent draw.

    ``correlation(lag)`` is that between draws ``lag`` steps apart, 1 for lag 0, of a chain of `length` draws.
    Correlations at lags 2k and 2k + 1 are summed in pairs, up to the first pair whose sum is not positive. Pair sums
    are made to decrease. Returned is twice their total minus 1 (Geyer 1992, Statistical Science 7(4), 473-483,
    https://doi.org/10.1214/ss/1177011137).
    """
    steps, sums, k = [], [], 0
    while 2 * k + 1 < length:
        steps.append(k)
        sums.append(correlation(2 * k) + correlation(2 * k + 1))
        if sums[-1] <= 0:
            break
        k = k + 1 if 2 * k < _ALL_LAGS else int(np.ceil(k * _GROWTH))
    filled = np.interp(np.arange(steps[-1] + 1), steps, np.maximum(sums, 0.0))
    return 2 * float(np.minimum.accumulate(filled).sum()) - 1


def effective_size(chains: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Effective sample size for the mean of each of several traces (P, n_chains, n), of four draws or more each: (P,).

    Notes
    -----
    The numbers are those of ArviZ with ``method="mean"``, for all traces at once. Chains are split in halves of m
    draws. With W the mean of their variances, V = W (m - 1) / m plus the variance of their means, and C_k the mean of
    their autocovariances at lag k, the correlation at lag k is 1 - (W - C_k) / V (Vehtari, Gelman, Simpson, Carpenter
    and Buerkner 2021, Bayesian Analysis 16(2), 667-718, https://doi.org/10.1214/20-BA1221). Correlations are summed as
    in :func:`autocorrelation_time`, plus the one at the even lag of the first sum that is not positive, if it is.
    """
    return _effective(halved(chains))


def bulk_size(chains: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Effective sample size of the normal scores of each trace (P, n_chains, n): (P,), as ArviZ's ``method="bulk"``."""
    return _effective(normal_scores(halved(chains)))


def tail_size(chains: npt.NDArray[np.float64], tails: tuple[float, float]) -> npt.NDArray[np.float64]:
    """Smaller effective sample size of two quantiles of each trace (P, n_chains, n): (P,), as ArviZ's ``"tail"``."""
    edges = np.quantile(chains, tails, axis=(-2, -1))[..., np.newaxis, np.newaxis]
    return np.minimum.reduce([effective_size((chains <= edge).astype(np.float64)) for edge in edges])


def halved(chains: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Both halves of each chain, (P, 2 n_chains, n // 2), without a middle draw."""
    half = chains.shape[-1] // 2
    return np.concatenate([chains[..., :half], chains[..., -half:]], axis=-2)


def normal_scores(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Normal scores of the ranks of all values of each trace (P, ...), of Blom; equal values share their mean rank."""
    flat = values.reshape(len(values), -1)
    rows, size = flat.shape
    order = np.argsort(flat, axis=-1, kind="stable")
    sorted_values = np.take_along_axis(flat, order, axis=-1)
    is_first = np.ones(flat.shape, bool)
    is_first[:, 1:] = sorted_values[:, 1:] != sorted_values[:, :-1]
    first = np.flatnonzero(is_first)
    counts = np.diff(np.append(first, rows * size))
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, np.repeat(first % size + (counts + 1) / 2, counts).reshape(flat.shape), axis=-1)
    return ndtri((ranks - 0.375) / (size + 0.25)).reshape(values.shape)


def _effective(halves: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    half = halves.shape[-1]
    means, size, length = halves.mean(axis=-1), halves.shape[-2] * half, next_fast_len(2 * half, real=True)
    power = np.square(np.abs(np.fft.rfft(halves - means[..., np.newaxis], length))).mean(axis=-2)
    covariance = np.fft.irfft(power, length)[..., :half] / half
    total = covariance[..., :1] + means.var(axis=-1, ddof=1)[..., np.newaxis]
    apart = covariance[..., :1] * (half / (half - 1)) - covariance
    correlation = 1.0 - np.divide(apart, total, out=np.ones_like(apart), where=total > 0)
    correlation[..., 0] = 1.0
    n_sums = max((half - 1) // 2, 1)
    even, odd = (correlation[..., first : 2 * n_sums : 2] for first in (0, 1))
    sums = even + odd
    last = np.where((sums <= 0).any(axis=-1), (sums <= 0).argmax(axis=-1), n_sums - 1)[..., np.newaxis]
    summed = np.where(np.arange(n_sums) < last, np.minimum.accumulate(sums, axis=-1), 0.0).sum(axis=-1)
    ends, end = (np.take_along_axis(one, last, axis=-1)[..., 0] for one in (sums, even))
    times = 2 * summed - 1 + np.where(ends >= 0, end, np.maximum(end, 0.0))
    still = np.ptp(halves, axis=(-2, -1)) == 0  # but for a middle draw, which no half has
    return np.where(still, size, size / np.maximum(times, 1 / np.log10(size)))
