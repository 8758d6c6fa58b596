"""Run the tutorials when the documentation is built, all in one process: packages and kernels are loaded once."""

from functools import cache
from pathlib import Path

import jupytext
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell


@cache
def process():
    manager = KernelManager()
    manager.start_kernel(cwd=Path(__file__).parent / "tutorials")
    return manager


def run(text):
    """Read a script with cells, and run it with no names left by the one before."""
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.cells.insert(0, new_code_cell("%reset -f"))
    client = NotebookClient(notebook, km=process(), timeout=300)
    client.execute()
    client.kc.stop_channels()
    del notebook.cells[0]
    return notebook
