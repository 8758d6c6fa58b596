"""How much a contributor must know: code by room, the median file, constants, names, and the walk of one call's draws.

``python -m tests.weigh`` weighs this repository, ``python -m tests.weigh FOLDER`` also another version of it, and
prints the difference. Code lines are neither blank nor a comment nor part of a docstring. The walk is the functions of
`consensus_partition` that hold the draws, in the order of their first call: it stays in a file until a function of
another file is called, and returns if it has been in that file before.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
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


def names_in(stub: Path) -> int:
    """Count the public names of a module: what its stub imports."""
    nodes = ast.parse(stub.read_text(encoding="utf-8")).body
    imported = [alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    return len({alias.asname or alias.name for alias in imported})


def constants(file: Path) -> int:
    """Count the constants that a file assigns at the level of the module."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return sum(name.isupper() for name in names)


def counts(root: Path) -> dict[str, float]:
    """Count files, constants, public names, and the stays, files and returns of the walk."""
    package = root / "posterior_consensus"
    files = [file for file in package.glob("**/*.py") if file.name != "__init__.py"]
    code = [weight(file).code for file in files]
    environment = os.environ | {"PYTHONPATH": str(root)}
    walked = subprocess.run([sys.executable, __file__, "--walk"], env=environment, capture_output=True, check=True)
    stays = walked.stdout.decode().split()
    return {
        "code lines of the median file": median(code),
        "files under 40 code lines": sum(number < 40 for number in code),
        "constants at the level of a module": sum(map(constants, files)),
        "names at the top": names_in(package / "__init__.pyi"),
        "names in modules": sum(map(names_in, package.glob("*/__init__.pyi"))),
        "stays of the walk": len(stays),
        "files of the walk": len(set(stays)),
        "returns of the walk": len(stays) - len(set(stays)),
    }


def walk() -> None:
    """Print the files in which the walk stays, for the version of the package that Python imports."""
    import numpy as np

    import posterior_consensus as pc

    home, shape = str(Path(pc.__file__).parent), (20, 12)
    seen: set[str] = set()
    stays: list[str] = []

    def holds_draws(value: object, depth: int = 0) -> bool:
        if {"PairSource", "LabelBackend"} & {base.__name__ for base in type(value).__mro__}:
            return True
        if isinstance(value, np.ndarray):
            return value.shape == shape
        parts = list(value) if isinstance(value, tuple | list) else list(getattr(value, "__dict__", {}).values())
        return depth < 2 and any(holds_draws(part, depth + 1) for part in parts)

    def enter(frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        name = f"{code.co_filename}:{code.co_qualname}"
        if event == "call" and name.startswith(home) and name not in seen and not code.co_name.startswith("<"):
            if not any(map(holds_draws, frame.f_locals.values())):  # type: ignore[attr-defined]
                return
            seen.add(name)
            if not stays or stays[-1] != code.co_filename:
                stays.append(code.co_filename)

    draws = np.random.default_rng(1).integers(3, size=shape)
    for profile in (None, enter):  # the first call imports and compiles
        sys.setprofile(profile)
        pc.consensus_partition(draws, random_seed=1, progressbar=False)
    sys.setprofile(None)
    print("\n".join(file.removeprefix(home) for file in stays))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="another version of the repository, to compare with")
    parser.add_argument("--walk", action="store_true", help="print the files in which the walk stays, and no more")
    asked = parser.parse_args()
    if asked.walk:
        walk()
        return
    other = asked.folder
    here = weights(ROOT)
    there = {} if other is None else weights(other)
    print(" ".join([f"{'':24}", *(f"{column:>20}" for column in COLUMNS)]))
    for name in dict.fromkeys([*here, *there]):
        values = here.get(name, Weight())
        changes = values.plus(there.get(name, Weight()), -1)
        cells = [f"{v:,}" + (f" ({c:+,})" if there else "") for v, c in zip(values, changes, strict=True)]
        print(" ".join([f"{name:24}", *(f"{cell:>20}" for cell in cells)]))
    before = {} if other is None else counts(other)
    for name, value in counts(ROOT).items():
        print(f"{name}: {value:g}" + (f" ({value - before[name]:+g})" if before else ""))


if __name__ == "__main__":
    main()
