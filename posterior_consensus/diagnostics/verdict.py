"""From numbers to one sentence: do the chains agree, and what is to be done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from posterior_consensus.diagnostics.agreement import Gap

RHAT_WANTED, RHAT_BAD = 1.01, 1.05
ESS_PER_CHAIN = 100
GAP_BAD = 0.1


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    Attributes
    ----------
    n_chains, shortest, n_items : int
        Number of chains, draws of the shortest, and items.
    moves : bool
        Whether any two draws differ.
    rhats, ess : dict of str to float
        By what they are of; NaN where there is none.
    pair_rhat : float
        Worst of a sample of pairs.
    gap : Gap
    """

    n_chains: int
    shortest: int
    n_items: int
    moves: bool
    rhats: dict[str, float]
    ess: dict[str, float]
    pair_rhat: float
    gap: Gap


def gap_is_real(gap: Gap, n_items: int, n_chains: int) -> bool:
    """Whether the gap is above 0.1 and above what the largest of so many gaps is by chance, one time in a hundred."""
    n_gaps = n_items * (n_items - 1) / 2 * n_chains * (n_chains - 1) / 2
    return gap.size > GAP_BAD and gap.size > -ndtri(0.005 / max(n_gaps, 1)) * gap.mcse


def judge(evidence: Evidence, names: tuple[str, str]) -> tuple[str, str]:
    """Return the status, one of those of :class:`Diagnosis`, and the sentence; `names` are those of the gap's items."""
    if evidence.n_items == 1:
        return "agree", "There is one item, hence one partition, and nothing to check."
    if evidence.shortest < 4:
        return "unknown", "A chain has fewer than four draws, which tell nothing: run longer chains."
    if not evidence.moves:
        return "unknown", (
            "All draws are the same partition: either the posterior is that sure, or the sampler never moved. "
            "Start the chains from different partitions to know."
        )
    found = _disagreements(evidence, names)
    if found:
        real = gap_is_real(evidence.gap, evidence.n_items, evidence.n_chains)
        start = "The chains disagree" if real else "The chains do not agree yet"
        return "disagree", (
            f"{start}: {' and '.join(found)}. Run longer chains, or a sampler that moves better (such as one with the "
            "labels summed out), before reporting a partition."
        )
    wanted = ESS_PER_CHAIN * evidence.n_chains
    least, ess = _extreme(evidence.ess, -1.0)
    times = f"about {wanted / ess:.1f} times as many draws" if ess < wanted else ""
    if evidence.n_chains == 1:
        short = f" This one is short, too: the {least} has an effective sample size of {ess:.0f}." if times else ""
        return "unknown", (
            "One chain: nothing says whether another one would find the same partitions. Run at least four from "
            f"different starts.{short}"
        )
    worst, rhat = _extreme(evidence.rhats, 1.0)
    if times or rhat > RHAT_WANTED:
        reasons = [f"the {least} has an effective sample size of {ess:.0f}, {wanted} are wanted"] if times else []
        if rhat > RHAT_WANTED:
            reasons.append(f"the R-hat of the {worst} is {rhat:.3f}, at most {RHAT_WANTED} is wanted")
        return "short", (
            f"The chains agree as far as they go, but they are short: {' and '.join(reasons)}. "
            f"Run {times or 'longer chains'} before relying on small differences."
        )
    return "agree", (
        f"The chains agree: R-hat is at most {max(rhat, 1.0):.3f}, the effective sample size at least {ess:.0f}, and "
        f"no pair's probability of being together differs by more than {evidence.gap.size:.2f} between chains."
    )


def _disagreements(evidence: Evidence, names: tuple[str, str]) -> list[str]:
    found = []
    gap = evidence.gap
    if gap_is_real(gap, evidence.n_items, evidence.n_chains):
        found.append(
            f"between chains {gap.chains[0]} and {gap.chains[1]} the probability that items {names[0]} and {names[1]} "
            f"are together differs by {gap.size:.2f} (MCSE {gap.mcse:.2g})"
        )
    worst, rhat = _extreme(evidence.rhats, 1.0)
    if rhat > RHAT_BAD:
        found.append(f"the R-hat of the {worst} is {rhat:.2f}, at most {RHAT_WANTED} is wanted")
    elif evidence.pair_rhat > RHAT_BAD and not found:
        found.append(f"the worst R-hat of the sampled pairs is {evidence.pair_rhat:.2f}")
    return found


def _extreme(values: dict[str, float], sign: float) -> tuple[str, float]:
    """The largest value, or for sign -1 the smallest, and its name; NaN where there is none."""
    known = {name: value for name, value in values.items() if not np.isnan(value)}
    if not known:
        return "", np.nan
    name = max(known, key=lambda one: sign * known[one])
    return name, known[name]
