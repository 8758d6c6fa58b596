from functools import cache

import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import GOOD, check


def find(draws, loss="binder", method="exact", **options):
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize("a", [1.0, 0.5, 1.3])
@pytest.mark.parametrize("seed", range(25))
def test_equals_enumeration(seed, a):
    rng = np.random.default_rng(seed)
    draws = noisy_draws(rng, 9, 8, 3, 0.6) if seed % 2 else random_draws(rng, 6, 7, 4)
    weights = rng.exponential(size=len(draws)) if seed % 3 == 0 else None
    taken = pc.as_partition_draws(draws, weights=weights)
    result, best = find(taken, pc.binder(a)), find(taken, pc.binder(a), "enumeration")
    assert result.expected_loss == pytest.approx(best.expected_loss, rel=1e-9)
    assert result.lower_bound == pytest.approx(best.expected_loss, rel=1e-9)
    assert result.lower_bound <= best.expected_loss + 1e-12
    assert result.gap < 1e-9


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    result = find(draws)
    assert result.gap < 1e-9
    assert result.expected_loss == pytest.approx(reference.least_expected(draws, reference.binder), abs=1e-12)


def test_out_of_time_it_says_how_far_it_got():
    draws = noisy_draws(np.random.default_rng(1), 6, 60, 6, 0.7)
    result, proven = find(draws, seconds=1e-9), find(draws)
    assert result.gap > 1e-9
    assert result.lower_bound < proven.expected_loss <= result.expected_loss
    assert "gap" in repr(result) and "of the loss" in repr(result)
    assert "this is the optimum" in repr(proven)


@pytest.mark.parametrize(
    ("options", "error", "parts"),
    [
        ({"loss": "vi"}, ValueError, ["'exact' takes Binder's loss only; got 'vi'", "'enumeration'", "certify"]),
        ({"n_clusters": 2}, ValueError, ["neither `n_clusters` nor `max_clusters`", "'greedy'"]),
        ({"max_clusters": 2}, ValueError, ["neither `n_clusters` nor `max_clusters`"]),
        ({"seconds": 0}, ValueError, ["`seconds` must be positive; got 0"]),
        ({"n_starts": 2}, TypeError, ["method 'exact' takes seconds; got `n_starts`"]),
    ],
)
def test_arguments(options, error, parts):
    check(lambda given: find(GOOD, **given), options, error, parts)


# The bound that every consensus under Binder's loss comes with


@cache
def some_draws(seed, a):
    """Draws, and the least expected loss of any partition."""
    draws = noisy_draws(np.random.default_rng(seed), 12, 7, 3, 0.5)
    return draws, reference.least_expected(draws, lambda c, z: reference.binder(c, z, a))


@pytest.mark.parametrize("method", [method for method in pc.METHODS if method != "exact"])
@pytest.mark.parametrize("a", [1.0, 0.5])
def test_every_method_s_answer_has_a_bound(method, a):
    for seed in range(5):
        draws, least = some_draws(seed, a)
        result = find(draws, pc.binder(a), method)
        assert 0 < result.lower_bound <= least + 1e-12
        assert result.lower_bound <= result.expected_loss
        assert result.gap == pytest.approx(1 - result.lower_bound / result.expected_loss, abs=1e-11)
        stored = result.to_dataset()
        assert float(stored["lower_bound"]) == result.lower_bound and float(stored["gap"]) == result.gap


@pytest.mark.parametrize("loss", [name for name in pc.LOSSES if name != "binder"])
def test_other_losses_have_none(loss):
    result = find(GOOD, loss, "greedy")
    assert result.lower_bound is None and result.gap is None
    assert "gap" not in repr(result) and "gap" not in result.to_dataset()


def test_too_many_items_have_none():
    assert find(np.zeros((1, 5001), int), method="best_draw").lower_bound is None
