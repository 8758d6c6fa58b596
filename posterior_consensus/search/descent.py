"""The way down of a search: scans, merges, chains of moves, rearrangements of clusters.

Each step is a kernel, or a few lines around one, compiled by itself when it is first called.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.kernels.cells import WIDTH, Draws, SparseDraws, compact, tables_of
from posterior_consensus.kernels.clusters import merge, rearrange_one
from posterior_consensus.kernels.loss import GeneralLoss, LinearLoss, is_linear
from posterior_consensus.kernels.moves import Course, allocate, move_chain, move_doubtful, open_clusters, scan
from posterior_consensus.kernels.pair_moves import (
    Costs,
    PairSearch,
    begin_pairs,
    chain_pairs,
    merge_pairs,
    open_pairs,
    rearrange_pairs,
    scan_pairs,
)
from posterior_consensus.kernels.tables import (
    CHAINS,
    MERGES,
    MOVES,
    SCANS,
    Scores,
    expected_losses,
    search_of,
    set_slopes,
    slopes_of,
)
from posterior_consensus.runtime.tolerances import ROUNDING

Integers = npt.NDArray[np.integer[Any]]
Tally = npt.NDArray[np.int64]  # how many scans, moves, merges, chains, zealous updates and splits there were
Stop = npt.NDArray[np.uint8]  # (1,), which another thread may set to 1

# Relative errors of scores. An item is in doubt, and scored exactly, unless all other clusters are worse by more.
DOUBT = 1e-5  # from single precision
DOUBT_OF_FIRST_ORDER = 8.0  # times 1 / n, from the first order in A and B; chosen, not proven to bound it


class Depth(IntEnum):
    """How deep a local search goes: each member adds a kind of moves to the previous one."""

    SCANS = 0
    MERGES = 1
    CHAINS = 2
    REARRANGEMENTS = 3  # clusters are dissolved (zealous updates) and split


class _Steps(NamedTuple):
    """The steps over draws, or over pairs; a state that is returned may have more columns."""

    open_clusters: Callable[..., Any]
    scan: Callable[..., Any]
    merge: Callable[..., Any]
    move_chain: Callable[..., Any]
    rearrange: Callable[..., Any]


_OVER_DRAWS = _Steps(open_clusters, scan, merge, move_chain, rearrange_one)
_OVER_PAIRS = _Steps(open_pairs, scan_pairs, merge_pairs, chain_pairs, rearrange_pairs)


def descend(
    draws: Draws | SparseDraws,
    loss: LinearLoss | GeneralLoss,
    partition: Labels,
    order: Integers,
    limits: tuple[int, int],
    stop: Stop,
    *,
    depth: Depth,
    confirm: bool,
) -> tuple[float, float, Tally]:
    """Complete a partition and change it until no move of its kinds lowers the expected loss.

    Parameters
    ----------
    draws : Draws or SparseDraws
        Which tables are kept; sparse ones take a LinearLoss only.
    loss : LinearLoss or GeneralLoss
    partition : int32 array of shape (n,)
        Labels from 0, -1 where an item is to be allocated; changed in place.
    order : integer array
        All items, in the order in which they are allocated.
    limits : (int, int)
        Least and largest number of clusters.
    stop : uint8 array of shape (1,)
        Another thread may set it to 1 to have the partition as it is. Where it has more clusters than allowed, the
        smallest of them merge first, whatever that costs.
    depth : Depth
    confirm : bool
        Whether the last scans score a loss that is not linear in A and B without approximation.

    Returns
    -------
    float
        Expected loss, but for the loss's scale.
    float
        The same for the partition of one cluster.
    int64 array of shape (6,)
        How many scans, moves, merges, chains of moves, zealous updates and splits there were.
    """
    state = tables_of(draws, partition, WIDTH)
    search = search_of(draws, loss, slopes_of(loss, draws.weights.size), state, limits, stop)
    if (partition < 0).any():
        state = allocate(search, state, order)
    last_doubt = 0.0
    if not is_linear(loss):
        expected_losses(draws, loss, state)  # whose sums the steps change from here on
        last_doubt = DOUBT_OF_FIRST_ORDER / partition.size if confirm else 0.0
    state, tally = _take_steps(_OVER_DRAWS, search, state, order, last_doubt, depth, stop)
    return *expected_losses(draws, loss, state), tally


def descend_pairs(
    similarity: npt.NDArray[np.float64],
    costs: Costs,
    partition: Labels,
    order: Integers,
    limits: tuple[int, int],
    stop: Stop,
) -> tuple[float, Tally]:
    """Complete a partition and change it until no move of any kind lowers the expected Binder loss.

    Parameters
    ----------
    similarity : float array of shape (n, n)
        Symmetric, with a diagonal of zeros.
    costs : Costs
    partition, order, limits, stop
        As :func:`descend` takes them.

    Returns
    -------
    float
        The part of the expected loss that depends on the partition, but for the loss's scale.
    int64 array of shape (6,)
        As of :func:`descend`.
    """
    fewest, most = limits
    search = PairSearch(similarity, costs, ROUNDING * partition.size, fewest, most, stop)
    state = begin_pairs(similarity, costs, partition, order, most)
    state, tally = _take_steps(_OVER_PAIRS, search, state, order, 0.0, Depth.REARRANGEMENTS, stop)
    partition[:] = state.partition
    links = state.links[state.partition, np.arange(partition.size)]
    scores = costs.a * links + costs.b * (state.sizes[state.partition] - 1)
    return 0.5 * np.cumsum(scores)[-1], tally  # np.sum adds in another order, and rounds otherwise


def descend_some(draws: Draws, loss: LinearLoss | GeneralLoss, partition: Labels, items: Integers, most: int) -> None:
    """Move each of these items to where the expected loss is least, until none of them moves; the others stay.

    The partition is changed in place. The items move in their order, into at most so many clusters.
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


def _take_steps(
    steps: _Steps, search: Any, state: Any, order: Integers, last_doubt: float, depth: Depth, stop: Stop
) -> tuple[Any, Tally]:
    """Change a partition of all items until nothing lowers its expected loss; return the state and the tally.

    Items are in doubt up to DOUBT, and up to `last_doubt` in the scans that confirm the end.
    """
    margins, targets = np.empty(order.size), np.zeros(order.size, np.int64)
    tally = np.zeros(6, np.int64)
    if _n_clusters(state) < search.fewest:
        state = steps.open_clusters(search, state, margins)
    doubt = DOUBT
    while stop[0] == 0 or _n_clusters(state) > search.most:
        state, moved = steps.scan(search, state, margins, targets, doubt)
        tally[SCANS] += 1
        tally[MOVES] += moved
        if moved == 0 and doubt < last_doubt:
            doubt = last_doubt
            continue
        doubt = DOUBT
        improved = moved > 0
        if not improved and (depth >= Depth.MERGES or _n_clusters(state) > search.most):
            n_merges = steps.merge(search, state)
            tally[MERGES] += n_merges
            improved = n_merges > 0
        if stop[0] != 0:  # a stopped scan leaves margins unset
            continue
        if not improved and depth >= Depth.CHAINS:
            improved = steps.move_chain(search, state, margins, targets)
            tally[CHAINS] += improved
        if not improved and depth >= Depth.REARRANGEMENTS:
            state, improved = steps.rearrange(search, state, order, margins, tally)
        if not improved:
            break
    return state, tally


def _n_clusters(state: Any) -> int:
    """How many columns have a cluster."""
    return int(np.count_nonzero(state.sizes))
