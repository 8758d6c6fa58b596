"""The posterior similarity matrix, or a part of it, and its Monte Carlo standard errors."""

from typing import Any, overload

import numpy as np
import xarray as xr
from scipy.sparse import csr_array

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.similarity import similarity_errors
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import check_count, check_number
from posterior_consensus.sources.conversion import as_source


@overload
def posterior_similarity_matrix(draws: Any, *, items: Any = None) -> xr.DataArray: ...


@overload
def posterior_similarity_matrix(draws: Any, *, nearest: int) -> csr_array: ...


@overload
def posterior_similarity_matrix(draws: Any, *, threshold: float) -> csr_array: ...


def posterior_similarity_matrix(
    draws: Any, *, items: Any = None, nearest: int | None = None, threshold: float | None = None
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
    threshold : float in [0, 1), optional
        Similarity above which pairs of two different items are kept; a pair of this similarity is left out. With 0,
        every pair that any draw co-clusters is kept.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm``; its dimensions are the items' and the same with ``_bis`` appended, both with the items'
        coordinate. Symmetric, in [0, 1], and 1 for items that are always co-clustered. Without weights entries are
        exact: each is a count of draws, divided once. With `items` they are the rows and columns.
    scipy.sparse.csr_array of shape (n_items, n_items), dtype float64
        With `nearest` or `threshold`; row and column k are the k-th item, ``draws.items.names[k]``. The diagonal is
        empty. With `nearest` each row has that many entries, also where they are 0, and the array is not symmetric; of
        equally similar items the first ones are taken. With `threshold` it is symmetric.

    Raises
    ------
    MemoryError
        If the result needs more than the memory budget, 4 GB or what the environment variable
        POSTERIOR_CONSENSUS_MEMORY says.
    ValueError
        If more than one of `items`, `nearest` and `threshold` is given, one of them is out of its range, and as
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
    `nearest` and `threshold` take the same time, and memory for some rows at a time, a copy of the labels and the
    result. If clusters are many and small, as in record linkage, `threshold` visits only the pairs within clusters.
    Entries of parts equal those of the whole matrix, bit for bit; from allocation probabilities, up to rounding.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> pc.posterior_similarity_matrix([[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 2, 2]]).values
    array([[1.  , 0.75, 0.25],
           [0.75, 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    >>> pc.posterior_similarity_matrix([[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 2, 2]], threshold=0.4).toarray()
    array([[0.  , 0.75, 0.  ],
           [0.75, 0.  , 0.5 ],
           [0.  , 0.5 , 0.  ]])
    """
    parts = {"items": items, "nearest": nearest, "threshold": threshold}
    given = [name for name, value in parts.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"Only one of `items`, `nearest` and `threshold` can be given; got {' and '.join(given)}.")
    source = as_source(draws).in_fixed_order()
    if nearest is not None:
        return _nearest(source, check_count("nearest", nearest))
    if threshold is not None:
        return _sparse_above(source, check_threshold(threshold))
    if items is not None:
        source = source.of_items(source.items.positions_of(items))
    source.check_memory("Ask for a part of it by `items`, `nearest` or `threshold`.")
    n_draws = {} if source.n_draws is None else {"n_draws": source.n_draws}
    return source.items.pair_array(source.similarity(), "psm").assign_attrs(long_name="posterior similarity", **n_draws)


def _nearest(source: PairSource, n_others: int) -> csr_array:
    n = source.n_items
    if n_others >= n:
        raise ValueError(f"`nearest` must be at most the number of other items, {n - 1}; got {n_others}.")
    memory.check(32 * n * n_others, f"The {n_others} nearest of each of {n} items", "Ask for fewer.")
    columns, values = source.nearest(n_others)
    found = csr_array((values.ravel(), columns.ravel(), n_others * np.arange(n + 1)), shape=(n, n))
    found.sort_indices()
    return found


def check_threshold(threshold: Any) -> float:
    """Check a lower limit of similarities."""
    check_number("threshold", threshold)
    if not 0 <= threshold < 1:
        raise ValueError(f"`threshold` must be a similarity from 0 and below 1; got {threshold!r}.")
    return float(threshold)


def _sparse_above(source: PairSource, threshold: float) -> csr_array:
    n, n_pairs = source.n_items, 0
    columns, values, counts = [], [], np.zeros(n + 1, np.int64)
    for first, second, similarity in source.pairs_above(threshold):
        n_pairs += first.size
        memory.check(
            64 * n_pairs, f"More than {n_pairs} pairs of similarity above {threshold:g}", "Take a larger `threshold`."
        )
        columns.append(second.astype(np.min_scalar_type(-n)))
        values.append(similarity)
        counts[1:] += np.bincount(first, minlength=n)
    upper = csr_array((np.concatenate(values), np.concatenate(columns), np.cumsum(counts)), shape=(n, n))
    return upper + upper.T


def similarity_mcse(draws: Any) -> xr.DataArray:
    """Compute the Monte Carlo standard error of every entry of the similarity matrix by batch means.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Also a PairSimilarity that :func:`as_pair_similarity` computed with ``missing="pairwise"``.

    Returns
    -------
    xarray.DataArray of shape (n_items, n_items), dtype float64
        Named ``psm_mcse``, with the dimensions and coordinates of :func:`posterior_similarity_matrix`. 0 on the
        diagonal. NaN everywhere if a chain has fewer than four draws or one batch all the weight.

    Raises
    ------
    ValueError
        If the draws are invalid as for :func:`as_partition_draws`.

    See Also
    --------
    Samples.probability_mcse : Standard errors of single probabilities by ArviZ, too slow for all pairs.
    posterior_similarity_matrix : Compute the similarities themselves.

    Notes
    -----
    Each chain of L draws is cut into min(10, floor(sqrt(L))) batches of nearly equal length. Batches stay long enough
    for slow chains, and more batches hardly improve the error [1]_. Batches of all chains vary around one common mean,
    so chains that disagree raise the error [2]_. Where chains differ by more than their batches, the means of whole
    chains are the batches; see :meth:`Samples.by_chains_if_they_differ`. With b_k the sum of w_t (A_tij - PSM_ij) over
    the draws of batch k of K,

        s_ij^2 = K / (K - 1) sum_k b_k^2.

    The error is s_ij, corrected near 0 and 1 as by :meth:`Samples.probability_errors`: it is above 0 also for pairs
    that are co-clustered always or never. With weights, b_k is multiplied by (1 - s_k) / (1 - v_k), with s_k the
    batch's share of the draws and v_k its share of the weight; see :meth:`Samples.mcse`. With allocation probabilities,
    A_tij is p_ti' p_tj.

    With T draws of a chain per effective draw, the relative bias of the error is about -5 T / (2 L) [3]_: -5% for an
    effective sample size of 50 in each chain. Below 50 the error is rough, and typically too small.

    References
    ----------
    .. [1] Schmeiser (1982), Operations Research 30(3), 556-568. https://doi.org/10.1287/opre.30.3.556
    .. [2] Argon and Andradottir (2006), Naval Research Logistics 53(6), 508-524. https://doi.org/10.1002/nav.20158
    .. [3] Vats and Flegal (2022), Biometrika 109(3), 735-750. https://doi.org/10.1093/biomet/asab049

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> chains = np.random.default_rng(1).integers(2, size=(4, 400, 3))
    >>> pc.diagnostics.similarity_mcse(chains).values.round(2)
    array([[0.  , 0.01, 0.01],
           [0.01, 0.  , 0.01],
           [0.01, 0.01, 0.  ]])
    """
    source = as_source(draws).in_fixed_order()
    long_name = "Monte Carlo standard error of the posterior similarity"
    if isinstance(source, PairSimilarity) and source.errors is not None:
        return source.items.pair_array(source.errors, "psm_mcse").assign_attrs(long_name=long_name)
    draws = source.as_draws(lacking=True)
    errors = similarity_errors(draws)
    if not draws.lacks_items:  # whose errors are of as many runs as have both items
        errors = draws.samples.probability_errors(draws.shared_similarity, errors)
    np.fill_diagonal(errors, 0.0 * np.diagonal(errors))  # unknown errors stay unknown
    return draws.items.pair_array(errors, "psm_mcse").assign_attrs(long_name=long_name, n_draws=draws.n_draws)
