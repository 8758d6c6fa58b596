"""Posteriors that several benchmarks read or make."""

import os
from pathlib import Path

import numpy as np

from benchmarks._runner import ROOT

GOLDEN, SHIPPED = ROOT / "tests" / "golden", ROOT / "posterior_consensus" / "example_data"
FOLDER = Path(os.environ.get("POSTERIORS", GOLDEN))  # others may not be redistributed


def posteriors(smallest: bool = False) -> dict[str, np.ndarray]:
    """Labels by name, of files NAME_draws.npz in tests/golden or the folder POSTERIORS; few of them if smallest."""
    found = {path.stem.removesuffix("_draws"): path for path in sorted(FOLDER.glob("*_draws.npz"))}
    part = (slice(50), slice(100)) if smallest else ...
    return {name: np.load(path)["labels"][part] for name, path in found.items()}


def dpmm() -> np.ndarray:
    """1,000 draws of 1,000 items, from a Dirichlet process mixture."""
    return np.load(GOLDEN / "dpmm_draws.npz")["labels"]


def random_draws(n_draws: int, n_items: int, n_labels: int, noise: float = 0.3, seed: int = 0) -> np.ndarray:
    """Draws (n_draws, n_items) of a noisy partition, the same for every seed, whose labels switch from draw to draw."""
    dtype = np.min_scalar_type(n_labels - 1)
    truth = np.random.default_rng(n_items).integers(n_labels, size=n_items, dtype=dtype)
    rng = np.random.default_rng([n_items, seed])
    labels = np.empty((n_draws, n_items), dtype)
    for row in labels:
        is_noise = rng.random(n_items, np.float32) < noise
        noisy = np.where(is_noise, rng.integers(n_labels, size=n_items, dtype=dtype), truth)
        row[:] = rng.permutation(n_labels)[noisy]
    return labels


def kept(labels: np.ndarray, share: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws (n_draws, n_items) in which an item keeps its label of the draw before with this, or its, probability."""
    for t in range(1, len(labels) if np.any(share) else 0):
        labels[t] = np.where(rng.random(labels.shape[1]) < share, labels[t - 1], labels[t])
    return labels
