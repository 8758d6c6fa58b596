"""A problem: which partition has the minimum expected loss under a posterior, within limits; noise as one item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, canonical_rows
from posterior_consensus.losses.record import Loss, NoiseLoss
from posterior_consensus.results.work import ClusterLimits
from posterior_consensus.runtime.tolerances import ROUNDING

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
    """

    source: PairSource  # the posterior
    loss: Loss
    limits: ClusterLimits = FREE  # requested numbers of clusters

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


@dataclass(frozen=True, eq=False, kw_only=True)
class WithNoise(Problem):
    """Runs of the items that may be in clusters, and of one more item, which stands for the noise.

    An item that more than half of the runs call noise is noise in every optimum: calling it so saves cost, whatever the
    others do. Only the others are searched. The items of the one more item's cluster are noise, so that a search with
    noise is a search over partitions.
    """

    source: PartitionDraws  # runs of `items` and one more, which is with those that the run calls noise
    loss: NoiseLoss  # the loss with the same cost of an item in pairs
    items: npt.NDArray[np.intp]  # (n_searched,): positions of the items that at most half of the runs call noise
    of: Problem  # the problem of all items
    fixed: float  # expected loss of the other items

    def part_of(self, labels: npt.NDArray[Any]) -> Labels:
        """Labels (n_items,), -1 for noise, as a partition of the searched items and the one more."""
        own = np.append(labels[self.items], -1)
        return canonical_labels(own + 1)

    def whole(self, labels: Labels) -> Labels:
        """Labels (n_items,) of a partition of the searched items and the one more: -1 for noise."""
        found = np.full(self.of.source.n_items, -1, np.int32)
        found[self.items] = np.where(labels[:-1] == labels[-1], -1, labels[:-1])
        return found

    def value(self, labels: Labels) -> float:
        """Expected loss, of all items."""
        return self.of.value(self.whole(labels))

    def losses(self, values: list[float]) -> list[float]:
        """Expected losses of all items, see :meth:`Problem.losses`."""
        factor = self.loss.scale(self.of.source.n_items) / self.loss.scale(self.source.n_items)
        return [factor * value + self.fixed for value in super().losses(values)]


def as_partitions(problem: Problem) -> Problem:
    """The problem itself if no partition calls items noise; else one of partitions, with noise as one item."""
    loss, draws = problem.loss, problem.source
    if not isinstance(loss, NoiseLoss):
        return problem
    if not isinstance(draws, NoisyRuns):
        return replace(problem, loss=loss.binder)
    draws = draws.without_zero_weights()
    n, share = draws.n_items, draws.noise_share
    items = np.flatnonzero(share <= 0.5 + ROUNDING)
    codes = np.pad(draws.coded.array[:, items], ((0, 0), (0, 1)))  # the one more is with the noise, 0
    own = PartitionDraws.of(canonical_rows(codes, int(codes.max()) + 1)[0], samples=draws.samples)
    pairs = loss.noise * (n - 1)
    fixed = pairs * float(np.sum(1.0 - np.delete(share, items)))
    return WithNoise(
        source=own,
        loss=replace(loss, noise=pairs / max(items.size, 1)),
        limits=problem.limits,
        items=items,
        of=problem,
        fixed=loss.scale(n) * fixed,
    )
