"""Binder's expected loss as a clustering of weighted pairs, and its bound by prices of triangle inequalities.

An instance shrinks as pairs are fixed. TrianglePrices rise by coordinate ascent on a smoothed dual; rows are added and
dropped between rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import packing
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions

_ROUNDING = 1e-13  # relative to the sum of all weights; far above the rounding of a sum
_SHARE_OF_ROWS = 0.03  # of the memory budget
_BYTES_A_ROW = 20
_ROWS_A_ROUND = 20_000_000  # a tenth of a second or so
_SWEEPS = 20
_UNSORTED = 0.02  # share of new rows from which sorting pays
_SHRINK = 0.6  # of the width, in twenty sweeps


@dataclass(frozen=True, eq=False)
class Instance:
    """The problem to find the partition of groups of items with the least sum of `weights` over pairs apart."""

    # (n, n): cost of each pair of groups apart less its cost together, over all pairs of their items; zero diagonal
    weights: Floats
    apart: Flags  # (n, n): pairs of groups that must be apart
    groups: npt.NDArray[Any]  # (n_signatures,): group of each signature
    joined: float  # cost of a single cluster of all items, a constant that is added to the sum

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.weights.shape[0]

    def cost(self, labels: npt.NDArray[np.integer]) -> float:
        """Cost of labels of the groups (n,)."""
        return self.joined + float(self.weights[labels[:, np.newaxis] != labels].sum()) / 2

    def of_groups(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Labels (n,) of the groups from labels of all signatures: the label of the first signature of each group."""
        _, first = np.unique(self.groups, return_index=True)
        return labels[first]

    def nested_in(self, smaller: Instance) -> npt.NDArray[Any]:
        """Return the group of a contracted instance that each group is part of."""
        return self.of_groups(smaller.groups)

    def within(self, smaller: Instance) -> tuple[Positions, ...]:
        """Index of the pairs of those groups that come first in each group of a contracted instance."""
        first = np.unique(self.nested_in(smaller), return_index=True)[1]
        return np.ix_(first, first)

    def contracted(self, together: Flags, apart: Flags) -> Instance | None:
        """Merge groups that are `together` (n, n) and keep apart those that are `apart`; None if a pair is both."""
        merged = connected_groups(together)
        order = np.argsort(merged, kind="stable")
        starts = np.searchsorted(merged[order], np.arange(merged.max() + 1))
        square = np.ix_(order, order)
        weights = np.add.reduceat(np.add.reduceat(self.weights[square], starts, axis=0), starts, axis=1)
        apart = np.logical_or.reduceat((self.apart | apart)[square], starts, axis=0)
        apart = np.logical_or.reduceat(apart, starts, axis=1)
        if np.any(np.diagonal(apart)):
            return None
        np.fill_diagonal(weights, 0.0)
        return Instance(weights, apart | apart.T, merged[self.groups], self.joined)


@dataclass(frozen=True, eq=False)
class TrianglePrices:
    """Triangle inequalities and their Lagrange multipliers, as in :mod:`posterior_consensus.kernels.packing`."""

    rows: npt.NDArray[np.int32]  # (n_rows, 3)
    values: Floats  # (n_rows,): at least 0

    def reduced_costs(self, instance: Instance) -> Floats:
        """Weights (n * n,) of the pairs i < j plus what the multipliers add, and zeros elsewhere."""
        reduced = np.triu(instance.weights, 1).ravel()
        packing.add_prices(self.rows, self.values, reduced)
        return reduced

    def carried(self, groups: npt.NDArray[Any], size: int) -> TrianglePrices:
        """Multipliers of the rows that are still triangles after groups are merged into `size` larger ones."""
        n = groups.size
        first, second = groups[self.rows // n], groups[self.rows % n]
        pairs = np.minimum(first, second) * size + np.maximum(first, second)
        distinct = (first != second).all(axis=1) & (pairs[:, 1] != pairs[:, 2])
        pairs, values = pairs[distinct], self.values[distinct]
        # One pair and the third group identify a row.
        _, kept, inverse = np.unique(row_keys(pairs, size), return_index=True, return_inverse=True)
        return TrianglePrices(pairs[kept].astype(np.int32), np.bincount(inverse, values, kept.size).astype(np.float64))


def connected_groups(together: Flags) -> npt.NDArray[np.int32]:
    """Labels (n,) of the connected components of the graph of pairs that are together (n, n)."""
    return connected_components(together, directed=False)[1].astype(np.int32)


def row_keys(rows: npt.NDArray[np.integer], size: int) -> Integers:
    """A unique number for each row, from its first pair and the group that is not in that pair."""
    pair, other = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    low, high = other // size, other % size
    in_pair = (low == pair // size) | (low == pair % size)
    return pair * size + np.where(in_pair, high, low)


def lagrangian_bound(instance: Instance, reduced: Floats) -> float:
    """Cost of one cluster, plus each pair's least contribution at its reduced cost: no partition costs less."""
    least = np.where(instance.apart.ravel(), reduced, np.minimum(reduced, 0.0)).sum()
    return instance.joined + float(least - _ROUNDING * np.abs(instance.weights).sum())


def packing_bound(instance: Instance) -> float:
    """Bound by packing conflicted triangles, each of which costs at least the smallest of its weights."""
    weights = np.where(instance.apart, np.minimum(instance.weights, 0.0), instance.weights)
    trivial = lagrangian_bound(instance, np.triu(instance.weights, 1).ravel())
    return trivial + float(packing.pack(weights))


def fixed_pairs(instance: Instance, reduced: Floats, gap: float) -> tuple[Flags, Flags]:
    """Pairs that are together, and pairs that are apart, in every partition that costs less than the bound plus `gap`.

    Reduced-cost fixing: the other choice for such a pair adds the size of its reduced cost to the bound.
    """
    costs = reduced.reshape(instance.weights.shape)
    return (costs >= gap) & ~instance.apart, costs <= -gap


def _most_rows_at_once() -> int:
    return int(_SHARE_OF_ROWS * memory.budget() / _BYTES_A_ROW)


def conflicts(instance: Instance) -> TrianglePrices:
    """Conflicted triangles at multiplier 0; only those of large weights if memory does not hold all."""
    weights = np.where(instance.apart, np.minimum(instance.weights, 0.0), instance.weights)
    least = 0.0
    rows = np.empty((0, 3), np.int32)
    while (count := packing.list_conflicts(weights, least, rows)) > _most_rows_at_once():
        least = 1.25 * least + 0.02 * float(np.abs(weights).mean())
    rows = np.empty((count, 3), np.int32)
    packing.list_conflicts(weights, least, rows)
    return TrianglePrices(rows, np.zeros(count))


class Ascent:
    """Prices of an instance, improved round by round; `bound` is the best so far."""

    def __init__(self, instance: Instance, prices: TrianglePrices, centre: Labels, width: float | None = None) -> None:
        self.instance = instance
        self.prices = prices
        self.centre = (centre[:, np.newaxis] != centre).astype(np.float64).ravel()
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

    def on(self, smaller: Instance, centre: Labels) -> Ascent:
        """Continue on a contracted instance, from the best multipliers."""
        prices = self.best.carried(self.instance.nested_in(smaller), smaller.size)
        return Ascent(smaller, prices, centre, self.width)

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
        self.prices = TrianglePrices(self.prices.rows, values * self.width)
        self.reduced = self.prices.reduced_costs(self.instance)  # free of the rounding that sweeps leave behind
        value = lagrangian_bound(self.instance, self.reduced)
        if value > self.bound:
            self.bound, self.best = value, self.prices
        self._choose_rows()
        self.width *= _SHRINK ** (n_sweeps / _SWEEPS)

    def _lean(self) -> Floats:
        """The relaxed solution before it is clipped to [0, 1], as :func:`packing.ascend` takes it."""
        return np.where(self.instance.apart.ravel(), np.inf, self.centre - self.reduced / self.width)

    def _choose_rows(self) -> None:
        """Drop rows without a multiplier, add rows that the relaxed solution violates."""
        size = self.instance.size
        self.x = packing.relaxed_solution(self._lean(), size)
        kept = self.prices.values > 0
        rows, values = self.prices.rows[kept], self.prices.values[kept]
        new = violated_rows(self.x, self._slack, _most_rows_at_once() - len(rows))
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
        self.prices = TrianglePrices(rows, values)


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
