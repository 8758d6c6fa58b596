"""The semidefinite relaxation of Binder's expected loss, for draws too noisy for triangle inequalities."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.alternating import SETTLED, STEPS, over_relaxed, rebalanced, seconds_to_next_bound
from posterior_consensus.bounds.budget import Budget, OutOfBudget
from posterior_consensus.bounds.instance import Floats, Instance
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import one_blas_thread
from posterior_consensus.runtime.tolerances import ROUNDING

_FACTOR = 1.4  # by which the penalty changes
_BYTES_A_PAIR = 100


class PairRelaxation:
    """Lower bounds of the least cost of an instance, by steps of the alternating direction method of multipliers.

    With Y_ij = 1 where groups i and j are together, else 0, the cost is a constant less half of tr(W Y), W the weights.
    Y is positive semidefinite, Y >= 0 and Y_ii = 1. For any d, and any V >= 0,

        tr(W Y) <= sum_i d_i + n max(0, largest eigenvalue of W + V - diag(d)),

    as tr Y = n. The method alternates between {Y positive semidefinite} and {Y >= 0, Y_ii = 1}.
    """

    def __init__(self, instance: Instance, labels: npt.NDArray[np.integer], budget: Budget) -> None:
        self._weights, self._budget = instance.weights, budget
        self._apart = instance.joined + float(instance.weights.sum()) / 2
        self._slack = ROUNDING * float(np.abs(instance.weights).sum())
        self._start = (labels[:, np.newaxis] == labels).astype(np.float64)
        self.n_iter = 0

    def bounds(self) -> Iterator[float]:
        """Yield bounds until they settle or the budget is spent."""
        n = len(self._weights)
        seconds = seconds_to_next_bound(n)
        if seconds > self._budget.left or not memory.fits(_BYTES_A_PAIR * n**2):
            return
        with suppress(OutOfBudget), one_blas_thread():  # the sums must not depend on their number
            penalty = float(np.linalg.norm(self._weights)) / np.sqrt(n)
            allowed, scaled = self._start, np.zeros_like(self._start)
            while True:
                self._budget.spend(seconds)
                for _ in range(STEPS):
                    values, vectors = np.linalg.eigh(allowed - scaled)
                    kept = values > 0
                    spread = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
                    before = allowed
                    target = over_relaxed(spread, before, scaled)
                    allowed = np.maximum(target + self._weights / penalty, 0.0)
                    np.fill_diagonal(allowed, 1.0)
                    scaled = target - allowed
                self.n_iter += STEPS
                yield self._bound(penalty * scaled)
                penalty, scaled, residual = rebalanced(penalty, scaled, spread, allowed, before, _FACTOR)
                if residual < SETTLED * np.sqrt(n):
                    return

    def _bound(self, slack: Floats) -> float:
        """The bound of multipliers such that W + V - diag(d) is nearly minus this matrix."""
        rest = self._weights + slack
        diagonal = np.diagonal(rest).copy()
        reduced = self._weights + np.maximum(-rest, 0.0)
        np.fill_diagonal(reduced, -diagonal)
        greatest = float(np.linalg.eigvalsh(reduced)[-1])
        together = float(diagonal.sum()) + len(diagonal) * max(0.0, greatest)
        return self._apart - together / 2 - self._slack
