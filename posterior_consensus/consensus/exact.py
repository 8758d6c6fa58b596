"""The partition of minimum expected loss, proven."""

import numpy as np

from posterior_consensus.bounds.binder import binder_bound
from posterior_consensus.bounds.budget import Deadline, WorkBudget
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.evaluate.expectation import least_loss
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.arguments import check_seconds
from posterior_consensus.search.engine import search

_SECONDS = 60.0  # estimated time of the work


def exact(draws: PairSource, loss: Loss, task: Task, *, seconds: float | None = None) -> Candidate:
    """Search greedily, then branch and bound until the partition is proven optimal, for Binder's loss with any costs.

    Parameters
    ----------
    seconds : float, optional
        Time limit of the proof. At the limit, the result is the best partition found, with its optimality gap. By
        default the limit is a fixed amount of work, about one minute.
    """
    record = loss.as_binder()
    if record is None:
        raise ValueError(
            f"method 'exact' takes Binder's loss only; got {loss.name!r}. "
            "Use 'enumeration' for at most ten items, else 'greedy', and bound its result by certify."
        )
    if task.most is not None:
        raise ValueError("method 'exact' takes neither `n_clusters` nor `max_clusters`. Use 'greedy'.")
    check_seconds(seconds)
    found = search(draws, loss, rng=task.rng, progressbar=task.progressbar)
    start = draws.as_labels(found.labels)
    budget = WorkBudget(_SECONDS) if seconds is None else Deadline(float(seconds))
    bound = binder_bound(draws, record, start, budget=budget, progressbar=task.progressbar)
    candidates = np.stack([start, start if bound.partition is None else bound.partition])
    return Candidate(least_loss(draws, loss, [candidates])[0], bound.info, bound.value)
