"""as_layers(): layers from every kind of data, paired by chain, draw and item."""

import re
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.runtime.arguments import as_generator

Z = as_generator(4).integers(0, 3, (2, 15, 4, 6))
DIMS = ("chain", "draw", "time", "person")
NAMED = xr.DataArray(Z, dims=DIMS, coords={"time": [1, 3, 4, 9], "person": list("abcdef")}, name="z")
POSTERIOR = xr.Dataset({"z": NAMED, "mu": (("chain", "draw", "time", "cluster"), np.zeros((2, 15, 4, 3)))})
TABLE = pd.DataFrame({f"z[{t + 1},{i + 1}]": Z[0, :, t, i] for t in range(4) for i in range(6)})


def assert_same_labels(layers, expected):
    """Of each layer in its order, labels (draws, items) of the same partitions."""
    assert len(layers) == len(expected)
    for draws, labels in zip(layers.values(), expected, strict=True):
        np.testing.assert_array_equal(draws.labels, pc.as_partition_draws(labels).labels)


OF_ALL = [Z[:, :, t] for t in range(4)]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (POSTERIOR, {"layer_dim": "time"}),
        (POSTERIOR, {"var_name": "z", "item_dim": "person"}),
        (NAMED.transpose("person", "draw", "time", "chain"), {"layer_dim": "time"}),
        (xr.DataTree.from_dict({"posterior": POSTERIOR}), {"layer_dim": "time"}),
        (Z, {}),
        (list(OF_ALL), {}),
        ([NAMED[:, :, t].drop_vars("time") for t in range(4)], {"layer_dim": "time"}),
        ({"z": Z}, {"layer_dim": "time"}),
        ({t: Z[:, :, t] for t in range(4)}, {}),
        (
            xr.Dataset({f"z{t}": NAMED[:, :, t].drop_vars("time") for t in range(4)}),
            {"var_name": {t: f"z{t}" for t in range(4)}},
        ),
    ],
)
def test_every_kind_of_data(data, options):
    assert_same_labels(pc.as_layers(data, **options), OF_ALL)


def test_tables_and_files(tmp_path):
    TABLE.to_csv(tmp_path / "z.csv", index=False)
    np.save(tmp_path / "z.npy", Z)
    xr.DataTree.from_dict({"posterior": POSTERIOR}).to_netcdf(tmp_path / "z.nc", engine="h5netcdf")
    one_chain = [Z[0, :, t] for t in range(4)]
    assert_same_labels(pc.as_layers(TABLE), one_chain)
    assert_same_labels(pc.as_layers(tmp_path / "z.csv", "z", layer_dim="time"), one_chain)
    assert_same_labels(pc.as_layers(tmp_path / "z.npy"), OF_ALL)
    assert_same_labels(pc.as_layers(tmp_path / "z.nc", layer_dim="time"), OF_ALL)
    stores = {t: tmp_path / f"{t}.nc" for t in range(2)}
    for t, store in stores.items():
        pc.as_partition_draws(NAMED[:, :, t], store=store)
    assert_same_labels(pc.as_layers(stores), OF_ALL[:2])


def test_columns_that_are_not_there_are_items_that_a_layer_does_not_have():
    layers = pc.as_layers(TABLE.drop(columns="z[2,3]"))
    assert layers[2].items.names.tolist() == ["1", "2", "4", "5", "6"]
    ours, theirs = layers.common(1, 2)
    assert ours.tolist() == [0, 1, 3, 4, 5] and theirs.tolist() == [0, 1, 2, 3, 4]


def test_missing_items():
    gone = NAMED.astype(float)
    gone[:, :, 1, 2] = np.nan
    assert pc.as_layers(gone, layer_dim="time")[3].items.names.tolist() == ["a", "b", "d", "e", "f"]
    coded = gone.fillna(-1).astype(int).drop_vars("person")
    layers = pc.as_layers(coded, layer_dim="time", missing=-1)
    assert layers[3].items.names.tolist() == ["0", "1", "3", "4", "5"]
    assert layers.common(3, 4)[1].tolist() == [0, 1, 3, 4, 5]
    gone[0, 0, 1, 2] = 0
    with pytest.raises(ValueError, match=r"`missing`.*c of layer 3 "):
        pc.as_layers(gone, layer_dim="time")


def test_what_is_not_missing_must_not_be_negative():
    gone = Z.copy()
    gone[:, :, 1, 2] = -1
    for data, options in ((gone, {}), (NAMED.copy(data=gone), {"layer_dim": "time"})):
        with pytest.raises(ValueError, match="got -1 of item (2|c) of layer (1|3).* missing=-1"):
            pc.as_layers(data, **options)
    assert len(pc.as_layers(gone, missing=-1)[1].items.names) == 5


def test_soft_assignments():
    p = as_generator(1).dirichlet(np.ones(3), (2, 15, 4, 6))
    layers = pc.as_layers(xr.DataArray(p, dims=(*DIMS, "component"), name="p"), layer_dim="time")
    np.testing.assert_allclose(layers[2].probabilities, p[:, :, 2].reshape(30, 6, 3), rtol=1e-12)


def test_draws_are_paired_by_name():
    ids = {"chain": [0, 1], "draw": np.arange(15)}
    one, other = (NAMED[:, :, t].assign_coords(ids) for t in (0, 1))
    layers = pc.as_layers({"a": one, "b": other.isel(draw=slice(None, None, -1))})
    np.testing.assert_array_equal(layers["b"].labels, pc.as_partition_draws(other).labels)
    with pytest.raises(ValueError, match="'b'.*draw 0.*missing"):
        pc.as_layers({"a": one, "b": other.assign_coords(draw=np.arange(20, 35))})
    with pytest.raises(ValueError, match="'b'.*weights"):
        pc.as_layers({"a": pc.as_partition_draws(one), "b": pc.as_partition_draws(other, weights=np.arange(30))})


def test_items_are_paired_by_name_or_refused():
    other = NAMED[:, :, 1].isel(person=[5, 0, 2])
    layers = pc.as_layers({"a": NAMED[:, :, 0], "b": other})
    assert [at.tolist() for at in layers.common("a", "b")] == [[0, 2, 5], [1, 2, 0]]
    rows_and_columns = pc.as_layers({"a": NAMED[:, :, 0], "b": other.rename(person="pet")})
    assert rows_and_columns.common("a", "b")[0].size == 0
    for odd in (Z[:, :, 1, :4], NAMED[:, :, 1].rename(person="item")):
        with pytest.raises(ValueError, match="'item'.*names"):
            pc.as_layers({"a": Z[:, :, 0], "b": odd})
    with pytest.raises(ValueError, match="'person'.*unique"):
        pc.as_layers({"a": NAMED[:, :, 0], "b": NAMED[:, :, 1].assign_coords(person=list("aacdef"))})


@pytest.mark.parametrize(
    ("coords", "ordered"),
    [([1, 3, 4, 9], True), ([4, 3, 2, 1], False), (list("abcd"), False), (None, True)],
)
def test_order(coords, ordered):
    z = NAMED.drop_vars("time") if coords is None else NAMED.assign_coords(time=coords)
    layers = pc.as_layers(z, layer_dim="time")
    assert layers.ordered is ordered
    assert pc.as_layers(layers, ordered=not ordered).ordered is not ordered


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        ([1946, 1948, 1950], True),
        ([1.5, 2, 3], True),
        ([date(1946, 1, k) for k in (1, 2, 3)], True),
        ([1948, 1946, 1950], False),
        (["1946", "1948", "1950"], False),
        ([1946, "1948", 1950], False),
    ],
)
def test_keys_that_are_increasing_numbers_or_times_are_an_order(names, ordered):
    assert pc.as_layers({name: Z[:, :, k] for k, name in enumerate(names)}).ordered is ordered
    several = xr.Dataset({f"z{k}": NAMED[:, :, k].drop_vars("time") for k in range(3)})
    assert pc.as_layers(several, {name: f"z{k}" for k, name in enumerate(names)}).ordered is ordered


TIMES = {
    "2020-01-31": np.datetime64("2020-01-31"),
    "2020-02-01": date(2020, 2, 1),
    "2020-02-02T05:30": datetime(2020, 2, 2, 5, 30),
    "2020-02-03": pd.Timestamp("2020-02-03"),
    "2020-03": pd.Period("2020-03"),
    "1 day": timedelta(days=1),
    "0 days 00:00:00.000005": np.timedelta64(5, "us"),
    "7": np.int64(7),
}


def test_names_that_are_times_are_text_and_come_back(tmp_path):
    layers = pc.as_layers(dict.fromkeys(TIMES.values(), Z[:, :, 0]))
    assert list(layers) == [*list(TIMES)[:-1], 7]
    assert all(layers[name] is layers[text if text != "7" else 7] for text, name in TIMES.items())
    found = pc.compare_layers(layers, partitions=dict.fromkeys(TIMES.values(), Z[0, 0, 0]), progressbar=False)
    found.to_dataset().to_netcdf(tmp_path / "found.nc")
    with xr.open_dataset(tmp_path / "found.nc") as stored:
        back = pc.results.LayerComparison.from_dataset(stored.load())
    assert back.layers == list(layers) and back.overlaps["before"].values.tolist() == list(layers)[:-1]
    steps = NAMED.assign_coords(time=np.arange(4) * np.timedelta64(36, "h"))
    assert list(pc.as_layers(steps, layer_dim="time"))[:3] == ["0 days", "1 days 12:00:00", "3 days"]


@pytest.mark.parametrize("name", [(1, 2), None, float("nan")])
def test_other_names_are_refused(name):
    with pytest.raises(TypeError, match=f"Names of layers.*got {re.escape(repr(name))}"):
        pc.as_layers({name: Z[:, :, 0], "a": Z[:, :, 1]})


def test_days_have_names():
    days = NAMED.assign_coords(time=pd.date_range("2020-01-01", periods=4))
    assert next(iter(pc.as_layers(days, layer_dim="time"))) == "2020-01-01"


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        (Z, {"layer_dim": 2}, "`layer_dim`.*got 2"),
        (POSTERIOR, {"layer_dim": "tim"}, "`layer_dim`.*'tim'.*z .*'time', 'person'.*mu"),
        (POSTERIOR, {"layer_dim": "time", "item_dim": "pers"}, "`item_dim`.*'pers'.*'time', 'person'"),
        (NAMED, {"layer_dim": "time", "item_dim": "time"}, "`item_dim`.*'time'"),
        (POSTERIOR, {"sample_dims": "q", "layer_dim": "time"}, "`sample_dims`.*'q'"),
        (POSTERIOR, {"var_name": {}}, "`var_name`.*none"),
        (POSTERIOR, {"var_name": {"a": "z"}}, r"`var_name\['a'\]`.*'time', 'person'.*`layer_dim`"),
        (POSTERIOR, {"var_name": ["z"]}, "`var_name`.*'z'"),
        (NAMED, {"layer_dim": "time", "missing": [1]}, r"`missing`.*\[1\]"),
        (NAMED.where(NAMED["time"] != 3), {"layer_dim": "time"}, "`missing`; 3 has none"),
        (Z[:0, 0], {}, "at least one draw"),
        ({"z": Z[0, 0]}, {"layer_dim": "time"}, "layers x items"),
        ({1: Z[:, :, 0], "1": Z[:, :, 1]}, {}, "differ as text; got 1, '1'"),
        (POSTERIOR, {"var_name": "z"}, "`layer_dim`.*'time', 'person'"),
        (POSTERIOR, {"var_name": {"a": "x"}}, r"`var_name\['a'\]`.*'x'"),
        (Z[0, 0], {}, r"\(4, 6\)"),
        ({"z": Z[0]}, {}, r"'z' of shape \(15, 4, 6\).*as_partition_draws"),
        ({}, {}, "at least one|none"),
        (NAMED.assign_coords(time=[1, 1, 2, 3]), {"layer_dim": "time"}, "unique.*'time'"),
    ],
)
def test_what_is_refused(data, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        pc.as_layers(data, **options)


def test_layers_are_not_one_posterior():
    with pytest.raises(TypeError, match=r"got Layers.*layers\[name\]"):
        pc.consensus_partition(pc.as_layers(NAMED, layer_dim="time"))


def test_layers_show_themselves():
    layers = pc.as_layers(NAMED, layer_dim="time")
    assert "1, 3, 4, 9 (time, in this order)" in repr(layers)
    with pytest.raises(KeyError, match="2.*1, 3, 4, 9"):
        layers[2]


def runs_of(groups):
    labels = np.random.default_rng(2).integers(3, size=(len(groups), 6))
    return pc.as_runs(labels, groups=groups)


@pytest.mark.parametrize(
    ("groups", "names", "ordered"),
    [([1.0, 0.5, 2.0, 0.5], [0.5, 1.0, 2.0], True), (["b", "a", "b", "b"], ["a", "b"], False)],
)
def test_groups_of_runs_are_layers(groups, names, ordered):
    runs = runs_of(groups)
    layers = pc.as_layers(runs, layer_dim="resolution")
    assert (list(layers), layers.ordered, layers.dim, layers.are_runs) == (names, ordered, "resolution", True)
    for name, draws in layers.items():
        assert draws.labels.tolist() == runs.labels[np.array(groups) == name].tolist()
    again = pc.as_layers(dict(layers), layer_dim="resolution")
    assert_same_labels(again, [draws.labels for draws in layers.values()])
    assert "runs" in str(layers)


def test_runs_are_not_paired():
    layers = pc.as_layers({"a": runs_of([0, 0, 0]), "b": runs_of([0, 0])})
    assert [len(draws) for draws in layers.values()] == [3, 2]
    assert [len(draws) for draws in layers.isel(draw=slice(2)).values()] == [2, 2]
    for function in (pc.diagnose, lambda layers: layers.samples):
        with pytest.raises(ValueError, match=r"compare_layers\(layers\)"):
            function(layers)
    with pytest.raises(ValueError, match="runs of 'a' and draws of 'b'"):
        pc.as_layers({"a": runs_of([0, 0]), "b": pc.as_partition_draws([[0, 1, 1], [0, 0, 1]])})
