"""Sums over contingency tables of draws. For labels on disk or on workers, tables are added block by block.

Tables hold integers and are summed in the order of the kernels for labels in memory, so both give the same bits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import DrawnLabels
from posterior_consensus.kernels import contingency
from posterior_consensus.runtime import memory, sizes

_SPARSE = 16  # table cells per item beyond which kernels loop over items, not cells


def joint_sums(drawn: DrawnLabels, partitions: npt.NDArray[Any], h: Floats) -> Floats:
    """Sums of h (P, N) over the tables of partitions (P, n) with all draws, in one pass over the blocks."""
    sizes = partitions.max(axis=1).astype(np.int64) + 1
    if drawn.held() is not None or _is_sparse(drawn, int(sizes.max())):
        return _sums_by_draws(drawn, partitions, sizes, h)
    if len(partitions) == 1:
        counts = drawn.joint_counts(partitions[0].astype(np.int32))
        return np.asarray(contingency.sums_of_counts(counts, drawn.starts, np.array([0, sizes[0]]), h))
    return _sums(drawn, sizes, partitions, h)


def joint_sums_of_draws(drawn: DrawnLabels, rows: npt.NDArray[np.intp], h: Floats) -> Floats:
    """Sums of h (rows.size, N) over the tables of some draws with all draws."""
    sizes = drawn.n_clusters[rows]
    if _is_sparse(drawn, int(sizes.max())):
        return _sums_by_draws(drawn, drawn.of_draws(rows), sizes, h)
    return _sums(drawn, sizes, rows, h)


def paired_joint_sums(
    drawn: DrawnLabels, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp], h: Floats
) -> Floats:
    """Sums of h (P,) over the tables of draws `rows[p]` with draws `others[p]`."""
    if (held := drawn.held()) is not None:
        return np.asarray(contingency.paired_joint_sums(held, drawn.n_clusters, rows, others, h))
    cells = drawn.n_clusters[rows] * drawn.n_clusters[others]
    sums = np.empty(rows.size)
    dense = cells.max(initial=0) <= min(_SPARSE * drawn.n_items, sizes.CELLS_AT_ONCE)
    at_once = _parts(cells if dense else np.full(rows.size, 2 * drawn.n_items))
    for part in at_once:
        if dense:
            offsets = np.concatenate([[0], np.cumsum(cells[part])])
            given = drawn.n_clusters[others[part]], offsets, rows[part], others[part]
            total = drawn.sum_blocks(_pair_counts, *given)
            sums[part] = contingency.sums_of_counts(total[:, np.newaxis], offsets, np.array([0, 1]), h)[0]
        else:
            needed, where = np.unique(np.concatenate([rows[part], others[part]]), return_inverse=True)
            one, other = np.split(where, 2)
            labels = drawn.of_draws(needed)
            sums[part] = contingency.paired_joint_sums(labels, drawn.n_clusters[needed], one, other, h)
    return sums


def all_joint_sums(drawn: DrawnLabels, h: Floats) -> Floats:
    """Sums of h (N, N) over the tables of all draws with all draws."""
    if (held := drawn.held()) is not None:
        return np.asarray(contingency.all_joint_sums(held, drawn.n_clusters, h))
    sums = joint_sums_of_draws(drawn, np.arange(drawn.n_draws), h)
    for row in range(drawn.n_draws):  # in this order: another may change the last digit
        sums[row + 1 :, row] = sums[row, row + 1 :]
    return sums


def size_sums(drawn: DrawnLabels, h: Floats) -> Floats:
    """Sums of h (N,) over the sizes of the clusters of every draw."""
    if (held := drawn.held()) is not None:
        return np.asarray(contingency.size_sums(held, drawn.n_clusters, h))
    return np.asarray(contingency.sums_of_counts(drawn.sizes[:, np.newaxis], drawn.starts, np.array([0, 1]), h)[0])


def _is_sparse(drawn: DrawnLabels, most: int) -> bool:
    widest, all_clusters = int(drawn.n_clusters.max()), int(drawn.starts[-1])
    return most * widest > _SPARSE * drawn.n_items or most * all_clusters > 4 * sizes.CELLS_AT_ONCE


def _sums(drawn: DrawnLabels, sizes: npt.NDArray[np.int64], estimates: npt.NDArray[Any], h: Floats) -> Floats:
    sums = np.empty((sizes.size, drawn.n_draws))
    for part in _parts(sizes * drawn.starts[-1]):
        offsets = np.concatenate([[0], np.cumsum(sizes[part])])
        counts = drawn.sum_blocks(_counts, drawn.starts, estimates[part], offsets)
        drawn.keep_sizes(counts[:, : offsets[1]])
        sums[part] = contingency.sums_of_counts(counts, drawn.starts, offsets, h)
    return sums


def _parts(cells: npt.NDArray[np.int64]) -> list[slice]:
    """Slices of tables whose cells fit into the limit together, at least one table each."""
    reached, parts, first = np.cumsum(cells), [], 0
    while first < cells.size:
        before = reached[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(reached, before + sizes.CELLS_AT_ONCE, side="right")))
        parts.append(slice(first, last))
        first = last
    return parts


def _sums_by_draws(drawn: DrawnLabels, partitions: npt.NDArray[Any], sizes: npt.NDArray[np.int64], h: Floats) -> Floats:
    """Sum by blocks of draws if tables would take more memory than these draws; else with all draws in memory."""
    if sizes.max() - 1 <= np.iinfo(drawn.dtype).max:
        partitions = partitions.astype(drawn.dtype)
    at_once = drawn.n_draws
    if drawn.held() is None:
        at_once = max(1, memory.budget() // (4 * drawn.n_items * drawn.dtype.itemsize))
    parts = [
        contingency.joint_sums(partitions, sizes, labels, drawn.n_clusters[rows], h)[0]
        for rows, labels in drawn.blocks(at_once)
    ]
    return np.concatenate(parts, axis=1)


def _counts(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    estimates: npt.NDArray[Any],
    offsets: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Count common items of partitions (P, n), or of draws given by row number (P,), with all draws."""
    own = labels[estimates] if estimates.ndim == 1 else estimates[:, items]
    columns = own.astype(np.int32) + offsets[:-1, np.newaxis].astype(np.int32)
    return contingency.stacked_counts(np.ascontiguousarray(labels), starts, columns, int(offsets[-1]))


def _pair_counts(
    labels: npt.NDArray[Any],
    items: slice,
    widths: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.intp],
    others: npt.NDArray[np.intp],
) -> npt.NDArray[np.int32]:
    return contingency.paired_counts(np.ascontiguousarray(labels), rows, others, widths, offsets)
