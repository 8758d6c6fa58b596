"""Time and memory of the posterior similarity matrix, beside R's salso where it is installed."""

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import alternate, is_smallest, print_table, random_draws, timed

SIZES = [(1_000, 1_000, 16), (5_000, 1_000, 16), (5_000, 1_000, 256), (10_000, 1_000, 256)]
REPEATS = 3
TIME_SALSO = Path(__file__).with_name("time_salso_psm.R")


def main() -> None:
    """Print one row per size."""
    smallest = is_smallest()
    has_salso = not smallest and _has_salso()
    if not has_salso:
        print("R with salso is not there: ours alone.")
    rows = []
    for n_items, n_draws, n_labels in SIZES[:1] if smallest else SIZES:
        labels = random_draws(n_draws, n_items, n_labels)
        draws = pc.as_partition_draws(labels)
        with tempfile.TemporaryDirectory() as folder:
            programs = {"ours": _warm(lambda draws=draws: pc.posterior_similarity_matrix(draws))}
            if has_salso:
                programs["salso"] = _salso(labels, Path(folder))
            seconds = alternate(programs, 1 if smallest else REPEATS)
        memory = _extra_memory(n_items, n_draws, n_labels)
        row = [f"{n_items:,} x {n_draws:,}", n_labels, seconds["ours"], memory]
        if has_salso:
            row += [seconds["salso"], round(seconds["salso"] / seconds["ours"], 1)]
        rows.append(row)
    header = ["items x draws", "labels", "seconds", "memory beyond the result"]
    print_table(header + (["salso psm(), 2 cores, seconds", "ratio"] if has_salso else []), rows)


def _warm(call):
    """Time calls after one that warms up: it compiles, and takes memory that another process has just given up."""

    def program() -> float:
        call()
        return statistics.median(timed(call)() for _ in range(3))

    return program


def _extra_memory(n_items: int, n_draws: int, n_labels: int) -> str:
    """Peak memory of a first call in a new process beyond what was there before and the result, in its share."""
    if not Path("/proc/self/clear_refs").exists():
        return "not measured"
    code = f"""
import re
from pathlib import Path
import posterior_consensus as pc
from benchmarks._timing import random_draws
status = lambda name: 1024 * int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
draws = pc.as_partition_draws(random_draws({n_draws}, {n_items}, {n_labels}))
pc.posterior_similarity_matrix(draws.labels[:, :128])  # compiles
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
result = pc.posterior_similarity_matrix(draws).nbytes
print((status("VmHWM") - before - result) / result)
"""
    return (
        f"{float(subprocess.run([sys.executable, '-c', code], capture_output=True, check=True, text=True).stdout):.1%}"
    )


def _has_salso() -> bool:
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(salso)"], capture_output=True, check=False).returncode == 0


def _salso(labels: np.ndarray, folder: Path):
    file = folder / "draws.bin"
    (labels.astype(np.int32) + 1).T.tofile(file)  # R fills a matrix column by column

    def program() -> float:
        command = ["Rscript", TIME_SALSO, file, *map(str, labels.shape)]
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    return program


if __name__ == "__main__":
    main()
