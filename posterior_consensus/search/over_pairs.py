"""Search over the similarities of pairs, and with them for Binder's loss."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import pair_moves
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.search import descent
from posterior_consensus.search.forms import FormOfRuns, Found, Limits, Uniforms, numbered


class FormOfPairs(FormOfRuns, Protocol):
    """A form over a similarity matrix: all of its searches take the same steps."""

    similarity: npt.NDArray[np.float64]

    def _settle(self, labels: Labels, order: npt.NDArray[Any]) -> Found:
        """Search from a partition, of which -1 stands for items to allocate in this order."""

    def explore(self, order: npt.NDArray[Any], random: Uniforms, from_draw: bool) -> Found:
        """Allocate the items in this order and search from there."""
        return self._settle(np.full(order.size, -1, np.int32), order)

    def polish(self, labels: Labels) -> Found:
        """Search from a partition."""
        return self._settle(labels, np.arange(labels.size))

    def restart(self, labels: Labels, order: npt.NDArray[Any], elite: list[Found]) -> Found:
        """Search from a partition, of which -1 stands for items to allocate in this order."""
        return self._settle(labels, order)

    def companions(self, i: int, quantile: float) -> npt.NDArray[np.bool_]:
        """The items whose similarity to item i is above this, and itself."""
        near: npt.NDArray[np.bool_] = self.similarity[i] > quantile
        near[i] = True
        return near


class OnPairs(FormOfPairs):
    """Search over the similarity matrix, which holds all that Binder's loss asks of the draws."""

    at_once = 10  # a run takes little, and Binder's loss has many partitions that are nearly the best
    explores_all = True
    is_sum = True

    def __init__(self, draws: PairSource, loss: PartitionLoss, limits: Limits, stop: npt.NDArray[np.uint8]) -> None:
        self.limits = limits
        self._stop = stop
        self.similarity = draws.similarity()
        self.bytes_a_cluster = 8 * draws.n_items  # a sum of similarities for each item
        np.fill_diagonal(self.similarity, 0.0)
        self._costs = pair_moves.Costs(loss.numerator["A"], loss.numerator["B"])
        together = float(self.similarity.sum()) / 2
        self._apart = loss.numerator["C"] * together  # the expected loss of single items
        self._in_one = self._apart + self._costs.a * together + self._costs.b * loss.h(draws.n_items)[-1]

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: Uniforms) -> Found:
        """Search from a partition, its clusters dissolved and split in this order of the items."""
        return self._settle(labels, order)

    def operations(self, n_clusters: int) -> float:
        """What a restart counts as: the similarities are summed within each cluster, however many there are."""
        return float(len(self.similarity)) ** 2

    def _settle(self, labels: Labels, order: npt.NDArray[Any]) -> Found:
        partition = labels.copy()
        value, tally = descent.settle_pairs(self.similarity, self._costs, partition, order, self.limits, self._stop)
        return Found(numbered(partition), self._apart + value, self._in_one, tally)
