import numpy as np
import pytest
from hypothesis import given, settings

import posterior_consensus as pc
from tests import reference
from tests.ensembles import noisy_draws, random_draws, small_draws

LOSSES = list(pc.LOSSES)


def find(draws, loss="vi", **options):
    return pc.consensus_partition(draws, loss, random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=40)
@given(draws=small_draws(max_items=7))
def test_no_move_of_an_item_and_no_merge_improves_the_answer(loss, draws):
    result = find(draws, loss, n_runs=1)
    definition = reference.LOSSES[loss]
    around = [reference.expected(p, draws, definition) for p in reference.neighbours(result.labels)]
    assert result.expected_loss <= min(around) + 1e-10


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_move_and_no_merge_improves_a_larger_answer(loss, weighted):
    rng = np.random.default_rng(1)
    draws = pc.as_partition_draws(
        noisy_draws(rng, 40, 30, 6, 0.5), weights=rng.exponential(size=40) if weighted else None
    )
    result = find(draws, loss, n_runs=1)
    around = np.unique(list(reference.neighbours(result.labels)), axis=0)
    assert result.expected_loss <= float(pc.expected_loss(draws, around, loss)["expected_loss"].min()) + 1e-10


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("seed", range(12))
def test_small_ensembles_are_solved(loss, seed):
    rng = np.random.default_rng(seed)
    draws = noisy_draws(rng, int(rng.integers(5, 70)), 8, 4, rng.uniform(0.2, 0.7))
    best = pc.consensus_partition(draws, loss, "enumeration", progressbar=False)
    assert find(draws, loss).expected_loss == pytest.approx(best.expected_loss, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_clusters", [7, 30])
def test_more_clusters_than_any_draw_has(loss, n_clusters):
    draws = random_draws(np.random.default_rng(2), 10, 30, 3)
    assert find(draws, loss, n_clusters=n_clusters, n_runs=2).n_clusters == n_clusters


def test_tables_widen_where_the_best_partition_has_more_clusters_than_any_draw():
    """Two items of a pair are always together, two pairs in about a third of the draws."""
    rng = np.random.default_rng(3)
    pairs = np.array([rng.permutation(12) % 3 for _ in range(150)]).repeat(2, axis=1)
    result = find(pairs, "binder", n_runs=2)
    np.testing.assert_array_equal(result.labels, np.arange(12).repeat(2))
    assert pc.as_partition_draws(pairs).n_clusters.max() == 3


def test_more_than_256_clusters():
    truth = np.random.default_rng(4).permutation(np.arange(300) % 260)
    draws = np.tile(truth, (2, 1))
    result = find(draws, n_runs=1)
    np.testing.assert_array_equal(result.labels, reference.canonical(truth))
    assert result.expected_loss == pytest.approx(0, abs=1e-12)


def test_runs_are_counted_and_more_are_no_worse():
    draws = noisy_draws(np.random.default_rng(5), 30, 40, 8, 0.6)
    few, many = (find(draws, "binder", n_runs=n) for n in (1, 12))
    assert many.expected_loss <= few.expected_loss + 1e-12
    losses = np.array(many.info["expected_losses"])
    assert len(losses) == many.info["n_runs"] == 12 + 1  # and the one from a single cluster
    assert many.info["n_runs_at_best"] == np.sum(losses <= losses.min() + 1e-10) >= 1
    assert many.expected_loss == pytest.approx(losses.min(), abs=1e-13)


@pytest.mark.parametrize("loss", ["nvi", "nid", "nmi", "id", "jaccard", "omari"])
def test_nearly_equal_losses_do_not_cycle(loss):
    """Every draw sets a different item apart, so that all moves are worth the same but for rounding."""
    n_items = 150
    draws = np.eye(n_items, dtype=int)
    result = find(draws, loss, n_runs=1)
    assert np.isfinite(result.expected_loss) and result.info["n_scans"] < 100


@pytest.mark.parametrize("seed", range(5))
def test_single_cluster_is_found_where_draws_have_little_in_common(seed):
    draws = np.random.default_rng(seed).integers(0, 4, (30, 8))
    best = find(draws, "vi", method="enumeration")
    assert find(draws, "vi").expected_loss == pytest.approx(best.expected_loss, abs=1e-12)
