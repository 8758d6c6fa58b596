"""How well components and clusters agree: what relabelling leaves out is told."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc


def divided(share, soft):
    """Two clusters of six items, the second divided between two components in this share of twenty draws."""
    z = np.tile(np.repeat([0, 1], 6), (1, 20, 1))
    z[0, : round(20 * share), 9:] = 2
    w = np.stack([(z == k).mean(axis=-1) for k in range(3)], axis=-1)
    posterior = xr.Dataset({"z": (("chain", "draw", "obs"), z), "w": (("chain", "draw", "k"), w)})
    p = pc.as_allocation_probabilities((z[..., np.newaxis] == np.arange(3)).astype(float)) if soft else None
    return xr.DataTree.from_dict({"posterior": posterior}), {"component_dim": "k", "allocations": p}


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "probabilities"])
def test_a_divided_cluster_is_told_though_it_is_always_matched(soft):
    tree, arguments = divided(0.5, soft)
    message = "12% of the items.* 75% of cluster 1: "
    with pytest.warns(UserWarning, match=message) as warned:
        found = pc.relabel(tree, np.repeat([0, 1], 6), **arguments)
    assert len(warned) == 1 and Path(warned[0].filename) == Path(__file__)
    record = found["relabelling"]
    np.testing.assert_array_equal(record["match_share"], [1.0, 1.0])
    np.testing.assert_allclose(record["cluster_agreement"], [1.0, 0.75], rtol=1e-14)
    np.testing.assert_allclose(record["component_agreement"], [1.0, 1.0], rtol=1e-14)
    left_out = 1 - found["posterior"]["w"].sum("k").mean()
    assert float(record["left_out"]) == pytest.approx(0.125) == float(left_out)
    with pytest.warns(UserWarning, match=message):  # a Dataset has no room for the record
        pc.relabel(tree["posterior"].to_dataset(), np.repeat([0, 1], 6), **arguments)
    tree, arguments = divided(0.1, soft)  # rarely, which is not warned of
    record = pc.relabel(tree, np.repeat([0, 1], 6), **arguments)["relabelling"]
    assert float(record["left_out"]) == pytest.approx(0.025)


def relabelling_of(z, partition):
    posterior = {"z": (("chain", "draw", "obs"), z), "mu": (("chain", "draw", "k"), np.zeros((1, len(z[0]), 2)))}
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(posterior)})
    return pc.relabel(tree, partition, component_dim="k")["relabelling"]


def test_a_component_of_several_clusters_agrees_with_each_in_part():
    record = relabelling_of([[[0, 0, 0, 0, 0, 1]] * 2 + [[0, 0, 0, 1, 1, 1]] * 18], [0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(record["component_agreement"], [(2 * 3 / 5 + 18) / 20, 1.0], rtol=1e-14)
    np.testing.assert_allclose(record["cluster_agreement"], [1.0, (2 / 3 + 18) / 20], rtol=1e-14)
    assert float(record["left_out"]) == pytest.approx(0, abs=1e-15)


def test_a_cluster_that_never_has_a_component_has_no_agreement():
    with pytest.warns(UserWarning, match="0% of cluster 1"):
        record = relabelling_of([[[0, 0, 0]] * 4], [0, 0, 1])
    np.testing.assert_allclose(record["component_agreement"], [2 / 3, np.nan], rtol=1e-14)
