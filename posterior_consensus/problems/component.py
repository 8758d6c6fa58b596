"""One connected component of linked records: the weights of the pairs of its groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.runtime.aliases import Floats


class Component(NamedTuple):
    """Groups of records that are linked, each of which stays together: the weights of their pairs.

    A weight is the expected cost of a pair apart less that together, so that the best partition has the largest sum of
    weights over the pairs joined. A pair that is not listed has the weight ``default * sizes[i] * sizes[j]``.
    """

    # Listed pairs of groups, each in both directions, as in a sparse array by rows; indices are sorted.
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    excess: Floats  # weight of each listed pair less what it has by default
    sizes: npt.NDArray[np.int64]  # (n_groups,): number of records of each group
    default: float  # weight of a pair of records that is not listed, at most 0
    limit: float = np.inf  # most records of a cluster

    @property
    def fields(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], float, float]:
        """All of them, as the kernels take them: a plain tuple is compiled once."""
        return self.indptr, self.indices, self.excess, self.sizes, self.default, self.limit

    @classmethod
    def of(
        cls, table: sparse.csr_array, sizes: npt.NDArray[np.int64], default: float, limit: float = np.inf
    ) -> Component:
        """Take the excess weights from a sparse array (n_groups, n_groups), symmetric."""
        table.sort_indices()
        return cls(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, sizes, default, limit)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.sizes.size)

    @property
    def rows(self) -> npt.NDArray[np.int32]:
        """First group of each listed pair."""
        return np.repeat(np.arange(self.n_groups, dtype=np.int32), np.diff(self.indptr))

    @property
    def listed_weights(self) -> Floats:
        """Weight of each listed pair."""
        return self.excess + self.default * (self.sizes[self.rows] * self.sizes[self.indices])

    def weights(self) -> Floats:
        """Weights (n_groups, n_groups) of all pairs, 0 on the diagonal."""
        weights = self.default * np.multiply.outer(self.sizes, self.sizes).astype(np.float64)
        weights[self.rows, self.indices] = self.listed_weights
        np.fill_diagonal(weights, 0.0)
        return weights

    def value(self, labels: npt.NDArray[Any]) -> float:
        """Sum of the weights of the pairs that labels (n_groups,) from 0 on join."""
        joined = labels[self.rows] == labels[self.indices]
        of_records = np.square(np.bincount(labels, self.sizes)).sum() - np.square(self.sizes).sum()
        return float(self.excess[joined].sum() + self.default * of_records) / 2

    @property
    def most(self) -> float:
        """Sum of the positive weights, which no partition exceeds."""
        return float(np.maximum(self.listed_weights, 0.0).sum()) / 2

    def of_few(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Labels (n_groups,) from 0 on with the groups of clusters that are too large alone."""
        return np.where(self.is_too_large(labels), labels.size + np.arange(labels.size), labels)

    def is_too_large(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether each group's cluster in labels (n_groups,) from 0 on has more records than it may."""
        return np.bincount(labels, self.sizes)[labels] > self.limit

    def without_losses(self, labels: npt.NDArray[Any]) -> Labels:
        """Canonical labels without pairs that cost more together than one of the two can gain from all others.

        Forbidden pairs are such pairs. Of each that labels (n_groups,) join, the group that can gain less leaves its
        cluster, which lowers the expected loss.
        """
        weights = self.listed_weights
        gains = np.bincount(self.rows, np.maximum(weights, 0.0), self.n_groups)
        one, other = self.rows, self.indices
        less = np.where(gains[one] <= gains[other], one, other)
        alone = less[(labels[one] == labels[other]) & (weights < -gains[less])]
        labels = labels.astype(np.int64)
        labels[alone] = labels.max() + 1 + alone
        return canonical_labels(labels)

    def of_groups(self, own: npt.NDArray[np.intp]) -> Component:
        """Some of the groups, by position."""
        table = sparse.csr_array((self.excess, self.indices, self.indptr), (self.n_groups, self.n_groups))
        return Component.of(table[own][:, own].tocsr(), self.sizes[own], self.default, self.limit)

    def contracted(
        self, group: npt.NDArray[np.int32], one: npt.NDArray[np.int32], other: npt.NDArray[np.int32]
    ) -> Component:
        """Merge groups into the larger ones of `group` (n_groups,), of which pairs `one`, `other` must be apart."""
        n = int(group.max()) + 1
        rows, columns = group[self.rows], group[self.indices]
        between = rows != columns
        merged = sparse.coo_array((self.excess[between], (rows[between], columns[between])), (n, n)).tocsr()
        found = Component.of(merged, np.bincount(group, self.sizes).astype(np.int64), self.default, self.limit)
        weights, rows = found.listed_weights, found.rows
        gains = np.bincount(rows, np.maximum(weights, 0.0), n)
        keys = np.concatenate([one.astype(np.int64) * n + other, other.astype(np.int64) * n + one])
        never = np.isin(rows.astype(np.int64) * n + found.indices, keys) & (weights > 0)
        least = np.minimum(gains[rows], gains[found.indices]) + 1.0
        found.excess[never] -= (weights + least)[never]
        return found
