import numpy as np
import pytest

from posterior_consensus.kernels import ensemble, search
from posterior_consensus.losses import LOSSES, binder, vi
from posterior_consensus.partitions import canonical_rows
from tests import reference
from tests.kernels.checks import run

RECORDS = {
    **{name: (factory(), reference.LOSSES[name]) for name, factory in LOSSES.items()},
    "binder(a=0.3)": (binder(0.3), lambda x, y: reference.binder(x, y, 0.3)),
    "vi(a=1.6)": (vi(1.6), lambda x, y: reference.vi(x, y, 1.6)),
}
N_ITEMS = 9


@pytest.fixture
def draws():
    rng = np.random.default_rng(7)
    labels, counts = canonical_rows(rng.integers(4, size=(6, N_ITEMS)).astype(np.uint8), 4)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return search.Draws(labels, starts, rng.dirichlet(np.ones(6)))


def state_of(draws, partition, width):
    """The tables that belong to a partition of all items, or of none."""
    partition = np.asarray(partition, np.int32)
    n_rows, n_draws = draws.starts[-1], draws.weights.size
    counts = np.zeros((n_rows, width), np.int32)
    if partition[0] >= 0:
        counts = ensemble.joint_counts(draws.labels, draws.starts, partition, width)
    sizes = np.bincount(partition[partition >= 0], minlength=width)
    totals = counts.sum(axis=1, dtype=np.int32)
    return search.State(partition, sizes, counts, totals, np.zeros(n_draws), np.zeros(n_draws))


def assert_tables_fit(draws, state):
    expected = state_of(draws, state.partition, state.sizes.size)
    for name in ("sizes", "counts", "totals"):
        np.testing.assert_array_equal(getattr(state, name), getattr(expected, name))


@pytest.mark.parametrize("name", RECORDS)
def test_combine_is_the_loss_but_for_its_scale(name, draws):
    record, definition = RECORDS[name]
    estimates = np.array([[0] * N_ITEMS, range(N_ITEMS), [0, 0, 0, 1, 1, 2, 2, 2, 2]])
    h, numerator, denominator = record.arrays(N_ITEMS)

    def sums(tables):
        return np.array([h[np.unique(table, return_counts=True)[1]].sum() for table in tables])

    joint = np.array([sums(100 * e + draws.labels) for e in estimates])
    arguments = (numerator, denominator, h[-1], joint, sums(estimates), sums(draws.labels))
    losses, _ = run(search.combine, *arguments)
    expected = [[definition(e, z) for z in draws.labels] for e in estimates]
    np.testing.assert_allclose(record.scale(N_ITEMS) * losses, expected, atol=1e-13)


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize(("fewest", "most"), [(1, N_ITEMS), (3, 3), (1, 2)])
def test_allocation_puts_every_item_where_the_loss_of_those_so_far_is_least(name, fewest, most, draws):
    record, definition = RECORDS[name]
    order = np.random.default_rng(8).permutation(N_ITEMS)
    state = state_of(draws, [-1] * N_ITEMS, 10)
    arguments = (draws, record.arrays(N_ITEMS), state, order, fewest, most)
    (handled, _), (_, _, state, *_) = run(search.place_items, *arguments)
    assert handled == N_ITEMS
    assert_tables_fit(draws, state)
    for so_far in range(2, N_ITEMS + 1):
        items = order[:so_far]
        found = reference.canonical(state.partition[items])
        choices = range(min(found[:-1].max() + 2, most))
        losses = [
            reference.expected([*found[:-1], k], draws.labels[:, items], definition, draws.weights) for k in choices
        ]
        assert losses[found[-1]] <= min(losses) + 1e-12


@pytest.mark.parametrize("name", RECORDS)
def test_a_scan_never_raises_the_loss_and_keeps_its_tables(name, draws):
    record, definition = RECORDS[name]
    state = state_of(draws, [0, 1, 2, 0, 1, 2, 0, 1, 2], 8)
    before = reference.expected(state.partition, draws.labels, definition, draws.weights)
    search.refresh_sums(draws, record.arrays(N_ITEMS), state)
    arguments = (draws, record.arrays(N_ITEMS), state, np.arange(N_ITEMS), 1, N_ITEMS)
    (_, moved), (_, _, after, *_) = run(search.place_items, *arguments)
    assert_tables_fit(draws, after)
    loss = reference.expected(after.partition, draws.labels, definition, draws.weights)
    assert loss < before - 1e-12 if moved else loss == before


def test_a_scan_stops_for_more_columns_before_it_would_need_them(draws):
    state = state_of(draws, [0, 1, 2, 0, 1, 2, 0, 1, 2], 3)
    arguments = (draws, LOSSES["vi"]().arrays(N_ITEMS), state, np.arange(N_ITEMS), 1, N_ITEMS)
    (handled, moved), (_, _, after, *_) = run(search.place_items, *arguments)
    assert (handled, moved) == (0, 0)
    np.testing.assert_array_equal(after.partition, state.partition)


def test_merge_sums_are_what_the_joint_sums_gain(draws):
    loss = LOSSES["vi"]().arrays(N_ITEMS)
    state = state_of(draws, [0, 1, 2, 0, 1, 2, 0, 1, 2], 4)
    _, (_, _, before) = run(search.refresh_sums, draws, loss, state)
    gains, _ = run(search.merge_sums, draws, loss, state, 2)
    for other in (0, 1):
        merged = state_of(draws, np.where(state.partition == 2, other, state.partition), 4)
        search.refresh_sums(draws, loss, merged)
        np.testing.assert_allclose(gains[other], merged.joint - before.joint, atol=1e-12)
