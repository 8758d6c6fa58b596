"""What a method returns, and how one of several partitions is chosen by its expected loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.draws import PartitionDraws
from posterior_consensus.expectation import mean_loss
from posterior_consensus.losses import PartitionLoss
from posterior_consensus.partitions import Labels

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """What a consensus method found.

    Attributes
    ----------
    labels : ndarray of shape (n_items,)
        Labels of any names.
    info : dict
        What there is to tell of the search: numbers, strings and lists of them.
    lower_bound : float, optional
        No partition's expected loss is below it, if the method found out.
    """

    labels: npt.NDArray[Any]
    info: dict[str, Any] = field(default_factory=dict)
    lower_bound: float | None = None


def cluster_range(draws: PartitionDraws, n_clusters: int | None, max_clusters: int | None) -> range:
    """Numbers of clusters a method is to try: the one asked for, or 1 to the largest allowed or in any draw."""
    if n_clusters is not None:
        return range(n_clusters, n_clusters + 1)
    return range(1, (max_clusters or most_clusters(draws)) + 1)


def most_clusters(draws: PartitionDraws) -> int:
    """The largest number of clusters in any draw; those of weight 0 are not in the posterior."""
    return int(draws.n_clusters[draws.weights > 0].max())


def allowed(partitions: npt.NDArray[Any], n_clusters: int | None, max_clusters: int | None) -> npt.NDArray[Any]:
    """Keep the canonical partitions (P, n) with as many clusters as asked for."""
    counts = partitions.max(axis=1).astype(np.int64) + 1
    if n_clusters is not None:
        return partitions[counts == n_clusters]
    return partitions if max_clusters is None else partitions[counts <= max_clusters]


def filled(scores: Floats, labels: Labels) -> Labels:
    """Give each label of `scores` (n, K) that no item has the item whose score falls least, out of several with one."""
    labels = labels.copy()
    sizes = np.bincount(labels, minlength=scores.shape[1])
    for k in np.flatnonzero(sizes == 0):
        losses = scores[np.arange(labels.size), labels] - scores[:, k]
        losses[sizes[labels] == 1] = np.inf
        item = int(losses.argmin())
        sizes[labels[item]] -= 1
        sizes[k] += 1
        labels[item] = k
    return labels


def least_loss(
    draws: PartitionDraws, loss: PartitionLoss, blocks: Iterable[npt.NDArray[Any]]
) -> tuple[npt.NDArray[Any], list[float]]:
    """The first partition of least expected loss among blocks of them (P, n), and all expected losses."""
    best: npt.NDArray[Any] = np.empty(0, np.int32)
    least, losses = np.inf, []
    for block in blocks:
        if len(block) == 0:
            continue
        expected = mean_loss(draws, block, loss)
        losses += expected.tolist()
        if expected.min() < least:
            best, least = block[expected.argmin()], expected.min()
    return best, losses
