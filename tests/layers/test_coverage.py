"""Intervals and errors of distances between layers, over repetitions."""

import pytest

from benchmarks import layers

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def test_intervals_hold_the_truth_as_often_as_they_say():
    of_vi, of_binder, _, _ = layers.coverage(3.0, 200)
    assert 0.85 <= of_vi <= 0.95 and 0.85 <= of_binder <= 0.95


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chains", list(layers.CHAINS.values())[:3], ids=str)
def test_independent_layers_differ_by_at_most_two_errors_in_95_of_100(chains, weighted):
    within, ratio = layers.within_two_errors(*chains, 200, weighted)
    assert 0.91 <= within <= 0.99 and 0.9 <= ratio <= 1.2


@pytest.mark.parametrize("noise", layers.NOISES)
def test_changes_are_false_alarms_in_at_most_5_of_100(noise):
    assert layers.false_alarms("1 of 1,000, ESS 53", noise, 40)["changed"] <= 0.05
    assert layers.false_alarms("1 of 1,000, ESS 10", noise, 20)["unsure"] >= 0.9


@pytest.mark.parametrize("n_moved", layers.MOVED)
def test_moves_are_found_and_no_others(n_moved):
    noise = layers.NOISES["noise .05 and .25"]
    found = [
        layers.changes(layers.OF_CHANGES["4 of 250 independent draws"], noise, n_moved, seed) for seed in range(20)
    ]
    assert {one.verdict for one in found} == {"changed"}
    assert sum(one.named for one in found) >= 0.95 * 20 * n_moved and sum(one.wrong for one in found) <= 1
