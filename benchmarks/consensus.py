"""Time and expected loss of every method on a posterior of 1,000 items x 1,000 draws."""

from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import alternate, is_smallest, print_table, timed

POSTERIOR = Path(__file__).parents[1] / "tests" / "golden" / "dpmm_draws.npz"


def main() -> None:
    """Print one row per loss and method."""
    smallest = is_smallest()
    labels = np.load(POSTERIOR)["labels"]
    draws = pc.as_partition_draws(labels[:50, :100] if smallest else labels)
    rows = []
    for loss in ("vi", "binder"):
        for method in pc.METHODS:
            if method == "enumeration" or (method == "exact" and loss != "binder"):
                continue
            best = pc.consensus_partition(draws, loss, method, random_seed=1, progressbar=False)
            call = timed(
                lambda loss=loss, method=method: pc.consensus_partition(
                    draws, loss, method, random_seed=1, progressbar=False
                )
            )
            seconds = alternate({"ours": call}, 1 if smallest else 3)["ours"]
            rows.append([loss, method, f"{best.expected_loss:.6f}", best.n_clusters, seconds])
    print_table(["loss", "method", "expected loss", "clusters", "seconds"], rows)


if __name__ == "__main__":
    main()
