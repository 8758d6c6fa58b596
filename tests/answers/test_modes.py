"""The rule for separated modes: known answers, what must not matter, and when it must not tell."""

import numpy as np
import pytest
from scipy.stats import binom

import posterior_consensus as pc
from posterior_consensus.answers import modes
from posterior_consensus.answers.modes import separated_modes, valley_p_value
from posterior_consensus.ensemble.expectation import loss_matrix
from posterior_consensus.losses import LOSSES

WHOLE = np.repeat([0, 1, 2], [20, 15, 15]).astype(np.int32)
SPLIT = np.repeat([0, 3, 1, 2], [10, 10, 15, 15]).astype(np.int32)
MIXED = np.tile([0, 1, 2, 0, 1], 10).astype(np.int32)


def made(truths, weights, *, noise=0.1, n_draws=300, seed=0):
    asked = {"n_draws": n_draws, "noise": noise, "modes": weights, "truth": np.array(truths), "random_seed": seed}
    return pc.simulate.random_perturbation(50, 4, **asked)


def copies(truths, weights, **options):
    return made(truths, weights, **options).draws


def modes_of(draws, partitions, loss="vi"):
    record = LOSSES[loss]()
    partitions = np.array(partitions, np.int32)
    return separated_modes(partitions, loss_matrix(partitions, draws, record), draws.samples, record)


def n_modes(labels, loss="vi"):
    return pc.particles(labels, loss=loss, n_starts=4, random_seed=0, progressbar=False).n_particles


@pytest.mark.parametrize(("loss", "noise"), [("binder", 0.03), ("vi", 0.1), ("nid", 0.3), ("vi", 0.6)])
def test_two_truths_are_two_modes_and_one_truth_is_one_at_any_noise(loss, noise):
    simulated = made([WHOLE, MIXED], [0.7, 0.3])
    two = modes_of(simulated.draws, [MIXED, WHOLE], loss)
    assert two.n_modes == 2
    assert two.mode.tolist() == [1, 0]
    assert two.weights == pytest.approx(np.bincount(simulated.mode) / 300)
    assert two.p_value < 0.05
    one = copies([WHOLE], [1.0], noise=noise, seed=1)
    two_particles = pc.particles(one, 2, loss=loss, n_starts=4, random_seed=1, progressbar=False)
    assert modes_of(one, two_particles.partitions.values, loss).n_modes == 1


def test_neighbours_are_one_answer_and_distant_atoms_are_two():
    rng = np.random.default_rng(0)
    away = [np.where(np.arange(50) < moved, 1, WHOLE) for moved in (1, 2, 3)]
    for other, number in zip((*away, MIXED), (1, 1, 2, 2), strict=True):
        rows = np.where(rng.random((300, 1)) < 0.6, WHOLE, other)
        assert modes_of(pc.as_partition_draws(rows), [WHOLE, other]).n_modes == number
    without_draws = np.where(np.arange(50) < 3, 3, MIXED)
    assert modes_of(pc.as_partition_draws(rows), [WHOLE, without_draws, MIXED]).mode.tolist() == [0, 1, 1]


def test_draws_between_two_partitions_join_them():
    rng = np.random.default_rng(2)
    share = rng.random((400, 1))  # of the items that follow the other truth: anything from none to all
    rows = np.where(rng.random((400, 50)) < share, MIXED, WHOLE)
    assert modes_of(pc.as_partition_draws(rows), [WHOLE, MIXED], "binder").n_modes == 1
    both = np.where(share < 0.5, MIXED, WHOLE)
    assert modes_of(pc.as_partition_draws(both), [WHOLE, MIXED], "binder").n_modes == 2


def test_a_chain_that_hardly_moves_does_not_make_modes():
    rng = np.random.default_rng(3)
    kept = np.tile(WHOLE, (400, 1))
    for t in range(1, 400):
        fresh = np.where(rng.random(50) < 0.3, rng.integers(3, size=50), WHOLE)
        kept[t] = np.where(rng.random(50) < 0.98, kept[t - 1], fresh)
    assert n_modes(kept) == n_modes(kept, "binder") == 1


def test_weights_decide():
    simulated = made([WHOLE, MIXED], [0.5, 0.5])

    def weighted(weights):
        return modes_of(pc.as_partition_draws(simulated.draws.labels, weights=weights), [WHOLE, MIXED])

    none = weighted(np.where(simulated.mode == 1, 0.0, 1.0))
    assert none.n_modes == 1 and none.mode.tolist() == [0, 0]
    assert weighted(np.where(simulated.mode == 1, 1.0, 9.0)).weights == pytest.approx([0.9, 0.1], abs=0.02)
    assert weighted(np.where(np.arange(300) % 75 == 0, 1.0, 1e-6)).n_modes == 1  # worth four draws


def test_few_draws_cannot_tell():
    for n_draws in (1, 2, 3, 6):
        rows = pc.as_partition_draws(np.where(np.arange(n_draws)[:, np.newaxis] % 2, MIXED, WHOLE))
        assert modes_of(rows, [WHOLE, MIXED]).n_modes == modes_of(rows, [WHOLE]).n_modes == 1


def test_names_and_order_do_not_matter():
    draws = copies([WHOLE, SPLIT, MIXED], [0.5, 0.3, 0.2], noise=0.05)
    first = modes_of(draws, [WHOLE, SPLIT, MIXED])
    assert first.mode.tolist() == [0, 1, 2]
    renamed = pc.as_partition_draws(np.array([7, 3, 0, 5])[draws.labels])
    again = modes_of(renamed, [3 - MIXED, (WHOLE + 1) % 3, SPLIT[::1] ^ 1])
    assert again.mode.tolist() == [2, 0, 1]
    assert again.p_value == pytest.approx(first.p_value, rel=1e-6)


def test_p_value_is_the_binomial_probability_of_the_emptiest_valley():
    x = np.array([-0.9] * 12 + [-0.1] * 3 + [0.1] * 3 + [0.9] * 10)
    one = np.ones(x.size)
    assert valley_p_value(x, one, 0.3) == pytest.approx(binom.cdf(6, 16, 1 / 3))
    assert valley_p_value(x[np.abs(x) > 0.5], one[:22], 0.3) == pytest.approx(binom.cdf(0, 10, 1 / 3))
    assert valley_p_value(x, one / 2, 0.3) > valley_p_value(x, one, 0.3)
    assert valley_p_value(x, one, 0.7) == 1.0  # three windows so wide have no room side by side
    assert valley_p_value(np.abs(x), one, 0.3) == 1.0  # all on one side
    x = np.array([-0.3] * 20 + [0.2] * 20)
    assert valley_p_value(x, np.ones(40), 0.1) == 1.0
    assert valley_p_value(3 * x, np.ones(40), 0.1) < 0.001
    x = np.concatenate([np.linspace(-0.9, -0.7, 40), np.linspace(-0.3, 0.4, 80)])
    one = np.ones(x.size)
    assert valley_p_value(x, one, 0.1) > 0.5  # not at the border of the regions
    assert valley_p_value(x + 0.5, one, 0.1) < 1e-4


@pytest.mark.parametrize("sizes", [(40.0, 9.0), (9.0, 40.0), (9.0, 9.0)])
def test_a_valley_counts_the_fewer_of_the_effective_draws_of_all_and_of_its_axis(sizes, monkeypatch):
    draws = copies([WHOLE, MIXED], [0.6, 0.4])
    found = {}
    for of_all, of_axis in (sizes, (9.0, 9.0), (40.0, 40.0)):
        monkeypatch.setattr(modes._Regions, "_effective", lambda *_, n=(of_all, of_axis): np.array(n))
        found[of_all, of_axis] = modes_of(draws, [WHOLE, MIXED]).p_value
    assert found[sizes] == found[9.0, 9.0] > found[40.0, 40.0]
