"""Summed impurity of the clusters (Model 1 of ensemble clustering by A-strings), and a search for the least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.kcc import check_memory, kcc
from posterior_consensus.consensus.selection import Candidate, Run, Task, best_number, filled
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.arguments import check_count, check_flag
from posterior_consensus.sources.door import as_draws

Floats = npt.NDArray[np.float64]

_ENUMERATED = 12  # signatures: 4,095 clusters can be made of them
_MOST_PASSES = 100
_TINY = 1e-12
_DIGITS = 12  # what is smaller is rounding


@dataclass(frozen=True, kw_only=True)
class ImpurityInfo(FitInfo):
    """Record of "impurity": whether clusters count by size, and whether the least was found by enumeration."""

    weighted: bool
    enumerated: bool


def summed_impurity(draws: Any, partition: Any, *, weighted: bool = False) -> float:
    """Sum over clusters the mean share of members outside the cluster's most frequent cluster of a draw.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    partition : result object, DataArray or label vector of shape (n_items,)
    weighted : bool
        Whether a cluster counts by its share of the items. Else all count alike.

    Returns
    -------
    float
        Below the number of clusters, and below 1 if `weighted`; 0 where every cluster is within one of each draw.

    Raises
    ------
    ValueError
        If draws or partition are invalid.

    See Also
    --------
    a_strings : the encoding that it comes from.

    Notes
    -----
    With n_tkl the members of cluster k that draw t has in its cluster l, n_k their number and w_t the weights,

        sum_k sum_t w_t (1 - max_l n_tkl / n_k),

    each k times n_k / n if `weighted`. Unweighted it is Model 1 of Singh, Mukherjee, Peng and Xu (NIPS 2007), "Ensemble
    clustering using semidefinite programming", divided by twice the number of draws. A cluster of one item costs
    nothing, so that single items and one cluster of all the rest cost at most 1: the unweighted form likes small pure
    clusters. Weighted it is the mean over the draws of the share of items to be changed until the partition is nested
    in the draw: one of the two halves of van Dongen's distance.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]]
    >>> round(pc.consensus.summed_impurity(draws, [0, 0, 0, 1, 1, 1]), 6)
    0.333333
    >>> round(pc.consensus.summed_impurity(draws, [0, 0, 0, 1, 1, 1], weighted=True), 6)
    0.166667
    """
    check_flag("weighted", weighted)
    source = as_draws(draws)
    labels = source.as_labels(partition)
    return float(_State(source, labels, int(labels.max()) + 1, weighted).costs.sum())


def impurity(draws: PartitionDraws, loss: Loss, task: Task, *, weighted: bool = False, n_starts: int = 10) -> Candidate:
    """Minimise the summed impurity of a number of clusters by moves of single items.

    Parameters
    ----------
    weighted : bool
        Whether a cluster counts by its share of the items, see :func:`summed_impurity`.
    n_starts : int
        Starts: the result of "kcc", then in turn draws, random labels, and random items as clusters of their own beside
        one of the rest. Fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    Up to 12 items, the least is found by enumeration: a dynamic program over all clusters that can be made of them. Of
    more items with at most 12 different columns of labels, it is one over the partitions that keep equal items
    together, and a further start. The weighted form has an optimum among these, as the cost of moving some of several
    equal items is concave in their number. For the unweighted form there is no such proof, but no counter-example came
    up in 1,500 small ensembles either.
    """
    check_count("n_starts", n_starts)
    check_memory(draws, task.numbers(draws)[-1])
    source = draws.without_zero_weights()
    signature = source.signatures()
    small = source.n_items <= _ENUMERATED
    groups = np.arange(source.n_items) if small else signature
    rng = task.rng
    unions = _BestUnions(_subset_costs(source, groups, weighted)) if groups.max() < _ENUMERATED else None

    def fit(k: int) -> Candidate:
        by_k_means = kcc(draws, loss, Task(rng, n_clusters=k), n_starts=1)
        starts = [canonical_labels(by_k_means.labels)]
        for number in range(1, task.effort(n_starts, k)):
            if number % 3 == 1:
                drawn = source.labels[rng.integers(source.n_draws)].astype(np.int32)
                starts.append(np.minimum(drawn, k - 1))
            elif number % 3 == 2:
                starts.append(rng.integers(k, size=source.n_items).astype(np.int32))
            else:  # pure clusters to begin with
                starts.append(np.minimum(rng.permutation(source.n_items), k - 1).astype(np.int32))
        enumerated = unions is not None and k <= groups.max() + 1
        if unions is not None and enumerated:
            starts.append(unions.labels(k)[groups])
        starts = [filled(np.zeros((source.n_items, k)), start) for start in starts]
        runs = [_moved(source, start, k, weighted) for start in starts]
        best = min(runs, key=lambda run: run.objective)
        info = ImpurityInfo.of(
            best.trace,
            best.converged,
            n_iter=len(best.trace) - 1,
            objectives=[run.trace[-1] for run in runs],
            weighted=weighted,
            enumerated=enumerated and (small or weighted),
        )
        return Candidate(canonical_labels(best.labels), info)

    return best_number(draws, loss, task, fit, title="Least impurity")


class _State:
    """A partition with the tables of its clusters by those of the draws."""

    def __init__(self, draws: PartitionDraws, labels: Labels, n_clusters: int, weighted: bool) -> None:
        self._starts, self._weights, self._weighted = draws.starts, draws.weights, weighted
        self._n = labels.size
        self._counts = ensemble.joint_counts(draws.labels, draws.starts, labels, n_clusters)
        self.sizes = np.bincount(labels, minlength=n_clusters)
        shape = draws.n_draws, n_clusters
        self._top, self._n_top = np.empty(shape, self._counts.dtype), np.empty(shape, np.int64)
        self._look(list(range(n_clusters)))

    def _look(self, clusters: list[int]) -> None:
        """Find the most frequent drawn clusters of some clusters in each draw, how many there are, and the costs."""
        counts = self._counts[:, clusters]
        self._top[:, clusters] = np.maximum.reduceat(counts, self._starts[:-1])
        at_top = counts == np.repeat(self._top[:, clusters], np.diff(self._starts), axis=0)
        self._n_top[:, clusters] = np.add.reduceat(at_top.astype(np.int64), self._starts[:-1])
        self.costs = self._cost(self._weights @ self._top, self.sizes)

    def _cost(self, top: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
        """Cost of clusters whose most frequent drawn clusters have `top` members on average."""
        impure = np.where(sizes > 0, 1.0 - top / np.maximum(sizes, 1), 0.0)
        return impure * sizes / self._n if self._weighted else impure

    def best_move(self, rows: npt.NDArray[np.int64], old: int) -> tuple[int, float]:
        """Where an item of cluster `old`, at these rows of the table, is best, and what that changes."""
        counts = self._counts[rows]
        joined = self._cost(self._weights @ np.maximum(self._top, counts + 1), self.sizes + 1)
        alone = (counts[:, old] == self._top[:, old]) & (self._n_top[:, old] == 1)
        left = self._cost(self._weights @ (self._top[:, old] - alone), self.sizes[old] - 1)
        changes = joined - self.costs + left - self.costs[old]
        changes[old] = 0.0
        new = int(np.argmin(np.round(changes, _DIGITS)))
        return new, float(changes[new])

    def move(self, rows: npt.NDArray[np.int64], old: int, new: int) -> None:
        """Move the item at these rows."""
        self._counts[rows, old] -= 1
        self._counts[rows, new] += 1
        self.sizes[old] -= 1
        self.sizes[new] += 1
        self._look([old, new])


def _moved(draws: PartitionDraws, labels: Labels, n_clusters: int, weighted: bool) -> Run:
    """Move item after item to where it is best, and never the last of a cluster, until none moves.

    The trace has the objective before and after each pass over the items.
    """
    labels = labels.astype(np.int32)
    state = _State(draws, labels, n_clusters, weighted)
    trace = [float(state.costs.sum())]
    for _ in range(_MOST_PASSES):
        any_moved = False
        for item in range(labels.size):
            old = int(labels[item])
            if state.sizes[old] == 1:
                continue
            rows = draws.starts[:-1] + draws.labels[:, item]
            new, change = state.best_move(rows, old)
            if change < -_TINY:
                state.move(rows, old, new)
                labels[item] = new
                any_moved = True
        trace.append(float(state.costs.sum()))
        if not any_moved:
            return Run(labels, trace, True)
    return Run(labels, trace, False)


def _subset_costs(draws: PartitionDraws, groups: npt.NDArray[np.intp], weighted: bool) -> Floats:
    """Cost of every union of groups, by the bits of its number; of none of them infinity."""
    n_groups = int(groups.max()) + 1
    inside = (np.arange(2**n_groups)[:, np.newaxis] >> np.arange(n_groups)) & 1
    sizes = np.bincount(groups, minlength=n_groups)
    members = inside @ sizes
    top = np.zeros(2**n_groups)
    first = np.unique(groups, return_index=True)[1]
    for labels, weight in zip(draws.labels, draws.weights, strict=True):
        counts = inside @ (np.eye(int(labels.max()) + 1, dtype=np.int64)[labels[first]] * sizes[:, np.newaxis])
        top += weight * counts.max(axis=1)
    costs = 1.0 - top / np.maximum(members, 1)
    if weighted:
        costs *= members / groups.size
    costs[0] = np.inf
    return np.round(costs, _DIGITS)


class _BestUnions:
    """The partitions of groups into a number of unions of minimum cost, by dynamic programming over sets of groups."""

    def __init__(self, costs: Floats) -> None:
        self._costs, self._sets = costs, np.arange(costs.size)
        self._least, self._taken = [costs], [self._sets]  # for each number of unions, by set

    def labels(self, n_clusters: int) -> Labels:
        """Labels of the groups."""
        while len(self._taken) < n_clusters:
            self._take_one_more()
        whole = self._costs.size - 1
        labels = np.zeros(whole.bit_length(), np.int32)
        for k in range(n_clusters - 1, -1, -1):
            cluster = int(self._taken[k][whole])
            labels[[bit for bit in range(labels.size) if cluster >> bit & 1]] = k
            whole ^= cluster
        return labels

    def _take_one_more(self) -> None:
        least, taken = np.full(self._costs.size, np.inf), np.zeros(self._costs.size, np.int64)
        for whole in range(1, self._costs.size):
            low = whole & -whole  # of each partition one cluster has the lowest bit: that one is split off
            clusters = self._sets[(self._sets & ~whole == 0) & (self._sets & low > 0)]
            values = self._costs[clusters] + self._least[-1][whole ^ clusters]
            at = int(values.argmin())
            least[whole], taken[whole] = values[at], clusters[at]
        self._least.append(least)
        self._taken.append(taken)
