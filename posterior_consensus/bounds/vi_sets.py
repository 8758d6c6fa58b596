"""A lower bound of the minimum expected VI by set partitioning: no set may cost less than its items' shares."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.optimize import nnls
from scipy.spatial.distance import squareform

from posterior_consensus.bounds.bound import Bound, Budget, OutOfBudget
from posterior_consensus.bounds.distinct_draws import DistinctDraws
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import vi_sets as kernels
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import warn
from posterior_consensus.runtime.progress import track

_MOST_ITEMS = 400  # more are bounded in parts
_ITEMS_A_PART = 250
_RATIO = 4.0  # of the largest to the smallest size of the sets that are bounded together
_N_STEPS = 20  # of prices, before a leaf's minorant is changed
_FIRST_LENGTH = 0.3  # of steps of prices
_CHANGES = 2  # of a leaf's minorant, before it is branched on
_SPREAD = 1.0  # deviation of rows' numbers of a cluster's items, beyond which a leaf is divided by the number
_FAR = 0.2  # the same as a share of the size, beyond which it is divided at once
_STEP, _LAST_STEP = 0.4, 0.05  # of what items see: the first one and after success, and the last one after failures
_SEEN = 0.2  # share of an item in the means at which it goes half that step
_ENOUGH = 0.7  # of what its parent lacks: a leaf that lacks less is branched on before its minorant is changed
_WORTH = 0.05  # share of what is missing that a change must gain to be followed by another
_MARGIN = 0.002  # of the expected loss, above what is wanted, that prices aim at
_CLOSED = 1e-10  # relative gap at which the proof ends
_LEAST_LOSS = 0.01  # bits, of which that share is still above rounding
_TINY = 1e-12
_PULL = 0.02  # of shares towards those in the incumbent, by bit
_N_STARTS = 4  # of searches for sets that cost less
_SECONDS_A_CALL = 4e-4  # of a kernel, besides what it does, and of what prepares it
_SECONDS_A_FIT = 1e-3
_SECONDS_A_PAIR = 1.2e-8  # of free items, for a step of prices
_STEPS_A_PROBE = 5  # that take the time of a probe
_SECONDS_A_MEMBER = 1.5e-8  # of a block, for a search of a set
_SECONDS_A_MEMBERSHIP = 5e-8  # of a free item in a block, for a bend
_ROUNDING = 1e-11  # bits an item; far above the rounding of the sums, so that the bound stays valid
_BYTES_A_PAIR = 200
_BYTES_A_PAIR_OF_A_LEAF = 18
_BYTES_TO_DEAL = 24  # items out to parts


@dataclass(frozen=True, kw_only=True)
class VISetsInfo(Info):
    """Record of the bound for VI by set partitioning.

    Attributes
    ----------
    n_merged_items : int
        Number of items after merging items co-clustered in all draws.
    n_parts : int
        Parts of the items that are bounded by themselves; 1 up to 400 items.
    n_sets : int
        Sets of items whose costs limit their items' shares: the partition's clusters, and sets that cost less.
    n_nodes : int
        Nodes of the trees in which no cheaper set was found.
    stopped : str
        "interrupted" if Ctrl-C ended bounding early, else empty.
    """

    n_merged_items: int
    n_parts: int
    n_sets: int
    n_nodes: int
    stopped: str


def sets_bound(draws: PartitionDraws, incumbent: Labels, *, budget: Budget, progressbar: bool = True) -> Bound:
    """Bound the minimum expected VI over all partitions from below, by the shares of items in the incumbent's clusters.

    The bound, in bits, is valid whenever it ends: by the budget, by Ctrl-C, or when it meets the expected loss of the
    incumbent (n,), the best partition known. Arrays, quadratic in the number of items, that exceed the memory budget
    raise MemoryError.

    Notes
    -----
    n E VI is a constant plus a sum of f(S) over the clusters S of a partition. Let every item have a share of the
    costs. If no set of items costs less than its items' shares, then no partition costs less than all shares together.
    The shares are those in the incumbent's clusters, moved as little as the sets that are found to cost less require.
    That no other set costs less is proven by branch and bound: the set has more items of a cluster or fewer; an item is
    in it or out of it. f is bounded from below by a quadratic function, and this, for sets of one size, by the cheapest
    row of each item; prices of pairs make rows agree. What cannot be proven is taken from the shares.

    More than 400 items are divided into parts, which are bounded by themselves: as VI is concave in the joint
    distribution of the labels of two partitions, it is at least its mean over the parts. The background pages derive
    both.
    """
    size = -(-draws.n_items // _n_parts(draws.n_items))
    memory.check(_BYTES_A_PAIR * size**2 + _BYTES_TO_DEAL * draws.n_items**2, f"The bound for VI of {size} items")
    parts = _dealt(draws)
    value, n_items, n_sets, n_nodes, stopped = 0.0, 0, 0, 0, ""
    for k, part in enumerate(parts):
        problem = DistinctDraws(draws if len(parts) == 1 else draws.of_items(part))
        share = budget.part(1 / (len(parts) - k))
        bound = _SetsBound(problem, problem.merged(incumbent[part]), share)
        try:
            for _ in track(bound.run(), "Bounding VI", progressbar=progressbar):
                pass
        except OutOfBudget:
            pass
        except KeyboardInterrupt:
            stopped = "interrupted"
            warn("Bounding was interrupted; the bound is the best so far.")
        value += max(bound.best, 0.0)
        n_items, n_sets, n_nodes = n_items + problem.n, n_sets + len(bound.sets), n_nodes + bound.n_nodes
        if stopped:
            break
    value = value / draws.n_items - _ROUNDING * (1 + np.log2(draws.n_items))
    info = VISetsInfo(n_merged_items=n_items, n_parts=len(parts), n_sets=n_sets, n_nodes=n_nodes, stopped=stopped)
    return Bound(max(value, 0.0), "set partitioning", None, info)


def _dealt(draws: PartitionDraws) -> list[Positions]:
    """The items, dealt out one by one in an order in which similar ones are near each other, if they are many."""
    n_parts = _n_parts(draws.n_items)
    if n_parts == 1:
        return [np.arange(draws.n_items)]
    order = _similar_first(draws.labels_only().shared_similarity)
    return [np.sort(order[k::n_parts]) for k in range(n_parts)]


def _similar_first(similarity: Floats) -> Positions:
    """The items in an order in which similar ones are near each other."""
    if len(similarity) == 1:
        return np.arange(1)
    return leaves_list(linkage(squareform(1 - similarity, checks=False), "average"))


def sets_fit(draws: PartitionDraws, seconds: float) -> bool:
    """Whether there is time for the first bounds of all sizes, in each part."""
    n_parts = _n_parts(draws.n_items)
    n = -(-draws.n_items // n_parts)
    n_ranges = sum(1 for _ in _ranges(n))
    to_begin = n_ranges * (_seconds_a_bend(n * draws.n_draws) + _seconds_a_raise(n, _N_STEPS))
    return 5 * n_parts * to_begin < seconds


def _n_parts(n_items: int) -> int:
    return 1 if n_items <= _MOST_ITEMS else -(-n_items // _ITEMS_A_PART)


def _seconds_a_bend(n_memberships: float) -> float:
    return _SECONDS_A_CALL + _SECONDS_A_MEMBERSHIP * n_memberships


def _seconds_a_raise(n_items: int, n_steps: int) -> float:
    return _SECONDS_A_CALL + (n_steps + _STEPS_A_PROBE) * _SECONDS_A_PAIR * n_items**2


def _ranges(n_items: int) -> Iterator[tuple[int, int]]:
    """Smallest and largest sizes of the sets that are bounded together."""
    first = 1
    while first <= n_items:
        last = min(n_items, max(first, int(first * _RATIO)))
        yield first, last
        first = last + 1


def distinct_blocks(problem: DistinctDraws) -> kernels.Blocks:
    """Distinct clusters of the draws, with the weights of the draws that have them."""
    n, labels = problem.n, problem.labels
    table = np.arange(problem.n_items + 1.0)
    table[1:] *= np.log2(table[1:])
    packed, weights = [], []
    for label in range(int(labels.max()) + 1):
        inside = labels == label
        n_members = inside.sum(axis=1)
        present = n_members > 0
        packed.append(np.packbits(inside[present], axis=1))
        weights.append(problem.weights[present])
    rows, weight = np.concatenate(packed), np.concatenate(weights) / problem.weights.sum()
    distinct, first, which = np.unique(_as_keys(rows), return_index=True, return_inverse=True)
    weight = 2 * np.bincount(which, weights=weight, minlength=distinct.size)
    inside = np.unpackbits(rows[first], axis=1, count=n).astype(bool)
    alone = inside.sum(axis=1) == 1
    own = np.zeros(n)
    np.add.at(own, np.nonzero(inside[alone])[1], -weight[alone])
    own *= table[problem.multiplicity]
    inside, weight = inside[~alone], weight[~alone]
    block, item = np.nonzero(inside)
    by_item = np.argsort(item, kind="stable")
    order = _similar_first(problem.similarity)
    bits = np.packbits(inside[:, order], axis=1, bitorder="little")
    _, byte = at_byte = np.nonzero(bits)
    return kernels.Blocks(
        ends=np.cumsum(inside.sum(axis=1)),
        items=item.astype(np.int32),
        place=np.argsort(order).astype(np.int32),
        byte_ends=np.cumsum((bits > 0).sum(axis=1)),
        bytes=(256 * byte + bits[at_byte]).astype(np.int32),
        item_ends=np.cumsum(inside.sum(axis=0)),
        of_item=block[by_item].astype(np.int32),
        weights=weight,
        multiplicity=problem.multiplicity,
        own=own,
        table=table,
    )


def _as_keys(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Leaf:
    """Sets of some sizes that have all `chosen` items and else `free` ones.

    Of each cluster of the incumbent they have from `low` to `high` items. Besides, a quadratic minorant of what they
    cost beyond their items' shares, without the term of their size; what each item sees of the others (n, n), which the
    minorant is made for; and prices that bound it, with the order of what the others cost each item.
    """

    free: Positions
    chosen: Flags
    first_size: int
    last_size: int
    low: Floats
    high: Floats
    base: float
    linear: Floats
    quadratic: Floats
    sees: npt.NDArray[np.float32]
    prices: npt.NDArray[np.float32]
    rankings: npt.NDArray[np.int16]
    length: float = _FIRST_LENGTH  # of the next steps of prices
    short: float = np.inf  # bits by which the bound of all falls short for these sets

    def within(self, kept: Flags, entered: Flags, multiplicity: Integers) -> _Leaf:
        """The sets that have the free items that `entered`, and besides the chosen ones only those `kept`."""
        chosen = self.chosen.copy()
        chosen[self.free[entered]] = True
        added = multiplicity[self.free[entered]].astype(float)
        products = self.quadratic[:, entered] @ added
        place = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int16)
        rankings = place[self.rankings[kept]]
        return replace(
            self,
            free=self.free[kept],
            chosen=chosen,
            base=self.base + float(added @ (self.linear[entered] - products[entered])),
            linear=self.linear[kept] - 2 * products[kept],
            quadratic=np.ascontiguousarray(self.quadratic[np.ix_(kept, kept)]),
            prices=np.ascontiguousarray(self.prices[np.ix_(kept, kept)]),
            rankings=rankings[rankings >= 0].reshape(len(rankings), len(rankings)),
        )


def _nearest_shares(point: Floats, sets: npt.NDArray[np.bool_], costs: Floats, multiplicity: Integers) -> Floats:
    """The shares (n,) nearest to a point, squares divided by multiplicities, of which no set (S, n) has above its cost.

    Lawson and Hanson's least distance programming finds the sets that limit them. The equations of these are then
    solved by themselves, as the former loses digits with the distance.
    """
    scale = np.sqrt(multiplicity)
    system = np.vstack([-scale[:, np.newaxis] * sets.T, sets @ point - costs])
    limiting = nnls(system, np.append(np.zeros(scale.size), 1.0))[0] > 0
    matrix = sets[limiting].astype(float)
    above = matrix @ point - costs[limiting]
    return point - multiplicity * (matrix.T @ np.linalg.lstsq(matrix * multiplicity @ matrix.T, above)[0])


class _Disagreement(NamedTuple):
    """Of a cluster's items in rows: their deviation, and a number in the middle."""

    cluster: int
    spread: float
    middle: float


class _SetsBound:
    """Shares of the items in the minimum, and by how much sets cost less.

    Attributes
    ----------
    best : float
        Greatest lower bound of the minimum found, in bits, summed over items.
    """

    def __init__(self, problem: DistinctDraws, incumbent: Labels, budget: Budget) -> None:
        self._budget = budget
        self._blocks = distinct_blocks(problem)
        self.n, self.n_items = problem.n, problem.n_items
        self._entropy = problem.entropy * problem.n_items
        self._multiplicity = problem.multiplicity
        self._similarity = problem.similarity
        self.sets: list[Flags] = []
        self._costs: list[float] = []
        self._known: set[bytes] = set()
        for label in range(int(incumbent.max()) + 1):
            self._add(incumbent == label)
        self._group = incumbent
        self._n_groups = len(self.sets)
        self.loss = self._entropy + sum(self._costs)
        self._closed = _CLOSED * max(self.loss, _LEAST_LOSS)
        self._centre = np.empty(self.n)
        kernels.share_out(self._blocks, incumbent, self._centre)
        self.shares = self._centre.copy()
        self.best = -np.inf
        self.n_nodes = 0
        self._starts = self._first_starts(problem)

    def _add(self, members: Flags) -> bool:
        key = members.tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        self.sets.append(members.copy())
        self._costs.append(kernels.cost(self._blocks, members))
        return True

    def _first_starts(self, problem: DistinctDraws) -> list[Flags]:
        """Clusters of some draws, each with another item."""
        draws = np.linspace(0, len(problem.labels) - 1, min(_N_STARTS, len(problem.labels))).astype(int)
        items = np.linspace(0, self.n - 1, draws.size).astype(int)
        return [problem.labels[t] == problem.labels[t, i] for t, i in zip(draws, items, strict=True)]

    def _root(self, first: int, last: int) -> _Leaf:
        """All sets of some sizes."""
        everything = np.arange(self.n)
        itself = np.eye(self.n, dtype=np.float32)
        more = (1 - itself) * self._similarity
        missing = np.maximum((first + last) / 2 - self._multiplicity, 0)
        added = missing / np.maximum(more @ self._multiplicity, 1e-6)
        return self._bend(
            _Leaf(
                free=everything,
                chosen=np.zeros(self.n, bool),
                first_size=first,
                last_size=last,
                low=np.zeros(self._n_groups),
                high=self._counts(everything),
                base=0.0,
                linear=np.empty(0),
                quadratic=np.empty((0, 0)),
                sees=np.minimum(itself + added[:, np.newaxis] * more, 1).astype(np.float32),
                prices=np.zeros((self.n, self.n), np.float32),
                rankings=np.argsort(1 - itself, axis=1, kind="stable").astype(np.int16),
            )
        )

    def fit(self) -> None:
        """Fit the shares to sets that cost less, until none is found."""
        n_sets = 0
        while self._descend() or len(self.sets) > n_sets:
            n_sets = len(self.sets)
            self._budget.spend(_SECONDS_A_FIT)
            sets, costs = np.array(self.sets), np.array(self._costs)
            self.shares = _nearest_shares(self._centre + self._multiplicity / _PULL, sets, costs, self._multiplicity)
            above = (sets @ self.shares - costs) / (sets @ self._multiplicity)
            self.shares -= max(above.max(), 0.0) * self._multiplicity

    def _descend(self) -> bool:
        """Look for sets that cost less than their items' shares."""
        room = np.array(self._costs) - np.array(self.sets) @ self.shares
        nearest = [self.sets[s] for s in np.argsort(room, kind="stable")[:_N_STARTS]]
        found = False
        for start in [*self._starts, *nearest]:
            self._budget.spend(_SECONDS_A_CALL + _SECONDS_A_MEMBER * self._blocks.items.size)
            members = start.copy()
            kernels.descend(self._blocks, self.shares, members)
            if kernels.cost(self._blocks, members) < self.shares[members].sum() - self._closed:
                found |= self._add(members)
        self._starts = []
        return found

    def run(self) -> Iterator[None]:
        """Raise the bound, one node at a time."""
        found = True
        while found:
            self.fit()
            found = yield from self._prove()

    def _prove(self) -> Generator[None, None, bool]:
        """Work on the leaf that falls short most; return whether a set was found that costs less than its shares.

        It ends if the leaves take more than a part of the memory budget.
        """
        number, held = count(), _BYTES_A_PAIR_OF_A_LEAF * self.n**2 / memory.SHARE_HELD
        heap = [(-np.inf, next(number), self._root(*sizes)) for sizes in _ranges(self.n_items)]
        while heap:
            self._note(-heap[0][0])
            if not memory.fits(held * len(heap)):
                return False
            left = self._work(heappop(heap)[2])
            if left is None:
                return True
            for child in left:
                heappush(heap, (-child.short, next(number), child))
            yield
        self._note(self._closed)
        return False

    def _note(self, short: float) -> None:
        self.best = max(self.best, self._entropy + float(self.shares.sum()) - short)

    def _work(self, leaf: _Leaf) -> list[_Leaf] | None:
        """Bound a leaf; return what is left of it, divided, or None if a set was found that costs less."""
        self.n_nodes += 1
        before, allowed = leaf.short, self._closed / self.n_items
        best, step, changes = -np.inf, _STEP, 0
        probed: kernels.State
        while True:
            box = self._box(leaf)
            n_chosen = int(self._multiplicity[leaf.chosen].sum())
            first = max(leaf.first_size, n_chosen + int(box.low.sum()), 1)
            last = min(leaf.last_size, n_chosen + int(box.high.sum()))
            if first > last or (box.low > box.high).any():
                return []
            in_all = (box.low == self._counts(leaf.free))[box.group]
            in_none = self._multiplicity[leaf.free] > box.high[box.group]
            if (in_all & in_none).any():
                return []
            if (in_all | in_none).any():
                leaf, best = leaf.within(~(in_all | in_none), in_all, self._multiplicity), -np.inf
                continue
            if leaf.free.size == 0:
                beyond = kernels.cost(self._blocks, leaf.chosen) - self.shares[leaf.chosen].sum()
                if beyond + allowed * n_chosen >= 0:
                    return []
                self._add(leaf.chosen)
                return None
            state, value, length = self._raise(leaf, box, first, last, n_chosen, allowed)
            in_all, in_none = state.outside >= 0, state.inside >= 0
            if value >= 0 or (in_all & in_none).any():
                return []
            alive = np.flatnonzero(state.least < 0)
            sizes = first + alive
            short = self._closed + float(np.max(-state.least[alive] * self.n_items / sizes))
            leaf = replace(
                leaf,
                first_size=int(sizes[0]),
                last_size=int(sizes[-1]),
                prices=state.prices.astype(np.float32),
                rankings=state.rankings,
                length=length,
                short=short,
            )
            if (in_all | in_none).any():
                leaf, best = leaf.within(~(in_all | in_none), in_all, self._multiplicity), -np.inf
                continue
            if value > best:
                gain, missing = value - best, -value
                good, best, probed, step = leaf, value, state, _STEP
                begun = leaf.free.size < self.n and short < _ENOUGH * before
                if self._numbers(good, state).spread > _FAR * last:
                    break
                if changes == _CHANGES or (gain < _WORTH * missing if changes else begun):
                    break
            else:
                good = replace(good, first_size=leaf.first_size, last_size=leaf.last_size)
                step *= _STEP
                if changes == _CHANGES or step < _LAST_STEP:
                    break
            changes += 1
            leaf = self._rebent(good, probed.means, step)
        return self._branch(good, probed)

    def _raise(
        self, leaf: _Leaf, box: kernels.Box, first: int, last: int, n_chosen: int, allowed: float
    ) -> tuple[kernels.State, float, float]:
        n = leaf.free.size
        multiplicity = self._multiplicity[leaf.free].astype(np.float64)
        minorant = kernels.Minorant(leaf.linear + allowed, leaf.quadratic, multiplicity)
        least = np.full(last - first + 1, -np.inf)
        state = kernels.State(
            leaf.prices.astype(np.float64), leaf.rankings.copy(), np.zeros((n, n)), least, np.empty(n), np.empty(n)
        )
        starts = leaf.base + allowed * n_chosen + self._blocks.table[first : last + 1]
        sizes = minorant, box, starts, first - n_chosen, 0.0
        length, n_steps = kernels.raise_bound(*sizes, _MARGIN * self.loss, leaf.length, _N_STEPS, state)
        self._budget.spend(_seconds_a_raise(n, n_steps))
        return state, kernels.probe(*sizes, state), length

    def _counts(self, items: Positions | Flags) -> Floats:
        """How many of some items each cluster of the incumbent has."""
        return np.bincount(self._group[items], self._multiplicity[items], self._n_groups).astype(float)

    def _box(self, leaf: _Leaf) -> kernels.Box:
        """How many free items the sets of a leaf have of each cluster."""
        chosen, free = self._counts(leaf.chosen), self._counts(leaf.free)
        low, high = np.maximum(leaf.low - chosen, 0), np.minimum(leaf.high - chosen, free)
        return kernels.Box(self._group[leaf.free], low, high, self._multiplicity[leaf.free].astype(np.float64))

    def _numbers(self, leaf: _Leaf, state: kernels.State) -> _Disagreement:
        """The cluster of whose items rows have the most different numbers."""
        box = self._box(leaf)
        share = np.diagonal(state.means)
        multiplicity = self._multiplicity[leaf.free]
        of_group = (box.group[:, np.newaxis] == np.arange(self._n_groups)) * multiplicity[:, np.newaxis]
        found = state.means @ of_group / np.maximum(share, _TINY)[:, np.newaxis]
        weight = share * multiplicity / max(float(share @ multiplicity), _TINY)
        mean = weight @ found
        spread = np.where(box.low < box.high, np.sqrt(np.maximum(weight @ found**2 - mean**2, 0)), 0.0)
        g = int(np.argmax(spread))
        middle = np.clip(np.floor(mean[g]), box.low[g], max(box.high[g] - 1, box.low[g]))
        return _Disagreement(g, float(spread[g]), float(middle + self._counts(leaf.chosen)[g]))

    def _branch(self, leaf: _Leaf, state: kernels.State) -> list[_Leaf]:
        """Divide a leaf by how many items of a cluster its sets have, if rows do not agree on it; else by an item.

        It is the item without which, and with which, the bound rises most.
        """
        numbers = self._numbers(leaf, state)
        if numbers.spread > _SPREAD:
            low, high = leaf.low.copy(), leaf.high.copy()
            low[numbers.cluster], high[numbers.cluster] = numbers.middle + 1, numbers.middle
            return [replace(leaf, high=high), replace(leaf, low=low)]
        share = np.diagonal(state.means)
        low = min(state.inside.min(), state.outside.min())
        inside, outside = np.minimum(state.inside, 0) - low, np.minimum(state.outside, 0) - low
        rise = share * (1 - share) * (inside + outside - 1e-3 * low) + 0.01 * np.minimum(inside, outside)
        asymmetry = np.abs(state.means - state.means.T).sum(axis=1)  # where no item is in some rows only
        chosen = np.zeros(leaf.free.size, bool)
        chosen[np.argmax(rise + 1e-9 * asymmetry)] = True
        return [leaf.within(~chosen, entered, self._multiplicity) for entered in (chosen, np.zeros_like(chosen))]

    def _bend(self, leaf: _Leaf) -> _Leaf:
        """A leaf with another minorant, for what its items see."""
        n = leaf.free.size
        self._budget.spend(_seconds_a_bend(self._blocks.items.size * n / self.n))
        out = kernels.Minorant(np.empty(n), np.empty((n, n)), np.empty(n))
        base = kernels.bend(self._blocks, self.shares, leaf.free, leaf.chosen, leaf.sees, out)
        return replace(leaf, base=base, linear=out.linear, quadratic=out.quadratic)

    def _rebent(self, leaf: _Leaf, means: Floats, step: float) -> _Leaf:
        """A leaf with another minorant, for what its items see in the means."""
        share = np.diagonal(means)
        rows = share > 0
        weight = share[rows, np.newaxis]
        places = np.ix_(leaf.free[rows], leaf.free)
        sees = leaf.sees.copy()
        sees[places] += step * (means[rows] - weight * sees[places]) / (weight + _SEEN)
        return self._bend(replace(leaf, sees=sees))
