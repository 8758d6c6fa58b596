"""The verdict: whether the chains agree, the next step, and how disagreeing chains differ."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from posterior_consensus.diagnostics.copies import Copies, without
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.diagnostics.sequence import burn_in_in_words
from posterior_consensus.diagnostics.traces import central_draw
from posterior_consensus.ensemble.chains import difference_is_real
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import losses_between
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.r_hat import RHAT_BAD
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, n_batches
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.results import display
from posterior_consensus.results.sentences import Sentence, advice
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.engine import search
from posterior_consensus.sources.parameters import LogOfDraws

RHAT_WANTED = 1.01
ESS_PER_CHAIN = 100
_ESS_TO_AGREE = 250  # of each chain, from which most chains of one posterior agree
_ESS_OF_BATCH = 3.5  # with less, errors are too small, and chains of one posterior differ too often
_TOO_SMALL = 2.0  # times the errors then
_MORE = 1.2  # times as many draws, the fewest that are advised as a number
_MOST_NAMED = 8  # chains whose mean log densities, or names, are listed
_MANY_CHAINS = 16  # more, with fewer draws each, may be draws whose axis was taken for that of chains
_SEVERAL_IN_ONE = advice(
    "If the draws are of several chains, tell them apart: by a column `chain`, an array of chains x draws x items or "
    "a list of tables."
)

Judgement = tuple[str, list[Sentence]]  # status and verdict


@dataclass(frozen=True)
class Evidence:
    """Evidence for a verdict, besides the diagnosis."""

    draws: PartitionDraws  # the draws judged
    moves: bool  # whether any two draws differ
    still: list[object]  # names of the chains whose draws are all the same partition
    beyond_chance: Flags  # (n_summaries,): whether each summary differs between chains by more than chance
    pair_rhat: float  # worst R-hat of sampled pairs that differ between chains by more than chance; NaN if none does
    # Returns the clause on draws that some chains hardly ever visit and the others often; possibly empty. It is called
    # only if there is no other sign that chains disagree.
    unvisited: Callable[[], str]
    # effective sample size for each chain, of the chains by themselves: that of the partition, or of the pair with the
    # largest between-chain difference if it is smaller
    own_ess: float
    copies: Copies  # chains that contain the same draws
    burn_in: dict[object, int]  # number of draws in each chain's clear burn-in, by name of the chain


def judge(diagnosis: Diagnosis, evidence: Evidence) -> Judgement:
    """Return the status of a diagnosis, and the sentences of its verdict.

    If chains agree, or are short, the first two sentences are the evidence, and the limit or the advice.
    """
    status, said = (
        _without_comparison(evidence)
        or _of_disagreement(diagnosis, evidence)
        or _of_few_draws(diagnosis, evidence)
        or _of_agreement(diagnosis, evidence)
    )
    return status, [*said, *burn_in_in_words(evidence.burn_in), *_of_many_chains(evidence.draws)]


def _of_many_chains(draws: PartitionDraws) -> Iterator[Sentence]:
    """Sentence on far more chains than draws in each; possibly none."""
    n_chains, n_draws = len(draws.samples.chains), draws.n_draws // len(draws.samples.chains)
    if n_chains > max(_MANY_CHAINS, n_draws):
        yield Sentence(
            f"The data are read as {n_chains:,} chains of {display.counted(n_draws, 'draw')}: if they are draws x "
            "chains x items, swap the first two axes."
        )


def _without_comparison(evidence: Evidence) -> Judgement | None:
    """Status and sentences of the verdict if there is nothing to compare."""
    if evidence.draws.n_items == 1:
        return "agree", [Sentence("There is a single item, hence a single partition; convergence is trivial.")]
    if evidence.draws.n_draws == 1:
        cannot = "neither the uncertainty of the posterior nor convergence can be assessed"
        single = Sentence(f"a single draw, whose partition this is: {cannot}.", "There is")
        return "unknown", [single, advice("Run chains.")]
    if not evidence.draws.samples.has_errors:
        few = Sentence("A chain has fewer than four draws, too few to assess convergence.")
        return "unknown", [few, advice("Run longer chains.")]
    if evidence.moves:
        return None
    same = "All draws are the same partition: either the posterior is that concentrated, or the sampler never moved."
    return "unknown", [Sentence(same), advice("Start the chains from different partitions to find out.")]


def _of_disagreement(diagnosis: Diagnosis, evidence: Evidence) -> Judgement | None:
    """Status and sentences of the verdict if chains disagree."""
    signs = []
    draws, difference, odd = evidence.draws, diagnosis.largest_difference, diagnosis.odd_chain
    if real := difference_is_real(difference, diagnosis.n_compared, draws.samples):
        if odd is None:
            where = f"between chains {difference.chains[0]} and {difference.chains[1]}"
        else:
            other = difference.chains[difference.chains[0] == odd]
            where = f"chain {odd} differs from all others, which agree: between it and chain {other}"
        signs.append(
            f"{where} the posterior similarity of {diagnosis.difference_pair} differs by "
            f"{display.with_error(difference.size, difference.mcse)}"
        )
    beyond_chance = np.where(evidence.beyond_chance, diagnosis.summaries["rhat"].values, np.nan)
    worst, rhat = _extreme(diagnosis, diagnosis.partition_rhat, beyond_chance, 1.0)
    if len(evidence.still) == diagnosis.n_chains:
        signs.append("no chain ever moves, and each stays at a different partition")
    elif rhat == np.inf:
        signs.append(f"the {worst} differs between chains and hardly varies within them (its R-hat is infinite)")
    elif rhat > RHAT_BAD:
        signs.append(
            f"the R-hat of the {worst} is {display.apart_from(rhat, RHAT_BAD, '.2f')} "
            f"{_above('disagree', RHAT_BAD, worst)}"
        )
    elif evidence.pair_rhat > RHAT_BAD and not signs:
        signs.append(
            f"the worst R-hat of the sampled pairs is {display.apart_from(evidence.pair_rhat, RHAT_BAD, '.2f')}"
        )
    if not signs and (clause := evidence.unvisited()):
        signs.append(clause)
    if signs and 0 < len(evidence.still) < diagnosis.n_chains:
        one = len(evidence.still) == 1
        names = display.listed(evidence.still, _MOST_NAMED)
        signs.append(f"chain {names} never moves" if one else f"chains {names} never move")
    if not signs:
        return None
    is_sure = real
    if evidence.own_ess < _ESS_OF_BATCH * n_batches(draws.samples.shortest):
        is_sure = difference_is_real(
            replace(difference, mcse=_TOO_SMALL * difference.mcse), diagnosis.n_compared, draws.samples
        )
    if real and not is_sure:
        signs.append(
            f"each chain has an effective sample size of about {evidence.own_ess:.2g}, too small to tell "
            "disagreement from chance"
        )
    better = "tempering" if draws.counted_draws is None else "marginalized labels"
    mixing = f"a sampler that mixes better (such as one with {better})"
    return "disagree", [
        Sentence(f"{'disagree' if is_sure else 'do not agree yet'}: {' and '.join(signs)}.", "The chains"),
        advice(f"Run longer chains, or {mixing}, before reporting a partition."),
        *_about_weights(draws),
        *evidence.copies.in_words(),
    ]


def _of_few_draws(diagnosis: Diagnosis, evidence: Evidence) -> Judgement | None:
    """Status and sentences of the verdict if chains are copies, or weights leave too few effective draws."""
    if copied := evidence.copies.in_words():
        return "unknown", [*copied, *_about_weights(evidence.draws)]
    if diagnosis.effective_draws >= FEWEST_DRAWS * diagnosis.n_chains:
        return None
    nearer = "from the posterior itself, or from a distribution nearer to it"
    return "unknown", [
        Sentence(f"The weights leave too few effective draws: {evidence.draws.samples.about_weights}."),
        Sentence("All probabilities, balls and standard errors rest on these few."),
        advice(f"Sample {nearer}, before reporting a partition."),
    ]


def _of_agreement(diagnosis: Diagnosis, evidence: Evidence) -> Judgement:
    """Status and sentences of the verdict without signs of disagreement: whether the chains are long enough."""
    weights = _about_weights(evidence.draws)
    wanted = ESS_PER_CHAIN * diagnosis.n_chains
    smaller = np.fmin(diagnosis.summaries["ess_bulk"].values, diagnosis.summaries["ess_tail"].values)
    least, ess = _extreme(diagnosis, diagnosis.partition_ess, smaller, -1.0)
    is_small, size = ess < wanted, display.apart_from(ess, wanted, ",.0f")
    if diagnosis.n_chains == 1:
        has_no_name = evidence.draws.samples.chain_names == [0]  # the default
        short = Sentence(f"This one is short, too: the {least} has an effective sample size of {size}.")
        return "unknown", [
            Sentence("one chain, so convergence cannot be assessed.", "There is"),
            advice("Run at least four from different starts."),
            *[short] * is_small,
            *weights,
            *[_SEVERAL_IN_ONE] * has_no_name,
        ]
    worst, rhat = _extreme(diagnosis, diagnosis.partition_rhat, diagnosis.summaries["rhat"].values, 1.0)
    if is_small or rhat > RHAT_WANTED:
        reasons = [f"the {least} has an effective sample size of {size}, below {wanted:,}"] if is_small else []
        if rhat > RHAT_WANTED:
            shown = display.apart_from(rhat, RHAT_WANTED, ".3f")
            reasons.append(f"the R-hat of the {worst} is {shown} {_above('short', RHAT_WANTED, worst)}")
            if rhat > RHAT_BAD:
                reasons[-1] += f", not above {RHAT_BAD} beyond chance"
        enough = _ESS_TO_AGREE * diagnosis.n_chains
        run = "longer chains"
        if ess < enough / _MORE:
            run = (
                f"about {_rounded_up(enough / ess)} times as many draws, for an effective sample size of {enough:,} "
                "at which most chains keep both limits,"
            )
        return "short", [
            Sentence(f"short: {', and '.join(reasons)}.", "There is no sign that the chains disagree, but they are"),
            advice(f"Run {run} before relying on small differences."),
            *weights,
        ]
    n_items, n_compared = evidence.draws.n_items, diagnosis.n_compared
    sample = f" (pairs of {n_compared:,} of the {n_items:,} items, chosen at random)" if n_compared < n_items else ""
    evidence_of_it = (
        f"agree: the largest R-hat is {display.apart_from(max(rhat, 1.0), RHAT_WANTED, '.3f')}, the effective sample "
        f"size at least {display.at_least(ess, ',.0f')}, and posterior similarities differ by at most "
        f"{display.at_most(diagnosis.largest_difference.size, '.2f')} between chains{sample}."
    )
    unnoticed = (
        f"A mode that one chain misses would go unnoticed below about {display.at_most(diagnosis.could_miss, '.0%')} "
        "of the draws, or more if noise blurs it, and one that all chains miss in any case."
    )
    return "agree", [Sentence(evidence_of_it, "The chains"), Sentence(unnoticed), *weights]


def _rounded_up(factor: float) -> str:
    """A factor above 1 with two digits, never below it."""
    digits = 1 if factor < 10 else 0
    return f"{np.ceil(factor * 10**digits * (1 - ROUNDING)) / 10**digits:.{digits}f}"


def _about_weights(draws: PartitionDraws) -> list[Sentence]:
    size = "count in effective sample sizes; R-hat and the differences between chains ignore them"
    return [Sentence(f"The weights ({draws.samples.about_weights}) {size}.")] * draws.samples.is_weighted


def _extreme(diagnosis: Diagnosis, of_partition: float, of_summaries: Floats, sign: float) -> tuple[str, float]:
    """Name and value of the largest (sign 1) or smallest (sign -1) value; NaN if there is none."""
    names = ["partition", *diagnosis.summaries["summary"].values.tolist()]
    values = np.append(of_partition, of_summaries)
    if np.isnan(values).all():
        return "", np.nan
    at = int(np.nanargmax(sign * values))
    return names[at], float(values[at])


def _above(status: str, limit: float, name: str) -> str:
    """R-hat above which chains have a status. The limit 1.01 is recommended for scalars; other uses are convention."""
    return f"({status} above {limit}{', a convention for partitions' if name == 'partition' else ''})"


def about_chains(
    draws: PartitionDraws, logs: LogOfDraws | None, odd: object | None, loss: PartitionLoss, seconds: float | None
) -> Iterator[Sentence]:
    """Sentences on chains that disagree, possibly none; `odd` is the chain that differs from all others, if any."""
    names = draws.samples.chain_names
    if logs is not None:
        yield Sentence(_of_logs(logs, draws.samples.chains, names, odd))
    if odd is not None:
        yield Sentence(_of_partitions(draws, names, odd, loss, seconds))
    if logs is not None and logs.by_observation:
        yield Sentence("diagnostics.stacking_weights weights the chains by how well they predict.")


def _of_logs(logs: LogOfDraws, chains: list[Positions], names: list[object], odd: object | None) -> str:
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
    rest, own = (_central_optimum(draws.take(np.flatnonzero(some)), loss, seconds) for some in (~rows, rows))
    distance = float(losses_between(np.stack([rest, own]), loss)[0, 1])
    apart = f"at a distance of {display.quantity(distance, loss.unit, 3)}" if distance > 0 else "the same"
    k_rest, k_own = (display.counted(int(labels.max()) + 1, "cluster") for labels in (rest, own))
    return (
        f"Without chain {odd}, `{without(names, [odd])}`, the best partition found has {k_rest}; that of chain {odd} "
        f"alone has {k_own}, {apart}."
    )


def _central_optimum(draws: PartitionDraws, loss: PartitionLoss, seconds: float | None) -> Labels:
    """The best partition (n,) of a search from a central draw and one random order."""
    plain = draws.labels_only()
    starts = [central_draw(plain, plain.of_some_items()[1], loss)]
    effort = Effort(n_starts=1, n_perturbations=0, seconds=seconds)
    result = search(Problem(draws, loss), np.random.default_rng(0), effort, starts)
    return draws.as_labels(result.labels)
