"""A lower bound for every loss that is a metric: draws matched with draws far from them."""

from dataclasses import dataclass

import numpy as np

from posterior_consensus.bounds.bound import Bound, Budget, OutOfBudget
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import labels_for, loss_matrix
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.switching import assignment
from posterior_consensus.losses.record import NoiseLoss, PartitionLoss
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

_MOST_AT_ONCE = 1_000  # draws in a block
_SECONDS_A_LABEL = 2.5e-9  # to count one item in a contingency table
_SECONDS_A_CUBE = 8e-10  # to match draws, times their number to the third power


@dataclass(frozen=True, kw_only=True)
class MatchingInfo(Info):
    """Record of the bound for metrics: how many draws were matched, and how many at a time."""

    n_matched_draws: int
    n_at_once: int


def matching_bound(
    draws: PartitionDraws,
    loss: PartitionLoss | NoiseLoss,
    incumbent: Labels,
    *,
    budget: Budget,
    progressbar: bool = True,
) -> Bound:
    """Bound the minimum expected loss of a metric from below; the incumbent is not used.

    A larger budget matches more draws at a time. Blocks that it does not reach count as 0. `info` has the number of
    draws matched, and how many at a time.

    Notes
    -----
    By the triangle inequality L(S, z_t) + L(S, z_u) >= L(z_t, z_u) for any partition S. Let pi be a permutation of N
    draws of equal weight: summing over t with u = pi(t) gives

        (1 / N) sum_t L(S, z_t) >= (1 / 2N) sum_t L(z_t, z_pi(t)),

    and the best permutation is an assignment problem. It is solved in blocks, as the inequality holds
    for each of them. Draws of unequal weights are matched with all of their block in proportion to the weights.
    """
    words = draws.samples.words
    at_once = _block_size(budget.left / draws.n_draws, draws.n_items)
    n_blocks = -(-draws.n_draws // at_once)
    value, n_matched = 0.0, 0
    for block in track(range(n_blocks), f"Matching {words.draws}", progressbar=progressbar):
        rows = np.arange(block, draws.n_draws, n_blocks)  # neighbours in a chain are alike: they go to different blocks
        try:
            budget.spend(_SECONDS_A_LABEL * rows.size**2 * draws.n_items + _SECONDS_A_CUBE * rows.size**3)
        except OutOfBudget:
            break
        value += _matched(draws, loss, rows)
        n_matched += rows.size
    info = MatchingInfo(n_matched_draws=n_matched, n_at_once=at_once)
    return Bound(value * (1 - ROUNDING), f"matching of {words.draws}", None, info)


def _block_size(seconds_a_draw: float, n_items: int) -> int:
    """Number of draws to match at a time: the positive root of the equation for the time per draw."""
    half = _SECONDS_A_LABEL * n_items / (2 * _SECONDS_A_CUBE)
    root = np.sqrt(half**2 + seconds_a_draw / _SECONDS_A_CUBE) - half
    return int(np.clip(root, 2, _MOST_AT_ONCE))


def _matched(draws: PartitionDraws, loss: PartitionLoss | NoiseLoss, rows: np.ndarray) -> float:
    """What the draws of a block add to the bound."""
    weights = draws.weights[rows]
    some = draws.take(rows) if loss.has_noise else PartitionDraws.of(draws.backend.of_draws(rows))  # read once
    losses = loss_matrix(labels_for(some, loss), some, loss)
    if draws.samples.is_weighted:
        total = weights.sum()
        return float(weights @ losses @ weights) / (2 * total) if total > 0 else 0.0
    one, other = assignment(losses, maximize=True)
    return float(losses[one, other].sum()) / (2 * draws.n_draws)
