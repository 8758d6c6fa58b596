"""A lower bound of the minimum expected Binder loss: dual ascent, then the linear program, then branching."""

import heapq
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import numpy as np

from posterior_consensus.bounds.ascent import (
    Ascent,
    Instance,
    TrianglePrices,
    conflicts,
    connected_groups,
    fixed_pairs,
    lagrangian_bound,
    packing_bound,
)
from posterior_consensus.bounds.bound import Bound, Budget, OutOfBudget, checked
from posterior_consensus.bounds.sdp import PairRelaxation
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import packing
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.components import cost_step
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

BYTES_A_PAIR = 42  # of the costs, and of the packing of triangles
SHARE_OF_RELAXATION = 0.1  # more than half of the narrowing is done by then
_SAME = 1e-10  # relative difference below which expected losses are equal; below the gap that counts as closed
_DUST = 1e-14  # relative to a pair's costs: a smaller difference between them is rounding
_STEP = 0.03  # share of the gap that a round of ascent must close to count as progress
_PATIENCE = 5  # rounds in a row that may close less
_SMALLER = 0.95  # the bound starts anew when contraction leaves at most this share of the groups
_MOST_COLUMNS = 12_000
_BYTES_A_PAIR_OF_GROUPS = 80  # memory of ascent without its triangles
_FIRST_ROUND = 10  # times the seconds of packing, to list the conflicts and to search for other rows
_SECONDS_A_TRIANGLE = 2e-9  # with two positive weights, conflicted or not
_SECONDS_A_PROGRAM = 0.02  # to set up a linear program, and for the rounds of ascent around it


@dataclass(frozen=True, kw_only=True)
class BinderBoundInfo(Info):
    """Record of the bound for Binder's loss, and of the method "exact".

    Attributes
    ----------
    n_signatures : int
        Number of signatures: items co-clustered in all draws share one.
    n_packings, n_rounds, n_programs, n_branches : int
        Packings of triangles, rounds of dual ascent, linear programs solved, and branchings.
    n_steps : int
        Steps of the semidefinite relaxation, which is used where a gap is left.
    """

    n_signatures: int
    n_packings: int
    n_rounds: int
    n_programs: int
    n_branches: int
    n_steps: int


def binder_bound(
    source: PairSource,
    loss: PartitionLoss,
    incumbent: Labels,
    *,
    budget: Budget,
    progressbar: bool = False,
) -> Bound:
    """Bound the minimum expected loss from below for Binder's loss with any costs.

    The partition of the bound is the incumbent (n,), the best one known, or a better one that was found. The trivial
    bound is computed in any case. `info` counts rounds of ascent, linear programs solved and branches.

    Notes
    -----
    Joining items i and j costs b P(z_i != z_j), separating them c P(z_i = z_j). The trivial bound is the sum over pairs
    of the smaller cost. The rest is correlation clustering with the difference of the two costs as weight [1]_. Its
    linear program over triangle inequalities is bounded in three ways: by packing of conflicted triangles [2]_, by
    coordinate ascent on the dual, and by the simplex method. For the ascent, the program has a quadratic term that
    keeps the solution near the incumbent. Rows that this solution violates are added, and rows without a multiplier are
    dropped, as in [3]_. Every bound is computed from the Lagrange multipliers alone. It is therefore valid
    whenever the work stops, whatever a solver's tolerance is. Pairs that the bound fixes are contracted. If the
    program's solution is fractional the search branches. If all that leaves a gap, as with noisy draws of more than
    a hundred items, a semidefinite relaxation bounds the whole problem too [4]_, for a tenth of the budget.

    References
    ----------
    .. [1] Bansal, Blum and Chawla (2004), Machine Learning 56, 89-113.
       https://doi.org/10.1023/B:MACH.0000033116.57574.95
    .. [2] Lange, Karrenbauer and Andres (2018), Partial optimality and fast lower bounds for weighted correlation
       clustering, Proceedings of Machine Learning Research 80, 2892-2901.
    .. [3] Sonthalia and Gilbert (2022), Project and Forget: solving large-scale metric constrained problems, Journal
       of Machine Learning Research 23(326), 1-54.
    .. [4] Swamy (2004), Correlation clustering: maximizing agreements via semidefinite programming, Proceedings of the
       Fifteenth Annual ACM-SIAM Symposium on Discrete Algorithms, 526-527.
    """
    memory.check(BYTES_A_PAIR * source.n_items**2, f"The bound for Binder's loss of {source.n_items} items")
    together, apart, signature = pair_costs(source, loss)
    _, first = np.unique(signature, return_index=True)
    more = budget.extra(SHARE_OF_RELAXATION)
    search = BranchAndBound(together, apart, incumbent[first], cost_step(source, loss), budget)
    for _ in track(search.steps(), "Lower bound", progressbar=progressbar):
        pass
    search.relax(more)
    unit = loss.scale(source.n_items) / (source.n_draws or 1)
    return Bound(
        value=float(unit * search.bound),
        method=search.method,
        partition=canonical_labels(search.labels[signature]),
        info=BinderBoundInfo(n_signatures=first.size, **search.counts),
    )


def pair_costs(source: PairSource, loss: PartitionLoss) -> tuple[Floats, Floats, Positions]:
    """Expected cost of each pair of signatures together and apart (u, u), and every item's signature.

    Costs are multiplied by the number of draws, if it is known: they are integers then if they can be.

    Items that are together in all draws are together in some optimum: the cost of moving some of them to another
    cluster is concave in their number. Each pair's costs are summed over the items of its signatures.
    """
    signature, n_draws = source.signatures(), source.n_draws or 1
    _, first, sizes = np.unique(signature, return_index=True, return_counts=True)
    similarity = source.similarity()
    if first.size < source.n_items:
        similarity = similarity[np.ix_(first, first)]
    similarity *= n_draws
    if source.denominator() is not None:
        np.rint(similarity, out=similarity)  # counts of draws
    together = np.maximum(n_draws - similarity, 0.0)
    apart = similarity
    for costs, term in ((together, "B"), (apart, "C")):
        costs *= loss.numerator[term]
        if first.size < source.n_items:
            costs *= np.multiply.outer(sizes, sizes)
    np.fill_diagonal(together, 0.0)
    np.fill_diagonal(apart, 0.0)
    return together, apart, signature


class BranchAndBound:
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
        if not memory.fits(_BYTES_A_PAIR_OF_GROUPS * instance.size**2):
            raise OutOfBudget
        prices = conflicts(instance)
        while True:
            ascent = yield from self._ascend(Ascent(instance, prices, instance.of_groups(self.labels)))
            if ascent is None:
                return
            instance, x, prices = ascent.instance, ascent.x, ascent.best
            if np.count_nonzero(~instance.apart) // 2 <= _MOST_COLUMNS:
                x, prices = yield from self._solve(instance, x, prices)
            self._offer(instance, connected_groups(x < 0.5))
            smaller = self._with_pairs_fixed(instance, prices)
            if smaller is None:
                return
            if smaller.size > _SMALLER * instance.size:
                self._split(smaller, x[instance.within(smaller)])
                return
            instance, prices = smaller, prices.carried(instance.nested_in(smaller), smaller.size)

    def _ascend(self, ascent: Ascent) -> Generator[None, None, Ascent | None]:
        """Raise the bound while that pays, contracting fixed pairs; None if that closes the subproblem."""
        gap, slow = np.inf, 0
        while not self._raise(ascent.bound, ascent.instance):
            if slow == _PATIENCE:
                return ascent
            if self._target - ascent.bound < gap / 2:
                gap = self._target - ascent.bound
                smaller = self._with_pairs_fixed(ascent.instance, ascent.best)
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

    def _with_pairs_fixed(self, instance: Instance, prices: TrianglePrices) -> Instance | None:
        """Contract the pairs on which all better partitions agree; None if there is no better partition."""
        reduced = prices.reduced_costs(instance)
        value = lagrangian_bound(instance, reduced)
        if self._raise(value, instance):
            return None
        self._closed = min(self._closed, self._target)
        return instance.contracted(*fixed_pairs(instance, reduced, self._target - value))

    def _solve(
        self, instance: Instance, x: Floats, prices: TrianglePrices
    ) -> Generator[None, None, tuple[Floats, TrianglePrices]]:
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
