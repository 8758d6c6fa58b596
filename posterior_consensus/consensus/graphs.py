"""Methods that cluster the items by k-means on coordinates: rows of similarities, or eigenvectors of a graph."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from posterior_consensus.consensus.selection import Candidate, Task, best_k_means, best_number, k_means_cut
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.switching import cheapest_paths
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_above, check_count, check_flag
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.classical import Affinity, leading_eigenvectors, leading_of, random_walk_vectors

AFFINITIES = ("association", "rbf")

_MOST_ROUNDS = 50


def basic(draws: PairSource, loss: Loss, task: Task, *, n_starts: int = 10) -> Candidate:
    """Cluster the rows of the posterior similarity matrix, unit diagonal included, by k-means.

    Parameters
    ----------
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    Algorithm 1 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering". It tends to
    split large clusters if sizes are unequal; Jacobi refinement corrects this.
    """
    check_count("n_starts", n_starts)
    rows = draws.shared_similarity
    return best_k_means(draws, loss, task, lambda k: rows, n_starts, title="Basic aggregation")


def spectral(
    draws: PairSource,
    loss: Loss,
    task: Task,
    *,
    affinity: Affinity | None = None,
    gamma: float = 1.0,
    n_starts: int = 10,
) -> Candidate:
    """Cluster the items by k-means in the space of the K leading eigenvectors of the posterior similarity matrix.

    Parameters
    ----------
    affinity : {None, "association", "rbf"}
        None uses the similarity matrix. The others use the random walk on a graph of the items. Its edge weights are
        the similarities ("association"), or exp(-gamma |PSM_i - PSM_j|^2) with the rows PSM_i of the matrix ("rbf").
    gamma : float above 0
        Scale of "rbf".
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    None is Algorithm 2 of Zhou, Dudeja and Amini (ICLR 2023), "Statistical guarantees for consensus clustering"; its
    tables use "rbf" with gamma 1. Let W be the weights without diagonal, and D their row sums. The vectors are
    D^(-1/2) u for the leading eigenvectors u of D^(-1/2) W D^(-1/2). This is the normalized cut of Shi and Malik
    (2000), https://doi.org/10.1109/34.868688, as in scikit-learn's `SpectralClustering`.

    Equal eigenvalues do not determine their eigenvectors. If the K-th eigenvalue is multiple, k-means uses all of its
    vectors if it is positive, and otherwise none. Distances between items then do not depend on rounding. (Beyond 1,000
    items it uses at most eight more vectors than the largest K.)

    "rbf" forms an n x n matrix. Otherwise, beyond 1,000 items and for at most n / 2 vectors, the eigenvectors come from
    products with the one-hot matrix of the draws. The memory is proportional to n_items x n_draws.
    """
    if affinity not in (None, *AFFINITIES):
        raise ValueError(f"`affinity` must be None or one of {', '.join(map(repr, AFFINITIES))}; got {affinity!r}.")
    check_above("gamma", gamma, 0)
    check_count("n_starts", n_starts)
    most = task.numbers(draws)[-1]
    if affinity is None:
        leading = leading_eigenvectors(draws, most)
    else:
        leading = random_walk_vectors(draws, most, affinity, gamma)
    return best_k_means(draws, loss, task, leading.coordinates, n_starts, title="Spectral aggregation")


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


def cspa(draws: PairSource, loss: Loss, task: Task, *, balanced: bool = False, n_starts: int = 10) -> Candidate:
    """Cut the graph whose vertices are the items and whose edge weights are their similarities.

    Parameters
    ----------
    balanced : bool
        Whether the sizes of clusters must differ by at most one item.
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    The Cluster-based Similarity Partitioning Algorithm [1]_. Its authors cut the graph by METIS, which makes clusters
    of nearly equal size. Here the cut is that of ``method="spectral", affinity="association"``: k-means on the leading
    eigenvectors of the random walk on the graph, without a condition on sizes.

    With `balanced`, Lloyd's iterations follow. Each allocates the items to centroids at the least sum of squared
    distances, subject to sizes of n / K, rounded down or up. This is a transport problem: from the nearest centroids,
    items move along the cheapest paths from clusters that are too large to clusters that are too small. If the clusters
    of a posterior differ in size, `balanced` splits the large ones.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.
       https://jmlr.org/papers/v3/strehl02a.html
    """
    check_flag("balanced", balanced)
    check_count("n_starts", n_starts)
    leading = random_walk_vectors(draws, task.numbers(draws)[-1], "association", 1.0)

    def fit(k: int) -> Candidate:
        points = leading.coordinates(k)
        labels = k_means_cut(points, k, n_starts, task)
        return Candidate(canonical_labels(balanced_labels(points, labels, k)) if balanced else labels)

    return best_number(draws, loss, task, fit, title="Cuts of the items' graph")


def balanced_labels(points: Floats, labels: Labels, n_clusters: int) -> Labels:
    """Labels (n,) after Lloyd's iterations on points (n, d), with cluster sizes that differ by at most one."""
    best, least = labels, np.inf
    for _ in range(_MOST_ROUNDS):
        squares = np.stack([np.square(points - c).sum(axis=1) for c in _centroids(points, labels, n_clusters)], axis=1)
        labels = evenly_assigned(squares, labels.size)
        value = squares[np.arange(labels.size), labels].sum()
        if value >= least - ROUNDING:
            break
        best, least = labels, value
    return best


def _centroids(points: Floats, labels: Labels, n_clusters: int) -> Floats:
    """Means (K, d) of the points of each cluster; for an empty cluster, the point farthest from the other means."""
    centroids = np.empty((n_clusters, points.shape[1]))
    for k in range(n_clusters):
        if np.any(labels == k):
            centroids[k] = points[labels == k].mean(axis=0)
        else:
            away = np.square(points[:, np.newaxis] - centroids[:k]).sum(axis=2).min(axis=1)
            centroids[k] = points[away.argmax()]
    return centroids


def evenly_assigned(costs: Floats, n_items: int) -> Labels:
    """Columns (n,) of a cost table (n, K) at minimum total cost, each used n / K times, rounded down or up."""
    n_clusters = costs.shape[1]
    fewest, most = n_items // n_clusters, -(-n_items // n_clusters)
    labels = costs.argmin(axis=1).astype(np.int32)
    sizes = np.bincount(labels, minlength=n_clusters)
    moves = _Moves(costs, labels)
    while sizes.max() > most:
        moves.make(sizes > most, sizes < most, sizes)
    while sizes.min() < fewest:
        moves.make(sizes > fewest, sizes < fewest, sizes)
    return labels


class _Moves:
    """The cheapest moves of single items between clusters, updated after each move."""

    def __init__(self, costs: Floats, labels: Labels) -> None:
        self.costs, self.labels = costs, labels
        self.extra = np.full((costs.shape[1],) * 2, np.inf)  # cost of the cheapest move from one cluster to another
        self.items = np.zeros(self.extra.shape, np.intp)
        for k in range(len(self.extra)):
            self._refresh(k)

    def _refresh(self, k: int) -> None:
        members = np.flatnonzero(self.labels == k)
        self.extra[k] = np.inf
        if members.size:
            extra = self.costs[members] - self.costs[members, k, np.newaxis]
            at = extra.argmin(axis=0)
            self.extra[k], self.items[k] = extra[at, np.arange(at.size)], members[at]
        self.extra[k, k] = np.inf

    def make(self, sources: npt.NDArray[np.bool_], targets: npt.NDArray[np.bool_], sizes: npt.NDArray[np.intp]) -> None:
        """Move one item along each step of the cheapest path from a source cluster to a target cluster."""
        reached, before = cheapest_paths(self.extra, np.where(sources, 0.0, np.inf), ROUNDING)
        k = int(np.where(targets, reached, np.inf).argmin())
        sizes[k] += 1
        path = [k]
        while before[k] >= 0:
            k = int(before[k])
            path.append(k)
        sizes[k] -= 1
        self.labels[[self.items[one, other] for other, one in pairwise(path)]] = path[:-1]
        for k in path:
            self._refresh(k)
