import json
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr
from sklearn.cluster import SpectralClustering
from sklearn.manifold import spectral_embedding
from threadpoolctl import threadpool_limits

import posterior_consensus as pc
from posterior_consensus.runtime import executor
from posterior_consensus.search.classical import _basis, leading_eigenvectors, random_walk_vectors
from posterior_consensus.sources.conversion import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws


@pytest.mark.parametrize(("n_items", "weighted"), [(12, False), (12, True), (80, True)])
def test_eigenvectors_span_what_the_dense_ones_span(n_items, weighted):
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
    found = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads), patch.object(executor, "n_threads", lambda n=n_threads: n):
            found.append(degenerate_partitions(7))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The partition has:UserWarning")
def test_equal_eigenvalues_leave_nothing_to_chance_in_a_process_of_its_own():
    code = f"import json\nfrom {__name__} import degenerate_partitions as find\nprint(json.dumps(find(12)))"
    fresh = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(fresh.stdout) == degenerate_partitions(12)


def test_invariant_subspaces_leave_nothing_to_chance(monkeypatch):
    monkeypatch.setattr("posterior_consensus.search.classical._DENSE", 0)
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


def affinities(similarity, affinity, gamma):
    """Weights of the graph of the items, as scikit-learn has them."""
    squares = np.sum((similarity[:, np.newaxis] - similarity) ** 2, axis=-1)
    return np.exp(-gamma * squares) if affinity == "rbf" else similarity


@pytest.mark.parametrize(
    ("affinity", "gamma", "weighted"),
    [("association", 1, False), ("association", 1, True), ("rbf", 1, True), ("rbf", 0.2, False)],
)
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


@pytest.mark.parametrize("affinity", ["association", "rbf"])
def test_random_walks_of_degenerate_draws(affinity):
    for draws in DEGENERATE.values():
        best = pc.consensus_partition(draws, loss="nid", method="spectral", affinity=affinity, random_seed=1)
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
