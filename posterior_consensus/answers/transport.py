"""Optimal transport between two small sets of partitions, with what its cost owes to each of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment, linprog

Floats = npt.NDArray[np.float64]

_TINY = 1e-12  # of the largest cost


def matched(costs: Floats) -> tuple[float, Floats, Floats]:
    """Least mean cost of a one-to-one matching of rows with columns (m, m), and potentials (m,) of both.

    The means of the potentials add up to that cost; no sum of a row's and a column's exceeds their cost. Of the
    potentials, which are not unique, the mean of two extreme ones is taken.
    """
    rows, columns = linear_sum_assignment(costs)
    paired = costs[:, columns]
    own = np.diagonal(paired).copy()
    excess = paired - own[:, np.newaxis]  # of a row that goes to another row's column
    tiny = _TINY * float(costs.max(initial=0.0))
    lowest = highest = own / 2  # the same for rows and columns
    for _ in range(own.size):  # shortest paths, which have no more steps (Bellman and Ford)
        lower = (lowest[:, np.newaxis] + excess).min(axis=0)
        higher = (highest - excess).max(axis=1)
        settled = np.all(lower >= lowest - tiny) and np.all(higher <= highest + tiny)
        lowest, highest = lower, higher
        if settled:
            break
    of_pairs = (lowest + highest) / 2
    of_columns = np.empty(own.size)
    of_columns[columns] = of_pairs
    return float(costs[rows, columns].mean()), own - of_pairs, of_columns


def transported(costs: Floats, weights: Floats, others: Floats) -> tuple[float, Floats, Floats, Floats]:
    """Least cost of moving weights (n,) to weights (m,), the plan (n, m), and potentials (n,) and (m,)."""
    n, m = costs.shape
    leaving, arriving = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    found = linprog(
        costs.ravel(),
        A_eq=np.vstack([leaving, arriving]),
        b_eq=np.concatenate([weights / weights.sum(), others / others.sum()]),
        method="highs",
    )
    potentials = found.eqlin.marginals
    return float(found.fun), found.x.reshape(n, m), potentials[:n], potentials[n:]
