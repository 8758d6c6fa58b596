"""The random perturbation model: its likelihood, its maximum, and what it tells of the draws."""

from itertools import permutations, product

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.consensus.perturbation import em
from posterior_consensus.consensus.perturbation.draws import ModelDraws, model_draws
from posterior_consensus.consensus.perturbation.em import fitted_model
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, around, noisy_draws
from tests.helpers import check_all


def fit(draws, n_clusters=None, **options):
    return pc.consensus.random_perturbation_em(draws, n_clusters, random_seed=1, **options)


def modes_of(draws, n_modes="auto", **options):
    return pc.consensus.fit_modes(draws, n_modes, random_seed=1, progressbar=False, **options)


def model(draws, counts=None, per_draw=False):
    draws = pc.as_partition_draws(draws)
    counts = np.ones(draws.n_draws) if counts is None else np.asarray(counts, float)
    return ModelDraws(draws.backend, draws.n_clusters, counts, per_draw)


def log_probabilities(draws, truth, noise, n_clusters):
    """Logarithm of the probability of each draw given the true clusters: the mean over all names of these."""
    logs = []
    for draw, p in zip(draws, noise, strict=True):
        agree = [(np.array(names)[truth] == draw).sum() for names in permutations(range(n_clusters))]
        each = [(1 - p + p / n_clusters) ** a * (p / n_clusters) ** (draw.size - a) for a in agree]
        logs.append(np.log(np.mean(each, axis=0)))
    return np.array(logs)


def renamed(rng, draws, n_labels):
    return np.array([rng.permutation(n_labels)[row] for row in draws])


def same_model(rng, n_items, n_draws, n_clusters, noise):
    truth = rng.permutation(np.arange(n_items) % n_clusters)
    return truth, renamed(rng, around(rng, truth, n_draws, noise), n_clusters)


@pytest.mark.parametrize(("n_clusters", "seed"), [(2, 0), (2, 1), (3, 2), (3, 3)])
def test_the_maximum_is_that_of_all_partitions_and_noises(n_clusters, seed):
    _, draws = same_model(np.random.default_rng(seed), 6, 16, n_clusters, 0.25)
    draws = pc.as_partition_draws(draws).labels
    grid = np.arange(0.02, 0.9, 0.02)
    partitions = [np.array(z) for z in product(range(n_clusters), repeat=6) if list(z) == list(reference.canonical(z))]
    values = np.array([log_probabilities(draws, z, [grid] * 16, n_clusters).sum(axis=0) for z in partitions])
    best, p = np.unravel_index(values.argmax(), values.shape)
    found = fit(draws, n_clusters)
    assert reference.same(found.labels.values, partitions[best])
    assert found.noise == pytest.approx(grid[p], abs=0.05)


@pytest.mark.parametrize("per_draw", [False, True])
def test_the_bound_is_below_the_likelihood_and_near(per_draw):
    _, draws = same_model(np.random.default_rng(7), 6, 12, 2, 0.15)
    draws = pc.as_partition_draws(draws).labels
    found = fitted_model(
        model(draws, per_draw=per_draw), 2, fewer=False, n_starts=5, most_steps=500, rng=np.random.default_rng(1)
    )
    shares, noise = found.state.parameters.shares, found.state.parameters.noise
    logs = [
        np.log(shares[list(z)]).sum() + log_probabilities(draws, np.array(z), noise, 2).sum()
        for z in product(range(2), repeat=6)
    ]
    exact = np.logaddexp.reduce(logs)
    assert exact - 1 < found.state.log_likelihood <= exact + 1e-9
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize(("noise", "n_clusters"), [("shared", 3), ("shared", 12), ("per_draw", 3)])
def test_no_step_lowers_the_objective(noise, n_clusters):
    rng = np.random.default_rng(2)
    draws = np.concatenate([rng.integers(k, size=(5, 20)) for k in (2, 3, 6, 13)])
    weighted = pc.as_partition_draws(draws, weights=rng.exponential(size=20))
    for data in (draws, weighted):
        found = fit(data, n_clusters, noise=noise, n_starts=2, max_steps=1000)
        assert np.diff(found.trace).min(initial=0) > -1e-8
        assert found.converged
    for exact in (None, np.full(20, 0.5)):
        start = np.random.default_rng(3).dirichlet(np.ones(n_clusters), 20)
        _, trace, _ = em.climb(model(draws, per_draw=noise == "per_draw"), start, exact, 200, 1e-6)
        assert len(trace) > 3 and np.diff(trace).min() > -1e-8


def test_a_fixed_point_stays():
    _, draws = same_model(np.random.default_rng(3), 40, 20, 4, 0.5)
    found = fitted_model(model(draws), 4, fewer=False, n_starts=3, most_steps=500, rng=np.random.default_rng(1))
    state = em.expect(model(draws), em.maximize(model(draws), found.state.memberships, found.state.parameters.noise))
    np.testing.assert_allclose(state.memberships, found.state.memberships, atol=2e-6)


def test_tables_in_blocks_are_sums_of_memberships_over_clusters(rng):
    draws, memberships = pc.as_partition_draws(noisy_draws(rng, 6, 30, 4, 0.5)), rng.dirichlet(np.ones(3), 30)
    expected = [memberships[row == k].sum(axis=0) for row in draws.labels for k in range(row.max() + 1)]
    table = model_draws(draws, None, in_blocks=True).table(memberships)
    np.testing.assert_allclose(table, expected, atol=1e-9)


def test_counts_are_repeated_draws():
    rng = np.random.default_rng(4)
    draws, counts = noisy_draws(rng, 8, 15, 3, 0.4), rng.integers(1, 4, size=8)
    start = rng.dirichlet(np.ones(3), 15)
    once, _, _ = em.climb(model(draws, counts), start, np.full(8, 0.5), 50, 1e-9)
    repeated, _, _ = em.climb(model(np.repeat(draws, counts, axis=0)), start, np.full(counts.sum(), 0.5), 50, 1e-9)
    np.testing.assert_allclose(once.memberships, repeated.memberships, atol=1e-9)
    assert once.log_likelihood == pytest.approx(repeated.log_likelihood, rel=1e-12)


def test_weighted_draws_count_as_their_effective_number():
    rng = np.random.default_rng(4)
    draws = np.concatenate([noisy_draws(rng, 4, 15, 3, 0.4), rng.integers(8, size=(4, 15))])  # more clusters
    weights = np.array([3.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    found = fit(pc.as_partition_draws(draws, weights=weights), 3)
    some = fit(pc.as_partition_draws(draws[:4], weights=weights[:4]), 3)
    np.testing.assert_array_equal(found.memberships, some.memberships)
    assert found.objectives.tolist() == some.objectives.tolist()
    assert np.isnan(found.draw_noise.values[4:]).all() and found.noise == pytest.approx(some.noise, rel=1e-12)
    assert "nan" not in repr(found)
    equal = fit(pc.as_partition_draws(draws[:4]), 3)
    assert some.log_likelihood / equal.log_likelihood == pytest.approx(3 / 4, abs=0.25)  # 36 / 12 draws, not 4


@pytest.mark.parametrize("noise", ["shared", "per_draw"])
def test_draws_of_hardly_any_weight_matter_little(noise):
    rng = np.random.default_rng(0)
    _, draws = same_model(rng, 60, 30, 4, 0.5)
    others = rng.integers(12, size=(570, 60))  # with many clusters, and more than the starts are tried on
    data = pc.as_partition_draws(np.concatenate([draws, others]), weights=np.repeat([1, 1e-8], [30, 570]))
    found, some = fit(data, noise=noise), fit(draws, noise=noise)
    assert reference.same(found.labels.values, some.labels.values)
    assert found.noise == pytest.approx(some.noise, abs=1e-4)
    assert found.error_rate == pytest.approx(some.error_rate, abs=1e-4)
    if noise == "shared":
        assert modes_of(data, 1).evidence[1] == pytest.approx(modes_of(draws, 1).evidence[1], abs=0.01)


def test_too_many_clusters_are_left_out():
    truth, draws = same_model(np.random.default_rng(5), 100, 20, 6, 0.5)
    for n_clusters in (None, 6, 10):
        found = fit(draws, n_clusters)
        assert found.n_clusters == 6 and found.noise == pytest.approx(0.5, abs=0.05)
        assert pc.losses.misclassification_distance(found.labels.values, truth) < 0.05


def test_labels_that_no_cluster_stands_for():
    rng = np.random.default_rng(6)
    truth = rng.integers(3, size=80)
    draws = around(rng, truth, 40, 0.4, 7)  # the noise has more labels than there are clusters
    for found in (fit(draws, 3), fit(draws, 7), fit(draws)):
        assert found.n_clusters == 3 and reference.same(found.labels.values, truth)
        assert found.noise == pytest.approx(0.4, abs=0.04)


def test_order_of_the_items_does_not_matter():
    rng = np.random.default_rng(8)
    _, draws = same_model(rng, 60, 30, 4, 0.4)
    order = rng.permutation(60)
    one, moved = fit(draws), fit(draws[:, order])
    assert reference.same(one.labels.values[order], moved.labels.values)
    assert moved.noise == pytest.approx(one.noise, abs=1e-6)


def test_draws_of_one_cluster_count_for_little_noise():
    draws = np.zeros((40, 10), int)
    draws[:4, 3] = 1
    found = fit(draws, 2)
    assert found.n_clusters == 1 and found.noise < 0.06


def test_a_noise_for_each_draw_tells_good_draws_from_bad():
    rng = np.random.default_rng(9)
    truth = rng.integers(4, size=150)
    planted = np.repeat([0.2, 0.5, 0.95], [6, 6, 24])
    draws = renamed(rng, around(rng, truth, 36, planted[:, np.newaxis]), 4)
    found = fit(draws, 4, noise="per_draw")
    noise = found.draw_noise.values
    np.testing.assert_allclose([noise[:6].mean(), noise[6:12].mean()], [0.2, 0.5], atol=0.06)
    assert noise[:6].max() < noise[6:12].min() and noise[6:12].max() < noise[12:].min()
    assert pc.losses.misclassification_distance(found.labels.values, truth) < 0.02
    assert np.ptp(fit(draws, 4).draw_noise.values) == 0


def test_the_error_rate_is_near_the_error():
    rng = np.random.default_rng(10)
    estimated, made = [], []
    for _ in range(6):
        truth, draws = same_model(rng, 120, 15, 5, 0.65)
        found = fit(draws, 5)
        estimated.append(found.error_rate)
        made.append(pc.losses.misclassification_distance(found.labels.values, truth))
    assert np.mean(estimated) == pytest.approx(np.mean(made), abs=0.02) and np.mean(made) > 0.005


def test_an_item_has_no_say_in_its_own_matchings():
    rng = np.random.default_rng(11)
    _, draws = same_model(rng, 12, 8, 3, 0.5)
    draws = model(draws)
    state, _, _ = em.climb(draws, np.eye(3)[draws.labels.values[0] % 3], np.full(8, 0.5), 100, 1e-6)
    assert em.held_out_memberships(draws, state).max(axis=1).mean() < state.memberships.max(axis=1).mean()


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    for noise, n_clusters in product(["shared", "per_draw"], [None, draws.shape[1]]):
        found = fit(draws, n_clusters, noise=noise)
        np.testing.assert_allclose(found.memberships.sum("consensus_cluster"), 1, atol=1e-12)
        assert np.isfinite(found.log_likelihood) and 0 < found.noise < 1 and 0 <= found.error_rate < 1
    modes = modes_of(draws)
    np.testing.assert_allclose(modes.memberships.sum("consensus_cluster"), 1, atol=1e-12)
    np.testing.assert_allclose(modes.responsibilities.sum("mode"), 1, atol=1e-12)
    assert np.isfinite(modes.log_likelihood)


def test_many_items_are_found_from_a_sample():
    truth, draws = same_model(np.random.default_rng(12), 3000, 250, 5, 0.6)
    truth[:12], draws[:, :12] = 5, np.where(np.random.default_rng(1).random((250, 12)) < 0.5, 5, draws[:, :12])
    found = fit(draws, 6)
    assert reference.same(found.labels.values, truth)


def test_result_is_on_the_users_items_and_what_the_method_finds():
    labels = noisy_draws(np.random.default_rng(13), 12, 8, 2, 0.3).reshape(2, 6, 8)
    coords = {"city": list("abcdefgh"), "chain": [4, 7]}
    data = xr.DataArray(labels, dims=("chain", "draw", "city"), coords=coords, name="z")
    found = fit(data, 2)
    np.testing.assert_array_equal(found.labels["city"], list("abcdefgh"))
    np.testing.assert_array_equal(found.draw_noise["chain"], [4] * 6 + [7] * 6)
    assert found.memberships.dims == ("city", "consensus_cluster")
    assert found.to_dataframe()["size"].sum() == 8
    assert "8 cities in 2 clusters" in repr(found) and "expected error" in found._repr_html_()
    result = pc.consensus_partition(data, method="rpm_em", n_clusters=2, random_seed=1, progressbar=False)
    np.testing.assert_array_equal(result.labels, found.labels)
    assert result.info.noise == found.noise and result.info.error_rate == found.error_rate
    assert result.info.trace == found.trace.tolist() and result.info.objective == found.trace[-1]
    assert result.info.n_iter == len(found.trace) and result.info.converged


def two_truths(rng, n_items, n_draws, n_clusters, noise, share):
    truths = rng.integers(n_clusters, size=(2, n_items))
    mode = (rng.random(n_draws) < share).astype(int)
    random = rng.integers(n_clusters, size=(n_draws, n_items))
    draws = np.where(rng.random((n_draws, n_items)) < noise, random, truths[mode])
    return truths, mode, renamed(rng, draws, n_clusters)


@pytest.mark.parametrize(("noise", "share", "n_modes"), [(0.3, 0.4, 2), (0.5, 0.3, "auto")])
def test_two_modes_are_found(noise, share, n_modes):
    truths, mode, draws = two_truths(np.random.default_rng(14), 80, 60, 4, noise, share)
    found = modes_of(draws, n_modes)
    assert found.n_modes == 2
    assert reference.same(found.responsibilities.values.argmax(axis=1), mode)
    order = np.argsort(np.bincount(mode))[::-1]  # the larger mode comes first
    np.testing.assert_allclose(found.shares, np.bincount(mode)[order] / 60, atol=0.01)
    np.testing.assert_allclose(found.noise, noise, atol=0.05)
    for labels, truth in zip(found.labels.values, truths[order], strict=True):
        assert pc.losses.misclassification_distance(labels, truth) < 0.04
    assert np.diff(found.trace).min(initial=0) > -1e-6


def test_modes_of_many_items_are_fitted_to_some_and_then_to_all(monkeypatch):
    draws = two_truths(np.random.default_rng(14), 80, 60, 4, 0.3, 0.4)[2]
    of_all = modes_of(draws, 2)
    monkeypatch.setattr(em, "_ITEMS", 40)
    found = modes_of(draws, 2)
    np.testing.assert_array_equal(found.labels, of_all.labels)
    np.testing.assert_allclose(found.memberships, of_all.memberships, atol=1e-3)
    np.testing.assert_allclose(found.noise, of_all.noise, atol=1e-4)


@pytest.mark.parametrize("n_modes", [2, "auto"])
def test_draws_of_weight_0_are_of_no_mode(n_modes):
    rng = np.random.default_rng(17)
    draws = two_truths(rng, 30, 20, 3, 0.1, 0.5)[2]
    draws = np.concatenate([draws, rng.integers(8, size=(10, 30))])  # more clusters than those that count
    data = pc.as_partition_draws(draws, weights=np.repeat([1, 0], [20, 10]))
    found, some = (modes_of(d, n_modes, n_starts=1) for d in (data, draws[:20]))
    xr.testing.assert_identical(found.memberships, some.memberships)
    np.testing.assert_array_equal(found.responsibilities[:20], some.responsibilities)
    assert np.isnan(found.responsibilities[20:]).all() and "100% of them in one mode" in repr(found)
    alone = pc.as_partition_draws(draws, weights=np.arange(30) == 3)
    assert modes_of(alone, n_modes).n_modes == 1


def test_one_mode_stays_one():
    truth, draws = same_model(np.random.default_rng(15), 80, 60, 4, 0.5)
    found = modes_of(draws)
    assert found.n_modes == 1 and list(found.evidence) == [1, 2] and found.evidence[1] >= found.evidence[2]
    assert pc.losses.misclassification_distance(found.labels.values[0], truth) < 0.04
    assert found.noise.item() == pytest.approx(fit(draws).noise, abs=1e-3)


def test_modes_have_clusters_of_their_own():
    two, five = np.arange(40) % 2, np.arange(40) // 8
    rng = np.random.default_rng(16)
    draws = np.array([rng.permutation(6)[np.where(rng.random(40) < 0.1, 0, z)] for z in [two] * 10 + [five] * 20])
    found = modes_of(xr.DataArray(draws, dims=("sample", "city")), 2)
    assert found.n_clusters.values.tolist() == [5, 2]
    assert reference.same(found.labels.values[0], five) and reference.same(found.labels.values[1], two)
    assert found.memberships.dims == ("mode", "city", "consensus_cluster")
    assert "2 modes of 40 cities" in repr(found) and "noise" in found._repr_html_()


def test_bad_arguments():
    em_refuses = [
        ({"n_clusters": 0}, ValueError, "`n_clusters`", "at least 1", "got 0"),
        ({"max_clusters": 2.0}, TypeError, "`max_clusters`", "integer", "got 2.0"),
        ({"noise": "both"}, ValueError, "`noise`", "'shared', 'per_draw'", "'both'"),
        ({"n_starts": 0}, ValueError, "`n_starts`", "at least 1", "got 0"),
        ({"max_steps": "9"}, TypeError, "`max_steps`", "integer", "'9'"),
    ]
    more_than_most = ({"n_clusters": 3, "max_clusters": 2}, ValueError, "`n_clusters`", "`max_clusters`", "3 and 2")
    modes_refuse = [
        ({"n_modes": "all"}, ValueError, "`n_modes`", "integer or 'auto'", "'all'"),
        ({"n_modes": 0}, ValueError, "`n_modes`", "at least 1", "got 0"),
    ]
    draws = [[0, 1, 2], [0, 0, 1]]
    check_all(lambda given: pc.consensus.random_perturbation_em(draws, **given), [*em_refuses, more_than_most])
    check_all(lambda given: pc.consensus.fit_modes(draws, **given), [*modes_refuse, more_than_most])
