"""Summed impurity, its A-strings and its search."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import check

PARTITIONS = np.array(list(reference.partitions(7)))


def find(draws, **options):
    return pc.consensus_partition(draws, method="impurity", random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_as_the_definition_has_it(weighted):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labels, partition = random_draws(rng, 6, 15, 4), rng.integers(4, size=15)
        weights = rng.exponential(size=6) if seed % 2 else None
        draws = pc.as_partition_draws(labels, weights=weights)
        ours = pc.consensus.summed_impurity(draws, partition, weighted=weighted)
        assert ours == pytest.approx(reference.summed_impurity(partition, labels, weighted, weights), abs=1e-12)
        if not weighted and weights is None:
            assert 12 * ours == pytest.approx(model_1(pc.consensus.a_strings(draws).values, partition), abs=1e-10)


def model_1(strings, partition):
    """The paper's objective with the best centres: sum of |s - c| over A-strings averaged within clusters."""
    total = 0.0
    for cluster in np.unique(partition):
        mean = strings[partition == cluster].mean(axis=0)
        centre = np.eye(mean.shape[1])[mean.argmax(axis=1)]
        total += np.abs(centre - mean).sum()
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 7])
def test_enumeration_finds_the_least(weighted, n_clusters):
    allowed = PARTITIONS[PARTITIONS.max(axis=1) + 1 == n_clusters]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        labels, weights = noisy_draws(rng, 5, 7, 3, 0.6), rng.exponential(size=5)
        draws = pc.as_partition_draws(labels, weights=weights)
        best = find(draws, n_clusters=n_clusters, weighted=weighted)
        least = min(reference.summed_impurity(p, labels, weighted, weights) for p in allowed)
        assert best.info.enumerated and best.info.objective == pytest.approx(least, abs=1e-9)
        assert best.info.objective == pytest.approx(
            pc.consensus.summed_impurity(draws, best, weighted=weighted), abs=1e-12
        )


def test_equal_items_are_one_item_of_the_enumeration():
    rng = np.random.default_rng(1)
    few = rng.integers(3, size=(6, 5))
    at = np.concatenate([np.arange(5), rng.integers(5, size=3)])
    labels = few[:, at]
    partitions = np.array(list(reference.partitions(8)))
    found = find(labels[:, np.tile(np.arange(8), 2)], n_clusters=3, weighted=True)
    assert found.info.enumerated
    least = min(reference.summed_impurity(p, labels, True) for p in partitions[partitions.max(axis=1) == 2])
    assert found.info.objective == pytest.approx(least, abs=1e-9)  # doubled items change no share
    assert not find(labels[:, np.tile(np.arange(8), 2)], n_clusters=3).info.enumerated


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
    rng = np.random.default_rng(3)
    labels = np.where(rng.random((20, 60)) < 0.5, rng.integers(3, size=(20, 60)), truth)
    plain, weighted = find(labels, n_clusters=3), find(labels, n_clusters=3, weighted=True)
    assert np.sort(plain.cluster_sizes.values)[:2].sum() <= 4
    assert plain.info.objective < pc.consensus.summed_impurity(labels, truth)
    assert pc.partition_loss(weighted, truth, loss="omari") < 0.2 < pc.partition_loss(plain, truth, loss="omari")


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    for weighted in (False, True):
        best = find(draws, weighted=weighted)
        assert best.info.objective == pytest.approx(
            reference.summed_impurity(best.labels.values, draws, weighted), abs=1e-12
        )


def test_a_strings_there_and_back():
    values = xr.DataArray([[5, 5, 2], [1, 3, 1]], dims=("sample", "obs"), coords={"obs": list("abc")}, name="z")
    draws = pc.as_partition_draws(values)
    strings = pc.consensus.a_strings(draws)
    assert strings.dims == ("obs", "sample", "drawn_cluster") and strings.shape == (3, 2, 2)
    assert strings.sel(obs="c").values.tolist() == [[0, 1], [1, 0]]
    back = pc.consensus.from_a_strings(strings)
    np.testing.assert_array_equal(back.labels, draws.labels)
    assert back.items.dim == "obs" and back.items.coords["obs"].values.tolist() == ["a", "b", "c"]
    plain = pc.consensus.from_a_strings(strings.values)
    np.testing.assert_array_equal(plain.labels, draws.labels)


def test_a_strings_keep_chains_and_weights():
    rng = np.random.default_rng(4)
    labels = rng.integers(3, size=(2, 5, 6))
    draws = pc.as_partition_draws(labels, weights=rng.exponential(size=10))
    strings = pc.consensus.a_strings(draws)
    assert strings["chain"].values.tolist() == [0] * 5 + [1] * 5
    back = pc.consensus.from_a_strings(strings)
    np.testing.assert_array_equal(back.labels, draws.labels)
    np.testing.assert_allclose(back.weights, draws.weights)
    np.testing.assert_array_equal(back.samples.chain, draws.samples.chain)
    assert "weight" not in pc.consensus.a_strings(labels).coords


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        ([[1, 0]], "`strings` must have three dimensions, items, draws and clusters; got 2"),
        ([[[1, 1]]], "one 1 and else 0"),
        ([[[0, 0]]], "one 1 and else 0"),
        ([[[2, -1]]], "one 1 and else 0"),
    ],
)
def test_what_is_no_a_string(strings, message):
    check(pc.consensus.from_a_strings, strings, ValueError, [message])


def test_n_starts():
    check(lambda v: find([[0, 0, 1]], n_starts=v), 0, ValueError, ["`n_starts` must be at least 1"])
