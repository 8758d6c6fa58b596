"""What the functions of a search hand to each other."""

from typing import NamedTuple

import numpy as np

from posterior_consensus.kernels.cells import Draws, SparseDraws
from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss, has_denominator, is_linear
from posterior_consensus.runtime.tolerances import ROUNDING

SCANS, MOVES, MERGES, CHAINS, ZEALOUS, SPLITS = range(6)  # places in a tally


class Slopes(NamedTuple):
    """Slopes: change of the expected loss per unit of A in each draw and of B, and items' contributions to A and B."""

    a: np.ndarray  # (N,)
    b: np.ndarray  # (1,)
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


def slopes_of(loss, n_draws):
    """Slopes with the steps of h; other fields are uninitialised."""
    return Slopes(np.empty(n_draws), np.empty(1), np.concatenate([[0.0], np.diff(loss.h), [0.0]]))


def search_of(draws, loss, slopes, state, limits, stop):
    """A search from these tables."""
    rounding = ROUNDING * (slopes.steps[-2] if is_linear(loss) else 1.0 if has_denominator(loss) else loss.h[-1])
    width = 2 * (state.sizes.size + state.partition.size)  # of tables, whose columns double when all are taken
    seen = np.empty(np.diff(draws.starts).max(), np.int64)
    out = Scratch(np.empty(width), np.empty(width, np.int32), np.zeros(width, np.bool_), seen, stop)
    return Search(draws, loss, slopes, rounding, *limits, out)
