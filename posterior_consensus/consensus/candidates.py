"""Methods that list partitions and keep the one of minimum expected loss.

The list has all partitions, the draws, the cuts of a tree, pivots in several orders, or stable components by seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Literal

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.selection import Candidate, Task, allowed, filled, small_matrix
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.expectation import labels_for, least_loss, mean_between
from posterior_consensus.ensemble.partitions import (
    Labels,
    canonical_labels,
    distinct_rows,
    enumerate_partitions,
    partitions_with_noise,
)
from posterior_consensus.losses.partition_losses import jaccard
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import CandidatesInfo, Info, NumbersInfo
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_between, check_count, check_integer, check_number
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.classical import best_cut

MOST_ITEMS = 10  # 115,975 partitions
_CANDIDATES_AT_ONCE = 64
LINKAGES = ("average", "complete")
_MOST_THRESHOLDS = 100  # separations or thresholds
_DIGITS = 12  # of a similarity; differences beyond them are rounding


def enumeration(draws: PairSource, loss: Loss, task: Task) -> Candidate:
    """Find the partition of minimum expected loss by enumeration, for at most ten items."""
    if draws.n_items > MOST_ITEMS:
        raise ValueError(f"method 'enumeration' takes at most {MOST_ITEMS} items; got {draws.n_items}. Use 'greedy'.")
    listed = partitions_with_noise(draws.n_items) if loss.has_noise else enumerate_partitions(draws.n_items)
    blocks = track(listed, "Enumeration", progressbar=task.progressbar)
    best, losses = least_loss(draws, loss, (allowed(block, task) for block in blocks))
    return Candidate(best, CandidatesInfo(n_candidates=len(losses)))


def best_draw(draws: PartitionDraws, loss: Loss, task: Task) -> Candidate:
    """Find the draw of minimum expected loss against all draws; equal draws are evaluated once."""
    labels = labels_for(draws, loss)[draws.weights > 0]
    candidates = allowed(labels[np.sort(distinct_rows(labels)[0])], task)
    if len(candidates) == 0:
        limit = f"at most {task.max_clusters}" if task.n_clusters is None else f"{task.n_clusters}"
        clusters = draws.n_clusters[draws.weights > 0]
        counts, words = f"{clusters.min()} to {clusters.max()}", draws.samples.words
        raise ValueError(
            f"method 'best_draw' needs a {words.draw} with {limit} clusters; the {words.draws} have {counts}."
        )
    starts = range(0, len(candidates), _CANDIDATES_AT_ONCE)
    blocks = (candidates[i : i + _CANDIDATES_AT_ONCE] for i in track(starts, "Best draw", progressbar=task.progressbar))
    best, losses = least_loss(draws, loss, blocks)
    return Candidate(best, CandidatesInfo(n_candidates=len(losses)))


def hierarchical(
    draws: PairSource, loss: Loss, task: Task, *, linkage: Literal["average", "complete"] = "average"
) -> Candidate:
    """Cut the tree of hierarchical clustering with distances 1 - PSM at the minimum expected loss.

    Parameters
    ----------
    linkage : {"average", "complete"}
        Linkage of the tree.

    Notes
    -----
    This is the approach of `minbinder` and `minVI` in the R packages mcclust and mcclust.ext: Fritsch and Ickstadt
    (2009), Bayesian Analysis 4(2), 367-391, https://doi.org/10.1214/09-BA414.
    """
    if linkage not in LINKAGES:
        raise ValueError(f"`linkage` must be one of {', '.join(map(repr, LINKAGES))}; got {linkage!r}.")
    numbers = task.numbers(draws)
    best, losses = best_cut(draws, loss, numbers, linkage)
    return Candidate(best, NumbersInfo(linkage=linkage, n_clusters_tried=list(numbers), expected_losses=losses))


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
        Similarity to the pivot above which an item joins its cluster; an item of this similarity does not.
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


@dataclass(frozen=True, kw_only=True)
class SeedsInfo(Info):
    """Record of "sccc".

    Attributes
    ----------
    threshold : float
        Largest similarity of two seeds of the result: 1 - g / m for the seed separation g among m draws.
    n_components : int
        Number of stable components.
    thresholds : list of float
        Feasible thresholds, with enough seeds.
    n_clusters : list of int
        Number of clusters for each feasible threshold.
    expected_losses : list of float
        Expected loss of the partition for each feasible threshold.
    n_infeasible : int
        Number of thresholds with too few seeds.
    stability : float
        Averaged Jaccard index between the partitions of the feasible thresholds.
    """

    threshold: float
    n_components: int
    thresholds: list[float]
    n_clusters: list[int]
    expected_losses: list[float]
    n_infeasible: int
    stability: float

    @property
    def mean_loss(self) -> float:
        """Mean of the expected losses."""
        return fmean(self.expected_losses)

    @property
    def spread(self) -> float:
        """Standard deviation of the expected losses."""
        return pstdev(self.expected_losses)


def sccc(
    draws: PairSource, loss: Loss, task: Task, *, separation: int | None = None, threshold: float | None = None
) -> Candidate:
    """Cluster stable components: the largest dissimilar ones are seeds, and every other one joins the nearest seed.

    Parameters
    ----------
    separation : int, optional
        Seed separation: the least number of draws in which the labels of two seeds differ. By default all values from 1
        to the number of draws are tried, and the partition of minimum expected loss is kept; 0 equals 1.
    threshold : float in [0, 1), optional
        Largest similarity of two seeds, instead of `separation`; two seeds may have this similarity. For m draws, the
        separation g equals the threshold 1 - g / m.

    Notes
    -----
    Stable component consensus clustering [1]_. A component is a set of items with equal labels in all draws, see
    :func:`stable_components`. In decreasing order of size, a component becomes a seed if it differs from all previous
    seeds in at least `separation` draws, up to `n_clusters` or `max_clusters` seeds. Every other component joins the
    seed from which it differs in the fewest draws; ties go to the larger seed.

    A separation with fewer seeds than `n_clusters` is infeasible and skipped; a requested separation then gives fewer
    clusters. For more clusters than components, single items leave their component. `info` has the expected loss for
    each feasible separation, their mean and standard deviation, and the averaged Jaccard index between the partitions,
    the stability of [1]_. Without `n_clusters`, the separation determines the number of clusters.

    The method is for few partitions, such as those of chains or of other methods. With many draws, nearly every
    component is a single item, and the seeds are the first dissimilar items. With weights, more than 100 draws or a
    similarity matrix alone, up to 100 thresholds between the observed similarities replace the separations.

    References
    ----------
    .. [1] Bekkerman, Scholz and Viswanathan (2009), Improving clustering stability with combinatorial MRFs, KDD 2009,
       99-107; report HPL-2009-46 of HP Laboratories.
    """
    draws = draws.without_zero_weights()
    components = canonical_labels(draws.signatures())
    sizes = np.bincount(components)
    order = np.argsort(-sizes, kind="stable")
    first = np.unique(components, return_index=True)[1][order]
    similarity = np.round(draws.of_items(first).shared_similarity, _DIGITS)
    most = task.most or draws.n_items
    thresholds = _thresholds(draws, similarity, separation, threshold)
    seeded = [_seeded(similarity, most, one) for one in track(thresholds, "Seeding", progressbar=task.progressbar)]
    fewest = min(task.n_clusters or 1, first.size)
    feasible = [at for at, labels in enumerate(seeded) if labels.max() + 1 >= fewest]
    if not feasible:
        feasible = list(range(len(seeded)))
    rank = np.empty(first.size, np.intp)
    rank[order] = np.arange(first.size)
    partitions = np.stack([canonical_labels(seeded[at][rank[components]]) for at in feasible])
    if task.n_clusters is not None and task.n_clusters > first.size:
        partitions = np.stack([filled(np.zeros((draws.n_items, task.n_clusters)), labels) for labels in partitions])
    best, losses = least_loss(draws, loss, [partitions])
    info = SeedsInfo(
        threshold=thresholds[feasible[int(np.argmin(losses))]],
        n_components=first.size,
        thresholds=[thresholds[at] for at in feasible],
        n_clusters=(partitions.max(axis=1) + 1).tolist(),
        expected_losses=losses,
        n_infeasible=len(seeded) - len(feasible),
        stability=1.0 - mean_between(partitions, jaccard()),
    )
    return Candidate(best, info)


def _seeded(similarity: Floats, most: int, threshold: float) -> Labels:
    """Cluster of each component, in decreasing size, with at most `most` seeds of at most this similarity."""
    nearest = np.full(len(similarity), -np.inf)  # similarity to the nearest seed
    labels = np.zeros(len(similarity), np.int32)
    n_seeds = 0
    for at, row in enumerate(similarity):
        if nearest[at] <= threshold and n_seeds < most:
            closer = row > nearest
            labels[closer], nearest[closer] = n_seeds, row[closer]
            labels[at], nearest[at] = n_seeds, np.inf  # a seed joins no other
            n_seeds += 1
    return labels


def _thresholds(draws: PairSource, similarity: Floats, separation: int | None, threshold: float | None) -> list[float]:
    if separation is not None and threshold is not None:
        raise ValueError("`separation` or `threshold` must be None: one follows from the other.")
    if threshold is not None:
        check_number("threshold", threshold)
        if not 0 <= threshold < 1:
            raise ValueError(f"`threshold` must be at least 0 and below 1; got {threshold!r}.")
        return [float(threshold)]
    if separation is not None:
        samples = draws.as_draws("`separation`").samples
        most = samples.n_draws
        check_integer("separation", separation)
        if not 0 <= separation <= most:
            raise ValueError(
                f"`separation` must lie between 0 and the number of {samples.words.draws}, {most}; got {separation}."
            )
        return [float(np.round(1.0 - separation / most, _DIGITS))]
    n_draws = draws.denominator()
    if n_draws is not None and n_draws <= _MOST_THRESHOLDS:
        return np.round(1.0 - np.arange(1, n_draws + 1) / n_draws, _DIGITS).tolist()
    distinct = np.unique(np.append(similarity[np.triu_indices(len(similarity), 1)], 0.0))
    if distinct.size > _MOST_THRESHOLDS:
        distinct = distinct[np.linspace(0, distinct.size - 1, _MOST_THRESHOLDS).round().astype(np.intp)]
    return distinct[::-1].tolist()
