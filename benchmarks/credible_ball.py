"""Time of the credible ball of a posterior of 1,000 items x 1,000 draws."""

from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import alternate, is_smallest, print_table, timed

POSTERIOR = Path(__file__).parents[1] / "tests" / "golden" / "dpmm_draws.npz"


def main() -> None:
    """Print one row per loss."""
    n_draws = 100 if is_smallest() else None
    draws = pc.as_partition_draws(np.load(POSTERIOR)["labels"][:n_draws])
    rows = []
    for loss in ("vi", "binder"):
        best = pc.consensus_partition(draws, loss=loss, method="hierarchical")
        pc.credible_ball(draws, best)  # compiles, or loads what was compiled
        seconds = alternate({"ours": timed(lambda best=best: pc.credible_ball(draws, best))}, 1 if n_draws else 11)
        rows.append([f"{draws.n_items:,} x {draws.n_draws:,}", loss, seconds["ours"]])
    print_table(["items x draws", "loss", "seconds"], rows)


if __name__ == "__main__":
    main()
