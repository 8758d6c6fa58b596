"""Every benchmark runs, at its smallest size, so that none of them rots."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import reproduce_consensus_paper

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(file.stem for file in (ROOT / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_runs(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--smallest"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n| ") >= 2  # a rule and at least one row below the header


def test_cells_a_twentieth_apart_are_close():
    cells = {"method": "EM", "refined": False, "paper": [0.95, 0.95], "difference": [1.0 - 0.95, 0.051]}
    found = reproduce_consensus_paper.agreement_by_row(pd.DataFrame(cells)).loc["EM"]
    assert (found["cells"], found["close"]) == (2, 1)
