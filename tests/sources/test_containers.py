"""Results in the groups of a posterior, and in its files."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.helpers import check_all, written

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
        assert_array_equal(read[name].values, variable.values, err_msg=str(name))
        assert read[name].dims == variable.dims
        assert dict(read[name].attrs) == dict(variable.attrs)
    assert dict(read.attrs) == dict(stored.attrs)


def as_tree(data):
    """The same groups as a DataTree: InferenceData of ArviZ 0.23 refuses to write with Zarr 3."""
    if isinstance(data, xr.DataTree):
        return data
    return xr.DataTree.from_dict({name: data[name] for name in data.groups()})


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_results_survive_a_file(tree, z, best, tmp_path, suffix):
    results, psm = [make(z, best) for make in RESULTS.values()], pc.posterior_similarity_matrix(z)
    attached = pc.attach(tree, *results, psm)
    read = read_group(written(attached, tmp_path / f"a{suffix}"))
    assert_same(read, attached["consensus"].to_dataset())
    for result in results:
        for name, variable in result.to_dataset().data_vars.items():
            assert_array_equal(read[name].values, variable.values)
    assert read["obs"].values.tolist() == list("abcd")
    assert_array_equal(read["psm"].values, psm.values)
    assert read["psm"].dims == ("obs", "obs_bis")


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_results_survive_a_file_of_arviz(posterior, tmp_path, suffix):
    best = pc.consensus_partition(posterior, random_seed=1, n_starts=2)
    attached = pc.attach(posterior, best, pc.item_uncertainty(posterior, best))
    assert type(attached) is type(posterior)
    path = written(attached if suffix == ".nc" else as_tree(attached), tmp_path / f"a{suffix}")
    read, again = read_group(path), pc.as_partition_draws(path)
    assert_same(read, as_tree(attached)["consensus"].to_dataset())
    assert_array_equal(again.labels, pc.as_partition_draws(posterior).labels)
    assert again.as_labels(read["labels"]).tolist() == best.labels.values.tolist()
    assert float(read["expected_loss"]) == best.expected_loss


def test_input_is_neither_changed_nor_copied(posterior, tree, best):
    before = set(as_tree(posterior).children)
    assert set(as_tree(pc.attach(posterior, best)).children) == before | {"consensus"}
    assert set(as_tree(posterior).children) == before
    assert set(posterior["posterior"].data_vars) == {"z", "mu"}
    assert np.shares_memory(pc.attach(tree, best)["posterior"]["z"].values, tree["posterior"]["z"].values)
    assert list(tree.children) == ["posterior", "sample_stats"]


def test_a_group_of_that_name_is_replaced_and_another_kept(posterior, z, best):
    other = pc.consensus_partition(z, loss="binder", n_clusters=1, random_seed=1, n_starts=2)
    once = pc.attach(posterior, best, pc.item_uncertainty(z, best))
    twice, both = pc.attach(once, other), pc.attach(once, other, group="consensus_binder")
    assert set(twice["consensus"].data_vars) == set(other.to_dataset().data_vars)
    assert twice["consensus"].attrs["loss"] == "binder"
    assert "item_margin" in once["consensus"].data_vars
    assert [both[g].attrs["loss"] for g in ("consensus", "consensus_binder")] == ["vi", "binder"]


def test_warmup_is_kept(arviz, posterior, z, best):
    if isinstance(posterior, xr.DataTree):
        pytest.skip("a DataTree has no warm-up groups of its own kind")
    posterior.add_groups(warmup_posterior=z.to_dataset())
    assert "warmup_posterior" in pc.attach(posterior, best).groups()


def test_levels_of_items_become_coordinates(z, tmp_path):
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["plot", "tree"])
    z = z.drop_vars(["obs", "site"]).assign_coords(xr.Coordinates.from_pandas_multiindex(index, "obs"))
    best, psm = pc.consensus_partition(z, random_seed=1, n_starts=2), pc.posterior_similarity_matrix(z)
    attached = pc.attach(xr.DataTree.from_dict({"y": xr.Dataset()}), *(make(z, best) for make in RESULTS.values()), psm)
    read = read_group(written(attached, tmp_path / "a.nc"))
    assert_array_equal(read["psm"].values, psm.values)
    assert_array_equal(read["labels"].values, best.labels.values)
    assert read["labels"].dims == ("obs",)
    assert read["plot"].values.tolist() == read["plot_bis"].values.tolist() == list("xxyy")
    assert read["tree"].values.tolist() == [1, 2, 1, 2]


def test_items_may_have_coordinates_that_results_use(z, tree, tmp_path):
    names = ["cluster", "distance", "chain", "weight", "center"]
    z = z.drop_vars(["chain", "draw", "site"]).assign_coords({name: ("obs", [3, 1, 4, 1]) for name in names})
    best = pc.consensus_partition(z, random_seed=1, n_starts=2)
    attached = pc.attach(tree, *(make(z, best) for make in RESULTS.values()))
    assert_same(read_group(written(attached, tmp_path / "a.nc")), attached["consensus"].to_dataset())


def test_what_cannot_be_attached_is_refused(tree, z, best):
    wrong_data = (None, 3, "z.nc", {}, [], xr.Dataset(), xr.DataArray(0), np.zeros((2, 2)))
    wanted = "`data` must be an InferenceData, a DataTree or an AnnData"
    cases = [(one, TypeError, wanted, "to_dataset") for one in wrong_data]
    check_all(lambda data: pc.attach(data, best), cases)
    cases = [(group, ValueError, "`group`", "without '/'; got") for group in ("", "a/b", 3, None)]
    check_all(lambda group: pc.attach(tree, best, group=group), cases)
    cases = [([best, one], TypeError, "`results`", "to_dataset(); got") for one in (3, None, xr.Dataset(), [1, 2])]
    other, fewer = (
        pc.consensus_partition(z, loss="binder", random_seed=1, n_starts=1),
        pc.item_uncertainty(z[..., :3], [0, 0, 1]),
    )
    cases += [
        ([best, one], ValueError, "`results` store different values", "separate groups") for one in (other, fewer)
    ]
    check_all(lambda results: pc.attach(tree, *results), [*cases, ([], ValueError, "`results`", "got none")])
