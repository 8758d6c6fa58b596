"""Two clusters that are one in a known share of runs or draws: how often a summary says so, and with which error.

Four clusters of 300, 200, 120 and 80 items; the last two are one in a share of the runs, and one item in fifty has a
random label. The partition is searched for on the same runs. Slow chains, two of 500 draws, keep both clusters one, or
apart, for 50 draws on average. If most runs have the two as one cluster, so has the partition: then it is split.
"""

from typing import Any

import numpy as np

import posterior_consensus as pc
from posterior_consensus.answers.cluster_stability import SAID

OPTIONS = {"--sets": {"type": int, "default": 100, "help": "simulated sets of runs for each row"}}
SHARES = 0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4
NUMBERS = 5, 10, 20, 50
TRUTH = np.repeat(np.arange(4), [300, 200, 120, 80])
CHAINS, LENGTH, STAY = 2, 500, 50


def tables(smallest: bool, sets: int) -> Any:
    shares, numbers, sets = ((0.4,), (20,), 3) if smallest else (SHARES, NUMBERS, sets)
    cases = {f"{number} runs": (number, False) for number in numbers} | {"slow chains": (CHAINS * LENGTH, True)}
    yield (
        f"Said above a share of {SAID:g}",
        (_row(name, share, number, is_slow, sets) for name, (number, is_slow) in cases.items() for share in shares),
    )


def _row(name: str, share: float, number: int, is_slow: bool, sets: int) -> dict[str, object]:
    rng = np.random.default_rng([number, int(1000 * share)])
    found = np.array([_said(rng, share, number, is_slow) for _ in range(sets)])
    said = found[:, 0] > 0
    apart = np.abs(found[said, 1] - share) > 2 * found[said, 2]
    return {
        "": name,
        "true share": share,
        "said": said.mean(),
        "share said": found[said, 1].mean() if said.any() else "",
        "beyond two errors": apart.mean() if said.any() else "",
    }


def _said(rng: np.random.Generator, share: float, number: int, is_slow: bool) -> tuple[bool, float, float]:
    """Whether it is said that the two clusters are one, or that they are split; the share, and its error."""
    joined = _slow(rng, share) if is_slow else rng.random(number) < share
    labels = np.where(joined[:, np.newaxis], np.minimum(TRUTH, 2), TRUTH)
    labels = np.where(rng.random(labels.shape) < 0.02, rng.integers(4, size=labels.shape), labels)
    draws = pc.as_partition_draws(labels.reshape(CHAINS, LENGTH, -1)) if is_slow else pc.as_runs(list(labels))
    best = pc.consensus_partition(draws, loss="vi", n_starts=1, random_seed=1, progressbar=False)
    found = pc.cluster_stability(draws, best)
    ends = sorted({int(np.bincount(best.labels.values[TRUTH == k]).argmax()) for k in (2, 3)})
    if len(ends) == 1:
        split = found.table.isel(cluster=ends[0])
        return bool(split["split"] > SAID), 1 - float(split["split"]), float(split["split_mcse"])
    pairs = found.pairs(SAID)
    own = pairs[(pairs["first"] == ends[0]) & (pairs["second"] == ends[1])]
    return (True, own["share"].item(), own["mcse"].item()) if len(own) else (False, np.nan, np.nan)


def _slow(rng: np.random.Generator, share: float) -> np.ndarray:
    """States of chains that change after :data:`STAY` draws on average in the rarer of two states of shares."""
    leave = np.array([share, 1 - share]) / max(share, 1 - share, 1e-9) / STAY
    states = np.empty((CHAINS, LENGTH), bool)
    for chain in states:
        now = rng.random() < share
        for t in range(LENGTH):
            chain[t] = now
            now ^= rng.random() < leave[int(now)]
    return states.ravel()
