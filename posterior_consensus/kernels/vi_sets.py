"""Costs of sets of items as clusters under VI, and lower bounds of what they cost beyond their items' shares.

Items are merged ones, with multiplicities; sizes count the items that were merged. A block is a set of items that one
draw or more have as a cluster. With g(x) = x log2 x, a set S costs

    f(S) = g(|S|) + sum of own over its items - sum_b weights_b g(|S and block b|).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import order_anew

_LN2 = 0.6931471805599453
_GAIN = 1e-9  # bits; less is no reason to move an item
_NEGLIGIBLE = 1e-12
_LEAST_MEMORY = 0.15  # weight of the newest minimizer in the mean
_FASTER, _SLOWER, _FASTEST, _SLOWEST = 1.1, 0.6, 1.5, 0.003  # of steps after success, after failures; their limits
_FAILURES = 2
_SHORTEST = 0.02  # of the lengths that the next steps begin with
_STEPS = 60  # at most
_CHECKED = 20  # steps in which the bound must rise
_WORTH = 0.01  # by this share of what is missing


class Blocks(NamedTuple):
    """Blocks of two merged items or more: block b holds items[ends[b - 1] : ends[b]], item i is in of_item[...]."""

    ends: np.ndarray  # (B,)
    items: np.ndarray
    packed: np.ndarray  # (B, ceil(n / 8)), uint8: the same as bits, the first item the lowest
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


class State(NamedTuple):
    """What is known of a node."""

    prices: np.ndarray  # (U, U), antisymmetric
    means: np.ndarray  # (U, U), of the minimizers: item j's row is the set that j would have, times j's share
    least: np.ndarray  # (M,), greatest lower bound of each size
    inside: np.ndarray  # (U,), lower bounds of the sets that have an item, whatever their size
    outside: np.ndarray  # (U,), and of those that do not


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


@jit
def descend(blocks: Blocks, shares: np.ndarray, members: np.ndarray) -> float:
    """Put items in or take them out, the best first, while f(S) less the shares falls; return how far it fell."""
    table, multiplicity = blocks.table, blocks.multiplicity
    counts = np.empty(blocks.weights.size, np.int64)
    size, _ = _count(blocks, members, counts)
    fallen = 0.0
    while True:
        best, at = -_GAIN, -1
        for i in range(members.size):
            m = -multiplicity[i] if members[i] else multiplicity[i]
            if size + m == 0:
                continue
            change = table[size + m] - table[size] + (blocks.own[i] - shares[i]) * (-1.0 if members[i] else 1.0)
            for r in range(_begin(blocks.item_ends, i), blocks.item_ends[i]):
                b = blocks.of_item[r]
                change -= blocks.weights[b] * (table[counts[b] + m] - table[counts[b]])
            if change < best:
                best, at = change, i
        if at < 0:
            return fallen
        fallen += best
        m = -multiplicity[at] if members[at] else multiplicity[at]
        members[at] = not members[at]
        size += m
        for r in range(_begin(blocks.item_ends, at), blocks.item_ends[at]):
            counts[blocks.of_item[r]] += m


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
def fit_shares(
    sets: np.ndarray,
    costs: np.ndarray,
    multiplicity: np.ndarray,
    centre: np.ndarray,
    pull: float,
    duals: np.ndarray,
    shares: np.ndarray,
    n_sweeps: int,
) -> float:
    """Maximize the sum of shares less pull / 2 x their squared distance to a centre; no set's shares exceed its cost.

    Coordinate ascent in the sets' multipliers, as Hildreth's; the squares are divided by the multiplicities. Return by
    how much the last sweep changed a set's shares.
    """
    for i in range(shares.size):
        excess = 1.0
        for s in range(costs.size):
            if sets[s, i]:
                excess -= duals[s]
        shares[i] = centre[i] + multiplicity[i] * excess / pull
    change = np.inf
    for _ in range(n_sweeps):
        change = 0.0
        for s in range(costs.size):
            size, above = 0, -costs[s]
            for i in range(shares.size):
                if sets[s, i]:
                    size += multiplicity[i]
                    above += shares[i]
            step = max(-duals[s], pull * above / size)
            duals[s] += step
            for i in range(shares.size):
                if sets[s, i]:
                    shares[i] -= multiplicity[i] * step / pull
            change = max(change, abs(step) * size / pull)
        if change < _NEGLIGIBLE:
            break
    return change


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
    n_bytes = blocks.packed.shape[1]
    weighted = np.zeros(8 * n_bytes)
    seen, slopes, of_bits = np.zeros((n_bytes, 256)), np.empty((n_bytes, 256)), np.empty(8 * n_bytes)
    for k in range(free.size):
        i = free[k]
        for j in free:
            weighted[j] = sees[i, j] * blocks.multiplicity[j]
        for y in range(n_bytes):
            for bit in range(8):
                part = 1 << bit
                for z in range(part):
                    seen[y, part + z] = seen[y, z] + weighted[8 * y + bit]
        slopes[:] = 0.0
        value = (blocks.own[i] - shares[i]) / multiplicity[k]
        for r in range(_begin(blocks.item_ends, i), blocks.item_ends[i]):
            b = blocks.of_item[r]
            bits, weight, count = blocks.packed[b], blocks.weights[b], 0.0
            for y in range(n_bytes):
                count += seen[y, bits[y]]
            count = max(count, multiplicity[k])
            whole = n_chosen[b] + count
            log = np.log2(whole)
            mean = (whole * log - blocks.table[n_chosen[b]]) / count
            slope = (log + 1.0 / _LN2 - mean) / count
            value -= weight * (mean - slope * count)
            slope *= weight
            for y in range(n_bytes):
                slopes[y, bits[y]] += slope
        linear[k] = value
        for y in range(n_bytes):
            for bit in range(7, -1, -1):
                part, total = 1 << bit, 0.0
                for z in range(part):
                    total += slopes[y, part + z]
                    slopes[y, z] += slopes[y, part + z]
                of_bits[8 * y + bit] = total
        for j in range(free.size):
            quadratic[k, j] = of_bits[free[j]]
    for j in range(free.size):
        for k in range(j):
            quadratic[j, k] = quadratic[k, j] = 0.5 * (quadratic[j, k] + quadratic[k, j])
    return base


@inner
def _bound_rows(minorant, prices, first_extra, keys, rankings, values):
    """Least cost of each item's row at each size: values[s, j] with first_extra + s units of free items."""
    linear, quadratic, multiplicity = minorant
    n = linear.size
    for j in range(n):
        for k in range(n):
            keys[k] = -(quadratic[j, k] + prices[j, k])
        keys[j] = -np.inf
        ranking = rankings[j]
        order_anew(keys, ranking)
        total, size, r = linear[j] - quadratic[j, j] * multiplicity[j], multiplicity[j], 1
        for s in range(values.shape[0]):
            extra = first_extra + s
            if extra < multiplicity[j]:
                values[s, j] = np.inf
                continue
            while r < n and size + multiplicity[ranking[r]] <= extra:
                total += keys[ranking[r]] * multiplicity[ranking[r]]
                size += multiplicity[ranking[r]]
                r += 1
            values[s, j] = total
            if size < extra:
                values[s, j] = np.inf if r == n else total + keys[ranking[r]] * (extra - size)


@inner
def _bound_size(values, multiplicity, extra, ranking):
    """Least cost of `extra` units of free items, the cheapest rows, and the costs of the last unit and of the next."""
    n = values.size
    order_anew(values, ranking)
    total, size, k = 0.0, 0, 0
    while k < n and size + multiplicity[ranking[k]] <= extra and values[ranking[k]] < np.inf:
        total += values[ranking[k]] * multiplicity[ranking[k]]
        size += multiplicity[ranking[k]]
        k += 1
    following = values[ranking[k]] if k < n else np.inf
    if size < extra:
        return total + following * (extra - size) if following < np.inf else np.inf, following, following
    return total, values[ranking[k - 1]] if k > 0 else following, following


@inner
def _write_minimizer(values, rankings, ranking, multiplicity, extra, out):
    out[:] = 0.0
    size = 0
    for j in ranking:
        if size >= extra:
            return
        share = min(1.0, (extra - size) / multiplicity[j])
        size += multiplicity[j]
        out[j, j] = share
        row = multiplicity[j]
        for r in range(1, values.size):
            if row >= extra:
                break
            k = rankings[j, r]
            out[j, k] = share * min(1.0, (extra - row) / multiplicity[k])
            row += multiplicity[k]


@jit
def raise_bound(
    minorant: Minorant,
    base: float,
    table: np.ndarray,
    first_size: int,
    n_chosen: int,
    threshold: float,
    margin: float,
    length: float,
    state: State,
) -> tuple[float, float, int]:
    """Raise a node's lower bound by prices; return it, the length of steps that is apt next, and how many were made.

    At size m, each free item has a row of its own: the m - n_chosen free items, itself among them, that cost it least
    under the minorant. The cheapest rows bound the size. Antisymmetric prices of pairs cancel in a set, so any are
    valid; they move against the means' asymmetry (the volume algorithm), in steps that aim `margin` above the
    threshold. Sizes from `first_size` whose `least` has reached the threshold count no more. It ends if all have.
    """
    prices, means, least, inside, outside = state
    n, n_sizes = inside.size, least.size
    multiplicity = minorant.multiplicity
    trial, minimizer = prices.copy(), np.empty((n, n))
    values, keys = np.empty((n_sizes, n)), np.empty(n)
    rankings, orders = np.empty((n, n), np.int32), np.empty((n_sizes, n), np.int32)
    for j in range(n):
        rankings[j] = np.arange(n)
        rankings[j, 0], rankings[j, j] = j, 0
    for s in range(n_sizes):
        orders[s] = np.arange(n)
    best, failures, checked, step = -np.inf, 0, -np.inf, 0
    for step in range(_STEPS):
        _bound_rows(minorant, trial, first_size - n_chosen, keys, rankings, values)
        worst, at = np.inf, -1
        for s in range(n_sizes):
            if least[s] >= threshold:
                continue
            extra, start = first_size + s - n_chosen, base + table[first_size + s]
            value = start + _bound_size(values[s], multiplicity, extra, orders[s])[0]
            least[s] = max(least[s], value)
            if value < min(worst, threshold):
                worst, at = value, s
        if at < 0:
            prices[:] = trial
            return threshold, length, step + 1
        failures += 1
        if worst > best:
            best, failures, length = worst, 0, min(length * _FASTER, _FASTEST)
            prices[:] = trial
        elif failures == _FAILURES:
            length, failures = length * _SLOWER, 0
        if step % _CHECKED == _CHECKED - 1:
            if best - checked < _WORTH * (threshold - best):
                break
            checked = best
        _write_minimizer(values[at], rankings, orders[at], multiplicity, first_size + at - n_chosen, minimizer)
        newest = max(1.0 / (step + 1), _LEAST_MEMORY)
        square = 0.0
        for j in range(n):
            for k in range(n):
                means[j, k] += newest * (minimizer[j, k] - means[j, k])
            for k in range(j):
                square += (means[j, k] - means[k, j]) ** 2 * multiplicity[j] * multiplicity[k]
        if square < _NEGLIGIBLE or length < _SLOWEST:
            break
        rate = length * (threshold + margin - best) / square
        for j in range(n):
            for k in range(j):
                trial[j, k] = prices[j, k] - rate * (means[j, k] - means[k, j])
                trial[k, j] = -trial[j, k]
    _bound_rows(minorant, prices, first_size - n_chosen, keys, rankings, values)
    inside[:], outside[:] = np.inf, np.inf
    for s in range(n_sizes):
        if least[s] < threshold:
            extra, start = first_size + s - n_chosen, base + table[first_size + s]
            _probe(minorant, prices, values[s], rankings, orders[s], extra, start, inside, outside)
    return best, max(length, _SHORTEST), step + 1


@inner
def _probe(minorant, prices, values, rankings, order, extra, start, inside, outside):
    """Lower the bounds of the sets that have an item, and of those that do not, to what they are at one size.

    If it is in, each row has it instead of the last that it has; if it is out, the next one instead of it. The cheapest
    rows cost at least `extra` times any price of a unit, and what rows cost less.
    """
    quadratic, multiplicity = minorant.quadratic, minorant.multiplicity
    n = values.size
    if extra == 0:
        for j in range(n):
            outside[j] = min(outside[j], start)
        return
    _, last, following = _bound_size(values, multiplicity, extra, order)
    if following == np.inf:
        following = last
    ends, nexts = np.empty(n), np.empty(n)
    for k in range(n):
        size, r = multiplicity[k], 1
        while r < n and size + multiplicity[rankings[k, r]] <= extra:
            size += multiplicity[rankings[k, r]]
            r += 1
        at_end, at_next = rankings[k, r - 1], rankings[k, min(r, n - 1)]
        nexts[k] = -(quadratic[k, at_next] + prices[k, at_next]) if r < n else np.inf
        ends[k] = nexts[k] if size < extra else -(quadratic[k, at_end] + prices[k, at_end])
        if r == 1 and size >= extra:
            ends[k] = -np.inf
    for j in range(n):
        with_last, with_next, without_last, without_next = 0.0, 0.0, 0.0, 0.0
        for k in range(n):
            if k == j or values[k] == np.inf:
                continue
            m, key = multiplicity[k], -(quadratic[k, j] + prices[k, j])
            has = values[k] + max(key - ends[k], 0.0) * multiplicity[j]
            lacks = values[k] + max(nexts[k] - key, 0.0) * multiplicity[j]
            with_last += m * min(has - last, 0.0)
            with_next += m * min(has - following, 0.0)
            without_last += m * min(lacks - last, 0.0)
            without_next += m * min(lacks - following, 0.0)
        m = multiplicity[j]
        if extra >= m:
            least = start + m * values[j] + max(with_last + (extra - m) * last, with_next + (extra - m) * following)
            inside[j] = min(inside[j], least)
        outside[j] = min(outside[j], start + max(without_last + extra * last, without_next + extra * following))
