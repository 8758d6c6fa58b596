"""Time and expected loss of every method on a posterior, and on draws of the random perturbation model.

By default 1,000 items x 1,000 draws of a Dirichlet process mixture and 2,000 items x 1,000 draws around ten clusters;
with --large 100,000 items x 200 draws, a process for each method that can, with its memory.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import alternate, print_table, timed

ROOT = Path(__file__).parents[1]
POSTERIOR = ROOT / "tests" / "golden" / "dpmm_draws.npz"
FREE = ("greedy", "hierarchical", "exact", "enumeration")  # not timed at the larger size: the first two are elsewhere
NOT_HERE = ("enumeration", "lange_buhmann")  # as many items are too many, and sixteen numbers of clusters take minutes
FINDS_NUMBER = ("cc_pivot", "align_and_vote")
LARGE = {
    "refinement": lambda draws, truth: pc.consensus.refine_partition(draws, _disturbed(truth)),
    "spectral": lambda draws, _: _best(draws, "vi", "spectral", n_clusters=10),
    "spectral, association": lambda draws, _: _best(draws, "vi", "spectral", n_clusters=10, affinity="association"),
    "kcc": lambda draws, _: _best(draws, "vi", "kcc", n_clusters=10),
    "align_and_vote": lambda draws, _: _best(draws, "vi", "align_and_vote", n_clusters=10),
    "rpm_em": lambda draws, _: _best(draws, "vi", "rpm_em", n_clusters=10),
    "cc_pivot": lambda draws, _: _best(draws, "vi", "cc_pivot"),
}


def main() -> None:
    """Print one row per loss and method."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--large", nargs="?", const="all", help="100,000 items x 200 draws; or one method at that size")
    options = parser.parse_args()
    if options.large == "all":
        compare_large()
    elif options.large is not None:
        print(run_large(options.large))
    else:
        compare_on_posterior(options.smallest)
        compare_on_perturbations(options.smallest)


def compare_on_posterior(smallest: bool) -> None:
    """Methods with the number of clusters found by the loss."""
    labels = np.load(POSTERIOR)["labels"]
    draws = pc.as_partition_draws(labels[:50, :40] if smallest else labels)
    rows = []
    for loss in ("vi", "binder"):
        for method in pc.METHODS:
            if method in NOT_HERE or (method == "exact" and loss != "binder"):
                continue
            best, seconds = measured(lambda loss=loss, method=method: _best(draws, loss, method), smallest)
            rows.append([loss, method, f"{best.expected_loss:.6f}", best.n_clusters, seconds])
    print_table(["loss", "method", "expected loss", "clusters", "seconds"], rows)


def compare_on_perturbations(smallest: bool) -> None:
    """Every method that can be given ten clusters, and those that find their number, with Binder's loss."""
    print("\nten clusters of equal size, draws that keep 55% of the labels:\n")
    draws, truth = perturbed(*((50, 20) if smallest else (2000, 1000)))
    rows = []
    for method in pc.METHODS:
        if method in FREE:
            continue
        given = {} if method in FINDS_NUMBER else {"n_clusters": 10}
        best, seconds = measured(lambda method=method, given=given: _best(draws, "binder", method, **given), smallest)
        rows.append([method, f"{pc.losses.misclassification_distance(best, truth):.4f}", best.n_clusters, seconds])
    print_table(["method", "misclassified", "clusters", "seconds"], rows)


def compare_large() -> None:
    """A process for each method, so that its memory is its own."""
    rows = []
    for name in LARGE:
        command = [sys.executable, "-m", "benchmarks.consensus", "--large", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        rows.append([name, *done.stdout.split()])
    print_table(["method", "misclassified", "clusters", "seconds", "GB at most"], rows)


def run_large(name: str) -> str:
    """Misclassified share, clusters, seconds and gigabytes of one method, compiled before."""
    method: Callable = LARGE[name]
    method(*perturbed(500, 20))
    draws, truth = perturbed(100_000, 200)
    began = time.perf_counter()
    found = method(draws, truth)
    seconds = time.perf_counter() - began
    clusters = int(getattr(found, "labels", found).max()) + 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return f"{pc.losses.misclassification_distance(found, truth):.4f} {clusters} {seconds:.3g} {memory:.3g}"


def measured(function: Callable, smallest: bool) -> tuple:
    """What it returns, and the median of three calls that follow, or the time of the first if that was long."""
    began = time.perf_counter()
    result = function()
    first = time.perf_counter() - began
    if smallest or first > 30:
        return result, first
    return result, alternate({"ours": timed(function)}, 3)["ours"]


def perturbed(n_items: int, n_draws: int) -> tuple[pc.results.PartitionDraws, np.ndarray]:
    """Draws that keep each label of ten clusters with probability 0.55, and else have any."""
    rng = np.random.default_rng(1)
    truth = np.arange(n_items, dtype=np.uint8) % 10
    labels = np.empty((n_draws, n_items), np.uint8)
    for row in labels:
        row[:] = np.where(rng.random(n_items) < 0.45, rng.integers(10, size=n_items), truth)
    return pc.as_partition_draws(labels), truth


def _disturbed(truth: np.ndarray) -> np.ndarray:
    return np.where(np.arange(truth.size) % 7 == 0, 0, truth)


def _best(draws: pc.results.PartitionDraws, loss: str, method: str, **options: object) -> pc.results.ConsensusPartition:
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


if __name__ == "__main__":
    main()
