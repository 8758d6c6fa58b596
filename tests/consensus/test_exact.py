import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import GOOD


def find(draws, loss="binder", method="exact", **options):
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize("seed", range(4))
def test_equals_enumeration(seed):
    rng, a = np.random.default_rng(seed), (1.0, 0.5, 1.3, 1.0)[seed]
    draws, weights = noisy_draws(rng, 9, 7, 3, 0.6), rng.exponential(size=9) if seed > 1 else None
    taken = pc.as_partition_draws(draws, weights=weights)
    result, best = find(taken, pc.binder(a)), find(taken, pc.binder(a), "enumeration")
    assert [result.expected_loss, result.lower_bound] == pytest.approx([best.expected_loss] * 2, rel=1e-9)
    assert result.lower_bound <= best.expected_loss + 1e-12
    assert result.optimality_gap < 1e-9


def test_out_of_time_it_says_how_far_it_got():
    draws = noisy_draws(np.random.default_rng(1), 6, 60, 6, 0.7)
    result, proven = find(draws, seconds=1e-9), find(draws)
    assert result.optimality_gap > 1e-9
    assert result.lower_bound < proven.expected_loss <= result.expected_loss
    assert "optimality gap" in repr(result) and "% of the expected loss" in repr(result)
    assert "optimal" in repr(proven)


@pytest.mark.parametrize("method", ["greedy", "best_draw"])
def test_every_answer_under_binder_s_loss_has_a_bound(method):
    for seed, a in enumerate([1.0, 0.5, 1.0]):
        draws = noisy_draws(np.random.default_rng(seed), 12, 7, 3, 0.5)
        least = reference.least_expected(draws, lambda c, z, a=a: reference.binder(c, z, a))
        result = find(draws, pc.binder(a), method)
        assert 0 < result.lower_bound <= least + 1e-12
        assert result.lower_bound <= result.expected_loss
        assert result.optimality_gap == pytest.approx(1 - result.lower_bound / result.expected_loss, abs=1e-11)
        stored = result.to_dataset()
        assert (
            float(stored["lower_bound"]) == result.lower_bound
            and float(stored["optimality_gap"]) == result.optimality_gap
        )


def test_other_losses_have_none():
    for loss in pc.LOSSES.keys() - {"binder"}:
        result = find(GOOD, loss, "greedy")
        assert result.lower_bound is None and result.optimality_gap is None
        assert "optimality gap" not in repr(result) and "optimality_gap" not in result.to_dataset()


def test_too_many_items_have_none():
    assert find(np.zeros((1, 5001), int), method="best_draw").lower_bound is None
