"""Summed impurity, its A-strings and its search."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.answers.encodings import a_strings, from_a_strings
from posterior_consensus.consensus.impurity import summed_impurity
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, around, noisy_draws, random_draws
from tests.helpers import check_all

find = partial(pc.consensus_partition, method="impurity", random_seed=1)


def least(labels, n_clusters, weighted, weights=None):
    """Least impurity of all partitions of so many clusters."""
    allowed = (p for p in reference.partitions(labels.shape[1]) if max(p) + 1 == n_clusters)
    return min(reference.summed_impurity(np.array(p), labels, weighted, weights) for p in allowed)


def test_as_the_definition_has_it():
    for seed in range(8):
        rng, weighted = np.random.default_rng(seed), seed % 4 < 2
        labels, partition = random_draws(rng, 6, 15, 4), rng.integers(4, size=15)
        weights = rng.exponential(size=6) if seed % 2 else None
        draws = pc.as_partition_draws(labels, weights=weights)
        ours = summed_impurity(draws, partition, weighted=weighted)
        assert ours == pytest.approx(reference.summed_impurity(partition, labels, weighted, weights), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_enumeration_finds_the_least(weighted):
    for n_clusters in (1, 2, 3, 4, 7):
        rng = np.random.default_rng(n_clusters)
        labels, weights = noisy_draws(rng, 5, 7, 3, 0.6), rng.exponential(size=5)
        draws = pc.as_partition_draws(labels, weights=weights)
        best = find(draws, n_clusters=n_clusters, weighted=weighted)
        expected = least(labels, n_clusters, weighted, weights)
        assert best.info.enumerated and best.info.objective == pytest.approx(expected, abs=1e-9)
        again = summed_impurity(draws, best, weighted=weighted)
        assert best.info.objective == pytest.approx(again, abs=1e-12)


def test_equal_items_are_one_item_of_the_enumeration():
    rng = np.random.default_rng(1)
    few = rng.integers(3, size=(6, 5))
    labels = few[:, np.concatenate([np.arange(5), rng.integers(5, size=3)])]
    doubled = labels[:, np.tile(np.arange(8), 2)]
    found = find(doubled, n_clusters=3, weighted=True)
    assert found.info.enumerated
    assert found.info.objective == pytest.approx(least(labels, 3, True), abs=1e-9)  # doubled items change no share
    assert not find(doubled, n_clusters=3).info.enumerated


@pytest.mark.parametrize("weighted", [False, True])
def test_no_single_move_is_better(weighted):
    labels = noisy_draws(np.random.default_rng(2), 8, 25, 4, 0.5)
    best = find(labels, n_clusters=4, weighted=weighted)
    assert np.all(np.diff(best.info.trace) <= 1e-12) and best.info.converged and not best.info.enumerated
    assert best.info.objective == min(best.info.objectives)
    own = best.labels.values
    assert best.info.objective == pytest.approx(reference.summed_impurity(own, labels, weighted), abs=1e-12)
    for item in range(25):
        for k in range(4):
            other = np.where(np.arange(25) == item, k, own)
            if np.unique(other).size == 4:
                assert reference.summed_impurity(other, labels, weighted) >= best.info.objective - 1e-9


def test_unweighted_it_likes_small_pure_clusters():
    truth = np.repeat(np.arange(3), 20)
    labels = around(np.random.default_rng(3), truth, 20, 0.5)
    plain, weighted = find(labels, n_clusters=3), find(labels, n_clusters=3, weighted=True)
    assert np.sort(plain.cluster_sizes.values)[:2].sum() <= 4
    assert plain.info.objective < summed_impurity(labels, truth)
    assert (
        pc.partition_loss(weighted, truth, loss="one_minus_ari")
        < 0.2
        < pc.partition_loss(plain, truth, loss="one_minus_ari")
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_degenerate_draws(weighted):
    for draws in DEGENERATE.values():
        best = find(draws, weighted=weighted)
        expected = reference.summed_impurity(best.labels.values, draws, weighted)
        assert best.info.objective == pytest.approx(expected, abs=1e-12)


def test_a_strings_there_and_back():
    values = xr.DataArray([[5, 5, 2], [1, 3, 1]], dims=("sample", "obs"), coords={"obs": list("abc")}, name="z")
    draws = pc.as_partition_draws(values)
    strings = a_strings(draws)
    assert strings.dims == ("obs", "sample", "drawn_cluster") and strings.shape == (3, 2, 2)
    assert strings.sel(obs="c").values.tolist() == [[0, 1], [1, 0]]
    back = from_a_strings(strings)
    np.testing.assert_array_equal(back.labels, draws.labels)
    assert back.items.dim == "obs" and back.items.coords["obs"].values.tolist() == ["a", "b", "c"]
    plain = from_a_strings(strings.values)
    np.testing.assert_array_equal(plain.labels, draws.labels)


def test_a_strings_keep_chains_and_weights():
    rng = np.random.default_rng(4)
    labels = rng.integers(3, size=(2, 5, 6))
    draws = pc.as_partition_draws(labels, weights=rng.exponential(size=10))
    strings = a_strings(draws)
    assert strings["chain"].values.tolist() == [0] * 5 + [1] * 5
    back = from_a_strings(strings)
    np.testing.assert_array_equal(back.labels, draws.labels)
    np.testing.assert_allclose(back.weights, draws.weights)
    np.testing.assert_array_equal(back.samples.chain, draws.samples.chain)
    assert "weight" not in a_strings(labels).coords


def test_what_is_no_a_string():
    several = [(strings, ValueError, "one 1 and otherwise 0") for strings in ([[[1, 1]]], [[[0, 0]]], [[[2, -1]]])]
    check_all(from_a_strings, [([[1, 0]], ValueError, "`strings`", "three dimensions", "got 2"), *several])
