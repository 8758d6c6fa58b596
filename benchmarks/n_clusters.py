"""loss_by_n_clusters beside one search for each number of clusters: times, and which curve is the lower one."""

from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._data import SHIPPED
from benchmarks._runner import median_seconds

VARIABLES = {"galaxies": "z", "two_answers": "species", "block_model": "z"}
SEEDS = range(5)
OPTIONS = {"files": {"nargs": "*", "type": Path, "help": "archives of labels, in place of shipped posteriors"}}


def tables(smallest, files):
    posteriors = {file.stem.removesuffix("_draws"): pc.as_partition_draws(np.load(file)["labels"]) for file in files}
    shipped = list(VARIABLES.items())[: 1 if smallest else None]
    posteriors = posteriors or {
        name: pc.as_partition_draws(SHIPPED / f"{name}.nc", variable) for name, variable in shipped
    }
    seeds, losses = (SEEDS[:1], ["vi"]) if smallest else (SEEDS, ["vi", "binder"])
    yield "", (_row(name, draws, loss, seeds) for name, draws in posteriors.items() for loss in losses)


def _row(name, draws, loss, seeds):
    def curve(seed):
        return pc.loss_by_n_clusters(draws, loss=loss, random_seed=seed, progressbar=False).table

    def one_by_one(seed):
        quiet = {"random_seed": seed, "progressbar": False}
        return [pc.consensus_partition(draws, loss=loss, n_clusters=k, **quiet).expected_loss for k in numbers]

    numbers = curve(0)["n_clusters"].values.tolist()
    ours = np.array([curve(seed)["expected_loss"].values for seed in seeds])
    alone = np.array([one_by_one(seed) for seed in seeds])
    least = np.minimum(ours.min(axis=0), alone.min(axis=0))
    seconds = median_seconds(lambda: curve(0), lambda: one_by_one(0), repeats=len(seeds))
    there = [f"{np.mean(losses <= least * (1 + 1e-9)):.0%}" for losses in (ours, alone)]
    excess = [f"{np.mean(losses / least - 1):.3%}" for losses in (ours, alone)]
    return {
        "posterior": name,
        "loss": loss,
        "numbers": f"{numbers[0]} to {numbers[-1]}",
        "s": seconds[0],
        "one by one, s": seconds[1],
        "at the smallest known": there[0],
        "one by one": there[1],
        "mean excess": excess[0],
        "one by one, excess": excess[1],
    }
