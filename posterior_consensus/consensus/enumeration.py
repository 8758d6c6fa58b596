"""Enumeration of all partitions."""

from posterior_consensus.consensus.selection import Candidate, Task, allowed
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.evaluate.expectation import least_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import CandidatesInfo
from posterior_consensus.runtime.progress import track

MOST_ITEMS = 10  # 115,975 partitions


def enumeration(draws: PairSource, loss: Loss, task: Task) -> Candidate:
    """Find the partition of minimum expected loss by enumeration, for at most ten items."""
    if draws.n_items > MOST_ITEMS:
        raise ValueError(f"method 'enumeration' takes at most {MOST_ITEMS} items; got {draws.n_items}. Use 'greedy'.")
    blocks = track(enumerate_partitions(draws.n_items), "Enumeration", progressbar=task.progressbar)
    best, losses = least_loss(draws, loss, (allowed(block, task) for block in blocks))
    return Candidate(best, CandidatesInfo(n_candidates=len(losses)))
