"""Test of many traces for differences between chains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import f, rankdata

from posterior_consensus.diagnostics.agreement import half_chains
from posterior_consensus.ensemble.draws import PartitionDraws

Floats = npt.NDArray[np.float64]

_LEVEL = 0.01  # of all tests of a kind together
_BATCHES = 5  # of a half-chain


def differ(draws: PartitionDraws, values: Floats) -> npt.NDArray[np.bool_]:
    """Whether the half-chains differ by more than chance in each trace (T, N), for T traces together.

    The test is an analysis of variance of the means of five batches of each half-chain: of the ranks' normal scores, as
    in the rank-normalized R-hat, and of the normal scores of the distances from the median. A trace is significant at
    the level 0.01 / (2 T) (Bonferroni). Traces that vary between half-chains but never within them are significant.
    """
    halves = half_chains(draws)
    n_halves, length = halves.shape
    n_batches = min(_BATCHES, int(np.sqrt(length)))
    if n_batches < 2 or n_halves < 4 or len(values) == 0:
        return np.ones(len(values), bool)
    found = np.zeros(len(values), bool)
    for folded in (False, True):
        traced = np.abs(values - np.median(values, axis=1, keepdims=True)) if folded else values
        scores = ndtri((rankdata(traced, axis=1) - 0.375) / (draws.n_draws + 0.25))[:, halves]
        parts = [part.mean(axis=-1) for part in np.array_split(scores, n_batches, axis=-1)]
        batches = np.stack(parts, axis=-1)
        means = batches.mean(axis=-1)
        within = np.square(batches - means[..., np.newaxis]).sum(axis=(1, 2)) / (n_halves * (n_batches - 1))
        between = n_batches * means.var(axis=1, ddof=1)
        limit = f.isf(_LEVEL / (2 * len(values)), n_halves - 1, n_halves * (n_batches - 1))
        found |= between > limit * within
    return found
