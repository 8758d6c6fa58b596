"""Claims of a summary of draws, a topic a function: numbers and their words in each text."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from posterior_consensus.answers.alignment import differences_in_words
from posterior_consensus.answers.cluster_stability import FOUND, SAID
from posterior_consensus.answers.links import MANY, SMALL, SURE, UNLIKELY, range_of
from posterior_consensus.answers.membership import EVEN, by_doubt, misplaced_in_words
from posterior_consensus.answers.particles import Particles, missed, seen_from
from posterior_consensus.bounds.bound import minimum_in_words, relative_gap
from posterior_consensus.bounds.bound import status as status_of
from posterior_consensus.bounds.components import ComponentsInfo, among_of
from posterior_consensus.consensus.record import ConsensusPartition, reached_in_words, stopped
from posterior_consensus.diagnostics.chance import loss_without_structure
from posterior_consensus.diagnostics.record import Diagnosis
from posterior_consensus.diagnostics.verdict import ESS_PER_CHAIN, RHAT_WANTED
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.items import cluster_names
from posterior_consensus.ensemble.partitions import Labels, alone
from posterior_consensus.ensemble.r_hat import RHAT_BAD
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.losses.record import Loss, PartitionLoss
from posterior_consensus.plots.frame import MOST_IN_ROW, MOST_OF_PAIRS, SOME_OF_PAIRS
from posterior_consensus.results import display
from posterior_consensus.results.display import capitalized, counted
from posterior_consensus.results.sentences import as_line, in_full, without_advice
from posterior_consensus.results.words import Words
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.tolerances import ROUNDING, SAME
from posterior_consensus.search.runs import PERTURBATION, SearchInfo
from posterior_consensus.summary.claims import CONTRADICTED, ESTIMATED, NOT_ASSESSED, Claim
from posterior_consensus.summary.record import (
    IMPROBABLE,
    OTHER_LABELS,
    TOO_MANY,
    SummaryRecord,
    is_improbable,
    no_halves_because,
    number_probabilities,
    uses_sampled_labels,
    why_skipped,
)

_GIVEN = "with the items' allocations given by their probabilities in each draw [gelfand1990]."
_SAMPLED = (
    "with the items' allocations sampled from their probabilities in each draw, and the posterior similarities "
    "of pairs computed from the probabilities themselves [gelfand1990]."
)
_BY = {"": "", "interrupted": "Ctrl-C", "seconds": "the time limit"}  # cause of an early end of a search
_DOUBTFUL = 0.3, 0.7  # shares of runs that call an item noise between which it is in doubt
_MOST_NAMED = 6
_MOST_SIZES = 10
_FIRST_SIZES = 6  # in the first line
_MOST_CHANGES = 3
_MOST_UNSTABLE = 3  # pairs of clusters that are one, and clusters that are split, in a sentence
_LOOSE = 0.05  # optimality gap above which a bound is too loose to report
_ROUNDED = 0.0005  # relative difference of two losses that rounds to 0.0%
_DISAGREEMENT = (
    "The partition has one cluster because the {draws} disagree on the clusters, not because they have none. A "
    "search for {mode}s finds a partition for each {mode}, and Binder's loss with a calibrated pair "
    "threshold joins pairs that are co-clustered more often than most."
)
_GIVEN_NUMBER = (
    "All runs{of_group} have the same number of clusters. If it was given to the program, the number of clusters "
    "repeats this choice and is no result."
)
KEPT = " that keeps the constraints"  # of a partition
_AT_MINIMUM = "proven to be the minimum"
_LINKS_BECAUSE = f"because there are more than {MANY} clusters, and most items are in clusters of at most {SMALL}"
_LINK_SIZES = {"1": "singletons", "2": "pairs", "3": "triples"}
_MOST_LINK_SIZES = 4  # sizes named in a sentence
_OTHERS = "The search with labels sampled anew from the allocation probabilities"
_WORST_FIRST = "disagree", "unknown", "short", "agree", "runs"  # statuses of chains
_OF_CHAINS = {"agree": ESTIMATED, "short": ESTIMATED, "disagree": CONTRADICTED}


def draws(summary: SummaryRecord) -> Claim:
    """Numbers of draws and chains, weights and allocation probabilities."""
    samples, words = summary.draws.samples, draws_in_words(summary.draws.samples)
    weighted = f"The {samples.n_draws:,} {samples.words.draws} are weighted ({samples.about_weights})."
    allocations = "."
    if summary.draws.counted_draws is None:
        allocations = f", {_GIVEN if summary.partition.loss.as_binder() else _SAMPLED}"
    items = _items(summary, summary.draws.n_items)
    methods = f"The posterior distribution of the partition of {items} was represented by {words}{allocations}"
    if not samples.series:
        methods = f"The partition of {items} was represented by {words}."
    line = draws_line(samples, summary.source_in_short)
    return Claim(samples.words.draws, line, [weighted] * samples.is_weighted, methods, number=samples.n_draws)


def headline(summary: SummaryRecord) -> str:
    """First line of the printed summary: items, clusters, whether the draws share their number, doubts on chains."""
    return "; ".join(filter(None, (_clusters_in_short(summary), _modes_in_short(summary), in_doubt(summary))))


def _modes_in_short(summary: SummaryRecord) -> str:
    """How many modes the draws have, if several."""
    number, words = len(list(named_modes(summary))), summary.words
    if number < 2 or not summary.draws.samples.has_errors:
        return ""
    return words.either(f"the draws have {number} modes", f"the runs are of {number} kinds")


def _clusters_in_short(summary: SummaryRecord) -> str:
    sizes, noise = sorted(summary.partition.cluster_sizes.values.tolist(), reverse=True), summary.partition.n_noise
    items = display.counted_items(summary.draws.n_items, summary.draws.items.dim)
    if not sizes:
        return f"{items}, all noise, in no cluster"
    listed = ", ".join([*(f"{size:,}" for size in sizes[:_FIRST_SIZES]), *["..."] * (len(sizes) > _FIRST_SIZES)])
    of_noise = f" and {noise:,} of noise" * bool(noise)
    rare = f", a number that {_which_have_it(summary)}" * (_share(summary) < IMPROBABLE)
    if len(sizes) > 1:
        return f"{items} in {len(sizes):,} clusters{rare} (by size: {listed}){of_noise}"
    said = rare or f", as {_of_draws(summary)}"
    if rare and is_improbable(summary.draws, summary.partition):
        said += f": the {summary.words.draws} disagree on the clusters"
    return f"{items} in one cluster{of_noise}{said}"


def _items(summary: SummaryRecord, number: int, kind: str = "") -> str:
    """Number of items by the name of their dimension if it is a plain noun, of a kind such as "further "."""
    noun = _item(summary)
    return f"{number:,} {kind}{noun if number == 1 else display.plural(noun)}"


def _item(summary: SummaryRecord) -> str:
    """Name of an item."""
    dim = str(summary.draws.items.dim)
    return dim if display.plural(dim) else "item"


def draws_line(samples: Samples, source: str = "") -> str:
    """Numbers of draws and chains, and where they come from."""
    chains = display.counted(len(samples.chains), samples.words.chain)
    independent = samples.words.either("", ", taken as independent" * (samples.n_draws > 1))
    text = f"{samples.n_draws:,}{' weighted' * samples.is_weighted}{independent}"
    if samples.has_chains:
        text += f"{',' * (samples.is_weighted or bool(independent))} {samples.words.either('from', 'of')} {chains}"
    about = _by_group(samples), samples.about_weights if samples.is_weighted else "", source
    return f"{text} ({'; '.join(said)})" if (said := [*filter(None, about)]) else text


def draws_in_words(samples: Samples) -> str:
    """Number of draws and chains, and what the weights leave."""
    words, number = samples.words, len(samples.chains)
    kind = f"{' weighted' * samples.is_weighted}{words.independent} {words.draw}"
    text = counted(samples.n_draws, kind.strip())
    if samples.has_chains:
        text = f"{text} of {counted(number, words.chain)}"
    text += f" ({groups})" if (groups := _by_group(samples)) else ""
    return f"{text} ({samples.about_weights})" if samples.is_weighted else text


def _by_group(samples: Samples) -> str:
    """Number of runs in each of several groups; empty for chains, and for many groups."""
    if samples.series or not 1 < len(samples.chains) <= _MOST_NAMED:
        return ""
    names = map(display.as_text, samples.chain_names)
    return ", ".join(f"{name}: {rows.size:,}" for name, rows in zip(names, samples.chains, strict=True))


def sizes(summary: SummaryRecord) -> Claim:
    """Number and sizes of the clusters, and the number of items of noise."""
    values = summary.partition.cluster_sizes.values
    if values.size == 0:
        return Claim(findings=["All items are noise, in no cluster."], methods="no cluster", number=0)
    items, clusters = _items(summary, int(values.sum())), counted(values.size, "cluster")
    least, most = int(values.min()), int(values.max())
    if values.size == 1:
        said = f"There is one cluster, of {items}"
    elif most == 1:
        said = f"Each of the {items} is a singleton"
    elif least == most:
        said = f"The {items} fall into {clusters} of {_items(summary, most)} each"
    elif values.size > _MOST_SIZES:
        said = f"The {items} fall into {clusters}, of {least:,} to {_items(summary, most)}"
    else:
        *larger, last = sorted(values.tolist(), reverse=True)
        said = (
            f"The {items} fall into {clusters}, of {', '.join(map('{:,}'.format, larger))} and {_items(summary, last)}"
        )
    n_noise = summary.partition.n_noise
    noise = f"{'is' if n_noise == 1 else 'are'} noise, in no cluster" if n_noise else ""
    findings = [f"{said}."] + [f"{_items(summary, n_noise, 'further ')} {noise}."] * bool(noise)
    methods = clusters + (f" and {_items(summary, n_noise)} of noise" if noise else "")
    return Claim(findings=findings, methods=methods, number=values.size)


def noise(summary: SummaryRecord) -> Claim:
    """Items of noise, and those in doubt between noise and a cluster."""
    table = summary.items.to_dataframe()
    if "noise" not in table:
        return Claim()
    share = table["noise"]
    doubtful = share[(share >= _DOUBTFUL[0]) & (share <= _DOUBTFUL[1])]
    doubtful = doubtful.iloc[(doubtful - EVEN).abs().argsort(kind="stable")]
    low, high = (f"{100 * one:.0f}%" for one in _DOUBTFUL)
    of_noise = summary.partition.noise is not None  # else the loss puts every item in a cluster
    total = f"{counted(summary.partition.n_noise, 'item')} in no cluster; " * of_noise
    are = "item is" if doubtful.size < 2 else "items are"
    doubt = f"{f'{doubtful.size:,}' if doubtful.size else 'no'} {are} called noise by {low} to {high} of the runs"
    named = f": {display.listed(doubtful.index.tolist(), _MOST_NAMED)}" if doubtful.size else ""
    return Claim("noise", f"{total}{doubt}{named}", [f"{capitalized(doubt)}{named}."], number=doubtful.size)


def missing(summary: SummaryRecord) -> Claim:
    """How many items each run has, and how many pairs of items no run has; nothing unless runs lack items."""
    draws = summary.draws
    if not isinstance(draws, RunsWithMissing):
        return Claim()
    there, met = draws.n_present[draws.weights > 0], draws.met
    low, high = int(there.min()), int(there.max())
    has = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    of_some = f" of {met.n_items:,} items" * (met.n_items < draws.n_items)
    apart = f"{counted(met.never, 'pair')} of {met.pairs:,}{of_some} {'is' if met.never == 1 else 'are'} in no run"
    line = f"a run has {has} of {_items(summary, draws.n_items)}; {apart} together"
    said = (
        f"A run has {has} of the {_items(summary, draws.n_items)}, and losses are of the items that it has; {apart} "
        "together."
    )
    return Claim("missing items", line, [said], said, number=met.never)


def number(summary: SummaryRecord) -> Claim:
    """Share of a central 90% interval of the number of clusters, and that of the reported number if it differs."""
    values, weights = summary.draws.n_clusters, summary.draws.weights
    low, high = np.quantile(values, [0.05, 0.95], method="inverted_cdf", weights=weights)
    share = float(summary.draws.samples.mean(((values >= low) & (values <= high)).astype(np.float64)))
    interval = display.interval(int(low), int(high), share, whole_of(summary))
    clause = f"is {interval}" if low == high else f"has the {interval}"
    words, whole = summary.words, whole_of(summary)
    line = f"{low:,} in {display.percent(share)} of {whole}"
    if low < high:
        line = f"{low:,} to {high:,} in {display.percent(share)} of {whole} (90% interval)"
    if not summary.draws.samples.series and low == values.min() < values.max() == high:
        line = f"{low:,} to {high:,} in all runs"
    if not low == high == summary.n_clusters:
        line += f"; {_reported(summary)}"
    findings = [f"The number of clusters {clause}.", *_given_number(summary)]
    methods = f"The number of clusters {clause}."
    return Claim(f"clusters in {words.draws}", line, findings, methods, status=ESTIMATED, number=share, scope=whole)


def _given_number(summary: SummaryRecord) -> Iterator[str]:
    """Sentence on runs whose number of clusters is the same, in each group if there are several; possibly none."""
    samples, numbers = summary.draws.samples, summary.draws.n_clusters
    several = [rows for rows in samples.chains if rows.size > 1]
    alike = not samples.series and several and all(np.ptp(numbers[rows]) == 0 for rows in samples.chains)
    if alike and numbers.max() > 1:
        yield _GIVEN_NUMBER.format(of_group=" of a group" * (len(samples.chains) > 1))


def found(summary: SummaryRecord) -> Claim:
    """Shares of the draws that have each cluster, the least with its error, and what there would be by chance."""
    if summary.clusters is None or not summary.clusters.names:
        return Claim()
    table, words, whole = summary.clusters.to_dataframe(), summary.words, whole_of(summary)
    k = int(table["found"].argmin())
    least, error, ess = (float(table[name].iloc[k]) for name in ("found", "found_mcse", "ess"))
    claim = Claim(status=ESTIMATED, number=least, error=error, limit=FOUND, scope=whole)
    fewest, most = display.percent(least), display.percent(float(table["found"].max()))
    with_error = f"{words.mcse} {_percent_of_error(error)}{display.if_rough(ess, words)}"
    said = f"found in {fewest} of {whole}{' each' * (len(table) > 1)} ({with_error})"
    if fewest != most:
        said = f"found in {fewest} (cluster {display.as_text(table.index[k])}, {with_error}) to {most} of {whole}"
    jaccard, chance = (_range_of(table[name]) for name in ("jaccard", "chance"))
    near = f"mean Jaccard similarity {jaccard} ({chance} by chance)"
    has = f"a {words.draw} has a cluster if one of its own has a Jaccard similarity above {FOUND:g} to it"
    every = "Clusters are" if len(table) > 1 else "The cluster is"
    if none := table.index[table["found"] == 0].tolist():
        near += f"; no {words.draw} has cluster{'s' * (len(none) > 1)} {display.listed(none, _MOST_NAMED)}"
    return claim.in_words(
        "each cluster",
        f"{said}; {near}",
        [f"{every} {said}: {has}; {near}."],
        f"{every} {said}, where {has} [hennig2007].",
    )


def joined(summary: SummaryRecord) -> Claim:
    """Pairs of clusters that are one in more than a tenth of the draws, with their shares and errors."""
    if summary.clusters is None:
        return Claim()
    pairs, names = summary.clusters.pairs(SAID), [display.as_text(name) for name in summary.clusters.names]
    said = [
        f"{names[first]} and {names[second]} are one in {_share_with_error(summary, share, mcse)}"
        for first, second, share, mcse in pairs.itertuples(index=False)
    ]
    if not said:
        return Claim(limit=SAID)
    line = _the_first(said)
    share, error = pairs[["share", "mcse"]].iloc[0]
    claim = Claim(status=ESTIMATED, number=float(share), error=float(error), limit=SAID, scope=whole_of(summary))
    return claim.in_words("joined", f"clusters {line}", [f"Clusters {line}."], f"Clusters {line}.")


def split(summary: SummaryRecord) -> Claim:
    """Clusters that are split in more than a tenth of the draws, with their shares, errors and largest parts."""
    if summary.clusters is None:
        return Claim()
    table = summary.clusters.to_dataframe().sort_values("split", ascending=False, kind="stable")
    columns = table.loc[table["split"] > SAID, ["split", "split_mcse", "largest_part", "second_part"]]
    said = [
        f"cluster {display.as_text(name)} in {_share_with_error(summary, share, mcse)}, largest parts "
        f"{display.percent(first)} and {display.percent(second)}"
        for name, share, mcse, first, second in columns.itertuples(name=None)
    ]
    if not said:
        return Claim(limit=SAID)
    line = _the_first(said)
    share, error = columns[["split", "split_mcse"]].iloc[0]
    claim = Claim(status=ESTIMATED, number=float(share), error=float(error), limit=SAID, scope=whole_of(summary))
    which = "Clusters are" if len(said) > 1 else "A cluster is"
    return claim.in_words("split", line, [f"{which} split: {line}."])


def _share_with_error(summary: SummaryRecord, share: float, error: float) -> str:
    """Share of the draws with its error."""
    return f"{display.percent(share)} of {whole_of(summary)} ({summary.words.mcse} {_percent_of_error(error)})"


def _percent_of_error(error: float) -> str:
    said = display.error_in_digits(100 * error)
    return said if np.isnan(error) else f"{said}%"


def _the_first(said: Sequence[str]) -> str:
    """The first few clauses, and how many there are more."""
    more = len(said) - _MOST_UNSTABLE
    return "; ".join([*said[:_MOST_UNSTABLE], *[f"{more:,} more above {SAID:.0%}"] * (more > 0)])


def _range_of(values: Any) -> str:
    least, most = (f"{value:.2f}" for value in (values.min(), values.max()))
    return least if least == most else f"{least} to {most}"


def whole_of(summary: SummaryRecord) -> str:
    """Whole of which shares are given."""
    return "the weight" if summary.draws.samples.is_weighted else f"the {summary.words.draws}"


def _share(summary: SummaryRecord) -> float:
    """Share of the draws with the reported number of clusters."""
    return float(number_probabilities(summary.draws)[summary.n_clusters : summary.n_clusters + 1].sum())


def _of_draws(summary: SummaryRecord) -> str:
    """Share of the draws with the reported number of clusters, in words."""
    share = _share(summary)
    return f"in {display.percent(share)} of {whole_of(summary)}" if share > 0 else f"in no {summary.words.draw}"


def _which_have_it(summary: SummaryRecord) -> str:
    """The same as a clause, after "a number that"."""
    share, words = _share(summary), summary.words
    if share == 0:
        return f"no {words.draw} has"
    return f"{display.percent(share)} of {whole_of(summary)} {'has' if summary.draws.samples.is_weighted else 'have'}"


def _reported(summary: SummaryRecord) -> str:
    """Probability of the reported number of clusters, or its share of the runs."""
    share, number = _share(summary), f"{summary.n_clusters:,}"
    if not summary.draws.samples.series:
        return f"{number} {_of_draws(summary)}"
    if 0 < share < 0.005:
        return f"P({number}) < 0.01"
    if 0.995 <= share < 1 - ROUNDING:
        return f"P({number}) > 0.99"
    return f"P({number}) = {share:.2f}" if 0 < share < 1 - ROUNDING else f"P({number}) = {share:.0f}"


def improbable_number(summary: SummaryRecord) -> Claim:
    """Comparison with the most probable number of clusters, if the reported number is improbable."""
    other, best, chance, words = summary.alternative, summary.partition, _of_draws(summary), summary.words
    if not is_improbable(summary.draws, best):
        return Claim()
    probabilities = number_probabilities(summary.draws)
    most = int(probabilities.argmax())
    probable = f"the most {words.probable} number is {most} ({display.percent(probabilities[most])})"
    said = [f"The number of clusters here, {best.n_clusters:,}, is {chance}; {probable}."]
    if other is not None:
        change = other.expected_loss / best.expected_loss - 1
        loss = f"{words.an_expected} loss that is {abs(change):.1%} {'larger' if change >= 0 else 'smaller'}"
        said[0] += (
            f" The best partition found with {counted(most, 'cluster')} has "
            f"{loss if abs(change) >= _ROUNDED else f'the same {words.expected} loss'}."
        )
    if best.n_clusters == 1:
        said.append(_DISAGREEMENT.format(draws=words.draws, mode=words.mode))
    methods = f" (a number that {_which_have_it(summary)})"
    return Claim(findings=said, methods=methods, status=CONTRADICTED, number=_share(summary), scope=whole_of(summary))


def expected_loss(summary: SummaryRecord) -> Claim:
    """Expected loss of the partition, with its error."""
    best, words = summary.partition, summary.words
    number, error = display.rounded(best.expected_loss, best.mcse)
    bound = summary.lower_bound if status_of(summary.optimality_gap or 0.0) == "bounded" else None
    if bound is not None and float(number) < float(display.at_least(bound, ".3g")):  # which is printed, too
        number = f"{best.expected_loss:.3g}"
    value = display.with_unit(number, best.loss.unit)
    none = _without_structure(summary)
    than = f", {none} that {words.draws} with clusters of the same sizes but permuted items have" * bool(none)
    finding = f"The {words.minimized} {display.name_of(best.loss)} of this partition{words.to_draws} is {value}{than}."
    methods = (
        f"{words.an_expected} loss of {value}, estimated on the same {words.draws} ({words.error} {error}"
        f"{_rough_because(best.ess, words)})"
    )
    line = f"{value}, {words.mcse} {error}{display.if_rough(best.ess, words)}"
    line += f" ({none} without structure)" * bool(none)
    scope = f"on the same {words.draws}"
    claim = Claim(status=ESTIMATED, number=best.expected_loss, error=best.mcse, scope=scope)
    return claim.in_words(f"{words.expected} {display.short_name_of(best.loss)}", line, [finding], methods)


def _without_structure(summary: SummaryRecord) -> str:
    """Expected loss as a share of that of permuted draws; empty if this is 0, or unknown because of the loss."""
    best = summary.partition
    if not (isinstance(best.loss, PartitionLoss) and best.loss.is_linear):
        return ""
    none = loss_without_structure(summary.draws, best.loss)
    if none <= ROUNDING:
        return ""
    return f"{display.percent(best.expected_loss / none)} of the {display.quantity(none, best.loss.unit, 3)}"


def new_runs(summary: SummaryRecord) -> Claim:
    """How near new runs are to the partition, by runs that the search did not know."""
    new, name, loss = summary.new_runs, "new runs", summary.ball.loss
    if new is None:
        why = _skipped(summary)
        return Claim(name, f"unknown, because {why}", status=NOT_ASSESSED) if name in summary.cut else Claim()
    words, (distance, of_distance) = summary.words, display.rounded(new.distance, new.distance_error)
    distance = display.with_unit(distance, loss.unit)
    line = f"mean {display.short_name_of(loss)} {distance}, {words.mcse} {of_distance}"
    said = (
        f"The mean {display.name_of(loss)} of a new run to this partition is {distance} ({words.error} {of_distance})"
    )
    if not np.isnan(new.agreement):
        agreement, of_agreement = display.rounded(new.agreement, new.agreement_error)
        line += f"; agreement {agreement}, {words.mcse} {of_agreement}"
        said += f", and its agreement with the clusters {agreement} ({words.error} {of_agreement})"
    said += ", by runs left out of the search."
    return Claim(name, line, [said], said, status=ESTIMATED, number=new.distance, error=new.distance_error)


def rough_error(summary: SummaryRecord) -> Claim:
    """Warning of a rough error of the expected loss."""
    best, words = summary.partition, summary.words
    if not display.is_rough(best.ess, words):
        return Claim()
    finding = (
        f"The {words.error} of the {words.expected} loss, {display.quantity(best.mcse, best.loss.unit, 2)}, is "
        f"rough, because its {words.size} is {display.effective(best.ess, words)}: the error can be much larger."
    )
    if summary.new_runs is None:
        finding += (
            f" The {words.expected} loss itself is too low on average, as the partition was chosen on these few "
            f"{words.draws}."
        )
    return Claim(findings=[finding], number=best.ess)


def _rough_because(ess: float, words: Words) -> str:
    """Reason for a rough standard error, if it is rough."""
    size = f"{words.size} of {display.effective(ess, words)}"
    return f", rough because of an {size}" if display.is_rough(ess, words) else ""


def expectation(loss: Loss, value: float, words: Words) -> str:
    """Name and value of an expected loss."""
    return f"{words.expected} {display.name_of(loss)} {display.quantity(value, loss.unit, 3)}"


def _figure(value: float, form: str, limit: float = np.nan) -> str:
    """Format a number, apart from its limit if it has one."""
    if np.isnan(value):
        return "unknown"
    return "infinite" if np.isinf(value) else display.apart_from(value, limit, form)


def optimality(summary: SummaryRecord) -> Claim:
    """Bound of the minimum expected loss, and how many searches agree."""
    best, bound, words = summary.partition, summary.lower_bound, summary.words
    n_parts = best.info.n_components if isinstance(best.info, ComponentsInfo) else 1
    claim = optimality_of(
        best,
        bound,
        words.expected,
        f"on these {words.draws}",
        no_bound="no bound was computed" if summary.no_certificate else "no bound is known for this loss",
        found=(_agreement(best.info), reached_in_words(best.info)),
        proven=f"proven for each of {n_parts:,} components of linked items" if n_parts > 1 else "proven",
    )
    if claim.error > _LOOSE and summary.certificate and not summary.certificate.left_out:
        return claim._replace(advice="A longer computation, by `pc.certify`, can give a better bound.")
    return claim


def optimality_of(
    best: ConsensusPartition,
    bound: float | None,
    expected: str,
    on: str,
    *,
    no_bound: str = "no bound was computed",
    found: tuple[str, str] = ("", ""),
    unproven: Sequence[str] = (),
    proven: str = "proven",
) -> Claim:
    """That no partition has a smaller loss `on` some draws; else a lower bound of the minimum, and the gap to it.

    `found` says how the search found the partition, in the line and among the findings.
    """
    among, gap = among_of(best.info), np.nan if bound is None else relative_gap(best.expected_loss, bound)
    claim = Claim(number=np.nan if bound is None else bound, error=gap, scope=on, partitions=among)
    if bound is not None and status_of(gap) == "optimal":
        smaller = f"partition{KEPT if among else ''} has a smaller {expected} loss"
        line, finding = f"{proven}: no {smaller} {on}", f"{capitalized(on)}, no other {smaller} ({proven})."
        return claim.in_words("optimality", line, [finding], f"This is {_AT_MINIMUM} {on}{among}.")
    minimum, known, status = "", no_bound, NOT_ASSESSED
    if bound is not None:
        minimum = minimum_in_words(gap, bound, best.loss.unit)
        known, status = "there is no bound above 0", ESTIMATED
    known = f"the minimum {on} is {minimum}{among}" if minimum else known
    shown = f"not proven optimal: minimum {minimum}{among}" if minimum else f"not proven optimal, {known}"
    is_told = bound is not None or not found[1]  # else the searches say enough
    said = [found[1], *[f"the partition is not proven optimal: {known}"] * is_told, *unproven]
    finding = " ".join(f"{capitalized(part)}." for part in filter(None, said))
    which = f", which is {minimum}{among}" if minimum else ""
    line = "; ".join(filter(None, [found[0], shown, *unproven]))
    claim = claim._replace(status=status)
    return claim.in_words("optimality", line, [finding], f"This is not {_AT_MINIMUM}{which}.")


def _agreement(info: Info | None) -> str:
    """How many searches reached the same expected loss, in short; empty for other work."""
    if not isinstance(info, SearchInfo) or info.sample is not None:
        return reached_in_words(info)
    if PERTURBATION in info.kinds or info.n_starts_at_best < 2:
        return info.agreement()
    return f"{info.n_starts_at_best} of {len(info.kinds)} searches agree"


def ball(summary: SummaryRecord) -> Claim:
    """Radius and coverage of the credible ball, and numbers of clusters inside."""
    found, words = summary.ball, summary.words
    prob = f"{100 * found.prob:.6g}%"
    radius = f"{display.quantity(found.radius, found.loss.unit, 3)} ({display.short_name_of(found.loss)})"
    distances = found.distances.values
    is_inside = (distances <= found.radius + SAME * distances.max(initial=0.0)) & (summary.draws.weights > 0)
    numbers = summary.draws.n_clusters[is_inside]
    least, most = int(numbers.min()), int(numbers.max())
    inside, bounds, grows = counted(least, "cluster"), f"{counted(most, 'cluster')} each", ""
    if least != most:
        inside, grows = f"{least:,} to {most:,} clusters", f", a range that grows with the number of {words.draws}"
        bounds = f"{least:,} and {counted(most, 'cluster')}, a range over {words.draws} that grows with their number"
    covered, mcse = display.rounded(100 * found.coverage, 100 * found.coverage_mcse)
    if float(covered) == 100:  # which all draws are, or a few digits more say how many
        covered = f"{100 * found.coverage:.4g}"
    share = f"{covered}% of {whole_of(summary)}"
    error = "" if np.isnan(found.coverage_mcse) else f" ({words.error} {mcse}%)"
    are, lie = ("is", "lies") if summary.draws.samples.is_weighted else ("are", "lie")
    within = f"{share} {lie} within {radius} of this partition{error}"
    finding = f"{within}; the {words.draws} inside have {inside}{grows}."
    if found.radius == 0:
        finding = f"{share} {are} exactly this partition{error}."
    methods = (
        f"The {prob} {words.ball} around this partition [wade2018] has a radius of {radius} and {share}{error}. Its "
        f"vertical bounds have {bounds}."
    )
    of_loss = f" ({display.short_name_of(found.loss)})" * (found.loss.name != summary.partition.loss.name)
    line = f"radius {display.quantity(found.radius, found.loss.unit, 3)}{of_loss}"
    claim = Claim(status=ESTIMATED, number=found.coverage, error=found.coverage_mcse, limit=found.radius)
    return claim.in_words(f"{prob} {words.ball}", line, [finding], methods)


def misplaced(summary: SummaryRecord) -> Claim:
    """Expected number of items outside their cluster, and those that are more probably outside than in it."""
    items, words = summary.items, summary.words
    if items.membership is None:
        return _dissimilar(summary)
    claim = Claim(status=ESTIMATED, number=items.misplaced, error=items.misplaced_mcse)
    doubted = by_doubt(items)
    names = doubted.index[doubted < EVEN].tolist()
    total, one = _items(summary, summary.draws.n_items), _item(summary)
    if items.misplaced <= ROUNDING:
        said = f"no {one} is outside its cluster in any {words.draw}"
        return claim.in_words("uncertain items", said, [f"{capitalized(said)}."], f"{capitalized(said)}.")
    number = f"{misplaced_in_words(items)} of {total}"
    line = f"{number} {words.misplaced}; membership below {EVEN:g}: {_named(names, summary)}"
    said = f"A {words.draw} has {number} outside their cluster, on average."
    doubt = f"is below {EVEN:g} for {_items(summary, len(names)) if names else f'no {one}'}"
    finding = f"{said} Membership {doubt}{_after_colon(names)}."
    methods = f"{said} Membership, the {words.probability} of each {one}'s own cluster, {doubt}."
    return claim.in_words("uncertain items", line, [finding], methods)


def _dissimilar(summary: SummaryRecord) -> Claim:
    """Items with a low mean similarity to the rest of their cluster, if there are no memberships."""
    words, doubted = summary.words, by_doubt(summary.items)
    names = doubted.index[doubted < EVEN].tolist()
    similarity = f"mean {words.similarity} below {EVEN:g}"
    n_alone = int(doubted.isna().sum())
    alone = f"; {counted(n_alone, 'item')} on {'its' if n_alone == 1 else 'their'} own not looked at" if n_alone else ""
    has = "has" if len(names) == 1 else "have"
    said = f"{_items(summary, len(names))} {has} a {similarity} {words.to} the rest of the cluster"
    return Claim(
        "uncertain items",
        f"number misplaced not computed, too many clusters; {similarity}: {_named(names, summary)}{alone}",
        [f"{said}{_after_colon(names)}{alone}."],
        f"{said}.",
        status=NOT_ASSESSED,
        scope="too many clusters",
    )


def _named(names: Sequence[Any], summary: SummaryRecord) -> str:
    """Items with their noun, so that the name 77 is not read as a number of items."""
    noun = _item(summary)
    noun = noun if len(names) == 1 else display.plural(noun)
    return f"{noun} {display.listed(names, _MOST_NAMED)}" if names else "none"


def _after_colon(names: Sequence[Any]) -> str:
    return f": {display.listed(names, _MOST_NAMED)}" if names else ""


def links(summary: SummaryRecord) -> Claim:
    """Sizes of many small clusters, uncertain links, and the first candidates for joining."""
    found, words = summary.links, summary.words
    if found is None:
        return Claim()
    sure, uncertain, _ = found.n_by_certainty
    line = (
        f"{sure:,} with {words.a_similarity} above {SURE:g} and {uncertain:,} uncertain ones, shown instead of "
        f"clusters {_LINKS_BECAUSE}; `links.uncertain` lists the uncertain ones"
    )
    names = {size: _LINK_SIZES.get(size, f"clusters of {size} items") for size in found.sizes["size"].values[:-1]}
    by_size = [f"{range_of(found.sizes.sel(size=size))} {name}" for size, name in names.items()]
    similarity = found.pairs["similarity"].values
    within = int(np.sum(found.within & (similarity >= UNLIKELY) & (similarity <= SURE)))
    here = f", {'all' if within == uncertain else f'{within:,}'} of which the partition co-clusters"
    findings = [
        f"Figures and tables show links, which are pairs of items in one cluster, {_LINKS_BECAUSE}.",
        f"There are {display.joined(by_size[:_MOST_LINK_SIZES])} (central 90% intervals).",
        (
            f"{counted(sure, 'link')} {'has' if sure == 1 else 'have'} {words.a_similarity} above {SURE:g}, and "
            f"{uncertain:,} {words.a_similarity} from {UNLIKELY:g} to {SURE:g}{here if uncertain else ''}."
        ),
    ]
    joined = found.between_clusters().head(1)
    for first, second, mean in zip(
        joined["first_cluster"], joined["second_cluster"], joined["similarity"], strict=True
    ):
        one, other = (display.listed(summary.partition.clusters[cluster], SMALL) for cluster in (first, second))
        findings.append(
            f"The first candidates for joining are the clusters of {one} and of {other}: the links between them have a "
            f"mean {words.similarity} of {mean:.2f}."
        )
    return Claim("links", line, findings, number=sure)


def groups(summary: SummaryRecord) -> Claim:
    """That the draws have one mode, or which; a single mode is not reported if the chains disagree."""
    found, words, samples = summary.modes, summary.words, summary.draws.samples
    name, why, said = f"other {words.mode}s", "", ""
    if found is None:
        why = "not searched for"
    elif not samples.has_errors:
        why = f"too few {words.draws}{f' in a {words.chain}' if samples.series else ''} to find {words.mode}s"
    elif found.n_particles > 1:
        return _several_modes(summary, found)
    elif found.stopped and found.status == "unknown":
        why = f"unknown: the search {display.ended(found.stopped, 'was')}"
    elif summary.diagnosis.status == "disagree":
        why = f"one or several: undecided, because the {words.chains} do not agree"
    elif found.status == "unknown":
        why = f"too few effective {words.draws} to distinguish one {words.mode} from several"
    if found is None or why:
        is_told = found is not None and samples.has_errors and found.status == "unknown"
        return Claim(name, why, [found.verdict] if found and is_told else [], status=NOT_ASSESSED, scope=why)
    limit, scope = found.least_share, _draws_searched(found, summary.draws.n_draws)
    unseen = missed(words, whole_of(summary), limit)
    said = f"A search for {words.mode}s on {scope} found no second {words.mode}; {unseen}."
    seen = seen_from(limit)
    of_runs = f"none found; one below {seen} of {whole_of(summary)} may be missed"
    line = f"{words.either(f'none found above {seen}', of_runs)} ({scope} searched)"
    line += "; one chain may miss any" * (bool(samples.series) and len(samples.chains) == 1)
    return Claim(name, line, [said], said, status=ESTIMATED, number=1, limit=limit, scope=scope)


def _draws_searched(found: Particles, total: int) -> str:
    """Number of draws in the search for modes, of how many."""
    number, draws = found.n_draws_searched, found.words.draws
    return f"all {total:,} {draws}" if number == total else f"{number:,} of {total:,} {draws}"


def _several_modes(summary: SummaryRecord, found: Particles) -> Claim:
    """Weights of the modes with errors, and how their partitions differ from the consensus."""
    own, findings = alone(summary.partition.labels.values), [found.verdict]
    for mode, labels in named_modes(summary):
        changes = differences_in_words(own, labels, cluster_names(summary.partition, own))
        if (more := len(changes) - _MOST_CHANGES) > 0:
            changes[_MOST_CHANGES:] = [f"there {'is' if more == 1 else 'are'} {counted(more, 'further change')}"]
        other = f"In the partition of {mode}, {'; '.join(changes)}."
        findings.append(other if changes else f"The partition of {mode} is the partition above.")
    weights = found.weights.values
    shares = display.joined([display.percent(weight) for weight in weights])
    unit, words = found.loss.unit, summary.words
    draws, name = words.draws, f"other {words.mode}s"
    line = f"{weights.size} {words.mode}s, with {shares} of {whole_of(summary)}, in `summary.modes`"
    is_whole = (found.n_searched, found.n_draws_searched) == (summary.draws.n_items, summary.draws.n_draws)
    of_one = f", compared with {display.quantity(float(found.path['distance'][0]), unit, 3)} for one partition"
    methods = (
        f"The {draws} have {weights.size} {words.mode}s with few {draws} between them. The "
        f"{words.either('posterior was', 'runs were')} also represented by one partition for each, nearest to "
        f"{words.either('it', 'them')} in Wasserstein distance "
        "[balocchi2025]. Their weights are "
        f"{display.joined([f'{weight:.2g}' for weight in weights])} ({words.error} at most "
        f"{display.at_most(np.max(found.weights_mcse.values), '.2g')}"
        f"{_rough_because(float(found.weights_ess.min()), words)}), "
        f"and the mean distance is {display.quantity(found.distance, unit, 3)} ({display.short_name_of(found.loss)})"
        f"{of_one * is_whole}."
    )
    if found.status == "chains in different modes":
        stay = words.either(_who_stays(found), "the groups are of different kinds")
        line, methods = f"{line}; {stay}", ""
    return Claim(name, line, findings, methods, status=CONTRADICTED, number=weights.size)


def _who_stays(found: Particles) -> str:
    """That no chain visits several modes, or which chains stay in some or hardly ever visit one."""
    if ((found.by_chain.values > 0).sum(axis=1) == 1).all():
        return f"no chain visits {'both' if found.n_particles == 2 else 'two of them'}"
    if len(found.chains) == found.by_chain.shape[0]:
        return "the chains do not mix between them"
    several, names = len(found.chains) > 1, display.listed(list(found.chains), _MOST_NAMED)
    return f"chain{'s' * several} {names} do{'es' * (not several)} not mix between them"


def named_modes(summary: SummaryRecord) -> Iterator[tuple[str, Labels]]:
    """Name with share, and partition, of each mode; none of a single mode."""
    found, mode = summary.modes, summary.words.mode
    if found is not None and found.n_particles > 1:
        for k, (weight, labels) in enumerate(zip(found.weights.values, found.partitions.values, strict=True)):
            yield f"the {display.ordinal(k)} {mode} ({display.percent(weight)} of {whole_of(summary)})", labels


def more_draws(summary: SummaryRecord) -> Claim:
    """Effect of more draws; no finding after searches that ended early, as these began at the partition."""
    excess, best, words = summary.excess, summary.partition, summary.words
    draws, name = words.draws, f"more {words.draws}"
    if excess is None or excess.stopped:
        why = no_halves_because(summary.draws, best, summary.diagnosis) or _skipped(summary)
        if excess is not None:
            why = f"{_on_halves(words)} {display.ended(excess.stopped, 'were')}"
        return Claim(name, f"effect unknown, because {why}", status=NOT_ASSESSED, scope=why)
    claim = Claim(status=ESTIMATED, number=excess.value, limit=excess.limit)
    if excess.value == 0:
        equal = f"best partitions of the same {words.expected} loss"
        alike = "the same best partition" if excess.distance == 0 else equal
        same = f"two halves of the {draws} have {alike}"
        return claim.in_words(name, f"both halves have {alike}", [f"No effect of {name} is seen: {same}."])
    value, twice = (display.quantity(loss, best.loss.unit, 2) for loss in (excess.value, 2 * excess.value))
    limit = display.with_unit(display.at_most(excess.limit, ".2g"), best.loss.unit)
    value = f"{value} ({100 * excess.value / best.expected_loss:.2g}%)"
    apart = f"differ by {display.quantity(excess.distance, summary.ball.loss.unit, 2)}"
    line = f"would lower the {words.expected} loss by about {value}, at most {limit} (86% bound)"
    finding = f"More {draws} {line}. The best partitions of two halves of the {draws} {apart}."
    if summary.new_runs is None:
        finding += (
            f" The {words.expected} loss on these {draws} is too low by about {twice}, as the partition was chosen on "
            "them."
        )
    methods = (
        f"By searches on two halves of the {draws}, whose best partitions {apart}, the {words.expected} loss of the "
        f"partition exceeds the minimum under infinitely many {draws} by about {value}."
    )
    return claim.in_words(name, line, [finding], methods)


def _on_halves(words: Words) -> str:
    """Name of the searches on halves of the draws."""
    return f"the searches on two halves of the {words.draws}"


def _skipped(summary: SummaryRecord) -> str:
    """Why steps were left out."""
    return why_skipped(summary.partition, summary.excess, summary.resampled, summary.alternative, summary.modes)


def other_labels(summary: SummaryRecord) -> Claim:
    """Difference of the best partition for labels sampled anew, if there is one."""
    other, own = summary.resampled, summary.partition.labels.values
    if other is None:
        return Claim()
    moved = int(np.sum(numbered_like(own, other.labels.values) != other.labels.values))
    if moved == 0:
        return Claim()
    here, there = mean_loss(summary.draws, np.stack([own, other.labels.values]), summary.loss)
    change = there / here - 1
    size = f"{100 * abs(change):.2g}% {'larger' if change >= 0 else 'smaller'}" if abs(change) > SAME else "the same"
    said = (
        f"The partition depends on the labels sampled from the allocation probabilities: with labels sampled anew, "
        f"{counted(moved, 'item')} {'changes' if moved == 1 else 'change'} clusters. The expected loss of that "
        f"partition, under the labels used here, is {size}."
    )
    return Claim(findings=[said], methods=said, status=CONTRADICTED, number=moved)


def chains(summary: SummaryRecord) -> Claim:
    """That the chains agree: the verdict on them, and how convergence was assessed."""
    diagnosis, words = summary.diagnosis, summary.words
    if diagnosis.spread is not None:
        return _runs(summary)
    if summary.draws.n_items == 1:
        methods = diagnosis.verdict
    elif diagnosis.n_chains == 1:
        methods = "Convergence could not be assessed, because there is one chain."
    elif diagnosis.status == "unknown":
        methods = f"Convergence could not be assessed. {without_advice(diagnosis.sentences)}"
    else:
        rhat, of_partition = (
            _figure(one, ".3f", RHAT_WANTED) for one in (max(diagnosis.worst_rhat, 1.0), diagnosis.partition_rhat)
        )
        ess = _figure(diagnosis.least_ess, ",.0f", ESS_PER_CHAIN * diagnosis.n_chains)
        ignored = "; R-hat and this difference ignore the weights" if summary.draws.samples.is_weighted else ""
        methods = (
            "Convergence was assessed by rank-normalized split R-hat and effective sample sizes [vehtari2021] of the "
            "number of clusters, the cluster sizes and distances to partitions. The partition itself was assessed by "
            "its effective sample size and by its split R-hat, from Gelman and Rubin's variances [gelman1992], whose "
            f"limit {RHAT_WANTED} is a convention. The largest R-hat was {rhat}, the partition's {of_partition}, the "
            f"smallest effective sample size {ess}, and two chains' posterior similarities of a pair differed by at "
            f"most {display.at_most(diagnosis.largest_difference.size, '.2f')}{ignored}."
        )
        if diagnosis.status == "agree":
            limit = agreement_in_words(diagnosis)[-1]
            methods += f" Below about {limit} of the draws, a mode that one chain misses would have gone unnoticed."
        if diagnosis.status == "short":
            methods += (
                f" By the limits of {RHAT_WANTED} and of {ESS_PER_CHAIN} effective draws for each chain, the chains "
                "are short."
            )
    line, finding = map(by_summary, (_chains_line(diagnosis), diagnosis.verdict))
    return agreement(diagnosis).in_words(words.chains, line, [finding], methods)


def by_summary(verdict: str) -> str:
    """A verdict on chains whose command takes the draws of the summary, which its user need not have otherwise."""
    return re.sub(r"`draws\.(i?sel)\(", r"`summary.draws.\1(", verdict)


def in_doubt(summary: SummaryRecord) -> str:
    """What makes the result doubtful in few words, if the chains do not agree or are too short to tell; else empty."""
    status, chains = summary.diagnosis.status, summary.words.chains
    if status == "disagree":
        return f"the {chains} do not agree"
    if not summary.draws.samples.series:
        return ""
    return {"short": f"the {chains} are short", "unknown": "convergence is unknown"}.get(status, "")


def _chains_line(diagnosis: Diagnosis) -> str:
    """The verdict after the word "chains"; if they agree or are short, with its numbers in short."""
    if diagnosis.partition.size == 1:
        return diagnosis.verdict
    if diagnosis.status == "short":
        return _short_line(diagnosis)
    if diagnosis.status != "agree":
        said = as_line(diagnosis.sentences)
        return f"unknown: {said[0].lower()}{said[1:]}" if diagnosis.status == "unknown" else said
    n_items, n_compared = diagnosis.partition.size, diagnosis.n_compared
    some = f" (pairs of {n_compared:,} items, chosen at random)" * (n_compared < n_items)
    where = f", similarities of chains within {display.at_most(agreement(diagnosis).number, '.2f')}{some}"
    return _with_further(agreement_in_short(diagnosis, where=where), diagnosis)


def agreement(*diagnoses: Diagnosis) -> Claim:
    """That chains agree; their largest difference, and the share below which a mode that one misses is not seen."""
    largest = max((one.largest_difference for one in diagnoses), key=lambda one: np.nan_to_num(one.size, nan=-1.0))
    missed = float(np.fmax.reduce([one.could_miss for one in diagnoses]))
    status = _OF_CHAINS.get(worst_status(diagnoses), NOT_ASSESSED)
    return Claim(status=status, number=largest.size, error=largest.mcse, limit=missed)


def worst_status(diagnoses: Collection[Diagnosis]) -> str:
    """The worst status of several diagnoses."""
    return min((one.status for one in diagnoses), key=_WORST_FIRST.index)


def agreement_in_words(*diagnoses: Diagnosis) -> tuple[str, str, str]:
    """Largest R-hat, smallest effective sample size, and share below which a mode that one chain misses is not seen."""
    rhat, ess = _largest_rhat(diagnoses), np.fmin.reduce([one.least_ess for one in diagnoses])
    limit = display.at_most(agreement(*diagnoses).limit, ".0%")
    return display.apart_from(rhat, RHAT_WANTED, ".3f"), display.at_least(ess, ",.0f"), limit


def agreement_in_short(*diagnoses: Diagnosis, where: str) -> str:
    """That chains agree, with their numbers beside the limits, and what one chain could miss."""
    numbers = ", ".join(text for text, _ in _beside_limits(*diagnoses))
    return f"agree: {numbers}{where}; not seen if one misses a mode below {agreement_in_words(*diagnoses)[-1]}"


def _largest_rhat(diagnoses: Sequence[Diagnosis]) -> float:
    return float(np.fmax.reduce([1.0, *(one.worst_rhat for one in diagnoses)]))


def _beside_limits(*diagnoses: Diagnosis) -> Iterator[tuple[str, bool]]:
    """Smallest effective sample size and largest R-hat, each beside its limit, and whether it keeps it."""
    shortest = min(diagnoses, key=lambda one: one.least_ess)
    ess, wanted = shortest.least_ess, ESS_PER_CHAIN * shortest.n_chains
    yield f"ESS {display.apart_from(ess, wanted, ',.0f')} {'<' if ess < wanted else '>'} {wanted:,}", ess >= wanted
    rhat = _largest_rhat(diagnoses)
    kept = rhat <= RHAT_WANTED
    by_chance = f" (not above {RHAT_BAD} beyond chance)" * (rhat > RHAT_BAD)
    yield f"R-hat {display.apart_from(rhat, RHAT_WANTED, '.3f')} {'<' if kept else '>'} {RHAT_WANTED}{by_chance}", kept


def _with_further(line: str, diagnosis: Diagnosis) -> str:
    """A line instead of the first two sentences of the verdict, which are those of the status."""
    further = diagnosis.sentences[2:]
    return f"{line}. {in_full(further)}" if further else line


def _short_line(diagnosis: Diagnosis) -> str:
    """What is short; the advice is left to the findings."""
    said = ", ".join(text for text, is_kept in _beside_limits(diagnosis) if not is_kept)
    return _with_further(f"short: {said}", diagnosis)


def _runs(summary: SummaryRecord) -> Claim:
    """Verdict on independent runs: how far they are apart, and whether their groups differ, if there are several."""
    diagnosis, has_groups = summary.diagnosis, len(summary.draws.samples.chains) > 1
    begins = diagnosis.status == "disagree"  # the methods text
    methods = "" if begins else without_advice(diagnosis.sentences)
    name, line = "groups" if has_groups else "repetition", as_line(diagnosis.sentences)
    return agreement(diagnosis).in_words(name, line, [diagnosis.verdict], methods)


def omissions(summary: SummaryRecord) -> Claim:
    """Computations that were skipped, ended early or used some items only, with reasons."""
    n, certificate, found, words = summary.draws.n_items, summary.certificate, summary.modes, summary.words
    of_bound = summary.no_certificate if certificate is None else certificate.left_out
    sentences = [*_ended_early(summary), *filter(None, [of_bound]), *_second_searches(summary)]
    if n > MOST_OF_PAIRS:
        sentences.append(
            f"The similarity matrix was not formed, because it would need {memory.in_words(8 * n**2)}: figures show "
            f"the matrix of {SOME_OF_PAIRS:,} items, chosen at random."
        )
    if n > MOST_IN_ROW:
        sentences.append(f"Figures of single items show {MOST_IN_ROW:,} of them.")
    if summary.diagnosis.n_compared < n:
        sentences.append(
            f"{capitalized(words.chains)} are compared by the pairs of {summary.diagnosis.n_compared:,} items, chosen "
            "at random, and by the sizes and distances of whole partitions."
        )
    if found is not None:
        some = [f"{found.n_searched:,} items, chosen at random"] * (found.n_searched < n)
        some += [_draws_searched(found, summary.draws.n_draws)] * (found.n_draws_searched < summary.draws.n_draws)
        if some:
            sentences.append(f"Further {words.mode}s were searched for on {display.joined(some)}.")
    return Claim("left out", " ".join(sentences), sentences, " ".join(sentences))


def _ended_early(summary: SummaryRecord) -> Iterator[str]:
    """Steps that the time limit, Ctrl-C or the caller ended or skipped."""
    found, other, cut, words = summary.modes, summary.alternative, summary.cut, summary.words
    groups = f"further {words.mode}s"
    if by := _BY[stopped(summary.partition)]:
        yield f"The search was stopped by {by}: a longer one may find a better partition."
    by = "" if other is None else _BY[stopped(other)]
    if by or (other is None and "alternative" in cut):
        how = f"searched for until {by}" if by else f"not searched for, because {_skipped(summary)}"
        yield f"The best partition with the most {words.probable} number of clusters was {how}."
    if found is None:
        why = f"because {_skipped(summary)}" if "modes" in cut else "as requested"
        yield f"No search for {groups} was made, {why}."
    elif found.stopped:
        yield f"The search for {groups} {display.ended(found.stopped, 'was')}."


def _second_searches(summary: SummaryRecord) -> Iterator[str]:
    """Searches on halves of the draws, and with other labels, that were skipped or ended early."""
    excess, other, best = summary.excess, summary.resampled, summary.partition
    too_many = no_halves_because(summary.draws, best, summary.diagnosis) == TOO_MANY
    for searches, be, ended, step, is_missed in (
        (capitalized(_on_halves(summary.words)), "were", excess and excess.stopped, "halves", too_many),
        (_OTHERS, "was", other and stopped(other), OTHER_LABELS, uses_sampled_labels(summary.draws, best)),
    ):
        late = step in summary.cut
        if ended:
            yield f"{searches} {display.ended(ended, be)}."
        elif ended is None and (late or is_missed):
            yield f"{searches} {be} not made, because {_skipped(summary) if late else TOO_MANY}."


_TOPICS = (  # in the order of the findings
    *(
        sizes,
        noise,
        missing,
        number,
        found,
        joined,
        split,
        links,
        improbable_number,
        groups,
        ball,
        expected_loss,
        new_runs,
        optimality,
        more_draws,
    ),
    *(other_labels, rough_error, misplaced, draws, omissions, chains),
)
FIRST_LINES = (
    *("chains", "draws", "expected_loss", "new_runs", "ball", "number", "found", "joined", "split", "noise", "missing"),
    *("misplaced", "links", "groups", "more_draws", "optimality"),
)


def claims_of(summary: SummaryRecord) -> dict[str, Claim]:
    """Claims of a summary by the name of their topic, in the order of the findings."""
    return {topic.__name__: topic(summary) for topic in _TOPICS}
