"""The bound of one component of linked records: prices of star inequalities, then what they leave open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.binder import BYTES_A_PAIR, BranchAndBound
from posterior_consensus.bounds.bound import Budget, Deadline, OutOfBudget
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, connected
from posterior_consensus.kernels import components, stars
from posterior_consensus.kernels.sparse_moves import Graph
from posterior_consensus.problems.component import Component
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.tolerances import SAME

_ROUNDING = 1e-13  # relative to the sum of all weights; far above the rounding of a sum
_ROOM, _ROOM_A_GROUP = 8, 50  # pairs in the table for each that is listed, and for each group
_BYTES_A_PLACE = 70  # of the table and its rows
_ENTRIES = 4  # pairs of all rows, for each place of the table
_LEAVES = 48  # of a star
_SWEEPS, _FEW_SWEEPS = 200, 20
_ENTRIES_A_ROUND = 2_000_000  # pairs of rows that the sweeps of a round look at, if they are no fewer than the few
_ROUNDS = 60
_SHRINK = 0.7  # of the width, in a round
_SLACK, _LEAST_SLACK = 0.1, 1e-4  # violations of the rows that are added, at first and in the end
_NEW = 0.02  # share of new rows below which smaller violations are looked for
_STEP, _PATIENCE = 0.02, 5  # share of the gap that a round must close to count as progress; rounds that may close less
_SMALLER = 0.9  # groups that fixed pairs must leave, or fewer, for the rest to be bounded in the same way
_MOST_BRANCHED = 200  # groups; of 500 branch and bound closed a fifth of what the stars had left, in 16 seconds
_SECONDS_TO_BEGIN = 5e-6  # a listed pair in one direction, for the table and the first round, rather more than less
_SECONDS_AN_ENTRY, _SECONDS_A_PLACE, _SECONDS_A_PAIR = 5e-9, 1e-8, 1e-6


def _show_nothing() -> None:
    """Show no progress."""


def best_labels(
    component: Component,
    labels: Labels,
    budget: Budget,
    step: float = 0.0,
    advance: Callable[[], None] = _show_nothing,
) -> tuple[Labels, float]:
    """Bound the weight that partitions of a component can join, and improve labels of its groups if that finds better.

    Given are canonical labels (n_groups,) of the best partition known; `step` is a common divisor of all weights, 0 if
    none is known; `advance` is called when some of the budget was spent. Returned are labels, and by how much the
    weight that another partition joins may be larger at most: 0 if they are proven to be the best.

    Notes
    -----
    The bound is from the linear program over star inequalities [1]_, by coordinate ascent on its dual with a quadratic
    term that keeps the solution near the labels. Pairs whose reduced weight exceeds the gap are fixed, as in
    :func:`binder_bound`; what they leave falls apart into smaller components, which are solved or bounded in turn.

    References
    ----------
    .. [1] Groetschel and Wakabayashi (1990), Facets of the clique partitioning polytope, Mathematical Programming 47,
       367-387. https://doi.org/10.1007/BF01580870
    """
    value, most = component.value(labels), component.most
    closed = max(SAME * most, 0.999 * step)
    if most - value <= closed:
        return labels, 0.0
    is_timed = isinstance(budget, Deadline)
    if is_timed and budget.left < _SECONDS_TO_BEGIN * component.indices.size:
        return labels, most - value
    bound = StarBound(component, labels)
    gap = bound.raised(value + closed, budget, advance) - value
    if gap <= closed:
        return labels, 0.0
    if is_timed and not budget.left:
        return labels, gap
    fixed = bound.fixed(gap + _ROUNDING * most)
    if fixed is None:
        return labels, 0.0
    rest, group = fixed
    known = labels[np.unique(group, return_index=True)[1]]
    others, left = _best_of_parts(rest, known, component.n_groups, budget, step, advance)
    joined = component.value(others[group])
    gap = min(value + gap, max(value, joined + left)) - max(value, joined)
    better = component.without_losses(others[group]) if joined > value + closed else labels
    return better, gap if gap > closed else 0.0


def _best_of_parts(
    rest: Component, labels: Labels, n_groups: int, budget: Budget, step: float, advance: Callable[[], None]
) -> tuple[Integers, float]:
    """Labels and gap of what fixed pairs have left of `n_groups`, each connected part by itself."""
    linked = rest.listed_weights > 0
    part_of = connected(rest.rows[linked], rest.indices[linked], rest.n_groups)
    order = np.argsort(part_of, kind="stable")
    found, gap = np.arange(rest.n_groups), 0.0
    for own in np.split(order, np.flatnonzero(np.diff(part_of[order])) + 1):
        if own.size == 1:
            continue
        part = rest.of_groups(own)
        known = canonical_labels(part.of_few(canonical_labels(labels[own])))
        if own.size <= components.MOST:
            best, left = _enumerated(part), 0.0
        elif own.size <= _SMALLER * n_groups:
            best, left = best_labels(part, known, budget, step, advance)
        else:
            best, left = _branched(part, known, budget, step)
        found[own] = own[best]
        gap += left
    return found, gap


def _enumerated(part: Component) -> npt.NDArray[np.int32]:
    """First member of each one's cluster in the best partition of few groups."""
    clusters = np.empty(part.n_groups, np.int32)
    components.solve_components(0, 1, np.array([0, part.n_groups]), part.fields, clusters)
    return clusters


def _branched(part: Component, labels: Labels, budget: Budget, step: float) -> tuple[Labels, float]:
    """Labels and gap by branch and bound, if the groups are few enough and memory holds the matrix."""
    gap = part.most - part.value(labels)
    if part.n_groups > _MOST_BRANCHED or not memory.fits(BYTES_A_PAIR * part.n_groups**2):
        return labels, gap
    weights = part.weights()
    search = BranchAndBound(np.maximum(-weights, 0.0), np.maximum(weights, 0.0), labels, step, budget)
    for _ in search.steps():
        pass
    if not part.is_too_large(search.labels).any():  # which branch and bound does not know
        labels = search.labels
    return labels, part.most - part.value(labels) - search.bound


class StarBound:
    """Prices of star inequalities, raised round by round: no partition joins more than the bound.

    Memory is in proportion to the listed pairs.
    """

    def __init__(self, component: Component, labels: Labels) -> None:
        n, most = component.n_groups, component.most
        self._component, self._labels = component, labels
        sizes = component.sizes.astype(np.float64)
        arrays = component.indptr, component.indices, component.excess, sizes
        self._graph = Graph(*arrays, float(component.default), 0.0, component.limit)
        listed = component.indices.size // 2
        room = 2 * listed + n
        while room < _ROOM * listed + _ROOM_A_GROUP * n and memory.fits(2 * _BYTES_A_PLACE * room):
            room *= 2
        self._room = room = 1 << int(room - 1).bit_length()
        most_pairs = 2 * room // 3
        self._pairs = stars.Pairs(
            keys=np.full(room, -1),
            at=np.empty(room, np.int32),
            ends=np.empty(most_pairs, np.int64),
            weights=np.empty(most_pairs),
            reduced=np.empty(most_pairs),
            centre=np.empty(most_pairs),
            number=np.zeros(1, np.int64),
        )
        self._rows = stars.Rows(
            *(np.zeros(room + 1, np.int64), np.empty(room, np.int32), np.empty(_ENTRIES * room, np.int32)),
            *(np.empty(room), np.zeros(1, np.int64)),
        )
        stars.list_pairs(self._graph, labels, np.argsort(labels, kind="stable"), self._pairs)
        self._rounding = _ROUNDING * float(np.abs(component.listed_weights).sum())
        positive = np.count_nonzero(component.listed_weights > 0) / 2
        self._width, self._slack = most / positive, _SLACK
        self.bound = self._last = most
        self._best = self._reduced()

    def _reduced(self) -> Floats:
        """Reduced weights (n_pairs,) of the pairs in the table, a copy."""
        return self._pairs.reduced[: self._pairs.number[0]].copy()

    def raised(self, target: float, budget: Budget, advance: Callable[[], None] = _show_nothing) -> float:
        """Lower the bound until it is at most `target`, the rounds gain little, or the budget is spent; return it."""
        slow = 0
        for _ in range(_ROUNDS):
            before = self._last
            try:
                with budget.stopping() as stop:
                    self._round(budget, stop)
            except OutOfBudget:
                break
            advance()
            slow = 0 if before - self._last > _STEP * (before - target) else slow + 1
            if self.bound <= target or slow == _PATIENCE:
                break
        return self.bound

    def _round(self, budget: Budget, stop: npt.NDArray[np.uint8]) -> None:
        """Add violated rows and change the prices."""
        pairs, rows = self._pairs, self._rows
        budget.spend(_SECONDS_A_PLACE * self._room + _SECONDS_A_PAIR * self._component.indices.size)
        new = stars.add_rows(self._graph, self._labels, pairs, rows, self._width, self._slack, _LEAVES, stop)
        if new <= _NEW * rows.number[0]:
            self._slack = max(self._slack / 2, _LEAST_SLACK)
        entries = int(rows.starts[rows.number[0]])
        n_sweeps = int(np.clip(_ENTRIES_A_ROUND // max(1, entries), _FEW_SWEEPS, _SWEEPS))
        budget.note(_SECONDS_AN_ENTRY * n_sweeps * entries)
        stars.ascend(pairs, rows, self._width, n_sweeps, stop)
        self._last = stars.reduce_weights(pairs, rows) + self._rounding
        if self._last < self.bound:
            self.bound, self._best = self._last, self._reduced()
        stars.drop_rows(rows)
        self._width *= _SHRINK

    def fixed(self, gap: float) -> tuple[Component, npt.NDArray[np.int32]] | None:
        """Merge groups that all better partitions join, and keep apart those that none joins; None if none is better.

        A partition that decides otherwise about a pair joins less than the bound by at least the pair's reduced weight.
        """
        n, reduced = self._component.n_groups, self._best
        first, second = np.divmod(self._pairs.ends[: reduced.size], n)
        joined, apart = reduced >= gap, reduced <= -gap
        group = connected(first[joined], second[joined], n)
        one, other = group[first[apart]], group[second[apart]]
        if np.any(one == other) or self._component.is_too_large(group).any():
            return None
        return self._component.contracted(group, one, other), group
