"""Sentences of a summary of draws for a paper, from its claims."""

import posterior_consensus
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.losses.partition_losses import tau_of
from posterior_consensus.results.display import counted, name_of
from posterior_consensus.results.sentences import without_advice
from posterior_consensus.summary.about_draws import by_summary, claims_of, in_doubt
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.references import key_of, with_references

NOT_TO_REPORT = "These results must not be reported."
_A_SHARE = ". A share of runs is not a probability: it describes how the result varies between runs"


def methods_text(summary: SummaryRecord) -> str:
    """Sentences for the methods section, and the references they cite."""
    words = {topic: claim.methods for topic, claim in claims_of(summary).items()}
    of, doubt, is_bad = words.pop, "", summary.diagnosis.status == "disagree"
    if in_doubt(summary):
        doubt, words["chains"] = words["chains"], ""
    chains, omissions = of("chains"), of("omissions")
    about_number = summary.words.either(" [miller2014]", _A_SHARE)
    report, was = ("The", " was") if is_bad else ("We report the", "")
    said = [
        *(of("draws"), doubt),
        (
            f"{report} partition{how_found(summary, was)}. It has {of('sizes')}{of('improbable_number')} and "
            f"{of('expected_loss')}. {of('optimality')}"
        ),
        *map(of, ("new_runs", "ball", "number", "found", "joined", "misplaced")),
        f"The number of clusters describes this partition and {summary.words.number}{about_number}.",
        *map(of, ("more_draws", "other_labels", "groups")),
        *words.values(),  # of claims that have no place of their own
        *(chains, omissions),
    ]
    text = " ".join(filter(None, said))
    if is_bad:
        warning = summary.words.either(NOT_TO_REPORT, "One partition must not stand for all.")
        text = f"{warning} {by_summary(without_advice(summary.diagnosis.sentences))}\n\n{text}"
    return with_references(text, summary.loss)


def how_found(summary: SummaryRecord, was: str = "") -> str:
    """Requested number of clusters, loss, method and seed of the search, as continuation of "partition"."""
    best, limits, key = summary.partition, summary.partition.cluster_limits, key_of(summary.loss.reference)
    spoken = summary.words
    number, threshold = limits.n_clusters or limits.max_clusters, ""
    most = "" if limits.n_clusters else "at most "
    requested = f" into {most}{counted(number, 'cluster')}" if number else ""
    if best.threshold is not None:
        chosen = f", calibrated on the same {spoken.draws}," if best.threshold.calibrated else ""
        threshold = f" at a pair threshold of {best.threshold.tau:.3g}{chosen}"
    how = "by greedy search [dahl2022]" if best.method == "greedy" else f"by the method {best.method!r}"
    binder = summary.loss.as_binder()
    if binder is not None and isinstance(best.info, ComponentsInfo) and best.method == "greedy":
        tau = f"{tau_of(binder):.3g}"
        how = f"in each connected component of the pairs whose {spoken.similarity} exceeds {tau},"
    return (
        f"{requested} of minimum {spoken.minimized} {name_of(best.loss)}{f' [{key}]' if key else ''}{spoken.to_draws}"
        f"{threshold}{was} found {how} {with_version(summary.seed)}"
    )


def with_version(seed: int | None) -> str:
    """Version of the package and seed of a search, as continuation of "found"."""
    seeded = "no recorded random seed" if seed is None else f"random seed {seed}"
    return f"with posterior_consensus {posterior_consensus.__version__} [posterior_consensus] and {seeded}"
