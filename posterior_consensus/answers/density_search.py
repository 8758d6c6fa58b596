"""The partitions of highest density, among all partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.evaluate.expectation import Floats, loss_matrix
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.search.engine import search

_N_STARTS = 3  # random orders of each search
_TINY = 1e-12


def kernel_of(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss, bandwidth: float) -> Floats:
    """exp(-loss / bandwidth) of partitions (P, n) against draws, (P, N): its mean over the draws is the score."""
    kernel: Floats = np.exp(-loss_matrix(partitions, draws, loss) / bandwidth)
    return kernel


class Ascent:
    """Raises the score from partition to partition.

    As exp is convex, exp(-x) >= exp(-y) (1 - (x - y)): with y the losses of the partition that is reached, what lowers
    the mean of the losses weighted by exp(-y / bandwidth) raises the score. Each step is a consensus search under these
    weights, from the partition itself and from random orders of the items.
    """

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, bandwidth: float, rng: np.random.Generator) -> None:
        self.draws, self.loss, self.bandwidth, self.rng = draws, loss, bandwidth, rng
        self._ends: dict[bytes, tuple[Labels, float]] = {}  # of every partition that was passed

    def climb(self, start: npt.NDArray[Any]) -> None:
        """Go up from a partition until the score rises no more, or to where another ascent came by."""
        labels = canonical_labels(start)
        kernel, score = self._kernel_and_score(labels)
        passed = []
        while labels.tobytes() not in self._ends:
            passed.append(labels.tobytes())
            other = self._nearer(labels, kernel)
            kernel, reached = self._kernel_and_score(other)
            if reached <= score * (1 + _TINY):
                self._ends[labels.tobytes()] = labels, score
            else:
                labels, score = other, reached
        self._ends |= dict.fromkeys(passed, self._ends[labels.tobytes()])

    def ends(self) -> list[tuple[Labels, float]]:
        """Where the ascents ended, each partition once, that of the highest score first."""
        found = {labels.tobytes(): (labels, score) for labels, score in self._ends.values()}
        return sorted(found.values(), key=lambda end: -end[1])

    def _kernel_and_score(self, labels: Labels) -> tuple[Floats, float]:
        kernel = kernel_of(labels[np.newaxis], self.draws, self.loss, self.bandwidth)
        return kernel[0], float(self.draws.samples.mean(kernel)[0])

    def _nearer(self, labels: Labels, kernel: Floats) -> Labels:
        """The partition of minimum expected loss under weights that count the draws near this partition."""
        weights = self.draws.weights * kernel
        if not weights.any():  # all draws are too far to see
            return labels
        near = replace(self.draws, samples=self.draws.samples.weighted(weights))
        found = search(near, self.loss, rng=self.rng, n_starts=_N_STARTS, starts=[labels])
        return canonical_labels(found.labels)


def to_higher(scores: Floats, losses: Floats) -> Floats:
    """Loss of each of some partitions against the nearest of higher score; of the highest, against the farthest.

    Of equal scores the first counts as higher, so that of equal partitions all but one are near a higher one.
    """
    order = np.lexsort((np.arange(scores.size), -scores))
    found = np.empty(scores.size)
    for rank, row in enumerate(order):
        found[row] = losses[row, order[:rank]].min() if rank else losses[row].max()
    return found
