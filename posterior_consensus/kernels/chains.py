"""Chains of moves: a move that raises the loss, and moves that gain after it."""

import numpy as np

from posterior_consensus.kernels._jit import inner, jit
from posterior_consensus.kernels.columns import in_order, n_clusters, up_to
from posterior_consensus.kernels.loss import is_linear
from posterior_consensus.kernels.scores import score_item
from posterior_consensus.kernels.tables import change, level, move

_LEADERS = 4
_FOLLOWERS = 8
_OTHERS = 4
_NEAREST = 16  # items of least margin, whose margins are made exact before a chain of moves


@inner
def _sharpen(search, state, margins, targets, order):
    """Compute the least margins without approximation, and put the items in order."""
    draws, slopes, out = search.draws, search.slopes, search.out
    for i in order[:_NEAREST]:
        old = state.partition[i]
        if targets[i] == old:  # it must not move
            continue
        n_met = score_item(state, draws, slopes, i, out)
        margins[i] = np.inf
        for m in range(n_met):
            k = int(out.met[m])
            margin = out.scores[k] - out.scores[old]
            if k != old and (margin < margins[i] or (margin == margins[i] and k < targets[i])):
                margins[i], targets[i] = margin, k
    return in_order(margins, order)


@jit
def move_chain(search, state, margins, targets):
    """Move an item although that costs something, and those after it that then gain; whether it pays in all.

    Items that belong together stay where they are because none of them can leave first: Kernighan and Lin's answer to
    the same trap in graphs. The few items of least margin lead. Each is followed by those of the next least that would
    make the same change of cluster, and by a few that would enter or leave one of the two clusters.
    """
    draws, slopes = search.draws, search.slopes
    partition, sizes = state.partition, state.sizes
    order = in_order(margins, up_to(margins.size))
    if is_linear(search.loss):
        order = _sharpen(search, state, margins, targets, order)
    moved = np.empty(_FOLLOWERS + _OTHERS + 1, np.int64)
    origins = np.empty(moved.size, np.int64)
    before = level(search.loss, draws, state)
    n_before = n_clusters(state)
    for lead in order[:_LEADERS]:
        old, new = partition[lead], targets[lead]
        gain, n_moved, n_alike, n_others, n_gone = 0.0, 0, 0, 0, 0
        for position in range(-1, order.size):
            if position == 0 and n_moved == 0:
                break  # the leader must not move
            i = lead if position < 0 else order[position]
            origin, target = partition[i], targets[i]
            if origin == target or (i == lead and n_moved > 0) or (sizes[origin] == 1 and sizes[target] == 0):
                continue
            alike = origin == old and target == new
            touches = origin == old or origin == new or target == old or target == new
            if not touches or (n_alike > _FOLLOWERS if alike else n_others >= _OTHERS):
                continue
            if not np.isfinite(margins[i]) or (sizes[origin] == 1 and n_before - n_gone <= search.fewest):
                continue
            n_alike += alike
            n_others += not alike
            delta = change(search, state, i, target, before + gain)
            if n_moved == 0 or delta < 0.0:
                gain += delta
                n_gone += int(sizes[origin] == 1) - int(sizes[target] == 0)
                move(draws, state, slopes, i, target)
                moved[n_moved], origins[n_moved] = i, origin
                n_moved += 1
        if gain < -search.rounding:
            return True
        for at in range(n_moved):
            move(draws, state, slopes, moved[at], origins[at])
    return False
