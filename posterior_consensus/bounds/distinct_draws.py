"""Distinct draws of distinct items."""

from __future__ import annotations

import numpy as np

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, distinct_rows
from posterior_consensus.runtime.aliases import Integers


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
        n_labels = int(self.labels.max()) + 1
        cluster = self.labels + n_labels * np.arange(len(self.labels))[:, np.newaxis]
        sizes = np.bincount(cluster.ravel(), np.tile(self.multiplicity, len(cluster)), n_labels * len(cluster))
        costs = (sizes * np.log2(np.maximum(sizes, 1))).reshape(-1, n_labels).sum(axis=1)
        self.entropy = float(self.weights @ costs) / self.n_items

    def merged(self, labels: Labels) -> Labels:
        """A partition of the distinct items, from one of all items (n,): each goes where its first item is."""
        return np.unique(np.asarray(labels)[self._first], return_inverse=True)[1].astype(np.int32)
