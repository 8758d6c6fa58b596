"""Methods that factorize the similarity matrix into nonnegative factors: by least squares (NMF) or likelihood."""

from collections.abc import Callable

import numpy as np
from scipy.special import xlogy

from posterior_consensus.consensus.selection import Candidate, Task, best_number, filled, k_means_cut, small_matrix
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_above, check_count
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.classical import leading_eigenvectors

_LIFT = 0.2  # added to entries of 0, which multiplicative updates could not change
_LEAST = np.finfo(float).tiny
_AT_ONCE = 10  # iterations between two evaluations of the likelihood, which costs as much as an iteration


def nmf(
    draws: PairSource, loss: Loss, task: Task, *, max_iter: int = 100, tol: float = 1e-4, n_starts: int = 10
) -> Candidate:
    """Factorize the similarity matrix as Q S Q' with nonnegative factors, and take the clusters from Q.

    Parameters
    ----------
    max_iter : int
        Largest number of updates; fewer beyond 30 clusters unless `n_clusters` is given.
    tol : float above 0
        Updates end if the objective decreases by less than this share of it.
    n_starts : int
        Number of k-means++ starts for the initial partition.

    Notes
    -----
    The consensus clustering of [1]_ minimizes |PSM - Q S Q'|^2 over nonnegative Q (n, K) with orthonormal columns and
    S (K, K). Products and roots are entry by entry in its updates:

        Q <- Q sqrt( PSM Q S / (Q Q' PSM Q S) ),    S <- S sqrt( Q' PSM Q / (Q' Q S Q' Q) ).

    An item's label is the largest entry of its row of Q sqrt(S_kk); ties go to the first label. Updates start from
    S = Q' PSM Q and from the one-hot matrix of the partition of ``method="spectral"``, plus 0.2. `objective` is the
    squared distance; `trace` has its value before every update. Up to 4,000 items the similarity matrix is formed;
    beyond that, an update costs n_items x n_draws x K. With `n_clusters`, an unused label takes the item that loses
    least.

    References
    ----------
    .. [1] Li, Ding and Jordan (2007), Seventh IEEE International Conference on Data Mining, 577-582.
       https://doi.org/10.1109/ICDM.2007.98
    """
    check_count("max_iter", max_iter)
    check_above("tol", tol, 0)
    check_count("n_starts", n_starts)
    product, squares = _products(draws)
    leading = leading_eigenvectors(draws, task.numbers(draws)[-1])

    def fit(k: int) -> Candidate:
        start = k_means_cut(leading.coordinates(k), k, n_starts, task)
        memberships, info = _factorized(product, squares, start, k, task.effort(max_iter, k), tol)
        largest = memberships.max(axis=1, keepdims=True)
        labels: Labels = (memberships >= (1 - SAME) * largest).argmax(axis=1).astype(np.int32)
        return Candidate(canonical_labels(filled(memberships, labels) if task.n_clusters else labels), info)

    return best_number(draws, loss, task, fit, title="Nonnegative factors")


def _products(draws: PairSource) -> tuple[Callable[[Floats], Floats], float]:
    """Function that multiplies the similarity matrix by columns (n, c), and the sum of the squared entries."""
    if (matrix := small_matrix(draws)) is not None:
        return matrix.__matmul__, float(np.square(matrix).sum())
    return draws.product, float(sum(np.square(rows).sum() for _, rows in draws.row_blocks()))


def _factorized(
    product: Callable[[Floats], Floats], squares: float, start: Labels, n_clusters: int, max_iter: int, tol: float
) -> tuple[Floats, FitInfo]:
    """Memberships (n, K) of the items, and the record of the updates."""
    q = np.eye(n_clusters)[start] + _LIFT
    q /= np.linalg.norm(q, axis=0)
    moved = product(q)
    s = q.T @ moved
    trace, converged = list[float](), False
    for _ in range(max_iter):
        gram = q.T @ q
        trace.append(float(squares - 2 * np.sum((q.T @ moved) * s) + np.sum((gram @ s) * (s @ gram))))
        converged = len(trace) > 1 and trace[-2] - trace[-1] <= tol * abs(trace[-1])
        if converged:
            break
        pulled = moved @ s
        q = q * np.sqrt(pulled / np.maximum(q @ (q.T @ pulled), _LEAST))
        moved, gram = product(q), q.T @ q
        s = s * np.sqrt((q.T @ moved) / np.maximum(gram @ s @ gram, _LEAST))
    return q * np.sqrt(np.diag(s)), FitInfo.of(trace, converged)


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
        fits = (_fitted_by_em(pairs, start, n_steps, tol) for start in starts)
        joint, info = max(fits, key=lambda one: one[1].objective)
        labels = joint.argmax(axis=1).astype(np.int32)
        if task.n_clusters:
            labels = filled(joint / np.maximum(joint.sum(axis=1, keepdims=True), _LEAST), labels)
        return Candidate(canonical_labels(labels), info)

    return best_number(draws, loss, task, fit, title="Label aggregation")


def _fitted_by_em(pairs: Floats, start: Floats, max_iter: int, tol: float) -> tuple[Floats, FitInfo]:
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
    conditional = joint / np.maximum(joint.sum(axis=0), _LEAST)
    return conditional, np.maximum(joint @ conditional.T, _LEAST)


def _log_likelihood(pairs: Floats, joint: Floats) -> float:
    return float(xlogy(pairs, _mixture(joint)[1]).sum())
