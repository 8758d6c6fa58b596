import numpy as np
import pytest

from posterior_consensus.kernels import tables
from tests.kernels.checks import run
from tests.kernels.searching import (
    N_ITEMS,
    PARTITION,
    RECORDS,
    assert_tables_fit,
    differences,
    mean_loss,
    some_draws,
    state_of,
)


def ready(name, n_draws=6):
    record, definition = RECORDS[name]
    draws, loss = some_draws(n_draws), record.arrays(N_ITEMS)
    state = state_of(draws)
    tables.refresh_sums(loss, state, draws.starts)
    slopes = tables.Slopes(np.empty(n_draws), np.empty(1))
    linear = name.startswith(("vi", "binder"))
    tables.set_slopes(draws, loss, state, linear, slopes)
    return draws, loss, state, slopes, differences(loss), linear, definition, record.scale(N_ITEMS)


def test_tables_stay_those_of_their_partition():
    draws, loss, state, _, difference, *_ = ready("nid")
    for i, k in [(0, 5), (3, 5), (8, 1), (0, 0)]:
        _, (_, state, *_) = run(tables.move, draws, state, difference, i, k)
        assert_tables_fit(draws, state)
    joint = state.joint.copy()
    tables.refresh_sums(loss, state, draws.starts)
    np.testing.assert_allclose(joint, state.joint, atol=1e-12)
    wide, _ = run(tables.widened, state)
    assert wide.sizes.size == 16
    assert_tables_fit(draws, wide)
    _, (_, state, _) = run(tables.take_out, draws, state, 4)
    assert state.partition[4] == -1
    assert_tables_fit(draws, state)
    state = state_of(draws, np.array(PARTITION) * 3, 8)
    n_clusters, (state,) = run(tables.compact, state)
    assert n_clusters == 3
    np.testing.assert_array_equal(state.partition, PARTITION)
    assert_tables_fit(draws, state)


@pytest.mark.parametrize("name", RECORDS)
def test_scores_and_changes_are_differences_of_the_expected_loss(name):
    draws, loss, state, slopes, difference, linear, definition, scale = ready(name)
    total, _ = run(tables.expected, draws, loss, state)
    assert scale * total == pytest.approx(mean_loss(PARTITION, draws, definition), abs=1e-13)
    in_one, _ = run(tables.expected_in_one, draws, loss, state)
    assert scale * in_one == pytest.approx(mean_loss([0] * N_ITEMS, draws, definition), abs=1e-13)
    for i in range(N_ITEMS):
        moved = [mean_loss(np.where(np.arange(N_ITEMS) == i, k, PARTITION), draws, definition) for k in range(4)]
        for new in {0, 1, 2, 3} - {PARTITION[i]}:
            after, _ = run(tables.expected_after, draws, loss, state, difference, i, new)
            assert scale * after == pytest.approx(moved[new], abs=1e-12)
            if linear:
                change, _ = run(tables.change_linear, draws, state, slopes, difference, i, new)
                assert scale * change == pytest.approx(moved[new] - scale * total, abs=1e-12)
        if linear:
            old = PARTITION[i]
            _, (*_, scores) = run(tables.score_linear, draws, state, slopes, difference, i, np.empty(8))
            np.testing.assert_allclose(
                scale * (scores[:4] - scores[old]), np.subtract(moved, total * scale), atol=1e-12
            )


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("n_draws", [6, 8, 19, 300])
def test_scores_of_a_block_are_those_of_its_items_in_single_precision(name, n_draws):
    draws, _, state, slopes, difference, *_ = ready(name, n_draws)
    sums, totals = np.empty((5, 16), np.float32), np.empty((5, 16))
    tables.score_block(draws, state, slopes, difference, 3, 0, sums, totals)
    rows = [state.counts[draws.starts[:-1] + draws.labels[:, i]] for i in range(3, 8)]
    entering = [slopes.a @ difference[row + 1] for row in rows]
    staying = [slopes.a @ difference[row] for row in rows]
    np.testing.assert_allclose(totals, np.hstack([entering, staying]), rtol=2e-6, atol=1e-5 * np.abs(slopes.a).sum())


def test_the_old_cluster_then_the_first_is_chosen_among_equals():
    state = state_of(some_draws(6))
    free = state.sizes.size - 1
    equal, first_less = np.ones(free + 1), np.r_[1.0, 0.0, np.ones(free - 1)]
    assert state.sizes[free] == 0
    assert tables.choose(equal, state, 2, True, 1e-9) == state.partition[2] == 2
    state.partition[0], state.sizes[1] = -1, 0
    assert tables.choose(first_less, state, 0, False, 1e-9) == 0
    assert tables.choose(first_less, state, 0, True, 1e-9) == 1
