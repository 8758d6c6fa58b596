"""Branch and bound over the partitions of signatures."""

import heapq
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import count

import numpy as np

from posterior_consensus.bounds.ascent import Ascent, conflicts
from posterior_consensus.bounds.bound import checked
from posterior_consensus.bounds.budget import Budget, OutOfBudget
from posterior_consensus.bounds.instance import (
    Floats,
    Instance,
    Prices,
    components,
    lagrangian_bound,
    packing_bound,
    settled,
)
from posterior_consensus.bounds.sdp_binder import PairRelaxation
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import packing
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.tolerances import ROUNDING

_SAME = 1e-10  # relative difference below which expected losses are equal; below the gap that counts as closed
_DUST = 1e-14  # relative to a pair's costs: a smaller difference between them is rounding
_STEP = 0.03  # share of the gap that a round of ascent must close to count as progress
_PATIENCE = 5  # rounds in a row that may close less
_SMALLER = 0.95  # the bound starts anew when contraction leaves at most this share of the groups
_MOST_COLUMNS = 12_000
_BYTES_A_PAIR = 80  # of groups: memory of ascent without its triangles
_FIRST_ROUND = 10  # times the seconds of packing, to list the conflicts and to search for other rows
_SECONDS_A_TRIANGLE = 2e-9  # with two positive weights, conflicted or not
_SECONDS_A_PROGRAM = 0.02  # to set up a linear program, and for the rounds of ascent around it


class Search:
    """Branch and bound over partitions of signatures; `labels` and `bound` are valid whenever it stops."""

    def __init__(self, together: Floats, apart: Floats, labels: Labels, step: float, budget: Budget) -> None:
        size = len(together)
        anywhere, joined = np.zeros((size, size), np.bool_), float(together.sum()) / 2
        weights = apart - together
        weights[np.abs(weights) <= _DUST * (together + apart)] = 0.0
        self._root = Instance(weights, anywhere, np.arange(size), joined)
        self._rounding = ROUNDING * float((together + apart).sum())
        self._step = step  # costs are multiples of it; 0 where nothing is known
        self._budget = budget
        self._open: list[tuple[float, int, Instance]] = []
        self._numbers = count()
        self._current = float(np.minimum(together, apart).sum()) / 2
        self._closed = np.inf  # least bound of all closed subproblems
        self._relaxed = -np.inf
        self.counts = {"n_packings": 0, "n_rounds": 0, "n_programs": 0, "n_branches": 0, "n_steps": 0}
        self.labels, self._best = labels, self._root.cost(labels)
        self._offer(self._root, labels)

    def _offer(self, instance: Instance, labels: Labels) -> None:
        """Polish labels of an instance's groups and keep them if they are the best so far."""
        labels = canonical_labels(labels[instance.groups])
        packing.improve(self._root.weights, labels)
        cost = self._root.cost(labels)
        if cost < self._best - _SAME * self._best:
            self.labels, self._best = labels, cost

    @property
    def _target(self) -> float:
        """Bound at which a subproblem is closed, as it holds no better partition."""
        return self._best - max(0.999 * self._step, _SAME * self._best)

    @property
    def bound(self) -> float:
        """No partition costs less."""
        least = max(min([self._current, *(value for value, *_ in self._open)]), self._relaxed)
        if self._step == 0:
            return min(self._best, self._closed, least)
        return self._best if np.isinf(least) else min(self._best, self._step * np.ceil(least / self._step - 0.0005))

    def relax(self, budget: Budget) -> None:
        """Bound the whole problem by semidefinite relaxation too, if a gap is left and the budget has room."""
        if self._best - self.bound <= _SAME * self._best:
            return
        relaxation = PairRelaxation(self._root, self.labels, budget)
        for value in relaxation.bounds():
            self._relaxed = max(self._relaxed, checked(value, self._best, self._rounding))
        self.counts["n_steps"] = relaxation.n_iter

    @property
    def method(self) -> str:
        """The most laborious kind of work done, in words."""
        names = {
            "n_steps": "semidefinite relaxation",
            "n_branches": "branch and bound",
            "n_programs": "linear program",
            "n_rounds": "dual ascent",
            "n_packings": "packing of triangles",
        }
        return next((name for key, name in names.items() if self.counts[key]), "trivial bound")

    def steps(self) -> Iterator[None]:
        """Process subproblems until none is left or the budget is spent."""
        if self._raise(self._current, self._root):
            return
        self._push(self._root)
        with suppress(OutOfBudget):
            while self._open:
                self._current, _, instance = heapq.heappop(self._open)
                yield from self._explore(instance)
                self._current = np.inf

    def _push(self, instance: Instance) -> None:
        heapq.heappush(self._open, (self._current, next(self._numbers), instance))

    def _raise(self, value: float, instance: Instance) -> bool:
        """Take a bound of the current subproblem, and return whether that closes it.

        Only a bound of the whole problem is known to be wrong where a partition costs less.
        """
        if instance is self._root:
            checked(value, self._best, self._rounding)
        self._current = max(self._current, value)
        closed = self._current >= self._target
        if closed:
            self._closed = min(self._closed, self._current)
        return closed

    def _explore(self, instance: Instance) -> Iterator[None]:
        """Bound one subproblem until it is closed or split in two."""
        self._budget.spend(_seconds_to_pack(instance))
        self.counts["n_packings"] += 1
        if self._raise(packing_bound(instance), instance):
            return
        yield
        self._budget.spend(_FIRST_ROUND * _seconds_to_pack(instance))
        if not memory.fits(_BYTES_A_PAIR * instance.size**2):
            raise OutOfBudget
        prices = conflicts(instance)
        while True:
            ascent = yield from self._ascend(Ascent(instance, prices, instance.of_groups(self.labels)))
            if ascent is None:
                return
            instance, x, prices = ascent.instance, ascent.x, ascent.best
            if np.count_nonzero(~instance.apart) // 2 <= _MOST_COLUMNS:
                x, prices = yield from self._solve(instance, x, prices)
            self._offer(instance, components(x < 0.5))
            smaller = self._settle(instance, prices)
            if smaller is None:
                return
            if smaller.size > _SMALLER * instance.size:
                self._split(smaller, x[instance.within(smaller)])
                return
            instance, prices = smaller, prices.carried(instance.nested_in(smaller), smaller.size)

    def _ascend(self, ascent: Ascent) -> Generator[None, None, Ascent | None]:
        """Raise the bound while that pays, contracting settled pairs; None if that closes the subproblem."""
        gap, slow = np.inf, 0
        while not self._raise(ascent.bound, ascent.instance):
            if slow == _PATIENCE:
                return ascent
            if self._target - ascent.bound < gap / 2:
                gap = self._target - ascent.bound
                smaller = self._settle(ascent.instance, ascent.best)
                if smaller is None:
                    return None
                if smaller.size <= _SMALLER * ascent.instance.size:
                    ascent = ascent.on(smaller, smaller.of_groups(self.labels))
            yield
            before = ascent.bound
            self._budget.spend(ascent.seconds_a_round)
            ascent.round()
            self.counts["n_rounds"] += 1
            slow = 0 if ascent.bound - before > _STEP * (self._target - before) else slow + 1
        return None

    def _settle(self, instance: Instance, prices: Prices) -> Instance | None:
        """Contract the pairs on which all better partitions agree; None if there is no better partition."""
        reduced = prices.reduced_costs(instance)
        value = lagrangian_bound(instance, reduced)
        if self._raise(value, instance):
            return None
        self._closed = min(self._closed, self._target)
        return instance.contracted(*settled(instance, reduced, self._target - value))

    def _solve(self, instance: Instance, x: Floats, prices: Prices) -> Generator[None, None, tuple[Floats, Prices]]:
        """Return solution and multipliers of the linear program, by cutting planes from the rows with a multiplier."""
        # Most bounds are found without HiGHS, which need not be loaded then.
        from posterior_consensus.bounds.linear_program import TriangleProgram

        self._budget.spend(_SECONDS_A_PROGRAM)
        program = TriangleProgram(instance, prices.rows[prices.values > 0])
        more = True
        while more:
            yield
            solved = program.solve(self._budget)
            if solved is None:
                return x, prices
            self.counts["n_programs"] += 1
            x, prices = solved
            if self._raise(lagrangian_bound(instance, prices.reduced_costs(instance)), instance):
                break
            more = program.tighten(x, prices)
        return x, prices

    def _split(self, instance: Instance, x: Floats) -> None:
        """Branch on the most fractional pair: together in one subproblem, apart in the other."""
        heavy = np.abs(instance.weights)
        doubt = np.minimum(x, 1 - x) + 1e-6 * heavy / (1 + heavy.max())
        doubt[instance.apart | np.tri(instance.size, dtype=np.bool_)] = -np.inf
        pair = np.zeros(x.shape, np.bool_)
        pair.ravel()[doubt.argmax()] = True
        none = np.zeros(x.shape, np.bool_)
        self.counts["n_branches"] += 1
        for part in (instance.contracted(pair, none), instance.contracted(none, pair)):
            if part is not None:
                self._push(part)


def _seconds_to_pack(instance: Instance) -> float:
    degrees = np.count_nonzero(instance.weights > 0, axis=1).astype(np.float64)
    return _SECONDS_A_TRIANGLE * float(degrees @ degrees) / 2
