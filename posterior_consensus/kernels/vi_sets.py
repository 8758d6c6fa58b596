"""Costs of sets of items as clusters under VI, and lower bounds of what they cost beyond their items' shares.

Items are merged ones, with multiplicities; sizes count the items that were merged. A block is a set of items that one
draw or more have as a cluster. With g(x) = x log2 x, a set S costs

    f(S) = g(|S|) + sum of own over its items - sum_b weights_b g(|S and block b|).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import in_order

_LN2 = 0.6931471805599453
_GAIN = 1e-9  # bits; less is no reason to move an item
_NEGLIGIBLE = 1e-12
_DISPLACED = 8  # places an item moves by on average beyond which a ranking is sorted from scratch
_LEAST_MEMORY = 0.15  # weight of the newest minimizer in the mean
_FASTER, _SLOWER, _FASTEST, _SLOWEST = 1.1, 0.6, 1.5, 0.03  # of steps after success, after failures; their limits
_FAILURES = 3


class Blocks(NamedTuple):
    """Blocks of two merged items or more: block b holds items[ends[b - 1] : ends[b]], item i is in of_item[...]."""

    ends: np.ndarray  # (B,)
    items: np.ndarray
    item_ends: np.ndarray  # (n,)
    of_item: np.ndarray
    weights: np.ndarray  # (B,), twice the draws' weights
    multiplicity: np.ndarray  # (n,), of the items
    own: np.ndarray  # (n,), what an item costs by itself: blocks that hold nothing else
    table: np.ndarray  # g of every size


class Node(NamedTuple):
    """Sets between two: they have all chosen items, and besides them free ones only."""

    free: np.ndarray  # (U,), items
    place: np.ndarray  # (n,), of an item in `free`, or -1
    chosen: np.ndarray  # (n,), flags


class Minorant(NamedTuple):
    """base + linear . x - x' quadratic x, at most what free items x cost in addition; by unit of multiplicity."""

    linear: np.ndarray  # (U,)
    quadratic: np.ndarray  # (U, U)
    multiplicity: np.ndarray  # (U,)


class State(NamedTuple):
    """What is known of a node."""

    prices: np.ndarray  # (U, U), antisymmetric
    means: np.ndarray  # (U, U), of the minimizers: item j's row is the set that j would have, times j's share
    least: np.ndarray  # (M,), greatest lower bound of each size
    in_all: np.ndarray  # (U,), flags: in every set below the threshold
    in_none: np.ndarray  # (U,), flags: in no set below it


@inner
def _begin(ends, index):
    return ends[index - 1] if index > 0 else 0


@inner
def _rank(keys, ranking):
    """Sort a nearly sorted ranking by insertion; if it is far from sorted, sort it from scratch."""
    budget = _DISPLACED * keys.size
    for r in range(1, keys.size):
        item = ranking[r]
        key = keys[item]
        s = r - 1
        while s >= 0 and keys[ranking[s]] > key:
            ranking[s + 1] = ranking[s]
            s -= 1
        ranking[s + 1] = item
        budget -= r - 1 - s
        if budget < 0:
            in_order(keys, ranking)
            return


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
def bend(blocks: Blocks, shares: np.ndarray, node: Node, counts: np.ndarray, out: Minorant) -> float:
    """Write a quadratic minorant of f(S) - g(|S|) - shares over a node's sets, and return its base.

    Let a block have a chosen items. -g(a + x) is bounded by the parabola that equals it at x = 0, and touches it at
    `counts` of the block. The difference is (a + x - count)^2 x / 6 times a third derivative of -g, which is positive.
    """
    linear, quadratic, multiplicity = out
    quadratic[:] = 0.0
    for k in range(node.free.size):
        i = node.free[k]
        multiplicity[k] = blocks.multiplicity[i]
        linear[k] = (blocks.own[i] - shares[i]) / multiplicity[k]
    base = 0.0
    for i in range(shares.size):
        if node.chosen[i]:
            base += blocks.own[i] - shares[i]
    present = np.empty(shares.size, np.int64)
    for b in range(blocks.weights.size):
        n_present, n_free, n_chosen = 0, 0, 0
        for r in range(_begin(blocks.ends, b), blocks.ends[b]):
            i = blocks.items[r]
            if node.place[i] >= 0:
                present[n_present] = node.place[i]
                n_present += 1
                n_free += blocks.multiplicity[i]
            elif node.chosen[i]:
                n_chosen += blocks.multiplicity[i]
        weight, at_chosen = blocks.weights[b], blocks.table[n_chosen]
        base -= weight * at_chosen
        if n_present == 1:
            k = present[0]
            linear[k] -= weight * (blocks.table[n_chosen + n_free] - at_chosen) / n_free
        elif n_present > 1:
            more = min(max(counts[b] - n_chosen, 1.0), np.float64(n_free))
            log = np.log2(n_chosen + more)
            slope = log + 1.0 / _LN2
            square = (slope * more - (n_chosen + more) * log + at_chosen) / (more * more)
            for x in range(n_present):
                linear[present[x]] += weight * (2.0 * square * more - slope)
                row = quadratic[present[x]]
                for y in range(n_present):
                    row[present[y]] += weight * square
    return base


@jit
def expect_counts(
    blocks: Blocks, node: Node, means: np.ndarray, counts: np.ndarray, step: float, out: np.ndarray
) -> None:
    """Move each block's count towards the one that its items see in the means, in steps that are linear in 1 / count.

    A block that the means hardly touch keeps its count.
    """
    for b in range(blocks.weights.size):
        seen, product, n_chosen = 0.0, 0.0, 0
        members = blocks.items[_begin(blocks.ends, b) : blocks.ends[b]]
        for i in members:
            if node.place[i] >= 0:
                row = means[node.place[i]]
                seen += row[node.place[i]] * blocks.multiplicity[i]
                for j in members:
                    if node.place[j] >= 0:
                        product += row[node.place[j]] * (blocks.multiplicity[i] * blocks.multiplicity[j])
            elif node.chosen[i]:
                n_chosen += blocks.multiplicity[i]
        before = max(counts[b] - n_chosen, 1.0)
        after = max((product + before) / (seen + 1.0), 1.0)
        out[b] = n_chosen + 1.0 / ((1.0 - step) / before + step / after)


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
        _rank(keys, ranking)
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
def _bound_size(values, multiplicity, extra, ranking, threshold, start, may_enter, may_leave):
    """Least cost of `extra` units of free items: the cheapest rows. Flag what a set below the threshold may do."""
    n = values.size
    _rank(values, ranking)
    total, size, k = start, 0, 0
    while k < n and size + multiplicity[ranking[k]] <= extra and values[ranking[k]] < np.inf:
        total += values[ranking[k]] * multiplicity[ranking[k]]
        size += multiplicity[ranking[k]]
        k += 1
    if size < extra:
        if k == n or values[ranking[k]] == np.inf:
            return np.inf
        total += values[ranking[k]] * (extra - size)
    if total >= threshold:
        return total
    last = values[ranking[k]] if size < extra else (values[ranking[k - 1]] if k > 0 else np.inf)
    following = values[ranking[k]] if k < n else np.inf
    for r in range(n):
        j = ranking[r]
        if r < k:
            may_enter[j] = True
            if total + multiplicity[j] * (following - values[j]) < threshold:
                may_leave[j] = True
        else:
            may_leave[j] = True
            part = multiplicity[j] - (extra - size) if r == k else multiplicity[j]
            if k + extra > 0 and total + part * (values[j] - last) < threshold:
                may_enter[j] = True
    return total


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
    n_steps: int,
    state: State,
) -> tuple[float, int]:
    """Raise a node's lower bound by prices; return it and the number of steps made.

    At size m, each free item has a row of its own: the m - n_chosen free items, itself among them, that cost it least
    under the minorant. The cheapest rows bound the size. Antisymmetric prices of pairs cancel in a set, so any are
    valid; they move against the means' asymmetry (the volume algorithm), in steps that aim `margin` above the
    threshold. Sizes from `first_size` whose `least` has reached the threshold count no more. It ends if all have.
    """
    prices, means, least, in_all, in_none = state
    n, n_sizes = in_all.size, least.size
    multiplicity = minorant.multiplicity
    trial, minimizer = prices.copy(), np.empty((n, n))
    values, keys = np.empty((n_sizes, n)), np.empty(n)
    rankings, orders = np.empty((n, n), np.int32), np.empty((n_sizes, n), np.int32)
    for j in range(n):
        rankings[j] = np.arange(n)
        rankings[j, 0], rankings[j, j] = j, 0
    for s in range(n_sizes):
        orders[s] = np.arange(n)
    may_enter, may_leave = np.empty(n, np.bool_), np.empty(n, np.bool_)
    best, length, failures = -np.inf, 1.0, 0
    for step in range(n_steps):
        _bound_rows(minorant, trial, first_size - n_chosen, keys, rankings, values)
        worst, at = np.inf, -1
        may_enter[:], may_leave[:] = False, False
        for s in range(n_sizes):
            if least[s] >= threshold:
                continue
            extra, start = first_size + s - n_chosen, base + table[first_size + s]
            value = _bound_size(values[s], multiplicity, extra, orders[s], threshold, start, may_enter, may_leave)
            least[s] = max(least[s], value)
            if value < min(worst, threshold):
                worst, at = value, s
        if at < 0:
            prices[:] = trial
            return threshold, step + 1
        for j in range(n):
            in_none[j] |= not may_enter[j]
            in_all[j] |= not may_leave[j]
        failures += 1
        if worst > best:
            best, failures, length = worst, 0, min(length * _FASTER, _FASTEST)
            prices[:] = trial
        elif failures == _FAILURES:
            length, failures = length * _SLOWER, 0
        _write_minimizer(values[at], rankings, orders[at], multiplicity, first_size + at - n_chosen, minimizer)
        newest = max(1.0 / (step + 1), _LEAST_MEMORY)
        square = 0.0
        for j in range(n):
            for k in range(n):
                means[j, k] += newest * (minimizer[j, k] - means[j, k])
            for k in range(j):
                square += (means[j, k] - means[k, j]) ** 2 * multiplicity[j] * multiplicity[k]
        if square < _NEGLIGIBLE or length < _SLOWEST:
            return best, step + 1
        rate = length * (threshold + margin - best) / square
        for j in range(n):
            for k in range(j):
                trial[j, k] = prices[j, k] - rate * (means[j, k] - means[k, j])
                trial[k, j] = -trial[j, k]
    return best, n_steps
