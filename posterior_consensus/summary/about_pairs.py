"""Claims of a summary of scored pairs, a topic a function: numbers and their words in each text."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.answers.scored_links import IF_RIGHT
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.results import display
from posterior_consensus.results.display import as_text, capitalized, counted
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.summary.about_draws import KEPT, optimality_of
from posterior_consensus.summary.claims import ESTIMATED, PROVEN, Claim
from posterior_consensus.summary.methods import with_version
from posterior_consensus.summary.pair_record import PairsRecord
from posterior_consensus.summary.references import with_references

_LARGE = 10  # clusters of this size and above are counted together
_HALF = 0.5  # mean probability to the rest of its cluster below which a record is uncertain
_UNSURE = 0.9  # expected precision, by products of odds, below which a finding gives the next step
_MOST_NAMED = 6
_NOT_KNOWN = "not known to be non-matches"
_WITHIN = (
    "the expected loss counts them so everywhere, expected numbers of pairs within components of linked records alone"
)


class Counts(NamedTuple):
    """Numbers of pairs that several claims need."""

    joined: int  # scored pairs in one cluster
    unscored: int  # other pairs in one cluster
    # Expected number of pairs in one cluster that are no matches, and of matches in different clusters.
    wrong: float
    missed: float
    review: pd.DataFrame  # the closest calls

    @property
    def within(self) -> int:
        """Pairs in one cluster."""
        return self.joined + self.unscored


def counts_of(summary: PairsRecord) -> Counts:
    """Count the pairs within and between clusters."""
    found = summary.links
    wrong, missed = found.expected_errors
    return Counts(
        joined=found.n_joined - found.n_joined_unscored,
        unscored=found.n_joined_unscored,
        wrong=wrong,
        missed=missed,
        review=summary.links.review(display.MOST_ROWS),
    )


def clusters(summary: PairsRecord, counts: Counts) -> Claim:
    """Number and sizes of the clusters."""
    sizes = summary.partition.cluster_sizes.values
    small = np.bincount(sizes[sizes < _LARGE])
    words = [f"{number:,} of {counted(size, 'record')}" for size, number in enumerate(small.tolist()) if number]
    if (large := sizes[sizes >= _LARGE]).size:
        to = f" to {large.max():,}" if large.min() < large.max() else ""
        words.append(f"{large.size:,} of {large.min():,}{to} records")
    number = counted(sizes.size, "cluster")
    n = int(sizes.sum())
    finding = f"The {counted(n, 'record')} {'falls' if n == 1 else 'fall'} into {number}: {display.joined(words)}."
    return Claim("clusters", f"{sizes.size:,}: {', '.join(words)}", [finding], number, number=sizes.size)


def components(summary: PairsRecord, counts: Counts) -> Claim:
    """Components of linked records, and how many of them the partition splits."""
    component, labels = summary.component.values, summary.labels.values
    sizes = np.bincount(component)
    parts = np.bincount(component[np.unique(labels, return_index=True)[1]], minlength=sizes.size)
    linked, split = int(np.sum(sizes > 1)), int(np.sum(parts > 1))
    if not linked:
        return Claim("components", f"no two records are linked by a probability above {summary.tau:.3g}", number=0)
    line = f"{linked:,} of linked records, the largest of {sizes.max():,}; {split:,} in several clusters"
    if not split:
        return Claim("components", line, number=linked)
    widest = int(np.where(parts > 1, sizes, 0).argmax())
    finding = (
        f"Probabilities above {summary.tau:.3g} link the records into {counted(linked, 'component')} of two records or "
        f"more. {counted(split, 'component')} {'is' if split == 1 else 'are'} in several clusters: connected "
        f"components, which join all that is linked, would make one cluster of {sizes[widest]:,} records that form "
        f"{parts[widest]:,} clusters here."
    )
    return Claim("components", line, [finding], number=linked)


def scored(summary: PairsRecord, counts: Counts) -> Claim:
    """Numbers of scored pairs, and of those in one cluster."""
    pairs, n = summary.pairs, summary.pairs.n_items
    where = f" ({_WITHIN})" if pairs.unscored else ""
    others = f"; the others were given the probability {pairs.unscored:g}{where}" if pairs.n_unscored else ""
    methods = (
        f"Of the {n * (n - 1) // 2:,} pairs of {counted(n, 'record')}, {pairs.n_scored:,} had a score, taken as the "
        f"probability of a match{others}."
    )
    line = f"{pairs.n_scored:,}, {counts.joined:,} of them in one cluster"
    return Claim("scored pairs", line, methods=methods, number=pairs.n_scored)


def unscored(summary: PairsRecord, counts: Counts) -> Claim:
    """Numbers of pairs without a score, and of those in one cluster."""
    pairs, inside, n_unscored = summary.pairs, counts.unscored, summary.pairs.n_unscored
    if not n_unscored:
        return Claim("unscored pairs", "none", number=0)
    where = f"; {_WITHIN}" if pairs.unscored else ""
    line = f"{n_unscored:,}, taken as {pairs.unscored:g}, {inside:,} of them in one cluster; {_NOT_KNOWN}{where}"
    if not inside:
        return Claim("unscored pairs", line, number=n_unscored)
    share = display.percent(inside / counts.within)
    has, count = ("has", "counts") if inside == 1 else ("have", "count")
    finding = (
        f"{counted(inside, 'pair')} within clusters ({share} of them) {has} no score and {count} as "
        f"{pairs.unscored:g}. Pairs without a score are {_NOT_KNOWN}."
    )
    return Claim("unscored pairs", line, [finding], number=n_unscored)


def threshold(summary: PairsRecord, counts: Counts) -> Claim:
    """Pair threshold, and the costs that it stands for."""
    tau = f"{summary.tau:.3g}"
    ratio = f"{summary.tau / (1.0 - summary.tau):.3g}"
    said = f"a pair joined wrongly costs {'as much as' if ratio == '1' else f'{ratio} times'} a missed match"
    return Claim("threshold", f"tau {tau}: {said}", methods=f"a pair threshold of {tau} ({said})", number=summary.tau)


def expected_loss(summary: PairsRecord, counts: Counts) -> Claim:
    """Expected loss, and the expected numbers of pairs on which the partition is wrong."""
    best = summary.partition
    value = display.quantity(best.expected_loss, best.loss.unit, 3)
    total = _pairs(counts.wrong + counts.missed)
    kinds = f"{_pairs(counts.wrong)} joined wrongly and {_pairs(counts.missed)} missed{_among(summary)}"
    line = f"{value}; expected wrong pairs by single scores: {total}, {kinds}"
    finding = f"The expected number of wrong pairs by single scores is {total}: {kinds}."
    methods = (
        f"an expected loss of {value} and, by single scores, an expected number of wrong pairs of {total} ({kinds})"
    )
    name, loss = f"expected {display.short_name_of(best.loss)}", best.expected_loss
    return Claim(name, line, [finding], methods, status=ESTIMATED, number=loss, scope="by single scores")


def _among(summary: PairsRecord) -> str:
    """Among which pairs matches are counted, if not among all."""
    return " among scored pairs" if summary.pairs.n_unscored and not summary.pairs.unscored else ""


def _pairs(number: float, formatted: Callable[[float, str], str] = format) -> str:
    """An expected number of pairs in words, rounded to the nearest, or outwards as a bound."""
    return formatted(number, ",.0f" if number >= 100 else ".3g")


def optimality(summary: PairsRecord, counts: Counts) -> Claim:
    """Whether the partition is proven to be optimal, and which components are not."""
    best = summary.partition
    return optimality_of(best, best.lower_bound, "expected", "with these scores", unproven=[*_unproven(best.info)])


def _unproven(info: Info | None) -> Iterator[str]:
    """Components that are not proven to be optimal, the largest first."""
    if not isinstance(info, ComponentsInfo):
        return
    sizes = display.listed([f"{size:,}" for size in info.unproven_sizes], _MOST_NAMED)
    gaps = display.listed([_pairs(gap, display.at_most) for gap in info.unproven_gaps], _MOST_NAMED)
    n, of = len(info.unproven_sizes), counted(info.n_components, "component")
    are, have, cost = ("is", "it has", "costs") if n == 1 else ("are", "they have", "cost")
    yield (
        f"{n:,} of {of} {are} not proven: {have} {sizes} records, and {cost} at most {gaps} expected wrong pairs more "
        f"than the best partition{KEPT if info.constrained else ''}"
    )
    if info.stopped:
        by = {"interrupted": "Ctrl-C", "seconds": "the time limit"}[info.stopped]
        yield f"the search was stopped by {by}: a longer one may find a better partition"


def precision(summary: PairsRecord, counts: Counts) -> Claim:
    """Expected precision and recall."""
    found = summary.links
    if not counts.within:
        missed = f"by single scores, {_pairs(counts.missed)} expected matches{_among(summary)} are missed"
        return Claim("precision", f"no pair is joined; {missed}", [f"No pair is joined; {missed}."], status=ESTIMATED)
    matches = counts.within - counts.wrong + counts.missed
    ways, recall = found.precision_in_words(), f"{found.recall:.3g}"
    line = f"{ways} expected, and recall {recall} of scored pairs, {IF_RIGHT}"
    finding = (
        f"Expected precision, the share of matches among the {counted(counts.within, 'pair')} within clusters, is "
        f"{ways}, and expected recall of scored pairs, the share of {_pairs(matches)} expected matches that are within "
        f"clusters, is {recall}, {IF_RIGHT}."
    )
    low, high = found.precision_range
    larger = "With a larger threshold, fewer pairs are joined wrongly; `pc.loss_path` computes both for each. "
    advice = f"{larger * (high < _UNSURE)}By a clerk's answers, `pc.audit` estimates both with intervals."
    methods = (
        f"Its expected precision of pairs is {ways}, and its expected recall of scored pairs is {recall}, {IF_RIGHT}."
    )
    claim = Claim(advice=advice, status=ESTIMATED, number=low, limit=high, scope=IF_RIGHT)
    return claim.in_words("precision", line, [finding], methods)


def left_out(summary: PairsRecord, counts: Counts) -> Claim:
    """That pairs with low scores are not in the table."""
    if not summary.links.is_cut:
        return Claim()
    said = summary.links.cut_in_words()
    return Claim("left out", said, [f"{capitalized(said)}."], advice="Score all pairs that blocking proposes.")


def against(summary: PairsRecord, counts: Counts) -> Claim:
    """Pairs that the partition treats against their score."""
    is_joined = summary.links.against["joined"]
    joined, separated = int(is_joined.sum()), int((~is_joined).sum())
    if not joined + separated:
        return Claim("against scores", "no pair", number=0)
    tau = f"{summary.tau:.3g}"
    line = f"{joined:,} joined with a score below {tau}, {separated:,} separated with a score above it"
    finding = (
        f"{counted(joined, 'pair')} {'is' if joined == 1 else 'are'} joined with a score below {tau}, and "
        f"{separated:,} {'is' if separated == 1 else 'are'} separated with a score above it."
    )
    return Claim("against scores", line, [finding], number=joined + separated)


def uncertain(summary: PairsRecord, counts: Counts) -> Claim:
    """Records with a low mean probability to the rest of their cluster."""
    names = uncertain_records(summary)
    if not names.size:
        return Claim()
    has, own = ("has", "its") if names.size == 1 else ("have", "their")
    said = (
        f"{counted(names.size, 'record')} {has} a mean probability below {_HALF:g} to the rest of {own} cluster: "
        f"{display.listed(names.tolist(), _MOST_NAMED)}"
    )
    return Claim("uncertain records", said, [f"{said}."], number=names.size)


def uncertain_records(summary: PairsRecord) -> npt.NDArray[Any]:
    """Names of the records whose mean probability to the rest of their cluster is below a half, the smallest first."""
    similarity = own_in(summary.records, "similarity").values
    order = np.argsort(similarity, kind="stable")
    return summary.pairs.items.named(order[similarity[order] < _HALF])


def constraints(summary: PairsRecord, counts: Counts) -> Claim:
    """Constraints that the partition keeps."""
    words = summary.pairs.constraints.in_words()
    return Claim("constraints", words, methods=f"Constraints were kept: {words}.") if words else Claim()


def review(summary: PairsRecord, counts: Counts) -> Claim:
    """The pair on which a clerk's decision changes the result most."""
    if counts.review.empty:
        return Claim()
    first, second, score, joined, increase, exact = (
        counts.review[name].iloc[0] for name in ("first", "second", "probability", "joined", "increase", "exact")
    )
    said = f"{as_text(first)} and {as_text(second)}, {'joined' if joined else 'separated'} with a score of {score:.3g}"
    kept = ", the constraints kept" if summary.pairs.constraints else ""
    line = f"{said}; more in `summary.links.review()`"
    finding = f"The closest call is that of {said}: {_other_decision(increase, summary.tau, exact=exact)}{kept}."
    status, advice = PROVEN if exact else ESTIMATED, "A clerk should begin there."
    return Claim("look first at", line, [finding], advice=advice, status=status, number=float(increase))


def _other_decision(increase: float, tau: float, *, exact: bool) -> str:
    """What the other decision on a pair does to the expected loss."""
    if abs(increase) < ROUNDING:
        return f"the other decision would not {'change' if exact else 'raise'} the expected loss"
    change, bound, outwards = ("add", "at most ", display.at_most)
    if increase < 0:
        change, bound, outwards = ("save", "at least ", display.at_least)
    number = (format if exact else outwards)(abs(increase), ".2g")
    pairs, by_cost = "pair" if number == "1" else "pairs", ", weighted by their costs" * (tau != 0.5)
    return f"the other decision would {change} {'' if exact else bound}{number} expected wrong {pairs}{by_cost}"


_TOPICS: tuple[Callable[[PairsRecord, Counts], Claim], ...] = (
    *(clusters, components, scored, unscored, threshold, expected_loss, optimality, precision, left_out, against),
    *(uncertain, constraints, review),
)


def claims_of(summary: PairsRecord, counts: Counts | None = None) -> dict[str, Claim]:
    """Claims of a summary by the name of their topic, in the order of the findings."""
    counts = counts_of(summary) if counts is None else counts
    return {topic.__name__: topic(summary, counts) for topic in _TOPICS}


def methods_text(summary: PairsRecord) -> str:
    """Sentences for the methods section, and the references they cite."""
    words = {topic: claim.methods for topic, claim in claims_of(summary).items()}
    of, method = words.pop, summary.partition.method
    by_component = "within each connected component of the pairs above it"
    how = by_component if isinstance(summary.partition.info, ComponentsInfo) else f"by the method {method!r}"
    said = [
        *(of("scored"), of("constraints")),
        (
            f"We report the partition of minimum expected {display.name_of(summary.loss)} [binder1978], an instance of "
            f"correlation clustering [bansal2004], at {of('threshold')}, found {how} {with_version(summary.seed)}. It "
            f"has {of('clusters')}, {of('expected_loss')}. {of('optimality')}"
        ),
        *words.values(),
    ]
    return with_references(" ".join(filter(None, said)), summary.loss)
