"""diagnose() of several layers: their distances are followed, and one partition of all items."""

import numpy as np
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.runtime.arguments import as_generator

Z = as_generator(1).integers(3, size=(2, 60, 3, 6))
Z[0, :, 1] = Z[0, :, 0]  # in the first chain alone the two layers go together


def test_chains_that_disagree_on_how_layers_go_together_only():
    found = pc.diagnose(pc.as_layers(Z))
    rhat = found.summaries["rhat"].to_series().drop("distance from 0 to 1")
    assert found.status == "disagree" and "distance from 0 to 1" in found.verdict
    assert found.summaries["rhat"].sel(summary="distance from 0 to 1") > 1.5 > 1.1 > rhat.max()
    assert all(pc.diagnose(Z[:, :, k]).status != "disagree" for k in range(3))


def test_traces_are_losses_in_each_draw():
    z = xr.DataArray(Z, dims=("chain", "draw", "time", "item"), coords={"item": list("abcdef")})
    data = {"a": z[:, :, 0], "b": z[:, :, 1, [4, 1, 0]], "none": z[:, :, 2].rename(item="other")}
    found = pc.diagnose(pc.as_layers({name: one.rename("z") for name, one in data.items()}), loss=pc.vi(a=0.4))
    assert found.partition["item"].values.tolist()[4:8] == ["a: e", "a: f", "b: e", "b: b"]
    traces = found.traces
    between = [name for name in traces["summary"].values if name.startswith("distance from")]
    assert between == ["distance from a to b"]
    partition = np.split(found.partition.values, [6, 9])
    for name, own in zip(data, partition, strict=True):
        draws = data[name].values.reshape(120, -1)
        losses = [pc.partition_loss(own, draw, loss=pc.vi(a=0.4)) for draw in draws]
        np.testing.assert_allclose(traces.sel(summary=f"distance within {name}"), losses, atol=1e-12)
    pairs = zip(Z[:, :, 0].reshape(120, 6)[:, [4, 1, 0]], data["b"].values.reshape(120, 3), strict=True)
    losses = [pc.partition_loss(one, other, loss=pc.vi(a=0.4)) for one, other in pairs]
    np.testing.assert_allclose(traces.sel(summary=between[0]), losses, atol=1e-12)
    for name, one in data.items():
        clusters = pc.as_partition_draws(one.values).n_clusters
        np.testing.assert_array_equal(traces.sel(summary=f"number of clusters in {name}"), clusters)


def test_ordered_layers_are_followed_from_the_last_one_with_common_items():
    other = xr.DataArray(Z[:, :, 1], dims=("chain", "draw", "column"))
    found = pc.diagnose(pc.as_layers({1: Z[:, :, 0], 2: other, 3: Z[:, :, 2]}))
    between = [name for name in found.traces["summary"].values if name.startswith("distance from")]
    assert between == ["distance from 1 to 3"]


def test_layers_without_an_order_are_followed_by_pairs():
    several = {k: Z[:, :, k % 3] for k in range(11)}
    few, many = (pc.diagnose(pc.as_layers(dict(list(several.items())[:k]), ordered=False)) for k in (3, 11))
    for found, number in ((few, 3), (many, 10)):
        assert sum(name.startswith("distance from") for name in found.traces["summary"].values) == number
