"""Independent runs of programs that call some items noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws, apply_to_links
from posterior_consensus.ensemble.items import Clusters, Items
from posterior_consensus.ensemble.labels import ArrayLabels, Result, fingerprints
from posterior_consensus.ensemble.partitions import (
    Labels,
    alone,
    canonical_labels,
    canonical_rows,
    canonical_with_noise,
    marked,
)
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.tolerances import SAME


@dataclass(frozen=True, eq=False, repr=False)
class NoisyRuns(PartitionDraws):
    """Independent runs that call some items noise, returned by :func:`as_runs`.

    Attributes
    ----------
    coded : ArrayLabels
        Labels as the runs gave them: 0 for noise, whether a run has some or not, and clusters from 1 on. `labels` has
        each item of noise in a cluster of its own, because it is together with no other item.
    noise : ndarray of shape (n_draws, n_items), dtype bool
        Whether each run calls each item noise.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each run, without items that it calls noise.
    noise_share : ndarray of shape (n_items,), dtype float64
        Share of runs that call each item noise.
    """

    coded: ArrayLabels

    has_noise: ClassVar[bool] = True
    usual_loss: ClassVar[str] = "ballet"

    @classmethod
    def of_codes(cls, coded: ArrayLabels, samples: Samples, items: Items) -> Self:
        """Build runs from labels in which noise is 0."""

        def single(row: npt.NDArray[Any], number: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
            own, noise = row.astype(np.uint32), np.flatnonzero(row == 0)
            own[noise] = np.arange(number, number + noise.size)
            return canonical_rows(own[np.newaxis], number + noise.size)

        rows = map(single, coded.array, coded.n_clusters.tolist())  # a run at a time, as these numbers are large
        return cls(items, samples, ArrayLabels.of_each(rows, coded.array.shape), coded)

    @property
    def clusters(self) -> ArrayLabels:
        """Labels in which all items of noise of a run are its cluster 0: tables of clusters do not grow with them."""
        return self.coded

    @property
    def n_clusters(self) -> npt.NDArray[np.int64]:
        """Number of clusters of each run, without noise; `backend.n_clusters` is one more than the largest label."""
        return self.coded.n_clusters - 1

    @property
    def noise(self) -> npt.NDArray[np.bool_]:
        """Whether each run calls each item noise."""
        return self.coded.array == 0

    @property
    def noise_share(self) -> Floats:
        """Share of runs that call each item noise, by the weights."""
        if not self.samples.is_weighted:
            return np.count_nonzero(self.noise, axis=0) / self.n_draws
        return self._share_of_noise(self.weights)

    def _share_of_noise(self, weights: Floats) -> Floats:
        share = np.zeros(self.n_items)
        for t in np.flatnonzero(weights):
            share += weights[t] * (self.coded.array[t] == 0)
        return share

    @property
    def noise_rows(self) -> npt.NDArray[np.int64]:
        """Row of each run's noise where its :attr:`clusters` are stacked: the first."""
        return self.coded.starts[:-1]

    def marked_labels(self, rows: npt.NDArray[np.intp] | slice = slice(None)) -> npt.NDArray[Any]:
        """Cluster of each item in each run, or in some, from 0, and -1 where the run calls the item noise."""
        return self.coded.array[rows].astype(np.int32) - 1

    def with_noise_of(self, labels: Labels, weights: Floats) -> Labels:
        """Labels of a partition, -1 for items alone in it that at least half of the weights (n_draws,) call noise."""
        share = self._share_of_noise(weights)
        is_noise = (np.bincount(labels)[labels] == 1) & (share > 0)
        return marked(labels, is_noise & (share >= (0.5 - SAME) * weights[weights > 0].sum()))

    def in_clusters(self) -> npt.NDArray[np.bool_]:
        """Whether each run has each item in a cluster (N, n)."""
        return ~self.noise

    def as_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Canonical labels (n_items,); an item of label -1 is noise, alone in its cluster."""
        return canonical_labels(alone(self.as_marked_labels(partition, name)), name)

    def as_marked_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Canonical labels (n_items,) with -1 for noise."""
        return self.items.as_marked_labels(partition, name)

    def clusters_of(self, partition: Any) -> Clusters:
        """Clusters of a partition, and noise after them; -1 in a label vector is noise, too."""
        return self.items.clusters_of(partition, labels=self.as_marked_labels(partition)).with_noise("partition")

    def take(self, rows: Any) -> Self:
        """Select runs by row number, see :meth:`PartitionDraws.take`."""
        rows = self.samples.row_numbers(rows)
        return replace(super().take(rows), coded=self.coded.take(rows))

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        coded = canonical_with_noise(self.coded.array.take(at, axis=1), int(self.coded.n_clusters.max()))
        return replace(super().of_items(at), coded=ArrayLabels(*coded))

    def _fingerprints(self) -> npt.NDArray[np.uint64]:
        return super()._fingerprints() * np.uint64(3) + fingerprints(self.noise, slice(0, self.n_items))

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Do what :meth:`PartitionDraws.map_links` does; noise is together with nothing, not even with itself."""
        addends, total = self.samples.addends
        counts, itself = self.coded.joint_counts(labels).copy(), np.full(self.n_items, total)
        counts[self.noise_rows] = 0
        for addend, row in zip(addends, self.coded.array, strict=True):
            itself -= addend * (row == 0)
        given = self.coded.starts, addends, counts, labels, total, itself, function, arguments
        return self.coded.map_blocks(apply_to_links, *given)
