import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from tests.helpers import check_all


@pytest.fixture
def known(rng):
    return pc.as_allocation_probabilities(rng.dirichlet(np.ones(4), size=(30, 6)), weights=rng.random(30))


@pytest.fixture
def new(rng, known):
    p = rng.dirichlet(np.ones(4), size=(30, 3))
    return pc.as_allocation_probabilities(xr.DataArray(p, dims=("sample", "obs", "k"), coords={"obs": list("xyz")}))


PARTITION = np.array([0, 0, 1, 1, 1, 2])


def test_probabilities_are_those_of_a_random_companion(known, new):
    predicted = pc.predict_allocation(new, known, partition=PARTITION)
    expected = np.zeros((3, 4))
    for t in range(30):
        for i in range(3):
            for k in range(4):
                companions = PARTITION[known.soft.components[t] == k]
                shares = np.bincount(companions, minlength=3) / companions.size if companions.size else np.zeros(3)
                joins = known.weights[t] * new.soft.probabilities[t, i, k]
                expected[i, :3] += joins * shares
                expected[i, 3] += joins * (companions.size == 0)
    assert_allclose(predicted["probability"].values, expected[:, :3], atol=1e-14)
    assert_allclose(predicted["new_cluster_probability"].values, expected[:, 3], atol=1e-14)
    assert_array_equal(predicted["cluster"].values, np.where(expected.argmax(1) == 3, -1, expected.argmax(1)))
    assert predicted["probability"].dims == ("obs", "consensus_cluster")
    assert predicted["obs"].values.tolist() == list("xyz")


def test_an_item_like_none_is_in_a_new_cluster():
    known = pc.as_allocation_probabilities([[[1.0, 0.0], [1.0, 0.0]]])
    predicted = pc.predict_allocation(pc.as_allocation_probabilities([[[0.1, 0.9]]]), known, partition=[0, 0])
    assert predicted["cluster"].item() == -1
    assert predicted["new_cluster_probability"].item() == pytest.approx(0.9)


def test_bad_arguments(known, new):
    fewer = pc.as_allocation_probabilities(np.full((29, 3, 4), 0.25))

    def predicted(changes):
        return pc.predict_allocation(**{"new": new, "known": known, "partition": PARTITION} | changes)

    cases = [
        ({"new": fewer}, ValueError, "`new`", "29 x 4", "30 x 4"),
        ({"new": known.labels}, TypeError, "`new`", "allocation probabilities"),
        ({"known": known.labels}, TypeError, "`known`", "allocation probabilities"),
        ({"partition": [0, 1]}, ValueError, "partition", "6", "2"),
    ]
    check_all(predicted, cases)
