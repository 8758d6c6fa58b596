"""Which items are noise, and the partition of the others, as a problem of partitions alone.

An item that more than half of the runs call noise is noise in every optimum: calling it so saves cost, whatever the
others do. Only the others are searched. Their partition has one more item, which stands for the noise: the items of its
cluster are noise. So a search with noise is a search over partitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.partitions import Labels, canonical_labels, canonical_rows
from posterior_consensus.losses.record import NoiseLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.runtime.tolerances import ROUNDING


@dataclass(frozen=True, eq=False, kw_only=True)
class WithNoise(Problem):
    """Runs of the items that may be in clusters, and of the item that stands for the noise.

    Attributes
    ----------
    source : PartitionDraws
        Runs of `items` and one more, which is with those that the run calls noise.
    loss : NoiseLoss
        The loss with the same cost of an item in pairs.
    items : ndarray of shape (n_searched,)
        Positions of the items that at most half of the runs call noise.
    of : Problem
        The problem of all items.
    fixed : float
        Expected loss of the other items.
    """

    source: PartitionDraws
    loss: NoiseLoss
    items: npt.NDArray[np.intp]
    of: Problem
    fixed: float

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
    labels = draws.with_one_noise[0].of_items(items).values
    noise = np.column_stack([draws.noise[:, items], np.ones(draws.n_draws, np.bool_)])
    n_codes = int(labels.max(initial=0)) + 2
    codes = np.pad(labels, ((0, 0), (0, 1))).astype(np.min_scalar_type(n_codes))
    codes[noise] = n_codes - 1
    own = PartitionDraws.of(canonical_rows(codes, n_codes)[0], samples=draws.samples)
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
