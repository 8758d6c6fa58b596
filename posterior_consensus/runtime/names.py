"""Public names, imported from the files that a stub lists when they are used, and suggestions for misspelt names."""

import ast
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

_SIMILARITY = "posterior_similarity_matrix(draws)"
_MEANT = {  # of the package
    "psm": _SIMILARITY,
    "ari": 'partition_loss(partition, reference, loss="one_minus_ari")',
    "rand": 'partition_loss(partition, reference, loss="binder")',
    **dict.fromkeys(("load", "read", "open", "from_netcdf"), "results.Summary.from_dataset"),
}
_MEANT_OF_RESULT = {
    "partition": "labels",
    **dict.fromkeys(("item_names", "names_of_items"), "labels"),  # with the items as coordinate
    **dict.fromkeys(("psm", "similarity_matrix"), _SIMILARITY),
    **dict.fromkeys(("save", "to_file", "to_netcdf"), "attach(idata, result).to_netcdf(path)"),
}
_MEANT_OF_SUMMARY = dict.fromkeys(("uncertain", "uncertainty", "uncertain_items", "item_uncertainty"), "items")
_MEANT_OF_LOSS = {  # of the literature and of other programs
    **dict.fromkeys(("rand", "rand_index", "ri", "mirkin"), "binder"),
    **dict.fromkeys(("adjusted_rand", "adjusted_rand_index", "adjusted_rand_score", "hubert_arabie"), "one_minus_ari"),
    "omari": "one_minus_ari",
    "id": "information_distance",
    **dict.fromkeys(("variation_of_information", "vi_distance"), "vi"),
    **dict.fromkeys(("mutual_information", "mutual_info", "normalized_mutual_info"), "nmi"),
}
_MEANT_OF_OPTION = {  # of other programs
    **dict.fromkeys(("k", "n_components", "n_classes"), "n_clusters"),
    **dict.fromkeys(("k_max", "kmax", "max_k", "maxk", "max_n_clusters", "maxnclusters"), "max_clusters"),
    **dict.fromkeys(("n_init", "n_runs", "nruns"), "n_starts"),
    **dict.fromkeys(("cores", "n_cores", "ncores"), "n_jobs"),
}


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` of a package from the imports in the stub beside its file.

    Importing the package then costs milliseconds, and its names may live in layers above it: the stub is for type
    checkers and readers, and no code imports what it lists. The package lazy_loader refuses names from elsewhere.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in places:
            modules = [one for one in places if places[one] == package]
            raise UnknownName(
                f"module {package!r} has no attribute {name!r}.",
                name,
                lambda: did_you_mean(
                    name,
                    [*(f"{one}.{other}" for one in modules for other in load(one).__all__), *places],
                    _MEANT.get(name) or _plotted(name),
                ),
            )
        if places[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(places[name]), name)

    return load, lambda: list(places), list(places)


def _plotted(figure: str) -> str | None:
    """The call whose result has this figure, from what functions return; None if no result has it."""
    if not figure.startswith("plot_"):
        return None
    top = import_module(__package__.partition(".")[0])
    kinds = {name: getattr(top.results, name) for name in top.results.__all__}
    of_figure = [name for name, kind in kinds.items() if getattr(kind, "_figure", "").endswith(f".{figure}")]
    modules = [name for name in top.__all__ if isinstance(getattr(top, name), ModuleType)]
    for call in (*top.__all__, *(f"{module}.{name}" for module in modules for name in getattr(top, module).__all__)):
        returned = re.findall(r"\w+", str(getattr(attrgetter(call)(top), "__annotations__", {}).get("return")))
        if not set(of_figure).isdisjoint(returned):
            return f"{call}(...).plot()"
    return None


def did_you_mean(name: str, known: Iterable[str], meant: str | None = None) -> str:
    """The end of an error on an unknown name: `meant`, else the nearest known name, or a name that contains it."""
    plain = {one.rpartition(".")[2].replace("_", "").lower(): one for one in known}
    word = name.replace("_", "").lower()
    inside = [short for short in plain if min(len(short), len(word)) > 2 and (word in short or short in word)]
    near = [*get_close_matches(word, plain, 1, 0.85), *inside, *get_close_matches(word, plain, 1, 0.7)]
    found = meant or (plain[near[0]] if near else "")
    return f" Did you mean `{found}`?" if found else ""


def option_meant(name: str, known: Iterable[str]) -> str:
    """Same for an option, whose name may come from another program."""
    known, meant = list(known), _MEANT_OF_OPTION.get(name.lower())
    return did_you_mean(name, known, meant if meant in known else None)


def loss_meant(name: str, known: Iterable[str]) -> str:
    """Same for a loss."""
    return did_you_mean(name, known, _MEANT_OF_LOSS.get(name.lower().replace(" ", "_")))


class UnknownName(AttributeError):
    """The error for an attribute that is not there; it looks for a suggestion when it is shown, as `hasattr` does not.

    Given are the message, the name that was asked for, and a function that gives the suggestion, or "".
    """

    def __init__(self, message: str, name: str, suggest: Callable[[], str]) -> None:
        super().__init__(message, name=name)
        self._suggest = suggest

    def __str__(self) -> str:
        return f"{self.args[0]}{'' if str(self.name).startswith('_') else self._suggest()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


def no_attribute(result: object, name: str) -> AttributeError:
    """Make the error for an attribute that a result does not have."""
    kind = type(result).__name__
    meant = _MEANT_OF_RESULT.get(name) or (_MEANT_OF_SUMMARY.get(name) if kind == "Summary" else None)
    message = f"{kind!r} object has no attribute {name!r}."
    return UnknownName(message, name, lambda: did_you_mean(name, _attributes_inside(result), meant))


def _attributes_inside(result: object) -> list[str]:
    """Public attributes of a result and of its parts."""
    parts = {part: value for part, value in reversed(vars(result).items()) if _is_result(value)}
    inside = [f"{part}.{other}" for part, value in parts.items() for other in _attributes(value)]
    return [*inside, *_attributes(result)]  # the result's own come last, and replace the same names of its parts


def _attributes(result: object) -> list[str]:
    """Public attributes of a result."""
    return [name for name in sorted({*dir(type(result)), *vars(result)}) if not name.startswith("_")]


def _is_result(value: object) -> bool:
    """Whether it is a result of this package."""
    return type(value).__module__.startswith(f"{__package__.partition('.')[0]}.") and hasattr(value, "to_dataset")
