"""Averages over all ways to match the clusters of a draw with those of an estimate."""

from __future__ import annotations

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import Draws
from posterior_consensus.runtime.executor import in_blocks

_NEGLIGIBLE = 45.0  # by how much the best matching with a cell may lack to the best of all for it to count
_ITEMS_AT_ONCE = 128  # whose votes stay in the fastest cache
_SURE = 1 - 1e-12  # probability of a match above which no single item matters


@inner
def _weights(gains, columns, weights):
    """Write the weights of a square table's cells, 1 for the best matching, row r with column `columns[r]`.

    Returns the gain of that matching. Prices u of rows and v of columns make gain - u - v zero in its cells and at most
    zero elsewhere, so that no matching weighs more than 1: v are the longest paths from cell to cell, which end because
    the matching is the best.
    """
    width = columns.size
    prices = np.zeros(width)
    for _ in range(width):
        for r in range(width):
            own = prices[columns[r]] - gains[r, columns[r]]
            for c in range(width):
                prices[c] = max(prices[c], own + gains[r, c])
    total = 0.0
    for r in range(width):
        best = gains[r, columns[r]]
        total += best
        for c in range(width):
            reduced = gains[r, c] - prices[c] - (best - prices[columns[r]])
            weights[r, c] = np.exp(reduced) if reduced > -_NEGLIGIBLE else 0.0
    return total


@inner
def _sum_over_matchings(weights, ahead, behind):
    """Replace the weights (c, c) by the probabilities that a row has a column; returns the sum over all matchings.

    The weight of a matching is the product over its cells. The rows are taken one by one and the columns taken so far
    are a number, one bit for each: `ahead` is the sum over the ways to that set, `behind` over those from it to the
    end, both (2^c,) scratch.
    """
    width = weights.shape[0]
    last = (1 << width) - 1
    ahead[: last + 1] = 0.0
    behind[: last + 1] = 0.0
    ahead[0] = behind[last] = 1.0
    for taken in range(last):
        if ahead[taken] > 0.0:
            row = _size(taken)
            for c in range(width):
                if weights[row, c] > 0.0 and not (taken >> c) & 1:
                    ahead[taken | (1 << c)] += ahead[taken] * weights[row, c]
    probabilities = np.zeros((width, width))
    for taken in range(last - 1, -1, -1):
        if ahead[taken] > 0.0:
            row = _size(taken)
            for c in range(width):
                if weights[row, c] > 0.0 and not (taken >> c) & 1:
                    through = weights[row, c] * behind[taken | (1 << c)]
                    behind[taken] += through
                    probabilities[row, c] += ahead[taken] * through
    weights[:] = probabilities / ahead[last]
    return ahead[last]


@inner
def _size(taken):
    """How many bits are set."""
    number = 0
    while taken:
        taken &= taken - 1
        number += 1
    return number


@inner
def _complete(matches, columns):
    """Write the column of each row of the square around `matches` (k, K); unmatched rows get the remaining columns."""
    free = np.ones(columns.size, np.bool_)
    columns[:] = -1
    for r in range(matches.shape[0]):
        for c in range(matches.shape[1]):
            if matches[r, c] > 0.0:
                columns[r] = c
                free[c] = False
    rest = 0
    for r in range(columns.size):
        if columns[r] < 0:
            while not free[rest]:
                rest += 1
            columns[r] = rest
            rest += 1


@jit
def _average_matchings(first, last, table, starts, widths, scales, rows, matches, logs):
    n_clusters = table.shape[1]
    n_sets = 1 << widths[rows[first:last]].max()
    ahead, behind = np.empty(n_sets), np.empty(n_sets)
    for s in range(first, last):
        t = rows[s]
        height, width = starts[t + 1] - starts[t], widths[t]
        gains, columns = np.zeros((width, width)), np.empty(width, np.int64)
        gains[:height, :n_clusters] = scales[t] * table[starts[t] : starts[t + 1]]
        _complete(matches[starts[t] : starts[t + 1]], columns)
        weights = np.empty((width, width))
        best = _weights(gains, columns, weights)
        total = _sum_over_matchings(weights, ahead, behind)
        matches[starts[t] : starts[t + 1]] = weights[:height, :n_clusters]
        logs[s] = best + np.log(total)


def average_matchings(
    table: np.ndarray, starts: np.ndarray, widths: np.ndarray, scales: np.ndarray, rows: np.ndarray, matches: np.ndarray
) -> np.ndarray:
    """Average over all matchings of the clusters of draws `rows` with those of an estimate.

    The table of a draw is made square, of `widths[t]` rows and columns, by cells of gain 0. The weight of a matching of
    all rows with all columns is exp(`scales[t]` x the sum of `table` (R, K) over its cells). `matches` (R, K) is 1 in
    the cells of each draw's best matching, 0 elsewhere; it receives the probability of each match. Returns the
    logarithms of the sums of the weights, one for each of `rows`.
    """
    logs = np.empty(rows.size)
    if rows.size:
        work = int(widths[rows].max()) << int(widths[rows].max())
        in_blocks(_average_matchings, 0, rows.size, table, starts, widths, scales, rows, matches, logs, work=work)
    return logs


@jit
def _held_out_votes(first, last, draws, gains, matches, memberships, sure, out):
    labels, starts, counts = draws
    n_clusters = matches.shape[1]
    without = np.empty(n_clusters)
    for lower in range(first, last, _ITEMS_AT_ONCE):
        for t in range(labels.shape[0]):
            gain, more = gains[t], np.expm1(gains[t])
            for i in range(lower, min(last, lower + _ITEMS_AT_ONCE)):
                row = starts[t] + labels[t, i]
                if sure[row] >= 0:
                    out[i, sure[row]] += counts[t] * gain
                    continue
                total = 1.0
                for k in range(n_clusters):
                    without[k] = matches[row, k] * np.exp(-gain * memberships[i, k])
                    total += without[k] - matches[row, k]
                for k in range(n_clusters):
                    out[i, k] += counts[t] * np.log1p(more * without[k] / total)


def held_out_votes(
    labels: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    gains: np.ndarray,
    matches: np.ndarray,
    memberships: np.ndarray,
) -> np.ndarray:
    """Votes (n, K) of the draws on each item, with matchings inferred from the other items.

    Without an item of membership m the probability P of a match of its label is in proportion to P exp(-gain m), and
    the item's label exp(gain) times as probable in a cluster that it stands for: the vote is the logarithm of the mean.
    `matches` (R, K) are the probabilities with all items, `counts` and `gains` those of the draws (N,).
    """
    n_draws, n_items = labels.shape
    sure = np.where(matches.max(axis=1) > _SURE, matches.argmax(axis=1), -1)
    out = np.zeros((n_items, matches.shape[1]))
    arguments = Draws(labels, starts, counts), gains, matches, memberships, sure, out
    in_blocks(_held_out_votes, 0, n_items, *arguments, work=4 * n_draws * matches.shape[1])
    return out
