"""What a summary says of further answers: partitions beside the consensus that a part of the posterior is nearer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posterior_consensus import display
from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.views.differences import differences

if TYPE_CHECKING:
    from posterior_consensus.summary.summary import Summary

_MOST_CHANGES = 3


def answers_in_short(summary: Summary) -> str:
    """How many answers there are, with their weights."""
    answers = summary.answers
    if answers.n_particles == 1:
        return "no second one was found"
    weights = ", ".join(f"{weight:.0%}" for weight in answers.weights.values)
    chains = "; they belong to chains" if answers.status == "chains in different modes" else ""
    return f"{answers.n_particles}, of {weights} of the draws{chains}"


def further_answers(summary: Summary) -> list[str]:
    """Which answers there are, how they differ from the consensus, and what their weights are worth."""
    answers = summary.answers
    if answers.n_particles == 1:
        return []
    own = summary.consensus.labels.values
    names = cluster_names(summary.consensus, own)
    said = []
    for k in range(answers.n_particles):
        changes = differences(own, answers.partitions.values[k], names)
        error = answers.weights_mcse.values[k]
        spread = "" if np.isnan(error) else f", standard error {error:.2g}"
        weight = f"Answer {k + 1} (weight {answers.weights.values[k]:.2g}{spread})"
        if not changes:
            said.append(f"{weight} is the clustering above.")
            continue
        more = len(changes) - _MOST_CHANGES
        listed = [*changes[:_MOST_CHANGES], *([f"{display.counted(more, 'further change')}"] if more > 0 else [])]
        said.append(f"{weight}: {'; '.join(listed)}.")
    return [answers.verdict, *said]


def answers_reported(summary: Summary) -> list[str]:
    """The sentence for a section on methods, where there are several answers."""
    answers = summary.answers
    if answers.n_particles == 1:
        return []
    weights = ", ".join(f"{weight:.2g}" for weight in answers.weights.values)
    unit = answers.loss.unit
    return [
        f"The posterior has more than one mode: it was also represented by {answers.n_particles} partitions, nearest "
        f"to it in Wasserstein distance [balocchi2025], of weights {weights} (largest Monte Carlo standard error "
        f"{np.max(answers.weights_mcse.values):.2g}), at a mean distance of "
        f"{display.quantity(answers.distance, unit, 3)} ({answers.loss.name}) where one partition has "
        f"{display.quantity(float(answers.path['distance'][0]), unit, 3)}."
    ]
