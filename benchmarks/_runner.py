"""One runner for all benchmarks: arguments, tables, times, memory, processes.

A benchmark is a file with a function `tables(smallest, ...)`, which yields a title and the rows of each table. A row is
a dictionary from columns to cells; it is printed as soon as it is there. `OPTIONS` has further arguments of the command
line, as argparse takes them.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
STATUS, CLEAR_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def names() -> list[str]:
    """The benchmarks, and the reproductions of papers after them."""
    files = [*sorted(HERE.glob("[!_]*.py")), *sorted(HERE.glob("reproductions/[!_]*.py"))]
    return [".".join(file.relative_to(HERE).with_suffix("").parts) for file in files]


def run(name: str, arguments: list[str]) -> None:
    """Print the tables of a benchmark."""
    module = import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}", description=module.__doc__)
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    for option, settings in getattr(module, "OPTIONS", {}).items():
        parser.add_argument(option, **settings)
    began = time.perf_counter()
    for title, rows in module.tables(**vars(parser.parse_args(arguments))):
        print(f"\n{title}\n" if title else "")
        print_table(rows)
    print(f"\n{time.perf_counter() - began:.0f} s")


def print_table(rows: Iterable[dict[str, object]]) -> None:
    """Print a Markdown table."""
    for line in markdown(rows):
        print(line, flush=True)


def markdown(rows: Iterable[dict[str, object]]) -> Iterator[str]:
    """The lines of a Markdown table, as the documentation shows it."""
    for k, row in enumerate(rows):
        cells = [_shown(cell) for cell in row.values()]
        for line in [row, ["---"] * len(row), cells] if k == 0 else [cells]:
            yield "| " + " | ".join(line) + " |"


def _shown(cell: object) -> str:
    """Three digits of a number that is not whole; thousands with a comma."""
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 999.5 else f"{float(f'{cell:.3g}'):,.0f}"
    return f"{cell:,}" if isinstance(cell, Integral) and not isinstance(cell, bool) else str(cell)


class Used(NamedTuple):
    """What a call returned, and what it took; the memory is its peak beyond what the process had before."""

    result: Any
    seconds: float
    cpu: float
    gigabytes: float


def used(function: Callable[..., object], *arguments: object, **options: object) -> Used:
    """Call a function."""
    before = _memory("VmRSS")
    if CLEAR_PEAK.exists():
        CLEAR_PEAK.write_text("5", encoding="utf-8")  # the peak begins anew
    began, worked = time.perf_counter(), time.process_time()
    result = function(*arguments, **options)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    return Used(result, seconds, cpu, _memory("VmHWM") - before)


def _memory(name: str) -> float:
    """Memory of this process now, or at its peak, in GB; not a number where the system does not tell."""
    lines = STATUS.read_text(encoding="utf-8").splitlines() if CLEAR_PEAK.exists() else []
    return next((1024e-9 * int(line.split()[1]) for line in lines if line.startswith(name)), float("nan"))


def median_seconds(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Median seconds of calls of each function; where there are several, they are called in turn."""
    runs = [[used(function).seconds for function in functions] for _ in range(repeats)]
    return [statistics.median(seconds) for seconds in zip(*runs, strict=True)]


def process(checkout: Path = ROOT) -> ProcessPoolExecutor:
    """A process that calls functions of modules, with the package of a checkout."""
    return ProcessPoolExecutor(1, get_context("spawn"), initializer=_prefer, initargs=(str(checkout),))


def _prefer(checkout: str) -> None:
    sys.path.insert(0, checkout)


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function of a module in a process of its own, so that compilation and memory are its own."""
    gc.collect()
    with process() as one:
        return one.submit(function, *arguments).result()
