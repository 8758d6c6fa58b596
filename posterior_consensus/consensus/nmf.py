"""NMF: the similarity matrix as a product of nonnegative matrices, by multiplicative updates."""

from collections.abc import Callable

import numpy as np

from posterior_consensus.consensus.selection import Candidate, Task, best_number, cut, filled, small_matrix
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.arguments import check_above, check_count
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.eigenvectors import leading_eigenvectors

_LIFT = 0.2  # added to entries of 0, which multiplicative updates could not change
_LEAST = np.finfo(float).tiny


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
        start = cut(leading.coordinates(k), k, n_starts, task)
        memberships, info = _factorised(product, squares, start, k, task.effort(max_iter, k), tol)
        largest = memberships.max(axis=1, keepdims=True)
        labels: Labels = (memberships >= (1 - SAME) * largest).argmax(axis=1).astype(np.int32)
        return Candidate(canonical_labels(filled(memberships, labels) if task.n_clusters else labels), info)

    return best_number(draws, loss, task, fit, title="Nonnegative factors")


def _products(draws: PairSource) -> tuple[Callable[[Floats], Floats], float]:
    """Function that multiplies the similarity matrix by columns (n, c), and the sum of the squared entries."""
    if (matrix := small_matrix(draws)) is not None:
        return matrix.__matmul__, float(np.square(matrix).sum())
    return draws.product, float(sum(np.square(rows).sum() for _, rows in draws.row_blocks()))


def _factorised(
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
