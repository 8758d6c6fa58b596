"""A posterior that does not fit in memory: time and peak memory of the door and of a summary.

The draws are made in a NetCDF file first. A process with a memory budget of a twentieth of the labels, whose data are
limited, then puts the labels in a store and works on that. The folder needs room for the file and the store. Memory is
what the system cannot take back, so without the pages of the mapped store. It runs on Linux.

`--before CHECKOUT` compares stores that memory holds with those of an earlier version instead, alternately: each
version has a process of its own, and ratios are medians over rounds.
"""

import os
import resource
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from threading import Event, Thread

import h5netcdf
import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._runner import STATUS, apart, process, used
from benchmarks.scale import draws_of, each_draw

_LIMIT = 2_000_000_000  # bytes of memory beside the map, which counts as data since writing to it would copy it
_TIMES = 20  # the budget, which is for arrays of a step: what it computes on the way takes as much again
_LEAST = 10_000_000  # bytes of a budget: a summary holds 10,000 items in memory
_CHUNK = (25, 500_000)  # of the file, draws and items
_CHAINS = 4
SHOWN = {"random_seed": 1, "progressbar": False}
STEPS = {
    "writing": lambda held, store: pc.as_partition_draws(held.labels, store=store, progressbar=False),
    "opening": lambda held, store: pc.as_partition_draws(store, progressbar=False),
    "pass": lambda held, store: pc.expected_loss(pc.as_partition_draws(store, progressbar=False), held.labels[0]),
    "consensus": lambda held, store: pc.consensus_partition(pc.as_partition_draws(store, progressbar=False), **SHOWN),
    "summary": lambda held, store: pc.summarize(pc.as_partition_draws(store, progressbar=False), **SHOWN),
    "consensus, in memory": lambda held, store: pc.consensus_partition(replace(held), **SHOWN),
    "summary, in memory": lambda held, store: pc.summarize(replace(held), **SHOWN),
}
OPTIONS = {
    "--items": {"type": int, "default": 2_000_000},
    "--draws": {"type": int, "default": 1_000},
    "--before": {"type": Path, "help": "checkout of an earlier version"},
    "--steps": {"nargs": "+", "default": list(STEPS), "choices": STEPS, "help": "calls to compare"},
    "--rounds": {"type": int, "default": 5, "help": "of each version"},
    "--folder": {"default": tempfile.gettempdir(), "help": "where the file and the store are for a while"},
}


def tables(smallest, items, draws, folder, before, steps, rounds):
    n_items, n_draws = (20_000, 40) if smallest else (items, draws)
    if before:
        yield f"{n_items:,} items x {n_draws:,} draws", _compared(before, n_items, n_draws, folder, steps, rounds)
        return
    with tempfile.TemporaryDirectory(dir=folder) as room:
        file = Path(room) / "draws.nc"
        made = used(_make, file, n_items, n_draws).seconds
        rows, found = apart(within, file, max(n_items * n_draws // _TIMES, _LEAST))
    size = f"{n_items:,} items x {n_draws:,} draws, {n_items * n_draws / 1e9:.3g} GB of labels"
    yield f"{size}, made in {made:.0f} s; {found}", rows


def _compared(before, n_items, n_draws, folder, steps, rounds):
    with process(before) as old, process() as new:
        found = {step: [] for step in steps}
        for number in range(rounds + 1):  # the first compiles
            for version in (old, new) if number % 2 else (new, old):
                took = version.submit(_took, n_items, n_draws, folder, steps).result()
                for step, call in took.items() if number else ():
                    found[step].append((version is new, *call))
    for step, calls in found.items():
        first, second = (np.array([call[1:] for call in calls if call[0] == is_new]).T for is_new in (False, True))
        row = {"step": step}
        for name, old, new in zip(("seconds", "CPU seconds"), first, second, strict=True):
            row |= {f"{name} before": np.median(old), f"{name} now": np.median(new), "ratio": np.median(new / old)}
            row[f"ratio of {name}"] = row.pop("ratio")
        yield row


_held = {}


def _took(n_items, n_draws, folder, steps):
    """Seconds and CPU seconds of each step, here."""
    if not _held:
        _held["draws"] = pc.as_partition_draws(draws_of(n_items, n_draws).reshape(_CHAINS, -1, n_items))
    with tempfile.TemporaryDirectory(dir=folder) as room:
        store = Path(room) / "store"
        if "writing" not in steps:
            STEPS["writing"](_held["draws"], store)
        calls = {step: used(STEPS[step], replace(_held["draws"]), store) for step in steps}
    return {step: (call.seconds, call.cpu) for step, call in calls.items()}


def _make(file, n_items, n_draws):
    draws = each_draw(n_items)
    with h5netcdf.File(file, "w") as new:
        group = new.create_group("posterior")
        group.dimensions = {"chain": _CHAINS, "draw": n_draws // _CHAINS, "item": n_items}
        chunks = 1, min(_CHUNK[0], n_draws // _CHAINS), min(_CHUNK[1], n_items)
        z = group.create_variable("z", ("chain", "draw", "item"), np.uint8, chunks=chunks)
        for chain, first in product(range(_CHAINS), range(0, n_draws // _CHAINS, chunks[1])):
            rows = np.stack([*islice(draws, min(chunks[1], n_draws // _CHAINS - first))])
            z[chain, first : first + len(rows)] = rows


def within(file: Path, budget: int) -> tuple[list[dict], str]:
    """A row for each step, and what the summary finds, in a process whose memory is limited here."""
    resource.setrlimit(resource.RLIMIT_DATA, (_LIMIT, resource.RLIM_INFINITY))
    os.environ["POSTERIOR_CONSENSUS_MEMORY"] = str(budget)
    pc.summarize(np.arange(60).reshape(6, 10) % 3, progressbar=False)  # compiles what most steps need
    rows, store = [], file.with_name("store")

    def step(name, function, *arguments, **options):
        with _peak_memory() as peak:
            call = used(function, *arguments, **options)
        rows.append({"step": name, "seconds": call.seconds, "CPU seconds": call.cpu, "peak memory (GB)": max(peak)})
        return call.result

    with xr.open_datatree(file, engine="h5netcdf") as tree:
        limit = _LIMIT + tree["posterior"]["z"].size
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        step("store", pc.as_partition_draws, tree, store=store)
    draws = step("opening", pc.as_partition_draws, store)
    partition = draws.backend.take(np.array([0])).values[0]
    step("expected loss", pc.expected_loss, draws, partition)
    step("credible ball", pc.credible_ball, draws, partition)
    step("diagnosis", pc.diagnose, draws)
    best = step("summary", pc.summarize, draws, random_seed=1).partition
    return rows, f"{best.n_clusters} clusters, expected VI {best.expected_loss:.6g}"


@contextmanager
def _peak_memory():
    """Collect the anonymous memory of this process in GB, a hundred times a second."""
    found, ended = [], Event()

    def look():
        while not found or not ended.wait(0.01):
            line = next(line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("RssAnon"))
            found.append(1024e-9 * int(line.split()[1]))

    looking = Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        ended.set()
        looking.join()
