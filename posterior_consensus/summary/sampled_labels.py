"""Sentences of a summary on whether the partition depends on the labels sampled from allocation probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.evaluate.expectation import mean_loss
from posterior_consensus.results import display
from posterior_consensus.runtime import sizes
from posterior_consensus.runtime.clock import Clock
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.summary.record import SummaryRecord

_SEED = np.random.SeedSequence([34, 2])  # of labels that no seed of a user's gives
_SAME = 1e-9  # relative difference that rounding makes
_STEP = "labels sampled anew"


def look_at_other_labels(
    clock: Clock, draws: PartitionDraws, consensus: ConsensusPartition, **options: Any
) -> ConsensusPartition | None:
    """The best partition for other labels, if the search used sampled labels and time is left."""
    if not _may_depend(draws, consensus) or draws.n_items * draws.n_draws > sizes.LABELS_TO_SEARCH_AGAIN:
        return None
    asked = {name: number for name, number in vars(consensus.cluster_limits).items() if number is not None} | options
    others = draws.sample(random_seed=_SEED)
    return clock.unless_over(
        _STEP, consensus_partition, others, loss=consensus.loss, n_starts=3, starts=[consensus], **asked
    )


def _may_depend(draws: PartitionDraws, consensus: ConsensusPartition) -> bool:
    """Whether the partition was searched for by sampled labels; expected Binder losses take the probabilities."""
    searched = isinstance(consensus.info, SearchInfo)
    return draws.soft is not None and consensus.loss.as_binder() is None and searched


def of_other_labels(summary: SummaryRecord) -> list[str]:
    """By how much the best partition for other labels differs, if it does."""
    other, own = summary.resampled, summary.consensus.labels.values
    if other is None:
        return []
    moved = int(np.sum(numbered_like(own, other.labels.values) != other.labels.values))
    if moved == 0:
        return []
    both = np.stack([own, other.labels.values])
    here, there = mean_loss(summary.draws, both, summary.loss)
    change = there / here - 1
    size = f"{100 * abs(change):.2g}% {'larger' if change >= 0 else 'smaller'}" if abs(change) > _SAME else "the same"
    return [
        f"The partition depends on the labels sampled from the allocation probabilities: with labels sampled anew, "
        f"{display.counted(moved, 'item')} {'changes' if moved == 1 else 'change'} clusters. The expected loss of that "
        f"partition, under the labels used here, is {size}."
    ]


def other_labels_left_out(summary: SummaryRecord) -> list[str]:
    """Whether the search with other labels was skipped or ended early."""
    search = "The search with labels sampled anew from the allocation probabilities"
    if summary.resampled is not None:
        stopped = summary.resampled.info.stopped if isinstance(summary.resampled.info, SearchInfo) else ""
        return [f"{search} {display.ended(stopped, 'was')}."] if stopped else []
    if _STEP in summary.cut:
        return [f"{search} was not made, because no time was left."]
    if _may_depend(summary.draws, summary.consensus):
        return [f"{search} was not made, because there are more than {sizes.LABELS_TO_SEARCH_AGAIN:,} labels."]
    return []
