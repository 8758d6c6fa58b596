"""A plain rival of the search: single items move while that lowers the expected loss, from many simple starts."""

import numba
import numpy as np
from scipy.cluster.hierarchy import average, cut_tree
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from posterior_consensus.losses.record import TERMS, PartitionLoss

MOST_DRAWS, MOST_CUTS = 20, 15


def best_by_descent(
    labels: np.ndarray, shares: np.ndarray, loss: PartitionLoss, n_clusters: int | None
) -> np.ndarray | None:
    """The best end of all descents (n_items,), None where no start has `n_clusters` clusters.

    `labels` (n_draws, n_items) number the clusters of each draw from 0; `shares` (n_draws,) sum to one.
    """
    n_items = labels.shape[1]
    fewest, most = (1, n_items) if n_clusters is None else (n_clusters, n_clusters)
    h = loss.h(n_items)
    numerator = tuple(loss.numerator.get(term, 0.0) for term in TERMS)
    denominator = (*(loss.denominator.get(term, 0.0) for term in TERMS), 0.0 if loss.denominator else 1.0)
    least, best = np.inf, None
    for start in _starts(labels, shares, n_clusters):
        end = start.copy()
        value = _descend(h, numerator, denominator, labels, shares, end, fewest, most)
        if value < least:
            least, best = value, end
    return best


def _starts(labels, shares, n_clusters):
    n_draws, n_items = labels.shape
    together = np.zeros((n_items, n_items))
    for draw, share in zip(labels, shares, strict=True):
        together += share * np.equal.outer(draw, draw)
    tree = average(squareform(1 - together.clip(max=1), checks=False))
    some = labels[np.linspace(0, n_draws - 1, min(MOST_DRAWS, n_draws)).astype(int)]
    if n_clusters is None:
        cuts = range(2, min(MOST_CUTS, n_items, labels.max() + 2))
        found = [*some, connected_components(together > 0.5)[1], np.zeros(n_items), np.arange(n_items)]
    else:
        cuts = [n_clusters]
        found = [draw % n_clusters for draw in some]
    found += list(cut_tree(tree, n_clusters=list(cuts)).T)
    compact = [np.unique(start, return_inverse=True)[1].astype(np.int64) for start in found]
    return [start for start in compact if n_clusters in (None, start.max() + 1)]


@numba.njit(cache=True, error_model="numpy", fastmath=True)
def _value(numerator, denominator, top, a, b, c):
    """A ratio of two forms linear in the terms of TERMS; the loss of trivial partitions, 0/0, is 0 or 1."""
    root = np.sqrt(max(0.0, (top - b) * (top - c)))
    terms = (top, a, b, c, max(b, c), min(b, c), b * c / max(top, 1.0), root)
    if len(numerator) != len(terms):
        raise NotImplementedError("a term of TERMS is missing in `terms`")
    above, below = 0.0, denominator[-1]
    for k in range(len(terms)):
        above += numerator[k] * terms[k]
        below += denominator[k] * terms[k]
    is_trivial = below <= 1e-12 * top
    of_trivial = 0.0 if abs(b - a) + abs(c - a) <= 1e-12 * top else 1.0
    return of_trivial if is_trivial else above / below


@numba.njit(cache=True, error_model="numpy")
def _table(h, draws, labels, width):
    """Joint cells (n_draws, clusters of a draw, width), and their sums of h by draw."""
    n_draws, n_items = draws.shape
    cells = np.zeros((n_draws, draws.max() + 1, width), np.int32)
    joint, own = np.zeros(n_draws), np.zeros(n_draws)
    for t in range(n_draws):
        for i in range(n_items):
            cells[t, draws[t, i], labels[i]] += 1
        for row in cells[t]:
            joint[t] += h[row].sum()
            own[t] += h[row.sum()]
    return cells, joint, own


@numba.njit(cache=True, error_model="numpy")
def _descend(h, numerator, denominator, draws, shares, labels, fewest, most):
    """Let items of `labels`, in place, move in turn until none gains; the expected loss but for its scale."""
    n_draws, n_items = draws.shape
    cells, joint, own = _table(h, draws, labels, min(most, n_items) + 1)
    sizes = np.bincount(labels, minlength=cells.shape[2])
    grown = h[1:] - h[:-1]  # by what a cell or cluster of so many grows with one item more
    used, top, of_sizes = labels.max() + 1, h[-1], h[sizes].sum()
    since, i = 0, 0
    while since <= n_items:
        k = labels[i]
        if sizes[k] > 1 or used > fewest:
            joint, of_sizes = _put(h, draws, cells, sizes, joint, of_sizes, i, k, -1)
            n_choices = used if sizes[k] == 0 or used == most else used + 1
            sums = top, joint, of_sizes, own
            values = _with_item(numerator, denominator, grown, cells, draws[:, i], shares, sizes[:n_choices], sums)
            to = np.argmin(values)
            if values[to] > values[k] - 1e-11 * abs(values[k]) - 1e-13:
                to = k
            joint, of_sizes = _put(h, draws, cells, sizes, joint, of_sizes, i, to, 1)
            if to != k:
                labels[i], since = to, 0
                used = max(used, to + 1)
                if sizes[k] == 0:
                    used -= 1
                    cells[:, :, k], sizes[k] = cells[:, :, used], sizes[used]
                    cells[:, :, used], sizes[used] = 0, 0
                    labels[labels == used] = k
        since += 1
        i = (i + 1) % n_items
    total = 0.0
    for t in range(n_draws):
        total += shares[t] * _value(numerator, denominator, top, joint[t], of_sizes, own[t])
    return total


@numba.njit(cache=True, error_model="numpy")
def _with_item(numerator, denominator, grown, cells, rows, shares, sizes, sums):
    """Expected losses with an item, whose clusters in the draws are `rows`, in each cluster."""
    top, joint, of_sizes, own = sums
    values, apart = np.zeros(sizes.size), np.zeros((rows.size, sizes.max() + 1))
    is_new = np.ones(sizes.max() + 1, np.bool_)
    for size in sizes:
        if is_new[size]:  # where the item meets nobody, the loss depends on the size alone
            is_new[size] = False
            for t in range(rows.size):
                b = of_sizes + grown[size]
                apart[t, size] = shares[t] * _value(numerator, denominator, top, joint[t], b, own[t])
    for t in range(rows.size):
        row = cells[t, rows[t]]
        for k in range(sizes.size):
            if row[k] == 0:
                values[k] += apart[t, sizes[k]]
            else:
                a, b = joint[t] + grown[row[k]], of_sizes + grown[sizes[k]]
                values[k] += shares[t] * _value(numerator, denominator, top, a, b, own[t])
    return values


@numba.njit(cache=True, error_model="numpy")
def _put(h, draws, cells, sizes, joint, of_sizes, i, k, sign):
    """Put an item into a cluster (sign 1) or take it out (sign -1)."""
    of_sizes += h[sizes[k] + sign] - h[sizes[k]]
    sizes[k] += sign
    for t in range(draws.shape[0]):
        cell = cells[t, draws[t, i], k]
        joint[t] += h[cell + sign] - h[cell]
        cells[t, draws[t, i], k] = cell + sign
    return joint, of_sizes
