"""Basic aggregation: k-means on the rows of the similarity matrix."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from posterior_consensus.arguments import check_count
from posterior_consensus.consensus.selection import Candidate, best_number, cluster_range, effort
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.executor import thread_pools
from posterior_consensus.loss_record import Objective
from posterior_consensus.partitions import Labels, canonical_labels


def basic(
    draws: PairSource,
    loss: Objective,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    n_starts: int = 10,
) -> Candidate:
    """Cluster the rows of the posterior similarity matrix, unit diagonal included, by k-means.

    Parameters
    ----------
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    Algorithm 1 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering". It splits
    large clusters where sizes are unequal; a Jacobi refinement mends that.
    """
    check_count("n_starts", n_starts)
    rows = draws.shared_similarity

    def fit(k: int) -> Candidate:
        return Candidate(k_means(rows, k, n_starts if n_clusters else effort(n_starts, k), rng))

    numbers = cluster_range(draws, n_clusters, max_clusters)
    return best_number(draws, loss, numbers, fit, title="Basic aggregation", progressbar=progressbar)


def k_means(
    points: npt.NDArray[np.float64],
    n_clusters: int,
    n_starts: int,
    rng: np.random.Generator,
    weights: npt.NDArray[np.float64] | None = None,
) -> Labels:
    """Cluster points (n, d) with these weights (n,) into at most `n_clusters` groups by k-means++."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(n_clusters, n_init=n_starts, random_state=int(rng.integers(2**31)))
    # With more threads its sums, and so its labels, would depend on their number.
    with thread_pools().limit(limits=1), warnings.catch_warnings():
        # Fewer distinct points than clusters: the caller sees it from the labels.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return canonical_labels(model.fit_predict(points, sample_weight=weights))
