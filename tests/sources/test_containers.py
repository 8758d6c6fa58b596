import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.helpers import written

RESULTS = {
    "consensus": lambda z, best: best,
    "ball": lambda z, best: pc.credible_ball(z, best),
    "partial": lambda z, best: pc.partial_partition(z, complete="vi", random_seed=1),
    "items": lambda z, best: pc.item_uncertainty(z, best),
}


@pytest.fixture
def best(z):
    return pc.consensus_partition(z, random_seed=1, n_starts=2)


@pytest.fixture
def tree(z):
    return xr.DataTree.from_dict({"posterior": z.to_dataset(), "sample_stats": z.isel(obs=0).to_dataset(name="lp")})


def read_group(path, group="consensus"):
    engine = "zarr" if path.suffix == ".zarr" else "h5netcdf"
    with xr.open_datatree(path, engine=engine) as tree:
        return tree[group].to_dataset().load()


def assert_same(read, stored):
    """Equal values, names, dimensions, coordinates and attributes; a file may give strings another type."""
    assert set(read.variables) == set(stored.variables)
    for name, variable in stored.variables.items():
        np.testing.assert_array_equal(read[name].values, variable.values, err_msg=str(name))
        assert read[name].dims == variable.dims
        assert dict(read[name].attrs) == dict(variable.attrs)
    assert dict(read.attrs) == dict(stored.attrs)


def as_tree(data):
    """The same groups as a DataTree: InferenceData of ArviZ 0.23 refuses to write with Zarr 3."""
    if isinstance(data, xr.DataTree):
        return data
    return xr.DataTree.from_dict({name: data[name] for name in data.groups()})


@pytest.mark.parametrize("kinds", [["consensus"], ["ball"], ["items"], list(RESULTS)], ids="+".join)
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_results_survive_a_file(tree, z, best, tmp_path, kinds, suffix):
    results = [RESULTS[kind](z, best) for kind in kinds]
    attached = pc.attach(tree, *results)
    read = read_group(written(attached, tmp_path / f"a{suffix}"))
    assert_same(read, attached["consensus"].to_dataset())
    for result in results:
        for name, variable in result.to_dataset().data_vars.items():
            np.testing.assert_array_equal(read[name].values, variable.values)
    assert read["obs"].values.tolist() == list("abcd")


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_results_survive_a_file_of_arviz(posterior, tmp_path, suffix):
    best = pc.consensus_partition(posterior, random_seed=1, n_starts=2)
    results = [make(posterior, best) for make in RESULTS.values()]
    attached = pc.attach(posterior, *results)
    assert type(attached) is type(posterior)
    stored = as_tree(attached)["consensus"].to_dataset()
    path = written(attached if suffix == ".nc" else as_tree(attached), tmp_path / f"a{suffix}")
    assert_same(read_group(path), stored)
    again = pc.as_partition_draws(path)
    np.testing.assert_array_equal(again.labels, pc.as_partition_draws(posterior).labels)
    assert again.as_labels(read_group(path)["labels"]).tolist() == best.labels.values.tolist()
    assert float(read_group(path)["expected_loss"]) == best.expected_loss


def test_input_is_untouched(posterior, best):
    before = set(as_tree(posterior).children)
    assert set(as_tree(pc.attach(posterior, best)).children) == before | {"consensus"}
    assert set(as_tree(posterior).children) == before
    assert set(posterior["posterior"].data_vars) == {"z", "mu"}


def test_data_of_a_tree_are_not_copied(tree, best):
    attached = pc.attach(tree, best)
    assert np.shares_memory(attached["posterior"]["z"].values, tree["posterior"]["z"].values)
    assert list(tree.children) == ["posterior", "sample_stats"]


def test_a_group_of_that_name_is_replaced(posterior, z, best):
    other = pc.consensus_partition(z, loss="binder", n_clusters=1, random_seed=1, n_starts=2)
    once = pc.attach(posterior, best, pc.item_uncertainty(z, best))
    twice = pc.attach(once, other)
    assert set(twice["consensus"].data_vars) == set(other.to_dataset().data_vars)
    assert twice["consensus"].attrs["loss"] == "binder"
    assert "item_margin" in once["consensus"].data_vars


def test_results_of_two_losses_are_kept_in_two_groups(posterior, z, best):
    other = pc.consensus_partition(z, loss="binder", random_seed=1, n_starts=2)
    both = pc.attach(pc.attach(posterior, best), other, group="consensus_binder")
    assert [both[g].attrs["loss"] for g in ("consensus", "consensus_binder")] == ["vi", "binder"]


def test_warmup_is_kept(arviz, posterior, z, best):
    if isinstance(posterior, xr.DataTree):
        pytest.skip("a DataTree has no warm-up groups of its own kind")
    posterior.add_groups(warmup_posterior=z.to_dataset())
    assert "warmup_posterior" in pc.attach(posterior, best).groups()


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_levels_of_items_become_coordinates(z, tmp_path, suffix):
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["plot", "tree"])
    z = z.drop_vars(["obs", "site"]).assign_coords(xr.Coordinates.from_pandas_multiindex(index, "obs"))
    best = pc.consensus_partition(z, random_seed=1, n_starts=2)
    results = [make(z, best) for make in RESULTS.values()]
    psm = pc.posterior_similarity_matrix(z)
    attached = pc.attach(xr.DataTree.from_dict({"y": xr.Dataset()}), *results, psm)
    read = read_group(written(attached, tmp_path / f"a{suffix}"))
    assert read["plot_bis"].values.tolist() == list("xxyy")
    np.testing.assert_array_equal(read["psm"].values, psm.values)
    assert read["labels"].dims == ("obs",)
    assert read["plot"].values.tolist() == list("xxyy")
    assert read["tree"].values.tolist() == [1, 2, 1, 2]
    np.testing.assert_array_equal(read["labels"].values, best.labels.values)


@pytest.mark.parametrize("coordinate", ["cluster", "distance", "chain", "weight", "center"])
def test_items_may_have_a_coordinate_that_results_use(z, tree, tmp_path, coordinate):
    z = z.drop_vars(["chain", "draw", "site"]).assign_coords({coordinate: ("obs", [3, 1, 4, 1])})
    best = pc.consensus_partition(z, random_seed=1, n_starts=2)
    attached = pc.attach(tree, *(make(z, best) for make in RESULTS.values()))
    assert_same(read_group(written(attached, tmp_path / "a.nc")), attached["consensus"].to_dataset())


def test_similarity_matrix_can_be_attached(tree, z, best, tmp_path):
    psm = pc.posterior_similarity_matrix(z)
    read = read_group(written(pc.attach(tree, best, psm), tmp_path / "a.nc"))
    np.testing.assert_array_equal(read["psm"].values, psm.values)
    assert read["psm"].dims == ("obs", "obs_bis")


@pytest.mark.parametrize("group", ["", "a/b", 3, None])
def test_group_must_be_a_name(tree, best, group):
    with pytest.raises(ValueError, match="`group` must be a name without '/'; got"):
        pc.attach(tree, best, group=group)


@pytest.mark.parametrize("result", [3, None, xr.Dataset(), [1, 2]])
def test_results_must_be_storable(tree, best, result):
    with pytest.raises(TypeError, match=r"`results` must have a method to_dataset\(\); got"):
        pc.attach(tree, best, result)


def test_results_must_be_there_and_agree(tree, z, best):
    with pytest.raises(ValueError, match="`results` must hold at least one result; got none"):
        pc.attach(tree)
    with pytest.raises(ValueError, match=r"`results` store different values .*; attach them as separate groups"):
        pc.attach(tree, best, pc.consensus_partition(z, n_clusters=4, random_seed=1, n_starts=1))
    fewer = pc.item_uncertainty(z[..., :3], [0, 0, 1])
    with pytest.raises(ValueError, match="`results` store different values"):
        pc.attach(tree, best, fewer)


@pytest.mark.parametrize("data", [None, 3, "z.nc", {}, [], xr.Dataset(), xr.DataArray(0), np.zeros((2, 2))])
def test_data_must_hold_groups(best, data):
    with pytest.raises(TypeError, match=r"`data` must be an InferenceData or a DataTree; got .*to_dataset"):
        pc.attach(data, best)


@pytest.mark.parametrize("dim", ["consensus_cluster", "summary", "pair"])
def test_items_along_a_dimension_of_results_are_refused(dim, rng):
    draws = xr.DataArray(rng.integers(2, size=(2, 20, 9)), dims=("chain", "draw", dim))
    summary = pc.summarize(draws, random_seed=1)
    with pytest.raises(ValueError, match=f"dimension or coordinate '{dim}'"):
        summary.to_dataset()
