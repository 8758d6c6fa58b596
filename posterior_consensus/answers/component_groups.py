"""The components of each draw merged into groups, so that the loss of the draw's own similarities is least."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.runtime import memory
from posterior_consensus.search.trees import cut, tree

_MOST_ENUMERATED = 8  # components: 4,140 partitions


def grouped(similar: Floats, sizes: Floats, tau: float) -> npt.NDArray[np.intp]:
    """Group of each component (n_draws, K), of least Binder loss at a pair threshold.

    Parameters
    ----------
    similar : ndarray of shape (n_draws, K, K)
        Similarities of the components of each draw.
    sizes : ndarray of shape (n_draws, K)
        Their numbers of items; those without any are the last ones of a draw.
    tau : float

    Notes
    -----
    Among all partitions of at most eight components, else among the cuts of the components' tree of average linkage.
    """
    n_components = sizes.shape[1]
    costs = sizes[:, :, np.newaxis] * sizes[:, np.newaxis] * (tau - similar)
    groups = np.broadcast_to(np.arange(n_components), sizes.shape).copy()
    occupied = np.sum(sizes > 0, axis=1)
    few = np.flatnonzero(occupied <= _MOST_ENUMERATED)
    width = min(_MOST_ENUMERATED, n_components)
    groups[few, :width] = _of_all(costs[few, :width, :width])
    for row in np.flatnonzero(occupied > _MOST_ENUMERATED):
        own = occupied[row]
        cuts = cut(tree(similar[row, :own, :own], "average"), range(1, own + 1))
        together = cuts[:, :, np.newaxis] == cuts[:, np.newaxis]
        groups[row, :own] = cuts[np.argmin(np.sum(together * costs[row, :own, :own], axis=(1, 2)))]
    return groups


def _of_all(costs: Floats) -> npt.NDArray[np.intp]:
    """The best of all partitions of a few components."""
    partitions = np.concatenate(list(enumerate_partitions(costs.shape[1]))).astype(np.intp)
    first, second = np.triu_indices(costs.shape[1], 1)
    together = (partitions[:, first] == partitions[:, second]).astype(np.float64)
    best = np.empty(len(costs), np.intp)
    for rows in memory.parts(len(costs), 8 * len(partitions)):
        best[rows] = np.argmin(costs[rows][:, first, second] @ together.T, axis=1)
    return partitions[best]
