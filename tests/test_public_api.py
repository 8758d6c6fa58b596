"""The public names: light to import, documented, each with an example."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import posterior_consensus as pc

ROOT = Path(__file__).parents[1]
NAMES = [name for name in pc.__all__ if not name.startswith("_")]


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
print("loaded:", *{"arviz", "pymc", "dask", "matplotlib.pyplot", "highspy"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented(name):
    assert name in (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    if callable(getattr(pc, name)):
        assert inspect.getdoc(getattr(pc, name))


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(getattr(pc, name))])
def test_every_function_has_an_example_and_its_sections(name):
    doc = inspect.getdoc(getattr(pc, name))
    assert "\nExamples\n" in doc
    assert "\nReturns\n" in doc
    for parameter in inspect.signature(getattr(pc, name)).parameters:
        assert parameter in doc


def test_every_loss_is_in_the_table_of_the_documentation():
    table = (ROOT / "docs" / "background" / "losses.md").read_text(encoding="utf-8")
    assert all(f'`"{name}"`' in table for name in pc.LOSSES)


def test_every_method_is_in_the_table_of_the_documentation():
    table = (ROOT / "docs" / "background" / "methods.md").read_text(encoding="utf-8")
    assert all(f'`"{name}"`' in table for name in pc.METHODS)
