"""CSPA, MCLA, HBGF and NMF: what their papers say, computed slowly beside them."""

from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import SpectralClustering
from threadpoolctl import threadpool_limits

import posterior_consensus as pc
from posterior_consensus.consensus import graphs, selection, votes
from posterior_consensus.consensus.graphs import balanced_labels, evenly_assigned
from posterior_consensus.runtime import executor
from posterior_consensus.sources.conversion import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import one_hot

METHODS = ["cspa", "mcla", "hbgf", "nmf"]
STREHL_AND_GHOSH = [[1, 1, 1, 2, 2, 3, 3], [2, 2, 2, 3, 3, 1, 1], [1, 1, 2, 2, 3, 3, 3]]  # their Table 1, but draw 4


def find(draws, method, **options):
    return pc.consensus_partition(draws, method=method, random_seed=1, progressbar=False, **options)


def weighted_draws(seed, n_draws=30, n_items=40, n_clusters=4, noise=0.3):
    rng = np.random.default_rng(seed)
    labels = noisy_draws(rng, n_draws, n_items, n_clusters, noise)
    return as_partition_draws(labels, weights=rng.exponential(size=n_draws))


@pytest.mark.parametrize("method", METHODS)
def test_example_of_strehl_and_ghosh(method):
    for options in ({}, {"n_clusters": 3}):
        assert find(STREHL_AND_GHOSH, method, **options).labels.values.tolist() == [0, 0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("method", METHODS)
def test_threads_change_nothing(method):
    draws = weighted_draws(5, n_items=80)
    answers = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads), patch.object(executor, "n_threads", lambda n=n_threads: n):
            answers.append(find(draws, method).labels.values.tolist())
    assert answers[0] == answers[1]


def test_cspa_is_the_cut_that_spectral_makes():
    draws = weighted_draws(1)
    spectral = find(draws, "spectral", affinity="association")
    np.testing.assert_array_equal(find(draws, "cspa").labels, spectral.labels)


def test_transport_has_the_least_cost():
    for seed in range(30):
        rng, n_items = np.random.default_rng(seed), [7, 30, 41][seed % 3]
        n_clusters = int(rng.integers(1, 7))
        costs = rng.random((n_items, n_clusters)) ** 3 * rng.random(n_clusters)  # some columns draw nearly all items
        labels = evenly_assigned(costs, n_items)
        sizes = np.bincount(labels, minlength=n_clusters)
        assert sizes.max() - sizes.min() <= 1
        least = min(_cost_of_sizes(costs, sizes) for sizes in _even_sizes(n_items, n_clusters))
        assert costs[np.arange(n_items), labels].sum() == pytest.approx(least, abs=1e-12)


def _even_sizes(n_items, n_clusters):
    """All ways to give the clusters sizes that differ by one at most."""
    fewest, more = divmod(n_items, n_clusters)
    for larger in combinations(range(n_clusters), more):
        yield np.where(np.isin(range(n_clusters), larger), fewest + 1, fewest)


def _cost_of_sizes(costs, sizes):
    places = costs[:, np.repeat(np.arange(sizes.size), sizes)]
    return places[linear_sum_assignment(places)].sum()


def test_balanced_clusters_are_of_equal_size_and_as_near_as_equal_sizes_allow():
    rng = np.random.default_rng(3)
    points = np.concatenate([rng.normal(0, 0.1, (12, 2)), rng.normal(3, 0.1, (6, 2))])
    labels = balanced_labels(points, np.repeat([0, 1], [12, 6]), 2)
    assert np.bincount(labels).tolist() == [9, 9]
    assert len(np.unique(labels[12:])) == 1
    draws = weighted_draws(4, n_items=50)
    found = find(draws, "cspa", n_clusters=4, balanced=True)
    assert sorted(np.bincount(found.labels.values)) == [12, 12, 13, 13]
    assert np.bincount(find(np.zeros((3, 7), int), "cspa", n_clusters=3, balanced=True).labels).tolist() == [3, 2, 2]


def test_hbgf_walks_on_the_bipartite_graph():
    draws = weighted_draws(2)
    table = one_hot(draws.labels, draws.starts)
    edges = table * np.repeat(draws.weights, draws.n_clusters)
    degrees = edges.sum(axis=0)
    np.testing.assert_allclose(edges.sum(axis=1), 1)
    np.testing.assert_allclose(graphs._walk(draws) @ np.eye(40), (edges / degrees) @ edges.T, atol=1e-12)
    vectors = graphs.leading_of(graphs._walk(draws), 4).vectors
    left = np.linalg.svd(edges / np.sqrt(degrees))[0][:, :4]
    np.testing.assert_allclose(np.abs(np.sum(vectors[:, :4] * left, axis=0)), 1, atol=1e-8)


def test_mcla_by_hand():
    """Graph, cut and votes of a slow program whose cut is scikit-learn's."""
    for seed in range(2):
        draws = weighted_draws(seed, n_draws=15, n_items=30, n_clusters=3, noise=0.35)
        table = one_hot(draws.labels, draws.starts)
        weights = np.repeat(draws.weights, draws.n_clusters)
        clusters = np.unique(table.T, axis=0)
        graph = votes._graph(draws)
        assert len(clusters) == graph.vertices.size == graph.weights.size
        np.testing.assert_allclose(graph.weights, graph.counts)
        np.testing.assert_allclose(np.bincount(graph.number, weights), graph.weights)
        similarity = np.array([[np.minimum(a, b).sum() / np.maximum(a, b).sum() for b in table.T] for a in table.T])
        ours = graph.similarity[np.ix_(graph.number, graph.number)]
        np.testing.assert_allclose(ours, similarity, atol=1e-6)
        found = find(pc.as_partition_draws(draws.labels), "mcla", n_clusters=3)
        meta = SpectralClustering(3, affinity="precomputed", random_state=1).fit_predict(similarity)
        by_cluster = np.stack([table[:, meta == k].sum(axis=1) for k in range(3)], axis=1)
        assert reference.same(found.labels.values, by_cluster.argmax(axis=1))


def test_mcla_of_many_clusters_goes_on_from_some():
    draws = weighted_draws(6, n_draws=80, n_items=60, n_clusters=4, noise=0.3)
    every = find(draws, "mcla", n_clusters=4)
    with patch.object(votes, "_MOST_VERTICES", 40):
        graph = votes._graph(draws)
        some = find(draws, "mcla", n_clusters=4)
    assert 4 <= graph.vertices.size <= 40 < graph.weights.size
    assert graph.counts.sum() == pytest.approx(4)  # clusters of a draw
    np.testing.assert_array_equal(graph.similarity[graph.vertices].diagonal(), 1)
    np.testing.assert_array_equal(every.labels, some.labels)


def test_mcla_gives_equal_votes_to_the_meta_cluster_of_more_weight():
    """The last item is with the first two in one draw and with the next three in the other."""
    draws = [[0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1]]
    for draw, weights in ((0, [0.6, 0.4]), (1, [0.4, 0.6])):
        found = find(pc.as_partition_draws(draws, weights=weights), "mcla", n_clusters=2)
        assert found.labels.values.tolist() == draws[draw]


@pytest.mark.parametrize("seed", range(2))
def test_nmf_updates_as_the_paper_has_them(seed):
    draws = weighted_draws(seed, noise=0.45)
    found = find(draws, "nmf", n_clusters=4, max_iter=20, tol=1e-12)
    similarity = draws.shared_similarity
    start = find(draws, "spectral", n_clusters=4).labels.values
    q = np.eye(4)[start] + 0.2
    q /= np.sqrt((q**2).sum(axis=0))
    s = q.T @ similarity @ q
    trace = []
    for _ in range(20):
        trace.append(np.sum((similarity - q @ s @ q.T) ** 2))
        q = q * np.sqrt((similarity @ q @ s) / (q @ q.T @ similarity @ q @ s))
        s = s * np.sqrt((q.T @ similarity @ q) / (q.T @ q @ s @ q.T @ q))
    np.testing.assert_allclose(found.info.trace, trace, rtol=1e-8)
    assert reference.same(found.labels.values, (q * np.sqrt(np.diag(s))).argmax(axis=1))


def test_nmf_objective_falls_and_ends():
    found = find(weighted_draws(7, noise=0.5), "nmf", n_clusters=4)
    assert found.info.converged and np.all(np.diff(found.info.trace) <= 1e-9)
    assert found.info.objective == found.info.trace[-1] and found.info.n_iter == len(found.info.trace)


def test_nmf_with_and_without_the_matrix():
    draws = weighted_draws(8)
    formed = find(draws, "nmf", n_clusters=4)
    with patch.object(selection, "_ITEMS_IN_MATRIX", 0):
        products = find(draws, "nmf", n_clusters=4)
    np.testing.assert_array_equal(formed.labels, products.labels)
    assert formed.info.objective == pytest.approx(products.info.objective, rel=1e-9)
