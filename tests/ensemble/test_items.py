import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import posterior_consensus as pc
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.strategies import small_draws


def assert_is_the_uncertainty(found, draws, partition, weights=None):
    similarities = reference.similarity(draws, weights)
    own, elsewhere = reference.item_uncertainty(similarities, partition)
    np.testing.assert_array_equal(found.cluster, reference.canonical(partition))
    np.testing.assert_allclose(found.similarity, own, atol=1e-12)
    if elsewhere.shape[1] == 1:
        np.testing.assert_array_equal(found.nearest, -1)
        assert np.isnan(found.nearest_similarity).all()
        return
    highest = np.nanmax(elsewhere, axis=1)
    np.testing.assert_allclose(found.nearest_similarity, highest, atol=1e-12)
    first = [np.flatnonzero(row >= top - 1e-12)[0] for row, top in zip(elsewhere, highest, strict=True)]
    np.testing.assert_array_equal(found.nearest, first)
    np.testing.assert_allclose(found.margin, own - highest, atol=1e-12)


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 40])
def test_definition(n_clusters):
    rng = np.random.default_rng(n_clusters)
    draws = noisy_draws(rng, 30, 40, 4, 0.4)
    partition = rng.permutation(np.arange(40) % n_clusters)
    for weights in (None, rng.exponential(size=30)):
        found = pc.item_uncertainty(pc.as_partition_draws(draws, weights=weights), partition)
        assert_is_the_uncertainty(found, draws, partition, weights)


@given(draws=small_draws(), data=st.data())
def test_definition_for_any_draws(draws, data):
    n_items = draws.shape[1]
    partition = data.draw(st.lists(st.integers(0, 3), min_size=n_items, max_size=n_items))
    assert_is_the_uncertainty(pc.item_uncertainty(draws, partition), draws, partition)


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        for partition in (draws[0], np.zeros(draws.shape[1], int), np.arange(draws.shape[1])):
            found = pc.item_uncertainty(draws, partition)
            assert_is_the_uncertainty(found, draws, partition)
            assert isinstance(repr(found), str) and isinstance(found._repr_html_(), str)


def test_items_keep_their_names():
    draws = xr.DataArray([[0, 0, 1], [0, 0, 0]], dims=("sample", "city"), coords={"city": ["Bonn", "Kiel", "Ulm"]})
    table = pc.item_uncertainty(draws, [0, 0, 1]).to_dataframe()
    assert table.index.tolist() == ["Bonn", "Kiel", "Ulm"] and table.index.name == "city"
    expected = pd.DataFrame(
        {
            "cluster": np.array([0, 0, 1], np.int32),
            "similarity": [1.0, 1.0, np.nan],
            "nearest": np.array([1, 1, 0], np.int32),
            "nearest_similarity": [0.5, 0.5, 0.5],
            "margin": [0.5, 0.5, np.nan],
            "membership": [1.0, 1.0, 0.5],
        },
        index=table.index,
    )
    pd.testing.assert_frame_equal(table, expected)
    stored = {*expected, "misplaced", "misplaced_mcse", "misplaced_ess"}
    assert set(pc.item_uncertainty(draws, [0, 0, 1]).to_dataset()) == {f"item_{name}" for name in stored}


def test_tables_keep_the_names_that_the_user_gave_the_clusters():
    draws = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    table = pc.item_uncertainty(draws, ["b", "b", "a", "a"]).to_dataframe()
    assert table["cluster"].tolist() == ["b", "b", "a", "a"]
    assert table["nearest"].tolist() == ["a", "a", "b", "b"]
    best = pc.consensus_partition(draws, random_seed=1, progressbar=False).with_names(first=1)
    assert pc.item_uncertainty(draws, best).to_dataframe()["cluster"].tolist() == [1, 1, 2, 2]
    labelled = xr.DataArray(draws, dims=("draw", "obs"), coords={"obs": list("wxyz")})
    reversed_names = xr.DataArray(["a", "a", "b", "b"], dims="obs", coords={"obs": list("zyxw")})
    aligned = pc.item_uncertainty(pc.as_partition_draws(labelled, sample_dims="draw"), reversed_names)
    assert aligned.to_dataframe()["cluster"].tolist() == ["b", "b", "a", "a"]
    alone = pc.item_uncertainty(draws, ["a"] * 4).to_dataframe()
    assert alone["nearest"].isna().all()


def test_a_dimension_may_have_the_name_of_a_column():
    coords = {"cluster": list("abc")}
    z = xr.DataArray([[[0, 0, 1], [0, 0, 1], [0, 1, 1], [0, 0, 1]]], coords, ("chain", "draw", "cluster"))
    result = pc.item_uncertainty(z, [0, 0, 1])
    table = result.to_dataframe()
    assert table.index.tolist() == list("abc") and table["cluster"].tolist() == [0, 0, 1]
    assert "ItemUncertainty: 3 clusters" in str(result) and r"cluster & cluster & similarity" in result.to_latex()
    values = z.isel(chain=0, draw=0).rename(cluster="feature").astype(float)
    assert pc.plot_data(values, [0, 0, 1]).get_xlabel() == "value"
