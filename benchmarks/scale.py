"""Seconds and memory from 10,000 to 1,000,000 items of 1,000 draws: consensus, ball, items, diagnosis, summary.

About ten clusters; a tenth of the items are in either of two, and 2% of all labels are random. Each size has a process
of its own, and each function a call of few items before, for its kernels. Memory is that beyond what the process has
when the call begins, the draws among it. On Linux only, which tells a process its peak.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._runner import apart, used

N_CLUSTERS = 10
SIZES = ((10_000, 1_000), (100_000, 1_000), (1_000_000, 1_000))
MORE = (10_000_000, 100)
SMALLEST = ((300, 40), (400, 40))
WARM_UP = ((500, 100), (140_000, 1_000))  # the second is large enough for the kernels of blocks
SHOWN = {"random_seed": 1, "progressbar": False}
FUNCTIONS = {
    "draws": lambda draws, partition: None,
    "vi": lambda draws, partition: pc.consensus_partition(draws, loss="vi", **SHOWN),
    "binder": lambda draws, partition: pc.consensus_partition(draws, loss="binder", **SHOWN),
    "nvi": lambda draws, partition: pc.consensus_partition(draws, loss="nvi", **SHOWN),
    "rpm_em": lambda draws, partition: pc.consensus_partition(draws, method="rpm_em", **SHOWN),
    "ball": lambda draws, partition: pc.credible_ball(draws, partition),
    "items": lambda draws, partition: pc.item_uncertainty(draws, partition),
    "diagnose": lambda draws, partition: pc.diagnose(draws),
    "summary": lambda draws, partition: pc.summarize(draws, **SHOWN),
}
OPTIONS = {
    "--more": {"action": "store_true", "help": "also 10,000,000 items of 100 draws"},
    "--figure": {"type": Path, "help": "PNG file for times and memory against numbers of items"},
    "--only": {"nargs": "*", "default": list(FUNCTIONS), "help": "functions to time", "choices": FUNCTIONS},
}


def tables(smallest, more, figure, only):
    rows = []

    def measured():
        for size in SMALLEST if smallest else (*SIZES, *([MORE] if more else [])):
            rows.extend(apart(rows_of, *size, only))
            yield from rows[-len(only) :]

    yield "", measured()
    curves = {name: _curve([row for row in rows if row["function"] == name]) for name in only}
    yield "", ({"function": name, "slope of the last two sizes": _slope(*curve)} for name, curve in curves.items())
    if figure:
        _draw(curves, figure)


def rows_of(n_items: int, n_draws: int, only: list[str]) -> list[dict]:
    """A row for each function."""
    labels = draws_of(n_items, n_draws).reshape(4, n_draws // 4, n_items)
    for few, n in WARM_UP:
        if few < n_items:
            little = pc.as_partition_draws(draws_of(few, n))
            for name in only:
                FUNCTIONS[name](little, little.labels[0])
    made = used(pc.as_partition_draws, labels)
    draws = made.result
    del labels
    partition, rows = draws.backend.columns(np.arange(n_items))[:, 0], []
    for name in only:
        call = made if name == "draws" else used(FUNCTIONS[name], draws, partition)
        partition = call.result.labels.values if hasattr(call.result, "method") else partition
        row = {"items": n_items, "draws": n_draws, "function": name}
        rows.append(row | {"seconds": call.seconds, "GB": call.gigabytes})
    return rows


def draws_of(n_items: int, n_draws: int) -> np.ndarray:
    """Draws (n_draws, n_items)."""
    return np.fromiter(each_draw(n_items), (np.uint8, n_items), n_draws)


def each_draw(n_items: int) -> Iterator[np.ndarray]:
    """One draw (n_items,) after the other, without end, whose labels switch."""
    rng = np.random.default_rng(0)
    truth, other = rng.integers(N_CLUSTERS, size=(2, n_items), dtype=np.uint8)
    is_between = rng.random(n_items) < 0.1
    while True:
        share = rng.random(n_items, dtype=np.float32)
        row = np.where(is_between & (share < 0.3), other, truth)
        is_random = np.flatnonzero(share > 0.98)
        row[is_random] = rng.integers(N_CLUSTERS, size=is_random.size)
        yield rng.permutation(N_CLUSTERS).astype(np.uint8)[row]


def _curve(rows):
    """Items, seconds and GB of a function by size, but for that of fewer draws."""
    own = [row for row in rows if (row["items"], row["draws"]) != MORE]
    return np.array([(row["items"], row["seconds"], row["GB"]) for row in own]).T


def _slope(items, seconds, _):
    """Slope of log seconds on log items."""
    return float(np.diff(np.log(seconds[-2:]))[0] / np.diff(np.log(items[-2:]))[0])


def _draw(curves, path):
    from matplotlib.figure import Figure

    figure = Figure((9.5, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for name, (items, seconds, gigabytes) in curves.items():
        slope = _slope(items, seconds, gigabytes)
        panels[0].plot(items, seconds, "o-", markersize=4, label=f"{name}: slope {slope:.2f}")
        panels[1].plot(items, np.maximum(gigabytes, 1e-3), "o-", markersize=4)
    for panel, what in zip(panels, ("seconds", "GB beyond the draws"), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="items", ylabel=what)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
