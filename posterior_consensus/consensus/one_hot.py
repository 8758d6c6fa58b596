"""K-means on the one-hot matrix of all draws, without forming it: Lloyd's iterations (KCC), and relaxed (SDP)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import Deadline, WorkBudget
from posterior_consensus.bounds.sdp import Relaxation, RelaxationInfo, merge_equal_items
from posterior_consensus.consensus.selection import Candidate, Run, Task, best_number, elected
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import ensemble
from posterior_consensus.kernels.cells import Draws
from posterior_consensus.losses.partition_losses import within_variance
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_above, check_count, check_seconds
from posterior_consensus.runtime.tolerances import ROUNDING

Utility = Literal["category", "entropy", "cosine", "lp"]

UTILITIES = ("category", "entropy", "cosine", "lp")
_MOST_ITERATIONS = 300
_NEVER = -1e300  # finite, as a draw's weight may be 0
_BYTES_A_CELL = 40  # of the tables of draws' clusters by clusters
_BYTES_AN_ITEM = 32  # per cluster
_ITEMS_AT_START = 20_000  # size of the sample of items for the starts
_SECONDS_TO_RELAX = 5.0  # estimated time of the work
_MOST_SHARES = 30  # most numbers of clusters between which the time is divided


@dataclass(frozen=True, kw_only=True)
class KMeansInfo(FitInfo):
    """Record of "kcc", with the name of the maximized `utility`."""

    utility: str


def kcc(
    draws: PartitionDraws, loss: Loss, task: Task, *, utility: Utility = "category", p: float = 5.0, n_starts: int = 10
) -> Candidate:
    """Maximize the mean utility of a partition against the draws, by k-means on their one-hot matrix.

    Parameters
    ----------
    utility : {"category", "entropy", "cosine", "lp"}
        Category utility, mutual information in nats, or the gain in the Euclidean norm or in the norm of order `p`.
        K-means then uses the squared distance, the Kullback-Leibler divergence, the angle, or the distance of the norm.
    p : float above 1
        Order of the norm of "lp".
    n_starts : int
        Number of k-means++ starts, on a sample of 20,000 items if there are more. The start of largest utility
        continues with all items. Fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    Let s_k be the share of items in cluster k. Let p_tk and p_t be the distributions over the clusters of draw t of the
    items of k and of all items. The utility is

        sum_t w_t [sum_k s_k phi(p_tk) - phi(p_t)],

    where phi(p) is sum_l p_l^2 (category), sum_l p_l log p_l (entropy), or a norm of p (cosine, lp). The distance of an
    item from a centroid is the height of phi above its tangent at the centroid. As phi is convex, Lloyd's iterations
    never lower the utility [1]_. For category utility this is the squared Euclidean distance between rows of the
    one-hot matrix, and n (1 - sum_t w_t phi(p_t) - utility) is the sum of squares.

    The other utilities start from the result for category utility. The Kullback-Leibler divergence is large if an item
    has no co-member of a cluster in some draw, so iterations from single items would hardly move. An iteration costs
    n_items x n_draws x clusters, in memory proportional to n_items x (n_draws + clusters).

    References
    ----------
    .. [1] Wu, Liu, Xiong, Cao and Chen (2015), IEEE Transactions on Knowledge and Data Engineering 27(1), 155-169.
       https://doi.org/10.1109/TKDE.2014.2316512
    """
    tangent = _tangent(utility, p)
    check_count("n_starts", n_starts)
    table = Draws(draws.labels, draws.starts, draws.weights)
    most = task.numbers(draws)[-1]
    check_memory_of_k_means(draws, most)

    def fit(k: int) -> Candidate:
        run = _best_run(table, k, task.effort(n_starts, k), tangent, task.rng)
        return Candidate(canonical_labels(run.labels), KMeansInfo.of(run.trace, run.converged, utility=utility))

    return best_number(draws, loss, task, fit, title="K-means consensus clustering")


def check_memory_of_k_means(draws: PartitionDraws, n_clusters: int) -> None:
    """Raise MemoryError if k-means into this many clusters exceeds the budget."""
    size = _BYTES_AN_ITEM * draws.n_items * n_clusters
    memory.check(size, f"K-means of {draws.n_items} items in {n_clusters} clusters", "Set `max_clusters` to fewer.")


class _Norm(NamedTuple):
    """Value of phi for each draw and cluster (N, K), and its tangent at the centroids for each label (R, K)."""

    value: Floats
    tangent: Floats


Tangent = Callable[[Floats, npt.NDArray[np.int64]], _Norm]


def _tangent(utility: Any, p: Any) -> Tangent:
    if utility not in UTILITIES:
        raise ValueError(f"`utility` must be one of {', '.join(map(repr, UTILITIES))}; got {utility!r}.")
    order = check_above("p", p, 1)
    norms = {"cosine": partial(_norms, order=2.0), "lp": partial(_norms, order=order)}
    return ({"category": _squares, "entropy": _entropies} | norms)[utility]


def _squares(shares: Floats, starts: npt.NDArray[np.int64]) -> _Norm:
    value = np.add.reduceat(shares**2, starts[:-1])
    return _Norm(value, 2 * shares - np.repeat(value, np.diff(starts), axis=0))


def _entropies(shares: Floats, starts: npt.NDArray[np.int64]) -> _Norm:
    logarithms = np.log(np.maximum(shares, np.finfo(float).tiny))  # finite, yet below the value of any member
    return _Norm(np.add.reduceat(shares * logarithms, starts[:-1]), logarithms)


def _norms(shares: Floats, starts: npt.NDArray[np.int64], order: float) -> _Norm:
    widths = np.diff(starts)
    largest = np.maximum.reduceat(shares, starts[:-1])  # relative to it, high powers do not underflow
    largest[largest == 0] = 1.0  # for an empty cluster
    value = np.add.reduceat((shares / np.repeat(largest, widths, axis=0)) ** order, starts[:-1]) ** (1 / order)
    value *= largest
    scaled = shares / np.repeat(np.where(value > 0, value, 1.0), widths, axis=0)
    return _Norm(value, scaled ** (order - 1))


def _best_run(draws: Draws, n_clusters: int, n_starts: int, tangent: Tangent, rng: np.random.Generator) -> Run:
    n_items = draws.labels.shape[1]
    sample = draws
    if n_items > _ITEMS_AT_START:
        items = np.sort(rng.choice(n_items, _ITEMS_AT_START, replace=False))
        sample = draws._replace(labels=np.ascontiguousarray(draws.labels[:, items]))
    runs = [_lloyd(sample, _spread_start(sample, n_clusters, rng), _squares) for _ in range(n_starts)]
    if tangent is not _squares:
        runs = [_lloyd(sample, run.labels, tangent) for run in runs]
    best = max(runs, key=lambda run: run.objective)
    if sample is draws:
        return best
    _, closeness = _to_centroids(sample, best.labels, int(best.labels.max()) + 1, tangent, draws)
    return _lloyd(draws, elected(closeness, np.zeros(n_items, np.int32)), tangent)


def _spread_start(draws: Draws, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Allocate every item to the most similar centre of greedy k-means++, which is that of scikit-learn."""
    n_items = draws.labels.shape[1]
    nearest = ensemble.similarity_rows(draws.labels, draws.weights, _of(draws, rng.integers(n_items, size=1)))[0]
    labels = np.zeros(n_items, np.int32)
    for k in range(1, n_clusters):
        distances = np.maximum(1.0 - nearest, 0.0)
        distances[distances < ROUNDING] = 0.0
        total = np.cumsum(distances)
        if total[-1] == 0.0:  # all items equal a centre
            break
        items = np.searchsorted(total, rng.random(2 + int(np.log(n_clusters))) * total[-1], side="right")
        rows = ensemble.similarity_rows(draws.labels, draws.weights, _of(draws, np.minimum(items, n_items - 1)))
        row = rows[np.maximum(rows, nearest).sum(axis=1).argmax()]
        labels[row > nearest + ROUNDING] = k
        nearest = np.maximum(row, nearest)
    return labels


def _of(draws: Draws, items: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Labels of some items in all draws, (items.size, N)."""
    return np.ascontiguousarray(draws.labels[:, items].T)


def _lloyd(draws: Draws, labels: Labels, tangent: Tangent) -> Run:
    """Lloyd's iterations until no item moves; the trace has the utility before each iteration."""
    n_clusters, n_items = int(labels.max()) + 1, labels.size
    all_shares = ensemble.joint_counts(draws.labels, draws.starts, np.zeros_like(labels), 1) / n_items
    least = float(draws.weights @ tangent(all_shares, draws.starts).value[:, 0])
    trace: list[float] = []
    for _ in range(_MOST_ITERATIONS):
        value, closeness = _to_centroids(draws, labels, n_clusters, tangent, draws)
        trace.append(value / n_items - least)
        moved = elected(closeness, labels)
        if np.array_equal(moved, labels):
            return Run(labels, trace, True)
        labels = moved
    return Run(labels, trace, False)


def _to_centroids(
    draws: Draws, labels: Labels, n_clusters: int, tangent: Tangent, items: Draws
) -> tuple[float, Floats]:
    """Sum of phi over the items, and minus the distance of `items` of the same draws to each centroid (n, K)."""
    sizes = np.bincount(labels, minlength=n_clusters)
    closeness = np.zeros((items.labels.shape[1], n_clusters))
    values = np.empty((len(draws.weights), n_clusters))
    for rows in memory.parts(len(values), _BYTES_A_CELL * n_clusters * draws.starts[-1] / len(values)):
        starts = draws.starts[rows.start : rows.stop + 1] - draws.starts[rows.start]
        counts = ensemble.joint_counts(draws.labels[rows], starts, labels, n_clusters)
        values[rows], scores = tangent(counts / np.maximum(sizes, 1), starts)
        scores[:, sizes == 0] = _NEVER
        ensemble.gather_more(items.labels[rows], starts, draws.weights[rows], scores, closeness)
    return float(draws.weights @ values @ sizes), closeness


def sdp(draws: PairSource, loss: Loss, task: Task, *, seconds: float | None = None) -> Candidate:
    """Minimize "within_variance" by semidefinite relaxation, rounding and moves, with a lower bound.

    Parameters
    ----------
    seconds : float, optional
        Time limit of the relaxation, divided between the numbers of clusters. By default the limit is a fixed amount of
        work, about five seconds.

    Notes
    -----
    The objective is Model 2 of Singh, Mukherjee, Peng and Xu (NIPS 2007), "Ensemble clustering using semidefinite
    programming", which is k-means on the one-hot matrix. Items with equal labels in all draws are merged. The
    relaxation is the one by which :func:`certify` bounds "within_variance". It is rounded whenever its bound is
    computed: each item takes the largest entry of the projection to rank k [1]_. Moves of single signatures then lower
    the objective. The work ends when the best partition meets the bound.

    By default, the number of clusters minimizes the expected `loss`. `info` has the objective and the bound for each
    number of clusters tried. A small difference means that this number is solved.

    References
    ----------
    .. [1] Singh, Mukherjee, Peng and Xu (2010), Ensemble clustering using semidefinite programming with applications,
       Machine Learning 79, 177-200. https://doi.org/10.1007/s10994-009-5158-y
    """
    check_seconds(seconds)
    merged = merge_equal_items(draws)
    share = 1 / min(len(task.numbers(draws)), _MOST_SHARES)
    solved: dict[int, tuple[float, float]] = {}

    def fit(k: int) -> Candidate:
        if k >= merged.counts.size:
            solved[k] = 0.0, 0.0
            info = RelaxationInfo(n_signatures=merged.counts.size, n_iter=0)
            return Candidate(canonical_labels(merged.signature), info)
        budget = WorkBudget(share * _SECONDS_TO_RELAX) if seconds is None else Deadline(share * float(seconds))
        relaxation = Relaxation(merged, k, budget)
        relaxation.run("Semidefinite relaxation", progressbar=task.progressbar and task.n_clusters is not None)
        solved[k] = relaxation.objective, relaxation.lower_bound
        return Candidate(relaxation.partition, relaxation.info)

    best = best_number(draws, loss, task, fit, title="Semidefinite relaxation")
    assert isinstance(best.info, RelaxationInfo)
    objectives, bounds = zip(*(solved[k] for k in sorted(solved)), strict=True)
    info = replace(best.info, objectives=list(objectives), lower_bounds=list(bounds))
    return Candidate(best.labels, info, min(bounds) if loss == within_variance() else None)
