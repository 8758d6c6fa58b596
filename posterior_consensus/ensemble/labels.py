"""Storage of the labels of all draws: in memory, on disk or on workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import canonical_rows, smallest_dtype
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import in_order

Result = TypeVar("Result")

ALIGNED = 256  # items scored together against the same tables by a search


def block_width(n_draws: int) -> int:
    """Number of items in a block of labels of `n_draws` draws."""
    return max(1, memory.LABELS_IN_BLOCK // (n_draws * ALIGNED)) * ALIGNED


def slices(length: int, step: int) -> list[slice]:
    """Cut a range of indices into slices of length `step`; the last may be shorter."""
    return [slice(first, min(first + step, length)) for first in range(0, length, step)]


class LabelBackend(ABC):
    """Labels of every item in every draw, numbered by first appearance, wherever they are stored.

    Attributes
    ----------
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    """

    n_clusters: npt.NDArray[np.int64]

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self.n_clusters.size

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""

    @property
    def place(self) -> str:
        """Description of the storage; empty for memory."""
        return ""

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """Cluster (n_draws, n_items) of each item in each draw, from 0 in order of first appearance, in memory."""
        what = f"All labels of {self.n_draws:,} draws of {self.n_items:,} items{self.place}"
        memory.check(self.n_draws * self.n_items * self.dtype.itemsize, what, "Take fewer draws or items.")
        values = np.empty((self.n_draws, self.n_items), self.dtype)
        self._read_into(values)
        return values

    def _read_into(self, values: npt.NDArray[Any]) -> None:
        for items, block in self.map_blocks(_whole):
            values[:, items] = block

    def in_memory(self) -> npt.NDArray[Any] | None:
        """The labels if they are in memory already, None if `values` would read them."""
        return None

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """First row of each draw (n_draws + 1,) where the clusters of all draws are stacked."""
        return np.concatenate([[0], np.cumsum(self.n_clusters)]).astype(np.int64)

    @property
    def n_planes(self) -> int:
        """Bits of the largest label, rounded up to the kernels' step."""
        bits = int(self.n_clusters.max() - 1).bit_length()
        return max(coclustering.PLANES_AT_ONCE, -(-bits // coclustering.PLANES_AT_ONCE) * coclustering.PLANES_AT_ONCE)

    @property
    def item_blocks(self) -> list[slice]:
        """Blocks of items; a block with all draws takes a small part of the memory."""
        return slices(self.n_items, block_width(self.n_draws))

    @abstractmethod
    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(labels, items, *arguments)`` for blocks of items, all draws (n_draws, m) of each.

        Results come in the order of the items. Calls run concurrently, on threads or on the workers that hold the
        labels. The function must therefore be defined in a module, modify nothing, and return a result that is small
        compared with a block. By default the blocks are all of `item_blocks`.
        """

    def sum_blocks(
        self, function: Callable[..., npt.NDArray[Any]], *arguments: Any, blocks: list[slice] | None = None
    ) -> npt.NDArray[Any]:
        """Sum the tables of integers that `map_blocks` yields."""
        tables = (table for _, table in self.map_blocks(function, *arguments, blocks=blocks))
        total = next(tables).copy()
        for table in tables:
            total += table
        return total

    def blocks(self, n_draws: int) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield rows and labels of `n_draws` draws at a time, in order."""
        for rows in slices(self.n_draws, n_draws):
            yield rows, self.values[rows]

    def joint_counts(self, partition: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Numbers of items (R, K) in common between each cluster of each draw and each cluster of a partition (n,).

        The last partition's counts are kept, since losses, ball, items and diagnosis use the same partition.
        """
        last, counts = vars(self).get("_last_counts", (None, None))
        if counts is None or not np.array_equal(last, partition):
            n_clusters = int(partition.max()) + 1
            size = 4 * int(self.starts[-1]) * n_clusters
            memory.check(size, f"The table of the clusters of all draws with {n_clusters} clusters", "Thin the draws.")
            if (held := self.in_memory()) is None:
                counts = self.sum_blocks(_joint_counts, self.starts, partition, n_clusters)
            else:
                counts = ensemble.joint_counts(held, self.starts, partition, n_clusters)
            vars(self)["_last_counts"] = partition.copy(), counts
            self.keep_sizes(counts)
        return counts

    @cached_property
    def sizes(self) -> npt.NDArray[np.int32]:
        """Number of items (R,) of each cluster of each draw."""
        return self.joint_counts(np.zeros(self.n_items, np.int32))[:, 0]

    def keep_sizes(self, counts: npt.NDArray[np.int32]) -> None:
        """Keep the cluster sizes, as sums of contingency counts (R, K) with a partition."""
        vars(self)["sizes"] = counts.sum(axis=1, dtype=np.int32)

    @cached_property
    def some_items(self) -> tuple[npt.NDArray[np.intp], LabelBackend]:
        """Positions and labels of all items, or of 10,000 random items; the number of items fixes the sample."""
        if self.n_items <= memory.ITEMS_OF_ALL_PAIRS:
            at = np.arange(self.n_items)
            if self.in_memory() is not None or not memory.fits(4 * self.n_draws * self.n_items * self.dtype.itemsize):
                return at, self
            return at, LabelsInMemory(self.of_draws(np.arange(self.n_draws)), self.n_clusters)
        at = np.sort(np.random.default_rng(0).choice(self.n_items, memory.ITEMS_OF_ALL_PAIRS, replace=False))
        return at, self.of_items(at)

    def share_cache(self, taken: LabelBackend, rows: npt.NDArray[np.intp]) -> None:
        """Pass labels already read to the result of `take`, so that it need not read them again."""
        last, counts = vars(self).get("_last_counts", (None, None))
        if counts is not None:
            parts = [np.arange(self.starts[row], self.starts[row + 1]) for row in rows]
            vars(taken)["_last_counts"] = last, counts[np.concatenate(parts)]
        at, some = vars(self).get("some_items", (None, self))
        if some is not self:
            vars(taken)["some_items"] = at, some.take(rows)

    def of_draws(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (rows.size, n_items) of a few draws, in memory."""
        labels = np.empty((rows.size, self.n_items), self.dtype)
        for items, found in self.map_blocks(_rows, rows):
            labels[:, items] = found
        return labels

    @property
    def _read_together(self) -> list[slice]:
        """Items that are stored, hence read, together."""
        return self.item_blocks

    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, contiguous for each item."""
        at = np.arange(self.n_items)[items]
        what = f"All labels of {at.size:,} items in {self.n_draws:,} draws"
        memory.check(at.size * self.n_draws * self.dtype.itemsize, what, "Take some of the draws.")
        columns = np.empty((at.size, self.n_draws), self.dtype)
        blocks = [block for block in self._read_together if _within(at, block).any()]
        for block, found in self.map_blocks(_columns, at, blocks=blocks):
            columns[_within(at, block)] = found
        return columns

    def of_items(self, at: npt.NDArray[np.intp]) -> LabelsInMemory:
        """Read the labels of some items, by position."""
        return LabelsInMemory(*canonical_rows(self.columns(at).T, int(self.n_clusters.max())))

    @abstractmethod
    def take(self, rows: npt.NDArray[np.intp]) -> LabelBackend:
        """Select draws by row number."""


@dataclass(frozen=True, eq=False)
class LabelsInMemory(LabelBackend):
    """Labels in one array in memory.

    Attributes
    ----------
    array : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        Cluster of each item in each draw, from 0 in order of first appearance.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    """

    array: npt.NDArray[Any]
    n_clusters: npt.NDArray[np.int64]

    @classmethod
    def of(cls, labels: npt.NDArray[Any]) -> LabelsInMemory:
        """Wrap canonical labels (n_draws, n_items)."""
        n_clusters = labels.max(axis=1).astype(np.int64) + 1
        return cls(labels.astype(smallest_dtype(int(n_clusters.max())), copy=False), n_clusters)

    def in_memory(self) -> npt.NDArray[Any]:
        """The array."""
        return self.array

    @property
    def values(self) -> npt.NDArray[Any]:
        """The array."""
        return self.array

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.array.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""
        return self.array.dtype

    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call a function for blocks of items, on threads."""
        chosen = self.item_blocks if blocks is None else blocks
        calls = [(self.array[:, items], items, *arguments) for items in chosen]
        results = in_order(function, calls) if len(calls) > 1 else (function(*call) for call in calls)
        return zip(chosen, results, strict=True)

    def of_draws(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (rows.size, n_items) of a few draws."""
        return self.array[rows]

    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, contiguous for each item."""
        return np.ascontiguousarray(self.array[:, items].T)

    def take(self, rows: npt.NDArray[np.intp]) -> LabelsInMemory:
        """Select draws by row number."""
        return LabelsInMemory(self.array[rows], self.n_clusters[rows])


def _joint_counts(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    partition: npt.NDArray[np.int32],
    n_clusters: int,
) -> npt.NDArray[np.int32]:
    return ensemble.joint_counts(np.ascontiguousarray(labels), starts, partition[items], n_clusters)


def _whole(labels: npt.NDArray[Any], items: slice) -> npt.NDArray[Any]:
    return labels


def _within(at: npt.NDArray[np.intp], items: slice) -> npt.NDArray[np.bool_]:
    return (at >= items.start) & (at < items.stop)


def _columns(labels: npt.NDArray[Any], items: slice, at: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(labels[:, at[_within(at, items)] - items.start].T)


def _rows(labels: npt.NDArray[Any], items: slice, rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    return labels[rows]
