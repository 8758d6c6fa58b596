"""Fitted modes as a distribution on partitions: samples, probabilities, and how surprising a partition is."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.perturbation import probability
from tests import reference
from tests.catalogue.posteriors import around
from tests.helpers import check_all


def fitted(draws, n_modes=2):
    return pc.consensus.fit_modes(draws, n_modes, random_seed=1, progressbar=False)


def uneven(n_items=6, **options):
    """Draws around a partition of two and one of three clusters, of which some have more labels, and their modes."""
    rng = np.random.default_rng(1)
    two, three = np.arange(n_items) % 2, np.arange(n_items) * 3 // n_items
    draws = np.concatenate([around(rng, two, 24, 0.2, 2), around(rng, two, 4, 0.5, 6), around(rng, three, 14, 0.2, 3)])
    return draws, fitted(pc.as_partition_draws(draws, **options))


def by_labels(modes):
    """Share of each mode and number of labels, and the probability of each label of each item."""
    for mode, n_clusters in enumerate(modes.n_clusters.values):
        for n_labels, chance in modes.label_shares[mode].to_series()[lambda chances: chances > 0].items():
            p = modes.noise.values[mode]
            of_item = np.full((modes.labels.shape[1], n_labels), p / n_labels)
            of_item[:, :n_clusters] += (1 - p) * modes.memberships.values[mode, :, :n_clusters]
            yield modes.shares.values[mode] * chance, of_item


def test_probabilities_are_sums_over_all_labels_and_of_all_partitions_1():
    _, modes = uneven()
    assert modes.n_clusters.values.tolist() == [2, 3] and modes.label_shares["n_labels"].values.tolist() == [2, 3, 4]
    partitions = list(reference.partitions(6))
    expected = dict.fromkeys(map(tuple, partitions), 0.0)
    for share, of_item in by_labels(modes):
        for labels in product(range(of_item.shape[1]), repeat=6):
            expected[tuple(reference.canonical(labels))] += share * np.prod(of_item[np.arange(6), labels])
    found = modes.log_prob(partitions)
    np.testing.assert_allclose(np.exp(found), list(expected.values()), rtol=1e-11)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12) and found["exact"].all()
    assert np.isneginf(found).values.tolist() == [max(z) > 3 for z in partitions]


def test_the_best_matching_alone_gives_a_lower_bound(monkeypatch):
    rng = np.random.default_rng(4)
    truth = np.arange(24) % 8
    modes = fitted(around(rng, truth, 30, 0.3), 1)
    assert modes.n_clusters.item() == 8
    seven, eight = np.minimum(truth, 6), around(rng, truth, 3, 0.9)
    eight[:, :8] = np.arange(8)
    exact = modes.log_prob(seven)
    ((share, of_item),) = by_labels(modes)
    blocks = np.array([np.prod(of_item[seven == b], axis=0) for b in range(7)])
    total = sum(blocks[np.arange(7), labels].prod() for labels in permutations(range(8), 7))
    assert exact == pytest.approx(np.log(share * total), rel=1e-12) and exact["exact"]
    bounds = modes.log_prob(eight)
    assert not bounds["exact"].any()
    monkeypatch.setattr(probability, "WIDEST", 8)
    assert (bounds < modes.log_prob(eight)).all() and (bounds > modes.log_prob(eight) - np.log(40320)).all()
    monkeypatch.setattr(probability, "WIDEST", 0)
    bound = modes.log_prob(seven)
    assert bound < exact and not bound["exact"]


def test_samples_are_as_frequent_as_probable():
    _, modes = uneven(4)
    partitions = [tuple(z) for z in reference.partitions(4)]
    drawn = [tuple(z) for z in modes.sample(4000, random_seed=2).labels.tolist()]
    frequencies, p = np.array([drawn.count(z) for z in partitions]) / 4000, np.exp(modes.log_prob(partitions).values)
    assert np.abs(frequencies - p).max() / np.sqrt(p * (1 - p) / 4000).max() < 4
    assert drawn == [tuple(z) for z in modes.sample(4000, random_seed=2).labels.tolist()]
    assert drawn != [tuple(z) for z in modes.sample(4000, random_seed=3).labels.tolist()]


def test_modes_fitted_to_samples_are_the_modes():
    rng = np.random.default_rng(5)
    truths = np.array([np.arange(20) % 3, rng.integers(2, size=20)])
    made = pc.simulate.random_perturbation(20, 3, n_draws=50, noise=0.2, modes=[0.7, 0.3], truth=truths, random_seed=1)
    modes = fitted(made.draws)
    again = fitted(modes.sample(100, random_seed=2), "auto")
    assert again.n_modes == 2
    for one, other in zip(modes.labels.values, again.labels.values, strict=True):
        assert pc.losses.misclassification_distance(one, other) <= 1 / 20
    np.testing.assert_allclose(again.shares, modes.shares, atol=0.1)
    np.testing.assert_allclose(again.noise, modes.noise, atol=0.04)


def test_a_certain_partition_has_no_surprise():
    modes = fitted(np.zeros((10, 6), int), 1)
    assert -1e-12 < modes.log_prob([0] * 6) <= 0 <= modes.classify([0] * 6)["surprise"] < 1e-12
    assert modes.surprise.min() >= 0
    for wrong in (None, modes):
        with pytest.raises(TypeError, match="`partitions`"):
            modes.log_prob(wrong)


@pytest.mark.parametrize(("evidence", "rises"), [({1: -5.0, 2: -3.0}, True), ({1: -5.0, 2: -3.0, 3: -4.0}, False)])
def test_it_says_if_the_largest_number_of_modes_tried_is_best(evidence, rises):
    assert ("still rises" in repr(replace(uneven()[1], evidence=evidence))) is rises


def test_partitions_come_in_any_form_and_by_the_names_of_their_items():
    draws, unnamed = uneven()
    names = list("abcdef")
    data = xr.DataArray(draws[np.newaxis], {"chain": [7], "city": names}, ("chain", "draw", "city"))
    modes = fitted(data)
    drawn = modes.log_prob(data)
    np.testing.assert_array_equal(drawn, unnamed.log_prob(draws))
    np.testing.assert_array_equal(drawn["chain"], [7] * len(draws))
    for given in (
        data[..., ::-1],
        pc.as_partition_draws(data),
        data.isel(city=[3, 1, 2, 0, 5, 4]).stack(sample=["chain", "draw"]),
    ):
        np.testing.assert_array_equal(modes.log_prob(given), drawn)
    assert modes.sample(2, random_seed=1).items.names.tolist() == names
    one, several = modes.log_prob(modes.labels[0, ::-1]), modes.log_prob(modes.labels[:, ::-1])
    assert one.dims == () and one == several[0] and several.sizes == {"sample": 2}
    best = pc.consensus_partition(data, random_seed=1, progressbar=False)
    assert modes.log_prob(best) == modes.log_prob([best, modes.labels[1]])[0] == modes.log_prob(best.labels.values)
    assert modes.classify(best)["responsibilities"].dims == ("mode",)
    other = data.assign_coords(city=list("abcdeg"))
    cases = [
        (other, ValueError, "`partitions`", "'f' is missing"),
        (data[0], ValueError, "`sample_dims`", "'city'"),
        (other[0, :2].rename(draw="mode"), ValueError, "`partitions`", "'f' is missing"),
        ([[0, 1, 1]], ValueError, "`partitions`", "6 items", "3 labels"),
        ([], ValueError, "`partitions`", "(0,)"),
        (np.eye(6) / 3, ValueError, "integers"),
    ]
    check_all(modes.log_prob, cases)
    check_all(modes.classify, cases)
    check_all(modes.sample, [(0, ValueError, "`n`", "at least 1", "got 0"), (2.0, TypeError, "`n`", "got 2.0")])


def test_a_partition_is_as_surprising_as_a_share_of_the_draws():
    weights = np.arange(42.0)
    draws, modes = uneven(weights=weights)
    modes = type(modes).from_dataset(modes.to_dataset())
    tried = [*draws[:9], np.arange(6), np.zeros(6, int)]
    found = modes.classify(tried)
    log_prob = modes.log_prob(tried).values
    np.testing.assert_allclose(found["surprise"], -log_prob / np.log(2), rtol=1e-12)
    at_least = modes.surprise.values >= found["surprise"].values[:, np.newaxis] - 1e-9
    np.testing.assert_allclose(found["as_surprising"], at_least @ weights / weights.sum(), atol=1e-12)
    np.testing.assert_allclose(modes.classify(draws)["surprise"], modes.surprise, rtol=1e-12)
    one, other = modes.labels.values
    ours = modes.classify([one, other])["responsibilities"].values
    assert ours[0, 0] > 0.5 < ours[1, 1] and np.allclose(ours.sum(axis=1), 1)
    impossible = found.isel(sample=9)
    assert np.isinf(impossible["surprise"]) and impossible["as_surprising"] == 0
    assert np.isnan(impossible["responsibilities"]).all()
    assert found["surprise"].attrs["unit"] == "bits"
