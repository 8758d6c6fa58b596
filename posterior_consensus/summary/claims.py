"""What a summary claims, as records, before texts put it into words: for draws, runs, scored pairs and layers alike."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from posterior_consensus.answers.membership import ItemUncertainty
from posterior_consensus.answers.particles import Particles
from posterior_consensus.bounds.bound import relative_gap
from posterior_consensus.bounds.bound import status as status_of
from posterior_consensus.bounds.components import among_of
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.results import display
from posterior_consensus.results.words import Words
from posterior_consensus.summary.record import SummaryRecord, no_halves_because, why_skipped

PROVEN, ESTIMATED, NOT_ASSESSED, CONTRADICTED = "proven", "estimated", "not assessed", "contradicted"
_STATUSES = ("disagree", "unknown", "short", "agree", "runs")  # of chains, from the worst
_OF_CHAINS = {"agree": ESTIMATED, "short": ESTIMATED, "disagree": CONTRADICTED}


class Claim(NamedTuple):
    """What a summary claims on a topic.

    Attributes
    ----------
    status : {"proven", "estimated", "not assessed", "contradicted"}
        Whether it is proven; estimated from draws, or bounded; not assessed; or contradicted by the draws.
    number, error : float
        Its number with the standard error; a bound with its relative gap. NaN if there is none.
    limit : float
        Share of the draws below which the opposite would not have been seen, or the largest number that is likely. NaN
        if there is none.
    scope : str
        Of which draws it is said, as words that continue a sentence; or why it is not assessed.
    partitions : str
        Among which partitions, likewise; empty for all.
    advice : str
        A next step for the analyst.
    """

    status: str
    number: float = np.nan
    error: float = np.nan
    limit: float = np.nan
    scope: str = ""
    partitions: str = ""
    advice: str = ""


def optimality(best: ConsensusPartition, bound: float | None, on: str, no_bound: str) -> Claim:
    """That no partition has a smaller loss `on` some draws; a lower bound of the minimum, and the gap to it."""
    if bound is None:
        return Claim(NOT_ASSESSED, scope=no_bound)
    gap = relative_gap(best.expected_loss, bound)
    status = PROVEN if status_of(gap) == "optimal" else ESTIMATED
    return Claim(status, bound, gap, scope=on, partitions=among_of(best.info))


def groups(summary: SummaryRecord) -> Claim:
    """That the draws form one group; the number of groups found, and the share from which a second would be."""
    found, words, samples = summary.modes, summary.words, summary.draws.samples
    why = ""
    if found is None:
        why = "not searched for"
    elif not samples.has_errors:
        why = f"too few {words.draws}{f' in a {words.chain}' if samples.series else ''} to find {words.group}s"
    elif found.n_particles > 1:
        return Claim(CONTRADICTED, found.n_particles)
    elif found.stopped and found.status == "unknown":
        why = f"unknown: the search {display.ended(found.stopped, 'was')}"
    elif summary.diagnosis.status == "disagree":
        why = f"one or several: undecided, because the {words.chains} do not agree"
    elif found.status == "unknown":
        why = f"too few effective {words.draws} to distinguish one {words.group} from several"
    if found is None or why:
        return Claim(NOT_ASSESSED, scope=why)
    return Claim(ESTIMATED, 1, limit=found.least_share, scope=searched(found, summary.draws.n_draws))


def searched(found: Particles, total: int) -> str:
    """Number of draws in the search for groups, of how many."""
    number, draws = found.n_draws_searched, found.words.draws
    return f"all {total:,} {draws}" if number == total else f"{number:,} of {total:,} {draws}"


def chains(*diagnoses: Diagnosis) -> Claim:
    """That chains agree; their largest difference, and the share below which a mode that one misses is not seen."""
    largest = max((one.largest_difference for one in diagnoses), key=lambda one: np.nan_to_num(one.size, nan=-1.0))
    missed = float(np.fmax.reduce([one.could_miss for one in diagnoses]))
    return Claim(_OF_CHAINS.get(worst_status(diagnoses), NOT_ASSESSED), largest.size, largest.mcse, missed)


def worst_status(diagnoses: Collection[Diagnosis]) -> str:
    """The worst status of several diagnoses."""
    return min((one.status for one in diagnoses), key=_STATUSES.index)


def misplaced(items: ItemUncertainty) -> Claim:
    """How many items are outside the cluster that is matched with theirs."""
    if items.membership is None:
        return Claim(NOT_ASSESSED, scope="too many clusters")
    return Claim(ESTIMATED, items.misplaced, items.misplaced_mcse)


def more_draws(summary: SummaryRecord) -> Claim:
    """By how much more draws would lower the expected loss."""
    excess, words = summary.excess, summary.words
    if excess is None:
        why = no_halves_because(summary.draws, summary.partition, summary.diagnosis) or skipped(summary)
        return Claim(NOT_ASSESSED, scope=why)
    if excess.stopped:
        return Claim(NOT_ASSESSED, scope=f"{on_halves(words)} {display.ended(excess.stopped, 'were')}")
    return Claim(ESTIMATED, excess.value, limit=excess.limit)


def on_halves(words: Words) -> str:
    """Name of the searches on halves of the draws."""
    return f"the searches on two halves of the {words.draws}"


def skipped(summary: SummaryRecord) -> str:
    """Why steps were left out."""
    return why_skipped(summary.partition, summary.excess, summary.resampled, summary.alternative, summary.modes)
