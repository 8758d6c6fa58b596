"""The forms of a search: over the draws themselves, and for Binder's loss over their similarity matrix."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_rows, smallest_dtype
from posterior_consensus.kernels import cells, pair_search, search, tables
from posterior_consensus.kernels.loss import LinearLoss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.search.trees import cut, tree

_SMALL = 40  # draws on which a run begins, and on which the best partition is taken apart again
_MIDDLE = 128  # draws between the small sample and all of them
_MANY = 1024  # draws above which a linear loss has this middle, too
_CHAINED = 5000  # draws up to which chains of moves are tried on all of them
_MOST_IN_TREE = 2000  # items of which a tree is made
_CUTS = 16  # numbers of clusters into which it is cut
_PAIRS_OF_DRAWS = 8  # from which is estimated how many cells of a search's tables are not zero
WORK_FOR_LITTLE = 2e7  # nanoseconds, roughly, that a search of very few labels takes at least
WORK_A_LABEL = 25.0  # the same for each label of many
_HARDER = 5.0, 8.0  # how many times the two, for a loss that is not linear
_FAR = 5  # times as many clusters as any draw has: Binder's loss was seen to ask for four times, VI for fewer
_CALL = 5e4  # nanoseconds that a search from a partition takes at least
_COLUMNS = 16  # clusters that double what a scan takes
_NEAR = 0.003  # relative difference from the least loss up to which a search goes on without approximation
_SPARSE_ROW, _SPARSE_CELL = 100, 4  # cells of dense tables that take as long as a sparse row and one of its cells


AnyDraws = cells.Draws | cells.SparseDraws


class Found(NamedTuple):
    """A partition at which a search ended."""

    labels: Labels
    value: float  # expected loss, but for its scale
    in_one: float  # the same of the partition of one cluster
    tally: npt.NDArray[np.int64]  # scans, moves, merges, chains, zealous updates, splits
    work: float = 0.0  # nanoseconds, roughly, on one thread: what effort is counted in

    def then(self, later: Found) -> Found:
        """Where a search that went on from here ended, with the work of both."""
        return later._replace(tally=self.tally + later.tally, work=self.work + later.work)


class Limits(NamedTuple):
    """Least and largest number of clusters."""

    fewest: int
    most: int


class OnDraws:
    """Search over draws: begun on a small sample of them, continued on a larger one, ended on all."""

    at_once = 3  # runs between two looks at whether to stop: not the number of threads, on which nothing may depend
    explores_all = False
    is_sum = True  # over clusters
    is_capped = False  # by the memory budget, where more clusters may lower the loss
    work_for_little = WORK_FOR_LITTLE
    _scan, _union = 2.5, 1.0  # nanoseconds for a label that is looked at, and for two clusters in a draw

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        self._draws = draws
        self._given, self._loss = loss, loss.arrays(draws.n_items)
        sparse = isinstance(self._loss, LinearLoss) and limits.fewest == 1 and is_sparse(draws)
        self._kind = cells.SparseDraws if sparse else cells.Draws
        self.limits = limits
        self.work_a_label = WORK_A_LABEL * (1 + draws.n_clusters.mean() / _COLUMNS if sparse else 1.0)
        if not sparse:
            self.check_memory(limits.fewest)
            room = memory.budget() // self._bytes_a_cluster
            self.limits = limits._replace(most=min(limits.most, room))
            self.is_capped = room < min(limits.most, _FAR * draws.most_clusters if self.is_sum else limits.most)
        self._stop = stop
        self._all = self._kind(draws.labels, draws.starts, draws.weights)

    @property
    def _bytes_a_cluster(self) -> int:
        return 4 * int(self._draws.starts[-1])

    def check_memory(self, n_clusters: int) -> None:
        """Refuse what the dense tables of so many clusters do not leave room for."""
        size = self._bytes_a_cluster * n_clusters
        memory.check(size, f"A search among {n_clusters} clusters", "Thin the draws, or ask for fewer clusters.")

    @cached_property
    def _middle(self) -> AnyDraws:
        return self._sample((np.arange(_MIDDLE) + 0.5) / _MIDDLE)

    def explore(self, order: npt.NDArray[Any], random: npt.NDArray[np.float64], from_draw: bool) -> Found:
        """Allocate the items in this order and search from there, without using all draws."""
        middle = self._middle if self._draws.n_draws > _MANY else None
        return self._explore(np.full(order.size, -1, np.int32), order, random, middle)

    def polish(self, labels: Labels) -> Found:
        """Search from a partition, on all draws."""
        effort = 1 if self._draws.n_draws <= _CHAINED else 0
        return self._settle(self._all, labels, np.arange(labels.size), effort)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, of which -1 stands for items to allocate in this order, on all draws.

        Most restarts lead back to where they came from: once scans of the items do, the search is at its end.
        """
        found = self._settle(self._all, labels, order, effort=-1)
        if any(np.array_equal(found.labels, known.labels) for known in elite):
            return found
        return found.then(self._settle(self._all, found.labels, order, effort=1))

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items that item i is with in the draw at this quantile of the weights."""
        labels = self._draws.labels[self._draws.samples.at_quantiles(quantile)]
        return np.asarray(labels == labels[i])

    def terms(self, labels: Labels) -> npt.NDArray[np.float64]:
        """What each cluster adds to the expected loss, but for its scale, of the items whose label is not -1."""
        return np.asarray(tables.cluster_terms(self._all, self._loss, labels, int(labels.max()) + 1))

    def polish_for(self, labels: Labels, rows: npt.NDArray[np.intp], weights: npt.NDArray[np.float64]) -> Labels:
        """Search from a partition, on some draws with weights of any sum.

        With a loss that is not linear the partition may be no better than `labels`: they are not compared exactly.
        """
        effort = 1 if rows.size <= _CHAINED else 0
        draws = self._some(rows, weights / weights.sum())
        return self._settle(draws, labels, np.arange(labels.size), effort).labels

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: npt.NDArray[np.float64]) -> Found:
        """Dissolve and split clusters of a partition, on a sample of the draws."""
        return self._settle(self._sample(random[:_SMALL]), labels, order, effort=2)

    def _explore(
        self, start: Labels, order: npt.NDArray[Any], random: npt.NDArray[np.float64], middle: AnyDraws | None
    ) -> Found:
        found = self._settle(self._sample(random[:_SMALL]), start, order, effort=0)
        if middle is None:
            return found
        return found.then(self._settle(middle, found.labels, order, effort=1))

    def _sample(self, quantiles: npt.NDArray[np.float64]) -> AnyDraws:
        """The draws at these quantiles of their weights, or all if there are no more."""
        if self._draws.n_draws <= quantiles.size:
            return self._all
        times = np.bincount(self._draws.samples.at_quantiles(quantiles))
        rows = np.flatnonzero(times)
        return self._some(rows, times[rows] / quantiles.size)

    def _some(self, rows: npt.NDArray[np.intp], weights: npt.NDArray[np.float64]) -> AnyDraws:
        starts = np.concatenate([[0], np.cumsum(self._draws.n_clusters[rows])])
        return self._kind(self._draws.labels[rows], starts, weights)

    def _settle(
        self, draws: AnyDraws, labels: Labels, order: npt.NDArray[Any], effort: int, exactly: bool = False
    ) -> Found:
        partition = labels.copy()
        value, in_one, tally = search.settle(
            draws, self._loss, partition, order, *self.limits, exactly, effort, self._stop
        )
        n_clusters = int(partition.max()) + 1
        columns = 0 if isinstance(draws, cells.SparseDraws) else n_clusters
        scans = draws.labels.size * (1.0 + columns / _COLUMNS) * (1 + tally[search.SCANS])
        unions = draws.weights.size * columns**2 / 2 * ((effort >= 0) + tally[search.MERGES])
        return Found(numbered(partition), value, in_one, tally, _CALL + self._scan * scans + self._union * unions)


def is_sparse(draws: PartitionDraws) -> bool:
    """Whether few enough cells of the tables are not zero: those of a draw with another one tell how many."""
    rows = np.linspace(0, draws.n_draws - 1, 2 * _PAIRS_OF_DRAWS).astype(np.intp)
    labels, n_clusters = draws.drawn.take(rows).values, draws.n_clusters[rows]
    cells = 0.0
    for one, other in np.arange(rows.size).reshape(-1, 2):
        pairs = labels[one].astype(np.int64) * int(n_clusters[other]) + labels[other]
        met = np.bincount(np.unique(pairs) // int(n_clusters[other]))
        cells += met[labels[one]].mean() / _PAIRS_OF_DRAWS  # of an item's row
    return bool(_SPARSE_ROW + _SPARSE_CELL * cells < draws.n_clusters.mean())


class OnRatios(OnDraws):
    """The same for a loss that is not linear in A and B: it has more local optima, and each scan takes longer."""

    at_once = 2
    is_sum = False
    work_for_little = _HARDER[0] * WORK_FOR_LITTLE
    _scan, _union = 5.0, 7.0

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        super().__init__(draws, loss, limits, stop)
        self.work_a_label = _HARDER[1] * WORK_A_LABEL

    def cuts(self) -> list[Labels]:
        """Cuts of the tree of average linkage to search from.

        They lead to better local optima than allocation does. The tree is cut at three numbers of clusters: that of
        least loss; twice that, because merging clusters that are too fine works better than splitting those that are
        too coarse; and the median over the draws.
        """
        if not 1 < self._draws.n_items <= _MOST_IN_TREE:
            return []
        fewest, most = self.limits.fewest, min(self.limits.most, self._draws.n_items)
        merges = tree(self._draws.similarity(), "average")
        drawn = np.clip(self._draws.n_clusters, fewest, most)
        numbers = np.unique(np.geomspace(fewest, drawn.max(), _CUTS).round().astype(np.int64))
        losses = [self._value(labels.astype(np.int32), self._middle) for labels in cut(merges, numbers)]
        best = int(numbers[np.argmin(losses)])
        return list(cut(merges, np.unique([best, min(2 * best, most), int(np.median(drawn))])).astype(np.int32))

    def from_cut(self, labels: Labels) -> Found:
        """Search from a cut, without using all draws."""
        return self._settle(self._middle, labels, np.arange(labels.size), effort=1)

    def explore(self, order: npt.NDArray[Any], random: npt.NDArray[np.float64], from_draw: bool) -> Found:
        """Search from a draw, or from an allocation of the items in this order, without using all draws.

        Allocation minimises B + C - 2 A and reaches few local optima. Each run takes another sample of draws: with one
        sample for all, a local optimum whose loss is overestimated on it would never be found.
        """
        start = np.full(order.size, -1, np.int32)
        if from_draw:
            row = int(self._draws.samples.at_quantiles(random[-1]))
            start = self._draws.labels[row].astype(np.int32)
        middle = self._sample((np.arange(_MIDDLE) + random[-2]) / _MIDDLE)
        return self._explore(start, order, random, middle)

    def value(self, labels: Labels) -> float:
        """Expected loss, but for its scale."""
        return self._value(labels, self._all)

    def polish(self, labels: Labels) -> Found:
        """Search from a partition, on all draws."""
        return self._settle(self._all, labels, np.arange(labels.size), effort=1, exactly=True)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, without approximation only if it comes near the least expected loss."""
        found = super().restart(labels, order, elite)
        least = elite[0].value
        return found if found.value > least + _NEAR * abs(least) else found.then(self.polish(found.labels))

    def along_sizes(self, order: npt.NDArray[Any], random: npt.NDArray[np.float64], price: float) -> Found:
        """Search for the linear loss `price` x B - A, without using all draws.

        The loss asks for some B, the sum of h over the sizes of the clusters. What is best for one B may lie far from
        what is best for another, and single moves do not lead there.
        """
        linear = replace(self._given, numerator={"A": -1.0, "B": price}, denominator={})
        problem = OnDraws(self._draws, linear, self.limits, self._stop)
        return problem.explore(order, random, from_draw=False)

    def _value(self, labels: Labels, draws: AnyDraws) -> float:
        value: float = tables.expected_loss(draws, self._loss, labels, int(labels.max()) + 1)
        return value


def numbered(partition: Labels) -> Labels:
    """Number the clusters by first appearance, without the checks that a user's labels need."""
    codes = partition[np.newaxis].astype(smallest_dtype(partition.size))
    return canonical_rows(codes, partition.size)[0][0].astype(np.int32)


class OnPairs:
    """Search over the similarity matrix, which holds all that Binder's loss asks of the draws."""

    at_once = 10  # a run takes little, and Binder's loss has many partitions that are nearly the best
    explores_all = True
    is_sum = True
    work_for_little, work_a_label = WORK_FOR_LITTLE, WORK_A_LABEL

    def __init__(self, draws: PairSource, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        self.limits = limits
        self._stop = stop
        self._similarity = draws.similarity()
        np.fill_diagonal(self._similarity, 0.0)
        self._costs = pair_search.Costs(loss.numerator["A"], loss.numerator["B"])
        together = float(self._similarity.sum()) / 2
        self._apart = loss.numerator["C"] * together  # the expected loss of single items
        self._in_one = self._apart + self._costs.a * together + self._costs.b * loss.h(draws.n_items)[-1]

    def explore(self, order: npt.NDArray[Any], random: npt.NDArray[np.float64], from_draw: bool) -> Found:
        """Allocate the items in this order and search from there."""
        return self._settle(np.full(order.size, -1, np.int32), order)

    def polish(self, labels: Labels) -> Found:
        """Search from a partition."""
        return self._settle(labels, np.arange(labels.size))

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: npt.NDArray[np.float64]) -> Found:
        """Search from a partition, its clusters dissolved and split in this order of the items."""
        return self._settle(labels, order)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, of which -1 stands for items to allocate in this order."""
        return self._settle(labels, order)

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items whose similarity to item i is above this, and itself."""
        near: npt.NDArray[np.bool_] = self._similarity[i] > quantile
        near[i] = True
        return near

    def terms(self, labels: Labels) -> npt.NDArray[np.float64]:
        """What each cluster adds to the expected loss, but for its scale, of the items whose label is not -1."""
        items = np.flatnonzero(labels >= 0)
        items = items[np.argsort(labels[items], kind="stable")]
        sizes = np.bincount(labels[items])
        begins = np.minimum(np.cumsum(sizes) - sizes, items.size - 1)
        links = np.add.reduceat(self._similarity[np.ix_(items, items)], begins, axis=0)
        together = np.add.reduceat(links, begins, axis=1).diagonal() / 2
        return np.where(sizes > 0, self._costs.a * together + self._costs.b * (sizes * (sizes - 1) / 2), 0.0)

    def _settle(self, labels: Labels, order: npt.NDArray[Any]) -> Found:
        partition = labels.copy()
        value, tally = pair_search.settle_pairs(
            self._similarity, self._costs, partition, order, *self.limits, self._stop
        )
        work = _CALL + labels.size * (labels.size / 2 + tally[search.SCANS] * (partition.max() + 1))
        return Found(numbered(partition), self._apart + value, self._in_one, tally, work)
