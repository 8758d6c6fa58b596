"""Binder's loss as a problem for each connected component of the pairs that a union would pay for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.memberships import has_few_pairs, similarities_within_components
from posterior_consensus.ensemble.partitions import Labels, connected
from posterior_consensus.ensemble.scored_pairs import PairConstraints, ScoredPairs
from posterior_consensus.kernels import components as kernels
from posterior_consensus.losses.partition_losses import tau_of
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.component import Component
from posterior_consensus.problems.problem import FREE, Problem
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.executor import in_blocks
from posterior_consensus.runtime.tolerances import ROUNDING

_DUST = 1e-14  # relative to a pair's costs: a smaller weight is rounding
_BYTES_A_LISTED_PAIR = 100  # while all pairs are listed
_WORK = 200  # elementary steps of a component of few groups


@dataclass(frozen=True, eq=False, kw_only=True)
class Decomposition(Problem):
    """A problem of Binder's loss as its components of several groups, one after the other."""

    loss: PartitionLoss
    groups: npt.NDArray[np.int32]  # (n_records,): group of each record: records of a group must be in one cluster
    members: npt.NDArray[np.intp]  # (n_members,): groups in components of several, component by component
    starts: npt.NDArray[np.int64]  # (n_components + 1,): where each component begins in `members`
    pairs: Component  # the weights of all their pairs; groups are numbered by their place in `members`
    component_of: npt.NDArray[np.int32]  # (n_groups,): component of each group, of one group or more
    step: float = 0.0  # common divisor of all weights; 0 if none is known
    constrained: bool = False  # whether there are constraints

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def unit(self) -> float:
        """Expected loss of a weight of 1."""
        return self.loss.scale(self.source.n_items)

    @property
    def n_groups(self) -> npt.NDArray[np.int64]:
        """Number of groups of each component."""
        return np.diff(self.starts)

    @cached_property
    def large(self) -> npt.NDArray[np.intp]:
        """Components of too many groups to compare all their partitions, the smallest first."""
        found = np.flatnonzero(self.n_groups > kernels.MOST)
        return found[np.argsort(self.n_groups[found], kind="stable")]

    def place(self, number: int) -> slice:
        """Where the members of a component are."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def component(self, number: int) -> Component:
        """One of the components."""
        first, last = self.starts[number : number + 2]
        pairs = self.pairs
        own = slice(pairs.indptr[first], pairs.indptr[last])
        return Component(
            pairs.indptr[first : last + 1] - own.start,
            (pairs.indices[own] - first).astype(np.int32),
            pairs.excess[own],
            pairs.sizes[first:last],
            pairs.default,
            pairs.limit,
        )

    def those(self, chosen: npt.NDArray[np.bool_]) -> Decomposition:
        """Some of the components (n_components,), alone."""
        pairs, n_groups = self.pairs, self.n_groups[chosen]
        kept = np.repeat(chosen, self.n_groups)
        place = (np.cumsum(kept) - 1).astype(np.int32)
        n_listed = np.diff(pairs.indptr)
        listed = np.repeat(kept, n_listed)
        own = Component(
            np.concatenate([[0], np.cumsum(n_listed[kept])]),
            place[pairs.indices[listed]],
            pairs.excess[listed],
            pairs.sizes[kept],
            pairs.default,
            pairs.limit,
        )
        starts = np.concatenate([[0], np.cumsum(n_groups)])
        return replace(self, members=self.members[kept], starts=starts, pairs=own)

    def of(self, numbers: Positions | slice = slice(None)) -> Iterator[tuple[Component, slice]]:
        """Some of the large components, or all, and where their members are."""
        return ((self.component(one), self.place(one)) for one in self.large[numbers].tolist())

    def solved(self) -> npt.NDArray[np.int32]:
        """First member of each member's cluster, the best in small components, and itself in large ones."""
        clusters = np.arange(self.members.size, dtype=np.int32)
        pairs = self.pairs
        in_blocks(kernels.solve_components, 0, len(self), self.starts, tuple(pairs), clusters, work=_WORK)
        return clusters

    def trivial_gaps(self, clusters: npt.NDArray[np.int32], numbers: Positions | slice = slice(None)) -> Floats:
        """What some of the large components, or all, would gain if all pairs of positive weight alone were joined."""
        return np.array([one.most - one.value(first_members(clusters[at])) for one, at in self.of(numbers)])

    def part_of(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Number of each member's cluster in labels of the records."""
        of_groups = np.empty(self.component_of.size, np.int64)
        of_groups[self.groups] = labels
        return of_groups[self.members]

    def whole(self, labels: npt.NDArray[Any]) -> Labels:
        """Labels of the records from the first member of each member's cluster."""
        of_groups = np.arange(self.component_of.size, dtype=np.int32)
        of_groups[self.members] = self.members[labels]
        return of_groups[self.groups]


def components_of(problem: Problem) -> Decomposition | None:
    """Decompose the search for the partition of minimum expected Binder loss.

    None for other losses, for limits, and for posteriors that are searched as a whole: matrices, allocation
    probabilities, and draws with large clusters.
    """
    record = problem.loss.as_binder()
    return None if record is None or problem.limits != FREE else _components(problem.source, record)


@singledispatch
def _components(source: PairSource, loss: PartitionLoss) -> Decomposition | None:
    """Components of pairs that are co-clustered often enough; None if they take too much memory.

    Items that are together in all draws are together in some optimum, and thus in a group.
    """
    draws = source.counted_draws
    if draws is None or draws.lacks_items or not has_few_pairs(draws.backend):
        return None
    draws = draws.without_zero_weights()
    joining, separating = (loss.numerator[term] for term in "BC")
    costs = joining + separating
    similarities = similarities_within_components(draws.backend, draws.samples, tau_of(loss))
    if similarities is None:
        return None
    groups = connected_components(similarities == 1.0, directed=False)[1]
    similarities.data *= costs  # weights less that of a pair that is never co-clustered
    step = cost_step(draws, loss) / draws.n_draws
    return _decomposition(source, loss, Weighted(similarities, groups, -joining, _DUST * costs), step=step)


@_components.register
def decomposed(source: ScoredPairs, loss: PartitionLoss) -> Decomposition:
    """Decompose a search for the least of Binder's loss.

    Splitting a cluster into two parts between which no pair of groups has a positive weight never raises the loss, so
    that some optimum has its clusters within the connected components of the pairs of positive weight.

    Raises
    ------
    ValueError
        If constraints contradict each other.
    MemoryError
        If `source.unscored` is above the pair threshold, and all pairs take more than the budget.
    """
    return _decomposition(source, loss, weighted(source, loss), source.constraints)


def cost_step(source: PairSource, loss: PartitionLoss) -> float:
    """Common divisor of all costs, where draws have equal weights and costs are simple fractions; else 0.

    A better partition is then better by at least so much.
    """
    given = [loss.numerator[term] for term in "BC"]
    costs = [Fraction(cost).limit_denominator(1000) for cost in given]
    if source.denominator() is None or not np.allclose(given, [float(cost) for cost in costs], rtol=0, atol=ROUNDING):
        return 0.0
    joint = math.lcm(*(cost.denominator for cost in costs))
    return math.gcd(*(int(cost * joint) for cost in costs)) / joint


class Weighted(NamedTuple):
    """Weights of the pairs of records under Binder's loss."""

    excess: sparse.csr_array  # (n, n): weight of each listed pair less the `default` of all others, which is at most 0
    groups: npt.NDArray[np.int32]  # (n,): records that must be together
    default: float
    dust: float  # largest weight that is rounding


def weighted(source: ScoredPairs, loss: PartitionLoss) -> Weighted:
    """The weights of pairs of records; all pairs are listed if `source.unscored` is above the pair threshold."""
    groups = source.groups()
    joining, separating = loss.numerator["B"], loss.numerator["C"]
    n, listed, unscored = source.n_items, source.scored, source.unscored
    default = separating * unscored - joining * (1.0 - unscored)
    if default > _DUST:
        what = f"All pairs of {n} items, as `unscored`, {unscored:g}, is above the pair threshold,"
        memory.check(_BYTES_A_LISTED_PAIR * n**2, what, "Take a lower `unscored`, such as 0.")
        values = source.shared_similarity
        rows, columns = np.nonzero(~np.eye(n, dtype=np.bool_))
        listed = sparse.csr_array((values[rows, columns], (rows, columns)), (n, n))
        unscored = tau_of(loss)
    excess = (joining + separating) * (listed.data - unscored)
    weights = sparse.csr_array((excess, listed.indices, listed.indptr), (n, n))
    return Weighted(weights, groups, min(default, 0.0), _DUST * (joining + separating))


_NO_CONSTRAINTS = PairConstraints()


def _decomposition(
    source: PairSource,
    loss: PartitionLoss,
    given: Weighted,
    constraints: PairConstraints = _NO_CONSTRAINTS,
    step: float = 0.0,
) -> Decomposition:
    """Decompose the problem with these weights of pairs; weights up to `given.dust` are rounding."""
    groups, default = given.groups, given.default
    sizes = np.bincount(groups)
    n = sizes.size
    rows, columns, weights = between_groups(*given)
    shared = Forbidden.of(constraints, groups)
    linked = shared.linked(rows, columns, weights)
    component_of = connected(rows[linked], columns[linked], n)
    n_groups = np.bincount(component_of)
    several = n_groups > 1
    members = np.argsort(component_of, kind="stable")
    members = members[several[component_of[members]]]
    starts = np.concatenate([[0], np.cumsum(n_groups[several])])
    place = np.full(n, -1, np.int32)
    place[members] = np.arange(members.size)
    own = (component_of[rows] == component_of[columns]) & several[component_of[rows]]
    pays = np.bincount(rows[linked], weights[linked], n)
    one, other = shared.within(component_of, several)
    never = -(np.minimum(pays[one], pays[other]) + 1.0)
    own[own] = ~shared.at(rows[own], columns[own])
    all_rows, all_columns = np.concatenate([rows[own], one]), np.concatenate([columns[own], other])
    all_weights = np.concatenate([weights[own], never]) - default * (sizes[all_rows] * sizes[all_columns])
    listed = sparse.csr_array((all_weights, (place[all_rows], place[all_columns])), (members.size, members.size))
    return Decomposition(
        source=source,
        loss=loss,
        groups=groups,
        members=members,
        starts=starts,
        pairs=Component.of(listed, sizes[members], default, shared.limit),
        component_of=component_of,
        step=step,
        constrained=bool(constraints),
    )


def between_groups(
    excess: sparse.csr_array, groups: npt.NDArray[np.int32], default: float, dust: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]:
    """Listed pairs of groups, in both directions, and their weights: summed over all their pairs of records."""
    sizes = np.bincount(groups)
    n = sizes.size
    rows, columns = np.repeat(groups, np.diff(excess.indptr)), groups[excess.indices]
    if n == groups.size:  # groups are records, and all sizes 1
        weights = excess.data + default
        weights[np.abs(weights) <= dust] = 0.0
        return rows, columns, weights
    between = rows != columns
    summed = sparse.csr_array((excess.data[between], (rows[between], columns[between])), (n, n))
    summed.sum_duplicates()
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(summed.indptr))
    pairs = sizes[rows] * sizes[summed.indices]
    weights = summed.data + default * pairs
    weights[np.abs(weights) <= dust * pairs] = 0.0
    return rows, summed.indices, weights


class Forbidden(NamedTuple):
    """Pairs of groups that must be apart."""

    pairs: sparse.csr_array  # (n_groups, n_groups): groups of records that must not be linked, in both directions
    sets: sparse.csr_array  # (n_groups, n_sets): groups by data sets
    sizes: npt.NDArray[np.int64]  # (n_groups,): number of records of each group
    limit: float  # most records of a cluster

    @classmethod
    def of(cls, constraints: PairConstraints, groups: npt.NDArray[np.int32]) -> Forbidden:
        """Constraints between groups of records."""
        n = int(groups.max()) + 1
        one, other = groups[constraints.cannot_link].T
        ends = np.concatenate([one, other]), np.concatenate([other, one])
        records, of_records = constraints.at_most_one()
        n_sets = int(of_records.max(initial=-1)) + 1
        sets = sparse.csr_array((np.ones(records.size, np.int32), (groups[records], of_records)), (n, n_sets))
        pairs = sparse.csr_array((np.ones(2 * one.size, np.int32), ends), (n, n))
        limit = np.inf if constraints.max_cluster_size is None else float(constraints.max_cluster_size)
        return cls(pairs, sets, np.bincount(groups), limit)

    def at(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of these pairs must be apart."""
        found = self.sizes[rows] + self.sizes[columns] > self.limit
        if self.pairs.nnz and rows.size:
            found |= np.asarray(self.pairs[rows, columns]).ravel() > 0
        if self.sets.nnz and rows.size:
            found |= self.sets[rows].multiply(self.sets[columns]).sum(axis=1) > 0
        return found

    def with_clusters(self, clusters: npt.NDArray[Any]) -> Forbidden:
        """The same of the groups, and after them of their clusters (n_groups,), which have what their groups have."""
        n = clusters.size
        table = sparse.csr_array((np.ones(n), clusters, np.arange(n + 1)))
        both = sparse.vstack([sparse.eye_array(n), table.T], format="csr")
        pairs, sets = (both @ self.pairs @ both.T).tocsr(), (both @ self.sets).tocsr()
        sizes = np.concatenate([self.sizes, np.bincount(clusters, self.sizes).astype(np.int64)])
        return Forbidden(pairs, sets, sizes, self.limit)

    def linked(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any], weights: Floats) -> npt.NDArray[np.bool_]:
        """Which pairs a union would pay for: of positive weight, unless they must be apart."""
        found = weights > 0
        found[found] = ~self.at(rows[found], columns[found])
        return found

    def within(
        self, component_of: npt.NDArray[np.int32], several: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The pairs of `pairs` and `sets` within the components of several groups, in both directions."""
        one, other = self.pairs.tocoo().coords
        kept = (component_of[one] == component_of[other]) & several[component_of[one]]
        keys = np.unique(one[kept].astype(np.int64) * component_of.size + other[kept])
        if self.sets.nnz:
            group, data_set = self.sets.tocoo().coords
            kept = several[component_of[group]]
            group, key = group[kept], component_of[group[kept]].astype(np.int64) * self.sets.shape[1] + data_set[kept]
            which, counts = np.unique(key, return_inverse=True, return_counts=True)[1:]
            what = "Pairs of items of one data set within the components"
            memory.check(_BYTES_A_LISTED_PAIR * float(np.square(counts, dtype=np.float64).sum()), what)
            table = sparse.csr_array((np.ones(group.size, np.int32), (group, which)), (component_of.size, counts.size))
            one, other = (table @ table.T).tocoo().coords
            apart = one != other
            more = one[apart].astype(np.int64) * component_of.size + other[apart]
            keys = np.union1d(keys, more)
        return (keys // component_of.size).astype(np.int32), (keys % component_of.size).astype(np.int32)


def first_members(labels: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Position of the first member of each one's cluster."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]
