"""Draws of a running sampler, kept in memory or in a store and available at any time."""

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.partitions import as_array, as_codes, canonical_rows
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.results import display
from posterior_consensus.runtime.arguments import as_path, check_count, is_integer
from posterior_consensus.sources.batches import Batches, give, locked_directory
from posterior_consensus.sources.stores import NOT_STORED, Part, are_large, in_memory, written

Rest = dict[int, list[npt.NDArray[Any]]]  # draws of each chain's incomplete batch


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
        self._items = None if names is None else self._items_named(len(names), names)
        self._rest: Rest = {}
        self._is_open = True
        self._lock = None if self.store is None else locked_directory(self.store)
        try:
            self._batches = Batches(self.store)
            if self._batches.items is not None:
                self._continue_store(self._batches.items, names)
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
        items = self._items or self._items_named(values.shape[1])
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

    def _items_named(self, n_items: int, names: list[Any] | None = None) -> Items:
        dim = self._item_dim or "item"
        return Items(n_items, dim, xr.Coordinates({} if names is None else {dim: names}))

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
        facts = [
            ("draws", f"{self.n_draws} of chains {', '.join(map(str, lengths))}" if lengths else "none yet"),
            ("items", "not known yet" if self._items is None else str(self._items.n_items)),
            ("kept", "in memory" if self.store is None else f"in {self.store}, {self.batch_size} draws at a time"),
        ]
        return type(self).__name__, facts, None


def read_draws(store: Path) -> PartitionDraws:
    """Read the draws in an accumulator's store, even while another process writes to it."""
    batches = Batches(store)
    return _draws_of(batches, {}, batches.items)


def _draws_of(batches: Batches, rest: Rest, items: Items | None) -> PartitionDraws:
    lengths = _lengths(batches, rest)
    if items is None or not lengths:
        raise ValueError("There must be at least one draw; the accumulator has none yet.")
    chain = np.repeat(list(lengths), list(lengths.values()))
    draw = np.concatenate([np.arange(length) for length in lengths.values()])
    samples = Samples(chain, draw, np.full(chain.size, 1 / chain.size))
    kept: list[Any] = [*batches.kept.values(), *rest.values()]
    parts, dtype = list(_by_batch(batches, rest)), np.result_type(*(one.dtype for labels in kept for one in labels))
    shape = chain.size, items.n_items
    if batches.path is not None and are_large(shape, dtype):
        beside = batches.path if os.access(batches.path, os.W_OK) else None
        return written(parts, dtype, items, samples, store=None, beside=beside)
    return PartitionDraws(items, samples, in_memory(parts, shape, dtype))


def _lengths(batches: Batches, rest: Rest) -> dict[int, int]:
    """Number of draws of each chain, in the order of the chains' numbers."""
    kept = batches.kept
    lengths = {
        chain: sum(one.n_draws for one in kept.get(chain, ())) + sum(map(len, rest.get(chain, ())))
        for chain in sorted({*kept, *rest})
    }
    return {chain: length for chain, length in lengths.items() if length}


def _by_batch(batches: Batches, rest: Rest) -> Iterator[Part]:
    """All draws, chain after chain, batch by batch."""
    first = 0
    for chain in _lengths(batches, rest):
        sized = [(one.n_draws, partial(batches.give, chain, k)) for k, one in enumerate(batches.kept.get(chain, ()))]
        sized += [(len(rows), partial(give, LabelsInMemory.of(rows))) for rows in rest.get(chain, ()) if len(rows)]
        for size, give_them in sized:
            yield np.arange(first, first + size), give_them
            first += size


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
