"""Seconds of whole processes: the import alone, and from start to a summary with a warm and with a cold kernel cache.

A cold start is timed to its first words on the screen as well.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._timing import alternate, is_smallest, print_table, timed

POSTERIOR = Path(__file__).parents[1] / "examples" / "data" / "galaxies.nc"
IMPORT = "import posterior_consensus"
SUMMARY = f"""
import posterior_consensus as pc
print(pc.summarize({str(POSTERIOR)!r}, random_seed=1, progressbar=False))
"""


def main() -> None:
    """Print one row per process."""
    smallest = is_smallest()
    with tempfile.TemporaryDirectory() as folder:
        programs = {"import alone": timed(lambda: _run(IMPORT, folder))}
        if not smallest:
            cold = iter(range(100))
            programs["summarize, cold cache"] = timed(lambda: _run(SUMMARY, f"{folder}/{next(cold)}"))
            programs["its first words"] = lambda: _until_first_words(SUMMARY, f"{folder}/{next(cold)}")
            programs["summarize, warm cache"] = timed(lambda: _run(SUMMARY, folder))
        for program in programs.values():
            program()
        seconds = alternate(programs, 1 if smallest else 3)
    print_table(["process", "seconds"], list(seconds.items()))


def _run(code: str, cache: str) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)


def _until_first_words(code: str, cache: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONUNBUFFERED": "1"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    with process:
        process.stdout.read(1)
        seconds = time.perf_counter() - began
        process.kill()
    return seconds


if __name__ == "__main__":
    main()
