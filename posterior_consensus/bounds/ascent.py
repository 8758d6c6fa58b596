"""Prices by coordinate ascent on a smoothed dual; rows are added and dropped between rounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.instance import Floats, Instance, Prices, lagrangian_bound, row_keys
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import packing
from posterior_consensus.runtime import memory

_SHARE_OF_ROWS = 0.03  # of the memory budget
_BYTES_A_ROW = 20
_ROWS_A_ROUND = 20_000_000  # a tenth of a second or so
_SWEEPS = 20
_UNSORTED = 0.02  # share of new rows from which sorting pays
_SHRINK = 0.6  # of the width, in twenty sweeps


def _most_rows() -> int:
    return int(_SHARE_OF_ROWS * memory.budget() / _BYTES_A_ROW)


def conflicts(instance: Instance) -> Prices:
    """Conflicted triangles at multiplier 0; only those of large weights if memory does not hold all."""
    weights = np.where(instance.apart, np.minimum(instance.weights, 0.0), instance.weights)
    least = 0.0
    rows = np.empty((0, 3), np.int32)
    while (count := packing.list_conflicts(weights, least, rows)) > _most_rows():
        least = 1.25 * least + 0.02 * float(np.abs(weights).mean())
    rows = np.empty((count, 3), np.int32)
    packing.list_conflicts(weights, least, rows)
    return Prices(rows, np.zeros(count))


class Ascent:
    """Prices of an instance, improved round by round; `bound` is the best so far."""

    def __init__(self, instance: Instance, prices: Prices, center: Labels, width: float | None = None) -> None:
        self.instance = instance
        self.prices = prices
        self.center = (center[:, np.newaxis] != center).astype(np.float64).ravel()
        self.reduced = prices.reduced_costs(instance)
        self.bound = lagrangian_bound(instance, self.reduced)
        self.best = prices
        self.width = self._first_width() if width is None else width
        self._slack = 0.02
        self.x = packing.relaxed_solution(self._lean(), instance.size)

    def _first_width(self) -> float:
        """Typical size of a multiplier: median over some rows of the smallest weight."""
        some = self.prices.rows[:: len(self.prices.rows) // 10_000 + 1]
        room = np.abs(self.instance.weights.ravel()[some]).min(axis=1, initial=np.inf)
        return float(np.median(room[room > 0])) if np.any(room > 0) else 1.0

    def on(self, smaller: Instance, center: Labels) -> Ascent:
        """Continue on a contracted instance, from the best multipliers."""
        prices = self.best.carried(self.instance.nested_in(smaller), smaller.size)
        return Ascent(smaller, prices, center, self.width)

    @property
    def _n_sweeps(self) -> int:
        return int(np.clip(_ROWS_A_ROUND // max(1, len(self.prices.rows)), 1, _SWEEPS))

    @property
    def seconds_a_round(self) -> float:
        """About how long the next round takes."""
        return 8e-9 * self._n_sweeps * len(self.prices.rows) + 2e-8 * self.x.size

    def round(self) -> None:
        """Make a few sweeps over the current rows, then choose new rows."""
        n_sweeps = self._n_sweeps
        values, lean = self.prices.values / self.width, self._lean()
        packing.ascend(self.prices.rows, values, lean, n_sweeps)
        self.prices = Prices(self.prices.rows, values * self.width)
        self.reduced = self.prices.reduced_costs(self.instance)  # free of the rounding that sweeps leave behind
        value = lagrangian_bound(self.instance, self.reduced)
        if value > self.bound:
            self.bound, self.best = value, self.prices
        self._choose_rows()
        self.width *= _SHRINK ** (n_sweeps / _SWEEPS)

    def _lean(self) -> Floats:
        """The relaxed solution before it is clipped to [0, 1], as :func:`packing.ascend` takes it."""
        return np.where(self.instance.apart.ravel(), np.inf, self.center - self.reduced / self.width)

    def _choose_rows(self) -> None:
        """Drop rows without a multiplier, add rows that the relaxed solution violates."""
        size = self.instance.size
        self.x = packing.relaxed_solution(self._lean(), size)
        kept = self.prices.values > 0
        rows, values = self.prices.rows[kept], self.prices.values[kept]
        new = violated_rows(self.x, self._slack, _most_rows() - len(rows))
        if len(new):
            x = self.x.ravel()
            again = rows[x[rows[:, 0]] - x[rows[:, 1]] - x[rows[:, 2]] > self._slack / 2]
            new = new[~np.isin(row_keys(new, size), row_keys(again, size))]
        else:
            self._slack = max(self._slack / 2, 1e-4)
        rows, values = np.concatenate([rows, new]), np.concatenate([values, np.zeros(len(new))])
        if len(new) > _UNSORTED * len(rows):
            order = np.argsort(rows[:, 0], kind="stable")  # sweeps take half the time where neighbours share a pair
            rows, values = rows[order], values[order]
        self.prices = Prices(rows, values)


def violated_rows(x: Floats, slack: float, most: int) -> npt.NDArray[np.int32]:
    """Rows that x violates by more than `slack`, which is raised if there are more than `most`."""
    rows = np.empty((min(most, 500_000), 3), np.int32)
    while (count := packing.list_violations(x, slack, rows)) > len(rows):
        if count <= most:
            rows = np.empty((count, 3), np.int32)
        elif slack < 0.9:
            slack = 0.5 * (1 + slack)
        else:
            break
    return rows[: min(count, len(rows))]
