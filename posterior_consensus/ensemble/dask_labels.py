"""Labels as blocks on the workers of a dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus import memory
from posterior_consensus.cluster import Workers
from posterior_consensus.ensemble.labels import ALIGNED, DrawnLabels, LabelsInMemory, Result
from posterior_consensus.kernels import canonical
from posterior_consensus.partitions import canonical_rows, highest_label, smallest_dtype

_LABELS_IN_BLOCK = 2**26
_LEAST_IN_BLOCK = 2**22
_BLOCKS_A_THREAD = 4  # so that workers end at about the same time
_MOST_IN_CHUNK = 2**28  # labels of a chunk of the user's that is taken as a block


class DaskLabels(DrawnLabels):
    """Labels in blocks of items, all draws of each.

    A block is a future: it stays on a worker, and the cluster computes it anew where a worker is lost, as long as what
    it was made of is there.

    Attributes
    ----------
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        bounds: npt.NDArray[np.int64],
        n_clusters: npt.NDArray[np.int64],
        dtype: np.dtype[Any],
        client: Any,
    ) -> None:
        """Take futures, and the items (n_blocks + 1,) at which their blocks begin and end."""
        self._parts, self._bounds = list(parts), bounds
        self._dtype, self._client = dtype, client
        self.n_clusters = n_clusters

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelsInMemory, (self.values, self.n_clusters)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self._bounds[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""
        return self._dtype

    @property
    def item_blocks(self) -> list[slice]:
        """Items of each block."""
        return [slice(int(first), int(last)) for first, last in zip(self._bounds[:-1], self._bounds[1:], strict=True)]

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """All labels, brought here."""
        self._check_memory(self.n_items)
        values = np.empty((self.n_draws, self.n_items), self.dtype)
        for items, block in self.map_blocks(_whole):
            values[:, items] = block
        return values

    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call a function for blocks of items, where these are."""
        chosen = self.item_blocks if blocks is None else blocks
        return zip(chosen, Workers(self._client).in_order(function, self._calls(chosen), arguments), strict=True)

    def sum_blocks(
        self, function: Callable[..., npt.NDArray[np.int64]], *arguments: Any, blocks: list[slice] | None = None
    ) -> npt.NDArray[np.int64]:
        """Add the tables that a function gives for blocks of items, as a tree: one table comes here."""
        calls = self._calls(self.item_blocks if blocks is None else blocks)
        return Workers(self._client).sum(function, calls, arguments)

    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, those of each in one piece of memory."""
        at = np.arange(self.n_items)[items] if isinstance(items, slice) else np.asarray(items)
        self._check_memory(at.size)
        block_of = np.searchsorted(self._bounds, at, side="right") - 1
        columns = np.empty((at.size, self.n_draws), self.dtype)
        numbers = np.unique(block_of)
        places = [np.flatnonzero(block_of == number) for number in numbers]
        calls = [(self._parts[k], at[place] - self._bounds[k]) for k, place in zip(numbers, places, strict=True)]
        for place, found in zip(places, Workers(self._client).in_order(_columns, calls, ()), strict=True):
            columns[place] = found
        return columns

    def of_items(self, at: npt.NDArray[np.intp]) -> LabelsInMemory:
        """Keep some items, by position; they come into memory."""
        columns = self.columns(np.arange(self.n_items)[at])
        return LabelsInMemory(*canonical_rows(columns.T, int(self.n_clusters.max())))

    def take(self, rows: npt.NDArray[np.intp]) -> DaskLabels:
        """Keep some draws, by row number; they stay where they are."""
        parts = [self._client.submit(_rows, part, rows, pure=False) for part in self._parts]
        return DaskLabels(parts, self._bounds, self.n_clusters[rows], self.dtype, self._client)

    def _calls(self, blocks: list[slice]) -> list[tuple[Any, slice]]:
        return [(self._of(items), items) for items in blocks]

    def _of(self, items: slice) -> Any:
        """Give a block as it is, or make one of the parts that overlap it."""
        first = int(np.searchsorted(self._bounds, items.start, side="right")) - 1
        last = int(np.searchsorted(self._bounds, items.stop, side="left"))
        if (items.start, items.stop) == (self._bounds[first], self._bounds[last]) and last == first + 1:
            return self._parts[first]
        offset, parts = items.start - int(self._bounds[first]), self._parts[first:last]
        return self._client.submit(_joined, offset, items.stop - items.start, *parts, pure=False)

    def _check_memory(self, n_items: int) -> None:
        size = n_items * self.n_draws * self.dtype.itemsize
        memory.check(size, f"Labels of {n_items} items in {self.n_draws} draws in one place", "Take some of the draws.")


def canonical_blocks(array: Any, name: str, client: Any) -> DaskLabels:
    """Number the labels of a dask array (..., n_items) by first appearance, where its blocks are.

    The labels are made narrow, then brought into blocks of items with all draws; of each block goes on, from one to
    the next, only which names the draws have had before it.

    Parameters
    ----------
    array : dask.array.Array
        Whole numbers; all dimensions but the last run over draws.
    name : str
        What to call the labels in an error.
    client : dask.distributed.Client
    """
    from dask import delayed

    n_codes, distinct = _codes(array, name, client)
    dtype = smallest_dtype(n_codes)
    codes = array.map_blocks(_as_codes, distinct, dtype, dtype=dtype, meta=np.empty((0,) * array.ndim, dtype))
    codes = codes.rechunk({axis: -1 for axis in range(array.ndim - 1)} | {array.ndim - 1: _chunks(array, client)})
    codes = codes.reshape(-1, array.shape[-1])
    blocks = codes.to_delayed().ravel().tolist()
    first = [delayed(_first_items)(block, n_codes) for block in blocks]
    numbers: list[Any] = [delayed(_no_numbers)(codes.shape[0], n_codes)]
    for one in first:
        numbers.append(delayed(_numbers_after)(numbers[-1], one))
    labels = [delayed(_numbered)(block, known, dtype) for block, known in zip(blocks, numbers[1:], strict=True)]
    *parts, counted = client.compute([*labels, delayed(_count)(numbers[-1])])
    n_clusters = counted.result()
    narrow = smallest_dtype(int(n_clusters.max()))
    if narrow != dtype:
        parts = [client.submit(_narrow, part, narrow, pure=False) for part in parts]
    bounds = np.concatenate([[0], np.cumsum(codes.chunks[1])]).astype(np.int64)
    return DaskLabels(parts, bounds, n_clusters, narrow, client)


def _codes(array: Any, name: str, client: Any) -> tuple[int, npt.NDArray[Any] | None]:
    """Check all labels; return one more than their largest code, and the labels by code if these are others."""
    from dask import delayed

    chunks = array.to_delayed().ravel().tolist()
    highest = max(client.gather(client.compute([delayed(highest_label)(chunk, name) for chunk in chunks])))
    if highest < max(2**16, 2 * array.size):
        return highest + 1, None
    each = client.gather(client.compute([delayed(np.unique)(chunk) for chunk in chunks]))
    distinct = np.unique(np.concatenate(each))
    return distinct.size, distinct


def _chunks(array: Any, client: Any) -> Any:
    """Sizes of the blocks: those of the chunks where these hold all draws, else such that all workers are busy."""
    n_items = array.shape[-1]
    n_draws = array.size // n_items
    *outer, own = array.chunks
    starts = np.cumsum(own)[:-1]
    whole = all(len(sizes) == 1 for sizes in outer)
    if whole and not np.any(starts % ALIGNED) and max(own) * n_draws <= _MOST_IN_CHUNK:
        return own
    n_threads = sum(client.nthreads().values())
    most = array.size / (_BLOCKS_A_THREAD * max(1, n_threads))
    size = min(max(most, _LEAST_IN_BLOCK), _LABELS_IN_BLOCK)
    return max(1, int(size / (n_draws * ALIGNED))) * ALIGNED


def _as_codes(chunk: npt.NDArray[Any], distinct: npt.NDArray[Any] | None, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return (chunk if distinct is None else np.searchsorted(distinct, chunk)).astype(dtype, copy=False)


def _first_items(codes: npt.NDArray[Any], n_codes: int) -> npt.NDArray[np.int32]:
    """First item (N, n_codes) of each code in a block, -1 where there is none."""
    first = np.full((len(codes), n_codes), -1, np.int32)
    canonical.first_items(np.ascontiguousarray(codes), first)
    return first


def _no_numbers(n_draws: int, n_codes: int) -> npt.NDArray[np.int32]:
    return np.full((n_draws, n_codes), -1, np.int32)


def _numbers_after(numbers: npt.NDArray[np.int32], first: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Numbers (N, n_codes) of the codes after a block in which they have these first items."""
    is_new = (numbers < 0) & (first >= 0)
    order = np.argsort(np.where(is_new, first, np.iinfo(np.int32).max), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[np.newaxis], axis=1)
    return np.where(is_new, _count(numbers)[:, np.newaxis] + rank, numbers).astype(np.int32)


def _count(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """How many codes (N,) have a number."""
    return (numbers >= 0).sum(axis=1, dtype=np.int64)


def _numbered(codes: npt.NDArray[Any], numbers: npt.NDArray[np.int32], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    labels = np.empty(codes.shape, dtype)
    canonical.renumber(np.ascontiguousarray(codes), numbers, labels)
    return labels


def _narrow(labels: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return labels.astype(dtype)


def _whole(labels: npt.NDArray[Any], items: slice) -> npt.NDArray[Any]:
    return labels


def _rows(labels: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    return labels[rows]


def _columns(labels: npt.NDArray[Any], at: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(labels[:, at].T)


def _joined(first: int, n_items: int, *parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts, axis=1)[:, first : first + n_items]
