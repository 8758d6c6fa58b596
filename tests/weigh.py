"""How much code there is: lines, files and functions by room, names at the top, and what benchmarks and tests add.

``python -m tests.weigh`` weighs this repository, ``python -m tests.weigh FOLDER`` also another version of it, and
prints the difference. Code lines are neither blank nor a comment nor part of a docstring.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COLUMNS = "code lines", "all lines", "files", "functions"


class Weight(NamedTuple):
    """What one or several files weigh."""

    code: int = 0
    lines: int = 0
    files: int = 0
    functions: int = 0

    def plus(self, other: Weight, sign: int = 1) -> Weight:
        """Add another weight, or subtract it."""
        return Weight(*(a + sign * b for a, b in zip(self, other, strict=True)))


def weight(file: Path) -> Weight:
    """Weigh a Python file."""
    source = file.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    documented = [*functions, *(node for node in nodes if isinstance(node, ast.Module | ast.ClassDef))]
    docstrings = {
        number
        for node in documented
        if ast.get_docstring(node, clean=False) is not None
        for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    lines = [line.strip() for line in source.splitlines()]
    code = [
        line for number, line in enumerate(lines, 1) if line and not line.startswith("#") and number not in docstrings
    ]
    return Weight(len(code), len(lines), 1, len(functions))


def total(folder: Path, pattern: str = "**/*.py") -> Weight:
    """Weigh all files of a folder that match."""
    found = Weight()
    for file in folder.glob(pattern):
        found = found.plus(weight(file))
    return found


def weights(root: Path) -> dict[str, Weight]:
    """Weigh the package's rooms, the package, benchmarks with the reproductions among them, tests and examples."""
    package = root / "posterior_consensus"
    rooms = sorted(init.parent for init in package.glob("*/__init__.py"))
    found = {room.name: total(room) for room in rooms}
    found["beside the rooms"] = total(package, "*.py")
    found["package"] = total(package)
    for name in ("benchmarks", "benchmarks/reproductions", "tests", "examples"):
        found[name] = total(root / name)
    return found


def names_at_the_top(root: Path) -> int:
    """Count what ``dir(posterior_consensus)`` lists: the names that the stub imports or defines."""
    stub = ast.parse((root / "posterior_consensus" / "__init__.pyi").read_text(encoding="utf-8"))
    imported = [alias for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return len({alias.asname or alias.name for alias in imported})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="another version of the repository, to compare with")
    other = parser.parse_args().folder
    here = weights(ROOT)
    there = {} if other is None else weights(other)
    print(" ".join([f"{'':24}", *(f"{column:>20}" for column in COLUMNS)]))
    for name in dict.fromkeys([*here, *there]):
        values = here.get(name, Weight())
        changes = values.plus(there.get(name, Weight()), -1)
        cells = [f"{v:,}" + (f" ({c:+,})" if there else "") for v, c in zip(values, changes, strict=True)]
        print(" ".join([f"{name:24}", *(f"{cell:>20}" for cell in cells)]))
    now = names_at_the_top(ROOT)
    print(f"names at the top: {now}" + (f" ({now - names_at_the_top(other):+})" if other else ""))


if __name__ == "__main__":
    main()
