"""A posterior that does not fit in memory: time, peak memory and reads of the store, of the door and of a summary.

The draws are made in a NetCDF file first. A process whose memory is limited then puts their labels in a store and works
on that. `--items 20000000` makes 20 GB of labels, or a tenth where the disk has no room for the file and the store.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import print_table

_LIMIT = 2_000_000_000  # bytes of memory
_BUDGET = "1GB"  # arrays of a step; what it computes on the way takes as much again
_CHUNK = (25, 500_000)  # of the file, draws and items
_CHAINS = 4
_CLUSTERS = 10
_NOISE = 0.04
_AMBIGUOUS = 0.1  # items that are in another cluster in some draws


def main() -> None:
    """Make the draws, and print one row per step of the process that reads them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=2_000_000)
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the file and the store are for a while")
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--steps", help="run the steps on this file", metavar="FILE")
    given = parser.parse_args()
    if given.steps:
        _steps(Path(given.steps))
        return
    n_items, n_draws = (20_000, 40) if given.smallest else (given.items, given.draws)
    if shutil.disk_usage(given.folder).free < 2.1 * n_items * n_draws:
        n_items //= 10
        print(f"{given.folder} has no room for the file and the store: a tenth of the items is taken.")
    print(f"{n_items:,} items x {n_draws:,} draws, {n_items * n_draws / 1e9:.3g} GB of labels")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        file = Path(folder) / "draws.nc"
        began = time.perf_counter()
        _make(file, n_items, n_draws)
        print(f"made in {time.perf_counter() - began:.0f} s\n", flush=True)
        environment = os.environ | {"POSTERIOR_CONSENSUS_MEMORY": _BUDGET}
        command = [sys.executable, "-m", "benchmarks.out_of_core", "--steps", str(file)]
        subprocess.run(command, check=True, env=environment)


def _make(file: Path, n_items: int, n_draws: int) -> None:
    import h5netcdf

    rng = np.random.default_rng(0)
    truth = rng.integers(_CLUSTERS, size=n_items, dtype=np.uint8)
    other = np.where(rng.random(n_items) < _AMBIGUOUS, rng.integers(_CLUSTERS, size=n_items, dtype=np.uint8), truth)
    with h5netcdf.File(file, "w") as new:
        group = new.create_group("posterior")
        group.dimensions = {"chain": _CHAINS, "draw": n_draws // _CHAINS, "item": n_items}
        chunks = 1, min(_CHUNK[0], n_draws // _CHAINS), min(_CHUNK[1], n_items)
        z = group.create_variable("z", ("chain", "draw", "item"), np.uint8, chunks=chunks)
        for chain in range(_CHAINS):
            for first in range(0, n_draws // _CHAINS, chunks[1]):
                rows = np.stack([_draw(rng, truth, other) for _ in range(min(chunks[1], n_draws // _CHAINS - first))])
                z[chain, first : first + len(rows)] = rows


def _draw(rng: np.random.Generator, truth: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Labels of one draw, of any names."""
    chance = rng.random(truth.size, dtype=np.float32)
    row = np.where(chance < 0.3, other, truth)
    noisy = np.flatnonzero(chance > 1 - _NOISE)
    row[noisy] = rng.integers(_CLUSTERS, size=noisy.size, dtype=np.uint8)
    return rng.permutation(_CLUSTERS).astype(np.uint8)[row]


def _steps(file: Path) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_LIMIT, _LIMIT))
    import xarray as xr

    import posterior_consensus as pc
    from posterior_consensus.ensemble.stored import StoredLabels

    read, sizes = StoredLabels._read, []

    def counted(*arguments: Any) -> np.ndarray:
        found = read(*arguments)
        sizes.append(found.nbytes)
        return found

    StoredLabels._read = counted  # type: ignore[method-assign]
    pc.summarize(np.arange(60).reshape(6, 10) % 3, progressbar=False)  # compiles what most steps need
    rows: list[list[object]] = []

    def step(name: str, function: Callable[[], object]) -> object:
        before, began = reads(), time.perf_counter()
        try:
            found = function()
        except MemoryError as error:
            found, name = None, f"{name}: {error}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        rows.append([name, time.perf_counter() - began, peak, reads() - before])
        return found

    def reads() -> float:
        return 0.0 if draws is None else sum(sizes) / (draws.n_draws * draws.n_items)

    draws = None
    with xr.open_datatree(file, engine="h5netcdf") as tree:
        draws = step("store", lambda: pc.as_partition_draws(tree, store=file.with_name("store")))
    partition = draws.drawn.take(np.array([0])).values[0]
    step("expected loss", lambda: pc.expected_loss(draws, partition))
    step("credible ball", lambda: pc.credible_ball(draws, partition))
    step("diagnosis", lambda: pc.diagnose(draws))
    summary = step("summary", lambda: pc.summarize(draws, random_seed=1))
    print_table(["step", "seconds", "peak memory (GB)", "reads of the store"], rows)
    if summary is not None:
        print(f"\n{summary.consensus.n_clusters} clusters, expected VI {summary.consensus.expected_loss:.6g}")


if __name__ == "__main__":
    main()
