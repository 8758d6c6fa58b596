"""Arguments and results of consensus methods, and the choice among partitions by their expected loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.record import Loss
from posterior_consensus.problems.earlier import Earlier
from posterior_consensus.results.work import Info, NumbersInfo
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.classical import cluster_range, k_means

_ITEMS_IN_MATRIX = 4000  # most items for which the similarity matrix is faster than repeated products with the draws
_ALL_TRIED = 30  # most numbers of clusters that are all tried
_NEXT_TRIED = 8, 2**0.5  # of more numbers: all up to the first value, then a grid with this ratio


class Task(NamedTuple):
    """Arguments of :func:`consensus_partition` that every method receives.

    Parameters
    ----------
    rng : Generator
        Source of all random numbers.
    n_clusters : int or None
        Number of clusters; None if the method chooses it.
    max_clusters : int or None
        Largest number of clusters; None for no limit.
    progressbar : bool
        Whether to show progress.
    earlier : Earlier or None
        Of scored pairs, an earlier partition, which components that did not change keep.

    See Also
    --------
    consensus_partition : It passes the task to the method.

    Examples
    --------
    >>> import numpy as np
    >>> from posterior_consensus.consensus.selection import Task
    >>> Task(np.random.default_rng(1), max_clusters=5).most
    5
    """

    rng: np.random.Generator
    n_clusters: int | None = None
    max_clusters: int | None = None
    progressbar: bool = False
    earlier: Earlier | None = None

    @property
    def most(self) -> int | None:
        """Largest number of clusters, or the requested number."""
        return self.n_clusters or self.max_clusters

    def numbers(self, draws: PairSource) -> range:
        """Return the numbers of clusters to try: the requested number, or 1 to the largest allowed or in any draw.

        Parameters
        ----------
        draws : PairSource
            Draws, or a similarity matrix alone.

        Returns
        -------
        range
            The numbers of clusters.
        """
        return cluster_range(draws, self.n_clusters, self.max_clusters)

    def effort(self, count: int, n_clusters: int) -> int:
        """Reduce a number of starts or iterations in proportion beyond 30 clusters, unless their number is requested.

        Parameters
        ----------
        count : int
            Number of starts or iterations.
        n_clusters : int
            Number of clusters of the fit.

        Returns
        -------
        int
            The reduced number, at least 1.
        """
        return count if self.n_clusters else max(1, count * _ALL_TRIED // max(n_clusters, _ALL_TRIED))


@dataclass(frozen=True, eq=False)
class Candidate:
    """Result of a consensus method.

    Parameters
    ----------
    labels : ndarray of shape (n_items,)
        Labels of any values.
    info : Info or None
        Record of the search; a method of your own may define a subclass.
    lower_bound : float, optional
        Lower bound of the expected loss of all partitions, if the method computes one.
    checksums : ndarray of shape (n_items,), dtype uint64, optional
        Of scored pairs, a checksum of each record's component.

    See Also
    --------
    consensus_partition : ``method=`` accepts a function that returns a candidate.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> from posterior_consensus.consensus.selection import Candidate
    >>> def first_draw(draws, loss, task):
    ...     return Candidate(draws.labels[0])
    >>> pc.consensus_partition([[0, 0, 1], [0, 1, 1]], method=first_draw).labels.values
    array([0, 0, 1], dtype=int32)
    """

    labels: npt.NDArray[Any]
    info: Info | None = None
    lower_bound: float | None = None
    checksums: npt.NDArray[np.uint64] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError if `info` cannot be stored with the result."""
        if not isinstance(self.info, Info | None):
            raise TypeError(f"`info` must be a results.work.Info or None; got {type(self.info).__name__}.")


class Run(NamedTuple):
    """End of the steps from one start."""

    labels: Labels
    trace: list[float]  # objective after each step; the last value belongs to the labels
    converged: bool

    @property
    def objective(self) -> float:
        """Objective of the labels, rounded to 12 decimals."""
        return round(self.trace[-1], 12)


def best_number(draws: PairSource, loss: Loss, task: Task, fit: Callable[[int], Candidate], *, title: str) -> Candidate:
    """Fit numbers of clusters, and return the candidate of minimum expected loss with the losses of all.

    Beyond 30 numbers, a grid is fitted: all numbers to 8, then with ratio sqrt(2). The intervals on both sides of the
    best number are then halved until they are at most 1/30 of it, or 1. Ties go to the smaller number.
    """
    fitted: dict[int, Candidate] = {}
    losses: dict[int, float] = {}
    fitting = _coarse(task.numbers(draws))
    while fitting:
        with one_blas_thread():  # sums, and so labels, must not depend on the number of threads
            fitted |= {k: fit(k) for k in track(fitting, title, progressbar=task.progressbar)}
        expected = mean_loss(draws, np.stack([fitted[k].labels for k in fitting]), loss)
        losses |= zip(fitting, expected.tolist(), strict=True)
        fitting = _beside_best(losses)
    tried = sorted(losses)
    best = fitted[min(tried, key=lambda k: losses[k])]
    own = best.info if isinstance(best.info, NumbersInfo) else NumbersInfo()
    info = replace(own, n_clusters_tried=tried, expected_losses=[losses[k] for k in tried])
    return Candidate(best.labels, info)


def _coarse(numbers: range) -> list[int]:
    if len(numbers) <= _ALL_TRIED:
        return list(numbers)
    all_up_to, ratio = _NEXT_TRIED
    grid = [k for k in numbers if k <= all_up_to]
    while grid[-1] < numbers[-1]:
        grid.append(min(round(grid[-1] * ratio), numbers[-1]))
    return grid


def _beside_best(losses: dict[int, float]) -> list[int]:
    """Midpoints of the intervals on either side of the number of minimum loss."""
    tried = sorted(losses)
    at = min(range(len(tried)), key=lambda i: losses[tried[i]])
    around = tried[max(at - 1, 0) : at + 2]
    longest = max(1, tried[at] // _ALL_TRIED)
    return [(low + high) // 2 for low, high in pairwise(around) if high - low > longest]


def small_matrix(draws: PairSource) -> Floats | None:
    """Similarity matrix, if products with it are faster than products with the draws; else None."""
    is_small = draws.n_items <= _ITEMS_IN_MATRIX and memory.fits(8 * draws.n_items**2)
    return draws.shared_similarity if is_small else None


def best_k_means(
    draws: PairSource, loss: Loss, task: Task, coordinates: Callable[[int], Floats], n_starts: int, *, title: str
) -> Candidate:
    """Cluster the items by k-means on their coordinates (n, d) for each number of clusters."""

    def fit(k: int) -> Candidate:
        return Candidate(k_means_cut(coordinates(k), k, n_starts, task))

    return best_number(draws, loss, task, fit, title=title)


def k_means_cut(points: Floats, n_clusters: int, n_starts: int, task: Task) -> Labels:
    """Cluster the items by k-means, with fewer starts for many clusters."""
    return k_means(points, n_clusters, task.effort(n_starts, n_clusters), task.rng)


def allowed(partitions: npt.NDArray[Any], task: Task) -> npt.NDArray[Any]:
    """Select the canonical partitions (P, n) with an allowed number of clusters."""
    counts = partitions.max(axis=1).astype(np.int64) + 1
    if task.n_clusters is not None:
        return partitions[counts == task.n_clusters]
    return partitions if task.max_clusters is None else partitions[counts <= task.max_clusters]


def elected(scores: Floats, labels: Labels | None = None) -> Labels:
    """Label (n,) with the largest score (n, K) of each item; in a tie its label in `labels`, else the first one."""
    largest = scores.max(axis=1, keepdims=True)
    near = scores >= largest - ROUNDING * np.maximum(np.abs(largest), 1.0)
    first = near.argmax(axis=1).astype(np.int32)
    return first if labels is None else np.where(near[np.arange(labels.size), labels], labels, first)


def filled(scores: Floats, labels: Labels) -> Labels:
    """Give each unused label one item, whose score (n, K) falls least; labels with a single item keep it."""
    labels = labels.copy()
    sizes = np.bincount(labels, minlength=scores.shape[1])
    for k in np.flatnonzero(sizes == 0):
        losses = scores[np.arange(labels.size), labels] - scores[:, k]
        losses[sizes[labels] == 1] = np.inf
        item = int(losses.argmin())
        sizes[labels[item]] -= 1
        sizes[k] += 1
        labels[item] = k
    return labels
