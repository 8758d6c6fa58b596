"""The barycentre in misclassification distance, by alternating matching of clusters and voting of draws."""

import numpy as np

from posterior_consensus.consensus.selection import Candidate, Run, Task, elected, filled
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.switching import matched_by_draw
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.arguments import check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

_MOST_ROUNDS = 100


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
        _settled(draws, start, task.n_clusters)
        for start in track(_starts(draws, n_starts, task.most, task.rng), "Votes", progressbar=task.progressbar)
    ]
    best = min(runs, key=lambda run: run.objective)
    return Candidate(best.labels, FitInfo.of(best.trace, best.converged, objectives=[run.trace[-1] for run in runs]))


def _starts(draws: PartitionDraws, n_starts: int, most: int | None, rng: np.random.Generator) -> list[Labels]:
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


def _settled(draws: PartitionDraws, labels: Labels, n_clusters: int | None) -> Run:
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
