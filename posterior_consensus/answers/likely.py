"""Whether a posterior may have more than one mode, from the losses between its draws alone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.modes import valley_evidence
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.evaluate.expectation import Floats, all_losses
from posterior_consensus.losses.record import PartitionLoss

_GROUPS = 2, 3, 4  # numbers of groups tried
_STARTS = 4  # of each number and half
_STEPS = 20
_LENIENT = 0.02  # evidence of a valley from which a longer look is worth it


def may_have_more(draws: PartitionDraws, loss: PartitionLoss) -> bool:
    """Whether a valley may lie between groups of draws; the draws are few enough for the losses between them all.

    Every other draw is put into one of a few groups by k-means, with the mean loss against a group's draws as the
    distance to it, and the remaining draws to the nearest group. How much nearer the draws of one half are to one group
    of the other half than to another group is then tested for a valley, as between particles: draws that have no say in
    the groups show none that is not there. Draws count as independent, which rather finds more valleys than there
    are.
    """
    draws = draws.without_zero_weights()
    losses = all_losses(draws, loss)
    losses = (losses + losses.T) / 2
    rng = np.random.default_rng(0)
    one, other = np.arange(0, draws.n_draws, 2), np.arange(1, draws.n_draws, 2)
    weights = draws.weights
    for number in _GROUPS:
        if number > other.size:
            break
        for _ in range(_STARTS):
            group = _groups(losses[np.ix_(one, one)], weights[one], number, rng)
            to_one = _means(losses[np.ix_(one, other)], weights[one], group)
            group = to_one.argmin(axis=0)
            to_other = _means(losses[np.ix_(other, one)], weights[other], group)
            distances = np.empty((len(to_other), draws.n_draws))
            distances[:, one], distances[:, other] = to_other, to_one[np.unique(group)]
            if _shows_valley(distances, weights * draws.samples.effective_draws):
                return True
    return False


def _means(losses: Floats, weights: Floats, group: npt.NDArray[np.intp]) -> Floats:
    """Mean losses (K, M) of the draws of each group, from the losses (N, M) of all."""
    member = weights * (np.unique(group)[:, np.newaxis] == group)
    means: Floats = member / member.sum(axis=1, keepdims=True) @ losses
    return means


def _groups(losses: Floats, weights: Floats, number: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """The group (N,) of each draw by k-means, from draws far from each other (k-means++)."""
    chosen: list[int] = []
    shares = weights / weights.sum()
    for _ in range(number):
        chosen.append(int(rng.choice(weights.size, p=shares)))
        near = weights * losses[chosen].min(axis=0)
        shares = near / near.sum() if near.any() else weights / weights.sum()
    group = losses[chosen].argmin(axis=0)
    for _ in range(_STEPS):
        before, group = group, _means(losses, weights, group).argmin(axis=0)
        if np.array_equal(before, group):
            break
    return group


def _shows_valley(distances: Floats, weights: Floats) -> bool:
    """Whether a valley may lie between two groups, from distances (K, N) to them of draws that count so much."""
    group = distances.argmin(axis=0)
    for pair in combinations(np.unique(group).tolist(), 2):
        between = np.isin(group, pair)
        x, own, nearest = np.subtract(*distances[list(pair)])[between], weights[between], group[between]
        low, high = (float(np.average(x[nearest == k], weights=own[nearest == k])) for k in pair)
        x = np.clip(x / (high - low), -1.0, 1.0)  # the middles of the two are 1 apart
        if valley_evidence(x, own, 0.0, pull=0.0) <= _LENIENT:
            return True
    return False
