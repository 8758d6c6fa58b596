"""Sample dimensions by default: the data's attribute, then the setting of ArviZ 1, then chain and draw."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import noisy_draws

QUIET = {"random_seed": 1, "progressbar": False}
LABELS = noisy_draws(np.random.default_rng(0), 40, 6, 3, 0.2)


def along(*dims, **attrs):
    z = xr.DataArray(LABELS.reshape(*((2, 20) if len(dims) == 2 else (40,)), 6), dims=(*dims, "obs"))
    return xr.Dataset({"z": z}, attrs=attrs)


@pytest.mark.parametrize("named", [["step"], "step"])
def test_the_attribute_of_the_data_names_them(named, tmp_path):
    data = along("step", sample_dims=named)
    tree = xr.DataTree.from_dict({"posterior": data})
    tree.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    for held in (data, tree, tmp_path / "posterior.nc"):
        np.testing.assert_array_equal(pc.as_partition_draws(held).labels, pc.as_partition_draws(LABELS).labels)
    summary = pc.summarize(tree, modes=False, **QUIET)
    assert summary.draws.n_draws == 40
    assert pc.results.Summary.from_dataset(summary.to_dataset(), tree).draws.n_draws == 40
    soft = xr.Dataset({"p": (("step", "obs", "k"), np.eye(3)[LABELS])}, attrs={"sample_dims": named})
    assert pc.as_allocation_probabilities(soft).n_draws == 40
    mu = data.assign(mu=(("step", "k"), np.tile([1.0, 5.0, 9.0], (40, 1))))
    assert pc.relabel(mu, summary.partition, component_dim="k")["mu"].dims == ("step", "k")


def test_an_attribute_that_names_other_dimensions_is_of_no_matter():
    draws = pc.as_partition_draws(along("chain", "draw", sample_dims=["sample"]))
    assert len(draws.samples.chains) == 2
    assert (
        pc.as_partition_draws(along("chain", "draw", sample_dims=["step"]), sample_dims=["chain", "draw"]).n_draws == 40
    )


def test_the_setting_of_arviz_names_them():
    arviz_base = pytest.importorskip("arviz_base")
    data = along("step")
    pytest.importorskip("arviz_base.validate", reason="ArviZ 0 has no such setting")
    with arviz_base.rc_context({"data.sample_dims": ["step"]}):
        assert pc.as_partition_draws(data).n_draws == pc.summarize(data, modes=False, **QUIET).draws.n_draws == 40
        assert pc.as_partition_draws(LABELS).n_draws == 40  # an array has no names
    with pytest.raises(ValueError, match="`data` has no label variable .*sample_dims='step'"):
        pc.as_partition_draws(data)
