"""Search over draws for the partition of minimum expected loss."""

from posterior_consensus.kernels.allocation import allocate, open_clusters
from posterior_consensus.kernels.cells import tables_of
from posterior_consensus.kernels.chains import move_chain
from posterior_consensus.kernels.columns import WIDTH
from posterior_consensus.kernels.descent import Steps, descend
from posterior_consensus.kernels.loss import is_linear
from posterior_consensus.kernels.rearrangement import rearrange_one
from posterior_consensus.kernels.records import search_of, slopes_of
from posterior_consensus.kernels.scan import scan
from posterior_consensus.kernels.tables import expected_losses
from posterior_consensus.kernels.unions import merge

FIRST_ORDER = 8.0  # times 1 / n, of an item's score: bounds what the first order leaves out

_STEPS = Steps(open_clusters, scan, merge, move_chain, rearrange_one)


def settle(draws, loss, partition, order, fewest, most, exactly, effort, stop):
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
    fewest, most : int
        Least and largest number of clusters.
    exactly : bool
        Whether a loss that is not linear in A and B is scored without approximation before the search ends.
    effort : int
        -1 for scans alone, 0 for merges too, 1 for chains of moves too, 2 for zealous updates and splits too.
    stop : uint8 array of shape (1,)
        Another thread may set it to 1 to have the partition as it is. Where it has more than `most` clusters, the
        smallest of them merge first, whatever that costs.

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
    search = search_of(draws, loss, slopes_of(loss, draws.weights.size), state, (fewest, most), stop)
    if (partition < 0).any():
        state = allocate(search, state, order)
    most_doubt = 0.0
    if not is_linear(loss):
        expected_losses(draws, loss, state)  # whose sums the steps change from here on
        most_doubt = FIRST_ORDER / partition.size if exactly else 0.0
    state, tally = descend(_STEPS, search, state, order, most_doubt, effort, stop)
    return *expected_losses(draws, loss, state), tally
