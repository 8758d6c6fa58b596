"""Search for the few partitions that are nearest to the draws, from several starts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.problems import Limits, OnDraws, OnRatios
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.executor import Executor
from posterior_consensus.expectation import loss_matrix
from posterior_consensus.kernels.loss import LinearLoss
from posterior_consensus.loss_record import PartitionLoss
from posterior_consensus.partitions import Labels

Floats = npt.NDArray[np.float64]

_EACH = 50  # draws for each particle in the samples on which a run begins
_SAMPLES = 1, 1, 2  # sizes of these samples, times that
_STEPS = 2  # on each of them
_ENDS = 4  # runs that go on to all draws
_WARM = 3  # draws that are tried beside the particles of one number less
_SWAPS = 8  # of a particle for another, tried before the best is taken
_TINY = 1e-12


class Placed(NamedTuple):
    """Particles and how far the draws are from them."""

    partitions: Labels  # (L, n)
    losses: Floats  # (L, N), of each draw
    value: float  # mean over the draws of the least

    @property
    def nearest(self) -> npt.NDArray[np.intp]:
        """The particle (N,) nearest to each draw, the first of equals."""
        return self.losses.argmin(axis=0)


class ParticleSearch:
    """Search for L partitions S_l of least mean over draws of min_l d(S_l, z_t), one number L after the other."""

    def __init__(self, draws: PartitionDraws, loss: PartitionLoss, executor: Executor) -> None:
        self._draws = merged(draws)
        self._loss = loss
        self._executor = executor
        is_linear = isinstance(loss.arrays(draws.n_items), LinearLoss)
        self._problem = OnDraws if is_linear else OnRatios

    @property
    def n_distinct(self) -> int:
        """Number of partitions among the draws."""
        return self._draws.n_draws

    def one(self, labels: Labels) -> Placed:
        """Begin with the consensus."""
        return self._placed(labels[np.newaxis])

    def one_more(self, fewer: Placed, n_starts: int, rng: np.random.Generator) -> Placed:
        """Find particles that are one more than these, and never farther from the draws."""
        number = len(fewer.partitions) + 1
        found = self._executor.results(self._descended, [(start,) for start in self._beside(fewer, rng)])
        runs = self._executor.results(self._explored, [(None, number, seed) for seed in _seeds(rng, n_starts)])
        runs.sort(key=lambda run: run.value)
        found += self._executor.results(self._descended, [(run.partitions,) for run in runs[:_ENDS]])
        best = min(found, key=lambda one: one.value)
        while not self._executor.stopped:
            swaps = [
                (start, number, seed) for start, seed in zip(self._swaps(best, rng), _seeds(rng, _SWAPS), strict=True)
            ]
            runs = self._executor.results(self._explored, swaps)
            found = self._executor.results(self._descended, [(run.partitions,) for run in runs])
            better = min(found, key=lambda one: one.value)
            if not better.value < best.value - _TINY:
                break
            best = better
        return best

    def _beside(self, fewer: Placed, rng: np.random.Generator) -> list[Labels]:
        """These particles, each time with another draw: those that lower the distance most."""
        near = fewer.losses.min(axis=0)
        rows = self._some_rows(self._draws.weights * near, _EACH, rng)
        losses = loss_matrix(self._draws.labels[rows], self._draws, self._loss)
        values = np.minimum(losses, near) @ self._draws.weights
        order = np.argsort(values, kind="stable")[:_WARM]
        return [self._with(fewer.partitions, rows[k]) for k in order]

    def _swaps(self, placed: Placed, rng: np.random.Generator) -> list[Labels]:
        """Put draws, more often far ones, in the places of particles."""
        starts = []
        for left_out in rng.integers(len(placed.partitions), size=_SWAPS):
            near = np.delete(placed.losses, left_out, axis=0).min(axis=0)
            row = self._some_rows(self._draws.weights * near, 1, rng)[0]
            starts.append(self._with(np.delete(placed.partitions, left_out, axis=0), row))
        return starts

    def _with(self, partitions: Labels, row: np.intp) -> Labels:
        return np.vstack([partitions, self._draws.labels[row].astype(np.int32)])

    def _some_rows(self, shares: Floats, number: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
        """Rows of draws at random by these shares, each once."""
        quantiles = (np.arange(number) + rng.random(number)) / number
        return np.unique(_at_quantiles(shares, quantiles))

    def _explored(self, partitions: Labels | None, number: int, seed: int) -> Placed:
        """Begin on samples of the draws, if nowhere else with draws far from each other."""
        rng = np.random.default_rng(seed)
        for times in _SAMPLES:
            sample = self._sample(times * _EACH * number, rng)
            if partitions is None:
                partitions = self._far_apart(sample, number, rng)
            partitions = self._descend(sample, partitions, _STEPS).partitions
        assert partitions is not None
        return self._placed(partitions)

    def _sample(self, size: int, rng: np.random.Generator) -> PartitionDraws:
        """So many draws at random by their weights."""
        draws = self._draws
        if draws.n_draws <= size:
            return draws
        order = rng.permutation(draws.n_draws)
        quantiles = (np.arange(size) + rng.random()) / size
        rows, times = np.unique(order[_at_quantiles(draws.weights[order], quantiles)], return_counts=True)
        taken = draws.take(rows)
        return replace(taken, samples=taken.samples.weighted(times.astype(np.float64)))

    def _far_apart(self, draws: PartitionDraws, number: int, rng: np.random.Generator) -> Labels:
        """Draws at random, each in proportion to its distance from those before (k-means++)."""
        shares, near, rows = draws.weights, np.full(draws.n_draws, np.inf), []
        for _ in range(number):
            rows.append(_at_quantiles(shares, rng.random(1))[0])
            near = np.minimum(near, loss_matrix(draws.labels[rows[-1:]], draws, self._loss)[0])
            shares = draws.weights * near
        return draws.labels[rows].astype(np.int32)

    def _placed(self, partitions: Labels) -> Placed:
        losses = loss_matrix(partitions, self._draws, self._loss)
        return Placed(partitions, losses, float(losses.min(axis=0) @ self._draws.weights))

    def _descended(self, partitions: Labels) -> Placed:
        return self._descend(self._draws, partitions)

    def _descend(self, draws: PartitionDraws, partitions: Labels, most: int | None = None) -> Placed:
        """Assign the draws to the nearest particle, improve each for its draws, and so on while the distance falls."""
        partitions = partitions.copy()
        losses = loss_matrix(partitions, draws, self._loss)
        nearest, value = losses.argmin(axis=0), float(losses.min(axis=0) @ draws.weights)
        changed = set(range(len(partitions)))
        steps = 0
        while changed and steps != most and not self._executor.stop[0]:
            for k in sorted(changed):
                self._improve(draws, partitions, losses, k, np.flatnonzero(nearest == k))
            before, nearest = nearest, losses.argmin(axis=0)
            moved = before != nearest
            changed = {*before[moved].tolist(), *nearest[moved].tolist()}
            value = float(losses.min(axis=0) @ draws.weights)
            steps += 1
        return Placed(partitions, losses, value)

    def _improve(
        self, draws: PartitionDraws, partitions: Labels, losses: Floats, k: int, rows: npt.NDArray[np.intp]
    ) -> None:
        """Search from a particle for one nearer to its draws; one without draws takes the draw farthest from all."""
        if rows.size:
            problem = self._problem(draws.take(rows), self._loss, Limits(1, draws.n_items), self._executor.stop)
            found = problem.polish(partitions[k]).labels
        else:
            rows = np.arange(draws.n_draws)
            found = draws.labels[np.argmax(draws.weights * losses.min(axis=0))].astype(np.int32)
        own = loss_matrix(found[np.newaxis], draws, self._loss)[0]
        best = losses[:, rows].min(axis=0)
        losses_then = np.minimum(own[rows], np.delete(losses, k, axis=0)[:, rows].min(axis=0, initial=np.inf))
        if losses_then @ draws.weights[rows] < best @ draws.weights[rows] - _TINY:
            partitions[k], losses[k] = found, own


def merged(draws: PartitionDraws) -> PartitionDraws:
    """Each partition among the draws once, with the sum of the weights, as one chain; those of weight 0 left out."""
    draws = draws.without_zero_weights()
    labels, inverse = np.unique(draws.labels, axis=0, return_inverse=True)
    rows = np.empty(len(labels), np.intp)
    rows[inverse.ravel()] = np.arange(draws.n_draws)
    numbers = np.arange(len(labels))
    samples = Samples(np.zeros(len(labels), np.int64), numbers, np.ones(len(labels)))
    weights = np.bincount(inverse.ravel(), draws.weights)
    return PartitionDraws(draws.items, samples.weighted(weights.astype(np.float64)), draws.drawn.take(rows))


def _at_quantiles(shares: Floats, quantiles: Floats) -> npt.NDArray[np.intp]:
    reached = np.cumsum(shares)
    return np.searchsorted(reached[:-1], quantiles * reached[-1], side="right")


def _seeds(rng: np.random.Generator, number: int) -> Sequence[int]:
    seeds: list[int] = rng.integers(2**63, size=number).tolist()
    return seeds
