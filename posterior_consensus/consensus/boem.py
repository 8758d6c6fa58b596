"""Best one-element moves: repeat the single-item move that lowers Binder's loss most."""

from dataclasses import dataclass

import numpy as np

from posterior_consensus.consensus.best_draw import best_draw
from posterior_consensus.consensus.hierarchical import hierarchical
from posterior_consensus.consensus.selection import Candidate, Task, allowed
from posterior_consensus.ensemble.draws import draws_if_any
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.evaluate.expectation import mean_loss
from posterior_consensus.kernels import pair_moves, pair_search
from posterior_consensus.losses.partition_losses import binder
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo

_MOVES_AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True)
class MovesInfo(FitInfo):
    """Record of "boem": `threshold` is the pair threshold of Binder's loss."""

    threshold: float


def boem(draws: PairSource, loss: Loss, task: Task) -> Candidate:
    """Improve the best draw by the single-item move that lowers Binder's loss most, until no move lowers it.

    Notes
    -----
    Best one-element move [1]_ [2]_, for Binder's loss with any costs. Up to its scale and a constant, the expected loss
    is the sum of tau - PSM_ij over the co-clustered pairs, with tau the pair threshold of the loss. Under any other
    loss tau is 1/2. Each step compares every move of an item to another or a new cluster. Method "greedy" also merges
    and splits clusters, and typically ends no higher.

    The start is the draw of minimum expected Binder loss among draws with an allowed number of clusters. If there is
    none, the best of all draws is adapted: clusters merge at the least cost, or the worst placed items open new ones.
    For a similarity matrix alone, the start is the best cut of the average-linkage tree.

    The n x n similarity matrix is formed. A move takes about n_items operations, and at most n_items x clusters.

    References
    ----------
    .. [1] Filkov and Skiena (2004), International Journal on Artificial Intelligence Tools 13(4), 863-880.
       https://doi.org/10.1142/S0218213004001867
    .. [2] Goder and Filkov (2008), Consensus clustering algorithms: comparison and refinement, ALENEX 2008, 109-117.
       https://doi.org/10.1137/1.9781611972887.11
    """
    record = loss.as_binder() or binder()
    partition = _start(draws, record, task)
    similarity = draws.similarity()
    np.fill_diagonal(similarity, 0.0)
    costs = pair_moves.Costs(record.numerator["A"], record.numerator["B"])
    fewest, most = task.n_clusters or 1, task.most or draws.n_items
    changes, buffer = np.empty(0), np.empty(_MOVES_AT_ONCE)
    n_moves = buffer.size
    while n_moves == buffer.size:
        n_moves = pair_search.move_best(similarity, costs, partition, fewest, most, buffer)
        changes = np.concatenate([changes, buffer[:n_moves]])
    labels = canonical_labels(partition)
    objective = float(mean_loss(draws, labels[np.newaxis], record)[0])
    to_come = np.cumsum(np.append(changes, 0.0)[::-1])[::-1]
    trace = (objective - record.scale(draws.n_items) * to_come).tolist()
    return Candidate(labels, MovesInfo.of(trace, True, n_iter=changes.size, threshold=record.numerator["B"] / 2))


def _start(draws: PairSource, loss: Loss, task: Task) -> Labels:
    if (posterior := draws_if_any(draws)) is None:
        return hierarchical(draws, loss, task).labels.astype(np.int32)
    if len(allowed(posterior.labels, task)) == 0:
        task = task._replace(n_clusters=None, max_clusters=None)
    return best_draw(posterior, loss, task).labels.astype(np.int32)
