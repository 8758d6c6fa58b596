"""Run the code of a page when it is built, and put each figure where the page has a block "plotted".

The block stands below the code that makes the figure, and holds its alternative text. If that code makes several
figures, there are as many blocks. A page without such blocks is not run.
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

BLOCK = re.compile(r"^```(python|\{plotted\})\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE = Path(__file__).parent


def figures(text, folder):
    """Run the code of a page, save its figures in a folder, and return the text with them instead of the blocks."""
    names, made, count = {}, [], 0

    def in_place(block):
        nonlocal count
        kind, content = block.groups()
        if kind == "python":
            if made:
                raise ValueError(f"{len(made)} figures without a block before:\n{content}")
            exec(compile(content, "page", "exec"), names)
            made.extend(plt.get_fignums())
            return block[0]
        words, count = " ".join(content.split()), count + 1
        file = folder / f"{count}.png"
        plt.figure(made.pop(0)).savefig(file, dpi=150, transparent=True)
        if not made:
            plt.close("all")
        return f"![{words}]({file})"

    found = BLOCK.sub(in_place, text)
    if made:
        raise ValueError(f"{len(made)} figures without a block at the end")
    return found


def put_figures(app, page, source):
    """Replace the blocks of a page by pictures, which lie beside those of the gallery."""
    if "```{plotted}" not in source[0]:
        return
    folder = Path(app.doctreedir).parent / "plotted" / page
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty), contextlib.redirect_stdout(io.StringIO()):
        text = figures(source[0], folder)
    source[0] = text.replace(f"({folder}", f"({os.path.relpath(folder, (HERE / page).parent)}")


def setup(app):
    """Take part in the build."""
    app.connect("source-read", put_figures)
