"""Pairs that were not scored, in the order of what their scores would change."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.problems.components import Forbidden
from posterior_consensus.runtime.aliases import Floats, Integers, Positions

_WAYS = 3  # changes that join a pair, at most: either record moves, or both clusters become one


class NextScores(NamedTuple):
    """Pairs without a score, the largest decrease first."""

    first: Integers  # (n_pairs,): position of the earlier record
    second: Integers
    probability: Floats  # mean score of the scored pairs that the change joins
    decrease: Floats  # expected decrease of the loss for each pair scored, divided by the loss's scale


class _ScoredSums(NamedTuple):
    """Scored pairs between a set of records and a cluster, for many of both."""

    one: Integers  # number of the set
    other: Integers  # number of the cluster
    scored: Integers  # number of scored pairs
    scores: Floats  # their sum

    @classmethod
    def of(cls, one: Integers, other: Integers, values: Floats) -> _ScoredSums:
        """Sum the scores of pairs from their sets and clusters."""
        n_clusters = int(other.max(initial=0)) + 1
        keys, which = np.unique(one.astype(np.int64) * n_clusters + other, return_inverse=True)
        sums = np.bincount(which, weights=values).astype(np.float64)
        return cls(keys // n_clusters, keys % n_clusters, np.bincount(which), sums)

    def take(self, at: npt.NDArray[np.bool_]) -> _ScoredSums:
        """Some of the sets and clusters."""
        return _ScoredSums(self.one[at], self.other[at], self.scored[at], self.scores[at])

    def and_more(self, more: _ScoredSums) -> _ScoredSums:
        """These, and after them others."""
        return _ScoredSums(
            one=np.append(self.one, more.one),
            other=np.append(self.other, more.other),
            scored=np.append(self.scored, more.scored),
            scores=np.append(self.scores, more.scores),
        )


class _Joins(NamedTuple):
    """Records that would be joined to a cluster if the pairs without a score between them match."""

    group: Integers  # group of records that moves; -1 for a whole cluster
    own: Integers  # cluster of these records
    cluster: Integers  # cluster to which they are joined
    n_unscored: Integers  # number of pairs without a score between them
    probability: Floats
    decrease: Floats

    def take(self, at: Positions) -> _Joins:
        """Some of the changes."""
        return _Joins(
            group=self.group[at],
            own=self.own[at],
            cluster=self.cluster[at],
            n_unscored=self.n_unscored[at],
            probability=self.probability[at],
            decrease=self.decrease[at],
        )


def next_scores(source: ScoredPairs, loss: PartitionLoss, labels: Labels, n: int) -> NextScores:
    """Find the `n` pairs whose scores are expected to lower the loss most; see :meth:`ScoredLinks.to_score`.

    No pairs are listed but those of the best changes. Raises ValueError if constraints contradict each other.
    """
    groups = source.groups()
    changes = _joins(source, loss, labels, groups)
    order = np.lexsort((changes.cluster, changes.own, changes.group, -changes.decrease))
    enough = int(np.searchsorted(np.cumsum(changes.n_unscored[order]), _WAYS * n))
    changes = changes.take(order[: enough + 1])
    in_groups, in_clusters = _positions_by(groups), _positions_by(labels)
    ends, number = [np.empty((2, 0), np.int64)], [np.empty(0, np.int64)]
    for at, (group, own, cluster, n_unscored, *_) in enumerate(zip(*changes, strict=True)):
        those, others = in_clusters(own) if group < 0 else in_groups(group), in_clusters(cluster)
        n_scored = those.size * others.size - n_unscored
        those = those[: -(-(_WAYS * n + n_scored) // others.size)]  # enough pairs without a score
        ends.append(np.stack([np.repeat(those, others.size), np.tile(others, those.size)]))
        number.append(np.full(ends[-1].shape[1], at))
    low, high = np.sort(np.concatenate(ends, axis=1), axis=0)
    keys, which = low * source.n_items + high, np.concatenate(number)
    is_open = ~np.isin(keys, source.rows.astype(np.int64) * source.n_items + source.scored.indices)
    keys, which = keys[is_open], which[is_open]
    first = np.sort(np.unique(keys, return_index=True)[1])[:n]
    found = changes.take(which[first])
    one, other = np.divmod(keys[first], source.n_items)
    return NextScores(one, other, found.probability, found.decrease)


def _joins(source: ScoredPairs, loss: PartitionLoss, labels: Labels, groups: npt.NDArray[np.int32]) -> _Joins:
    """Moves of groups, and unions of clusters, between which some pairs are scored and some are not."""
    first, second, values = source.pairs
    between = groups[first] != groups[second]
    first, second, values = first[between], second[between], values[between]
    both_ways = np.append(first, second), np.append(second, first)
    linked = _ScoredSums.of(groups[both_ways[0]], labels[both_ways[1]], np.tile(values, 2))
    sizes, records = np.bincount(groups), np.bincount(labels)
    cluster_of = np.empty(sizes.size, np.int64)
    cluster_of[groups] = labels
    is_own = cluster_of[linked.one] == linked.other
    within, moves = linked.take(is_own), linked.take(~is_own)
    # What each group weighs in its own cluster, where pairs without a score have the probability `unscored`.
    joining, both = loss.numerator["B"], loss.numerator["B"] + loss.numerator["C"]
    weight = (both * source.unscored - joining) * sizes * (records[cluster_of] - sizes)
    weight[within.one] += both * (within.scores - source.unscored * within.scored)
    apart = labels[first] != labels[second]
    clusters = np.sort(np.stack([labels[first[apart]], labels[second[apart]]]), axis=0)
    unions = _ScoredSums.of(clusters[0], clusters[1], values[apart])
    n_groups, n_moves = sizes.size, moves.one.size
    sums = moves.and_more(unions)
    n_pairs = np.append(sizes[moves.one], records[unions.one]) * records[sums.other]
    n_unscored = n_pairs - sums.scored
    gain = both * (sums.scores + n_unscored) - joining * n_pairs
    gain[:n_moves] -= weight[moves.one]
    forbidden = Forbidden.of(source.constraints, groups).with_clusters(cluster_of)
    ends = np.append(moves.one, n_groups + unions.one), n_groups + sums.other
    gains = np.flatnonzero((gain > 0) & (n_unscored > 0) & ~forbidden.at(*ends))
    probability = sums.scores / sums.scored
    return _Joins(
        group=np.append(moves.one, np.full(unions.one.size, -1)),
        own=np.append(cluster_of[moves.one], unions.one),
        cluster=sums.other,
        n_unscored=n_unscored,
        probability=probability,
        decrease=probability * gain / np.maximum(n_unscored, 1),
    ).take(gains)


def _positions_by(labels: npt.NDArray[np.int32]) -> Callable[[int], Positions]:
    """Positions of the records with a label, by the label."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(int(labels.max()) + 2))
    return lambda label: order[starts[label] : starts[label + 1]]
