"""Spectral aggregation: k-means on the leading eigenvectors of the similarity matrix, which is not formed."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from posterior_consensus.arguments import check_above
from posterior_consensus.consensus.basic import k_means, thread_pools
from posterior_consensus.consensus.selection import Candidate, cluster_range, least_loss
from posterior_consensus.draws import PartitionDraws
from posterior_consensus.losses import PartitionLoss
from posterior_consensus.progress import track
from posterior_consensus.similarity import similarity_operator, similarity_values

Floats = npt.NDArray[np.float64]
Affinity = Literal["association", "rbf"]

AFFINITIES = ("association", "rbf")
_TINY = 1e-12


def spectral(
    draws: PartitionDraws,
    loss: PartitionLoss,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    affinity: Affinity | None = None,
    gamma: float = 1.0,
    n_init: int = 10,
) -> Candidate:
    """Cluster the items by k-means in the space of the K leading eigenvectors of the posterior similarity matrix.

    Parameters
    ----------
    affinity : {None, "association", "rbf"}
        None for the similarity matrix itself. "association" takes it as the weights of a graph of the items, and
        "rbf" the weights exp(-gamma |PSM_i - PSM_j|^2) of its rows PSM_i; of either graph the eigenvectors are those
        of the random walk.
    gamma : float above 0
        For "rbf".
    n_init : int
        Number of k-means++ starts.

    Notes
    -----
    None is Algorithm 2 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering"; "rbf"
    with gamma 1 gives what its tables report as spectral clustering. With W the weights without their diagonal and D
    their row sums, the vectors are D^(-1/2) u for the leading eigenvectors u of D^(-1/2) W D^(-1/2): the normalised cut
    of Shi and Malik (2000), https://doi.org/10.1109/34.868688, as scikit-learn's `SpectralClustering` computes it.

    But for "rbf", which forms an n x n matrix, the eigenvectors come from products with the draws' one-hot matrix, in
    memory proportional to n_items x n_draws, unless as many are asked for as there are items.
    """
    if affinity not in (None, *AFFINITIES):
        raise ValueError(f"`affinity` must be None or one of {', '.join(map(repr, AFFINITIES))}; got {affinity!r}.")
    check_above("gamma", gamma, 0)
    numbers = cluster_range(draws, n_clusters, max_clusters)
    if affinity is None:
        vectors = leading_eigenvectors(draws, numbers[-1], rng)
    else:
        with thread_pools().limit(limits=1):  # the sums must not depend on the number of threads
            vectors = random_walk_vectors(draws, numbers[-1], affinity, gamma, rng)
    partitions = [
        k_means(vectors[:, :k], k, n_init, rng) for k in track(numbers, "Spectral aggregation", progressbar=progressbar)
    ]
    best, losses = least_loss(draws, loss, [np.stack(partitions)])
    return Candidate(best, {"n_clusters_tried": list(numbers), "expected_losses": losses})


def leading_eigenvectors(draws: PartitionDraws, number: int, rng: np.random.Generator) -> Floats:
    """Return the leading eigenvectors (n, number) of the posterior similarity matrix, largest eigenvalue first."""
    return _leading(similarity_operator(draws), number, rng)


def random_walk_vectors(
    draws: PartitionDraws, number: int, affinity: Affinity, gamma: float, rng: np.random.Generator
) -> Floats:
    """Return the leading eigenvectors (n, number) of the random walk on the graph of the items."""
    n = draws.n_items
    if affinity == "rbf":
        weights = aslinearoperator(_gaussian(similarity_values(draws), gamma))
    else:
        similarity = similarity_operator(draws)
        weights = LinearOperator(
            (n, n), dtype=np.float64, matvec=lambda v: similarity @ v - v, matmat=lambda v: similarity @ v - v
        )
    degrees = np.maximum(weights @ np.ones(n), 0.0)
    alone = degrees < _TINY  # an item that no other is ever with, a walk of its own
    roots = np.sqrt(np.where(alone, 1.0, degrees))

    def product(vectors: Floats) -> Floats:
        columns = vectors.reshape(n, -1)
        walked = (weights @ (columns / roots[:, np.newaxis])) / roots[:, np.newaxis]
        return np.where(alone[:, np.newaxis], columns, walked).reshape(vectors.shape)

    walk = LinearOperator((n, n), dtype=np.float64, matvec=product, matmat=product)
    return _leading(walk, number, rng) / roots[:, np.newaxis]


def _gaussian(rows: Floats, gamma: float) -> Floats:
    """exp(-gamma |x_i - x_j|^2) for the rows x_i of a matrix, with a diagonal of zeros."""
    squares = np.einsum("ij,ij->i", rows, rows)
    weights = rows @ rows.T
    weights *= 2.0
    weights -= squares
    weights -= squares[:, np.newaxis]
    np.minimum(weights, 0.0, out=weights)
    weights *= gamma
    np.exp(weights, out=weights)
    np.fill_diagonal(weights, 0.0)
    return weights


def _leading(operator: LinearOperator, number: int, rng: np.random.Generator) -> Floats:
    """Leading eigenvectors (n, number) of a symmetric operator, largest eigenvalue first."""
    n = operator.shape[0]
    if number >= n:  # Lanczos cannot give all n, and these are an n x n matrix in any case
        return np.linalg.eigh(operator @ np.eye(n))[1][:, ::-1]
    start = rng.standard_normal(n)
    values, vectors = eigsh(operator, k=number, which="LA", v0=start, ncv=min(n, max(2 * number + 1, 20)))
    return vectors[:, np.argsort(-values)]
