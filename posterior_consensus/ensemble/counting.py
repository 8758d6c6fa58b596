"""Sums over contingency tables of draws. For labels on disk or on workers, tables are added block by block.

Tables hold integers and are summed in the order of the kernels for labels in memory, so both give the same bits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.labels import LabelBackend
from posterior_consensus.kernels import contingency
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats

_SPARSE = 16  # table cells per item beyond which kernels loop over items, not cells


def joint_sums(backend: LabelBackend, partitions: npt.NDArray[Any], h: Floats) -> tuple[Floats, Floats]:
    """Sums of h (P, N) over the tables of partitions (P, n) with all draws, and (N,) over the draws' cluster sizes.

    Both come from one pass over the labels.
    """
    n_clusters = partitions.max(axis=1).astype(np.int64) + 1
    if _go_by_draws(backend, int(n_clusters.max())):
        return _sums_by_draws(backend, partitions, n_clusters, h)
    if len(partitions) == 1:
        counts = backend.joint_counts(partitions[0].astype(np.int32))
        sums = contingency.sums_of_counts(counts, backend.starts, np.array([0, n_clusters[0]]), h)
        return sums, size_sums(backend, h)
    return _sums(backend, n_clusters, partitions, h)


def joint_sums_of_draws(backend: LabelBackend, rows: npt.NDArray[np.intp], h: Floats) -> tuple[Floats, Floats]:
    """Sums (rows.size, N) and (N,) of :func:`joint_sums` for some draws as partitions."""
    n_clusters = backend.n_clusters[rows]
    if _go_by_draws(backend, int(n_clusters.max())):
        return _sums_by_draws(backend, backend.of_draws(rows), n_clusters, h)
    return _sums(backend, n_clusters, rows, h)


def paired_joint_sums(
    backend: LabelBackend, rows: npt.NDArray[np.intp], others: npt.NDArray[np.intp], h: Floats
) -> Floats:
    """Sums of h (P,) over the tables of draws `rows[p]` with draws `others[p]`."""
    if (held := backend.in_memory()) is not None:
        return np.asarray(contingency.paired_joint_sums(held, backend.n_clusters, rows, others, h))
    cells = backend.n_clusters[rows] * backend.n_clusters[others]
    sums = np.empty(rows.size)
    dense = cells.max(initial=0) <= min(_SPARSE * backend.n_items, memory.CELLS_AT_ONCE)
    at_once = _parts(cells if dense else np.full(rows.size, 2 * backend.n_items))
    for part in at_once:
        if dense:
            offsets = np.concatenate([[0], np.cumsum(cells[part])])
            given = backend.n_clusters[others[part]], offsets, rows[part], others[part]
            total = backend.sum_blocks(_pair_counts, *given)
            sums[part] = contingency.sums_of_counts(total[:, np.newaxis], offsets, np.array([0, 1]), h)[0]
        else:
            needed, where = np.unique(np.concatenate([rows[part], others[part]]), return_inverse=True)
            one, other = np.split(where, 2)
            labels = backend.of_draws(needed)
            sums[part] = contingency.paired_joint_sums(labels, backend.n_clusters[needed], one, other, h)
    return sums


def all_joint_sums(backend: LabelBackend, h: Floats) -> Floats:
    """Sums of h (N, N) over the tables of all draws with all draws."""
    if (held := backend.in_memory()) is not None:
        return np.asarray(contingency.all_joint_sums(held, backend.n_clusters, h))
    sums, _ = joint_sums_of_draws(backend, np.arange(backend.n_draws), h)
    for row in range(backend.n_draws):  # in this order: another may change the last digit
        sums[row + 1 :, row] = sums[row, row + 1 :]
    return sums


def size_sums(backend: LabelBackend, h: Floats) -> Floats:
    """Sums of h (N,) over the sizes of the clusters of every draw."""
    return _sums_over(backend.sizes, backend.starts, h)


def _sums_over(sizes: npt.NDArray[np.int32], starts: npt.NDArray[np.int64], h: Floats) -> Floats:
    sums: Floats = contingency.sums_of_counts(sizes[:, np.newaxis], starts, np.array([0, 1]), h)[0]
    return sums


def _go_by_draws(backend: LabelBackend, most: int) -> bool:
    """Whether draws are in memory, or tables with `most` columns would be sparse or large."""
    if backend.in_memory() is not None:
        return True
    widest, all_clusters = int(backend.n_clusters.max()), int(backend.starts[-1])
    return most * widest > _SPARSE * backend.n_items or most * all_clusters > 4 * memory.CELLS_AT_ONCE


def _sums(
    backend: LabelBackend, n_clusters: npt.NDArray[np.int64], partitions: npt.NDArray[Any], h: Floats
) -> tuple[Floats, Floats]:
    sums, drawn = np.empty((n_clusters.size, backend.n_draws)), np.empty(0)
    for part in _parts(n_clusters * backend.starts[-1]):
        offsets = np.concatenate([[0], np.cumsum(n_clusters[part])])
        counts = backend.sum_blocks(_counts, backend.starts, partitions[part], offsets)
        sums[part] = contingency.sums_of_counts(counts, backend.starts, offsets, h)
        if part.start == 0:
            drawn = _sums_over(counts[:, : offsets[1]].sum(axis=1, dtype=np.int32), backend.starts, h)
    return sums, drawn


def _parts(cells: npt.NDArray[np.int64]) -> list[slice]:
    """Slices of tables whose cells fit into the limit together, at least one table each."""
    reached, parts, first = np.cumsum(cells), [], 0
    while first < cells.size:
        before = reached[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(reached, before + memory.CELLS_AT_ONCE, side="right")))
        parts.append(slice(first, last))
        first = last
    return parts


def _sums_by_draws(
    backend: LabelBackend, partitions: npt.NDArray[Any], n_clusters: npt.NDArray[np.int64], h: Floats
) -> tuple[Floats, Floats]:
    """Sum by blocks of draws, which take a quarter of the memory budget at most."""
    partitions = alike(partitions, n_clusters, backend.dtype)
    at_once = max(1, memory.budget() // (4 * backend.n_items * backend.dtype.itemsize))
    parts = [
        contingency.joint_sums(partitions, n_clusters, labels, backend.n_clusters[rows], h)
        for rows, labels in backend.blocks(at_once)
    ]
    sums, drawn = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return sums, drawn


def alike(partitions: npt.NDArray[Any], n_clusters: npt.NDArray[np.int64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Partitions of the type of draws' labels if it holds them, as kernels are compiled for each pair of types."""
    return partitions.astype(dtype) if n_clusters.max() - 1 <= np.iinfo(dtype).max else partitions


def _counts(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    partitions: npt.NDArray[Any],
    offsets: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Count common items of partitions (P, n), or of draws given by row number (P,), with all draws."""
    own = labels[partitions] if partitions.ndim == 1 else partitions[:, items]
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
