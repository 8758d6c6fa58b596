"""Zhou, Dudeja and Amini (2023), "Statistical guarantees for consensus clustering": settings and printed results."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

import posterior_consensus as pc

K = 6
NOISES = (0.45, 0.55, 0.65)


class Setting(NamedTuple):
    """One of the eight settings of Tables 1 to 3."""

    n_items: int
    n_draws: int
    p1: float | None  # share of the first cluster; None for equal ones
    replications: int

    @property
    def title(self) -> str:
        """As the figures' captions have it."""
        return f"n = {self.n_items}, N = {self.n_draws}" + ("" if self.p1 is None else f", p1 = {self.p1}")

    def simulated(self, noise: float, seed: object) -> object:
        """Draws, their truth and the oracle."""
        sizes = "balanced" if self.p1 is None else self.p1
        given = {"n_draws": self.n_draws, "noise": noise, "sizes": sizes, "random_seed": seed}
        return pc.simulate.random_perturbation(self.n_items, K, **given)


SETTINGS = {
    1: Setting(100, 20, None, 40),
    2: Setting(100, 200, None, 40),
    3: Setting(500, 20, None, 40),
    4: Setting(500, 200, None, 40),
    5: Setting(100, 20, 0.5, 120),
    6: Setting(100, 20, 0.75, 120),
    7: Setting(100, 20, 0.8, 120),
    8: Setting(100, 20, 0.9, 120),
}

FIGURES = {2: (1, 2, 3, 4), 3: (5, 6), 4: (7, 8)}

# Mean adjusted Rand index by noise, method and whether refined, of each setting.
PRINTED = pd.read_csv(Path(__file__).with_name("printed.csv"), index_col=["noise", "method", "refined"])
