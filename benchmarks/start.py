"""Whole processes, from start to end: an import, a first answer, a summary; in a program, a notebook, the command.

The unit is a process that imports what every such process imports, measured in turn with the others: seconds of one
machine differ from hour to hour. Processor seconds are of all threads. A package is copied to a folder of its own, with
bytecode, in three states: its kernels came compiled, as in a wheel; they are on disk, compiled for this machine; or
there are none.
"""

import compileall
import io
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks._data import SHIPPED
from benchmarks._runner import ROOT

UNIT = "import numba, xarray"
FILE = str(SHIPPED / "galaxies.nc")
SUMMARY = f"import posterior_consensus as pc\npc.summarize({FILE!r}, random_seed=1, progressbar=False)"
ENTRY = "posterior_consensus_command"
COMMAND = f"import sys; from {ENTRY} import main; sys.argv[1:] = {{}}; sys.exit(main())"
PROCESSES = {
    "import posterior_consensus": "import posterior_consensus",
    "posterior-consensus --help": COMMAND.format(["--help"]),
    "consensus_partition of an array": """
import numpy as np
import posterior_consensus as pc
labels = np.random.default_rng(1).integers(3, size=(200, 60))
pc.consensus_partition(labels, random_seed=1, progressbar=False)
""",
    "summarize, printed": f"{SUMMARY.replace('pc.summarize', 'print(pc.summarize')})",
    "summarize, twice": f"{SUMMARY}\n{SUMMARY}",
    "summarize in IPython, displayed": f"""
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_cell({SUMMARY!r}).raise_error()
""",
    "posterior-consensus galaxies.nc": COMMAND.format([FILE, "--quiet"]),
}
OF_SMALLEST = ("import posterior_consensus", "posterior-consensus --help")
PACKAGE = ("posterior_consensus", f"{ENTRY}.py")
REPEATS = 5
OPTIONS = {"--before": {"metavar": "REVISION", "help": "measure this version too, in turn"}}


def tables(smallest, before):
    yield "", _rows(smallest, before)


def _rows(smallest, before):
    """A row for each process and state of the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        places = _places(Path(folder), before, smallest=smallest)
        if not smallest:
            empty = {name: place for name, place in places.items() if name != "shipped"}
            yield from _measured(empty, "summarize, printed", ", none on disk", 1)
        for process in OF_SMALLEST if smallest else PROCESSES:
            for place in places.values():
                _run(place, PROCESSES[process])  # after which all that it needs is on disk
            yield from _measured(places, process, "", 1 if smallest else REPEATS)


def _measured(places, process, state, repeats):
    """Rows of medians; the places and the unit are measured in turn."""
    code = {"": UNIT} | dict.fromkeys(places, PROCESSES[process])
    runs = [{name: _run(places.get(name, ROOT), code[name]) for name in code} for _ in range(repeats)]
    unit = statistics.median(one[""][0] for one in runs)
    for name in places:
        cpu, seconds = (statistics.median(one[name][k] for one in runs) for k in range(2))
        yield {"process": process, "kernels": name + state, "processor s": cpu, "units": cpu / unit, "s": seconds}


def _places(folder, before, *, smallest):
    """Copies of the package by their state; all kernels that the processes need are on disk."""
    places = {"native": folder / "native"}
    _copy(ROOT, places["native"])
    if not smallest:
        places["shipped"] = folder / "shipped"
        _copy(ROOT, places["shipped"])
        shutil.copytree(ROOT / "packaging", places["shipped"] / "packaging")
        _run(places["shipped"], "import runpy; runpy.run_path('packaging/kernels.py', run_name='__main__')")
    if before:
        places["before"] = folder / "before"
        found = subprocess.run(["git", "archive", before], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
            archive.extractall(places["before"], filter="data")
    for place in places.values():
        compileall.compile_dir(place, quiet=2)
    return places


def _copy(checkout, place):
    for name in PACKAGE:
        one = checkout / name
        ignored = shutil.ignore_patterns("__pycache__", "compiled")
        shutil.copytree(one, place / name, ignore=ignored) if one.is_dir() else shutil.copy(one, place / name)


def _run(place, code):
    """Processor and elapsed seconds of a process."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(place / "cache"), "PYTHONPATH": str(place)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if not (place / f"{ENTRY}.py").exists():  # an older version
        code = code.replace(ENTRY, "posterior_consensus.cli")
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment, cwd=place)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds
