"""Search for the best partition of one large component of linked records.

Runs begin at partitions that a user may have and at random ones. Each moves single items and merges clusters until
nothing gains, then perturbs one place after the other and undoes what loses, until many perturbations in a row gained
nothing. Runs end when some agree or the work is done, which is counted, not timed: a search ends at the same partition
on every machine.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from posterior_consensus.ensemble.partitions import Labels, canonical_labels, connected
from posterior_consensus.kernels import sparse_moves as kernels
from posterior_consensus.kernels.components import MOST, solve_components
from posterior_consensus.problems.component import Component
from posterior_consensus.runtime.tolerances import ROUNDING, SAME

_WORK = 500_000_000  # neighbours looked at in one component, some seconds
_ORDERS = 4  # random orders in which items are allocated before the runs
_RUNS, _AGREE = 8, 3  # the most runs, and those at the best partition that end them
_PATIENCE = 10  # perturbations in a row without a gain, for each group
_HEAT = 0.1  # of the mean positive weight: losses of this size are accepted at times
_FEW = 300  # groups up to which they are: of many groups some place would always be worse than before
_RANDOMS = 1 << 14  # random numbers drawn at once
_SHOWN = _WORK // 20  # work between two looks at progress
_AT_ONCE = 16  # clusters divided before `stop` is looked at, a tenth of a second at most


class _Optimum(NamedTuple):
    """A partition at which a search ended, and the sum of the weights that it joins."""

    labels: Labels
    value: float


def _not_shown(share: float) -> None:
    """Show no progress."""


def search_component(
    component: Component,
    starts: Sequence[Labels],
    rng: np.random.Generator,
    stop: npt.NDArray[np.uint8],
    thorough: bool = True,
    advance: Callable[[float], None] = _not_shown,
) -> Labels:
    """Search for the partition (n_groups,) of greatest weight of a component's groups, two or more.

    No start, of labels from 0, joins more weight, nor do one cluster, the best links of the groups, and average linkage
    cut where mean weights become negative. A thorough search perturbs local optima. Another thread may set `stop` (1,)
    to 1 to have the best partition so far. `advance` is called with the share of the work that is done.
    """
    return canonical_labels(_Search(component, rng, stop, advance).best_of_runs(starts, _RUNS if thorough else 0))


def improved_by_decisions(component: Component, labels: Labels, stop: npt.NDArray[np.uint8]) -> Labels:
    """Apply what decisions on pairs would gain: moves, unions, divisions of small clusters, clusters of two alone.

    These are the changes that :func:`closest_decisions` looks at in large components; what is left gains nothing by
    any of them, unless another thread sets `stop`.
    """
    search = _Search(component, np.random.default_rng(0), stop)  # descents use no random numbers
    best = search.descend(labels)
    while not stop[0]:
        changed = _with_pairs_alone(component, _divided(component, best.labels, stop))
        if component.value(changed) <= best.value + search.rounding:
            break
        best = search.descend(changed)
    return component.without_losses(best.labels)


def _divided(component: Component, labels: Labels, stop: npt.NDArray[np.uint8]) -> Labels:
    """Labels with each cluster of few groups divided at best, by comparing all its partitions, until `stop` is set."""
    sizes = np.bincount(labels)
    members = np.flatnonzero(sizes[labels] <= MOST)
    members = members[np.argsort(labels[members], kind="stable")]
    if not members.size:
        return labels
    place = np.full(labels.size, -1, np.int64)
    place[members] = np.arange(members.size)
    rows, columns = place[component.rows], place[component.indices]
    own = (rows >= 0) & (columns >= 0)
    own[own] = labels[members[rows[own]]] == labels[members[columns[own]]]
    ends = rows[own], columns[own]
    table = sparse.csr_array((component.excess[own], ends), (members.size, members.size))
    part = Component.of(table, component.sizes[members], component.default, component.limit)
    starts = np.flatnonzero(np.diff(labels[members], prepend=-1, append=-1))
    first = np.repeat(starts[:-1], np.diff(starts)).astype(np.int32)
    for begin in range(0, starts.size - 1, _AT_ONCE):
        if stop[0]:
            break
        solve_components(begin, min(begin + _AT_ONCE, starts.size - 1), starts, part.fields, first)
    divided = labels.astype(np.int64)
    divided[members] = labels.size + first
    return canonical_labels(divided)


def _with_pairs_alone(component: Component, labels: Labels) -> Labels:
    """Labels with pairs in clusters of their own that gain more than both lose, the largest gains first.

    A cluster gives one group at most, so that gains add up.
    """
    rows, columns, weights = component.rows, component.indices, component.listed_weights
    same = labels[rows] == labels[columns]
    others = np.bincount(labels, component.sizes)[labels] - component.sizes
    to_own = np.bincount(rows[same], component.excess[same], labels.size)
    to_own += component.default * component.sizes * others
    gain = weights - to_own[rows] - to_own[columns]
    found = np.flatnonzero((gain > ROUNDING * component.most) & ~same & (rows < columns))
    changed, taken = labels.astype(np.int64), set[int]()
    for at in found[np.argsort(-gain[found], kind="stable")].tolist():
        ends = [int(rows[at]), int(columns[at])]
        clusters = set(labels[ends].tolist())
        if not clusters & taken:
            taken |= clusters
            changed[ends] = labels.size + at
    return canonical_labels(changed)


class _Search:
    """Runs on one component, which share the room they work in."""

    def __init__(
        self,
        component: Component,
        rng: np.random.Generator,
        stop: npt.NDArray[np.uint8],
        advance: Callable[[float], None] = _not_shown,
    ) -> None:
        sizes, excess = component.sizes.astype(np.float64), component.excess
        self._component, self._rng, self._stop = component, rng, stop
        self._advance = advance
        self._n = sizes.size
        self.rounding = ROUNDING * float(np.abs(excess).sum())
        self._graph = kernels.Graph(
            *(component.indptr, component.indices, excess, sizes, float(component.default), self.rounding),
            component.limit,
        )
        self._state = kernels.no_clusters(self._n)
        self._room = np.empty(self._n, np.int32)
        self._heat = _HEAT * float(excess[excess > 0].mean()) if self._n <= _FEW else 0.0

    def best_of_runs(self, starts: Sequence[Labels], n_runs: int) -> Labels:
        """Run from the best local optima first; return the best partition."""
        optima = [self.descend(labels) for labels in [*self._usual_starts(), *starts]]
        optima += [self._allocate() for _ in range(_ORDERS) if not self._is_over]
        optima.sort(key=lambda found: -found.value)
        ends = optima[:1]
        for run in range(n_runs):
            if self._is_over:
                break
            ends.append(self._perturb(optima[run] if run < len(optima) else self._allocate()))
            most = max(found.value for found in ends)
            if sum(found.value >= most - SAME * abs(most) for found in ends[1:]) >= _AGREE:
                break
        return max(ends, key=lambda found: found.value).labels

    @property
    def _is_over(self) -> bool:
        return bool(self._stop[0]) or kernels.work_of(self._state) >= _WORK

    def _show(self) -> None:
        self._advance(min(kernels.work_of(self._state) / _WORK, 1.0))

    def _usual_starts(self) -> Iterator[Labels]:
        """One cluster, best links, average linkage, and greedy merges."""
        yield np.zeros(self._n, np.int32)
        yield from _best_links(self._component)
        for by_mean in (True, False):
            kernels.load(self._graph, self._state, np.arange(self._n, dtype=np.int32))
            kernels.merge_best(self._graph, self._state, by_mean, _WORK, self._stop)
            yield self._state.labels.copy()

    def _allocate(self) -> _Optimum:
        """Allocate the groups in random order, and search from there."""
        return self.descend(np.full(self._n, -1, np.int32), self._rng.permutation(self._n))

    def descend(self, labels: Labels, order: npt.NDArray[Any] | None = None) -> _Optimum:
        """Move and merge until nothing gains; groups of clusters that are too large are placed anew."""
        if order is None:
            labels = np.where(self._component.is_too_large(labels), -1, labels)
        kernels.load(self._graph, self._state, labels)
        return self._settled(np.arange(self._n) if order is None else order)

    def _settled(self, order: npt.NDArray[Any]) -> _Optimum:
        value = kernels.descend(self._graph, self._state, order, _WORK, self._stop)
        self._show()
        return _Optimum(self._state.labels.copy(), value)

    def _perturb(self, start: _Optimum) -> _Optimum:
        """Perturb a local optimum until that has gained nothing for long."""
        kernels.load(self._graph, self._state, start.labels)
        in_vain, patience = 0, _PATIENCE * self._n
        while in_vain < patience and not self._is_over:
            randoms = self._rng.random(max(_RANDOMS, 2 * self._n + 3))
            most_work = min(kernels.work_of(self._state) + _SHOWN, _WORK)
            in_vain = kernels.perturb(
                self._graph, self._state, self._room, self._heat, randoms, in_vain, patience, most_work, self._stop
            )
            self._show()
        return self._settled(np.arange(self._n))


def _best_links(component: Component) -> Iterator[Labels]:
    """Each group linked to the one of the largest mean weight; and such pairs of which each is the other's best."""
    n, sizes = component.sizes.size, component.sizes
    rows = component.rows
    mean = component.excess / (sizes[rows] * sizes[component.indices])
    order = np.lexsort((component.indices, -mean, rows))
    best = component.indices[order[component.indptr[:-1]]]
    every = np.arange(n)
    mutual = best[best] == every
    for linked in (every, every[mutual]):
        yield connected(linked, best[linked], n)
