"""Trees of the items, and their cuts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from posterior_consensus.ensemble.expectation import least_loss
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import canonical_rows, smallest_dtype
from posterior_consensus.losses.record import Loss


def cluster_range(draws: PairSource, n_clusters: int | None, max_clusters: int | None) -> range:
    """Numbers of clusters for a method to try: the requested one, or 1 to the largest allowed or in any draw.

    With a similarity matrix alone, the largest is the number of items.
    """
    if n_clusters is not None:
        return range(n_clusters, n_clusters + 1)
    return range(1, (max_clusters or draws.most_clusters) + 1)


def best_cut(
    source: PairSource, loss: Loss, numbers: Sequence[int], linkage: str
) -> tuple[npt.NDArray[Any], list[float]]:
    """Cut the tree of the items where the expected loss is least, and give the expected losses of all cuts."""
    if source.n_items == 1:
        return np.zeros(1, np.int32), []
    return least_loss(source, loss, [cut(tree(source.shared_similarity, linkage), numbers)])


def tree(similarity: npt.NDArray[np.float64], linkage: str) -> npt.NDArray[np.float64]:
    """Cluster the items by the distances 1 - similarity: the n - 1 merges, as SciPy has them."""
    merges: npt.NDArray[np.float64] = hierarchy.linkage(squareform(1.0 - similarity, checks=False), linkage)
    return merges


def cut(merges: npt.NDArray[np.float64], numbers: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Cut a tree into these numbers of clusters: canonical labels (len(numbers), n).

    The clusters of a cut are intervals of the tree's leaves, and each merge takes away the border between two of them.
    """
    n_items = len(merges) + 1
    children = merges[:, :2].astype(np.int64).tolist()
    sizes = [1] * n_items + merges[:, 3].astype(np.int64).tolist()
    begins = [0] * (2 * n_items - 1)
    for node in range(2 * n_items - 2, n_items - 1, -1):
        left, right = children[node - n_items]
        begins[left], begins[right] = begins[node], begins[node] + sizes[left]
    borders = np.array([begins[right] for _, right in children])
    changes = np.zeros((len(numbers), n_items), np.int64)
    for row, number in enumerate(numbers):
        changes[row, borders[n_items - number :]] = 1
    cuts = changes.cumsum(axis=1)[:, begins[:n_items]]
    return canonical_rows(cuts.astype(smallest_dtype(n_items)), n_items)[0]
