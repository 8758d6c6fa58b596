import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.kernels import coclustering
from posterior_consensus.similarity import mean_similarity, similarity_operator
from posterior_consensus.sources.labels import as_partition_draws
from tests import reference
from tests.ensembles import DEGENERATE, noisy_draws, random_draws

SIZES = [(1, 1, 1), (70, 6, 3), (63, 33, 20), (130, 65, 60), (4096, 10, 3), (4097, 7, 4), (9000, 5, 3)]


@pytest.mark.parametrize(("n_draws", "n_items", "n_clusters"), [*SIZES, (5, 400, 390)])
def test_entries_are_exact(n_draws, n_items, n_clusters):
    draws = random_draws(np.random.default_rng(n_items), n_draws, n_items, n_clusters)
    psm = pc.posterior_similarity_matrix(draws)
    np.testing.assert_array_equal(psm.values, reference.similarity(draws))


def test_more_than_256_clusters_go_through_every_path():
    draws = random_draws(np.random.default_rng(0), 5, 600, 590)
    ours = as_partition_draws(draws)
    assert ours.labels.dtype == np.uint16
    weights = np.array([1, 2, 1, 0, 3])
    expected = reference.similarity(draws, weights)
    weighted = as_partition_draws(draws, weights=weights)
    np.testing.assert_allclose(pc.posterior_similarity_matrix(weighted), expected, atol=1e-15)
    np.testing.assert_allclose(similarity_operator(weighted) @ np.eye(600), expected, atol=1e-15)


@pytest.mark.parametrize(("n_draws", "n_items", "n_clusters"), SIZES[:4])
def test_weights(n_draws, n_items, n_clusters):
    rng = np.random.default_rng(n_items)
    draws, weights = random_draws(rng, n_draws, n_items, n_clusters), rng.exponential(size=n_draws)
    psm = pc.posterior_similarity_matrix(as_partition_draws(draws, weights=weights))
    np.testing.assert_allclose(psm, reference.similarity(draws, weights), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(psm, psm.values.T)
    np.testing.assert_array_equal(np.diag(psm), 1.0)


def test_whole_weights_are_repeated_draws():
    rng = np.random.default_rng(1)
    draws, weights = random_draws(rng, 20, 12, 4), rng.integers(0, 4, 20)
    weighted = pc.posterior_similarity_matrix(as_partition_draws(draws, weights=weights))
    repeated = pc.posterior_similarity_matrix(np.repeat(draws, weights, axis=0))
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    psm = pc.posterior_similarity_matrix(draws)
    np.testing.assert_array_equal(psm, reference.similarity(draws))


@pytest.mark.parametrize("weights", [None, "random"])
def test_the_operator_is_the_matrix(weights):
    rng = np.random.default_rng(2)
    labels = noisy_draws(rng, 30, 150, 20, 0.4)
    draws = as_partition_draws(labels, weights=None if weights is None else rng.exponential(size=30))
    operator, matrix = similarity_operator(draws), pc.posterior_similarity_matrix(draws).values
    for values in (rng.standard_normal(150), rng.standard_normal((150, 7))):
        np.testing.assert_allclose(operator @ values, matrix @ values, atol=1e-11)
        np.testing.assert_allclose(operator.H @ values, matrix @ values, atol=1e-11)


def test_mean_similarity_leaves_the_item_itself_out():
    labels = random_draws(np.random.default_rng(3), 9, 20, 4)
    partition = reference.canonical([*np.random.default_rng(4).integers(5, size=19), 5])  # the last item on its own
    means = mean_similarity(as_partition_draws(labels), partition)
    matrix = reference.similarity(labels)
    for i, k in np.ndindex(means.shape):
        others = [j for j in range(20) if partition[j] == k and j != i]
        assert means[i, k] == pytest.approx(np.mean(matrix[i, others]) if others else np.nan, abs=1e-13, nan_ok=True)
    assert np.isnan(means[19, partition[19]]) and np.isnan(means).sum() == 1


def test_slow_similarities_are_computed_once(rng, monkeypatch):
    calls = []
    add = coclustering.add_coclustering_weights
    monkeypatch.setattr(coclustering, "add_coclustering_weights", lambda *given: calls.append(1) or add(*given))
    draws = as_partition_draws(rng.integers(3, size=(40, 12)), weights=rng.random(40))
    pc.consensus_partition(draws, "binder", method="hierarchical", random_seed=1, progressbar=False)
    assert len(calls) == 1
    taken = draws.similarity()
    taken[:] = 7.0
    assert draws.similarity().max() == 1.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("at_once", [1, 7, 64, 100])
def test_blocks_of_any_size_give_the_same_bits(rng, monkeypatch, weighted, at_once):
    labels = rng.integers(4, size=(150, 11))
    labels[:, 3] = labels[:, 8]
    given = {"weights": rng.random(150) * (rng.random(150) < 0.8)} if weighted else {}
    whole = as_partition_draws(labels, **given)
    similarity, signatures = whole.similarity(), whole.signatures()
    assert signatures.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 3, 8, 9]
    monkeypatch.setattr("posterior_consensus.ensemble.draws._DRAWS_AT_ONCE", at_once)
    monkeypatch.setattr("posterior_consensus.ensemble.draws._LABELS_AT_ONCE", 150 * at_once)
    again = as_partition_draws(labels, **given)
    np.testing.assert_array_equal(again.similarity(), similarity)
    np.testing.assert_array_equal(again.signatures(), signatures)
