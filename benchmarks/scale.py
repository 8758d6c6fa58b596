"""Seconds and memory from 10,000 to 1,000,000 items of 1,000 draws: consensus, ball, items, diagnosis, summary.

About ten clusters; a tenth of the items are in either of two, and 2% of all labels are random. Each size has a process
of its own, and each function a call of few items before, for its kernels. Memory is that beyond what the process has
when the call begins, the draws among it. On Linux only, which tells a process its peak.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import print_table

N_CLUSTERS = 10
SIZES = ((10_000, 1_000), (100_000, 1_000), (1_000_000, 1_000))
MORE = (10_000_000, 100)
SMALLEST = ((300, 40), (400, 40))
WARM_UP = ((500, 100), (140_000, 1_000))  # the second is large enough for the kernels of blocks
FUNCTIONS = ("draws", "vi", "binder", "nvi", "rpm_em", "ball", "items", "diagnose", "summary")


def main() -> None:
    """Print one row per size and function; draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smallest", action="store_true", help="run at the smallest sizes only, as the tests do")
    parser.add_argument("--more", action="store_true", help="also 10,000,000 items of 100 draws")
    parser.add_argument("--figure", type=Path, help="PNG file for times and memory against numbers of items")
    parser.add_argument("--only", nargs="*", default=list(FUNCTIONS), help="functions to time", choices=FUNCTIONS)
    parser.add_argument("--size", nargs=2, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.size:
        _measure(*asked.size, asked.only)
        return
    sizes = SMALLEST if asked.smallest else (*SIZES, *([MORE] if asked.more else []))
    rows = [row for size in sizes for row in _measured(size, asked.only)]
    print_table(["items", "draws", "function", "seconds", "processor seconds", "GB", "answer"], rows)
    slopes = _slopes([row for row in rows if row[:2] != [f"{MORE[0]:,}", f"{MORE[1]:,}"]])
    print()
    print_table(["function", "slope of seconds", "slope of the last two sizes"], [[k, *v] for k, v in slopes.items()])
    if asked.figure:
        _draw(rows, slopes, asked.figure)


def draws_of(n_items: int, n_draws: int, seed: int = 0) -> np.ndarray:
    """Draws (n_draws, n_items) whose labels switch."""
    rng = np.random.default_rng(seed)
    truth, other = rng.integers(N_CLUSTERS, size=(2, n_items), dtype=np.uint8)
    is_between = rng.random(n_items) < 0.1
    labels = np.empty((n_draws, n_items), np.uint8)
    for row in labels:
        share = rng.random(n_items, dtype=np.float32)
        row[:] = np.where(is_between & (share < 0.3), other, truth)
        is_random = np.flatnonzero(share > 0.98)
        row[is_random] = rng.integers(N_CLUSTERS, size=is_random.size)
        row[:] = rng.permutation(N_CLUSTERS).astype(np.uint8)[row]
    return labels


def _measured(size, only):
    command = [sys.executable, "-m", "benchmarks.scale", "--size", *map(str, size), "--only", *only]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    return [
        [f"{size[0]:,}", f"{size[1]:,}", name, float(wall), float(cpu), float(gigabytes), answer]
        for name, wall, cpu, gigabytes, answer in rows
    ]


def _measure(n_items, n_draws, only):
    labels = draws_of(n_items, n_draws).reshape(4, n_draws // 4, n_items)
    for few, n in WARM_UP:
        if few < n_items:
            little = pc.as_partition_draws(draws_of(few, n))
            for name in only:
                _functions(little, little.labels[0])[name]()
    draws, wall, cpu, gigabytes = _timed(pc.as_partition_draws, labels)
    if "draws" in only:
        print("draws", wall, cpu, gigabytes, f"{labels.nbytes / 1e9:.3g} GB of labels", sep="\t", flush=True)
    del labels
    partition = draws.drawn.columns(np.arange(n_items))[:, 0]
    for name in only:
        if name != "draws":
            found, wall, cpu, gigabytes = _timed(_functions(draws, partition)[name])
            partition = found.labels.values if hasattr(found, "method") else partition
            print(name, wall, cpu, gigabytes, _answer(found), sep="\t", flush=True)


def _functions(draws, partition) -> dict[str, Callable[[], object]]:
    shown = {"random_seed": 1, "progressbar": False}
    return {
        "draws": lambda: None,
        "vi": lambda: pc.consensus_partition(draws, loss="vi", **shown),
        "binder": lambda: pc.consensus_partition(draws, loss="binder", **shown),
        "nvi": lambda: pc.consensus_partition(draws, loss="nvi", **shown),
        "rpm_em": lambda: pc.consensus_partition(draws, method="rpm_em", **shown),
        "ball": lambda: pc.credible_ball(draws, partition),
        "items": lambda: pc.item_uncertainty(draws, partition),
        "diagnose": lambda: pc.diagnose(draws),
        "summary": lambda: pc.summarize(draws, **shown),
    }


def _timed(function, *arguments):
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _memory("VmRSS")
    began, worked = time.perf_counter(), time.process_time()
    found = function(*arguments)
    return found, time.perf_counter() - began, time.process_time() - worked, (_memory("VmHWM") - before) / 1e6


def _memory(name):
    """Memory of this process now, or at its peak, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def _answer(found):
    if hasattr(found, "method"):
        return f"{found.n_clusters} clusters, {found.loss.name} {found.expected_loss:.6g}"
    return type(found).__name__


def _slopes(rows):
    """Slopes of log seconds on log labels, over all sizes and over the last two."""
    found = {}
    for name in dict.fromkeys(row[2] for row in rows):
        own = [(float(row[0].replace(",", "")), row[3]) for row in rows if row[2] == name]
        x, y = np.log10(np.array(own)).T
        found[name] = [float(np.polyfit(x[-n:], y[-n:], 1)[0]) for n in (len(x), 2)]
    return found


def _draw(rows, slopes, path):
    from matplotlib.figure import Figure

    figure = Figure((9.5, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for name, (_, slope) in slopes.items():
        own = np.array([[float(row[0].replace(",", "")), row[3], row[5]] for row in rows if row[2] == name]).T
        panels[0].plot(own[0], own[1], "o-", markersize=4, label=f"{name}: slope {slope:.2f}")
        panels[1].plot(own[0], np.maximum(own[2], 1e-3), "o-", markersize=4)
    for panel, what in zip(panels, ("seconds", "GB beyond the draws"), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="items", ylabel=what)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
