"""Items by the clusters of all draws, where these are small: pairs are counted without going through the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from posterior_consensus.ensemble.labels import LabelBackend
from posterior_consensus.ensemble.partitions import connected
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime import memory

_SLOWER = 256  # time of a pair within a cluster, relative to a pair of packed labels
_LARGEST_MEAN, _LEAST_CLUSTERS = 32, 64  # mean size of an item's cluster whose pairs are few, and so many of them
_BYTES_A_PAIR_WITHIN = 100  # of a pair within a component, while a problem is made of it

Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]


def symmetric(first: npt.NDArray[Any], second: npt.NDArray[Any], values: npt.NDArray[Any], n: int) -> sparse.csr_array:
    """A sparse array (n, n) of pairs, each of which is given once, in both directions; indices are sorted."""
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    table = sparse.csr_array((np.concatenate([values, values]), ends), (n, n))
    table.sort_indices()
    return table


def has_small_clusters(backend: LabelBackend) -> bool:
    """Whether clusters have so few pairs that counting these takes less than going through the matrix."""
    return _n_pairs(backend) * _SLOWER <= float(backend.n_items) ** 2 * backend.n_draws


def has_few_pairs(backend: LabelBackend) -> bool:
    """Whether there are so many small clusters that counting all of their pairs takes less than a search."""
    size = _n_pairs(backend) / (backend.n_items * backend.n_draws)  # of an item's cluster, if it is not alone
    return size <= _LARGEST_MEAN and size * _LEAST_CLUSTERS <= backend.n_items


def similarities_within_components(
    backend: LabelBackend, samples: Samples, threshold: float
) -> sparse.csr_array | None:
    """Similarities (n, n) of the co-clustered pairs within components, without the diagonal.

    Components are those of the graph of pairs of larger similarity than `threshold`. None if the memory budget does not
    hold the clusters of all draws, or the pairs.
    """
    n = backend.n_items
    if not memory.fits(_bytes_of_memberships(backend, samples)):
        return None
    members = Memberships.of(backend, samples)
    first, second, _ = _joined(members.pairs_above(threshold))
    component = connected(first, second, n)
    n_pairs = min(float(np.square(np.bincount(component), dtype=np.float64).sum()), _n_pairs(backend))
    if not memory.fits(_BYTES_A_PAIR_WITHIN * n_pairs):
        return None
    pairs = _joined(
        (one[same], other[same], values[same])
        for one, other, values in members.pairs_above(0.0)
        for same in [component[one] == component[other]]
    )
    return symmetric(*pairs, n)


def _joined(pairs: Iterator[Pairs]) -> Pairs:
    """All of these pairs."""
    first, second, values = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(values)


class Memberships(NamedTuple):
    """Items by the clusters of all draws, for products that count the draws in which two items are co-clustered."""

    weighted: sparse.csr_array  # (n, R): weight of the draw of each cluster of each item
    clusters: sparse.csr_array  # (R, n): ones
    total: float  # sum of the weights
    bytes_an_item: float  # estimated memory of an item's row of the product

    @classmethod
    def of(cls, backend: LabelBackend, samples: Samples) -> Memberships:
        """Count the clusters of all draws."""
        addends = samples.addends[0]
        members, kind = _memberships(backend, samples), _kind_of_sums(samples)
        weights = addends.astype(kind)[members.data]
        weighted = sparse.csr_array((weights, members.indices, members.indptr), members.shape)
        ones = sparse.csr_array((np.ones(members.nnz, kind), members.indices, members.indptr), members.shape)
        bytes_an_item = 32 * max(1.0, _n_pairs(backend) / backend.n_items)
        return cls(weighted, ones.T.tocsr(), float(np.cumsum(addends)[-1]), bytes_an_item)

    def pairs_above(self, threshold: float) -> Iterator[Pairs]:
        """Pairs of larger similarity, in order, some items at a time: the first, the second, and their similarity.

        Similarities are those of the matrix, bit for bit: each is a sum over draws in their order.
        """
        for part in memory.parts(self.weighted.shape[0], self.bytes_an_item):
            found = sparse.triu(self.weighted[part] @ self.clusters, part.start + 1, format="csr")
            found.sort_indices()
            found = found.tocoo()
            values = found.data / self.total
            above = values > threshold
            yield found.coords[0][above] + part.start, found.coords[1][above].astype(np.int64), values[above]


def _n_pairs(backend: LabelBackend) -> float:
    """Ordered pairs of items within the clusters of all draws, without singletons."""
    sizes = backend.sizes
    return float(np.square(sizes[sizes > 1], dtype=np.float64).sum())


def _kind_of_sums(samples: Samples) -> np.dtype[Any]:
    """Type of sums of weights: counts if these are equal."""
    return np.dtype(np.float64) if samples.is_weighted else np.min_scalar_type(samples.n_draws)


def _n_shared(backend: LabelBackend) -> int:
    """Number of items of all draws' clusters, without singletons."""
    sizes = backend.sizes
    return int(sizes[sizes > 1].sum(dtype=np.int64))


def _bytes_of_memberships(backend: LabelBackend, samples: Samples) -> int:
    """Memory of :class:`Memberships`, while they are made."""
    return (20 + 2 * _kind_of_sums(samples).itemsize) * _n_shared(backend) + 4 * backend.sizes.size


def _memberships(backend: LabelBackend, samples: Samples) -> sparse.csr_array:
    """Items by the clusters of all draws (n, R), without singletons; the data are the numbers of the draws."""
    words = samples.words
    of_all = f"The clusters of all {words.draws}"
    memory.check(_bytes_of_memberships(backend, samples), of_all, f"Take fewer {words.draws}.")
    sizes, starts, shared = backend.sizes, backend.starts, _n_shared(backend)
    kind = np.min_scalar_type(-max(sizes.size, shared))
    blocks = [found for _, found in backend.map_blocks(_of_block, starts, sizes, kind)]
    counts, rows, cells = (np.concatenate(column) for column in zip(*blocks, strict=True))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
    return sparse.csr_array((rows, cells, ends), (backend.n_items, sizes.size))


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
