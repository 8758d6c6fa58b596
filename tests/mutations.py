"""Mutation testing by hand: small faults put into the package one at a time, and the tests that notice none of them.

A mutant is an operator, a comparison or a small constant changed. First all tests run once, to see which lines each of
them reaches. Then each mutant meets the tests that reach it, those of its own room before the others and the fastest
first, until one fails or their time is spent: the plain tests first, then those that are marked slow.

``python -m tests.mutations lines --number 80`` takes an hour on two cores, and ten minutes more if the folder ``lines``
is new. With ``--kernels``, mutants are in the kernels, which run as plain Python and meet the tests of kernels and of
the search only. It needs Python 3.12.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutated import Chosen, put_in

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "posterior_consensus"
SECONDS = 180  # of plain tests for a mutant, and again of slow ones
PATIENCE = 5  # times as long may they take before the mutant counts as killed: it may never end
SEES_KERNELS = ["tests/kernels", "tests/search"]
BLIND = ["tests/kernels", "tests/test_quick_start.py", "tests/test_examples.py", "tests/test_architecture.py"]
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
RENAMED = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "argmax": "argmin"}
LIBRARIES = ["arviz_base", "arviz_stats", "h5netcdf", "highspy", "matplotlib.pyplot", "numba", "sklearn.cluster"]
LARGEST = 10  # constant that is changed


class Mutant(NamedTuple):
    """A piece of a file's source, and what is put in its place."""

    file: Path
    lines: range
    is_in_function: bool
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        replaced = self.file.read_text(encoding="utf-8")[self.start : self.end]
        return f"{self.file.relative_to(ROOT)}:{self.lines.start}: {replaced!r} -> {self.text!r}"

    def source(self) -> str:
        """The file as it would be with this mutant."""
        source = self.file.read_text(encoding="utf-8")
        return source[: self.start] + self.text + source[self.end :]


class Reach(NamedTuple):
    """How long a test takes, and the lines it reaches by file."""

    seconds: float
    slow: bool
    lines: dict[str, list[int]]

    def meets(self, mutant: Mutant) -> bool:
        """Whether the test reaches a mutant; one that an import makes, whether it reaches its file."""
        lines = self.lines.get(str(mutant.file), [])
        return any(line in mutant.lines for line in lines) if mutant.is_in_function else bool(lines)


def mutants(file: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    source = file.read_text(encoding="utf-8")
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line.encode()))
    encoded = source.encode()

    def at(line: int, column: int) -> int:
        return len(encoded[: begins[line - 1] + column].decode())

    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    in_functions = {node for function in functions for part in function.body for node in ast.walk(part)}
    for node in ast.walk(tree):
        changed = _changed(node)
        if changed is not None:
            start, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            lines = range(node.lineno, node.end_lineno + 1)
            yield Mutant(file, lines, node in in_functions, start, end, f"({ast.unparse(changed)})")


def _changed(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        return ast.Compare(node.left, [SWAPPED[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        return ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(SWAPPED[type(node.op)](), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= LARGEST:
        return ast.Constant(node.value + 1)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in RENAMED:
            return ast.Call(ast.Name(RENAMED[node.func.id]), node.args, node.keywords)
        if isinstance(node.func, ast.Attribute) and node.func.attr in RENAMED:
            return ast.Call(ast.Attribute(node.func.value, RENAMED[node.func.attr]), node.args, node.keywords)
    return None


def reach_of_tests(folder: Path, processes: int, in_kernels: bool) -> dict[str, Reach]:
    """What each test reaches, as the folder has it or as all tests now show."""
    if not folder.is_dir():
        folder.mkdir()
        tests = SEES_KERNELS if in_kernels else ["tests", *(f"--ignore={path}" for path in BLIND)]
        command = [sys.executable, "-m", "pytest", *tests, "-p", "tests.mutated", "-n", str(processes)]
        subprocess.run(command, check=False, cwd=ROOT, env=os.environ | {"NOTE_LINES_IN": str(folder.resolve())})
    tests = (json.loads(line) for file in folder.glob("*.jsonl") for line in file.open(encoding="utf-8"))
    reach = {test.pop("test"): Reach(**test) for test in tests}
    return {name: one for name, one in reach.items() if in_kernels or not name.startswith(tuple(BLIND))}


def rounds(mutant: Mutant, reach: dict[str, Reach], slow: bool) -> Iterator[list[str]]:
    """The slow or the other tests that a mutant meets: those of its own room, then those elsewhere."""
    room = f"tests/{mutant.file.relative_to(PACKAGE).parts[0]}/"
    met = [name for name in reach if reach[name].meets(mutant)] or [name for name in reach if name.startswith(room)]
    met = sorted((name for name in met if reach[name].slow is slow), key=lambda name: reach[name].seconds)
    left = SECONDS
    for here in (True, False):
        names = [name for name in met if name.startswith(room) is here]
        ends = accumulate(reach[name].seconds for name in names)
        affordable = [name for name, end in zip(names, ends, strict=True) if end < left]
        if affordable:
            left -= sum(reach[name].seconds for name in affordable)
            yield affordable


def fate(mutant: Mutant, reach: dict[str, Reach]) -> str:
    """The test that kills this mutant, or that it lives."""
    for slow in (False, True):
        for tests in rounds(mutant, reach, slow):
            with tempfile.NamedTemporaryFile(encoding="utf-8", mode="r") as output:
                # A fork, as the libraries are imported already; the package is not.
                process = get_context("fork").Process(target=_run, args=(mutant, tests, output.name))
                process.start()
                process.join(PATIENCE * SECONDS)
                if process.is_alive():
                    process.kill()
                    return "takes too long"
                if process.exitcode != 0:
                    told = (line for line in output if line.startswith(("FAILED", "ERROR", "E ")))
                    return f"{'slow ' * slow}{next(told, 'ended').strip()}"
    return "lives"


def _run(mutant: Mutant, tests: list[str], output: str) -> None:
    with Path(output).open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    put_in(str(mutant.file), mutant.source())
    files = sorted({name.partition("::")[0] for name in tests})
    os.chdir(ROOT)
    code = pytest.main(["-x", "-q", "--tb=no", "-p", "no:cacheprovider", *files], [Chosen(tests)])
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Print what becomes of each mutant, and how many live."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=Path, help="folder that has, or will have, the lines that each test reaches")
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kernels", action="store_true", help="mutants in the kernels, which run as plain Python")
    given = parser.parse_args()
    if given.kernels:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    files = sorted(file for file in PACKAGE.rglob("*.py") if ("kernels" in file.parts) is given.kernels)
    found = [mutant for file in files for mutant in mutants(file)]
    chosen = random.Random(given.seed).sample(found, min(given.number, len(found)))
    reach = reach_of_tests(given.lines, given.processes, given.kernels)
    for library in LIBRARIES:
        import_module(library)
    ends = []
    with ThreadPoolExecutor(given.processes) as threads:
        for mutant, end in zip(chosen, threads.map(lambda mutant: fate(mutant, reach), chosen), strict=True):
            ends.append(end)
            print(f"{mutant}: {end}", flush=True)
    living, by_slow = ends.count("lives"), sum(end.startswith("slow") for end in ends)
    print(f"Of {len(chosen)} mutants, of {len(found)} there are, {living} live; slow tests alone kill {by_slow}")


if __name__ == "__main__":
    main()
