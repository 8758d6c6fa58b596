"""What differs between clusters: by a loop over items at known matrices, by other programs' tests, and refusals."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import posterior_consensus as pc

TRUTH = np.repeat([0, 1, 2], [40, 30, 20])


def noisy(rng, n_draws, wrong=0.15, labels=TRUTH):
    """Copies of the labels, some of them at random."""
    other = rng.integers(3, size=(n_draws, labels.size))
    return np.where(rng.random(other.shape) < wrong, other, labels)


def by_items(partition, draw, y):
    """Means (K,) and covariances (K, K) by the weights of Bolck, Croon and Hagenaars, item by item; labels agree."""
    n_clusters = partition.max() + 1
    shares = np.zeros((n_clusters, n_clusters))
    for reported, drawn in zip(partition, draw, strict=True):
        shares[drawn, reported] += 1 / np.sum(draw == drawn)
    inverse = np.linalg.inv(shares)
    known = np.flatnonzero(~np.isnan(y))
    total = sum(inverse[partition[i]] for i in known)
    means = sum(inverse[partition[i]] * y[i] for i in known) / total
    covariances = np.zeros((n_clusters, n_clusters))
    for i in known:
        weights = inverse[partition[i]] / total
        covariances += np.nanvar(y[partition == partition[i]], ddof=1) * np.outer(weights, weights)
    return means, covariances


@pytest.mark.parametrize("missing", [False, True])
def test_estimates_are_those_of_weighted_items(missing):
    rng = np.random.default_rng(1)
    draws = noisy(rng, 30)
    y = 100 + TRUTH + rng.normal(size=TRUTH.size)
    y[::7] = np.nan if missing else y[::7]
    weights = rng.exponential(size=30)
    partition = noisy(rng, 1)[0]
    found = pc.contrast(pc.as_partition_draws(draws, weights=weights), partition, y=y)
    weights /= weights.sum()
    means, covariances = (np.array(one) for one in zip(*(by_items(partition, z, y) for z in draws), strict=True))
    table, pairs = found.to_dataframe(), found.differences.to_dataframe()
    assert_allclose(table["estimate"], weights @ means, rtol=1e-10)
    assert table["n_values"].tolist() == [np.sum((partition == k) & ~np.isnan(y)) for k in range(3)]
    size = np.minimum(table["ess"], 1 / np.square(weights).sum())
    between = weights @ np.square(means - weights @ means) * (size + 1) / (size - 1)
    assert_allclose(table["error"] ** 2, np.einsum("t,tkk->k", weights, covariances) + between, rtol=1e-10)
    apart = means[:, 2] - means[:, 0]
    row = pairs[(pairs["first"] == 0) & (pairs["second"] == 2)].iloc[0]
    assert_allclose(row["difference"], weights @ apart, rtol=1e-10)
    within = weights @ (covariances[:, 0, 0] + covariances[:, 2, 2] - 2 * covariances[:, 0, 2])
    between = weights @ np.square(apart - weights @ apart)
    assert row["error"] ** 2 > within + between
    assert row["low"] < row["difference"] < row["high"]


def test_without_doubt_estimates_are_means_and_tests_are_those_of_welch():
    rng = np.random.default_rng(2)
    y = rng.normal(TRUTH, 1 + TRUTH)
    found = pc.contrast(np.tile(TRUTH, (50, 1)), TRUTH, y=y)
    groups = [y[k == TRUTH] for k in range(3)]
    assert_allclose(found.estimates["estimate"], [group.mean() for group in groups], rtol=1e-10)
    assert_allclose(found.estimates["error"], [stats.sem(group) for group in groups], rtol=1e-10)
    tests = [stats.ttest_ind(groups[j], groups[i], equal_var=False) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert_allclose(found.differences["naive_p_value"], [test.pvalue for test in tests], rtol=1e-8)
    assert_allclose(found.differences["p_value"], [test.pvalue for test in tests], rtol=1e-8)
    assert_allclose(found.differences["naive"], found.differences["difference"])
    within = np.sqrt(sum(np.square(group - group.mean()).sum() for group in groups) / (y.size - 3))
    assert_allclose(found.differences["effect"], found.differences["difference"] / within)
    assert found.weights.dims == ("item", "cluster", "sample")
    assert_allclose(found.weights, np.eye(3)[TRUTH][:, :, np.newaxis].repeat(50, axis=2), atol=1e-15)


def test_holm_corrects_all_differences():
    """By hand: the smallest of three is tripled, the second doubled, and none is below one before it."""
    rng = np.random.default_rng(3)
    found = pc.contrast(noisy(rng, 20), TRUTH, y=rng.normal(0.3 * TRUTH)).differences
    p, corrected = found["p_value"].values, found["p_corrected"].values
    first, second, third = np.sort(p)
    wanted = [min(3 * first, 1), min(max(3 * first, 2 * second), 1)]
    assert_allclose(np.sort(corrected)[:2], wanted)
    assert_allclose(np.sort(corrected)[2], max(wanted[1], third))


def test_values_are_paired_by_name_and_may_be_missing():
    rng = np.random.default_rng(4)
    names = [f"p{k}" for k in range(TRUTH.size)]
    draws = xr.DataArray(noisy(rng, 20)[np.newaxis], {"patient": names}, ("chain", "draw", "patient"))
    y = pd.Series(rng.normal(TRUTH), names, name="dose")
    y.iloc[3:6] = np.nan
    found = pc.contrast(draws, TRUTH, y=y.sample(frac=1, random_state=1))
    by_place = pc.contrast(draws, TRUTH, y=y.to_numpy())
    assert_allclose(found.estimates["estimate"], by_place.estimates["estimate"])
    assert (found.name, found.n_missing, found.weights.dims[0]) == ("dose", 3, "patient")
    array = xr.DataArray(y.to_numpy()[::-1], {"patient": names[::-1]}, attrs={"units": "mg"})
    assert_allclose(pc.contrast(draws, TRUTH, y=array).estimates["estimate"], found.estimates["estimate"])
    assert pc.contrast(draws, TRUTH, y=array).unit == "mg"
    with pytest.raises(ValueError, match=r"`y`.*'p0' is missing"):
        pc.contrast(draws, TRUTH, y=y.rename({"p0": "other"}))


def test_shares_of_categories_are_means_of_their_indicators():
    rng = np.random.default_rng(5)
    draws = noisy(rng, 20)
    y = np.array(["a", "b", None], dtype=object)[rng.choice(3, TRUTH.size, p=[0.5, 0.4, 0.1])]
    found = pc.contrast(draws, TRUTH, y=pd.Series(y, dtype=pd.CategoricalDtype(["b", "none", "a"])))
    assert found.estimates["category"].values.tolist() == ["b", "a"]
    numbers = pc.contrast(draws, TRUTH, y=np.where(pd.isna(y), np.nan, y == "b").astype(float))
    for name in ("estimate", "error", "low", "high", "naive"):
        assert_allclose(found.estimates[name].sel(category="b"), numbers.estimates[name], atol=1e-12)
    shares = found.to_dataframe()["estimate"].unstack()
    assert_allclose(shares.sum(axis=1), 1.0)
    binary = pc.contrast(draws, TRUTH, y=rng.random(TRUTH.size) < 0.3)
    assert binary.kind == "binary" and np.isnan(binary.differences["effect"]).all()


def test_components_without_a_match_join_the_cluster_they_have_most_of():
    """Splitting a cluster of every draw in two changes nothing."""
    rng = np.random.default_rng(6)
    draws, y = noisy(rng, 20), rng.normal(TRUTH)
    split = np.where((draws == 0) & (rng.random(draws.shape) < 0.3), 3, draws)
    one, other = (pc.contrast(z, TRUTH, y=y).estimates["estimate"] for z in (draws, split))
    assert_allclose(one, other)


def test_probabilities_have_expected_shares():
    """Certain ones are labels; others have the matrix of expected numbers of items."""
    rng = np.random.default_rng(7)
    y = rng.normal(TRUTH)
    draws = noisy(rng, 20)
    certain = pc.as_allocation_probabilities(np.eye(3)[draws])
    assert_allclose(
        pc.contrast(certain, TRUTH, y=y).estimates["error"], pc.contrast(draws, TRUTH, y=y).estimates["error"]
    )
    probabilities = 0.7 * np.eye(3)[TRUTH] + 0.1
    found = pc.contrast(pc.as_allocation_probabilities(np.tile(probabilities, (5, 1, 1))), TRUTH, y=y)
    sums = np.array([probabilities[k == TRUTH].sum(axis=0) for k in range(3)]).T
    inverse = np.linalg.inv(sums / sums.sum(axis=1, keepdims=True))
    weights = inverse[TRUTH]
    assert_allclose(found.estimates["estimate"], weights.T @ y / weights.sum(axis=0), rtol=1e-10)


def test_known_truth_is_estimated_and_reported_labels_shrink_it():
    rng = np.random.default_rng(8)
    probability = rng.random(4_000)
    pick = lambda: rng.random(4_000) < probability  # noqa: E731
    found = pc.contrast(np.array([pick() for _ in range(100)]), (probability > 0.5).astype(int), y=rng.normal(pick()))
    (row,) = found.differences.to_dataframe().itertuples()
    assert abs(row.difference - 1) < 3 * row.error and row.error < 0.1
    assert row.naive < 0.6


def test_draws_that_cannot_tell_clusters_apart_are_left_out_or_refused():
    rng = np.random.default_rng(9)
    draws, y = noisy(rng, 100), rng.normal(TRUTH)
    merged = draws.copy()
    merged[:5] = np.where(draws[:5] == 2, 1, draws[:5])
    found = pc.contrast(merged, TRUTH, y=y)
    assert (found.n_draws, found.n_left_out) == (100, 5)
    assert_allclose(found.estimates["estimate"], pc.contrast(draws[5:], TRUTH, y=y).estimates["estimate"])
    merged[:30] = np.where(draws[:30] == 2, 1, draws[:30])
    with pytest.raises(ValueError, match=r"30% of the draws.*clusters 1 and 2\. Join"):
        pc.contrast(merged, TRUTH, y=y)


def test_small_clusters_are_left_out_by_name_with_their_items():
    """As if their items were not there; the truth is estimated although what formed the clusters chooses them."""
    rng = np.random.default_rng(13)
    draws, y = noisy(rng, 20), rng.normal(TRUTH)
    partition = np.where(np.arange(90) < 3, [*"xyz"] * 30, np.array([*"abc"])[TRUTH])
    y[50] = np.nan
    found = pc.contrast(draws, partition, y=y)
    without = pc.contrast(draws[:, 3:], partition[3:], y=y[3:])
    assert (found.small, found.names) == (("x", "y", "z"), ("a", "b", "c"))
    xr.testing.assert_allclose(found.differences, without.differences)
    assert_allclose(found.weights[3:], without.weights)
    assert (found.labels.values[:3] == -1).all() and (found.weights[:3] == 0).all()
    assert "3 clusters (x, y, z) with fewer than 2 values, 3 items in all" in repr(found)
    assert "were left out" in found.in_words() and "left out" not in repr(without) + without.in_words()


def test_printed_shares_are_within_0_and_1():
    """Nobody of the second cluster has it, so that the estimate, and the interval of a difference, go beyond."""
    rng = np.random.default_rng(15)
    y = (TRUTH == 0) & (rng.random(90) < 0.98)
    found = pc.contrast(noisy(rng, 30, 0.3), noisy(rng, 1, 0.2)[0], y=y)
    table = found.to_dataframe()
    assert table["low"].min() < 0 and table["high"].max() > 1 and found.differences["low"].min() < -1
    shown = repr(found)
    assert "interval -1 to" in shown and "interval -1 to" in found.in_words()
    numbers = [float(number) for line in shown.splitlines()[-3:] for number in line.split()[2:5]]
    assert len(numbers) == 9 and 0 <= min(numbers) and max(numbers) <= 1


def test_used_data_are_described_and_not_tested():
    rng = np.random.default_rng(10)
    found = pc.contrast(noisy(rng, 20), TRUTH, y=rng.normal(TRUTH), used=True)
    assert np.isnan(found.differences[["p_value", "p_corrected", "naive_p_value"]].to_array()).all()
    assert "tests nothing" in repr(found) and "tests nothing" in found.in_words() and "p <" not in found.in_words()
    assert "tests nothing" not in repr(pc.contrast(noisy(rng, 20), TRUTH, y=rng.normal(TRUTH)))


def test_runs_are_said_to_be_no_posterior():
    rng = np.random.default_rng(11)
    found = pc.contrast(pc.as_runs(list(noisy(rng, 20))), TRUTH, y=rng.normal(TRUTH))
    assert "no posterior" in repr(found) and "no posterior" in found.in_words()


@pytest.mark.parametrize(
    ("partition", "y", "error", "message"),
    [
        (TRUTH, np.ones(3), ValueError, r"`y`.*90 items.*\(3,\)"),
        (TRUTH, np.where(TRUTH == 0, np.inf, 1.0), ValueError, r"`y` must be finite.*inf"),
        (TRUTH, ["a"] * 90, ValueError, r"`y`.*two categories"),
        (TRUTH, pd.date_range("2020", periods=90), TypeError, r"`y`.*dates to numbers"),
        (TRUTH, np.where(TRUTH > 0, np.nan, 1.0), ValueError, r"`partition`.*2 values of `y`.*1 of 3 clusters\. Join"),
        (np.zeros(90, int), np.arange(90.0), ValueError, r"`partition` must have two clusters.*1 of 1 cluster\."),
    ],
)
def test_refusals_name_the_argument_and_the_next_step(partition, y, error, message):
    with pytest.raises(error, match=message):
        pc.contrast(noisy(np.random.default_rng(12), 5), partition, y=y)


def test_noise_is_refused():
    runs = pc.as_runs([np.where(np.arange(90) < 3, -1, TRUTH)] * 5, noise=-1)
    with pytest.raises(ValueError, match="noise"):
        pc.contrast(runs, TRUTH, y=np.arange(90.0))
