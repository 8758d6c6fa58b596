"""How close the lower bound of the expected Binder loss, or VI, comes to the best partition, and in how many seconds.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS. For Binder the fastest of three calls
after one that compiles.
"""

import posterior_consensus as pc
from benchmarks._data import posteriors
from benchmarks._runner import used

SECONDS = {
    "binder": {"galaxy": 1.0, "iris": 3.0, "ex2": 3.0, "dpmm": 20.0},
    "vi": {"galaxy": 60.0, "iris": 60.0, "ex2": 60.0, "dpmm": 120.0},
}
OPTIONS = {"--loss": {"choices": list(SECONDS), "default": "binder"}}


def tables(smallest, loss):
    repeats = 3 if loss == "binder" and not smallest else 1
    found = posteriors(smallest).items()
    yield "", (_row(name, labels, loss, SECONDS[loss][name], repeats) for name, labels in found)


def _row(name, labels, loss, seconds, repeats):
    draws, quiet = pc.as_partition_draws(labels), {"loss": loss, "progressbar": False}
    best = pc.consensus_partition(draws, random_seed=1, **quiet)
    pc.certify(pc.as_partition_draws(labels[:50, :40]), best.labels.values[:40], seconds=5.0, **quiet)
    runs = [used(pc.certify, draws, best, seconds=seconds, **quiet) for _ in range(repeats)]
    fastest = min(runs, key=lambda run: run.seconds)
    proof, least = fastest.result, fastest.result.better_loss
    gap = proof.optimality_gap if proof.better is None else (least - proof.lower_bound) / least
    return {
        "posterior": name,
        "seconds allowed": seconds,
        "taken": fastest.seconds,
        "expected loss": f"{least:.9f}",
        "lower bound": f"{proof.lower_bound:.9f}",
        "optimality gap": f"{gap:.2g}",
        "status": "optimal" if gap < 1e-9 else "bounded",
        "method": proof.method,
        "that of consensus_partition": "none" if best.optimality_gap is None else f"{best.optimality_gap:.2g}",
    }
