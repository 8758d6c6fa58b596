import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from benchmarks.density import (
    CENTERS,
    coverage,
    difference_from,
    enumerated_posterior,
    gibbs_chain,
    gibbs_transitions,
)
from posterior_consensus.answers.density_search import Ascent, kernel_of, to_higher
from posterior_consensus.answers.density_split import default_bandwidth, draws_worth_one
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.runtime import executor
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws, sticky_chains
from tests.helpers import GOOD, ROWS, check

GOLDEN = Path(__file__).parents[1] / "golden"
ONE, OTHER = np.repeat([0, 1, 2, 3], 8), np.where(np.arange(32) < 16, np.arange(32) % 2, 2)


def two_answers(rng, n_draws, share=0.6, noise=0.1):
    """Chains that visit two partitions and perturb them."""
    at = np.where(rng.random((4, n_draws, 1)) < share, ONE, OTHER)
    return np.where(rng.random(at.shape) < noise, rng.integers(4, size=at.shape), at)


def score_of(partition, draws, loss, bandwidth, weights=None):
    losses = [reference.LOSSES[loss](partition, draw) for draw in draws]
    return np.average(np.exp(-np.array(losses) / bandwidth), weights=weights)


def test_figures_of_cbi_partitions():
    labels = np.load(GOLDEN / "dpmm_draws.npz")["labels"]
    assert difference_from(json.loads((GOLDEN / "dpmm_density.json").read_text()), labels) < 1e-9


@pytest.mark.parametrize("loss", pc.LOSSES)
def test_definition(loss):
    rng = np.random.default_rng(1)
    training, calibration = noisy_draws(rng, 25, 8, 3, 0.4), noisy_draws(rng, 18, 8, 3, 0.4)
    asked = noisy_draws(rng, 6, 8, 3, 0.8)
    density = pc.partition_density(training, loss=loss, calibration=calibration, bandwidth=0.7, random_seed=1)
    scores = np.array([score_of(z, training, loss, 0.7) for z in calibration])
    np.testing.assert_allclose(density.scores, scores, rtol=1e-12)
    own = np.array([score_of(z, training, loss, 0.7) for z in asked])
    np.testing.assert_allclose(density.score(asked), own, rtol=1e-12)
    p_values = [(1 + np.sum(scores <= s * (1 + 1e-9))) / 19 for s in own]
    np.testing.assert_allclose(density.p_value(asked), p_values, rtol=1e-12)
    for prob in (0.3, 0.5, 0.9):
        inside = np.array(p_values) > 1 - prob + 1e-9
        np.testing.assert_array_equal(density.contains(asked, prob), inside)
        np.testing.assert_array_equal(own >= density.least_score(prob) * (1 - 1e-9), inside)
        assert density.contains(asked[0], prob).item() is bool(inside[0])


@pytest.mark.parametrize("loss", ["vi", "binder", "omari"])
def test_no_draw_is_more_typical_than_the_most_typical_partition(loss):
    draws = noisy_draws(np.random.default_rng(2), 120, 12, 3, 0.4)
    density = pc.partition_density(draws, loss=loss, random_seed=1)
    assert density.score(density).item() >= density.score(draws).values.max() - 1e-12
    assert density.modes["score"].values.max() == density.score(density).item()


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_most_typical_of_all_partitions(loss):
    for seed in range(5):
        draws = random_draws(np.random.default_rng(seed), 80, 6, 4)
        density = pc.partition_density(draws, loss=loss, random_seed=1)
        best = max(density.score(np.array(list(reference.partitions(6)))).values)
        assert density.score(density.labels).item() == pytest.approx(best, rel=1e-12)


def test_ascent_never_falls():
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(3), 60, 14, 4, 0.5))
    ascent = Ascent(draws, pc.vi(), 1.0, np.random.default_rng(1))
    starts = [*draws.labels[:4], np.zeros(14, int), np.arange(14)]
    before = [kernel_of(draws.as_labels(z)[np.newaxis], draws, pc.vi(), 1.0).mean() for z in starts]
    for start, score in zip(starts, before, strict=True):
        ascent.climb(start)
        assert ascent.ends()[0][1] >= score


def test_both_answers_are_modes():
    density = pc.partition_density(two_answers(np.random.default_rng(4), 150), random_seed=1)
    np.testing.assert_array_equal(density.modes, [ONE, OTHER])
    np.testing.assert_allclose(density.modes["weight"], [0.6, 0.4], atol=0.05)
    np.testing.assert_array_equal(density.labels, ONE)
    assert density.contains([ONE, OTHER], 0.5).values.all()
    assert not density.contains([np.arange(32), np.arange(32) % 3], 0.95).values.any()


def test_one_answer_is_one_mode():
    density = pc.partition_density(two_answers(np.random.default_rng(5), 150, share=1.0), random_seed=1)
    np.testing.assert_array_equal(density.modes, [ONE])


def test_to_higher():
    losses = np.array([[0, 3, 1, 9], [3, 0, 2, 5], [1, 2, 0, 4], [9, 5, 4, 0]], float)
    np.testing.assert_array_equal(to_higher(np.array([0.4, 0.9, 0.4, 0.1]), losses), [3, 5, 1, 4])


def _exact(name, sampler, n_sets, n_draws):
    partitions, probabilities = enumerated_posterior(CENTERS[name])
    transitions = gibbs_transitions(partitions, probabilities)
    covered = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        if sampler == "independent":
            visited = rng.choice(len(partitions), n_draws, p=probabilities)
        else:
            visited = gibbs_chain(transitions, probabilities, n_draws, rng)
        density = pc.partition_density(partitions[visited], random_seed=1)
        covered.append(coverage(density, partitions, probabilities))
    return np.mean(covered, axis=0), np.std(covered, axis=0, ddof=1) / np.sqrt(n_sets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler", "loss_of_coverage"), [("two modes", "independent", 0), ("one mode", "Gibbs", 0.01)]
)
def test_sets_cover_what_they_say(name, sampler, loss_of_coverage):
    covered, error = _exact(name, sampler, 20, 200 if sampler == "independent" else 1200)
    nominal = np.array([0.5, 0.8, 0.95])
    assert np.all(covered >= nominal - loss_of_coverage - 3 * error)
    assert np.all(covered <= nominal + 0.02 + 3 * error)  # equal scores go in together


def test_gibbs_chain_leaves_the_posterior_as_it_is():
    partitions, probabilities = enumerated_posterior(CENTERS["one mode"])
    transitions = np.diff(gibbs_transitions(partitions, probabilities), axis=1, prepend=0.0)
    np.testing.assert_allclose(probabilities @ transitions, probabilities, atol=1e-13)


def test_weights_are_repeated_draws():
    rng = np.random.default_rng(6)
    draws, weights = noisy_draws(rng, 40, 9, 3, 0.4), rng.integers(0, 4, 40)
    held_out, asked = noisy_draws(rng, 21, 9, 3, 0.4), noisy_draws(rng, 5, 9, 3, 0.7)
    found = {"calibration": held_out, "bandwidth": 1.0, "random_seed": 1}
    weighted = pc.partition_density(pc.as_partition_draws(draws, weights=weights), **found)
    repeated = pc.partition_density(np.repeat(draws, weights, axis=0), **found)
    np.testing.assert_allclose(weighted.score(asked), repeated.score(asked), rtol=1e-12)
    np.testing.assert_allclose(weighted.p_value(asked), repeated.p_value(asked), rtol=1e-12)
    np.testing.assert_array_equal(weighted.labels, repeated.labels)


def test_weighted_p_value_counts_the_largest_weight_for_the_partition():
    rng = np.random.default_rng(7)
    training, held_out = noisy_draws(rng, 30, 7, 3, 0.4), noisy_draws(rng, 20, 7, 3, 0.4)
    weights = rng.integers(0, 5, 20) / 3
    calibration = pc.as_partition_draws(held_out, weights=weights)
    density = pc.partition_density(training, calibration=calibration, random_seed=1)
    scores = density.score(held_out).values
    for row in range(20):
        below = weights[scores <= scores[row] * (1 + 1e-9)].sum()
        expected = (weights.max() + below) / (weights.max() + weights.sum())
        assert density.p_value(held_out[row]).item() == pytest.approx(expected, rel=1e-12)


def test_weighted_sets_cover_the_target():
    partitions, target = enumerated_posterior([[0, 0, 0, 1, 1]])
    proposal = np.sqrt(target) / np.sqrt(target).sum()
    covered = []
    for seed in range(25):
        visited = np.random.default_rng(seed).choice(len(partitions), 300, p=proposal)
        draws = pc.as_partition_draws(partitions[visited], weights=(target / proposal)[visited])
        covered.append(coverage(pc.partition_density(draws, random_seed=1), partitions, target))
    error = np.std(covered, axis=0, ddof=1) / 5
    assert np.all(np.mean(covered, axis=0) >= [0.5, 0.8, 0.95] - 3 * error)


def test_chains_are_thinned_to_what_they_are_worth():
    rng = np.random.default_rng(8)
    density = pc.partition_density(sticky_chains(rng, 2, 1000, 10, stay=0.8), random_seed=1)
    assert 7 <= density.step <= 11  # (1 + 0.8) / (1 - 0.8) = 9
    assert density.ess > 0.7 * density.scores.size
    slow = pc.partition_density(sticky_chains(rng, 2, 200, 10, stay=0.99), random_seed=1)
    assert slow.step == 4 and slow.scores.size == 50 and slow.ess < 20


def test_draws_go_to_both_halves_by_turns():
    draws = random_draws(np.random.default_rng(9), 30, 40, 3)
    density = pc.partition_density(draws.reshape(2, 15, 40), random_seed=1)
    assert density.step == 1
    rows = [*zip(density.training["chain"].values, density.training["draw"].values, strict=True)]
    both = [(c, t) for c in range(2) for t in range(15)]
    assert rows == [both[t] for t in range(30) if t // 3 % 2 == 0]
    rows = [*zip(density.scores["chain"].values, density.scores["draw"].values, strict=True)]
    assert rows == [both[t] for t in range(30) if t // 3 % 2 == 1]


def test_at_most_so_many_draws_are_used():
    density = pc.partition_density(random_draws(np.random.default_rng(10), 5000, 12, 3), random_seed=1)
    assert density.step == 3 and density.training.shape[0] + density.scores.size == 1667


def test_autocorrelation_of_a_kernel():
    draws = pc.as_partition_draws(sticky_chains(np.random.default_rng(11), 4, 500, 20, stay=0.6))
    losses = pc.pairwise_losses(draws).values
    assert draws_worth_one(losses, draws.samples, 1.5) == pytest.approx(4.0, rel=0.15)
    assert draws_worth_one(np.zeros((3, 3)), draws.take(np.arange(3)).samples, 1.0) == 1.0


def test_default_bandwidth():
    losses = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]])
    samples = Samples(np.zeros(3), np.arange(3), np.full(3, 1 / 3))
    assert default_bandwidth(losses, samples) == 2.0
    assert default_bandwidth(losses, samples.weighted(np.array([0.1, 0.1, 0.8]))) == 2.0
    assert default_bandwidth(losses, samples.weighted(np.array([0.5, 0.4, 0.1]))) == 1.0
    assert default_bandwidth(np.zeros((3, 3)), samples) == 1.0
    many_equal = np.zeros((4, 4))
    many_equal[0, 1] = many_equal[1, 0] = 6.0
    assert default_bandwidth(many_equal, Samples(np.zeros(4), np.arange(4), np.full(4, 0.25))) == 1.0


@pytest.mark.parametrize("loss", pc.LOSSES)
@pytest.mark.parametrize("name", sorted(set(DEGENERATE) - {"one draw"}))
def test_degenerate_draws(name, loss):
    draws = DEGENERATE[name]
    density = pc.partition_density(draws, loss=loss, random_seed=1)
    assert np.all(np.isfinite(density.scores)) and density.bandwidth > 0
    assert density.score(density).item() >= density.score(draws).values.max() - 1e-12
    assert np.all(density.p_value(draws) >= 1 / (1 + density.scores.size) - 1e-12)
    assert density.modes["weight"].sum() == pytest.approx(1.0)
    repr(density)


def test_equal_draws_are_typical_and_nothing_else_is():
    density = pc.partition_density(DEGENERATE["equal draws"], random_seed=1)
    assert density.score(DEGENERATE["equal draws"][0]).item() == 1.0
    np.testing.assert_array_equal(density.p_value([[0, 0, 1, 1, 2], [0, 0, 0, 0, 0]]), [1.0, 0.25])


def test_one_draw_calibrates_nothing():
    draws = DEGENERATE["one draw"]
    parts = ["`draws` must hold at least two draws of weight above 0", "got 1", "`calibration`"]
    check(pc.partition_density, draws, ValueError, parts)
    assert pc.partition_density(draws, calibration=draws, random_seed=1).p_value(draws[0]).item() == 1.0


def test_names_of_labels_and_order_of_items_do_not_matter():
    rng = np.random.default_rng(12)
    draws = two_answers(rng, 60)
    renamed = np.array([[rng.permutation(9)[z] for z in chain] for chain in draws])
    order = rng.permutation(32)
    found, other = (pc.partition_density(z, random_seed=1) for z in (draws, renamed))
    xr.testing.assert_identical(found.to_dataset(), other.to_dataset())
    shuffled = pc.partition_density(draws[..., order], random_seed=1)
    np.testing.assert_allclose(shuffled.scores, found.scores, rtol=1e-12)
    np.testing.assert_allclose(shuffled.p_value(ONE[order]), found.p_value(ONE), rtol=1e-12)
    assert shuffled.score(shuffled).item() == pytest.approx(found.score(found).item(), rel=1e-12)


def test_order_of_the_draws_of_each_half_does_not_matter():
    rng = np.random.default_rng(13)
    training, held_out = (noisy_draws(rng, n, 10, 3, 0.4) for n in (40, 30))
    asked = noisy_draws(rng, 6, 10, 3, 0.6)
    found = pc.partition_density(training, calibration=held_out, random_seed=1)
    other = pc.partition_density(rng.permutation(training), calibration=rng.permutation(held_out), random_seed=1)
    np.testing.assert_allclose(other.score(asked), found.score(asked), rtol=1e-12)
    np.testing.assert_array_equal(other.p_value(asked), found.p_value(asked))
    assert other.score(other).item() == pytest.approx(found.score(found).item(), rel=1e-12)


def test_number_of_threads_does_not_matter(monkeypatch):
    draws = two_answers(np.random.default_rng(14), 100)
    found = []
    for number in (1, 3):
        monkeypatch.setattr(executor, "n_threads", lambda number=number: number)
        found.append(pc.partition_density(draws, random_seed=1).to_dataset())
    xr.testing.assert_identical(*found)


def test_calibration_by_a_chain_held_out():
    draws = pc.as_partition_draws(two_answers(np.random.default_rng(15), 80))
    density = pc.partition_density(draws.isel(chain=[0, 1, 2]), calibration=draws.isel(chain=3), random_seed=1)
    assert set(density.scores["chain"].values) == {3} and density.step == 1
    assert density.training.shape == (240, 32)


def test_calibration_is_taken_in_the_order_of_the_items():
    draws = ROWS.assign_coords(obs=list("abcd"))
    shuffled = draws.isel(obs=[3, 1, 0, 2])
    found = [pc.partition_density(draws, calibration=z, random_seed=1).scores for z in (draws, shuffled)]
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_sensitivity_to_the_bandwidth():
    draws = noisy_draws(np.random.default_rng(16), 200, 12, 3, 0.5)
    density = pc.partition_density(draws, bandwidth=0.8, random_seed=1)
    np.testing.assert_array_equal(density.sensitivity["bandwidth"], [0.4, 1.6])
    for h in (0.4, 1.6):
        other = pc.partition_density(draws, bandwidth=h, random_seed=1)
        row = density.sensitivity.sel(bandwidth=h)
        assert row["p_value"] == other.p_value(density.labels)
        ranks = [np.argsort(np.argsort(one.scores.values)) for one in (density, other)]
        assert row["rank_correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=0.02)  # ties


def test_bad_input():
    build = pc.partition_density
    for value in (0, -1.0, np.inf, np.nan):
        check(lambda h: build(GOOD, bandwidth=h), value, ValueError, ["`bandwidth` must be a finite number above 0"])
    check(lambda h: build(GOOD, bandwidth=h), "wide", TypeError, ["`bandwidth` must be a number; got 'wide'"])
    check(lambda loss: build(GOOD, loss=loss), "pear", ValueError, ["`loss` must be a loss between two partitions"])
    check(
        lambda z: build(GOOD, calibration=z), [[0, 1]], ValueError, ["`calibration` must label the same 4 items; got 2"]
    )
    density = build(GOOD, random_seed=1)
    for prob in (0, 1, 1.5):
        check(density.least_score, prob, ValueError, ["`prob` must lie between 0 and 1, both excluded"])
    check(density.p_value, [], ValueError, ["`partitions"])
    check(density.score, [0, 1], ValueError, ["`partitions` must label all 4 items; got 2"])
    check(lambda one: pc.plot_density_peaks(one), 3, TypeError, ["`density` must be what partition_density() returns"])


def test_a_matrix_beyond_the_budget_is_refused(monkeypatch):
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "100B")
    check(pc.partition_density, GOOD, MemoryError, ["The matrix of losses of 4 draws against 4 would take 128 B"])


def test_what_it_shows():
    density = pc.partition_density(two_answers(np.random.default_rng(17), 100), random_seed=1)
    text = repr(density)
    for part in ("2 separated modes", "mean of exp(-vi / ", "200 draws, every one of a chain", "p-values from 0.005"):
        assert part in text
    ax = pc.plot_density_peaks(density)
    points, modes = ax.collections
    np.testing.assert_allclose(points.get_offsets()[:, 0], density.scores)
    highest, other = sorted(modes.get_offsets().tolist(), reverse=True)
    assert highest[1] == density.to_higher.max()
    assert other[1] == pytest.approx(pc.partition_loss(*density.modes.values, loss=density.loss))
    assert {line.get_xdata()[0] for line in ax.lines} == {density.least_score(p) for p in (0.5, 0.95)}
