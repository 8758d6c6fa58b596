"""Canonical labels of an array, by blocks of draws and items; the array is in memory, in a file or in dask."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.partitions import (
    Place,
    canonical_rows,
    is_text,
    place_in,
    plain_labels,
    smallest_dtype,
)
from posterior_consensus.kernels import ensemble
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Integers
from posterior_consensus.runtime.executor import in_order

_BYTES_OF_NUMBER = 4


class LabelBlocks:
    """Labels, checked and numbered by first appearance a block at a time.

    A block has some draws with all items, or some of the items if a draw is too large or spans several chunks. Blocks
    follow the array's chunks, so each chunk is read once. Blocks of the same draws follow one another in the order of
    the items, and the numbers given to names are kept between them.
    """

    def __init__(self, labels: xr.DataArray, name: str) -> None:
        """Prepare labels over dimensions of draws, then items; unless bytes, they are read once for names."""
        self._labels, self._name, self._place = labels.variable, name, place_in(labels)
        *self._shape, self.n_items = labels.shape
        self.n_draws = int(np.prod(self._shape))
        self._most = memory.SHARE_OF_READING * memory.budget()
        if self._labels._in_memory:  # no chunks to follow; small blocks reuse memory
            self._most = min(self._most, memory.LABELS_READ_AT_ONCE)
        self._codes = self._names_in_all()
        self.dtype = smallest_dtype(min(self._codes.n_codes, self.n_items))  # holds the most clusters possible

    def stripes(self) -> list[Stripe]:
        """Groups of draws; blocks of a stripe are processed in order, stripes are independent."""
        labels = self._most / self._labels.dtype.itemsize
        box = self._box(labels, self._most / (_BYTES_OF_NUMBER * self._codes.n_codes))
        draws = itertools.product(*(slices(size, step) for size, step in zip(self._shape, box[:-1], strict=True)))
        numbers = np.arange(self.n_draws).reshape(self._shape)
        return [Stripe(at, numbers[at].ravel(), slices(self.n_items, box[-1])) for at in draws]

    def write(self, stripe: Stripe, labels: npt.NDArray[Any]) -> Integers:
        """Write the canonical labels of a stripe to its rows of `labels`; return its numbers of clusters."""
        first, n_rows, n_codes = stripe.rows[0], stripe.rows.size, self._codes.n_codes
        follow = stripe.rows[-1] - first == n_rows - 1
        rows: Any = slice(first, first + n_rows) if follow else stripe.rows
        if len(stripe.items) == 1:
            labels[rows], n_clusters = canonical_rows(self._codes.of(self._block(stripe, stripe.items[0])), n_codes)
            return n_clusters
        n_clusters = np.zeros(n_rows, np.int64)
        number_of = np.full((n_rows, n_codes), -1, np.int32)
        for items in stripe.items:
            codes = self._codes.of(self._block(stripe, items))
            block = np.empty(codes.shape, self.dtype)
            ensemble.canonicalize_on(np.ascontiguousarray(codes), number_of, n_clusters, block)
            labels[rows, items] = block
        return n_clusters

    def _block(self, stripe: Stripe, items: slice) -> npt.NDArray[Any]:
        return self._plain((*stripe.at, items))[0].reshape(stripe.rows.size, -1)

    def _names_in_all(self) -> Codes:
        """Read all labels and number their names; labels of one byte need no reading."""
        if self._labels.dtype in (np.uint8, np.bool_):
            return Codes(256)
        table = max(2**16, 2 * self.n_items)
        box = self._box(self._most / self._labels.dtype.itemsize, np.inf)
        sizes = zip(self._labels.shape, box, strict=True)
        calls = ((at, table) for at in itertools.product(*(slices(size, step) for size, step in sizes)))
        highest, others = -1, None
        for highest_here, others_here in in_order(self._names_in, calls):
            highest = max(highest, highest_here)
            if others_here.size:
                others = others_here if others is None else np.union1d(others_here, others)
                memory.check(2 * others.nbytes, f"A list of the {others.size:,} names of all clusters")
            if others is not None and is_text(others) and highest >= 0:
                raise TypeError(
                    f"{self._name} must be all integers, all strings or all integer-valued floats; got both."
                )
        if others is None:
            return Codes(highest + 1)
        first = 0 if is_text(others) else table
        return Codes(first + others.size, first, others)

    def _names_in(self, at: tuple[slice, ...], table: int) -> tuple[int, npt.NDArray[Any]]:
        """Largest label of a block, and its labels that are text or at least `table`."""
        values, highest = self._plain(at)
        others = values if is_text(values) else values[values >= table] if highest >= table else values[:0]
        return highest, np.unique(others)

    def _plain(self, at: tuple[slice, ...]) -> tuple[npt.NDArray[Any], int]:
        place = partial(_place_beyond, self._place, [part.start for part in at])
        return plain_labels(self._labels[at].values, self._name, place)

    def _box(self, most: float, most_draws_in_parts: float) -> list[int]:
        """Length of a block along each dimension: whole chunks and, if possible, whole draws."""
        labels = self._labels
        chunks: dict[Any, int] = {dim: max(lengths) for dim, lengths in labels.chunksizes.items()}
        chunks = chunks or labels.encoding.get("preferred_chunks", {})
        *outer, item_dim = labels.dims
        box = [min(chunks.get(dim, 1), size) for dim, size in zip(outer, self._shape, strict=True)]
        least = min(chunks.get(item_dim, self.n_items), self.n_items)
        if item_dim not in chunks:
            least = max(1, min(least, int(most / np.prod(box))))
        box = _grown([*box, least], [*self._shape, self.n_items], most)
        if box[-1] < self.n_items:
            for axis, length in enumerate(box[:-1]):
                others = np.prod(box[:-1]) // length
                box[axis] = max(1, min(length, int(min(most_draws_in_parts / others, length))))
        return box


@dataclass(frozen=True)
class Stripe:
    """A group of draws, and the blocks of items in which they are read."""

    at: tuple[slice, ...]  # position along the dimensions of draws
    rows: Integers  # row numbers of the draws
    items: list[slice]


@dataclass(frozen=True)
class Codes:
    """Numbers for names of clusters: integers below `table` stay, and `others`, sorted, follow."""

    n_codes: int
    table: int = 0
    others: npt.NDArray[Any] | None = None

    def of(self, names: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Numbers of these names."""
        if self.others is not None:
            numbers = self.table + np.searchsorted(self.others, names)
            names = np.where(names < self.table, names.astype(np.int64), numbers) if self.table else numbers
        return names.astype(smallest_dtype(self.n_codes), copy=False)


def _place_beyond(place: Place, first: list[int], index: tuple[int, ...]) -> str:
    return place(tuple(start + number for start, number in zip(first, index, strict=True)))


def _grown(box: list[int], sizes: list[int], most: float) -> list[int]:
    """Lengthen a box by integer multiples, last dimension first, while its size is at most `most`."""
    box = list(box)
    for axis in range(len(box) - 1, -1, -1):
        times = min(-(-sizes[axis] // box[axis]), int(most // np.prod(box)))
        box[axis] = min(sizes[axis], box[axis] * max(1, times))
        if box[axis] < sizes[axis]:
            break
    return box
