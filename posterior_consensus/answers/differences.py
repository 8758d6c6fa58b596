"""How one partition differs from another, in words: clusters that split, clusters that are one, items that move."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.partitions import Labels, contingency_table
from posterior_consensus.results.display import counted, joined

_SHARE = 0.25  # of the smaller of two clusters: what they share beyond makes them parts of one change
_MOST_LISTED = 4


def differences(
    reference: Labels, partition: Labels, names: Sequence[Hashable], others: Sequence[Hashable] | None = None
) -> list[str]:
    """Say how a partition differs from a reference, cluster by cluster of the reference, the largest change first.

    Parameters
    ----------
    reference, partition : ndarray of shape (n_items,), dtype int32
        Canonical labels of the same items.
    names : sequence of shape (n_clusters,)
        Names of the reference's clusters.
    others : sequence, optional
        Names of the partition's clusters, which are told by their sizes alone without them.

    Returns
    -------
    list of str
        Clauses without a capital and a full stop; empty for equal partitions.

    Notes
    -----
    Two clusters overlap if they share at least a quarter of the smaller of them. The connected components of the graph
    of overlapping clusters are told one by one: a cluster that splits, clusters that are one, and clusters that are
    partitioned differently. Items that two clusters share without overlapping are counted together at the end.
    """
    table = contingency_table(reference, partition)
    smaller = np.minimum(table.sum(axis=1)[:, np.newaxis], table.sum(axis=0))
    overlap = (table > 0) & (table >= _SHARE * smaller)
    rows, columns = np.nonzero(overlap)
    n_reference, n_partition = table.shape
    n_nodes = n_reference + n_partition
    graph = coo_array((np.ones(rows.size), (rows, n_reference + columns)), shape=(n_nodes, n_nodes))
    n_components, component = connected_components(graph, directed=False)
    changes = []
    for c in range(n_components):
        before = np.flatnonzero(component[:n_reference] == c)
        after = np.flatnonzero(component[n_reference:] == c)
        if max(before.size, after.size) > 1:
            part = table[np.ix_(before, after)]
            own = None if others is None else [others[k] for k in after.tolist()]
            changes.append((int(part.sum() - part.max()), _change([names[k] for k in before.tolist()], part, own)))
    told = [text for _, text in sorted(changes, key=lambda change: -change[0])]
    moved = int(table[~overlap].sum())
    return [*told, f"{counted(moved, 'item')} change{'s' * (moved == 1)} clusters"] if moved else told


def _change(names: Sequence[Hashable], part: npt.NDArray[Any], others: Sequence[Hashable] | None) -> str:
    """Say what becomes of these clusters, which the rows of the table of counts stand for."""
    sizes = part.sum(axis=0)
    order = np.argsort(-sizes, kind="stable").tolist()
    words = [str(sizes[k]) if others is None else f"{others[k]} ({counted(int(sizes[k]), 'item')})" for k in order]
    if len(order) > _MOST_LISTED:
        parts = f"{len(order)} clusters, the largest of {counted(int(sizes[order[0]]), 'item')}"
    else:
        parts = f"clusters {'of ' if others is None else ''}{_joined(words)}"
    if len(names) == 1:
        return f"cluster {names[0]} splits into {parts}"
    one = "one" if others is None else f"one, cluster {words[0]}"
    return f"clusters {_joined(names)} are {one if len(order) == 1 else f'partitioned differently, into {parts}'}"


def _joined(values: Sequence[Hashable]) -> str:
    words = [str(value) for value in values[:_MOST_LISTED]]
    if len(values) > _MOST_LISTED:
        words.append(f"{len(values) - _MOST_LISTED} more")
    return joined(words)
