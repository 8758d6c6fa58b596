"""Sentences of a summary: facts, findings, and the methods text for a paper."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

import posterior_consensus
from posterior_consensus.bounds.bound import status
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.plots.frame import MOST_IN_ROW, MOST_OF_PAIRS, SOME_OF_PAIRS
from posterior_consensus.results import display
from posterior_consensus.results.display import counted
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.runtime import memory
from posterior_consensus.search.runs import SearchInfo
from posterior_consensus.summary.links import links_in_short, of_links
from posterior_consensus.summary.modes import answers_in_short, answers_reported, further_answers, rough_because
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.references import REFERENCES, cited_keys, loss_key
from posterior_consensus.summary.second_searches import (
    halves_left_out,
    more_draws_in_short,
    more_draws_reported,
    of_more_draws,
    of_other_labels,
    other_labels_left_out,
    stopped,
)

LOSS_NAMES = {"vi": "variation of information", "binder": "Binder loss"}
_GIVEN = "with the items' allocations given by their probabilities in each draw [gelfand1990]."
_SAMPLED = (
    "with the items' allocations sampled from their probabilities in each draw, and the co-clustering probabilities "
    "of pairs computed from the probabilities themselves [gelfand1990]."
)
_BY = {"": "", "interrupted": "Ctrl-C", "seconds": "the time limit"}  # cause of an early end of a search
_HALF = 0.5  # mean similarity to the rest of its cluster below which an item is ambiguous
_MOST_NAMED = 6
_MOST_SIZES = 10
_SAME = 0.0005  # relative difference of two losses that rounds to 0.0%
_IMPROBABLE = 0.05  # posterior probability below which a number of clusters is reported as improbable
_DISAGREEMENT = (
    "The partition has one cluster because the draws disagree on the clusters, not because they have none. A "
    "search for groups of draws finds a partition for each group, and Binder's loss with a calibrated pair threshold "
    "joins pairs that are co-clustered more often than most."
)
_NO_COMPONENTS = (
    "The number of clusters describes this partition and need not estimate a number of components; that depends on the "
    "prior [miller2014]."
)
_LOOSE = 0.05  # optimality gap above which a bound is too loose to report


def facts(summary: SummaryRecord) -> list[tuple[str, str]]:
    """Named values for the head of the printed summary."""
    best, ball = summary.consensus, summary.ball
    expected = display.quantity(best.expected_loss, best.loss.unit, 4)
    reported = "" if summary.alternative is None else f"; {best.n_clusters} {_chance(summary)}"
    rows = [
        ("draws", f"{draws_in_words(summary.draws.samples)}: {summary.source}"),
        (f"expected {best.loss.name}", display.with_error(expected, best.mcse, best.ess)),
        ("optimality", _optimality(summary)),
        (f"{_percent(ball.prob)} ball", f"radius {_radius(summary)}, {_clusters_inside(summary)}"),
        ("clusters", f"{display.interval(*_range_of_clusters(summary))}{reported}"),
        ("ambiguous", _ambiguous(summary)),
        *([] if summary.links is None else [("links", links_in_short(summary.links))]),
        ("groups", answers_in_short(summary)),
        ("more draws", more_draws_in_short(summary)),
        ("chains", summary.diagnosis.verdict),
    ]
    if sentences := left_out(summary):
        rows.append(("left out", " ".join(sentences)))
    return [*rows, ("time", display.duration(sum(summary.seconds.values())))]


def findings(summary: SummaryRecord) -> list[str]:
    """Findings in plain sentences."""
    sentences = [
        _sizes(summary.consensus.cluster_sizes.values),
        f"{_central(summary, 'The number of clusters')}.",
        *of_links(summary),
        *_improbable_number(summary),
        *further_answers(summary),
        _in_ball(summary),
        _expected(summary.consensus),
        _proof(summary),
        *of_more_draws(summary),
        *of_other_labels(summary),
        *_rough(summary.consensus),
    ]
    if ambiguous_items(summary).size:
        ambiguous = _ambiguous(summary)
        sentences.append(f"{display.capitalized(ambiguous)}.")
    elif summary.consensus.n_clusters < summary.draws.n_items:
        every = "Every item" + " that is not alone" * bool(summary.consensus.cluster_sizes.min() == 1)
        sentences.append(f"{every} has a mean posterior similarity of at least {_HALF:g} to the rest of its cluster.")
    samples = summary.draws.samples
    if samples.is_weighted:
        sentences.append(
            f"The {samples.n_draws:,} draws are weighted: their effective sample size is {samples.effective_draws:.4g} "
            f"and the largest weight is {samples.weights.max():.2%} of the total."
        )
    return [*sentences, *left_out(summary), summary.diagnosis.verdict]


def left_out(summary: SummaryRecord) -> list[str]:
    """Computations that were skipped or used some items only, with reasons."""
    n, diagnosis, answers = summary.draws.n_items, summary.diagnosis, summary.answers
    certificate = summary.certificate
    of_bound = summary.no_certificate if certificate is None else certificate.left_out
    sentences = [*_ended_early(summary), *filter(None, [of_bound]), *halves_left_out(summary)]
    sentences += other_labels_left_out(summary)
    if n > MOST_OF_PAIRS:
        sentences.append(
            f"The similarity matrix was not formed, because it would need {memory.in_words(8 * n**2)}: figures show "
            f"the matrix of {SOME_OF_PAIRS:,} items, chosen at random."
        )
    if n > MOST_IN_ROW:
        sentences.append(f"Figures of single items show {MOST_IN_ROW:,} of them.")
    if diagnosis.n_compared < n:
        sentences.append(
            f"Chains are compared by the pairs of {diagnosis.n_compared:,} items, chosen at random, and by the sizes "
            "and distances of whole partitions."
        )
    if answers is not None and answers.n_searched < n:
        some = f"{answers.n_searched:,} items, chosen at random"
        sentences.append(f"Further groups of draws were searched for on {some}.")
    return sentences


def _ended_early(summary: SummaryRecord) -> list[str]:
    """Steps that the time limit, Ctrl-C or the caller ended or skipped."""
    answers, other, cut = summary.answers, summary.alternative, summary.cut
    sentences = []
    if by := _BY[stopped(summary.consensus)]:
        sentences.append(f"The search was stopped by {by}: a longer one may find a better partition.")
    by = "" if other is None else _BY[stopped(other)]
    if by or (other is None and "alternative" in cut):
        how = f"searched for until {by}" if by else "not searched for, because no time was left"
        sentences.append(f"The best partition with the most probable number of clusters was {how}.")
    if answers is None:
        why = "because no time was left" if "answers" in cut else "as requested"
        sentences.append(f"No search for further groups of draws was made, {why}.")
    elif "answers" in cut:
        sentences.append("The search for further groups of draws ended at the time limit.")
    return sentences


def methods_text(summary: SummaryRecord) -> str:
    """Sentences for the methods section, and the references they cite."""
    best, diagnosis = summary.consensus, summary.diagnosis
    first = (
        f"The posterior distribution of the partition of {counted(summary.draws.n_items, 'item')} was represented "
        f"by {draws_in_words(summary.draws.samples)}."
    )
    if summary.draws.soft is not None:
        first = first[:-1] + ", " + (_GIVEN if best.loss.as_binder() else _SAMPLED)
    report, has, and_ = ("We report the", ":", ", with") if diagnosis.status != "disagree" else ("The", " has", " and")
    second = (
        f"{report} partition{_requested(best)} {how_found(summary)}{has} {counted(best.n_clusters, 'cluster')}"
        f"{_unlikely(summary)}{and_} an expected loss of "
        f"{display.quantity(best.expected_loss, best.loss.unit, 4)} on the draws it was minimized on (Monte Carlo "
        "standard error "
        f"{_figure(best.mcse, '.2g')}{rough_because(best.ess)})"
        f"{_bound(summary)}."
    )
    least, most = _ball_clusters(summary)
    bounds = f"{counted(most, 'cluster')} each"
    if least != most:
        bounds = f"{least:,} and {counted(most, 'cluster')}, a range over draws that grows with their number"
    third = (
        f"The {_percent(summary.ball.prob)} credible ball around it [wade2018] has a radius of {_radius(summary)} and "
        f"vertical bounds of {bounds}; the ball has {''.join(_covered(summary))}; "
        f"{_central(summary, 'the number of clusters')}; "
        f"{_below_half(ambiguous_items(summary).size)}."
    )
    more = [_NO_COMPONENTS, *more_draws_reported(summary), *of_other_labels(summary), *answers_reported(summary)]
    text = " ".join([first, second, third, *more, _convergence(summary), *left_out(summary)])
    if diagnosis.status == "disagree":
        text = f"These results must not be reported. {diagnosis.verdict}\n\n{text}"
    return with_references(text, summary)


def how_found(summary: SummaryRecord) -> str:
    """Loss and method of the search."""
    best = summary.consensus
    how = "by greedy search [dahl2022]" if best.method == "greedy" else f"by the method {best.method!r}"
    key, loss = loss_key(summary.loss), LOSS_NAMES.get(best.loss.name, best.loss.name)
    version = f"posterior_consensus {posterior_consensus.__version__} [posterior_consensus]"
    return (
        f"of minimum posterior expected {loss}{f' [{key}]' if key else ''}{_threshold(best)} found {how} with {version}"
    )


def with_references(text: str, summary: SummaryRecord) -> str:
    """Sentences, followed by the references that they cite and the reference of the loss."""
    cited = [f"{REFERENCES[key]} [{key}]" for key in cited_keys(text)]
    if loss_key(summary.loss) is None and summary.loss.reference:
        cited.append(f"{summary.loss.reference} (the loss)")
    return text + "\n\n" + "\n".join(cited)


def number_probabilities(draws: PartitionDraws) -> npt.NDArray[np.float64]:
    """Posterior probability of each number of clusters, from 0 on."""
    return np.bincount(draws.n_clusters, weights=draws.weights).astype(np.float64)


def _probability_of_number(draws: PartitionDraws, best: ConsensusPartition) -> float:
    return float(number_probabilities(draws)[best.n_clusters : best.n_clusters + 1].sum())


def improbable(draws: PartitionDraws, best: ConsensusPartition) -> bool:
    """Whether the number of clusters, if it was not requested, has a small posterior probability."""
    return best.cluster_limits == ClusterLimits() and _probability_of_number(draws, best) < _IMPROBABLE


def _chance(summary: SummaryRecord) -> str:
    probability = _probability_of_number(summary.draws, summary.consensus)
    return f"in {display.percent(probability)} of {_whole(summary)}" if probability > 0 else "in no draw"


def _unlikely(summary: SummaryRecord) -> str:
    """The share of the draws that have the number of clusters, if it is small."""
    return "" if summary.alternative is None else f" (a number {_chance(summary)})"


def _improbable_number(summary: SummaryRecord) -> list[str]:
    """Comparison with the most probable number of clusters, if the reported number is improbable."""
    other, best = summary.alternative, summary.consensus
    if other is None:
        return []
    change = other.expected_loss / best.expected_loss - 1
    number, share = other.n_clusters, number_probabilities(summary.draws)[other.n_clusters]
    loss = f"an expected loss that is {abs(change):.1%} {'larger' if change >= 0 else 'smaller'}"
    return [
        f"The number of clusters here, {best.n_clusters}, is {_chance(summary)}; the most probable number is {number} "
        f"({display.percent(share)}). The best partition found with {counted(number, 'cluster')} "
        f"has {loss if abs(change) >= _SAME else 'the same expected loss'}.",
        *([_DISAGREEMENT] if best.n_clusters == 1 else []),
    ]


def _convergence(summary: SummaryRecord) -> str:
    """Sentence on convergence for the methods section."""
    diagnosis = summary.diagnosis
    if diagnosis.n_chains == 1:
        return "Convergence could not be assessed, because there is one chain."
    if diagnosis.status == "unknown":
        return f"Convergence could not be assessed. {diagnosis.verdict}"
    rhat, ess = _figure(diagnosis.worst_rhat, ".3f"), _figure(diagnosis.least_ess, ".0f")
    short = "; longer chains are needed" if diagnosis.status == "short" else ""
    return (
        "Convergence was assessed by rank-normalized split R-hat and effective sample sizes [vehtari2021] of the "
        "number of clusters, the cluster sizes and distances to partitions, and by the split R-hat of the partition "
        "itself, from Gelman and Rubin's variances [gelman1992], whose limit 1.01 is a convention, and its effective "
        f"sample size: the largest R-hat was {rhat}, the partition's {_figure(diagnosis.partition_rhat, '.3f')}, the "
        f"smallest effective sample size {ess}, and the largest difference between two chains' "
        f"co-clustering probabilities of a pair {_figure(diagnosis.gap.size, '.2f')}"
        f"{short}{'; R-hat and this difference ignore the weights' if summary.draws.samples.is_weighted else ''}."
    )


def _sizes(sizes: npt.NDArray[np.integer[Any]]) -> str:
    """Number and sizes of the clusters."""
    items, clusters = counted(int(sizes.sum()), "item"), counted(sizes.size, "cluster")
    least, most = int(sizes.min()), int(sizes.max())
    if sizes.size == 1:
        return f"There is one cluster, of {items}."
    if most == 1:
        return f"Each of the {items} is a singleton."
    if least == most:
        return f"The {items} fall into {clusters} of {most:,} items each."
    if sizes.size > _MOST_SIZES:
        return f"The {items} fall into {clusters}, of {least:,} to {most:,} items."
    *larger, last = sorted(sizes.tolist(), reverse=True)
    return f"The {items} fall into {clusters}, of {', '.join(map(str, larger))} and {counted(last, 'item')}."


def _in_ball(summary: SummaryRecord) -> str:
    """Radius of the credible ball, and numbers of clusters inside."""
    ball = summary.ball
    share, error = _covered(summary)
    one = summary.draws.samples.is_weighted
    if ball.radius == 0:
        return f"{share} {'is' if one else 'are'} exactly this partition{error}."
    least, most = _ball_clusters(summary)
    range_ = ", a range that grows with the number of draws" if least != most else ""
    return (
        f"{share} {'lies' if one else 'lie'} within {_radius(summary)} of this partition{error}; the draws inside have "
        f"{_clusters_inside(summary)}{range_}."
    )


def _expected(best: ConsensusPartition) -> str:
    """Expected loss of the partition, to which later sentences refer."""
    value = display.quantity(best.expected_loss, best.loss.unit, 3)
    return f"The posterior expected {LOSS_NAMES.get(best.loss.name, best.loss.name)} of this partition is {value}."


def _rough(best: ConsensusPartition) -> list[str]:
    """Warning of a rough error of the expected loss."""
    if not display.is_rough(best.ess):
        return []
    error = display.quantity(best.mcse, best.loss.unit, 2)
    return [
        f"The Monte Carlo standard error of the expected loss, {error}, is rough, because its effective sample size "
        f"is {best.ess:.3g}: the error can be much larger. The expected loss itself is too low on average, as the "
        "partition was chosen on these few draws."
    ]


def _below_half(number: int) -> str:
    """Number of items with a low mean similarity to their cluster."""
    many = "no item has" if number == 0 else f"{counted(number, 'item')} {'has' if number == 1 else 'have'}"
    own = "their cluster" if number > 1 else "its cluster"
    return f"{many} a mean posterior similarity below {_HALF:g} to the rest of {own}"


def _requested(best: ConsensusPartition) -> str:
    """Requested number of clusters."""
    if best.cluster_limits.n_clusters is not None:
        return f" into {counted(best.cluster_limits.n_clusters, 'cluster')}"
    most = best.cluster_limits.max_clusters
    return "" if most is None else f" into at most {counted(most, 'cluster')}"


def _threshold(best: ConsensusPartition) -> str:
    """Pair threshold, and whether the draws chose it."""
    if best.threshold is None:
        return ""
    chosen = ", calibrated on the same draws," if best.threshold.calibrated else ""
    return f" at a pair threshold of {best.threshold.tau:.3g}{chosen}"


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def _at_most(share: float) -> str:
    """An upper bound in percent, rounded up."""
    return f"{math.ceil(share * 1e4) / 1e4:.2%}"


def _figure(value: float, form: str) -> str:
    if np.isnan(value):
        return "not available"
    return "infinite" if np.isinf(value) else format(value, form)


def draws_in_words(samples: Samples) -> str:
    """Number of draws and chains, and what the weights leave."""
    kind = "weighted draw" if samples.is_weighted else "draw"
    text = f"{counted(samples.n_draws, kind)} of {counted(len(samples.chains), 'chain')}"
    return f"{text} ({samples.about_weights})" if samples.is_weighted else text


def _radius(summary: SummaryRecord) -> str:
    return f"{display.quantity(summary.ball.radius, summary.ball.loss.unit, 3)} ({summary.ball.loss.name})"


def _range_of_clusters(summary: SummaryRecord) -> tuple[int, int, float, str]:
    """Central 90% interval of the number of clusters, its share of the draws, and whole of which it is a share."""
    draws = summary.draws
    low, high = np.quantile(draws.n_clusters, [0.05, 0.95], method="inverted_cdf", weights=draws.weights)
    inside = (draws.n_clusters >= low) & (draws.n_clusters <= high)
    return int(low), int(high), float(draws.samples.mean(inside.astype(np.float64))), _whole(summary)


def _central(summary: SummaryRecord, number: str) -> str:
    """Central 90% interval of the number of clusters, as a clause."""
    low, high, share, of = _range_of_clusters(summary)
    interval = display.interval(low, high, share, of)
    return f"{number} is {interval}" if low == high else f"{number} has the {interval}"


def _whole(summary: SummaryRecord) -> str:
    """Whole of which shares are given."""
    return "the weight" if summary.draws.samples.is_weighted else "the draws"


def _covered(summary: SummaryRecord) -> tuple[str, str]:
    """Share of the draws in the credible ball, and its error in parentheses."""
    ball = summary.ball
    error = "" if np.isnan(ball.coverage_mcse) else f" (Monte Carlo standard error {100 * ball.coverage_mcse:.2g}%)"
    return f"{100 * ball.coverage:.4g}% of {_whole(summary)}", error


def _ball_clusters(summary: SummaryRecord) -> tuple[int, int]:
    bounds = summary.ball.upper_vertical, summary.ball.lower_vertical
    least, most = (np.unique(bound[0]).size for bound in bounds)
    return least, most


def _clusters_inside(summary: SummaryRecord) -> str:
    least, most = _ball_clusters(summary)
    return f"{least:,} to {most:,} clusters" if least != most else counted(least, "cluster")


def ambiguous_items(summary: SummaryRecord) -> npt.NDArray[Any]:
    """Names of the items whose mean similarity to the rest of their cluster is below a half, the smallest first."""
    table = summary.items.to_dataframe().sort_values("similarity", kind="stable")
    return table.index[table["similarity"] < _HALF].to_numpy()


def _ambiguous(summary: SummaryRecord) -> str:
    names = ambiguous_items(summary)
    listed = f": {display.listed(names.tolist(), _MOST_NAMED)}" if names.size else ""
    return f"{_below_half(names.size)}{listed}"


def _optimality(summary: SummaryRecord) -> str:
    gap, agreement = summary.gap, _agreement(summary)
    if gap is None:
        return agreement or _no_bound(summary)
    if status(gap) == "optimal":
        return "proven, no partition has a smaller expected loss on these draws"
    if gap > _LOOSE:
        longer = ", `certify` can give a better bound" if _can_certify(summary) else ""
        return "; ".join(filter(None, [agreement, f"not proven optimal{longer}"]))
    words = f"no partition's expected loss on these draws is more than {_at_most(gap)} smaller"
    return "; ".join(filter(None, [words, agreement]))


def _no_bound(summary: SummaryRecord) -> str:
    return "no bound was computed" if summary.no_certificate else "no bound is known for this loss"


def _can_certify(summary: SummaryRecord) -> bool:
    """Whether a longer computation can improve the bound."""
    return summary.certificate is not None and not summary.certificate.left_out


def _agreement(summary: SummaryRecord) -> str:
    info = summary.consensus.info
    return info.agreement() if isinstance(info, SearchInfo) else ""


def _proof(summary: SummaryRecord) -> str:
    gap, agreement = summary.gap, _agreement(summary)
    if gap is not None and status(gap) == "optimal":
        return "On these draws, no other partition has a smaller expected loss (proven)."
    start = f"{agreement.capitalize()}." if agreement else ""
    if gap is None:
        return start or f"{_no_bound(summary).capitalize()}."
    if gap > _LOOSE:
        longer = "; a longer computation can give a proof" if _can_certify(summary) else ""
        return f"{start} The expected loss is not proven to be near the minimum{longer}.".strip()
    return f"{start} No partition's expected loss on these draws is more than {_at_most(gap)} smaller.".strip()


def _bound(summary: SummaryRecord) -> str:
    bound, gap = summary.lower_bound, summary.gap
    if gap is not None and status(gap) == "optimal":
        return ", which is proven to be the minimum on these draws"
    unit = summary.consensus.loss.unit
    least = "" if bound is None else f", which is at least {display.quantity(bound, unit, 4)}"
    return f"; it is not proven to be the minimum{least}"
