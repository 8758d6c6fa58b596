"""Search over the draws for a loss that is not linear in A and B."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import tables
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.search.forms import WORK_A_LABEL, WORK_FOR_LITTLE, FormOfRatios, Found, Limits
from posterior_consensus.search.over_draws import MIDDLE, AnyDraws, OnDraws
from posterior_consensus.search.trees import cut, tree

_MOST_IN_TREE = 2000  # items of which a tree is made
_CUTS = 16  # numbers of clusters into which it is cut
_HARDER = 5.0, 2.0  # how many times the work for little and a label, for a linear loss
_NEAR = 0.003  # relative difference from the least loss up to which a search goes on without approximation


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
        least loss; twice that, because merging clusters that are too fine works better than splitting those that are
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

        Allocation minimises B + C - 2 A and reaches few local optima. Each run takes another sample of draws: with one
        sample for all, a local optimum whose loss is overestimated on it would never be found.
        """
        start = np.full(order.size, -1, np.int32)
        if from_draw:
            row = int(self._draws.samples.at_quantiles(random[-1]))
            start = self._draws.labels[row].astype(np.int32)
        middle = self._sample((np.arange(MIDDLE) + random[-2]) / MIDDLE)
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
