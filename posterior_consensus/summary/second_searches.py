"""Second searches of a summary, on halves of the draws and on labels sampled anew, and their sentences."""

from typing import Any

import numpy as np

from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.comparison import ExcessLoss, excess_loss
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import Clock
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.summary.record import SummaryRecord

_FEWEST = 100  # effective draws; with fewer, agreement of halves proves little
_TOO_MANY = f"there are more than {memory.LABELS_TO_SEARCH_AGAIN:,} labels"
_HALVES = "the searches on two halves of the draws"
_OTHERS = "the search with labels sampled anew from the allocation probabilities"
_SEED = np.random.SeedSequence([34, 2])  # labels differ from those of any user's seed
_STEP = "labels sampled anew"


def look_at_halves(
    clock: Clock,
    draws: PartitionDraws,
    consensus: ConsensusPartition,
    diagnosis: Diagnosis,
    metric: str | PartitionLoss,
    **options: Any,
) -> ExcessLoss | None:
    """Estimate the excess of the expected loss, if possible and time is left."""
    if _unknown_because(draws, consensus, diagnosis):
        return None
    return clock.within_limit("halves", excess_loss, draws, consensus, metric, **options)


def _unknown_because(draws: PartitionDraws, consensus: ConsensusPartition, diagnosis: Diagnosis) -> str:
    """Reason why the effect of more draws is unknown; empty if it can be estimated."""
    if diagnosis.status == "disagree":
        return "the chains do not agree"
    if diagnosis.status == "unknown" and diagnosis.n_chains > 1:
        return "convergence is unknown"
    of_loss = draws.samples.effective_draws if consensus.mcse == 0 else consensus.ess
    ess = float(np.fmin(of_loss, diagnosis.partition_ess))
    if not ess >= _FEWEST:
        return f"the effective sample size is {'unknown' if np.isnan(ess) else f'{ess:.3g}, below {_FEWEST}'}"
    return _TOO_MANY if draws.n_items * draws.n_draws > memory.LABELS_TO_SEARCH_AGAIN else ""


def halves_left_out(summary: SummaryRecord) -> list[str]:
    """Sentence on searches on two halves that were skipped or ended early."""
    if summary.excess is not None:
        return _ended(_HALVES, "were", summary.excess.stopped)
    why = _unknown_because(summary.draws, summary.consensus, summary.diagnosis)
    return _not_made(_HALVES, "were", "halves" in summary.cut, why == _TOO_MANY)


def _ended(search: str, be: str, stopped: str) -> list[str]:
    """Sentence on a search that ended early."""
    return [f"{display.capitalized(search)} {display.ended(stopped, be)}."] if stopped else []


def _not_made(search: str, be: str, was_late: bool, has_too_many: bool) -> list[str]:
    """Sentence on a possible search that was not made."""
    why = "no time was left" if was_late else _TOO_MANY
    return [f"{display.capitalized(search)} {be} not made, because {why}."] if was_late or has_too_many else []


def more_draws_in_short(summary: SummaryRecord) -> str:
    """Effect of more draws, for the head of the printed summary."""
    excess = summary.excess
    if excess is None:
        why = _unknown_because(summary.draws, summary.consensus, summary.diagnosis) or "no time was left"
        return f"effect unknown, because {why}"
    if excess.stopped:
        return f"effect unknown, because {_HALVES} {display.ended(excess.stopped, 'were')}"
    if excess.value == 0:
        return f"no effect seen: two halves of the draws have {_same(excess)}"
    return _lower(summary, excess)


def of_more_draws(summary: SummaryRecord) -> list[str]:
    """Effect of more draws; empty after searches that ended early, as these began at the partition."""
    excess = summary.excess
    if excess is None or excess.stopped:
        return []
    if excess.value == 0:
        return [f"No effect of more draws is seen: two halves of the draws have {_same(excess)}."]
    return [
        f"More draws {_lower(summary, excess)}. The best partitions of two halves of the draws differ by "
        f"{_apart(summary, excess)}. The expected loss on these draws is too low by about "
        f"{display.quantity(2 * excess.value, summary.consensus.loss.unit, 2)}, as the partition was chosen on them."
    ]


def more_draws_reported(summary: SummaryRecord) -> list[str]:
    """Sentence for the methods section if the best partitions of the halves differ in expected loss."""
    excess = summary.excess
    if excess is None or excess.stopped or excess.value == 0:
        return []
    return [
        f"By searches on two halves of the draws, whose best partitions differ by {_apart(summary, excess)}, the "
        f"expected loss of the partition exceeds the minimum under infinitely many draws by about "
        f"{_value(summary, excess)}."
    ]


def _apart(summary: SummaryRecord, excess: ExcessLoss) -> str:
    """Distance between the best partitions of the halves."""
    return display.quantity(excess.distance, summary.ball.loss.unit, 2)


def _lower(summary: SummaryRecord, excess: ExcessLoss) -> str:
    limit = display.quantity(excess.limit, summary.consensus.loss.unit, 2)
    value = _value(summary, excess)
    return f"would lower the expected loss by about {value}, in six of seven posteriors by at most {limit}"


def _same(excess: ExcessLoss) -> str:
    return "the same best partition" if excess.distance == 0 else "best partitions of the same expected loss"


def _value(summary: SummaryRecord, excess: ExcessLoss) -> str:
    share = excess.value / summary.consensus.expected_loss
    return f"{display.quantity(excess.value, summary.consensus.loss.unit, 2)} ({100 * share:.2g}%)"


def look_at_other_labels(
    clock: Clock, draws: PartitionDraws, consensus: ConsensusPartition, **options: Any
) -> ConsensusPartition | None:
    """Search with labels sampled anew, if the search used sampled labels and time is left."""
    if not _may_depend(draws, consensus) or draws.n_items * draws.n_draws > memory.LABELS_TO_SEARCH_AGAIN:
        return None
    limits = {name: number for name, number in vars(consensus.cluster_limits).items() if number is not None}
    search = {"loss": consensus.loss, "n_starts": 3, "starts": [consensus], **limits, **options}
    return clock.within_limit(_STEP, consensus_partition, draws.sample(random_seed=_SEED), **search)


def _may_depend(draws: PartitionDraws, consensus: ConsensusPartition) -> bool:
    """Whether the search used sampled labels; expected Binder losses use the probabilities."""
    searched = isinstance(consensus.info, SearchInfo)
    return draws.soft is not None and consensus.loss.as_binder() is None and searched


def of_other_labels(summary: SummaryRecord) -> list[str]:
    """Difference of the best partition for labels sampled anew, if there is one."""
    other, own = summary.resampled, summary.consensus.labels.values
    if other is None:
        return []
    moved = int(np.sum(numbered_like(own, other.labels.values) != other.labels.values))
    if moved == 0:
        return []
    both = np.stack([own, other.labels.values])
    here, there = mean_loss(summary.draws, both, summary.loss)
    change = there / here - 1
    size = f"{100 * abs(change):.2g}% {'larger' if change >= 0 else 'smaller'}" if abs(change) > SAME else "the same"
    return [
        f"The partition depends on the labels sampled from the allocation probabilities: with labels sampled anew, "
        f"{display.counted(moved, 'item')} {'changes' if moved == 1 else 'change'} clusters. The expected loss of that "
        f"partition, under the labels used here, is {size}."
    ]


def stopped(found: ConsensusPartition) -> str:
    """Reason for an early end of the search; empty if it was completed."""
    return found.info.stopped if isinstance(found.info, SearchInfo) else ""


def other_labels_left_out(summary: SummaryRecord) -> list[str]:
    """Sentence on a search with other labels that was skipped or ended early."""
    if summary.resampled is not None:
        return _ended(_OTHERS, "was", stopped(summary.resampled))
    return _not_made(_OTHERS, "was", _STEP in summary.cut, _may_depend(summary.draws, summary.consensus))
