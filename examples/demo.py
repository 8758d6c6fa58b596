"""From the posterior of a mixture to a partition one can report: tables on the terminal, figures in a folder.

The posterior, in data/galaxies.nc, is that of a Dirichlet process mixture for the velocities of 82 galaxies;
sample_galaxies.py made it with PyMC, which this script does not need.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.base import array_stats

import posterior_consensus as pc

POSTERIOR = Path(__file__).parent / "data" / "galaxies.nc"
FIGURES = Path("figures")


def main() -> None:
    """Do the main job once."""
    with xr.open_datatree(POSTERIOR, engine="h5netcdf") as file:
        tree = file.load()
    draws = pc.as_partition_draws(tree, "z")
    show("The draws", draws)
    show("Do the chains agree?", chain_agreement(draws).to_string(na_rep="-"))

    best = pc.consensus_partition(draws, loss="vi", random_seed=1)
    binder = pc.consensus_partition(draws, loss="binder", random_seed=1)
    ball = pc.credible_ball(draws, best, prob=0.95)
    items = pc.item_uncertainty(draws, best)
    show("The partition of least expected variation of information", best)
    show("The same under Binder's loss", binder)
    show("How far the posterior reaches", ball)
    show("Which galaxies are uncertain", items)

    tree = pc.attach(tree, best, ball, items)
    show("Kept with the posterior, as group 'consensus'", list(tree["consensus"].data_vars))

    FIGURES.mkdir(exist_ok=True)
    psm = pc.posterior_similarity_matrix(draws)
    for name, axes in {
        "psm": pc.plot_psm(psm, best),
        "credible_ball": pc.plot_credible_ball(ball),
        "n_clusters": pc.plot_n_clusters(draws, best),
    }.items():
        axes.figure.savefig(FIGURES / f"{name}.png", dpi=200)
        plt.close(axes.figure)
    print(f"\nFigures: {', '.join(str(file) for file in sorted(FIGURES.glob('*.png')))}")


def chain_agreement(draws: pc.PartitionDraws) -> pd.DataFrame:
    """R-hat and effective sample size of two summaries, and the largest gap between the chains' similarity matrices."""
    chains = [pc.as_partition_draws(draws.labels[rows]) for rows in draws.chains]
    summaries = {
        "number of clusters": np.stack([chain.n_clusters for chain in chains]),
        "size of the largest": np.stack([[np.bincount(z).max() for z in chain.labels] for chain in chains]),
    }
    matrices = np.stack([pc.posterior_similarity_matrix(chain).values for chain in chains])
    rows = {
        name: (
            float(array_stats.rhat(trace, chain_axis=0, draw_axis=1)),
            float(array_stats.ess(trace, chain_axis=0, draw_axis=1)),
        )
        for name, trace in summaries.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["R-hat", "ESS"]).round({"R-hat": 3, "ESS": 0})
    gap = np.ptp(matrices, axis=0).max()
    table.loc["similarity matrices", "largest gap"] = round(gap, 3)
    return table


def show(title: str, result: object) -> None:
    """Print a heading and a result."""
    print(f"\n{title}\n{'-' * len(title)}\n{result}")


if __name__ == "__main__":
    main()
