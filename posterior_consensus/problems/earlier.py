"""Components that are as they were: by a checksum of their records, pairs, weights and constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.problems.components import Decomposition, first_members
from posterior_consensus.runtime.aliases import Floats

Checksums = npt.NDArray[np.uint64]

_ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)  # of SplitMix64


@dataclass(frozen=True, eq=False)
class Earlier:
    """An earlier partition of the same records, or of some of them, with what was known of its components."""

    labels: npt.NDArray[np.int64]  # (n_records,): cluster of each record, -1 for a new one
    checksums: Checksums  # (n_records,): checksum of each record's component, 0 if it was in none of several groups
    gaps: Floats  # (n_records,): at one record of each component, by how much a better partition of it may be better

    def unchanged(self, parts: Decomposition, of_records: Checksums) -> npt.NDArray[np.bool_]:
        """Which components (n_components,) are as they were, by the checksums (n_records,) of theirs now."""
        same = np.zeros(parts.component_of.size, np.bool_)
        same[parts.groups] = self.checksums == of_records
        return same[parts.members[parts.starts[:-1]]]

    def clusters(self, parts: Decomposition) -> npt.NDArray[np.intp]:
        """First member of each member's earlier cluster, of components that are as they were."""
        return first_members(parts.part_of(self.labels)) if parts.members.size else np.empty(0, np.intp)

    def gaps_of(self, parts: Decomposition) -> Floats:
        """The gap of each of the large components, which are as they were."""
        of_groups = np.bincount(parts.groups, self.gaps, parts.component_of.size)
        return np.array([of_groups[parts.members[parts.place(one)]].sum() for one in parts.large.tolist()])


def checksums_of(parts: Decomposition) -> Checksums | None:
    """The checksum (n_records,) of each record's component, 0 in none of several groups; None without names.

    It is that of names and weights, in any order: another component has the same one with probability 2^-64.
    """
    items = parts.source.items
    if items.dim not in items.coords:
        return None
    of_records = np.zeros(parts.groups.size, np.uint64)
    if not len(parts):
        return of_records
    of_groups = np.zeros(parts.component_of.size, np.uint64)
    names = pd.util.hash_pandas_object(items.coords[items.dim].to_index(), categorize=False)
    np.add.at(of_groups, parts.groups, names.to_numpy())
    pairs, of_members = parts.pairs, _mixed(of_groups[parts.members])
    rows = np.repeat(of_members, np.diff(pairs.indptr))
    entries = _mixed(rows * _ODD[0] + of_members[pairs.indices] * _ODD[1] + pairs.excess.view(np.uint64))
    sums = np.add.reduceat(entries, pairs.indptr[parts.starts[:-1]])
    of_all = _mixed(np.array([pairs.default, pairs.limit]).view(np.uint64)).sum()
    sums += np.add.reduceat(of_members, parts.starts[:-1]) + of_all
    of_groups[:] = 0
    of_groups[parts.members] = np.repeat(np.maximum(_mixed(sums), np.uint64(1)), parts.n_groups)
    of_records[:] = of_groups[parts.groups]
    return of_records


def _mixed(values: Checksums) -> Checksums:
    """Spread each value over all bits: SplitMix64, Steele et al. (2014), https://doi.org/10.1145/2660193.2660195."""
    values = values + _ODD[0]
    values = (values ^ (values >> np.uint64(30))) * _ODD[1]
    values = (values ^ (values >> np.uint64(27))) * _ODD[2]
    return values ^ (values >> np.uint64(31))
