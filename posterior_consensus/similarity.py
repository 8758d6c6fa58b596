"""How often are two items together? The posterior similarity matrix, formed or as an operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.kernels import coclustering
from posterior_consensus.sources.labels import as_pair_source

Floats = npt.NDArray[np.float64]


def posterior_similarity_matrix(draws: Any) -> xr.DataArray:
    """Posterior probability that two items are in the same cluster, for every pair.

    Parameters
    ----------
    draws : PairSimilarity, PartitionDraws or anything :func:`as_partition_draws` takes

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm``; its dimensions are the items' and the same with ``_bis`` appended, both with the items'
        coordinate. Symmetric, in [0, 1], and 1 where items are always together. Without weights entries are exact: each
        is a count of draws, divided once.

    Raises
    ------
    MemoryError
        If the matrix takes more than the memory budget, 4 GB or what the environment variable
        POSTERIOR_CONSENSUS_MEMORY says.

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
    source = as_pair_source(draws)
    attrs: dict[str, Any] = {"long_name": "posterior probability of being in the same cluster"}
    if source.n_draws is not None:
        attrs["n_draws"] = source.n_draws
    return source.items.pair_array(source.similarity(), "psm").assign_attrs(attrs)


def batch_shifts(draws: PartitionDraws) -> Iterator[Floats]:
    """How far each batch of the draws moves the similarity matrix (n, n), multiplied so that squares add up.

    With K batches the square of an entry's standard error is the sum over them of the squares of what comes out here;
    see :func:`similarity_mcse`. NaN where one batch has all the weight.
    """
    psm, batches = draws.shared_similarity, draws.samples.batches
    inflation = np.sqrt(len(batches) / (len(batches) - 1)) if len(batches) > 1 else np.nan
    for batch in batches:
        weight = moved = float(draws.weights[batch].sum())
        if draws.weights.sum() == weight:
            moved = np.nan
        elif draws.samples.is_weighted:
            moved = weight * (1 - batch.size / draws.n_draws) / (1 - weight)
        yield inflation * moved * (draws.take(batch).shared_similarity - psm)


def group_planes(
    draws: PartitionDraws, groups: Sequence[npt.NDArray[np.intp]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pack groups of draws, given by row numbers, for the kernels: bit planes, first word and size of each group."""
    packed = [coclustering.pack_bit_planes(draws.labels[rows], draws.drawn.n_planes) for rows in groups]
    words = np.cumsum([0, *(len(planes) for planes in packed)])
    return np.concatenate(packed), words, np.array([len(rows) for rows in groups])


def similarity_errors(draws: PartitionDraws) -> Floats:
    """Monte Carlo standard error (n, n) of every entry of the similarity matrix; NaN for fewer than four draws."""
    if min(rows.size for rows in draws.samples.chains) < 4:
        return np.full((draws.n_items, draws.n_items), np.nan)
    if not draws.is_counted:
        squares = np.zeros((draws.n_items, draws.n_items))
        for shift in batch_shifts(draws):
            squares += np.square(shift)
        return np.sqrt(squares)
    batches = draws.samples.batches
    spread = coclustering.spread_of_batches(*group_planes(draws, batches), draws.n_items) / draws.n_draws**2
    return np.sqrt(len(batches) / (len(batches) - 1) * spread)


def similarity_operator(source: PairSource) -> LinearOperator:
    """Return the posterior similarity matrix as an operator: of draws, products cost n x N and no n x n array."""
    n = source.n_items

    def product(vectors: Floats) -> Floats:
        return source.product(np.asarray(vectors.reshape(n, -1), dtype=np.float64))

    def product_with_vector(vector: Floats) -> Floats:
        return product(vector).ravel()

    return LinearOperator(
        (n, n),
        dtype=np.float64,
        matvec=product_with_vector,
        rmatvec=product_with_vector,
        matmat=product,
        rmatmat=product,
    )


def mean_similarity(source: PairSource, labels: npt.NDArray[Any]) -> Floats:
    """Mean similarity of every item to the other members of each cluster (n, K); NaN where there are none."""
    sizes = np.bincount(labels)
    others = np.tile(sizes, (labels.size, 1))
    others[np.arange(labels.size), labels] -= 1
    links, total = source.links(labels)
    means = np.divide(links, total * others, out=np.full(links.shape, np.nan), where=others > 0)
    return np.clip(means, 0.0, 1.0)
