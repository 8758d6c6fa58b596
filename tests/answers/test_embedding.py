"""Coordinates of the items, and the map of them."""

import numpy as np
import pytest
import xarray as xr
from sklearn.decomposition import PCA

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import check_all, one_hot


def drawn(seed, weighted=True, n_items=30):
    rng = np.random.default_rng(seed)
    labels = noisy_draws(rng, 25, n_items, 4, 0.3)
    return pc.as_partition_draws(labels, weights=rng.exponential(size=25) if weighted else None)


def rooted(draws):
    """The one-hot matrix, each draw's columns by the root of its weight."""
    return one_hot(draws.labels, draws.starts) * np.sqrt(np.repeat(draws.weights, draws.n_clusters))


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_svd_of_the_one_hot_matrix_or_principal_components(weighted):
    draws = drawn(1, weighted)
    bare = pc.item_embedding(draws, n_axes=30, centred=False)
    left, values, _ = np.linalg.svd(rooted(draws))
    np.testing.assert_allclose(np.abs(bare[:, :4]), np.abs(left[:, :4] * values[:4]), atol=1e-8)
    np.testing.assert_allclose(bare["share"], values[:30] ** 2 / 30, atol=1e-9)
    similarity = reference.similarity(draws.labels, draws.weights)
    np.testing.assert_allclose(bare.values @ bare.values.T, similarity, atol=1e-8)
    pca = PCA(4).fit(rooted(draws))
    found = pc.item_embedding(draws, n_axes=4)
    np.testing.assert_allclose(np.abs(found), np.abs(pca.transform(rooted(draws))), atol=1e-8)
    np.testing.assert_allclose(found["share"], pca.explained_variance_ratio_, atol=1e-10)
    np.testing.assert_allclose(found.mean("item"), 0, atol=1e-9)
    assert np.all(found.values[np.abs(found.values).argmax(axis=0), range(4)] > 0)
    every = pc.item_embedding(draws, n_axes=30).values
    squares = np.sum((every[:, np.newaxis] - every) ** 2, axis=2)
    np.testing.assert_allclose(squares, 2 * (1 - similarity), atol=1e-8)


@pytest.mark.parametrize("centred", [True, False])
def test_matrix_and_probabilities_and_coordinates(centred):
    draws = drawn(4)
    pairs = pc.as_pair_similarity(draws)
    np.testing.assert_allclose(*(pc.item_embedding(d, centred=centred) for d in (draws, pairs)), atol=1e-9)
    soft = pc.as_allocation_probabilities(np.random.default_rng(5).dirichlet(np.full(3, 0.3), size=(20, 12)))
    every = pc.item_embedding(soft, n_axes=12, centred=False).values
    np.testing.assert_allclose(every @ every.T, soft.similarity(), atol=1e-8)
    names = xr.DataArray(draws.labels, dims=("sample", "star"), coords={"star": [f"s{i}" for i in range(30)]})
    found = pc.item_embedding(names, centred=centred)
    assert found.dims == ("star", "axis") and found["star"][3] == "s3" and found.name == "embedding"


def test_a_matrix_with_negative_eigenvalues():
    pairs = pc.as_pair_similarity([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    found = pc.item_embedding(pairs, n_axes=3, centred=False)
    assert np.linalg.eigvalsh(pairs.values)[0] < 0
    assert found["share"][-1] == 0 and np.all(found[:, -1] == 0) and np.isfinite(found).all()


@pytest.mark.parametrize("centred", [True, False])
def test_degenerate_draws(centred):
    for name, draws in DEGENERATE.items():
        similarity = reference.similarity(draws)
        found = pc.item_embedding(draws, n_axes=draws.shape[1], centred=centred)
        squares = np.sum((found.values[:, np.newaxis] - found.values) ** 2, axis=2)
        np.testing.assert_allclose(squares, 2 * (1 - similarity), atol=1e-9, err_msg=name)
        assert found["share"].sum() == pytest.approx(float(not centred or np.ptp(similarity) > 0)), name
        pc.plot_items_map(draws, draws[0], centred=centred).figure.canvas.draw()


def test_many_items_at_one_place():
    found = pc.item_embedding(np.zeros((2, 1001), int))
    assert found.shape == (1001, 2) and not found.values.any() and not found["share"].values.any()


def test_bad_options():
    cases = [
        ({"n_axes": 31}, ValueError, "`n_axes`", "number of items, 30; got 31"),
        ({"n_axes": 0}, ValueError, "`n_axes` must be"),
        ({"n_axes": 1.5}, TypeError, "`n_axes` must be"),
        ({"centred": "yes"}, TypeError, "`centred` must be True or False; got 'yes'"),
    ]
    check_all(lambda options: pc.item_embedding(drawn(1), **options), cases)


def test_exemplars_are_most_similar_to_the_rest_of_their_clusters():
    draws = drawn(7)
    labels = np.random.default_rng(8).integers(4, size=30)
    labels[3] = 4  # a cluster of one item
    labels = reference.canonical(labels)
    similarity = reference.similarity(draws.labels, draws.weights)
    found = pc.item_uncertainty(draws, labels).exemplars
    for k, item in enumerate(found):
        members = np.flatnonzero(labels == k)
        means = [similarity[i, members[members != i]].mean() if members.size > 1 else 0 for i in members]
        assert item == members[np.argmax(np.round(means, 12))]
    assert found[labels[3]] == 3


def test_the_map_shows_items_clusters_and_exemplars():
    labels = xr.DataArray(noisy_draws(np.random.default_rng(1), 40, 60, 3, 0.15), dims=("sample", "star"))
    labels = labels.assign_coords(star=[f"star {i}" for i in range(60)])
    best = pc.consensus_partition(labels, random_seed=1).with_names(["red", "green", "blue"])
    ax = pc.plot_items_map(labels, best)
    exemplars = pc.item_uncertainty(labels, best).exemplars
    sizes = np.bincount(best.labels)
    names = {f"{name} (n = {n})\ntypical: star {i}" for name, n, i in zip(best.names, sizes, exemplars, strict=True)}
    assert {text.get_text() for text in ax.texts} == {*names, "0.09"} and ax.get_legend() is None
