"""The draw of minimum expected loss."""

import numpy as np

from posterior_consensus.consensus.selection import Candidate, Task, allowed
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import distinct_rows
from posterior_consensus.evaluate.expectation import least_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import CandidatesInfo
from posterior_consensus.runtime.progress import track

_CANDIDATES_AT_ONCE = 64


def best_draw(draws: PartitionDraws, loss: Loss, task: Task) -> Candidate:
    """Find the draw of minimum expected loss against all draws; equal draws are evaluated once."""
    labels = draws.labels[draws.weights > 0]
    candidates = allowed(labels[np.sort(distinct_rows(labels)[0])], task)
    if len(candidates) == 0:
        limit = f"at most {task.max_clusters}" if task.n_clusters is None else f"{task.n_clusters}"
        clusters = draws.n_clusters[draws.weights > 0]
        counts = f"{clusters.min()} to {clusters.max()}"
        raise ValueError(f"method 'best_draw' needs a draw with {limit} clusters; the draws have {counts}.")
    starts = range(0, len(candidates), _CANDIDATES_AT_ONCE)
    blocks = (candidates[i : i + _CANDIDATES_AT_ONCE] for i in track(starts, "Best draw", progressbar=task.progressbar))
    best, losses = least_loss(draws, loss, blocks)
    return Candidate(best, CandidatesInfo(n_candidates=len(losses)))
