from itertools import product

import numpy as np
import pytest

from posterior_consensus.kernels import moves, pair_moves
from posterior_consensus.kernels.tables import CHAINS, MERGES, MOVES, SCANS
from posterior_consensus.losses import binder
from posterior_consensus.search import local_search
from posterior_consensus.search.local_search import Depth
from tests import reference
from tests.kernels import searching
from tests.kernels.checks import in_plain_python
from tests.kernels.searching import (
    KINDS,
    N_ITEMS,
    PARTITION,
    RECORDS,
    draws_of,
    mean_loss,
    search_from,
    similarity_of,
    some_draws,
    state_of,
)

STARTS = [*searching.STARTS, [-1] * N_ITEMS]
NAMES = ["vi", "binder(a=0.3)", "nid"]  # the others take the same ways: each has one case
ORDER = np.random.default_rng(8).permutation(N_ITEMS)


def descended(name, start, fewest=1, most=N_ITEMS, depth=Depth.REARRANGEMENTS, stopped=0):
    draws, (record, definition) = some_draws(), RECORDS[name]
    partition = np.array(start, np.int32)
    stop = np.array([stopped], np.uint8)
    value, in_one, tally = local_search.descend_draws(
        draws, record.arrays(N_ITEMS), partition, ORDER, (fewest, most), stop, depth=depth, confirm=True
    )
    loss = mean_loss(partition, draws, definition)
    assert record.scale(N_ITEMS) * value == pytest.approx(loss, abs=1e-12)
    assert record.scale(N_ITEMS) * in_one == pytest.approx(mean_loss([0] * N_ITEMS, draws, definition), abs=1e-12)
    return partition, loss, tally


@pytest.mark.parametrize(
    ("name", "depth", "start"),
    [
        *((NAMES[(depth + k) % 3], depth, k) for depth, k in product(list(Depth)[1:], range(4))),
        *((name, Depth(2 + k % 2), k % 4) for k, name in enumerate(sorted({*RECORDS} - {*NAMES}))),
    ],
)
def test_the_loss_falls_until_no_neighbour_is_better(name, depth, start):
    draws, definition, start = some_draws(), RECORDS[name][1], STARTS[start]
    partition, loss, tally = descended(name, start, depth=depth)
    if -1 not in start:
        assert loss <= mean_loss(start, draws, definition) + 1e-12
    assert loss <= min(mean_loss(p, draws, definition) for p in reference.neighbours(partition)) + 1e-12
    assert tally[SCANS] > 0
    if depth == Depth.MERGES:
        assert not tally[CHAINS:].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("fewest", "most"), [(3, 3), (1, 2), (7, 9), (9, 9)])
def test_limits_are_respected(name, fewest, most):
    for start, stopped in product(STARTS, (0, 1)):
        partition, _, _ = descended(name, start, fewest, most, stopped=stopped)
        assert fewest <= np.unique(partition).size <= most, (start, stopped)


@pytest.mark.parametrize(("name", "kind"), [("vi", "dense"), ("vi(a=1.6)", "sparse"), ("binder(a=0.3)", "pairs")])
@pytest.mark.parametrize("fewest", [5, N_ITEMS])
def test_clusters_open_for_one_item_at_a_time_where_the_loss_is_least(name, kind, fewest):
    draws, (record, definition), margins = some_draws(), RECORDS[name], np.empty(N_ITEMS)
    stop, greedy = np.zeros(1, np.uint8), np.zeros(N_ITEMS, np.int32)
    with in_plain_python():
        if kind == "pairs":
            costs = pair_moves.Costs(record.numerator["A"], record.numerator["B"])
            search = pair_moves.PairSearch(similarity_of(draws), costs, 1e-12, fewest, N_ITEMS, stop)
            state = pair_moves.no_clusters(N_ITEMS)
            pair_moves.allocate_pairs(search.similarity, state, greedy)
            state = pair_moves.open_pairs(search, state, margins)
        else:
            tables = KINDS[kind](*draws)
            search = search_from(tables, record.arrays(N_ITEMS), state_of(tables, greedy))._replace(fewest=fewest)
            state = moves.open_clusters(search, state_of(tables, greedy), margins)
    for n_clusters in range(1, fewest):
        shared = np.flatnonzero(np.bincount(greedy)[greedy] > 1)
        split = np.tile(greedy, (shared.size, 1))
        split[np.arange(shared.size), shared] = n_clusters
        greedy = min(split, key=lambda row: mean_loss(row, draws, definition))
    np.testing.assert_array_equal(reference.canonical(state.partition), reference.canonical(greedy))


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_search_leaves_the_partition(name):
    partition, _, tally = descended(name, PARTITION, stopped=1)
    np.testing.assert_array_equal(partition, PARTITION)
    assert not tally.any()


@pytest.mark.parametrize("most", [2, N_ITEMS])
@pytest.mark.parametrize(
    ("name", "definition"),
    [
        *((name, RECORDS[name][1]) for name in ("vi(a=1.6)", "binder(a=0.3)")),
        *(("jaccard", reference.binder), ("nid", reference.vi)),  # others are taken for B + C - 2 A
    ],
)
def test_allocation_puts_every_item_where_the_loss_of_those_so_far_is_least(name, definition, most):
    draws = some_draws()
    partition, _, _ = descended(name, [-1] * N_ITEMS, most=most, stopped=1)
    for so_far in range(2, N_ITEMS + 1):
        items = ORDER[:so_far]
        found = reference.canonical(partition[items])
        choices = range(min(found[:-1].max() + 2, most))
        losses = [
            reference.expected([*found[:-1], k], draws.labels[:, items], definition, draws.weights) for k in choices
        ]
        assert losses[found[-1]] <= min(losses) + 1e-12


@pytest.mark.parametrize("a", [0.3, 1.0, 1.6])
@pytest.mark.parametrize(("fewest", "most"), [(1, N_ITEMS), (3, 3), (7, 9)])
def test_pairs_give_the_loss_and_limits_that_draws_give(a, fewest, most):
    draws, record = some_draws(), binder(a)
    similarity = similarity_of(draws)
    costs = pair_moves.Costs(record.numerator["A"], record.numerator["B"])
    for start, stopped in product(STARTS, (0, 1)):
        partition, stop = np.array(start, np.int32), np.array([stopped], np.uint8)
        value, _ = local_search.descend_pairs(similarity, costs, partition, ORDER, (fewest, most), stop)
        assert fewest <= np.unique(partition).size <= most
        before = value + record.numerator["C"] * similarity.sum() / 2
        expected = mean_loss(partition, draws, lambda x, y: reference.binder(x, y, a))
        assert record.scale(N_ITEMS) * before == pytest.approx(expected, abs=1e-12)
        after, _, tally = local_search.descend_draws(
            *(draws, record.arrays(N_ITEMS), partition, ORDER, (fewest, most), np.zeros(1, np.uint8)),
            depth=Depth.MERGES,
            confirm=True,
        )
        if not stopped:  # what a search over pairs leaves, scans and merges over draws cannot improve
            assert after == pytest.approx(before, abs=1e-10) and tally[MOVES] == tally[MERGES] == 0


@pytest.mark.parametrize("depth", list(Depth)[1:])
@pytest.mark.parametrize(("n_items", "n_draws", "n_labels"), [(9, 6, 4), (40, 30, 25), (150, 10, 70), (100, 25, 6)])
def test_sparse_and_dense_tables_lead_through_the_same_moves_to_the_same_partition(depth, n_items, n_draws, n_labels):
    for seed, name in enumerate(searching.LINEAR):
        rng = np.random.default_rng(seed)
        truth = rng.integers(n_labels, size=n_items)
        noise = rng.integers(n_labels, size=(n_draws, n_items))
        weights = rng.dirichlet(np.ones(n_draws)) if seed % 2 else np.full(n_draws, 1 / n_draws)
        draws = draws_of(np.where(rng.random(noise.shape) < 0.4, noise, truth), weights)
        loss, order = RECORDS[name][0].arrays(n_items), rng.permutation(n_items)
        start = np.full(n_items, -1, np.int32) if seed < 2 else noise[0].astype(np.int32)
        found = []
        for kind in KINDS.values():
            partition = start.copy()
            value, in_one, tally = local_search.descend_draws(
                kind(*draws), loss, partition, order, (1, n_items), np.zeros(1, np.uint8), depth=depth, confirm=False
            )
            found.append((partition, tally))
            assert value <= in_one
        np.testing.assert_array_equal(found[0][0], found[1][0])
        np.testing.assert_array_equal(found[0][1], found[1][1])
