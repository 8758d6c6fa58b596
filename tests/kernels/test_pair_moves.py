from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax

from posterior_consensus.kernels import pair_moves
from posterior_consensus.losses import binder
from tests import reference
from tests.kernels.checks import plain, run
from tests.kernels.searching import N_ITEMS, STARTS, mean_loss, similarity_of, some_draws

LIMITS = [(1, N_ITEMS), (1, 3), (3, 3), (7, 9)]
COSTS = [0.3, 1.0, 1.6]


def one_move_away(partition, fewest, most):
    """Partitions that differ from this one in the place of one item."""
    for item in range(N_ITEMS):
        for cluster in range(partition.max() + 2):
            moved = partition.copy()
            moved[item] = cluster
            if fewest <= np.unique(moved).size <= most:
                yield reference.canonical(moved)


@pytest.mark.parametrize(("limits", "start"), [*product(range(4), range(3))])
def test_each_move_is_the_best_of_all(limits, start):
    a, (fewest, most), start = COSTS[(limits + start) % 3], LIMITS[limits], STARTS[start]
    draws, record = some_draws(), binder(a)
    similarity, costs = similarity_of(draws), pair_moves.Costs(record.numerator["A"], record.numerator["B"])

    def loss(partition):
        return mean_loss(partition, draws, lambda x, y: reference.binder(x, y, a))

    begun = np.array(start, np.int32)
    pair_moves.move_best(similarity, costs, begun, fewest, most, np.empty(0))  # only so many clusters as wanted
    if fewest <= np.unique(start).size <= most:
        assert reference.same(begun, start)
    partition = reference.canonical(begun)
    assert fewest <= partition.max() + 1 <= most
    expected = [loss(partition)]
    while True:
        best = min(one_move_away(partition, fewest, most), key=loss)
        if loss(best) >= expected[-1] - 1e-12:
            break
        partition = best
        expected.append(loss(best))
    changes = np.empty(100)
    (n_moves, (_, _, found, _, _, changes)) = run(pair_moves.move_best, similarity, costs, begun, fewest, most, changes)
    np.testing.assert_allclose(record.scale(N_ITEMS) * changes[:n_moves], np.diff(expected), atol=1e-12)
    assert reference.same(found, partition)


def test_many_moves_keep_the_best_of_all_up_to_date():
    rng = np.random.default_rng(9)
    similarity = rng.random((40, 40))
    similarity = (similarity + similarity.T) / 2
    np.fill_diagonal(similarity, 0.0)
    partition, changes, items = rng.integers(12, size=40).astype(np.int32), np.empty(200), np.arange(40)
    followed = partition.copy()
    n_moves = pair_moves.move_best(similarity, pair_moves.Costs(-2.0, 1.05), partition, 1, 40, changes)
    assert n_moves > 20
    for change in changes[:n_moves]:
        is_in = followed[:, np.newaxis] == np.arange(41)  # one cluster at least is free
        costs = 1.05 * is_in.sum(axis=0) - 2.0 * similarity @ is_in
        costs[items, followed] -= 1.05  # of the item itself
        rise = costs - costs[items, followed][:, np.newaxis]
        item, cluster = np.unravel_index(rise.argmin(), rise.shape)
        assert change == pytest.approx(rise[item, cluster], abs=1e-9)
        followed[item] = cluster
    assert reference.same(followed, partition)


@pytest.mark.parametrize("kernel", [pair_moves.settle_memberships, plain(pair_moves.settle_memberships)])
def test_passes_over_memberships_are_those_of_the_definition(kernel):
    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(size=(9, 9)) * (rng.random((9, 9)) < 0.5), 1)
    weights += weights.T
    odds, soft = np.log([0.5, 0.3, 0.2]), rng.dirichlet(np.ones(3), 9)
    links, found, slow = csr_array(weights), soft.copy(), soft.copy()
    indices, starts = links.indices.astype(np.int64), links.indptr.astype(np.int64)
    assert kernel(links.data, indices, starts, odds, found, 2, 0.0) == 2
    for _ in range(2):
        for i in range(9):
            slow[i] = softmax(odds + weights[i] @ slow)
    np.testing.assert_allclose(found, slow, rtol=1e-12)
    passes = kernel(links.data, indices, starts, odds, found, 1000, 1e-12)
    assert passes < 1000
    np.testing.assert_allclose(found, softmax(odds + weights @ found, axis=1), atol=1e-10)
