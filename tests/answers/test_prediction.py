"""New items: memberships of items that were not among those that decide which component is which cluster."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from tests.helpers import check_all


@pytest.fixture
def known(rng):
    return pc.as_allocation_probabilities(rng.dirichlet(np.full(4, 0.3), size=(2, 15, 6)), weights=rng.random(30))


@pytest.fixture
def new(rng, known):
    p = rng.dirichlet(np.ones(4), size=(30, 3))
    p = xr.DataArray(p, dims=("sample", "obs", "k"), coords={"obs": list("xyz")})
    return pc.as_allocation_probabilities(p, weights=known.weights)


PARTITION = np.array([0, 0, 1, 1, 1, 2])


def test_known_items_that_are_passed_as_new_have_their_memberships(known):
    expected = pc.membership(known, PARTITION)
    for items in (slice(None), slice(1, 4)):
        predicted = pc.predict_allocation(known.of_items(np.arange(6)[items]), known, partition=PARTITION)
        assert_allclose(predicted.probabilities, expected.probabilities[items], rtol=0, atol=1e-14)
        # the effective sample size is pooled over the items given
        assert_allclose(predicted.mcse, expected.mcse[items], rtol=1e-12 if items == slice(None) else 0.05)
        assert np.isfinite(predicted.mcse).all()


def of_normals(rng, y, names):
    """Allocations of observations to two normals of mean -1 and 1, by Bayes' rule."""
    p = 1 / (1 + np.exp(2 * np.asarray(y, float)))
    both = np.stack([p, 1 - p], axis=-1)
    return pc.as_allocation_probabilities(np.stack([both[:, order] for order in names]))


def test_far_from_all_known_items_it_is_the_probability_of_the_component(rng):
    names = [rng.permutation(2) for _ in range(40)]
    y = rng.choice([-1, 1], 50) + rng.normal(size=50)
    known = of_normals(rng, y, names)
    predicted = pc.predict_allocation(
        of_normals(rng, [-6, 0, 1], names), known, partition=np.where(y < 0, "low", "high")
    )
    low = predicted.probabilities.sel(consensus_cluster="low")
    assert_allclose(low, 1 / (1 + np.exp([-12, 0, 2])), rtol=0, atol=1e-12)
    assert_allclose(predicted.probabilities.sel(consensus_cluster="elsewhere"), 0, atol=1e-12)


def test_a_component_without_known_items_is_elsewhere(new):
    known = pc.as_allocation_probabilities([[[1.0, 0.0], [1.0, 0.0]]])
    predicted = pc.predict_allocation(pc.as_allocation_probabilities([[[0.1, 0.9]]]), known, partition=["a", "a"])
    assert_allclose(predicted.probabilities.values, [[0.1, 0.9]])
    assert predicted.to_dataframe()["cluster"].tolist() == ["elsewhere"]
    for partition in (["a", "a"], [0, 1]):
        two = pc.as_allocation_probabilities([[[0.1, 0.9], [0.8, 0.2]]])
        predicted = pc.predict_allocation(two, known, partition=partition)
        ax = pc.plot_membership(predicted)
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [
            *map(str, dict.fromkeys(partition)),
            "elsewhere",
        ]
        pc.plot_regimes([3.0, 4.0], predicted)
    plt.close("all")


def test_draws_are_paired_by_name_and_have_the_weights_of_the_known_items(rng):
    p = rng.dirichlet(np.full(3, 0.3), size=(2, 10, 8))
    p = xr.DataArray(p, dims=("chain", "draw", "obs", "k"), coords={"chain": [1, 3], "draw": np.arange(5, 15)})
    weights = rng.random((2, 10))
    known = pc.as_allocation_probabilities(p, weights=weights)
    expected = pc.membership(known, PARTITION[[0, 1, 2, 3, 4, 5, 5, 5]]).probabilities
    changed = [p, p.isel(chain=[1, 0]), p.isel(draw=slice(None, None, -1))]
    for new in (*changed, pc.as_allocation_probabilities(p[:, ::-1], weights=weights[:, ::-1])):
        found = pc.predict_allocation(new, known, partition=PARTITION[[0, 1, 2, 3, 4, 5, 5, 5]]).probabilities
        assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_the_result_is_of_the_new_items(known, new):
    predicted = pc.predict_allocation(new, known, partition=PARTITION)
    assert predicted.probabilities.dims == ("obs", "consensus_cluster")
    assert predicted.probabilities["obs"].values.tolist() == list("xyz")
    assert_array_equal(predicted.cluster, predicted.probabilities.argmax("consensus_cluster"))
    assert_array_equal(predicted.own, predicted.probabilities.max("consensus_cluster"))


def test_bad_arguments(known, new):
    fewer = pc.as_allocation_probabilities(np.full((29, 3, 4), 0.25))

    def predicted(changes):
        return pc.predict_allocation(**{"new": new, "known": known, "partition": PARTITION} | changes)

    cases = [
        ({"new": fewer}, ValueError, "`new`", "same 30 draws", "got 29"),
        ({"new": np.full((30, 3, 5), 0.2)}, ValueError, "`new`", "4 components", "got 5"),
        (
            {"new": pc.as_allocation_probabilities(np.full((2, 15, 3, 4), 0.25), weights=known.weights[::-1])},
            ValueError,
            "`new`",
            "weights of `known`",
        ),
        ({"new": known.labels}, TypeError, "`new`", "allocation probabilities"),
        ({"known": known.labels}, TypeError, "`known`", "allocation probabilities"),
        ({"partition": [0, 1]}, ValueError, "partition", "6", "2"),
        ({"partition": ["elsewhere"] * 6}, ValueError, "`partition`", "'elsewhere'"),
    ]
    check_all(predicted, cases)
