"""Greedy search of many items: on a sample of them, then over all in blocks of items.

The sample's partition is extended to all items, block by block. Then all items are scored against the tables as they
are, in blocks that threads or workers take, and the few that may gain by a move are moved one by one, in their order,
with exact scores. That is repeated until nothing moves and no two clusters merge. Each step reads all labels once, and
keeps tables of the draws' clusters by those of the partition.

No result depends on the sizes of the blocks: sums over blocks are counts, tables are frozen for a whole pass,
and items in doubt move in the order of all items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels import ensemble, tables
from posterior_consensus.kernels.cells import Dense, Draws, compact, searched, tables_of
from posterior_consensus.kernels.clusters import merge
from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss
from posterior_consensus.kernels.moves import Course, allocate, move_doubtful
from posterior_consensus.kernels.scores import score_block
from posterior_consensus.kernels.tables import (
    MERGES,
    MOVES,
    SCANS,
    Scores,
    Scratch,
    Search,
    Slopes,
    search_of,
    slopes_of,
)
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.problem import Problem
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.progress import track
from posterior_consensus.search.local_search import (
    DOUBT,
    DOUBT_OF_FIRST_ORDER,
    OnAll,
    Optimum,
    Sample,
    is_sparse,
    limits_in_memory,
    numbered,
)
from posterior_consensus.search.runs import is_less

_ITEMS, _DRAWS = 2**16, 2**10  # of the sample, at most
_TIMES_THE_SAMPLE = 2  # as many items as it has, at least
_LABELS = 2**22  # from which half of fewer items are searched; the benchmark "sampled" compares both searches
_LEAST_ITEMS = 2**14  # of such a half: Binder's loss of fewer would be searched over pairs, which takes longer
_SPARE = 8  # columns for clusters to come
_AT_ONCE = 4096  # items for which the same tables are made ready, whose sums stay in the second cache


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleOfDraws(Sample):
    """Some items and draws of a posterior, as a posterior of their own."""

    source: PartitionDraws
    loss: PartitionLoss
    rows: npt.NDArray[np.intp]
    labels: npt.NDArray[Any]  # as the draws of all items number them

    def on_all(self, executor: Executor, progressbar: bool) -> OnBlocks:
        """The search over all items in blocks."""
        return OnBlocks(self, executor, progressbar)


class _Terms(NamedTuple):
    """What blocks of items are scored by: all but their own labels and partition."""

    starts: npt.NDArray[np.int64]
    weights: Floats
    sizes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int32]
    slopes: Slopes
    most: int

    def scores(self, labels: npt.NDArray[Any], partition: Labels, entering: Floats) -> tuple[Floats, Floats, Labels]:
        """Scores for staying, margins and targets of a block; fills `entering` if it has columns."""
        nothing = np.zeros(self.weights.size)
        state = Dense(partition, self.sizes, nothing, nothing, self.counts)
        staying, margins, targets = np.zeros(partition.size), np.empty(partition.size), np.zeros(partition.size, int)
        draws = Draws(labels, self.starts, self.weights)
        none = np.empty(0, np.int64)
        out = Scratch(np.empty(0), np.empty(0, np.int32), np.empty(0, np.bool_), none, np.zeros(1, np.uint8))
        scores = Scores(staying, margins, targets, entering)
        for first in range(0, partition.size, _AT_ONCE):
            score_block(state, draws, self.slopes, first, min(first + _AT_ONCE, partition.size), scores, out)
        return staying, margins, targets

    @property
    def may_open(self) -> bool:
        return int(np.count_nonzero(self.sizes)) < self.most


def sample_of(problem: Problem, rng: np.random.Generator) -> SampleOfDraws | None:
    """Take items at random and draws that are evenly spaced by their weights, if there are many.

    The rule is one of sizes alone, which no machine changes. Sparse tables keep their own way, whose work is in
    proportion to their cells.
    """
    draws, loss, limits = problem.source.counted_draws, problem.loss, problem.n_clusters
    if draws is None or not isinstance(loss, PartitionLoss):
        return None
    n_items, n_draws, drawn = draws.n_items, draws.n_draws, draws.backend
    n_sampled = min(_ITEMS, n_items)
    if n_items * n_draws >= _LABELS and n_items >= _TIMES_THE_SAMPLE * _LEAST_ITEMS:
        n_sampled = min(_ITEMS, n_items // _TIMES_THE_SAMPLE)
    is_small = n_items < _TIMES_THE_SAMPLE * n_sampled and memory.fits(n_items * n_draws * drawn.dtype.itemsize)
    if is_small or limits.fewest >= n_sampled or is_sparse(draws, limits.fewest):
        return None
    items, rows, samples = np.arange(n_items), np.arange(n_draws), draws.samples
    if n_items > n_sampled:
        items = np.sort(rng.choice(n_items, n_sampled, replace=False, shuffle=False))
    if n_draws > _DRAWS:
        times = np.bincount(samples.at_quantiles((np.arange(_DRAWS) + 0.5) / _DRAWS))
        rows = np.flatnonzero(times)
        samples = samples.take(rows).weighted(times[rows].astype(np.float64))
    labels = np.concatenate([part for _, part in drawn.map_blocks(_labels_of_rows, items, rows)], axis=1)
    part = draws.canonical(labels, int(drawn.n_clusters[rows].max()))
    some = replace(draws, items=draws.items.take(items), samples=samples, backend=part)
    return SampleOfDraws(
        source=some, loss=loss, limits=problem.limits, items=items, of=problem, rows=rows, labels=labels
    )


class OnBlocks(OnAll):
    """A search over all items in blocks, from a partition of some or all of them."""

    def __init__(self, sample: SampleOfDraws, executor: Executor, progressbar: bool) -> None:
        self._sample, self._draws, self._executor = sample, sample.of.source.as_draws(lacking=True), executor
        self._lacking = self._draws.lacks_items
        self._weights = self._draws.weights * self._draws.relative_scales(sample.loss)
        self.bytes_a_cluster = 4 * int(self._draws.starts[-1])
        self.limits = limits_in_memory(self.bytes_a_cluster, sample.of.n_clusters, self._draws.most_clusters)
        self._loss = sample.loss.arrays(self._draws.n_items)
        self._linear = sample.loss.is_linear
        self._doubt = DOUBT if self._linear else max(DOUBT, DOUBT_OF_FIRST_ORDER / self._draws.n_items)
        self._progressbar = progressbar
        self.tally = np.zeros(6, np.int64)  # of all searches

    def descend(self, of_sample: Labels, given: list[Labels]) -> Optimum:
        """Search from a partition of the sample, and from those of all items that are within the limits."""
        ends = [self._descend(np.full(self._draws.n_items, -1, np.int32), of_sample)]
        ends += [
            self._descend(labels.copy(), of_sample)
            for labels in given
            if labels.size == self._draws.n_items and self.limits.fewest <= labels.max() + 1 <= self.limits.most
        ]
        least = min(ends, key=lambda end: end.value)
        if self.limits.fewest == 1 and is_less(least.in_one, least.value):
            ends.append(self._descend(np.zeros_like(least.labels), of_sample))
        return min(ends, key=lambda end: end.value)

    def _descend(self, partition: Labels, of_sample: Labels) -> Optimum:
        """Search from a partition, after the sample's is extended if it has items to allocate; changes it."""
        try:
            value, in_one = self._until_none_moves(partition, of_sample)
        except KeyboardInterrupt:  # which may have come between a move and its note in the partition
            self._executor.halt("interrupted")
            value, in_one = self._until_none_moves(partition, of_sample)
        return Optimum(numbered(partition), value, in_one, self.tally)

    def _until_none_moves(self, partition: Labels, of_sample: Labels) -> tuple[float, float]:
        """Move items and merge clusters, in place, until nothing lowers the expected loss."""
        counts = self._extended(partition, of_sample) if partition.min() < 0 else self._tables(partition)
        n_draws = self._draws.n_draws
        sizes = np.bincount(partition, minlength=counts.shape[1])
        state = Dense(partition, sizes, np.zeros(n_draws), np.zeros(n_draws), counts)
        slopes = slopes_of(self._loss, n_draws, self._lacking)
        no_labels = searched(np.empty((n_draws, 0), self._draws.backend.dtype))  # which merges do without
        draws = Draws(no_labels, self._draws.starts, self._weights)
        while True:
            value, in_one = _refresh(draws, self._loss, state, slopes)
            too_many = int(np.count_nonzero(state.sizes)) > self.limits.most
            if self._executor.is_over() and not too_many:
                return value, in_one
            moved = 0
            if not too_many:
                state, moved = self._scan(state, slopes)
            if moved == 0:
                merges = merge(self._search(draws, state, slopes), state)
                self.tally[MERGES] += merges
                if merges == 0:
                    return value, in_one

    def _scan(self, state: Dense, slopes: Slopes) -> tuple[Dense, int]:
        """Score all items against frozen tables, move the items that gain, and return their number."""
        draws = self._draws
        terms = self._terms(draws.starts, self._weights, state, slopes)
        moved = 0
        blocks = draws.backend.map_blocks(_doubtful, terms, state.partition.copy(), self._doubt, self._linear)
        for items, (at, labels, staying, margins, entering) in self._tracked(blocks, "scan"):
            if self._executor.is_over():
                break
            if at.size == 0:
                continue
            partition = state.partition[items][at]
            few, some = Draws(searched(labels), draws.starts, self._weights), state._replace(partition=partition)
            scores = Scores(staying, margins.copy(), np.zeros(at.size, int), entering)  # whose margins change
            now = 0.0 if self._linear else tables.current(self._loss, few, some)
            course = Course(now, int(np.count_nonzero(state.sizes)), state.sizes.size, 0)
            search = self._search(few, some, slopes)
            after, course = move_doubtful(search, some, np.arange(at.size), scores, self._doubt, course)
            state.partition[items.start + at] = partition
            state = after._replace(partition=state.partition)
            moved += course.moved
        self.tally[[SCANS, MOVES]] += 1, moved
        return state, moved

    def _extended(self, partition: Labels, of_sample: Labels) -> npt.NDArray[np.int32]:
        """Allocate all other items by the sample's tables, in place; return the tables of all.

        Items that prefer a singleton are allocated one by one, so that they can join each other.
        """
        draws, rows, labels = self._draws, self._sample.rows, self._sample.labels
        starts = np.concatenate([[0], np.cumsum(draws.backend.n_clusters[rows])])
        width = int(of_sample.max()) + 1 + _SPARE
        own = self._sample.source
        few = Draws(searched(labels), starts, own.weights * own.relative_scales(self._sample.loss))
        state = tables_of(few, of_sample.copy(), width)
        # of blocks, of single items
        slopes, single = (slopes_of(self._loss, rows.size, self._lacking) for _ in range(2))
        _refresh(few, self._sample.loss.arrays(of_sample.size), state, slopes)
        terms = self._terms(starts, few.weights, state, slopes)
        partition[:] = -1
        partition[self._sample.items] = of_sample
        counts = np.zeros((int(draws.starts[-1]), width), np.int32)
        blocks = draws.backend.map_blocks(_allocated, terms, partition.copy(), draws.starts, rows)
        for items, (found, at, columns, counted) in self._tracked(blocks, "extension"):
            partition[items] = found
            if at.size:
                few = few._replace(labels=searched(columns[rows]))
                state = state._replace(partition=np.full(at.size, -1, np.int32))
                state = allocate(self._search(few, state, single), state, np.arange(at.size))
                partition[items.start + at] = state.partition
                counts = np.pad(counts, ((0, 0), (0, state.sizes.size - counts.shape[1])))
            if counted.dtype == counts.dtype:
                ensemble.add_joint_counts(columns, draws.starts, partition[items.start + at], counts)
            _add_counts(counts, counted, draws.starts, partition[items])
        return counts

    def _tables(self, partition: Labels) -> npt.NDArray[np.int32]:
        """The tables of a partition of all items."""
        starts, width = self._draws.starts, int(partition.max()) + 1 + _SPARE
        counts = np.zeros((int(starts[-1]), width), np.int32)
        blocks = self._draws.backend.map_blocks(_counted, partition.copy(), starts, width)
        for items, counted in self._tracked(blocks, "tables"):
            _add_counts(counts, counted, starts, partition[items])
        return counts

    def _search(self, draws: Draws, state: Dense, slopes: Slopes) -> Search:
        return search_of(draws, self._loss, slopes, state, self.limits, np.zeros(1, np.uint8))

    def _terms(self, starts: npt.NDArray[np.int64], weights: Floats, state: Dense, slopes: Slopes) -> _Terms:
        sizes, counts = state.sizes.copy(), state.counts.copy()  # which stay while items move
        return _Terms(starts, weights, sizes, counts, slopes, self.limits.most)

    def _tracked(self, blocks: Iterator[Any], what: str) -> Iterator[Any]:
        return track(blocks, f"Greedy search, {what}", progressbar=self._progressbar)


def _refresh(draws: Draws, loss: LinearLoss | GeneralLoss, state: Dense, slopes: Slopes) -> tuple[float, float]:
    """Move the clusters to the first columns, and compute the sums and slopes anew.

    Returns the expected loss without its scale, and the loss of the partition with one cluster.
    """
    compact(draws, state)
    value, in_one = tables.losses_of_tables(draws, loss, state, slopes)
    tables.set_slopes(loss, draws, state, slopes)
    return value, in_one


def _labels_of_rows(
    labels: npt.NDArray[Any], items: slice, chosen: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]
) -> npt.NDArray[Any]:
    """Labels of the chosen items of a block in some draws."""
    first, last = np.searchsorted(chosen, [items.start, items.stop])
    return labels[:, chosen[first:last] - items.start][rows]


def _counted(
    labels: npt.NDArray[Any], items: slice, partition: Labels, starts: npt.NDArray[np.int64], width: int
) -> npt.NDArray[Any]:
    """Contingency counts (R, width) of a block of items, int32, or its labels where these are smaller."""
    return _counts_or_labels(np.ascontiguousarray(labels), starts, partition[items], width)


def _counts_or_labels(
    labels: npt.NDArray[Any], starts: npt.NDArray[np.int64], partition: Labels, width: int
) -> npt.NDArray[Any]:
    """Contingency counts, int32, or the labels, unsigned, if these are smaller; their dtypes tell them apart."""
    if labels.nbytes < 4 * int(starts[-1]) * width:
        return labels
    counts: npt.NDArray[np.int32] = ensemble.joint_counts(labels, starts, partition, width)
    return counts


def _add_counts(
    counts: npt.NDArray[np.int32], counted: npt.NDArray[Any], starts: npt.NDArray[np.int64], partition: Labels
) -> None:
    """Add what a block counted, or count the labels that it gave instead."""
    if counted.dtype == counts.dtype:
        counts[:, : counted.shape[1]] += counted
    else:
        ensemble.add_joint_counts(counted, starts, partition, counts)


def _allocated(
    labels: npt.NDArray[Any],
    items: slice,
    terms: _Terms,
    partition: Labels,
    starts: npt.NDArray[np.int64],
    rows: npt.NDArray[np.intp],
) -> tuple[Labels, npt.NDArray[np.intp], npt.NDArray[Any], npt.NDArray[Any]]:
    """Clusters of a block's items; the items that prefer a singleton and their labels; the counts of the others.

    Instead of the counts the labels of all, where these are smaller.
    """
    labels = np.ascontiguousarray(labels)
    some = labels if rows.size == len(labels) else labels[rows]
    own = partition[items]
    _, margins, targets = terms.scores(some, np.full(own.size, -1, np.int32), np.empty((1, 0)))
    found = np.where(own < 0, targets, own).astype(np.int32)
    at = np.flatnonzero((own < 0) & (margins > 0.0)) if terms.may_open else np.empty(0, np.intp)
    width = terms.sizes.size
    found[at] = width  # a column of their own, which is left out
    counted = _counts_or_labels(labels, starts, found, width + 1)
    return found, at, labels[:, at], counted[:, :width] if counted is not labels else labels


def _doubtful(
    labels: npt.NDArray[Any], items: slice, terms: _Terms, partition: Labels, doubt: float, linear: bool
) -> tuple[npt.NDArray[Any], ...]:
    """Those of a block's items that may gain by a move: places, labels, scores, margins, scores elsewhere."""
    labels = np.ascontiguousarray(labels)
    own = partition[items]
    entering = np.empty((1, 0)) if linear else np.full((own.size, terms.sizes.size), np.inf)
    staying, margins, _ = terms.scores(labels, own, entering)
    sizes = terms.sizes[own]
    best = np.minimum(margins, np.where((sizes > 1) & terms.may_open, -staying, np.inf))
    at = np.flatnonzero(best <= doubt * np.abs(staying - terms.slopes.b[0] * terms.slopes.steps[sizes]))
    return at, labels[:, at], staying[at], margins[at], entering if linear else entering[at]
