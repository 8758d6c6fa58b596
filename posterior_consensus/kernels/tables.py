"""What the functions of a search hand to each other, the expected loss from tables, and how a move changes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels._jit import either, inner, jit
from posterior_consensus.kernels.cells import Dense, Draws, Sparse, SparseDraws, add, count, row_of, sums_of_draw
from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss, has_denominator, is_linear, loss_value
from posterior_consensus.runtime.tolerances import ROUNDING

SCANS, MOVES, MERGES, CHAINS, ZEALOUS, SPLITS = range(6)  # places in a tally
CLUSTERS_FROM = 2  # label of the first cluster of a run that lacks items, which have 0, and items of noise 1
_STEP = 1e-6  # of the differences that stand for derivatives, relative to h(n)


class Slopes(NamedTuple):
    """Slopes: change of the expected loss per unit of A in each draw and of B, and items' contributions to A and B.

    Of runs that lack items, the first row of a run's table counts these, and the second items that it calls noise,
    which are together with no other. Each run has a B of its own: the sum of h over the parts of the clusters that it
    has.
    """

    a: np.ndarray  # (N,)
    b: np.ndarray  # (1,), or (N + 1,) of runs that lack items: the sum, and then each run's
    steps: np.ndarray  # (n + 2,), h(x + 1) - h(x), in place x + 1


class Scratch(NamedTuple):
    """What scores are written to, and whether to write no more of them."""

    scores: np.ndarray  # (width,), of the clusters in `met`
    met: np.ndarray  # (width,), clusters that an item, or a cluster, shares a draw's cluster with
    touched: np.ndarray  # (width,), all False between calls
    seen: np.ndarray  # (most clusters of a draw,)
    stop: np.ndarray  # (1,), which another thread may set to 1


class Scores(NamedTuple):
    """How some items do where they are and elsewhere."""

    staying: np.ndarray  # (m,), the score of the item's own cluster
    margins: np.ndarray  # (m,), by how much the best other cluster is worse
    targets: np.ndarray  # (m,), which that is
    entering: np.ndarray  # (m, width), scores of the other clusters, infinite if there are none; or without cells


class Search(NamedTuple):
    """What is searched, within which limits; all but the partition and its tables."""

    draws: Draws | SparseDraws
    loss: LinearLoss | GeneralLoss
    slopes: Slopes
    rounding: float  # differences of scores that are smaller mean nothing
    fewest: int  # clusters
    most: int
    out: Scratch


def slopes_of(loss: LinearLoss | GeneralLoss, n_draws: int, lacking: bool = False) -> Slopes:
    """Slopes with the steps of h; other fields are uninitialized. Runs may lack items if the loss is linear."""
    steps = np.concatenate([[0.0], np.diff(loss.h), [0.0]])
    return Slopes(np.empty(n_draws), np.empty(n_draws + 1 if lacking else 1), steps)


@inner
def lacks_items(slopes):
    """Whether runs lack items."""
    return slopes.b.size > 1


def search_of(
    draws: Draws | SparseDraws,
    loss: LinearLoss | GeneralLoss,
    slopes: Slopes,
    state: Dense | Sparse,
    limits: tuple[int, int],
    stop: np.ndarray,
) -> Search:
    """A search from these tables."""
    rounding = ROUNDING * (slopes.steps[-2] if is_linear(loss) else 1.0 if has_denominator(loss) else loss.h[-1])
    width = 2 * (state.sizes.size + state.partition.size)  # of tables, whose columns double when all are taken
    seen = np.empty(np.diff(draws.starts).max(), np.int64)
    out = Scratch(np.empty(width), np.empty(width, np.int32), np.zeros(width, np.bool_), seen, stop)
    return Search(draws, loss, slopes, rounding, *limits, out)


@inner
def own_sum(loss, state):
    """B of the state."""
    own = 0.0
    for size in state.sizes:
        own += loss.h[size]
    return own


@jit
def expected_losses(
    draws: Draws | SparseDraws, loss: LinearLoss | GeneralLoss, state: Dense | Sparse
) -> tuple[float, float]:
    """Expected losses, without the loss's scale, of a partition of all items and of the one-cluster partition.

    Computes A and C of every draw anew, free of the rounding that moves leave behind.
    """
    for t in range(state.joint.size):
        state.joint[t], state.drawn[t] = sums_of_draw(state, draws, t, loss.h)
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    in_one = 0.0  # its joint cells are the draws' clusters
    for t in range(state.drawn.size):
        c = state.drawn[t]
        in_one += draws.weights[t] * loss_value(loss, is_ratio, top, c, top, c)
    return current(loss, draws, state), in_one


def losses_of_tables(
    draws: Draws | SparseDraws, loss: LinearLoss | GeneralLoss, state: Dense | Sparse, slopes: Slopes
) -> tuple[float, float]:
    """Do what :func:`expected_losses` does, also for runs that lack items, whose weights have each run's scale."""
    return (_losses_on_common if lacks_items(slopes) else expected_losses)(draws, loss, state)


@jit
def _losses_on_common(draws, loss, state):
    value, in_one = 0.0, 0.0
    for t in range(draws.weights.size):
        lacked = state.counts[draws.starts[t]]
        joint, own, drawn, n_common = 0.0, 0.0, 0.0, 0
        for k in range(lacked.size):
            own += loss.h[state.sizes[k] - lacked[k]]
            n_common += state.sizes[k] - lacked[k]
        for row in state.counts[draws.starts[t] + CLUSTERS_FROM : draws.starts[t + 1]]:
            total = 0
            for k in range(row.size):
                joint += loss.h[row[k]]
                total += row[k]
            drawn += loss.h[total]
        top = loss.h[n_common]
        value += draws.weights[t] * loss_value(loss, False, top, joint, own, drawn)
        in_one += draws.weights[t] * loss_value(loss, False, top, drawn, top, drawn)
    return value, in_one


@jit
def current(loss: LinearLoss | GeneralLoss, draws: Draws | SparseDraws, state: Dense | Sparse) -> float:
    """Expected loss of a partition of all items, but for the loss's scale, from the sums as they are kept."""
    is_ratio = has_denominator(loss)
    own = own_sum(loss, state)
    total = 0.0
    for t in range(state.joint.size):
        total += draws.weights[t] * loss_value(loss, is_ratio, loss.h[-1], state.joint[t], own, state.drawn[t])
    return total


def set_slopes(
    loss: LinearLoss | GeneralLoss, draws: Draws | SparseDraws, state: Dense | Sparse, slopes: Slopes
) -> float:
    """Set the slopes; return the level of the expected loss.

    That is the expected loss, as the sums are kept, where what a move adds depends on it, else 0. The slopes of a loss
    that is not linear are those at the state's sums as they are kept.
    """
    if not is_linear(loss):
        return _set_slopes_here(loss, draws, state, slopes)
    slopes.a[:] = loss.numerator[1] * draws.weights
    slopes.b[0] = loss.numerator[2]
    if slopes.b.size > 1:
        slopes.b[1:] = loss.numerator[2] * draws.weights
        slopes.b[0] = slopes.b[1:].sum()
    return 0.0


@jit
def _set_slopes_here(loss, draws, state, slopes):
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    own = own_sum(loss, state)
    step = _STEP * max(top, 1.0)  # h(1) = 0
    slopes.b[0] = 0.0
    for t in range(state.joint.size):
        a, c, weight = state.joint[t], state.drawn[t], draws.weights[t] / (2.0 * step)
        more = loss_value(loss, is_ratio, top, a + step, own, c)
        less = loss_value(loss, is_ratio, top, a - step, own, c)
        slopes.a[t] = weight * (more - less)
        more = loss_value(loss, is_ratio, top, a, own + step, c)
        less = loss_value(loss, is_ratio, top, a, own - step, c)
        slopes.b[0] += weight * (more - less)
    return current(loss, draws, state)


@inner
def expected_after(search, state, i, new):
    """Expected loss, but for its scale, once item i is in cluster `new`, another than its own."""
    draws, loss, steps = search.draws, search.loss, search.slopes.steps
    weights = draws.weights
    is_ratio = has_denominator(loss)
    top = loss.h[-1]
    old = np.int64(state.partition[i])
    own = own_sum(loss, state) + steps[state.sizes[new] + 1] - steps[state.sizes[old]]
    values = np.empty(weights.size)
    for t in range(weights.size):
        row = row_of(state, draws, i, t)
        values[t] = state.joint[t] + steps[count(state, row, new) + 1] - steps[count(state, row, old)]
    for t in range(weights.size):  # apart from the loop above, so that it runs in vector registers
        values[t] = weights[t] * loss_value(loss, is_ratio, top, values[t], own, state.drawn[t])
    total = 0.0
    for value in values:
        total += value
    return total


def _nothing(loss, draws, state):
    return 0.0


level = either(
    LinearLoss,
    _nothing,
    current,
    "The expected loss, as the sums are kept, where what a move adds depends on it, else 0.",
)


def _change_on_common(state, draws, slopes, i, new):
    steps, old = slopes.steps, np.int64(state.partition[i])
    total = 0.0
    for t in range(draws.weights.size):
        label, lacked = draws.labels[t, i], state.counts[draws.starts[t]]
        if label > 0:
            to, of = state.sizes[new] - lacked[new], state.sizes[old] - lacked[old]
            total += slopes.b[t + 1] * (steps[to + 1] - steps[of])
        if label >= CLUSTERS_FROM:
            row = state.counts[draws.starts[t] + label]
            total += slopes.a[t] * (steps[row[new] + 1] - steps[row[old]])
    return total


def _not_kept(state, draws, slopes, i, new):
    return 0.0


_change_of_some = either(
    Dense, _change_on_common, _not_kept, "Change of the loss by runs that lack items, which have dense tables."
)


def _change_linear(search, state, i, new, now):
    draws, slopes, steps = search.draws, search.slopes, search.slopes.steps
    if lacks_items(slopes):
        return _change_of_some(state, draws, slopes, i, new)
    old = np.int64(state.partition[i])
    total = slopes.b[0] * (steps[state.sizes[new] + 1] - steps[state.sizes[old]])
    for t in range(draws.weights.size):
        row = row_of(state, draws, i, t)
        total += slopes.a[t] * (steps[count(state, row, new) + 1] - steps[count(state, row, old)])
    return total


def _change_any(search, state, i, new, now):
    return expected_after(search, state, i, new) - now


change = either(
    LinearLoss,
    _change_linear,
    _change_any,
    "What the move of item i to another cluster `new` adds to the expected loss, whose level is `now`.",
)


@inner
def move(draws, state, slopes, i, k):
    """Move item i into cluster k, or into none if k is negative, from its present cluster if it has one."""
    steps = slopes.steps
    old = np.int64(state.partition[i])
    for t in range(draws.weights.size):
        row = row_of(state, draws, i, t)
        if old >= 0:
            state.joint[t] -= steps[add(state, row, old, -1) + 1]
        if k >= 0:
            state.joint[t] += steps[add(state, row, k, 1)]
    if old >= 0:
        state.sizes[old] -= 1
    if k >= 0:
        state.sizes[k] += 1
    state.partition[i] = k
