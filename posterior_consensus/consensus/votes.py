"""Methods in which draws vote: matched clusters by align_and_vote, clusters of clusters by MCLA."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import aslinearoperator

from posterior_consensus.consensus.selection import Candidate, Run, Task, best_number, elected, filled
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.switching import matched_by_draw
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING, SINGLE
from posterior_consensus.search.classical import k_means, leading_of

_MOST_ROUNDS = 100

_MOST_VERTICES = 2000
_DIGITS = 10  # of a coordinate, so that k-means does not depend on rounding


def align_and_vote(draws: PartitionDraws, loss: Loss, task: Task, *, n_starts: int = 10) -> Candidate:
    """Find the partition of minimum expected misclassification distance by matching clusters and voting in turn.

    Parameters
    ----------
    n_starts : int
        Number of draws to start from, sampled by their weights; the best result is kept.

    Notes
    -----
    The barycentre is argmin_z sum_t w_t Mis(z, z_t), equation 2 of [1]_, where Mis is the misclassification distance.
    Given z, the best matching of each draw solves an assignment problem. Given the matchings (equation 3), each item
    takes the label with the most weight, as in [2]_ for other distances. The expected distance never rises, and rounds
    end when no item moves. Clusters of a draw without a match do not vote. In a tie, an item keeps its label.

    The partition has at most as many clusters as the draw that it starts from, or exactly `n_clusters`. An empty
    cluster takes the item that loses the fewest votes. In a draw with too many clusters, the smallest ones join the
    largest. `objective` is the expected distance. A round costs n_items x n_draws, plus the assignments.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.
    .. [2] Dimitriadou, Weingessel and Hornik (2002), International Journal of Pattern Recognition and Artificial
       Intelligence 16(7), 901-912. https://doi.org/10.1142/S0218001402002052
    """
    check_count("n_starts", n_starts)
    runs = [
        _voted(draws, start, task.n_clusters)
        for start in track(_drawn_starts(draws, n_starts, task.most, task.rng), "Votes", progressbar=task.progressbar)
    ]
    best = min(runs, key=lambda run: run.objective)
    return Candidate(best.labels, FitInfo.of(best.trace, best.converged, objectives=[run.trace[-1] for run in runs]))


def _drawn_starts(draws: PartitionDraws, n_starts: int, most: int | None, rng: np.random.Generator) -> list[Labels]:
    """Distinct draws at random quantiles of their weights, with at most `most` clusters."""
    starts = {}
    for row in draws.samples.at_quantiles(rng.random(n_starts)):
        labels = draws.labels[row].astype(np.int32)
        order = np.argsort(-np.bincount(labels), kind="stable")
        if most is not None and order.size > most:
            names = np.zeros(order.size, np.int32)
            names[order[:most]] = np.arange(most)
            labels = canonical_labels(names[labels])
        starts[labels.tobytes()] = labels
    return list(starts.values())


def _voted(draws: PartitionDraws, labels: Labels, n_clusters: int | None) -> Run:
    """Vote until nothing changes; the trace has the expected distance before each round."""
    width = n_clusters or int(labels.max()) + 1
    if width > labels.max() + 1:
        labels = filled(_votes(draws, labels, width)[0], labels)
    previous, trace = labels, list[float]()
    for _ in range(_MOST_ROUNDS):
        votes, value = _votes(draws, labels, width)
        if trace and value >= trace[-1] - ROUNDING:  # filling empty clusters cost more than voting gained
            return Run(previous, trace, True)
        trace.append(value)
        previous, labels = labels, elected(votes, labels)
        if n_clusters is not None:
            labels = filled(votes, labels)
        if np.array_equal(labels, previous):
            return Run(labels, trace, True)
    return Run(previous, trace, False)


def _votes(draws: PartitionDraws, labels: Labels, width: int) -> tuple[Floats, float]:
    """Each item's votes for each of `width` clusters, and the expected misclassification distance."""
    counts = ensemble.joint_counts(draws.labels, draws.starts, labels, width)
    targets = matched_by_draw(counts, draws.starts)
    common = np.where(targets >= 0, counts[np.arange(targets.size), targets], 0)
    matched = np.add.reduceat(common, draws.starts[:-1])  # items (N,) of each draw whose clusters are matched
    votes = ensemble.votes(draws.labels, draws.starts, draws.weights, targets, width)
    return votes, 1.0 - float(draws.weights @ matched) / labels.size


def mcla(draws: PartitionDraws, loss: Loss, task: Task, *, n_starts: int = 10) -> Candidate:
    """Cluster the clusters of all draws by their common items, and assign items to meta-clusters by votes.

    Parameters
    ----------
    n_starts : int
        Number of k-means++ starts; fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    The Meta-CLustering Algorithm [1]_. The vertices of a graph are the distinct clusters of all draws, weighted by the
    draws that contain them. Edge weights are Jaccard similarities, |a and b| / |a or b|. A spectral cut of this graph
    makes meta-clusters. Every draw votes, for each item, for the meta-cluster of the item's cluster. Ties go to the
    heavier meta-cluster, then to the first one; [1]_ breaks them at random.

    Two more steps differ from [1]_. There the cut is by METIS, which makes meta-clusters of nearly equal size, and
    votes are divided by the size of the meta-cluster. With equal sizes both are equivalent. With one large cluster,
    undivided votes recover the truth much more often.

    Beyond 2,000 distinct clusters, the graph uses about this many clusters, from draws at even quantiles of the
    weights. Any other cluster joins the meta-cluster with the largest mean similarity. With `n_clusters`, an empty
    meta-cluster takes the item that loses the fewest votes.

    References
    ----------
    .. [1] Strehl and Ghosh (2002), Journal of Machine Learning Research 3, 583-617.
       https://jmlr.org/papers/v3/strehl02a.html
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
        votes = ensemble.votes(draws.labels, draws.starts, draws.weights, _meta_clusters(graph, meta)[graph.number], k)
        labels = elected(votes)
        return Candidate(canonical_labels(filled(votes, labels) if task.n_clusters else labels))

    return best_number(draws, loss, task, fit, title="Clusters of clusters")


class _Graph(NamedTuple):
    """The distinct clusters (C) of all draws, and the m clusters that are vertices."""

    number: npt.NDArray[np.intp]  # (R,), distinct cluster of each cluster of the draws
    weights: Floats  # (C,), weight of the draws that contain it
    vertices: npt.NDArray[np.intp]  # (m,), positions among the distinct clusters
    counts: Floats  # (m,), weight of the sampled draws that contain the vertex
    similarity: npt.NDArray[np.float32]  # (C, m), Jaccard


def _graph(draws: PartitionDraws) -> _Graph:
    # Two random sums over the members, in the order of the items, identify equal sets.
    marks = np.random.default_rng(0).random((draws.n_items, 2))
    sums = ensemble.scatter(draws.labels, draws.starts, marks)
    _, first, number = np.unique(sums[:, 0] + 1j * sums[:, 1], return_index=True, return_inverse=True)
    draw_of = np.repeat(np.arange(draws.n_draws), draws.backend.n_clusters)
    weights = draws.weights if first.size <= _MOST_VERTICES else _even_weights(draws)
    totals, counts = (np.bincount(number, w[draw_of]).astype(np.float64) for w in (draws.weights, weights))
    vertices = np.flatnonzero(counts)
    return _Graph(number, totals, vertices, counts[vertices], _jaccard(draws, first, number, draw_of, vertices))


def _even_weights(draws: PartitionDraws) -> Floats:
    """Weights (N,) of a sample of draws with about 2,000 clusters, at even quantiles; 0 for other draws."""
    number = max(1, _MOST_VERTICES * draws.n_draws // int(draws.starts[-1]))
    rows = draws.samples.at_quantiles((np.arange(number) + 0.5) / number)
    return np.bincount(rows, minlength=draws.n_draws) / number


def _jaccard(
    draws: PartitionDraws,
    first: npt.NDArray[np.intp],
    number: npt.NDArray[np.intp],
    draw_of: npt.NDArray[np.intp],
    vertices: npt.NDArray[np.intp],
) -> npt.NDArray[np.float32]:
    """Similarities (C, m) of distinct clusters to vertices; `first` (C,) is the first occurrence of each cluster."""
    memory.check(
        4 * first.size * vertices.size,
        f"Similarities of {first.size} clusters to {vertices.size}",
        f"Give fewer {draws.samples.words.draws}, such as `draws.take(slice(None, None, 10))`.",
    )
    rows = np.unique(draw_of[first])  # these draws contain all distinct clusters
    some = draws.backend.take(rows)
    at = some.starts[np.searchsorted(rows, draw_of[first])] + first - draws.starts[draw_of[first]]
    sizes = ensemble.scatter(some.values, some.starts, np.ones((draws.n_items, 1)))[at].astype(np.float32)
    place = np.full(first.size, -1)
    place[vertices] = np.arange(vertices.size)
    similarity = np.empty((first.size, vertices.size), np.float32)
    for t in np.unique(draw_of[first[vertices]]):
        columns = number[draws.starts[t] : draws.starts[t + 1]]
        common = ensemble.joint_counts(some.values, some.starts, draws.labels[t], columns.size)[at].astype(np.float32)
        common /= sizes + sizes[columns, 0] - common
        similarity[:, place[columns[place[columns] >= 0]]] = common[:, place[columns] >= 0]
    return similarity


def _meta_clusters(graph: _Graph, meta: Labels) -> npt.NDArray[np.int64]:
    """Meta-cluster (C,) of every distinct cluster, given the meta-clusters of the vertices; numbered by weight."""
    shares = np.zeros((meta.size, meta.max() + 1), np.float32)
    shares[np.arange(meta.size), meta] = graph.counts
    shares /= shares.sum(axis=0)
    means = graph.similarity @ shares
    joined = (means >= means.max(axis=1, keepdims=True) - SINGLE).argmax(axis=1)
    joined[graph.vertices] = meta
    order = np.argsort(-np.round(np.bincount(joined, graph.weights), _DIGITS), kind="stable")
    return np.argsort(order)[joined]
