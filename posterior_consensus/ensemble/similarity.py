"""The posterior similarity matrix: pairs above a limit, errors, products, and means of clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.ensemble.draws import PartitionDraws, hard_draws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import connected
from posterior_consensus.ensemble.scored_pairs import ScoredPairs, symmetric
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.tolerances import ROUNDING

_SLOWER = 256  # time of a pair within a cluster, relative to a pair of packed labels
_LARGEST_MEAN, _LEAST_CLUSTERS = 32, 64  # mean size of an item's cluster whose pairs are few, and so many of them
_ITEMS_IN_MATRIX, _MANY, _SHARE = 4_000, 16, 8  # where the matrix costs less than links with many clusters
_BYTES_A_PAIR_WITHIN = 100  # of a pair within a component, while a problem is made of it

Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]


def pairs_of_similarity_above(source: PairSource, threshold: float) -> Iterator[Pairs]:
    """Pairs of two items of larger similarity, in order: the first, the second, and their similarity."""
    if isinstance(source, ScoredPairs) and source.unscored <= threshold:
        one, other, values = source.pairs
        above = values > threshold
        yield one[above], other[above].astype(np.int64), values[above]
        return
    draws = hard_draws(source)
    if draws is not None and has_small_clusters(draws):
        yield from pairs_above(draws.without_zero_weights(), threshold)
        return
    for first, rows in source.row_blocks():
        # Pairs of these items and later ones: where entries are rounded, both of a pair must come from one sum.
        later = rows[:, first:]
        row, column = np.nonzero(np.triu(later > threshold, 1))
        yield row + first, column + first, later[row, column]


def group_planes(
    draws: PartitionDraws, groups: Sequence[npt.NDArray[np.intp]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pack groups of draws, given by row numbers, for the kernels: bit planes, first word and size of each group."""
    packed = [coclustering.pack_bit_planes(draws.backend.of_draws(rows), draws.backend.n_planes) for rows in groups]
    words = np.cumsum([0, *(len(planes) for planes in packed)])
    return np.concatenate(packed), words, np.array([len(rows) for rows in groups])


def similarity_errors(draws: PartitionDraws) -> Floats:
    """Monte Carlo standard error (n, n) of every entry of the similarity matrix; NaN for fewer than four draws.

    Each independent run is a batch with a factor f_t, and the entries are 0 or 1. With p the similarity and q the one
    under weights f_t^2 / F of sum 1, the squared error sum_t f_t^2 (a_t - p)^2 is F (q (1 - 2 p) + p^2).
    """
    what = f"Standard errors of the similarity matrix of {draws.n_items:,} items"  # from batches, and from chains
    memory.check(16 * draws.n_items**2, what, "Take the errors of some items: `of_items`.")
    if not draws.samples.has_errors:
        return np.full((draws.n_items, draws.n_items), np.nan)
    if draws.samples.independent and draws.soft is None:
        squares = np.square([factor for _, factor in draws.samples.batch_factors()])
        if np.isnan(squares).any():
            return np.full((draws.n_items, draws.n_items), np.nan)
        p = draws.shared_similarity
        q = replace(draws, samples=draws.samples.weighted(squares)).shared_similarity
        return np.sqrt(np.maximum(squares.sum() * (q * (1 - 2 * p) + np.square(p)), 0.0))
    if draws.denominator() is None:
        return draws.samples.error_by_batches(draws.shared_similarity, lambda rows: draws.take(rows).shared_similarity)
    samples = draws.samples
    batches, chains = samples.batches, samples.sequences
    ends = np.isin([batch[-1] for batch in batches], [rows[-1] for rows in chains])
    spread = coclustering.spread_of_batches(*group_planes(draws, batches), draws.n_items, ends)
    factors = [len(parts) / max(len(parts) - 1, 1) / draws.n_draws**2 for parts in (batches, chains)]
    errors: Floats = spread[0]
    for rows in slices(draws.n_items, max(1, memory.CELLS_AT_ONCE // draws.n_items)):
        of_batches, of_chains = (factor * part[rows] for factor, part in zip(factors, spread, strict=True))
        errors[rows] = np.sqrt(samples.by_chains_if_they_differ(of_batches, of_chains))
    return errors


def similarity_operator(source: PairSource) -> LinearOperator:
    """Return the posterior similarity matrix as an operator: of draws, products cost n x N and no n x n array."""
    n = source.n_items

    def product(vectors: Floats) -> Floats:
        return source.product(np.asarray(vectors.reshape(n, -1), dtype=np.float64))

    products = dict.fromkeys(("matvec", "rmatvec", "matmat", "rmatmat"), product)
    return LinearOperator((n, n), dtype=np.float64, **products)


def own_and_nearest(
    source: PairSource, labels: npt.NDArray[Any], noise: int | None = None
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Mean similarity (n,) of every item to the others of its cluster, the nearest other cluster, and that to it.

    NaN for an item alone, and -1 and NaN if there is no other cluster. `noise` is the label of items in no cluster.
    """
    if isinstance(source, ScoredPairs):
        return source.own_and_nearest(labels)
    n_clusters = int(labels.max()) + 1
    if (draws := hard_draws(source)) is not None and n_clusters > 1 and noise is None:
        drawn = draws.backend
        if not memory.fits(4 * int(draws.starts[-1]) * n_clusters):
            begins = np.concatenate([[0], np.cumsum(drawn.sizes, dtype=np.int64)])
            addends, total = draws.samples.addends
            sizes, kernel = np.bincount(labels), ensemble.own_and_nearest
            own, nearest, other = kernel(drawn.values, draws.starts, begins, addends, total, labels, sizes)
            return own, nearest, other
        of_all_pairs = draws.n_items <= _ITEMS_IN_MATRIX and _MANY * n_clusters > draws.n_items
        if of_all_pairs and _SHARE * draws.n_draws >= draws.n_items and not draws.samples.is_weighted:
            return own_and_nearest_by_counts(draws.shared_similarity, draws.n_draws, labels)
    found = [one for _, one in source.map_links(labels, _own_and_nearest_of, np.bincount(labels), noise)]
    own, nearest, other = (np.concatenate(column) for column in zip(*found, strict=True))
    return own, nearest, other


def own_and_nearest_by_counts(
    similarity: Floats, n_draws: int, labels: npt.NDArray[Any]
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Return :func:`own_and_nearest` of draws without weights and noise, given their matrix: equal bit for bit.

    Numbers of draws are integers, whose sums are exact in any order. For many partitions of the same draws.
    """
    links = np.rint(n_draws * similarity) @ np.eye(labels.max() + 1)[labels]
    links[np.arange(labels.size), labels] -= n_draws
    return _own_and_nearest_of(links, labels, float(n_draws), np.bincount(labels), None)


def _own_and_nearest_of(
    links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp], noise: int | None
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Result of :func:`own_and_nearest` for a block of items."""
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


def has_small_clusters(draws: PartitionDraws) -> bool:
    """Whether the draws' clusters have so few pairs that counting these takes less than going through the matrix."""
    return draws.soft is None and _n_pairs(draws) * _SLOWER <= float(draws.n_items) ** 2 * draws.n_draws


def has_few_pairs(draws: PartitionDraws) -> bool:
    """Whether hard draws have so many small clusters that counting all of their pairs takes less than a search."""
    if draws.soft is not None:
        return False
    size = _n_pairs(draws) / (draws.n_items * draws.n_draws)  # of an item's cluster, if it is not alone
    return size <= _LARGEST_MEAN and size * _LEAST_CLUSTERS <= draws.n_items


def pairs_above(draws: PartitionDraws, threshold: float) -> Iterator[Pairs]:
    """Pairs of larger similarity, in order, some items at a time: the first, the second, and their similarity.

    Similarities are those of the matrix, bit for bit: each is a sum over draws in their order.
    """
    yield from _Memberships.of(draws).pairs_above(threshold)


def similarities_within_components(draws: PartitionDraws, threshold: float) -> sparse.csr_array | None:
    """Similarities (n, n) of the co-clustered pairs within components, without the diagonal.

    Components are those of the graph of pairs of larger similarity than `threshold`. None if the memory budget does not
    hold the clusters of all draws, or the pairs.
    """
    n = draws.n_items
    if not memory.fits(_bytes_of_memberships(draws)):
        return None
    members = _Memberships.of(draws)
    first, second, _ = _joined(members.pairs_above(threshold))
    component = connected(first, second, n)
    n_pairs = min(float(np.square(np.bincount(component), dtype=np.float64).sum()), _n_pairs(draws))
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


class _Memberships(NamedTuple):
    """Items by the clusters of all draws, for products that count the draws in which two items are co-clustered.

    Attributes
    ----------
    weighted : sparse array (n, R)
        Weight of the draw of each cluster of each item.
    clusters : sparse array (R, n)
        Ones.
    total : float
        Sum of the weights.
    bytes_an_item : float
        Estimated memory of an item's row of the product.
    """

    weighted: sparse.csr_array
    clusters: sparse.csr_array
    total: float
    bytes_an_item: float

    @classmethod
    def of(cls, draws: PartitionDraws) -> _Memberships:
        addends = draws.samples.addends[0]
        members, kind = _memberships(draws), _kind_of_sums(draws)
        weights = addends.astype(kind)[members.data]
        weighted = sparse.csr_array((weights, members.indices, members.indptr), members.shape)
        ones = sparse.csr_array((np.ones(members.nnz, kind), members.indices, members.indptr), members.shape)
        bytes_an_item = 32 * max(1.0, _n_pairs(draws) / draws.n_items)
        return cls(weighted, ones.T.tocsr(), float(np.cumsum(addends)[-1]), bytes_an_item)

    def pairs_above(self, threshold: float) -> Iterator[Pairs]:
        """See :func:`pairs_above`."""
        for part in memory.parts(self.weighted.shape[0], self.bytes_an_item):
            found = sparse.triu(self.weighted[part] @ self.clusters, part.start + 1, format="csr")
            found.sort_indices()
            found = found.tocoo()
            values = found.data / self.total
            above = values > threshold
            yield found.coords[0][above] + part.start, found.coords[1][above].astype(np.int64), values[above]


def _n_pairs(draws: PartitionDraws) -> float:
    """Ordered pairs of items within the clusters of all draws, without singletons."""
    sizes = draws.backend.sizes
    return float(np.square(sizes[sizes > 1], dtype=np.float64).sum())


def _kind_of_sums(draws: PartitionDraws) -> np.dtype[Any]:
    """Type of sums of weights: counts if these are equal."""
    return np.dtype(np.float64) if draws.samples.is_weighted else np.min_scalar_type(draws.n_draws)


def _n_shared(draws: PartitionDraws) -> int:
    """Number of items of all draws' clusters, without singletons."""
    sizes = draws.backend.sizes
    return int(sizes[sizes > 1].sum(dtype=np.int64))


def _bytes_of_memberships(draws: PartitionDraws) -> int:
    """Memory of :class:`_Memberships`, while they are made."""
    return (20 + 2 * _kind_of_sums(draws).itemsize) * _n_shared(draws) + 4 * draws.backend.sizes.size


def _memberships(draws: PartitionDraws) -> sparse.csr_array:
    """Items by the clusters of all draws (n, R), without singletons; the data are the numbers of the draws."""
    words = draws.samples.words
    memory.check(_bytes_of_memberships(draws), f"The clusters of all {words.draws}", f"Take fewer {words.draws}.")
    sizes, starts, shared = draws.backend.sizes, draws.starts, _n_shared(draws)
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
