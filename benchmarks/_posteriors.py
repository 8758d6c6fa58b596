"""Families of posteriors in which searches are trapped: each a function from a seed to draws, 60 to 300 items."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import posterior_consensus as pc


class Posterior(NamedTuple):
    """Draws (n_draws, n_items), how many clusters there are meant to be, and how often each draw counts."""

    labels: np.ndarray
    n_clusters: int
    counts: np.ndarray | None = None


def dirichlet_process_draws(
    observations: np.ndarray, spread: float, concentration: float, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Partitions (n_draws, n) from the posterior of normal clusters of unit variance, one after each sweep.

    A collapsed Gibbs sampler (Neal 2000, algorithm 3, https://doi.org/10.1080/10618600.2000.10474879).
    The coordinates of `observations` (n, d) are independent, their means normal around 0 with standard deviation
    `spread`. Each observation is allocated by its density given those of the cluster, the means integrated out.
    """
    n_items, n_coordinates = observations.shape
    size = np.arange(n_items + 1)
    shrinkage = 1 / (size + spread**-2)  # variance of a mean given so many observations
    log_weight = np.log(np.where(size > 0, size, concentration)) - n_coordinates / 2 * np.log1p(shrinkage)
    precision = 1 / (1 + shrinkage) / 2
    labels = np.zeros(n_items, np.int32)
    sizes = np.zeros(n_items + 1, np.int64)  # at least one is empty once an observation is taken out
    sums = np.zeros((n_items + 1, n_coordinates))
    sizes[0], sums[0] = n_items, observations.sum(axis=0)
    draws = np.empty((n_draws, n_items), np.int32)
    for draw in draws:
        for i, x in enumerate(observations):
            sizes[labels[i]] -= 1
            sums[labels[i]] -= x
            full = np.flatnonzero(sizes)
            choice = np.append(full, np.argmin(sizes))
            n = sizes[choice]
            mean = np.where(n > 0, shrinkage[n], 0)[:, np.newaxis] * sums[choice]
            score = log_weight[n] - precision[n] * ((x - mean) ** 2).sum(axis=1)
            cumulative = np.cumsum(np.exp(score - score.max()))
            labels[i] = choice[np.searchsorted(cumulative, rng.random() * cumulative[-1])]
            sizes[labels[i]] += 1
            sums[labels[i]] += x
        draw[:] = labels
    return draws


def _splits(rng, n_items=60, n_draws=30, size=6):
    """Clusters split in two with a probability of their own in each draw, and a share of the items is anywhere."""
    blocks = np.arange(n_items) // size
    draws = [
        np.where(
            rng.random(n_items) < rng.random() * 0.6,
            10 + rng.integers(0, 20, n_items),
            blocks * 2 + (rng.random(n_items) < rng.random()),
        )
        for _ in range(n_draws)
    ]
    return Posterior(np.array(draws), n_items // size)


def _larger_splits(rng):
    size = int(rng.integers(8, 30))
    return _splits(rng, size * int(rng.integers(5, 10)), 40, size)


def _two_modes(rng):
    """Rows and columns of a square of items, with noise."""
    side, size = int(rng.integers(3, 6)), int(rng.integers(5, 9))
    rows = np.repeat(np.arange(side), side * size)
    columns = np.tile(np.repeat(np.arange(side), size), side)
    return _copies(rng, [rows, columns], 60, [share := rng.uniform(0.35, 0.65), 1 - share], rng.uniform(0.02, 0.2))


def _near_ties(rng):
    """Neighbouring clusters are one in half of the draws, and some items lie between two."""
    truth = np.repeat(np.arange(8), rng.integers(6, 20, 8))
    between = rng.random(truth.size) < 0.3
    draws = []
    for _ in range(50):
        draw = np.where(between & (rng.random(truth.size) < 0.5), (truth + 1) % 8, truth)
        draws.append(np.where(rng.random(8) < 0.5, np.arange(8) // 2, np.arange(8) + 4)[draw])
    return Posterior(np.array(draws), 6)


def _one_large(rng):
    """A cluster of more than half of the items; the others are alone or in small clusters that change."""
    n_items = int(rng.integers(100, 250))
    is_large = rng.random(n_items) < rng.uniform(0.5, 0.8)
    small, leaves = rng.integers(1, 15, n_items), rng.beta(1, 5, n_items)
    draws = []
    for _ in range(50):
        draw = np.where(is_large, 0, small)
        random = rng.integers(0, 40, n_items)
        draws.append(np.where(rng.random(n_items) < np.where(is_large, leaves, 0.4), random, draw))
    return Posterior(np.array(draws), 16)


def _records(rng):
    return linked_records(rng, int(rng.integers(120, 200)), 40, is_hard=True)


def linked_records(rng, n_items, n_draws, is_hard, sizes=(1, 2, 3, 5), shares=(0.4, 0.3, 0.2, 0.1)):
    """Clusters of few records, that some leave: the harder ones often, and for others as well."""
    sizes = rng.choice(sizes, n_items, p=shares)
    truth = np.repeat(np.arange(n_items), sizes)[:n_items]
    stays, alone = rng.beta(4 if is_hard else 8, 1.5, n_items), np.arange(n_items, 2 * n_items)
    draws = []
    for _ in range(n_draws):
        other = np.where(rng.random(n_items) < 0.3, rng.permuted(truth), alone) if is_hard else alone
        draws.append(np.where(rng.random(n_items) > stays, other, truth))
    return Posterior(np.array(draws, np.int32), int(truth[-1]) + 1)


def _mixture(rng):
    """A Dirichlet process mixture of normals on a line, by Gibbs sampling."""
    n_items, n_clusters = int(rng.integers(60, 130)), int(rng.integers(3, 8))
    centres = rng.normal(0, 4, n_clusters)
    observations = centres[rng.integers(n_clusters, size=n_items), np.newaxis] + rng.normal(size=(n_items, 1))
    return Posterior(dirichlet_process_draws(observations, 4.0, 1.5, 140, rng)[20::3], n_clusters)


def _restaurant(rng):
    """Each draw seats a third of the guests of a Chinese restaurant again."""
    n_items = int(rng.integers(60, 160))
    truth = _seated(rng, np.full(n_items, -1), 3.0)
    draws = [_seated(rng, np.where(rng.random(n_items) < 0.35, -1, truth), 3.0) for _ in range(40)]
    return Posterior(np.array(draws), np.unique(truth).size)


def _seated(rng, tables, concentration):
    for i in rng.permutation(np.flatnonzero(tables < 0)):
        sizes = np.bincount(tables[tables >= 0], minlength=1)
        shares = np.append(sizes, concentration) / (sizes.sum() + concentration)
        tables[i] = rng.choice(shares.size, p=shares)
    return tables


def _perturbation(rng, low=0.2, high=0.4):
    """The random perturbation model."""
    n_clusters = int(rng.integers(3, 12))
    noise, n_items, n_draws = rng.uniform(low, high), int(rng.integers(80, 300)), int(rng.integers(40, 150))
    made = pc.simulate.random_perturbation(n_items, n_clusters, n_draws=n_draws, noise=noise, random_seed=rng)
    return Posterior(made.draws.labels.astype(np.int64), n_clusters)


def _much_noise(rng):
    return _perturbation(rng, 0.45, 0.7)


def _segments(rng):
    """Contiguous segments in recurring states, whose ends wander and some of which are missed, as of a Markov chain."""
    n_items, n_segments = int(rng.integers(100, 250)), int(rng.integers(6, 16))
    ends = np.sort(rng.choice(np.arange(5, n_items - 5), n_segments - 1, replace=False))
    states, missed = rng.integers(0, 5, n_segments), rng.beta(1, 3, n_segments)
    draws = []
    for _ in range(60):
        moved = np.sort(np.clip(np.round(rng.normal(ends, 4)), 1, n_items - 1))
        seen = np.where(rng.random(n_segments) < missed, np.roll(states, 1), states)
        draw = seen[np.searchsorted(moved, np.arange(n_items), side="right")]
        draws.append(np.where(rng.random(n_items) < 0.03, rng.integers(0, 5, n_items), draw))
    return Posterior(np.array(draws), np.unique(states).size)


def _stuck_chains(rng):
    """Four chains of 40 draws, of which each changes two items a step around a mode that it never leaves."""
    n_items, n_clusters = int(rng.integers(60, 160)), int(rng.integers(3, 7))
    common = rng.integers(n_clusters, size=n_items)
    draws = []
    for _ in range(4):
        mode = np.where(rng.random(n_items) < 0.4, rng.integers(n_clusters, size=n_items), common)
        draw = mode.copy()
        for _ in range(40):
            draw[rng.integers(n_items, size=6)] = rng.integers(n_clusters, size=6)
            home = rng.random(n_items) < 0.1
            draw[home] = mode[home]
            draws.append(draw.copy())
    return Posterior(np.array(draws), n_clusters)


def _mixed_sizes(rng):
    """Clusters from one item to half of them, noise that differs between items, and pieces that break off."""
    truth = np.repeat(np.arange(9), [60, 30, 16, 8, 5, 3, 2, 1, 1])
    noise, piece = rng.beta(1, 4, truth.size), rng.random(truth.size) < 0.4
    draws = []
    for _ in range(40):
        draw = truth + 9 * (piece & (rng.random(9) < 0.4)[truth])
        draws.append(np.where(rng.random(truth.size) < noise, rng.integers(0, 18, truth.size), draw))
    return Posterior(np.array(draws), 9)


def _nested(rng):
    """A hierarchy of three levels, of which each draw, and in some draws each branch, shows one."""
    fine = np.repeat(np.arange(18), rng.integers(3, 12, 18))
    noise, is_whole = rng.uniform(0.02, 0.2), rng.random() < 0.5
    draws = []
    for _ in range(50):
        level = np.full(3, rng.integers(3)) if is_whole else rng.integers(3, size=3)
        width = np.array([1, 3, 6])[level][fine // 6]
        draw = fine // width * width
        draws.append(np.where(rng.random(fine.size) < noise, rng.integers(0, 18, fine.size), draw))
    return Posterior(np.array(draws), 6)


def _weighted(rng):
    """Few draws of three modes, which count up to thirty times."""
    n_items, n_clusters = int(rng.integers(60, 150)), int(rng.integers(4, 9))
    common = rng.integers(n_clusters, size=n_items)
    random = rng.integers(n_clusters, size=(3, n_items))
    modes = np.where(rng.random((3, n_items)) < 0.3, random, common)
    made = _copies(rng, modes, 30, [0.5, 0.3, 0.2], rng.uniform(0.1, 0.4))
    return made._replace(counts=rng.geometric(0.2, 30).clip(max=30))


def _copies(rng, modes, n_draws, shares, noise):
    modes = np.array(modes)
    n_clusters = int(modes.max()) + 1
    draws = modes[rng.choice(len(modes), n_draws, p=shares)]
    is_noise = rng.random(draws.shape) < noise
    return Posterior(np.where(is_noise, rng.integers(n_clusters, size=draws.shape), draws), n_clusters)


FAMILIES: dict[str, Callable[[np.random.Generator], Posterior]] = {
    "splits": _splits,
    "larger-splits": _larger_splits,
    "two-modes": _two_modes,
    "near-ties": _near_ties,
    "one-large": _one_large,
    "records": _records,
    "mixture": _mixture,
    "restaurant": _restaurant,
    "perturbation": _perturbation,
    "much-noise": _much_noise,
    "segments": _segments,
    "stuck-chains": _stuck_chains,
    "mixed-sizes": _mixed_sizes,
    "nested": _nested,
    "weighted": _weighted,
}
