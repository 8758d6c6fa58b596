"""Reweighted draws: Pareto smoothing, ties, and weights given as logarithms."""

import json

import numpy as np
import pytest
from arviz_stats.base import array_stats

import posterior_consensus as pc
import posterior_consensus_command
from benchmarks.prior_sensitivity import weighted_means
from posterior_consensus.ensemble.importance import importance, most_pareto_k, smoothed
from posterior_consensus.ensemble.samples import ChainSamples, Samples
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import check_all


def test_ratios_without_ties_are_smoothed_as_by_arviz(rng):
    log_ratio = rng.normal(scale=1.2, size=800)
    samples, pareto_k, moved = smoothed(Samples.of_one_chain(800), log_ratio)
    expected, k = array_stats.psislw(-log_ratio)
    np.testing.assert_allclose(samples.weights, np.exp(expected), rtol=1e-10)
    assert pareto_k == pytest.approx(float(k))
    raw = np.exp(log_ratio) / np.exp(log_ratio).sum()
    assert moved == pytest.approx(np.maximum(samples.weights - raw, 0).sum()) and moved > 0


def judged(log_ratio, numbers=0, n_chains=1, most=1_000):
    """Weights of draws with such numbers of clusters, by default one number."""
    number = np.arange(log_ratio.size)
    length = log_ratio.size // n_chains
    samples = ChainSamples(number // length, number % length, np.full(log_ratio.size, 1.0 / log_ratio.size))
    return importance(samples, log_ratio, np.zeros_like(number) + numbers, most)


def test_equal_ratios_keep_equal_weights(rng):
    log_ratio = np.log(2.0) * rng.poisson(3, size=2_000)
    samples, pareto_k, _ = smoothed(Samples.of_one_chain(2_000), log_ratio)
    assert np.unique(samples.weights).size == np.unique(log_ratio).size
    counts = np.bincount((log_ratio / np.log(2.0)).round().astype(int))
    weight = counts * 2.0 ** np.arange(counts.size)
    assert pareto_k < 0.7 and counts.min() < 5
    rare = judged(log_ratio).rare
    assert rare >= weight[counts < 5].sum() / weight.sum() - 1e-12  # visits are fewer than draws
    assert smoothed(Samples.of_one_chain(50), np.ones(50)).pareto_k == 0.0
    assert smoothed(Samples.of_one_chain(9), np.arange(9.0)).pareto_k == np.inf


def test_all_pairs_of_priors_on_seven_items():
    large = []
    for name, other, k, can, error, mcse in weighted_means(np.random.default_rng(3), 8):
        far = np.abs(error) > 4 * mcse
        assert not np.any(far & (can == 1)), (name, other)
        assert can.mean() > 0.8  # though some fits of a tail say nothing of so few values
        large.append(k.max())
    assert max(large) > 0.7


def test_limit_of_the_shape_depends_on_the_number_of_draws(rng):
    """min(1 - 1 / log10(S), 0.7): Vehtari, Simpson, Gelman, Yao and Gabry (2024), JMLR 25(72)."""
    assert [most_pareto_k(n) for n in (100, 1_000, 10_000)] == pytest.approx([0.5, 2 / 3, 0.7])
    log_ratio = np.log(rng.pareto(1.75, size=100) + 1)  # the shape is 1 / 1.75 = 0.57
    found = judged(log_ratio)
    assert 0.5 < found.pareto_k < 0.7 and not found.is_light() and not found.is_reliable


def test_few_ratios_are_judged_by_how_often_they_were_seen():
    """The largest ratio has half of the weight: it is seen in one visit or in many."""
    ratio = np.repeat([0.0, np.log(9.0)], [900, 100])
    one_visit, many = judged(ratio), judged(np.random.default_rng(1).permutation(ratio))
    assert one_visit.rare == pytest.approx(0.5) and many.rare == 0.0 and many.is_reliable
    few = judged(np.append(np.tile([0.0, 1.0], 498), [9.0, 0.0, 9.0, 0.0]))
    weight = np.exp([0.0, 1.0, 9.0]) * [500, 498, 2]
    assert few.rare == pytest.approx(weight[2] / weight.sum())


def test_smoothing_does_not_hide_a_rare_partition(rng):
    """Two draws of 10,000 hold half of the weight: the tail of ties that k-hat sees is light."""
    log_ratio, numbers = np.zeros(10_000), 2 + rng.integers(3, size=10_000)
    log_ratio[[500, 7_000]] = np.log([5_000.0, 5_001.0])
    found = judged(log_ratio, numbers, 4)
    assert found.pareto_k < found.largest_k and found.rare > 0.45 and not found.is_light()


def test_nearly_equal_ratios_are_judged_together(rng):
    """With a heavy tail, ratios that hardly vary are reliable, and ratios that vary a hundred times as much are not."""
    tail = rng.pareto(0.8, size=1_000)
    log_ratio = 0.4 * tail / tail.max()
    found = judged(log_ratio)
    assert found.pareto_k > 0.7 and found.rare < 0.05 and found.is_reliable
    assert not judged(100 * log_ratio).is_reliable


def test_draws_beyond_those_seen_by_hand():
    """1, 2 and 3 clusters in 900, 90 and 10 draws: one is to be expected at 4, where the ratio is 81."""
    numbers = np.random.default_rng(1).permutation(np.repeat([1, 2, 3], [900, 90, 10]))
    found = judged(np.log(3.0) * numbers, numbers)
    share = found.effective_draws / found.samples.effective_draws  # of independent draws
    expected = max(share * 10 / 9, 1.0) * 81 / share / (2_700 + 810 + 270)
    assert 0.5 < share <= 1 and found.beyond.numbers.tolist() == [4] and found.rare == 0
    assert found.beyond.weights == pytest.approx(expected) and found.unseen == pytest.approx(expected / (1 + expected))
    assert found.widened(0.1, 1.25, np.array([4.0])) == pytest.approx(np.hypot(0.1, expected * 2.75))
    two = judged(np.log(3.0) * np.minimum(numbers, 2), np.minimum(numbers, 2))  # more than three after 900 and 100
    assert two.beyond.weights == pytest.approx(3 * 27 / (two.effective_draws / two.samples.effective_draws) / 3_600)
    assert judged(np.log(3.0) * numbers, numbers, most=3).beyond.numbers.size == 0
    excluded = judged(np.where(numbers == 3, -np.inf, 0.0), numbers)  # no draw beyond one that has no weight
    assert excluded.beyond.numbers.size == 0 and excluded.unseen == 0
    assert judged(np.zeros(100), 5).beyond.numbers.tolist() == [4, 6]


def test_slow_chains_have_fewer_draws(rng):
    """A chain that keeps a rare number for ten draws: its autocorrelation is not seen, its visits are."""
    numbers = np.ones(4_000, int)
    numbers[[*range(100, 110), *range(2_100, 2_110)]] = 2
    found = judged(np.zeros(4_000), numbers, 4)
    assert found.effective_draws == pytest.approx(4_000 / 19, rel=0.01)
    slow = judged(np.zeros(4_000), np.repeat(rng.poisson(5, 400), 10), 4)
    assert 4_000 / 19 / 2 < slow.effective_draws <= 500


def test_weights_of_draws_are_factors_and_soft_assignments_are_left_out(rng):
    soft = rng.dirichlet(np.ones(3), size=(60, 5))
    weights = rng.random(60)
    draws = pc.as_allocation_probabilities(soft, weights=weights)
    found = pc.reweight(draws, np.zeros(60), max_pareto_k=np.inf)
    assert found.counted_draws is not None
    exactly = smoothed(Samples.of_one_chain(60), np.log(weights))[0].weights
    np.testing.assert_allclose(found.weights, exactly, rtol=1e-9)


def test_what_cannot_be_reweighted_is_refused(rng):
    draws = noisy_draws(rng, 100, 8, 3, 0.3)
    cases = [
        (10 * rng.standard_cauchy(100), ValueError, "got a Pareto k-hat", "above 0.5", "max_pareto_k=np.inf"),
        (np.zeros(7), ValueError, "(100,) or (1, 100); got shape (7,)"),
        (np.full(100, np.nan), ValueError, "finite or minus infinity; got nan at chain 0, draw 0"),
        (np.full(100, -np.inf), ValueError, "minus infinity for all"),
    ]
    check_all(lambda log_ratio: pc.reweight(draws, log_ratio), cases)
    assert pc.reweight(draws, np.arange(100.0), max_pareto_k=np.inf).samples.is_weighted
    wrong = [(-1, ValueError, "`max_pareto_k`", "positive")]
    check_all(lambda largest: pc.reweight(draws, np.zeros(100), max_pareto_k=largest), wrong)
    check_all(lambda log_ratio: pc.reweight(draws[:10], log_ratio), [(np.arange(10.0), ValueError, "too few draws")])
    few = np.repeat([9.0, 0.0], [3, 97])[np.random.default_rng(1).permutation(100)]
    one = pc.as_partition_draws(np.zeros((4, 25, 8), int))
    message = (ValueError, "effective draws, below 16, four per chain", "max_pareto_k=np.inf")
    check_all(lambda ratio: pc.reweight(one, ratio, max_pareto_k=50.0), [(few, *message)])


def test_weights_are_taken_as_logarithms_everywhere(rng, tmp_path):
    labels, soft = noisy_draws(rng, 60, 8, 3, 0.3).reshape(2, 30, 8), rng.dirichlet(np.ones(3), size=(2, 30, 8))
    weights = rng.random((2, 30))
    logs = np.log(weights) - 5000.0  # whose exponentials are 0
    for function, data in ((pc.as_partition_draws, labels), (pc.as_allocation_probabilities, soft)):
        np.testing.assert_allclose(
            function(data, log_weights=logs).weights, function(data, weights=weights).weights, rtol=1e-9
        )
        cases = [
            ({"weights": weights, "log_weights": logs}, ValueError, "`log_weights`", "left out", "`weights`"),
            ({"log_weights": np.full(60, np.nan)}, ValueError, "`log_weights`", "finite", "got nan at chain 0, draw 0"),
            ({"log_weights": np.full(60, -np.inf)}, ValueError, "`log_weights`", "all be minus infinity"),
            ({"log_weights": np.zeros(3)}, ValueError, "`log_weights`", "per draw", "got shape (3,)"),
        ]
        check_all(lambda given, function=function, data=data: function(data, **given), cases)
    draws = pc.as_partition_draws(labels)
    again = pc.as_partition_draws(draws, log_weights=np.where(np.arange(60) < 30, 0.0, -np.inf))
    assert again.weights[:30].sum() == pytest.approx(1) and not again.weights[30:].any()
    options = {"random_seed": 1, "progressbar": False, "modes": False}
    summary = pc.summarize(labels, log_weights=logs, **options)
    np.testing.assert_allclose(summary.draws.weights, weights.ravel() / weights.sum(), rtol=1e-9)


def test_the_command_takes_weights_as_logarithms(rng, tmp_path, capsys):
    np.save(tmp_path / "z.npy", noisy_draws(rng, 60, 8, 3, 0.3))
    weights = rng.random(60)
    np.save(tmp_path / "w.npy", weights)
    np.save(tmp_path / "log.npy", np.log(weights))
    found = []
    for option in (["--weights", "w.npy"], ["--log-weights", "log.npy"]):
        given = [option[0], str(tmp_path / option[1])]
        assert posterior_consensus_command.main([str(tmp_path / "z.npy"), *given, "--json", "--quiet"]) == 0
        found.append(json.loads(capsys.readouterr().out)["expected_loss"])
    assert found[0] == pytest.approx(found[1])
