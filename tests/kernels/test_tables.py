from copy import deepcopy

import numpy as np
import pytest

from posterior_consensus.kernels import cells, clusters, scores, tables
from tests.kernels.checks import in_plain_python, plain, run
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
DENSE, SPARSE = ["vi(a=1.6)", "information_distance", "nid"], ["vi(a=1.6)", "binder(a=0.3)"]
CASES = [*((name, "dense") for name in DENSE), *((name, "sparse") for name in SPARSE)]


def ready(name, kind, n_draws=6):
    record, definition = RECORDS[name]
    draws, loss = KINDS[kind](*some_draws(n_draws)), record.arrays(N_ITEMS)
    state = state_of(draws)
    tables.expected_losses(draws, loss, state)
    search = search_from(draws, loss, state)
    tables.set_slopes(loss, draws, state, search.slopes)
    return search, state, definition, record.scale(N_ITEMS)


def scores_of(search, state, i):
    """Score of item i in each cluster that it meets."""
    with in_plain_python():
        n_met = plain(scores.score_item)(state, search.draws, search.slopes, i, search.out)
    return {int(k): search.out.scores[k] for k in search.out.met[:n_met]}


@pytest.mark.parametrize(("name", "kind"), [("nid", "dense"), ("vi", "sparse")])
def test_tables_stay_those_of_their_partition(name, kind):
    search, state, *_ = ready(name, kind)
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
    names = np.array([0, 0, 0, 1, 1, 1, 0, 0])
    _, (_, state, _) = run(cells.rename, draws, state, names)
    np.testing.assert_array_equal(state.partition, names[np.array(PARTITION) * 3])
    assert_tables_fit(draws, state)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_scores_and_changes_are_differences_of_the_expected_loss(name, kind):
    search, state, definition, scale = ready(name, kind)
    (total, in_one), _ = run(tables.expected_losses, search.draws, search.loss, state)
    assert scale * total == pytest.approx(mean_loss(PARTITION, search.draws, definition), abs=1e-13)
    assert scale * in_one == pytest.approx(mean_loss([0] * N_ITEMS, search.draws, definition), abs=1e-13)
    for i in range(N_ITEMS):
        moved = [mean_loss(np.where(np.arange(N_ITEMS) == i, k, PARTITION), search.draws, definition) for k in range(4)]
        for new in {0, 1, 2, 3} - {PARTITION[i]}:
            after, _ = run(tables.expected_after, search, state, i, new)
            assert scale * after == pytest.approx(moved[new], abs=1e-12)
            change, _ = run(tables.change, search, state, i, new, total)
            assert scale * change == pytest.approx(moved[new] - scale * total, abs=1e-12)
        if name in LINEAR:
            found = scores_of(search, state, i)
            for k, score in found.items():
                assert scale * (score - found[PARTITION[i]]) == pytest.approx(moved[k] - scale * total, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "kind", "n_draws"),
    [
        *(
            ("nid", "dense", 6),
            ("vi", "dense", 8),
            ("binder(a=0.3)", "dense", 19),
            ("information_distance", "dense", 19),
        ),
        *(("vi(a=1.6)", "dense", 300), ("vi", "sparse", 6), ("binder(a=0.3)", "sparse", 19)),
    ],
)
def test_scores_of_a_block_are_those_of_its_items(name, kind, n_draws):
    search, state, *_ = ready(name, kind, n_draws)
    slopes, empty = search.slopes, tables.Scores(*np.empty((2, N_ITEMS)), np.zeros(N_ITEMS, int), np.empty((5, WIDTH)))
    blocks = deepcopy([empty, empty])
    scores.score_block(state, search.draws, slopes, 3, 8, blocks[0], search.out)
    with in_plain_python():
        plain(scores.score_block)(state, search.draws, slopes, 3, 8, blocks[1], search.out)
    tolerance = 1e-5 * max(1, np.abs(slopes.a).sum() * np.abs(slopes.steps).max())
    for i in range(3, 8):
        others = scores_of(search, state, i)
        own = others.pop(PARTITION[i])
        for staying, margins, targets, entering in blocks:
            assert staying[i] == pytest.approx(own, abs=tolerance)
            assert margins[i] == pytest.approx(min(others.values()) - own, abs=tolerance)
            if kind == "dense":
                assert {k: entering[i % 5, k] for k in others} == pytest.approx(others, abs=tolerance)
            assert others[targets[i]] == pytest.approx(min(others.values()), abs=tolerance)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in CASES if name in LINEAR])
def test_gains_of_unions_are_differences_of_the_expected_loss(name, kind):
    search, state, definition, scale = ready(name, kind)
    members = clusters.Members(np.argsort(PARTITION, kind="stable"), np.array([3, 6, 9]))
    arguments = state, search, members, np.full(3, np.inf), np.zeros(3, np.int64)
    _, (*_, gains, partners) = run(clusters._best_unions, *arguments)
    before = mean_loss(PARTITION, search.draws, definition)
    for k in range(2):
        after = {
            other: mean_loss(np.where(np.array(PARTITION) == other, k, PARTITION), search.draws, definition)
            for other in range(k + 1, 3)
        }
        assert scale * gains[k] == pytest.approx(min(after.values()) - before, abs=1e-12)
        assert after[partners[k]] == pytest.approx(min(after.values()), abs=1e-12)
    assert gains[2] == np.inf
    assert counts_of(search.draws, state).sum() == N_ITEMS * search.draws.weights.size
