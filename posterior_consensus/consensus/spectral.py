"""Spectral aggregation: k-means on the leading eigenvectors of the similarity matrix, which is not formed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import eigsh

from posterior_consensus.consensus.basic import k_means
from posterior_consensus.consensus.selection import Candidate, cluster_range, least_loss
from posterior_consensus.draws import PartitionDraws
from posterior_consensus.losses import PartitionLoss
from posterior_consensus.progress import track
from posterior_consensus.similarity import similarity_operator, similarity_values


def spectral(
    draws: PartitionDraws,
    loss: PartitionLoss,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    n_init: int = 10,
) -> Candidate:
    """Cluster the items by k-means in the space of the K leading eigenvectors of the posterior similarity matrix.

    Parameters
    ----------
    n_init : int
        Number of k-means++ starts.

    Notes
    -----
    Algorithm 2 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering". The
    eigenvectors come from products with the draws' one-hot matrix, in memory proportional to n_items x n_draws, unless
    as many are asked for as there are items.
    """
    numbers = cluster_range(draws, n_clusters, max_clusters)
    vectors = leading_eigenvectors(draws, numbers[-1], rng)
    partitions = [
        k_means(vectors[:, :k], k, n_init, rng) for k in track(numbers, "Spectral aggregation", progressbar=progressbar)
    ]
    best, losses = least_loss(draws, loss, [np.stack(partitions)])
    return Candidate(best, {"n_clusters_tried": list(numbers), "expected_losses": losses})


def leading_eigenvectors(draws: PartitionDraws, number: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the leading eigenvectors (n, number) of the posterior similarity matrix, largest eigenvalue first."""
    n = draws.n_items
    if number >= n:  # Lanczos cannot give all n, and these are an n x n matrix in any case
        return np.linalg.eigh(similarity_values(draws))[1][:, ::-1]
    start = rng.standard_normal(n)
    values, vectors = eigsh(
        similarity_operator(draws), k=number, which="LA", v0=start, ncv=min(n, max(2 * number + 1, 20))
    )
    return vectors[:, np.argsort(-values)]
