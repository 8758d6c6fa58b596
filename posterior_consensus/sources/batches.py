"""Where an accumulator keeps complete batches of draws: in memory, or as Zarr arrays in a directory."""

from __future__ import annotations

import json
import shutil
import zlib
from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.runtime.files import LOCK, checksum_of, locked, sign, signed

Rows = npt.NDArray[Any]

_FORMAT = "posterior_consensus draws 2"
_ABOUT, _UNFINISHED = "about.json", "unfinished"


class Batches(ABC):
    """Batches of canonical labels (n_draws, n_items) of several chains.

    Attributes
    ----------
    sizes : dict of int to list of int
        Number of draws in each batch of each chain.
    dtype : dtype
        Type that holds the labels of all batches.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, list[int]] = {}
        self.dtype = np.dtype(np.uint8)

    @property
    def lengths(self) -> dict[int, int]:
        """Number of draws of each chain."""
        return {chain: sum(sizes) for chain, sizes in self.sizes.items()}

    def _count(self, chain: int, labels: Any) -> None:
        self.sizes.setdefault(chain, []).append(labels.shape[0])
        self.dtype = np.promote_types(self.dtype, labels.dtype)

    @abstractmethod
    def append(self, chain: int, labels: Rows) -> None:
        """Keep one more batch of a chain."""

    @abstractmethod
    def read(self, chain: int, number: int) -> Rows:
        """Give one batch of a chain, by number."""


class InMemory(Batches):
    """Batches as arrays."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[int, list[Rows]] = {}

    def append(self, chain: int, labels: Rows) -> None:
        """Keep one more batch of a chain."""
        self._kept.setdefault(chain, []).append(labels)
        self._count(chain, labels)

    def read(self, chain: int, number: int) -> Rows:
        """Give one batch of a chain, by number."""
        return self._kept[chain][number]


class OnDisk(Batches):
    """Batches as Zarr arrays in a directory, which no other process can write to meanwhile.

    An array is written under another name, and gets its own by one call of the system once it is complete.

    Attributes
    ----------
    about : dict
        Metadata of the store; empty before there are labels.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        if find_spec("zarr") is None:
            raise ImportError("`store` needs the package zarr: pip install 'posterior-consensus[zarr]'.")
        if path.exists() and not _is_store(path):
            raise ValueError(f"`store` must be a new or empty directory, or one of draws; got {str(path)!r}.")
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = locked(path)
        try:
            shutil.rmtree(path / _UNFINISHED, ignore_errors=True)  # of a process that was killed
            self.about = self._read_about()
            self._count_all()
        except BaseException:
            self.close()
            raise

    def describe(self, about: dict[str, Any]) -> None:
        """Write what is to be known of the store."""
        new = self.path / _UNFINISHED / _ABOUT
        new.parent.mkdir(exist_ok=True)
        try:
            new.write_text(json.dumps({"format": _FORMAT, **about}), encoding="utf-8")
            sign(new)
            for file in (checksum_of(new), new):
                file.replace(self.path / file.name)
        finally:
            shutil.rmtree(new.parent, ignore_errors=True)
        self.about = about

    def append(self, chain: int, labels: Rows) -> None:
        """Write one more batch of a chain, or leave the store as it is."""
        import zarr

        number = len(self.sizes.get(chain, ()))
        new = self.path / _UNFINISHED / "batch"
        new.parent.mkdir(exist_ok=True)
        try:
            # No canonical row consists of the fill value, so that a chunk is never left out as one that is empty.
            array = zarr.open_array(
                str(new),
                mode="w",
                shape=labels.shape,
                chunks=labels.shape,
                dtype=labels.dtype,
                fill_value=np.iinfo(labels.dtype).max,
            )
            array[:] = labels
            array.attrs.update({"layout": _layout(labels), "crc32": _checksum(labels)})
            self._at(chain, number).parent.mkdir(exist_ok=True)
            # Ctrl-C between the next line and the count below leaves a batch uncounted, which then comes here again.
            shutil.rmtree(self._at(chain, number), ignore_errors=True)
            new.replace(self._at(chain, number))
        finally:
            shutil.rmtree(new.parent, ignore_errors=True)
        self._count(chain, labels)

    def read(self, chain: int, number: int) -> Rows:
        """Give one batch of a chain, by number."""
        array = self._opened(chain, number)
        try:
            labels, checksum = np.asarray(array[:]), array.attrs["crc32"]
        except Exception as error:  # what a codec raises for bytes that are not its own is of many kinds
            raise self._damaged(chain, number) from error
        if _checksum(labels) != checksum:
            raise self._damaged(chain, number)
        return labels

    def close(self) -> None:
        """Let another process write to the store."""
        self._lock.release()

    def _at(self, chain: int, number: int) -> Path:
        return self.path / f"chain_{chain}" / f"batch_{number:06d}"

    def _opened(self, chain: int, number: int) -> Any:
        import zarr

        try:
            array = zarr.open_array(str(self._at(chain, number)), mode="r")
            is_whole = array.attrs["layout"] == _layout(array)
        except Exception as error:
            raise self._damaged(chain, number) from error
        if not is_whole:
            raise self._damaged(chain, number)
        return array

    def _damaged(self, chain: int, number: int) -> ValueError:
        where = self._at(chain, number)
        return ValueError(
            f"`store` is damaged: batch {number} of chain {chain} is missing or not as it was written. "
            f"Restore {where}, or remove it and the later batches of this chain, whose draws are then lost."
        )

    def _read_about(self) -> dict[str, Any]:
        file = self.path / _ABOUT
        if not file.exists() and not any(self.path.glob("chain_*")):
            return {}
        try:
            about = json.loads(signed(file))
        except ValueError as error:
            raise ValueError(
                f"`store` is damaged: {error}. Restore it, with the file of its checksum. The draws themselves are the "
                f"Zarr arrays in {self.path}, one for each batch."
            ) from error
        if about.pop("format", None) != _FORMAT:
            raise ValueError(f"`store` must have the format of this version; {file} has another.")
        return about

    def _count_all(self) -> None:
        for folder in self.path.glob("chain_*"):
            chain = int(folder.name.removeprefix("chain_"))
            numbers = {int(batch.name.removeprefix("batch_")) for batch in folder.glob("batch_*")}
            for number in range(max(numbers, default=-1) + 1):
                self._count(chain, self._opened(chain, number))


def _is_store(path: Path) -> bool:
    if not path.is_dir():
        return False
    names = {file.name for file in path.iterdir()}
    return not names.isdisjoint({_ABOUT, checksum_of(path / _ABOUT).name}) or names <= {LOCK, _UNFINISHED}


def _layout(labels: Any) -> str:
    return f"{labels.shape} {labels.dtype.str}"


def _checksum(labels: Rows) -> int:
    return zlib.crc32(_layout(labels).encode() + np.ascontiguousarray(labels).tobytes())
