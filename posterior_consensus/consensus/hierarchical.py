"""Hierarchical clustering of the items by how rarely they are together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from posterior_consensus.consensus.selection import Candidate, cluster_range, least_loss
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.info import NumbersInfo
from posterior_consensus.loss_record import Objective
from posterior_consensus.partitions import canonical_rows, smallest_dtype

LINKAGES = ("average", "complete")


def hierarchical(
    draws: PairSource,
    loss: Objective,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    linkage: Literal["average", "complete"] = "average",
) -> Candidate:
    """Cut the tree of the distances 1 - PSM where the expected loss is least.

    Parameters
    ----------
    linkage : {"average", "complete"}

    Notes
    -----
    As `minbinder` and `minVI` of the R packages mcclust and mcclust.ext do: Fritsch and Ickstadt (2009), Bayesian
    Analysis 4(2), 367-391, https://doi.org/10.1214/09-BA414.
    """
    if linkage not in LINKAGES:
        raise ValueError(f"`linkage` must be one of {', '.join(map(repr, LINKAGES))}; got {linkage!r}.")
    numbers = cluster_range(draws, n_clusters, max_clusters)
    if draws.n_items == 1:
        return Candidate(np.zeros(1, np.int32))
    cuts = cut(tree(draws.shared_similarity, linkage), numbers)
    best, losses = least_loss(draws, loss, [cuts])
    return Candidate(best, NumbersInfo(linkage=linkage, n_clusters_tried=list(numbers), expected_losses=losses))


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
