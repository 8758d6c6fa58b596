"""Item problems of the lower bound for expected VI: tangents, minima at given multipliers, and one step.

Arrays share these shapes, for n items (merged ones, with multiplicities), G groups of cluster sizes and K tangents an
item:

slopes (n, K, n) float32, offsets (n, K) float64, tags (n, K): tangent k of item i belongs to group tags[i, k], or to
none where that is -1; its value at a set of items x is offsets[i, k] + sum_j multiplicity_j slopes[i, k, j] x_j.
prices.pairs, centre (G, n, n) float64: what item i pays for each unit of j where its cluster's size is in a group.
means (G, n, n) float32: averages of the minimizers; the diagonal holds the share of each group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.cells import order_anew
from posterior_consensus.runtime.executor import in_blocks

_NOTHING = 1e-6  # share of a group at which it is taken out of the means, and costs no more time
TANGENTS_AT_ONCE = 4
_LN2 = 0.6931471805599453
_SMOOTHING = 1e-4  # keeps the tangents' slopes finite where a mean has only the item itself in a block


class Groups(NamedTuple):
    """Groups of cluster sizes."""

    lower: np.ndarray  # (G,), the least size of each
    upper: np.ndarray  # (G,), the largest
    logs: np.ndarray  # log2 m of every size m
    multiplicity: np.ndarray  # (n,), of the items


class Prices(NamedTuple):
    """What items pay."""

    pairs: np.ndarray  # (G, n, n), for each unit of another item
    constants: np.ndarray  # (G, n), for themselves


class Minima(NamedTuple):
    """Minima of the items' problems at some prices."""

    least: np.ndarray  # (n, G), lower bounds in each group
    sizes: np.ndarray  # (n, G), of the minimizers
    winners: np.ndarray  # (n, G), the greatest tangents there
    group: np.ndarray  # (n,), the best of each item
    sets: np.ndarray  # (n, n), its minimizer


class Means(NamedTuple):
    """Averages of the minimizers."""

    sets: np.ndarray  # (G, n, n)
    costs: np.ndarray  # (n, G)
    logs: np.ndarray  # (n, G), of their sizes


@inner
def _least_by_size(i, slope, offset, price, multiplicity, lower, keys, ranking, least):
    """Raise least[m - lower] to the minimum of a priced tangent over {0 <= x <= 1, x_i = 1, sum x = m}.

    That is the sum of the m smallest priced slopes, the item's own among them. Returns nothing; `ranking` is left in
    order, item i first.
    """
    for j in range(keys.size):
        keys[j] = np.float64(slope[j]) + price[j]
    total = offset + keys[i] * multiplicity[i]
    keys[i] = -np.inf
    order_anew(keys, ranking)
    size = multiplicity[i]
    r = 1
    for s in range(least.size):
        m = lower + s
        while r < keys.size and size + multiplicity[ranking[r]] <= m:
            total += keys[ranking[r]] * multiplicity[ranking[r]]
            size += multiplicity[ranking[r]]
            r += 1
        value = total
        if size < m:
            value += keys[ranking[r]] * (m - size)
        least[s] = max(least[s], value)


@inner
def _write_set(ranking, multiplicity, m, out):
    """The first items of a ranking up to size m, the last of them perhaps in part."""
    out[:] = 0.0
    size = 0
    for r in range(out.size):
        if size >= m:
            break
        j = ranking[r]
        out[j] = min(1.0, (m - size) / multiplicity[j])
        size += multiplicity[j]


@jit
def _solve_items(first, last, tangents, prices, groups, active, step, minima):
    lower, upper, logs, multiplicity = groups
    least, sizes, winners, group, sets = minima
    n, n_groups = least.shape
    keys, winner_of = np.empty(n), np.empty(upper[n_groups - 1], np.int64)
    value_of, before_of = np.empty(winner_of.size), np.empty(winner_of.size)
    for i in range(first, last):
        best = np.inf
        for b in range(n_groups):
            if not active[i, b] or upper[b] < multiplicity[i]:
                continue
            smallest = max(lower[b], multiplicity[i])
            width = upper[b] - smallest + 1
            values, before, winner = value_of[:width], before_of[:width], winner_of[:width]
            for s in range(width):
                values[s], winner[s] = -np.inf, 0
            for k in range(tangents.tags.shape[1]):
                if tangents.tags[i, k] != b:
                    continue
                for s in range(width):
                    before[s] = values[s]
                _least_by_size(
                    i,
                    tangents.slopes[i, k],
                    tangents.offsets[i, k],
                    prices.pairs[b, i],
                    multiplicity,
                    smallest,
                    keys,
                    tangents.ranking[i, k],
                    values,
                )
                for s in range(width):
                    if values[s] > before[s]:
                        winner[s] = k
            at = 0
            for s in range(width):
                values[s] += logs[smallest + s]
                if values[s] < values[at]:
                    at = s
            least[i, b] = values[at] + prices.constants[b, i]
            sizes[i, b] = smallest + at
            winners[i, b] = winner[at]
            tangents.last_use[i, winner[at]] = step
            if least[i, b] < best:
                best = least[i, b]
                group[i] = b
                _write_set(tangents.ranking[i, winner[at]], multiplicity, sizes[i, b], sets[i])


def solve_items(
    tangents: Tangents, prices: Prices, groups: Groups, active: np.ndarray, step: int, minima: Minima
) -> None:
    """Write the `minima` of every item's problem in each active group; mark the greatest tangents with `step`.

    The bound for group b is min over sizes m from lower[b] to upper[b] of log2 m + max_k (least value of tangent k over
    sets of size m) + constants[b, i].
    """
    n_items = minima.group.size
    in_blocks(_solve_items, 0, n_items, tangents, prices, groups, active, step, minima, work=tangents.tags.size)


@jit
def violations(means: np.ndarray, triangles: np.ndarray, out: np.ndarray) -> None:
    """How far the means violate x_ji + x_jk - (x_ik + x_ki) / 2 <= x_jj for triangles (b, j, i, k)."""
    for r in range(out.size):
        b, j, i, k = triangles[r]
        out[r] = np.float64(means[b, j, i]) + means[b, j, k] - means[b, j, j]
        out[r] -= 0.5 * (np.float64(means[b, i, k]) + means[b, k, i])


@jit
def _violated_triangles(begin, end, means, groups, first, last, threshold, found, by):
    n_centres = last - first
    for job in range(begin, end):
        mean = means[groups[job // n_centres]]
        j = first + job % n_centres
        pairs = found[job // n_centres, job % n_centres]
        worst = by[job // n_centres, job % n_centres]
        pairs[:] = -1
        worst[:] = threshold
        row = mean[j]
        weakest = 0
        for i in range(mean.shape[0]):
            if i == j or row[i] <= threshold:
                continue
            for k in range(i + 1, mean.shape[0]):
                violation = row[i] + row[k] - row[j] - np.float32(0.5) * mean[i, k]
                if violation <= worst[weakest] or k == j:
                    continue
                violation -= np.float32(0.5) * mean[k, i]
                if violation > worst[weakest]:
                    worst[weakest] = violation
                    pairs[weakest, 0] = i
                    pairs[weakest, 1] = k
                    weakest = int(np.argmin(worst))


def violated_triangles(
    means: np.ndarray, groups: np.ndarray, first: int, last: int, threshold: float, found: np.ndarray, by: np.ndarray
) -> None:
    """The most violated triangles of each of the `groups` and of each centre j from `first` to `last`.

    `found` (groups, centres, R, 2) receives the R worst pairs (i, k), or -1, and `by` how far they are violated.
    """
    n_jobs = groups.size * (last - first)
    arguments = means, groups, first, last, threshold, found, by
    in_blocks(_violated_triangles, 0, n_jobs, *arguments, work=means[0].size // 4)


@jit
def _price_pairs(first, last, centre, means, groups, rate, pairs):
    for i in range(first, last):
        for b in groups:
            pairs[b, i, i] = 0.0
            for j in range(i):
                price = centre[b, i, j] + rate * (np.float64(means[b, i, j]) - np.float64(means[b, j, i]))
                pairs[b, i, j] = price
                pairs[b, j, i] = -price


def price_pairs(centre: np.ndarray, means: np.ndarray, groups: np.ndarray, rate: float, pairs: np.ndarray) -> None:
    """Write centre + rate x (means - means'), exactly antisymmetric, to the pairs of these groups, or to the centre."""
    n = means.shape[1]
    in_blocks(_price_pairs, 0, n, centre, means, groups, rate, pairs, work=n * groups.size)


@jit
def _price_triangles(first, last, groups, triangles, duals, multiplicity, prices):
    pairs, constants = prices
    for g in range(first, last):
        b = groups[g]
        for r in range(duals.size):
            if triangles[r, 0] == b and duals[r] > 0.0:
                j, i, k = triangles[r, 1], triangles[r, 2], triangles[r, 3]
                constants[b, j] -= duals[r] / multiplicity[j]
                pairs[b, j, i] += duals[r] / (multiplicity[i] * multiplicity[j])
                pairs[b, j, k] += duals[r] / (multiplicity[k] * multiplicity[j])
                half = 0.5 * duals[r] / (multiplicity[i] * multiplicity[k])
                pairs[b, i, k] -= half
                pairs[b, k, i] -= half


def total_prices(
    centre: np.ndarray,
    means: np.ndarray,
    groups: np.ndarray,
    rate: float,
    triangles: np.ndarray,
    duals: np.ndarray,
    multiplicity: np.ndarray,
    prices: Prices,
) -> None:
    """All that an item pays in these groups: for pairs centre + rate x (means - means'), antisymmetric; for triangles.

    A triangle (b, j, i, k) of price q >= 0 adds q (x_ji + x_jk - x_jj - (x_ik + x_ki) / 2), never positive at a
    partition, to the sum over items, in which an item's problem counts as often as its multiplicity. `constants`
    receive the terms of x_jj.
    """
    price_pairs(centre, means, groups, rate, prices.pairs)
    prices.constants[groups] = 0.0
    arguments = groups, triangles, duals, multiplicity, prices
    in_blocks(_price_triangles, 0, groups.size, *arguments, work=duals.size)


@jit
def triangle_bends(
    means: np.ndarray, group: np.ndarray, sets: np.ndarray, triangles: np.ndarray, duals: np.ndarray, out: np.ndarray
) -> None:
    """Add 3 x the squared change of each priced triangle's violation by the move of each of its items to `out` (n,).

    Three items share a triangle: the square of the sum of their changes is at most 3 x the sum of the squares.
    """
    for r in range(duals.size):
        if duals[r] <= 0.0:
            continue
        b, j, i, k = triangles[r]
        change = np.float64(means[b, j, j]) - means[b, j, i] - means[b, j, k]
        if group[j] == b:
            change += np.float64(sets[j, i]) + sets[j, k] - 1.0
        out[j] += 3.0 * change * change
        change = (np.float64(sets[i, k]) if group[i] == b else 0.0) - np.float64(means[b, i, k])
        out[i] += 0.75 * change * change
        change = (np.float64(sets[k, i]) if group[k] == b else 0.0) - np.float64(means[b, k, i])
        out[k] += 0.75 * change * change


@jit
def _move_items(first, last, means, minima, prices, groups, rate, bends, gaps):
    averages, costs, mean_logs = means
    least, sizes, _, group, sets = minima
    pairs, constants = prices
    logs, multiplicity = groups.logs, groups.multiplicity
    n_groups, n, _ = averages.shape
    for i in range(first, last):
        own = group[i]
        gain = -least[i, own]
        bend = bends[i] / multiplicity[i]
        for b in range(n_groups):
            mean = averages[b, i]
            if mean[i] <= 0.0 and own != b:
                continue
            gain += costs[i, b] + mean_logs[i, b] + constants[b, i] * mean[i]
            for j in range(n):
                gain += pairs[b, i, j] * mean[j] * multiplicity[j]
                if j != i:
                    bend += 2.0 * multiplicity[j] * ((sets[i, j] if own == b else np.float32(0.0)) - mean[j]) ** 2
        gaps[i] = gain
        if gain <= 0.0:
            continue
        step = min(1.0, gain / max(rate * bend, 1e-12))
        cost = least[i, own] - constants[own, i] - logs[sizes[i, own]]
        for j in range(n):
            cost -= pairs[own, i, j] * sets[i, j] * multiplicity[j]
        for b in range(n_groups):
            if averages[b, i, i] <= 0.0 and own != b:
                continue
            costs[i, b] += step * ((cost if own == b else 0.0) - costs[i, b])
            mean_logs[i, b] += step * ((logs[sizes[i, b]] if own == b else 0.0) - mean_logs[i, b])
            mean = averages[b, i]
            if mean[i] <= _NOTHING and own != b:
                mean[:] = 0.0
                continue
            for j in range(n):
                mean[j] += step * ((sets[i, j] if own == b else np.float32(0.0)) - mean[j])


def move(
    means: Means, minima: Minima, prices: Prices, groups: Groups, rate: float, bends: np.ndarray, gaps: np.ndarray
) -> None:
    """Move every item's means towards its minimizer by the step that lowers the augmented objective most.

    The objective is quadratic in the length of a step. Two items share each difference of means: counting its square
    twice for each, all items may move at once. `gaps` (n,) receives what a full step would gain were it linear.
    """
    arguments = means, minima, prices, groups, rate, bends, gaps
    in_blocks(_move_items, 0, gaps.size, *arguments, work=2 * means.sets[:, 0].size)


class Blocks(NamedTuple):
    """Draws as blocks of items: block r = starts[t] + labels[t, i] of draw t holds order[ends[r - 1] : ends[r]]."""

    labels: np.ndarray  # (N, n)
    starts: np.ndarray  # (N + 1,)
    order: np.ndarray  # items, block after block
    ends: np.ndarray  # (R,)
    weights: np.ndarray  # (N,)
    multiplicity: np.ndarray  # (n,), of the items


class Tangents(NamedTuple):
    """Tangents of all items."""

    slopes: np.ndarray  # (n, K, n)
    offsets: np.ndarray  # (n, K)
    tags: np.ndarray  # (n, K)
    last_use: np.ndarray  # (n, K), the step at which each was the greatest
    ranking: np.ndarray  # (n, K, n), the order of the priced slopes, kept from call to call


@inner
def _linearize_item(i, blocks, points, slopes, offsets):
    """Tangents of F_i(x) = -2 sum_t w_t log2(a_t . x) at TANGENTS_AT_ONCE points (n, 4), per unit of multiplicity.

    -log is convex: each draw's -log u is at least 1 - log v - u / v for any v > 0.
    """
    slopes[:] = 0.0
    offsets[:] = 0.0
    total = np.empty(TANGENTS_AT_ONCE)
    rate = np.empty(TANGENTS_AT_ONCE)
    for t in range(blocks.labels.shape[0]):
        block = blocks.starts[t] + blocks.labels[t, i]
        first = blocks.ends[block - 1] if block > 0 else 0
        members = blocks.order[first : blocks.ends[block]]
        total[:] = 0.0
        for s in range(members.size):
            point = points[members[s]]
            for c in range(TANGENTS_AT_ONCE):
                total[c] += point[c]
        weight = 2.0 * blocks.weights[t]
        for c in range(TANGENTS_AT_ONCE):
            rate[c] = weight / (_LN2 * total[c])
            offsets[c] += weight * (1.0 / _LN2 - np.log2(total[c]))
        for s in range(members.size):
            slope = slopes[members[s]]
            for c in range(TANGENTS_AT_ONCE):
                slope[c] -= rate[c]


@jit
def _linearize_items(first, last, blocks, means, slots, tangents, costs):
    n = means.shape[1]
    points = np.empty((n, TANGENTS_AT_ONCE))
    slopes = np.empty((n, TANGENTS_AT_ONCE))
    offsets = np.empty(TANGENTS_AT_ONCE)
    for i in range(first, last):
        wanted = np.flatnonzero(slots[i] >= 0)
        for begin in range(0, wanted.size, TANGENTS_AT_ONCE):
            n_now = min(TANGENTS_AT_ONCE, wanted.size - begin)
            for c in range(TANGENTS_AT_ONCE):
                mean = means[wanted[begin + min(c, n_now - 1)], i]
                for j in range(n):
                    points[j, c] = (np.float64(mean[j]) / np.float64(mean[i]) + _SMOOTHING) * blocks.multiplicity[j]
            _linearize_item(i, blocks, points, slopes, offsets)
            for c in range(n_now):
                group = wanted[begin + c]
                slot = slots[i, group]
                tangents.tags[i, slot] = group
                tangents.offsets[i, slot] = offsets[c]
                out = tangents.slopes[i, slot]
                cost = offsets[c] * means[group, i, i]
                for j in range(n):
                    rounded = np.float32(slopes[j, c])
                    out[j] = np.nextafter(rounded, np.float32(-np.inf)) if rounded > slopes[j, c] else rounded
                    cost += slopes[j, c] * means[group, i, j] * blocks.multiplicity[j]
                costs[i, group] = cost


def linearize(
    blocks: Blocks, means: np.ndarray, first: int, last: int, slots: np.ndarray, tangents: Tangents, costs: np.ndarray
) -> None:
    """Put tangents of items `first` to `last` at their means into `slots` (n, G), where that is not -1.

    Slopes are rounded down, so that they stay lower bounds of a sum of non-negative multiples. `costs` (n, G) receives
    share x F_i(mean / share).
    """
    in_blocks(_linearize_items, first, last, blocks, means, slots, tangents, costs, work=blocks.labels.size)


@jit
def _blend_items(first, last, tangents, slots, others, out):
    n, n_groups = slots.shape
    tags, offsets = tangents.tags, tangents.offsets
    for i in range(first, last):
        for b in range(n_groups):
            if out[i, b] < 0 or tags[i, others[i, b]] < 0:
                continue
            one = tangents.slopes[i, slots[i, b]]
            other = tangents.slopes[i, others[i, b]]
            result = tangents.slopes[i, out[i, b]]
            tags[i, out[i, b]] = b
            offsets[i, out[i, b]] = 0.5 * (offsets[i, slots[i, b]] + offsets[i, others[i, b]])
            for j in range(n):
                middle = 0.5 * (np.float64(one[j]) + np.float64(other[j]))
                rounded = np.float32(middle)
                result[j] = np.nextafter(rounded, np.float32(-np.inf)) if rounded > middle else rounded


def blend(tangents: Tangents, slots: np.ndarray, others: np.ndarray, out: np.ndarray) -> None:
    """Write the mean of the tangents in `slots` and in `others` into the slots `out`, all (n, G), where that is not -1.

    Nothing is written where the other is not, or no longer, a tangent: after a change of draws its slopes are those of
    the draws before. A mean of tangents is a lower bound too; its least value can be above that of both.
    """
    in_blocks(_blend_items, 0, slots.shape[0], tangents, slots, others, out, work=slots.size)
