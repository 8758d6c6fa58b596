"""The partition around which the draws are noise, by the random perturbation model."""

from __future__ import annotations

from dataclasses import dataclass

from posterior_consensus.consensus.perturbation.fit import Noise, as_fit, fit
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo


@dataclass(frozen=True, kw_only=True)
class PerturbationInfo(FitInfo):
    """Record of "rpm_em": `noise`, `error_rate` and `log_likelihood` are those of a :class:`PerturbationFit`."""

    noise: float
    error_rate: float
    log_likelihood: float


def rpm_em(
    draws: PartitionDraws, loss: Loss, task: Task, *, noise: Noise = "shared", n_starts: int = 10, max_steps: int = 300
) -> Candidate:
    """Take the most probable clusters of the random perturbation model, whatever the loss.

    Parameters
    ----------
    noise : {"shared", "per_draw"}
        Whether all draws are equally noisy, or each has a noise of its own.
    n_starts : int
        Number of draws to start from.
    max_steps : int
        Largest number of steps from the best of them.

    Notes
    -----
    :func:`random_perturbation_em` returns all results of the model; `objective` and `trace` are those of its climb.
    Clusters without items are omitted, so that the result may have fewer than `n_clusters`.
    """
    found = as_fit(draws, fit(draws, task, noise, n_starts, max_steps))
    info = PerturbationInfo.of(
        found.trace.tolist(),
        found.converged,
        noise=found.noise,
        error_rate=found.error_rate,
        log_likelihood=found.log_likelihood,
        objectives=found.objectives.tolist(),
    )
    return Candidate(found.labels.values, info)
