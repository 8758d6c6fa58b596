from functools import partial

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus import selection
from tests import reference
from tests.catalogue.posteriors import noisy_draws

find = partial(pc.consensus_partition, method="cc_pivot", random_seed=1)


def pivoted(similarities, order, threshold):
    """The definition: clusters of the pivots, item by item."""
    labels, left = np.full(len(order), -1), list(order)
    while left:
        pivot = left[0]
        cluster = [j for j in left if j == pivot or similarities[pivot, j] > threshold]
        labels[cluster] = labels.max() + 1
        left = [j for j in left if j not in cluster]
    return reference.canonical(labels)


@pytest.fixture(params=["with a matrix", "row by row"])
def form(request, monkeypatch):
    if request.param == "row by row":
        monkeypatch.setattr(selection, "_ITEMS_IN_MATRIX", 0)


def test_one_order(form):
    for seed in range(6):
        rng, threshold = np.random.default_rng(seed), [0.25, 0.5, 0.8][seed % 3]
        draws = noisy_draws(rng, 20, 15, 3, 0.5)
        weights = rng.exponential(size=20) if seed % 2 else None
        data = pc.as_partition_draws(draws, weights=weights)
        best = find(data, random_seed=np.random.default_rng(seed), threshold=threshold, n_starts=1)
        order = np.random.default_rng(seed).permutation(15)
        expected = pivoted(reference.similarity(draws, weights), order, threshold)
        np.testing.assert_array_equal(best.labels, expected)


def test_a_similarity_at_the_threshold_is_not_above_it():
    draws = [[0, 0]] + [[0, 1]] * 3
    assert find(draws).n_clusters == 2
    assert find(pc.as_partition_draws([[0, 0], [0, 1]], weights=[0.1, 0.3])).n_clusters == 2
    assert find(draws, threshold=0.249).n_clusters == 1


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_best_of_many_orders(loss):
    draws = noisy_draws(np.random.default_rng(1), 30, 25, 3, 0.5)
    best = find(draws, loss=loss, n_starts=20)
    assert len(best.info.expected_losses) == 20 and len(set(best.info.expected_losses)) > 3
    assert best.expected_loss == pytest.approx(min(best.info.expected_losses), abs=1e-12)
    assert best.info.threshold == 0.25


def test_the_items_left_join_the_most_similar_pivot(form):
    """Three groups for two clusters: the third is with the first more often than with the second."""
    draws = [[0, 0, 1, 1, 2, 2]] * 8 + [[0, 0, 1, 1, 0, 0]] * 2 + [[0, 0, 1, 1, 1, 1]]
    assert find(draws, n_starts=1).n_clusters == 3
    assert find(draws, max_clusters=2, n_starts=1).n_clusters == 2
    assert find(draws, n_clusters=2, n_starts=50).labels.values.tolist() == [0, 0, 1, 1, 0, 0]
    assert find(draws, max_clusters=1).n_clusters == 1


def test_more_clusters_than_pivots_found(form):
    draws = [[0, 0, 0, 1, 1, 1]] * 5 + [[0, 0, 2, 1, 1, 1]] * 4
    assert find(draws).labels.values.tolist() == [0, 0, 0, 1, 1, 1]
    found = find(draws, n_clusters=3, n_starts=30)
    assert found.labels.values.tolist() == [0, 0, 1, 2, 2, 2]
    assert find(draws, n_clusters=6).n_clusters == 6


def test_probabilities_row_by_row_as_with_their_matrix(monkeypatch):
    p = np.random.default_rng(2).dirichlet([0.3] * 3, size=(2, 10, 12))
    soft = pc.as_allocation_probabilities(xr.DataArray(p, dims=("chain", "draw", "obs", "component")))
    one = find(soft, threshold=0.35, n_starts=1)
    monkeypatch.setattr(selection, "_ITEMS_IN_MATRIX", 0)
    np.testing.assert_array_equal(one.labels, find(soft, threshold=0.35, n_starts=1).labels)
    assert 1 < one.n_clusters < 12
