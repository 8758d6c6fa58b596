"""Parameters that many functions have: their type, first words and default, declared once.

``python -m tests.parameters`` writes them into the docstrings; `tests/test_public_api.py` compares. So `help()`, type
checkers and readers of a file see them in full. What follows the first words in a docstring is the function's own.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.catalogue.functions import FIGURES, PUBLIC

WIDTH = 120


class Shared(NamedTuple):
    """Type and first sentences in a docstring, and the default."""

    type: str
    text: str
    default: Any = None


SHARED = {
    "figsize": Shared("(float, float), optional", "Width and height of a new figure in inches."),
    "figsize, ax": Shared(
        "(float, float) and matplotlib.axes.Axes, optional",
        "Width and height of a new figure in inches, or the axes to plot on.",
    ),
    "first_label": Shared(
        "{0, 1}, optional",
        "Label of the first component. By default 0 if any label is 0, and 1 if any is the number of components; "
        "required if neither occurs.",
    ),
    "group": Shared("str", "Group of an InferenceData, DataTree or file.", "posterior"),
    "item_dim": Shared("str, optional", "Dimension that runs over items; by default the remaining dimension."),
    "progressbar": Shared("bool", "Whether to show progress if the work takes more than a second.", True),
    "random_seed": Shared("int, Generator, SeedSequence or None", "The same seed gives the same result."),
    "sample_dims": Shared(
        "str or sequence of str, optional",
        "Dimensions that run over draws; by default as in :func:`as_partition_draws`.",
    ),
    "seconds": Shared("float, optional", "Time limit. With one, the result depends on the machine."),
    "weights, log_weights": Shared(
        "array_like, optional", "Weight of each draw, or its logarithm, as in :func:`as_partition_draws`."
    ),
}
OWN = {  # described in words of their own
    "attach": {"group"},  # which is written
    "relabel": {"group"},  # which takes no file
    "as_partition_draws": {"sample_dims"},  # where others refer to
    "as_pair_similarity": {"item_dim", "sample_dims"},  # of a matrix; described with other parameters
    "as_allocation_probabilities": {"item_dim"},  # described with the components'
}


def described() -> Iterator[tuple[str, Any, str, re.Match[str]]]:
    """Each function with a shared parameter, the parameter, and its description in the docstring."""
    functions = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)} | FIGURES
    for name, function in functions.items():
        shared = SHARED.keys() - OWN.get(name, set())
        for parameter in sorted(shared):
            pattern = rf"^    {re.escape(parameter)} : ([^\n]*)\n((?:        [^\n]*\n|\n(?=        ))+)"
            found = re.search(pattern, function.__doc__, re.MULTILINE)
            if found:
                yield name, function, parameter, found


def wanted(parameter: str, text: str) -> str:
    """Lines of a parameter: the shared type and first sentences, then what the text has after as many sentences."""
    kind, first, _ = SHARED[parameter]
    paragraph, *others = textwrap.dedent(text).split("\n\n")
    sentences = re.split(r"(?<=\.) ", " ".join(paragraph.split()))
    rest = sentences[len(re.split(r"(?<=\.) ", first)) :]
    lines = textwrap.wrap(" ".join([first, *rest]), WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    tail = "".join("\n" + textwrap.indent(one.rstrip("\n") + "\n", " " * 8) for one in others)
    return f"    {parameter} : {kind}\n" + "\n".join(lines) + "\n" + tail


def write() -> None:
    """Write the shared words into all docstrings."""
    found = list(described())
    sources = {function: inspect.getsource(function) for _, function, _, _ in found}  # before lines move
    for _, function, parameter, lines in found:
        file, before = Path(inspect.getsourcefile(function)), sources[function]
        sources[function] = before.replace(lines[0], wanted(parameter, lines[2]), 1)
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(before, sources[function], 1), encoding="utf-8")


if __name__ == "__main__":
    write()
