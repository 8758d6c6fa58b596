"""The labels of all draws: where they lie, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.kernels import coclustering
from posterior_consensus.partitions import canonical_rows


@dataclass(frozen=True, eq=False)
class DrawnLabels:
    """Labels of every item in every draw, numbered by first appearance; in memory.

    Attributes
    ----------
    values : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        Cluster of each item in each draw, from 0 in order of first appearance.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    """

    values: npt.NDArray[Any]
    n_clusters: npt.NDArray[np.int64]

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """First row of each draw (n_draws + 1,) where the clusters of all draws are stacked."""
        return np.concatenate([[0], np.cumsum(self.n_clusters)]).astype(np.int64)

    @property
    def n_planes(self) -> int:
        """Bits of the largest label, up to a multiple of what the kernels take at once."""
        bits = int(self.n_clusters.max() - 1).bit_length()
        return max(coclustering.PLANES_AT_ONCE, -(-bits // coclustering.PLANES_AT_ONCE) * coclustering.PLANES_AT_ONCE)

    def blocks(self, n_draws: int) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Rows and labels of so many draws at a time, in their order."""
        for first in range(0, len(self.values), n_draws):
            rows = slice(first, first + n_draws)
            yield rows, self.values[rows]

    def columns(self, items: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Labels (n_items, n_draws) of some items, those of each in one piece of memory."""
        return np.ascontiguousarray(self.values[:, items].T)

    def of_items(self, at: npt.NDArray[np.intp]) -> DrawnLabels:
        """Keep some items, by position."""
        return DrawnLabels(*canonical_rows(self.values[:, at], int(self.n_clusters.max())))

    def take(self, rows: npt.NDArray[np.intp]) -> DrawnLabels:
        """Keep some draws, by row number."""
        return DrawnLabels(self.values[rows], self.n_clusters[rows])
