"""Matches among pairs of low scores, by answers on some: shares of strata around a curve of the scores."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaln, expit, logit, softmax

from posterior_consensus.runtime.aliases import Floats, Integers, Positions

_SHIFTS = np.linspace(-6.0, 6.0, 25)  # added to log odds of scores
_SLOPES = np.geomspace(0.15, 2.6, 12)  # by which these are multiplied
_SHAPES = (0.3, 1.0, 3.0)  # of the rarer answer in the Beta distribution of a stratum's share
_SHIFT, _SLOPE = 2.0, 0.7  # standard deviations of the shift, and of the logarithm of the slope, before the answers
_CERTAIN = 1e-6  # least distance of a score from 0 and 1, and of a share on the curve
_POINTS = 25  # quantiles that stand for the scores of a stratum
_DRAWS = 4_000


def matches_by_curve(
    scores: Sequence[Floats], number: Positions, matches: Positions, rng: np.random.Generator
) -> Integers:
    """Draw from the posterior of the number of matches in all strata, (n_draws,).

    Parameters
    ----------
    scores : sequence of numpy.ndarray
        Scores of the pairs of each stratum.
    number, matches : numpy.ndarray of shape (n_strata,)
        Number of answers, and of matches among them.
    """
    if not scores:
        return np.zeros(_DRAWS, np.int64)
    shift, slope = (one.ravel() for one in np.meshgrid(_SHIFTS, _SLOPES))
    at = (np.arange(_POINTS) + 0.5) / _POINTS
    points = logit(np.clip([np.quantile(own, at) for own in scores], _CERTAIN, 1 - _CERTAIN))
    curve = expit(shift[:, np.newaxis, np.newaxis] + slope[:, np.newaxis, np.newaxis] * points).mean(axis=2)
    odds = 1 / (1 / np.clip(curve, _CERTAIN, 1 - _CERTAIN) - 1)
    yes, no = (np.concatenate([shape * np.maximum(one, 1.0) for shape in _SHAPES]) for one in (odds, 1 / odds))
    fits = (betaln(yes + matches, no + number - matches) - betaln(yes, no)).sum(axis=1)
    before = -np.square(shift / _SHIFT) / 2 - np.square(np.log(slope) / _SLOPE) / 2
    chance = softmax(fits + np.tile(before, len(_SHAPES)))
    which = rng.choice(fits.size, _DRAWS, p=chance)
    shares = rng.beta((yes + matches)[which], (no + number - matches)[which])
    left = np.array([own.size for own in scores]) - number
    return matches.sum() + rng.binomial(left, shares).sum(axis=1)
