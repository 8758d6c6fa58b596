"""Clusters of the same records now and before: names that stay, and what became of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.runtime.aliases import Integers

_KINDS = ("kept", "new", "grown", "merged", "split", "merged and split")


class _InCommon(NamedTuple):
    """Clusters now and before that share records, ordered by both, and how many records they share."""

    now: Integers
    previous: Integers  # -1 for records that are new
    number: Integers


def _in_common(labels: Labels, previous: npt.NDArray[Any]) -> _InCommon:
    size = int(previous.max(initial=-1)) + 2
    keys, number = np.unique(labels.astype(np.int64) * size + previous + 1, return_counts=True)
    return _InCommon(keys // size, keys % size - 1, number)


def names_after(
    labels: Labels, previous: npt.NDArray[np.int32], previous_names: Sequence[Hashable]
) -> tuple[Hashable, ...]:
    """Names of clusters: each keeps that of the one before with which it shares most records; no name comes twice.

    `labels` (n_items,): clusters now; `previous` (n_items,): those before, -1 for a new record. Others get the next
    integers if all names are integers, else "new 1" and so on.
    """
    shared = _in_common(labels, previous)
    now, before, number = (one[shared.previous >= 0] for one in shared)
    given = _as_objects(previous_names)
    names = np.empty(int(labels.max()) + 1, object)
    is_named, is_taken = np.zeros(names.size, np.bool_), np.zeros(given.size, np.bool_)
    alone = (np.bincount(now)[now] == 1) & (np.bincount(before)[before] == 1)
    names[now[alone]] = given[before[alone]]
    is_named[now[alone]] = True
    others = np.flatnonzero(~alone)
    for at in others[np.lexsort((now[others], before[others], -number[others]))].tolist():
        k, old = now[at], before[at]
        if not is_named[k] and not is_taken[old]:
            names[k], is_named[k], is_taken[old] = given[old], True, True
    names[~is_named] = list(islice(_other_names(previous_names), int(np.count_nonzero(~is_named))))
    return tuple(names.tolist())


def _as_objects(names: Sequence[Hashable]) -> npt.NDArray[np.object_]:
    return pd.Index([*names], dtype=object, tupleize_cols=False).to_numpy()


def _are_integers(names: Sequence[Hashable]) -> bool:
    return all(issubclass(kind, int | np.integer) and kind is not bool for kind in set(map(type, names)))


def _other_names(names: Sequence[Any]) -> Iterator[Hashable]:
    if _are_integers(names):
        return count(int(max(names, default=-1)) + 1)
    taken = set(names)
    return (name for name in (f"new {number}" for number in count(1)) if name not in taken)


def table_of_changes(
    labels: Labels, names: Sequence[Hashable], previous: npt.NDArray[np.int32], previous_names: Sequence[Hashable]
) -> pd.DataFrame:
    """A row for each cluster that changed and each cluster before, or none, that it has records of."""
    shared, kinds = _in_common(labels, previous), _kinds_of(labels, previous)
    now, before, number = (one[kinds[shared.now] > 0] for one in shared)
    old = pd.Series(_as_objects([*previous_names, None])[before])
    columns = {
        "cluster": pd.Series(_as_objects(names)[now]).infer_objects(),
        "kind": pd.Index(_KINDS)[kinds[now]],
        "previous": old.astype("Int64") if _are_integers(previous_names) else old,
        "n_records": number,
    }
    return pd.DataFrame(columns)


def count_changes(labels: Labels, previous: npt.NDArray[np.int32]) -> dict[str, int]:
    """Number of clusters of each kind that occurs."""
    numbers = np.bincount(_kinds_of(labels, previous), minlength=len(_KINDS)).tolist()
    return {kind: number for kind, number in zip(_KINDS, numbers, strict=True) if number}


def _kinds_of(labels: Labels, previous: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Kind (n_clusters,) of each cluster, its place in `_KINDS`."""
    now, before, number = _in_common(labels, previous)
    n_clusters, is_old = int(labels.max()) + 1, before >= 0
    sizes = np.bincount(previous[previous >= 0], minlength=int(before.max()) + 1)
    parts = is_old & (number < np.append(sizes, 0)[before])
    n_old, has_new, has_parts = (np.bincount(now[one], minlength=n_clusters) for one in (is_old, ~is_old, parts))
    conditions = {
        "new": n_old == 0,
        "merged and split": (n_old > 1) & (has_parts > 0),
        "merged": n_old > 1,
        "split": has_parts > 0,
        "grown": has_new > 0,
    }
    return np.select(list(conditions.values()), [_KINDS.index(kind) for kind in conditions])
