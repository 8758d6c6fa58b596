"""loss_by_n_clusters beside one search for each number of clusters: times, and which curve is the lower one.

Draws may be given as files, NumPy archives with an array ``labels`` (draws x items); by default shipped posteriors.
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._timing import alternate, print_table, timed

DATA = Path(__file__).parents[1] / "examples" / "data"
SHIPPED = {"galaxies": "z", "two_answers": "species", "block_model": "z"}
SEEDS = range(5)


def main() -> None:
    """Print one row per posterior and loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    asked = parser.parse_args()
    given = {file.stem.removesuffix("_draws"): pc.as_partition_draws(np.load(file)["labels"]) for file in asked.files}
    seeds = SEEDS[:1] if asked.smallest else SEEDS
    shipped = list(SHIPPED.items())[: 1 if asked.smallest else None]
    rows = [
        _row(name, draws, loss, seeds)
        for name, draws in (given or {name: _shipped(name, variable) for name, variable in shipped}).items()
        for loss in (("vi",) if asked.smallest else ("vi", "binder"))
    ]
    header = ["posterior", "loss", "numbers", "s", "one by one, s", "at the least known", "one by one", "mean excess"]
    print_table([*header, "one by one, excess"], rows)


def _shipped(name: str, variable: str) -> pc.results.PartitionDraws:
    with xr.open_datatree(DATA / f"{name}.nc", engine="h5netcdf") as file:
        return pc.as_partition_draws(file.load(), variable)


def _row(name: str, draws: pc.results.PartitionDraws, loss: str, seeds: range) -> list[object]:
    def curve(seed: int) -> pc.results.LossByNClusters:
        return pc.loss_by_n_clusters(draws, loss=loss, random_seed=seed, progressbar=False)

    numbers = curve(0).table["n_clusters"].values.tolist()

    def one_by_one(seed: int) -> list[float]:
        quiet = {"random_seed": seed, "progressbar": False}
        return [pc.consensus_partition(draws, loss=loss, n_clusters=k, **quiet).expected_loss for k in numbers]

    ours = np.array([curve(seed).table["expected_loss"].values for seed in seeds])
    alone = np.array([one_by_one(seed) for seed in seeds])
    least = np.minimum(ours.min(axis=0), alone.min(axis=0))
    seconds = alternate({"ours": timed(lambda: curve(0)), "alone": timed(lambda: one_by_one(0))}, len(seeds))
    there = [f"{np.mean(losses <= least * (1 + 1e-9)):.0%}" for losses in (ours, alone)]
    excess = [f"{np.mean(losses / least - 1):.3%}" for losses in (ours, alone)]
    return [name, loss, f"{numbers[0]} to {numbers[-1]}", seconds["ours"], seconds["alone"], *there, *excess]


if __name__ == "__main__":
    main()
