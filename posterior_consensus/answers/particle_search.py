"""Search for the few partitions that are nearest to the draws, from several starts at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.modes import FURTHER, Modes, separated_modes
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import loss_matrix, unscaled_losses
from posterior_consensus.ensemble.partitions import Labels, alone, canonical_labels, distinct_rows
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.runtime.aliases import Floats, Integers, Positions
from posterior_consensus.runtime.executor import Clock, Executor, one_blas_thread
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.search.local_search import OnDraws, OnDrawsNonlinear

_STARTS_AT_ONCE = 20  # starts between two looks at the time
_EACH = 60  # draws for each particle in the samples on which a run begins
_SAMPLES = 1, 2  # sizes of these samples, in multiples of _EACH
_STEPS = 2  # on each sample
_MOST = 1000  # draws on which runs end and are compared
_ENDS = 3  # best runs that continue on all draws
_WARM = 4  # draws tried as the additional particle of the previous solution
_AT_ONCE = 5  # best solutions that are changed, in two ways each, before the next comparison


class Placed(NamedTuple):
    """Particles and how far the draws are from them."""

    partitions: Labels  # (L, n)
    losses: Floats  # (L, N) against each draw, without the scale of the loss
    value: float  # mean over the draws of the least loss
    work: int = 0  # labels read to find them, once for each cluster that an item could join

    @property
    def nearest(self) -> Positions:
        """The particle (N,) nearest to each draw, the first of equals."""
        return self.losses.argmin(axis=0)


class _Draws(NamedTuple):
    """Some of the draws, with weights of their own."""

    rows: Positions
    labels: npt.NDArray[Any]
    n_clusters: Integers
    weights: Floats


class FoundParticles(NamedTuple):
    """Particles for each number, one particle for each mode, and one for each mode expected under independence."""

    path: list[Placed]
    modes: Placed
    supposed: Placed
    is_cut: bool  # whether a number of particles had too little time


class ParticleSearch:
    """Search for L partitions S_l that minimize the mean over draws of min_l d(S_l, z_t), for L = 1, 2, ..."""

    def __init__(
        self,
        draws: PartitionDraws,
        loss: PartitionLoss,
        executor: Executor,
        clock: Clock,
        n_starts: int,
        rng: np.random.Generator,
    ) -> None:
        self._draws, self._record = draws, loss
        self._executor, self._clock, self._n_starts, self._rng = executor, clock, n_starts, rng
        self._work = 0  # of all particles so far
        self._merged = draws = merged(draws)
        self._loss = loss.arrays(draws.n_items)
        kind = OnDraws if loss.is_linear else OnDrawsNonlinear
        self._problem = kind(Problem(draws, loss), executor.stop)
        labels = alone(draws.labels) if draws.lacks_items else draws.labels
        self._all = _Draws(np.arange(draws.n_draws), labels, draws.backend.n_clusters, draws.weights)

    @property
    def n_distinct(self) -> int:
        """Number of partitions among the draws."""
        return self._all.rows.size

    @one_blas_thread(with_sklearn=False)  # distances must not depend on the number of threads
    def along(
        self, consensus: Labels, number: int | None, most: int, most_work: float, progressbar: bool
    ) -> FoundParticles:
        """Search for `number` particles, and for `FURTHER` particles beyond the modes found, to count the modes.

        The number of modes does not depend on `number`. Beyond `most_work`, no more changes or particles are tried.
        Each number of particles has an equal share of the remaining time.
        """
        path = [self._placed(self._all, consensus[np.newaxis])]
        modes = supposed = path[0]
        requested = number or 1
        last = 1 if number == 1 else min(max(requested, most), self.n_distinct)
        is_cut = False
        for more in track(range(2, last + 1), "Particles", progressbar=progressbar):
            ended = self._executor.stopped or self._work > most_work
            if more > requested and (ended or more > len(modes.partitions) + FURTHER):
                break
            left = min(max(requested, len(modes.partitions) + FURTHER), last) - more + 1
            clock = Clock(self._clock.part(1 / left))
            path.append(self.one_more(path[-1], most_work, clock))
            is_cut |= clock.is_over
            modes, supposed = self._at_modes(path, modes, False), self._at_modes(path, supposed, True)
        return FoundParticles(path, modes, supposed, is_cut)

    def _modes_of(self, placed: Placed, independent: bool) -> Modes:
        losses = loss_matrix(placed.partitions, self._draws, self._record)
        return separated_modes(placed.partitions, losses, self._draws.samples, self._record, independent=independent)

    def _at_modes(self, path: list[Placed], found: Placed, independent: bool) -> Placed:
        """One particle for each mode that the last particles of the path show, if these are more modes than `found`."""
        modes = self._modes_of(path[-1], independent)
        if modes.n_modes <= len(found.partitions):
            return found
        one_each = path[modes.n_modes - 1]
        if modes.n_modes == len(path) or self._modes_of(one_each, independent).n_modes == modes.n_modes:
            return one_each
        weights = np.bincount(path[-1].nearest, self._all.weights, modes.mode.size)
        heaviest = [max(np.flatnonzero(modes.mode == g), key=lambda k: weights[k]) for g in range(modes.n_modes)]
        return self._results(self._descend, [(self._all, path[-1].partitions[heaviest])])[0]

    def one_more(self, fewer: Placed, most_work: float, clock: Clock) -> Placed:
        """Find one more particle; the distance to the draws never rises."""
        number = len(fewer.partitions) + 1
        n_starts, rng = self._n_starts, self._rng
        some = self._sample(_MOST, rng)
        warm = self._with_one_draw(fewer, some)
        found = self._results(self._descend, [(some, start) for start in warm])
        seeds = self._seeds(n_starts)
        for first in range(0, n_starts, _STARTS_AT_ONCE):
            if self._executor.stopped or clock.is_over:
                break
            started = [(some, number, None, seed) for seed in seeds[first : first + _STARTS_AT_ONCE]]
            found += self._results(self._run, started)
        found = _best(found)
        in_vain = 0  # changes since the last improvement
        while in_vain < n_starts and not (self._executor.stopped or clock.is_over) and self._work <= most_work:
            best = found[0]
            starts = [one.partitions for one in found[:_AT_ONCE]]
            starts += [self._swapped(some, one) for one in found[:_AT_ONCE]]
            calls = [(some, number, start, seed) for start, seed in zip(starts, self._seeds(len(starts)), strict=True)]
            found = _best(found + self._results(self._run, calls))
            in_vain = 0 if found[0].value < best.value - SAME * abs(best.value) else in_vain + len(calls)
        if some is self._all:
            return found[0]
        ends = [warm[0], *(one.partitions for one in found[:_ENDS])]
        return min(self._results(self._descend, [(self._all, end) for end in ends]), key=_value)

    def _seeds(self, number: int) -> list[int]:
        return list(self._rng.integers(2**63, size=number).tolist())

    def _results(self, function: Callable[..., Placed | None], calls: list[tuple[Any, ...]]) -> list[Placed]:
        found = [one for one in self._executor.results(function, calls) if one is not None]
        self._work += sum(one.work for one in found)
        return found

    def _with_one_draw(self, fewer: Placed, some: _Draws) -> list[Labels]:
        """Particles with one draw added, for the draws that lower the distance to some draws most."""
        near, weights = fewer.losses.min(axis=0), self._all.weights
        rows = np.unique(_at_quantiles(weights * near, (np.arange(_EACH) + self._rng.random(_EACH)) / _EACH))
        values = np.minimum(self._losses(self._all.labels[rows], some), near[some.rows]) @ some.weights
        return [self._with(fewer.partitions, rows[k]) for k in np.argsort(values, kind="stable")[:_WARM]]

    def _swapped(self, draws: _Draws, placed: Placed) -> Labels:
        """Replace a random particle by a draw, sampled in proportion to its loss."""
        left_out = self._rng.integers(len(placed.partitions))
        near = np.delete(placed.losses, left_out, axis=0).min(axis=0)
        row = draws.rows[_at_quantiles(draws.weights * near, self._rng.random(1))[0]]
        return self._with(np.delete(placed.partitions, left_out, axis=0), row)

    def _with(self, partitions: Labels, row: np.intp) -> Labels:
        return np.vstack([partitions, self._all.labels[row].astype(np.int32)])

    def _run(self, draws: _Draws, number: int, partitions: Labels | None, seed: int) -> Placed | None:
        """Descend on samples of all draws, then on `draws`; without `partitions`, start from distant draws.

        None if it has not begun before the end.
        """
        if self._executor.stop[0]:
            return None
        rng = np.random.default_rng(seed)
        work = 0
        for times in _SAMPLES:
            sample = self._sample(times * _EACH * number, rng)
            if partitions is None:
                partitions = self._start(sample, number, rng)
            placed = self._descend(sample, partitions, _STEPS)
            partitions, work = placed.partitions, work + placed.work
        assert partitions is not None
        placed = self._descend(draws, partitions)
        return placed._replace(work=placed.work + work)

    def _start(self, draws: _Draws, number: int, rng: np.random.Generator) -> Labels:
        labels = draws.labels
        rows = _far_apart(draws.weights, number, lambda row: self._losses(labels[row : row + 1], draws)[0], rng)
        return labels[rows].astype(np.int32)

    def _sample(self, size: int, rng: np.random.Generator) -> _Draws:
        """Sample `size` draws by their weights."""
        rows, labels, n_clusters, weights = self._all
        if rows.size <= size:
            return self._all
        order = rng.permutation(rows.size)
        quantiles = (np.arange(size) + rng.random()) / size
        times = np.bincount(order[_at_quantiles(weights[order], quantiles)])
        rows = np.flatnonzero(times)
        return _Draws(rows, labels[rows], n_clusters[rows], times[rows] / size)

    def _losses(self, partitions: npt.NDArray[Any], draws: _Draws) -> Floats:
        if self._merged.lacks_items:
            return loss_matrix(partitions, self._merged.take(draws.rows), self._record)
        return unscaled_losses(partitions, draws.labels, draws.n_clusters, self._loss)

    def _placed(self, draws: _Draws, partitions: Labels) -> Placed:
        losses = self._losses(partitions, draws)
        return Placed(partitions, losses, float(losses.min(axis=0) @ draws.weights))

    def _descend(self, draws: _Draws, partitions: Labels, most: int | None = None) -> Placed:
        """Alternate between assigning draws to the nearest particle and improving each particle for its draws."""
        placed = self._placed(draws, partitions.copy())
        nearest = placed.nearest
        changed = set(range(len(partitions)))
        steps = work = 0
        while changed and steps != most and not self._executor.stop[0]:
            for k in sorted(changed):
                own = np.flatnonzero(nearest == k)
                work += own.size * placed.partitions.shape[1] * (int(placed.partitions[k].max()) + 1)
                self._improve(draws, placed, k, own)
            before, nearest = nearest, placed.nearest
            moved = before != nearest
            changed = {*before[moved].tolist(), *nearest[moved].tolist()}
            steps += 1
        return placed._replace(value=float(placed.losses.min(axis=0) @ draws.weights), work=work)

    def _improve(self, draws: _Draws, placed: Placed, k: int, own: Positions) -> None:
        """Improve particle k for its draws if that lowers the distance; without draws, move it to the farthest one."""
        if own.size:
            found = self._problem.descend_on(placed.partitions[k], draws.rows[own], draws.weights[own])
            if np.array_equal(found, placed.partitions[k]):
                return
        else:
            found = draws.labels[np.argmax(draws.weights * placed.losses.min(axis=0))].astype(np.int32)
        losses = placed.losses.copy()
        losses[k] = self._losses(found[np.newaxis], draws)[0]
        value, before = losses.min(axis=0) @ draws.weights, placed.losses.min(axis=0) @ draws.weights
        if value < before - SAME * abs(before):
            placed.partitions[k], placed.losses[k] = found, losses[k]


def extended(
    draws: PartitionDraws, at: Positions, partitions: npt.NDArray[np.int32], nearest: Positions
) -> npt.NDArray[np.int32]:
    """Extend partitions (P, m) of the items at positions `at` to all items (P, n), in one pass over all labels.

    Every other item joins the cluster with the largest mean similarity, over the draws `nearest` to the partition.
    """
    backend = draws.clusters
    labels = np.ascontiguousarray(backend.columns(at).T)
    sizes = [np.bincount(partition) for partition in partitions]
    counts = [
        ensemble.joint_counts(labels, backend.starts, one, k.size) for one, k in zip(partitions, sizes, strict=True)
    ]
    for table in counts:
        table[draws.noise_rows] = 0  # which are together with nothing
    weights = [draws.weights * (nearest == k) for k in range(len(partitions))]
    full = np.empty((len(partitions), draws.n_items), np.int32)
    for items, joined in backend.map_blocks(_nearest_clusters, backend.starts, counts, sizes, weights):
        full[:, items] = joined
    full[:, at] = partitions
    return np.stack([canonical_labels(one) for one in full])


def _nearest_clusters(
    labels: npt.NDArray[Any],
    items: slice,
    starts: Integers,
    counts: list[npt.NDArray[np.int32]],
    sizes: list[Positions],
    weights: list[Floats],
) -> Positions:
    labels = np.ascontiguousarray(labels)
    links = (ensemble.gather(labels, starts, w, table) / k for w, table, k in zip(weights, counts, sizes, strict=True))
    return np.stack([one.argmax(axis=1) for one in links])


def merged(draws: PartitionDraws) -> PartitionDraws:
    """Distinct partitions of the draws with their total weights, as one chain, without draws of weight 0."""
    draws = draws.without_zero_weights()
    first, which = distinct_rows(draws.labels)
    samples = Samples.of_one_chain(first.size).weighted(np.bincount(which, draws.weights).astype(np.float64))
    return replace(draws.labels_only().take(first), samples=samples)


def _at_quantiles(shares: Floats, quantiles: Floats) -> Positions:
    reached = np.cumsum(shares)
    return np.searchsorted(reached[:-1], quantiles * reached[-1], side="right")


def _best(found: list[Placed]) -> list[Placed]:
    """The best few by value, without duplicates."""
    best: list[Placed] = []
    for one in sorted(found, key=_value):
        if not best or one.value > best[-1].value + SAME * abs(best[-1].value):
            best.append(one)
    return best[:_AT_ONCE]


def _value(placed: Placed) -> float:
    return placed.value


def _far_apart(
    weights: Floats, number: int, losses_from: Callable[[int], Floats], rng: np.random.Generator
) -> list[int]:
    """Sample rows of draws, each in proportion to its distance from the previous ones (k-means++)."""
    shares, near, rows = weights, np.full(weights.size, np.inf), list[int]()
    for _ in range(number):
        rows.append(int(_at_quantiles(shares, rng.random(1))[0]))
        near = np.minimum(near, losses_from(rows[-1]))
        shares = weights * near if near.any() else weights
    return rows
