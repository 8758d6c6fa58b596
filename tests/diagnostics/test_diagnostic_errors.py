"""Monte Carlo standard errors of the similarity matrix and of differences of expected loss."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

import posterior_consensus as pc
from benchmarks.errors import CASES, chains, ess_a_chain, ratios
from tests import reference
from tests.catalogue.posteriors import associations, sticky_chains, two_modes, unequal_chains
from tests.helpers import CENTRE, GOOD, check


@pytest.mark.parametrize("weighted", [False, True])
def test_similarity_mcse_is_the_definition(rng, weighted):
    draws = unequal_chains(rng, (30, 150), 70)
    weights = rng.exponential(size=180) if weighted else np.full(180, 1 / 180)
    weights /= weights.sum()
    draws = pc.as_partition_draws(draws, weights=weights)
    together = draws.labels[:, :, np.newaxis] == draws.labels[:, np.newaxis]
    psm = np.average(together, axis=0, weights=weights)
    batches = np.array_split(np.arange(30), 5) + np.array_split(np.arange(30, 180), 10)
    parts = np.array([np.tensordot(weights[b], together[b] - psm, 1) for b in batches])
    if weighted:  # so far does leaving out the batch move the mean
        parts *= [[[(1 - b.size / 180) / (1 - weights[b].sum())]] for b in batches]
    expected = reference.probability_errors(psm, np.sqrt(15 / 14 * (parts**2).sum(axis=0)))
    np.fill_diagonal(expected, 0.0)
    found = pc.diagnostics.similarity_mcse(draws)
    assert found.dims == ("obs", "obs_bis") and found.name == "psm_mcse"
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_array_equal(np.diag(found), 0)


def test_similarity_mcse_of_probabilities(rng):
    p = rng.dirichlet(np.ones(3), size=(2, 36, 5))
    flat = p.reshape(72, 5, 3)
    together = np.einsum("tik,tjk->tij", flat, flat)
    together[:, range(5), range(5)] = 1.0
    batches = np.array_split(np.arange(36), 6) + np.array_split(np.arange(36, 72), 6)
    parts = np.array([(together[b] - together.mean(axis=0)).sum(axis=0) / 72 for b in batches])
    found = pc.diagnostics.similarity_mcse(pc.as_allocation_probabilities(p))
    expected = reference.probability_errors(together.mean(axis=0), np.sqrt(12 / 11 * (parts**2).sum(axis=0)))
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("stay", [0.0, 0.9])
def test_similarity_mcse_is_near_arviz_s(rng, stay):
    chains = sticky_chains(rng, 4, 2500, 6, stay)
    found = pc.diagnostics.similarity_mcse(chains).values[np.triu_indices(6, 1)]
    together = associations(chains.reshape(-1, 6)).T.reshape(-1, 4, 2500)
    expected = array_stats.mcse(together, method="mean")
    np.testing.assert_allclose(found, expected, rtol=0.35)
    assert found.mean() == pytest.approx(expected.mean(), rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("case", [name for name, about in CASES.items() if ess_a_chain(*about) > 50])
def test_errors_are_the_spread_over_repetitions(case):
    stay, length, modes = CASES[case]
    for ratio in ratios(np.random.default_rng(2), stay, length, modes, 60):
        assert 0.9 < ratio < 1.15


@pytest.mark.slow
def test_chance_explains_how_far_slow_chains_of_one_posterior_are_apart():
    rng = np.random.default_rng(3)
    columns = []
    for _ in range(20):
        a, b = (chains(rng, 0.9, 1_000, modes=False) for _ in range(2))
        found = pc.compare_posteriors(a, b, n_draws=10, n_particles=1, random_seed=1, progressbar=False)
        columns.append(found.distances.sel(measure="rms similarity")[["value", "by_chance"]].to_array().values)
    value, chance = np.mean(columns, axis=0)
    assert 0.9 < chance / value < 1.15


def test_similarity_mcse_knows_that_chains_disagree(rng):
    apart = two_modes(rng, [[0, 0, 1, 1], [0, 1, 0, 1]], 400)
    mixed = rng.permutation(apart.reshape(-1, 4)).reshape(apart.shape)
    far, near = (pc.diagnostics.similarity_mcse(z).values[0, 1] for z in (apart, mixed))
    assert far > 3 * near > 0


def test_similarity_mcse_of_few_draws_or_certain_pairs():
    assert np.isnan(pc.diagnostics.similarity_mcse([[0, 0, 1], [0, 1, 1], [0, 0, 1]]).values).all()
    found = pc.diagnostics.similarity_mcse([[0, 0, 1, 2], [0, 0, 1, 1], [0, 0, 1, 1]] * 15).values
    assert found[0, 0] == 0 < found[0, 1] < found[2, 3]
    assert found[0, 2] == pytest.approx(found[0, 1])


def test_difference_has_arviz_s_error_of_the_difference(rng):
    chains = sticky_chains(rng, 2, 200, 8, 0.5)
    partitions = {"a": np.zeros(8, int), "b": np.arange(8), "c": [0, 0, 0, 0, 1, 1, 1, 1]}
    found = pc.compare_partitions(chains, partitions)
    losses = {
        name: np.array([[reference.vi(p, z) for z in chain] for chain in chains]) for name, p in partitions.items()
    }
    means = {name: trace.mean() for name, trace in losses.items()}
    names = sorted(means, key=means.get)
    table = found.to_dataframe()
    assert found.best == names[0] and table.index.tolist() == names
    np.testing.assert_allclose(table["expected_loss"], [means[name] for name in names])
    np.testing.assert_allclose(table["difference"], [means[name] - means[names[0]] for name in names], atol=1e-12)
    for name in names[1:]:
        error = float(array_stats.mcse(losses[name] - losses[names[0]], method="mean"))
        assert table.loc[name, "difference_mcse"] == pytest.approx(error, rel=1e-9)
        beyond = means[name] - means[names[0]] - 2 * found.excess > 2 * np.hypot(error, 2 * found.excess)
        assert table.loc[name, "clear"] == beyond
    assert table.loc[names[0], "difference_mcse"] == 0 and not table.loc[names[0], "clear"]


def test_what_the_draws_do_not_tell_apart_is_said(rng):
    draws = two_modes(rng, [[0, 0, 1, 1]], 100, 0.5, [0, 0, 0, 1])
    found = pc.compare_partitions(draws, {"one": [0, 0, 1, 1], "other": [0, 0, 0, 1], "far": [0, 1, 0, 1]})
    assert found.table["clear"].sel(partition=["one", "other", "far"]).values.tolist() == [False, False, True]
    second = found.to_dataframe().index[1]
    assert any(line.split() == ["not", "clearly", "worse", second] for line in repr(found).splitlines())
    listed = pc.compare_partitions(draws, [[0, 0, 1, 1], [0, 1, 0, 1]])
    assert listed.best == 0 and listed.to_dataframe().index.tolist() == [0, 1]


def test_a_partition_that_the_draws_chose_is_not_called_clearly_better_for_that(rng):
    """Labels of pure chance: the partition of minimum expected loss is best by chance alone."""
    draws = rng.integers(2, size=(4, 20, 20))
    best = pc.consensus_partition(draws, loss="binder", n_clusters=2, random_seed=1, progressbar=False)
    found = pc.compare_partitions(draws, {"chosen": best, "other": np.repeat([0, 1], 10)}, loss="binder")
    other = found.table.sel(partition="other")
    assert found.best == "chosen" and other["difference"] > 2 * other["difference_mcse"]
    assert found.excess > 0 and not other["clear"]
    assert "a partition that these draws chose looks better by about" in repr(found)
    alike = pc.compare_partitions(draws, [best, best], loss="binder")
    assert np.isnan(alike.excess) and not alike.table["clear"].any() and "chose" not in repr(alike)


def test_bad_partitions_to_compare():
    for partitions, error, part in (
        ({}, ValueError, "at least one partition; got none"),
        ([], ValueError, "at least one partition; got none"),
        ([[0, 1]], ValueError, "must label all 4 items"),
        ({1: CENTRE, "1": [0, 1, 1, 1]}, ValueError, "names that differ"),
        ("ab", TypeError, "got str"),
        (np.zeros(4, int), TypeError, "got ndarray"),
    ):
        check(lambda given: pc.compare_partitions(GOOD, given), partitions, error, ["`partitions`", part])
