"""A lower bound of the minimum expected variation of information."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import Bound, Budget, OutOfBudget
from posterior_consensus.bounds.distinct_draws import DistinctDraws
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import vi_bound as kernels
from posterior_consensus.losses.partition_losses import vi
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.progress import track

_ROUNDING = 1e-10  # bits; far above the rounding of sums of n products, so that the bound stays valid
_ROWS_AT_ONCE = 2e7  # memberships of items in draws that one call of a kernel visits: well below a second
_SECONDS_A_ROW = 1e-8  # to compute tangents, for each membership of an item in a draw
_PILOT_SHARE = 0.4
_RATE = 0.1  # penalty of the augmented Lagrangian: bits an item pays for another if their means fully disagree
_FAR = 0.3  # bits; a group this far above the item's best is solved only every _ALL_GROUPS_EVERY steps
_SMALL_SHARE = 0.02
_SPARE_TANGENTS = 12
_SETTLING_STEPS = 500
_RESET_STEPS = 100
_STALE_AFTER = 60  # steps in which a tangent was nowhere the greatest
_WORTH_A_RESET = 10
_ALL_GROUPS_EVERY = 10
_EARLY_STEPS = 40
_REFRESH_EVERY = 10
_LATE_REFRESH_EVERY = 20  # for all draws, after a part of them: tangents are then most of the cost
_CENTRE_EVERY = 30
_TRIANGLES_FROM = 100
_TRIANGLES_EVERY = 20
_TRIANGLES_PER_CENTRE = 4
_TRIANGLES_AT_ONCE_PER_ITEM = 20
_VIOLATION = 0.02
_PATIENCE = 800
_NEGLIGIBLE = 2e-6  # relative gain of the bound in _PATIENCE steps that is not worth waiting for


@dataclass(frozen=True, kw_only=True)
class VIBoundInfo(Info):
    """Record of the bound for VI.

    Attributes
    ----------
    n_merged_items : int
        Number of items after merging items co-clustered in all draws.
    n_steps : int
        Steps of the augmented Lagrangian method.
    n_triangles : int
        Triangle inequalities with a Lagrange multiplier above 0.
    size_groups : list of int
        Largest size of each group of cluster sizes.
    """

    n_merged_items: int
    n_steps: int
    n_triangles: int
    size_groups: list[int]


def vi_bound(draws: PartitionDraws, incumbent: Labels, *, budget: Budget, progressbar: bool = True) -> Bound:
    """Bound the minimum expected VI over all partitions from below.

    The bound, in bits, is valid after any step, of which one is made in any case. Bounding ends by the budget, when the
    bound no longer rises, or when it meets the expected loss of the incumbent (n,), the best partition known. `info`
    has the numbers of items after equal ones are merged, of steps, and of triangles with a multiplier above 0, and the
    groups of cluster sizes. Arrays, quadratic in the number of items, that exceed the memory budget raise MemoryError.

    Notes
    -----
    With S_i the cluster of item i in the partition and z_t(i) in draw t,

        n E VI = sum_i E log2 |z_t(i)| + sum_i (log2 |S_i| - 2 E log2 |S_i and z_t(i)|).

    The bound is a Lagrangian relaxation. The sets S_i need not form one partition, so that every item has a problem of
    its own. Lagrange multipliers ("prices") restore consistency: what S_i pays for containing j, S_j is paid for
    containing i, and a triangle inequality costs nothing where it holds. Multipliers differ between groups of cluster
    sizes, since items of one cluster agree on its size. Tangents bound the convex function -2 E log2 |S_i and z_t(i)|
    from below. A tangent's minimum over all sets of one size is found by sorting. Every choice of multipliers and
    tangents gives a valid bound. They are improved by an augmented Lagrangian method, whose steps are
    conditional-gradient steps of all items at once. The background pages derive it.
    """
    problem = DistinctDraws(draws)
    ascent = _Ascent(problem)
    goal = float(mean_loss(draws, np.asarray(incumbent, np.int32)[np.newaxis], vi())[0])
    stride = problem.pilot_stride()
    pilot = (
        [(stride, budget.part(_PILOT_SHARE), f"Bounding VI, some {draws.samples.words.draws}")] if stride > 1 else []
    )
    for every, part, title in [*pilot, (1, budget, "Bounding VI")]:
        ascent.use(problem.blocks(every))
        for _ in track(_affordable(ascent, part), title, progressbar=progressbar):
            ascent.step()
            if ascent.has_stalled or (every == 1 and problem.entropy + ascent.best >= goal - _ROUNDING):
                break
    value = problem.entropy + ascent.best - _ROUNDING * (1 + np.log2(draws.n_items))
    info = VIBoundInfo(
        n_merged_items=problem.n,
        n_steps=ascent.n_steps,
        n_triangles=int(np.count_nonzero(ascent.duals)),
        size_groups=ascent.upper.tolist(),
    )
    return Bound(max(value, 0.0), "Lagrangian relaxation, item by item", None, info)


def seconds_to_begin(draws: PartitionDraws) -> float:
    """Approximate time until the bound is of any use."""
    return 2 * _SECONDS_A_ROW * draws.n_items**2 * draws.n_draws + 10 * _seconds_a_step(draws.n_items)


def _seconds_a_step(n: int) -> float:
    return 5e-4 + 7e-7 * n**2


def _affordable(ascent: _Ascent, budget: Budget) -> Iterator[None]:
    """Yield once, and then as long as the budget holds the next step."""
    budget.note(ascent.seconds_to_use)
    yield
    with suppress(OutOfBudget):
        while True:
            budget.spend(ascent.seconds_a_step)
            yield


class _Ascent:
    """Prices of pairs and triangles, and the means of the item problems' minimizers, from which they follow.

    Attributes
    ----------
    best : float
        Greatest bound found for the draws in use, without the draws' entropy.
    n_steps : int
    duals : ndarray of shape (n_triangles,)
        Multipliers of the triangles.
    upper : ndarray of shape (n_groups,)
        Largest size of each group of cluster sizes.
    """

    def __init__(self, problem: DistinctDraws) -> None:
        n = problem.n
        self._problem = problem
        self.upper = _size_groups(problem.n_items, n)
        self._feasible = self.upper >= problem.multiplicity[:, np.newaxis]
        self._groups = kernels.Groups(
            lower=np.concatenate([[0], self.upper[:-1]]) + 1,
            upper=self.upper,
            logs=np.log2(np.maximum(np.arange(problem.n_items + 1), 1)),
            multiplicity=problem.multiplicity,
        )
        n_groups = self.upper.size
        n_tangents = n_groups + _SPARE_TANGENTS
        self._tangents = kernels.Tangents(
            slopes=np.zeros((n, n_tangents, n), np.float32),
            offsets=np.zeros((n, n_tangents)),
            tags=np.full((n, n_tangents), -1),
            last_use=np.full((n, n_tangents), -1),
            ranking=np.tile(np.arange(n, dtype=np.int32), (n, n_tangents, 1)),
        )
        self._centre = np.zeros((n_groups, n, n))
        self._prices = kernels.Prices(np.zeros((n_groups, n, n)), np.zeros((n_groups, n)))
        self._means = kernels.Means(
            sets=np.zeros((n_groups, n, n), np.float32), costs=np.zeros((n, n_groups)), logs=np.zeros((n, n_groups))
        )
        self._met = np.zeros(n_groups, bool)
        self._triangles = np.zeros((0, 4), np.int32)
        self.duals = np.zeros(0)
        self._duals_centre = np.zeros(0)
        self._minima = kernels.Minima(
            least=np.full((n, n_groups), np.inf),
            sizes=np.zeros((n, n_groups), np.int64),
            winners=np.zeros((n, n_groups), np.int64),
            group=np.zeros(n, np.int64),
            sets=np.zeros((n, n), np.float32),
        )
        self._gaps = np.zeros(n)
        self.n_steps = 0

    def use(self, blocks: kernels.Blocks) -> None:
        """Bound the expectation over these draws from now on, starting at the current multipliers."""
        self._blocks = blocks
        self._tangents.tags[:] = -1
        self.best = -np.inf
        self._first_step = self.n_steps
        self._refresh_every = _REFRESH_EVERY if self.n_steps == 0 else _LATE_REFRESH_EVERY
        self._free_from = self.n_steps + _SETTLING_STEPS
        self._milestone = self._last_milestone = -np.inf
        self._milestone_step = self.n_steps
        self.has_stalled = False
        points = self._first_points()
        met = self._shares() > _SMALL_SHARE
        points[met.T] = self._means.sets[met.T]
        slots = np.where(self._feasible, np.arange(self.upper.size), -1)
        self._linearize(points, slots, np.empty_like(self._means.costs))
        self._refresh()

    @property
    def seconds_to_use(self) -> float:
        """Approximate time that :meth:`use` took."""
        return _SECONDS_A_ROW * self._n_rows(self.upper.size)

    @property
    def seconds_a_step(self) -> float:
        """About how long the next step takes."""
        seconds = _seconds_a_step(self._problem.n)
        if self._is_refresh_due:
            seconds += _SECONDS_A_ROW * self._n_rows(1)
        if self._is_separation_due:
            seconds += 1e-8 * self._problem.n**3
        return seconds

    def _n_rows(self, n_points: int) -> float:
        """Memberships of items in draws that tangents at so many points of every item visit."""
        passes = np.ceil(n_points / kernels.TANGENTS_AT_ONCE)
        return float(self._problem.rows * len(self._blocks.labels) / len(self._problem.labels) * max(passes, 1))

    @property
    def _is_refresh_due(self) -> bool:
        return self.n_steps % (3 if self.n_steps < _EARLY_STEPS else self._refresh_every) == 0

    @property
    def _is_separation_due(self) -> bool:
        return self.n_steps >= _TRIANGLES_FROM and self.n_steps % _TRIANGLES_EVERY == 0

    def step(self) -> None:
        """Solve the item problems at the current multipliers and move the means; every few steps, improve the model."""
        since = self.n_steps - self._first_step
        every = since % _ALL_GROUPS_EVERY == 0
        self._set_prices()
        self._solve(every)
        if every:
            self._note_bound(since)
        if self.n_steps == 0:
            self._start_means()
        else:
            self._move()
        if self._is_refresh_due:
            self._refresh(reset=self.n_steps < self._free_from)
        if self._is_separation_due:
            self._separate()
        self.n_steps += 1
        if self.n_steps % _CENTRE_EVERY == 0:
            kernels.price_pairs(self._centre, self._means.sets, self._met_groups(), _RATE, self._centre)
            self._duals_centre = self._present_duals()

    def _shares(self) -> npt.NDArray[np.float32]:
        """Share of each group (n, G) in the means."""
        return np.diagonal(self._means.sets, axis1=1, axis2=2).T

    def _met_groups(self) -> Positions:
        """Groups with a share in the means, now or before: the others have no multipliers."""
        self._met |= self._shares().max(axis=0) > 0
        return np.flatnonzero(self._met)

    def _first_points(self) -> npt.NDArray[np.float32]:
        """Smoothed indicators (G, n, n) of each item's most similar items, as many as a group's middle size."""
        multiplicity = self._problem.multiplicity
        similarity = self._problem.similarity
        nearest = np.argsort(-similarity - 2 * np.eye(self._problem.n), axis=1, kind="stable")
        reach = np.cumsum(multiplicity[nearest], axis=1)
        points = np.empty_like(self._means.sets)
        for b, middle in enumerate((self._groups.lower + self.upper) // 2):
            near = np.zeros(similarity.shape)
            np.put_along_axis(near, nearest, (reach <= middle).astype(float), axis=1)
            points[b] = 0.8 * near + 0.2 * similarity
            np.fill_diagonal(points[b], 1.0)
        return points

    def _linearize(self, points: npt.NDArray[np.float32], slots: Positions, costs: Floats) -> None:
        rows = self._n_rows(np.count_nonzero(slots >= 0, axis=1).max())
        at_once = max(1, int(self._problem.n * _ROWS_AT_ONCE / max(rows, 1)))
        for first in range(0, self._problem.n, at_once):
            last = min(first + at_once, self._problem.n)
            kernels.linearize(self._blocks, points, first, last, slots, self._tangents, costs)

    def _refresh(self, reset: bool = True) -> None:
        """Add tangents at the means, in place of those unused for longest.

        The costs of the means are averages of the model's costs. They soon come close to the true costs, to which they
        are reset until then.
        """
        tags, last_use = self._tangents.tags[:, self.upper.size :], self._tangents.last_use[:, self.upper.size :]
        tags[last_use < self.n_steps - _STALE_AFTER] = -1
        spare = np.argsort(self._tangents.last_use[:, self.upper.size :], axis=1, kind="stable") + self.upper.size
        wanted = (self._shares() > _SMALL_SHARE) & self._feasible
        place = 2 * np.cumsum(wanted, axis=1) - 1
        wanted &= place < _SPARE_TANGENTS
        place = np.clip(place, 1, _SPARE_TANGENTS - 1)
        slots = np.where(wanted, np.take_along_axis(spare, place - 1, axis=1), -1)
        blends = np.where(wanted, np.take_along_axis(spare, place, axis=1), -1)
        self._linearize(self._means.sets, slots, self._means.costs if reset else np.empty_like(self._means.costs))
        kernels.blend(self._tangents, slots, self._minima.winners, blends)
        for chosen in (slots, blends):
            items, groups = np.nonzero(wanted)
            self._tangents.last_use[items, chosen[items, groups]] = self.n_steps

    def _present_duals(self) -> Floats:
        excess = np.empty(self._duals_centre.size)
        kernels.violations(self._means.sets, self._triangles, excess)
        return np.maximum(self._duals_centre + _RATE * excess, 0.0)

    def _set_prices(self) -> None:
        self.duals = self._present_duals()
        kernels.total_prices(
            self._centre,
            self._means.sets,
            self._met_groups(),
            _RATE,
            self._triangles,
            self.duals,
            self._problem.multiplicity,
            self._prices,
        )

    def _solve(self, every: bool) -> None:
        least = self._minima.least
        active = np.ones(least.shape, bool) if every else least < least.min(axis=1, keepdims=True) + _FAR
        kernels.solve_items(self._tangents, self._prices, self._groups, active, self.n_steps, self._minima)

    def _note_bound(self, since: int) -> None:
        value = float(self._problem.multiplicity @ self._minima.least.min(axis=1)) / self._problem.n_items
        self.best = max(self.best, value)
        worthwhile = _NEGLIGIBLE * abs(self._problem.entropy + self.best)
        if self.best > self._milestone + worthwhile:
            self._milestone = self.best
            self._milestone_step = self.n_steps
        elif self.n_steps >= max(self._milestone_step, self._free_from) + _PATIENCE:
            self.has_stalled = self._milestone <= self._last_milestone + _WORTH_A_RESET * worthwhile
            self._last_milestone = self._milestone
            self._free_from = self.n_steps + _RESET_STEPS

    def _start_means(self) -> None:
        means, minima = self._means, self._minima
        items = np.arange(self._problem.n)
        chosen = items, minima.group
        means.sets[minima.group, items] = minima.sets
        means.logs[chosen] = self._groups.logs[minima.sizes[chosen]]
        means.costs[chosen] = minima.least[chosen] - means.logs[chosen]

    def _move(self) -> None:
        bends, minima = np.zeros(self._problem.n), self._minima
        triangles = self._triangles, self.duals
        kernels.triangle_bends(self._means.sets, minima.group, minima.sets, *triangles, bends)
        kernels.move(self._means, minima, self._prices, self._groups, _RATE, _RATE * bends, self._gaps)

    def _separate(self) -> None:
        """Add the most violated triangles as cutting planes, and drop those without a multiplier."""
        n = self._problem.n
        groups = np.flatnonzero(self._shares().max(axis=0) > _SMALL_SHARE)
        found = np.empty((groups.size, n, _TRIANGLES_PER_CENTRE, 2), np.int32)
        by = np.empty(found.shape[:3], np.float32)
        kernels.violated_triangles(self._means.sets, groups, 0, n, _VIOLATION, found, by)
        g, centre, r = np.nonzero(found[..., 0] >= 0)
        worst = np.argsort(-by[g, centre, r], kind="stable")[: _TRIANGLES_AT_ONCE_PER_ITEM * n]
        g, centre, r = g[worst], centre[worst], r[worst]
        new = np.column_stack([groups[g], centre, found[g, centre, r]]).astype(np.int32)
        kept = (self.duals > 0) | (self._duals_centre > 0)
        triangles = np.concatenate([self._triangles[kept], new])
        duals = np.concatenate([self._duals_centre[kept], np.zeros(len(new))])
        code = np.ravel_multi_index(tuple(triangles.T.astype(np.int64)), (self.upper.size, n, n, n))
        _, first = np.unique(code, return_index=True)  # of two equal triangles, the one with a multiplier comes first
        self._triangles = np.ascontiguousarray(triangles[first])
        self._duals_centre = duals[first]


def _size_groups(n_items: int, n: int) -> Integers:
    """Largest size of each group of cluster sizes; groups are as fine as memory allows."""
    for ratio in (1.5, 2.0, 4.0, n_items):
        sizes = [1]
        while sizes[-1] < n_items:
            sizes.append(min(n_items, max(sizes[-1] + 1, int(sizes[-1] * ratio))))
        per_pair = 24 * len(sizes) + 8 * (len(sizes) + _SPARE_TANGENTS)
        if memory.fits(per_pair * n**2):
            break
    memory.check(per_pair * n**2, f"The bound for VI of {n} distinct items")
    return np.array(sizes)
