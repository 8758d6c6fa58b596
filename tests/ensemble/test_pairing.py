"""What comes with draws is paired with them by chain and draw, in every function that takes some."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.helpers import check_all

IDS = ("chain", "draw")
Z = xr.DataArray(
    np.random.default_rng(1).integers(3, size=(2, 6, 4)),
    dims=(*IDS, "obs"),
    coords={"chain": [1, 3], "draw": np.arange(10, 16)},
    name="z",
)
W = xr.DataArray(np.arange(1.0, 13.0).reshape(2, 6), {dim: Z[dim] for dim in IDS}, IDS)

SAME = {
    "as they are": lambda values: values,
    "draws reversed": lambda values: values.isel(draw=slice(None, None, -1)),
    "chains reversed": lambda values: values.isel(chain=[1, 0]),
    "draws before chains": lambda values: values.transpose("draw", "chain", ...),
    "stacked": lambda values: values.stack(sample=("draw", "chain")).transpose("sample", ...),
    "stacked, no index": lambda values: values.stack(sample=("draw", "chain")).reset_index("sample"),
    "without names": lambda values: values.drop_vars(IDS).transpose("draw", "chain", ...),
    "names of chains alone": lambda values: values.drop_vars("draw").isel(chain=[1, 0]),
}
ARRAYS = {
    "chains": lambda values: values.values,
    "rows": lambda values: values.values.reshape(12, *values.shape[2:]),
}
OTHER = {
    "other chains": lambda values: values.assign_coords(chain=[7, 9]),
    "other draws": lambda values: values.assign_coords(draw=values["draw"] + 1),
    "fewer draws": lambda values: values.isel(draw=slice(5)),
}


def weights_of(data):
    return lambda values: pc.as_partition_draws(data, weights=values).weights


def log_weights_of(data):
    return lambda values: pc.as_partition_draws(data, log_weights=np.log(values)).weights


MADE = pc.as_partition_draws(Z)
TAKES_ARRAYS = {
    "weights": weights_of(Z),
    "weights of draws": weights_of(MADE),
    "log_weights": log_weights_of(Z),
}


@pytest.mark.parametrize("name", TAKES_ARRAYS)
def test_draws_are_paired_by_name(name):
    function = TAKES_ARRAYS[name]
    expected = function(W)
    for kind, change in (SAME | ARRAYS).items():
        np.testing.assert_allclose(function(change(W)), expected, rtol=1e-12, err_msg=kind)
    check_all(lambda change: function(change(W)), [(change, ValueError, "`") for change in OTHER.values()])
