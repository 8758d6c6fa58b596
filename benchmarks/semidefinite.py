"""Bounds of the k-means objective by semidefinite relaxation: how tight, how fast, and beside k-means with 50 starts.

Values are in the paper's units: the greatest possible trace of M Z, with M the number of draws that have two items
together, and the trace that a partition has. On ensembles of k-means runs of the iris data, on draws of the random
perturbation model, and on the posterior in tests/golden. `--binder` is for the relaxation of Binder's loss: the gap
with it and without.
"""

from itertools import islice
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

import posterior_consensus as pc
from benchmarks._data import dpmm
from benchmarks._runner import used
from posterior_consensus.bounds import binder as bounds
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.certificate import certificate_within
from posterior_consensus.bounds.sdp import Cuts

K = 6
NOISY = ((150, 0.7, 0.2), (200, 0.65, 0.207), (300, 0.7, 0.2))
SETTINGS = [  # items, noise and seed of draws of the random perturbation model
    (150, 0.45, 1),
    (150, 0.65, 1),
    *((300, 0.45, seed) for seed in range(1, 11)),
    (500, 0.45, 1),
    (1000, 0.45, 1),
]
SECONDS = 10.0  # estimated time of the work on a bound for Binder's loss
OPTIONS = {"--binder": {"action": "store_true", "help": "the relaxation of Binder's loss"}}


def tables(smallest, binder):
    if binder:
        yield "", (_of_binder(*setting) for setting in NOISY[: 1 if smallest else None])
    else:
        yield "", (_row(*ensemble) for ensemble in islice(_ensembles(), 1 if smallest else None))


def _ensembles():
    """Names, draws and numbers of clusters."""
    yield from ((f"iris, 20 noisy k-means, seed {seed}", iris_ensemble(seed), 3) for seed in range(3))
    yield from ((f"perturbation p = {p}, n = {n}, seed {s}", perturbed(n, p, s), K) for n, p, s in SETTINGS)
    yield "posterior dpmm", pc.as_partition_draws(dpmm()), 4


def iris_ensemble(seed: int) -> pc.results.PartitionDraws:
    """Single runs of k-means with 2 to 5 clusters on the data with normal noise of standard deviation 0.3."""
    features, rng = load_iris().data, np.random.default_rng(seed)
    labels = []
    for _ in range(20):
        model = KMeans(int(rng.integers(2, 6)), n_init=1, random_state=int(rng.integers(2**31)))
        labels.append(model.fit_predict(features + rng.normal(scale=0.3, size=features.shape)))
    return pc.as_partition_draws(np.array(labels))


def perturbed(n_items: int, noise: float, seed: int) -> pc.results.PartitionDraws:
    """Twenty draws of six clusters."""
    return pc.simulate.random_perturbation(n_items, K, n_draws=20, noise=noise, random_seed=seed).draws


def _row(name, draws, k):
    """What the method finds, in how long, beside k-means with 50 starts."""

    def found(method, **options):
        given = {"loss": "within_variance", "n_clusters": k, "progressbar": False}
        return pc.consensus_partition(draws, method=method, **given, **options)

    call = used(found, "sdp")
    best, k_means = call.result, found("kcc", n_starts=50, random_seed=1)
    spectral = pc.certify(draws, best, loss="within_variance", seconds=1e-9, progressbar=False)
    with mock.patch.object(Cuts, "separate", return_value=0):  # no triangle inequalities
        plain = found("sdp")

    def trace(loss):
        return draws.n_items * draws.n_draws * (1 - loss)

    return {
        "ensemble": name,
        "different items": best.info.n_signatures,
        "spectral bound": f"{trace(spectral.lower_bound):.2f}",
        "plain relaxation": f"{trace(plain.lower_bound):.3f}",
        "bound": f"{trace(best.lower_bound):.3f}",
        "trace found": f"{trace(best.expected_loss):.3f}",
        "k-means, 50 starts": f"{trace(k_means.expected_loss):.3f}",
        "gap": float(best.optimality_gap),
        "steps": best.info.n_iter,
        "CPU seconds": call.cpu,
    }


def _of_binder(n, noise, tau):
    """Gap of the certificate for Binder's loss with the relaxation and without."""
    draws, loss = perturbed(n, noise, 1), pc.binder(tau=tau)
    best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
    row = {"items": n, "noise": noise, "tau": tau, "clusters": best.n_clusters}
    seconds = {}
    for which, share in (("without", 0.0), ("with", bounds.SHARE_OF_RELAXATION)):
        with mock.patch.object(bounds, "SHARE_OF_RELAXATION", share):
            call = used(certificate_within, WorkBudget(SECONDS), draws, best, loss, progressbar=False)
        row[f"gap {which}"] = (call.result.better_loss - call.result.lower_bound) / call.result.better_loss
        seconds[f"seconds {which}"] = call.cpu
    return row | seconds
