"""Factors of runs: how often two standard errors reach the mean distance, and how often the test of one errs.

Runs of 3 x 3 x 3 settings of 200 items. The first factor merges clusters, the second splits one, the third does
nothing. Each setting moves items of its own, by which its runs are near-copies, and each run moves others.
"""

import numpy as np
import pandas as pd

import posterior_consensus as pc

N_ITEMS, LEVELS = 200, 3
FAMILIES = {  # share of the items that a setting moves, that a run moves, runs of a setting
    "near-copies": (0.05, 0.005, 3),
    "seeds matter": (0.0, 0.05, 3),
    "both": (0.03, 0.03, 3),
    "both, two runs": (0.03, 0.03, 2),
}
FACTORS = ("merges", "splits", "nothing")
PATTERN = "{merges}_{splits}_{nothing}_*"
REPEATS, REPEATS_OF_SMALLEST = 200, 2


def tables(smallest):
    repeats = REPEATS_OF_SMALLEST if smallest else REPEATS
    yield "", (row for family in FAMILIES for row in _rows(family, repeats))


def _rows(family, repeats):
    """A row for each factor: coverage, mean error, and the shares of tests below 0.01 and 0.05."""
    rng = np.random.default_rng(1)
    found = [pc.compare_factors(_runs(rng, *FAMILIES[family]), PATTERN).to_dataframe() for _ in range(repeats)]
    for factor in FACTORS:
        table = pd.DataFrame([one.loc[factor] for one in found])
        reached = np.abs(table["distance"] - table["distance"].mean()) <= 2 * table["error"]
        yield {
            "family": family,
            "factor": factor,
            "distance (bits)": float(table["distance"].mean()),
            "standard deviation": float(table["distance"].std()),
            "error": float(table["error"].mean()),
            "two errors reach the mean": float(reached.mean()),
            "p < 0.05": float((table["p_value"] < 0.05).mean()),
            "p < 0.01": float((table["p_value"] < 0.01).mean()),
        }


def _runs(rng, of_setting, of_run, n_runs):
    runs, truth = {}, np.repeat(np.arange(5), N_ITEMS // 5)
    for merged in range(LEVELS):
        for split in range(LEVELS):
            for nothing in range(LEVELS):
                labels = np.where(truth < merged, 0, truth)
                labels = np.where((truth == 4) & (np.arange(N_ITEMS) % 10 < split), 5, labels)
                labels = _moved(rng, labels, of_setting)
                for run in range(n_runs):
                    runs[f"{merged}_{split}_{nothing}_{run}"] = _moved(rng, labels, of_run)
    return pc.as_runs(pd.DataFrame(runs, index=[f"item {k}" for k in range(N_ITEMS)]))


def _moved(rng, labels, share):
    """Give each item, with this probability, a random label."""
    return np.where(rng.random(labels.size) < share, rng.integers(6, size=labels.size), labels)
