"""Seconds of whole processes: the import alone, and from start to answer with a warm and with a cold kernel cache."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._timing import alternate, is_smallest, print_table, timed

POSTERIOR = Path(__file__).parents[1] / "examples" / "data" / "galaxies.nc"
IMPORT = "import posterior_consensus"
SUMMARY = f"""
import posterior_consensus as pc
draws = pc.as_partition_draws({str(POSTERIOR)!r}, "z")
psm = pc.posterior_similarity_matrix(draws)
best = pc.consensus_partition(draws, random_seed=1)
ball = pc.credible_ball(draws, best)
items = pc.item_uncertainty(draws, best)
print(best, ball, items)
"""


def main() -> None:
    """Print one row per process."""
    smallest = is_smallest()
    with tempfile.TemporaryDirectory() as folder:
        programs = {"import alone": timed(lambda: _run(IMPORT, folder))}
        if not smallest:
            cold = iter(range(100))
            programs["summary, cold cache"] = timed(lambda: _run(SUMMARY, f"{folder}/{next(cold)}"))
            programs["summary, warm cache"] = timed(lambda: _run(SUMMARY, folder))
        for program in programs.values():
            program()
        seconds = alternate(programs, 1 if smallest else 3)
    print_table(["process", "seconds"], list(seconds.items()))


def _run(code: str, cache: str) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)


if __name__ == "__main__":
    main()
