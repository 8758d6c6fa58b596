"""Draws of chains that count as independent ones, and numbers of modes selected from such chains."""

import numpy as np
import pytest

import posterior_consensus as pc
from benchmarks.fitted_modes import Kind, simulated
from posterior_consensus.consensus.perturbation.draws import model_draws
from posterior_consensus.consensus.perturbation.mixture import as_independent, mixture


def counted(chains, n_modes=1):
    """Counts of draws (chain, draw, item) that count as independent, with one cluster a label."""
    draws = pc.as_partition_draws(chains)
    used = model_draws(draws, None)
    rng = np.random.default_rng(1)
    fitted = mixture(used, n_modes, 4, fewer=True, n_starts=3, most_steps=50, rng=rng)
    return as_independent(used, fitted, draws.samples.chains).counts.reshape(np.shape(chains)[:2])


def test_independent_draws_count_in_full_and_items_that_stay_by_their_autocorrelation_time():
    rng = np.random.default_rng(3)
    for stay, time in ((0.0, 1.0), (0.8, 9.0), (0.9, 19.0)):
        counts = counted(simulated(Kind((1.0,), 0.25, stay), 60, rng))
        assert np.ptp(counts) < 1e-12 and counts[0, 0] == pytest.approx(1 / time, rel=0.3)


def test_a_chain_that_stays_in_a_mode_shows_it_well():
    chains = simulated(Kind((0.5, 0.5), 0.25, 0.0, stay_mode=1.0), 30, np.random.default_rng(1))
    assert counted(chains, 2).min() > 0.9 > 0.2 > counted(chains, 1).max()


def test_a_run_of_equal_draws_counts_as_one_and_equal_independent_draws_in_full():
    rng = np.random.default_rng(1)
    draws = simulated(Kind((1.0,), 0.25), 30, rng)[0, :40]
    repeated = np.concatenate([np.repeat(draws[:1], 60, axis=0), draws[1:]])[np.newaxis]
    counts = counted(repeated)[0]
    assert counts[:60].sum() == pytest.approx(1.0, abs=0.01) and np.ptp(counts[60:]) < 1e-12
    one, other = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]
    independent = np.where(rng.random((2, 500, 1)) < 0.85, one, other)
    assert counted(independent).sum() > 0.85 * 1000


@pytest.mark.parametrize("repeats", [False, True])
def test_stretches_of_similar_draws_are_no_modes_and_two_modes_are_two(repeats):
    for weights in ((1.0,), (0.6, 0.4)):
        draws = simulated(Kind(weights, 0.25, 0.9, repeats), 30, np.random.default_rng(5))
        found = pc.consensus.fit_modes(draws, max_modes=3, n_starts=1, random_seed=1, progressbar=False)
        assert found.n_modes == len(weights)
        assert max(found.evidence, key=found.evidence.get) == len(weights)
