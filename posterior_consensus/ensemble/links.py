"""Sums of similarities over clusters: of items with their own cluster, and with the nearest other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.tolerances import ROUNDING

_SMALL = 32  # items of a cluster


def own_links(similarity: Floats, partition: npt.NDArray[Any]) -> Floats:
    """Sum (n,) of every item's similarities to the members of its cluster, itself included."""
    order = np.argsort(partition, kind="stable")
    sizes = np.bincount(partition)
    starts = np.cumsum(sizes) - sizes
    links = np.empty(partition.size)
    for k in np.flatnonzero(sizes > _SMALL):
        members = order[starts[k] : starts[k] + sizes[k]]
        links[members] = similarity[np.ix_(members, members)].sum(axis=1)
    for size in np.unique(sizes[sizes <= _SMALL]):  # clusters of one size at once: there can be thousands
        members = order[starts[sizes == size][:, np.newaxis] + np.arange(size)]
        links[members] = similarity[members[:, :, np.newaxis], members[:, np.newaxis]].sum(axis=2)
    return links


def own_and_nearest_of(
    links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp], noise: int | None
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Result of :meth:`PairSource.own_and_nearest` for a block of items."""
    items, means = np.arange(labels.size), mean_similarities(links, labels, total, sizes)
    own = means[items, labels]
    if means.shape[1] == 1:
        return own, np.full(labels.size, -1, np.int32), np.full(labels.size, np.nan)
    means[items, labels] = -1.0
    if noise is not None:
        own[labels == noise] = np.nan
        means[:, noise:] = -1.0
    ties = means >= means.max(axis=1, keepdims=True) - ROUNDING
    nearest = ties.argmax(axis=1).astype(np.int32)
    other = means[items, nearest]
    if noise is not None:
        nearest[other < 0], other[other < 0] = -1, np.nan
    return own, nearest, other


def mean_similarities(links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp]) -> Floats:
    """Mean similarity (m, K) of a block's items to the other members of each cluster; NaN where there are none."""
    others = np.tile(sizes, (labels.size, 1))
    others[np.arange(labels.size), labels] -= 1
    means = np.divide(links, total * others, out=np.full(links.shape, np.nan), where=others > 0)
    return np.clip(means, 0.0, 1.0)


def own_and_nearest_by_counts(
    similarity: Floats, n_draws: int, labels: npt.NDArray[Any]
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Return :meth:`PairSource.own_and_nearest` of draws without weights and noise by their matrix: equal bit for bit.

    Numbers of draws are integers, whose sums are exact in any order. For many partitions of the same draws.
    """
    links = np.rint(n_draws * similarity) @ np.eye(labels.max() + 1)[labels]
    links[np.arange(labels.size), labels] -= n_draws
    return own_and_nearest_of(links, labels, float(n_draws), np.bincount(labels), None)
