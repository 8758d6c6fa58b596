"""References of the sentences for a paper, in words and in BibTeX."""

import re
from importlib import resources

import posterior_consensus
from posterior_consensus.losses.record import PartitionLoss

REFERENCES = {
    "balocchi2025": "Balocchi and Wade (2025), https://doi.org/10.48550/arXiv.2506.16295",
    "binder1978": "Binder (1978), https://doi.org/10.1093/biomet/65.1.31",
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


def loss_key(loss: PartitionLoss) -> str | None:
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
