"""Moves of some items of a partition while the others stay where they are."""

import numpy as np

from posterior_consensus.kernels.cells import tables_of
from posterior_consensus.kernels.columns import WIDTH, compact
from posterior_consensus.kernels.records import Scores, search_of, slopes_of
from posterior_consensus.kernels.scan import Course, move_doubtful
from posterior_consensus.kernels.tables import expected_losses, set_slopes


def settle_some(draws, loss, partition, items, most):
    """Move each of these items to where the expected loss is least, until none of them moves.

    Parameters
    ----------
    draws : Draws
    loss : LinearLoss or GeneralLoss
    partition : int32 array of shape (n,)
        Labels from 0; changed in place.
    items : integer array
        Those that may move, in the order in which they do.
    most : int
        Largest number of clusters.
    """
    state = tables_of(draws, partition, WIDTH)
    slopes = slopes_of(loss, draws.weights.size)
    search = search_of(draws, loss, slopes, state, (1, most), np.zeros(1, np.uint8))
    moved = True
    while moved:
        expected_losses(draws, loss, state)  # whose sums the moves change
        now = set_slopes(loss, draws, state, slopes)
        course = Course(now, compact(draws, state), state.sizes.size, 0)
        for at in range(items.size):
            scores = Scores(np.zeros(1), np.full(1, -np.inf), np.zeros(1, np.int64), np.zeros((1, state.sizes.size)))
            state, course = move_doubtful(search, state, items[at : at + 1], scores, 0.0, course)
        moved = course.moved > 0
