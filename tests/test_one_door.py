"""One door: what a posterior holds is decided once, by public functions, and alike by all."""

import ast
import re
from pathlib import Path

import posterior_consensus as pc

PACKAGE = Path(pc.__file__).parent
DOORS = {"as_source", "as_draws", "find_source"}
DOORS |= {"as_partition_draws", "as_allocation_probabilities", "as_pair_similarity", "allocation_probabilities"}
MODULES = (pc.consensus, pc.diagnostics, pc.experts, pc.losses, pc.simulate)
PUBLIC = {*re.findall(r" as (\w+)$", (PACKAGE / "__init__.pyi").read_text(encoding="utf-8"), re.MULTILINE)}
PUBLIC |= {name for module in MODULES for name in module.__all__}
THE_COMMAND = "_summary"  # of cli.py: the command line is a public function, and this the part that reads the draws
BELOW = ("ensemble", "kernels", "losses", "results", "runtime", "search")


def callers(node, path=()):
    """The functions and classes around each call of a door."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        path = (*path, node.name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DOORS:
        yield path
    for child in ast.iter_child_nodes(node):
        yield from callers(child, path)


def test_only_public_functions_call_a_door():
    found = {}
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] != "sources":  # where the doors are
            found[file.relative_to(PACKAGE).as_posix()] = list(callers(ast.parse(file.read_text(encoding="utf-8"))))
    assert sum(map(len, found.values())) > 30
    private = {
        (file, ".".join(path))
        for file, paths in found.items()
        for path in paths
        if path[0] not in PUBLIC or path[-1].startswith("_")
    }
    assert private == {("cli.py", THE_COMMAND)}
    assert not [file for file, paths in found.items() if paths and file.startswith(BELOW)]
