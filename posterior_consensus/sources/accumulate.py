"""Draws of a running sampler, kept in memory or in a directory and available at any time."""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import xarray as xr
from filelock import BaseFileLock

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import as_array, as_codes, canonical_rows
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.results import display
from posterior_consensus.runtime.arguments import as_path, check_count, is_integer
from posterior_consensus.runtime.files import locked, mapped, room
from posterior_consensus.sources.stores import NOT_STORED, held

Rows = npt.NDArray[Any]
Rest = dict[int, list[Rows]]  # draws of each chain's incomplete batch

_HEADER, _LABELS, _LOCK = "draws.json", "draws.labels", "lock"  # files of a directory
_FORMAT = "posterior_consensus draws 1"


class _Batch(NamedTuple):
    """Draws of a chain that were written together; on disk, their labels follow those of the batch before."""

    chain: int
    n_draws: int
    dtype: str
    checksum: int


class _Batches:
    """Complete batches of several chains, in memory or in a directory.

    In a directory, labels are appended to one file. The other lists the batches and is replaced after each, so what a
    killed process wrote in part is not listed and is written over.

    Attributes
    ----------
    path : Path or None
        The directory, as it was when opened; another process may add batches. None for memory.
    items : Items or None
        Items of the labels; None while there are none.
    listed : list of _Batch
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.items: Items | None = None
        self.listed: list[_Batch] = []
        self._in_memory: list[Rows] = []
        if path is not None and (path / _HEADER).exists():
            self._read_header(path / _HEADER)

    def append(self, chain: int, labels: Rows, items: Items) -> None:
        """Add a batch (n_draws, n_items) of a chain; nothing changes if this fails."""
        batch = _Batch(chain, len(labels), labels.dtype.str, zlib.crc32(labels.data))
        if self.path is None:
            self._in_memory.append(labels)
        else:
            with room(self.path, labels.nbytes), (self.path / _LABELS).open("ab", buffering=0) as file:
                file.truncate(sum(_n_bytes(one, items) for one in self.listed))
                _write_all(file, labels.data.cast("B"))
                self.write_header([*self.listed, batch], items)
        self.listed.append(batch)
        self.items = items

    def write_header(self, listed: list[_Batch], items: Items | None) -> None:
        """List batches in the directory."""
        assert self.path is not None
        about: dict[str, Any] = {"format": _FORMAT, "batches": listed}
        if items is not None:
            names = items.coords[items.dim].values.tolist() if items.dim in items.coords else None
            about["items"] = [items.n_items, items.dim, names]
        text, new = json.dumps(about), self.path / f"{_HEADER}.new"
        new.write_text(f"{_digest(text)}\n{text}")
        new.replace(self.path / _HEADER)

    def _read_header(self, file: Path) -> None:
        digest, _, text = file.read_bytes().decode(errors="replace").partition("\n")
        if digest != _digest(text):
            raise _damaged(file)
        about = json.loads(text)
        self.listed = [_Batch(*batch) for batch in about["batches"]]
        if "items" in about:
            self.items = items_named(*about["items"])

    def labels(self) -> list[tuple[int, Rows, Callable[[], None]]]:
        """Chain and labels of each batch, and a function that raises an error if the labels are damaged."""
        if self.path is None or not self.listed:
            return [(one.chain, labels, _fine) for one, labels in zip(self.listed, self._in_memory, strict=True)]
        file, first = self.path / _LABELS, 0
        found: list[tuple[int, Rows, Callable[[], None]]] = []
        assert self.items is not None
        try:
            with file.open("rb", buffering=0) as opened:
                content = mapped(opened)
        except (OSError, ValueError) as error:  # it is missing or empty
            raise _damaged(file) from error
        for one in self.listed:
            last = first + _n_bytes(one, self.items)
            if last > len(content):
                raise _damaged(file)
            labels = np.ndarray((one.n_draws, self.items.n_items), one.dtype, content, first)
            found.append((one.chain, labels, partial(_check, memoryview(content)[first:last], one, file)))
            first = last
        return found


def _n_bytes(batch: _Batch, items: Items) -> int:
    return batch.n_draws * items.n_items * np.dtype(batch.dtype).itemsize


def _write_all(file: Any, content: memoryview) -> None:
    """Write a buffer to a file without a buffer, which may take a part of it at a time."""
    while content:
        content = content[file.write(content) :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _fine() -> None:
    """Labels in memory are as they were."""


def _check(content: memoryview, batch: _Batch, file: Path) -> None:
    if zlib.crc32(content) != batch.checksum:
        raise _damaged(file)


def _damaged(file: Path) -> ValueError:
    return ValueError(
        f"`store` is damaged: {file} is missing or not as it was written. Restore it, or begin in another directory."
    )


def is_accumulated(path: Any) -> bool:
    """Whether a path is a directory of an accumulator."""
    return isinstance(path, (str, Path)) and (Path(path) / _HEADER).exists()


def _locked_directory(path: Path) -> BaseFileLock | None:
    """Create a missing directory for batches and lock it; None without permission to write."""
    if path.exists() and not is_accumulated(path) and not _is_empty(path):
        raise ValueError(f"`store` must be a new or empty directory, or one of draws; got {str(path)!r}.")
    path.mkdir(parents=True, exist_ok=True)
    return locked(path, path / _LOCK) if os.access(path, os.W_OK) else None


def _is_empty(path: Path) -> bool:
    return path.is_dir() and {file.name for file in path.iterdir()} <= {_LOCK, f"{_HEADER}.new"}


def items_named(n_items: int, dim: str, names: list[Any] | None) -> Items:
    """Items of this dimension, with names or without."""
    return Items(n_items, dim, xr.Coordinates({} if names is None else {dim: names}))


class PartitionAccumulator(display.Shown):
    """Collect draws from a running sampler, in memory or on disk; every function accepts it as the draws so far.

    Parameters
    ----------
    store : path, optional
        Directory for the draws, on a file system of this machine. An existing store is continued, a missing one
        created. By default, draws are kept in memory.
    batch_size : int
        Number of draws of a chain that are written together. A killed process loses the draws after the last complete
        batch, fewer than `batch_size` per chain.
    items : array_like of shape (n_items,), optional
        Names of the items, text or integers. By default the names in the store, if there are any.
    item_dim : str, optional
        Name of the items' dimension; by default the name in the store, else "item".

    Attributes
    ----------
    store : Path or None
        Directory of the draws, as an absolute path.
    batch_size : int
        Number of draws in a batch.

    Raises
    ------
    ValueError
        If `store` is another kind of directory, its items differ, or one of its batches is damaged.
    BlockingIOError
        If the store is open in another process or accumulator. Its path can still be read as `data`.

    See Also
    --------
    as_partition_draws : Convert draws that are complete, or read a store by its path.
    diagnose : Check whether the draws so far suffice.

    Notes
    -----
    :meth:`close`, or the end of a ``with`` block, writes the incomplete batch. Each batch is one NetCDF file, which
    gets its name only when it is complete. The store is locked while the accumulator is open; the system releases the
    lock of a dead process. Labels are stored numbered by first appearance.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> kept = pc.PartitionAccumulator(items=["Ann", "Bob", "Eve"])
    >>> kept.add([5, 5, 2])
    >>> kept.add([["x", "x", "x"], ["x", "y", "y"]], chain=1)
    >>> kept.n_draws
    3
    >>> kept.draws().labels
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 1, 1]], dtype=uint8)
    >>> len(pc.as_partition_draws(kept))
    3
    """

    _no_figure = "plot_psm(accumulator) shows its draws"

    def __init__(
        self,
        store: str | os.PathLike[str] | None = None,
        *,
        batch_size: int = 100,
        items: Any = None,
        item_dim: str | None = None,
    ) -> None:
        if not (item_dim is None or (isinstance(item_dim, str) and item_dim not in ("", "chain", "draw", "sample"))):
            raise ValueError(f"`item_dim` must be a name other than those of the draws' dimensions; got {item_dim!r}.")
        self.batch_size = check_count("batch_size", batch_size)
        self.store = None if store is None else as_path("store", store)
        names = _as_names(items)
        self._item_dim = item_dim
        self._items = None if names is None else items_named(len(names), item_dim or "item", names)
        self._rest: Rest = {}
        self._is_open = True
        self._lock = None if self.store is None else _locked_directory(self.store)
        try:
            self._batches = _Batches(self.store)
            if self._batches.items is not None:
                self._continue_store(self._batches.items, names)
            self._batches.labels()
            if self._lock is not None and not is_accumulated(self.store):
                self._batches.write_header([], None)
        except BaseException:
            self._release()
            raise

    @property
    def n_draws(self) -> int:
        """Number of draws so far, of all chains."""
        return sum(_lengths(self._batches, self._rest).values())

    def add(self, labels: Any, chain: int = 0) -> None:
        """Add one or several draws of a chain.

        Parameters
        ----------
        labels : array_like of shape (n_items,) or (n_draws, n_items)
            Labels in the order of the items, of any kind that :func:`as_partition_draws` accepts.
        chain : int
            Number of the chain, from 0. Chains may have different lengths.

        Raises
        ------
        ValueError
            If labels are missing, invalid or not one per item, or the accumulator is closed. Nothing of `labels` is
            then added.
        OSError
            If a batch cannot be written. The draws are kept, and written with the next batch.
        """
        self._check_open()
        if not is_integer(chain) or chain < 0:
            raise ValueError(f"`chain` must be an integer from 0; got {chain!r}.")
        if isinstance(labels, (xr.DataArray, xr.Dataset, xr.DataTree)):
            raise TypeError(f"`labels` must be an array in the order of the items; got {type(labels).__name__}.")
        values = as_array(labels, "`labels`")
        if values.ndim not in (1, 2) or not values.size:
            raise ValueError(
                f"`labels` must be of shape (n_items,) or (n_draws, n_items), and not empty; got {values.shape}."
            )
        values = np.atleast_2d(values)
        items = self._items or items_named(values.shape[1], self._item_dim or "item", None)
        if values.shape[1] != items.n_items:
            raise ValueError(f"`labels` must label all {items.n_items} items; got {values.shape[1]} labels.")
        rows, _ = canonical_rows(*as_codes(values, "`labels`"))
        self._items = items
        rest = self._rest.setdefault(int(chain), [])
        rest.append(rows)
        if sum(map(len, rest)) >= self.batch_size:
            self._write(int(chain), self.batch_size)

    def draws(self) -> PartitionDraws:
        """Return the draws so far, chain after chain.

        Returns
        -------
        PartitionDraws
            All draws added, also those not yet written.

        Raises
        ------
        ValueError
            If there are no draws yet, or a batch in the store is damaged.
        """
        return _draws_of(self._batches, self._rest, self._items)

    def flush(self) -> None:
        """Write all draws so far to the store, including incomplete batches.

        Raises
        ------
        ValueError
            If the accumulator is closed.
        OSError
            If they cannot be written.
        """
        self._check_open()
        for chain in self._rest:
            self._write(chain, 1)

    def close(self) -> None:
        """Write the remaining draws and release the store; the draws remain readable.

        Raises
        ------
        OSError
            If the remaining draws cannot be written. The accumulator then stays open and keeps them.
        """
        if self._is_open:
            self.flush()
            self._is_open = False
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValueError("The accumulator is closed. To go on, make another one of the same store.")

    def _continue_store(self, items: Items, names: list[Any] | None) -> None:
        """Continue a store: use its items, which must be the user's."""
        if names not in (None, items.coords[items.dim].values.tolist() if items.dim in items.coords else None):
            raise ValueError("`items` must be those of the store, or None; they differ.")
        if self._item_dim not in (None, items.dim):
            raise ValueError(f"`item_dim` must be that of the store, {items.dim!r}, or None; got {self._item_dim!r}.")
        self._items = items

    def _write(self, chain: int, least: int) -> None:
        """Write a chain's draws in batches while at least `least` draws remain."""
        assert self._items is not None
        labels, first = np.concatenate(self._rest[chain]), 0
        try:
            while len(labels) - first >= least:
                self._batches.append(chain, labels[first : first + self.batch_size], self._items)
                first += self.batch_size
        finally:
            self._rest[chain] = [labels[first:]]

    def _parts(self) -> display.Parts:
        lengths = _lengths(self._batches, self._rest)
        lines = [
            ("draws", f"{self.n_draws} of chains {', '.join(map(str, lengths))}" if lengths else "none yet"),
            ("items", "not known yet" if self._items is None else str(self._items.n_items)),
            ("kept", "in memory" if self.store is None else f"in {self.store}, {self.batch_size} draws at a time"),
        ]
        return type(self).__name__, lines, None


def read_draws(store: Path) -> PartitionDraws:
    """Read the draws in an accumulator's directory, even while another process writes to it."""
    batches = _Batches(store)
    return _draws_of(batches, {}, batches.items)


def _draws_of(batches: _Batches, rest: Rest, items: Items | None) -> PartitionDraws:
    lengths = _lengths(batches, rest)
    if items is None or not lengths:
        raise ValueError("There must be at least one draw; the accumulator has none yet.")
    chain = np.repeat(list(lengths), list(lengths.values()))
    draw = np.concatenate([np.arange(length) for length in lengths.values()])
    samples = Samples(chain, draw, np.full(chain.size, 1 / chain.size))
    kept = batches.labels() + [(one, rows, _fine) for one in rest for rows in rest[one] if len(rows)]
    first, parts = dict(zip(lengths, np.searchsorted(chain, list(lengths)), strict=True)), []
    for one, rows, check in kept:
        at = slice(first[one], first[one] + len(rows))
        parts.append((np.arange(at.start, at.stop), partial(_write, at, rows, check)))
        first[one] += len(rows)
    dtype, path = np.result_type(*(rows.dtype for _, rows, _ in kept)), batches.path
    beside = path if path is not None and os.access(path, os.W_OK) else None
    return held(parts, dtype, items, samples, from_disk=path is not None, beside=beside)


def _write(at: slice, rows: Rows, check: Callable[[], None], labels: Rows) -> npt.NDArray[np.int64]:
    """Write draws to their rows of the labels of all; return their numbers of clusters."""
    check()
    labels[at] = rows
    return rows.max(axis=1).astype(np.int64) + 1


def _lengths(batches: _Batches, rest: Rest) -> dict[int, int]:
    """Number of draws of each chain, in the order of the chains' numbers."""
    lengths = dict.fromkeys(sorted({*rest, *(one.chain for one in batches.listed)}), 0)
    for one in batches.listed:
        lengths[one.chain] += one.n_draws
    for chain, kept in rest.items():
        lengths[chain] += sum(map(len, kept))
    return {chain: length for chain, length in lengths.items() if length}


def _as_names(items: Any) -> list[Any] | None:
    if items is None:
        return None
    names = np.asarray(items)
    if (
        names.ndim != 1
        or not names.size
        or names.dtype.kind not in "iuUT" + "O" * all(isinstance(name, str) for name in names.flat)
        or re.search(NOT_STORED, "".join(map(str, names)))
    ):
        raise ValueError(f"`items` must be names, integers or text without NUL and surrogates; got {items!r}.")
    if np.unique(names).size < names.size:
        raise ValueError("`items` must have a name of its own for each item.")
    return names.tolist()
