"""Texts of a summary, from its facts: printed lines, findings, and sentences for a paper with their references."""

import re
from importlib import resources

import posterior_consensus
from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.losses.partition_losses import tau_of
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.display import counted, name_of
from posterior_consensus.results.words import words_of
from posterior_consensus.summary.facts import facts_of
from posterior_consensus.summary.record import SummaryRecord

REFERENCES = {
    "balocchi2025": (
        "Balocchi, C. and Wade, S. (2025). Interpreting uncertainty in Bayesian cluster analysis. arXiv:2506.16295. "
        "https://doi.org/10.48550/arXiv.2506.16295"
    ),
    "bansal2004": (
        "Bansal, N., Blum, A. and Chawla, S. (2004). Correlation clustering. Machine Learning 56(1-3), 89-113. "
        "https://doi.org/10.1023/B:MACH.0000033116.57574.95"
    ),
    "binder1978": (
        "Binder, D. A. (1978). Bayesian cluster analysis. Biometrika 65(1), 31-38. "
        "https://doi.org/10.1093/biomet/65.1.31"
    ),
    "buch2024": (
        "Buch, D., Dewaskar, M. and Dunson, D. B. (2024). Bayesian level set clustering. arXiv:2403.04912. "
        "https://doi.org/10.48550/arXiv.2403.04912"
    ),
    "dahl2022": (
        "Dahl, D. B., Johnson, D. J. and Mueller, P. (2022). Search algorithms and loss functions for Bayesian "
        "clustering. Journal of Computational and Graphical Statistics 31(4), 1189-1201. "
        "https://doi.org/10.1080/10618600.2022.2069779"
    ),
    "gelfand1990": (
        "Gelfand, A. E. and Smith, A. F. M. (1990). Sampling-based approaches to calculating marginal densities. "
        "Journal of the American Statistical Association 85(410), 398-409. "
        "https://doi.org/10.1080/01621459.1990.10476213"
    ),
    "gelman1992": (
        "Gelman, A. and Rubin, D. B. (1992). Inference from iterative simulation using multiple sequences. Statistical "
        "Science 7(4), 457-472. https://doi.org/10.1214/ss/1177011136"
    ),
    "hubert1985": (
        "Hubert, L. and Arabie, P. (1985). Comparing partitions. Journal of Classification 2, 193-218. "
        "https://doi.org/10.1007/BF01908075"
    ),
    "levandowsky1971": (
        "Levandowsky, M. and Winter, D. (1971). Distance between sets. Nature 234, 34-35. "
        "https://doi.org/10.1038/234034a0"
    ),
    "meila2007": (
        "Meila, M. (2007). Comparing clusterings: an information based distance. Journal of Multivariate Analysis "
        "98(5), 873-895. https://doi.org/10.1016/j.jmva.2006.11.013"
    ),
    "miller2014": (
        "Miller, J. W. and Harrison, M. T. (2014). Inconsistency of Pitman-Yor process mixtures for the number of "
        "components. Journal of Machine Learning Research 15, 3333-3370. https://jmlr.org/papers/v15/miller14a.html"
    ),
    "posterior_consensus": (
        "The posterior_consensus developers. posterior_consensus: consensus partitions from posterior draws of "
        f"clusterings, version {posterior_consensus.__version__}"
    ),
    "strehl2002": (
        "Strehl, A. and Ghosh, J. (2002). Cluster ensembles: a knowledge reuse framework for combining multiple "
        "partitions. Journal of Machine Learning Research 3, 583-617. https://jmlr.org/papers/v3/strehl02a.html"
    ),
    "vehtari2021": (
        "Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Buerkner, P.-C. (2021). Rank-normalization, folding, "
        "and localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16(2), 667-718. "
        "https://doi.org/10.1214/20-BA1221"
    ),
    "vinh2010": (
        "Vinh, N. X., Epps, J. and Bailey, J. (2010). Information theoretic measures for clusterings comparison: "
        "variants, properties, normalization and correction for chance. Journal of Machine Learning Research 11, "
        "2837-2854. https://jmlr.org/papers/v11/vinh10a.html"
    ),
    "wade2018": (
        "Wade, S. and Ghahramani, Z. (2018). Bayesian cluster analysis: point estimation and credible balls. Bayesian "
        "Analysis 13(2), 559-626. https://doi.org/10.1214/17-BA1073"
    ),
}
_LINES = (
    *("chains", "draws", "expected_loss", "ball", "number", "noise", "ambiguous", "links", "groups", "more_draws"),
    *("optimality", "omissions"),
)
_ADVICE = ("Run ", "Start ", "Sample ", "Give ", "Leave ", "Repeat ", "Five runs ")  # first words of such sentences
_METHODS = (
    "{draws}",
    "{report} partition{how_found}. It has {sizes}{improbable_number} and {expected_loss}. {optimality}",
    *("{ball}", "{number}", "{ambiguous}"),
    "The number of clusters describes this partition and {about_number}.",
    *("{more_draws}", "{other_labels}", "{groups}", "{chains}", "{omissions}"),
)


def lines(summary: SummaryRecord) -> list[tuple[str, str]]:
    """Named values for the head of the printed summary."""
    facts = facts_of(summary, *_LINES)
    return [facts[topic][:2] for topic in _LINES if facts[topic].line]


def findings(summary: SummaryRecord) -> list[str]:
    """Findings in plain sentences."""
    return [sentence for fact in facts_of(summary).values() for sentence in fact.findings]


def methods_text(summary: SummaryRecord) -> str:
    """Sentences for the methods section, and the references they cite."""
    words = {topic: fact.methods for topic, fact in facts_of(summary).items()}
    is_bad = summary.diagnosis.status == "disagree"
    words |= {"how_found": how_found(summary, " was" * is_bad), "report": "The" if is_bad else "We report the"}
    words |= {"about_number": about_number(summary)}
    text = " ".join(filter(None, (sentence.format(**words) for sentence in _METHODS)))
    if is_bad:
        warning = (
            "One partition must not stand for all" if summary.independent else "These results must not be reported"
        )
        text = f"{warning}. {summary.diagnosis.verdict}\n\n{text}"
    return with_references(text, summary.loss)


def how_found(summary: SummaryRecord, was: str = "") -> str:
    """Requested number of clusters, loss, method and seed of the search, as continuation of "partition"."""
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
        how = f"in each connected component of the pairs whose {spoken.similarity} exceeds {tau},"
    return (
        f"{requested} of minimum {spoken.minimized} {name_of(best.loss)}{f' [{key}]' if key else ''}{spoken.to_draws}"
        f"{threshold}{was} found {how} {with_version(summary.seed)}"
    )


def with_version(seed: int | None) -> str:
    """Version of the package and seed of a search, as continuation of "found"."""
    seeded = "no recorded random seed" if seed is None else f"random seed {seed}"
    return f"with posterior_consensus {posterior_consensus.__version__} [posterior_consensus] and {seeded}"


def about_number(summary: SummaryRecord) -> str:
    """What the number of clusters says, and a share of runs, as continuation of "and"."""
    number = words_of(summary).number
    if summary.independent:
        return f"{number}. A share of runs is not a probability: it describes how the result varies between runs"
    return f"{number} [miller2014]"


def with_references(text: str, loss: Loss) -> str:
    """Sentences without those that advise the analyst, then the references that they cite, and that of the loss."""
    text = " ".join(one for one in re.split(r"(?<=\.) (?=[A-Z])", text) if not one.startswith(_ADVICE))
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
