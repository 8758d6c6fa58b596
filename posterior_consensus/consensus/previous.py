"""Clusters of records that were found before, as `consensus_partition` takes them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.bounds.components import ComponentsInfo
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.problems.earlier import Earlier

_NEXT = "Pass a result of consensus_partition, or a pandas Series, as table.set_index('unique_id')['cluster_id']."


@dataclass(frozen=True, eq=False)
class Previous:
    """Clusters that the records of some pairs had before."""

    labels: npt.NDArray[np.int32]  # (n_records,): number of the cluster of each record, -1 for a new one
    names: tuple[Hashable, ...]  # of these clusters
    earlier: Earlier | None  # what was known of components; None if only clusters are known

    @classmethod
    def of(cls, previous: Any, pairs: ScoredPairs) -> Previous:
        """Clusters by name of the record: a result, or a Series of clusters.

        Raises
        ------
        TypeError
            If `previous` is neither.
        ValueError
            If records have no names, or names are not those of the pairs.
        """
        items = pairs.items
        if not isinstance(previous, ConsensusPartition | pd.Series):
            raise TypeError(f"`previous` must have a cluster for each record; got {type(previous).__name__}. {_NEXT}")
        index = _records_of(previous)
        if index is None or items.dim not in items.coords:
            of = "`previous`" if index is None else "the pairs"
            raise ValueError(
                f"`previous` needs names of records, by which both are paired; {of} have none. Name them by `items` "
                "of as_pair_similarity."
            )
        if not index.is_unique:
            twice = index[index.duplicated()]
            raise ValueError(f"`previous` must have each record once; {len(twice)} stand again, as {twice[0]!r}.")
        place = index.get_indexer(items.coords[items.dim].to_index())
        if not (place >= 0).any():
            raise ValueError(
                f"`previous` must have records of the pairs; it has none of them, but {len(index)} others, such as "
                f"{index[:1].tolist()}, while pairs have {str(items.named(np.array([0]))[0])!r}."
            )
        if isinstance(previous, pd.Series):
            codes, names = pd.factorize(previous)
            return cls(_taken(codes, place, -1).astype(np.int32), tuple(pd.Index(names).tolist()), None)
        labels = _taken(previous.labels.values, place, -1)
        return cls(labels.astype(np.int32), previous.names, _earlier(previous, labels, place))

    def fixed(self, pairs: ScoredPairs) -> ScoredPairs:
        """Pairs whose partitions keep these clusters whole and apart.

        Raises
        ------
        ValueError
            If the clusters break a constraint.
        """
        constraints = replace(pairs.constraints, earlier=self.labels.astype(np.int64))
        constrained = replace(pairs, constraints=constraints)
        constrained.groups()
        return constrained


def _records_of(previous: ConsensusPartition | pd.Series) -> pd.Index | None:
    if isinstance(previous, pd.Series):
        return previous.index
    return previous.labels.indexes.get(previous.labels.dims[0])


def _earlier(
    previous: ConsensusPartition, labels: npt.NDArray[np.int32], place: npt.NDArray[np.intp]
) -> Earlier | None:
    """What a result knows of its components; a search that was stopped knows those that it proved to be optimal."""
    if previous.checksums is None or not isinstance(previous.info, ComponentsInfo):
        return None
    checksums, gaps = previous.checksums.values, np.zeros(previous.labels.size)
    gaps[previous.info.unproven_records] = previous.info.unproven_gaps
    if previous.info.stopped:
        checksums = np.where(np.isin(checksums, checksums[previous.info.unproven_records]), 0, checksums)
    return Earlier(labels.astype(np.int64), _taken(checksums, place, 0), _taken(gaps, place, 0))


def _taken(values: npt.NDArray[Any], place: npt.NDArray[np.intp], missing: int) -> npt.NDArray[Any]:
    """Values at places, which are -1 for what is missing."""
    return np.where(place >= 0, values[place], values.dtype.type(missing))
