"""The house: its rooms, no circles of imports, and the way of one call down to the kernels and back."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.methods import Method
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.search import local_search

PACKAGE, TESTS = Path(pc.__file__).parent, Path(__file__).parent
MODULES = {
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): file
    for file in PACKAGE.rglob("*.py")
}
MOST_ROOMS = 21
MOST_PARAMETERS = 9  # of a function for numba
MOST_FILES = 6  # from a public function to a kernel


@cache
def imports(file: Path) -> frozenset[str]:
    """The modules of the package that a file imports anywhere, also for types."""
    found, tree = set(), ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE.name):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES.keys()
    return frozenset(found)


def test_the_top_level_has_rooms_the_public_names_and_the_command():
    files = {"__init__.py", "__init__.pyi", "cli.py", "compilation.py"}
    assert {file.name for file in PACKAGE.glob("*.py*")} == files
    rooms = [folder for folder in PACKAGE.iterdir() if folder.is_dir() and any(folder.glob("*.py"))]
    assert len(rooms) <= MOST_ROOMS


def test_files_that_the_page_names_exist():
    page = (PACKAGE.parent / "docs" / "developers" / "architecture.md").read_text(encoding="utf-8")
    files = [
        f"/{file.relative_to(PACKAGE.parent).as_posix()}" for room in (PACKAGE, TESTS) for file in room.rglob("*.py")
    ]
    named = set(re.findall(r"[\w/]+\.py\b", page))
    assert named and not [name for name in named if not any(file.endswith(f"/{name}") for file in files)]


def test_no_imports_go_in_a_circle():
    left = {name: imports(file) - {name} for name, file in MODULES.items()}
    while leaves := [name for name, used in left.items() if not used & left.keys()]:
        for name in leaves:
            del left[name]
    assert not left, {name: sorted(used & left.keys()) for name, used in left.items()}


def test_no_kernel_has_many_parameters():
    many = [
        f"{file.name}: {node.name}"
        for file in (PACKAGE / "kernels").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and len(node.args.posonlyargs + node.args.args) > MOST_PARAMETERS
    ]
    assert not many


def test_only_consensus_imports_a_method():
    methods = {function.function.__module__ for function in pc.METHODS.values()}
    others = {name: file for name, file in MODULES.items() if not name.startswith(f"{PACKAGE.name}.consensus")}
    assert not [name for name, file in others.items() if methods & imports(file)]


def files_on_the_way() -> list[str]:
    """The package's files of the calls that are being made, outermost first, a file once while it calls itself."""
    frame, files = sys._getframe(1), []
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if PACKAGE in file.parents and (not files or files[-1] != file):
            files.append(file)
        frame = frame.f_back
    return [file.relative_to(PACKAGE).as_posix() for file in reversed(files)]


@pytest.mark.parametrize(
    ("loss", "name"), [("vi", "descend_draws"), ("nvi", "descend_draws"), ("binder", "descend_pairs")]
)
def test_a_call_goes_down_to_the_kernels_through_few_files_and_through_none_twice(loss, name, monkeypatch):
    loop, ways = getattr(local_search, name), []

    def traced(*arguments, **options):
        ways.append(files_on_the_way())
        return loop(*arguments, **options)

    monkeypatch.setattr(local_search, name, traced)
    draws = np.random.default_rng(1).integers(3, size=(20, 12))
    pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
    assert ways
    for way in ways:
        assert way[0] == "consensus/partition.py" and len(way) <= MOST_FILES
        assert len(set(way)) == len(way), way


def halves(draws, loss, task, *, turn=0):
    """Put one half of the items into each of two clusters."""
    return Candidate(np.roll(np.arange(draws.n_items) * 2 // draws.n_items, turn))


def test_a_method_is_added_by_its_function_and_a_line(monkeypatch):
    monkeypatch.setitem(pc.METHODS, "halves", Method(halves))
    draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1]]
    for data in (draws, pc.as_pair_similarity(pc.as_partition_draws(draws))):
        best = pc.consensus_partition(data, loss="binder", method="halves", turn=1)
        assert best.labels.values.tolist() == [0, 1, 1, 0] and best.method == "halves"
        assert best.expected_loss == pytest.approx(pc.expected_loss(data, best)["expected_loss"].item())
    with pytest.raises(TypeError, match=r"`turns`\. .* `turn`\? Method 'halves' takes turn"):
        pc.consensus_partition(draws, method="halves", turns=1)


# Why a name may be defined in several files: a kernel has the name of the function or the record around it; a claim
# that of its topic, of draws and of scored pairs; `stored_as.number` and `display.number` are read with their files'
# names.
NAMED_BY_FILE = ("kernels/", "summary/about_draws.py", "summary/about_pairs.py", "results/stored_as.py")


def names_by_file():
    """The files that define a function or a class of each name, private ones too, without those of NAMED_BY_FILE."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        path = file.relative_to(PACKAGE).as_posix()
        if not path.startswith(NAMED_BY_FILE):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name != "_":  # a branch by type
                    found.setdefault(node.name, set()).add(path)
    return found


def test_one_name_is_one_thing():
    assert not {name: sorted(files) for name, files in names_by_file().items() if len(files) > 1}
