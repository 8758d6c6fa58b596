"""Binder's loss as a problem for each connected component of the pairs that a union would pay for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from posterior_consensus.bounds.binder import cost_step
from posterior_consensus.bounds.bound import Bound, Budget
from posterior_consensus.bounds.component import Component
from posterior_consensus.bounds.stars import best_labels
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.memberships import has_few_pairs, similarities_within_components
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, connected
from posterior_consensus.ensemble.scored_pairs import PairConstraints, ScoredPairs
from posterior_consensus.kernels import components as kernels
from posterior_consensus.losses.partition_losses import tau_of
from posterior_consensus.losses.record import Loss, PartitionLoss
from posterior_consensus.results.display import counted
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import in_blocks
from posterior_consensus.runtime.progress import track

_DUST = 1e-14  # relative to a pair's costs: a smaller weight is rounding
_BYTES_A_LISTED_PAIR = 100  # while all pairs are listed
_WORK = 200  # elementary steps of a component of few groups
_SHARE = 0.05  # of the budget that is left, which any component may spend
_NAMED = 5  # components that are named in words


@dataclass(frozen=True, kw_only=True)
class ComponentsInfo(Info):
    """Record of a search, or of a bound, for each connected component of the pairs of records by itself.

    Attributes
    ----------
    n_components : int
        Number of components of two records or more.
    largest : int
        Number of records of the largest.
    n_enumerated : int
        Number of components whose partitions were all compared.
    n_proven : int
        Number of components whose partition is proven to be optimal.
    unproven_sizes : list of int
        Number of records of each other component, the largest first.
    unproven_gaps : list of float
        By how much its part of the expected loss may exceed the minimum at most, in expected pairs.
    unproven_records : list of int
        Position of a record of each of these components.
    stopped : str
        What ended the search before its steps did: "seconds", "interrupted" for Ctrl-C, or nothing.
    constrained : bool
        Whether only partitions that keep constraints were compared.
    """

    n_components: int
    largest: int
    n_enumerated: int
    n_proven: int
    unproven_sizes: list[int] = field(default_factory=list)
    unproven_gaps: list[float] = field(default_factory=list)
    unproven_records: list[int] = field(default_factory=list)
    stopped: str = ""
    constrained: bool = False

    @property
    def among(self) -> str:
        """Of which partitions a proof speaks, in words that follow it; empty for all."""
        return ", among the partitions that keep the constraints" if self.constrained else ""

    def in_words(self) -> str:
        """Say how many components are proven to be optimal, and which are not.

        Returns
        -------
        str
            A part of a sentence.
        """
        if not self.n_components:
            return "no two items are linked"
        known = f"{counted(self.n_components, 'component')}, the largest of {counted(self.largest, 'item')}"
        if not self.unproven_sizes:
            return f"{known}; {'it is' if self.n_components == 1 else 'all are'} proven optimal{self.among}"
        named = ", ".join(f"{size:,}" for size in self.unproven_sizes[:_NAMED])
        more = ", ..." if len(self.unproven_sizes) > _NAMED else ""
        proven, left = self.n_proven, len(self.unproven_sizes)
        return (
            f"{known}; {proven:,} {'is' if proven == 1 else 'are'} proven optimal, "
            f"{left:,} of {named}{more} {'is' if left == 1 else 'are'} not{self.among}"
        )


def among_of(info: Info | None) -> str:
    """Of which partitions a proof speaks, by the record of its work; empty for all."""
    return info.among if isinstance(info, ComponentsInfo) else ""


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The components of several groups, one after the other.

    Attributes
    ----------
    groups : ndarray of shape (n_records,)
        Group of each record: records of a group must be in one cluster.
    members : ndarray of shape (n_members,)
        Groups in components of several, component by component.
    starts : ndarray of shape (n_components + 1,), dtype int64
        Where each component begins in `members`.
    whole : Component
        The weights of all their pairs; groups are numbered by their place in `members`.
    component_of : ndarray of shape (n_groups,)
        Component of each group, of one group or more.
    unit : float
        Expected loss of a weight of 1.
    step : float
        Common divisor of all weights; 0 if none is known.
    constrained : bool
        Whether there are constraints.
    """

    groups: npt.NDArray[np.int32]
    members: npt.NDArray[np.intp]
    starts: npt.NDArray[np.int64]
    whole: Component
    component_of: npt.NDArray[np.int32]
    unit: float
    step: float = 0.0
    constrained: bool = False

    def __len__(self) -> int:
        return self.starts.size - 1

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
        whole = self.whole
        own = slice(whole.indptr[first], whole.indptr[last])
        return Component(
            whole.indptr[first : last + 1] - own.start,
            (whole.indices[own] - first).astype(np.int32),
            whole.excess[own],
            whole.sizes[first:last],
            whole.default,
        )

    def solved(self) -> npt.NDArray[np.int32]:
        """First member of each member's cluster, the best in small components, and itself in large ones."""
        clusters = np.arange(self.members.size, dtype=np.int32)
        whole = self.whole
        arrays = self.starts, whole.indptr, whole.indices, whole.excess, whole.sizes, whole.default, clusters
        in_blocks(kernels.solve_components, 0, len(self), *arrays, work=_WORK)
        return clusters

    def trivial_gaps(self, clusters: npt.NDArray[np.int32], numbers: npt.NDArray[np.intp] | None = None) -> Floats:
        """What some of the large components, or all, would gain if all pairs of positive weight alone were joined."""
        which = self.large if numbers is None else self.large[numbers]
        parts = [(self.component(one), clusters[self.place(one)]) for one in which.tolist()]
        return np.array([part.most - part.value(first_members(labels)) for part, labels in parts])

    def labels(self, clusters: npt.NDArray[np.int32]) -> Labels:
        """Labels of the records from the first member of each member's cluster."""
        of_groups = np.arange(self.component_of.size, dtype=np.int32)
        of_groups[self.members] = self.members[clusters]
        return of_groups[self.groups]

    def parts(self, labels: Labels) -> npt.NDArray[np.int64]:
        """Number of each member's cluster in labels of the records."""
        of_groups = np.empty(self.component_of.size, np.int64)
        of_groups[self.groups] = labels
        return of_groups[self.members]

    def info(self, gaps: Floats, stopped: str = "") -> ComponentsInfo:
        """The record of the work, from the gap of each of the large components."""
        sizes = np.bincount(self.component_of[self.groups])
        of_large = np.add.reduceat(self.whole.sizes, self.starts[:-1])[self.large] if len(self) else self.large
        open_ones = np.flatnonzero(gaps > 0)[::-1]
        several = int(np.count_nonzero(sizes > 1))
        of_open = self.members[self.starts[self.large[open_ones]]]
        return ComponentsInfo(
            n_components=several,
            largest=int(sizes.max()),
            n_enumerated=several - self.large.size,
            n_proven=several - open_ones.size,
            unproven_sizes=of_large[open_ones].tolist(),
            unproven_gaps=gaps[open_ones].tolist(),
            unproven_records=np.unique(self.groups, return_index=True)[1][of_open].tolist(),
            stopped=stopped,
            constrained=self.constrained,
        )


@singledispatch
def components_of(source: PairSource, loss: Loss) -> Decomposition | None:
    """Decompose the search for the partition of minimum expected Binder loss.

    None for other losses, and for posteriors that are searched as a whole: matrices, allocation probabilities, and
    draws with large clusters.
    """
    record = loss.as_binder()
    draws = source.counted_draws
    if record is None or draws is None or not has_few_pairs(draws.backend):
        return None
    return _decomposed_draws(draws.without_zero_weights(), record)


@components_of.register
def _(source: ScoredPairs, loss: Loss) -> Decomposition | None:
    record = loss.as_binder()
    return None if record is None else decomposed(source, record)


def _decomposed_draws(draws: PartitionDraws, loss: PartitionLoss) -> Decomposition | None:
    """Components of pairs that are co-clustered often enough; None if they take too much memory.

    Items that are together in all draws are together in some optimum, and thus in a group.
    """
    joining, separating = (loss.numerator[term] for term in "BC")
    costs = joining + separating
    similarities = similarities_within_components(draws.backend, draws.samples, tau_of(loss))
    if similarities is None:
        return None
    groups = connected_components(similarities == 1.0, directed=False)[1]
    similarities.data *= costs  # weights less that of a pair that is never co-clustered
    unit, step = loss.scale(draws.n_items), cost_step(draws, loss) / draws.n_draws
    return decomposition(similarities, groups, -joining, PairConstraints(), unit, step=step, dust=_DUST * costs)


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
    weights = weighted(source, loss)
    return decomposition(
        weights.excess,
        weights.groups,
        weights.default,
        source.constraints,
        loss.scale(source.n_items),
        dust=weights.dust,
    )


class Weighted(NamedTuple):
    """Weights of the pairs of records under Binder's loss.

    Attributes
    ----------
    excess : sparse array (n, n)
        Weight of each listed pair less the `default` of all others, which is at most 0.
    groups : ndarray of shape (n,)
        Records that must be together.
    dust : float
        Largest weight that is rounding.
    """

    excess: sparse.csr_array
    groups: npt.NDArray[np.int32]
    default: float
    dust: float


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


def decomposition(
    excess: sparse.csr_array,
    groups: npt.NDArray[np.int32],
    default: float,
    constraints: PairConstraints,
    unit: float,
    *,
    step: float = 0.0,
    dust: float = 0.0,
) -> Decomposition:
    """Decompose records with the weights of some pairs (n, n), less the `default` of all others, at most 0.

    `groups` (n,) are the records that must be together; weights up to `dust` are rounding.
    """
    sizes = np.bincount(groups)
    n = sizes.size
    rows, columns, weights = between_groups(excess, groups, default, dust)
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
    if one.size:
        own[own] = ~shared.at(rows[own], columns[own])
    all_rows, all_columns = np.concatenate([rows[own], one]), np.concatenate([columns[own], other])
    all_weights = np.concatenate([weights[own], never]) - default * (sizes[all_rows] * sizes[all_columns])
    listed = sparse.csr_array((all_weights, (place[all_rows], place[all_columns])), (members.size, members.size))
    whole = Component.of(listed, sizes[members], default)
    return Decomposition(groups, members, starts, whole, component_of, unit, step, bool(constraints))


def between_groups(
    excess: sparse.csr_array, groups: npt.NDArray[np.int32], default: float, dust: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]:
    """Listed pairs of groups, in both directions, and their weights: summed over all their pairs of records."""
    sizes = np.bincount(groups)
    n = sizes.size
    rows, columns = np.repeat(groups, np.diff(excess.indptr)), groups[excess.indices]
    values = excess.data
    if n < groups.size:
        between = rows != columns
        summed = sparse.csr_array((values[between], (rows[between], columns[between])), (n, n))
        summed.sum_duplicates()
        rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(summed.indptr))
        columns, values = summed.indices, summed.data
    pairs = sizes[rows] * sizes[columns]
    weights = values + default * pairs
    weights[np.abs(weights) <= dust * pairs] = 0.0
    return rows, columns, weights


class Forbidden(NamedTuple):
    """Pairs of groups that must be apart.

    Attributes
    ----------
    pairs : sparse array (n_groups, n_groups)
        Groups of records that must not be linked, in both directions.
    sets : sparse array (n_groups, n_sets)
        Groups by data sets.
    """

    pairs: sparse.csr_array
    sets: sparse.csr_array

    @classmethod
    def of(cls, constraints: PairConstraints, groups: npt.NDArray[np.int32]) -> Forbidden:
        """Constraints between groups of records."""
        n = int(groups.max()) + 1
        one, other = groups[constraints.cannot_link].T
        ends = np.concatenate([one, other]), np.concatenate([other, one])
        known = np.flatnonzero(constraints.data_set >= 0) if constraints.data_set is not None else np.empty(0, np.intp)
        own = constraints.data_set[known] if constraints.data_set is not None else known
        n_sets = int(own.max(initial=-1)) + 1
        sets = sparse.csr_array((np.ones(known.size, np.int32), (groups[known], own)), (n, n_sets))
        return cls(sparse.csr_array((np.ones(2 * one.size, np.int32), ends), (n, n)), sets)

    def at(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of these pairs must be apart."""
        found = np.zeros(rows.size, np.bool_)
        if self.pairs.nnz and rows.size:
            found |= np.asarray(self.pairs[rows, columns]).ravel() > 0
        if self.sets.nnz and rows.size:
            found |= self.sets[rows].multiply(self.sets[columns]).sum(axis=1) > 0
        return found

    def linked(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any], weights: Floats) -> npt.NDArray[np.bool_]:
        """Which pairs a union would pay for: of positive weight, unless they must be apart."""
        found = weights > 0
        found[found] = ~self.at(rows[found], columns[found])
        return found

    def within(
        self, component_of: npt.NDArray[np.int32], several: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """All of these pairs within the components of several groups, in both directions."""
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


def bound_components(
    parts: Decomposition,
    clusters: npt.NDArray[np.int32],
    gaps: Floats,
    budget: Budget,
    numbers: npt.NDArray[np.intp],
    *,
    progressbar: bool = False,
) -> None:
    """Bound large components, the smallest first, which leave to later ones what they do not spend.

    Parameters
    ----------
    parts : Decomposition
    clusters : ndarray of shape (n_members,), dtype int32
        First member of each member's cluster; better partitions are written to it.
    gaps : ndarray of shape (n_large,), dtype float64
        Written: by how much a partition of each component may be better at most, in weights; 0 if none is.
    budget : Budget
    numbers : ndarray
        Which of the large components.
    progressbar : bool
    """
    groups_left = int(parts.n_groups[parts.large[numbers]].sum())
    for number in track(numbers.tolist(), "Bounds", progressbar=progressbar):
        one = int(parts.large[number])
        own, component = parts.place(one), parts.component(one)
        share = budget.part(max(component.n_groups / groups_left, _SHARE))
        labels, gaps[number] = best_labels(component, canonical_labels(clusters[own]), share, parts.step)
        clusters[own] = own.start + first_members(labels)
        budget.note(-share.left)
        groups_left -= component.n_groups


def components_bound(
    source: PairSource,
    parts: Decomposition,
    loss: PartitionLoss,
    incumbent: Labels,
    *,
    budget: Budget,
    progressbar: bool = False,
) -> Bound:
    """Bound the minimum expected loss for Binder's loss with any costs, component by component.

    The arguments are those of :func:`binder_bound`, and the components of the source.
    """
    clusters, gaps = parts.solved(), np.zeros(parts.large.size)
    given = parts.parts(incumbent)
    for one in parts.large.tolist():
        own = parts.place(one)
        clusters[own] = own.start + first_members(given[own])
    bound_components(parts, clusters, gaps, budget, np.arange(gaps.size), progressbar=progressbar)
    labels = canonical_labels(parts.labels(clusters))
    expected = float(mean_loss(source, labels[np.newaxis], loss)[0])
    method = "enumeration of small components" + (", star inequalities of others" if gaps.size else "")
    return Bound(expected - parts.unit * float(gaps.sum()), method, labels, parts.info(gaps))


def first_members(labels: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Position of the first member of each one's cluster."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]
