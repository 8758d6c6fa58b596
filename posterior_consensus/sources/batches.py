"""Where an accumulator keeps complete batches of draws: in memory, or in a directory with a store for each."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import BaseFileLock

from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import DrawnLabels, LabelsInMemory
from posterior_consensus.ensemble.on_blocks import as_they_are
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime.files import locked
from posterior_consensus.sources.stores import Put, checked_labels, read_about, write_store

Rows = npt.NDArray[Any]
_LOCK = "lock"


class Batches:
    """Batches of canonical labels of several chains, in memory.

    Attributes
    ----------
    kept : dict of int to list of DrawnLabels
        Batches of each chain.
    items : Items or None
        What a store says of the items; None without a store, or before there are labels in it.
    """

    def __init__(self) -> None:
        self.kept: dict[int, list[DrawnLabels]] = {}
        self.items: Items | None = None

    def append(self, chain: int, labels: Rows, items: Items) -> None:
        """Keep one more batch (n_draws, n_items) of a chain."""
        self.kept.setdefault(chain, []).append(LabelsInMemory.of(labels))

    def give(self, chain: int, number: int, put: Put) -> npt.NDArray[np.int64]:
        """Give the labels of a batch to `put`; return their numbers of clusters."""
        return give(self.kept[chain][number], put)

    def close(self) -> None:
        """Let another process write to the store, if there is one."""


def give(drawn: DrawnLabels, put: Put) -> npt.NDArray[np.int64]:
    """Give labels to `put`, some items after others; return their numbers of clusters."""
    for _, block in drawn.map_blocks(as_they_are):
        put(block)
    return drawn.n_clusters


class OnDisk(Batches):
    """Batches in a directory, as they are when it is opened; another process may write to it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        numbers = [tuple(map(int, file.stem.split("_")[1::2])) for file in path.glob(_name("*", "*"))]
        for chain in sorted({chain for chain, _ in numbers}):
            for number in range(1 + max(number for one, number in numbers if one == chain)):
                self._open(chain, number)

    def give(self, chain: int, number: int, put: Put) -> npt.NDArray[np.int64]:
        """Give the labels of a batch to `put`; return their numbers of clusters."""
        try:
            return super().give(chain, number, put)
        except ValueError as error:
            raise self._damaged(chain, number) from error

    def _file(self, chain: int, number: int) -> Path:
        return self.path / _name(chain, f"{number:06d}")

    def _open(self, chain: int, number: int) -> None:
        try:
            labels = checked_labels(self._file(chain, number))
            if self.items is None:
                _, self.items = read_about(labels.path)
        except ValueError as error:
            raise self._damaged(chain, number) from error
        self.kept.setdefault(chain, []).append(labels)

    def _damaged(self, chain: int, number: int) -> ValueError:
        return ValueError(
            f"`store` is damaged: batch {number} of chain {chain} is missing or not as it was written. Restore "
            f"{self._file(chain, number)}, or remove it and the later batches of this chain, whose draws are then lost."
        )


class Writable(OnDisk):
    """Batches in a directory, which no other process can write to meanwhile.

    Nothing is written and no lock is taken in a directory in which this process may not write.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not _is_store(path):
            raise ValueError(f"`store` must be a new or empty directory, or one of draws; got {str(path)!r}.")
        path.mkdir(parents=True, exist_ok=True)
        self._lock: BaseFileLock | None = locked(path, path / _LOCK) if os.access(path, os.W_OK) else None
        try:
            super().__init__(path)
        except BaseException:
            self.close()
            raise

    def append(self, chain: int, labels: Rows, items: Items) -> None:
        """Write one more batch of a chain, or leave the store as it is."""
        kept = self.kept.get(chain, ())
        first, batch = sum(one.n_draws for one in kept), LabelsInMemory.of(labels)
        draw = np.arange(first, first + batch.n_draws)
        samples = Samples(np.full(draw.size, chain), draw, np.full(draw.size, 1 / draw.size))
        part = np.arange(batch.n_draws), partial(give, batch)
        write_store(self._file(chain, len(kept)), [part], labels.shape, batch.dtype, items, samples)
        self._open(chain, len(kept))

    def close(self) -> None:
        """Let another process write to the store."""
        if self._lock is not None:
            self._lock.release()


def _name(chain: Any, number: Any) -> str:
    return f"chain_{chain}_batch_{number}.nc"


def _is_store(path: Path) -> bool:
    if not path.is_dir():
        return False
    has_batches = any(path.glob(_name("*", "*") + "*"))  # perhaps an unfinished one
    return has_batches or {file.name for file in path.iterdir()} <= {_LOCK}
