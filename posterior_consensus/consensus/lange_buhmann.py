"""Probabilistic label aggregation: EM for a mixture model of pairs of items."""

import numpy as np
from scipy.special import xlogy

from posterior_consensus.consensus.selection import Candidate, Task, best_number, filled
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.arguments import check_above, check_count

_AT_ONCE = 10  # iterations between two evaluations of the likelihood, which costs as much as an iteration
_TINY = np.finfo(np.float64).tiny


def lange_buhmann(
    draws: PairSource, loss: Loss, task: Task, *, n_starts: int = 3, max_iter: int = 300, tol: float = 1e-7
) -> Candidate:
    """Fit a mixture model to the similarities of all pairs, and assign each item its most probable label.

    Parameters
    ----------
    n_starts : int
        Number of random starts; the start of largest likelihood is kept. Fewer beyond 30 clusters unless `n_clusters`
        is given.
    max_iter : int
        Largest number of EM iterations of a start. Fewer beyond 30 clusters unless `n_clusters` is given.
    tol : float above 0
        A start ends if ten iterations raise the mean log-likelihood of a pair by at most this, in nats.

    Notes
    -----
    With S the posterior similarity matrix divided by its sum, EM maximizes

        sum_ij S_ij log sum_v p(v) p(i|v) p(j|v)

    [1]_. An item has the label argmax_v p(v) p(i|v). With P = (p(i|v)) and Q = P diag(p) P', an iteration sets p(i, v)
    to P_iv p_v [(S / Q) P]_iv, where S / Q is entry by entry. The weights of the draws are not estimated. Convergence
    is slow and the result depends on `max_iter`: if sizes differ much, thousands of iterations still improve it. With
    `n_clusters`, an unused label goes to the item for which it is closest to the most probable one.

    An iteration costs n_items^2 x clusters, in two n x n matrices.

    References
    ----------
    .. [1] Lange and Buhmann (2005), Combining partitions by probabilistic label aggregation, KDD 2005, 147-156.
       https://doi.org/10.1145/1081870.1081890
    """
    check_count("n_starts", n_starts)
    check_count("max_iter", max_iter)
    check_above("tol", tol, 0)
    pairs = draws.similarity()
    pairs /= pairs.sum()

    def fit(k: int) -> Candidate:
        n_steps = task.effort(max_iter, k)
        starts = [task.rng.random((draws.n_items, k)) + 0.5 for _ in range(task.effort(n_starts, k))]
        fits = (_fitted(pairs, start, n_steps, tol) for start in starts)
        joint, info = max(fits, key=lambda one: one[1].objective)
        labels = joint.argmax(axis=1).astype(np.int32)
        if task.n_clusters:
            labels = filled(joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY), labels)
        return Candidate(canonical_labels(labels), info)

    return best_number(draws, loss, task, fit, title="Label aggregation")


def _fitted(pairs: Floats, start: Floats, max_iter: int, tol: float) -> tuple[Floats, FitInfo]:
    """Joint probabilities p(i, v) (n, K); the trace has the log-likelihood after every ten iterations."""
    joint = start / start.sum()
    trace, n_iter, converged = [_log_likelihood(pairs, joint)], 0, False
    while n_iter < max_iter and not converged:
        steps = min(_AT_ONCE, max_iter - n_iter)
        for _ in range(steps):
            conditional, mixture = _mixture(joint)
            joint = joint * (np.divide(pairs, mixture, out=mixture) @ conditional)
        n_iter += steps
        trace.append(_log_likelihood(pairs, joint))
        converged = trace[-1] - trace[-2] <= tol
    return joint, FitInfo.of(trace, converged, n_iter=n_iter)


def _mixture(joint: Floats) -> tuple[Floats, Floats]:
    """Conditional probabilities p(i|v), and Q, from p(i, v)."""
    conditional = joint / np.maximum(joint.sum(axis=0), _TINY)
    return conditional, np.maximum(joint @ conditional.T, _TINY)


def _log_likelihood(pairs: Floats, joint: Floats) -> float:
    return float(xlogy(pairs, _mixture(joint)[1]).sum())
