"""How close the lower bound of the expected Binder loss, or VI, comes to the best partition, and in how many seconds.

By default on the posterior in tests/golden, or on those in the folder POSTERIORS. For Binder the fastest of three calls
after one that compiles. For VI the bound within ten seconds (many items: sixty), also of posteriors of our examples,
and of ten Dirichlet process mixtures of 50 to 300 items in 2 to 10 clusters, whose centres spread by 6 to 2 standard
deviations.
"""

import numpy as np

import posterior_consensus as pc
from benchmarks._data import posteriors
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks._runner import used

SECONDS = {"galaxy": 1.0, "iris": 3.0, "ex2": 3.0, "dpmm": 20.0}
OPTIONS = {"--loss": {"choices": ["binder", "vi"], "default": "binder"}}
EXAMPLES = ("galaxies", "iris", "nile", "two_answers", "block_model")
N_ITEMS = (50, 80, 100, 120, 150, 180, 200, 240, 270, 300)
N_CLUSTERS = (2, 10, 3, 9, 4, 8, 5, 7, 6, 10)
SPREADS = (6.0, 4.0, 3.0, 2.0)
MANY = 500  # items, which get a minute
QUIET = {"progressbar": False}


def tables(smallest, loss):
    found = posteriors(smallest)
    if loss == "binder":
        yield "", (_binder_row(name, labels, 1 if smallest else 3) for name, labels in found.items())
        return
    of_files = ((name, pc.as_partition_draws(labels)) for name, labels in found.items())
    yield "", (_vi_row(name, draws, 1 if smallest else 10) for name, draws in of_files)
    if not smallest:
        yield "Examples", (_vi_row(name, _example(name), 10) for name in EXAMPLES)
        yield "Dirichlet process mixtures", (_vi_row(*_mixture(k), 10) for k in range(len(N_ITEMS)))


def _example(name):
    draws = pc.as_partition_draws(pc.load_example(name))
    if name == "block_model":  # whose draws begin with the first sweep
        draws = draws.take(pc.diagnostics.sequential_distances(draws).kept)
    return draws


def _mixture(k):
    rng = np.random.default_rng(k)
    spread = SPREADS[k % len(SPREADS)]
    centres = rng.normal(0, spread, (N_CLUSTERS[k], 2))
    observations = centres[rng.integers(N_CLUSTERS[k], size=N_ITEMS[k])] + rng.normal(size=(N_ITEMS[k], 2))
    draws = dirichlet_process_draws(observations, spread, 1.0, 1_200, rng)[200:]
    return f"{N_ITEMS[k]} items, {N_CLUSTERS[k]} clusters, spread {spread:g}", pc.as_partition_draws(draws)


def _vi_row(name, draws, seconds):
    best = pc.consensus_partition(draws, random_seed=1, **QUIET)
    limit = 6 * seconds if draws.n_items > MANY else seconds
    call = used(pc.certify, draws, best, seconds=limit, **QUIET)
    return {
        "posterior": name,
        "items x draws": f"{draws.n_items} x {draws.n_draws:,}",
        "clusters": best.n_clusters,
        "expected VI": f"{best.expected_loss:.6f}",
        "seconds allowed": limit,
        "CPU seconds": call.cpu,
        "gap": f"{call.result.optimality_gap:.2%}",
        "status": call.result.status,
        "method": call.result.method,
    }


def _binder_row(name, labels, repeats):
    draws, quiet = pc.as_partition_draws(labels), {"loss": "binder", **QUIET}
    best = pc.consensus_partition(draws, random_seed=1, **quiet)
    pc.certify(pc.as_partition_draws(labels[:50, :40]), best.labels.values[:40], seconds=5.0, **quiet)
    runs = [used(pc.certify, draws, best, seconds=SECONDS[name], **quiet) for _ in range(repeats)]
    fastest = min(runs, key=lambda run: run.seconds)
    proof, least = fastest.result, fastest.result.better_loss
    gap = proof.optimality_gap if proof.better is None else (least - proof.lower_bound) / least
    return {
        "posterior": name,
        "seconds allowed": SECONDS[name],
        "taken": fastest.seconds,
        "expected loss": f"{least:.9f}",
        "lower bound": f"{proof.lower_bound:.9f}",
        "optimality gap": f"{gap:.2g}",
        "status": "optimal" if gap < 1e-9 else "bounded",
        "method": proof.method,
        "that of consensus_partition": f"{best.optimality_gap:.2g}",
    }
