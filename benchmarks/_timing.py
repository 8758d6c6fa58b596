"""Medians of alternating runs, and the table that shows them."""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np


def alternate(programs: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Run the programs in turn, `repeats` times; each returns its own seconds. Medians."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            seconds[name].append(program())
    return {name: statistics.median(runs) for name, runs in seconds.items()}


def timed(function: Callable[[], object]) -> Callable[[], float]:
    """Make a program of a function: it returns the seconds that a call takes."""

    def program() -> float:
        began = time.perf_counter()
        function()
        return time.perf_counter() - began

    return program


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table, as the documentation shows it."""
    for row in (header, ["---"] * len(header), *rows):
        print(
            "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |",
            flush=True,
        )


def is_smallest() -> bool:
    """Whether the command line asks for the smallest size only."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    return bool(parser.parse_args().smallest)


def random_draws(n_draws: int, n_items: int, n_labels: int) -> np.ndarray:
    """Draws of a noisy partition whose labels, up to `n_labels`, switch from draw to draw."""
    rng = np.random.default_rng(n_items)
    truth = rng.integers(n_labels, size=n_items)
    noisy = np.where(rng.random((n_draws, n_items)) < 0.3, rng.integers(n_labels, size=(n_draws, n_items)), truth)
    names = rng.permuted(np.tile(np.arange(n_labels), (n_draws, 1)), axis=1)
    return np.take_along_axis(names, noisy, axis=1).astype(np.uint16)
