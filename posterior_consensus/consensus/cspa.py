"""CSPA: a normalized cut of the item graph, with or without clusters of equal size."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.selection import Candidate, Task, best_number, cut
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.switching import cheapest_paths
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.arguments import check_count, check_flag
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.eigenvectors import random_walk_vectors

Floats = npt.NDArray[np.float64]

_MOST_ROUNDS = 50


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
       https://www.jmlr.org/papers/v3/strehl02a.html
    """
    check_flag("balanced", balanced)
    check_count("n_starts", n_starts)
    leading = random_walk_vectors(draws, task.numbers(draws)[-1], "association", 1.0)

    def fit(k: int) -> Candidate:
        points = leading.coordinates(k)
        labels = cut(points, k, n_starts, task)
        return Candidate(canonical_labels(balanced_labels(points, labels, k)) if balanced else labels)

    return best_number(draws, loss, task, fit, title="Cuts of the items' graph")


def balanced_labels(points: Floats, labels: Labels, n_clusters: int) -> Labels:
    """Labels (n,) after Lloyd's iterations on points (n, d), with cluster sizes that differ by at most one."""
    best, least = labels, np.inf
    for _ in range(_MOST_ROUNDS):
        squares = np.stack([np.square(points - c).sum(axis=1) for c in _centroids(points, labels, n_clusters)], axis=1)
        labels = transported(squares, labels.size)
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


def transported(costs: Floats, n_items: int) -> Labels:
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
