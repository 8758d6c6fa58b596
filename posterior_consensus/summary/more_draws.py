"""Sentences of a summary on the effect of more draws, and on why it is unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.diagnosis import Diagnosis
from posterior_consensus.diagnostics.excess import ExcessLoss, excess_loss
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.runtime import sizes
from posterior_consensus.runtime.clock import Clock
from posterior_consensus.summary.record import SummaryRecord

_FEWEST = 100  # effective draws, below which halves that agree prove little
_TOO_MANY = f"there are more than {sizes.LABELS_TO_SEARCH_AGAIN:,} labels"
_SEARCHES = "the searches on two halves of the draws"
_MATTERS = 0.005  # share of the expected loss


def look_at_halves(
    clock: Clock,
    draws: PartitionDraws,
    consensus: ConsensusPartition,
    diagnosis: Diagnosis,
    metric: str | PartitionLoss,
    **options: Any,
) -> ExcessLoss | None:
    """The excess of the expected loss, if it can be estimated and time is left."""
    if _unknown_because(draws, consensus, diagnosis):
        return None
    return clock.unless_over("halves", excess_loss, draws, consensus, metric, **options)


def _unknown_because(draws: PartitionDraws, consensus: ConsensusPartition, diagnosis: Diagnosis) -> str:
    """Why the effect of more draws is unknown; empty if it can be estimated."""
    if diagnosis.status == "disagree":
        return "the chains disagree"
    if diagnosis.status == "unknown" and diagnosis.n_chains > 1:
        return "convergence is unknown"
    of_loss = draws.samples.effective_draws if consensus.mcse == 0 else consensus.ess
    ess = float(np.fmin(of_loss, diagnosis.partition_ess))
    if not ess >= _FEWEST:
        return f"the effective sample size is {'unknown' if np.isnan(ess) else f'{ess:.3g}, below {_FEWEST}'}"
    return _TOO_MANY if draws.n_items * draws.n_draws > sizes.LABELS_TO_SEARCH_AGAIN else ""


def halves_left_out(summary: SummaryRecord) -> list[str]:
    """Whether the searches on two halves were skipped or ended early."""
    searches = _SEARCHES.capitalize()
    if summary.excess is not None:
        return [f"{searches} {display.ended(summary.excess.stopped, 'were')}."] if summary.excess.stopped else []
    if "halves" in summary.cut:
        return [f"{searches} were not made, because no time was left."]
    why = _unknown_because(summary.draws, summary.consensus, summary.diagnosis)
    return [f"{searches} were not made, because {why}."] if why == _TOO_MANY else []


def more_draws_in_short(summary: SummaryRecord) -> str:
    """What more draws would change, for the head of the printed summary."""
    excess = summary.excess
    if excess is None:
        why = _unknown_because(summary.draws, summary.consensus, summary.diagnosis) or "no time was left"
        return f"effect unknown, because {why}"
    if excess.stopped:
        return f"effect unknown, because {_SEARCHES} {display.ended(excess.stopped, 'were')}"
    if excess.value == 0:
        return f"no effect seen: two halves of the draws have {_same(excess)}"
    return _lower(summary, excess)


def of_more_draws(summary: SummaryRecord) -> list[str]:
    """What more draws would change; nothing after searches that ended early, which began at the partition."""
    excess = summary.excess
    if excess is None or excess.stopped:
        return []
    if excess.value == 0:
        return [f"No effect of more draws is seen: two halves of the draws have {_same(excess)}."]
    apart = display.quantity(excess.distance, summary.ball.loss.unit, 2)
    return [f"More draws {_lower(summary, excess)}. The best partitions of two halves of the draws differ by {apart}."]


def more_draws_reported(summary: SummaryRecord) -> list[str]:
    """The sentence for a section on methods, if more draws would matter."""
    if summary.excess is None or not _matters(summary):
        return []
    return [
        "By searches on two halves of the draws, the expected loss of the partition exceeds the minimum under "
        f"infinitely many draws by about {_value(summary, summary.excess)}."
    ]


def _matters(summary: SummaryRecord) -> bool:
    excess = summary.excess
    return excess is not None and not excess.stopped and excess.value > _MATTERS * summary.consensus.expected_loss


def _lower(summary: SummaryRecord, excess: ExcessLoss) -> str:
    limit = display.quantity(excess.limit, summary.consensus.loss.unit, 2)
    value = _value(summary, excess)
    return f"would lower the expected loss by about {value}, in nine of ten posteriors by at most {limit}"


def _same(excess: ExcessLoss) -> str:
    return "the same best partition" if excess.distance == 0 else "best partitions of the same expected loss"


def _value(summary: SummaryRecord, excess: ExcessLoss) -> str:
    share = excess.value / summary.consensus.expected_loss
    return f"{display.quantity(excess.value, summary.consensus.loss.unit, 2)} ({100 * share:.2g}%)"
