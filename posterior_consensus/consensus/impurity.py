"""Summed impurity of clusters (Model 1 of ensemble clustering by A-strings), and a search for its minimum."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.consensus.one_hot import check_memory_of_k_means, kcc
from posterior_consensus.consensus.selection import Candidate, Run, Task, best_number, filled
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.work import FitInfo
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import check_count, check_flag
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.conversion import as_draws

_ENUMERATED = 12  # most signatures for enumeration: 4,095 possible clusters
_MOST_PASSES = 100
_DIGITS = 12  # beyond them, differences are rounding


@dataclass(frozen=True, kw_only=True)
class ImpurityInfo(FitInfo):
    """Record of "impurity": whether clusters are weighted by size, and whether the minimum was enumerated."""

    weighted: bool
    enumerated: bool


def summed_impurity(draws: Any, partition: Any, *, weighted: bool = False) -> float:
    """Compute the summed impurity of a partition: how far its clusters are from being nested in the draws' clusters.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    partition : result object, DataArray or label vector of shape (n_items,)
        The partition.
    weighted : bool
        Whether clusters are weighted by their share of the items. Otherwise all have weight 1.

    Returns
    -------
    float
        Below the number of clusters, and below 1 if `weighted`; 0 if every cluster lies within a cluster of each draw.

    Raises
    ------
    ValueError
        If draws or partition are invalid.

    See Also
    --------
    a_strings : the encoding on which it is defined.

    Notes
    -----
    Let n_tkl be the number of members of cluster k that are in cluster l of draw t, n_k the size of k, and w_t the
    weights. The summed impurity is

        sum_k sum_t w_t (1 - max_l n_tkl / n_k),

    with each term times n_k / n if `weighted`. The unweighted form is Model 1 of Singh, Mukherjee, Peng and Xu (NIPS
    2007), "Ensemble clustering using semidefinite programming", divided by twice the number of draws. A single item
    costs 0 in it, so it favours small pure clusters. The weighted form is the mean share of items to move until the
    partition is nested in a draw, one of the two halves of van Dongen's distance.

    Examples
    --------
    >>> from posterior_consensus.consensus.impurity import summed_impurity
    >>> draws = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]]
    >>> round(summed_impurity(draws, [0, 0, 0, 1, 1, 1]), 6)
    0.333333
    >>> round(summed_impurity(draws, [0, 0, 0, 1, 1, 1], weighted=True), 6)
    0.166667
    """
    check_flag("weighted", weighted)
    source = as_draws(draws).in_fixed_order()
    labels = source.as_labels(partition)
    _, top, sizes = _tables(source, labels, int(labels.max()) + 1)
    return float(_costs(source.weights @ top, sizes, labels.size, weighted).sum())


def impurity(draws: PartitionDraws, loss: Loss, task: Task, *, weighted: bool = False, n_starts: int = 10) -> Candidate:
    """Minimize the summed impurity for each number of clusters by moves of single items.

    Parameters
    ----------
    weighted : bool
        Whether clusters are weighted by their share of the items, see :func:`summed_impurity`.
    n_starts : int
        Number of starts: the result of "kcc", then in turn a draw, random labels, and random single items next to one
        cluster of all others. Fewer beyond 30 clusters unless `n_clusters` is given.

    Notes
    -----
    Up to 12 items, the minimum is enumerated by a dynamic program over all possible clusters. With more items but at
    most 12 distinct signatures, the program enumerates the partitions that co-cluster equal items, as a further start.
    For the weighted form this contains an optimum, because the cost of moving some of several equal items is concave in
    their number. For the unweighted form this is not proven; 1,500 small ensembles had no counter-example.
    """
    check_count("n_starts", n_starts)
    most = task.numbers(draws)[-1]
    check_memory_of_k_means(draws, most)
    source = draws.without_zero_weights()
    signature = source.signatures()
    small = source.n_items <= _ENUMERATED
    groups = np.arange(source.n_items) if small else signature
    n_groups, rng = int(groups.max()) + 1, task.rng
    unions: list[npt.NDArray[np.int64]] = []
    if n_groups <= _ENUMERATED:
        unions = _cheapest_unions(_subset_costs(source, groups, weighted), min(most, n_groups))

    def fit(k: int) -> Candidate:
        by_k_means = kcc(draws, loss, Task(rng, n_clusters=k), n_starts=1)
        starts = [canonical_labels(by_k_means.labels)]
        for number in range(1, task.effort(n_starts, k)):
            if number % 3 == 1:
                own = source.labels[rng.integers(source.n_draws)].astype(np.int32)
                starts.append(np.minimum(own, k - 1))
            elif number % 3 == 2:
                starts.append(rng.integers(k, size=source.n_items).astype(np.int32))
            else:  # pure clusters to begin with
                starts.append(np.minimum(rng.permutation(source.n_items), k - 1).astype(np.int32))
        enumerated = k <= len(unions)
        if enumerated:
            starts.append(_labels_of_unions(unions[:k])[groups])
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


def _tables(draws: PartitionDraws, labels: Labels, n_clusters: int) -> tuple[npt.NDArray[np.integer], ...]:
    """Members of each cluster: in each cluster of the draws (R, K), in the most frequent one (N, K), and all (K,)."""
    counts = ensemble.joint_counts(draws.labels, draws.starts, labels, n_clusters)
    return counts, np.maximum.reduceat(counts, draws.starts[:-1]), counts[: draws.starts[1]].sum(axis=0)


def _costs(top: Floats, sizes: npt.NDArray[np.integer], n_items: int, weighted: bool) -> Floats:
    """Impurity of clusters, given the mean number `top` of members in the most frequent cluster of a draw."""
    impure = np.where(sizes > 0, 1.0 - top / np.maximum(sizes, 1), 0.0)
    return impure * sizes / n_items if weighted else impure


def _moved(draws: PartitionDraws, labels: Labels, n_clusters: int, weighted: bool) -> Run:
    """Move items one by one to the best cluster until none moves; the last item of a cluster stays.

    The trace has the objective before and after each pass over the items.
    """
    labels, first, weights = labels.astype(np.int32), draws.starts[:-1], draws.weights
    counts, top, sizes = _tables(draws, labels, n_clusters)
    costs_of = partial(_costs, n_items=labels.size, weighted=weighted)
    costs = costs_of(weights @ top, sizes)
    trace = [float(costs.sum())]
    for _ in range(_MOST_PASSES):
        before = labels.copy()
        for item, old in enumerate(before):
            if sizes[old] == 1:
                continue
            rows = first + draws.labels[:, item]
            joined = costs_of(weights @ np.maximum(top, counts[rows] + 1), sizes + 1)
            others = counts[:, old].copy()
            others[rows] -= 1
            left = costs_of(weights @ np.maximum.reduceat(others, first), sizes[old] - 1)
            changes = joined - costs + left - costs[old]
            changes[old] = 0.0
            new = int(np.argmin(np.round(changes, _DIGITS)))
            if changes[new] < -ROUNDING:
                labels[item] = new
                counts[rows, old] -= 1
                counts[rows, new] += 1
                top[:, [old, new]] = np.maximum.reduceat(counts[:, [old, new]], first)
                sizes[[old, new]] += [-1, 1]
                costs = costs_of(weights @ top, sizes)
        trace.append(float(costs.sum()))
        if np.array_equal(labels, before):
            return Run(labels, trace, True)
    return Run(labels, trace, False)


def _subset_costs(draws: PartitionDraws, groups: npt.NDArray[np.intp], weighted: bool) -> Floats:
    """Cost of every union of groups, indexed by its bits; infinite for the empty union."""
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


def _cheapest_unions(costs: Floats, most: int) -> list[npt.NDArray[np.int64]]:
    """For 1 to `most` unions, the union that each set of groups splits off in its partition of minimum cost."""
    sets = np.arange(costs.size)
    least, taken = costs, [sets]
    for _ in range(1, most):
        with_one_less, least = least, np.full(costs.size, np.inf)
        taken.append(np.zeros(costs.size, np.int64))
        for whole in range(1, costs.size):
            low = whole & -whole  # the cluster with the lowest bit is split off
            clusters = sets[(sets & ~whole == 0) & (sets & low > 0)]
            values = costs[clusters] + with_one_less[whole ^ clusters]
            at = int(values.argmin())
            least[whole], taken[-1][whole] = values[at], clusters[at]
    return taken


def _labels_of_unions(taken: list[npt.NDArray[np.int64]]) -> Labels:
    """Labels of the groups in the partition of minimum cost into as many unions as there are entries."""
    whole = taken[0].size - 1
    labels = np.zeros(whole.bit_length(), np.int32)
    for k in range(len(taken) - 1, -1, -1):
        cluster = int(taken[k][whole])
        labels[[bit for bit in range(labels.size) if cluster >> bit & 1]] = k
        whole ^= cluster
    return labels
