"""Pairs of items that the draws co-cluster, found cluster by cluster: for many small clusters."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.runtime import memory

_SLOWER = 256  # time of a pair within a cluster, relative to a pair of packed labels

Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]


def has_small_clusters(draws: PartitionDraws) -> bool:
    """Whether the draws' clusters have so few pairs that counting these takes less than going through the matrix."""
    return draws.soft is None and _n_pairs(draws) * _SLOWER <= float(draws.n_items) ** 2 * draws.n_draws


def pairs_above(draws: PartitionDraws, threshold: float) -> Iterator[Pairs]:
    """Pairs of larger similarity, in order, some items at a time: the first, the second, and their similarity.

    Similarities are those of the matrix, bit for bit: each is a sum over draws in their order.
    """
    addends = draws.samples.addends[0]
    members = _memberships(draws)
    weighted = sparse.csr_array((addends[members.data], members.indices, members.indptr), members.shape)
    clusters = sparse.csr_array((np.ones(members.nnz), members.indices, members.indptr), members.shape).T.tocsr()
    total = np.cumsum(addends)[-1]
    for part in memory.parts(draws.n_items, 32 * max(1.0, _n_pairs(draws) / draws.n_items)):
        found = sparse.triu(weighted[part] @ clusters, part.start + 1, format="csr")
        found.sort_indices()
        found = found.tocoo()
        values = found.data / total
        above = values > threshold
        yield found.coords[0][above] + part.start, found.coords[1][above].astype(np.int64), values[above]


def _n_pairs(draws: PartitionDraws) -> float:
    """Ordered pairs of items within the clusters of all draws, without singletons."""
    sizes = draws.backend.sizes
    return float(np.square(sizes[sizes > 1], dtype=np.float64).sum())


def _memberships(draws: PartitionDraws) -> sparse.csr_array:
    """Items by the clusters of all draws (n, R), without singletons; the data are the numbers of the draws."""
    sizes, starts = draws.backend.sizes, draws.starts
    shared = int(sizes[sizes > 1].sum(dtype=np.int64))
    memory.check(36 * shared + 4 * sizes.size, "The clusters of all draws", "Take fewer draws.")
    kind = np.min_scalar_type(-max(sizes.size, shared))
    blocks = [found for _, found in draws.backend.map_blocks(_of_block, starts, sizes, kind)]
    counts, rows, cells = (np.concatenate(column) for column in zip(*blocks, strict=True))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
    return sparse.csr_array((rows, cells, ends), (draws.n_items, sizes.size))


def _of_block(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int32],
    kind: np.dtype[Any],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """How many clusters of several items each of these items has, and the draw and the number of each of those."""
    cells = labels.T + starts[:-1]
    shared = sizes[cells] > 1
    return shared.sum(axis=1), np.nonzero(shared)[1].astype(np.int32), cells[shared].astype(kind)
