"""The public names: light to import, documented, each with an example."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import posterior_consensus as pc
from tests.catalogue.functions import MODULES, PUBLIC, TOP

ROOT = Path(__file__).parents[1]


def indexed():
    """The names in docs/api/index.md, one for each time they occur there."""
    lines = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8").splitlines()
    entries = [re.fullmatch(r"   ([\w.]+)|\.\. py:data:: (\w+)", line) for line in lines]
    return [entry[1] or entry[2] for entry in entries if entry]


def test_import_alone_loads_nothing_heavy():
    heavy = {
        "numpy",
        "xarray",
        "numba",
        "scipy",
        "sklearn",
        "pandas",
        "arviz",
        "arviz_stats",
        "matplotlib",
        "pymc",
        "dask",
        "highspy",
    }
    code = f"import sys, posterior_consensus; print(*sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_main_job_imports_no_optional_package():
    code = """
import sys
import posterior_consensus as pc
draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1]])
print(pc.consensus_partition(draws), pc.credible_ball(draws, [0, 0, 1]), pc.posterior_similarity_matrix(draws))
print("loaded:", *{"arviz", "pymc", "distributed", "matplotlib.pyplot", "highspy"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_api_index_has_every_public_name_once():
    assert sorted(indexed()) == sorted(PUBLIC)


def test_modules_are_listed_when_a_name_is_completed():
    assert set(MODULES) <= set(dir(pc))
    for module in MODULES:
        assert set(getattr(pc, module).__all__) <= set(dir(getattr(pc, module)))


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if callable(value)])
def test_every_name_is_documented(name):
    assert inspect.getdoc(PUBLIC[name])


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isfunction(value)])
def test_every_function_has_an_example_and_its_sections(name):
    doc = inspect.getdoc(PUBLIC[name])
    assert "\nExamples\n" in doc
    assert "\nReturns\n" in doc
    for parameter in inspect.signature(PUBLIC[name]).parameters:
        assert parameter in doc


def test_every_plot_has_a_picture_on_its_page():
    drawn = re.findall(r"^def (plot_\w+)", (ROOT / "docs" / "gallery.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(drawn) == [name for name in sorted(TOP) if name.startswith("plot_")]


PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "background").glob("*.md")),
]


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "examples").glob("*.py"))], ids=lambda page: page.name)
def test_names_on_a_page_exist(page):
    for name in re.findall(r"\bpc\.([A-Za-z_][\w.]*[A-Za-z0-9])(?![\w*])", page.read_text(encoding="utf-8")):
        top, _, rest = name.partition(".")
        assert top in {*TOP, *MODULES}, name
        if top in MODULES and rest:
            assert name in PUBLIC or rest.split(".")[0] in TOP, name


def test_page_for_users_of_r_names_methods_and_losses_that_exist():
    page = (ROOT / "docs" / "from_r.md").read_text(encoding="utf-8")
    for loss in re.findall(r'`"(\w+)"`', page):
        assert loss in {*pc.LOSSES, *pc.METHODS, "avg", "comp", "draws"}
    for method in re.findall(r'method="(\w+)"', page):
        assert method in pc.METHODS


def test_every_loss_is_in_the_table_of_the_documentation():
    table = (ROOT / "docs" / "background" / "losses.md").read_text(encoding="utf-8")
    assert all(f'`"{name}"`' in table for name in pc.LOSSES)


def test_every_method_is_in_the_table_of_the_documentation():
    table = (ROOT / "docs" / "background" / "methods.md").read_text(encoding="utf-8")
    assert all(f'`"{name}"`' in table for name in pc.METHODS)
