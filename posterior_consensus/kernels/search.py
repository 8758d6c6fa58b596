"""A loss evaluated from sums over contingency tables, and the moves of a search that lowers its expectation.

Every loss of the package is numerator / denominator, both linear in eight terms of one dimension: with `top` = h(n), A,
B and C the sums of h over the joint cells, the estimate's and the draw's cluster sizes,

    top, A, B, C, max(B, C), min(B, C), B C / top, sqrt((top - B) (top - C)).

`numerator` and `denominator` hold the eight coefficients; a denominator of zeros stands for the number one.
"""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import jit

_TINY = 1e-12  # relative to the numbers compared: what is smaller is rounding
_ZERO = 1e-14  # relative to top: what coefficients such as 1.5 and 0.5 leave where A = B = C


class Draws(NamedTuple):
    """The draws as a search sees them."""

    labels: np.ndarray  # (N, n)
    starts: np.ndarray  # (N + 1,), the first of the R rows of each draw
    weights: np.ndarray  # (N,), summing to 1


class Loss(NamedTuple):
    """The loss as a search sees it."""

    h: np.ndarray  # (n + 1,)
    numerator: np.ndarray  # (8,)
    denominator: np.ndarray  # (8,)


class State(NamedTuple):
    """A partition of some or all items, and its contingency with every draw over these items."""

    partition: np.ndarray  # (n,), -1 where an item is not allocated yet
    sizes: np.ndarray  # (width,)
    counts: np.ndarray  # (R, width)
    totals: np.ndarray  # (R,), row sums of counts
    joint: np.ndarray  # (N,), A of each draw; this and the next one only where the loss is not linear
    drawn: np.ndarray  # (N,), C of each draw


@jit
def _linear_form(coefficients, top, a, b, c):
    value = coefficients[0] * top + coefficients[1] * a + coefficients[2] * b + coefficients[3] * c
    value += coefficients[4] * max(b, c) + coefficients[5] * min(b, c)
    if coefficients[6] != 0.0 and top > 0.0:
        value += coefficients[6] * b * c / top
    if coefficients[7] != 0.0:
        value += coefficients[7] * np.sqrt(max(0.0, (top - b) * (top - c)))
    return value


@jit
def _loss(numerator, denominator, is_ratio, top, a, b, c):
    value = _linear_form(numerator, top, a, b, c)
    if abs(value) <= _ZERO * top:
        value = 0.0
    if not is_ratio:
        return value
    divisor = _linear_form(denominator, top, a, b, c)
    if divisor <= _TINY * top:  # 0/0: both partitions are trivial; the distance of equal ones is 0, of different ones 1
        return 0.0 if abs(b - a) + abs(c - a) <= _TINY * top else 1.0
    return value / divisor


@jit
def combine(numerator, denominator, top, a, b, c):
    """Losses (P, N) from joint sums a (P, N), sums b of the estimates (P,) and c of the draws (N,)."""
    is_ratio = np.any(denominator != 0.0)
    losses = np.empty_like(a)
    for p in range(a.shape[0]):
        for t in range(a.shape[1]):
            losses[p, t] = _loss(numerator, denominator, is_ratio, top, a[p, t], b[p], c[t])
    return losses


@jit
def is_linear(loss):
    """Whether the loss is a weighted sum of A, B and C, so that a move's gain depends on two clusters alone."""
    return not np.any(loss.denominator != 0.0) and not np.any(loss.numerator[4:] != 0.0)


@jit
def refresh_sums(draws, loss, state):
    """Compute `joint` and `drawn` of the state anew, free of the rounding that moves leave behind."""
    width = state.sizes.size
    for t in range(draws.weights.size):
        state.joint[t] = 0.0
        state.drawn[t] = 0.0
        for row in range(draws.starts[t], draws.starts[t + 1]):
            state.drawn[t] += loss.h[state.totals[row]]
            for k in range(width):
                state.joint[t] += loss.h[state.counts[row, k]]


@jit
def _shift(draws, loss, state, i, k, change):
    """Let item i enter (change 1) or leave (-1) cluster k; a draw's A and C follow."""
    labels, starts, _ = draws
    h = loss.h
    for t in range(starts.size - 1):
        row = starts[t] + labels[t, i]
        count = state.counts[row, k]
        total = state.totals[row]
        state.joint[t] += h[count + change] - h[count]
        state.drawn[t] += h[total + change] - h[total]
        state.counts[row, k] = count + change
        state.totals[row] = total + change
    state.sizes[k] += change


@jit
def _score_linear(draws, loss, state, i, difference, scores):
    """What item i adds to the expected loss in each cluster, but for what it adds in all alike."""
    labels, starts, weights = draws
    scores[:] = 0.0
    for t in range(weights.size):
        row = state.counts[starts[t] + labels[t, i]]
        weight = weights[t]
        for k in range(scores.size):
            scores[k] += weight * difference[row[k]]
    for k in range(scores.size):
        scores[k] = loss.numerator[1] * scores[k] + loss.numerator[2] * difference[state.sizes[k]]


@jit
def _score_any(draws, loss, state, i, difference, scores):
    """Expected loss of the items allocated so far with item i in each cluster."""
    labels, starts, weights = draws
    h, numerator, denominator = loss
    is_ratio = np.any(denominator != 0.0)
    top = h[state.sizes.sum() + 1]
    own = 0.0
    for size in state.sizes:
        own += h[size]
    scores[:] = 0.0
    for t in range(weights.size):
        row = starts[t] + labels[t, i]
        c = state.drawn[t] + difference[state.totals[row]]
        for k in range(scores.size):
            a = state.joint[t] + difference[state.counts[row, k]]
            b = own + difference[state.sizes[k]]
            scores[k] += weights[t] * _loss(numerator, denominator, is_ratio, top, a, b, c)


@jit
def _choose(scores, sizes, old, may_open, rounding):
    """The cluster of least score; where rounding leaves a choice, the old one, else the first."""
    best = old
    for k in range(sizes.size):
        if (sizes[k] > 0 or may_open) and (best < 0 or scores[k] < scores[best] - rounding):
            best = k
    return best


@jit
def place_items(draws, loss, state, order, fewest, most):
    """Take each item in `order` out of its cluster, if it has one, and put it where the expected loss is least.

    With no item allocated this is sequential allocation, with all of them it is a sweetening scan. The number of
    clusters stays between `fewest` and `most`. Changes the state; returns how many items were handled and how many
    moved. It stops before an item for which no empty column is left though a new cluster were allowed.
    """
    partition, sizes = state.partition, state.sizes
    linear = is_linear(loss)
    difference = loss.h[1:] - loss.h[:-1]
    rounding = _TINY * (difference[-1] if linear else 1.0 if np.any(loss.denominator != 0.0) else loss.h[-1])
    scores = np.empty(sizes.size)
    n_clusters = np.count_nonzero(sizes)
    moved = 0
    for handled in range(order.size):
        if n_clusters == sizes.size and n_clusters < most:
            return handled, moved
        i = order[handled]
        old = partition[i]
        if old >= 0:
            if sizes[old] == 1 and n_clusters <= fewest:
                continue
            _shift(draws, loss, state, i, old, -1)
            n_clusters -= sizes[old] == 0
        if linear:
            _score_linear(draws, loss, state, i, difference, scores)
        else:
            _score_any(draws, loss, state, i, difference, scores)
        best = _choose(scores, sizes, old, n_clusters < most, rounding)
        n_clusters += sizes[best] == 0
        _shift(draws, loss, state, i, best, 1)
        partition[i] = best
        moved += best != old
    return order.size, moved


@jit
def merge_sums(draws, loss, state, k):
    """How much each draw's A grows when cluster k takes in each other cluster: (width, N)."""
    width = state.sizes.size
    h, counts = loss.h, state.counts
    gains = np.zeros((width, draws.weights.size))
    for t in range(draws.weights.size):
        for row in range(draws.starts[t], draws.starts[t + 1]):
            count = counts[row, k]
            if count > 0:
                for other in range(width):
                    gains[other, t] += h[count + counts[row, other]] - h[count] - h[counts[row, other]]
    return gains
