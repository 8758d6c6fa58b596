"""Labels as blocks on the workers of a dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import getitem, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.labels import ALIGNED, ArrayLabels, LabelBackend, Result, slices
from posterior_consensus.ensemble.partitions import as_codes, canonical_rows, place_in_array, smallest_dtype
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.cluster import Workers

_BLOCKS_A_THREAD = 4  # so that workers end at about the same time


class DaskLabels(LabelBackend):
    """Labels in blocks of items, all draws of each.

    A block is a future that stays on a worker. If the worker is lost, the cluster recomputes it from its inputs.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        bounds: npt.NDArray[np.int64],
        n_clusters: npt.NDArray[np.int64],
        dtype: np.dtype[Any],
        client: Any,
    ) -> None:
        """Store futures, and the items (n_blocks + 1,) at which their blocks begin and end."""
        self._parts, self._bounds = list(parts), bounds
        self._dtype, self._client = dtype, client
        self.n_clusters = n_clusters

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayLabels, (self.values, self.n_clusters)

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

    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call a function for blocks of items, on the workers that hold them."""
        chosen = self.item_blocks if blocks is None else blocks
        return zip(chosen, Workers(self._client).in_order(function, self._calls(chosen), arguments), strict=True)

    def sum_blocks(
        self, function: Callable[..., npt.NDArray[Any]], *arguments: Any, blocks: list[slice] | None = None
    ) -> npt.NDArray[Any]:
        """Add the tables of all blocks on the workers, as a tree, and return the sum."""
        calls = self._calls(self.item_blocks if blocks is None else blocks)
        return Workers(self._client).sum(function, calls, arguments)

    def blocks(self, n_draws: int) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield rows and labels of `n_draws` draws at a time, in order; all are fetched once."""
        return ((rows, self.values[rows]) for rows in slices(self.n_draws, n_draws))

    def of_draws(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_rows, n_items) of a few draws, in memory."""
        labels = np.empty((self.n_clusters[rows].size, self.n_items), self.dtype)
        for items, found in self.map_blocks(_rows, rows):
            labels[:, items] = found
        return labels

    def take(self, rows: npt.NDArray[np.intp]) -> DaskLabels:
        """Select draws by row number; labels stay on the workers."""
        parts = [self._client.submit(getitem, part, rows, pure=False) for part in self._parts]
        return DaskLabels(parts, self._bounds, self.n_clusters[rows], self.dtype, self._client)

    def _calls(self, blocks: list[slice]) -> list[tuple[Any, slice]]:
        return [(self._of(items), items) for items in blocks]

    def _of(self, items: slice) -> Any:
        """Return a stored block, or join the parts that overlap these items."""
        first = int(np.searchsorted(self._bounds, items.start, side="right")) - 1
        last = int(np.searchsorted(self._bounds, items.stop, side="left"))
        if (items.start, items.stop) == (self._bounds[first], self._bounds[last]) and last == first + 1:
            return self._parts[first]
        offset, parts = items.start - int(self._bounds[first]), self._parts[first:last]
        return self._client.submit(_joined_blocks, offset, items.stop - items.start, *parts, pure=False)


def canonical_blocks(array: Any, name: str, client: Any) -> DaskLabels:
    """Number the labels of a dask array (..., n_items) by first appearance, and keep them on the workers.

    Blocks of draws with all items are numbered first, then rearranged to blocks of items with all draws. All dimensions
    but the last run over draws. Errors call the labels `name`.
    """
    from dask import array as arrays
    from dask import delayed

    n_items = array.shape[-1]
    rows = array.rechunk({array.ndim - 1: -1}).reshape(-1, n_items)
    firsts = np.cumsum([0, *rows.chunks[0][:-1]]).tolist()
    given = zip(rows.to_delayed().ravel(), firsts, strict=True)
    numbered = client.compute([delayed(_numbered)(block, name, first) for block, first in given])
    n_clusters = np.concatenate(client.gather(client.map(itemgetter(1), numbered, pure=False)))
    dtype = smallest_dtype(int(n_clusters.max()))
    blocks = [
        arrays.from_delayed(delayed(_labels)(block, dtype), (n_draws, n_items), dtype)
        for block, n_draws in zip(numbered, rows.chunks[0], strict=True)
    ]
    labels = arrays.concatenate(blocks).rechunk((-1, _items_in_block(array.size, n_items, client)))
    bounds = np.concatenate([[0], np.cumsum(labels.chunks[1])]).astype(np.int64)
    return DaskLabels(client.compute(labels.to_delayed().ravel().tolist()), bounds, n_clusters, dtype, client)


def _items_in_block(n_labels: int, n_items: int, client: Any) -> int:
    """Items of a block, so that all workers are busy and a block takes a small part of a worker's memory."""
    n_threads = sum(client.nthreads().values())
    least, most = memory.LABELS_IN_SMALL_CLUSTER_BLOCK, memory.LABELS_IN_CLUSTER_BLOCK
    size = min(max(n_labels / (_BLOCKS_A_THREAD * max(1, n_threads)), least), most)
    return max(1, int(size / (n_labels / n_items * ALIGNED))) * ALIGNED


def _numbered(block: npt.NDArray[Any], name: str, first: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    return canonical_rows(*as_codes(block, name, lambda index: place_in_array((first + index[0], index[1]))))


def _labels(numbered: tuple[npt.NDArray[Any], npt.NDArray[np.int64]], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return numbered[0].astype(dtype, copy=False)


def _rows(labels: npt.NDArray[Any], items: slice, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    return labels[rows]


def _joined_blocks(first: int, n_items: int, *parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts, axis=1)[:, first : first + n_items]
