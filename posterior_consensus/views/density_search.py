"""The partitions of highest density, among all partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.greedy import greedy
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.expectation import Floats, all_losses, loss_matrix
from posterior_consensus.loss_record import PartitionLoss
from posterior_consensus.partitions import Labels, canonical_labels

_N_STARTS = 3  # random orders of each search
_TINY = 1e-12


def kernel_of(partitions: npt.NDArray[Any], draws: PartitionDraws, loss: PartitionLoss, bandwidth: float) -> Floats:
    """exp(-loss / bandwidth) of partitions (P, n) against draws, (P, N): its mean over the draws is the score."""
    kernel: Floats = np.exp(-loss_matrix(partitions, draws, loss) / bandwidth)
    return kernel


def best_row(draws: PartitionDraws, loss: PartitionLoss, bandwidth: float) -> int:
    """Row of the draw of the highest score."""
    losses = all_losses(draws, loss)
    return int(draws.samples.mean(np.exp(-losses / bandwidth)).argmax())


def climb(
    labels: Labels, draws: PartitionDraws, loss: PartitionLoss, bandwidth: float, rng: np.random.Generator
) -> tuple[Labels, float]:
    """Raise the score from a partition until it rises no more; return where that ends, and its score.

    As exp is convex, exp(-x) >= exp(-y) (1 - (x - y)): with y the losses of the partition that is reached, what lowers
    the mean of the losses weighted by exp(-y / bandwidth) raises the score. Each step is a consensus search under these
    weights, from the partition itself and from random orders of the items.
    """
    kernel = kernel_of(labels[np.newaxis], draws, loss, bandwidth)
    score = float(draws.samples.mean(kernel)[0])
    while True:
        weights = draws.weights * kernel[0]
        if not weights.any():  # all draws are too far to see
            return labels, score
        near = replace(draws, samples=draws.samples.weighted(weights))
        asked: dict[str, Any] = {"n_clusters": None, "max_clusters": None, "progressbar": False}
        found = greedy(near, loss, **asked, rng=rng, n_starts=_N_STARTS, starts=[labels])
        other = canonical_labels(found.labels)
        kernel = kernel_of(other[np.newaxis], draws, loss, bandwidth)
        reached = float(draws.samples.mean(kernel)[0])
        if reached <= score * (1 + _TINY):
            return labels, score
        labels, score = other, reached


def climbs(
    starts: Sequence[npt.NDArray[Any]], ascent: Callable[[Labels], tuple[Labels, float]]
) -> list[tuple[Labels, float]]:
    """Where the ascents from these partitions end, each partition once, that of the highest score first."""
    ends: dict[bytes, tuple[Labels, float]] = {}
    for start in starts:
        labels, score = ascent(canonical_labels(start))
        ends.setdefault(labels.tobytes(), (labels, score))
    return sorted(ends.values(), key=lambda end: -end[1])


def to_higher(scores: Floats, losses: Floats) -> Floats:
    """Loss of each of some partitions against the nearest of higher score; of the highest, against the farthest.

    Of equal scores the first counts as higher, so that of equal partitions all but one are near a higher one.
    """
    order = np.lexsort((np.arange(scores.size), -scores))
    found = np.empty(scores.size)
    for rank, row in enumerate(order):
        found[row] = losses[row, order[:rank]].min() if rank else losses[row].max()
    return found
