"""Run the tutorials when the documentation is built, all in one process: packages and kernels are loaded once.

A tutorial is run again only if it, the package or a package that it needs has changed.
"""

import hashlib
import re
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from tempfile import mkdtemp

import jupytext
import nbformat
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

HERE = Path(__file__).parent
TUTORIALS = HERE / "tutorials"
KEPT = HERE / "_build" / "tutorials"
FIRST = """import matplotlib.pyplot  # it sets what the last line replaces
from matplotlib.figure import Figure
def on_page(figure):
    from io import BytesIO
    figure.savefig(file := BytesIO(), format="png", bbox_inches="tight", transparent=True)
    return file.getvalue()
get_ipython().display_formatter.formatters["image/png"].for_type(Figure, on_page)
%reset -f"""
FIGURE = re.compile(r"^# Figure: (.*\n(?:# .*\n)*)", re.MULTILINE)  # alternative text of a cell's pictures
LINK = re.compile(r"!?\[([^\]]*)\]\((?!https?:)([^)]*)\)")  # to a page or a picture of the documentation
_LONG = 40  # lines of a value
_COLUMNS = re.compile(r"^  |\S  ", re.MULTILINE)  # a line of a table, or one that is indented


@cache
def process():
    manager = KernelManager()
    manager.start_kernel(cwd=mkdtemp())  # as a notebook that was downloaded: nothing lies beside it
    return manager


@cache
def surroundings():
    """What a tutorial runs in: this file, the package, its data, and the versions of all that is installed."""
    package = sorted((HERE.parent / "posterior_consensus").rglob("*.*"))
    files = [Path(__file__), *(file for file in package if file.is_file() and "__pycache__" not in file.parts)]
    installed = sorted(f"{one.name} {one.version}" for one in distributions())
    return b"".join([*(file.read_bytes() for file in files), repr(installed).encode()])


def run(text):
    """A script with cells, run with no names left by the one before, or as it was kept."""
    kept = KEPT / f"{hashlib.sha256(surroundings() + text.encode()).hexdigest()}.ipynb"
    if kept.exists():
        return nbformat.read(kept, 4)
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.cells.insert(0, new_code_cell(FIRST))
    client = NotebookClient(notebook, km=process(), timeout=300)
    client.execute()
    client.kc.stop_channels()
    del notebook.cells[0]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            _check(cell)
    (name,) = (file.stem for file in TUTORIALS.glob("*.py") if file.read_text(encoding="utf-8") == text)
    notebook.cells[0].source += f'\n\n<a href="{name}.ipynb" download>Download this page as a notebook</a>'
    KEPT.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook


def _check(cell):
    """Make a cell's "Figure: ..." the alternative text of its pictures; tag sentences; find what nobody would read."""
    words = FIGURE.search(cell.source)
    if words is not None:
        cell.source = FIGURE.sub("", cell.source)
        alt = re.sub(r"\n(?:# )?", " ", words[1]).strip()
        cell.metadata["mystnb"] = {"image": {"alt": alt}}
    printed = [output["text"] for output in cell.outputs if output.output_type == "stream"]
    if printed and not any(map(_COLUMNS.search, printed)):
        cell.metadata["tags"] = ["prose"]  # custom.css wraps it
    for output in cell.outputs:
        kinds = output.get("data", {})
        if "image/png" in kinds:
            if words is None:
                raise ValueError(f"A comment '# Figure: ...' must say what the picture shows, in:\n{cell.source}")
        elif "text/plain" in kinds and "text/html" not in kinds:
            text = kinds["text/plain"]
            if re.match(r"\[?(?:Text\(|<)", text) or len(text.splitlines()) > _LONG:
                raise ValueError(f"The page should not show\n{text}\nof\n{cell.source}")


def write(script, file):
    """Write a script with cells as a notebook to download, without what only works on its page."""
    notebook = jupytext.read(script, fmt="py:percent")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda link: link[1] or f"`{Path(link[2]).stem}`", cell.source)
        else:
            cell.source = FIGURE.sub("", cell.source)
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    jupytext.write(notebook, file, fmt="ipynb")
