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


def check_count(name: str, value: Any) -> int:
    """Take a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1; got {value}.")
    return int(value)


def check_above(name: str, value: Any, lower: float) -> float:
    """Take a finite number above `lower`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    if not lower < value < np.inf:
        raise ValueError(f"`{name}` must be a finite number above {lower}; got {value!r}.")
    return float(value)


def as_generator(random_seed: Any) -> np.random.Generator:
    """Take whatever seeds a Generator, or one as it is."""
    try:
        if isinstance(random_seed, bool):
            raise TypeError
        return np.random.default_rng(random_seed)
    except (TypeError, ValueError) as error:
        wanted = "a whole number from 0, a Generator or None"
        raise type(error)(f"`random_seed` must be {wanted}; got {random_seed!r}.") from None


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
