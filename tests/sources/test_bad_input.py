"""Bad draws and mistyped arguments end in an error that says what is wrong; small draws are no bad draws."""

import numpy as np
import pytest

import posterior_consensus as pc
from tests.catalogue.bad import BAD
from tests.helpers import GOOD, ROWS, array, check


@pytest.mark.parametrize("bad", BAD)
def test_bad_draws(bad):
    check(pc.as_partition_draws, *BAD[bad])


WEIGHTS = {
    "negative": ([1, 1, 1, -1], ValueError, ["`weights` must be finite and not negative; got -1.0"]),
    "zero": ([0, 0, 0, 0], ValueError, ["`weights` must not all be 0"]),
    "NaN": ([1, 1, 1, np.nan], ValueError, ["`weights` must be finite and not negative; got nan"]),
    "None": ([1, 1, 1, None], ValueError, ["`weights` must be finite and not negative; got nan"]),
    "infinite": ([1, 1, 1, np.inf], ValueError, ["`weights` must be finite and not negative; got inf"]),
    "masked": (np.ma.array([1, 2, 3, 4], mask=[0, 0, 0, 1]), ValueError, ["`weights` must not be missing; got 1"]),
    "too few": ([1, 1], ValueError, ["`weights` must be one number per draw", "(4,) or (1, 4); got shape (2,)"]),
    "one number": (1.0, ValueError, ["`weights` must be one number per draw", "got shape ()"]),
    "a row per item": (np.ones((4, 4)), ValueError, ["`weights` must be one number per draw", "got shape (4, 4)"]),
    "strings": (list("1234"), TypeError, ["`weights` must be numbers; got list"]),
    "text": ("uniform", TypeError, ["`weights` must be numbers; got str"]),
    "complex": (np.ones(4) + 1j, TypeError, ["`weights` must be numbers; got ndarray of complex128"]),
    "dates": (np.zeros(4, "M8[D]"), TypeError, ["`weights` must be numbers; got ndarray of datetime64"]),
    "other dimensions": (
        array(np.ones((4, 1)), ("draw", "obs")),
        ValueError,
        ["`weights` must have the dimensions ('chain', 'draw'); got ('draw', 'obs')"],
    ),
    "other draws": (
        array(np.ones((1, 4)), ("chain", "draw"), draw=[1, 2, 3, 4]),
        ValueError,
        ["`weights` must be those of the same draws; the coordinates of 'draw' differ"],
    ),
}


@pytest.mark.parametrize("bad", WEIGHTS)
def test_bad_weights(bad):
    weights, error, parts = WEIGHTS[bad]
    check(lambda data: pc.as_partition_draws(data, weights=weights), ROWS, error, parts)


SMALL = {
    "one draw": GOOD[:1],
    "one draw of one item": GOOD[:1, :1],
    "one item": GOOD[:, :1],
    "equal draws": GOOD[[0, 0, 0, 0, 0]],
    "all together": np.zeros((6, 4), int),
    "all apart": np.tile(np.arange(4), (6, 1)),
}
small = pytest.mark.parametrize("draws", SMALL.values(), ids=SMALL)


@small
@pytest.mark.parametrize("method", pc.METHODS)
def test_consensus_of_few_draws_is_the_draw(draws, method):
    best = pc.consensus_partition(draws, loss="binder", method=method, random_seed=1)
    if method in ("greedy", "best_draw", "enumeration", "exact"):
        assert best.labels.values.tolist() == pc.as_partition_draws(draws).labels[0].tolist()
        assert best.expected_loss == pytest.approx(0, abs=1e-12)
    assert np.isfinite(best.expected_loss)
    assert np.isnan(best.mcse) if len(draws) < 4 else np.isfinite(best.mcse)
    assert f"{best.n_clusters} cluster" in repr(best)


@small
@pytest.mark.parametrize("weight", [None, 2.0])
def test_summaries_of_few_draws(draws, weight):
    if weight is not None:
        draws = pc.as_partition_draws(draws, weights=np.linspace(1, weight, len(draws)))
    labels = pc.as_partition_draws(draws).labels
    psm = pc.posterior_similarity_matrix(draws)
    np.testing.assert_allclose(psm, labels[0][:, np.newaxis] == labels[0], rtol=0, atol=1e-15)
    ball = pc.credible_ball(draws, labels[0])
    assert (ball.radius, ball.coverage) == (0, pytest.approx(1))
    for bound in (ball.horizontal, ball.upper_vertical, ball.lower_vertical):
        assert bound.values.tolist() == [labels[0].tolist()]
    items = pc.item_uncertainty(draws, labels[0])
    np.testing.assert_array_equal(np.isnan(items.probability), np.bincount(labels[0])[labels[0]] == 1)
    np.testing.assert_allclose(items.probability.dropna(items.probability.dims[0]), 1)
    for order in ("jacobi", "gauss-seidel"):
        refined = pc.consensus.refine_partition(draws, labels[0], order=order).values
        if items.probability.notnull().all() or len(refined) == 1:  # an item on its own joins the nearest, if any
            assert refined.tolist() == labels[0].tolist()
        assert refined.shape == labels[0].shape
    assert pc.expected_loss(draws, labels[0])["expected_loss"] == pytest.approx(0, abs=1e-12)
    assert len(pc.plot_psm(draws, labels[0]).images) == 1
    assert [bar.get_height() for bar in pc.plot_n_clusters(draws).patches] == [pytest.approx(1)]
    assert len(pc.plot_credible_ball(ball).images) == 4
