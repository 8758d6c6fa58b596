"""Search for the least of a loss with noise: the partition of the items and of one more, which stands for the noise.

Its runs and restarts are those of any loss. Of many items, a sample is searched. All items are then scored against its
clusters and the noise, and moved to where the loss is least. That is repeated until no item gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.labels import slices
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels.pair_moves import Costs
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import NoiseLoss
from posterior_consensus.problems.problem import Limits, Problem, WithNoise
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.local_search import (
    OnAll,
    Optimum,
    OverSimilarities,
    Sample,
    Stop,
    descend_pairs,
    numbered,
)
from posterior_consensus.search.runs import without_gaps

_RUNS = 4  # runs from which a search starts, too
_MATRICES = 6  # of 8 bytes a pair that a search over pairs keeps
_MOST = 5000  # items up to which all pairs are searched, if memory allows: more took longer and gained nothing
_SAMPLE = 4096  # items of a sample that is searched of more
_PASSES = 50  # over all items after it, at most


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleWithNoise(Sample):
    """Some items of a problem with noise, and the one more, which is the last."""

    source: PartitionDraws
    of: WithNoise

    @property
    def size(self) -> list[int]:
        """Number of items, without the one more, and of runs."""
        return [self.items.size - 1, self.source.n_draws]

    def on_all(self, executor: Executor, progressbar: bool) -> OnAllWithNoise:
        """The search over all items by moves of all at once."""
        return OnAllWithNoise(self, executor.is_over)


def sample_with_noise(problem: WithNoise, rng: np.random.Generator) -> SampleWithNoise | None:
    """Take items at random, if they are many."""
    n = problem.items.size
    if n <= _MOST and memory.fits(8 * _MATRICES * n**2):
        return None
    number = min(n, _SAMPLE, int((memory.budget() / (8 * _MATRICES)) ** 0.5))
    items = np.append(np.sort(rng.choice(n, max(1, number), replace=False, shuffle=False)), n)
    part = problem.source.of_items(items)
    return SampleWithNoise(source=part, loss=problem.loss, limits=problem.limits, items=items, of=problem)


class _Scores(NamedTuple):
    """Expected loss of a partition, and the best place of each item, given all others."""

    value: float
    targets: Labels
    gains: npt.NDArray[np.float64]


class OnAllWithNoise(OnAll):
    """Moves of all items of a problem at once, by tables of the runs' clusters by those of a partition."""

    def __init__(self, sample: SampleWithNoise, is_over: Callable[[], bool]) -> None:
        self.limits, self._items, self._is_over = sample.of.n_clusters, sample.items, is_over
        self._draws, self._loss = sample.of.source, sample.of.loss
        self.bytes_a_cluster = 24 * self._draws.n_draws  # of three kinds of counts
        self.tally = np.zeros(6, np.int64)  # of which none is counted
        labels, self._weights = self._draws.labels, self._draws.weights
        self._active = labels != labels[:, -1:]
        parts = slices(labels.shape[1], max(1, memory.CELLS_AT_ONCE // len(labels)))  # whose numbers are floats
        self._share = 1.0 - np.concatenate([self._weights @ self._active[:, part] for part in parts])
        self._apart, self._joined = (self._loss.binder.numerator[term] for term in "CB")

    def descend(self, of_sample: Labels, given: list[Labels]) -> Optimum:
        """Search from a partition of the sample, and from those of all items."""
        begun = [self._extended(of_sample), *(labels for labels in given if labels.size == self._share.size)]
        best, value = min((self._descend(labels) for labels in begun), key=lambda one: one[1])
        return Optimum(best, value, np.inf, self.tally)

    def _extended(self, labels: Labels) -> Labels:
        """The partition of all items that one of the sample leads to, by a score each."""
        own = np.full(self._share.size, labels.max() + 1, np.int32)  # a cluster that counts for nothing
        own[self._items] = labels
        targets = self._scored(own, unknown=int(labels.max()) + 1).targets
        own[:-1] = np.where(own[:-1] > labels.max(), targets[:-1], own[:-1])
        return own

    def _descend(self, labels: Labels) -> tuple[Labels, float]:
        """Move items until none gains; where all moves at once raise the loss, only the half that gains most."""
        scores = self._scored(labels)
        share = 1.0
        for _ in range(_PASSES):
            moving = np.flatnonzero(scores.gains > ROUNDING * labels.size)
            if not moving.size or self._is_over():
                break
            kept = max(1, int(share * moving.size))
            moving = moving[np.argsort(-scores.gains[moving], kind="stable")[:kept]]
            new = labels.copy()
            new[moving] = scores.targets[moving]
            new = np.unique(new, return_inverse=True)[1].astype(np.int32)
            after = self._scored(new)
            if after.value < scores.value:
                labels, scores, share = new, after, min(1.0, 2.0 * share)
            elif moving.size > 1:
                share /= 2.0
            else:
                break
        return labels, scores.value

    def _scored(self, labels: Labels, unknown: int | None = None) -> _Scores:
        """Score all items against the clusters and the noise; the cluster `unknown` counts for nothing."""
        n, width, noise = labels.size - 1, int(labels.max()) + 1, int(labels[-1])
        known = 1.0 if unknown is None else (np.count_nonzero(labels != unknown) - 1) / n
        cost = self._loss.noise * n * known
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
        active = np.zeros((self._weights.size, width))
        clusters = labels[order[starts]]
        for row, in_cluster in zip(active, self._active, strict=True):  # one by one, as their numbers take 8 bytes
            row[clusters] = np.add.reduceat(in_cluster[order], starts, dtype=np.int64)
        both = self._weights[:, np.newaxis] * active
        neither = self._weights[:, np.newaxis] * (np.bincount(labels, minlength=width) - active)
        value, targets, gains = 0.0, labels.copy(), np.zeros(labels.size)
        for items, (links, total) in self._draws.map_links(labels, _links_and_total):
            own, rows = labels[items], np.arange(len(links))
            mine, share = self._active[:, items].astype(np.float64), self._share[items]
            together, in_both = links / total - (1.0 - mine).T @ neither, mine.T @ both
            together[rows, own] += share  # an item is together with itself in neither
            in_both[rows, own] -= 1.0 - share
            counted = np.ones(width, np.bool_)
            counted[[one for one in (noise, unknown) if one is not None]] = False
            alone = self._apart * together[:, counted].sum(axis=1)
            costs = alone[:, np.newaxis] - (self._apart + self._joined) * together + self._joined * in_both
            costs += (cost * share)[:, np.newaxis]
            costs[:, noise] = cost * (1.0 - share)
            if unknown is not None:
                costs[:, unknown] = np.inf
            targets[items] = costs.argmin(axis=1)
            now = costs[rows, own]
            gains[items] = now - costs.min(axis=1)
            linear = np.where(own == noise, cost * (1.0 - share), cost * share)
            value += float(np.sum(0.5 * (now + linear)[: n - items.start]))
        targets[-1], gains[-1] = labels[-1], 0.0
        return _Scores(value, targets, gains)


def _links_and_total(
    links: npt.NDArray[np.float64], labels: npt.NDArray[Any], total: float
) -> tuple[npt.NDArray[np.float64], float]:
    """What `map_links` gives."""
    return links, total


class OnPairsWithNoise(OverSimilarities):
    """Search over pairs: the partition of the items in clusters, and who they are, in turn.

    Pairs of items in clusters cost a p_ij if they are apart, and W_ij = a p_ij - b (r_ij - p_ij) less if they are
    together, with p_ij the share of runs in which they are together, and r_ij in which both are in clusters. Given the
    noise, this is a search of all kinds of moves with the weights W. Given the clusters, an item is noise if that costs
    less than its pairs. No joint move of several items into the noise, or out of it into one cluster, then lowers the
    loss: their pairs with each other only make that dearer.
    """

    def __init__(self, problem: Problem, stop: Stop) -> None:
        super().__init__(problem, stop, problem.source.similarity())  # of the one more item, too
        self._draws = draws = problem.source.as_draws()
        loss = as_loss(problem.loss, kind=NoiseLoss)
        labels, weights = draws.labels, draws.weights
        active = (labels[:, :-1] != labels[:, -1:]).astype(np.float64)
        self._share = 1.0 - weights @ active
        apart, joined = loss.binder.numerator["C"], loss.binder.numerator["B"]
        both = active.T @ (weights[:, np.newaxis] * active)
        # Items that are noise in the same run are together here, with the one more item.
        together = self.similarity[:-1, :-1] - (1.0 - np.add.outer(1.0 - self._share, 1.0 - self._share) + both)
        np.maximum(together, 0.0, out=together)
        np.fill_diagonal(together, 0.0)
        self._pairs = apart * together
        self._weights = self._pairs - joined * (both - together)
        np.fill_diagonal(self._weights, 0.0)
        self._cost = loss.noise * self._share.size  # of an item
        self._in_one = self._cost * float(np.sum(1.0 - self._share))

    def cuts(self) -> list[Labels]:
        """Some runs, from which a search starts."""
        return list(self._draws.some_labels(_RUNS).astype(np.int32))

    def _descend(self, labels: Labels, order: npt.NDArray[Any]) -> Optimum:
        partition = labels[:-1].copy()
        noise = (partition == labels[-1]) & (partition >= 0)
        tally = np.zeros(6, np.int64)
        while True:
            value = self._cluster(partition, noise, order, tally)
            if self._stop[0] or not self._flip(partition, noise):
                break
        items = np.flatnonzero(~noise)
        value += 0.5 * float(self._pairs[np.ix_(items, items)].sum())
        value += self._cost * float(np.where(noise, 1.0 - self._share, self._share).sum())
        whole = np.append(np.where(noise, -1, partition), -1).astype(np.int32) + 1
        return Optimum(numbered(whole), value, self._in_one, tally)

    def _cluster(
        self, partition: Labels, noise: npt.NDArray[np.bool_], order: npt.NDArray[Any], tally: npt.NDArray[np.int64]
    ) -> float:
        """Search for the clusters of the items that are not noise, in place; return what their pairs save."""
        items = np.flatnonzero(~noise)
        partition[noise] = -1
        if not items.size:
            return 0.0
        place = np.full(partition.size + 1, -1)
        place[items] = np.arange(items.size)
        own = without_gaps(partition[items].astype(np.int64))
        weights = self._weights if items.size == partition.size else self._weights[np.ix_(items, items)]
        own_order = place[order][place[order] >= 0]
        fewest = min(self.limits.fewest, items.size)
        limits = Limits(fewest, max(fewest, min(self.limits.most, items.size)))
        value, counted = descend_pairs(weights, Costs(-1.0, 0.0), own, own_order, limits, self._stop)
        tally += counted
        partition[items] = own
        return float(value)

    def _flip(self, partition: Labels, noise: npt.NDArray[np.bool_]) -> int:
        """Make items noise, or put them into clusters, one by one where that lowers the loss; return how many."""
        if not noise.size:
            return 0
        width = int(partition.max()) + 2
        members = (partition == np.arange(width)[:, np.newaxis]).astype(np.float64)
        links, sizes = members @ self._weights, members.sum(axis=1).astype(np.int64)
        apart = self._pairs @ (~noise).astype(np.float64)
        saved = self._cost * (1.0 - 2.0 * self._share)  # by calling an item not noise
        rounding, flips = ROUNDING * partition.size, 0
        while True:
            number = int(np.count_nonzero(sizes))
            if number == width:
                width += 1
                links, sizes = np.vstack([links, np.zeros(noise.size)]), np.append(sizes, 0)
            open_to = sizes > (0 if number >= self.limits.most else -1)
            target = np.where(open_to[:, np.newaxis], links, -np.inf).argmax(axis=0)
            cluster = np.where(noise, target, partition)
            gain = (apart - links[cluster, np.arange(noise.size)] - saved) * np.where(noise, -1.0, 1.0)
            if number <= self.limits.fewest > 1:
                gain[~noise & (sizes[cluster] == 1)] = 0.0
            i = int(gain.argmax())
            if gain[i] <= rounding:
                return flips
            k, sign = int(cluster[i]), 1 if noise[i] else -1
            apart += sign * self._pairs[i]
            links[k] += sign * self._weights[i]
            sizes[k] += sign
            if sizes[k] == 0:
                links[k] = 0.0  # without rounding
            partition[i], noise[i] = (k, False) if sign > 0 else (-1, True)
            flips += 1
