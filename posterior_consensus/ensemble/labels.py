"""The labels of all draws: where they lie, and what is read of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from posterior_consensus.executor import in_order
from posterior_consensus.kernels import coclustering
from posterior_consensus.partitions import canonical_rows

Result = TypeVar("Result")

_LABELS_IN_BLOCK = 2**24
ALIGNED = 256  # items that a search scores against the same tables


class DrawnLabels(ABC):
    """Labels of every item in every draw, numbered by first appearance, wherever they lie.

    Attributes
    ----------
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    """

    n_clusters: npt.NDArray[np.int64]

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self.n_clusters.size

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""

    @property
    @abstractmethod
    def values(self) -> npt.NDArray[Any]:
        """Cluster (n_draws, n_items) of each item in each draw, from 0 in order of first appearance, in memory."""

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """First row of each draw (n_draws + 1,) where the clusters of all draws are stacked."""
        return np.concatenate([[0], np.cumsum(self.n_clusters)]).astype(np.int64)

    @property
    def n_planes(self) -> int:
        """Bits of the largest label, up to a multiple of what the kernels take at once."""
        bits = int(self.n_clusters.max() - 1).bit_length()
        return max(coclustering.PLANES_AT_ONCE, -(-bits // coclustering.PLANES_AT_ONCE) * coclustering.PLANES_AT_ONCE)

    @property
    def item_blocks(self) -> list[slice]:
        """Items whose labels are worked on at once; of all draws they make up a small part of the memory."""
        size = max(1, _LABELS_IN_BLOCK // (self.n_draws * ALIGNED)) * ALIGNED
        return [slice(first, min(first + size, self.n_items)) for first in range(0, self.n_items, size)]

    @abstractmethod
    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(labels, items, *arguments)`` for blocks of items, all draws (n_draws, m) of each.

        Results come in the order of the items. Calls run at the same time, on threads or where the labels lie: the
        function is one of a module, changes nothing, and returns what is small beside a block. By default the blocks
        are all of `item_blocks`.
        """

    def sum_blocks(
        self, function: Callable[..., npt.NDArray[np.int64]], *arguments: Any, blocks: list[slice] | None = None
    ) -> npt.NDArray[np.int64]:
        """Add the tables of whole numbers that `map_blocks` gives."""
        tables = (table for _, table in self.map_blocks(function, *arguments, blocks=blocks))
        total = next(tables).copy()
        for table in tables:
            total += table
        return total

    def blocks(self, n_draws: int) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Rows and labels of so many draws at a time, in their order."""
        for first in range(0, self.n_draws, n_draws):
            rows = slice(first, first + n_draws)
            yield rows, self.values[rows]

    @abstractmethod
    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, those of each in one piece of memory."""

    @abstractmethod
    def of_items(self, at: npt.NDArray[np.intp]) -> DrawnLabels:
        """Keep some items, by position."""

    @abstractmethod
    def take(self, rows: npt.NDArray[np.intp]) -> DrawnLabels:
        """Keep some draws, by row number."""


@dataclass(frozen=True, eq=False)
class LabelsInMemory(DrawnLabels):
    """Labels as one array.

    Attributes
    ----------
    array : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        Cluster of each item in each draw, from 0 in order of first appearance.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    """

    array: npt.NDArray[Any]
    n_clusters: npt.NDArray[np.int64]

    @property
    def values(self) -> npt.NDArray[Any]:
        """The array."""
        return self.array

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.array.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds all labels."""
        return self.array.dtype

    def map_blocks(
        self, function: Callable[..., Result], *arguments: Any, blocks: list[slice] | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Call a function for blocks of items, on threads."""
        chosen = self.item_blocks if blocks is None else blocks
        results = in_order(function, [(self.array[:, items], items, *arguments) for items in chosen])
        return zip(chosen, results, strict=True)

    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, those of each in one piece of memory."""
        return np.ascontiguousarray(self.array[:, items].T)

    def of_items(self, at: npt.NDArray[np.intp]) -> LabelsInMemory:
        """Keep some items, by position."""
        return LabelsInMemory(*canonical_rows(self.array[:, at], int(self.n_clusters.max())))

    def take(self, rows: npt.NDArray[np.intp]) -> LabelsInMemory:
        """Keep some draws, by row number."""
        return LabelsInMemory(self.array[rows], self.n_clusters[rows])
