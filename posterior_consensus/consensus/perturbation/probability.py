"""A fitted mixture of perturbation models as a distribution on partitions: samples and probabilities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.ensemble.switching import matched_by_draw
from posterior_consensus.kernels import ensemble
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers

WIDEST = 7  # most clusters for which all matchings are summed; the work doubles with each further cluster


class Mode(NamedTuple):
    """A partition, with the distribution of draws around it."""

    share: float
    memberships: Floats  # (n, K)
    noise: float
    n_labels: dict[int, float]  # probability of each number of labels, at least K

    def sampled(self, n_draws: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Sample labels (n_draws, n), of any values."""
        sizes, chances = np.array(list(self.n_labels)), np.array(list(self.n_labels.values()))
        limits = np.cumsum(self.memberships, axis=1)[:, :-1]  # the last label takes the rest, with its rounding
        labels = np.empty((n_draws, len(limits)), smallest_dtype(int(sizes.max())))
        for t, size in enumerate(rng.choice(sizes, size=n_draws, p=chances)):
            own = (rng.random((len(limits), 1)) >= limits).sum(axis=1)
            labels[t] = perturbed(own, self.noise, size, rng)
        return labels

    def log_probabilities(self, draws: PartitionDraws) -> Floats:
        """Log probability (N,) of each draw's partition; weights are ignored."""
        by_size = [np.log(chance) + self._given(draws, size) for size, chance in self.n_labels.items() if chance > 0]
        total: Floats = logsumexp(by_size, axis=0)
        return total

    def _given(self, draws: PartitionDraws, n_labels: int) -> Floats:
        """Log probability (N,) given the number of labels.

        An item has a spare label, which belongs to no cluster, with probability noise / n_labels. The gain of a block
        for a cluster is the log ratio of the probabilities of the cluster's label and of a spare label, summed over its
        items.
        """
        spare = n_labels - self.memberships.shape[1]
        gains = np.log1p(n_labels * (1 - self.noise) / self.noise * self.memberships)
        table = ensemble.scatter(draws.labels, draws.starts, gains)
        log_sums = np.full(draws.n_draws, -np.inf)
        n_clusters = draws.backend.n_clusters
        for number in np.unique(n_clusters[n_clusters <= n_labels]):
            for rows in _parts_in_memory(np.flatnonzero(n_clusters == number), table.shape[1]):
                log_sums[rows] = _log_sums(table[draws.starts[rows, np.newaxis] + np.arange(number)], spare)
        return log_sums + draws.n_items * np.log(self.noise / n_labels)


def perturbed(truth: Integers, noise: float, n_labels: int, rng: np.random.Generator) -> Integers:
    """Labels (n,) of a draw: each item keeps its true label or, with probability `noise`, takes a random one."""
    return np.where(rng.random(truth.size) < noise, rng.integers(n_labels, size=truth.size), truth)


def log_joint(modes: Sequence[Mode], draws: PartitionDraws) -> Floats:
    """Log joint probability (N, G) of each mode and each draw's partition."""
    return np.stack([np.log(mode.share) + mode.log_probabilities(draws) for mode in modes], axis=1)


def is_exact(modes: Sequence[Mode], n_clusters: Integers) -> npt.NDArray[np.bool_]:
    """Whether the log probability is exact, for partitions with these numbers of clusters (N,)."""
    return np.minimum(n_clusters, max(mode.memberships.shape[1] for mode in modes)) <= WIDEST


def _parts_in_memory(rows: npt.NDArray[np.intp], n_clusters: int) -> list[npt.NDArray[np.intp]]:
    """Parts of the rows that fit into memory."""
    return [rows[part] for part in memory.parts(rows.size, 32 << min(n_clusters, WIDEST))]


def _log_sums(gains: Floats, spare: int) -> Floats:
    """Log sum (m,) of exp(sum of gains), over all assignments of different labels to the blocks.

    `gains` (m, k, K) has the gains of k blocks for the labels of K clusters. The `spare` labels have gain 0. With more
    than seven blocks and clusters, only the best matching is included, which gives a lower bound.
    """
    n_partitions, n_blocks, n_clusters = gains.shape
    if min(n_blocks, n_clusters) > WIDEST:
        left = n_blocks - min(n_blocks, n_clusters)
        best = matched_by_draw(gains.reshape(-1, n_clusters), np.arange(n_partitions + 1) * n_blocks)
        best = best.reshape(n_partitions, n_blocks, 1)
        matched = np.where(best >= 0, np.take_along_axis(gains, best, axis=2), 0.0)
        return matched.sum(axis=(1, 2)) + gammaln(spare + 1) - gammaln(spare - left + 1)
    if n_blocks < n_clusters:  # empty blocks take the other labels; each assignment is counted once
        more = spare + n_clusters - n_blocks
        return _summed_over_sets(gains.transpose(0, 2, 1), more) + gammaln(spare + 1) - gammaln(more + 1)
    return _summed_over_sets(gains, spare)


def _summed_over_sets(gains: Floats, spare: int) -> Floats:
    """Exact `_log_sums`, block by block: `logs` has the log sums for each set of cluster labels used so far.

    The remaining blocks use spare labels.
    """
    n_partitions, n_blocks, n_clusters = gains.shape
    taken = np.arange(1 << n_clusters)[:, np.newaxis] >> np.arange(n_clusters) & 1 == 1
    logs = np.full((len(taken), n_partitions), -np.inf)
    logs[0] = 0.0
    for block in range(n_blocks):
        free = np.maximum(spare - block + taken.sum(axis=1, keepdims=True), 0)
        with np.errstate(divide="ignore"):
            new = logs + np.log(free)
        for label, has in enumerate(taken.T):
            new[has] = np.logaddexp(new[has], logs[~has] + gains[:, block, label])
        logs = new
    total: Floats = logsumexp(logs, axis=0)
    return total
