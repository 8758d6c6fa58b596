"""The posterior similarity matrix, formed or as an operator."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.ensemble.draws import PartitionDraws, hard_draws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.samples import FEWEST_DRAWS
from posterior_consensus.evaluate.coclustered import Pairs, has_small_clusters, pairs_above
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import check_count, check_number
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_source

Floats = npt.NDArray[np.float64]


@overload
def posterior_similarity_matrix(draws: Any, *, items: Any = None) -> xr.DataArray: ...


@overload
def posterior_similarity_matrix(draws: Any, *, nearest: int) -> csr_array: ...


@overload
def posterior_similarity_matrix(draws: Any, *, above: float) -> csr_array: ...


def posterior_similarity_matrix(
    draws: Any, *, items: Any = None, nearest: int | None = None, above: float | None = None
) -> xr.DataArray | csr_array:
    """Compute the posterior similarity matrix, or a part of it.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or any posterior that :func:`summarize` takes
        The posterior of N draws over n items.
    items : array_like or slice, optional
        The pairs of these items only: names, as in xarray's ``sel``, if the items have a coordinate, and
        else positions, as ``isel`` takes them. Booleans, one for each item, are positions in both cases.
    nearest : int, optional
        Number of most similar other items to keep for each item.
    above : float, optional
        The pairs of two different items whose similarity is larger than this, from 0 and below 1. 0 gives all that
        are ever co-clustered.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm``; its dimensions are the items' and the same with ``_bis`` appended, both with the items'
        coordinate. Symmetric, in [0, 1], and 1 for items that are always co-clustered. Without weights entries are
        exact: each is a count of draws, divided once. With `items` they are the rows and columns.
    scipy.sparse.csr_array of shape (n_items, n_items), dtype float64
        With `nearest` or `above`; row and column k are the k-th item, ``draws.items.names[k]``. The diagonal is empty.
        With `nearest` each row has that many entries, also where they are 0, and the array is not symmetric; of
        equally similar items the first ones are taken. With `above` it is symmetric.

    Raises
    ------
    MemoryError
        If the result needs more than the memory budget, 4 GB or what the environment variable
        POSTERIOR_CONSENSUS_MEMORY says.
    ValueError
        If more than one of `items`, `nearest` and `above` is given, one of them is out of its range, and as
        :func:`as_partition_draws`.
    KeyError, IndexError
        If there is no such item.

    See Also
    --------
    plot_psm : Plot it, with the clusters of a partition.
    as_pair_similarity : Use a matrix in place of draws.
    links : Uncertain pairs, with standard errors.

    Notes
    -----
    PSM_ij = sum_t w_t 1{z_ti = z_tj}; of allocation probabilities sum_t w_t p_ti' p_tj, with ones on the diagonal.
    Without weights it takes n^2 N / 64 x log2(clusters) bit operations, and a few percent of memory beyond the result.
    `nearest` and `above` take the same time, and memory for some rows at a time, a copy of the labels and the result.
    If clusters are many and small, as in record linkage, `above` visits only the pairs within clusters. Entries of
    parts equal those of the whole matrix, bit for bit; from allocation probabilities, up to rounding.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.posterior_similarity_matrix([[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 2, 2]]).values
    array([[1.  , 0.75, 0.25],
           [0.75, 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    >>> pc.posterior_similarity_matrix([[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 2, 2]], above=0.4).toarray()
    array([[0.  , 0.75, 0.  ],
           [0.75, 0.  , 0.5 ],
           [0.  , 0.5 , 0.  ]])
    """
    parts = {"items": items, "nearest": nearest, "above": above}
    given = [name for name, value in parts.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"Only one of `items`, `nearest` and `above` can be given; got {' and '.join(given)}.")
    source = as_source(draws)
    if nearest is not None:
        return _nearest(source, check_count("nearest", nearest))
    if above is not None:
        return _above(source, check_threshold(above))
    if items is not None:
        source = source.of_items(source.items.positions_of(items))
    if source.n_draws is not None:
        source.check_memory("Ask for a part of it by `items`, `nearest` or `above`.")
    attrs: dict[str, Any] = {"long_name": "co-clustering probability"}
    if source.n_draws is not None:
        attrs["n_draws"] = source.n_draws
    return source.items.pair_array(source.similarity(), "psm").assign_attrs(attrs)


def _nearest(source: PairSource, n_others: int) -> csr_array:
    n = source.n_items
    if n_others >= n:
        raise ValueError(f"`nearest` must be at most the number of other items, {n - 1}; got {n_others}.")
    memory.check(32 * n * n_others, f"The {n_others} nearest of each of {n} items", "Ask for fewer.")
    columns, values = np.empty((n, n_others), np.int64), np.empty((n, n_others))
    for first, rows in source.row_blocks():
        own = slice(first, first + len(rows))
        columns[own], values[own] = coclustering.nearest_in_rows(rows, first, n_others)
    found = csr_array((values.ravel(), columns.ravel(), n_others * np.arange(n + 1)), shape=(n, n))
    found.sort_indices()
    return found


def check_threshold(above: Any) -> float:
    """Check a lower limit of similarities."""
    check_number("above", above)
    if not 0 <= above < 1:
        raise ValueError(f"`above` must be a similarity from 0 and below 1; got {above!r}.")
    return float(above)


def _above(source: PairSource, threshold: float) -> csr_array:
    n, n_pairs = source.n_items, 0
    columns, values, counts = [], [], np.zeros(n + 1, np.int64)
    for first, second, similarity in pairs_of_similarity_above(source, threshold):
        n_pairs += first.size
        memory.check(
            64 * n_pairs, f"More than {n_pairs} pairs of similarity above {threshold:g}", "Take a larger `above`."
        )
        columns.append(second.astype(np.min_scalar_type(-n)))
        values.append(similarity)
        counts[1:] += np.bincount(first, minlength=n)
    upper = csr_array((np.concatenate(values), np.concatenate(columns), np.cumsum(counts)), shape=(n, n))
    return upper + upper.T


def pairs_of_similarity_above(source: PairSource, threshold: float) -> Iterator[Pairs]:
    """Pairs of two items of larger similarity, in order: the first, the second, and their similarity."""
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
    """Monte Carlo standard error (n, n) of every entry of the similarity matrix; NaN for fewer than four draws."""
    draws.check_memory("Take the errors of some items: `of_items`.")
    if draws.samples.shortest < FEWEST_DRAWS:
        return np.full((draws.n_items, draws.n_items), np.nan)
    if draws.denominator() is None:
        return draws.samples.error_by_batches(draws.shared_similarity, lambda rows: draws.take(rows).shared_similarity)
    batches = draws.samples.batches
    spread = coclustering.spread_of_batches(*group_planes(draws, batches), draws.n_items) / draws.n_draws**2
    return np.sqrt(len(batches) / (len(batches) - 1) * spread)


def similarity_operator(source: PairSource) -> LinearOperator:
    """Return the posterior similarity matrix as an operator: of draws, products cost n x N and no n x n array."""
    n = source.n_items

    def product(vectors: Floats) -> Floats:
        return source.product(np.asarray(vectors.reshape(n, -1), dtype=np.float64))

    products = dict.fromkeys(("matvec", "rmatvec", "matmat", "rmatmat"), product)
    return LinearOperator((n, n), dtype=np.float64, **products)


def own_and_nearest(source: PairSource, labels: npt.NDArray[Any]) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Mean similarity (n,) of every item to the others of its cluster, the nearest other cluster, and that to it.

    NaN for an item alone, and -1 and NaN if there is no other cluster.
    """
    n_clusters = int(labels.max()) + 1
    if (draws := hard_draws(source)) is not None and n_clusters > 1:
        drawn = draws.backend
        if not memory.fits(4 * int(draws.starts[-1]) * n_clusters):
            begins = np.concatenate([[0], np.cumsum(drawn.sizes, dtype=np.int64)])
            addends, total = draws.samples.addends
            sizes, kernel = np.bincount(labels), ensemble.own_and_nearest
            own, nearest, other = kernel(drawn.values, draws.starts, begins, addends, total, labels, sizes)
            return own, nearest, other
    found = [one for _, one in source.map_links(labels, _own_and_nearest_of, np.bincount(labels))]
    own, nearest, other = (np.concatenate(column) for column in zip(*found, strict=True))
    return own, nearest, other


def _own_and_nearest_of(
    links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp]
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Result of :func:`own_and_nearest` for a block of items."""
    items, means = np.arange(labels.size), mean_similarities(links, labels, total, sizes)
    own = means[items, labels]
    if means.shape[1] == 1:
        return own, np.full(labels.size, -1, np.int32), np.full(labels.size, np.nan)
    means[items, labels] = -1.0
    ties = means >= means.max(axis=1, keepdims=True) - ROUNDING
    nearest = ties.argmax(axis=1).astype(np.int32)
    return own, nearest, means[items, nearest]


def mean_similarities(links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp]) -> Floats:
    """Mean similarity (m, K) of a block's items to the other members of each cluster; NaN where there are none."""
    others = np.tile(sizes, (labels.size, 1))
    others[np.arange(labels.size), labels] -= 1
    means = np.divide(links, total * others, out=np.full(links.shape, np.nan), where=others > 0)
    return np.clip(means, 0.0, 1.0)
