"""Bounds of the k-means objective by semidefinite relaxation: how tight, how fast, and beside k-means with 50 starts.

Values are in the paper's units: the greatest possible trace of M Z, with M the number of draws that have two items
together, and the trace that a partition has. On ensembles of k-means runs of the iris data, on draws of the random
perturbation model, and on the posterior in tests/golden. `--binder` is for the relaxation of Binder's loss: the gap
with it and without.
"""

import argparse
import time
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

import posterior_consensus as pc
from benchmarks._timing import print_table
from posterior_consensus.bounds import binder
from posterior_consensus.bounds.budget import WorkBudget
from posterior_consensus.bounds.certificate import certificate_within
from posterior_consensus.bounds.sdp_cuts import Cuts

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "dpmm_draws.npz"
K = 6
NOISY = ((150, 0.7, 0.2), (200, 0.65, 0.207), (300, 0.7, 0.2))
SECONDS = 10.0  # estimated time of the work on a bound for Binder's loss


def main() -> None:
    """Print one row per ensemble."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--binder", action="store_true", help="Binder's loss")
    options = parser.parse_args()
    if options.binder:
        print_binder(NOISY[:1] if options.smallest else NOISY)
        return
    header = ["ensemble", "different items", "spectral bound", "plain relaxation", "bound", "trace found"]
    rows = [row(name, draws, k) for name, draws, k in ensembles(options.smallest)]
    print_table([*header, "k-means, 50 starts", "gap", "steps", "seconds of a processor"], rows)


def ensembles(smallest: bool) -> list[tuple[str, pc.results.PartitionDraws, int]]:
    """Names, draws and numbers of clusters."""
    if smallest:
        return [("iris, 20 noisy k-means", iris_ensemble(0), 3)]
    found = [(f"iris, 20 noisy k-means, seed {seed}", iris_ensemble(seed), 3) for seed in range(3)]
    found += [(f"perturbation p = {p}, n = {n}, seed {s}", perturbed(n, p, s), K) for n, p, s in settings()]
    posterior = np.load(GOLDEN)["labels"]
    return [*found, ("posterior dpmm", pc.as_partition_draws(posterior), 4)]


def settings() -> list[tuple[int, float, int]]:
    """Items, noise and seed of draws of the random perturbation model."""
    return [
        (150, 0.45, 1),
        (150, 0.65, 1),
        *((300, 0.45, seed) for seed in range(1, 11)),
        (500, 0.45, 1),
        (1000, 0.45, 1),
    ]


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


def row(name: str, draws: pc.results.PartitionDraws, k: int) -> list[object]:
    """What the method finds, in how long, beside k-means with 50 starts."""
    unit = draws.n_items * draws.n_draws
    began = time.process_time()
    best = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=k, progressbar=False)
    took = time.process_time() - began
    k_means = pc.consensus_partition(
        draws, loss="within_variance", method="kcc", n_clusters=k, n_starts=50, random_seed=1, progressbar=False
    )
    spectral = pc.certify(draws, best, loss="within_variance", seconds=1e-9, progressbar=False)
    with mock.patch.object(Cuts, "separate", return_value=0):  # no triangle inequalities
        plain = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=k, progressbar=False)
    losses = [plain.lower_bound, best.lower_bound, best.expected_loss, k_means.expected_loss]
    shown = [f"{unit * (1 - spectral.lower_bound):.2f}", *(f"{unit * (1 - loss):.3f}" for loss in losses)]
    return [name, best.info.n_signatures, *shown, float(best.gap), best.info.n_iter, took]


def print_binder(settings: tuple[tuple[int, float, float], ...]) -> None:
    """Gap of the certificate for Binder's loss with the relaxation and without."""
    rows = []
    for n, noise, tau in settings:
        draws, loss = perturbed(n, noise, 1), pc.binder(tau=tau)
        best = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
        gaps, seconds = [], []
        for share in (0.0, binder.SHARE_OF_RELAXATION):
            kept, binder.SHARE_OF_RELAXATION = binder.SHARE_OF_RELAXATION, share
            began = time.process_time()
            proof = certificate_within(WorkBudget(SECONDS), draws, best, loss, progressbar=False)
            binder.SHARE_OF_RELAXATION = kept
            seconds.append(time.process_time() - began)
            gaps.append((proof.better_loss - proof.lower_bound) / proof.better_loss)
        rows.append([n, noise, tau, best.n_clusters, *gaps, *seconds])
    print_table(["items", "noise", "tau", "clusters", "gap without", "gap with", "seconds without", "with"], rows)


if __name__ == "__main__":
    main()
