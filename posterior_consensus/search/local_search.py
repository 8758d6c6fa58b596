"""Local search from one partition down to a local optimum, for each kind of loss and data.

Each step on the way down is a kernel, or a few lines around one, compiled by itself when it is first called: scans,
merges, chains of moves, rearrangements of clusters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, canonical_rows, smallest_dtype
from posterior_consensus.kernels.cells import WIDTH, Draws, SparseDraws, compact, searched, sparse_draws, tables_of
from posterior_consensus.kernels.clusters import merge, rearrange_one
from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss, is_linear
from posterior_consensus.kernels.moves import Course, allocate, move_chain, move_doubtful, open_clusters, scan
from posterior_consensus.kernels.pair_moves import (
    Costs,
    PairSearch,
    begin_pairs,
    chain_pairs,
    merge_pairs,
    open_pairs,
    rearrange_pairs,
    scan_pairs,
)
from posterior_consensus.kernels.tables import (
    CHAINS,
    CLUSTERS_FROM,
    MERGES,
    MOVES,
    SCANS,
    Scores,
    expected_losses,
    losses_of_tables,
    search_of,
    set_slopes,
    slopes_of,
)
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Limits, Problem
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.classical import cut, tree

AnyIntegers = npt.NDArray[np.integer[Any]]
Tally = npt.NDArray[np.int64]  # how many scans, moves, merges, chains, zealous updates and splits there were
Stop = npt.NDArray[np.uint8]  # (1,), which another thread may set to 1

# Relative errors of scores. An item is in doubt, and scored exactly, unless all other clusters are worse by more.
DOUBT = 1e-5  # from single precision
DOUBT_OF_FIRST_ORDER = 8.0  # times 1 / n, from the first order in A and B; chosen, not proven to bound it

SMALL = 40  # draws on which a run begins, and on which the best partition is rearranged
_MIDDLE = 128  # draws between the small sample and all of them
_MANY = 1024  # draws above which a linear loss has this middle, too
_CHAINED = 5000  # draws up to which chains of moves are tried on all of them
_PAIRS_OF_DRAWS = 8  # from which is estimated how many cells of a search's tables are not zero
_FAR = 5  # times as many clusters as any draw has: Binder's loss was seen to ask for four times, VI for fewer
_SPARSE_ROW, _SPARSE_CELL = 100, 4  # dense cells that take as long as one sparse row with one cell
_MOST_IN_TREE = 2000  # items of which a tree is made
_CUTS, _FEW_CUTS = 16, 4  # numbers of clusters into which it is cut; few for a linear loss
_LITTLE_TREE = 3e6  # pairs of labels up to which a search for a linear loss has a tree
_NEAR = 0.003  # relative difference from the minimum loss up to which a local optimum is confirmed

AnyDraws = Draws | SparseDraws


class Depth(IntEnum):
    """How deep a local search goes: each member adds a kind of moves to the previous one."""

    SCANS = 0
    MERGES = 1
    CHAINS = 2
    REARRANGEMENTS = 3  # clusters are dissolved (zealous updates) and split


class Optimum(NamedTuple):
    """A partition at which a local search ended, on all draws or on some of them, by which its values are then."""

    labels: Labels
    value: float  # expected loss, but for its scale
    in_one: float  # the same of the partition of one cluster
    tally: Tally

    def after(self, before: Optimum) -> Optimum:
        """The same, with the work that led to where the search began."""
        return self._replace(tally=before.tally + self.tally)


class Uniforms(NamedTuple):
    """Random numbers of a run, uniform from 0 to 1."""

    sample: npt.NDArray[np.float64]  # quantiles (SMALL,) of a small sample of the draws
    middle: float  # position of a larger sample's quantiles between their bounds
    start: float  # quantile of the draw to start from


class LocalSearch(ABC):
    """A local search: the starts of its runs, and their descent to a local optimum."""

    bytes_a_cluster: int  # what the tables take for each cluster
    is_capped = False  # whether the memory budget leaves out numbers of clusters at which the loss may be lower
    runs_a_check = 3  # runs between two checks of their agreement: no answer may depend on the number of threads
    always_rearranges = False  # whether each descent also dissolves and splits clusters, and takes all draws

    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.limits = problem.n_clusters  # fewer clusters where memory ends
        self._stop = stop

    @abstractmethod
    def _descend(self, labels: Labels, order: npt.NDArray[Any]) -> Optimum:
        """Search from a partition, of which -1 stands for items to allocate in this order."""

    def cuts(self) -> list[Labels]:
        """Partitions that a tree of the items leads to; none where other starts are as good."""
        return []

    def begin(self, order: npt.NDArray[Any], random: Uniforms, from_draw: bool) -> Optimum:
        """Search from an allocation of the items in this order, or from a draw, perhaps without using all draws."""
        return self._descend(np.full(order.size, -1, np.int32), order)

    def descend(self, labels: Labels) -> Optimum:
        """Search from a partition, on all draws."""
        return self._descend(labels, np.arange(labels.size))

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: Uniforms) -> Optimum:
        """Dissolve and split clusters of a partition, the items in this order, perhaps without using all draws."""
        return self._descend(labels, order)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Optimum]) -> Optimum:
        """Search from a partition, of which -1 stands for items to allocate in this order; `elite` is known."""
        return self._descend(labels, order)

    @abstractmethod
    def operations(self, n_clusters: int) -> float:
        """What a restart counts as in the budget, in comparisons of a label with a cluster: about one scan."""

    @abstractmethod
    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """Items that item i is often with, the fewer the larger this number from 0 to 1 or at random by it."""


class OnAll(ABC):
    """A search over all items of a problem, from partitions of a sample of them and of all."""

    limits: Limits  # as those of a local search
    bytes_a_cluster: int
    is_capped = False
    tally: Tally

    @abstractmethod
    def descend(self, of_sample: Labels, given: list[Labels]) -> Optimum:
        """Search from a partition of the sample, and from given ones, of all items or of the sample."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(Problem, ABC):
    """Some items of a problem, and some of its draws, as a problem of their own."""

    items: npt.NDArray[np.intp]  # positions among the items of the whole
    of: Problem  # the problem of all items

    @property
    def size(self) -> list[int]:
        """Number of items and of draws."""
        return [self.items.size, len(self.source.as_draws(lacking=True))]

    def part_of(self, labels: Labels) -> Labels:
        """A partition of all items, or of the sample, on the sample."""
        return labels if labels.size == self.items.size else canonical_labels(labels[self.items])

    @abstractmethod
    def on_all(self, executor: Executor, progressbar: bool) -> OnAll:
        """The search over all items that its best partition leads to."""


class OnDraws(LocalSearch):
    """Search over draws: begun on a small sample of them, continued on a larger one, ended on all."""

    def __init__(self, problem: Problem, stop: Stop) -> None:
        super().__init__(problem, stop)
        draws, loss = problem.source.as_draws(lacking=True), as_loss(problem.loss, kind=PartitionLoss)
        stored, limits, most_drawn = draws.backend, self.limits, draws.most_clusters
        sparse = loss.is_linear and is_sparse(draws, limits.fewest)
        self._draws = draws
        self._loss = loss.arrays(draws.n_items)
        self._kind = sparse_draws if sparse else Draws
        self.bytes_a_cluster = 4 * int(stored.starts[-1])  # in dense tables
        if not sparse:
            self.limits = limits_in_memory(self.bytes_a_cluster, limits, most_drawn)
            wanted = min(limits.most, _FAR * most_drawn) if loss.is_linear else limits.most
            self.is_capped = self.limits.most < wanted
        self._labels = searched(stored.values)
        self._scales = draws.relative_scales(loss)
        self._all = self._kind(self._labels, stored.starts, draws.weights * self._scales)

    def cuts(self) -> list[Labels]:
        """Cuts of the average-linkage tree to start from, if the tree costs little compared with a run."""
        n_items = self._draws.n_items
        if n_items == 1 or n_items * self._labels.size > _LITTLE_TREE or not memory.fits(8 * n_items**2):
            return []
        fewest, most = self.limits.fewest, min(self.limits.most, max(self._draws.most_clusters, self.limits.fewest))
        numbers = np.unique(np.geomspace(fewest, most, _FEW_CUTS).astype(np.int64))
        return list(cut(tree(self._draws.shared_similarity, "average"), numbers).astype(np.int32))

    def begin(self, order: npt.NDArray[Any], random: Uniforms, from_draw: bool) -> Optimum:
        """Search from a draw, or from an allocation of the items in this order, without using all draws."""
        start = np.full(order.size, -1, np.int32)
        if from_draw:
            start[:] = self._labels[self._draws.samples.at_quantiles(random.start)]
            if self._draws.lacks_items:  # those that the run lacks, or calls noise, are to be allocated
                start = np.maximum(start - CLUSTERS_FROM, -1).astype(np.int32)
        small, middle = self._sample(random.sample), self._middle_of_run(random)
        first = self._descend(start, order, small, Depth.MERGES)
        if middle is None:
            return first
        return self._descend(first.labels, order, middle, Depth.CHAINS).after(first)

    def _middle_of_run(self, random: Uniforms) -> AnyDraws | None:
        """The larger sample on which a run continues, or None if there are few draws."""
        return self._middle if self._draws.n_draws > _MANY else None

    @cached_property
    def _middle(self) -> AnyDraws:
        return self._sample((np.arange(_MIDDLE) + 0.5) / _MIDDLE)

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: Uniforms) -> Optimum:
        """Dissolve and split clusters of a partition, on a sample of the draws."""
        return self._descend(labels, order, self._sample(random.sample), Depth.REARRANGEMENTS)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Optimum]) -> Optimum:
        """Search from a partition, of which -1 stands for items to allocate in this order, on all draws.

        Most restarts lead back to where they came from: once scans of the items do, the search is at its end.
        """
        found = self._descend(labels, order, depth=Depth.SCANS)
        if any(np.array_equal(found.labels, known.labels) for known in elite):
            return found
        return self._descend(found.labels, order, depth=Depth.CHAINS).after(found)

    def operations(self, n_clusters: int) -> float:
        """What a restart counts as: a scan over so many clusters, or over the mean number in a draw if that is more."""
        return float(self._labels.size) * max(n_clusters, float(self._draws.backend.n_clusters.mean()))

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items that item i is with in the draw at this quantile of the weights."""
        labels = self._labels[self._draws.samples.at_quantiles(quantile)]
        if self._draws.lacks_items and labels[i] < CLUSTERS_FROM:
            return np.arange(labels.size) == i
        return np.asarray(labels == labels[i])

    def descend_on(self, labels: Labels, rows: npt.NDArray[np.intp], weights: npt.NDArray[np.float64]) -> Labels:
        """Search from a partition, on some draws with weights of any sum.

        With a loss that is not linear the partition may be no better than `labels`: they are not compared exactly.
        """
        return self._descend(labels, np.arange(labels.size), self._some(rows, weights / weights.sum())).labels

    def _sample(self, quantiles: npt.NDArray[np.float64]) -> AnyDraws:
        """The draws at these quantiles of their weights, or all if there are no more."""
        if self._draws.n_draws <= quantiles.size:
            return self._all
        times = np.bincount(self._draws.samples.at_quantiles(quantiles))
        rows = np.flatnonzero(times)
        return self._some(rows, times[rows] / quantiles.size)

    def _some(self, rows: npt.NDArray[np.intp], weights: npt.NDArray[np.float64]) -> AnyDraws:
        starts = np.concatenate([[0], np.cumsum(self._draws.backend.n_clusters[rows])])
        return self._kind(self._labels[rows], starts, weights * self._scales[rows])

    def _descend(
        self,
        labels: Labels,
        order: npt.NDArray[Any],
        draws: AnyDraws | None = None,
        depth: Depth | None = None,
        confirm: bool = False,
    ) -> Optimum:
        """Search on all draws or on some; without a depth, by chains of moves where these are not many."""
        partition, draws = labels.copy(), self._all if draws is None else draws
        if depth is None:
            depth = Depth.CHAINS if draws.weights.size <= _CHAINED else Depth.MERGES
        value, in_one, tally = descend_draws(
            draws,
            self._loss,
            partition,
            order,
            self.limits,
            self._stop,
            depth=depth,
            confirm=confirm,
            lacking=self._draws.lacks_items,
        )
        return Optimum(numbered(partition), value, in_one, tally)


class OnDrawsNonlinear(OnDraws):
    """Search over draws for a nonlinear loss: it has more local optima, and scans take longer."""

    runs_a_check = 2

    def cuts(self) -> list[Labels]:
        """Results of searches on some of the draws, started at cuts of the average-linkage tree.

        They lead to better local optima than allocation does. The tree is cut at three numbers of clusters: that of
        minimum loss; twice that, because merging clusters that are too fine works better than splitting those that are
        too coarse; and the median over the draws.
        """
        if not 1 < self._draws.n_items <= _MOST_IN_TREE:
            return []
        fewest, most = self.limits.fewest, min(self.limits.most, self._draws.n_items)
        merges = tree(self._draws.similarity(), "average")
        drawn = np.clip(self._draws.backend.n_clusters, fewest, most)
        numbers = np.unique(np.geomspace(fewest, drawn.max(), _CUTS).round().astype(np.int64))
        losses = []
        for labels in cut(merges, numbers).astype(np.int32):
            losses.append(self._value(labels, self._middle))
            if self._stop[0]:
                break
        best = int(numbers[np.argmin(losses)])
        chosen = cut(merges, np.unique([best, min(2 * best, most), int(np.median(drawn))])).astype(np.int32)
        order = np.arange(self._draws.n_items)
        return [self._descend(labels, order, self._middle, Depth.CHAINS).labels for labels in chosen]

    def _middle_of_run(self, random: Uniforms) -> AnyDraws:
        """Another sample for each run.

        Allocation minimizes B + C - 2 A and reaches few local optima. With one sample for all runs, a local optimum
        whose loss is overestimated on it would never be found.
        """
        return self._sample((np.arange(_MIDDLE) + random.middle) / _MIDDLE)

    def descend(self, labels: Labels) -> Optimum:
        """Search from a partition, on all draws, and confirm where it ends."""
        return self._descend(labels, np.arange(labels.size), depth=Depth.CHAINS, confirm=True)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Optimum]) -> Optimum:
        """Search from a partition, and confirm where it ends only if that is near the minimum expected loss."""
        found = super().restart(labels, order, elite)
        least = elite[0].value
        return found if found.value > least + _NEAR * abs(least) else self.descend(found.labels).after(found)

    def _value(self, labels: Labels, draws: AnyDraws) -> float:
        state = tables_of(draws, labels, int(labels.max()) + 1)
        return float(expected_losses(draws, self._loss, state)[0])


class OverSimilarities(LocalSearch):
    """Search over a similarity matrix, whose descents all take the same steps."""

    runs_a_check = 10  # a run takes little, and many partitions are nearly the best
    always_rearranges = True

    def __init__(self, problem: Problem, stop: Stop, similarity: Floats) -> None:
        super().__init__(problem, stop)
        self.similarity = similarity
        self.bytes_a_cluster = 8 * len(similarity)  # a sum of similarities for each item

    def operations(self, n_clusters: int) -> float:
        """What a restart counts as: the similarities are summed within each cluster, however many there are."""
        return float(len(self.similarity)) ** 2

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items whose similarity to item i is above this, and itself."""
        near: npt.NDArray[np.bool_] = self.similarity[i] > quantile
        near[i] = True
        return near


class OnPairs(OverSimilarities):
    """Search over the similarity matrix, which holds all that Binder's loss asks of the draws."""

    def __init__(self, problem: Problem, stop: Stop) -> None:
        super().__init__(problem, stop, problem.source.similarity())
        loss = as_loss(problem.loss, kind=PartitionLoss)
        np.fill_diagonal(self.similarity, 0.0)
        self._costs = Costs(loss.numerator["A"], loss.numerator["B"])
        together = float(self.similarity.sum()) / 2
        self._apart = loss.numerator["C"] * together  # the expected loss of single items
        self._in_one = self._apart + self._costs.a * together + self._costs.b * loss.h(len(self.similarity))[-1]

    def _descend(self, labels: Labels, order: npt.NDArray[Any]) -> Optimum:
        partition = labels.copy()
        value, tally = descend_pairs(self.similarity, self._costs, partition, order, self.limits, self._stop)
        return Optimum(numbered(partition), self._apart + value, self._in_one, tally)


class _DescentSteps(NamedTuple):
    """The steps over draws, or over pairs; a state that is returned may have more columns."""

    open_clusters: Callable[..., Any]
    scan: Callable[..., Any]
    merge: Callable[..., Any]
    move_chain: Callable[..., Any]
    rearrange: Callable[..., Any]


_OVER_DRAWS = _DescentSteps(open_clusters, scan, merge, move_chain, rearrange_one)
_OVER_PAIRS = _DescentSteps(open_pairs, scan_pairs, merge_pairs, chain_pairs, rearrange_pairs)


def descend_draws(
    draws: Draws | SparseDraws,
    loss: LinearLoss | GeneralLoss,
    partition: Labels,
    order: AnyIntegers,
    limits: tuple[int, int],
    stop: Stop,
    *,
    depth: Depth,
    confirm: bool,
    lacking: bool = False,
) -> tuple[float, float, Tally]:
    """Complete a partition and change it until no move of its kinds lowers the expected loss.

    The partition (n,) is changed in place; items of label -1 are to be allocated, in `order`, which has all items.
    `limits` are the least and the largest number of clusters. Sparse draws take a LinearLoss only. To `confirm`, the
    last scans score a loss that is not linear in A and B without approximation. Another thread may set `stop` (1,) to 1
    to have the partition as it is. Where it has more clusters than allowed, the smallest of them merge first, whatever
    that costs. If draws are `lacking` items, labels are those of :class:`RunsWithMissing`, the loss is linear, and
    draws are not sparse.

    Returned are the expected loss, but for the loss's scale; the same for the partition of one cluster; and how many
    scans, moves, merges, chains of moves, zealous updates and splits (6,) there were.
    """
    state = tables_of(draws, partition, WIDTH)
    slopes = slopes_of(loss, draws.weights.size, lacking)
    search = search_of(draws, loss, slopes, state, limits, stop)
    if (partition < 0).any():
        state = allocate(search, state, order)
    last_doubt = 0.0
    if not is_linear(loss):
        expected_losses(draws, loss, state)  # whose sums the steps change from here on
        last_doubt = DOUBT_OF_FIRST_ORDER / partition.size if confirm else 0.0
    state, tally = _take_steps(_OVER_DRAWS, search, state, order, last_doubt, depth, stop)
    return *losses_of_tables(draws, loss, state, slopes), tally


def descend_pairs(
    similarity: npt.NDArray[np.float64],
    costs: Costs,
    partition: Labels,
    order: AnyIntegers,
    limits: tuple[int, int],
    stop: Stop,
) -> tuple[float, Tally]:
    """Complete a partition and change it until no move of any kind lowers the expected Binder loss.

    The similarity (n, n) is symmetric, with a diagonal of zeros; the rest is as :func:`descend_draws` takes it. It
    returns the part of the expected loss that depends on the partition, but for the loss's scale, and the same counts.
    """
    fewest, most = limits
    search = PairSearch(similarity, costs, ROUNDING * partition.size, fewest, most, stop)
    state = begin_pairs(similarity, costs, partition, order, most)
    state, tally = _take_steps(_OVER_PAIRS, search, state, order, 0.0, Depth.REARRANGEMENTS, stop)
    partition[:] = state.partition
    links = state.links[state.partition, np.arange(partition.size)]
    scores = costs.a * links + costs.b * (state.sizes[state.partition] - 1)
    return 0.5 * np.cumsum(scores)[-1], tally  # np.sum adds in another order, and rounds otherwise


def descend_some(
    draws: Draws, loss: LinearLoss | GeneralLoss, partition: Labels, items: AnyIntegers, most: int
) -> None:
    """Move each of these items to where the expected loss is least, until none of them moves; the others stay.

    The partition is changed in place. The items move in their order, into at most so many clusters.
    """
    state = tables_of(draws, partition, WIDTH)
    slopes = slopes_of(loss, draws.weights.size)
    search = search_of(draws, loss, slopes, state, (1, most), np.zeros(1, np.uint8))
    moved = True
    while moved:
        expected_losses(draws, loss, state)  # whose sums the moves change
        now = set_slopes(loss, draws, state, slopes)
        course = Course(now, compact(draws, state), state.sizes.size, 0)
        for at in range(items.size):
            scores = Scores(np.zeros(1), np.full(1, -np.inf), np.zeros(1, np.int64), np.zeros((1, state.sizes.size)))
            state, course = move_doubtful(search, state, items[at : at + 1], scores, 0.0, course)
        moved = course.moved > 0


def _take_steps(
    steps: _DescentSteps, search: Any, state: Any, order: AnyIntegers, last_doubt: float, depth: Depth, stop: Stop
) -> tuple[Any, Tally]:
    """Change a partition of all items until nothing lowers its expected loss; return the state and the tally.

    Items are in doubt up to DOUBT, and up to `last_doubt` in the scans that confirm the end.
    """
    margins, targets = np.empty(order.size), np.zeros(order.size, np.int64)
    tally = np.zeros(6, np.int64)
    if _n_clusters(state) < search.fewest:
        state = steps.open_clusters(search, state, margins)
    doubt = DOUBT
    while stop[0] == 0 or _n_clusters(state) > search.most:
        state, moved = steps.scan(search, state, margins, targets, doubt)
        tally[SCANS] += 1
        tally[MOVES] += moved
        if moved == 0 and doubt < last_doubt:
            doubt = last_doubt
            continue
        doubt = DOUBT
        improved = moved > 0
        if not improved and (depth >= Depth.MERGES or _n_clusters(state) > search.most):
            n_merges = steps.merge(search, state)
            tally[MERGES] += n_merges
            improved = n_merges > 0
        if stop[0] != 0:  # a stopped scan leaves margins unset
            continue
        if not improved and depth >= Depth.CHAINS:
            improved = steps.move_chain(search, state, margins, targets)
            tally[CHAINS] += improved
        if not improved and depth >= Depth.REARRANGEMENTS:
            state, improved = steps.rearrange(search, state, order, margins, tally)
        if not improved:
            break
    return state, tally


def _n_clusters(state: Any) -> int:
    """How many columns have a cluster."""
    return int(np.count_nonzero(state.sizes))


def limits_in_memory(bytes_a_cluster: int, limits: Limits, drawn: int) -> Limits:
    """The limits, with no more clusters than the budget has tables for; see :func:`check_memory_of_tables`."""
    check_memory_of_tables(bytes_a_cluster, limits.fewest, limits, drawn)
    return limits._replace(most=min(limits.most, memory.budget() // bytes_a_cluster))


def check_memory_of_tables(bytes_a_cluster: int, n_clusters: int, limits: Limits, drawn: int) -> None:
    """Raise MemoryError if the tables of this many clusters exceed the budget; it names one that is enough.

    `drawn` is the largest number of clusters in any draw.
    """
    if not memory.fits(bytes_a_cluster * n_clusters):
        enough = max(n_clusters, min(limits.most, drawn + 1))
        what = f"A search among {enough} clusters"
        memory.check(bytes_a_cluster * enough, what, "Take fewer partitions, or ask for fewer clusters.")


def numbered(partition: Labels) -> Labels:
    """Number the clusters by first appearance, without the checks that a user's labels need."""
    codes = partition[np.newaxis].astype(smallest_dtype(partition.size))
    return canonical_rows(codes, partition.size)[0][0].astype(np.int32)


def is_sparse(draws: PartitionDraws, fewest: int = 1) -> bool:
    """Whether few enough cells of the tables are not zero; of few clusters that are requested there are few columns."""
    if draws.lacks_items:
        return False
    columns = float(draws.backend.n_clusters.mean())
    if fewest > 1:
        columns = min(columns, fewest)
    return bool(columns > _SPARSE_ROW and _columns_like_sparse(draws) < columns)


def _columns_like_sparse(draws: PartitionDraws) -> float:
    """Estimate how many dense cells take as long as a sparse row, from tables of some draws with other draws."""
    rows = np.linspace(0, draws.n_draws - 1, 2 * _PAIRS_OF_DRAWS).astype(np.intp)
    labels, n_clusters = draws.backend.take(rows).values, draws.backend.n_clusters[rows]
    cells = 0.0
    for one, other in np.arange(rows.size).reshape(-1, 2):
        pairs = labels[one].astype(np.int64) * int(n_clusters[other]) + labels[other]
        met = np.bincount(np.unique(pairs) // int(n_clusters[other]))
        cells += met[labels[one]].mean() / _PAIRS_OF_DRAWS  # of an item's row
    return _SPARSE_ROW + _SPARSE_CELL * cells
