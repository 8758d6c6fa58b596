"""Search over the draws, on tables of the partition with each of them."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import cells, tables
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.search import descent
from posterior_consensus.search.descent import Effort
from posterior_consensus.search.forms import FormOfRuns, Found, Limits, Uniforms, check_memory, numbered
from posterior_consensus.search.trees import cut, tree

_MIDDLE = 128  # draws between the small sample and all of them
_MANY = 1024  # draws above which a linear loss has this middle, too
_CHAINED = 5000  # draws up to which chains of moves are tried on all of them
_PAIRS_OF_DRAWS = 8  # from which is estimated how many cells of a search's tables are not zero
_FAR = 5  # times as many clusters as any draw has: Binder's loss was seen to ask for four times, VI for fewer
_SPARSE_ROW, _SPARSE_CELL = 100, 4  # dense cells that take as long as one sparse row with one cell
_MOST_IN_TREE = 2000  # items of which a tree is made
_CUTS, _FEW_CUTS = 16, 4  # numbers of clusters into which it is cut; few for a linear loss
_LITTLE_TREE = 3e6  # pairs of labels up to which a search for a linear loss has a tree
_NEAR = 0.003  # relative difference from the minimum loss up to which a search continues without approximation

AnyDraws = cells.Draws | cells.SparseDraws


class OnDraws(FormOfRuns):
    """Search over draws: begun on a small sample of them, continued on a larger one, ended on all."""

    is_sum = True

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        self._draws = draws
        self._loss = loss.arrays(draws.n_items)
        sparse = loss.is_linear and is_sparse(draws, limits.fewest)
        self._kind = cells.sparse_draws if sparse else cells.Draws
        self.limits = limits
        self.bytes_a_cluster = 4 * int(draws.starts[-1])  # in dense tables
        if not sparse:
            check_memory(self, limits.fewest, limits, draws.most_clusters)
            room = memory.budget() // self.bytes_a_cluster
            self.limits = limits._replace(most=min(limits.most, room))
            self.is_capped = room < min(limits.most, _FAR * draws.most_clusters if self.is_sum else limits.most)
        self._stop = stop
        self._labels = cells.searched(draws.labels)
        self._all = self._kind(self._labels, draws.starts, draws.weights)

    @cached_property
    def _middle(self) -> AnyDraws:
        return self._sample((np.arange(_MIDDLE) + 0.5) / _MIDDLE)

    def explore(self, order: npt.NDArray[Any], random: Uniforms, from_draw: bool) -> Found:
        """Search from a draw, or from an allocation of the items in this order, without using all draws."""
        start = np.full(order.size, -1, np.int32)
        if from_draw:
            start[:] = self._labels[self._draws.samples.at_quantiles(random.start)]
        found = self._settle(self._sample(random.sample), start, order, Effort.MERGES)
        middle = self._middle_of_run(random)
        return found if middle is None else found.then(self._settle(middle, found.labels, order, Effort.CHAINS))

    def _middle_of_run(self, random: Uniforms) -> AnyDraws | None:
        """The larger sample on which a run continues, or None if there are few draws."""
        return self._middle if self._draws.n_draws > _MANY else None

    def polish(self, labels: Labels) -> Found:
        """Search from a partition, on all draws."""
        effort = _last_effort(self._draws.n_draws)
        return self._settle(self._all, labels, np.arange(labels.size), effort)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, of which -1 stands for items to allocate in this order, on all draws.

        Most restarts lead back to where they came from: once scans of the items do, the search is at its end.
        """
        found = self._settle(self._all, labels, order, Effort.SCANS)
        if any(np.array_equal(found.labels, known.labels) for known in elite):
            return found
        return found.then(self._settle(self._all, found.labels, order, Effort.CHAINS))

    def operations(self, n_clusters: int) -> float:
        """What a restart counts as: a scan over so many clusters, or over the mean number in a draw if that is more."""
        return float(self._labels.size) * max(n_clusters, float(self._draws.n_clusters.mean()))

    def cuts(self) -> list[Labels]:
        """Cuts of the average-linkage tree to start from, if the tree costs little compared with a run."""
        n_items = self._draws.n_items
        if n_items == 1 or n_items * self._labels.size > _LITTLE_TREE or not memory.fits(8 * n_items**2):
            return []
        fewest, most = self.limits.fewest, min(self.limits.most, max(self._draws.most_clusters, self.limits.fewest))
        numbers = np.unique(np.geomspace(fewest, most, _FEW_CUTS).astype(np.int64))
        return list(cut(tree(self._draws.similarity(), "average"), numbers).astype(np.int32))

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items that item i is with in the draw at this quantile of the weights."""
        labels = self._labels[self._draws.samples.at_quantiles(quantile)]
        return np.asarray(labels == labels[i])

    def polish_for(self, labels: Labels, rows: npt.NDArray[np.intp], weights: npt.NDArray[np.float64]) -> Labels:
        """Search from a partition, on some draws with weights of any sum.

        With a loss that is not linear the partition may be no better than `labels`: they are not compared exactly.
        """
        effort = _last_effort(rows.size)
        draws = self._some(rows, weights / weights.sum())
        return self._settle(draws, labels, np.arange(labels.size), effort).labels

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: Uniforms) -> Found:
        """Dissolve and split clusters of a partition, on a sample of the draws."""
        return self._settle(self._sample(random.sample), labels, order, Effort.REARRANGEMENTS)

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
        self, draws: AnyDraws, labels: Labels, order: npt.NDArray[Any], effort: Effort, exactly: bool = False
    ) -> Found:
        partition = labels.copy()
        value, in_one, tally = descent.settle(
            draws, self._loss, partition, order, self.limits, self._stop, effort=effort, exactly=exactly
        )
        return Found(numbered(partition), value, in_one, tally)


class OnDrawsNonlinear(OnDraws):
    """Search over draws for a nonlinear loss: it has more local optima, and scans take longer."""

    at_once = 2
    is_sum = False
    is_nonlinear = True

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
        drawn = np.clip(self._draws.n_clusters, fewest, most)
        numbers = np.unique(np.geomspace(fewest, drawn.max(), _CUTS).round().astype(np.int64))
        losses = []
        for labels in cut(merges, numbers).astype(np.int32):
            losses.append(self._value(labels, self._middle))
            if self._stop[0]:
                break
        best = int(numbers[np.argmin(losses)])
        chosen = cut(merges, np.unique([best, min(2 * best, most), int(np.median(drawn))])).astype(np.int32)
        order = np.arange(self._draws.n_items)
        return [self._settle(self._middle, labels, order, Effort.CHAINS).labels for labels in chosen]

    def _middle_of_run(self, random: Uniforms) -> AnyDraws:
        """Another sample for each run.

        Allocation minimizes B + C - 2 A and reaches few local optima. With one sample for all runs, a local optimum
        whose loss is overestimated on it would never be found.
        """
        return self._sample((np.arange(_MIDDLE) + random.middle) / _MIDDLE)

    def polish(self, labels: Labels) -> Found:
        """Search from a partition, on all draws."""
        return self._settle(self._all, labels, np.arange(labels.size), Effort.CHAINS, exactly=True)

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, without approximation only if it comes near the minimum expected loss."""
        found = super().restart(labels, order, elite)
        least = elite[0].value
        return found if found.value > least + _NEAR * abs(least) else found.then(self.polish(found.labels))

    def _value(self, labels: Labels, draws: AnyDraws) -> float:
        state = cells.tables_of(draws, labels, int(labels.max()) + 1)
        return float(tables.expected_losses(draws, self._loss, state)[0])


def _last_effort(n_draws: int) -> Effort:
    """The moves of a search on this many draws: chains of moves are slow on many draws."""
    return Effort.CHAINS if n_draws <= _CHAINED else Effort.MERGES


def is_sparse(draws: PartitionDraws, fewest: int = 1) -> bool:
    """Whether few enough cells of the tables are not zero; of few clusters that are requested there are few columns."""
    columns = draws.n_clusters.mean()
    if fewest > 1:
        columns = min(columns, fewest)
    return bool(columns > _SPARSE_ROW and _columns_like_sparse(draws) < columns)


def _columns_like_sparse(draws: PartitionDraws) -> float:
    """Estimate how many dense cells take as long as a sparse row, from tables of some draws with other draws."""
    rows = np.linspace(0, draws.n_draws - 1, 2 * _PAIRS_OF_DRAWS).astype(np.intp)
    labels, n_clusters = draws.backend.take(rows).values, draws.n_clusters[rows]
    cells = 0.0
    for one, other in np.arange(rows.size).reshape(-1, 2):
        pairs = labels[one].astype(np.int64) * int(n_clusters[other]) + labels[other]
        met = np.bincount(np.unique(pairs) // int(n_clusters[other]))
        cells += met[labels[one]].mean() / _PAIRS_OF_DRAWS  # of an item's row
    return _SPARSE_ROW + _SPARSE_CELL * cells
