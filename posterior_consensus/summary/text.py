"""Texts of a summary, from its facts: printed lines, findings, and sentences for a paper with their references."""

import re
from importlib import resources

import posterior_consensus
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.losses.partition_losses import tau_of
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display
from posterior_consensus.results.display import counted, name_of
from posterior_consensus.results.words import words_of
from posterior_consensus.summary.facts import facts_of
from posterior_consensus.summary.record import SummaryRecord

REFERENCES = {
    "balocchi2025": "Balocchi and Wade (2025), https://doi.org/10.48550/arXiv.2506.16295",
    "bansal2004": "Bansal, Blum and Chawla (2004), https://doi.org/10.1023/B:MACH.0000033116.57574.95",
    "binder1978": "Binder (1978), https://doi.org/10.1093/biomet/65.1.31",
    "buch2024": "Buch, Dewaskar and Dunson (2024), https://doi.org/10.48550/arXiv.2403.04912",
    "dahl2022": "Dahl, Johnson and Mueller (2022), https://doi.org/10.1080/10618600.2022.2069779",
    "gelfand1990": "Gelfand and Smith (1990), https://doi.org/10.1080/01621459.1990.10476213",
    "gelman1992": "Gelman and Rubin (1992), https://doi.org/10.1214/ss/1177011136",
    "hubert1985": "Hubert and Arabie (1985), https://doi.org/10.1007/BF01908075",
    "levandowsky1971": "Levandowsky and Winter (1971), https://doi.org/10.1038/234034a0",
    "meila2007": "Meila (2007), https://doi.org/10.1016/j.jmva.2006.11.013",
    "miller2014": "Miller and Harrison (2014), https://jmlr.org/papers/v15/miller14a.html",
    "posterior_consensus": f"The posterior_consensus developers, version {posterior_consensus.__version__}",
    "strehl2002": "Strehl and Ghosh (2002), https://jmlr.org/papers/v3/strehl02a.html",
    "vehtari2021": "Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221",
    "vinh2010": "Vinh, Epps and Bailey (2010), https://jmlr.org/papers/v11/vinh10a.html",
    "wade2018": "Wade and Ghahramani (2018), https://doi.org/10.1214/17-BA1073",
}
_LINES = (
    *("draws", "expected_loss", "optimality", "ball", "number", "noise", "ambiguous", "links", "groups", "more_draws"),
    *("chains", "omissions"),
)
_METHODS = (
    "{draws}",
    "{report} partition{how_found}{has} {sizes}{improbable_number}{and_} {expected_loss}{optimality}.",
    "{ball}; {number}; {ambiguous}.",
    "The number of clusters describes this partition and {about_number}.",
    *("{more_draws}", "{other_labels}", "{groups}", "{chains}", "{omissions}"),
)


def lines(summary: SummaryRecord) -> list[tuple[str, str]]:
    """Named values for the head of the printed summary."""
    facts = facts_of(summary, *_LINES)
    shown = [facts[topic][:2] for topic in _LINES if facts[topic].line]
    return [*shown, ("time", display.duration(sum(summary.seconds.values())))]


def findings(summary: SummaryRecord) -> list[str]:
    """Findings in plain sentences."""
    return [sentence for fact in facts_of(summary).values() for sentence in fact.findings]


def methods_text(summary: SummaryRecord) -> str:
    """Sentences for the methods section, and the references they cite."""
    words = {topic: fact.methods for topic, fact in facts_of(summary).items()}
    words |= {"how_found": how_found(summary), "report": "We report the", "has": ":", "and_": ", with"}
    words |= {"about_number": about_number(summary)}
    if is_bad := summary.diagnosis.status == "disagree":
        words |= {"report": "The", "has": " has", "and_": " and"}
    text = " ".join(filter(None, (sentence.format(**words) for sentence in _METHODS)))
    if is_bad:
        warning = (
            "One partition must not stand for all" if summary.independent else "These results must not be reported"
        )
        text = f"{warning}. {summary.diagnosis.verdict}\n\n{text}"
    return with_references(text, summary.loss)


def how_found(summary: SummaryRecord) -> str:
    """Requested number of clusters, loss and method of the search, as continuation of "partition"."""
    best, limits, key = summary.consensus, summary.consensus.cluster_limits, loss_key(summary.loss)
    spoken = words_of(summary)
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
        how = f"in each connected component of the pairs whose {spoken.together} exceeds {tau},"
    return (
        f"{requested} of minimum {spoken.minimized} {name_of(best.loss)}{f' [{key}]' if key else ''}{spoken.to_draws}"
        f"{threshold} found {how} with posterior_consensus {posterior_consensus.__version__} [posterior_consensus]"
    )


def about_number(summary: SummaryRecord) -> str:
    """What the number of clusters says, and a share of runs, as continuation of "and"."""
    number = words_of(summary).number
    if summary.independent:
        return f"{number}. A share of runs is not a probability: it describes how the result varies between runs"
    return f"{number} [miller2014]"


def with_references(text: str, loss: Loss) -> str:
    """Sentences, followed by the references that they cite and the reference of the loss."""
    cited = [f"{REFERENCES[key]} [{key}]" for key in cited_keys(text)]
    if loss_key(loss) is None and loss.reference:
        cited.append(f"{loss.reference} (the loss)")
    return text + "\n\n" + "\n".join(cited)


def loss_key(loss: Loss) -> str | None:
    """Key of the reference that defines a loss; None for a user's loss."""
    matches = (key for key, text in REFERENCES.items() if loss.reference and text.endswith(loss.reference))
    return next(matches, None)


def cited_keys(text: str) -> list[str]:
    """Keys in square brackets, in order of first appearance."""
    return [key for key in dict.fromkeys(re.findall(r"\[(\w+)\]", text)) if key in REFERENCES]


def bibtex(keys: list[str]) -> str:
    """BibTeX entries of these keys."""
    file = resources.files("posterior_consensus.summary").joinpath("references.bib").read_text(encoding="utf-8")
    entries = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in file.strip().split("\n\n")}
    version = posterior_consensus.__version__
    return "\n\n".join(entries[key].replace("{VERSION}", f"{{{version}}}") for key in keys)
