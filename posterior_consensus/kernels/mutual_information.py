"""Moves of items that raise the mutual information between the clusters of both sides of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.runtime.executor import in_blocks
from posterior_consensus.runtime.tolerances import ROUNDING


@inner
def _phi(share):
    return share * np.log(share) if share > 0.0 else 0.0


@jit
def _add_profiles(first, last, begins, columns, shares, labels, offsets, profiles):
    for i in range(first, last):
        profile = profiles[i]
        for at in range(begins[i], begins[i + 1]):
            for c in range(labels.shape[0]):
                profile[offsets[c] + labels[c, columns[at]]] += shares[at]


def profiles_of(table: Any, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Sums of each row of a table in CSR form over each cluster of columns: (n, m x n_clusters), side by side.

    `labels` (m, columns) are m clusterings.
    """
    n_rows, m = table.shape[0], len(labels)
    profiles = np.zeros((n_rows, m * n_clusters))
    offsets = np.arange(m) * n_clusters
    arguments = table.indptr, table.indices, table.data, labels, offsets, profiles
    in_blocks(_add_profiles, 0, n_rows, *arguments, work=m * (1 + table.nnz // n_rows))
    return profiles


@inner
def _gains(sign, k, held, shares, marginal, n_maps, totals, table, terms):
    """What the mutual information gains if an item enters cluster k, or leaves it where `sign` is -1."""
    gain = -n_maps * (_phi(max(totals[k] + sign * marginal, 0.0)) - _phi(totals[k]))
    for y in held:
        gain += _phi(max(table[k, y] + sign * shares[y], 0.0)) - terms[k, y]
    return gain


@jit
def _climb(first, last, profiles, marginals, n_maps, n_clusters, passes, labels, values):
    orders, n_passes, stop = passes
    n_items, width = profiles.shape
    held = np.empty(width, np.int64)
    for c in range(first, last):
        own = labels[c]
        sizes = np.zeros(n_clusters, np.int64)
        totals, table, terms = np.zeros(n_clusters), np.zeros((n_clusters, width)), np.empty((n_clusters, width))
        for i in range(n_items):
            sizes[own[i]] += 1
            totals[own[i]] += marginals[i]
            table[own[i]] += profiles[i]
        for k in range(n_clusters):
            for y in range(width):
                terms[k, y] = _phi(table[k, y])
        for _ in range(n_passes):
            n_moves = 0
            for i in orders[c]:
                old, shares, marginal = own[i], profiles[i], marginals[i]
                if sizes[old] == 1 or stop[0] != 0:
                    continue
                n_held = 0
                for y in range(width):
                    if shares[y] > 0.0:
                        held[n_held] = y
                        n_held += 1
                best, new = -np.inf, -1
                for k in range(n_clusters):
                    if k != old:
                        gain = _gains(1.0, k, held[:n_held], shares, marginal, n_maps, totals, table, terms)
                        if gain > best:
                            best, new = gain, k
                leaving = _gains(-1.0, old, held[:n_held], shares, marginal, n_maps, totals, table, terms)
                if best + leaving <= ROUNDING:
                    continue
                for at in range(n_held):
                    y = held[at]
                    table[old, y] = max(table[old, y] - shares[y], 0.0)
                    table[new, y] += shares[y]
                    terms[old, y], terms[new, y] = _phi(table[old, y]), _phi(table[new, y])
                totals[old] = max(totals[old] - marginal, 0.0)
                totals[new] += marginal
                sizes[old] -= 1
                sizes[new] += 1
                own[i] = new
                n_moves += 1
            if n_moves == 0:
                break
        values[c] = terms.sum()
        for k in range(n_clusters):
            values[c] -= n_maps * _phi(totals[k])


def climb(
    profiles: np.ndarray,
    marginals: np.ndarray,
    n_maps: int,
    n_clusters: int,
    orders: np.ndarray,
    n_passes: int,
    labels: np.ndarray,
    stop: np.ndarray,
) -> np.ndarray:
    """Offer every item the cluster that raises the mutual information most; change `labels` (m, n) in place.

    No cluster loses its last item. Items come in the orders (m, n), up to `n_passes` times, and stay where they are
    once `stop` holds 1. The m clusterings know nothing of each other: each is judged by the sum of its mutual
    informations with `n_maps` clusterings of the other side, whose clusters are the columns of `profiles` (n, width).
    `marginals` (n,) are what each item has of the whole table. Returns that sum for each clustering (m,), in nats, less
    what does not depend on it.
    """
    values = np.empty(len(labels))
    work = n_passes * profiles.size * n_clusters * 8
    arguments = profiles, marginals, n_maps, n_clusters, (orders, n_passes, stop), labels, values
    in_blocks(_climb, 0, len(labels), *arguments, work=work)
    return values
