"""Public names that are imported when they are used, as a stub lists them."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` of a package from the imports in the stub beside its file.

    Importing the package then costs milliseconds, and its names may live in layers above it: the stub is for type
    checkers and readers, and no code imports what it lists.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in places:
            from posterior_consensus.runtime.suggestions import no_public_name

            modules = [one for one in places if places[one] == package]
            inside = [f"{one}.{other}" for one in modules for other in load(one).__all__]
            raise no_public_name(package, name, [*inside, *places])
        if places[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(places[name]), name)

    return load, lambda: list(places), list(places)
