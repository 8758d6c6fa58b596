"""Search for the clusters of greatest weight in a sparse graph: moves of items, merges, and perturbations undone.

A listed pair of items i and j has the weight excess_ij + default s_i s_j, any other pair default s_i s_j, where s are
sizes and default <= 0. An item then gains in clusters that hold one of its neighbours only, so that every step costs
in proportion to the neighbours of the items that it looks at. Work is counted in neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit

_GATHER, _MERGE, _FOLLOW, _SPLIT, _DISSOLVE, _KINDS = range(6)  # perturbations, and their number
_APART, _ANEW = -2, -1


class Graph(NamedTuple):
    """Weights of the pairs of items."""

    indptr: np.ndarray  # (n + 1,)
    indices: np.ndarray  # (nnz,), symmetric
    excess: np.ndarray  # (nnz,)
    sizes: np.ndarray  # (n,), float64
    default: float  # at most 0
    rounding: float  # differences of weight that are smaller mean nothing
    limit: float  # most that the sizes in a cluster add up to


class Clusters(NamedTuple):
    """A partition, the members of its clusters as linked lists, and room to work in."""

    labels: np.ndarray  # (n,) int32, -1 for an item that is not placed
    mass: np.ndarray  # (n,) float64, sum of sizes of each cluster
    first: np.ndarray  # (n,) int32, a member of each cluster, -1 if it has none
    after: np.ndarray  # (n,) int32, the member after each item, -1 at the end
    before: np.ndarray  # (n,) int32
    free: np.ndarray  # (n,) int32, a stack that holds every empty cluster, and perhaps others
    is_free: np.ndarray  # (n,) uint8, whether a cluster is on that stack
    pull: np.ndarray  # (n,) float64, sum of an item's excess to each cluster; zeros between uses
    met: np.ndarray  # (n,) int32, clusters to which it was summed
    is_met: np.ndarray  # (n,) uint8
    queue: np.ndarray  # (n,) int32, a ring of the items to look at
    is_queued: np.ndarray  # (n,) uint8
    moved: np.ndarray  # (n, 2) int32, items that have left their clusters since the last perturbation, and those
    is_moved: np.ndarray  # (n,) uint8
    ends: np.ndarray  # (5,) int64, see below


_FREE, _HEAD, _QUEUED, _MOVED, _WORK = range(5)  # in `ends`: lengths, the first place of the ring, and work done


def no_clusters(n_items: int) -> Clusters:
    """The state in which no item is placed."""
    integers = [np.full(n_items, -1, np.int32) for _ in range(7)]
    flags = [np.zeros(n_items, np.uint8) for _ in range(4)]
    labels, first, after, before, free, met, queue = integers
    free[:] = np.arange(n_items - 1, -1, -1)
    flags[0][:] = 1
    ends = np.zeros(5, np.int64)
    ends[_FREE] = n_items
    floats = [np.zeros(n_items) for _ in range(2)]
    moved = np.zeros((n_items, 2), np.int32)
    return Clusters(
        labels, floats[0], first, after, before, free, flags[0], floats[1], met, flags[1], queue, flags[2], moved,
        flags[3], ends,
    )  # fmt: skip


def work_of(state: Clusters) -> int:
    """How much work was done."""
    return int(state.ends[_WORK])


@inner
def _take_out(graph, state, i):
    """Take item i out of its cluster."""
    k, after, before = state.labels[i], state.after[i], state.before[i]
    if before >= 0:
        state.after[before] = after
    else:
        state.first[k] = after
    if after >= 0:
        state.before[after] = before
    state.mass[k] -= graph.sizes[i]
    state.labels[i] = -1
    if state.first[k] < 0:
        state.mass[k] = 0.0  # free of rounding
        if not state.is_free[k]:
            state.is_free[k] = 1
            state.free[state.ends[_FREE]] = k
            state.ends[_FREE] += 1


@inner
def _put(graph, state, i, k):
    """Put item i, which is in no cluster, into cluster k."""
    first = state.first[k]
    state.after[i], state.before[i] = first, -1
    if first >= 0:
        state.before[first] = i
    state.first[k] = i
    state.mass[k] += graph.sizes[i]
    state.labels[i] = k


@inner
def _empty_cluster(state):
    """An empty cluster, which is then off the stack."""
    while True:
        state.ends[_FREE] -= 1
        k = state.free[state.ends[_FREE]]
        state.is_free[k] = 0
        if state.first[k] < 0:
            return k


@inner
def _note(state, i):
    """Note the cluster of item i, the first time since the last perturbation."""
    if not state.is_moved[i]:
        state.is_moved[i] = 1
        state.moved[state.ends[_MOVED], 0] = i
        state.moved[state.ends[_MOVED], 1] = state.labels[i]
        state.ends[_MOVED] += 1


@inner
def _push(state, i):
    """Queue item i if it is not."""
    if not state.is_queued[i]:
        state.is_queued[i] = 1
        state.queue[(state.ends[_HEAD] + state.ends[_QUEUED]) % state.queue.size] = i
        state.ends[_QUEUED] += 1


@inner
def _sum_pulls(graph, state, i, number):
    """Add the excess of item i to `pull`; return of how many clusters there are sums, `number` before."""
    begin, end = graph.indptr[i], graph.indptr[i + 1]
    state.ends[_WORK] += end - begin + 1
    for entry in range(begin, end):
        k = state.labels[graph.indices[entry]]
        if k >= 0:
            if not state.is_met[k]:
                state.is_met[k] = 1
                state.met[number] = k
                number += 1
            state.pull[k] += graph.excess[entry]
    return number


@inner
def _forget_pulls(state, number):
    for at in range(number):
        k = state.met[at]
        state.pull[k] = 0.0
        state.is_met[k] = 0


@inner
def _weight_in(graph, state, i, k):
    """Weight between item i and the others of cluster k; needs its pulls."""
    others = state.mass[k] - (graph.sizes[i] if state.labels[i] == k else 0.0)
    return state.pull[k] + graph.default * graph.sizes[i] * others


@inner
def _fits(graph, state, i, k):
    """Whether item i may be in cluster k."""
    return state.labels[i] == k or state.mass[k] + graph.sizes[i] <= graph.limit


@inner
def _best_place(graph, state, i):
    """Return what item i weighs where it is, the cluster where it weighs most, -1 for an empty one, and that weight."""
    number = _sum_pulls(graph, state, i, 0)
    own = state.labels[i]
    present = _weight_in(graph, state, i, own) if own >= 0 else 0.0
    target, best = -1, 0.0
    for at in range(number):
        k = state.met[at]
        weight = _weight_in(graph, state, i, k)
        if weight > best and _fits(graph, state, i, k):
            target, best = k, weight
    _forget_pulls(state, number)
    return present, target, best


@inner
def _move(graph, state, i, k):
    """Move item i to cluster k, -1 for an empty one, and queue whom that concerns."""
    _note(state, i)
    if state.labels[i] >= 0:
        _take_out(graph, state, i)
    if k < 0:
        k = _empty_cluster(state)
    if graph.default < 0.0:
        member = state.first[k]
        while member >= 0:
            _push(state, member)
            member = state.after[member]
    _put(graph, state, i, k)
    state.ends[_WORK] += graph.indptr[i + 1] - graph.indptr[i]
    for entry in range(graph.indptr[i], graph.indptr[i + 1]):
        _push(state, graph.indices[entry])


@inner
def _settle(graph, state, stop):
    """Move the queued items to where they weigh most, until that changes nothing; return the gain."""
    gain = 0.0
    while state.ends[_QUEUED] > 0:
        i = state.queue[state.ends[_HEAD]]
        state.ends[_HEAD] = (state.ends[_HEAD] + 1) % state.queue.size
        state.ends[_QUEUED] -= 1
        state.is_queued[i] = 0
        if stop[0] != 0 and state.labels[i] >= 0:
            continue
        present, target, best = _best_place(graph, state, i)
        if state.labels[i] < 0 or best > present + graph.rounding:
            gain += best - present
            _move(graph, state, i, target)
    return gain


@inner
def _best_partner(graph, state, k, by_mean):
    """The cluster that cluster k is best merged with, -1 if none, and the weight between them, or its mean."""
    number = 0
    i = state.first[k]
    while i >= 0:
        number = _sum_pulls(graph, state, i, number)
        i = state.after[i]
    partner, best = -1, 0.0
    for at in range(number):
        c = state.met[at]
        if c != k and state.mass[k] + state.mass[c] <= graph.limit:
            pairs = state.mass[k] * state.mass[c]
            weight = state.pull[c] + graph.default * pairs
            if weight > graph.rounding:
                if by_mean:
                    weight /= pairs
                if weight > best or (weight == best and c < partner):
                    partner, best = c, weight
    _forget_pulls(state, number)
    return partner, best


@inner
def _merge(graph, state, by_mean, most_work, stop):
    """Merge clusters that are each other's best partners until none gain, or for so much work; return the number.

    With the mean weight this is average linkage at threshold 0: clusters without neighbours in each other have a
    negative mean.
    """
    n_items = state.labels.size
    partners, weights = np.full(n_items, -1, np.int32), np.zeros(n_items)
    is_due = np.ones(n_items, np.uint8)
    ends_at = state.ends[_WORK] + most_work
    n_merges, before = 0, -1
    while n_merges > before and state.ends[_WORK] < ends_at and stop[0] == 0:
        before = n_merges
        state.ends[_WORK] += n_items
        for k in range(n_items):
            if state.first[k] < 0:
                partners[k], weights[k] = -1, 0.0
            elif is_due[k]:
                partners[k], weights[k] = _best_partner(graph, state, k, by_mean)
            is_due[k] = 0
        for k in np.argsort(-weights):
            c = partners[k]
            if c < 0 or weights[k] <= 0.0:
                break
            # They are each other's best: partners that are merged already in this round are due.
            if is_due[k] or is_due[c] or weights[c] > weights[k] * (1.0 + 1e-12):
                continue
            _join(graph, state, k, c, is_due)
            n_merges += 1
    return n_merges


@inner
def _join(graph, state, k, c, is_due):
    """Merge two clusters; they and all that have a neighbour in them are due to be looked at."""
    is_due[k] = is_due[c] = 1
    gone, kept = (k, c) if state.mass[k] < state.mass[c] else (c, k)
    i = state.first[gone]
    while i >= 0:
        following = state.after[i]
        _note(state, i)
        _take_out(graph, state, i)
        _put(graph, state, i, kept)
        i = following
    i = state.first[kept]
    while i >= 0:
        state.ends[_WORK] += graph.indptr[i + 1] - graph.indptr[i]
        for entry in range(graph.indptr[i], graph.indptr[i + 1]):
            is_due[state.labels[graph.indices[entry]]] = 1
        i = state.after[i]


@inner
def _keep(state):
    """Forget where items were."""
    for at in range(state.ends[_MOVED]):
        state.is_moved[state.moved[at, 0]] = 0
    state.ends[_MOVED] = 0


@inner
def _undo(graph, state):
    """Put the items back to where they were."""
    for at in range(state.ends[_MOVED]):
        if state.labels[state.moved[at, 0]] >= 0:
            _take_out(graph, state, state.moved[at, 0])
    for at in range(state.ends[_MOVED]):
        _put(graph, state, state.moved[at, 0], state.moved[at, 1])
    _keep(state)


@jit
def load(graph: Graph, state: Clusters, partition: np.ndarray) -> None:
    """Place the items as in a partition, labels from 0 and -1 for an item that is not placed."""
    _load(graph, state, partition)


@inner
def _load(graph, state, partition):
    _keep(state)
    for i in range(partition.size):
        if state.labels[i] >= 0:
            _take_out(graph, state, i)
    for i in range(partition.size):
        if partition[i] >= 0:
            _put(graph, state, i, partition[i])


@jit
def merge_best(graph: Graph, state: Clusters, by_mean: bool, most_work: int, stop: np.ndarray) -> int:
    """Merge clusters that are each other's best, by mean weight or by their weight; return the number of merges."""
    number = _merge(graph, state, by_mean, most_work, stop)
    _keep(state)
    return number


@jit
def descend(graph: Graph, state: Clusters, order: np.ndarray, most_work: int, stop: np.ndarray) -> float:
    """Place items in this order, move and merge until nothing gains; return the weight of the pairs joined."""
    n_merges = 1
    while n_merges > 0:
        for i in order:
            _push(state, i)
        _settle(graph, state, stop)
        n_merges = _merge(graph, state, False, most_work, stop)
    _keep(state)
    return joined_weight(graph, state.labels, state.mass)


@inner
def joined_weight(graph, labels, mass):
    """Sum of weights over pairs in one cluster."""
    listed, squares = 0.0, 0.0
    for i in range(labels.size):
        squares += mass[i] ** 2 - graph.sizes[i] ** 2
        for entry in range(graph.indptr[i], graph.indptr[i + 1]):
            if labels[graph.indices[entry]] == labels[i]:
                listed += graph.excess[entry]
    return 0.5 * (listed + graph.default * squares)


@inner
def _plan(graph, state, kind, randoms, at, items):
    """Write to `items` whom a perturbation around a random item moves.

    Return their number; the cluster they go to, ANEW for a new one of all, APART for one of each; and how many random
    numbers that took.
    """
    i = int(randoms[at] * state.labels.size)
    begin, degree = graph.indptr[i], graph.indptr[i + 1] - graph.indptr[i]
    entry = begin + int(randoms[at + 1] * degree)
    for _ in range(degree):  # to the next neighbour that attracts
        if graph.excess[entry] > 0.0:
            break
        entry = entry + 1 if entry + 1 < begin + degree else begin
    j = graph.indices[entry]
    own, other = state.labels[i], state.labels[j]
    items[0] = i
    if kind == _FOLLOW and own != other:
        return 1, other, 2
    if kind == _FOLLOW:
        items[1] = j
        return 2, _ANEW, 2
    number = 0
    if kind == _GATHER or kind == _SPLIT:  # the neighbours that are as near as j, of any cluster or of i's
        number = 1
        for place in range(begin, begin + degree):
            near = graph.indices[place]
            if graph.excess[place] >= graph.excess[entry] and (kind == _GATHER or state.labels[near] == own):
                items[number] = near
                number += 1
        return number, _ANEW, 2
    for k in (own, other):
        member = state.first[k]
        while member >= 0:
            items[number] = member
            number += 1
            member = state.after[member]
        if own == other:
            break
        if kind == _MERGE:
            return number, other, 2
    for last in range(number - 1, 0, -1):
        swapped = int(randoms[at + 2 + last] * (last + 1))
        items[last], items[swapped] = items[swapped], items[last]
    return number, _APART, 2 + number


@inner
def _perturb(graph, state, items, target):
    """Move these items to a cluster, or into new ones; return the gain, which may be negative."""
    gain = 0.0
    for place in range(items.size):
        i = items[place]
        if target == _APART:
            _push(state, i)
        elif target >= 0 and not _fits(graph, state, i, target):
            target = _ANEW
        number = _sum_pulls(graph, state, i, 0)
        if target >= 0:
            gain += _weight_in(graph, state, i, target)
        gain -= _weight_in(graph, state, i, state.labels[i])
        _forget_pulls(state, number)
        _move(graph, state, i, max(target, -1))
        if target == _ANEW:
            target = state.labels[i]
    for i in items:
        _push(state, i)
    return gain


@jit
def perturb(
    graph: Graph,
    state: Clusters,
    best: np.ndarray,
    heat: float,
    randoms: np.ndarray,
    in_vain: int,
    patience: int,
    most_work: int,
    stop: np.ndarray,
) -> int:
    """Perturb the clusters in one place after the other, undo most of what loses, and end at the best partition.

    A loss is accepted with probability exp(-loss / heat), so that the search can leave a local optimum of all
    perturbations.

    Parameters
    ----------
    graph : Graph
    state : Clusters
        Of a partition of all items; changed in place.
    best : int32 array of shape (n,)
        Room for labels.
    heat : float
        0 to accept no loss.
    randoms : float array
        Numbers from 0 to below 1; at least n + 3.
    in_vain, patience : int
        Perturbations in a row without a gain so far, and the number that ends the search.
    most_work : int
        The total of work at which to end.
    stop : uint8 array of shape (1,)

    Returns
    -------
    in_vain : int
        At least `patience` if that was reached, else the random numbers are used up or the work is done.
    """
    n_items = state.labels.size
    items = np.empty(n_items + 1, np.int32)
    at, kind, below = 0, 0, 0.0  # the last is by how much the partition is below the best
    while in_vain < patience and state.ends[_WORK] < most_work and stop[0] == 0 and at + n_items + 3 <= randoms.size:
        number, target, used = _plan(graph, state, kind % _KINDS, randoms, at, items)
        gain = _perturb(graph, state, items[:number], target) + _settle(graph, state, stop)
        at += used + 1
        kind += 1
        in_vain += 1
        if gain < -graph.rounding and gain <= heat * np.log(1.0 - randoms[at - 1]):
            _undo(graph, state)
            gain = 0.0
        elif gain < -graph.rounding and below == 0.0:
            best[:] = state.labels
            for place in range(state.ends[_MOVED]):
                best[state.moved[place, 0]] = state.moved[place, 1]
        _keep(state)
        below -= gain
        if below < -graph.rounding:
            in_vain = 0
        if below < graph.rounding:
            below = 0.0
    if below > 0.0:
        _load(graph, state, best)
    return in_vain
