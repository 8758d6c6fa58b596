"""Label switching: assign the components of each draw to clusters, by labels or by probabilities."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels, contingency_table
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.tolerances import SAME

_SMALLEST = 1e-100  # replaces 0 in a logarithm


def assignment(table: npt.NDArray[Any], *, maximize: bool = False) -> tuple[Positions, Positions]:
    """Rows and columns of an assignment of least, or greatest, sum, by SciPy, whose optimizers take long to import."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(table, maximize)


def common_items(
    components: npt.NDArray[np.integer[Any]], reference: npt.NDArray[np.int32], n_components: int
) -> Floats:
    """Numbers of items (N, n_components, K) that components of draws (N, n) have in common with clusters (n,)."""
    n_clusters = int(reference.max()) + 1
    rows = (row.astype(np.intp) * n_clusters + reference for row in components)
    counts = [np.bincount(cells, minlength=n_components * n_clusters) for cells in rows]
    return np.array(counts, np.float64).reshape(-1, n_components, n_clusters)


def expected_common_items(probabilities: npt.NDArray[np.floating], reference: npt.NDArray[np.int32]) -> Floats:
    """Expectation of :func:`common_items` under probabilities of shape (n_draws, n_items, n_components)."""
    members = (reference[:, np.newaxis] == np.arange(reference.max() + 1)).astype(np.float64)
    return np.stack([draw.T @ members for draw in probabilities])


def most_in_common(common: Floats) -> Positions:
    """Component of each cluster (N, K), a different one each, so that the total number of common items is largest.

    Ties prefer empty components: a cluster that a draw lacks must not take a part of another cluster.
    """
    empty = common.sum(axis=2, keepdims=True) < 0.5
    scores = common + empty / (common.shape[2] + 1)  # all bonuses sum to less than one item
    return np.array([assignment(draw.T, maximize=True)[1] for draw in scores])


def matched_by_draw(table: npt.NDArray[Any], starts: npt.NDArray[np.integer]) -> Positions:
    """Column (R,) matched to each cluster of each draw in a matching of largest sum, -1 for none."""
    columns = np.full(len(table), -1)
    for first, last in pairwise(starts.tolist()):
        rows, matched = assignment(table[first:last], maximize=True)
        columns[first:last][rows] = matched
    return columns


def partners(table: npt.NDArray[Any], starts: npt.NDArray[np.integer] | None = None) -> Positions:
    """Column of each row's partner in a table of numbers of common items, -1 for none.

    The one-to-one matching has the most common items; ties are broken by the sum of Jaccard similarities. A row without
    common items has no partner. With `starts` (N + 1,), rows `starts[t]` to `starts[t + 1]`, one draw, are matched
    separately from the other draws.
    """
    starts = np.array([0, len(table)]) if starts is None else starts
    n_rows = np.diff(starts)
    columns = np.repeat(np.add.reduceat(table, starts[:-1]), n_rows, axis=0)
    either = table.sum(axis=1, keepdims=True) + columns - table
    pairs = np.repeat(np.minimum(n_rows, table.shape[1]) + 1, n_rows)[:, np.newaxis]
    matched = matched_by_draw(table + table / np.maximum(either, 1) / pairs, starts)  # adds less than one item
    return np.where(table[np.arange(len(table)), matched] > 0, matched, -1)


def numbered_like(labels: Labels, others: Labels) -> Labels:
    """Renumber clusters like those matched to them in `others`; unmatched clusters come last, -1 is in none."""
    table = contingency_table(labels.astype(np.int32) + 1, others.astype(np.int32) + 1)[1:, 1:]
    number = partners(table) if table.size else np.full(len(table), -1)
    number[number < 0] = int(others.max()) + 1 + np.arange(np.sum(number < 0))
    return np.append(number, -1)[labels].astype(np.int32)


def is_matched(common: Floats) -> npt.NDArray[np.bool_]:
    """Whether a component matches its cluster: at least one common item, or half an expected common item."""
    return common >= 0.5


def least_divergence(probabilities: npt.NDArray[np.floating], weights: Floats, start: Positions) -> Positions:
    """Order components by Stephens' algorithm: update reference probabilities and orders until no order changes.

    Given are probabilities (N, n, K), weights (N,), and an order (N, K) of each draw's components to start from.
    Minimizing sum p log(p / q) over orders is maximizing sum p log q, as each p occurs once. All components are
    ordered even if only some are needed: a partial assignment would favour empty components.
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
            best = assignment(costs)[1]
            now, then = costs[places, order[t]].sum(), costs[places, best].sum()
            if then < now - SAME * (1 + abs(now)):
                order[t], moved = best, True
    return order


def with_the_rest(assigned: Positions, n_components: int) -> Positions:
    """Append the unassigned components to each row, ascending: (n_draws, n_components)."""
    free = np.ones((len(assigned), n_components), np.bool_)
    np.put_along_axis(free, assigned, False, axis=1)
    return np.concatenate([assigned, np.nonzero(free)[1].reshape(len(assigned), -1)], axis=1)


def cheapest_paths(steps: Floats, start: Floats, tiny: float) -> tuple[Floats, Positions]:
    """Cost (m,) of the cheapest path to each node, and the node before it, -1 if the path begins there.

    The algorithm of Bellman and Ford. `steps[k, l]` is the cost of a step from k to l, `start[k]` the cost of beginning
    at k. Single steps can have negative costs, cycles cannot. Gains up to `tiny` are rounding.
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
