"""The pages that a newcomer reads first: their code runs and prints what they show, and their links lead somewhere."""

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest

import posterior_consensus as pc
from posterior_consensus.summary.references import bibtex

ROOT = Path(__file__).parents[1]
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs"
README, LLMS, INDEX, START = (
    (ROOT / page).read_text(encoding="utf-8")
    for page in ("README.md", "docs/llms.txt", "docs/index.md", "docs/get_started.md")
)


def blocks(text, kind="python"):
    found = re.findall(r"^```([\w{} -]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == kind]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a page's blocks, one after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_blocks(text):
        names = {}
        for block in blocks(text):
            exec(block, names)
        plt.close("all")
        return names

    return run_blocks


def has_lines(printed, shown):
    """Whether the lines that are shown are printed, with others only where "..." stands."""
    parts = re.split(r"^ *\.\.\.\n", shown, flags=re.MULTILINE)
    return re.fullmatch("(?:.*\n)*".join(map(re.escape, parts)) + "(?:.*\n)*", printed)


@pytest.mark.slow
def test_the_first_pages_print_what_they_show_and_save_a_figure(run, capsys, tmp_path):
    run(README)
    printed = capsys.readouterr().out
    (shown,) = blocks(README, "")
    assert has_lines(printed, shown) and len(shown.splitlines()) <= 12
    assert [printed] == blocks(START, "{code-block} text")
    assert (tmp_path / "summary.png").exists()


def test_the_landing_page_and_get_started_have_the_code_and_output_of_the_readme():
    (shown,) = blocks(README, "")
    assert blocks(README) == blocks(INDEX) == blocks(START)
    assert shown in INDEX and has_lines(*blocks(START, "{code-block} text"), shown)


def test_every_line_for_programs_runs(run):
    names = run(LLMS)
    assert names["certificate"].status == "optimal"
    assert names["soft"].n_items == 6 and names["of_runs"].draws.n_draws == 5
    assert names["by_resolution"][1.0].draws.n_draws == 5 and names["of_pairs"].links.review(1).shape[0] == 1
    assert (names["again"].labels == names["best"].labels).all()
    assert not re.findall(r"`pc\.[^`]*\(", LLMS)  # calls outside a block would not be run
    assert len(LLMS.splitlines()) <= 200


def test_links_of_the_first_pages_lead_somewhere():
    paths = [ROOT / path for path in re.findall(r"\]\(([^)#:]+)\)", README)]
    cards = re.findall(r"^:link: (.*)$", INDEX, re.MULTILINE)
    (tree,) = blocks(INDEX, "{toctree}")
    paths += [DOCS / f"{page}.md" for page in [*cards, *re.findall(r"^\w[\w/]*$", tree, re.MULTILINE)]]
    paths += [DOCS / path for path in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", START)]
    assert len(paths) > 25 and not [path for path in paths if not path.exists()]


def test_links_for_programs_are_pages_of_the_site():
    """They are relative to the root of the site, where the file lies."""
    links = re.findall(r"\]\(([^)]*)\)", LLMS)
    for link in links:
        folder, _, name = link.removesuffix(".html").rpartition("/")
        is_tutorial = folder == "tutorials" and name != "index"
        page = EXAMPLES / f"{name}.py" if is_tutorial else DOCS / folder / f"{name}.md"
        assert link.endswith(".html") and page.exists(), link
    assert len(links) > 10 and not re.findall(r"(?:docs|examples)/", LLMS)


def test_an_index_shows_the_readme_with_absolute_links_or_without_links(monkeypatch):
    interfaces = {"metadata": "MetadataHookInterface", "builders.hooks": "BuildHookInterface"}
    for module, name in interfaces.items():  # only environments of builds have them
        monkeypatch.setitem(sys.modules, f"hatchling.{module}.plugin.interface", SimpleNamespace(**{name: object}))
    monkeypatch.syspath_prepend(ROOT)
    hook = importlib.import_module("hatch_build").Readme()
    hook.root = ROOT
    for urls in ({}, {"urls": {"Repository": "https://example.org/us/it"}}):
        metadata = {"version": "1.2.0", **urls}
        hook.update(metadata)
        shown = metadata["readme"]["text"]
        assert blocks(shown) == blocks(README) and not re.findall(r"\]\((?!https?:|#)", shown)
        if urls:
            assert "](https://example.org/us/it/raw/v1.2.0/docs/images/summary.png)" in shown
            assert "](https://example.org/us/it/blob/v1.2.0/docs/get_started.md#reading-the-summary)" in shown
        else:
            assert "](#" not in shown and "![" not in shown and "`docs/get_started.md`" in shown


def test_the_model_after_pm_sample_is_the_one_that_was_sampled():
    page, script = (
        (EXAMPLES / name).read_text(encoding="utf-8") for name in ("after_pm_sample.py", "sample_galaxies.py")
    )
    model = page[page.index("    alpha =") : page.index("    pm.NormalMixture")].replace("K=19", "K=N_COMPONENTS - 1")
    assert "StickBreaking" in model and all(line in script for line in model.splitlines())


def test_the_page_for_citing_has_the_entry_that_a_summary_gives():
    (entry,) = blocks((DOCS / "citing.md").read_text(encoding="utf-8"), "bibtex")
    assert entry.strip().replace("VERSION", pc.__version__) == bibtex(["posterior_consensus"])
    for_programs = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for field, name in (("title", "title"), ("- name", "author")):
        (value,) = re.findall(rf'^ *{field}: "?(.+?)"?$', for_programs, re.MULTILINE)
        assert f"{name} = {{{value}" in entry.replace("\\", "").replace("{{", "{")
