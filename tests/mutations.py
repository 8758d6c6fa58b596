"""Mutation testing by hand: small faults put into the package one at a time, and the tests that notice none of them.

``python -m tests.mutations --number 200`` takes hours. A mutant is an operator, a comparison or a small constant
changed outside the kernels. It is killed if a test of its room fails, or one that goes through the whole package.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "posterior_consensus"
WHOLE = ["tests/test_golden.py", "tests/consensus/test_contract.py", "tests/summary", "tests/test_cli.py"]
SECONDS = 900  # after which a mutant counts as killed: it may never end
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
RENAMED = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "argmax": "argmin"}
LARGEST = 10  # constant that is changed


class Mutant(NamedTuple):
    """A piece of a file's source, and what is put in its place."""

    file: Path
    line: int
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        source = self.file.read_text(encoding="utf-8")
        where = f"{self.file.relative_to(ROOT)}:{self.line}"
        return f"{where}: {source[self.start : self.end]!r} -> {self.text!r}"


def mutants(file: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    source = file.read_text(encoding="utf-8")
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line.encode()))
    encoded = source.encode()

    def at(line: int, column: int) -> int:
        return len(encoded[: begins[line - 1] + column].decode())

    for node in ast.walk(ast.parse(source)):
        changed = _changed(node)
        if changed is not None:
            start, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            yield Mutant(file, node.lineno, start, end, f"({ast.unparse(changed)})")


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


def tests_of(file: Path) -> list[str]:
    """The tests that a fault in this file is most likely to fail, those of its own name first."""
    room = file.relative_to(ROOT / PACKAGE).parts[0]
    own = sorted(str(found.relative_to(ROOT)) for found in (ROOT / "tests").rglob(f"test_{file.stem}*.py"))
    there = [f"tests/{room}"] if (ROOT / "tests" / room).is_dir() else []
    return [*own, *there, *WHOLE]


def lives(mutant: Mutant, copy: Path) -> bool:
    """Whether all tests pass with this mutant in a copy of the repository."""
    file = copy / mutant.file.relative_to(ROOT)
    source = file.read_text(encoding="utf-8")
    file.write_text(source[: mutant.start] + mutant.text + source[mutant.end :], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests_of(mutant.file)]
    try:
        return subprocess.run(command, cwd=copy, capture_output=True, timeout=SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(source, encoding="utf-8")


def main() -> None:
    """Print the mutants that live, and how many died."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    files = sorted(file for file in (ROOT / PACKAGE).rglob("*.py") if "kernels" not in file.parts)
    found = [mutant for file in files for mutant in mutants(file)]
    chosen = random.Random(given.seed).sample(found, min(given.number, len(found)))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "_build", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=ignored)
        living = 0
        for mutant in chosen:
            if lives(mutant, copy):
                living += 1
                print(f"lives  {mutant}", flush=True)
    print(f"{len(chosen) - living} of {len(chosen)} mutants died, of {len(found)} there are")


if __name__ == "__main__":
    main()
