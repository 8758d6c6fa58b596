"""Labels on disk: a Zarr array of which blocks of items are read over all draws."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.labels import DrawnLabels, LabelsInMemory, Result, block_width, slices
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.runtime import memory, sizes
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.files import sign, signed
from posterior_consensus.runtime.progress import track

_ARRAY, _ATTRIBUTES = ".zarray", ".zattrs"  # as Zarr calls them


@dataclass(frozen=True, eq=False)
class Layout:
    """How labels lie in a folder: a Zarr array of format 2, whose chunks hold some items in all draws, uncompressed.

    Draws that were written at once are a run of rows, with a checksum in each chunk. The array's attributes hold the
    runs, their checksums and each draw's number of clusters.

    Attributes
    ----------
    shape : tuple of int
        Number of draws and of items.
    width : int
        Number of items in a chunk; the last one is filled up.
    dtype : dtype
        What the chunks hold: the type of the labels, or a larger one.
    runs : ndarray of shape (n_runs + 1,), dtype int64
        First row of each run, and the number of draws.
    checksums : ndarray of shape (n_runs, n_chunks), dtype uint32
    """

    shape: tuple[int, int]
    width: int
    dtype: np.dtype[Any]
    runs: npt.NDArray[np.int64]
    checksums: npt.NDArray[np.uint32]

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk."""
        return self.shape[0] * self.width * self.dtype.itemsize

    def describe(self, folder: Path, n_clusters: npt.NDArray[np.int64]) -> None:
        """Write what Zarr is to know of the array, and its attributes."""
        array = {
            "zarr_format": 2,
            "shape": list(self.shape),
            "chunks": [self.shape[0], self.width],
            "dtype": self.dtype.newbyteorder("=").str,
            "compressor": None,
            "fill_value": None,
            "order": "C",
            "filters": None,
            "dimension_separator": ".",
        }
        attributes = {
            "runs": self.runs.tolist(),
            "checksums": self.checksums.tolist(),
            "n_clusters": n_clusters.tolist(),
        }
        for name, about in ((_ARRAY, array), (_ATTRIBUTES, attributes)):
            (folder / name).write_text(json.dumps(about, indent=1), encoding="utf-8")
            sign(folder / name)


def chunk_file(folder: Path, number: int) -> Path:
    """Where a chunk lies."""
    return folder / f"0.{number}"


@dataclass(frozen=True, eq=False)
class StoredLabels(DrawnLabels):
    """Labels in a folder; it can be sent to another process, which opens the same one.

    Attributes
    ----------
    folder : Path
        Folder of the Zarr array.
    layout : Layout
        How they lie there.
    label_dtype : dtype
        The smallest unsigned type that holds all labels.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    rows : ndarray of shape (n_draws,), dtype int64, or None
        Rows of the array that are the draws; by default all of them.
    progressbar : bool
        Whether a pass over the labels shows its bytes and the time left.
    owner : object
        What removes a temporary folder once nothing refers to it.
    """

    folder: Path
    layout: Layout
    label_dtype: np.dtype[Any]
    n_clusters: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64] | None = None
    progressbar: bool = False
    owner: Any = None

    @classmethod
    def opened(cls, folder: Path, *, progressbar: bool = False, owner: Any = None) -> StoredLabels:
        """Open the labels in a folder.

        Raises
        ------
        ValueError
            If what describes them is missing or damaged.
        """
        array, attributes = (json.loads(signed(folder / name)) for name in (_ARRAY, _ATTRIBUTES))
        layout = Layout(
            tuple(array["shape"]),
            array["chunks"][1],
            np.dtype(array["dtype"]),
            np.array(attributes["runs"], np.int64),
            np.array(attributes["checksums"], np.uint32),
        )
        n_clusters = np.array(attributes["n_clusters"], np.int64)
        dtype = smallest_dtype(int(n_clusters.max()))
        return cls(folder, layout, dtype, n_clusters, progressbar=progressbar, owner=owner)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredLabels, (self.folder, self.layout, self.label_dtype, self.n_clusters, self.rows)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.layout.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""
        return self.label_dtype

    @property
    def place(self) -> str:
        """Where they lie, for people."""
        return f" in {self.folder.parents[1]}"

    def _read_into(self, values: npt.NDArray[Any]) -> None:
        for _ in self._pass(_write, values):  # by the threads that read
            pass

    @property
    def item_blocks(self) -> list[slice]:
        """Items of one chunk, or of several where all draws of theirs take a small part of the memory."""
        size = max(1, block_width(self.n_draws) // self.layout.width) * self.layout.width
        return slices(self.n_items, size)

    @property
    def _read_together(self) -> list[slice]:
        """Items of each chunk."""
        return slices(self.n_items, self.layout.width)

    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call a function for blocks of items, on threads that read them."""
        if self._loaded is not None:
            return self._loaded.map_blocks(function, *arguments, blocks=blocks)
        return self._pass(function, *arguments, blocks=blocks)

    def blocks(self, n_draws: int) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Rows and labels of so many draws at a time, in their order."""
        if n_draws >= self.n_draws or self._loaded is not None:
            yield from super().blocks(n_draws)
            return
        for rows in slices(self.n_draws, n_draws):
            yield rows, self._of_rows(np.arange(self.n_draws)[rows]).values

    def take(self, rows: npt.NDArray[np.intp]) -> DrawnLabels:
        """Keep some draws, by row number; few ones are read."""
        if self._loaded is not None:
            return self._loaded.take(rows)
        taken = self._of_rows(rows)
        is_few = taken.n_draws * taken.n_items * taken.dtype.itemsize <= sizes.SHARE_OF_FEW_DRAWS * memory.budget()
        return LabelsInMemory(taken.values, taken.n_clusters) if is_few else taken

    @property
    def _loaded(self) -> LabelsInMemory | None:
        return LabelsInMemory(self.values, self.n_clusters) if "values" in vars(self) else None

    def _of_rows(self, rows: npt.NDArray[np.intp]) -> StoredLabels:
        at = np.arange(self.n_draws)[rows]
        return replace(self, n_clusters=self.n_clusters[at], rows=at if self.rows is None else self.rows[at])

    def _pass(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        chosen = self.item_blocks if blocks is None else blocks
        results = in_order(_on_block, ((self, function, items, arguments) for items in chosen))
        sizes = [self.n_draws * (items.stop - items.start) * self.layout.dtype.itemsize for items in chosen]
        steps = zip(chosen, results, strict=True)
        return track(steps, "Labels on disk", progressbar=self.progressbar, n_bytes=sizes)

    def block(self, items: slice) -> npt.NDArray[Any]:
        """Labels (n_draws, m) of successive items."""
        width = self.layout.width
        first, last = items.start // width, -(-items.stop // width)
        chunks = [self.chunk(number) for number in range(first, last)]
        labels = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
        return labels[:, items.start - first * width : items.stop - first * width]

    def chunk(self, number: int) -> npt.NDArray[Any]:
        """Labels (n_draws, width) of a chunk, checked."""
        layout = self.layout
        if self.rows is None:
            return self._read(number, 0, layout.runs.size - 1).astype(self.dtype, copy=False)
        run_of = np.searchsorted(layout.runs, self.rows, side="right") - 1
        needed = np.unique(run_of)
        labels = np.empty((self.n_draws, layout.width), self.dtype)
        for runs in np.split(needed, np.flatnonzero(np.diff(needed) > 1) + 1):
            read = self._read(number, int(runs[0]), int(runs[-1]) + 1)
            here = np.flatnonzero((run_of >= runs[0]) & (run_of <= runs[-1]))
            labels[here] = read[self.rows[here] - layout.runs[runs[0]]]
        return labels

    def _read(self, number: int, first: int, last: int) -> npt.NDArray[Any]:
        """What is in a chunk of the runs from `first` to `last`."""
        layout, file = self.layout, chunk_file(self.folder, number)
        begin, width = int(layout.runs[first]), layout.width
        size = (int(layout.runs[last]) - begin) * width
        try:
            labels = np.fromfile(file, layout.dtype, size, offset=begin * width * layout.dtype.itemsize)
            is_whole = labels.size == size and file.stat().st_size == layout.chunk_bytes
        except FileNotFoundError:
            is_whole = False
        ends = (layout.runs[first : last + 1] - begin) * width
        if not is_whole or any(
            zlib.crc32(labels[ends[k] : ends[k + 1]].data) != layout.checksums[first + k, number]
            for k in range(last - first)
        ):
            what = "is not as it was written" if file.exists() else "is missing"
            raise ValueError(
                f"The store of labels is damaged: the chunk {file} {what}. Restore it, or remove the store and make "
                "it again from the draws."
            )
        return labels.reshape(-1, width)


def _on_block(drawn: StoredLabels, function: Callable[..., Result], items: slice, arguments: tuple[Any, ...]) -> Result:
    return function(drawn.block(items), items, *arguments)


def _write(labels: npt.NDArray[Any], items: slice, values: npt.NDArray[Any]) -> None:
    values[:, items] = labels
