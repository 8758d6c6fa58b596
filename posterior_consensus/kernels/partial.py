"""Search for a large set of items whose joint clustering has high posterior probability.

The state is a partition of some items, the members. Each of its clusters is known by one member, its head. A draw
agrees where every member is with its head and all heads are apart. `apart` (n, K, W) holds for every item and cluster
the draws in which the item is not with the head, one bit for each draw, and `agree` (W,) the draws that agree: what an
item costs in a cluster, or on its own, is an intersection of a few words and their population count.

Weights of draws are integers, so that sums do not depend on the order of additions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.coclustering import population_count


class Bits(NamedTuple):
    """What is known of the draws, in words of 64.

    Attributes
    ----------
    planes : uint64 array of shape (n, P, W)
        Bit p of each item's labels; P is a multiple of four.
    present : uint64 array of shape (W,)
        Ones, but for the bits after the last draw.
    tables : int64 array of shape (8 W, 256)
        Weight of the draws in each byte; of shape (0, 256) where every draw weighs 1.
    """

    planes: np.ndarray
    present: np.ndarray
    tables: np.ndarray


class Partial(NamedTuple):
    """A partition of some items.

    Attributes
    ----------
    cluster : int64 array of shape (n,)
        Cluster of each item, -1 where it is open.
    heads, sizes : int64 arrays of shape (K,)
        Of the clusters.
    used : int64 array of shape (K,)
        Clusters that have members, in its first places.
    numbers : int64 array of shape (2,)
        How many clusters have members, and how many members there are.
    apart : uint64 array of shape (n, K, W)
        Draws in which an item is not with a cluster's head.
    agree : uint64 array of shape (W,)
        Draws that agree.
    """

    cluster: np.ndarray
    heads: np.ndarray
    sizes: np.ndarray
    used: np.ndarray
    numbers: np.ndarray
    apart: np.ndarray
    agree: np.ndarray


@inner
def _of_bytes(word, w, tables):
    total = np.int64(0)
    for b in range(8):
        total += tables[8 * w + b, np.int64((word >> np.uint64(8 * b)) & np.uint64(255))]
    return total


@inner
def _weigh(words, tables):
    """Weight of draws."""
    total = np.int64(0)
    if tables.shape[0] == 0:
        for w in range(words.size):
            total += np.int64(population_count(words[w]))
    else:
        for w in range(words.size):
            total += _of_bytes(words[w], w, tables)
    return total


@inner
def _weigh_both(words, others, tables):
    """Weight of the draws in both."""
    total = np.int64(0)
    if tables.shape[0] == 0:
        for w in range(words.size):
            total += np.int64(population_count(words[w] & others[w]))
    else:
        for w in range(words.size):
            total += _of_bytes(words[w] & others[w], w, tables)
    return total


@inner
def _lead(planes, apart, k, head):
    """Write the draws in which each item is not with the head of a cluster."""
    q, h = planes, head
    for i in range(apart.shape[0]):
        for w in range(apart.shape[2]):
            apart[i, k, w] = 0
        for p in range(0, planes.shape[1], 4):
            for w in range(apart.shape[2]):
                apart[i, k, w] |= (
                    (q[i, p, w] ^ q[h, p, w])
                    | (q[i, p + 1, w] ^ q[h, p + 1, w])
                    | (q[i, p + 2, w] ^ q[h, p + 2, w])
                    | (q[i, p + 3, w] ^ q[h, p + 3, w])
                )


@inner
def _keep_together(planes, i, j, words):
    """Leave the draws in which two items are together."""
    q = planes
    for p in range(0, planes.shape[1], 4):
        for w in range(words.size):
            words[w] &= ~(
                (q[i, p, w] ^ q[j, p, w])
                | (q[i, p + 1, w] ^ q[j, p + 1, w])
                | (q[i, p + 2, w] ^ q[j, p + 2, w])
                | (q[i, p + 3, w] ^ q[j, p + 3, w])
            )


@inner
def _add(bits, state, item, k):
    """Add an item to a cluster, or as a singleton if `k` is -1."""
    agree = state.agree
    if k >= 0:
        row = state.apart[item, k]
        for w in range(agree.size):
            agree[w] &= ~row[w]
    else:
        n_used = state.numbers[0]
        for other in state.used[:n_used]:
            row = state.apart[item, other]
            for w in range(agree.size):
                agree[w] &= row[w]
        k = 0
        while state.sizes[k] > 0:
            k += 1
        state.used[n_used] = k
        state.numbers[0] += 1
        state.heads[k] = item
        _lead(bits.planes, state.apart, k, item)
    state.cluster[item] = k
    state.sizes[k] += 1
    state.numbers[1] += 1


@inner
def _best_place(agree, apart, tables, used, n_used, item, weight, hint, floor):
    """The weight of the draws that still agree with an item in the cluster that suits it best, and that cluster.

    A cluster of its own is -1. The cluster `hint` is considered first. If no weight above `floor` is left, a bound of
    it will do.
    """
    most, place, left = np.int64(-1), np.int64(-1), weight
    for s in range(-1, n_used):
        k = hint if s < 0 else used[s]
        if k < 0 or (s >= 0 and k == hint):
            continue
        kept = weight - _weigh_both(agree, apart[item, k], tables)
        left -= kept
        if kept > most:
            most, place = kept, k
        if left <= most or max(left, most) <= floor:
            return max(left, most), place
    return left, np.int64(-1)


@inner
def _next(bits, state, weight, order, bounds, places):
    """The open item that costs least, the first of them in this order, with the weight left and, in `places`, where.

    The weight that an item leaves falls as others enter, so an earlier value is an upper bound. A member's is below 0.
    """
    # Taking an array out of a tuple counts its references, which costs more than the computation here.
    agree, apart, tables, used, n_used = state.agree, state.apart, bits.tables, state.used, state.numbers[0]
    item, most = order[0], np.int64(-1)
    for i in order:
        if bounds[i] > bounds[item]:
            item = i
    if bounds[item] < 0:
        return -1, most
    most, places[item] = _best_place(agree, apart, tables, used, n_used, item, weight, places[item], most)
    bounds[item] = most
    for i in order:
        if bounds[i] > most:
            bounds[i], places[i] = _best_place(agree, apart, tables, used, n_used, i, weight, places[i], most)
            if bounds[i] > most:
                item, most = i, bounds[i]
    return item, most


@inner
def _cheapest(bits, state, last, target, rows):
    """The member but `last` without which draws of most weight agree, if more than `target`; they go to rows[0].

    A draw agrees after a member leaves if this member was its only disagreement. If a head leaves, another member
    takes its place, and disagreements are counted anew.
    """
    cluster, apart, planes = state.cluster, state.apart, bits.planes
    n_words, most = state.agree.size, state.sizes.size
    n_used = state.numbers[0]
    once, twice = rows[1], rows[2]
    away, met, single = rows[4 : 4 + most], rows[4 + most : 4 + 2 * most], rows[4 + 2 * most :]
    once[:] = 0
    twice[:] = 0
    for s in range(n_used):
        k = state.used[s]
        away[k] = 0
        met[k] = 0
        single[k] = 0
        head = state.heads[k]
        two = rows[0]
        two[:] = 0
        for other in state.used[:s]:
            for w in range(n_words):
                word = ~apart[head, other, w] & bits.present[w]
                two[w] |= met[k, w] & word
                met[k, w] |= word
        for w in range(n_words):
            single[k, w] = met[k, w] & ~two[w]
            twice[w] |= once[w] & met[k, w]
            once[w] |= met[k, w]
    for i in range(cluster.size):
        k = cluster[i]
        if k >= 0 and state.heads[k] != i:
            for w in range(n_words):
                twice[w] |= once[w] & apart[i, k, w]
                once[w] |= apart[i, k, w]
                away[k, w] |= apart[i, k, w]
    for w in range(n_words):
        once[w] &= ~twice[w]
    member = -1
    weight = _weigh(state.agree, bits.tables)
    if weight + _weigh(once, bits.tables) > target:
        for i in range(cluster.size):
            k = cluster[i]
            if k >= 0 and i != last and state.heads[k] != i:
                kept = weight + _weigh_both(once, apart[i, k], bits.tables)
                if kept > target:
                    target, member = kept, i
        if member >= 0:
            row = apart[member, cluster[member]]
            for w in range(n_words):
                rows[0, w] = state.agree[w] | (once[w] & row[w])
    some, several, without = rows[1], rows[2], rows[3]  # draws in which one cluster, or several, are not whole
    some[:] = 0
    several[:] = 0
    for k in state.used[:n_used]:
        for w in range(n_words):
            several[w] |= some[w] & away[k, w]
            some[w] |= away[k, w]
    for s in range(n_used):
        k = state.used[s]
        if state.heads[k] == last:
            continue
        for w in range(n_words):
            without[w] = bits.present[w] & ~several[w] & ~(some[w] & ~away[k, w])
        if _weigh(without, bits.tables) <= target:
            continue
        for r in range(n_used):
            other = state.used[r]
            head = state.heads[other]
            if r < s:
                for w in range(n_words):
                    without[w] &= ~met[other, w]
            elif r > s:
                for w in range(n_words):
                    without[w] &= ~(met[other, w] & (~single[other, w] | apart[head, k, w]))
        kept = _weigh(without, bits.tables)
        heir = -1
        for i in range(cluster.size):
            if kept > target and cluster[i] == k and i != state.heads[k]:
                if heir < 0:
                    heir = i
                    for other in state.used[:n_used]:
                        if other != k:
                            for w in range(n_words):
                                without[w] &= apart[heir, other, w]
                else:
                    _keep_together(planes, i, heir, without)
                kept = _weigh(without, bits.tables)
        if kept > target:
            target, member = kept, state.heads[k]
            rows[0] = without
    return member, target


@inner
def _drop(bits, state, item, agree):
    """Remove a member, after which these draws agree; return whether its cluster is now empty."""
    k = state.cluster[item]
    state.cluster[item] = -1
    state.sizes[k] -= 1
    state.numbers[1] -= 1
    state.agree[:] = agree
    if state.sizes[k] == 0:
        at = 0
        while state.used[at] != k:
            at += 1
        state.numbers[0] -= 1
        state.used[at] = state.used[state.numbers[0]]
        return True
    if state.heads[k] == item:
        heir = 0
        while state.cluster[heir] != k:
            heir += 1
        state.heads[k] = heir
        _lead(bits.planes, state.apart, k, heir)
    return False


def grow(
    bits: Bits, order: np.ndarray, enough: int, most: int, last_size: int, n_clusters: int, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add the items one by one, first `order[0]`, then always the item that costs least.

    Whenever what is left without one member is better than anything of that size before, the member leaves again: a
    sequential floating forward search.

    Parameters
    ----------
    bits : Bits
    order : integer array of shape (n,)
        All items; of several that cost the same, the first enters.
    enough : int
        Weight that the partition wanted has.
    most : int
        Number of items that it has at most: no more enter.
    last_size : int
        Number of items above which no member leaves.
    n_clusters : int
        The largest number of clusters of a draw.
    stop : uint8 array of shape (1,)
        Another thread may set it to 1 to stop the search with its best result.

    Returns
    -------
    int64 array of shape (n,)
        The largest partition of at least the weight `enough`, among several the one of most weight; -1: unassigned.
    int64 array of shape (n + 1,)
        The largest weight by the number of items.
    """
    n_items = bits.planes.shape[0]
    labels, curve = np.full(n_items, -1), np.zeros(n_items + 1, np.int64)
    _grow(bits, order, enough, most, last_size, n_clusters, stop, labels, curve)
    return labels, curve


@jit
def _grow(bits, order, enough, most, last_size, n_clusters, stop, labels, curve):
    n_items, _, n_words = bits.planes.shape
    state = Partial(
        np.full(n_items, -1),
        np.empty(n_clusters, np.int64),
        np.zeros(n_clusters, np.int64),
        np.empty(n_clusters, np.int64),
        np.zeros(2, np.int64),
        np.empty((n_items, n_clusters, n_words), np.uint64),
        bits.present.copy(),
    )
    rows = np.empty((4 + 3 * n_clusters, n_words), np.uint64)
    weight = _weigh(bits.present, bits.tables)
    bounds = np.full(n_items, weight)
    curve[0] = weight
    largest = 0
    places = np.full(n_items, -1)
    item = order[0]
    while item >= 0:
        _add(bits, state, item, places[item])
        bounds[item] = -1
        while True:
            size = state.numbers[1]
            if weight > curve[size]:
                curve[size] = weight
                if weight >= enough and largest <= size <= most:
                    largest = size
                    labels[:] = state.cluster
            if size < 3 or size > last_size:
                break
            member, kept = _cheapest(bits, state, item, curve[size - 1], rows)
            if member < 0:
                break
            gained = kept - weight
            weight = kept
            k = state.cluster[member]
            gone = _drop(bits, state, member, rows[0])
            for i in range(n_items):
                bounds[i] = -1 if state.cluster[i] >= 0 else weight if gone else min(bounds[i] + gained, weight)
                if gone and places[i] == k:
                    places[i] = -1
            bounds[member] = weight
        if stop[0] or size > most:
            break
        item, weight = _next(bits, state, weight, order, bounds, places)


@inner
def _n_colours(possible, items, colour, last):
    """Number of colours that the items get from the last to the first, each the first that no neighbour has."""
    n_colours = 0
    last[: items.size] = -1  # the item that found a colour taken
    for a in range(items.size - 1, -1, -1):
        i = items[a]
        for b in range(a + 1, items.size):
            if possible[i, items[b]]:
                last[colour[items[b]]] = i
        c = 0
        while last[c] == i:
            c += 1
        colour[i] = c
        n_colours = max(n_colours, c + 1)
    return n_colours


@jit
def clique_bound(possible: np.ndarray, finely: bool) -> int:
    """An upper bound of the number of items of which every two are `possible` (n, n), False on the diagonal.

    Such a set has at most one item of each colour, where neighbours have different ones. Items are taken away, always
    one of least degree: with `finely`, colours are counted for each item among those that are its neighbours when it
    goes, since the first item of the set to go has all others there; else among all items.
    """
    n_items = possible.shape[0]
    degree = np.empty(n_items, np.int64)
    for i in range(n_items):
        degree[i] = possible[i].sum()
    here = np.ones(n_items, np.bool_)
    colour, last = np.empty(n_items, np.int64), np.empty(n_items + 1, np.int64)
    order, near = np.empty(n_items, np.int64), np.empty(n_items, np.int64)
    bound = 1
    for gone in range(n_items):
        item = -1
        for i in range(n_items):
            if here[i] and (item < 0 or degree[i] < degree[item]):
                item = i
        here[item] = False
        order[gone] = item
        n_near = 0
        for i in range(n_items):
            if here[i] and possible[item, i]:
                degree[i] -= 1
                near[n_near] = i
                n_near += 1
        if finely and n_near + 1 > bound:
            bound = max(bound, 1 + _n_colours(possible, near[:n_near], colour, last))
    return bound if finely else _n_colours(possible, order, colour, last)
