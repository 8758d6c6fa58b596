"""The verdict in words: whether the chains agree, what to do, and how chains that disagree differ."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from posterior_consensus.diagnostics.burn_in import burn_in_in_words
from posterior_consensus.diagnostics.copies import Copies, without
from posterior_consensus.diagnostics.traces import RHAT_BAD, central_draw
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.evaluate.chain_gap import Gap, gap_is_real
from posterior_consensus.evaluate.expectation import losses_between
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.search.engine import search
from posterior_consensus.sources.log_densities import LogOfDraws

RHAT_WANTED = 1.01
ESS_PER_CHAIN = 100
_MOST_NAMED = 8  # chains whose mean log densities are listed


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    Attributes
    ----------
    draws : PartitionDraws
        What is judged.
    n_compared : int
        Number of items whose pairs are compared between chains.
    moves : bool
        Whether any two draws differ.
    still : list
        Names of the chains whose draws are all the same partition.
    rhats, ess : dict of str to float
        By the name of the summary; NaN where undefined.
    beyond_chance : list of str
        Names of the summaries that differ between chains by more than chance, and "partition".
    pair_rhat : float
        Worst of a sample of pairs that differ between chains by more than chance; NaN if none does.
    gap : Gap
    odd_chain : object or None
        Name of the one chain that differs from all others, which agree.
    copies : Copies
        Chains that hold the same draws.
    burn_in : dict of object to int
        By the name of the chain, the number of draws that are clearly a burn-in.
    """

    draws: PartitionDraws
    n_compared: int
    moves: bool
    still: list[object]
    rhats: dict[str, float]
    ess: dict[str, float]
    beyond_chance: list[str]
    pair_rhat: float
    gap: Gap
    odd_chain: object | None
    copies: Copies
    burn_in: dict[object, int]


def judge(evidence: Evidence, names: tuple[str, str]) -> tuple[str, str]:
    """Return the status, one of those of :class:`Diagnosis`, and the verdict; `names` are those of the gap's items."""
    status, verdict = _judged(evidence, names)
    burn_in = burn_in_in_words(evidence.burn_in)
    return status, f"{verdict} {burn_in}" if burn_in else verdict


def _judged(evidence: Evidence, names: tuple[str, str]) -> tuple[str, str]:
    draws = evidence.draws
    n_chains = len(draws.samples.chains)
    weights = _about_weights(draws)
    if draws.n_items == 1:
        return "agree", "There is a single item, hence a single partition; convergence is trivial."
    if draws.samples.shortest < FEWEST_DRAWS:
        return "unknown", "A chain has fewer than four draws, too few to assess convergence: run longer chains."
    if not evidence.moves:
        return "unknown", (
            "All draws are the same partition: either the posterior is that concentrated, or the sampler never moved. "
            "Start the chains from different partitions to find out."
        )
    found, copied = _disagreements(evidence, names), evidence.copies.in_words()
    if found:
        real = gap_is_real(evidence.gap, evidence.n_compared, draws.samples)
        start = "The chains disagree" if real else "The chains do not agree yet"
        better = "marginalized labels" if draws.soft is None else "tempering"
        return "disagree", (
            f"{start}: {' and '.join(found)}. Run longer chains, or a sampler that mixes better (such as one with "
            f"{better}), before reporting a partition.{weights}{' ' * bool(copied)}{copied}"
        )
    if copied:
        return "unknown", f"{copied}{weights}"
    if draws.samples.effective_draws < FEWEST_DRAWS * n_chains:
        return "unknown", (
            f"The weights leave too few effective draws: {draws.samples.about_weights}. All probabilities, "
            "balls and standard errors rest on these few. Sample from the posterior itself, or from "
            "a distribution nearer to it, before reporting a partition."
        )
    wanted = ESS_PER_CHAIN * n_chains
    least, ess = _extreme(evidence.ess, -1.0)
    times = f"about {wanted / ess:.1f} times as many draws" if ess < wanted else ""
    if n_chains == 1:
        short = f" This one is short, too: the {least} has an effective sample size of {ess:.0f}." if times else ""
        return "unknown", (
            "There is one chain, so convergence cannot be assessed. Run at least four from "
            f"different starts.{short}{weights}"
        )
    worst, rhat = _extreme(evidence.rhats, 1.0)
    if times or rhat > RHAT_WANTED:
        reasons = [f"the {least} has an effective sample size of {ess:.0f}, {wanted} are needed"] if times else []
        if rhat > RHAT_WANTED:
            reasons.append(f"the R-hat of the {worst} is {rhat:.3f}, above the limit {RHAT_WANTED}")
        return "short", (
            f"There is no sign that the chains disagree, but they are short: {' and '.join(reasons)}. "
            f"Run {times or 'longer chains'} before relying on small differences.{weights}"
        )
    return "agree", (
        f"The chains agree: R-hat is at most {max(rhat, 1.0):.3f}, the effective sample size at least {ess:.0f}, and "
        f"co-clustering probabilities differ by at most {evidence.gap.size:.2f} between chains"
        f"{about_sample(evidence.n_compared, draws.n_items)}.{weights}"
    )


def about_sample(n_compared: int, n_items: int) -> str:
    """Which pairs of items are meant, where those of all would be too many."""
    return "" if n_compared == n_items else f" (pairs of {n_compared:,} of the {n_items:,} items, chosen at random)"


def _about_weights(draws: PartitionDraws) -> str:
    if not draws.samples.is_weighted:
        return ""
    return (
        f" The weights ({draws.samples.about_weights}) count in effective sample sizes; R-hat and the differences "
        "between chains ignore them."
    )


def _disagreements(evidence: Evidence, names: tuple[str, str]) -> list[str]:
    found = []
    gap, odd = evidence.gap, evidence.odd_chain
    if gap_is_real(gap, evidence.n_compared, evidence.draws.samples):
        if odd is None:
            where = f"between chains {gap.chains[0]} and {gap.chains[1]}"
        else:
            other = gap.chains[gap.chains[0] == odd]
            where = f"chain {odd} differs from all others, which agree: between it and chain {other}"
        found.append(
            f"{where} the co-clustering probability of items {names[0]} and {names[1]} differs by {gap.size:.2f} "
            f"(MCSE {gap.mcse:.2g})"
        )
    worst, rhat = _extreme({name: evidence.rhats[name] for name in evidence.beyond_chance}, 1.0)
    if len(evidence.still) == len(evidence.draws.samples.chains):
        found.append("no chain ever moves, and each stays at a different partition")
    elif rhat == np.inf:
        found.append(f"the {worst} differs between chains and hardly varies within them (its R-hat is infinite)")
    elif rhat > RHAT_BAD:
        found.append(f"the R-hat of the {worst} is {rhat:.2f}, above the limit {RHAT_WANTED}")
    elif evidence.pair_rhat > RHAT_BAD and not found:
        found.append(f"the worst R-hat of the sampled pairs is {evidence.pair_rhat:.2f}")
    if found and 0 < len(evidence.still) < len(evidence.draws.samples.chains):
        found.append(f"chain {' and chain '.join(map(str, evidence.still))} never moves")
    return found


def _extreme(values: dict[str, float], sign: float) -> tuple[str, float]:
    """The largest value, or for sign -1 the smallest, and its name; NaN if there is none."""
    known = {name: value for name, value in values.items() if not np.isnan(value)}
    if not known:
        return "", np.nan
    name = max(known, key=lambda one: sign * known[one])
    return name, known[name]


def about_chains(
    draws: PartitionDraws, logs: LogOfDraws | None, odd: object | None, loss: PartitionLoss, seconds: float | None
) -> str:
    """Sentences on chains that disagree; `odd` is the chain that differs from all others, if any. They may be empty."""
    names = draws.samples.chain_names
    sentences = [] if logs is None else [_of_logs(logs, draws.samples.chains, names, odd)]
    if odd is not None:
        sentences.append(_of_partitions(draws, names, odd, loss, seconds))
    if logs is not None and logs.by_observation:
        sentences.append("diagnostics.stacking_weights weights the chains by how well they predict.")
    return " ".join(sentences)


def _of_logs(logs: LogOfDraws, chains: list[npt.NDArray[np.intp]], names: list[object], odd: object | None) -> str:
    means = dict(zip(names, (float(logs.values[rows].mean()) for rows in chains), strict=True))
    start = f"The mean {logs.name} is"
    if odd is not None:
        others = [mean for name, mean in means.items() if name != odd]
        return f"{start} {means[odd]:.6g} in chain {odd}, and {min(others):.6g} to {max(others):.6g} in the others."
    if len(names) > _MOST_NAMED:
        low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        return f"{start} between {means[low]:.6g} (chain {low}) and {means[high]:.6g} (chain {high})."
    return f"{start} {display.joined([f'{mean:.6g} in chain {name}' for name, mean in means.items()])}."


def _of_partitions(
    draws: PartitionDraws, names: list[object], odd: object, loss: PartitionLoss, seconds: float | None
) -> str:
    rows = draws.samples.chain == odd
    rest, own = (_best(draws.take(np.flatnonzero(some)), loss, seconds) for some in (~rows, rows))
    distance = float(losses_between(np.stack([rest, own]), loss)[0, 1])
    apart = f"at a distance of {display.quantity(distance, loss.unit, 3)}" if distance > 0 else "the same"
    k_rest, k_own = (display.counted(int(labels.max()) + 1, "cluster") for labels in (rest, own))
    return (
        f"Without chain {odd}, `{without(names, [odd])}`, the best partition found has {k_rest}; that of chain {odd} "
        f"alone has {k_own}, {apart}."
    )


def _best(draws: PartitionDraws, loss: PartitionLoss, seconds: float | None) -> Labels:
    """The best partition (n,) of a search from a central draw and one random order."""
    starts = [central_draw(draws.labels_only(), loss)]
    found = search(
        draws, loss, rng=np.random.default_rng(0), n_starts=1, n_perturbations=0, starts=starts, seconds=seconds
    )
    return draws.as_labels(found.labels)
