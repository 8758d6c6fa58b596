"""Independent runs of programs that call some items noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws, apply_to_links, as_they_are
from posterior_consensus.ensemble.items import Clusters
from posterior_consensus.ensemble.labels import ArrayLabels, LabelBackend, fingerprints
from posterior_consensus.ensemble.pairs import Result
from posterior_consensus.ensemble.partitions import Labels, alone, canonical_labels, canonical_rows
from posterior_consensus.runtime.aliases import Floats


@dataclass(frozen=True, eq=False, repr=False)
class NoisyRuns(PartitionDraws):
    """Independent runs that call some items noise, returned by :func:`as_runs`.

    Attributes
    ----------
    noise : ndarray of shape (n_draws, n_items), dtype bool
        Whether each run calls each item noise. `labels` has each such item in a cluster of its own, because it is
        together with no other item.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each run, without items that it calls noise.
    noise_share : ndarray of shape (n_items,), dtype float64
        Share of runs that call each item noise.
    """

    noise: npt.NDArray[np.bool_]

    has_noise: ClassVar[bool] = True
    usual_loss: ClassVar[str] = "ballet"

    @property
    def n_clusters(self) -> npt.NDArray[np.int64]:
        """Number of clusters of each run, without noise; `backend.n_clusters` is one more than the largest label."""
        return self.backend.n_clusters - np.count_nonzero(self.noise, axis=1)

    @property
    def noise_share(self) -> Floats:
        """Share of runs that call each item noise, by the weights."""
        if not self.samples.is_weighted:
            return np.count_nonzero(self.noise, axis=0) / self.n_draws
        return np.sum([weight * row for weight, row in zip(self.weights, self.noise, strict=True)], axis=0)

    def noise_rows(self) -> npt.NDArray[np.bool_]:
        """Whether each cluster of each run (R,), run after run, is an item of noise."""
        rows = np.zeros(int(self.starts[-1]), np.bool_)
        for items, labels in self.backend.map_blocks(as_they_are):
            for own, noise, start in zip(labels, self.noise[:, items], self.starts[:-1], strict=True):
                rows[start + own[noise].astype(np.int64)] = True
        return rows

    @cached_property
    def with_one_noise(self) -> tuple[LabelBackend, npt.NDArray[np.bool_]]:
        """Labels in which all items of noise of a run are one cluster, and which of all clusters (R,) are such ones.

        Tables of clusters then do not grow with the noise, and labels of many items need fewer bytes.
        """
        labels = np.empty((self.n_draws, self.n_items), np.uint8)
        n_clusters = np.empty(self.n_draws, np.int64)
        for rows, drawn in self.backend.blocks(1):  # a run at a time: labels of noise are large numbers
            codes = np.where(self.noise[rows], 0, drawn + np.uint32(1))
            own, n_clusters[rows] = canonical_rows(codes, int(codes.max(initial=0)) + 1)
            labels = labels.astype(np.promote_types(labels.dtype, own.dtype), copy=False)
            labels[rows] = own
        backend = ArrayLabels(labels, n_clusters)
        is_noise = np.zeros(int(backend.starts[-1]), np.bool_)
        runs = np.flatnonzero(self.noise.any(axis=1))
        is_noise[backend.starts[runs] + labels[runs, self.noise[runs].argmax(axis=1)]] = True
        return backend, is_noise

    def marked_labels(self, rows: npt.NDArray[np.intp] | None = None) -> npt.NDArray[Any]:
        """Cluster of each item in each run, or in some, -1 where the run calls the item noise."""
        labels = super().marked_labels(rows)
        return np.where(self.noise if rows is None else self.noise[rows], -1, labels.astype(np.int32))

    def in_memory(self, rows: npt.NDArray[np.intp]) -> NoisyRuns:
        """Return the labels and the noise of some runs, in memory and with equal weights."""
        one = super().in_memory(rows)
        return NoisyRuns(one.items, one.samples, one.backend, self.noise[rows])

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
        return self.items.clusters_of(partition, marked=True).with_noise("partition")

    def take(self, rows: Any) -> Self:
        """Select runs by row number, see :meth:`PartitionDraws.take`."""
        rows = self.samples.row_numbers(rows)
        return replace(self, samples=self.samples.take(rows), backend=self.backend.take(rows), noise=self.noise[rows])

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        return replace(self, items=self.items.take(at), backend=self.backend.of_items(at), noise=self.noise[:, at])

    def _fingerprints(self) -> npt.NDArray[np.uint64]:
        return super()._fingerprints() * np.uint64(3) + fingerprints(self.noise, slice(0, self.n_items))

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Do what :meth:`PartitionDraws.map_links` does; noise is together with nothing, not even with itself."""
        addends, total = self.samples.addends
        backend, is_noise = self.with_one_noise
        counts = np.where(is_noise[:, np.newaxis], 0, backend.joint_counts(labels))
        itself = np.full(self.n_items, total)
        for addend, noise in zip(addends, self.noise, strict=True):
            itself -= addend * noise
        given = backend.starts, addends, counts, labels, total, itself, function, arguments
        return backend.map_blocks(apply_to_links, *given)
