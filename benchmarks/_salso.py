"""R's salso, where it is installed: what our R scripts print of draws."""

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._runner import HERE, Used, used

IN_SALSO = ("vi", "binder", "one_minus_ari", "nvi", "information_distance", "nid")


@cache
def has_salso() -> bool:
    command = ["Rscript", "-e", "library(salso)"]
    found = shutil.which("Rscript") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not found:
        print("R with salso is not there: ours alone.")
    return bool(found)


def ask(script: str, labels: np.ndarray, *arguments: object) -> list[float]:
    """The numbers that a script prints."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draws.bin"
        (labels.astype(np.int32) + 1).T.tofile(file)  # R fills a matrix column by column
        command = ["Rscript", HERE / script, file, *labels.shape, *arguments]
        done = subprocess.run([*map(str, command)], capture_output=True, check=True, text=True)
    return [float(number) for number in done.stdout.split()]


def searched(draws, loss: str, seed: int, **options) -> Used:
    """One call of ours, by default as it is without options, on two threads."""
    return used(pc.consensus_partition, draws, loss=loss, random_seed=seed, n_jobs=2, progressbar=False, **options)


def alternately(ours: Callable[[int], float], repeats: int, beside: bool, script: str, *arguments) -> tuple:
    """Median of the seconds that ours returns, called with the number of the repeat, and all that a script prints."""
    seconds, theirs = [], []
    for repeat in range(repeats):
        seconds.append(ours(repeat))
        if beside:
            theirs.append(ask(script, *arguments))
    return statistics.median(seconds), theirs


def compared(draws, loss: str, repeats: int, beside: bool) -> tuple[float, list[list[float]]]:
    """Median seconds of ours after a call that warms up, and seconds and losses of salso's calls, alternately."""

    def ours(repeat):
        searched(draws, loss, 0)
        return statistics.median(searched(draws, loss, 10 * repeat + k).seconds for k in range(5))

    return alternately(ours, repeats, beside, "time_salso.R", draws.labels, loss)


def salso_columns(theirs: list[list[float]], seconds: float, beside: bool, unit: str = "ms") -> dict[str, object]:
    """Three cells of a row: their time, the least loss they found, and the ratio to our seconds."""
    columns = f"salso, {unit}", "its expected loss", "ratio of times"
    if not theirs:
        return dict.fromkeys(columns, "") if beside else {}
    their_seconds = statistics.median(run[0] for run in theirs)
    shown = their_seconds if unit == "s" else 1000 * their_seconds
    cells = shown, f"{min(run[1] for run in theirs):.15g}", round(their_seconds / seconds)
    return dict(zip(columns, cells, strict=True))
