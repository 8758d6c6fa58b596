"""Zhou, Dudeja and Amini (2023), "Statistical guarantees for consensus clustering": settings and printed results."""

from typing import NamedTuple

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

# Mean adjusted Rand index by noise, (method, refined) and setting.
PRINTED = {
    0.45: {
        ("Basic", False): (1.00, 1.00, 1.00, 1.00, 0.82, 0.35, 0.24, 0.093),
        ("Basic", True): (1.00, 1.00, 1.00, 1.00, 0.98, 0.91, 0.86, 0.690),
        ("Best Of K", False): (0.32, 0.30, 0.29, 0.31, 0.33, 0.28, 0.24, 0.150),
        ("BOEM", False): (0.50, 0.48, 0.57, 0.69, 0.38, 0.41, 0.33, 0.310),
        ("BOEM", True): (0.65, 0.59, 0.94, 1.00, 0.60, 0.70, 0.52, 0.430),
        ("CCPivot", False): (0.77, 1.00, 0.77, 1.00, 0.81, 0.78, 0.77, 0.670),
        ("CCPivot", True): (0.84, 1.00, 0.81, 1.00, 0.81, 0.75, 0.70, 0.570),
        ("EM", False): (0.97, 0.98, 0.97, 0.99, 0.72, 0.41, 0.36, 0.220),
        ("Input", False): (0.30, 0.30, 0.30, 0.30, 0.33, 0.28, 0.25, 0.160),
        ("KCC", False): (1.00, 1.00, 1.00, 1.00, 0.91, 0.44, 0.34, 0.130),
        ("KCC", True): (1.00, 1.00, 1.00, 1.00, 0.93, 0.50, 0.41, 0.180),
        ("SC", False): (0.99, 1.00, 1.00, 1.00, 0.96, 0.65, 0.65, 0.430),
        ("SC", True): (1.00, 1.00, 1.00, 1.00, 0.99, 0.98, 0.97, 0.880),
    },
    0.55: {
        ("Basic", False): (0.96, 1.00, 0.98, 1.00, 0.66, 0.26, 0.19, 0.077),
        ("Basic", True): (0.97, 1.00, 0.98, 1.00, 0.89, 0.64, 0.57, 0.370),
        ("Best Of K", False): (0.20, 0.21, 0.20, 0.20, 0.23, 0.19, 0.17, 0.096),
        ("BOEM", False): (0.21, 0.21, 0.23, 0.29, 0.33, 0.39, 0.31, 0.240),
        ("BOEM", True): (0.46, 0.36, 0.56, 0.65, 0.55, 0.62, 0.48, 0.280),
        ("CCPivot", False): (0.51, 0.99, 0.51, 0.99, 0.57, 0.52, 0.44, 0.360),
        ("CCPivot", True): (0.61, 0.98, 0.54, 0.94, 0.52, 0.36, 0.32, 0.200),
        ("EM", False): (0.87, 0.95, 0.91, 0.97, 0.64, 0.33, 0.27, 0.140),
        ("Input", False): (0.20, 0.20, 0.20, 0.20, 0.23, 0.18, 0.16, 0.098),
        ("KCC", False): (0.94, 1.00, 0.98, 1.00, 0.67, 0.28, 0.21, 0.081),
        ("KCC", True): (0.97, 1.00, 0.98, 1.00, 0.74, 0.36, 0.27, 0.130),
        ("SC", False): (0.95, 1.00, 0.98, 1.00, 0.75, 0.41, 0.35, 0.170),
        ("SC", True): (0.97, 1.00, 0.98, 1.00, 0.95, 0.86, 0.79, 0.550),
    },
    0.65: {
        ("Basic", False): (0.790, 1.000, 0.88, 1.00, 0.47, 0.17, 0.120, 0.061),
        ("Basic", True): (0.810, 1.000, 0.89, 1.00, 0.60, 0.33, 0.280, 0.160),
        ("Best Of K", False): (0.120, 0.130, 0.12, 0.12, 0.13, 0.11, 0.098, 0.062),
        ("BOEM", False): (0.085, 0.098, 0.12, 0.11, 0.24, 0.29, 0.320, 0.270),
        ("BOEM", True): (0.130, 0.150, 0.21, 0.22, 0.36, 0.33, 0.290, 0.150),
        ("CCPivot", False): (0.250, 0.690, 0.22, 0.67, 0.28, 0.24, 0.210, 0.140),
        ("CCPivot", True): (0.280, 0.540, 0.21, 0.37, 0.22, 0.12, 0.088, 0.051),
        ("EM", False): (0.600, 0.920, 0.74, 0.95, 0.46, 0.23, 0.180, 0.078),
        ("Input", False): (0.120, 0.120, 0.12, 0.12, 0.14, 0.11, 0.096, 0.059),
        ("KCC", False): (0.590, 1.000, 0.89, 1.00, 0.39, 0.16, 0.100, 0.045),
        ("KCC", True): (0.740, 1.000, 0.89, 1.00, 0.52, 0.24, 0.180, 0.083),
        ("SC", False): (0.750, 1.000, 0.88, 1.00, 0.47, 0.19, 0.140, 0.076),
        ("SC", True): (0.810, 1.000, 0.89, 1.00, 0.65, 0.40, 0.330, 0.190),
    },
}
