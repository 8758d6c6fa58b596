"""Ensemble clustering by semidefinite programming: k-means on the one-hot matrix of all draws, relaxed and bounded."""

from dataclasses import replace

from posterior_consensus.bounds.budget import Deadline, WorkBudget
from posterior_consensus.bounds.sdp import Relaxation, RelaxationInfo, merge
from posterior_consensus.consensus.selection import Candidate, Task, best_number
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.losses.pair_losses import within_variance
from posterior_consensus.losses.record import Loss
from posterior_consensus.runtime.arguments import check_seconds

_SECONDS = 5.0  # estimated time of the work
_MOST_SHARES = 30  # most numbers of clusters between which the time is divided


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
    merged = merge(draws)
    share = 1 / min(len(task.numbers(draws)), _MOST_SHARES)
    solved: dict[int, tuple[float, float]] = {}

    def fit(k: int) -> Candidate:
        if k >= merged.counts.size:
            solved[k] = 0.0, 0.0
            info = RelaxationInfo(n_signatures=merged.counts.size, n_iter=0)
            return Candidate(canonical_labels(merged.signature), info)
        budget = WorkBudget(share * _SECONDS) if seconds is None else Deadline(share * float(seconds))
        relaxation = Relaxation(merged, k, budget)
        relaxation.run("Semidefinite relaxation", progressbar=task.progressbar and task.n_clusters is not None)
        solved[k] = relaxation.objective, relaxation.lower_bound
        return Candidate(relaxation.partition, relaxation.info)

    best = best_number(draws, loss, task, fit, title="Semidefinite relaxation")
    assert isinstance(best.info, RelaxationInfo)
    objectives, bounds = zip(*(solved[k] for k in sorted(solved)), strict=True)
    info = replace(best.info, objectives=list(objectives), lower_bounds=list(bounds))
    return Candidate(best.labels, info, min(bounds) if loss == within_variance() else None)
