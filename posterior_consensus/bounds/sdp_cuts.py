"""Triangle inequalities that cut the semidefinite relaxation of "within_variance", with their multipliers."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_MOST_A_ITEM = 20  # at a time
_MOST = 2_000  # at a time
_VIOLATED = 0.02  # of the mean of the diagonal
_CLOSE = 0.3  # share of Z_ii above which Z_ij can be part of a violated inequality with i first, but for a few


class Cuts:
    """Inequalities Z_ij + Z_il <= Z_ii + Z_jl, where j = l stands for Z_ij <= Z_ii.

    They hold for Z_ij = 1 / size(S_i) where i and j share the cluster S_i, else 0.

    Attributes
    ----------
    rows : ndarray of shape (n_cuts, 3)
        i, j and l.
    prices : ndarray of shape (n_cuts,)
        Multipliers of at least 0.
    """

    def __init__(self, roots: Floats) -> None:
        self._counts = roots**2
        self._single = 1.0 / np.multiply.outer(roots, roots)  # from merged items to single ones
        self.rows: Rows = np.empty((0, 3), np.int64)
        self.prices: Floats = np.empty(0)

    def matrix(self) -> Floats:
        """What the multipliers add to the matrix of the objective (u, u)."""
        u = self._counts.size
        i, j, k = self.rows.T
        pair = j == k
        third = np.where(pair, 0.0, self.prices)
        at = np.concatenate([i * u + i, j * u + k, i * u + j, i * u + k])
        added = np.concatenate([self.prices, third, -self.prices, -third])
        upper = np.bincount(at, added, u * u).reshape(u, u)
        priced: Floats = (upper + upper.T) / 2 * self._single
        return priced

    def reprice(self, spread: Floats, step: float) -> None:
        """Raise the multipliers of inequalities that a matrix Z (u, u) violates by a step, and lower the others."""
        slack = _slack(spread * self._single, self.rows)
        self.prices = np.maximum(self.prices - step * self._counts[self.rows[:, 0]] * slack, 0.0)

    def separate(self, spread: Floats) -> int:
        """Drop inequalities without a multiplier, add those that Z (u, u) violates most, and return their number."""
        kept = self.prices > 0
        single = spread * self._single
        violated = _violated(single)
        u = single.shape[0]
        new = violated[~np.isin(_keys(violated, u), _keys(self.rows[kept], u))]
        self.rows = np.concatenate([self.rows[kept], new])
        self.prices = np.concatenate([self.prices[kept], np.zeros(len(new))])
        return len(new)


def _slack(single: Floats, rows: Rows) -> Floats:
    i, j, k = rows.T
    third = np.where(j == k, 0.0, single[j, k] - single[i, k])
    slack: Floats = single[i, i] - single[i, j] + third
    return slack


def _violated(single: Floats) -> Rows:
    """The most violated inequalities, at most some for each first item."""
    diagonal = np.diagonal(single)
    enough = _VIOLATED * float(diagonal.mean())
    first, second = np.nonzero(single - diagonal[:, np.newaxis] > enough)
    found = [np.column_stack([first, second, second])]
    for i in range(len(single)):
        close = np.flatnonzero(single[i] > _CLOSE * diagonal[i])
        close = close[close != i]
        row = single[i, close]
        excess = np.triu(np.add.outer(row, row) - diagonal[i] - single[np.ix_(close, close)], 1)
        j, k = np.nonzero(excess > enough)
        if j.size > _MOST_A_ITEM:
            most = np.argsort(-excess[j, k], kind="stable")[:_MOST_A_ITEM]
            j, k = j[most], k[most]
        found.append(np.column_stack([np.full(j.size, i), close[j], close[k]]))
    rows = np.concatenate(found).astype(np.int64)
    return rows[np.argsort(_slack(single, rows), kind="stable")[:_MOST]]


def _keys(rows: Rows, u: int) -> npt.NDArray[np.int64]:
    return (rows[:, 0] * u + rows[:, 1]) * u + rows[:, 2]
