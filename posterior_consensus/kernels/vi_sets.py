"""Costs of sets of items as clusters under VI, and lower bounds of what they cost beyond their items' shares.

Items are merged ones, with multiplicities; sizes count the items that were merged. A block is a set of items that one
draw or more have as a cluster. With g(x) = x log2 x, a set S costs

    f(S) = g(|S|) + sum of own over its items - sum_b weights_b g(|S and block b|).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import order_anew, up_to

_LN2 = 0.6931471805599453
_SIZES_AT_ONCE = 8  # in a step of prices
_GAIN = 1e-9  # bits; less is no reason to move an item
_NEGLIGIBLE = 1e-12
_LEAST_MEMORY = 0.15  # weight of the newest minimizer in the mean
_FASTER, _SLOWER, _FASTEST, _SLOWEST = 1.1, 0.6, 1.5, 0.003  # of steps after success, after failures; their limits
_FAILURES = 2
_SHORTEST = 0.02  # of the lengths that the next steps begin with


class Blocks(NamedTuple):
    """Blocks of two merged items or more: block b holds items[ends[b - 1] : ends[b]], item i is in of_item[...]."""

    ends: np.ndarray  # (B,)
    items: np.ndarray
    place: np.ndarray  # (n,), of an item's bit, near those of similar items
    byte_ends: np.ndarray  # (B,)
    bytes: np.ndarray  # the same blocks as bits, in bytes with one or more: 256 times the byte's place, and its value
    item_ends: np.ndarray  # (n,)
    of_item: np.ndarray
    weights: np.ndarray  # (B,), twice the draws' weights
    multiplicity: np.ndarray  # (n,), of the items
    own: np.ndarray  # (n,), what an item costs by itself: blocks that hold nothing else
    table: np.ndarray  # g of every size


class Minorant(NamedTuple):
    """base + linear . x - x' quadratic x, at most what items x cost but for the term of their size, by unit."""

    linear: np.ndarray  # (U,)
    quadratic: np.ndarray  # (U, U)
    multiplicity: np.ndarray  # (U,)


class Box(NamedTuple):
    """How many units of each group of items a set has, besides chosen ones."""

    group: np.ndarray  # (U,), of each free item
    low: np.ndarray  # (G,), at least
    high: np.ndarray  # (G,), at most
    multiplicity: np.ndarray  # (U,), of each free item


class Choice(NamedTuple):
    """What a cheapest choice of free items has so far."""

    low: np.ndarray  # (G,), units of each group that it must still take
    high: np.ndarray  # (G,), and may take
    taken: np.ndarray  # (U,), units of each item


class State(NamedTuple):
    """What is known of a node."""

    prices: np.ndarray  # (U, U), antisymmetric
    rankings: np.ndarray  # (U, U), int16: itself and the others, nearly in the order of their costs in its row
    means: np.ndarray  # (U, U), of the minimizers: item j's row is the set that j would have, times j's share
    least: np.ndarray  # (M,), greatest lower bound of each size
    inside: np.ndarray  # (U,), lower bounds of the sets that have an item, whatever their size
    outside: np.ndarray  # (U,), and of those that do not; where both are below the threshold, of some sizes


@inner
def _begin(ends, index):
    return ends[index - 1] if index > 0 else 0


@inner
def _count(blocks, members, counts):
    """Count the members in each block; return their number and their own costs."""
    size, own = 0, 0.0
    counts[:] = 0
    for i in range(members.size):
        if members[i]:
            size += blocks.multiplicity[i]
            own += blocks.own[i]
            for r in range(_begin(blocks.item_ends, i), blocks.item_ends[i]):
                counts[blocks.of_item[r]] += blocks.multiplicity[i]
    return size, own


@jit
def cost(blocks: Blocks, members: np.ndarray) -> float:
    """What the set of the flagged items costs as a cluster, f(S)."""
    counts = np.empty(blocks.weights.size, np.int64)
    size, value = _count(blocks, members, counts)
    for b in range(counts.size):
        value -= blocks.weights[b] * blocks.table[counts[b]]
    return value + blocks.table[size]


@inner
def _change(blocks, b, count, item, is_member):
    """By how much the cost of a set in one block changes if the item goes in, or out where it is a member."""
    m = -blocks.multiplicity[item] if is_member else blocks.multiplicity[item]
    return -blocks.weights[b] * (blocks.table[count + m] - blocks.table[count])


@jit
def descend(blocks: Blocks, shares: np.ndarray, members: np.ndarray) -> float:
    """Put items in or take them out, the best first, while f(S) less the shares falls; return how far it fell."""
    table, multiplicity = blocks.table, blocks.multiplicity
    counts = np.empty(blocks.weights.size, np.int64)
    size, _ = _count(blocks, members, counts)
    changes = np.empty(members.size)
    for i in range(members.size):
        changes[i] = (blocks.own[i] - shares[i]) * (-1.0 if members[i] else 1.0)
        for r in range(_begin(blocks.item_ends, i), blocks.item_ends[i]):
            b = blocks.of_item[r]
            changes[i] += _change(blocks, b, counts[b], i, members[i])
    fallen = 0.0
    while True:
        best, at = -_GAIN, -1
        for i in range(members.size):
            m = -multiplicity[i] if members[i] else multiplicity[i]
            if size + m > 0:
                change = table[size + m] - table[size] + changes[i]
                if change < best:
                    best, at = change, i
        if at < 0:
            return fallen
        fallen += best
        m = -multiplicity[at] if members[at] else multiplicity[at]
        size += m
        back = -changes[at]
        for r in range(_begin(blocks.item_ends, at), blocks.item_ends[at]):
            b = blocks.of_item[r]
            before = counts[b]
            counts[b] += m
            for q in range(_begin(blocks.ends, b), blocks.ends[b]):
                i = blocks.items[q]
                if i != at:
                    was = _change(blocks, b, before, i, members[i])
                    changes[i] += _change(blocks, b, counts[b], i, members[i]) - was
        members[at] = not members[at]
        changes[at] = back


@jit
def share_out(blocks: Blocks, labels: np.ndarray, shares: np.ndarray) -> None:
    """Write what each item contributes to the costs of its cluster: they sum to f of it, cluster by cluster."""
    sizes = np.zeros(labels.max() + 1, np.int64)
    for i in range(labels.size):
        sizes[labels[i]] += blocks.multiplicity[i]
    for i in range(labels.size):
        shares[i] = blocks.own[i] + blocks.multiplicity[i] * np.log2(sizes[labels[i]])
    counts = np.zeros(sizes.size, np.int64)
    for b in range(blocks.weights.size):
        members = blocks.items[_begin(blocks.ends, b) : blocks.ends[b]]
        counts[:] = 0
        for i in members:
            counts[labels[i]] += blocks.multiplicity[i]
        for i in members:
            shares[i] -= blocks.multiplicity[i] * blocks.weights[b] * np.log2(counts[labels[i]])


@jit
def bend(
    blocks: Blocks, shares: np.ndarray, free: np.ndarray, chosen: np.ndarray, sees: np.ndarray, out: Minorant
) -> float:
    """Write a quadratic minorant of f(S) - g(|S|) - shares over the sets of chosen and free items; return its base.

    Let a block have a chosen items and x free ones of a set: it contributes -g(a) and, to each of the x, what -g falls
    by from a to a + x, divided by x. This is convex in x, so a tangent bounds it, at the count that an item sees: it
    sees sees[i, j] of item j. Any counts are valid.
    """
    linear, quadratic, multiplicity = out
    for k in range(free.size):
        multiplicity[k] = blocks.multiplicity[free[k]]
    base = 0.0
    for i in range(shares.size):
        if chosen[i]:
            base += blocks.own[i] - shares[i]
    n_chosen = np.zeros(blocks.weights.size, np.int64)
    for b in range(n_chosen.size):
        for q in range(_begin(blocks.ends, b), blocks.ends[b]):
            if chosen[blocks.items[q]]:
                n_chosen[b] += blocks.multiplicity[blocks.items[q]]
        base -= blocks.weights[b] * blocks.table[n_chosen[b]]
    n_bytes = (shares.size + 7) // 8
    weighted = np.zeros(8 * n_bytes)
    seen, slopes, of_bits = np.zeros(256 * n_bytes), np.empty(256 * n_bytes), np.empty(8 * n_bytes)
    for k in range(free.size):
        i = free[k]
        for j in free:
            weighted[blocks.place[j]] = sees[i, j] * blocks.multiplicity[j]
        for y in range(n_bytes):
            for bit in range(8):
                part = 1 << bit
                for z in range(part):
                    seen[256 * y + part + z] = seen[256 * y + z] + weighted[8 * y + bit]
        slopes[:] = 0.0
        value = (blocks.own[i] - shares[i]) / multiplicity[k]
        for r in range(_begin(blocks.item_ends, i), blocks.item_ends[i]):
            b = blocks.of_item[r]
            ones, weight, count = (
                blocks.bytes[_begin(blocks.byte_ends, b) : blocks.byte_ends[b]],
                blocks.weights[b],
                0.0,
            )
            for y in ones:
                count += seen[y]
            count = max(count, multiplicity[k])
            whole = n_chosen[b] + count
            log = np.log2(whole)
            mean = (whole * log - blocks.table[n_chosen[b]]) / count
            slope = (log + 1.0 / _LN2 - mean) / count
            value -= weight * (mean - slope * count)
            slope *= weight
            for y in ones:
                slopes[y] += slope
        linear[k] = value
        for y in range(n_bytes):
            for bit in range(7, -1, -1):
                part, total = 1 << bit, 0.0
                for z in range(part):
                    total += slopes[256 * y + part + z]
                    slopes[256 * y + z] += slopes[256 * y + part + z]
                of_bits[8 * y + bit] = total
        for j in range(free.size):
            quadratic[k, j] = of_bits[blocks.place[free[j]]]
    for j in range(free.size):
        for k in range(j):
            quadratic[j, k] = quadratic[k, j] = 0.5 * (quadratic[j, k] + quadratic[k, j])
    return base


@inner
def _take(order, begin, values, box, extra, choice):
    """Write how many units of each item a cheapest choice of `extra` units has; return how many it lacks.

    Items are taken in `order`, from the place `begin`: first the least number of each group, then others up to its
    most, which the choice counts down. Items of infinite value are left out.
    """
    multiplicity = box.multiplicity
    low, high, taken = choice
    left, needed = extra, 0.0
    for k in range(taken.size):
        taken[k] = 0.0
    for g in range(low.size):
        needed += low[g]
    for r in range(begin, order.size):
        if needed <= 0:
            break
        k = order[r]
        g = box.group[k]
        if low[g] > 0 and values[k] < np.inf:
            taken[k] = min(multiplicity[k], low[g])
            low[g] -= taken[k]
            high[g] -= taken[k]
            left -= taken[k]
            needed -= taken[k]
    for r in range(begin, order.size):
        if left <= 0:
            break
        k = order[r]
        g = box.group[k]
        if values[k] < np.inf:
            part = min(multiplicity[k] - taken[k], high[g], left)
            taken[k] += part
            high[g] -= part
            left -= part
    return np.inf if left < 0 or needed > 0 else left


@inner
def _bound_rows(minorant, box, prices, extras, keys, rankings, choice, values):
    """Write the least cost of each item's row at each size: values[s, j] with extras[s] units of free items."""
    linear, quadratic, multiplicity = minorant
    low, high, taken = choice
    n = linear.size
    for j in range(n):
        for k in range(n):
            keys[k] = -(quadratic[j, k] + prices[j, k])
        keys[j] = -np.inf
        ranking = rankings[j]
        order_anew(keys, ranking)
        total, size, needed = linear[j] - quadratic[j, j] * multiplicity[j], multiplicity[j], 0.0
        _without(box, j, choice)
        for g in range(low.size):
            needed += low[g]
        taken[:] = 0.0
        r = 1
        while needed > 0 and r < n:
            k = ranking[r]
            g = box.group[k]
            if low[g] > 0:
                part = min(multiplicity[k], low[g])
                taken[k] = part
                low[g] -= part
                high[g] -= part
                needed -= part
                size += part
                total += keys[k] * part
            r += 1
        if needed > 0 or high[box.group[j]] < 0:
            for s in range(extras.size):
                values[s, j] = np.inf
            continue
        r = 1
        for s in range(extras.size):
            extra = extras[s]
            while r < n and size < extra:
                k = ranking[r]
                g = box.group[k]
                part = min(multiplicity[k] - taken[k], high[g])
                if size + part > extra:
                    break
                size += part
                total += keys[k] * part
                high[g] -= part
                r += 1
            values[s, j] = total
            if size > extra:
                values[s, j] = np.inf
            elif size < extra:
                values[s, j] = np.inf if r == n else total + keys[ranking[r]] * (extra - size)


@inner
def _begin_choice(box, choice):
    for g in range(box.low.size):
        choice.low[g], choice.high[g] = box.low[g], box.high[g]


@inner
def _without(box, j, choice):
    """Begin a choice besides item j."""
    _begin_choice(box, choice)
    g = box.group[j]
    choice.low[g] = max(choice.low[g] - box.multiplicity[j], 0.0)
    choice.high[g] -= box.multiplicity[j]


@inner
def _bound_size(values, box, extra, ranking, choice):
    """Least cost of `extra` units of free items, the cheapest rows."""
    order_anew(values, ranking)
    _begin_choice(box, choice)
    if _take(ranking, 0, values, box, extra, choice) > 0:
        return np.inf
    total = 0.0
    for k in range(values.size):
        if choice.taken[k] > 0:
            total += values[k] * choice.taken[k]
    return total


@inner
def _mix_in(rankings, rows, box, extra, newest, choice, means):
    """Add the set that each row would have, a minimizer, to the means with the weight `newest`."""
    for j in range(rows.size):
        if rows[j] > 0:
            share = rows[j] / box.multiplicity[j]
            _without(box, j, choice)
            _take(rankings[j], 1, box.multiplicity, box, extra - box.multiplicity[j], choice)
            choice.taken[j] = box.multiplicity[j]
            for k in range(rows.size):
                means[j, k] += newest * (share * choice.taken[k] / box.multiplicity[k] - means[j, k])
        else:
            for k in range(rows.size):
                means[j, k] -= newest * means[j, k]


@inner
def _choose_sizes(least, threshold, at, extras, first_extra):
    """Write some sizes that have not reached the threshold, evenly spread; return their number, and if it is all."""
    n_left = 0
    for s in range(least.size):
        n_left += least[s] < threshold
    number, passed, n = 0, 0, min(n_left, _SIZES_AT_ONCE)
    for s in range(least.size):
        if least[s] < threshold:
            if passed * n >= number * n_left:
                at[number], extras[number] = s, first_extra + s
                number += 1
            passed += 1
    return n, n == n_left


@inner
def _keep(trial, prices):  # numba compiles prices[:] = trial four seconds longer
    for j in range(prices.shape[0]):
        for k in range(prices.shape[0]):
            prices[j, k] = trial[j, k]


@jit
def raise_bound(
    minorant: Minorant,
    box: Box,
    starts: np.ndarray,
    first_extra: int,
    threshold: float,
    margin: float,
    length: float,
    n_steps: int,
    state: State,
) -> tuple[float, int]:
    """Raise a node's lower bound by prices; return the length of steps that is apt next, and how many were made.

    A size has `first_extra` free units or more, and `starts` (M,) is what it costs without them. Each free item has a
    row of its own: so many free units, itself among them, that cost it least under the minorant, as many of each group
    as the box allows. The cheapest rows bound the size. Antisymmetric prices of pairs cancel in a set, so any are
    valid; they move against the means' asymmetry (the volume algorithm), in steps that aim `margin` above the
    threshold. Sizes whose `least` has reached the threshold count no more. It ends if all have.
    """
    prices, rankings, means, least, _, _ = state
    n, n_sizes = prices.shape[0], least.size
    multiplicity = minorant.multiplicity
    trial = prices.copy()
    values, keys, rows = np.empty((n_sizes, n)), np.empty(n), np.empty(n)
    choice = Choice(np.empty(box.low.size), np.empty(box.low.size), np.empty(n))
    orders = np.empty((_SIZES_AT_ONCE, n), np.int16)
    for e in range(_SIZES_AT_ONCE):
        for k in range(n):
            orders[e, k] = k
    chosen, extras = np.empty(n_sizes, np.int64), np.empty(n_sizes)
    n_chosen, all_chosen = _choose_sizes(least, threshold, chosen, extras, first_extra)
    best, failures, step = -np.inf, 0, 0
    for step in range(n_steps):
        _bound_rows(minorant, box, trial, extras[:n_chosen], keys, rankings, choice, values)
        worst, at = np.inf, -1
        for e in range(n_chosen):
            s = chosen[e]
            value = starts[s] + _bound_size(values[e], box, extras[e], orders[e], choice)
            least[s] = max(least[s], value)
            if value < min(worst, threshold):
                worst, at = value, e
                for k in range(n):
                    rows[k] = choice.taken[k]
        if at < 0:
            _keep(trial, prices)
            if all_chosen:
                return length, step + 1
            n_chosen, all_chosen = _choose_sizes(least, threshold, chosen, extras, first_extra)
            best, failures = -np.inf, 0
            if n_chosen == 0:
                return length, step + 1
            continue
        failures += 1
        if worst > best:
            best, failures, length = worst, 0, min(length * _FASTER, _FASTEST)
            _keep(trial, prices)
        elif failures == _FAILURES:
            length, failures = length * _SLOWER, 0
        _mix_in(rankings, rows, box, extras[at], max(1.0 / (step + 1), _LEAST_MEMORY), choice, means)
        square = 0.0
        for j in range(n):
            for k in range(j):
                square += (means[j, k] - means[k, j]) ** 2 * multiplicity[j] * multiplicity[k]
        if square < _NEGLIGIBLE or length < _SLOWEST:
            break
        rate = length * (threshold + margin - best) / square
        for j in range(n):
            for k in range(j):
                trial[j, k] = prices[j, k] - rate * (means[j, k] - means[k, j])
                trial[k, j] = -trial[j, k]
    return max(length, _SHORTEST), step + 1


@inner
def _find_thresholds(order, begin, values, box, extra, choice, out):
    """Write two thresholds of each group (2, G): what is taken costs at most them, and what is not at least.

    They are multipliers of a linear program, the lowest ones and the highest. Return those of a unit of any group.
    """
    ends, nexts = out
    multiplicity, n_groups = box.multiplicity, box.low.size
    first_low, first_high = choice.low.copy(), choice.high.copy()
    _take(order, begin, values, box, extra, choice)
    taken, high = choice.taken, choice.high
    last, following = np.full(n_groups, -np.inf), np.full(n_groups, np.inf)
    end, next_ = -np.inf, np.inf
    for r in range(begin, order.size):
        k = order[r]
        g = box.group[k]
        if taken[k] > 0:
            last[g] = values[k]
        if taken[k] < multiplicity[k] and values[k] < following[g]:
            following[g] = values[k]
    for g in range(n_groups):
        n_taken = first_high[g] - high[g]
        if n_taken > first_low[g]:
            end = max(end, last[g])
        if n_taken < first_high[g]:
            next_ = min(next_, following[g])
    if end == -np.inf:
        end = next_
    if next_ == np.inf:
        next_ = end
    if abs(end) == np.inf:  # each group has its least and its most
        end = next_ = 0.0
    for g in range(n_groups):
        n_taken = first_high[g] - high[g]
        ends[g], nexts[g] = end, next_
        at_low, at_high = n_taken <= first_low[g], n_taken >= first_high[g]
        if at_low and at_high:
            ends[g] = last[g] if last[g] > -np.inf else min(following[g], end)
            nexts[g] = following[g] if following[g] < np.inf else max(last[g], next_)
        elif at_low:
            ends[g] = max(last[g], end)
            nexts[g] = following[g] if following[g] < np.inf else max(last[g], next_)
        elif at_high:
            ends[g], nexts[g] = last[g], min(following[g], next_)
    return end, next_


@inner
def _constant(box, extra, of_any, thresholds):
    """The dual value of a choice of `extra` units but for what costs less than the thresholds."""
    total = of_any * extra
    for g in range(thresholds.size):
        beyond = thresholds[g] - of_any
        total += beyond * (box.low[g] if beyond > 0 else box.high[g])
    return total


@inner
def _may_close(inside, outside, threshold):
    """Whether the sets that have some item, or those that do not, may all be beyond the threshold."""
    for j in range(inside.size):
        if max(inside[j], outside[j]) >= threshold:
            return True
    return False


@inner
def _probe_size(minorant, box, rankings, at_size, threshold, state):
    """Lower the bounds of the sets that have an item, and of those that do not, to what they are at one size.

    By duality: a row that has the item costs at least what the item costs above the threshold more, and a row without
    it what it costs below; so do the rows of a set.
    """
    quadratic, multiplicity = minorant.quadratic, minorant.multiplicity
    prices, _, _, _, inside, outside = state
    values, order, extra, start = at_size
    n, n_groups = values.size, box.low.size
    if extra == 0:
        for j in range(n):
            outside[j] = min(outside[j], start)
        return
    if not _may_close(inside, outside, threshold):
        return
    choice, keys = Choice(box.low.copy(), box.high.copy(), np.empty(n)), np.empty(n)
    order_anew(values, order)
    of_rows = np.empty((2, n_groups))
    last, following = _find_thresholds(order, 0, values, box, extra, choice, of_rows)
    lasts, followings = of_rows
    at_last, at_following = _constant(box, extra, last, lasts), _constant(box, extra, following, followings)
    thresholds = np.empty((n, 2, n_groups))
    for k in range(n):
        if values[k] == np.inf:
            continue
        for j in range(n):
            keys[j] = -(quadratic[k, j] + prices[k, j])
        _without(box, k, choice)
        _find_thresholds(rankings[k], 1, keys, box, extra - multiplicity[k], choice, thresholds[k])
        if multiplicity[k] >= extra:
            thresholds[k, 0] = -np.inf
    for j in range(n):
        if max(inside[j], outside[j]) < threshold:
            continue
        g, m = box.group[j], multiplicity[j]
        with_last, with_following, without_last, without_following = at_last, at_following, at_last, at_following
        for k in range(n):
            if k == j or values[k] == np.inf:
                continue
            key, h = -(quadratic[k, j] + prices[k, j]), box.group[k]
            has = values[k] + max(key - thresholds[k, 0, g], 0.0) * m
            lacks = values[k] + max(thresholds[k, 1, g] - key, 0.0) * m
            with_last += multiplicity[k] * min(has - lasts[h], 0.0)
            with_following += multiplicity[k] * min(has - followings[h], 0.0)
            without_last += multiplicity[k] * min(lacks - lasts[h], 0.0)
            without_following += multiplicity[k] * min(lacks - followings[h], 0.0)
        if extra >= m:
            with_last += m * (values[j] - lasts[g])
            with_following += m * (values[j] - followings[g])
            inside[j] = min(inside[j], start + max(with_last, with_following))
        outside[j] = min(outside[j], start + max(without_last, without_following))


@jit
def probe(minorant: Minorant, box: Box, starts: np.ndarray, first_extra: int, threshold: float, state: State) -> float:
    """Bound each size that has not reached the threshold, and the sets with and without each item; return the least."""
    prices, rankings, _, least, inside, outside = state
    n, n_sizes = prices.shape[0], least.size
    values, keys, order = np.empty((n_sizes, n)), np.empty(n), np.empty(n, np.int16)
    choice = Choice(np.empty(box.low.size), np.empty(box.low.size), np.empty(n))
    extras = np.empty(n_sizes)
    for s in range(n_sizes):
        extras[s] = first_extra + s
    for k in range(n):
        order[k] = k
        inside[k] = outside[k] = np.inf
    _bound_rows(minorant, box, prices, extras, keys, rankings, choice, values)
    for s in range(n_sizes):
        if least[s] < threshold:
            least[s] = max(least[s], starts[s] + _bound_size(values[s], box, extras[s], order, choice))
    worst_first = up_to(n_sizes)
    order_anew(least, worst_first)
    for s in worst_first:
        if least[s] < threshold:
            at_size = values[s], order, extras[s], starts[s]
            _probe_size(minorant, box, rankings, at_size, threshold, state)
    return least[worst_first[0]]
