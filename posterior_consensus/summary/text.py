"""Texts of a summary, from its facts: printed lines, findings, and sentences for a paper with their references."""

import posterior_consensus
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.losses.partition_losses import tau_of
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.display import counted, name_of
from posterior_consensus.results.sentences import without_advice
from posterior_consensus.summary.facts import facts_of, in_doubt
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.references import cited_keys, key_of, reference

_LINES = (
    *("chains", "draws", "expected_loss", "new_runs", "ball", "number", "noise", "misplaced", "links"),
    *("groups", "more_draws", "optimality", "omissions"),
)
_METHODS = (
    "{draws}",
    "{doubt}",
    "{report} partition{how_found}. It has {sizes}{improbable_number} and {expected_loss}. {optimality}",
    *("{new_runs}", "{ball}", "{number}", "{misplaced}"),
    "The number of clusters describes this partition and {about_number}.",
    *("{more_draws}", "{other_labels}", "{groups}", "{chains}", "{omissions}"),
)


def lines(summary: SummaryRecord) -> list[tuple[str, str]]:
    """Named values for the head of the printed summary."""
    facts = facts_of(summary, *_LINES)
    return [facts[topic][:2] for topic in _LINES if facts[topic].line]


def findings(summary: SummaryRecord) -> list[str]:
    """Findings in plain sentences; the verdict on the chains is the last one, or the first one if it is a doubt."""
    facts = facts_of(summary)
    if in_doubt(summary):
        facts = {"chains": facts.pop("chains"), **facts}
    return [sentence for fact in facts.values() for sentence in fact.findings]


def methods_text(summary: SummaryRecord) -> str:
    """Sentences for the methods section, and the references they cite."""
    words = {topic: fact.methods for topic, fact in facts_of(summary).items()}
    is_bad = summary.diagnosis.status == "disagree"
    words |= {"how_found": how_found(summary, " was" * is_bad), "report": "The" if is_bad else "We report the"}
    words |= {"about_number": f"{summary.words.number}{summary.words.after_number}", "doubt": ""}
    if in_doubt(summary):
        words |= {"doubt": words["chains"], "chains": ""}
    text = " ".join(filter(None, (sentence.format(**words) for sentence in _METHODS)))
    if is_bad:
        text = f"{summary.words.not_all} {without_advice(summary.diagnosis.sentences)}\n\n{text}"
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


def with_references(text: str, loss: Loss) -> str:
    """A text, then the references that it cites, and that of the loss."""
    cited = [f"{reference(key)} [{key}]" for key in cited_keys(text)]
    if key_of(loss.reference) is None and loss.reference:
        cited.append(f"{loss.reference} (the loss)")
    return text + "\n\n" + "\n".join(cited)
