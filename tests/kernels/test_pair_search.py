import numpy as np
import pytest

from posterior_consensus.kernels import pair_search, search
from posterior_consensus.losses import binder
from tests import reference
from tests.kernels.searching import N_ITEMS, PARTITION, some_draws

STARTS = [PARTITION, range(N_ITEMS), [0] * N_ITEMS, [-1] * N_ITEMS]


@pytest.mark.parametrize("a", [0.3, 1.0, 1.6])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("fewest", "most"), [(1, N_ITEMS), (3, 3), (7, 9)])
@pytest.mark.parametrize("stopped", [0, 1])
def test_pairs_give_the_loss_and_limits_that_draws_give(a, start, fewest, most, stopped):
    draws, record = some_draws(), binder(a)
    loss, order = record.arrays(N_ITEMS), np.random.default_rng(8).permutation(N_ITEMS)
    similarity = reference.similarity(draws.labels, draws.weights)
    np.fill_diagonal(similarity, 0.0)
    partition = np.array(start, np.int32)
    costs = pair_search.Costs(record.numerator["A"], record.numerator["B"])
    value, _ = pair_search.settle_pairs(
        similarity, costs, partition, order, fewest, most, np.array([stopped], np.uint8)
    )
    assert fewest <= np.unique(partition).size <= most
    apart = record.numerator["C"] * similarity.sum() / 2
    definition = reference.expected(partition, draws.labels, lambda x, y: reference.binder(x, y, a), draws.weights)
    assert record.scale(N_ITEMS) * (apart + value) == pytest.approx(definition, abs=1e-12)
    again, before = partition.copy(), apart + value
    after, _, tally = search.settle(draws, loss, again, order, fewest, most, True, 0, np.zeros(1, np.uint8))
    if not stopped:  # what a search over pairs leaves, scans and merges over draws cannot improve
        assert after == pytest.approx(before, abs=1e-10) and tally[search.MOVES] == tally[search.MERGES] == 0
