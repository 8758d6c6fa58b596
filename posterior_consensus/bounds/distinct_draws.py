"""Distinct draws of distinct items."""

from __future__ import annotations

import numpy as np

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, distinct_rows
from posterior_consensus.kernels.vi_bound import Blocks
from posterior_consensus.runtime.aliases import Integers

_PILOT_ROWS = 1e7  # memberships of items in draws
_PILOT_DRAWS = 200


class DistinctDraws:
    """Distinct draws of distinct items, the latter with multiplicities.

    Some partition of minimum expected VI keeps items together that have equal labels in every draw.
    """

    def __init__(self, draws: PartitionDraws) -> None:
        draw, row = distinct_rows(draws.labels)
        first, item = distinct_rows(draws.labels[draw].T)
        self._first = first
        self.labels = draws.labels[np.ix_(draw, first)]
        self.weights = np.bincount(row, weights=draws.weights)
        self.multiplicity: Integers = np.bincount(item).astype(np.int64)
        of_labels = draws.labels_only().shared_similarity
        self.similarity = of_labels[np.ix_(first, first)]
        self.n = first.size
        self.n_items = draws.n_items
        blocks = self.blocks(1)
        sizes = np.add.reduceat(self.multiplicity[blocks.order], blocks.ends - np.diff(blocks.ends, prepend=0))
        sums = np.add.reduceat(sizes * np.log2(sizes), blocks.starts[:-1])
        self.entropy = float(self.weights @ sums) / self.n_items
        self.rows = float(np.sum(np.square(np.diff(blocks.ends, prepend=0))))

    def merged(self, labels: Labels) -> Labels:
        """A partition of the distinct items, from one of all items (n,): each goes where its first item is."""
        return np.unique(np.asarray(labels)[self._first], return_inverse=True)[1].astype(np.int32)

    def pilot_stride(self) -> int:
        """Stride over draws that makes tangents cheap (a stratified sample, as draws are sorted); 1: all draws."""
        return max(1, min(int(np.ceil(self.rows / _PILOT_ROWS)), len(self.labels) // _PILOT_DRAWS))

    def blocks(self, stride: int) -> Blocks:
        """One draw in `stride` in the form that kernels read, their weights summing to 1."""
        labels = self.labels[stride // 2 :: stride].astype(np.int32, order="C")  # one type: compiled once
        weights = self.weights[stride // 2 :: stride]
        starts = np.concatenate([[0], np.cumsum(labels.max(axis=1).astype(np.int64) + 1)])
        order = np.argsort(labels, axis=1, kind="stable").astype(np.int32).ravel()
        ends = np.cumsum(np.bincount((starts[:-1, np.newaxis] + labels).ravel(), minlength=starts[-1]))
        return Blocks(labels, starts, order, ends, weights / weights.sum(), self.multiplicity)
