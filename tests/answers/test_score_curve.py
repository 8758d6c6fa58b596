"""Matches among pairs apart, by a curve from their scores to shares of matches."""

import numpy as np
import pytest
from scipy.special import expit, logit

from posterior_consensus.answers.score_curve import matches_by_curve


@pytest.fixture
def scores(rng):
    """Scores of six strata of pairs."""
    return [rng.uniform(0.5, 1.0, 2_000) * 10.0**-k for k in range(1, 7)]


def test_answers_on_all_pairs_leave_no_doubt(scores, rng):
    number = np.full(6, 2_000)
    assert set(matches_by_curve(scores, number, np.array([150, 15, 2, 0, 0, 0]), rng)) == {167}


def test_strata_without_an_answer_follow_the_others(scores, rng):
    """Scores whose log odds are too low by 2 where pairs were answered, are so below too."""
    number = np.array([500, 500, 500, 0, 0, 0])
    true = [expit(logit(own) + 2).sum() for own in scores]
    matches = np.round(np.array(true) * number / 2_000).astype(int)
    low, middle, high = np.quantile(matches_by_curve(scores, number, matches, rng) - matches.sum(), [0.1, 0.5, 0.9])
    left = sum(true) - matches.sum()
    assert low < left < high and middle == pytest.approx(left, rel=0.2)


def test_a_stratum_may_be_off_the_curve(scores, rng):
    number = np.full(6, 500)
    matches = np.array([38, 4, 0, 0, 0, 50])
    low, high = np.quantile(matches_by_curve(scores, number, matches, rng), [0.025, 0.975])
    assert low < 4 * matches.sum() < high and low > 4 * 70


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 1.0), (2.0, 1.0), (0.0, 0.6)])
def test_intervals_hold(scores, rng, shift, slope):
    matches = [rng.random(own.size) < expit(shift + slope * logit(own)) for own in scores]
    true, held = sum(own.sum() for own in matches), 0
    for _ in range(100):
        seen = np.array([rng.choice(own, 30, replace=False).sum() for own in matches])
        low, high = np.quantile(matches_by_curve(scores, np.full(6, 30), seen, rng), [0.025, 0.975])
        held += low <= true <= high
    assert held >= 89
