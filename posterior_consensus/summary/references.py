"""References by their keys, from references.bib: as text for a paragraph on methods, and as BibTeX."""

import re
from functools import cache
from importlib import resources

import posterior_consensus
from posterior_consensus.losses.record import Loss


def reference(key: str) -> str:
    """Authors, year, title, venue and link of an entry, in ASCII, which every terminal prints."""
    fields = {name: _as_ascii(value) for name, value in _fields(key).items()}
    names = [_with_initials(name) for name in fields["author"].split(" and ")]
    who = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    if "version" in fields:
        return f"{who}. {fields['title']}, version {fields['version']}"
    venue = next((fields[name] for name in ("journal", "booktitle", "publisher") if name in fields), "")
    number = f"({fields['number']})" if "number" in fields else ""
    issue = f"{venue} {fields.get('volume', '')}".strip() + number if venue else f"arXiv:{fields['eprint']}"
    where = ", ".join(filter(None, [issue, fields.get("pages")]))
    return f"{who} ({fields['year']}). {fields['title']}. {where}. {_link(key)}".strip()


def key_of(link: str) -> str | None:
    """Key of the entry with this address; None if there is none."""
    return next((key for key in _bibtex_by_key() if link and _link(key) == link), None)


def cited_keys(text: str) -> list[str]:
    """Keys in square brackets, in order of first appearance."""
    return [key for key in dict.fromkeys(re.findall(r"\[(\w+)\]", text)) if key in _bibtex_by_key()]


def with_references(text: str, loss: Loss) -> str:
    """A text, then the references that it cites, and that of the loss."""
    cited = [f"{reference(key)} [{key}]" for key in cited_keys(text)]
    if key_of(loss.reference) is None and loss.reference:
        cited.append(f"{loss.reference} (the loss)")
    return text + "\n\n" + "\n".join(cited)


def bibtex(keys: list[str]) -> str:
    """BibTeX entries of these keys."""
    return "\n\n".join(_bibtex_by_key()[key] for key in keys)


@cache
def _bibtex_by_key() -> dict[str, str]:
    """BibTeX of every entry, by its key."""
    file = resources.files("posterior_consensus.summary").joinpath("references.bib").read_text(encoding="utf-8")
    file = file.replace("{VERSION}", f"{{{posterior_consensus.__version__}}}")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in file.strip().split("\n\n")}


def _fields(key: str) -> dict[str, str]:
    """Fields of an entry, as they are written: one on each line."""
    return dict(re.findall(r"^  (\w+) = {(.+)},$", _bibtex_by_key()[key], re.MULTILINE))


def _link(key: str) -> str:
    """Address of an entry, by its DOI if it has no other."""
    fields = _fields(key)
    return fields.get("url") or (f"https://doi.org/{fields['doi']}" if "doi" in fields else "")


def _with_initials(name: str) -> str:
    """Name as "Last, F.-S.", for "Last, First-Second"."""
    last, _, first = name.partition(", ")
    initials = [re.sub(r"(\w)\w*\.?", r"\1.", one) for one in first.split()]
    return ", ".join(filter(None, [last, " ".join(initials)]))


def _as_ascii(text: str) -> str:
    """LaTeX as ASCII: umlauts as two letters, other accents left out."""
    text = re.sub(r'\\"(\w)', r"\1e", text).replace("--", "-").replace("``", '"').replace("''", '"')
    return re.sub(r"\\(?:['`^~]|[cuv](?={))|[{}\\]", "", text)
