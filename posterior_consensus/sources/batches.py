"""Where an accumulator keeps complete batches of draws: in memory, or in a directory as stores keep labels."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import DrawnLabels, LabelsInMemory
from posterior_consensus.ensemble.on_blocks import as_they_are
from posterior_consensus.ensemble.stored import StoredLabels
from posterior_consensus.runtime.files import LOCK, checksum_of, locked
from posterior_consensus.sources.stores import ITEMS, UNFINISHED, Put, read_items, write_items, write_labels

Rows = npt.NDArray[Any]


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
        self._count(chain, LabelsInMemory.of(labels))

    def give(self, chain: int, number: int, put: Put) -> npt.NDArray[np.int64]:
        """Give the labels of a batch to `put`; return their numbers of clusters."""
        return give(self.kept[chain][number], put)

    def close(self) -> None:
        """Let another process write to the store, if there is one."""

    def _count(self, chain: int, batch: DrawnLabels) -> None:
        self.kept.setdefault(chain, []).append(batch)


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
        self.items = self._read_items()
        self._open_all()

    def give(self, chain: int, number: int, put: Put) -> npt.NDArray[np.int64]:
        """Give the labels of a batch to `put`; return their numbers of clusters."""
        try:
            return super().give(chain, number, put)
        except ValueError as error:
            raise self._damaged(chain, number) from error

    def _at(self, chain: int, number: int) -> Path:
        return self.path / f"chain_{chain}" / f"batch_{number:06d}"

    def _damaged(self, chain: int, number: int) -> ValueError:
        where = self._at(chain, number)
        return ValueError(
            f"`store` is damaged: batch {number} of chain {chain} is missing or not as it was written. "
            f"Restore {where}, or remove it and the later batches of this chain, whose draws are then lost."
        )

    def _read_items(self) -> Items | None:
        if not (self.path / ITEMS).exists() and not any(self.path.glob("chain_*")):
            return None
        try:
            return read_items(self.path)
        except ValueError as error:
            raise ValueError(
                f"`store` is damaged: {error}. Restore it, with the file of its checksum. The draws themselves are the "
                f"Zarr arrays in {self.path}, one for each batch."
            ) from error

    def _open_all(self) -> None:
        for folder in self.path.glob("chain_*"):
            chain = int(folder.name.removeprefix("chain_"))
            numbers = {int(batch.name.removeprefix("batch_")) for batch in folder.glob("batch_*")}
            for number in range(max(numbers, default=-1) + 1):
                try:
                    self._count(chain, StoredLabels.opened(self._at(chain, number)))
                except (OSError, ValueError) as error:
                    raise self._damaged(chain, number) from error


class Writable(OnDisk):
    """Batches in a directory, which no other process can write to meanwhile.

    A batch is written under another name, and gets its own by one call of the system once it is complete.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not _is_store(path):
            raise ValueError(f"`store` must be a new or empty directory, or one of draws; got {str(path)!r}.")
        path.mkdir(parents=True, exist_ok=True)
        self._new, self._lock = path / UNFINISHED, locked(path)
        try:
            shutil.rmtree(self._new, ignore_errors=True)  # of a process that was killed
            super().__init__(path)
        except BaseException:
            self.close()
            raise

    def append(self, chain: int, labels: Rows, items: Items) -> None:
        """Write one more batch of a chain, or leave the store as it is."""
        number = len(self.kept.get(chain, ()))
        self._new.mkdir(exist_ok=True)
        try:
            if self.items is None:
                write_items(items, self._new)
                for name in (checksum_of(self._new / ITEMS).name, ITEMS):
                    (self._new / name).replace(self.path / name)
                self.items = items
            batch = LabelsInMemory.of(labels)
            part = np.arange(batch.n_draws), partial(give, batch)
            write_labels([part], labels.shape, batch.dtype, self._new / "batch")
            self._at(chain, number).parent.mkdir(exist_ok=True)
            # Ctrl-C between the next line and the count below leaves a batch uncounted, which then comes here again.
            shutil.rmtree(self._at(chain, number), ignore_errors=True)
            (self._new / "batch").replace(self._at(chain, number))
        finally:
            shutil.rmtree(self._new, ignore_errors=True)
        self._count(chain, StoredLabels.opened(self._at(chain, number)))

    def close(self) -> None:
        """Let another process write to the store."""
        self._lock.release()


def _is_store(path: Path) -> bool:
    if not path.is_dir():
        return False
    names = {file.name for file in path.iterdir()}
    return not names.isdisjoint({ITEMS, checksum_of(path / ITEMS).name}) or names <= {LOCK, UNFINISHED}
