"""Small draws and losses for the tests of the search's kernels."""

import numpy as np

from posterior_consensus.kernels import cells
from posterior_consensus.kernels.tables import search_of, slopes_of
from posterior_consensus.losses import LOSSES, binder, vi
from tests import reference
from tests.kernels.checks import in_plain_python

RECORDS = {
    **{name: (factory(), reference.LOSSES[name]) for name, factory in LOSSES.items()},
    "binder(a=0.3)": (binder(0.3), lambda x, y: reference.binder(x, y, 0.3)),
    "vi(a=1.6)": (vi(1.6), lambda x, y: reference.vi(x, y, 1.6)),
}
LINEAR = [name for name, (loss, _) in RECORDS.items() if loss.is_linear]
KINDS = {"dense": cells.Draws, "sparse": cells.sparse_draws}  # of tables; sparse ones serve linear losses only
N_ITEMS = 9
PARTITION = [0, 1, 2, 0, 1, 2, 0, 1, 2]
STARTS = [PARTITION, range(N_ITEMS), [0] * N_ITEMS]


def draws_of(labels, weights):
    """Draws whose labels have the type of those that the package searches."""
    labels = cells.searched(np.array([reference.canonical(row) for row in labels], np.uint8))
    return cells.Draws(labels, np.concatenate([[0], np.cumsum(labels.max(axis=1) + np.int64(1))]), weights)


def some_draws(n_draws=6):
    rng = np.random.default_rng(7)
    return draws_of(rng.integers(4, size=(n_draws, N_ITEMS)), rng.dirichlet(np.ones(n_draws)))


def similarity_of(draws):
    """Similarities of pairs, and 0 on the diagonal, as a search over pairs takes them."""
    similarity = reference.similarity(draws.labels, draws.weights)
    np.fill_diagonal(similarity, 0.0)
    return similarity


def state_of(draws, partition=PARTITION, width=8):
    return cells.tables_of(draws, np.array(partition, np.int32), width)


def counts_of(draws, state):
    """All cells (R, width) of tables of either kind."""
    rows = draws.rows if isinstance(draws, cells.SparseDraws) else range(draws.starts[-1])
    with in_plain_python():
        return np.array([[cells.count(state, row, k) for k in range(state.sizes.size)] for row in rows])


def search_from(draws, loss, state):
    """A search from these tables, whose slopes are not set yet."""
    slopes = slopes_of(loss, draws.weights.size)
    return search_of(draws, loss, slopes, state, (1, N_ITEMS), np.zeros(1, np.uint8))


def mean_loss(partition, draws, definition):
    return reference.expected(partition, draws.labels, definition, draws.weights)


def assert_tables_fit(draws, state):
    sizes = np.bincount(state.partition[state.partition >= 0], minlength=state.sizes.size)
    np.testing.assert_array_equal(state.sizes, sizes)
    expected = np.zeros((draws.starts[-1], state.sizes.size), int)
    for start, labels in zip(draws.starts, draws.labels, strict=False):
        for i in np.flatnonzero(state.partition >= 0):
            expected[start + labels[i], state.partition[i]] += 1
    np.testing.assert_array_equal(counts_of(draws, state), expected)
