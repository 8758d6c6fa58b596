import json
import subprocess
import sys
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr
from sklearn.cluster import SpectralClustering
from sklearn.manifold import spectral_embedding
from threadpoolctl import threadpool_limits

import posterior_consensus as pc
from posterior_consensus.runtime import executor
from posterior_consensus.search.eigenvectors import _basis, leading_eigenvectors, random_walk_vectors
from posterior_consensus.sources.labels import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_items", [12, 80])
def test_eigenvectors_span_what_the_dense_ones_span(weighted, n_items):
    rng = np.random.default_rng(n_items)
    labels = noisy_draws(rng, 50, n_items, 4, 0.2)
    weights = rng.exponential(size=50) if weighted else None
    vectors = leading_eigenvectors(as_partition_draws(labels, weights=weights), 4).vectors
    values, dense = np.linalg.eigh(reference.similarity(labels, weights))
    assert values[-4] > 2 * values[-5]  # well separated
    np.testing.assert_allclose(np.abs(np.sum(vectors * dense[:, :-5:-1], axis=0)), 1, atol=1e-9)


def degenerate_partitions(n_ensembles):
    """Labels that the method finds for draws whose similarity matrices have equal eigenvalues."""
    found = []
    for seed in range(n_ensembles):
        rng = np.random.default_rng(seed)
        n_draws, n_items = rng.integers(2, 7), rng.integers(4, 14)
        labels = rng.integers(rng.integers(2, 16), size=(n_draws, n_items))
        for row in np.flatnonzero(rng.random(n_draws) < 0.5):
            labels[row] = np.arange(n_items) if rng.random() < 0.5 else 0
        weights = np.arange(n_draws) == 0 if rng.random() < 0.3 else None
        draws = as_partition_draws(labels, weights=weights)
        n_clusters = int(rng.integers(2, n_items))
        for affinity in (None, "association", "rbf"):
            best = pc.consensus_partition(
                draws, loss="nmi", method="spectral", n_clusters=n_clusters, affinity=affinity, random_seed=1
            )
            found.append(best.labels.values.tolist())
    return found


@pytest.mark.filterwarnings("ignore:The partition has:UserWarning")
def test_equal_eigenvalues_leave_nothing_to_chance():
    found = degenerate_partitions(30)
    for n_threads in (1, 3):
        with threadpool_limits(n_threads), patch.object(executor, "n_threads", lambda n=n_threads: n):
            assert degenerate_partitions(30) == found
    code = f"import json\nfrom {__name__} import degenerate_partitions as find\nprint(json.dumps(find(30)))"
    fresh = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(fresh.stdout) == found


def test_invariant_subspaces_leave_nothing_to_chance(monkeypatch):
    monkeypatch.setattr("posterior_consensus.search.eigenvectors._DENSE", 0)
    draws = as_partition_draws([np.arange(80) // 2])  # 40 equal eigenvalues, of which 12 are asked for
    assert len({leading_eigenvectors(draws, 4).vectors.tobytes() for _ in range(10)}) == 1


def test_whole_eigenspaces_are_taken():
    alone = leading_eigenvectors(as_partition_draws([np.arange(6)]), 3)
    assert alone.widths.tolist() == [6, 6, 6]
    np.testing.assert_array_equal(alone.vectors, np.eye(6))
    sure = leading_eigenvectors(as_partition_draws([[0, 0, 0, 1, 1, 2]]), 5)
    assert sure.widths.tolist() == [1, 2, 3, 3, 3]  # the others have eigenvalue 0
    pairs = leading_eigenvectors(as_partition_draws([[0, 0, 0, 1, 1, 2, 2]]), 3)
    assert pairs.widths.tolist() == [1, 3, 3]


@pytest.mark.parametrize(("n_items", "n_vectors"), [(1, 1), (7, 1), (7, 3), (7, 7), (300, 40)])
def test_the_basis_depends_on_the_space_alone(n_items, n_vectors):
    rng = np.random.default_rng(n_items)
    space = np.linalg.qr(rng.standard_normal((n_items, n_vectors)))[0]
    turn = np.linalg.qr(rng.standard_normal((n_vectors, n_vectors)))[0]
    basis = _basis(space)
    np.testing.assert_allclose(basis, _basis(space @ turn), atol=2e-10)
    np.testing.assert_allclose(basis @ basis.T, space @ space.T, atol=1e-8)


@pytest.mark.parametrize("method", ["basic", "spectral"])
def test_clear_clusters_are_found_with_their_number(method):
    rng = np.random.default_rng(1)
    truth = rng.integers(5, size=60)
    noisy = rng.random((200, 60)) < 0.1
    labels = np.where(noisy, rng.integers(5, size=(200, 60)), truth)
    result = pc.consensus_partition(labels, method=method, random_seed=1)
    np.testing.assert_array_equal(result.labels, reference.canonical(truth))
    assert result.info.n_clusters_tried == [1, 2, 3, 4, 5]
    assert len(result.info.expected_losses) == 5


def affinities(similarity, affinity, gamma):
    """Weights of the graph of the items, as scikit-learn has them."""
    squares = np.sum((similarity[:, np.newaxis] - similarity) ** 2, axis=-1)
    return np.exp(-gamma * squares) if affinity == "rbf" else similarity


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("affinity", "gamma"), [("association", 1), ("rbf", 1), ("rbf", 0.2)])
def test_random_walks_as_scikit_learn_has_them(affinity, gamma, weighted):
    rng = np.random.default_rng(7)
    draws = noisy_draws(rng, 40, 60, 4, 0.3)
    weights = rng.exponential(size=40) if weighted else None
    data = as_partition_draws(draws, weights=weights)
    graph = affinities(reference.similarity(draws, weights), affinity, gamma)
    theirs = spectral_embedding(graph, n_components=4, drop_first=False, random_state=1)
    ours = random_walk_vectors(data, 4, affinity, gamma).vectors
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)
    model = SpectralClustering(4, affinity="precomputed", random_state=1).fit(graph)
    best = pc.consensus_partition(data, method="spectral", n_clusters=4, affinity=affinity, gamma=gamma, random_seed=1)
    assert reference.same(best.labels.values, model.labels_)


def test_the_graph_of_rows_splits_a_large_cluster_less():
    """One cluster of three quarters of the items, five small ones, and draws that keep 55% of the labels."""
    distances = {None: 0.0, "rbf": 0.0}
    truth = np.repeat(range(6), [75, 5, 5, 5, 5, 5])
    for seed in range(6):
        rng = np.random.default_rng(seed)
        draws = np.where(rng.random((20, 100)) < 0.45, rng.integers(6, size=(20, 100)), truth)
        for affinity in distances:
            found = pc.consensus_partition(draws, method="spectral", n_clusters=6, affinity=affinity, random_seed=1)
            distances[affinity] += pc.simulate.misclassification_distance(found, truth) / 6
    assert distances["rbf"] < 0.6 * distances[None]


@pytest.mark.parametrize("affinity", ["association", "rbf"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_random_walks_of_degenerate_draws(name, affinity):
    draws = DEGENERATE[name]
    for loss in ("vi", "nid"):
        best = pc.consensus_partition(draws, loss=loss, method="spectral", affinity=affinity, random_seed=1)
        if len(np.unique(draws, axis=0)) == 1:
            assert reference.same(best.labels.values, draws[0])
        assert np.isfinite(best.expected_loss)


def test_probabilities_have_their_random_walk():
    p = np.random.default_rng(9).dirichlet([0.2] * 3, size=(2, 30, 20))
    soft = pc.as_allocation_probabilities(xr.DataArray(p, dims=("chain", "draw", "obs", "component")))
    psm = pc.posterior_similarity_matrix(soft).values
    theirs = spectral_embedding(psm, n_components=3, drop_first=False, random_state=1)
    ours = random_walk_vectors(soft, 3, "association", 1.0).vectors
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"affinity": "psm"}, ValueError, "`affinity` must be None or one of 'association', 'rbf'; got 'psm'"),
        ({"affinity": "rbf", "gamma": 0}, ValueError, "`gamma` must be a finite number above 0; got 0"),
        ({"affinity": "rbf", "gamma": "1"}, TypeError, "`gamma` must be a number; got '1'"),
    ],
)
def test_options(options, error, message):
    with pytest.raises(error, match=message):
        pc.consensus_partition([[0, 0, 1], [0, 1, 1]], method="spectral", **options)


@pytest.mark.parametrize("affinity", [None, "association"])
def test_no_matrix_of_all_pairs(affinity):
    n_items = 30_000
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=n_items)
    draws = as_partition_draws(np.where(rng.random((20, n_items)) < 0.1, rng.integers(3, size=(20, n_items)), truth))
    tracemalloc.start()
    result = pc.consensus_partition(
        draws, method="spectral", n_clusters=3, affinity=affinity, n_starts=1, random_seed=1
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_items**2 / 10
    assert reference.same(result.labels.values, truth)


@pytest.mark.parametrize("method", sorted(set(pc.METHODS) - {"best_draw", "exact"}))
def test_one_draw_of_singletons_changes_little(method):
    draws = [[0, 0, 0, 1, 1, 1]] * 20 + [[0, 1, 2, 3, 4, 5]]
    best = pc.consensus_partition(draws, method=method, random_seed=1)
    assert best.labels.values.tolist() == [0, 0, 0, 1, 1, 1]
