"""Stores: canonical labels, items and samples in one NetCDF file that is written once, and mapped to be read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO, FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from traceback import clear_frames
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
from posterior_consensus.ensemble.labels import ArrayLabels, MappedFile, opened_store, slices
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.ensemble.samples import ChainSamples, Samples
from posterior_consensus.results.stored_as import restored_levels, storable
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Integers
from posterior_consensus.runtime.arguments import as_path
from posterior_consensus.runtime.cluster import client_for
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.files import checksums, lengthen, locked, mapped, offset_of_checksums, remove, room
from posterior_consensus.runtime.progress import track

Labels = npt.NDArray[Any]
# Row numbers of draws, and a function that writes their canonical labels to an array of all draws and returns their
# numbers of clusters.
Part = tuple[Integers, Callable[[Labels], Integers]]

LABELS, N_CLUSTERS = "labels", "n_clusters"  # variables of the file
_MARK = "posterior_consensus labels"  # name of the format, near both ends of a store, so that damage leaves one copy
_FORMAT, _OLD = f"{_MARK} 5", f"{_MARK} 4"
NOT_STORED = "[\0\ud800-\udfff]"  # characters that HDF5 cannot store in text
_NEAR, _SPARE = 4096, 2**16  # bytes from an end of the file; bytes that HDF5 adds at most, with the checksums' line
_OWN = {LABELS, N_CLUSTERS, "weight", "chain", "draw", "sample"}  # names reserved from coordinates of items


def write_labels(
    parts: Sequence[Part],
    dtype: np.dtype[Any],
    items: Items,
    samples: Samples,
    *,
    from_disk: bool,
    beside: Path | None = None,
    progressbar: bool = False,
) -> PartitionDraws:
    """Write the labels of all draws to memory or, if they come from disk and are large, to a mapped temporary file.

    Which of both is a fixed rule, independent of free memory. `parts`: parts that contain each draw once. `dtype`: it
    may be larger than needed. `beside`: directory of the temporary file, which is removed when no draws use it or the
    process ends; by default the system's.
    """
    shape, file = (samples.n_draws, items.n_items), None
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    if from_disk and not memory.fits(n_bytes / memory.SHARE_HELD):
        content, path = _temporary(beside or Path(tempfile.gettempdir()), n_bytes, shape[0] * shape[1])
        labels, file = np.ndarray(shape, dtype, content), MappedFile(path, 0, progressbar=progressbar)
    else:
        labels = np.empty(shape, dtype)
    n_clusters = _fill(labels, parts, progressbar and file is not None)
    smallest = smallest_dtype(int(n_clusters.max()))
    labels = labels.astype(smallest, copy=False) if file is None else _narrowed(labels, smallest)
    return PartitionDraws(items, samples, ArrayLabels(labels, n_clusters, file))


def _temporary(place: Path, n_bytes: int, n_labels: int) -> tuple[mmap, Path]:
    """Map a new file that is removed with its map.

    On Linux it has no name, so nothing remains however the process ends. Other processes of the machine open it by its
    descriptor. Workers of dask may be on other machines that share the disk, so they need the name.
    """
    descriptor, name = tempfile.mkstemp(".labels", "posterior_consensus_", place)
    path = Path(name)
    try:
        with room(place, n_bytes), open(descriptor, "r+b", buffering=0, closefd=False) as file:
            lengthen(file, n_bytes)
            content = mmap(file.fileno(), n_bytes)
    except BaseException:
        os.close(descriptor)
        path.unlink()
        raise
    if sys.platform == "linux" and client_for(n_labels) is None:
        path.unlink()
        weakref.finalize(content, os.close, descriptor)
        return content, Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    os.close(descriptor)
    weakref.finalize(content, _remove, path, os.getpid())
    return content, path


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked process, which ends before the owner of the file
        remove(path)


def _fill(labels: Labels, parts: Sequence[Part], progressbar: bool) -> Integers:
    """Write the labels of all draws into an array; return their numbers of clusters."""
    held = [labels]  # until then: a thread keeps its last call for a while
    n_clusters = np.empty(len(labels), np.int64)
    n_bytes = [rows.size * labels.shape[1] * labels.dtype.itemsize for rows, _ in parts]
    done = zip(parts, in_order(lambda write: write(held[0]), ((write,) for _, write in parts)), strict=True)
    try:
        for (rows, _), numbers in track(done, "Labels to disk", progressbar=progressbar, n_bytes=n_bytes):
            n_clusters[rows] = numbers
    finally:
        held.clear()
    return n_clusters


def _narrowed(labels: Labels, dtype: np.dtype[Any]) -> Labels:
    """Convert labels to a smaller type in their own memory."""
    if labels.dtype != dtype:
        wide, narrow = labels.reshape(-1), labels.reshape(-1).view(dtype)
        for part in slices(labels.size, memory.LABELS_IN_BLOCK):
            narrow[part] = wide[part]
        labels = narrow[: labels.size].reshape(labels.shape)
    return labels


def as_store(value: Any) -> Path:
    """Take the path of a store; a link to a file that does not exist is followed, as it would be replaced."""
    path = as_path("store", value)
    return path.resolve() if path.is_symlink() and not path.exists() else path


def write_store(
    parts: Sequence[Part],
    dtype: np.dtype[Any],
    items: Items,
    samples: Samples,
    *,
    store: Path,
    progressbar: bool = False,
) -> PartitionDraws:
    """Write the labels of all draws to a new store, named once it is complete; arguments as in `write_labels`."""
    store.parent.mkdir(parents=True, exist_ok=True)
    lock_file = store.with_name(f"{store.name}.lock")
    lock, new = locked(store, lock_file), _path_unfinished(store)
    try:
        if store.exists():
            what = (
                "already has draws: pass its path as `data` to read them, or remove it" if is_store(store) else "exists"
            )
            raise ValueError(f"`store` must be a new file; {str(store)!r} {what}.")
        _write_file(new, parts, dtype, items, samples, progressbar)
        new.replace(store)
    finally:
        remove(new)
        remove(lock_file)
        lock.release()
    return stored_draws(store, progressbar=progressbar, is_new=True)


def _path_unfinished(store: Path) -> Path:
    """Path of a store while it is being written."""
    return store.with_name(f"{store.name}.unfinished")


def _write_file(
    path: Path, parts: Sequence[Part], dtype: np.dtype[Any], items: Items, samples: Samples, progressbar: bool
) -> None:
    """Write a file; its space is reserved first, as HDF5 and maps crash on a full disk."""
    shape, header = (samples.n_draws, items.n_items), _header(dtype, items, samples)
    size = len(header) + shape[0] * shape[1] * dtype.itemsize + _SPARE
    with room(path.parent, size), path.open("w+b", buffering=0) as file:
        lengthen(file, size)
        offset, _ = _begun(file, header)
        n_clusters, smallest = _fill_file(file, offset, shape, dtype, parts, progressbar)
        again, place = _begun(file, _header(smallest, items, samples) if smallest != dtype else header)
        assert again == offset
        file.seek(place)
        file.write(n_clusters.tobytes())
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content, memoryview(content) as view:
            sums = checksums(view)
        file.seek(0, os.SEEK_END)
        file.write(sums + _last_line(sums))


def _fill_file(
    file: FileIO, offset: int, shape: tuple[int, int], dtype: np.dtype[Any], parts: Sequence[Part], progressbar: bool
) -> tuple[Integers, np.dtype[Any]]:
    """Write the labels of all draws by a map, which then ends: Windows shortens, renames and removes no mapped file.

    Returns their numbers of clusters, and the smallest type of labels, which they now have.
    """
    content = mmap(file.fileno(), 0)
    try:
        return _fill_narrowly(np.ndarray(shape, dtype, content, offset), parts, progressbar)
    except BaseException as error:
        clear_frames(error.__traceback__)  # they have the labels
        raise
    finally:
        with suppress(BufferError):  # something else has them
            content.close()


def _fill_narrowly(labels: Labels, parts: Sequence[Part], progressbar: bool) -> tuple[Integers, np.dtype[Any]]:
    """Fill a map whose caller ends it: names that hold its labels end with this function."""
    n_clusters = _fill(labels, parts, progressbar)
    smallest = smallest_dtype(int(n_clusters.max()))
    _narrowed(labels, smallest)
    return n_clusters, smallest


def _header(dtype: np.dtype[Any], items: Items, samples: Samples) -> bytes:
    """Build a store in memory, with labels that have no space yet."""
    names = {items.dim, *items.coords}
    if odd := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"`data` must have coordinates whose names are text, as a store keeps them; got {odd[0]!r}.")
    renamed = _stored_names(names)
    about = storable(_renamed_present(xr.Dataset(coords=items.coords), renamed))
    about = about.assign(weight=("sample", samples.weights)).assign_attrs(format=_FORMAT, renamed=json.dumps(renamed))
    about = about.assign_coords(chain=("sample", samples.chain), draw=("sample", samples.draw))
    about = about.assign({N_CLUSTERS: ("sample", np.zeros(samples.n_draws, np.int64))})
    file, item_dim = BytesIO(), renamed.get(items.dim, items.dim)
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    try:
        with h5netcdf.File(file, "w", libver="latest") as variables:
            about.dump_to_store(H5NetCDFStore(variables))
            if item_dim not in variables.dimensions:
                variables.dimensions[item_dim] = items.n_items
            variables.create_variable(LABELS, ("sample", item_dim), dtype, dcpl=plan)
    except ValueError as error:  # text that HDF5 cannot store
        raise ValueError(
            f"`data` must have coordinates of {items.dim!r} whose text has no NUL and no surrogates, as a store keeps "
            f"it; got {error}"
        ) from error
    return file.getvalue()


def _begun(file: FileIO, header: bytes) -> tuple[int, int]:
    """Write the header, and let HDF5 reserve space for the labels; return offsets of labels and numbers of clusters."""
    file.seek(0)
    file.write(header)
    with h5py.File(file, "r+", libver="latest", alignment_threshold=1, alignment_interval=8) as variables:
        variables[LABELS][0, 0] = 0  # as in all canonical labels
        return variables[LABELS].id.get_offset(), variables[N_CLUSTERS].id.get_offset()


def _last_line(sums: bytes) -> bytes:
    """Last line of a store: a checksum of the checksums before it."""
    return f"\n{_FORMAT} sha256 {hashlib.sha256(sums).hexdigest()}\n".encode()


def is_store(path: Any) -> bool:
    """Whether a path is a store, finished or not."""
    if not isinstance(path, (str, Path)):
        return False
    path = Path(path)
    if not path.is_file():
        return _path_unfinished(path).exists()
    with path.open("rb") as file:
        first = file.read(_NEAR)
        file.seek(max(0, path.stat().st_size - _NEAR))
        return _MARK.encode() in first + file.read()


def stored_draws(path: Path, *, progressbar: bool, is_new: bool = False) -> PartitionDraws:
    """Map the draws in a store, after comparing checksums of the whole file unless this process has just written it.

    Raises ValueError if the store is unfinished, damaged or of an older version.
    """
    if not path.exists():
        raise ValueError(
            f"`data` must be a store that is finished; {str(path)!r} is being written, or its "
            "process was killed. In the latter case make it again: as_partition_draws(data, store=...)."
        )
    with opened_store(path) as file:
        opened = os.fstat(file.fileno())  # before anything is read, so that no later change goes unnoticed
        content = mapped(file) if opened.st_size else b""
        mark = _mark_of(content, path, compare=not is_new)
        with h5py.File(file) as variables:
            labels, offset = variables[LABELS], variables[LABELS].id.get_offset()
            array = np.ndarray(labels.shape, labels.dtype, content, offset)
        about, items = _read_about(file)
    samples = ChainSamples(about["chain"].values, about["draw"].values, about["weight"].values)
    origin = MappedFile(path, offset, mark, progressbar, opened)
    return PartitionDraws(items, samples, ArrayLabels(array, about[N_CLUSTERS].values, origin))


def _mark_of(content: Any, path: Path, *, compare: bool) -> bytes:
    """Last line of a store, after comparing checksums."""
    end, mark = offset_of_checksums(len(content) - len(_last_line(b""))), content[-len(_last_line(b"")) :]
    if mark.startswith(f"\n{_OLD} ".encode()):
        raise ValueError(
            f"`data` must be a store of this version; {str(path)!r} is of an older one, in chunks. Make a new one: "
            f"old = xarray.open_dataset({str(path)!r}); as_partition_draws(old['labels'], weights=old['weight'], "
            "store='new.nc')."
        )
    sums = content[end : len(content) - len(mark)]
    if mark != _last_line(sums) or (compare and checksums(memoryview(content)[:end]) != sums):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return bytes(mark)


def _read_about(file: FileIO) -> tuple[xr.Dataset, Items]:
    """Read everything but the labels of a store, and the items."""
    with xr.open_dataset(file, engine="h5netcdf") as found:
        (_, item_dim), n_items = found[LABELS].dims, found[LABELS].shape[1]
        about = restored_levels(found.drop_vars(LABELS).load())
    original = {new: old for old, new in json.loads(about.attrs["renamed"]).items()}
    of_items = about.drop_dims("sample")
    of_items.attrs = {}
    return about, Items(n_items, original.get(item_dim, item_dim), _renamed_present(of_items, original).coords)


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


def _renamed_present(dataset: xr.Dataset, names: dict[str, str]) -> xr.Dataset:
    return dataset.rename({old: new for old, new in names.items() if old in dataset.variables or old in dataset.dims})


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    # As h5py does with its own lock: a process forked while another thread reads would wait for that thread for ever.
    os.register_at_fork(before=HDF5_LOCK.acquire, after_in_parent=HDF5_LOCK.release, after_in_child=HDF5_LOCK.release)
