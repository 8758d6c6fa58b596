"""Prices (Lagrange multipliers) of triangles: lower bounds of the least sum of weights over the pairs apart.

A pair is numbered i * n + j with i < j. A row (e, f, g) of three pairs of one triangle is the inequality x_e <= x_f +
x_g, x = 1 for a separated pair, with a multiplier ("price") >= 0. Reduced costs are the weights plus what the prices
add: + price at e, - price at f and g. For any prices, no partition costs less than the sum over pairs of the smaller
of 0 and the reduced cost.
"""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.runtime.tolerances import SAME


@inner
def _pair(i, j, n):
    return i * n + j if i < j else j * n + i


@inner
def _write(rows, count, i, j, k, n):
    """Write the triangle whose pair (j, k) comes first, if it fits."""
    if count < rows.shape[0]:
        rows[count, 0] = _pair(j, k, n)
        rows[count, 1] = _pair(i, j, n)
        rows[count, 2] = _pair(i, k, n)


@jit
def list_conflicts(weights: np.ndarray, least: float, rows: np.ndarray) -> int:
    """Write triangles with two weights (n, n) above `least` and one below -`least`, that pair first, to `rows`.

    As far as they fit; return how many there are.
    """
    n = weights.shape[0]
    near = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        degree = 0
        for j in range(n):
            if weights[i, j] > least:
                near[degree] = j
                degree += 1
        for s in range(degree):
            j = near[s]
            for t in range(s):
                k = near[t]
                if weights[j, k] < -least:
                    _write(rows, count, i, j, k, n)
                    count += 1
    return count


@jit
def list_violations(x: np.ndarray, slack: float, rows: np.ndarray) -> int:
    """Write the rows with x_e > x_f + x_g + `slack`, x (n, n), to `rows` as far as they fit; return how many there are.

    Only pairs with x < 1 can be f and g.
    """
    n = x.shape[0]
    near = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        degree = 0
        for j in range(n):
            if j != i and x[i, j] < 1.0 - slack:
                near[degree] = j
                degree += 1
        for s in range(degree):
            j = near[s]
            allowed = x[i, j] + slack
            row = x[j]
            for t in range(s):
                k = near[t]
                if row[k] > allowed + x[i, k]:
                    _write(rows, count, i, j, k, n)
                    count += 1
    return count


@jit
def pack(reduced: np.ndarray) -> float:
    """Pack each conflicted triangle with the rest of its reduced costs (n, n); return the total.

    Both halves of `reduced` change. Triangles are packed as they are found: in order of decreasing weight they would
    take a twentieth more, in ten times the time.
    """
    n = reduced.shape[0]
    near = np.empty(n, np.int64)
    taken = 0.0
    for i in range(n):
        row = reduced[i]
        degree = 0
        for j in range(n):
            if row[j] > 0.0:
                near[degree] = j
                degree += 1
        for s in range(degree):
            j = near[s]
            for t in range(s):
                k = near[t]
                if reduced[j, k] < 0.0 and row[k] > 0.0:
                    left = min(-reduced[j, k], min(row[j], row[k]))
                    taken += left
                    row[j] -= left
                    row[k] -= left
                    reduced[j, k] += left
                    reduced[j, i] = row[j]
                    reduced[k, i] = row[k]
                    reduced[k, j] = reduced[j, k]
                    if row[j] <= 0.0:
                        break
    return taken


@jit
def add_prices(rows: np.ndarray, prices: np.ndarray, reduced: np.ndarray) -> None:
    """Turn weights (n * n,) into reduced costs, in place."""
    for t in range(rows.shape[0]):
        price = prices[t]
        reduced[rows[t, 0]] += price
        reduced[rows[t, 1]] -= price
        reduced[rows[t, 2]] -= price


def relaxed_solution(lean: np.ndarray, n: int) -> np.ndarray:
    """Solution x (n, n), both triangles, of which `lean` (n * n,) is x before it is cut off at 0 and 1."""
    x = np.zeros((n, n))
    _relax(lean, x)
    return x


@jit
def _relax(lean, x):
    n = len(x)
    for i in range(n):
        for j in range(i + 1, n):
            x[i, j] = x[j, i] = min(1.0, max(0.0, lean[i * n + j]))


@jit
def ascend(rows: np.ndarray, prices: np.ndarray, lean: np.ndarray, n_sweeps: int) -> None:
    """Raise or lower each price in turn by its row's violation; `prices`, in units of the width, and `lean` change.

    Coordinate ascent on the dual of: least cost + width / 2 |x - centre|^2, 0 <= x <= 1, subject to the rows. Its
    solution is x = centre - reduced cost / width, called `lean` (n * n,), cut off at 0 and 1; infinity makes it 1. The
    curvature along a price is at most 3 / width, so that a step below 2 / 3 width times the violation cannot overshoot.
    """
    for _ in range(n_sweeps):
        for t in range(rows.shape[0]):
            e, f, g = rows[t]
            violation = min(1.0, max(0.0, lean[e]))
            violation -= min(1.0, max(0.0, lean[f]))
            violation -= min(1.0, max(0.0, lean[g]))
            change = max(0.6 * violation, -prices[t])
            if change != 0.0:
                prices[t] += change
                lean[e] -= change
                lean[f] += change
                lean[g] += change


@jit
def improve(weights: np.ndarray, labels: np.ndarray) -> None:
    """Move single items to the cluster of greatest weight, or an empty one, until no move gains; in place.

    `labels` (n,) are canonical before; afterwards numbers may be out of use. The number of clusters doubles at most.
    """
    n = labels.size
    width = min(n, 2 * labels.max() + 10)
    pull = np.zeros((n, width))  # sum of the weights of item i and the members of cluster k
    for i in range(n):
        for j in range(n):
            pull[i, labels[j]] += weights[i, j]
    moved = True
    while moved:
        moved = False
        for i in range(n):
            old = labels[i]
            new = np.argmax(pull[i])
            if pull[i, new] > pull[i, old] + SAME * (1.0 + abs(pull[i, new])):
                for j in range(n):
                    pull[j, old] -= weights[i, j]
                    pull[j, new] += weights[i, j]
                labels[i] = new
                moved = True
