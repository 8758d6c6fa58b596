"""README, documentation and tutorials as text: lines that fit, links that lead somewhere, names that exist."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.catalogue.functions import MODULES, PUBLIC, TOP

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "docs" / "llms.txt",
    ROOT / "paper" / "paper.md",
    *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts and "generated" not in page.parts),
    *(page for page in (ROOT / "examples").glob("*.py")),
]
SOURCES = [
    *(file for folder in ("posterior_consensus", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")),
    *(ROOT / "posterior_consensus").rglob("*.pyi"),
    *(ROOT / "posterior_consensus" / "summary" / "report").glob("interactive.*"),
]
AMERICAN = re.compile(r"center|neighbor|behavior|favor|flavor|analyz|(?:model|label|cancel|travel)(?:ed|ing)(?![a-z])")
ENDS_IN_ISE = re.compile(r"(\w*is)(?:e[drs]?|ing|ations?)$")
PLAIN = {*"raise rise arise precise surprise promise advise irise schmeise".split()}  # and noise, pairwise and so on
OF_OTHER_PROGRAMS = re.compile(
    r"""["'](?:\w+ ){0,2}center(?: \w+)?["']|(?:align-items|text-align): center|\w+_center\b|center_\w+"""
    r"""|[( ]centers[=)]|(?:nearest_|n_|sc\.pp\.)neighbors|\\centering\b|"flavor"|flavor=|visualisations"""
    r"""|_maximisation|/4688-[-a-z]+"""
)
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
WIDTH = 120


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_no_line_is_too_long():
    """Rows of tables in Markdown can be longer; ruff checks those of examples."""
    failures = []
    for page, text in TEXTS.items():
        lines = text.splitlines()
        failures += [
            (str(page.relative_to(ROOT)), number)
            for number, line in enumerate(lines, 1)
            if len(line) > WIDTH and not line.lstrip("# ").startswith("|")
        ]
    assert not failures


def test_pages_have_names_of_their_own():
    """They are all that a browser's tab and the list of pages show."""
    site = [text for page, text in TEXTS.items() if page.suffix == ".md" and page.parent != ROOT]
    notebooks = [text for page, text in TEXTS.items() if page.suffix == ".py" and "\n# %%" in text]
    titles = [
        *(title[1] for title in (re.search(r"^# (.+)", text, re.MULTILINE) for text in site) if title),
        *(re.search(r"^# # (.+)", text, re.MULTILINE)[1] for text in notebooks),
    ]
    assert len(titles) > 50 and sorted(titles) == sorted(set(titles))


def test_no_number_at_the_beginning_of_a_line_starts_a_list():
    """In Markdown "1." does, also in the middle of a sentence."""
    failures = []
    for page, text in TEXTS.items():
        lines = [re.sub(r"^# ?", "", line) for line in text.splitlines()] if page.suffix == ".py" else text.splitlines()
        failures += [
            (str(page.relative_to(ROOT)), number)
            for number, (before, line) in enumerate(pairwise(lines), 2)
            if re.match(r" {0,3}1[.)] ", line) and re.match(r" {0,3}\w", before)
        ]
    assert not failures


DOCS = ROOT / "docs"
USER_PAGES = [
    ROOT / "README.md",
    *(page for page in DOCS.rglob("*.md") if page in TEXTS and page.parent.name not in ("api", "developers")),
    *(page for page in (ROOT / "examples").glob("*.py") if "\n# %%" in TEXTS[page]),
]
PICTURE = re.compile(r"!\[|```\{(?:plotted|plot|figures?|image)\}|\.\. (?:plot|figure|image)::")
FIRST_SCREEN = 45  # lines, with those of code
NO_PICTURES = {"bibliography", "changelog", "citing", "glossary", "installing"}


def prose(page):
    """Its text without code: the Markdown cells of a notebook, and the text between blocks."""
    if page.suffix == ".md":
        return without_code(TEXTS[page])
    cells = re.findall(r"^# %% \[markdown\]\n(.*?)(?=^# %%|\Z)", TEXTS[page], re.DOTALL | re.MULTILINE)
    return re.sub(r"^# ?", "", "\n".join(cells), flags=re.MULTILINE)


def n_words(text):
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def test_what_users_read_is_short():
    """README, documentation and tutorials, without code, the reference, the change log and pages of developers."""
    assert len(TEXTS[ROOT / "README.md"].splitlines()) <= 110
    assert sum(n_words(prose(page)) for page in USER_PAGES) <= 40_000
    assert n_words(TEXTS[DOCS / "developers" / "benchmarks.md"]) <= 6_000  # with the cells of its tables


@pytest.mark.parametrize("page", [page for page in USER_PAGES if page.suffix == ".md"], ids=lambda page: page.stem)
def test_each_page_begins_with_a_picture(page):
    """Within the first lines, with code and what it prints; without the output that "Get started" has in full."""
    if page.stem in NO_PICTURES:
        return
    without = re.compile(r"^```\{(?:toctree|code-block)\}.*?^```$", re.DOTALL | re.MULTILINE)
    lines = without.sub("", TEXTS[page]).splitlines()
    assert PICTURE.search("\n".join(lines[:FIRST_SCREEN]))


def test_the_same_pythons_everywhere():
    """In the metadata, in CI, which may be one ahead, and on the pages that have a range."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [entry.rpartition(" ")[2] for entry in metadata["classifiers"] if ":: Python :: 3." in entry]
    tested = set(re.findall(r'python: "([\d.]+)"', (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")))
    ahead = f"3.{int(named[-1].removeprefix('3.')) + 1}"
    assert tested - {ahead} == set(named) and metadata["requires-python"] == f">={named[0]}"
    for text in TEXTS.values():
        for first, last in re.findall(r"Python (3\.\d+) to (3\.\d+)", text):
            assert [first, last] == [named[0], named[-1]]


def test_pinned_versions_are_within_the_bounds():
    """Each Python's file of constraints, so that a bound for some Pythons alone holds there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tested = {name: group for name, group in project["dependency-groups"].items() if name != "linkage"}
    groups = [*project["project"]["optional-dependencies"].values(), *tested.values()]
    lists = [project["project"]["dependencies"], *groups]
    wanted = [Requirement(one) for each in lists for one in each if isinstance(one, str)]  # not dev, of other groups
    files = sorted((ROOT / "constraints").glob("python*.txt"))
    assert len(files) == 3
    for file in files:
        pins = dict(line.split("==") for line in file.read_text(encoding="utf-8").split())
        here = {"python_version": file.stem.removeprefix("python")}
        needed = [one for one in wanted if not one.marker or one.marker.evaluate(here)]
        needed = [one for one in needed if one.name != project["project"]["name"]]
        assert not [str(one) for one in needed if pins.get(one.name) not in one.specifier], file.name
        assert len([one for one in needed if one.name == "pymc"]) == 1


def test_extras_on_pages_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = [one for text in TEXTS.values() for one in re.findall(r"\"(?:\.|posterior.consensus)\[([\w,]+)\]", text)]
    assert len(named) > 5 and {one for names in named for one in names.split(",")} <= set(extras)


def test_links_to_files_lead_to_files():
    """Those of the page for programs are of the site, and tests/test_first_pages.py follows them."""
    failures = []
    for page, text in ((page, text) for page, text in TEXTS.items() if page.suffix != ".txt"):
        folder = ROOT / "docs" / "tutorials" if page.parent.name == "examples" else page.parent
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", without_code(text)):
            if "://" in target or target.startswith("mailto:"):
                continue
            is_tutorial = (ROOT / "examples" / f"{Path(target).stem}.py").exists()
            if not is_tutorial and not (folder / target).exists() and not (folder / f"{target}.md").exists():
                failures.append((str(page.relative_to(ROOT)), target))
    assert not failures


def test_names_on_a_page_exist():
    failures = []
    for page, text in TEXTS.items():
        for name in re.findall(r"\bpc\.([A-Za-z_][\w.]*[A-Za-z0-9])(?![\w*])", text):
            top, _, rest = name.partition(".")
            of_module = ".".join([top, *rest.split(".")[:1]])
            is_there = not rest or of_module in PUBLIC or rest in TOP if top in MODULES else top in TOP
            failures += [] if is_there else [(page.name, name)]
    assert not failures


def is_misspelled(word):
    ends = ENDS_IN_ISE.search(word)
    return bool(
        AMERICAN.search(word) or (ends and f"{ends[1]}e" not in PLAIN and not ends[1].endswith(("nois", "wis")))
    )


def test_one_spelling():
    """Oxford spelling: -ize in words that have it from Greek, otherwise British. `color` is Matplotlib's word."""
    assert all(map(is_misspelled, ("normalised", "centers", "labeling")))
    assert not any(map(is_misspelled, ("summarized", "noises", "centre", "precise")))
    failures = []
    for file in [*PAGES, *(file for file in SOURCES if file != Path(__file__))]:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            words = re.findall("[a-z]{4,}", OF_OTHER_PROGRAMS.sub("", line).lower())
            wrong = list(filter(is_misspelled, words))
            failures += [(str(file.relative_to(ROOT)), number, *wrong)] if wrong else []
    assert not failures
