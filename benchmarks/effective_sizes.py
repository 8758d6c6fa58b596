"""Effective sample sizes of many traces: ArviZ, a patched copy of its statistics, and ours for the mean.

Traces are autoregressive of order one. CPU milliseconds a trace, and CPU seconds of the first over those of the second;
the calls of a row take turns. The difference is the largest relative one.
"""

import statistics
from pathlib import Path

import numpy as np

from benchmarks._runner import process, used

OPTIONS = {
    "--patched": {
        "metavar": "FOLDER",
        "help": "holds a copy of arviz_stats with the patch of docs/developers/upstream.md",
    }
}
TRACES, REPEATS = 1_000, 3
SHAPES = ((4, 100), (4, 1_000))
CORRELATIONS = (0.0, 0.9, 0.99)
METHODS = {"bulk": {}, "tail": {"prob": (0.05, 0.95)}, "mean": {}}


def tables(smallest, patched):
    n_traces, repeats = (20, 1) if smallest else (TRACES, REPEATS)
    other = "ours" if patched is None else "patched"
    cases = [(shape, one) for shape in SHAPES[: 1 if smallest else None] for one in CORRELATIONS]
    with process() as own, process(Path(patched or ".").resolve()) as changed:
        for method in METHODS if patched else ["mean"]:
            rows = (_row(own, changed, other, method, (n_traces, *shape), one, repeats) for shape, one in cases)
            yield f"method {method!r}, {n_traces:,} traces", rows


def _row(own, changed, other, method, shape, correlation, repeats):
    first, second = [], []
    for _ in range(repeats):
        first.append(own.submit(measured, "ArviZ", method, shape, correlation).result())
        second.append(changed.submit(measured, other, method, shape, correlation).result())
    theirs, others = (statistics.median(cpu for _, cpu in calls) for calls in (first, second))
    difference = np.max(np.abs(second[0][0] / first[0][0] - 1))
    return {
        "chains x draws": f"{shape[1]} x {shape[2]:,}",
        "correlation": str(correlation),
        "ArviZ, ms": 1e3 * theirs / shape[0],
        f"{other}, ms": 1e3 * others / shape[0],
        "ratio": theirs / others,
        "difference": f"{difference:.0e}",
    }


def measured(program: str, method: str, shape: tuple[int, int, int], correlation: float) -> tuple[np.ndarray, float]:
    """Effective sizes of traces (n_traces, n_chains, n_draws), and CPU seconds, after a call of one trace."""
    from arviz_stats.base import array_stats

    from posterior_consensus.ensemble.series import effective_size

    def sizes(some):
        return effective_size(some) if program == "ours" else array_stats.ess(some, method=method, **METHODS[method])

    made = traces(shape, correlation)
    sizes(made[:1])
    call = used(sizes, made)
    return call.result, call.cpu


def traces(shape: tuple[int, int, int], correlation: float) -> np.ndarray:
    """Stationary autoregressive traces, the same in every process."""
    noise = np.random.default_rng(1).normal(size=shape)
    noise[..., 1:] *= np.sqrt(1 - correlation**2)
    for draw in range(1, shape[-1]):
        noise[..., draw] += correlation * noise[..., draw - 1]
    return noise
