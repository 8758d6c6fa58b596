"""Complete batches of an accumulator: in memory, or in a directory with one store per batch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import BaseFileLock

from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import LabelBackend, LabelsInMemory
from posterior_consensus.ensemble.on_blocks import as_they_are
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime.files import locked
from posterior_consensus.sources.stores import Put, checked_labels, first_of, read_about, write_store

Rows = npt.NDArray[Any]
_LOCK = "lock"


class Batches:
    """Batches of canonical labels of several chains.

    Attributes
    ----------
    path : Path or None
        Directory with a store per batch, as it was when opened; another process may add batches. None for memory.
    kept : dict of int to list of LabelBackend
        Batches of each chain.
    items : Items or None
        Items in the store; None without a store, or while it is empty.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.kept: dict[int, list[LabelBackend]] = {}
        self.items: Items | None = None
        files = [] if path is None else path.glob(_name("*", "*"))
        numbers = [tuple(map(int, file.stem.split("_")[1::2])) for file in files]
        for chain in sorted({chain for chain, _ in numbers}):
            for number in range(1 + max(number for one, number in numbers if one == chain)):
                self._open(chain, number)

    def append(self, chain: int, labels: Rows, items: Items) -> None:
        """Add a batch (n_draws, n_items) of a chain; nothing changes if this fails."""
        kept, batch = self.kept.setdefault(chain, []), LabelsInMemory.of(labels)
        if self.path is None:
            kept.append(batch)
            return
        first = sum(one.n_draws for one in kept)
        draw = np.arange(first, first + batch.n_draws)
        samples = Samples(np.full(draw.size, chain), draw, np.full(draw.size, 1 / draw.size))
        part = np.arange(batch.n_draws), partial(give, batch)
        write_store(self._file(chain, len(kept)), [part], batch.dtype, items, samples)
        self._open(chain, len(kept))

    def give(self, chain: int, number: int, put: Put) -> npt.NDArray[np.int64]:
        """Pass the labels of a batch to `put`; return their numbers of clusters."""
        with self._damage_is_named(chain, number):
            return give(self.kept[chain][number], put)

    def _file(self, chain: int, number: int) -> Path:
        assert self.path is not None
        return self.path / _name(chain, f"{number:06d}")

    def _open(self, chain: int, number: int) -> None:
        with self._damage_is_named(chain, number):
            labels = checked_labels(self._file(chain, number))
            kept = self.kept.setdefault(chain, [])
            if first_of(labels.path) != (chain, sum(one.n_draws for one in kept)):
                raise ValueError("The file is of another batch.")
            if self.items is None:
                _, self.items = read_about(labels.path)
            if labels.n_items != self.items.n_items:
                raise ValueError("The file is of other items.")
        kept.append(labels)

    @contextmanager
    def _damage_is_named(self, chain: int, number: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise ValueError(
                f"`store` is damaged: batch {number} of chain {chain} is missing or not as it was written. Restore "
                f"{self._file(chain, number)}, or remove it and the later batches of this chain, whose draws are then "
                "lost."
            ) from error


def give(drawn: LabelBackend, put: Put) -> npt.NDArray[np.int64]:
    """Pass labels to `put` by blocks of items; return their numbers of clusters."""
    for _, block in drawn.map_blocks(as_they_are):
        put(block)
    return drawn.n_clusters


def locked_directory(path: Path) -> BaseFileLock | None:
    """Create a missing directory for batches and lock it; None without permission to write."""
    if path.exists() and not _is_for_batches(path):
        raise ValueError(f"`store` must be a new or empty directory, or one of draws; got {str(path)!r}.")
    path.mkdir(parents=True, exist_ok=True)
    return locked(path, path / _LOCK) if os.access(path, os.W_OK) else None


def _is_for_batches(path: Path) -> bool:
    if not path.is_dir():
        return False
    has_batches = any(path.glob(_name("*", "*") + "*"))  # also an unfinished batch
    return has_batches or {file.name for file in path.iterdir()} <= {_LOCK}


def is_accumulated(path: Any) -> bool:
    """Whether a path is a directory of batches."""
    return isinstance(path, (str, Path)) and any(Path(path).glob(_name("*", "*")))


def _name(chain: Any, number: Any) -> str:
    return f"chain_{chain}_batch_{number}.nc"
