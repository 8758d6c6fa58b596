"""Tangents of the item problems of the lower bound for expected VI; arrays have the shapes of vi_bound.py."""

from collections import namedtuple

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.runtime.executor import in_blocks

TANGENTS_AT_ONCE = 4
_LN2 = 0.6931471805599453
_SMOOTHING = 1e-4  # keeps the tangents' slopes finite where a mean has only the item itself in a block

Blocks = namedtuple("Blocks", "labels starts order ends weights multiplicity")
Blocks.__doc__ = (
    """Draws as blocks of items: block r = starts[t] + labels[t, i] of draw t holds order[ends[r - 1] : ends[r]]."""
)

Tangents = namedtuple("Tangents", "slopes offsets tags last_use ranking")
Tangents.__doc__ = (
    """Tangents of all items; ranking (n, K, n) keeps the order of the priced slopes from call to call."""
)


@inner
def _linearise_item(i, blocks, points, slopes, offsets):
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
def _linearise_items(first, last, blocks, means, slots, tangents, costs):
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
            _linearise_item(i, blocks, points, slopes, offsets)
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


def linearise(blocks, means, first, last, slots, tangents, costs):
    """Put tangents of items `first` to `last` at their means into `slots` (n, G), where that is not -1.

    Slopes are rounded down, so that they stay lower bounds of a sum of non-negative multiples. `costs` (n, G) receives
    share x F_i(mean / share).
    """
    in_blocks(_linearise_items, first, last, blocks, means, slots, tangents, costs, work=blocks.labels.size)


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


def blend(tangents, slots, others, out):
    """Write the mean of the tangents in `slots` and in `others` into the slots `out`, all (n, G), where that is not -1.

    Nothing is written where the other is not, or no longer, a tangent: after a change of draws its slopes are those of
    the draws before. A mean of tangents is a lower bound too; its least value can be above that of both.
    """
    in_blocks(_blend_items, 0, slots.shape[0], tangents, slots, others, out, work=slots.size)
