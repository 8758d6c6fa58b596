"""Competing methods that cut a graph: of the experts by agreement, and of the items by mean constraints."""

from typing import Any

import numpy as np
import xarray as xr

from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.experts.constraints import Constraints, names_coordinate
from posterior_consensus.experts.conversion import as_constraints
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_count
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.search.eigenvectors import random_walk_vectors
from posterior_consensus.search.k_means import k_means

_N_STARTS = 10  # of k-means


def meta_clustering(
    constraints: Any,
    n_views: int | None = None,
    *,
    random_seed: RandomSeed = None,
) -> xr.DataArray:
    """Group experts by their agreement on common pairs, by spectral clustering.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints.
    n_views : int, optional
        Number of groups; by default the position of the largest difference between successive eigenvalues of the
        graph's Laplacian.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    xarray.DataArray of shape (expert,), dtype int32
        Group of each expert.

    Raises
    ------
    ValueError
        If there are fewer experts than groups.

    See Also
    --------
    posterior_consensus.experts.expert_views : the model of experts in views.

    Notes
    -----
    The similarity of two experts is the Rand index of their constraints: the share of common pairs on which they agree,
    0 without common pairs [1]_. Groups come from spectral clustering of this graph, and their number from its
    eigenvalues [2]_, as in the comparison of [3]_. Experts with few common pairs are hardly distinguished.

    References
    ----------
    .. [1] Caruana, Elhawary, Nguyen and Smith (2006), Meta clustering. https://doi.org/10.1109/ICDM.2006.103
    .. [2] von Luxburg (2007), Statistics and Computing 17(4), 395-416. https://doi.org/10.1007/s11222-007-9033-z
    .. [3] Chang et al. (2017), ICML. https://proceedings.mlr.press/v70/chang17a.html

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> one, other = [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]
    >>> pc.experts.meta_clustering({"Ann": one, "Bo": one, "Cy": other, "Di": other}, 2, random_seed=1).values
    array([0, 0, 1, 1], dtype=int32)
    """
    checked = as_constraints(constraints)
    similarity = expert_similarity(checked)
    if n_views is None:
        n_views = _eigengap(similarity)
    if check_count("n_views", n_views) > checked.n_experts:
        raise ValueError(f"`n_views` must be at most the number of experts, {checked.n_experts}; got {n_views}.")
    labels = _cut(similarity, n_views, as_generator(random_seed))
    return xr.DataArray(labels, {"expert": names_coordinate(checked.experts)}, ("expert",), "expert_view")


def expert_similarity(checked: Constraints) -> Floats:
    """Share (M, M) of common pairs on which two experts agree, without pairs on which an expert is undecided."""
    balance = checked.statements.must - checked.statements.cannot
    must, cannot = (balance > 0).astype(np.float64), (balance < 0).astype(np.float64)
    same = (must @ must.T + cannot @ cannot.T).toarray()
    differ = (must @ cannot.T).toarray()
    common = same + differ + differ.T
    return np.divide(same, common, out=np.zeros_like(same), where=common > 0)


def _eigengap(similarity: Floats) -> int:
    """Number of leading eigenvalues of the normalized graph before the largest difference."""
    weights = similarity.copy()
    np.fill_diagonal(weights, 0.0)
    roots = np.sqrt(np.maximum(weights.sum(axis=1), np.finfo(float).tiny))
    values = np.linalg.eigvalsh(weights / roots / roots[:, np.newaxis])[::-1]
    return 1 if values.size == 1 else int(np.argmax(values[:-1] - values[1:])) + 1


def normalised_cut(
    constraints: Any,
    *,
    n_clusters: int,
    random_seed: RandomSeed = None,
) -> xr.DataArray:
    """Cluster items by a normalized cut of the graph whose edge weights are shares of must-links.

    Parameters
    ----------
    constraints : Constraints or anything :func:`as_constraints` takes
        Must-link and cannot-link constraints. Pairs without a constraint have weight 0.
    n_clusters : int
        Number of clusters.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.

    Returns
    -------
    xarray.DataArray of shape (n_items,), dtype int32
        Labels of the items. Items without must-links are in the largest cluster.

    Raises
    ------
    ValueError
        If fewer items have must-links than there are clusters.

    See Also
    --------
    expert_views : A model of experts with different views and reliabilities.

    Notes
    -----
    Cluster-based similarity partitioning [1]_, with a normalized cut by eigenvectors instead of a balanced graph
    partition. It distinguishes neither views nor reliabilities, and needs many constraints.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.
       https://www.jmlr.org/papers/v3/strehl02a.html

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> partitions = {"Ann": [0, 0, 0, 1, 1, 1], "Bo": [0, 0, 0, 1, 1, 2]}
    >>> pc.experts.normalised_cut(partitions, n_clusters=2, random_seed=1).values
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    checked = as_constraints(constraints)
    check_count("n_clusters", n_clusters)
    pairs, votes = checked.average_vote()
    linked, at = np.unique(pairs[votes > 0], return_inverse=True)
    if linked.size < n_clusters:
        raise ValueError(
            f"`n_clusters` must be at most the number of items that are linked, {linked.size}; got {n_clusters}."
        )
    weights = np.zeros((linked.size, linked.size))
    first, second = at.reshape(-1, 2).T
    weights[first, second] = weights[second, first] = votes[votes > 0]
    cut = _cut(weights, n_clusters, as_generator(random_seed))
    labels = np.full(checked.items.n_items, np.bincount(cut).argmax())
    labels[linked] = cut
    return checked.items.array(canonical_labels(labels), "labels")


def _cut(weights: Floats, number: int, rng: np.random.Generator) -> Labels:
    """Labels of a normalized cut of a graph with edge weights (n, n)."""
    np.fill_diagonal(weights, 1.0)
    source = PairSimilarity(Items(len(weights), "node", xr.Coordinates()), weights)
    with one_blas_thread():
        leading = random_walk_vectors(source, number, "association", 1.0)
    return k_means(leading.vectors[:, : max(leading.widths[number - 1], 1)], number, _N_STARTS, rng)
