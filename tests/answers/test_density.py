from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

import posterior_consensus as pc
from posterior_consensus.answers import density as density_file
from posterior_consensus.answers.density import default_bandwidth, draws_worth_one, to_higher
from posterior_consensus.ensemble.samples import ChainSamples
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws, sticky_chains
from tests.helpers import GOOD, ROWS, check, check_all

ONE, OTHER = np.repeat([0, 1, 2, 3], 8), np.where(np.arange(32) < 16, np.arange(32) % 2, 2)
density_of = partial(pc.partition_density, random_seed=1)


def two_answers(rng, n_draws, share=0.6, noise=0.1):
    """Chains that visit two partitions and perturb them."""
    at = np.where(rng.random((4, n_draws, 1)) < share, ONE, OTHER)
    return np.where(rng.random(at.shape) < noise, rng.integers(4, size=at.shape), at)


@cache
def of_two_answers():
    draws = two_answers(np.random.default_rng(2), 100)
    return draws, density_of(draws)


def score_of(partition, draws, loss, bandwidth, weights):
    return np.average([np.exp(-reference.LOSSES[loss](partition, draw) / bandwidth) for draw in draws], weights=weights)


@pytest.mark.parametrize("loss", ["vi", "one_minus_ari"])
def test_definition(loss):
    rng = np.random.default_rng(1)
    training, calibration = noisy_draws(rng, 25, 8, 3, 0.4), noisy_draws(rng, 18, 8, 3, 0.4)
    asked = noisy_draws(rng, 6, 8, 3, 0.8)
    weights = rng.integers(0, 4, 25) if loss == "one_minus_ari" else np.ones(25)
    draws = pc.as_partition_draws(training, weights=weights)
    density = density_of(draws, loss=loss, calibration=calibration, bandwidth=0.7)
    scores = np.array([score_of(z, training, loss, 0.7, weights) for z in calibration])
    np.testing.assert_allclose(density.scores, scores, rtol=1e-12)
    own = np.array([score_of(z, training, loss, 0.7, weights) for z in asked])
    np.testing.assert_allclose(density.score(asked), own, rtol=1e-12)
    p_values = [(1 + np.sum(scores <= s * (1 + 1e-9))) / 19 for s in own]
    np.testing.assert_allclose(density.p_value(asked), p_values, rtol=1e-12)
    for prob in (0.3, 0.5, 0.9):
        inside = np.array(p_values) > 1 - prob + 1e-9
        np.testing.assert_array_equal(density.contains(asked, prob), inside)
        np.testing.assert_array_equal(own >= density.least_score(prob) * (1 - 1e-9), inside)
        assert density.contains(asked[0], prob).item() is bool(inside[0])


@pytest.mark.parametrize(("loss", "seed"), [("vi", 0), ("binder", 1), ("vi", 2)])
def test_most_typical_of_all_partitions(loss, seed):
    draws = random_draws(np.random.default_rng(seed), 80, 6, 4)
    density = density_of(draws, loss=loss)
    best = density.score(np.array(list(reference.partitions(6)))).values.max()
    assert density.score(density.labels).item() == pytest.approx(best, rel=1e-12)
    assert density.modes["score"].values.max() == density.score(density).item()


def test_one_answer_is_one_mode_and_two_are_two():
    _, density = of_two_answers()
    np.testing.assert_array_equal(density.modes, [ONE, OTHER])
    for part in ("2 separated modes", "exp(-VI / ", "200 draws, every one", "p-values are at least 0.0049"):
        assert part in repr(density)
    highest, other = sorted(density.plot().collections[1].get_offsets().tolist(), reverse=True)
    assert highest[1] == density.to_higher.max()
    assert other[1] == pytest.approx(pc.partition_loss(ONE, OTHER, loss=density.loss))
    np.testing.assert_allclose(density.modes["weight"], [0.6, 0.4], atol=0.05)
    np.testing.assert_array_equal(density.labels, ONE)
    assert density.contains([ONE, OTHER], 0.5).values.all()
    assert not density.contains([np.arange(32), np.arange(32) % 3], 0.95).values.any()
    alone = density_of(two_answers(np.random.default_rng(5), 60, share=1.0))
    np.testing.assert_array_equal(alone.modes, [ONE])


def test_to_higher():
    losses = np.array([[0, 3, 1, 9], [3, 0, 2, 5], [1, 2, 0, 4], [9, 5, 4, 0]], float)
    np.testing.assert_array_equal(to_higher(np.array([0.4, 0.9, 0.4, 0.1]), losses), [3, 5, 1, 4])


def test_weighted_p_value_counts_the_largest_weight_for_the_partition():
    rng = np.random.default_rng(7)
    training, held_out = noisy_draws(rng, 30, 7, 3, 0.4), noisy_draws(rng, 20, 7, 3, 0.4)
    weights = rng.integers(0, 5, 20) / 3
    density = density_of(training, calibration=pc.as_partition_draws(held_out, weights=weights))
    scores = density.score(held_out).values
    below = np.array([weights[scores <= score * (1 + 1e-9)].sum() for score in scores])
    expected = (weights.max() + below) / (weights.max() + weights.sum())
    np.testing.assert_allclose(density.p_value(held_out), expected, rtol=1e-12)


def test_chains_are_thinned_to_what_they_are_worth_and_to_the_most_draws(monkeypatch):
    rng = np.random.default_rng(8)
    density = density_of(sticky_chains(rng, 2, 600, 6, stay=0.8))
    assert 7 <= density.step <= 11  # (1 + 0.8) / (1 - 0.8) = 9
    assert density.ess > 0.7 * density.scores.size
    slow = density_of(sticky_chains(rng, 2, 200, 6, stay=0.99))
    assert slow.step == 4 and slow.scores.size == 50 and slow.ess < 20
    monkeypatch.setattr(density_file, "_MOST_DRAWS", 200)
    density = density_of(random_draws(np.random.default_rng(10), 500, 6, 3))
    assert density.step == 3 and density.training.shape[0] + density.scores.size == 167


def test_draws_go_to_both_halves_by_turns():
    density = density_of(random_draws(np.random.default_rng(9), 30, 40, 3).reshape(2, 15, 40))
    assert density.step == 1
    both = list(product(range(2), range(15)))
    for turn, half in enumerate((density.training, density.scores)):
        rows = [*zip(half["chain"].values, half["draw"].values, strict=True)]
        assert rows == [both[t] for t in range(30) if t // 3 % 2 == turn]


def test_autocorrelation_of_a_kernel():
    draws = pc.as_partition_draws(sticky_chains(np.random.default_rng(11), 4, 500, 20, stay=0.6))
    losses = pc.partition_loss(draws).values
    assert draws_worth_one(losses, draws.samples, 1.5) == pytest.approx(4.0, rel=0.15)
    assert draws_worth_one(np.zeros((3, 3)), draws.take(np.arange(3)).samples, 1.0) == 1.0


def test_default_bandwidth():
    losses = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]])
    samples = ChainSamples(np.zeros(3), np.arange(3), np.full(3, 1 / 3))
    assert default_bandwidth(losses, samples) == 2.0
    assert default_bandwidth(losses, samples.weighted(np.array([0.1, 0.1, 0.8]))) == 2.0
    assert default_bandwidth(losses, samples.weighted(np.array([0.5, 0.4, 0.1]))) == 1.0
    assert default_bandwidth(np.zeros((3, 3)), samples) == 1.0
    many_equal = np.zeros((4, 4))
    many_equal[0, 1] = many_equal[1, 0] = 6.0
    assert default_bandwidth(many_equal, ChainSamples(np.zeros(4), np.arange(4), np.full(4, 0.25))) == 1.0


@pytest.mark.parametrize("loss", ["vi", "one_minus_ari"])
def test_degenerate_draws(loss):
    for name in sorted(set(DEGENERATE) - {"one draw"}):
        draws = DEGENERATE[name]
        density = density_of(draws, loss=loss)
        assert np.all(np.isfinite(density.scores)) and density.bandwidth > 0, name
        assert density.score(density).item() >= density.score(draws).values.max() - 1e-12, name
        assert np.all(density.p_value(draws) >= 1 / (1 + density.scores.size) - 1e-12), name
        assert density.modes["weight"].sum() == pytest.approx(1.0) and repr(density), name


def test_equal_draws_are_typical_and_one_draw_calibrates_nothing():
    density = density_of(DEGENERATE["equal draws"])
    assert density.score(DEGENERATE["equal draws"][0]).item() == 1.0
    np.testing.assert_array_equal(density.p_value([[0, 0, 1, 1, 2], [0, 0, 0, 0, 0]]), [1.0, 0.25])
    draws = DEGENERATE["one draw"]
    check(pc.partition_density, draws, ValueError, ["`draws`", "at least two draws", "got 1", "`calibration`"])
    assert density_of(draws, calibration=draws).p_value(draws[0]).item() == 1.0


def test_calibration_by_a_chain_held_out_in_the_order_of_the_items():
    draws = pc.as_partition_draws(two_answers(np.random.default_rng(15), 20))
    density = density_of(draws.isel(chain=[0, 1, 2]), calibration=draws.isel(chain=3))
    assert set(density.scores["chain"].values) == {3} and density.step == 1
    assert density.training.shape == (60, 32)
    draws = ROWS.assign_coords(obs=list("abcd"))
    found = [density_of(draws, calibration=z).scores for z in (draws, draws.isel(obs=[3, 1, 0, 2]))]
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_sensitivity_to_the_bandwidth():
    draws = noisy_draws(np.random.default_rng(16), 80, 8, 3, 0.5)
    density, *others = (density_of(draws, bandwidth=h) for h in (0.8, 0.4, 1.6))
    np.testing.assert_array_equal(density.sensitivity["bandwidth"], [0.4, 1.6])
    for other in others:
        row = density.sensitivity.sel(bandwidth=other.bandwidth)
        assert row["p_value"] == other.p_value(density.labels)
        ranks = [rankdata(one.scores.values.round(12)) for one in (density, other)]
        assert row["rank_correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-4)  # ties by rounding


def test_bad_input(monkeypatch):
    cases = [({"bandwidth": h}, ValueError, "`bandwidth`", "finite", "above 0") for h in (0, -1.0, np.inf, np.nan)]
    cases += [
        ({"bandwidth": "wide"}, TypeError, "`bandwidth` must be a number; got 'wide'"),
        ({"loss": "pear"}, ValueError, "`loss` must be a loss"),
        ({"calibration": [[0, 1]]}, ValueError, "`calibration`", "same 4 items; got 2"),
    ]
    check_all(lambda options: pc.partition_density(GOOD, **options), cases)
    density = density_of(GOOD)
    check_all(density.least_score, [(prob, ValueError, "`prob`", "between 0 and 1") for prob in (0, 1, 1.5)])
    check(density.score, [0, 1], ValueError, ["`partitions`", "all 4 items; got 2"])
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "100B")
    check(pc.partition_density, GOOD, MemoryError, ["losses of 4 draws against 4", "128 B"])


def test_one_mode_of_the_score_is_not_said_to_be_one_group_of_draws(rng):
    truth = np.repeat(np.arange(4), 15)
    second = np.where(np.arange(60) % 2 == 0, (truth + 1) % 4, truth)
    labels = np.where(rng.random((400, 1)) < 0.25, second, truth)
    stray = rng.random(labels.shape) < 0.2
    labels = np.where(stray, rng.integers(4, size=labels.shape), labels)
    found = pc.partition_density(labels, random_seed=1)
    assert len(found.modes) == 1 and pc.particles(labels, n_starts=3, random_seed=1).n_particles == 2
    assert "one over several modes" in " ".join(repr(found).split())
    again = pc.results.PartitionDensity.from_dataset(found.to_dataset())
    assert "one over several modes" in " ".join(repr(again).split())
    of_runs = pc.partition_density(pc.as_runs(labels), random_seed=1)
    assert "one over several kinds" in " ".join(repr(of_runs).split())
