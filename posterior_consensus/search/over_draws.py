"""Search over the draws, on tables of the partition with each of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import cells, records, tables
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.search import descent
from posterior_consensus.search.forms import (
    CALL,
    WORK_A_LABEL,
    WORK_FOR_LITTLE,
    FormOfRatios,
    FormOfSums,
    Found,
    Limits,
    check_memory,
    numbered,
)
from posterior_consensus.search.trees import cut, tree

_MIDDLE = 128  # draws between the small sample and all of them
_SMALL = 40  # draws on which a run begins, and on which the best partition is taken apart again
_MANY = 1024  # draws above which a linear loss has this middle, too
_CHAINED = 5000  # draws up to which chains of moves are tried on all of them
_PAIRS_OF_DRAWS = 8  # from which is estimated how many cells of a search's tables are not zero
_FAR = 5  # times as many clusters as any draw has: Binder's loss was seen to ask for four times, VI for fewer
_COLUMNS = 16  # clusters that double what a scan takes
_CLUSTERS_WORTH_EFFORT = 1000  # up to which effort grows: beyond, each restart changes the more places
_SPARSE_ROW, _SPARSE_CELL = 100, 4  # cells of dense tables that take as long as a sparse row and one of its cells
_MOST_IN_TREE = 2000  # items of which a tree is made
_CUTS = 16  # numbers of clusters into which it is cut
_OPENED = 3  # scans of sparse tables that take as long as clusters opened for items
_HARDER = 5.0, 2.0  # how many times the work for little and a label, for a linear loss
_NEAR = 0.003  # relative difference from the minimum loss up to which a search goes on without approximation

AnyDraws = cells.Draws | cells.SparseDraws


class OnDraws:
    """Search over draws: begun on a small sample of them, continued on a larger one, ended on all."""

    at_once = 3
    explores_all = False
    is_capped = False
    work_for_little = WORK_FOR_LITTLE
    _scan, _union = 2.5, 1.0  # nanoseconds for a label that is considered, and for two clusters in a draw

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        self._draws = draws
        self._given, self._loss = loss, loss.arrays(draws.n_items)
        sparse = loss.is_linear and is_sparse(draws, limits.fewest)
        self._kind = cells.sparse_draws if sparse else cells.Draws
        self.limits = limits
        self.has_matrix = not sparse or draws.n_items <= _MOST_IN_TREE
        self.work_a_label = WORK_A_LABEL
        if sparse:
            slower = 1 + _columns_like_sparse(draws) / _COLUMNS
            self._scan *= slower
            self.work_a_label *= slower * (1 + min(draws.n_clusters.mean(), _CLUSTERS_WORTH_EFFORT) / _COLUMNS)
        else:
            check_memory(self, limits.fewest, limits, draws.most_clusters)
            room = memory.budget() // self.bytes_a_cluster
            self.limits = limits._replace(most=min(limits.most, room))
            self.is_capped = room < min(limits.most, _FAR * draws.most_clusters if self.sums else limits.most)
        self._stop = stop
        self._labels = cells.searched(draws.labels)
        self._all = self._kind(self._labels, draws.starts, draws.weights)

    @property
    def sums(self) -> FormOfSums | None:
        """The form itself: the loss is a sum over clusters."""
        return self

    @property
    def ratios(self) -> FormOfRatios | None:
        """None: the loss is linear."""
        return None

    @property
    def bytes_a_cluster(self) -> int:
        """What dense tables take for each cluster."""
        return 4 * int(self._draws.starts[-1])

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

    def work_from(self, n_clusters: int) -> float:
        """Two scans of the items and a look at all unions, on all draws."""
        return self._work(self._all, n_clusters, 2, 1)

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items that item i is with in the draw at this quantile of the weights."""
        labels = self._labels[self._draws.samples.at_quantiles(quantile)]
        return np.asarray(labels == labels[i])

    def terms(self, labels: Labels) -> npt.NDArray[np.float64]:
        """What each cluster adds to the expected loss, but for its scale, of the items whose label is not -1."""
        return np.asarray(
            tables.cluster_terms(self._all.labels, self._all.weights, self._loss, labels, int(labels.max()) + 1)
        )

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
        return self._kind(self._labels[rows], starts, weights)

    def _settle(
        self, draws: AnyDraws, labels: Labels, order: npt.NDArray[Any], effort: int, exactly: bool = False
    ) -> Found:
        partition = labels.copy()
        value, in_one, tally = descent.settle(
            draws, self._loss, partition, order, self.limits, self._stop, effort=effort, exactly=exactly
        )
        n_merges = (effort >= 0) + tally[records.MERGES]
        opened = isinstance(draws, cells.SparseDraws) and labels.max() + 1 < self.limits.fewest
        n_scans = 1 + tally[records.SCANS] + _OPENED * opened
        work = self._work(draws, int(partition.max()) + 1, n_scans, n_merges)
        return Found(numbered(partition), value, in_one, tally, work)

    def _work(self, draws: AnyDraws, n_clusters: int, n_scans: int, n_merges: int) -> float:
        columns = 0 if isinstance(draws, cells.SparseDraws) else n_clusters
        scans = draws.labels.size * (1.0 + columns / _COLUMNS) * n_scans
        unions = draws.weights.size * columns**2 / 2 * n_merges
        return CALL + self._scan * scans + self._union * unions


class OnRatios(OnDraws):
    """Search over draws for a loss that is not linear in A and B: it has more local optima, and scans take longer."""

    at_once = 2
    work_for_little = _HARDER[0] * WORK_FOR_LITTLE
    _scan, _union = 5.0, 7.0

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        super().__init__(draws, loss, limits, stop)
        self.work_a_label = _HARDER[1] * WORK_A_LABEL

    @property
    def sums(self) -> None:
        """None: what a cluster adds depends on the others."""
        return None

    @property
    def ratios(self) -> FormOfRatios:
        """The form itself."""
        return self

    def cuts(self) -> list[Labels]:
        """Cuts of the tree of average linkage to search from.

        They lead to better local optima than allocation does. The tree is cut at three numbers of clusters: that of
        minimum loss; twice that, because merging clusters that are too fine works better than splitting those that are
        too coarse; and the median over the draws.
        """
        if not 1 < self._draws.n_items <= _MOST_IN_TREE:
            return []
        fewest, most = self.limits.fewest, min(self.limits.most, self._draws.n_items)
        merges = tree(self._draws.similarity(), "average")
        drawn = np.clip(self._draws.n_clusters, fewest, most)
        numbers = np.unique(np.geomspace(fewest, drawn.max(), _CUTS).round().astype(np.int64))
        losses = []
        for labels in cut(merges, numbers).astype(np.int32):
            losses.append(self._value(labels, self._middle))
            if self._stop[0]:
                break
        best = int(numbers[np.argmin(losses)])
        return list(cut(merges, np.unique([best, min(2 * best, most), int(np.median(drawn))])).astype(np.int32))

    def from_cut(self, labels: Labels) -> Found:
        """Search from a cut, without using all draws."""
        return self._settle(self._middle, labels, np.arange(labels.size), effort=1)

    def explore(self, order: npt.NDArray[Any], random: npt.NDArray[np.float64], from_draw: bool) -> Found:
        """Search from a draw, or from an allocation of the items in this order, without using all draws.

        Allocation minimizes B + C - 2 A and reaches few local optima. Each run takes another sample of draws: with one
        sample for all, a local optimum whose loss is overestimated on it would never be found.
        """
        start = np.full(order.size, -1, np.int32)
        if from_draw:
            row = int(self._draws.samples.at_quantiles(random[-1]))
            start = self._labels[row].astype(np.int32)
        middle = self._sample((np.arange(_MIDDLE) + random[-2]) / _MIDDLE)
        return self._explore(start, order, random, middle)

    def value(self, labels: Labels) -> float:
        """Expected loss, but for its scale."""
        return self._value(labels, self._all)

    def polish(self, labels: Labels) -> Found:
        """Search from a partition, on all draws."""
        return self._settle(self._all, labels, np.arange(labels.size), effort=1, exactly=True)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, without approximation only if it comes near the minimum expected loss."""
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
        state = cells.tables_of(draws, labels, int(labels.max()) + 1)
        return float(tables.expected_losses(draws, self._loss, state)[0])


def is_sparse(draws: PartitionDraws, fewest: int = 1) -> bool:
    """Whether few enough cells of the tables are not zero; of few clusters that are requested there are few columns."""
    columns = draws.n_clusters.mean()
    if fewest > 1:
        columns = min(columns, fewest)
    return bool(columns > _SPARSE_ROW and _columns_like_sparse(draws) < columns)


def _columns_like_sparse(draws: PartitionDraws) -> float:
    """How many cells of a dense table take as long as a row of a sparse one, from tables of some draws with others."""
    rows = np.linspace(0, draws.n_draws - 1, 2 * _PAIRS_OF_DRAWS).astype(np.intp)
    labels, n_clusters = draws.drawn.take(rows).values, draws.n_clusters[rows]
    cells = 0.0
    for one, other in np.arange(rows.size).reshape(-1, 2):
        pairs = labels[one].astype(np.int64) * int(n_clusters[other]) + labels[other]
        met = np.bincount(np.unique(pairs) // int(n_clusters[other]))
        cells += met[labels[one]].mean() / _PAIRS_OF_DRAWS  # of an item's row
    return _SPARSE_ROW + _SPARSE_CELL * cells
