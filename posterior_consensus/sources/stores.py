"""Stores: canonical labels, items and samples in one NetCDF file that is written once."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import numpy.typing as npt
import xarray as xr
from xarray.backends import H5NetCDFStore
from xarray.backends.locks import HDF5_LOCK

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import ALIGNED, LabelsInMemory, block_width
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.stored import (
    CHECKSUM_BYTES,
    LABELS,
    N_CLUSTERS,
    StoredLabels,
    checksum_of,
    chunks_of,
    opened,
)
from posterior_consensus.results.stored_as import restored_levels, storable
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.cluster import client_for
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.files import locked
from posterior_consensus.runtime.progress import track

Labels = npt.NDArray[Any]
Put = Callable[[Labels], None]
# Row numbers of draws, and a function that passes their canonical labels to `put` and returns numbers of clusters.
Part = tuple[npt.NDArray[np.int64], Callable[[Put], npt.NDArray[np.int64]]]

_MARK = "posterior_consensus labels"  # name of the format, near both ends of a store, so that damage leaves one copy
_FORMAT = f"{_MARK} 4"
NOT_STORED = "[\0\ud800-\udfff]"  # characters that HDF5 cannot store in text
_NEAR = 4096  # bytes from an end of the file
_OWN = {LABELS, N_CLUSTERS, "weight", "chain", "draw", "sample"}  # names reserved from coordinates of items
_LABELS_IN_CHUNK = 2**20
_OVERHEAD, _SPARE = 64, 2**16  # bytes that HDF5 adds at most per chunk, and in total
_CACHE, _SLOTS = 2**25, 10_007  # bytes and slots of the cache for chunks written in parts


def are_large(shape: tuple[int, int], dtype: np.dtype[Any]) -> bool:
    """Whether labels read from disk stay on disk; a fixed rule, independent of free memory."""
    return shape[0] * shape[1] * dtype.itemsize > memory.SHARE_HELD * memory.budget()


def in_memory(parts: Sequence[Part], shape: tuple[int, int], dtype: np.dtype[Any]) -> LabelsInMemory:
    """Write the labels of all draws into one array."""
    labels = np.empty(shape, dtype)
    n_clusters = _fill(labels, parts)
    return LabelsInMemory(labels.astype(smallest_dtype(int(n_clusters.max())), copy=False), n_clusters)


def _fill(labels: Any, parts: Sequence[Part], progressbar: bool = False) -> npt.NDArray[np.int64]:
    """Write the labels of all draws into an array or a file's variable; return their numbers of clusters."""
    n_clusters = np.empty(labels.shape[0], np.int64)
    n_bytes = [rows.size * labels.shape[1] * labels.dtype.itemsize for rows, _ in parts]
    done = zip(parts, in_order(_fill_rows, ((labels, *part) for part in parts)), strict=True)
    for (rows, _), numbers in track(done, "Labels to disk", progressbar=progressbar, n_bytes=n_bytes):
        n_clusters[rows] = numbers
    return n_clusters


def _fill_rows(labels: Any, rows: npt.NDArray[np.int64], give: Any) -> npt.NDArray[np.int64]:
    ends = [0, *np.flatnonzero(np.diff(rows) != 1) + 1, rows.size]  # of runs of successive rows
    n_put = 0

    def put(block: Labels) -> None:
        nonlocal n_put
        for first, end in itertools.pairwise(ends):
            _put(labels, int(rows[first]), n_put, block[first:end])
        n_put += block.shape[1]

    return np.asarray(give(put))


def _put(labels: Any, row: int, item: int, block: Labels) -> None:
    """Write a block; whole chunks of a file bypass HDF5's filters, which run on one thread only."""
    end, last = row + block.shape[0], item + block.shape[1]
    if isinstance(labels, np.ndarray):
        labels[row:end, item:last] = block
        return
    height, width = labels.chunks
    tops, lefts = range(row // height * height, end, height), range(item // width * width, last, width)
    for top, left in itertools.product(tops, lefts):
        bottom, right = min(top + height, labels.shape[0]), min(left + width, labels.shape[1])
        rows, items = slice(max(top, row), min(bottom, end)), slice(max(left, item), min(right, last))
        part = block[rows.start - row : rows.stop - row, items.start - item : items.stop - item]
        if part.shape == (bottom - top, right - left):
            content = np.zeros(height * width * labels.dtype.itemsize + CHECKSUM_BYTES, np.uint8)
            chunk = content[:-CHECKSUM_BYTES].view(labels.dtype).reshape(height, width)
            chunk[: bottom - top, : right - left] = part
            content[-CHECKSUM_BYTES:] = np.frombuffer(checksum_of(chunk), np.uint8)
            labels.id.write_direct_chunk((top, left), content)
        else:
            labels[rows, items] = part


def written(
    parts: Sequence[Part],
    dtype: np.dtype[Any],
    items: Items,
    samples: Samples,
    *,
    store: Path | None,
    beside: Path | None = None,
    progressbar: bool = False,
) -> PartitionDraws:
    """Write the labels of all draws to a store; `dtype` may be larger than needed.

    Parameters
    ----------
    parts : sequence of Part
        Parts that contain each draw once.
    store : Path or None
        A new file. By default a temporary file in the directory `beside` or the system's, removed when no draws use it
        or the process ends.
    """
    if store is None:
        place = beside or Path(tempfile.gettempdir())
        file, nameless = (
            _Temporary(place, samples.n_draws * items.n_items),
            Items(items.n_items, items.dim, xr.Coordinates()),
        )
        _write(file.path, place, parts, dtype, nameless, samples, progressbar)
        return PartitionDraws(items, samples, StoredLabels.opened(file.path, progressbar=progressbar, owner=file))
    store.parent.mkdir(parents=True, exist_ok=True)
    lock_file = store.with_name(f"{store.name}.lock")
    lock = locked(store, lock_file)
    try:
        if store.exists():
            what = (
                "already has draws: pass its path as `data` to read them, or remove it" if is_store(store) else "exists"
            )
            raise ValueError(f"`store` must be a new file; {str(store)!r} {what}.")
        write_store(store, parts, dtype, items, samples, progressbar)
    finally:
        if sys.platform != "win32":  # Windows cannot remove an open file
            lock_file.unlink(missing_ok=True)
        lock.release()
    return stored_draws(store, progressbar=progressbar)


class _Temporary:
    """A file that is removed with this object.

    On Linux it has no name, so nothing remains however the process ends. Other processes of the machine open it by its
    descriptor. Workers of dask may be on other machines that share the disk, so they need the name.
    """

    def __init__(self, place: Path, n_labels: int) -> None:
        descriptor, name = tempfile.mkstemp(".nc", "posterior_consensus_labels_", place)
        self.path = Path(name)
        if sys.platform == "linux" and client_for(n_labels) is None:
            os.unlink(name)
            weakref.finalize(self, os.close, descriptor)
            self.path = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        else:
            os.close(descriptor)
            weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked process, which ends before the owner of the file
        path.unlink(missing_ok=True)


def unfinished(store: Path) -> Path:
    """Path of a store while it is being written."""
    return store.with_name(f"{store.name}.unfinished")


def write_store(
    store: Path,
    parts: Sequence[Part],
    dtype: np.dtype[Any],
    items: Items,
    samples: Samples,
    progressbar: bool = False,
) -> None:
    """Write a store, then rename it to its final path."""
    new = unfinished(store)
    try:
        _write(new, store.parent, parts, dtype, items, samples, progressbar)
        new.replace(store)
    finally:
        new.unlink(missing_ok=True)


def _write(
    path: Path,
    place: Path,
    parts: Sequence[Part],
    dtype: np.dtype[Any],
    items: Items,
    samples: Samples,
    progressbar: bool,
) -> None:
    """Write a file; reserve its space first, as HDF5 crashes on a full disk."""
    shape = samples.n_draws, items.n_items
    chunks = _chunks(shape, parts[0][0].size)
    about = _without_labels(dtype, chunks, items, samples)
    n_chunks = math.prod(-(-length // size) for length, size in zip(shape, chunks, strict=True))
    size = about.getbuffer().nbytes + n_chunks * (math.prod(chunks) * dtype.itemsize + _OVERHEAD) + _SPARE
    size += 8 * samples.n_draws  # numbers of clusters
    with _room(place, size), path.open("w+b", buffering=0) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        shutil.copyfileobj(about, file)
        with h5py.File(file, "r+", libver="latest", rdcc_nbytes=_CACHE, rdcc_nslots=_SLOTS) as variables:
            variables[N_CLUSTERS][...] = _fill(variables[LABELS], parts, progressbar)
        file.write(_last_line(file, file.seek(0, os.SEEK_END)))


def _chunks(shape: tuple[int, int], together: int) -> tuple[int, int]:
    """Draws and items of a chunk; its draws are written together, so that HDF5 need not reread it."""
    width = min(block_width(shape[0]), memory.ITEMS_IN_CHUNK, shape[1])
    width = min(width, -(-shape[1] // -(-shape[1] // width) // ALIGNED) * ALIGNED)
    return -(-together // -(-together // (_LABELS_IN_CHUNK // width))), width


def _without_labels(dtype: np.dtype[Any], chunks: tuple[int, int], items: Items, samples: Samples) -> BytesIO:
    """Build a store in memory, with labels still unwritten."""
    names = {items.dim, *items.coords}
    if odd := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"`data` must have coordinates whose names are text, as a store keeps them; got {odd[0]!r}.")
    renamed = _stored_names(names)
    about = storable(_renamed(xr.Dataset(coords=items.coords), renamed))
    about = about.assign(weight=("sample", samples.weights)).assign_attrs(format=_FORMAT, renamed=json.dumps(renamed))
    about = about.assign_coords(chain=("sample", samples.chain), draw=("sample", samples.draw))
    file, item_dim = BytesIO(), renamed.get(items.dim, items.dim)
    try:
        with h5netcdf.File(file, "w", libver="latest") as variables:
            about.dump_to_store(H5NetCDFStore(variables))
            if item_dim not in variables.dimensions:
                variables.dimensions[item_dim] = items.n_items
            variables.create_variable(LABELS, ("sample", item_dim), dtype, chunks=chunks, fletcher32=True)
            variables.create_variable(N_CLUSTERS, ("sample",), np.int64)
    except ValueError as error:  # text that HDF5 cannot store
        raise ValueError(
            f"`data` must have coordinates of {items.dim!r} whose text has no NUL and no surrogates, as a store keeps "
            f"it; got {error}"
        ) from error
    file.seek(0)
    return file


@contextmanager
def _room(place: Path, n_bytes: int) -> Iterator[None]:
    """Add the space needed to errors of a full disk."""
    try:
        if shutil.disk_usage(place).free < n_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            error.errno,
            f"There is no room in {str(place)!r} for a file of labels of {n_bytes / 1e9:.3g} GB. Name a place that has "
            "room by `store`.",
        ) from error


def _last_line(file: Any, end: int) -> bytes:
    """Last line of a store: a checksum of all before `end` except labels, whose chunks have their own."""
    with h5py.File(file) as variables:
        chunks = chunks_of(variables[LABELS])
    checksum = hashlib.sha256()
    file.seek(0)
    for chunk in sorted(chunks, key=lambda chunk: chunk.byte_offset):
        checksum.update(file.read(max(0, chunk.byte_offset - file.tell())))
        file.seek(chunk.byte_offset + chunk.size - CHECKSUM_BYTES)
    checksum.update(file.read(max(0, end - file.tell())))
    return f"\n{_FORMAT} sha256 {checksum.hexdigest()}\n".encode()


def is_store(path: Any) -> bool:
    """Whether a path is a store, finished or not."""
    if not isinstance(path, (str, Path)):
        return False
    path = Path(path)
    if not path.is_file():
        return unfinished(path).exists()
    with path.open("rb") as file:
        first = file.read(_NEAR)
        file.seek(max(0, path.stat().st_size - _NEAR))
        return _MARK.encode() in first + file.read()


def stored_draws(path: Path, *, progressbar: bool) -> PartitionDraws:
    """Open the draws in a store; labels stay on disk.

    Raises
    ------
    ValueError
        If the store is unfinished or damaged.
    """
    if not path.exists():
        raise ValueError(
            f"`data` must be a store that is finished; {str(path)!r} is being written, or its "
            "process was killed. In the latter case make it again: as_partition_draws(data, store=...)."
        )
    drawn = checked_labels(path, progressbar=progressbar)
    about, items = read_about(path)
    return PartitionDraws(items, Samples(about["chain"].values, about["draw"].values, about["weight"].values), drawn)


def checked_labels(path: Path, *, progressbar: bool = False) -> StoredLabels:
    """Open the labels in a store after comparing the checksum of everything else.

    Raises
    ------
    ValueError
        If the store is missing or damaged.
    """
    with opened(path) as file:
        length = len(f"\n{_FORMAT} sha256 \n") + 2 * hashlib.sha256().digest_size
        expected = _last_line(file, path.stat().st_size - length)
        if file.read() != expected:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    return StoredLabels.opened(path, progressbar=progressbar)


def read_about(path: Path) -> tuple[xr.Dataset, Items]:
    """Read everything but the labels of a store, and the items."""
    with path.open("rb") as file, xr.open_dataset(file, engine="h5netcdf") as found:
        (_, item_dim), n_items = found[LABELS].dims, found[LABELS].shape[1]
        about = restored_levels(found.drop_vars(LABELS).load())
    if about.attrs["format"] != _FORMAT:
        raise ValueError(f"The format of {path} is {about.attrs['format']!r}, and this version reads {_FORMAT!r}.")
    original = {new: old for old, new in json.loads(about.attrs["renamed"]).items()}
    of_items = about.drop_dims("sample")
    of_items.attrs = {}
    return about, Items(n_items, original.get(item_dim, item_dim), _renamed(of_items, original).coords)


def first_of(path: Path) -> tuple[int, int]:
    """Chain and draw of the first row of a store that an accumulator wrote."""
    with opened(path) as file, h5py.File(file) as variables:
        return int(variables["chain"][0]), int(variables["draw"][0])


def _stored_names(names: set[str]) -> dict[str, str]:
    """Replacements of names that a store or NetCDF cannot hold."""
    stored: dict[str, str] = {}
    for name in sorted(names):
        plain = re.sub(f"/|{NOT_STORED}", "_", name)
        if plain != name or name in _OWN | {"", "."}:
            new = f"item_{plain}"
            while new in names or new in stored.values():
                new += "_"
            stored[name] = new
    return stored


def _renamed(dataset: xr.Dataset, names: dict[str, str]) -> xr.Dataset:
    return dataset.rename({old: new for old, new in names.items() if old in dataset.variables or old in dataset.dims})


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # As h5py does with its own lock: a process forked while another thread reads would wait for that thread for ever.
    os.register_at_fork(before=HDF5_LOCK.acquire, after_in_parent=HDF5_LOCK.release, after_in_child=HDF5_LOCK.release)
