"""Every benchmark runs, at its smallest size, so that none of them rots."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(file.stem for file in (ROOT / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_runs(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--smallest"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n| ") >= 2  # a rule and at least one row below the header
