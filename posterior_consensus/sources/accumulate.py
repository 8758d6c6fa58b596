"""Draws of a running sampler, kept in memory or in a directory and available at any time."""

import itertools
import json
import os
import re
import zlib
from collections.abc import Set as AbstractSet
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
from posterior_consensus.ensemble.samples import ChainSamples
from posterior_consensus.results import display
from posterior_consensus.runtime.aliases import Integers, Positions
from posterior_consensus.runtime.arguments import check_count, is_integer
from posterior_consensus.runtime.executor import in_order
from posterior_consensus.runtime.files import locked, mapped, room
from posterior_consensus.sources.stores import NOT_STORED, as_store, write_labels

Rows = npt.NDArray[Any]
Kept = tuple[int, Rows]  # a chain, and labels of some of its draws

_LIST, _LABELS, _LOCK = "draws.list", "draws.labels", "lock"  # files of a directory


class _Batch(NamedTuple):
    """Draws of a chain that were written together; their labels follow those of the batch before."""

    chain: int
    n_draws: int
    dtype: str
    checksum: int

    def n_bytes(self, items: Items) -> int:
        return self.n_draws * items.n_items * np.dtype(self.dtype).itemsize


def _line(about: Any) -> bytes:
    """A line of the list of batches: a checksum, and the rest."""
    text = json.dumps(about).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _is_whole(line: bytes) -> bool:
    return line[:9] == b"%08x " % zlib.crc32(line[9:])


def _begin_list(store: Path, items: Items | None) -> int:
    """Write the first line, of the items, to a file that is renamed once it is whole; return its length."""
    names = None if items is None or items.dim not in items.coords else items.coords[items.dim].values.tolist()
    line = _line(items and (items.n_items, items.dim, names))
    new = store / f"{_LIST}.new"
    new.write_bytes(line)
    new.replace(store / _LIST)
    return len(line)


def _append_to(file: Path, n_bytes: int, content: Any) -> int:
    """Write after the first `n_bytes`, over remains of a killed process; return the new length."""
    with file.open("ab") as there:
        there.truncate(n_bytes)
        return n_bytes + there.write(content)


def _listed(store: Path) -> tuple[Items | None, list[_Batch], int]:
    """Items and batches of the complete lines of a list, and the length of these."""
    *lines, rest = (store / _LIST).read_bytes().split(b"\n")
    if not lines or not all(map(_is_whole, lines)) or _is_whole(rest[:-1]):  # the last line end is another character
        raise _damaged(store / _LIST)
    items, *batches = (json.loads(line[9:]) for line in lines)
    return (
        items and _items_of_names(*items),
        [_Batch(*batch) for batch in batches],
        sum(len(line) + 1 for line in lines),
    )


def _labels_in(store: Path | None, batches: list[_Batch], items: Items | None) -> list[Kept]:
    """Map the labels of these batches, after comparing checksums."""
    if store is None or items is None or not batches:
        return []
    ends = np.cumsum([0, *(batch.n_bytes(items) for batch in batches)]).tolist()
    try:
        with (store / _LABELS).open("rb", buffering=0) as file:
            content = mapped(file)
    except (OSError, ValueError) as error:  # it is missing or empty
        raise _damaged(store / _LABELS) from error
    parts = ((memoryview(content)[first:end],) for first, end in itertools.pairwise(ends))
    if len(content) < ends[-1] or [*in_order(zlib.crc32, parts)] != [batch.checksum for batch in batches]:
        raise _damaged(store / _LABELS)
    return [
        (batch.chain, np.ndarray((batch.n_draws, items.n_items), batch.dtype, content, first))
        for batch, first in zip(batches, ends, strict=False)
    ]


def _damaged(file: Path) -> ValueError:
    return ValueError(
        f"`store` is damaged: {file} is missing or not as it was written. Restore it, or begin in another directory."
    )


def is_accumulated(path: Any) -> bool:
    """Whether a path is a directory of an accumulator."""
    return isinstance(path, (str, Path)) and (Path(path) / _LIST).exists()


def _locked_directory(path: Path) -> BaseFileLock | None:
    """Create a missing directory for batches and lock it; None without permission to write."""
    known = {_LOCK, f"{_LIST}.new"}
    if path.exists() and not is_accumulated(path) and not (path.is_dir() and {f.name for f in path.iterdir()} <= known):
        raise ValueError(f"`store` must be a new or empty directory, or one of draws; got {str(path)!r}.")
    path.mkdir(parents=True, exist_ok=True)
    return locked(path, path / _LOCK) if os.access(path, os.W_OK) else None


def _items_of_names(n_items: int, dim: str, names: list[Any] | None = None) -> Items:
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
    :meth:`close`, or the end of a ``with`` block, writes the incomplete batch. Batches are appended to one file of the
    directory. They count once a line of another file lists them, with their checksum. The store is locked while the
    accumulator is open; the system releases the lock of a dead process. Labels are stored numbered by first appearance.

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
        self.store = None if store is None else as_store(store)
        names = _checked_names(items)
        self._item_dim = item_dim
        self._items = None if names is None else _items_of_names(len(names), item_dim or "item", names)
        self._batches: list[_Batch] = []  # in the directory
        self._n_labels, self._n_listed = 0, 0  # bytes of these in its files
        self._kept: list[Kept] = []  # complete batches in memory
        self._rest: dict[int, list[Rows]] = {}  # draws of each chain's incomplete batch
        self._is_open = True
        self._lock = None if self.store is None else _locked_directory(self.store)
        try:
            if self.store is not None and is_accumulated(self.store):
                self._continue(self.store, names)
            elif self.store is not None and self._lock is not None:
                _begin_list(self.store, self._items)
        except BaseException:
            self._release()
            raise

    @property
    def n_draws(self) -> int:
        """Number of draws so far, of all chains."""
        return sum(self._lengths().values())

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
        items = self._items or _items_of_names(values.shape[1], self._item_dim or "item")
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
        stored = _labels_in(self.store, self._batches, self._items)
        rest = [(chain, rows) for chain, parts in self._rest.items() for rows in parts if len(rows)]
        return _draws_of([*stored, *self._kept, *rest], self._items, self.store)

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

    def _continue(self, store: Path, names: list[Any] | None) -> None:
        """Continue a store: use its items, which must be the user's."""
        items, self._batches, self._n_listed = _listed(store)
        if items is None:
            return
        if names not in (None, items.coords[items.dim].values.tolist() if items.dim in items.coords else None):
            raise ValueError("`items` must be those of the store, or None; they differ.")
        if self._item_dim not in (None, items.dim):
            raise ValueError(f"`item_dim` must be that of the store, {items.dim!r}, or None; got {self._item_dim!r}.")
        _labels_in(store, self._batches, items)  # before more is added to it
        self._n_labels = sum(batch.n_bytes(items) for batch in self._batches)
        self._items = items

    def _write(self, chain: int, least: int) -> None:
        """Write a chain's draws in batches while at least `least` draws remain."""
        labels, first = np.concatenate(self._rest[chain]), 0
        try:
            while len(labels) - first >= least:
                self._append(chain, labels[first : first + self.batch_size])
                first += self.batch_size
        finally:
            self._rest[chain] = [labels[first:]]

    def _append(self, chain: int, labels: Rows) -> None:
        """Add a batch; nothing changes if this fails."""
        if self.store is None:
            self._kept.append((chain, labels))
            return
        batch = _Batch(chain, len(labels), labels.dtype.str, zlib.crc32(labels.data))
        with room(self.store, labels.nbytes):
            n_listed = self._n_listed if self._batches else _begin_list(self.store, self._items)
            n_labels = _append_to(self.store / _LABELS, self._n_labels, labels.data)
            self._n_listed = _append_to(self.store / _LIST, n_listed, _line(batch))
        self._n_labels = n_labels
        self._batches.append(batch)

    def _lengths(self) -> dict[int, int]:
        """Number of draws of each chain, in the order of the chains' numbers."""
        sizes = [(chain, len(rows)) for chain, rows in self._kept]
        sizes += [(batch.chain, batch.n_draws) for batch in self._batches]
        return _summed(sizes + [(chain, len(rows)) for chain, parts in self._rest.items() for rows in parts])

    def _parts(self) -> display.Parts:
        lengths = self._lengths()
        lines = [
            ("draws", f"{self.n_draws:,} of chains {', '.join(map(str, lengths))}" if lengths else "none yet"),
            ("items", "not known yet" if self._items is None else str(self._items.n_items)),
            ("kept", "in memory" if self.store is None else f"in {self.store}, {self.batch_size} draws at a time"),
        ]
        return type(self).__name__, lines, None


def read_draws(store: Path) -> PartitionDraws:
    """Read the draws in an accumulator's directory, even while another process writes to it."""
    items, batches, _ = _listed(store)
    return _draws_of(_labels_in(store, batches, items), items, store)


def _draws_of(kept: list[Kept], items: Items | None, store: Path | None) -> PartitionDraws:
    """All draws, chain after chain."""
    lengths = _summed([(chain, len(rows)) for chain, rows in kept])
    if items is None or not lengths:
        raise ValueError("There must be at least one draw; the accumulator has none yet.")
    chain = np.repeat(list(lengths), list(lengths.values()))
    draw = np.concatenate([np.arange(length) for length in lengths.values()])
    samples = ChainSamples(chain, draw, np.full(chain.size, 1 / chain.size))
    first, parts = dict(zip(lengths, np.searchsorted(chain, list(lengths)), strict=True)), []
    for one, rows in kept:
        at = np.arange(first[one], first[one] + len(rows))
        parts.append((at, partial(_write_rows, at, rows)))
        first[one] += len(rows)
    dtype = np.result_type(*(rows.dtype for _, rows in kept))
    beside = store if store is not None and os.access(store, os.W_OK) else None
    return write_labels(parts, dtype, items, samples, from_disk=store is not None, beside=beside)


def _write_rows(at: Positions, rows: Rows, labels: Rows) -> Integers:
    """Write draws to their rows of the labels of all; return their numbers of clusters."""
    labels[at[0] : at[-1] + 1] = rows
    return rows.max(axis=1).astype(np.int64) + 1


def _summed(sizes: list[tuple[int, int]]) -> dict[int, int]:
    """Draws of each chain that has some."""
    chains = sorted({chain for chain, size in sizes if size})
    return {chain: sum(size for one, size in sizes if one == chain) for chain in chains}


def _checked_names(items: Any) -> list[Any] | None:
    if items is None:
        return None
    if isinstance(items, AbstractSet):
        raise TypeError(f"`items` must have an order, that of the labels; got a {type(items).__name__}.")
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
