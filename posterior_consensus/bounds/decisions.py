"""What each pair's decision is worth: the rise of the expected loss with the pair decided the other way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from posterior_consensus.ensemble.partitions import Labels, connected
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.kernels import components, decisions
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.component import Component
from posterior_consensus.problems.components import Forbidden, between_groups, weighted
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.executor import in_blocks
from posterior_consensus.runtime.tolerances import ROUNDING

_AT_ONCE = 256  # pairs across components
_DIGITS = 9  # after the point, of rises that are compared
_SHIFT = 1e-5  # of weights, by which equal rises of different decisions differ
_OF_SHIFTED = 10  # digits after the point, of rises with shifted weights
_REPEATS = 4  # pairs looked at for each decision wanted, at first
_WORK = 1000  # elementary steps of a set of few groups
_SEED = np.random.SeedSequence([8, 1])  # of shifts


class Decisions(NamedTuple):
    """Scored pairs with the rise of the loss if they are decided the other way, the smallest first."""

    pairs: Positions  # (n_pairs,): number of each pair in the order of `ScoredPairs.pairs`
    increase: Floats  # (n_pairs,): rise of the expected loss, divided by the loss's scale
    exact: Flags  # (n_pairs,): whether it is the rise, and not only a bound from above
    between: Integers  # (n_pairs, 2): clusters of both records, the smaller number first
    # (n_pairs, 2): rise if all weights were a little different, and if they differed the other way, so that pairs with
    # one rise by different decisions differ here. 0 for pairs that need not be told from others.
    shifted: Floats

    @property
    def is_first(self) -> Flags:
        """Whether no earlier pair is of the same clusters with the same rise, by the same decision."""
        found = np.zeros(self.pairs.size, np.bool_)
        rises = self.increase.round(_DIGITS), *self.shifted.T.round(_OF_SHIFTED)
        found[_numbered_rows(*self.between.T, *rises)[1]] = True
        return found

    def take(self, at: Positions) -> Decisions:
        """Some of the pairs, by position."""
        return Decisions(self.pairs[at], self.increase[at], self.exact[at], self.between[at], self.shifted[at])


def closest_decisions(source: ScoredPairs, loss: PartitionLoss, labels: Labels, most: int) -> Decisions:
    """Find the scored pairs whose decision the other way raises the loss least, of at most `most` decisions.

    Pairs that are not `is_first` repeat the decision of an earlier one, and do not count. Of several pairs between the
    same records that must be together, one of the largest similarity is taken. Pairs that constraints decide are left
    out. Raises ValueError if constraints contradict each other.
    """
    changes = _Changes.of(source, loss, labels)
    number, one, other = changes.open_pairs(source)
    within = changes.block_of[one] == changes.block_of[other]
    increase, exact, deficit = changes.within_blocks(one[within], other[within])
    order, size = np.lexsort((number[within], increase)), _REPEATS * most
    while True:  # decisions of the least rises alone are told apart, which takes longer than the rises
        some = order[:size]
        at = np.flatnonzero(within)[some]
        told_apart = changes.told_apart(one[at], other[at], increase[some])
        found, is_full = _smallest(Decisions(number[at], increase[some], exact[some], *told_apart), most)
        if is_full or size >= order.size:
            break
        size *= _REPEATS
    number, one, other = number[~within], one[~within], other[~within]
    least = -changes.weight(one, other) - deficit[changes.block_of[one]] - deficit[changes.block_of[other]]
    order = np.argsort(least, kind="stable")
    for start in range(0, order.size, _AT_ONCE):
        chosen = order[start : start + _AT_ONCE]
        if is_full and least[chosen[0]] > found.increase[-1]:
            break
        limit = found.increase[-1] if is_full else np.inf
        increase, exact = changes.across_blocks(one[chosen], other[chosen], least[chosen], limit)
        near = increase <= limit
        chosen, increase, exact = chosen[near], increase[near], exact[near]
        told_apart = changes.told_apart(one[chosen], other[chosen], increase)
        both = zip(found, (number[chosen], increase, exact, *told_apart), strict=True)
        found, is_full = _smallest(Decisions(*(np.concatenate(columns) for columns in both)), most)
    return found


def _smallest(decided: Decisions, most: int) -> tuple[Decisions, bool]:
    """The pairs of the decisions with the least rise, and whether these are `most`."""
    found = decided.take(np.lexsort((decided.pairs, decided.increase)))
    n_decisions = np.cumsum(found.is_first)
    last = int(np.searchsorted(n_decisions, most))
    is_full = last < n_decisions.size
    return (found.take(np.arange(last + 1)) if is_full else found), is_full


@dataclass(frozen=True, eq=False)
class _Changes:
    """A partition of groups of records, and the weights of their pairs."""

    groups: npt.NDArray[np.int32]  # (n_records,): records that must be together
    sizes: Integers  # (n_groups,): records of each group
    clusters: Integers  # (n_groups,): cluster of each group
    excess: sparse.csr_array  # weight of each listed pair less what it has by default
    default: float  # weight of a pair of records that is not listed, at most 0
    forbidden: Forbidden  # groups that must be apart
    # (n_groups,): connected component of each group: of pairs of positive weight, and of groups of one cluster
    block_of: npt.NDArray[np.int32]

    @classmethod
    def of(cls, source: ScoredPairs, loss: PartitionLoss, labels: Labels) -> _Changes:
        weights = weighted(source, loss)
        rows, columns, values = between_groups(*weights)
        groups, sizes = weights.groups, np.bincount(weights.groups)
        n = sizes.size
        clusters = np.empty(n, np.int64)
        clusters[groups] = labels
        forbidden = Forbidden.of(source.constraints, groups)
        linked = forbidden.linked(rows, columns, values)
        ends = np.concatenate([rows[linked], np.arange(n)]), np.concatenate([columns[linked], n + clusters])
        block_of = connected(*ends, n + int(clusters.max()) + 1)[:n]
        block_of = np.unique(block_of, return_inverse=True)[1].astype(np.int32)
        excess = sparse.csr_array((values - weights.default * (sizes[rows] * sizes[columns]), (rows, columns)), (n, n))
        excess.sort_indices()
        return cls(groups, sizes, clusters, excess, weights.default, forbidden, block_of)

    def open_pairs(self, source: ScoredPairs) -> tuple[Positions, Integers, Integers]:
        """Scored pairs that no constraint decides: number, and both groups."""
        first, second, values = source.pairs
        one, other = self.groups[first].astype(np.int64), self.groups[second].astype(np.int64)
        number = np.flatnonzero(one != other)
        if self.sizes.size < self.groups.size:
            low, high = np.minimum(one, other)[number], np.maximum(one, other)[number]
            order = np.lexsort((number, -values[number], low * self.sizes.size + high))
            low, high = low[order], high[order]
            begins = (np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0)
            number = np.sort(number[order[begins]])
        number = number[~self.forbidden.at(one[number], other[number])]
        return number, one[number], other[number]

    def weight(self, one: Integers, other: Integers) -> Floats:
        """Weight of each pair of groups."""
        return _entries_at(self.excess, one, other) + self.default * (self.sizes[one] * self.sizes[other])

    @cached_property
    def _is_small(self) -> Flags:
        """Whether each block has so few groups that all its partitions are compared."""
        return np.bincount(self.block_of) <= components.MOST

    def within_blocks(self, one: Integers, other: Integers) -> tuple[Floats, Flags, Floats]:
        """Rise with each pair of groups of one block decided the other way, whether it is exact, and deficits.

        The deficit of a small block is by how much its best partition exceeds this one; 0 stands for large ones.
        """
        exact = self._is_small[self.block_of[one]]
        deficit = np.zeros(self._is_small.size)
        several = self._is_small & (np.bincount(self.block_of) > 1)
        increase, deficit[several] = self._within(one, other, exact, several)
        increase[np.abs(increase) <= ROUNDING * self.groups.size] = 0.0
        return increase, exact, deficit

    def told_apart(self, one: Integers, other: Integers, increase: Floats) -> tuple[Integers, Floats]:
        """Clusters of pairs of groups, `Decisions.between`, and `Decisions.shifted`.

        Only pairs of one block whose rise another has are looked at, and all across blocks, by simple repairs alone.
        """
        between = np.sort(np.stack([self.clusters[one], self.clusters[other]], axis=1), axis=1)
        shifted = np.zeros((one.size, 2))
        which, _ = _numbered_rows(*between.T, np.round(increase, _DIGITS))
        within = self.block_of[one] == self.block_of[other]
        looked = ~within | (np.bincount(which)[which] > 1)
        one, other, within = one[looked], other[looked], within[looked]
        exact = self._is_small[self.block_of[one]] & within
        needed = np.zeros(self._is_small.size, np.bool_)
        needed[self.block_of[one[exact]]] = True
        for column, changes in enumerate(self._shifted if one.size else ()):
            rises = np.empty(one.size)
            rises[within] = changes._within(one[within], other[within], exact[within], needed)[0]
            rises[~within] = changes._by_repairs(one[~within], other[~within])
            shifted[looked, column] = rises
        return between, shifted

    @cached_property
    def _shifted(self) -> list[_Changes]:
        """The same with all listed weights shifted at random, and with the opposite shifts."""
        values = np.random.default_rng(_SEED).uniform(high=_SHIFT, size=self.excess.nnz)
        shifts = sparse.csr_array((values, self.excess.indices, self.excess.indptr), self.excess.shape)
        return [replace(self, excess=(self.excess + sign * (shifts + shifts.T)).tocsr()) for sign in (1, -1)]

    def _within(self, one: Integers, other: Integers, exact: Flags, needed: Flags) -> tuple[Floats, Floats]:
        """Rise with each pair of one block decided the other way, and the deficits of the small blocks needed."""
        increase = np.empty(one.size)
        increase[exact], deficit = self._in_small(self.block_of, needed, one[exact], other[exact])
        if not exact.all():
            increase[~exact] = self._by_repairs(one[~exact], other[~exact])
            # Within a cluster of few groups, its best division is found, which single moves need not be.
            few = np.bincount(self.clusters) <= components.MOST
            joined = (self.clusters[one] == self.clusters[other]) & ~exact & few[self.clusters[one]]
            needed = np.zeros(few.size, np.bool_)
            needed[self.clusters[one[joined]]] = True
            divided, _ = self._in_small(self.clusters, needed, one[joined], other[joined])
            increase[joined] = np.minimum(increase[joined], divided)
        return increase, deficit

    def _in_small(
        self, set_of: npt.NDArray[Any], needed: Flags, one: Integers, other: Integers
    ) -> tuple[Floats, Floats]:
        """Rise with pairs within small sets decided the other way at the best of the set, and each set's deficit."""
        members = np.flatnonzero(needed[set_of])
        members = members[np.argsort(set_of[members], kind="stable")]
        numbers = np.unique(set_of[members], return_inverse=True)[1]
        starts = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
        place = np.full(set_of.size, -1, np.int64)
        place[members] = np.arange(members.size)
        listed = self.excess[members].tocoo()
        rows, columns = listed.coords[0], place[listed.coords[1]]
        own = columns >= 0
        own[own] = numbers[rows[own]] == numbers[columns[own]]
        apart, from_them = (place[ends] for ends in self.forbidden.within(set_of, needed))
        ends = np.concatenate([rows[own], apart]), np.concatenate([columns[own], from_them])
        values = np.concatenate([listed.data[own], np.full(apart.size, -np.inf)])
        table = sparse.csr_array((values, ends), (members.size, members.size))  # adds up: minus infinity stays
        component = Component.of(table, self.sizes[members], self.default, self.forbidden.limit)
        order = np.argsort(place[one], kind="stable")
        pairs = np.stack([place[one], place[other]])[:, order]
        pairs_of = np.searchsorted(pairs[0], starts)
        increase, sorted_increase, deficit = np.empty(one.size), np.empty(one.size), np.empty(starts.size - 1)
        arrays = starts, tuple(component), self.clusters[members], pairs_of, pairs, sorted_increase, deficit
        in_blocks(decisions.change_decisions, 0, deficit.size, *arrays, work=_WORK)
        increase[order] = sorted_increase
        return increase, deficit

    def across_blocks(self, one: Integers, other: Integers, least: Floats, limit: float) -> tuple[Floats, Flags]:
        """Rise with each pair of groups of two blocks joined, and whether it is exact.

        That of pairs whose `least` rise exceeds the limit is only a bound from above, which exceeds it too.
        """
        increase = self._by_repairs(one, other)
        tiny = ROUNDING * self.groups.size
        exact = self._is_small[self.block_of[one]] & self._is_small[self.block_of[other]]
        for at in np.flatnonzero(exact & (increase - least > tiny) & (least <= limit)):
            increase[at] = self._joined(int(one[at]), int(other[at]), increase[at])
        increase[np.abs(increase) <= tiny] = 0.0
        return increase, exact

    def _joined(self, one: int, other: int, at_most: float) -> float:
        """Rise with the groups of two small blocks joined, at the best of all else in both."""
        first, second = (self._members[slice(*self._starts[self.block_of[group] :][:2])] for group in (one, other))
        both, n = np.concatenate([first, second]), first.size
        weights = self._weights(both)
        of_first, of_second, between = map(np.ascontiguousarray, (weights[:n, :n], weights[n:, n:], weights[:n, n:]))
        own = self.clusters[both]
        now = float(weights[own[:, np.newaxis] == own].sum()) / 2  # no cluster is in two blocks
        at = int(np.searchsorted(first, one)), int(np.searchsorted(second, other))
        limits = self.sizes[both], self.forbidden.limit
        return now - decisions.join_two(of_first, of_second, between, *limits, *at, now - at_most)

    def _weights(self, groups: Integers) -> Floats:
        """Weights between some groups; 0 of a group itself, and minus infinity of those that must be apart."""
        one, other = np.repeat(groups, groups.size), np.tile(groups, groups.size)
        weights = self.weight(one, other)
        weights[self.forbidden.at(one, other)] = -np.inf
        weights[one == other] = 0.0
        return weights.reshape(groups.size, groups.size)

    @cached_property
    def _members(self) -> Integers:
        """Groups by block."""
        return np.argsort(self.block_of, kind="stable")

    @cached_property
    def _starts(self) -> Integers:
        return np.concatenate([[0], np.cumsum(np.bincount(self.block_of))])

    def _by_repairs(self, one: Integers, other: Integers) -> Floats:
        """Least rise by moving either group, by joining their clusters, or by a cluster of the two alone."""
        increase = np.empty(one.size)
        joined = self.clusters[one] == self.clusters[other]
        if joined.any():
            increase[joined] = np.minimum(self._cost_out[one[joined]], self._cost_out[other[joined]])
        one, other = one[~joined], other[~joined]
        own, its = self.clusters[one], self.clusters[other]
        to_own, to_its = self._link(one, own), self._link(other, its)
        union = _entries_at(self._between_clusters, own, its) + self.default * (self._records[own] * self._records[its])
        n = self.clusters.size
        union[self._forbidden_clusters.at(n + own, n + its)] = -np.inf
        ways = [to_own - self._link(one, its), to_its - self._link(other, own), -union]
        increase[~joined] = np.minimum.reduce([*ways, to_own + to_its - self.weight(one, other)])
        return increase

    @cached_property
    def _table(self) -> sparse.csr_array:
        """Groups by clusters."""
        n = self.clusters.size
        return sparse.csr_array((np.ones(n), self.clusters, np.arange(n + 1)), (n, int(self.clusters.max()) + 1))

    @cached_property
    def _records(self) -> Integers:
        """Number of records of each cluster."""
        return np.bincount(self.clusters, self.sizes).astype(np.int64)

    @cached_property
    def _links(self) -> sparse.csr_array:
        """Excess of each group's weights with each cluster."""
        return (self.excess @ self._table).tocsr()

    @cached_property
    def _between_clusters(self) -> sparse.csr_array:
        """Excess of the weights between two clusters."""
        return (self._table.T.tocsr() @ self._links).tocsr()

    @cached_property
    def _forbidden_clusters(self) -> Forbidden:
        """Groups, and after them clusters, that must be apart."""
        return self.forbidden.with_clusters(self.clusters)

    def _link(self, group: Integers, cluster: Integers) -> Floats:
        """Sum of a group's weights with the other groups of a cluster; minus infinity if it must be apart from one."""
        own = self.clusters[group] == cluster
        others = self._records[cluster] - np.where(own, self.sizes[group], 0)
        sums = _entries_at(self._links, group, cluster) + self.default * (self.sizes[group] * others)
        sums[~own & self._forbidden_clusters.at(group, self.clusters.size + cluster)] = -np.inf
        return sums

    @cached_property
    def _cost_out(self) -> Floats:
        """Rise with each group alone, or in the best cluster that has a scored pair with it."""
        groups = np.arange(self.clusters.size)
        found = self._links.tocoo()
        group, cluster = (ends.astype(np.int64) for ends in found.coords)
        elsewhere = self.clusters[group] != cluster
        group, cluster = group[elsewhere], cluster[elsewhere]
        best = np.zeros(groups.size)
        np.maximum.at(best, group, self._link(group, cluster))
        return self._link(groups, self.clusters) - best


def _numbered_rows(*columns: npt.NDArray[Any]) -> tuple[Positions, Positions]:
    """Number of each row among the distinct rows of some columns, and the first row of each."""
    order = np.lexsort(columns)
    begins = np.zeros(order.size, np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= np.diff(column[order]) != 0
    which = np.empty(order.size, np.intp)
    which[order] = np.cumsum(begins) - 1
    return which, order[begins]


def _entries_at(table: sparse.csr_array, rows: Integers, columns: Integers) -> Floats:
    """Entries of a sparse array at some places."""
    return np.asarray(table[rows, columns]).ravel() if rows.size else np.empty(0)
