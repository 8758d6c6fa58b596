"""MCLA: clusters of the draws' clusters, which the items then vote for."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import aslinearoperator

from posterior_consensus.consensus.selection import Candidate, Task, best_number, elected, filled
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.runtime.tolerances import SINGLE
from posterior_consensus.search.eigenvectors import leading_of
from posterior_consensus.search.k_means import k_means

Floats = npt.NDArray[np.float64]

_MOST_VERTICES = 2000
_DIGITS = 10  # of a coordinate, so that k-means does not tell clusters apart by rounding


def mcla(draws: PartitionDraws, loss: Loss, task: Task, *, n_starts: int = 10) -> Candidate:
    """Cluster the clusters of all draws by the items that they share, and let the items vote.

    Parameters
    ----------
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    The Meta-CLustering Algorithm [1]_. The different clusters of all draws are the vertices of a graph whose weights
    are Jaccard similarities, |a and b| / |a or b|; a vertex counts by the weight of the draws that have it. A spectral
    cut of this graph makes meta-clusters. Every draw gives each item a vote for the meta-cluster that its cluster is
    in. Of equal votes the meta-cluster of more weight has the item, then the one that comes first; its authors leave
    that to chance.

    Two more things differ from [1]_. The cut there is by METIS, which makes meta-clusters of nearly equal size. And
    there each meta-cluster's votes are divided by its size, so that one of few clusters, whatever they have in common,
    takes their items; with equal sizes both are the same. Votes as they are find the truth much more often where one
    cluster has most of the items.

    Beyond 2,000 different clusters, the graph has those of as many draws as together have so many, at even quantiles of
    the weights. Any other cluster then joins the meta-cluster to which its mean similarity is largest. With
    `n_clusters`, a meta-cluster that no item votes for takes the item that loses the fewest votes by it.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.
       https://www.jmlr.org/papers/v3/strehl02a.html
    """
    check_count("n_starts", n_starts)
    draws = draws.without_zero_weights()
    most = task.numbers(draws)[-1]
    graph = _graph(draws)
    degrees = graph.similarity[graph.vertices].astype(np.float64) @ graph.counts
    scale = np.sqrt(graph.counts / degrees)
    walk = graph.similarity[graph.vertices] * scale * scale[:, np.newaxis]
    leading = leading_of(aslinearoperator(walk), min(most, scale.size))
    places = leading._replace(
        vectors=np.round(leading.vectors / np.sqrt(graph.counts * degrees)[:, np.newaxis], _DIGITS)
    )

    def fit(k: int) -> Candidate:
        several = min(k, scale.size)
        meta = k_means(places.coordinates(several), several, task.effort(n_starts, k), task.rng, graph.counts)
        votes = ensemble.votes(draws.labels, draws.starts, draws.weights, _joined(graph, meta)[graph.number], k)
        labels = elected(votes)
        return Candidate(canonical_labels(filled(votes, labels) if task.n_clusters else labels))

    return best_number(draws, loss, task, fit, title="Clusters of clusters")


class _Graph(NamedTuple):
    """The different clusters (C) of all draws, and those (m) that are vertices."""

    number: npt.NDArray[np.intp]  # (R,), which of them each cluster of each draw is
    weights: Floats  # (C,), weight of the draws that have it
    vertices: npt.NDArray[np.intp]  # (m,), of them
    counts: Floats  # (m,), weight of the draws with a vertex, among those that the vertices come from
    similarity: npt.NDArray[np.float32]  # (C, m), of Jaccard


def _graph(draws: PartitionDraws) -> _Graph:
    # Two random sums over the members, in the order of the items: they are equal for equal sets, and for no others.
    marks = np.random.default_rng(0).random((draws.n_items, 2))
    sums = ensemble.scatter(draws.labels, draws.starts, marks)
    _, first, number = np.unique(sums[:, 0] + 1j * sums[:, 1], return_index=True, return_inverse=True)
    drawn = np.repeat(np.arange(draws.n_draws), draws.n_clusters)  # the draw of each cluster
    weights = draws.weights if first.size <= _MOST_VERTICES else _sampled(draws)
    totals, counts = (np.bincount(number, w[drawn]).astype(np.float64) for w in (draws.weights, weights))
    vertices = np.flatnonzero(counts)
    return _Graph(number, totals, vertices, counts[vertices], _jaccard(draws, first, number, drawn, vertices))


def _sampled(draws: PartitionDraws) -> Floats:
    """Weights (N,) of as many draws as together have about so many clusters, at even quantiles; 0 for the others."""
    number = max(1, _MOST_VERTICES * draws.n_draws // int(draws.starts[-1]))
    rows = draws.samples.at_quantiles((np.arange(number) + 0.5) / number)
    return np.bincount(rows, minlength=draws.n_draws) / number


def _jaccard(
    draws: PartitionDraws,
    first: npt.NDArray[np.intp],
    number: npt.NDArray[np.intp],
    drawn: npt.NDArray[np.intp],
    vertices: npt.NDArray[np.intp],
) -> npt.NDArray[np.float32]:
    """Similarities (C, m) of all clusters to those that are vertices; `first` (C,) says where each of them is."""
    memory.check(
        4 * first.size * vertices.size,
        f"Similarities of {first.size} clusters to {vertices.size}",
        "Give fewer draws, such as `draws.isel(draw=slice(None, None, 10))`.",
    )
    rows = np.unique(drawn[first])  # draws that have all clusters among them
    some = draws.drawn.take(rows)
    at = some.starts[np.searchsorted(rows, drawn[first])] + first - draws.starts[drawn[first]]
    sizes = ensemble.scatter(some.values, some.starts, np.ones((draws.n_items, 1)))[at].astype(np.float32)
    place = np.full(first.size, -1)
    place[vertices] = np.arange(vertices.size)
    similarity = np.empty((first.size, vertices.size), np.float32)
    for t in np.unique(drawn[first[vertices]]):
        columns = number[draws.starts[t] : draws.starts[t + 1]]
        common = ensemble.joint_counts(some.values, some.starts, draws.labels[t], columns.size)[at].astype(np.float32)
        common /= sizes + sizes[columns, 0] - common
        similarity[:, place[columns[place[columns] >= 0]]] = common[:, place[columns] >= 0]
    return similarity


def _joined(graph: _Graph, meta: Labels) -> npt.NDArray[np.int64]:
    """The meta-cluster (C,) of every cluster, given those of the vertices; numbered by their weights."""
    shares = np.zeros((meta.size, meta.max() + 1), np.float32)
    shares[np.arange(meta.size), meta] = graph.counts
    shares /= shares.sum(axis=0)
    means = graph.similarity @ shares
    joined = (means >= means.max(axis=1, keepdims=True) - SINGLE).argmax(axis=1)
    joined[graph.vertices] = meta
    order = np.argsort(-np.round(np.bincount(joined, graph.weights), _DIGITS), kind="stable")
    return np.argsort(order)[joined]
