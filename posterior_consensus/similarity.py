"""How often are two items together? The posterior similarity matrix, formed or as an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.allocations import AllocationProbabilities
from posterior_consensus.draws import PartitionDraws, as_partition_draws
from posterior_consensus.kernels import coclustering, ensemble

Floats = npt.NDArray[np.float64]

_DRAWS_AT_ONCE = 4096  # bounds the memory of the bit planes, and is a block that could come from disk


def posterior_similarity_matrix(draws: Any) -> xr.DataArray:
    """Posterior probability that two items are in the same cluster, for every pair.

    Parameters
    ----------
    draws : PartitionDraws or anything :func:`as_partition_draws` takes

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm``; its dimensions are the items' and the same with ``_bis`` appended, both with the items'
        coordinate. Symmetric, in [0, 1], and 1 where items are always together. Without weights entries are exact: each
        is a count of draws, divided once.

    Notes
    -----
    PSM_ij = sum_t w_t 1{z_ti = z_tj}; of allocation probabilities sum_t w_t p_ti' p_tj, with ones on the diagonal.
    Without weights the time is that of n^2 N / 64 x log2(clusters) bit operations;
    the memory beyond the result is a few percent of it.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.posterior_similarity_matrix([[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 2, 2]]).values
    array([[1.  , 0.75, 0.25],
           [0.75, 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    draws = as_partition_draws(draws)
    array = draws.pair_array(similarity_values(draws), "psm")
    return array.assign_attrs(long_name="posterior probability of being in the same cluster", n_draws=draws.n_draws)


def similarity_values(draws: PartitionDraws) -> Floats:
    """Return the posterior similarity matrix (n, n) as an array; the Rao-Blackwellised one of allocations."""
    return draws.similarity() if isinstance(draws, AllocationProbabilities) else coclustering_values(draws)


def coclustering_values(draws: PartitionDraws) -> Floats:
    """Return the share of draws (n, n) that have two items together."""
    similarity = np.empty((draws.n_items, draws.n_items))
    if draws.is_weighted:
        similarity[:] = 0.0
        coclustering.add_coclustering_weights(draws.labels, draws.weights, similarity)
        similarity /= similarity[0, 0]  # the sum of all weights in the same order: rounding takes no other sum above it
        return similarity
    n_planes = _n_planes(draws)
    for first in range(0, draws.n_draws, _DRAWS_AT_ONCE):
        block = draws.labels[first : first + _DRAWS_AT_ONCE]
        planes = coclustering.pack_bit_planes(block, n_planes)
        last = first + len(block) == draws.n_draws
        divisor = float(draws.n_draws) if last else 1.0
        coclustering.add_coclustering_counts(planes, len(block), similarity, first == 0, divisor)
    return similarity


def _n_planes(draws: PartitionDraws) -> int:
    """Bits of the largest label, up to a multiple of what the kernels take at once."""
    bits = int(draws.n_clusters.max() - 1).bit_length()
    return max(coclustering.PLANES_AT_ONCE, -(-bits // coclustering.PLANES_AT_ONCE) * coclustering.PLANES_AT_ONCE)


def group_planes(
    draws: PartitionDraws, groups: Sequence[npt.NDArray[np.intp]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pack groups of draws, given by row numbers, for the kernels: bit planes, first word and size of each group."""
    packed = [coclustering.pack_bit_planes(draws.labels[rows], _n_planes(draws)) for rows in groups]
    words = np.cumsum([0, *(len(planes) for planes in packed)])
    return np.concatenate(packed), words, np.array([len(rows) for rows in groups])


def _addends(draws: PartitionDraws) -> tuple[Floats, float]:
    """Weights to add before one division by their sum, and that sum; ones, whose sums are exact, for equal draws."""
    weights = draws.weights if draws.is_weighted else np.ones(draws.n_draws)
    return weights, float(weights.sum())


def similarity_operator(draws: PartitionDraws) -> LinearOperator:
    """Return the posterior similarity matrix as an operator whose products cost n x N, without an n x n array."""
    weights, total = _addends(draws)

    def product(vectors: Floats) -> Floats:
        columns = np.ascontiguousarray(vectors.reshape(draws.n_items, -1), dtype=np.float64)
        if isinstance(draws, AllocationProbabilities):
            return draws.links(columns) + columns
        table = ensemble.scatter(draws.labels, draws.starts, columns)
        return ensemble.gather(draws.labels, draws.starts, weights, table) / total

    def product_with_vector(vector: Floats) -> Floats:
        return product(vector).ravel()

    n = draws.n_items
    return LinearOperator(
        (n, n),
        dtype=np.float64,
        matvec=product_with_vector,
        rmatvec=product_with_vector,
        matmat=product,
        rmatmat=product,
    )


def similarity_row(draws: PartitionDraws, item: int) -> Floats:
    """Similarities (n,) of one item to all, at n x N cost."""
    if isinstance(draws, AllocationProbabilities):
        row = draws.links((np.arange(draws.n_items) == item)[:, np.newaxis].astype(np.float64))[:, 0]
        row[item] = 1.0
        return np.clip(row, 0.0, 1.0)
    row = ensemble.similarity_rows(draws.labels, _addends(draws)[0], np.array([item]))[0]
    return row / row[item]


def mean_similarity(draws: PartitionDraws, labels: npt.NDArray[Any]) -> Floats:
    """Mean similarity of every item to the other members of each cluster (n, K); NaN where there are none."""
    sizes = np.bincount(labels)
    others = np.tile(sizes, (labels.size, 1))
    own = np.arange(labels.size), labels
    others[own] -= 1
    if isinstance(draws, AllocationProbabilities):
        links = draws.links(np.eye(sizes.size)[labels])
        total = 1.0
    else:
        weights, total = _addends(draws)
        counts = ensemble.joint_counts(draws.labels, draws.starts, labels, sizes.size)
        links = ensemble.gather(draws.labels, draws.starts, weights, counts)
        links[own] -= total
    means = np.divide(links, total * others, out=np.full(links.shape, np.nan), where=others > 0)
    return np.clip(means, 0.0, 1.0)
