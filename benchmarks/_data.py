"""Posteriors that several benchmarks read or make."""

import os
from pathlib import Path

import numpy as np

from benchmarks._runner import ROOT

GOLDEN, SHIPPED = ROOT / "tests" / "golden", ROOT / "examples" / "data"
FOLDER = Path(os.environ.get("POSTERIORS", GOLDEN))  # others may not be redistributed
ORDER = ("galaxy", "iris", "ex2", "dpmm")


def posteriors(smallest: bool = False) -> dict[str, np.ndarray]:
    """Labels by name, of files NAME_draws.npz in tests/golden or the folder POSTERIORS; few of them if smallest."""
    found = {path.stem.removesuffix("_draws"): path for path in sorted(FOLDER.glob("*_draws.npz"))}
    in_order = [*(name for name in ORDER if name in found), *(name for name in found if name not in ORDER)]
    part = (slice(50), slice(100)) if smallest else ...
    return {name: np.load(found[name])["labels"][part] for name in in_order}


def dpmm() -> np.ndarray:
    """1,000 draws of 1,000 items, from a Dirichlet process mixture."""
    return np.load(GOLDEN / "dpmm_draws.npz")["labels"]


def random_draws(n_draws: int, n_items: int, n_labels: int) -> np.ndarray:
    """Draws of a noisy partition whose labels, up to `n_labels`, switch from draw to draw."""
    rng = np.random.default_rng(n_items)
    truth = rng.integers(n_labels, size=n_items)
    noisy = np.where(rng.random((n_draws, n_items)) < 0.3, rng.integers(n_labels, size=(n_draws, n_items)), truth)
    names = rng.permuted(np.tile(np.arange(n_labels), (n_draws, 1)), axis=1)
    return np.take_along_axis(names, noisy, axis=1).astype(np.uint16)
