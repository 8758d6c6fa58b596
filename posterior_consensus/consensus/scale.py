"""Greedy search of many items: on a sample of them, then over all in blocks of items.

The sample's partition is extended to all items, block by block. Then all items are scored against the tables as they
are, in blocks that threads or workers take, and the few that may gain by a move are moved one by one, in their order,
with exact scores. That is repeated until nothing moves and no two clusters merge. Each step reads all labels once, and
keeps tables of the draws' clusters by those of the partition.

No answer depends on the sizes of the blocks: what is summed over them are counts, tables are frozen for a whole pass,
and items in doubt move in the order of all items.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus import memory
from posterior_consensus.consensus.problems import Found, Limits, is_sparse, numbered
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.executor import Executor
from posterior_consensus.kernels import ensemble, scale
from posterior_consensus.kernels.cells import Dense, Draws, Slopes
from posterior_consensus.kernels.loss import LinearLoss, Loss
from posterior_consensus.kernels.search import FIRST_ORDER, MARGIN, MERGES, MOVES, SCANS
from posterior_consensus.loss_record import Objective, PairLoss, PartitionLoss
from posterior_consensus.partitions import Labels, canonical_rows
from posterior_consensus.progress import track

Floats = npt.NDArray[np.float64]

_ITEMS, _DRAWS = 2**16, 2**10  # of the sample
_MANY = 2  # times as many items, from which a sample is searched
_SPARE = 8  # columns for clusters to come


class Sample(NamedTuple):
    """Some items and draws of a posterior, as a posterior of their own."""

    draws: PartitionDraws
    items: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    labels: npt.NDArray[Any]  # as all items number them

    def part_of(self, labels: Labels) -> Labels:
        """A partition of all items, or of the sample, on the sample."""
        return labels if labels.size == self.items.size else numbered(labels[self.items])


class _Terms(NamedTuple):
    """What blocks of items are scored by: all but their own labels and partition."""

    starts: npt.NDArray[np.int64]
    weights: Floats
    sizes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int32]
    slopes: Slopes
    difference: Floats
    most: int

    def scores(self, labels: npt.NDArray[Any], partition: Labels, entering: Floats) -> tuple[Floats, Floats, Labels]:
        """Scores for staying, margins and targets of a block; fills `entering` if it has columns."""
        nothing = np.zeros(self.weights.size)
        state = Dense(partition, self.sizes, nothing, nothing, self.counts)
        staying, margins, targets = np.empty(partition.size), np.empty(partition.size), np.zeros(partition.size, int)
        draws = Draws(labels, self.starts, self.weights)
        scale.score(draws, state, self.slopes, self.difference, staying, margins, targets, entering)
        return staying, margins, targets

    @property
    def may_open(self) -> bool:
        return int(np.count_nonzero(self.sizes)) < self.most


def is_large(source: PairSource, loss: Objective, limits: Limits) -> bool:
    """Whether a search begins on a sample: a rule of sizes alone, which no machine changes.

    Sparse tables keep their own way, whose work is in proportion to their cells.
    """
    if not isinstance(source, PartitionDraws) or isinstance(loss, PairLoss) or not source.labels_are_sure:
        return False
    n_bytes = source.n_items * source.n_draws * source.drawn.dtype.itemsize
    many = source.n_items >= _MANY * _ITEMS or not memory.fits(n_bytes)
    return many and limits.fewest < _ITEMS and (limits.fewest > 1 or not is_sparse(source))


def sample_of(draws: PartitionDraws, rng: np.random.Generator) -> Sample:
    """Take items at random and draws that are evenly spaced by their weights."""
    items = np.arange(draws.n_items)
    if draws.n_items > _ITEMS:
        items = np.sort(rng.choice(draws.n_items, _ITEMS, replace=False, shuffle=False))
    rows, samples = np.arange(draws.n_draws), draws.samples
    if draws.n_draws > _DRAWS:
        times = np.bincount(np.searchsorted(np.cumsum(draws.weights)[:-1], (np.arange(_DRAWS) + 0.5) / _DRAWS))
        rows = np.flatnonzero(times)
        samples = samples.take(rows).weighted(times[rows].astype(np.float64))
    parts = [part for _, part in draws.drawn.map_blocks(_some, items, rows)]
    labels = np.concatenate(parts, axis=1)
    drawn = LabelsInMemory(*canonical_rows(labels, int(draws.n_clusters[rows].max())))
    return Sample(replace(draws, items=draws.items.take(items), samples=samples, drawn=drawn), items, rows, labels)


class OnBlocks:
    """A search over all items from a partition of some or all of them."""

    def __init__(
        self, draws: PartitionDraws, loss: PartitionLoss, limits: Limits, executor: Executor, progressbar: bool
    ) -> None:
        self._bytes_a_cluster = 4 * int(draws.starts[-1])
        self.check_memory(limits.fewest)
        self.limits = limits._replace(most=min(limits.most, memory.budget() // self._bytes_a_cluster))
        self._draws, self._record, self._executor = draws, loss, executor
        self._loss = loss.arrays(draws.n_items)
        self._linear = isinstance(self._loss, LinearLoss)
        self._difference = np.concatenate([[0.0], np.diff(self._loss.h), [0.0]])
        self._doubt = MARGIN if self._linear else max(MARGIN, FIRST_ORDER / draws.n_items)
        self._progressbar = progressbar
        self._tally = np.zeros(6, np.int64)

    def check_memory(self, n_clusters: int) -> None:
        """Refuse what the tables of so many clusters do not leave room for."""
        what = f"A search among {n_clusters} clusters"
        memory.check(self._bytes_a_cluster * n_clusters, what, "Thin the draws, or ask for fewer clusters.")

    def takes(self, labels: Labels) -> bool:
        """Whether a search can begin with this partition."""
        return labels.size == self._draws.n_items and self.limits.fewest <= labels.max() + 1 <= self.limits.most

    def extend(self, sample: Sample, labels: Labels) -> Found:
        """Search from a partition of the sample."""
        partition = np.full(self._draws.n_items, -1, np.int32)
        partition[sample.items] = labels
        return self._settle(partition, self._extended(sample, labels, partition))

    def polish(self, labels: Labels) -> Found:
        """Search from a partition of all items."""
        partition = labels.copy()
        return self._settle(partition, self._tables(partition))

    def _settle(self, partition: Labels, counts: npt.NDArray[np.int32]) -> Found:
        self._tally = np.zeros(6, np.int64)
        try:
            value, in_one = self._improve(partition, counts)
        except KeyboardInterrupt:  # which may have come between a move and its note in the partition
            self._executor.halt("interrupted")
            value, in_one = self._improve(partition, self._tables(partition))
        return Found(numbered(partition), value, in_one, self._tally)

    def _improve(self, partition: Labels, counts: npt.NDArray[np.int32]) -> tuple[float, float]:
        """Move items and merge clusters, in place, until nothing lowers the expected loss."""
        n_draws = self._draws.n_draws
        state = _state(partition, counts, n_draws)
        slopes = Slopes(np.empty(n_draws), np.empty(1))
        no_labels = np.empty((n_draws, 0), self._draws.drawn.dtype)
        draws = Draws(no_labels, self._draws.starts, self._draws.weights)
        while True:
            value, in_one = scale.survey(draws, self._loss, state, slopes)
            too_many = int(np.count_nonzero(state.sizes)) > self.limits.most
            if self._executor.is_over() and not too_many:
                return value, in_one
            moved = 0
            if not too_many:
                state, moved = self._scan(state, slopes)
            if moved == 0:
                merges = scale.merge(draws, self._loss, state, slopes, self._difference, *self.limits)
                self._tally[MERGES] += merges
                if merges == 0:
                    return value, in_one

    def _scan(self, state: Dense, slopes: Slopes) -> tuple[Dense, int]:
        """Score all items against the tables as they are, and move those that gain; how many did."""
        draws = self._draws
        terms = _Terms(
            draws.starts,
            draws.weights,
            state.sizes.copy(),
            state.counts.copy(),
            slopes,
            self._difference,
            self.limits.most,
        )
        moved = 0
        blocks = draws.drawn.map_blocks(_doubtful, terms, state.partition.copy(), self._doubt, self._linear)
        for items, (at, labels, staying, margins, targets, entering) in self._tracked(blocks, "scan"):
            if self._executor.is_over():
                break
            if at.size == 0:
                continue
            partition = state.partition[items][at]
            after, moves = scale.move_doubtful(
                Draws(labels, draws.starts, draws.weights),
                self._loss,
                state._replace(partition=partition),
                slopes,
                self._difference,
                staying,
                margins,
                targets,
                entering,
                *self.limits,
                self._doubt,
            )
            state.partition[items.start + at] = partition
            state = after._replace(partition=state.partition)
            moved += moves
        self._tally[[SCANS, MOVES]] += 1, moved
        return state, moved

    def _extended(self, sample: Sample, labels: Labels, partition: Labels) -> npt.NDArray[np.int32]:
        """Allocate all other items by the sample's tables, in place; return the tables of all.

        Those that are better off in a cluster of their own are allocated one by one, so that they find each other.
        """
        draws, rows = self._draws, sample.rows
        starts = np.concatenate([[0], np.cumsum(draws.n_clusters[rows])])
        width = int(labels.max()) + 1 + _SPARE
        state = _state(labels.copy(), ensemble.joint_counts(sample.labels, starts, labels, width), rows.size)
        few = Draws(sample.labels, starts, sample.draws.weights)
        slopes = Slopes(np.empty(rows.size), np.empty(1))
        scale.survey(few, self._record.arrays(labels.size), state, slopes)
        terms = _Terms(
            starts, few.weights, state.sizes.copy(), state.counts.copy(), slopes, self._difference, self.limits.most
        )
        counts = np.zeros((int(draws.starts[-1]), width), np.int32)
        blocks = draws.drawn.map_blocks(_allocated, terms, partition.copy(), draws.starts, rows)
        for items, (found, at, columns, added) in self._tracked(blocks, "extension"):
            counts[:, :width] += added
            partition[items] = found
            if at.size:
                few = few._replace(labels=columns[rows])
                state = scale.place(
                    few,
                    self._loss,
                    state._replace(partition=np.full(at.size, -1, np.int32)),
                    self._difference,
                    self.limits.most,
                )
                partition[items.start + at] = state.partition
                counts = _widened(counts, state.sizes.size)
                counts += ensemble.joint_counts(columns, draws.starts, state.partition, counts.shape[1])
        return counts

    def _tables(self, partition: Labels) -> npt.NDArray[np.int32]:
        width = int(partition.max()) + 1 + _SPARE
        total = np.zeros((int(self._draws.starts[-1]), width), np.int32)
        blocks = self._draws.drawn.map_blocks(_counts, partition, self._draws.starts, width)
        for _, counts in self._tracked(blocks, "tables"):
            total += counts
        return total

    def _tracked(self, blocks: Any, what: str) -> Any:
        return track(blocks, f"Greedy search, {what}", progressbar=self._progressbar)


def _some(
    labels: npt.NDArray[Any], items: slice, chosen: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]
) -> npt.NDArray[Any]:
    """Labels of the chosen items of a block in some draws."""
    first, last = np.searchsorted(chosen, [items.start, items.stop])
    return labels[:, chosen[first:last] - items.start][rows]


def _counts(
    labels: npt.NDArray[Any], items: slice, partition: Labels, starts: npt.NDArray[np.int64], width: int
) -> npt.NDArray[np.int32]:
    """Contingency counts (R, width) of a block of items."""
    counts: npt.NDArray[np.int32] = ensemble.joint_counts(np.ascontiguousarray(labels), starts, partition[items], width)
    return counts


def _allocated(
    labels: npt.NDArray[Any],
    items: slice,
    terms: _Terms,
    partition: Labels,
    starts: npt.NDArray[np.int64],
    rows: npt.NDArray[np.intp],
) -> tuple[Labels, npt.NDArray[np.intp], npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Clusters of a block's items, those that want one of their own with their labels, the counts of the others."""
    labels = np.ascontiguousarray(labels)
    some = labels if rows.size == len(labels) else labels[rows]
    own = partition[items]
    _, margins, targets = terms.scores(some, np.full(own.size, -1, np.int32), np.empty((1, 0)))
    found = np.where(own < 0, targets, own).astype(np.int32)
    at = np.flatnonzero((own < 0) & (margins > 0.0)) if terms.may_open else np.empty(0, np.intp)
    width = terms.sizes.size
    found[at] = width  # a column that is then left out
    counts = ensemble.joint_counts(labels, starts, found, width + 1)[:, :width]
    return found, at, labels[:, at], counts


def _doubtful(
    labels: npt.NDArray[Any], items: slice, terms: _Terms, partition: Labels, doubt: float, linear: bool
) -> tuple[npt.NDArray[Any], ...]:
    """Those of a block's items that may gain by a move: places, labels, scores, margins, targets, scores elsewhere."""
    labels = np.ascontiguousarray(labels)
    own = partition[items]
    entering = np.empty((1, 0)) if linear else np.full((own.size, terms.sizes.size), np.inf)
    staying, margins, targets = terms.scores(labels, own, entering)
    sizes = terms.sizes[own]
    best = np.minimum(margins, np.where((sizes > 1) & terms.may_open, -staying, np.inf))
    at = np.flatnonzero(best <= doubt * np.abs(staying - terms.slopes.b[0] * terms.difference[sizes]))
    return at, labels[:, at], staying[at], margins[at], targets[at], entering if linear else entering[at]


def _state(partition: Labels, counts: npt.NDArray[np.int32], n_draws: int) -> Dense:
    sizes = np.bincount(partition, minlength=counts.shape[1])
    return Dense(partition, sizes, np.zeros(n_draws), np.zeros(n_draws), counts)


def _widened(counts: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.int32]:
    return counts if counts.shape[1] == width else np.pad(counts, ((0, 0), (0, width - counts.shape[1])))
