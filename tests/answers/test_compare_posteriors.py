"""Two posteriors: distances that are 0 for equals, are found where they were put, and have honest errors."""

import re
from functools import cache, partial
from itertools import permutations

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.answers.compare import _are_near, _blocks, matched, transported
from posterior_consensus.results.words import RUNS
from posterior_consensus.runtime import executor
from posterior_consensus.search.local_search import OnDraws
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import GOOD, check, check_all, press_ctrl_c

TRUTH = np.repeat([0, 1, 2], 6)
EXACT = ["draws", "particles", "mean similarity", "rms similarity"]
POSITIVE = ["draws", "mean similarity", "rms similarity"]
compared = partial(pc.compare_posteriors, random_seed=1, progressbar=False)


def noisy(rng, truth, length=150, n_chains=2, noise=0.15):
    """Chains of draws around a partition."""
    shape = (n_chains, length, truth.size)
    return np.where(rng.random(shape) < noise, rng.integers(4, size=shape), truth)


def named(z, names):
    return xr.DataArray(z, dims=("chain", "draw", "obs"), coords={"obs": list(names)})


@cache
def two():
    """Posteriors that differ by two items, "d" and "j", which go elsewhere in the second."""
    rng, moved = np.random.default_rng(20180614), TRUTH.copy()
    moved[[3, 9]] = 2
    return tuple(named(noisy(rng, truth), "abcdefghijklmnopqr") for truth in (TRUTH, moved))


@cache
def of_two():
    return compared(*two())


def test_equal_posteriors_are_at_no_distance():
    found = compared(two()[0], two()[0])
    assert (found.distances[["value", "mcse"]].sel(measure=EXACT) == 0).all().to_array().all()
    assert float(found.distances["value"].sel(measure="energy")) < 0 and found.distances["p_value"].min() > 0.9
    assert (found.items[["difference", "mcse", "joined", "left"]] == 0).all().to_array().all()
    assert (found.items["by_chance"] > 0).all()
    assert (found.distances["by_chance"].sel(measure=POSITIVE) > 0).all()
    draws = [[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]]
    for seed in range(3):  # several particles are equally good
        found = pc.compare_posteriors(draws, draws, loss="binder", random_seed=seed, progressbar=False)
        assert (found.distances["value"].sel(measure=EXACT) == 0).all()


def test_halves_of_one_that_differ_as_much_as_the_two_are_a_finding(approved):
    rng = np.random.default_rng(4)
    truths = np.stack([TRUTH, np.roll(TRUTH, 3)])[:, np.newaxis]  # chains of one posterior in two places
    apart = np.where(rng.random((2, 80, 18)) < 0.05, 3, truths)
    found = compared(apart, noisy(rng, TRUTH, 80, noise=0.02), names=("apart", "narrow"))
    between = float(found.distances["value"].sel(measure="draws"))
    assert found.within.sel(posterior="apart") > between > 5 * found.within.sel(posterior="narrow")
    approved("verdicts_compare_posteriors", "halves of one differ", found.verdict)
    approved("verdicts_compare_posteriors", "posteriors differ", of_two().verdict)
    approved("verdicts_compare_posteriors", "too few draws", compared(apart[:1, 1:2], apart[:1]).verdict)


def slow(rng, stay, truth=TRUTH, noise=0.3, shape=(4, 250)):
    """Chains in which an item keeps its label of the draw before with a probability."""
    fresh = noisy(rng, truth, shape[1], shape[0], noise)
    moves = rng.random(fresh.shape) >= stay
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(shape[1])[:, np.newaxis], 0), axis=1)
    return np.take_along_axis(fresh, last, axis=1)


def smallest_p_value(found):
    of_all = found.distances["p_value"].dropna("measure").values, found.items["p_value"].values
    return np.concatenate(of_all).min()


def says_what_its_table_has(found):
    differ = smallest_p_value(found) <= 0.05
    return ("differ in" in found.verdict) == differ and ("No difference" in found.verdict) == (not differ)


def test_a_verdict_is_that_of_its_table():
    rng = np.random.default_rng(7)
    found = compared(*(noisy(rng, TRUTH, 200, noise=noise) for noise in (0.05, 0.6)))
    assert found.within.sel(posterior="b") > 0.5 * found.distances["value"].sel(measure="draws")
    assert found.distances["p_value"].sel(measure=["energy", "rms similarity"]).max() < 0.01
    assert "differ in partitions" in found.verdict and "similarities" in found.verdict
    assert says_what_its_table_has(found) and says_what_its_table_has(of_two())


@pytest.mark.slow
def test_verdicts_on_equal_on_slow_and_on_nearly_equal_chains(approved):
    rng = np.random.default_rng(7)
    diffuse, _ = noisy(rng, TRUTH, 200, noise=0.6), noisy(rng, TRUTH, 200)
    equal = compared(noisy(rng, TRUTH, 200, noise=0.6), diffuse)
    approved("verdicts_compare_posteriors", "equal", equal.verdict)
    rough = compared(slow(rng, 0.9), slow(rng, 0.9, np.roll(TRUTH, 2)))
    assert rough.ess.max() < 50
    approved("verdicts_compare_posteriors", "rough", rough.verdict)
    one = compared(slow(rng, 0.8, np.arange(18) % 6), slow(rng, 0.8, np.r_[1, np.arange(1, 18) % 6]))
    assert one.items["p_value"][0] < 0.05 < one.items["p_value"][2:6].min()
    assert all(map(says_what_its_table_has, (equal, rough, one)))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("stay", [(0.0, 0.0), (0.8, 0.8), (0.8, 0.0)])
def test_equal_posteriors_seldom_differ(stay):
    """At an effective sample size of about 70 a chain, or of 250; at most 5% of 60, and four standard errors."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng([45, seed])
        found.append(smallest_p_value(compared(*(slow(rng, one) for one in stay), n_draws=200, n_particles=1)))
    assert np.mean(np.array(found) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 60)


def test_blocks_are_stretches_of_chains_or_groups_of_chains():
    two_chains, many = (pc.as_partition_draws(np.zeros(shape, int)) for shape in ((2, 30, 3), (7, 4, 3)))
    stretches, groups = _blocks(two_chains, 5, 1.0), _blocks(many, 4, 1.0)
    assert [rows.tolist() for rows in stretches] == [list(range(k, k + 15)) for k in range(0, 60, 15)]
    assert [many.samples.chain[rows[::4]].tolist() for rows in groups] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [rows.size for rows in _blocks(two_chains, 5, 0.5)] == [8] * 4
    blocks = [draws.take(rows) for draws, own in ((two_chains, stretches), (many, groups)) for rows in own]
    near = _are_near(blocks, 4)
    assert np.argwhere(np.triu(near, 1)).tolist() == [[0, 1], [2, 3]] and near.diagonal().all()


def test_energy_is_the_mean_of_losses_between_blocks(rng):
    """Eight chains of one draw each, in four blocks of two chains."""
    one, other = (noisy_draws(rng, 8, 6, 3, 0.5) for _ in range(2))
    found = compared(one[:, np.newaxis], other[:, np.newaxis], n_particles=1)

    def losses(x, y):
        return np.array([[reference.vi(a, b) for b in y] for a in x])

    others = np.kron(1 - np.eye(4), np.ones((2, 2))).astype(bool)
    expected = losses(one, other).mean() - sum(losses(z, z)[others].mean() for z in (one, other)) / 2
    assert float(found.distances["value"].sel(measure="energy")) == pytest.approx(expected, rel=1e-10)


def test_similarities_of_many_items_are_compared_on_some(monkeypatch):
    whole = of_two().items["p_value"]
    monkeypatch.setattr("posterior_consensus.answers.compare._SIMILARITIES", 90)
    found = compared(*two())
    assert not found.items["p_value"].isnull().any() and (found.items["p_value"].sel(obs=["d", "j"]) < 0.05).all()
    assert not found.items["p_value"].identical(whole)


def test_names_and_errors_of_particles():
    found = compared(*two(), names=("old", "new"), n_particles=2)
    assert found.names == ("old", "new") == tuple(found.similarity["posterior"].values)
    new, old = (found.similarity.sel(posterior=name, drop=True) for name in ("new", "old"))
    xr.testing.assert_identical(found.difference, (new - old).rename("difference"))
    alone = pc.particles(two()[0], 2, random_seed=int(np.random.default_rng(1).integers(2**63)), progressbar=False)
    np.testing.assert_array_equal(found.weights_a["weight"], alone.weights)
    np.testing.assert_array_equal(found.weights_a["mcse"], alone.weights_mcse)
    np.testing.assert_array_equal(found.weights_a["ess"], alone.weights_ess)
    np.testing.assert_allclose(found.transport.sum("particle_a"), found.weights_b["weight"])


def test_columns_are_what_they_say():
    found = of_two()
    difference = np.subtract(*(reference.similarity(z.values.reshape(-1, 18)) for z in two()[::-1]))
    np.testing.assert_allclose(found.difference, difference, atol=1e-14)
    np.testing.assert_allclose(found.items["difference"], np.abs(difference).sum(axis=1) / 17, atol=1e-14)
    np.testing.assert_allclose(found.items["joined"] - found.items["left"], difference.sum(axis=1), atol=1e-12)
    table = found.to_dataframe()
    assert set(table.index[:2]) == {"d", "j"} and (table["difference"].diff()[1:] <= 0).all()
    chances = found.distances["by_chance"].dropna("measure").values
    assert re.findall("by chance ([0-9.]+)", repr(found)) == [f"{chance:.4g}" for chance in chances]
    assert (
        found.distances["p_value"].dropna("measure").sizes["measure"] == 3 and not found.items["p_value"].isnull().any()
    )
    pairs = difference[np.triu_indices(18, 1)]
    value = found.distances["value"]
    assert float(value.sel(measure="mean similarity")) == pytest.approx(np.abs(pairs).mean(), rel=1e-12)
    assert float(value.sel(measure="rms similarity")) == pytest.approx(np.sqrt(np.mean(pairs**2)), rel=1e-12)


def test_two_points_are_at_the_distance_of_their_partitions():
    one, other = np.tile([0, 0, 1, 1, 2], (20, 1)), np.tile([0, 1, 1, 2, 2], (30, 1))
    for loss in ("vi", "binder"):
        found = compared(one, other, loss=loss, n_particles=1)
        expected = pc.partition_loss(one[0], other[0], loss=loss)
        np.testing.assert_allclose(found.distances["value"][:3], expected, rtol=1e-12)  # energy, draws and particles
        np.testing.assert_allclose(found.distances["mcse"], 0.0, atol=1e-12)
        np.testing.assert_array_equal(found.within, 0.0)
        assert found.n_matched == 10 and float(found.transport[0, 0]) == pytest.approx(1.0)
    halves = np.array([one[0], other[0]])  # of one chain, its first and its second half
    found = compared(halves.repeat(20, axis=0), other, n_particles=1)
    assert float(found.within[0]) == pytest.approx(pc.partition_loss(*halves, loss="vi"))


def test_draws_are_matched_at_the_least_cost(rng):
    one, other = (noisy_draws(rng, 12, 6, 3, 0.5) for _ in range(2))
    found = compared(one, other, n_draws=6, n_particles=2)
    costs = np.array([[reference.vi(a, b) for b in other[::2]] for a in one[::2]])
    least = min(np.mean(costs[np.arange(6), list(to)]) for to in permutations(range(6)))
    assert float(found.distances["value"].sel(measure="draws")) == pytest.approx(least, rel=1e-10)


def test_potentials_prove_how_weights_are_moved_and_draws_matched(rng):
    for shape in ((3, 4), (7, 7)):
        weights, costs = [rng.dirichlet(np.ones(size)) for size in shape], rng.random(shape).round(1)  # with ties
        value, plan, *potentials = transported(costs, *weights)
        np.testing.assert_allclose(plan.sum(axis=1), weights[0], atol=1e-12)
        np.testing.assert_allclose(plan.sum(axis=0), weights[1], atol=1e-12)
        assert value == pytest.approx((costs * plan).sum())
        assert value == pytest.approx(weights[0] @ potentials[0] + weights[1] @ potentials[1])
    value, rows, columns = matched(costs)
    assert value == pytest.approx(rows.mean() + columns.mean(), abs=1e-12)
    assert (rows[:, np.newaxis] + columns <= costs + 1e-12).all()


def test_items_are_matched_by_name(rng):
    order = rng.permutation(18)
    found, mixed = of_two(), compared(two()[0], two()[1][..., order])
    np.testing.assert_allclose(mixed.difference, found.difference, atol=1e-14)
    xr.testing.assert_allclose(mixed.items, found.items, atol=1e-14)
    xr.testing.assert_allclose(mixed.distances, found.distances)


def test_weights_are_repeated_draws(rng):
    z, times, other = noisy(rng, TRUTH, 40, 1)[0], rng.integers(0, 4, size=40), noisy(rng, TRUTH, 100, 1)[0]
    both = pc.as_partition_draws(z, weights=times), np.repeat(z, times, axis=0)
    one, two = (compared(a, other, n_draws=15, n_particles=2) for a in both)
    np.testing.assert_allclose(one.similarity, two.similarity, atol=1e-12)
    np.testing.assert_allclose(one.items["difference"], two.items["difference"], atol=1e-12)
    np.testing.assert_allclose(*(found.distances["value"].sel(measure=EXACT) for found in (one, two)), rtol=1e-9)


def test_errors_are_the_spread_over_repetitions():
    rng = np.random.default_rng(11)
    truth, moved = np.repeat([0, 1], 4), np.array([0, 0, 0, 1, 1, 1, 1, 0])
    options = {"n_particles": 1, "n_draws": 30}
    found = [compared(noisy(rng, truth, 60), noisy(rng, moved, 60), **options) for _ in range(12)]
    for measure in ("draws", "mean similarity", "rms similarity"):
        values, errors = (
            np.array([float(one.distances[c].sel(measure=measure)) for one in found]) for c in ("value", "mcse")
        )
        assert 0.55 < errors.mean() / values.std(ddof=1) < 1.7, measure
    differences, errors = (np.array([one.items[c].values for one in found]) for c in ("difference", "mcse"))
    assert 0.85 < (errors.mean(axis=0) / differences.std(axis=0, ddof=1)).mean() < 1.15


def test_by_chance_is_what_samples_of_one_posterior_show():
    rng, options = np.random.default_rng(12), {"n_particles": 1, "n_draws": 50}
    found = [compared(noisy(rng, TRUTH, 100), noisy(rng, TRUTH, 100), **options) for _ in range(10)]
    value, chance = (
        np.mean([one.distances[name].sel(measure=POSITIVE) for one in found], axis=0) for name in ("value", "by_chance")
    )
    np.testing.assert_allclose(value, chance, rtol=0.15)
    items, by_chance = (np.mean([one.items[name] for one in found]) for name in ("difference", "by_chance"))
    assert items == pytest.approx(by_chance, rel=0.15)


def test_few_draws_have_unknown_errors():
    found = compared(GOOD[:2], GOOD[2:], n_particles=1)
    assert np.isnan(found.distances["mcse"]).all() and found.n_matched == 1
    assert np.isfinite(found.distances["value"].sel(measure=EXACT)).all() and "MCSE unknown" in repr(found)
    assert "too few effective draws" in found.verdict and "energy" not in repr(found)
    single = compared(GOOD[:1], GOOD[1:], n_particles=1)
    assert np.isnan(single.within[0]) and np.isfinite(single.distances["value"].sel(measure=EXACT)).all()


def test_the_plot():
    found = of_two()
    table = found.to_dataframe()
    matrix, items = found.plot(TRUTH, n_items=5)
    assert [text.get_text() for text in items.get_yticklabels()] == list(table.index[:5])
    np.testing.assert_allclose(items.containers[0].lines[0].get_xdata(orig=False), table["difference"][:5])
    shown = matrix.images[0].get_array()
    assert shown[:6, :6].mean() < -0.1 and np.abs(shown).max() == pytest.approx(np.abs(found.difference).max())
    check(lambda n: found.plot(n_items=n), 0, ValueError, ["`n_items`", "at least 1"])


def test_bad_arguments():
    others = [
        (GOOD[:, :3], ValueError, "`b` must label the same 4 items; got 3"),
        (named(GOOD[np.newaxis], "abce"), ValueError, "`b` must be of the same items", "coordinates of 'obs'"),
        (pc.as_pair_similarity(np.eye(4)), ValueError, "needs posterior draws"),
    ]
    check_all(lambda b: pc.compare_posteriors(named(GOOD[np.newaxis], "abcd"), b), others)
    options = [
        ({"loss": "one_minus_ari"}, ValueError, "`loss` must be a metric", "a distance", "got 'one_minus_ari'"),
        ({"names": ("a",)}, TypeError, "`names` must be two strings", "got ('a',)"),
        ({"names": "ab"}, TypeError, "`names` must be two strings"),
        ({"names": ("a", "a")}, ValueError, "`names` must differ; got 'a' twice"),
        ({"n_draws": 0}, ValueError, "`n_draws` must be at least 1; got 0"),
        ({"n_particles": 0}, ValueError, "`n_particles` must be"),
    ]
    check_all(lambda some: pc.compare_posteriors(GOOD, GOOD, **some), options)


@pytest.mark.parametrize("where", [(OnDraws, "_descend"), (executor, "wait")])
def test_ctrl_c_ends_the_search_for_particles_of_both(where, monkeypatch):
    assert of_two().stopped == "" and "Ctrl-C" not in repr(of_two())
    calls = press_ctrl_c(monkeypatch, *where, 3)
    with pytest.warns(UserWarning, match="interrupted"):
        found = compared(*two())
    assert len(calls) < 20 and found.stopped == "interrupted" and "Ctrl-C ended" in repr(found)
    np.testing.assert_array_equal(found.similarity, of_two().similarity)
    assert pc.results.PosteriorComparison.from_dataset(found.to_dataset()).stopped == "interrupted"


@pytest.mark.parametrize("shape", [(1, 400), (4, 200)])
def test_draws_without_weight_do_not_hide_a_difference(shape, rng):
    weights = np.zeros(shape)
    weights[:, -shape[1] // 4 :] = 1
    both = [noisy(rng, TRUTH, shape[1], shape[0], noise) for noise in (0.05, 0.6)]
    found = pc.compare_posteriors(*(pc.as_partition_draws(z, weights=weights) for z in both), n_particles=1)
    assert smallest_p_value(found) < 0.05


def test_runs_are_compared_without_words_of_chains():
    rng = np.random.default_rng(1)

    def runs(n_runs, truth):
        labels = np.where(rng.random((n_runs, 12)) < 0.1, rng.integers(3, size=(n_runs, 12)), truth)
        return pc.as_runs(labels)

    one, other = np.repeat([0, 1, 2], 4), np.repeat([0, 1], 6)
    compared = [
        pc.compare_posteriors(runs(60, one), runs(n, truth), n_particles=1, random_seed=1, progressbar=False)
        for n, truth in ((60, one), (60, other), (20, one))
    ]
    equal, differ, few = (found.verdict for found in compared)
    assert compared[0].words is RUNS and "between the runs of a and of b is beyond chance" in equal
    assert differ.startswith("The runs of a and of b differ in partitions") and "rough" not in differ
    assert "b has an effective number of runs of 20" in few and "`groups` of `as_runs`" in few
