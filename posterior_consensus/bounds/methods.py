"""The bounding methods, and the losses that each of them takes."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from posterior_consensus.bounds.binder import BYTES_A_PAIR, binder_bound
from posterior_consensus.bounds.bound import Bound
from posterior_consensus.bounds.budget import Budget, WorkBudget
from posterior_consensus.bounds.matching import matching_bound
from posterior_consensus.bounds.sdp import sum_of_squares_bound
from posterior_consensus.bounds.vi import seconds_to_begin, vi_bound
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.pair_losses import within_variance
from posterior_consensus.losses.partition_losses import vi
from posterior_consensus.losses.record import Loss, PartitionLoss
from posterior_consensus.runtime import memory

_BYTES_A_PAIR = 160  # of matrices of items x items, with room for the triangles: 5,000 items in 4 GB
_SECONDS_A_PAIR = 2e-9  # a low estimate for one run of a search
_MATCHING_SHARE = 0.1


class Family(NamedTuple):
    """Losses with one bounding method: ``bound(draws, loss, incumbent, *, budget, progressbar) -> Bound``."""

    contains: Callable[[Loss], bool]
    bound: Callable[..., Bound]
    losses: str


def _vi_bound(
    draws: PartitionDraws, loss: PartitionLoss, incumbent: Labels, *, budget: Budget, progressbar: bool
) -> Bound:
    """Return the higher of two bounds: the bound for any metric, and VI's own, which takes most of the budget.

    VI's own is left out where the budget does not suffice for its first steps.
    """
    if seconds_to_begin(draws) > (1 - _MATCHING_SHARE) * budget.left:
        bound = matching_bound(draws, loss, incumbent, budget=budget, progressbar=progressbar)
        return replace(bound, left_out=too_many_pairs(draws.n_items))
    share = budget.part(_MATCHING_SHARE)
    by_matching = matching_bound(draws, loss, incumbent, budget=share, progressbar=progressbar)
    by_prices = vi_bound(draws, incumbent, budget=budget, progressbar=progressbar)
    return max(by_matching, by_prices, key=lambda bound: bound.value)


def too_many_pairs(n_items: int) -> str:
    """Say that a bound computed from pairs of items is left out, where the memory budget does not hold its matrices."""
    size = BYTES_A_PAIR * n_items**2
    if memory.fits(size):
        return ""
    return (
        "No bound of the minimum expected loss was computed, because its matrices over pairs of items would need "
        f"{memory.in_words(size)} of memory."
    )


BOUNDS: dict[str, Family] = {
    "binder": Family(lambda loss: loss.as_binder() is not None, binder_bound, "'binder' with any costs"),
    "vi": Family(lambda loss: loss == vi(), _vi_bound, "'vi'"),
    "within_variance": Family(lambda loss: loss == within_variance(), sum_of_squares_bound, "'within_variance'"),
    "metrics": Family(
        lambda loss: loss.metric, matching_bound, "losses that are metrics ('jaccard', 'nvi', 'id', 'nid')"
    ),
}
"""Families of losses by name, the best method first."""


def family_of(loss: Loss) -> Family | None:
    """Return the family of a loss, recognized by its data and not by its name."""
    return next((family for family in BOUNDS.values() if family.contains(loss)), None)


def quick_bound(draws: PairSource, loss: Loss, incumbent: Labels, n_starts: int) -> float | None:
    """Lower bound of a Binder loss for no more than the work of `n_starts` runs of a search; reproducible.

    None for other losses, and for more items than the memory budget allows: 5,000 by default.
    """
    record = loss.as_binder()
    if record is None or not memory.fits(_BYTES_A_PAIR * draws.n_items**2):
        return None
    seconds = _SECONDS_A_PAIR * n_starts * draws.n_items**2
    return binder_bound(draws, record, incumbent, budget=WorkBudget(seconds)).value
