import tracemalloc

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.spectral import leading_eigenvectors
from posterior_consensus.draws import as_partition_draws
from tests import reference
from tests.ensembles import noisy_draws


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_items", [12, 80])
def test_eigenvectors_span_what_the_dense_ones_span(weighted, n_items):
    rng = np.random.default_rng(n_items)
    labels = noisy_draws(rng, 50, n_items, 4, 0.2)
    weights = rng.exponential(size=50) if weighted else None
    vectors = leading_eigenvectors(as_partition_draws(labels, weights=weights), 4, rng)
    values, dense = np.linalg.eigh(reference.similarity(labels, weights))
    assert values[-4] > 2 * values[-5]  # well separated
    np.testing.assert_allclose(np.abs(np.sum(vectors * dense[:, :-5:-1], axis=0)), 1, atol=1e-9)


@pytest.mark.parametrize("method", ["basic", "spectral"])
def test_clear_clusters_are_found_with_their_number(method):
    rng = np.random.default_rng(1)
    truth = rng.integers(5, size=60)
    noisy = rng.random((200, 60)) < 0.1
    labels = np.where(noisy, rng.integers(5, size=(200, 60)), truth)
    result = pc.consensus_partition(labels, method=method, random_seed=1)
    np.testing.assert_array_equal(result.labels, reference.canonical(truth))
    assert result.info["n_clusters_tried"] == [1, 2, 3, 4, 5]
    assert len(result.info["expected_losses"]) == 5


def test_no_matrix_of_all_pairs():
    n_items = 30_000
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=n_items)
    draws = as_partition_draws(np.where(rng.random((20, n_items)) < 0.1, rng.integers(3, size=(20, n_items)), truth))
    tracemalloc.start()
    result = pc.consensus_partition(draws, method="spectral", n_clusters=3, n_init=1, random_seed=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_items**2 / 10
    assert reference.same(result.labels.values, truth)


@pytest.mark.parametrize("method", sorted(set(pc.METHODS) - {"best_draw", "exact"}))
def test_one_draw_of_singletons_changes_little(method):
    draws = [[0, 0, 0, 1, 1, 1]] * 20 + [[0, 1, 2, 3, 4, 5]]
    best = pc.consensus_partition(draws, "vi", method, random_seed=1)
    assert best.labels.values.tolist() == [0, 0, 0, 1, 1, 1]
