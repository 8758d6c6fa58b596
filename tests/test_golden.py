"""A posterior of 1,000 items on which other programs have been run; golden/README.md says which."""

import json
from pathlib import Path

import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference

GOLDEN = Path(__file__).parent / "golden"
ANSWERS = json.loads((GOLDEN / "dpmm.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def draws():
    with np.load(GOLDEN / "dpmm_draws.npz") as file:
        return pc.as_partition_draws(file["labels"])


def test_similarity_is_exact(draws):
    similarities = pc.posterior_similarity_matrix(draws).values
    np.testing.assert_array_equal(similarities, reference.similarity(draws.labels))


@pytest.mark.parametrize("loss", ANSWERS)
def test_expected_loss_of_their_partition(loss, draws):
    answer = ANSWERS[loss]
    found = float(pc.expected_loss(draws, answer["labels"], loss=loss)["expected_loss"])
    assert found == pytest.approx(answer["expected_loss"], rel=0, abs=1e-9)


@pytest.mark.parametrize("loss", ANSWERS)
def test_credible_ball(loss, draws):
    answer = ANSWERS[loss]["credible_ball"]
    ball = pc.credible_ball(draws, ANSWERS[loss]["labels"], loss=loss, prob=answer["prob"])
    assert ball.radius == pytest.approx(answer["radius"], rel=0, abs=1e-9)
    assert ball.horizontal["distance"].values == pytest.approx(answer["radius"], rel=0, abs=1e-9)
    for bound, n_clusters in [("upper_vertical", "n_clusters_upper"), ("lower_vertical", "n_clusters_lower")]:
        found = getattr(ball, bound)
        assert found["distance"].values == pytest.approx(answer[bound], rel=0, abs=1e-9)
        assert {np.unique(labels).size for labels in found.values} == {answer[n_clusters]}


@pytest.mark.parametrize(("loss", "at_most"), [("vi", 2.08586147411061), ("binder", 0.16155064)])
def test_greedy_search_does_as_well(loss, at_most, draws):
    result = pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)
    assert result.expected_loss <= at_most
