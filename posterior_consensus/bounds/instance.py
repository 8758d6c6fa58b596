"""Binder's expected loss as a clustering of weighted pairs, and how its instances shrink as pairs are settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from posterior_consensus.kernels import packing

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_ROUNDING = 1e-13  # relative to the sum of all weights; far above the rounding of a sum


@dataclass(frozen=True, eq=False)
class Instance:
    """The problem to find the partition of groups of items with the least sum of `weights` over pairs apart.

    Attributes
    ----------
    weights : ndarray of shape (n, n), dtype float64
        Cost of each pair of groups apart less its cost together, over all pairs of their items; zero diagonal.
    apart : ndarray of shape (n, n), dtype bool
        Pairs of groups that must be apart.
    groups : ndarray of shape (n_signatures,)
        Group of each signature.
    joined : float
        Cost of a single cluster of all items, a constant that is added to the sum.
    """

    weights: Floats
    apart: Flags
    groups: npt.NDArray[Any]
    joined: float

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

    def within(self, smaller: Instance) -> tuple[npt.NDArray[np.intp], ...]:
        """Index of the pairs of those groups that come first in each group of a contracted instance."""
        first = np.unique(self.nested_in(smaller), return_index=True)[1]
        return np.ix_(first, first)

    def contracted(self, together: Flags, apart: Flags) -> Instance | None:
        """Merge groups that are `together` (n, n) and keep apart those that are `apart`; None if a pair is both."""
        merged = components(together)
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
class Prices:
    """Triangle inequalities and their Lagrange multipliers, as in :mod:`posterior_consensus.kernels.packing`.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, 3), dtype int32
    values : ndarray of shape (n_rows,), dtype float64
        At least 0.
    """

    rows: npt.NDArray[np.int32]
    values: Floats

    def reduced_costs(self, instance: Instance) -> Floats:
        """Weights (n * n,) of the pairs i < j plus what the multipliers add, and zeros elsewhere."""
        reduced = np.triu(instance.weights, 1).ravel()
        packing.add_prices(self.rows, self.values, reduced)
        return reduced

    def carried(self, groups: npt.NDArray[Any], size: int) -> Prices:
        """Multipliers of the rows that are still triangles after groups are merged into `size` larger ones."""
        n = groups.size
        first, second = groups[self.rows // n], groups[self.rows % n]
        pairs = np.minimum(first, second) * size + np.maximum(first, second)
        distinct = (first != second).all(axis=1) & (pairs[:, 1] != pairs[:, 2])
        pairs, values = pairs[distinct], self.values[distinct]
        # One pair and the third group identify a row.
        _, kept, inverse = np.unique(row_keys(pairs, size), return_index=True, return_inverse=True)
        return Prices(pairs[kept].astype(np.int32), np.bincount(inverse, values, kept.size).astype(np.float64))


def components(together: Flags) -> npt.NDArray[np.int32]:
    """Labels (n,) of the connected components of the graph of pairs that are together (n, n)."""
    return connected_components(together, directed=False)[1].astype(np.int32)


def row_keys(rows: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.int64]:
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


def settled(instance: Instance, reduced: Floats, gap: float) -> tuple[Flags, Flags]:
    """Pairs that are together, and pairs that are apart, in every partition that costs less than the bound plus `gap`.

    Reduced-cost fixing: the other choice for such a pair adds the size of its reduced cost to the bound.
    """
    costs = reduced.reshape(instance.weights.shape)
    return (costs >= gap) & ~instance.apart, costs <= -gap
