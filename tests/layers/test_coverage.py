"""Intervals and errors of distances between layers, over repetitions."""

import pytest

from benchmarks import layers

pytestmark = pytest.mark.slow


def test_intervals_hold_the_truth_as_often_as_they_say():
    of_vi, of_binder, _, _ = layers.coverage(3.0, 200)
    assert 0.85 <= of_vi <= 0.95 and 0.85 <= of_binder <= 0.95


@pytest.mark.parametrize("chains", list(layers.CHAINS.values())[:3], ids=str)
def test_independent_layers_differ_by_at_most_two_errors_in_95_of_100(chains):
    within, ratio = layers.within_two_errors(*chains, 200)
    assert 0.91 <= within <= 0.99 and 0.9 <= ratio <= 1.2
