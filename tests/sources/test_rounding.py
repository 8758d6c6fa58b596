"""Probabilities whose sums are off by rounding are taken and normalized, others are refused."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import posterior_consensus as pc
from posterior_consensus.sources.arrays import sums_to_one, tolerance


def rounded(values, digits):
    """To significant digits, as programs write text."""
    return np.vectorize(lambda value: float(f"{value:.{digits}g}"))(values)


def is_one(values):
    return sums_to_one(xr.DataArray(values), "dim_2")


@pytest.mark.parametrize("how", [rounded, np.round])
@pytest.mark.parametrize("n_components", [3, 40, 400])
def test_rounded_probabilities_are_taken(n_components, how, rng):
    p = rng.dirichlet(np.full(n_components, 0.3), (6, 30))
    for digits in (2, 3, 6, 8):
        few = how(p, digits)
        most = min(0.05, n_components / 2 * 10.0**-digits) if digits <= 6 else 0
        allowed = tolerance(few, few)
        assert 1e-5 <= allowed <= max(1e-5, most) * (1 + 1e-9)
        assert how is rounded or allowed == pytest.approx(max(1e-5, most))  # decimals are the digits of the largest
        if allowed < 0.05:  # so few digits of so many components may be too far off
            soft = pc.as_allocation_probabilities(few).probabilities
            assert_allclose(soft.sum(axis=-1), 1, rtol=1e-14)
            assert_allclose(soft, few / few.sum(axis=-1, keepdims=True), rtol=1e-12)
            named = xr.Dataset({"q": (("chain", "draw", "obs", "k"), few[np.newaxis])})
            assert_allclose(pc.as_allocation_probabilities(named).probabilities, soft)


def test_the_largest_difference_of_rounding_is_taken():
    """Three components that are all rounded up or down by nearly half of the last digit."""
    for digits in (2, 3, 4):
        up = 1 / 3 + np.array([-2, 1, 1]) * 0.4 * 10.0**-digits
        values = np.round(np.tile(up, (4, 5, 1)), digits)
        assert is_one(values)
        assert not is_one(values + np.array([0, 0, 2 * 10.0**-digits]))


def test_logarithms_and_single_precision(rng):
    p = rng.dirichlet(np.full(5, 0.5), (6, 50))
    for digits in (3, 6):
        assert is_one(rounded(np.log(p), digits)) and not is_one(rounded(np.log(p) + 0.2, digits))
    least = np.nextafter(0, 1)  # a logarithm of a probability that is nearly one
    assert is_one(np.tile([-least, -1e3, -1e3], (6, 50, 1)))
    single = p.astype(np.float32)
    assert is_one(p) and is_one(single) and is_one(np.log(single))
    assert not is_one(p * 1.0005) and not is_one(single * np.float32(1.002))  # all digits are no excuse


def test_what_is_no_probability_is_refused_by_how_much():
    p = np.tile([0.23456, 0.34567, 0.41977], (4, 5, 1))
    p[2, 3, 1] += 0.3
    p[0, 0, 0] = 0.0
    for values, allowed in ((p, "1.5e-05"), (p + 1e-9, "1e-05"), (rounded(p, 2), "0.015")):
        with pytest.raises(ValueError, match=rf"1\.3\d* from draw 2, item 3, .* rounding explains {allowed}\."):
            pc.as_allocation_probabilities(values)


def test_a_zero_that_rounding_made_negative_is_zero(rng):
    p = np.tile([0.3, 0.7, -1e-17], (6, 50, 1))
    for log in (None, False):
        assert_allclose(pc.as_allocation_probabilities(p, log=log).probabilities, np.maximum(p, 0))
    named = xr.Dataset({"q": (("chain", "draw", "obs", "k"), p[np.newaxis])})
    assert pc.as_allocation_probabilities(named).probabilities.max() == pytest.approx(0.7)
    with pytest.raises(ValueError, match="`log` is False; got -0.01 at draw 0, item 0"):
        pc.as_allocation_probabilities(np.where(p < 0, -0.01, p), log=False)


def test_names_of_logarithms_tell_where_all_are_positive(rng):
    p = rng.dirichlet(np.ones(3), (1, 6, 50))
    named = xr.Dataset({"log_prob_z": (("chain", "draw", "obs", "k"), np.log(p) + 40)})  # densities above 1
    assert_allclose(pc.as_allocation_probabilities(named).probabilities, p[0])
    with pytest.raises(ValueError, match="`log` .*'resp'"):
        pc.as_allocation_probabilities(named.rename(log_prob_z="resp"))


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        ((2, 3, 1), -0.001, r"`log` .* got -0\.001 at draw 2, item 3, component 1 "),
        ((2, 3), 0.0, r"got 0 for all components from draw 2, item 3"),
        ((), 0.0, r"got 0 for all components from draw 0, item 0"),
    ],
)
def test_one_bad_value_makes_no_logarithms(at, value, words, rng):
    p = rng.dirichlet(np.ones(3), (6, 50))
    p[at] = value
    with pytest.raises(ValueError, match=words):
        pc.as_allocation_probabilities(p)
    if p.any():  # else these are labels
        with pytest.raises(ValueError, match=words):
            pc.consensus_partition(p)


def test_logarithms_above_zero_are_refused_unless_they_are_called_so(rng):
    p = rng.dirichlet(np.ones(3), (6, 50))
    logs = np.log(p)
    logs[1, 2, 0] = 0.5
    with pytest.raises(ValueError, match=r"`log` .* got 0\.5 at draw 1, item 2, component 0 "):
        pc.as_allocation_probabilities(logs)
    for shifted in (np.log(p) + 2, np.where(np.arange(3) == 0, 2.0, np.log(p))):
        with pytest.raises(ValueError, match="`log`"):
            pc.as_allocation_probabilities(shifted)
        called = xr.Dataset({"lps": (("chain", "draw", "obs", "k"), shifted[np.newaxis])})
        taken = pc.as_allocation_probabilities(shifted, log=True).probabilities
        assert_allclose(taken, np.exp(shifted) / np.exp(shifted).sum(axis=-1, keepdims=True))
        assert_allclose(pc.as_allocation_probabilities(called).probabilities, taken)
    one = np.array([-np.inf, 1e-12, -np.inf])  # rounding puts log 1 above 0
    assert pc.as_allocation_probabilities(np.tile(one, (6, 50, 1))).probabilities[0, 0].tolist() == [0, 1, 0]
