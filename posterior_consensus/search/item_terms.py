"""Search for a pair loss that is a sum over items, such as the lower bound of the expected VI."""

from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.expectation import loss_of_pairs
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels.tables import ZEALOUS
from posterior_consensus.losses.record import Loss, PairLoss
from posterior_consensus.problems.problem import Limits, Problem
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.search.local_search import Optimum, OverSimilarities, Stop, Uniforms, numbered

_WIDTH = 8  # clusters to begin with
_PLACE = 1e5  # elementary operations that take as long as placing an item


class OnItemTerms(OverSimilarities):
    """Search over the similarity matrix for the least sum over items of a term of cluster size and own links.

    This loss is a sum over clusters, too, but restarts perturb one place of any partition.
    """

    runs_a_check = 3  # a run takes long
    always_rearranges = False

    def __init__(self, problem: Problem, stop: Stop) -> None:
        super().__init__(problem, stop, problem.source.shared_similarity)
        self._loss, self._pairs = problem.loss, PairSimilarity(problem.source.items, self.similarity)
        self._in_one = self._value(np.zeros(len(self.similarity), np.int32))

    def rearrange(self, labels: Labels, order: npt.NDArray[Any], random: Uniforms) -> Optimum:
        """Dissolve the clusters of a partition one by one; keep the result if the loss is lower."""
        best = self._descend(labels, order)
        for k in range(int(labels.max()) + 1):
            if self._stop[0] or k > best.labels.max():
                break
            found = self._descend(np.where(best.labels == k, -1, best.labels).astype(np.int32), order)
            is_better = found.value < best.value - ROUNDING * labels.size
            tally = best.tally + found.tally
            tally[ZEALOUS] += is_better
            best = (found if is_better else best)._replace(tally=tally)
        return best

    def operations(self, n_clusters: int) -> float:
        """What a restart counts as: a scan of the items, over however many clusters."""
        return _PLACE * len(self.similarity)

    def _descend(self, labels: Labels, order: npt.NDArray[Any]) -> Optimum:
        state = _State(self.similarity, self._loss, labels)
        tally = np.zeros(6, np.int64)
        while True:
            tally[0] += 1
            moves = sum(state.place(int(i), self.limits) for i in order)
            tally[1] += moves
            if self._stop[0] or (moves == 0 and state.n_clusters >= self.limits.fewest):
                merges = state.merge(self.limits)
                tally[2] += merges
                if self._stop[0] or merges == 0:
                    break
            state.open_clusters(self.limits.fewest)
        partition = numbered(state.partition.astype(np.int32))
        return Optimum(partition, self._value(partition), self._in_one, tally)

    def _value(self, labels: Labels) -> float:
        return float(loss_of_pairs(self._pairs, labels[np.newaxis], self._loss)[0])


class _State:
    """A partition of some or all items, with every cluster's links to all items and sum of terms."""

    def __init__(self, similarity: Floats, loss: Loss, labels: Labels) -> None:
        assert isinstance(loss, PairLoss)
        assert loss.item_terms is not None
        self._similarity, self._terms = similarity, loss.item_terms
        self.partition = labels.astype(np.intp)  # -1 where an item is not allocated
        width = max(_WIDTH, int(labels.max()) + 2)
        self._sizes = np.bincount(self.partition[self.partition >= 0], minlength=width)
        self._links = np.array([similarity[self.partition == k].sum(axis=0) for k in range(width)])
        self._sums = np.zeros(width)
        for k in range(width):
            self._sum_up(k)

    @property
    def n_clusters(self) -> int:
        return int(np.count_nonzero(self._sizes))

    def _sum_up(self, k: int) -> None:
        members = self.partition == k
        self._sums[k] = self._terms(np.full(self._sizes[k], float(self._sizes[k])), self._links[k, members]).sum()

    def place(self, i: int, limits: Limits) -> bool:
        """Put an item where the sum is least; whether it moved."""
        old, row = int(self.partition[i]), self._similarity[i]
        alone = old >= 0 and self._sizes[old] == 1
        if alone and self.n_clusters <= limits.fewest:
            return False
        placed = np.flatnonzero(self.partition >= 0)
        clusters = self.partition[placed]
        own = self._links[clusters, placed]
        joined = np.bincount(
            clusters, self._terms((self._sizes[clusters] + 1).astype(np.float64), own + row[placed]), self._sizes.size
        )
        changes = joined + self._terms((self._sizes + 1).astype(np.float64), self._links[:, i] + 1.0) - self._sums
        changes[self._sizes == 0] = np.inf
        free = int(np.argmin(self._sizes))  # 0, as one row is kept free
        if not alone and (self.n_clusters < limits.most or self.n_clusters == 0):
            changes[free] = float(self._terms(np.ones(1), np.ones(1))[0])
        stay = np.inf
        if old >= 0:
            others = np.flatnonzero((self.partition == old) & (np.arange(row.size) != i))
            left = self._terms(
                np.full(others.size, others.size, np.float64), np.maximum(self._links[old, others] - row[others], 1.0)
            )
            stay = float(self._sums[old] - left.sum())
            changes[old] = np.inf
        new = int(np.argmin(changes))
        if not changes[new] < stay - ROUNDING * row.size:
            return False
        self._move(i, new)
        return True

    def _move(self, i: int, new: int) -> None:
        old, row = int(self.partition[i]), self._similarity[i]
        self.partition[i] = new
        if old >= 0:
            self._sizes[old] -= 1
            self._links[old] -= row
            self._sum_up(old)
        self._links[new] = row if self._sizes[new] == 0 else self._links[new] + row  # drops rounding
        self._sizes[new] += 1
        self._sum_up(new)
        if self._sizes.all():
            self._sizes = np.append(self._sizes, np.zeros_like(self._sizes))
            self._links = np.append(self._links, np.zeros_like(self._links), axis=0)
            self._sums = np.append(self._sums, np.zeros_like(self._sums))

    def merge(self, limits: Limits) -> int:
        """Merge two clusters as long as that lowers the sum, or there are too many; the number of merges."""
        merges = 0
        while True:
            present = np.flatnonzero(self._sizes)
            if present.size <= max(1, limits.fewest):
                return merges
            where = np.searchsorted(present, self.partition)
            own = self._links[self.partition, np.arange(self.partition.size)]
            sizes = self._sizes[self.partition]
            unions = np.array(
                [
                    np.bincount(where, self._terms(self._sizes[k] + sizes.astype(np.float64), self._links[k] + own))
                    for k in present
                ]
            )
            changes = unions + unions.T - np.add.outer(self._sums[present], self._sums[present])
            np.fill_diagonal(changes, np.inf)
            one, other = np.unravel_index(np.argmin(changes), changes.shape)
            if present.size <= limits.most and not changes[one, other] < -ROUNDING * self.partition.size:
                return merges
            kept, gone = present[one], present[other]
            self.partition[self.partition == gone] = kept
            self._sizes[kept] += self._sizes[gone]
            self._links[kept] += self._links[gone]
            self._sizes[gone], self._sums[gone] = 0, 0.0
            self._sum_up(kept)
            merges += 1

    def open_clusters(self, fewest: int) -> None:
        """Give the items that are least similar to their clusters clusters of their own until there are `fewest`."""
        while self.n_clusters < fewest:
            sizes = self._sizes[self.partition]
            means = self._links[self.partition, np.arange(self.partition.size)] / sizes
            self._move(int(np.argmin(np.where(sizes > 1, means, np.inf))), int(np.argmin(self._sizes)))
