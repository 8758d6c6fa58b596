"""Stores of canonical labels: a directory with a Zarr array, written once, and what else makes up draws."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from filelock import BaseFileLock

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import LabelsInMemory, block_width
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.stored import Layout, StoredLabels, chunk_file
from posterior_consensus.results.plain import restored_levels, storable
from posterior_consensus.runtime import memory, sizes
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.files import LOCK, checksum_of, locked, sign, signed
from posterior_consensus.runtime.progress import track

Labels = npt.NDArray[Any]
Put = Callable[[Labels], None]
# Draws by number, and what gives their canonical labels to a function, some items after others, and their clusters.
Part = tuple[npt.NDArray[np.int64], Callable[[Put], npt.NDArray[np.int64]]]

_FORMAT = "posterior_consensus labels 3"
_DRAWS, UNFINISHED = "draws", "unfinished"  # in a store
_LABELS, _ABOUT, ITEMS = "labels", "about.nc", "items.nc"  # in its draws
_TEMPORARY, _MARK = "posterior_consensus_labels_", "temporary"  # how a temporary one begins, and a file in it


def are_large(shape: tuple[int, int], dtype: np.dtype[Any]) -> bool:
    """Whether labels that come from a disk are kept there; a fixed rule, whatever the machine has free."""
    return shape[0] * shape[1] * dtype.itemsize > sizes.SHARE_HELD * memory.budget()


def in_memory(parts: Sequence[Part], shape: tuple[int, int], dtype: np.dtype[Any]) -> LabelsInMemory:
    """Put the labels of all draws in one array."""
    labels = np.empty(shape, dtype)
    for _ in in_order(_fill, ((*part, labels) for part in parts)):
        pass
    return LabelsInMemory.of(labels)


def _fill(rows: npt.NDArray[np.int64], give: Any, labels: Labels) -> None:
    n_put, runs = 0, list(_successive(rows))

    def put(block: Labels) -> None:
        nonlocal n_put
        for at, run in runs:
            labels[run, n_put : n_put + block.shape[1]] = block[at]
        n_put += block.shape[1]

    give(put)


def written(
    parts: Sequence[Part],
    shape: tuple[int, int],
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
        All draws, each once.
    store : Path or None
        A new or empty directory. By default a temporary one, in the directory `beside` or where the system has such
        ones, that goes when no draws need it any more, at the latest when the process ends. What a killed process has
        left is removed by the next one that makes a store in the same place.
    """
    owner = Temporary(beside) if store is None else None
    path = owner.path if owner is not None else store
    assert path is not None
    lock = None if owner is not None else _taken(path)
    new = path / UNFINISHED
    try:
        shutil.rmtree(new, ignore_errors=True)  # of a process that was killed
        new.mkdir()
        write_labels(parts, shape, dtype, new / _LABELS, progressbar)
        if owner is None:
            _write_samples(samples, new)
            write_items(items, new)
        new.rename(path / _DRAWS)
        drawn = StoredLabels.opened(path / _DRAWS / _LABELS, progressbar=progressbar, owner=owner)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        size = f"{shape[0] * shape[1] * dtype.itemsize / 1e9:.3g} GB"
        raise OSError(
            errno.ENOSPC,
            f"There is no room in {str(path)!r} for labels of {size}. Name a directory that has room by `store`.",
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if lock is not None:
            lock.release()
    return PartitionDraws(items, samples, drawn)


def is_store(path: Any) -> bool:
    """Whether a path leads to a store, finished or not."""
    if not isinstance(path, (str, Path)):
        return False
    about = Path(path) / _DRAWS / _ABOUT
    return about.exists() or checksum_of(about).exists() or (Path(path) / UNFINISHED / _LABELS).exists()


def stored_draws(path: Path, *, progressbar: bool) -> PartitionDraws:
    """Open the draws in a store, of which the labels stay there.

    Raises
    ------
    ValueError
        If the store is unfinished or damaged.
    """
    folder = path / _DRAWS
    if not folder.exists():
        raise ValueError(
            f"`data` must be a store that is finished; {str(path)!r} is being written, or its "
            "process was killed. In the latter case make it again: as_partition_draws(data, store=...)."
        )
    try:
        about, items = _read(folder / _ABOUT), read_items(folder)
        drawn = StoredLabels.opened(folder / _LABELS, progressbar=progressbar)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"The store {str(path)!r} is damaged: {error}. Restore it, or remove the store and make it again from the "
            "draws."
        ) from error
    samples = Samples(about["chain"].values, about["draw"].values, about["weight"].values)
    return PartitionDraws(items, samples, drawn)


class Temporary:
    """A directory that goes with this object, or when the process ends."""

    def __init__(self, beside: Path | None) -> None:
        place = Path(tempfile.gettempdir()) if beside is None else beside
        for left in filter(_is_temporary, place.glob(f"{_TEMPORARY}*")):  # by processes that were killed
            _remove_left(left)
        self.path = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=place))
        lock = locked(self.path)
        (self.path / _MARK).touch()  # under the lock: what is marked but not locked was left
        weakref.finalize(self, _remove, self.path, lock, os.getpid())


def _is_temporary(path: Path) -> bool:
    """Whether a path is a temporary store that this user's processes made, told without opening anything.

    Others can put links under its name where all can write, but nothing into a directory of the user's own that is
    closed to them. Stores that a user named bear no mark.
    """
    try:
        about = path.lstat()
        is_own = sys.platform == "win32" or (about.st_uid == os.getuid() and not about.st_mode & 0o077)
        return stat.S_ISDIR(about.st_mode) and is_own and stat.S_ISREG((path / _MARK).lstat().st_mode)
    except OSError:
        return False


def _remove(path: Path, lock: BaseFileLock, pid: int) -> None:
    if os.getpid() == pid:  # a forked process ends before the one that made the directory
        lock.release()
        shutil.rmtree(path, ignore_errors=True)


def _remove_left(path: Path) -> None:
    try:
        lock = locked(path)
    except OSError:
        return
    _remove(path, lock, os.getpid())


def _taken(path: Path) -> BaseFileLock:
    """Lock a directory to write a store in it."""
    if (path / _DRAWS / _ABOUT).exists():
        raise ValueError(
            f"`store` must be a new or empty directory; {str(path)!r} already has draws. Pass its path as "
            "`data` to read them, or remove it."
        )
    if path.exists() and not (path.is_dir() and {file.name for file in path.iterdir()} <= {LOCK, UNFINISHED}):
        raise ValueError(f"`store` must be a new or empty directory; got {str(path)!r}.")
    path.mkdir(parents=True, exist_ok=True)
    return locked(path)


def write_labels(
    parts: Sequence[Part], shape: tuple[int, int], dtype: np.dtype[Any], folder: Path, progressbar: bool = False
) -> None:
    """Write the labels of all draws to a new folder, which `StoredLabels.opened` reads."""
    runs = sorted(run.start for rows, _ in parts for _, run in _successive(rows))
    width = min(block_width(shape[0]), shape[1])
    n_chunks = -(-shape[1] // width)
    checksums = np.empty((len(runs), n_chunks), np.uint32)
    layout = Layout(shape, width, dtype, np.array([*runs, shape[0]], np.int64), checksums)
    if shutil.disk_usage(folder.parent).free < n_chunks * layout.chunk_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    folder.mkdir()
    for number in range(n_chunks):
        with chunk_file(folder, number).open("wb") as file:
            file.truncate(layout.chunk_bytes)
    n_clusters = np.empty(shape[0], np.int64)
    found = in_order(_write_part, ((*part, folder, layout) for part in parts))
    sizes = [rows.size * shape[1] * dtype.itemsize for rows, _ in parts]
    done = zip(parts, found, strict=True)
    for (rows, _), numbers in track(done, "Labels to disk", progressbar=progressbar, n_bytes=sizes):
        n_clusters[rows] = numbers
    layout.describe(folder, n_clusters)


def _write_part(rows: npt.NDArray[np.int64], give: Any, folder: Path, layout: Layout) -> npt.NDArray[np.int64]:
    """Write some draws to all chunks, each as soon as all of its items are there."""
    runs, width = list(_successive(rows)), layout.width
    left, number = np.empty((rows.size, 0), layout.dtype), 0

    def put(block: Labels) -> None:
        nonlocal left, number
        labels = np.concatenate([left, block], axis=1, dtype=layout.dtype) if left.size else block
        for first in range(0, labels.shape[1] - width + 1, width):
            _write_chunk(labels[:, first : first + width], runs, folder, number, layout)
            number += 1
        left = labels[:, labels.shape[1] // width * width :].copy()

    n_clusters = np.asarray(give(put))
    if left.size:
        filled = np.zeros((rows.size, width), layout.dtype)
        filled[:, : left.shape[1]] = left
        _write_chunk(filled, runs, folder, number, layout)
    return n_clusters


def _write_chunk(
    labels: Labels, runs: Sequence[tuple[slice, slice]], folder: Path, number: int, layout: Layout
) -> None:
    with chunk_file(folder, number).open("r+b") as file:
        for at, run in runs:
            piece = np.ascontiguousarray(labels[at], layout.dtype)
            layout.checksums[np.searchsorted(layout.runs, run.start), number] = zlib.crc32(piece.data)
            file.seek(run.start * layout.width * layout.dtype.itemsize)
            file.write(piece.data)


def _write_samples(samples: Samples, folder: Path) -> None:
    about = {"chain": samples.chain, "draw": samples.draw, "weight": samples.weights}
    _write(xr.Dataset({name: ("sample", values) for name, values in about.items()}), folder / _ABOUT)


def write_items(items: Items, folder: Path) -> None:
    """Write what the items are; :func:`read_items` reads it."""
    attrs = {"format": _FORMAT, "n_items": items.n_items, "item_dim": items.dim}
    _write(storable(xr.Dataset(coords=items.coords, attrs=attrs)), folder / ITEMS)


def read_items(folder: Path) -> Items:
    """Read the items of a store.

    Raises
    ------
    ValueError
        If they are missing or damaged, or of another format.
    """
    found = restored_levels(_read(folder / ITEMS))
    about, found.attrs = found.attrs, {}
    if about["format"] != _FORMAT:
        raise ValueError(f"its format is {about['format']!r}, and this version reads {_FORMAT!r}")
    return Items(int(about["n_items"]), about["item_dim"], found.coords)


def _write(dataset: xr.Dataset, file: Path) -> None:
    dataset.to_netcdf(file, engine="h5netcdf")
    sign(file)


def _read(file: Path) -> xr.Dataset:
    return xr.load_dataset(BytesIO(signed(file)), engine="h5netcdf")


def _successive(rows: npt.NDArray[np.int64]) -> list[tuple[slice, slice]]:
    """Where ascending numbers follow one another: their positions, and the range that they make up."""
    runs = np.split(np.arange(rows.size), np.flatnonzero(np.diff(rows) != 1) + 1)
    return [(slice(int(at[0]), int(at[-1]) + 1), slice(int(rows[at[0]]), int(rows[at[-1]]) + 1)) for at in runs]
