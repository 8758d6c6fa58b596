"""Storage of the labels of all draws: an array, in memory or mapped from a file, or blocks on workers."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import canonical_rows, smallest_dtype
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.files import mapped
from posterior_consensus.runtime.progress import track

Result = TypeVar("Result")

ALIGNED = 256  # items scored together against the same tables by a search


def block_width(n_draws: int) -> int:
    """Number of items in a block of labels of `n_draws` draws."""
    return max(1, memory.LABELS_IN_BLOCK // (n_draws * ALIGNED)) * ALIGNED


def slices(length: int, step: int) -> list[slice]:
    """Cut a range of indices into slices of length `step`; the last may be shorter."""
    return [slice(first, min(first + step, length)) for first in range(0, length, step)]


class LabelBackend(ABC):
    """Labels of every item in every draw, numbered by first appearance, wherever they are stored."""

    n_clusters: npt.NDArray[np.int64]  # (n_draws,): number of clusters of each draw

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

    @property
    def values(self) -> npt.NDArray[Any]:
        """Cluster (n_draws, n_items) of each item in each draw, from 0 in order of first appearance, in memory."""
        held = self.in_memory()
        return self._read if held is None else held

    @cached_property
    def _read(self) -> npt.NDArray[Any]:
        """Labels that :meth:`in_memory` does not have."""
        what = f"All labels of {self.n_draws:,} partitions of {self.n_items:,} items{self.place}"
        memory.check(self.n_draws * self.n_items * self.dtype.itemsize, what, "Take fewer partitions or items.")
        return self.of_draws(slice(None))

    def in_memory(self) -> npt.NDArray[Any] | None:
        """The labels if they are one array that memory holds, else None: then they are taken in blocks."""
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
            yield rows, self.of_draws(rows)

    def joint_counts(self, partition: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Numbers of items (R, K) in common between each cluster of each draw and each cluster of a partition (n,)."""
        for kept, counts in self._kept:
            if np.array_equal(kept, partition):
                return counts
        n_clusters = int(partition.max()) + 1
        size = 4 * int(self.starts[-1]) * n_clusters
        what = f"The table of the clusters of all partitions with {n_clusters} clusters"
        memory.check(size, what, "Take fewer partitions.")
        if (held := self.in_memory()) is None:
            counts = self.sum_blocks(_joint_counts, self.starts, partition, n_clusters)
        else:
            counts = ensemble.joint_counts(held, self.starts, partition, n_clusters)
        if counts.nbytes <= self.n_draws * self.n_items * self.dtype.itemsize:
            self._kept[:] = [(partition.copy(), counts)]  # at once, for threads
        return counts

    @cached_property
    def _kept(self) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
        """The partition counted last, and its table: losses, ball, items and diagnosis follow each other on the same.

        None that is larger than the draws' labels. Selected draws or items begin with none.
        """
        return []

    @cached_property
    def sizes(self) -> npt.NDArray[np.int32]:
        """Number of items (R,) of each cluster of each draw; kept, as most answers ask for it: 4 bytes a cluster."""
        # Of any partition, the rows of the table sum to the sizes.
        tables = [counts for _, counts in self._kept] or [self.joint_counts(np.zeros(self.n_items, np.int32))]
        return tables[0].sum(axis=1, dtype=np.int32)

    def fingerprints(self) -> npt.NDArray[np.uint64]:
        """A hash (n_draws,) of the labels of each draw, the same wherever they are stored.

        It is sum_i key_i z_i modulo 2^64 with fixed random keys: two draws that differ have the same by chance only.
        """
        return self.sum_blocks(fingerprints)

    @abstractmethod
    def of_draws(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_rows, n_items) of a few draws, in memory."""

    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, contiguous for each item."""
        if (held := self.in_memory()) is not None:
            return np.ascontiguousarray(held[:, items].T)
        at = np.arange(self.n_items)[items]
        what = f"All labels of {at.size:,} items in {self.n_draws:,} partitions"
        memory.check(at.size * self.n_draws * self.dtype.itemsize, what, "Take fewer partitions.")
        columns = np.empty((at.size, self.n_draws), self.dtype)
        blocks = [block for block in self.item_blocks if _within(at, block).any()]
        for block, found in self.map_blocks(_columns, at, blocks=blocks):
            columns[_within(at, block)] = found
        return columns

    def of_items(self, at: npt.NDArray[np.intp]) -> ArrayLabels:
        """Read the labels of some items, by position."""
        return ArrayLabels(*canonical_rows(self.columns(at).T, int(self.n_clusters.max())))

    @abstractmethod
    def take(self, rows: npt.NDArray[np.intp]) -> LabelBackend:
        """Select draws by row number."""


class MappedFile(NamedTuple):
    """The file of a mapped array."""

    path: Path
    offset: int  # byte at which the labels begin
    # End of the file, a checksum of its content, by which another file of this name is noticed; empty for a temporary
    # file.
    mark: bytes = b""
    progressbar: bool = False  # whether a pass over the labels shows its bytes and the time left
    # State of the file when it was opened; None for a temporary file, which nothing else writes to.
    opened: os.stat_result | None = None

    def check(self) -> None:
        """Raise ValueError if the mapped file was written to since it was opened, by its size and time of modification.

        Its labels are then others, or end early. A file that was removed, or replaced by another of its name, stays
        mapped as it was.
        """
        if self.opened is None:
            return
        try:
            now = self.path.stat()
        except OSError:
            return
        is_same = (now.st_size, now.st_mtime_ns) == (self.opened.st_size, self.opened.st_mtime_ns)
        if os.path.samestat(now, self.opened) and not is_same:
            raise ValueError(
                f"The store of labels was overwritten since it was opened: {self.path}. Read it again, "
                "as_partition_draws(store); results of the old labels need the old store."
            )


@dataclass(frozen=True, eq=False)
class ArrayLabels(LabelBackend):
    """Labels in one array, in memory or mapped from a file. A copy sent to another process maps the same file."""

    # (n_draws, n_items): cluster of each item in each draw, from 0 in order of first appearance.
    array: npt.NDArray[Any]
    n_clusters: npt.NDArray[np.int64]  # (n_draws,): number of clusters of each draw
    file: MappedFile | None = None  # the file of a mapped array, None for memory
    rows: npt.NDArray[np.int64] | None = None  # (n_draws,): rows of a mapped array that are the draws; None for all

    @classmethod
    def of(cls, labels: npt.NDArray[Any]) -> ArrayLabels:
        """Wrap canonical labels (n_draws, n_items)."""
        n_clusters = labels.max(axis=1).astype(np.int64) + 1
        return cls(labels.astype(smallest_dtype(int(n_clusters.max())), copy=False), n_clusters)

    @classmethod
    def of_each(
        cls, rows: Iterable[tuple[npt.NDArray[Any], npt.NDArray[np.int64]]], shape: tuple[int, ...]
    ) -> ArrayLabels:
        """Stack canonical labels (1, n_items) of each draw, which come with their number of clusters (1,)."""
        labels, n_clusters = np.empty(shape, np.uint8), np.empty(shape[0], np.int64)
        for t, (own, number) in enumerate(rows):
            labels = labels.astype(np.promote_types(labels.dtype, own.dtype), copy=False)
            labels[t : t + 1], n_clusters[t : t + 1] = own, number
        return cls(labels, n_clusters)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.file is None:
            return ArrayLabels, (self.array, self.n_clusters)
        return _mapped_again, (self.file, self.array.shape, self.dtype, self.n_clusters, self.rows)

    def in_memory(self) -> npt.NDArray[Any] | None:
        """The array, unless it is mapped and large; the system then reads and forgets parts of it."""
        array = self._checked()
        if self.file is None or (self.rows is None and memory.fits(array.nbytes / memory.SHARE_HELD)):
            return array
        return None

    def _checked(self) -> npt.NDArray[Any]:
        """The array, of a file that is as it was opened."""
        if self.file is not None:
            self.file.check()
        return self.array

    @property
    def place(self) -> str:
        """Description of the storage; empty for memory."""
        if self.file is None:
            return ""
        return f" in {self.file.path}" if self.file.mark else " in a temporary file"

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
        array = self._checked()
        calls = [(array[:, items], self.rows, function, items, arguments) for items in chosen]
        results = in_order(_on_block, calls) if len(calls) > 1 else (_on_block(*call) for call in calls)
        steps = zip(chosen, results, strict=True)
        if self.file is None:
            return steps
        n_bytes = [self.n_draws * (items.stop - items.start) * self.dtype.itemsize for items in chosen]
        return track(self._unchanged(steps), "Labels on disk", progressbar=self.file.progressbar, n_bytes=n_bytes)

    def _unchanged(self, steps: Iterator[Result]) -> Iterator[Result]:
        """Yield results of blocks of a file that nothing wrote to while they were computed."""
        for step in steps:
            self._checked()
            yield step

    def of_draws(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_rows, n_items) of a few draws, in memory or in the map."""
        return self._checked()[rows if self.rows is None else self.rows[rows]]

    def take(self, rows: npt.NDArray[np.intp]) -> ArrayLabels:
        """Select draws by row number; a small selection of a mapped array is read into memory."""
        at = np.arange(self.n_draws)[rows]
        few = memory.SHARE_OF_FEW_DRAWS * memory.budget()
        if self.file is None or at.size * self.n_items * self.dtype.itemsize <= few:
            return ArrayLabels(self.of_draws(at), self.n_clusters[at])
        return replace(self, n_clusters=self.n_clusters[at], rows=at if self.rows is None else self.rows[at])


def _mapped_again(
    file: MappedFile,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    n_clusters: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64] | None,
) -> ArrayLabels:
    """Map the labels in another process, which trusts the checksums that the first compared."""
    with opened_store(file.path) as there:
        opened = os.fstat(there.fileno())
        content = mapped(there) if opened.st_size else b""
    if content[len(content) - len(file.mark) :] != file.mark:
        raise ValueError(
            f"The store of labels was replaced since it was opened: {file.path} has other content. Read it again, "
            "as_partition_draws(store), or restore the old one."
        )
    array = np.ndarray(shape, dtype, content, file.offset)
    state = opened if file.mark else None
    return ArrayLabels(array, n_clusters, file._replace(progressbar=False, opened=state), rows)


@contextmanager
def opened_store(path: Path) -> Iterator[FileIO]:
    """Open a store for reading, without any lock, even by HDF5; ValueError if it is missing, or damaged."""
    try:
        with path.open("rb", buffering=0) as file:
            yield file
    except (OSError, KeyError, RuntimeError) as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else "is not as it was written"
        raise ValueError(
            f"The store of labels is damaged: {path} {what}. Restore it, or remove the store and make it again from "
            "the draws."
        ) from error


def _on_block(
    labels: npt.NDArray[Any],
    rows: npt.NDArray[np.int64] | None,
    function: Callable[..., Result],
    items: slice,
    arguments: tuple[Any, ...],
) -> Result:
    return function(labels if rows is None else labels[rows], items, *arguments)


def _joint_counts(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    partition: npt.NDArray[np.int32],
    n_clusters: int,
) -> npt.NDArray[np.int32]:
    return ensemble.joint_counts(np.ascontiguousarray(labels), starts, partition[items], n_clusters)


def fingerprints(labels: npt.NDArray[Any], items: slice) -> npt.NDArray[np.uint64]:
    """The part that a block of items has in :meth:`LabelBackend.fingerprints`."""
    total, keys = np.zeros(len(labels), np.uint64), _hash_keys(items)
    for part in slices(keys.size, ALIGNED):  # a block as 8-byte integers would be too large
        total += labels[:, part].astype(np.uint64) @ keys[part]
    return total


def _hash_keys(items: slice) -> npt.NDArray[np.uint64]:
    """Odd 64-bit numbers, one for each of these items: SplitMix64 of their positions."""
    state = np.arange(items.start + 1, items.stop + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return (state ^ (state >> np.uint64(31))) | np.uint64(1)


def _within(at: npt.NDArray[np.intp], items: slice) -> npt.NDArray[np.bool_]:
    return (at >= items.start) & (at < items.stop)


def _columns(labels: npt.NDArray[Any], items: slice, at: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(labels[:, at[_within(at, items)] - items.start].T)
