"""How often `consensus.fit_modes` selects the right number of modes from draws of chains.

Six posteriors a kind, of 20 items and of 100: two chains of 150 draws of the random perturbation model with 4 clusters.
An item has a random cluster with probability `noise`. In a chain, each item keeps its label of the draw before with
probability `stay`, or the whole draw is repeated with this probability; else both are sampled anew. Modes differ in 30%
of the items."""

from typing import NamedTuple

import numpy as np

import posterior_consensus as pc

N_POSTERIORS = 6
N_ITEMS, N_CLUSTERS = (20, 100), 4
N_CHAINS, N_DRAWS = 2, 150
MOVED = 0.3  # share of the items


class Kind(NamedTuple):
    """Posteriors of the same kind: the modes' weights, the noise, and how chains stay."""

    weights: tuple[float, ...]
    noise: float
    stay: float = 0.0
    repeats: bool = False
    stay_mode: float | None = None  # probability of staying in the mode, by default `stay`

    def __str__(self) -> str:
        """Name of the kind in the table."""
        how = "repeats of whole draws" if self.repeats else "items that move singly" if self.stay else "new noise"
        words = [how, f"noise {self.noise:g}"] + [f"stay {self.stay:g}"] * (self.stay > 0)
        if self.stay_mode is not None:
            words.append("a mode in each chain" if self.stay_mode == 1 else f"stay in a mode {self.stay_mode:g}")
        return ", ".join(words)


KINDS = [
    *(Kind((1.0,), noise, 0.9, repeats) for repeats in (False, True) for noise in (0.25, 0.45)),
    *(Kind((1.0,), 0.15, 0.97, repeats) for repeats in (False, True)),
    Kind((1.0,), 0.25),
    *(Kind((0.7, 0.3), 0.25, 0.9, repeats) for repeats in (False, True)),
    Kind((0.5, 0.5), 0.25, 0.0, stay_mode=1.0),
    *(Kind((0.5, 0.3, 0.2), 0.2, 0.8, repeats) for repeats in (False, True)),
]


def tables(smallest):
    kinds, n_posteriors, n_items = (KINDS[7:8], 1, N_ITEMS[:1]) if smallest else (KINDS, N_POSTERIORS, N_ITEMS)
    yield "", (_row(kind, n_posteriors, n_items) for kind in kinds)


def _row(kind, n_posteriors, n_items):
    row = {"chains": str(kind), "modes": len(kind.weights)}
    for n in n_items:
        selected = [_n_modes(kind, n, np.random.default_rng([k, n, 2])) for k in range(n_posteriors)]
        row[f"right of {n_posteriors}, {n} items"] = sum(number == len(kind.weights) for number in selected)
        row[f"selected, {n} items"] = " ".join(map(str, selected))
    return row


def _n_modes(kind, n_items, rng):
    draws = simulated(kind, n_items, rng)
    return pc.consensus.fit_modes(draws, random_seed=0, progressbar=False).n_modes


def simulated(kind, n_items, rng):
    """Labels (chain, draw, item) of one posterior of this kind."""
    truths = np.tile(rng.integers(N_CLUSTERS, size=n_items), (len(kind.weights), 1))
    n_moved = round(MOVED * n_items)
    for truth in truths[1:]:
        moved = rng.permutation(n_items)[:n_moved]
        truth[moved] = (truth[moved] + rng.integers(1, N_CLUSTERS, size=n_moved)) % N_CLUSTERS
    stay_mode = kind.stay if kind.stay_mode is None else kind.stay_mode
    labels = np.empty((N_CHAINS, N_DRAWS, n_items), int)
    for chain, draws in enumerate(labels):
        mode = chain % len(kind.weights) if stay_mode == 1 else rng.choice(len(kind.weights), p=kind.weights)
        new = np.ones(n_items, bool)
        noisy, label = new, np.zeros(n_items, int)
        for t in range(N_DRAWS):
            if t > 0:
                new = np.full(n_items, rng.random() >= kind.stay) if kind.repeats else rng.random(n_items) >= kind.stay
                if new.all() if kind.repeats else rng.random() >= stay_mode:
                    mode = rng.choice(len(kind.weights), p=kind.weights)
            noisy = np.where(new, rng.random(n_items) < kind.noise, noisy)
            label = np.where(new, rng.integers(N_CLUSTERS, size=n_items), label)
            draws[t] = np.where(noisy, label, truths[mode])
    return labels
