"""Bad draws and weights end in an error that says what is wrong; small draws are no bad draws."""

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.refinement import refine_partition
from tests.catalogue.bad import BAD
from tests.helpers import GOOD, ROWS, array, check_all


def test_bad_draws():
    check_all(pc.as_partition_draws, [(data, error, *parts) for data, error, parts in BAD.values()])


def test_bad_weights():
    of_draws = "one number per draw"
    masked = np.ma.array([1, 2, 3, 4], mask=[0, 0, 0, 1])
    other_dims = array(np.ones((4, 1)), ("draw", "obs"))
    other_draws = array(np.ones((1, 4)), ("chain", "draw"), draw=[1, 2, 3, 4])
    cases = [
        *(([1, 1, 1, w], ValueError, f"not negative; got {float(w)}") for w in (-1, np.nan, np.inf)),
        ([1, 1, 1, None], ValueError, "not negative; got nan"),
        ([0, 0, 0, 0], ValueError, "not all be 0"),
        (masked, ValueError, "missing; got 1"),
        ([1, 1], ValueError, of_draws, "(4,) or (1, 4); got shape (2,)"),
        (1.0, ValueError, of_draws, "got shape ()"),
        (np.ones((4, 4)), ValueError, of_draws, "got shape (4, 4)"),
        (list("1234"), TypeError, "numbers; got list"),
        ("uniform", TypeError, "numbers; got str"),
        (np.ones(4) + 1j, TypeError, "numbers; got ndarray of complex128"),
        (np.zeros(4, "M8[D]"), TypeError, "numbers; got ndarray of datetime64"),
        (other_dims, ValueError, of_draws, "(4,) or (1, 4); got shape (4, 1)"),
        (other_draws, ValueError, "the coordinates of 'draw' differ"),
    ]
    cases = [(weights, error, "`weights`", *parts) for weights, error, *parts in cases]
    check_all(lambda weights: pc.as_partition_draws(ROWS, weights=weights), cases)


SMALL = {
    "one draw": GOOD[:1],
    "one draw of one item": GOOD[:1, :1],
    "one item": GOOD[:, :1],
    "equal draws": GOOD[[0, 0, 0, 0, 0]],
    "all together": np.zeros((6, 4), int),
    "all apart": np.tile(np.arange(4), (6, 1)),
}


@pytest.mark.parametrize("draws", SMALL.values(), ids=SMALL)
def test_the_answer_to_few_draws_is_the_draw(draws):
    labels = pc.as_partition_draws(draws).labels[0]
    for method in ("greedy", "best_draw", "enumeration", "exact"):
        best = pc.consensus_partition(draws, loss="binder", method=method, random_seed=1)
        assert best.labels.values.tolist() == labels.tolist()
        assert best.expected_loss == pytest.approx(0, abs=1e-12)
        assert np.isnan(best.mcse) if len(draws) < 4 else np.isfinite(best.mcse)
        assert f"{best.n_clusters} cluster" in repr(best)
    ball = pc.credible_ball(pc.as_partition_draws(draws, weights=np.linspace(1, 2, len(draws))), labels)
    assert (ball.radius, ball.coverage) == (0, pytest.approx(1))
    for bound in (ball.horizontal, ball.upper_vertical, ball.lower_vertical):
        assert bound.values.tolist() == [labels.tolist()]
    alone = np.bincount(labels)[labels] == 1
    np.testing.assert_array_equal(pc.item_uncertainty(draws, labels).similarity, np.where(alone, np.nan, 1))
    if not alone.any() or labels.size == 1:  # else an item on its own joins the nearest
        assert refine_partition(draws, labels).values.tolist() == labels.tolist()
    assert len(pc.plot_psm(draws, labels).images) == 1
    assert len(ball.plot().images) == 4


def test_complex_scores_are_refused():
    table = pd.DataFrame({"unique_id_l": ["a"], "unique_id_r": ["b"], "match_probability": [0.9 + 0.1j]})
    with pytest.raises(TypeError, match="`probability` must name a column of numbers.* complex128"):
        pc.as_pair_similarity(table)


@pytest.mark.parametrize("kind", [">i2", ">i4", ">u8", ">f4", ">f8", ">U3"])
def test_numbers_in_the_byte_order_of_another_machine(kind, rng):
    labels = rng.integers(4, size=(40, 30))
    expected, table = pc.as_partition_draws(labels), pd.DataFrame(labels)
    foreign = labels.astype(kind)
    for found in (
        pc.as_partition_draws(foreign),
        pc.as_partition_draws(pd.DataFrame(foreign)),
        pc.as_runs(foreign),
        pc.as_runs(pd.DataFrame(foreign), axis=0),
    ):
        np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(pc.as_runs(pd.DataFrame(foreign)).labels, pc.as_runs(table).labels)
