"""A problem: which partition has the minimum expected loss under a posterior, within limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import ClusterLimits

FREE = ClusterLimits()
"""Limits of a problem whose partitions have any number of clusters."""


class Limits(NamedTuple):
    """Least and largest number of clusters."""

    fewest: int
    most: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Which partition has the minimum expected loss.

    A smaller problem that is made of another one also has what leads to it and back: the part of a partition that it is
    about, and the whole partition. A problem by itself is its own part and whole.

    Attributes
    ----------
    source : PairSource
        The posterior.
    loss : Loss
    limits : ClusterLimits
        Requested numbers of clusters.
    """

    source: PairSource
    loss: Loss
    limits: ClusterLimits = FREE

    @property
    def n_clusters(self) -> Limits:
        """Least and largest number of clusters of its partitions."""
        number, most = self.limits.n_clusters, self.limits.max_clusters
        return Limits(1, most or self.source.n_items) if number is None else Limits(number, number)

    def part_of(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What a partition of the whole is in this problem."""
        return labels

    def whole(self, labels: npt.NDArray[Any]) -> Labels:
        """The partition of the whole that one of this problem stands for."""
        return labels

    def value(self, labels: Labels) -> float:
        """Expected loss of the whole by a partition of this problem."""
        return float(mean_loss(self.source, labels[np.newaxis], self.loss)[0])

    def losses(self, values: list[float]) -> list[float]:
        """Expected losses of the whole, from those of this problem without the loss's scale."""
        found: list[float] = (self.loss.scale(self.source.n_items) * np.array(values)).tolist()
        return found
