"""Pivoting: each unassigned item in turn founds a cluster with all similar unassigned items."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.selection import Candidate, Task, small_matrix
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.evaluate.expectation import least_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import Info
from posterior_consensus.runtime.arguments import check_between, check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PivotInfo(Info):
    """Record of "cc_pivot": the requested similarity to a pivot, and the expected loss for each order."""

    threshold: float
    expected_losses: list[float]


def cc_pivot(draws: PairSource, loss: Loss, task: Task, *, threshold: float = 0.25, n_starts: int = 10) -> Candidate:
    """Cluster by pivots: in random order, each unassigned item founds a cluster with all similar unassigned items.

    Parameters
    ----------
    threshold : float in (0, 1)
        Similarity to the pivot above which an item joins its cluster.
    n_starts : int
        Number of random orders; the partition of minimum expected loss is kept. Reference [2]_ reports a single
        order.

    Notes
    -----
    CC-Pivot [1]_, with the threshold 0.25 of [2]_. A pivot i takes every unassigned item j with PSM_ij > `threshold`,
    which determines the number of clusters. For the threshold 1/2, the expected Binder loss of a single order is, on
    average, within a constant factor of the minimum. If noisy similarities straddle the threshold, there are many
    clusters; :func:`pair_threshold` calibrates a threshold.

    At the largest allowed number of clusters, the remaining items join the most similar pivot. With fewer than
    `n_clusters` clusters, the item least similar to its pivot becomes a pivot. It takes every item that is more similar
    to it than to its present pivot.

    Up to 4,000 items the similarity matrix is formed; beyond that, a pivot costs n_items x n_draws.

    References
    ----------
    .. [1] Ailon, Charikar and Newman (2008), Journal of the ACM 55(5), 23.
       https://doi.org/10.1145/1411509.1411513
    .. [2] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.
    """
    check_between("threshold", threshold, 1)
    check_count("n_starts", n_starts)
    fewest, most = task.n_clusters or 1, task.most or draws.n_items
    matrix = small_matrix(draws)
    row = draws.row if matrix is None else matrix.__getitem__
    found = [
        canonical_labels(_pivoted(row, task.rng.permutation(draws.n_items), threshold, fewest, most))
        for _ in track(range(n_starts), "Pivoting", progressbar=task.progressbar)
    ]
    best, losses = least_loss(draws, loss, [np.stack(found)])
    return Candidate(best, PivotInfo(threshold=float(threshold), expected_losses=losses))


def _pivoted(
    row: Callable[[int], Floats], order: npt.NDArray[np.int64], threshold: float, fewest: int, most: int
) -> Labels:
    labels = np.full(order.size, -1, np.int32)
    nearest = np.full(order.size, np.inf)  # similarity to the item's pivot; infinite for a pivot
    pivots: list[int] = []
    for pivot in order:
        if labels[pivot] >= 0:
            continue
        if len(pivots) == most:
            break
        similarities = row(pivot)
        joins = (labels < 0) & (similarities > threshold + ROUNDING)
        labels[joins], nearest[joins] = len(pivots), similarities[joins]
        labels[pivot], nearest[pivot] = len(pivots), np.inf
        pivots.append(pivot)
    left = np.flatnonzero(labels < 0)
    if left.size:
        to_pivots = np.stack([row(pivot)[left] for pivot in pivots])
        labels[left] = to_pivots.argmax(axis=0)
    for k in range(len(pivots), fewest):
        pivot = int(nearest.argmin())
        similarities = row(pivot)
        joins = similarities > nearest + ROUNDING
        labels[joins], nearest[joins] = k, similarities[joins]
        labels[pivot], nearest[pivot] = k, np.inf
    return labels
