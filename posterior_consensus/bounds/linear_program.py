"""The linear program over triangle inequalities, solved by cutting planes."""

import highspy
import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.ascent import Instance, TrianglePrices, violated_rows
from posterior_consensus.bounds.bound import Budget
from posterior_consensus.runtime.aliases import Floats

_SLACKS = (0.3, 0.1, 0.01, 1e-6)
_MOST_NEW = 20_000
_MOST_ITERATIONS = 2**31 - 1  # HiGHS takes no more
_SECONDS_A_SIZE = 2e-8  # what an iteration of the simplex method takes, for each row and column
_SOLVING = 100  # iterations that take as long as the rest of a solve
_FORGOTTEN = 1e-6  # slack from which a row without multiplier is dropped


class _Silent(highspy.Highs):
    """HiGHS without a word: version 1.16 prints its name when callbacks are enabled, before an option can be set."""

    def enableCallbacks(self) -> None:
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


class TriangleProgram:
    """Least sum of weights x_e, x_e in [0, 1], subject to rows x_e <= x_f + x_g; HiGHS keeps its basis between solves.

    Pairs that must be apart are not variables: their x is 1.
    """

    def __init__(self, instance: Instance, rows: npt.NDArray[np.int32]) -> None:
        self.instance = instance
        first, second = np.nonzero(np.triu(~instance.apart, 1))
        self._pairs = first * instance.size + second
        self._column = np.full(instance.weights.size, -1, np.int32)
        self._column[self._pairs] = np.arange(self._pairs.size)
        self._highs = _Silent()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("solver", "simplex")
        n_columns = self._pairs.size
        self._highs.addVars(n_columns, np.zeros(n_columns), np.ones(n_columns))
        costs = instance.weights.ravel()[self._pairs]
        self._highs.changeColsCost(n_columns, np.arange(n_columns, dtype=np.int32), costs)
        self._rows = np.empty((0, 3), np.int32)
        self._add(rows)

    def _add(self, rows: npt.NDArray[np.int32]) -> None:
        columns = self._column[rows]
        binding = (columns[:, 1:] >= 0).all(axis=1)  # else the right hand side is at least one
        rows, columns = rows[binding], columns[binding]
        present = columns >= 0
        counts = present.sum(axis=1)
        coefficients = np.broadcast_to([-1.0, 1.0, 1.0], columns.shape)[present]
        starts = (np.cumsum(counts) - counts).astype(np.int32)
        lower = np.where(present[:, 0], 0.0, 1.0)
        upper = np.full(len(rows), highspy.kHighsInf)
        self._highs.addRows(len(rows), lower, upper, coefficients.size, starts, columns[present], coefficients)
        self._rows = np.concatenate([self._rows, rows])

    def solve(self, budget: Budget) -> tuple[Floats, TrianglePrices] | None:
        """Solution as a matrix (n, n) and multipliers of the rows, or None where the budget is spent."""
        an_iteration = _SECONDS_A_SIZE * (1 + self._pairs.size + len(self._rows))
        budget.spend(_SOLVING * an_iteration)
        seconds, iterations = budget.limits(an_iteration)
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + seconds)
        self._highs.setOptionValue("simplex_iteration_limit", int(min(iterations, _MOST_ITERATIONS)))
        self._highs.run()
        budget.note(an_iteration * self._highs.getInfo().simplex_iteration_count)
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        x = self.instance.apart.astype(np.float64)
        x.ravel()[self._pairs] = np.clip(solution.col_value, 0.0, 1.0)
        x = np.maximum(x, x.T)
        values = np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0)
        return x, TrianglePrices(self._rows, values)

    def tighten(self, x: Floats, prices: TrianglePrices) -> bool:
        """Drop rows that hold with slack and add violated rows; return whether any were violated."""
        for slack in _SLACKS:
            new = violated_rows(x, slack, _MOST_NEW)
            if len(new):
                break
        else:
            return False
        flat = x.ravel()
        room = flat[self._rows[:, 1]] + flat[self._rows[:, 2]] - flat[self._rows[:, 0]]
        gone = (room > _FORGOTTEN) & (prices.values == 0)
        if gone.any():
            self._highs.deleteRows(int(gone.sum()), np.flatnonzero(gone).astype(np.int32))
            self._rows = self._rows[~gone]
        self._add(new)
        return True
