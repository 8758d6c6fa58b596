"""Shares of matches by answers on a stratified sample of pairs."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions

LEVEL = 0.95
_UNSURE = 0.01  # least distance of a score from 0 and 1 where it stands for one answer
_EDGE = 1e-9  # least standard error


class Share(NamedTuple):
    """An estimated share, and a value near it that is neither 0 nor 1, with its standard error."""

    value: float
    error: float
    near: float

    @property
    def row(self) -> tuple[float, float, float]:
        """The estimate, and the ends of its interval."""
        return self.value, *self.interval

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval for as many answers as give this standard error."""
        if np.isnan(self.value) or self.error < _EDGE:
            return self.value, self.value
        number = self.near * (1 - self.near) / self.error**2
        square = ndtri((1 + LEVEL) / 2) ** 2
        centre = (self.value + square / (2 * number)) / (1 + square / number)
        width = np.sqrt(square * (self.value * (1 - self.value) + square / (4 * number)) / number) / (
            1 + square / number
        )
        return float(max(min(centre - width, self.value), 0.0)), float(min(max(centre + width, self.value), 1.0))


class StratifiedAnswers:
    """Answers 0, 1 or NaN on pairs of strata; the mean score of a stratum, or `prior`, stands for one answer more.

    Attributes
    ----------
    number, matches : numpy.ndarray of shape (n_strata,)
        Number of answers, and of matches among them.
    share, centre, spread : numpy.ndarray of shape (n_strata,)
        Share of matches among the answers, or the score without any; the share with one answer more; the variance of
        the share.
    """

    def __init__(self, stratum: Positions, match: Floats, n_pairs: Any, score: Any, prior: Any = None) -> None:
        known = ~np.isnan(match)
        self._n_pairs, score = np.asarray(n_pairs, np.float64), np.asarray(score, np.float64)
        self.number = np.bincount(stratum[known], minlength=score.size)
        self.matches = np.bincount(stratum[known], match[known], score.size).astype(np.int64)
        least = np.maximum(self.number, 1)
        self.share = np.where(self.number > 0, self.matches / least, score)
        more = np.clip(score if prior is None else prior, _UNSURE, 1 - _UNSURE)
        self.centre = (self.matches + more) / (self.number + 1)
        left = 1.0 - np.minimum(self.number / np.maximum(self._n_pairs, 1), 1.0)
        self.spread = left * self.centre * (1 - self.centre) / least

    def totals(self, weights: Any) -> tuple[float, float]:
        """Weighted number of matches, by the shares and by the centres; weights (n_strata,) are of each pair."""
        each = self._n_pairs * weights
        return float(each @ self.share), float(each @ self.centre)

    def draws(self, strata: Flags, n_draws: int, rng: np.random.Generator) -> Integers:
        """Draw numbers of matches (n_draws,) in some strata from the posterior whose mean is the centre."""
        number, matches, centre = self.number[strata], self.matches[strata], self.centre[strata]
        size = (n_draws, number.size)
        shares = rng.beta((number + 1) * centre, (number + 1) * (1 - centre), size)
        left = self._n_pairs[strata].astype(np.int64) - number
        return matches.sum() + rng.binomial(left, shares).sum(axis=1)

    def error(self, weights: Any) -> float:
        """Standard error of a weighted number of matches."""
        return float(np.sqrt((self._n_pairs * weights) ** 2 @ self.spread))
