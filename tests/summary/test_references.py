"""The bibliography: entries are complete, pages cite such entries, and docstrings say the same of a paper."""

import ast
import re
from pathlib import Path

import pytest

from posterior_consensus.summary.references import bibtex, cited_keys, key_of, reference

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "posterior_consensus" / "summary" / "references.bib").read_text(encoding="utf-8")
KEYS = re.findall(r"^@\w+{(\w+),$", SOURCE, re.MULTILINE)
VENUE = {"article": "journal", "inproceedings": "booktitle", "book": "publisher", "misc": "eprint"}
NO_LINK = {
    "bekkerman2009",
    "korn1998",
    "swamy2004",
    "westfall1993",
}  # to be found by their titles alone


def fields_of(key):
    return dict(re.findall(r"^  (\w+) = {(.+)},$", bibtex([key]), re.MULTILINE))


def surnames(key):
    return re.findall(r"(?:^|, | and )((?:von )?[A-Z][\w-]+), (?=[A-Z]\.)", reference(key).partition(" (")[0])


def docstrings():
    """(file, reference) of all sections of references."""
    for file in sorted((ROOT / "posterior_consensus").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                section = (ast.get_docstring(node) or "").partition("References\n----------\n")[2]
                section = re.split(r"^\w+\n-+\n", section, flags=re.MULTILINE)[0]
                yield from ((file.name, " ".join(one.split())) for one in re.split(r"\.\. \[\d\] ", section)[1:])


def test_every_entry_is_complete():
    assert len(KEYS) > 100 and KEYS == [*sorted(set(KEYS) - {"posterior_consensus"}), "posterior_consensus"]
    for key, kind in zip(KEYS[:-1], re.findall(r"^@(\w+){", SOURCE, re.MULTILINE), strict=False):
        fields = fields_of(key)
        assert set(fields) >= {"author", "title", "year", VENUE[kind]}, key
        assert {"doi", "url"} & set(fields) or key in NO_LINK, key
        assert key == re.sub(r"^von |-", "", surnames(key)[0]).lower() + fields["year"]
        if kind == "article":
            assert "volume" in fields or key == "dombowsky2024", key  # which has no volume yet
        if kind == "misc":
            assert fields["archiveprefix"] == "arXiv" and fields["doi"] == f"10.48550/arXiv.{fields['eprint']}"
    links = [reference(key).rpartition(" ")[2] for key in KEYS if "https://" in reference(key)]
    assert len(links) == len(set(links))
    assert SOURCE.count("{") == SOURCE.count("}")


def test_references_in_docstrings_are_in_the_bibliography_and_agree_with_it():
    found = list(docstrings())
    assert len(found) > 120
    for file, text in found:
        names, year, rest = re.match(r"(.+?) \((\d{4})\), (.+)", text).groups()
        link = re.search(r"https://\S+", rest)
        names = re.split(r", | and ", names.removesuffix(" et al."))
        same = [key for key in KEYS if surnames(key)[: len(names)] == names and fields_of(key)["year"] == year]
        keys = [key_of(link[0])] if link else same
        assert len(keys) == 1 and keys[0] in same, f"{file}: {text}"
        fields = {name: value.replace("--", "-") for name, value in fields_of(keys[0]).items()}
        numbers = re.search(r" (\d+)(?:\(([\d-]+)\))?, (\w+(?:-\d+)?)\.", rest)
        if numbers and "volume" in fields:
            volume, number, pages = numbers.groups()
            assert [volume, pages] == [fields["volume"], fields.get("pages")], f"{file}: {text}"
            assert number in (None, fields.get("number")), f"{file}: {text}"


def test_pages_cite_entries_that_exist():
    pages = [page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "generated"} & set(page.parts)]
    cited = [
        key
        for page in pages
        for keys in re.findall(r"{cite:\w+}`([^`]+)`", page.read_text(encoding="utf-8"))
        for key in keys.split(",")
    ]
    assert len(set(cited)) > 50 and set(cited) <= set(KEYS)
    in_paper = set(re.findall(r"@(\w+)", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")))
    assert len(in_paper) > 10 and in_paper <= set(KEYS)
    # JOSS wants them beside the paper: `python -m benchmarks paper --write`.
    assert (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8") == bibtex(sorted(in_paper)) + "\n"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("argon2006", "Argon, N. T. and Andradottir, S. (2006). Replicated batch means for steady-state simulations. "
         "Naval Research Logistics 53(6), 508-524. https://doi.org/10.1002/nav.20158"),
        ("luxburg2007", "von Luxburg, U. (2007). A tutorial on spectral clustering. Statistics and Computing 17(4), "
         "395-416. https://doi.org/10.1007/s11222-007-9033-z"),
        ("kallioinen2024", "Kallioinen, N., Paananen, T., Buerkner, P.-C. and Vehtari, A. (2024). Detecting and "
         "diagnosing prior and likelihood sensitivity with power-scaling. Statistics and Computing 34, 57. "
         "https://doi.org/10.1007/s11222-023-10366-5"),
        ("strehl2002", "Strehl, A. and Ghosh, J. (2002). Cluster ensembles: a knowledge reuse framework for combining "
         "multiple partitions. Journal of Machine Learning Research 3, 583-617. "
         "https://jmlr.org/papers/v3/strehl02a.html"),
    ],
)  # fmt: skip
def test_entries_as_text(key, text):
    assert reference(key) == text and cited_keys(f"as in [{key}] and [nobody1999]") == [key]


def test_all_text_is_ascii_without_latex():
    for key in KEYS:
        assert reference(key).isascii() and not set(reference(key)) & set("{}\\$~`")
