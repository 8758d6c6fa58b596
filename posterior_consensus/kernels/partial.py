"""Search for many items of whose joint clustering the posterior is sure.

The state is a partition of some items, the members. Each of its clusters is known by one member, its head. A draw
agrees where every member is with its head and all heads are apart. `apart` (n, K, W) holds for every item and cluster
the draws in which the item is not with the head, one bit for each draw, and `agree` (W,) the draws that agree: what an
item costs in a cluster, or on its own, is an intersection of a few words and their population count.

Weights of draws are whole numbers, so that sums do not depend on the order of additions.
"""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.coclustering import _population_count


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
            total += np.int64(_population_count(words[w]))
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
            total += np.int64(_population_count(words[w] & others[w]))
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
    """Put an item into a cluster, or into one of its own if `k` is -1."""
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
def _best_place(agree, apart, tables, used, n_used, item, weight):
    """The weight of the draws that still agree with an item in the cluster that suits it best, and that cluster.

    A cluster of its own is -1.
    """
    most, place, left = np.int64(-1), np.int64(-1), weight
    for s in range(n_used):
        k = used[s]
        kept = weight - _weigh_both(agree, apart[item, k], tables)
        left -= kept
        if kept > most:
            most, place = kept, k
        if left <= most:
            return most, place
    return left, np.int64(-1)


@inner
def _next(bits, state, weight, order, bounds):
    """The open item that costs least, the first of them in this order, with its cluster and the weight left.

    What an item would leave falls while others enter: what was computed before bounds it from above. That of a member
    is below 0.
    """
    # Each array that a function takes out of a tuple is counted, which costs more than what is computed here.
    agree, apart, tables, used, n_used = state.agree, state.apart, bits.tables, state.used, state.numbers[0]
    item, place, most = order[0], np.int64(-1), np.int64(-1)
    for i in order:
        if bounds[i] > bounds[item]:
            item = i
    if bounds[item] < 0:
        return -1, place, most
    most, place = _best_place(agree, apart, tables, used, n_used, item, weight)
    bounds[item] = most
    for i in order:
        if bounds[i] > most:
            bounds[i], where = _best_place(agree, apart, tables, used, n_used, i, weight)
            if bounds[i] > most:
                item, most, place = i, bounds[i], where
    return item, place, most


@inner
def _cheapest(bits, state, last, target, rows):
    """The member but `last` without which draws of most weight agree, if more than `target`; they go to rows[0].

    A draw agrees once a member leaves if nothing else is amiss in it. Where a head leaves, another member takes its
    place, and what is amiss is another matter.
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
            row = apart[head, other]
            for w in range(n_words):
                word = ~row[w] & bits.present[w]
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
    without = rows[3]
    for s in range(n_used):
        k = state.used[s]
        if state.heads[k] == last:
            continue
        without[:] = bits.present
        for r in range(n_used):
            other = state.used[r]
            row = apart[state.heads[other], k]
            if r < s:
                for w in range(n_words):
                    without[w] &= ~(away[other, w] | met[other, w])
            elif r > s:
                for w in range(n_words):
                    without[w] &= ~(away[other, w] | (met[other, w] & (~single[other, w] | row[w])))
        kept = _weigh(without, bits.tables)
        heir = -1
        for i in range(cluster.size):
            if kept > target and cluster[i] == k and i != state.heads[k]:
                if heir < 0:
                    heir = i
                    for other in state.used[:n_used]:
                        if other != k:
                            row = apart[heir, other]
                            for w in range(n_words):
                                without[w] &= row[w]
                else:
                    _keep_together(planes, i, heir, without)
                kept = _weigh(without, bits.tables)
        if kept > target:
            target, member = kept, state.heads[k]
            rows[0] = without
    return member, target


@inner
def _drop(bits, state, item, agree):
    """Open a member again, after which these draws agree; whether its cluster is gone."""
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


@inner
def _grow(bits, state, order, enough, beyond, last_size, curve, labels, bounds, rows):
    """One run of :func:`grow`, from the first item of `order`; the number of items of `labels`."""
    state.cluster[:] = -1
    state.sizes[:] = 0
    state.numbers[:] = 0
    state.agree[:] = bits.present
    weight = _weigh(bits.present, bits.tables)
    bounds[:] = weight
    curve[:] = 0
    curve[0] = weight
    largest = 0
    item, place = order[0], np.int64(-1)
    while item >= 0:
        _add(bits, state, item, place)
        bounds[item] = -1
        while True:
            size = state.numbers[1]
            if weight > curve[size]:
                curve[size] = weight
                if weight >= enough and size >= largest:
                    largest = size
                    labels[:] = state.cluster
            if size < 3 or size > last_size:
                break
            member, kept = _cheapest(bits, state, item, curve[size - 1], rows)
            if member < 0:
                break
            gained = kept - weight
            weight = kept
            if _drop(bits, state, member, rows[0]):
                bounds[:] = weight
            else:
                for i in range(order.size):
                    bounds[i] = min(bounds[i] + gained, weight)
            bounds[state.cluster >= 0] = -1
            bounds[member] = weight
        if state.numbers[1] >= largest + beyond:
            break
        item, place, weight = _next(bits, state, weight, order, bounds)
    return largest


@jit
def grow(bits, n_slots, orders, beyond, enough, last_size, stop):
    """Grow a partition of some items from the first item of each of the `orders` (S, n), by the item that costs least.

    Whenever one member without the others' company makes it better than any of its size before, that member leaves. A
    run ends `beyond` (S,) items above the largest partition of weight `enough`, and no member leaves one of more than
    `last_size` items. There are at most `n_slots` clusters.

    Returns the largest partition of at least this weight (n,), -1 where open, of several that of the largest weight,
    and the largest weight at each number of items (n + 1,). The first run is finished even if `stop` holds 1.
    """
    n_items, _, n_words = bits.planes.shape
    state = Partial(
        np.empty(n_items, np.int64),
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int64),
        np.empty(2, np.int64),
        np.empty((n_items, n_slots, n_words), np.uint64),
        np.empty(n_words, np.uint64),
    )
    rows = np.empty((4 + 3 * n_slots, n_words), np.uint64)
    bounds, labels, best = np.empty(n_items, np.int64), np.empty(n_items, np.int64), np.full(n_items, -1)
    curve, highest = np.empty(n_items + 1, np.int64), np.zeros(n_items + 1, np.int64)
    found = 0
    for s in range(orders.shape[0]):
        if s > 0 and stop[0]:
            break
        largest = _grow(bits, state, orders[s], enough, beyond[s], last_size, curve, labels, bounds, rows)
        if largest > found or (largest == found and curve[largest] > highest[largest]):
            found = largest
            best[:] = labels
        highest = np.maximum(highest, curve)
    return best, highest
