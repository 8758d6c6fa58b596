"""Search for Binder's loss over the similarities of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import pair_moves, records
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.search import descent
from posterior_consensus.search.forms import CALL, WORK_A_LABEL, WORK_FOR_LITTLE, FormOfSums, Found, Limits, numbered


class OnPairs:
    """Search over the similarity matrix, which holds all that Binder's loss asks of the draws."""

    at_once = 10  # a run takes little, and Binder's loss has many partitions that are nearly the best
    has_matrix = True
    explores_all = True
    is_capped = False
    ratios = None
    work_for_little, work_a_label = WORK_FOR_LITTLE, WORK_A_LABEL

    def __init__(self, draws: PairSource, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        self.limits = limits
        self._stop = stop
        self._similarity = draws.similarity()
        np.fill_diagonal(self._similarity, 0.0)
        self._costs = pair_moves.Costs(loss.numerator["A"], loss.numerator["B"])
        together = float(self._similarity.sum()) / 2
        self._apart = loss.numerator["C"] * together  # the expected loss of single items
        self._in_one = self._apart + self._costs.a * together + self._costs.b * loss.h(draws.n_items)[-1]

    @property
    def bytes_a_cluster(self) -> int:
        """A sum of similarities for each item."""
        return 8 * len(self._similarity)

    @property
    def sums(self) -> FormOfSums:
        """The form itself: the loss is a sum over clusters."""
        return self

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

    def work_from(self, n_clusters: int) -> float:
        """A scan of the items."""
        return self._work(n_clusters, 1)

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
        value, tally = descent.settle_pairs(self._similarity, self._costs, partition, order, self.limits, self._stop)
        work = self._work(int(partition.max()) + 1, tally[records.SCANS])
        return Found(numbered(partition), self._apart + value, self._in_one, tally, work)

    def _work(self, n_clusters: int, n_scans: int) -> float:
        n_items = len(self._similarity)
        return CALL + n_items * (n_items / 2 + n_scans * n_clusters)
