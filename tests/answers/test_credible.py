import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.answers.credible import BALL_BOUNDS
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws

METRICS = [name for name, factory in pc.LOSSES.items() if factory().metric]


def assert_is_the_ball(ball, draws, centre, loss, prob, weights=None):
    definition = reference.LOSSES[loss]
    radius, coverage, bounds = reference.credible_ball(draws, centre, definition, prob, weights)
    assert ball.radius == pytest.approx(radius, abs=1e-9)
    assert ball.coverage == pytest.approx(coverage, abs=1e-12)
    assert ball.coverage >= prob - 1e-9
    np.testing.assert_array_equal(ball.partition, centre)
    for name in BALL_BOUNDS:
        farthest, ties = bounds[name]
        found = getattr(ball, name)
        np.testing.assert_allclose(found["distance"], farthest, atol=1e-9)
        rows = [tuple(reference.canonical(row).tolist()) for row in found.values]
        assert len(set(rows)) == len(rows) and set(rows) == ties
        assert found.dtype == np.int32
    np.testing.assert_allclose(ball.distances, [definition(centre, draw) for draw in draws], atol=1e-12)


@pytest.mark.parametrize("loss", METRICS)
def test_definition_with_many_ties_and_of_degenerate_draws(loss):
    rng = np.random.default_rng(1)
    draws, centre, weights = noisy_draws(rng, 60, 6, 3, 0.4), rng.integers(3, size=6), rng.integers(0, 4, 60)
    assert len(np.unique([reference.vi(centre, draw) for draw in draws])) < 20
    for prob, own in ((0.05, None), (0.5, weights), (0.95, None), (0.999, weights)):
        ball = pc.credible_ball(pc.as_partition_draws(draws, weights=own), centre, loss=loss, prob=prob)
        assert_is_the_ball(ball, draws, centre, loss, prob, own)
    for draws in DEGENERATE.values():
        for centre in (draws[0], np.zeros(draws.shape[1], int)):
            assert_is_the_ball(pc.credible_ball(draws, centre, loss=loss), draws, centre, loss, 0.95)


def test_exactly_enough_draws_are_enough_and_those_without_weight_are_no_bound():
    """19 of 20 draws hold 95%, though twenty twentieths do not add up to one in floating point."""
    ball = pc.credible_ball([[0, 0, 1]] * 19 + [[0, 1, 2]], [0, 0, 1])
    assert (ball.radius, ball.coverage) == (0.0, 0.95)
    np.testing.assert_array_equal(ball.lower_vertical, [[0, 0, 1]])
    draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 2], [0, 0, 1]], weights=[1, 0, 1])
    ball = pc.credible_ball(draws, [0, 0, 1], prob=0.99)
    assert ball.radius == 0.0
    np.testing.assert_array_equal(ball.horizontal, [[0, 0, 1]])


def test_the_loss_is_the_result_s():
    draws = noisy_draws(np.random.default_rng(3), 30, 8, 3, 0.3)
    best = pc.consensus_partition(draws, loss="binder", random_seed=1)
    assert pc.credible_ball(draws, best).loss.name == "binder"
    assert pc.credible_ball(draws, best, loss="nid").loss.name == "nid"
    assert pc.credible_ball(draws, best.labels).loss.name == "vi"
    assert "Binder loss" in repr(pc.credible_ball(draws, best))


def test_a_ball_needs_a_metric():
    metrics = ", ".join(repr(name) for name, loss in pc.LOSSES.items() if loss().metric)
    for loss in ("one_minus_ari", "nmi", pc.binder(0.5), pc.vi(1.5), pc.losses.nmi("arithmetic")):
        with pytest.raises(ValueError, match=f"`loss` must be a metric.*{metrics}"):
            pc.credible_ball([[0, 1], [0, 0]], [0, 0], loss=loss)


def test_the_share_of_the_draws_in_the_ball_has_an_error():
    draws = np.array([[0, 0, 1, 1]] * 80 + [[0, 0, 1, 2]] * 20)
    ball = pc.credible_ball(draws[np.random.default_rng(2).permutation(100)], draws[0], prob=0.7)
    inside = (ball.distances.values == 0).astype(float)
    samples = pc.as_partition_draws(draws).samples
    assert ball.coverage == 0.8
    assert ball.coverage_mcse == pytest.approx(float(samples.probability_mcse(inside, ball.distances.values)))
    assert ball.coverage_mcse == pytest.approx(0.04, abs=0.01)


def test_noise_of_bounds_is_matched_with_noise_alone():
    centre, middle = [0, 0, 0, 1, 1, 1, -1, -1], [0, 0, 0, 1, 1, 1, 1, -1]
    far = [1, 1, 1, -1, 2, 2, 2, -1]  # its cluster 2 has item 6, which is noise in the centre
    runs = pc.as_runs([*[centre] * 5, *[middle] * 2, far], noise=-1)
    best = pc.consensus_partition(runs, random_seed=1, progressbar=False)
    assert best.labels.values.tolist() == [0, 0, 0, 1, 1, 1, -1, -1]
    ball = pc.credible_ball(runs, best, prob=0.999)
    assert ball.horizontal.values.tolist() == [[0, 0, 0, 4, 1, 1, 1, 3]]


def test_a_run_of_noise_alone_is_a_bound():
    runs = pc.as_runs([*[[0, 0, 1, 1]] * 3, [-1] * 4], noise=-1)
    best = pc.consensus_partition(runs, random_seed=1, progressbar=False)
    assert pc.credible_ball(runs, best, prob=0.999).horizontal.values.tolist() == [[2, 3, 4, 5]]
