import numpy as np
import pytest

from posterior_consensus.kernels import cells, records, scores, tables, unions
from tests.kernels.checks import compiled, run
from tests.kernels.searching import (
    KINDS,
    LINEAR,
    N_ITEMS,
    PARTITION,
    RECORDS,
    assert_tables_fit,
    counts_of,
    mean_loss,
    search_from,
    some_draws,
    state_of,
)

WIDTH = 8


def ready(name, kind="dense", n_draws=6):
    record, definition = RECORDS[name]
    draws, loss = KINDS[kind](*some_draws(n_draws)), record.arrays(N_ITEMS)
    state = state_of(draws)
    tables.expected_losses(draws, loss, state)
    search = search_from(draws, loss, state)
    tables.set_slopes(loss, draws, state, search.slopes)
    return search, state, definition, record.scale(N_ITEMS)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_stay_those_of_their_partition(kind):
    search, state, *_ = ready("nid", kind)
    draws, loss, slopes = search.draws, search.loss, search.slopes
    for i, k in [(0, 5), (3, 5), (8, 1), (0, 0)]:
        _, (_, state, *_) = run(tables.move, draws, state, slopes, i, k)
        assert_tables_fit(draws, state)
    joint = state.joint.copy()
    tables.expected_losses(draws, loss, state)
    np.testing.assert_allclose(joint, state.joint, atol=1e-12)
    wide = cells.widened(state, WIDTH + 1)
    assert wide.sizes.size == 2 * WIDTH
    assert_tables_fit(draws, wide)
    _, (_, state, *_) = run(tables.move, draws, state, slopes, 4, -1)
    assert state.partition[4] == -1
    assert_tables_fit(draws, state)


@pytest.mark.parametrize("kind", KINDS)
def test_clusters_are_renamed_and_merged(kind):
    draws = KINDS[kind](*some_draws())
    state = state_of(draws, np.array(PARTITION) * 3)
    names = np.array([0, 0, 0, 1, 1, 1, 0, 0], np.int32)
    cells.rename(draws, state, names)
    np.testing.assert_array_equal(state.partition, names[np.array(PARTITION) * 3])
    assert_tables_fit(draws, state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECORDS)
def test_scores_and_changes_are_differences_of_the_expected_loss(name, kind):
    search, state, definition, scale = ready(name, kind)
    draws, loss, slopes, out = search.draws, search.loss, search.slopes, search.out
    (total, in_one), _ = run(tables.expected_losses, draws, loss, state)
    assert scale * total == pytest.approx(mean_loss(PARTITION, draws, definition), abs=1e-13)
    assert scale * in_one == pytest.approx(mean_loss([0] * N_ITEMS, draws, definition), abs=1e-13)
    for i in range(N_ITEMS):
        moved = [mean_loss(np.where(np.arange(N_ITEMS) == i, k, PARTITION), draws, definition) for k in range(4)]
        for new in {0, 1, 2, 3} - {PARTITION[i]}:
            after, _ = run(tables.expected_after, search, state, i, new)
            assert scale * after == pytest.approx(moved[new], abs=1e-12)
            change, _ = run(tables.change, search, state, i, new, total)
            assert scale * change == pytest.approx(moved[new] - scale * total, abs=1e-12)
        if name in LINEAR:
            met = out.met[: compiled(scores.score_item)(state, draws, slopes, i, out)]
            assert set(met) >= {PARTITION[i]}
            changes = scale * (out.scores[met] - out.scores[PARTITION[i]])
            np.testing.assert_allclose(changes, np.subtract(moved, total * scale)[met], atol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_scores_of_both_kinds_are_equal_bit_for_bit_and_clusters_not_met_cost_at_least_one_of_its_own(name):
    found = {}
    for kind in KINDS:
        search, state, *_ = ready(name, kind)
        draws, slopes, out = search.draws, search.slopes, search.out
        for i in range(N_ITEMS):
            met = out.met[: compiled(scores.score_item)(state, draws, slopes, i, out)]
            found[kind, i] = {int(k): out.scores[k] for k in met}
    for i in range(N_ITEMS):
        sparse, dense = found["sparse", i], found["dense", i]
        assert sparse == {k: dense[k] for k in sparse}
        assert all(score >= 0 for k, score in dense.items() if k not in sparse)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("n_draws", [6, 8, 19, 300])
def test_scores_of_a_block_are_those_of_its_items(name, n_draws, kind):
    search, state, *_ = ready(name, kind, n_draws)
    draws, slopes, out = search.draws, search.slopes, search.out
    staying, margins, targets = np.empty(N_ITEMS), np.empty(N_ITEMS), np.zeros(N_ITEMS, np.int64)
    entering = np.empty((5, WIDTH))
    scores.score_block(state, draws, slopes, 3, 8, records.Scores(staying, margins, targets, entering), out)
    for i in range(3, 8):
        n_met = compiled(scores.score_item)(state, draws, slopes, i, out)
        own = PARTITION[i]
        others = {int(k): out.scores[k] for k in out.met[:n_met] if k != own}
        tolerance = 1e-5 * max(1, np.abs(slopes.a).sum() * np.abs(slopes.steps).max())
        assert staying[i] == pytest.approx(out.scores[own], abs=tolerance)
        assert margins[i] == pytest.approx(min(others.values()) - out.scores[own], abs=tolerance)
        if kind == "dense":
            assert {k: entering[i % 5, k] for k in others} == pytest.approx(others, abs=tolerance)
        assert others[targets[i]] == pytest.approx(min(others.values()), abs=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LINEAR)
def test_gains_of_unions_are_differences_of_the_expected_loss(name, kind):
    search, state, definition, scale = ready(name, kind)
    draws = search.draws
    members = unions.Members(np.argsort(PARTITION, kind="stable"), np.array([3, 6, 9]))
    gains, partners = np.full(3, np.inf), np.zeros(3, np.int64)
    unions._best_unions(state, search, members, gains, partners)
    before = mean_loss(PARTITION, draws, definition)
    for k in range(2):
        after = {
            other: mean_loss(np.where(np.array(PARTITION) == other, k, PARTITION), draws, definition)
            for other in range(k + 1, 3)
        }
        assert scale * gains[k] == pytest.approx(min(after.values()) - before, abs=1e-12)
        assert after[partners[k]] == pytest.approx(min(after.values()), abs=1e-12)
    assert gains[2] == np.inf
    assert counts_of(draws, state).sum() == N_ITEMS * draws.weights.size
