"""HBGF: a spectral cut of the graph that joins every item with its clusters in all draws."""

import numpy as np
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.consensus.selection import Candidate, Task, best_k_means
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.search.eigenvectors import leading_of


def hbgf(draws: PartitionDraws, loss: Loss, task: Task, *, n_starts: int = 10) -> Candidate:
    """Cut the bipartite graph of the items and the clusters of all draws.

    Parameters
    ----------
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    In the Hybrid Bipartite Graph Formulation [1]_, item i and cluster c of draw t have an edge of weight w_t if i is in
    c. Let B be the matrix of these weights. Every item has the degree sum_t w_t = 1, and a cluster of s items the
    degree w_t s. With D the degrees of the clusters, the leading left singular vectors of B D^(-1/2) are the items'
    coordinates for k-means [2]_. They are eigenvectors of the matrix with entries

        sum_t w_t 1{z_ti = z_tj} / (size of their cluster in draw t).

    Co-clustering in a small cluster thus counts more than in a large one. Products with this matrix cost
    n_items x n_draws; no graph is formed. Two steps of [1]_ are omitted: k-means uses the items only, because clusters
    are at the scaled means of their items; and coordinates are not normalized to unit length, which recovers a large
    cluster less often.

    References
    ----------
    .. [1] Fern and Brodley (2004), Proceedings of the 21st International Conference on Machine Learning, 36.
       https://doi.org/10.1145/1015330.1015414
    .. [2] Dhillon (2001), Proceedings of the 7th ACM SIGKDD Conference, 269-274. https://doi.org/10.1145/502512.502550
    """
    check_count("n_starts", n_starts)
    leading = leading_of(_walk(draws), task.numbers(draws)[-1])
    return best_k_means(draws, loss, task, leading.coordinates, n_starts, title="Cuts of the bipartite graph")


def _walk(draws: PartitionDraws) -> LinearOperator:
    """Two steps of the random walk (n, n), from an item to one of its clusters and from there to an item."""
    n, labels, starts = draws.n_items, draws.labels, draws.starts
    sizes = ensemble.scatter(labels, starts, np.ones((n, 1)))

    def product(vectors: Floats) -> Floats:
        columns = np.ascontiguousarray(vectors.reshape(n, -1), dtype=np.float64)
        means = ensemble.scatter(labels, starts, columns) / sizes
        walked: Floats = ensemble.gather(labels, starts, draws.weights, means)
        return walked.reshape(vectors.shape)

    return LinearOperator((n, n), dtype=np.float64, matvec=product, matmat=product)
