"""The environment that make builds: which interpreter it belongs to, and what may be installed in it."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
OLDEST = {"3.11": "3.11.2", "3.12": "3.12.3", "3.13": "3.13.5"}
"""The patch releases of Debian 12, Ubuntu 24.04 and Debian 13."""
SERIES = "{}.{}".format(*sys.version_info)


def made(*arguments):
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the Makefile is tried on Linux")
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_environment_belongs_to_one_patch_release(tmp_path):
    python, release = tmp_path / "python", 99  # of which no environment stands here
    pretend = f"import sys; sys.version_info = (3, 11, {release}); exec(sys.argv[1])"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -I -c '{pretend}' \"$3\"\n")  # asked as `python -I -c code`
    python.chmod(0o755)
    demo = made("-n", "demo", f"PYTHON={python}")
    assert f".venv/3.11.{release}/bin/python" in demo
    assert "-c constraints/python3.11.txt" in demo
    lowest = made("-n", "demo-lowest", f"PYTHON={python}")
    assert f".venv/3.11.{release}-lowest/bin/python" in lowest
    assert "--resolution lowest-direct" in lowest and "constraints" not in lowest
    assert made("--silent", "python", f"PYTHON={python}").split() == [str(python), "3.11", f"3.11.{release}"]


@pytest.mark.skipif(SERIES not in OLDEST, reason="no versions are pinned for this Python")
def test_pinned_versions_install_on_the_oldest_patch_release():
    pins = ROOT / "constraints" / f"python{SERIES}.txt"
    for line in pins.read_text(encoding="utf-8").splitlines():
        name = Requirement(line).name
        try:
            needed = metadata.metadata(name).get("Requires-Python")
        except metadata.PackageNotFoundError:  # belongs to a group that is not installed here
            continue
        assert SpecifierSet(needed or "").contains(OLDEST[SERIES]), f"{name} needs Python {needed}"


def test_the_recipe_for_conda_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    listed = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE).group(1)
    oldest = re.search(r'python_min: "(.*)"', recipe).group(1)
    needed = [f"python{project['requires-python']}", *project["dependencies"]]
    names = {"typing-extensions": "typing_extensions"}  # where conda-forge has another
    needed = [Requirement(one) for one in needed]
    needed = [f"    - {names.get(one.name, one.name)} {one.specifier}\n" for one in needed]
    assert listed.replace("${{ python_min }}", oldest) == "".join(needed)
