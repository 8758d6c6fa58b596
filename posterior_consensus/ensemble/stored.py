"""Labels on disk: a NetCDF file of which blocks of items are read over all draws."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.labels import LabelBackend, LabelsInMemory, Result, block_width, slices
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.kernels import checksum
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.progress import track

LABELS, N_CLUSTERS = "labels", "n_clusters"  # variables of the file
CHECKSUM_BYTES = 4  # behind a chunk
_MARK_BYTES = 65  # a checksum in hexadecimal digits, and the end of its line


@dataclass(frozen=True, eq=False)
class StoredLabels(LabelBackend):
    """Labels in a file. A copy sent to another process reads the same file.

    Attributes
    ----------
    path : Path
        The NetCDF file, see `posterior_consensus.sources.stores`.
    shape : tuple of int
        Numbers of draws and of items in the file.
    chunk : tuple of int
        Numbers of draws and of items in a chunk; the last chunks are filled up.
    offsets : ndarray of int64
        Byte at which each chunk begins; one row for the chunks of the same draws.
    mark : bytes
        End of the file, a checksum of its content, by which another file of this name is noticed.
    stored_dtype : dtype
        Type in the file: `label_dtype` or a larger type.
    label_dtype : dtype
        The smallest unsigned type that holds all labels.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    rows : ndarray of shape (n_draws,), dtype int64, or None
        Rows of the file that are the draws; None for all.
    progressbar : bool
        Whether a pass over the labels shows its bytes and the time left.
    owner : object
        Object that keeps a temporary file alive while it is referenced.
    """

    path: Path
    shape: tuple[int, int]
    chunk: tuple[int, int]
    offsets: npt.NDArray[np.int64]
    mark: bytes
    stored_dtype: np.dtype[Any]
    label_dtype: np.dtype[Any]
    n_clusters: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64] | None = None
    progressbar: bool = False
    owner: Any = None

    @classmethod
    def opened(cls, path: Path, *, progressbar: bool = False, owner: Any = None) -> StoredLabels:
        """Open the labels in a file.

        Raises
        ------
        ValueError
            If the file is missing or damaged.
        """
        with opened(path) as file, h5py.File(file) as variables:
            labels, n_clusters = variables[LABELS], variables[N_CLUSTERS][...]
            shape, chunk, stored_dtype = labels.shape, labels.chunks, labels.dtype
            chunks = sorted((one.chunk_offset, one.byte_offset) for one in chunks_of(labels))
            mark = _mark_of(file)
        offsets = np.array([offset for _, offset in chunks]).reshape(-1, -(-shape[1] // chunk[1]))
        dtype = smallest_dtype(int(n_clusters.max()))
        return cls(path, shape, chunk, offsets, mark, stored_dtype, dtype, n_clusters, None, progressbar, owner)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = self.path, self.shape, self.chunk, self.offsets, self.mark, self.stored_dtype, self.label_dtype
        return StoredLabels, (*fields, self.n_clusters, self.rows)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""
        return self.label_dtype

    @property
    def place(self) -> str:
        """Description of the storage."""
        return f" in {self.path}" if self.owner is None else " in a temporary file"

    @property
    def item_blocks(self) -> list[slice]:
        """Items of one chunk, or of several if all their draws take a small part of the memory."""
        width = self.chunk[1]
        return slices(self.n_items, max(1, block_width(self.n_draws) // width) * width)

    @property
    def _read_together(self) -> list[slice]:
        """Items of each chunk."""
        return slices(self.n_items, self.chunk[1])

    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call a function for blocks of items, on threads that read them."""
        if self._loaded is not None:
            return self._loaded.map_blocks(function, *arguments, blocks=blocks)
        chosen = self.item_blocks if blocks is None else blocks
        results = in_order(_on_block, ((self, function, items, arguments) for items in chosen))
        n_bytes = [self.n_draws * (items.stop - items.start) * self.dtype.itemsize for items in chosen]
        steps = zip(chosen, results, strict=True)
        return track(steps, "Labels on disk", progressbar=self.progressbar, n_bytes=n_bytes)

    def blocks(self, n_draws: int) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield rows and labels of `n_draws` draws at a time, in order."""
        if n_draws >= self.n_draws or self._loaded is not None:
            yield from super().blocks(n_draws)
            return
        for rows in slices(self.n_draws, n_draws):
            yield rows, self._of_rows(np.arange(self.n_draws)[rows]).values

    def take(self, rows: npt.NDArray[np.intp]) -> LabelBackend:
        """Select draws by row number; a small selection is read into memory."""
        if self._loaded is not None:
            return self._loaded.take(rows)
        taken = self._of_rows(rows)
        is_few = taken.n_draws * taken.n_items * taken.dtype.itemsize <= memory.SHARE_OF_FEW_DRAWS * memory.budget()
        return LabelsInMemory(taken.values, taken.n_clusters) if is_few else taken

    @property
    def _loaded(self) -> LabelsInMemory | None:
        return LabelsInMemory(self.values, self.n_clusters) if "values" in vars(self) else None

    def _of_rows(self, rows: npt.NDArray[np.intp]) -> StoredLabels:
        at = np.arange(self.n_draws)[rows]
        return replace(self, n_clusters=self.n_clusters[at], rows=at if self.rows is None else self.rows[at])

    def block(self, items: slice) -> npt.NDArray[Any]:
        """Labels (n_draws, m) of successive items."""
        width = self.chunk[1]
        first, last = items.start // width, -(-items.stop // width)
        with opened(self.path) as file:
            if _mark_of(file) != self.mark:
                raise ValueError(
                    f"The store of labels was replaced since it was opened: {self.path} has other content. Read it "
                    "again, as_partition_draws(store), or restore the old one."
                )
            columns = [self._column(file, self.offsets[:, number]) for number in range(first, last)]
        labels = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        return labels[:, items.start - first * width : items.stop - first * width]

    def _column(self, file: FileIO, offsets: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Labels (n_draws, width) of the items of a chunk."""
        height, width = self.chunk
        if self.rows is None:
            chunks = np.empty((len(offsets), height, width), self.stored_dtype)
            for chunk, offset in zip(chunks, offsets, strict=True):
                _read(file, offset, chunk)
            return chunks.reshape(-1, width)[: self.n_draws].astype(self.dtype, copy=False)
        labels, chunk = np.empty((self.n_draws, width), self.dtype), np.empty(self.chunk, self.stored_dtype)
        for number in np.unique(self.rows // height):
            _read(file, offsets[number], chunk)
            here = np.flatnonzero(self.rows // height == number)
            labels[here] = chunk[self.rows[here] - number * height]
        return labels


@contextmanager
def opened(path: Path) -> Iterator[FileIO]:
    """Open a store for reading, without any lock, even by HDF5.

    Raises
    ------
    ValueError
        If the file is missing, or the part read is damaged.
    """
    try:
        with path.open("rb", buffering=0) as file:
            yield file
    except (OSError, KeyError, RuntimeError) as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else "is not as it was written"
        raise ValueError(
            f"The store of labels is damaged: {path} {what}. Restore it, or remove the store and make it again from "
            "the draws."
        ) from error


def chunks_of(labels: h5py.Dataset) -> list[Any]:
    """Positions of the chunks of labels in their file."""
    chunks: list[Any] = []
    labels.id.chunk_iter(chunks.append)
    return chunks


def _mark_of(file: FileIO) -> bytes:
    """End of a store."""
    file.seek(-_MARK_BYTES, os.SEEK_END)
    return file.read(_MARK_BYTES)


def _read(file: FileIO, offset: int, chunk: npt.NDArray[Any]) -> None:
    """Read a chunk without HDF5, which allows one reading thread only."""
    file.seek(offset)
    if file.readinto(chunk.data) != chunk.nbytes or file.read(CHECKSUM_BYTES) != checksum_of(chunk):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def checksum_of(chunk: npt.NDArray[Any]) -> bytes:
    """Checksum that HDF5 stores behind a chunk: zero only if all words are zero."""
    content = chunk.reshape(-1).view(np.uint8)
    words = np.append(content, np.uint8(0)) if content.size % 2 else content
    sums = [one or 65535 * bool(content.any()) for one in map(int, checksum.fletcher32(words.view(np.uint16)))]
    return np.array(sums, np.uint16).byteswap().tobytes()


def _on_block(
    backend: StoredLabels, function: Callable[..., Result], items: slice, arguments: tuple[Any, ...]
) -> Result:
    return function(backend.block(items), items, *arguments)
