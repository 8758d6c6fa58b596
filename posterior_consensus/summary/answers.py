"""What a summary says of further answers: partitions beside the consensus that a part of the posterior is nearer to."""

from __future__ import annotations

import numpy as np

from posterior_consensus.answers.differences import differences
from posterior_consensus.diagnostics.verdict import FEWEST_DRAWS
from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.results import display
from posterior_consensus.summary.record import SummaryRecord

_MOST_CHANGES = 3


def answers_in_short(summary: SummaryRecord) -> str:
    """How many answers there are, with their weights."""
    answers = summary.answers
    if answers is None:
        return "not looked for"
    if _too_few(summary):
        return "a chain has too few draws to tell"
    if answers.status == "unknown":
        return "too few effective draws to tell one from several"
    if answers.n_particles == 1:
        if summary.diagnosis.status == "disagree":
            return "one or several: the chains disagree, so that this cannot be told"
        n_draws = answers.assignment.size
        few = "" if n_draws == summary.draws.n_draws else f", on {n_draws:,} of the draws"
        return f"no second mode found{few}"
    *weights, last = (f"{weight:.0%}" for weight in answers.weights.values)
    chains = "; they belong to chains" if answers.status == "chains in different modes" else ""
    return f"{answers.n_particles}, of {', '.join(weights)} and {last} of {_draws(summary)}{chains}"


def _too_few(summary: SummaryRecord) -> bool:
    return min(rows.size for rows in summary.draws.samples.chains) < FEWEST_DRAWS


def further_answers(summary: SummaryRecord) -> list[str]:
    """Which answers there are, what their weights are worth, and how they differ from the consensus."""
    answers = summary.answers
    if answers is None:
        return []
    if answers.n_particles == 1:
        return [answers.verdict] if answers.status == "unknown" and not _too_few(summary) else []
    own = summary.consensus.labels.values
    names = cluster_names(summary.consensus, own)
    said = [answers.verdict]
    for k, weight in enumerate(answers.weights.values):
        answer = f"the {display.ordinal(k)} answer ({weight:.0%} of {_draws(summary)})"
        changes = differences(own, answers.partitions.values[k], names)
        if changes:
            more = len(changes) - _MOST_CHANGES
            rest = (
                [f"there {'is' if more == 1 else 'are'} {display.counted(more, 'further change')}"] if more > 0 else []
            )
            said.append(f"In {answer}, {'; '.join([*changes[:_MOST_CHANGES], *rest])}.")
        else:
            said.append(f"{answer[0].upper()}{answer[1:]} is the clustering above.")
    return said


def _draws(summary: SummaryRecord) -> str:
    """What shares are shares of."""
    return "the weight" if summary.draws.samples.is_weighted else "the draws"


def answers_reported(summary: SummaryRecord) -> list[str]:
    """The sentence for a section on methods, where every chain visits several answers."""
    answers = summary.answers
    if answers is None or answers.status != "several answers":
        return []
    weights = ", ".join(f"{weight:.2g}" for weight in answers.weights.values)
    unit = answers.loss.unit
    n_draws = answers.assignment.size
    of_one = f" where one partition has {display.quantity(float(answers.path['distance'][0]), unit, 3)}"
    few = "" if n_draws == summary.draws.n_draws else f", over {n_draws} of the draws,"
    ess = float(answers.weights_ess.min())
    rough = f", rough because of an effective sample size of {ess:.3g}" if display.is_rough(ess) else ""
    return [
        f"The posterior has more than one mode: it was also represented{few} by {answers.n_particles} partitions, "
        f"nearest to it in Wasserstein distance [balocchi2025], of weights {weights} (Monte Carlo standard error at "
        f"most {np.max(answers.weights_mcse.values):.2g}{rough}), at a mean distance of "
        f"{display.quantity(answers.distance, unit, 3)} ({answers.loss.name})"
        f"{of_one if answers.n_searched == summary.draws.n_items else ''}."
    ]
