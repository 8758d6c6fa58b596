"""Which component of each draw is which cluster: optimal assignments, by labels or by probabilities."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from posterior_consensus.ensemble.partitions import Labels, contingency_table
from posterior_consensus.runtime.tolerances import SAME

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

_SMALLEST = 1e-100  # in place of 0 in a logarithm


def common_items(
    components: npt.NDArray[np.integer[Any]], reference: npt.NDArray[np.int32], n_components: int
) -> Floats:
    """Count the items that each component of each draw has in common with each cluster.

    Parameters
    ----------
    components : ndarray of shape (n_draws, n_items)
    reference : ndarray of shape (n_items,)
        Cluster of each item, from 0 without gaps.
    n_components : int

    Returns
    -------
    ndarray of shape (n_draws, n_components, n_clusters)
    """
    n_clusters = int(reference.max()) + 1
    rows = (row.astype(np.intp) * n_clusters + reference for row in components)
    counts = [np.bincount(cells, minlength=n_components * n_clusters) for cells in rows]
    return np.array(counts, np.float64).reshape(-1, n_components, n_clusters)


def expected_common_items(probabilities: npt.NDArray[np.floating], reference: npt.NDArray[np.int32]) -> Floats:
    """Return the same in expectation, from probabilities of shape (n_draws, n_items, n_components)."""
    members = (reference[:, np.newaxis] == np.arange(reference.max() + 1)).astype(np.float64)
    return np.stack([draw.T @ members for draw in probabilities])


def most_in_common(common: Floats) -> Numbers:
    """Give every cluster a component of its own such that all together have the most items in common.

    Parameters
    ----------
    common : ndarray of shape (n_draws, n_components, n_clusters)

    Returns
    -------
    ndarray of shape (n_draws, n_clusters)
        Component of each cluster.

    Notes
    -----
    Of equally good assignments it is one with as many empty components as possible: a cluster that is missing from a
    draw must not take a part of another cluster.
    """
    empty = common.sum(axis=2, keepdims=True) < 0.5
    scores = common + empty / (common.shape[2] + 1)  # all bonuses together are less than one item
    return np.array([linear_sum_assignment(draw.T, maximize=True)[1] for draw in scores])


def matched_by_draw(table: npt.NDArray[Any], starts: npt.NDArray[np.integer]) -> Numbers:
    """Column (R,) of each cluster of each draw in a matching of largest sum in that draw's rows, -1 for none."""
    columns = np.full(len(table), -1)
    for first, last in pairwise(starts.tolist()):
        rows, matched = linear_sum_assignment(table[first:last], maximize=True)
        columns[first:last][rows] = matched
    return columns


def partners(table: npt.NDArray[Any], starts: npt.NDArray[np.integer] | None = None) -> Numbers:
    """Column of each row's partner in a table of numbers of common items, -1 for none.

    One to one, such that partners have the most items in common; of equally good matchings the one of largest sum of
    Jaccard similarities. Without a common item there is no partner. With `starts` (N + 1,) the rows of each draw, from
    `starts[t]` to `starts[t + 1]`, have partners of their own.
    """
    starts = np.array([0, len(table)]) if starts is None else starts
    n_rows = np.diff(starts)
    columns = np.repeat(np.add.reduceat(table, starts[:-1]), n_rows, axis=0)
    either = table.sum(axis=1, keepdims=True) + columns - table
    pairs = np.repeat(np.minimum(n_rows, table.shape[1]) + 1, n_rows)[:, np.newaxis]
    found = matched_by_draw(table + table / np.maximum(either, 1) / pairs, starts)  # less than one item is added
    return np.where(table[np.arange(len(table)), found] > 0, found, -1)


def numbered_like(labels: Labels, others: Labels) -> Labels:
    """Renumber clusters by those of another partition with most items in common, one to one, the rest after these."""
    number = partners(contingency_table(labels, others))
    number[number < 0] = int(others.max()) + 1 + np.arange(np.sum(number < 0))
    return number[labels].astype(np.int32)


def is_matched(common: Floats) -> npt.NDArray[np.bool_]:
    """Whether a component matches its cluster: one item in common, or half an expected one with probabilities."""
    return common >= 0.5


def least_divergence(probabilities: npt.NDArray[np.floating], weights: Floats, start: Numbers) -> Numbers:
    """Stephens' algorithm: reference probabilities and orders of the components in turn, until no order changes.

    Parameters
    ----------
    probabilities : ndarray of shape (n_draws, n_items, n_components)
    weights : ndarray of shape (n_draws,)
    start : ndarray of shape (n_draws, n_components)
        Order of each draw's components to begin with.

    Returns
    -------
    ndarray of shape (n_draws, n_components)

    Notes
    -----
    The least sum p log(p / q) over orders is the largest sum p log q, as every p is in it once. All components are
    ordered, though only the first may be wanted: an assignment that leaves some out does best with empty ones.
    """
    order = start.copy()
    places = np.arange(start.shape[1])
    moved = True
    while moved:
        moved = False
        reference = sum(w * draw[:, k] for w, draw, k in zip(weights, probabilities, order, strict=True))
        logarithms = np.log(np.maximum(reference, _SMALLEST)).T
        for t, draw in enumerate(probabilities):
            costs = -(logarithms @ draw)
            best = linear_sum_assignment(costs)[1]
            now, then = costs[places, order[t]].sum(), costs[places, best].sum()
            if then < now - SAME * (1 + abs(now)):
                order[t], moved = best, True
    return order


def with_the_rest(assigned: Numbers, n_components: int) -> Numbers:
    """Complete each row of assigned components by those left over, ascending: (n_draws, n_components)."""
    free = np.ones((len(assigned), n_components), np.bool_)
    np.put_along_axis(free, assigned, False, axis=1)
    return np.concatenate([assigned, np.nonzero(free)[1].reshape(len(assigned), -1)], axis=1)


def cheapest_paths(steps: Floats, start: Floats, tiny: float) -> tuple[Floats, Numbers]:
    """Cost (m,) of the cheapest path to each node, and the node before it, -1 if the path begins there.

    The algorithm of Bellman and Ford. `steps[k, l]` is the cost of a step from k to l, `start[k]` that of a path which
    begins at k. Steps can have costs below 0, circles of steps cannot. Gains up to `tiny` are rounding.
    """
    reached, before = start.copy(), np.full(start.size, -1)
    while True:
        through = reached[:, np.newaxis] + steps
        at = through.argmin(axis=0)
        cheapest = through[at, np.arange(at.size)]
        better = cheapest < reached - tiny
        if not better.any():
            return reached, before
        reached[better], before[better] = cheapest[better], at[better]
