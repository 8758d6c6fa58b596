"""Groups of draws in a summary: a search with bounded work, on some draws and items, and its sentences."""

from dataclasses import replace
from typing import Any

import numpy as np

from posterior_consensus.answers.alignment import differences
from posterior_consensus.answers.particles import Effort, Particles, at_least, find_particles
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.summary.record import SummaryRecord

_DRAWS_LOOKED_AT = 500
_MOST_ANSWERS = 3
_EFFORT = Effort(most_labels=150_000, most_items=300, most_work=3e8, only_if_likely=True)
_MOST_CHANGES = 3


def look_for_answers(
    draws: PartitionDraws, consensus: ConsensusPartition, metric: str | PartitionLoss, **options: Any
) -> Particles:
    """Search for a few groups on some draws and items; a single group has the consensus as its partition.

    Clusters are numbered like the consensus.
    """
    one = draws.as_labels(consensus) if as_loss(metric) == consensus.loss else None
    search: dict[str, Any] = {"max_particles": _MOST_ANSWERS, "n_starts": 1, "one": one, "effort": _EFFORT}
    return find_particles(some_draws(draws), "auto", metric, reference=consensus, **search, **options)


def some_draws(draws: PartitionDraws) -> PartitionDraws:
    """Select draws evenly spaced in each chain, or at even quantiles of the weights, with multiplicity as weight."""
    if draws.n_draws > _DRAWS_LOOKED_AT and draws.samples.is_weighted:
        shares = (np.arange(_DRAWS_LOOKED_AT) + 0.5) / _DRAWS_LOOKED_AT
        rows, times = np.unique(draws.samples.at_quantiles(shares), return_counts=True)
        some = draws.take(rows)
        return replace(some, samples=some.samples.weighted(times.astype(np.float64)))
    # Every chain keeps at least FEWEST_DRAWS draws, if it has them.
    step = min(-(-draws.n_draws // _DRAWS_LOOKED_AT), max(1, draws.samples.shortest // FEWEST_DRAWS))
    return draws.isel(draw=slice(None, None, step))


def answers_in_short(summary: SummaryRecord) -> str:
    """Number of groups of draws, with their weights."""
    answers = summary.answers
    if answers is None:
        return "not searched for"
    if _too_few(summary):
        return "too few draws in a chain to find groups"
    if answers.n_particles == 1 and summary.diagnosis.status == "disagree":
        return "one or several: undecided, because the chains do not agree"
    if answers.status == "unknown":
        return "too few effective draws to distinguish one group from several"
    if answers.n_particles == 1:
        n_draws = answers.assignment.size
        few = "" if n_draws == summary.draws.n_draws else f" (searched on {n_draws:,} of the draws)"
        return f"no second group of draws found; none below {at_least(answers.least_share)} can be{few}"
    weights = display.joined([display.percent(weight) for weight in answers.weights.values])
    chains = "; the chains do not mix between them" if answers.status == "chains in different groups" else ""
    return f"{answers.n_particles}, with {weights} of {_draws(summary)}{chains}"


def rough_because(ess: float) -> str:
    """Reason for a rough Monte Carlo standard error, if it is rough."""
    return f", rough because of an effective sample size of {ess:.3g}" if display.is_rough(ess) else ""


def _too_few(summary: SummaryRecord) -> bool:
    return summary.draws.samples.shortest < FEWEST_DRAWS


def further_answers(summary: SummaryRecord) -> list[str]:
    """The groups, their weights with errors, and how their partitions differ from the consensus."""
    answers = summary.answers
    if answers is None:
        return []
    if answers.n_particles == 1:
        return [answers.verdict] if answers.status == "unknown" and not _too_few(summary) else []
    own = summary.consensus.labels.values
    names = cluster_names(summary.consensus, own)
    sentences = [answers.verdict]
    for k, weight in enumerate(answers.weights.values):
        answer = f"the partition of the {display.ordinal(k)} group ({display.percent(weight)} of {_draws(summary)})"
        changes = differences(own, answers.partitions.values[k], names)
        if changes:
            shown, more = changes[:_MOST_CHANGES], len(changes) - _MOST_CHANGES
            if more > 0:
                shown.append(f"there {'is' if more == 1 else 'are'} {display.counted(more, 'further change')}")
            sentences.append(f"In {answer}, {'; '.join(shown)}.")
        else:
            sentences.append(f"{display.capitalized(answer)} is the partition above.")
    return sentences


def _draws(summary: SummaryRecord) -> str:
    """Whole of which shares are given."""
    return "the weight" if summary.draws.samples.is_weighted else "the draws"


def answers_reported(summary: SummaryRecord) -> list[str]:
    """Sentence for the methods section, if groups were searched for and the chains mix between them.

    A single group is not reported if the chains disagree.
    """
    answers = summary.answers
    if answers is None or answers.status in ("unknown", "chains in different groups"):
        return []
    if answers.n_particles == 1:
        if summary.diagnosis.status == "disagree":
            return []
        least = at_least(answers.least_share)
        search = f"A search for groups of draws, on {answers.assignment.size:,} of them"
        return [f"{search}, found no second group; none below {least} of the draws can be found."]
    weights = ", ".join(f"{weight:.2g}" for weight in answers.weights.values)
    unit = answers.loss.unit
    n_draws = answers.assignment.size
    of_one = f", compared with {display.quantity(float(answers.path['distance'][0]), unit, 3)} for one partition"
    some = "The draws" if n_draws == summary.draws.n_draws else f"In a search on {n_draws} of them, the draws"
    rough = rough_because(float(answers.weights_ess.min()))
    return [
        f"{some} form {answers.n_particles} groups with few draws between them: the posterior was also represented by "
        f"one partition for each, nearest to it in Wasserstein distance [balocchi2025], of weights {weights} (Monte "
        "Carlo standard error at "
        f"most {np.max(answers.weights_mcse.values):.2g}{rough}), at a mean distance of "
        f"{display.quantity(answers.distance, unit, 3)} ({answers.loss.name})"
        f"{of_one if answers.n_searched == summary.draws.n_items else ''}."
    ]
