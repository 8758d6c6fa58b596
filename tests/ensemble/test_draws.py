from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.runtime import memory
from tests.catalogue.posteriors import unequal_chains
from tests.helpers import check, written
from tests.strategies import label_draws, relabelled, weights

ROWS = np.array([[2, 0, 2, 5], [5, 5, 0, 2], [0, 0, 0, 0]])
CANONICAL = [[0, 1, 0, 2], [0, 0, 1, 2], [0, 0, 0, 0]]


def frame(z):
    return z.stack(sample=("chain", "draw")).transpose("sample", "obs").to_pandas()


def tree(z):
    return xr.DataTree.from_dict({"posterior": z.to_dataset(), "prior": (z[:, :2] * 0).to_dataset()})


LABELLED = {
    "DataArray": lambda z, path: z,
    "unnamed DataArray": lambda z, path: z.rename(None),
    "transposed DataArray": lambda z, path: z.transpose("obs", "draw", "chain"),
    "Dataset": lambda z, path: z.to_dataset(),
    "Dataset with parameters": lambda z, path: z.to_dataset().assign(mu=z.isel(obs=0, drop=True) / 7, w=z / 7),
    "stacked DataArray": lambda z, path: z.stack(sample=("chain", "draw")),
    "stacked Dataset": lambda z, path: z.to_dataset().stack(sample=("chain", "draw")),
    "stacked, index reset": lambda z, path: z.stack(sample=("chain", "draw")).reset_index("sample"),
    "DataFrame with MultiIndex": lambda z, path: frame(z),
    "DataFrame of strings": lambda z, path: frame(z).astype(str),
    "DataTree": lambda z, path: tree(z),
    "group's own node": lambda z, path: tree(z)["posterior"],
    "NetCDF of groups": lambda z, path: written(tree(z), path / "z.nc"),
    "NetCDF of groups, str": lambda z, path: str(written(tree(z), path / "z.nc")),
    "NetCDF of a Dataset": lambda z, path: written(z.to_dataset(), path / "z.nc"),
    "Zarr of groups": lambda z, path: written(tree(z), path / "z.zarr"),
    "Zarr of a Dataset": lambda z, path: str(written(z.to_dataset(), path / "z.zarr")),
}


def assert_is(draws, z):
    rows = z.transpose("chain", "draw", "obs").values.reshape(-1, z.sizes["obs"])
    assert draws.labels.tolist() == [[list(dict.fromkeys(r)).index(k) for k in r] for r in rows.tolist()]
    assert draws.labels.dtype == np.uint8
    assert draws.n_clusters.tolist() == [len(set(row)) for row in rows.tolist()]
    assert draws.items.dim == "obs"
    assert draws.items.coords["obs"].values.tolist() == z["obs"].values.tolist()
    assert_array_equal(draws.samples.chain, np.repeat(z["chain"].values, z.sizes["draw"]))
    assert_array_equal(draws.samples.draw, np.tile(z["draw"].values, z.sizes["chain"]))
    assert_allclose(draws.weights, 1 / len(rows))
    assert not draws.samples.is_weighted


@pytest.mark.parametrize("kind", LABELLED)
def test_labels_and_coordinates_survive(kind, z, tmp_path):
    draws = pc.as_partition_draws(LABELLED[kind](z, tmp_path))
    assert_is(draws, z)
    assert "DataFrame" in kind or draws.items.coords["site"].values.tolist() == [7, 7, 8, 9]


def test_what_arviz_holds(arviz, posterior, z, tmp_path):
    z = z.assign_coords(chain=[0, 1], draw=np.arange(6))
    posterior.to_netcdf(str(tmp_path / "z.nc"))
    extracted = arviz.extract(posterior, var_names="z")
    sources = (posterior, posterior["posterior"], extracted, arviz.extract(posterior), tmp_path / "z.nc")
    for data in sources:
        assert_is(pc.as_partition_draws(data), z)
        assert_is(pc.as_partition_draws(data, "z", item_dim="obs"), z)


PLAIN = [
    *(ROWS, ROWS.tolist(), tuple(map(tuple, ROWS)), list(ROWS), pd.DataFrame(ROWS, columns=list("abcd"))),
    *(ROWS[np.newaxis], np.asfortranarray(ROWS)[:, ::-1][:, ::-1], np.ma.array(ROWS)),
    xr.DataArray(ROWS, dims=("sample", "item")),
]


def test_plain_arrays():
    for data in (*PLAIN, ROWS[:, np.newaxis], ROWS[:, np.newaxis].tolist()):
        draws = pc.as_partition_draws(data)
        chains = np.ndim(data) == 3 and np.shape(data)[0] == 3
        assert draws.labels.tolist() == CANONICAL
        assert draws.items.dim == "item"
        assert draws.samples.chain.tolist() == ([0, 1, 2] if chains else [0, 0, 0])
        assert draws.samples.draw.tolist() == ([0, 0, 0] if chains else [0, 1, 2])
        assert ("item" in draws.items.coords) == isinstance(data, pd.DataFrame)


FRAME = pd.DataFrame(ROWS, columns=list("abcd"))
LABELS = [
    *(ROWS.astype(t) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "f2", "f4", "f8", "g")),
    *(ROWS + 1, ROWS * 1000, ROWS.astype("u8") + np.uint64(2**63), ROWS + 2**62),
    *(ROWS.astype(object), ROWS.astype(float).astype(object), ROWS.astype(str), ROWS.astype(bytes)),
    *(ROWS.astype(str).astype(object), ROWS.astype(np.dtypes.StringDType()), ROWS.astype(str).tolist()),
    *(FRAME.astype(kind) for kind in ("Int64", "string", "category")),
]


def test_labels_of_any_kind():
    for labels in LABELS:
        assert pc.as_partition_draws(labels).labels.tolist() == CANONICAL, labels
    assert pc.as_partition_draws(ROWS == 0).labels.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    for n_clusters, dtype in ((1, "u1"), (256, "u1"), (257, "u2")):
        assert pc.as_partition_draws([np.arange(300) % n_clusters]).labels.dtype == np.dtype(dtype)


@given(st.data(), label_draws(min_chains=1))
def test_names_of_labels_do_not_matter(data, labels):
    draws, others = pc.as_partition_draws(labels), pc.as_partition_draws(data.draw(relabelled(labels)))
    assert_array_equal(draws.labels, others.labels)
    assert_array_equal(draws.n_clusters, others.n_clusters)
    assert_array_equal(pc.as_partition_draws(draws.labels).labels, draws.labels)


def test_sample_dims_by_name(z):
    for dims in (("chain", "draw"), ["draw", "chain"]):
        draws = pc.as_partition_draws(z, sample_dims=dims)
        assert [draws.samples.chain[rows].tolist() for rows in draws.samples.chains] == [[1] * 6, [3] * 6]
        assert [draws.samples.draw[rows].tolist() for rows in draws.samples.chains] == [list(range(10, 16))] * 2
    draws = pc.as_partition_draws(z)
    one = pc.as_partition_draws(z.isel(chain=1), sample_dims="draw")
    assert_array_equal(one.labels, draws.labels[6:])
    assert one.samples.draw.tolist() == list(range(10, 16))
    assert set(one.items.coords) == {"obs", "site"}  # not the chain that is left as a scalar
    three = pc.as_partition_draws(xr.concat([z, z + 1, z], "run"), sample_dims=("run", "chain", "draw"))
    assert_array_equal(three.labels, np.tile(draws.labels, (3, 1)))
    assert [rows.size for rows in three.samples.chains] == [18, 18]


def test_chains_that_share_a_number_stay_apart(z):
    draws = pc.as_partition_draws(xr.concat([z, z], "chain"))
    assert [rows.size for rows in draws.samples.chains] == [6] * 4


def test_item_coordinates_with_levels(z):
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["site", "plot"])
    coords = xr.Coordinates.from_pandas_multiindex(index, "obs")
    draws = pc.as_partition_draws(z.drop_vars(["obs", "site"]).assign_coords(coords))
    assert draws.items.coords["obs"].to_index().equals(index)


def test_var_name_takes_one_of_several(z):
    both = z.to_dataset().assign(k=z // 2)
    for name in ("z", "k"):
        assert_array_equal(pc.as_partition_draws(both, name).labels, pc.as_partition_draws(both[name]).labels)


def test_the_only_candidate_is_taken(z):
    dataset = z.to_dataset().assign(k=z.rename(obs="component") // 2, n=z.max("obs"), eta=z / 7)
    with pytest.raises(ValueError, match=r"`var_name` .*; candidates: 'z', 'k'"):
        pc.as_partition_draws(dataset)
    assert_is(pc.as_partition_draws(dataset, item_dim="obs"), z)
    assert_is(pc.as_partition_draws(dataset.assign(z=z.astype(float)), "z"), z)
    assert_is(pc.as_partition_draws(dataset.drop_vars("k").assign(z=z.astype(float))), z)


def test_group(z):
    assert pc.as_partition_draws(tree(z), group="prior").n_draws == 4
    assert pc.as_partition_draws(tree(z)["prior"]).n_draws == 4


W = np.arange(1.0, 13.0)


WEIGHTS = [
    *(W, W.tolist(), 1e300 * W, 1e-300 * W, W.astype(int), W.reshape(2, 6), xr.DataArray(W, dims="sample")),
    xr.DataArray(W.reshape(2, 6).T, dims=("draw", "chain")),
    xr.DataArray(W.reshape(2, 6)[:, ::-1], dims=("chain", "draw"), coords={"draw": np.arange(15, 9, -1)}),
]


def test_weights_of_any_shape_for_data_and_for_made_draws(z, small_draws):
    for given_weights in WEIGHTS:
        sources = (z, small_draws) if np.shape(given_weights) == np.shape(W) else (z,)
        for draws in (pc.as_partition_draws(data, weights=given_weights) for data in sources):
            assert draws.samples.is_weighted
            assert_allclose(draws.weights, W / 78, rtol=1e-15)
            assert_allclose(draws.samples.mean(np.arange(12.0)), np.average(np.arange(12.0), weights=W), rtol=1e-14)
    weighted = pc.as_partition_draws(small_draws, weights=W.reshape(2, 6))
    assert weighted.labels is small_draws.labels
    assert_array_equal(weighted.weights, draws.weights)
    assert not pc.as_partition_draws(weighted, weights=np.full(12, 3)).samples.is_weighted


@given(st.data(), label_draws(min_draws=2))
def test_weights_sum_to_one(data, labels):
    draws = pc.as_partition_draws(labels, weights=data.draw(weights(len(labels))))
    assert draws.weights.sum() == pytest.approx(1, abs=1e-15)
    assert draws.samples.is_weighted == (np.ptp(draws.weights) > 0)


def test_starts_and_sizes(small_draws):
    assert pc.as_partition_draws(small_draws) is small_draws
    assert (small_draws.n_draws, small_draws.n_items) == (12, 4)
    assert_array_equal(np.diff(small_draws.starts), small_draws.n_clusters)
    assert small_draws.starts[0] == 0


def test_repr(z):
    text = repr(pc.as_partition_draws([[0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 1, 1]]))
    assert text.splitlines() == [
        "PartitionDraws",
        "  draws     4",
        "  chains    1 of 4 draws",
        "  items     3 (item)",
        "  clusters  1 to 3; 5%, 50%, 95%: 1, 2, 3",
        "  labels    uint8, 0.0 MB",
    ]
    assert "12, weighted" in repr(pc.as_partition_draws(z, weights=W))
    assert "2 of 6 draws" in repr(pc.as_partition_draws(z))


def test_partitions_are_aligned_by_item(z, small_draws):
    labels = xr.DataArray([5, 5, 1, 2], dims="obs", coords={"obs": list("abcd")})
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        for partition in (labels[order], labels.to_series().iloc[order]):
            assert small_draws.as_labels(partition).tolist() == [0, 0, 1, 2]
    plain = labels.drop_vars("obs")
    for partition in (plain, plain.values.tolist()):
        assert small_draws.as_labels(partition).tolist() == [0, 0, 1, 2]
    numbered = xr.DataArray([5, 5, 1, 2], dims="item", coords={"item": [3, 2, 1, 0]})  # for draws without names
    assert pc.as_partition_draws(z.values).as_labels(numbered).tolist() == [0, 0, 1, 2]
    best = pc.consensus_partition(small_draws, random_seed=1)
    shuffled = best.labels.to_series().iloc[::-1]
    assert_array_equal(small_draws.as_labels(shuffled), best.labels.values)
    assert pc.partition_loss(shuffled, best.labels.to_series()) == 0
    assert pc.partition_loss(best, shuffled) == pc.partition_loss(shuffled, best) == 0


def test_draws_before_chains_are_noticed():
    with pytest.warns(UserWarning, match=r"\(30, 2, 4\) .*30 chains of 2 draws.*swap"):
        pc.as_partition_draws(np.zeros((30, 2, 4), int))
    with pytest.warns(UserWarning, match="swap"):
        pc.as_allocation_probabilities(np.full((30, 2, 4, 2), 0.5))


def test_what_has_no_groups_takes_none():
    for data in (ROWS, ROWS.tolist(), {"z": ROWS[np.newaxis]}, pd.DataFrame(ROWS)):
        with pytest.raises(ValueError, match="`group` .* tables and arrays, .*; got 'prior'"):
            pc.as_partition_draws(data, group="prior")


def test_dict_of_arrays():
    draws = pc.as_partition_draws({"z": np.zeros((2, 5, 3), int), "alpha": np.zeros((2, 5))})
    assert (draws.n_draws, draws.n_items, len(draws.samples.chains)) == (10, 3, 2)
    with pytest.raises(ValueError, match=r"chains x draws x items; present: 'z' \(5, 3\)"):
        pc.as_partition_draws({"z": np.zeros((5, 3), int)})


def test_made_draws_take_no_names(z, small_draws):
    for arguments in ({"var_name": "z"}, {"item_dim": "obs"}):
        with pytest.raises(ValueError, match="must be left out for PartitionDraws"):
            pc.as_partition_draws(small_draws, **arguments)
    with pytest.raises(ValueError, match="`var_name` must be None for ndarray"):
        pc.as_partition_draws(z.values, var_name="z")


CHOICES = [
    ("isel", {"draw": slice(2, None)}),  # a burn-in
    ("isel", {"draw": slice(1, None, 2)}),  # thinning, too
    ("isel", {"draw": slice(-2, None)}),
    ("isel", {"chain": 1}),
    ("isel", {"chain": -1, "draw": [0, 3]}),
    ("isel", {"chain": [1, 0], "draw": slice(None, 3)}),
    ("isel", {"draw": [True, False, True, False, False, True]}),
    ("sel", {"chain": 3}),
    ("sel", {"draw": [15, 11]}),
    ("sel", {"draw": slice(12, 14)}),
    ("sel", {"chain": [3, 1], "draw": 10}),
]


def test_draws_are_chosen_as_xarray_chooses_them(z):
    draws = pc.as_partition_draws(z, weights=xr.DataArray(W.reshape(2, 6), dims=("chain", "draw")))
    weights = xr.DataArray(W.reshape(2, 6), coords={d: z[d] for d in ("chain", "draw")})
    for by, wanted in CHOICES:
        found = getattr(draws, by)(**wanted)
        lists = {dim: value if isinstance(value, (list, slice)) else [value] for dim, value in wanted.items()}
        assert_is(pc.as_partition_draws(found, weights=np.ones(len(found))), getattr(z, by)(lists))
        rows = getattr(weights, by)(lists).values.ravel()
        assert_allclose(found.weights, rows / rows.sum(), rtol=1e-15)
        assert found.samples.is_weighted and found.weights.sum() == pytest.approx(1, abs=1e-15)


def test_burn_in_of_chains_of_different_lengths(rng):
    draws = unequal_chains(rng, [5, 3, 7], 4)
    found = draws.isel(draw=slice(2, None))
    assert [rows.size for rows in found.samples.chains] == [3, 1, 5] and len(found) == found.n_draws == 9
    assert_array_equal(found.samples.draw, [2, 3, 4, 7, 10, 11, 12, 13, 14])
    assert_array_equal(found.labels[3], draws.labels[7])
    assert [rows.size for rows in draws.isel(draw=slice(4, None)).samples.chains] == [1, 3]


MISSING = [
    ("isel", {"chain": 2}, IndexError, ["`chain`", "0 to 1; got 2"]),
    ("isel", {"draw": [0, 6]}, IndexError, ["`draw`", "0 to 5; got [0, 6]"]),
    ("sel", {"chain": 0}, KeyError, ["`chain`", "1 to 3; got 0"]),
    ("sel", {"draw": [10, 99]}, KeyError, ["`draw`", "10 to 15; got [10, 99]"]),
    ("isel", {"draw": slice(6, None)}, IndexError, ["at least one of the 12 draws; got draw=slice(6, None"]),
    ("sel", {"chain": []}, KeyError, ["at least one of the 12 draws; got chain=[]"]),
]


def test_draws_that_are_not_there(small_draws):
    for by, wanted, error, parts in MISSING:
        check(lambda wanted, by=by: getattr(small_draws, by)(**wanted), wanted, error, parts)


PARTITION = np.array([0, 0, 1, 1, 2, 0, 1], np.int32)
N_DRAWS = 12
KINDS = ["labels", "weighted", "soft", "stored"]
SELECTIONS = {
    "negative": [-1, -3, 0, -12],
    "mask": np.arange(N_DRAWS) % 3 == 1,
    "list of bool": [True, False] * 6,
    "slice": slice(-2, None, -4),
    "range": range(2, 9),
    "one": -5,
    "all": ...,
    "repeated": np.array([4, 4, -8], np.int8),
}
ANSWERS = {
    **dict.fromkeys(("items", "samples", "backend", "words", "labels", "n_clusters", "starts", "weights", "n_draws")),
    **dict.fromkeys(("n_items", "most_clusters", "shared_similarity", "mean_similarity", "similarity", "signatures")),
    **dict.fromkeys(("denominator", "labels_only", "as_sampled", "check_memory", "by_chain")),
    **dict.fromkeys(
        ("row_blocks", "without_zero_weights", "of_some_items", "draws", "counted_draws", "as_draws", "columns")
    ),
    **dict.fromkeys(("in_fixed_order", "own_order")),
    **dict.fromkeys(("noise_rows", "clusters", "marked_labels", "in_clusters", "has_noise", "usual_loss")),
    **dict.fromkeys(("lacks_items", "cluster_sizes", "n_present")),
    "relative_scales": (pc.losses.vi(),),
    "canonical": (np.array([[3, 1, 3]], np.uint8), 4),
    **dict.fromkeys(("as_labels", "as_marked_labels", "clusters_of", "links"), (PARTITION,)),
    "marginal_losses": (PARTITION[np.newaxis], pc.losses.binder()),
    "with_noise_of": (PARTITION, np.full(N_DRAWS, 1 / N_DRAWS)),
    **dict.fromkeys(("has_small_clusters", "certain_groups")),
    "all_pairs": ("This", "Leave it out."),
    "check_keeps": (PARTITION,),
    "check_unconstrained": ("This", "Leave it out."),
    "nearest": (2,),
    "own_and_nearest": (PARTITION,),
    "pairs_above": (0.3,),
    "together": lambda d: d.together(*d.columns()[:2, np.newaxis]),
    "reordered_to": lambda d: d.reordered_to(d.samples, "samples"),
    "isel": lambda d: d.isel(draw=[-1]),
    "map_links": lambda d: list(d.map_links(PARTITION, lambda *given: given)),
    "of_items": (np.array([-1, 0, 2]),),
    "product": (np.eye(7)[:, :2],),
    "row": (-1,),
    "sums": (PARTITION[np.newaxis],),
    "sel": lambda d: d.sel(draw=[5, 3]),
    "some_labels": (4,),
    "take": (SELECTIONS["negative"],),
    "take, mask": lambda d: d.take(SELECTIONS["mask"]),
    "item_uncertainty": lambda d: pc.item_uncertainty(d, PARTITION),
    "expected_loss": lambda d: pc.expected_loss(d, PARTITION, loss="vi"),
    "of taken draws": lambda d: pc.item_uncertainty(d.take([-2]), PARTITION),
}


def twelve_draws(kind, tmp_path):
    rng = np.random.default_rng(1)
    if kind == "soft":
        return pc.as_allocation_probabilities(rng.dirichlet(np.ones(3), (N_DRAWS, 7)))
    weights = rng.random(N_DRAWS) if kind == "weighted" else None
    store = tmp_path / "z.nc" if kind == "stored" else None
    return pc.as_partition_draws(rng.integers(3, size=(N_DRAWS, 7)), weights=weights, store=store)


def fresh(draws):
    """The same draws, of parts that keep nothing yet."""
    parts = {field.name: getattr(draws, field.name) for field in fields(draws)}
    return replace(draws, **{name: replace(part) if is_dataclass(part) else part for name, part in parts.items()})


def answer(name, draws):
    given = ANSWERS[name]
    try:
        if callable(given):
            return bits(given(draws))
        found = getattr(draws, name)
        return bits(found(*given or ()) if callable(found) else found)
    except TypeError as error:  # of draws without probabilities
        return str(error)


def bits(value):
    """What must be equal, down to the bits."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, xr.DataArray):
        return bits(value.values)
    if isinstance(value, xr.Dataset):
        return [bits(array) for array in value.values()]
    if isinstance(value, pc.results.PartitionDraws):
        own = value.backend.joint_counts(np.arange(value.n_items, dtype=np.int32) % 2)
        return [bits(part) for part in (value.labels, value.samples, value.backend.sizes, own)]
    if is_dataclass(value):
        return [bits(getattr(value, field.name)) for field in fields(value)]
    return [bits(part) for part in value] if isinstance(value, (tuple, list, Iterator)) else repr(value)


@pytest.mark.parametrize("kind", KINDS)
def test_no_method_changes_what_another_answers(kind, tmp_path, monkeypatch):
    own = {name for name in dir(pc.results.PartitionDraws) if not name.startswith("_")} - {"of", "plot"}
    assert own <= ANSWERS.keys()
    monkeypatch.setattr(memory, "SHARE_OF_FEW_DRAWS", 0)  # selections stay on disk
    draws = twelve_draws(kind, tmp_path)
    expected = {name: answer(name, fresh(draws)) for name in ANSWERS}
    for first in ANSWERS:
        same = fresh(draws)
        answer(first, same)
        for name in ANSWERS:
            assert answer(name, same) == expected[name], f"{name} after {first} and those above it"


@pytest.mark.parametrize("kind", KINDS)
def test_take_is_numpys_indexing(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "SHARE_OF_FEW_DRAWS", 0)
    draws = twelve_draws(kind, tmp_path)
    for name, rows in SELECTIONS.items():
        at = np.atleast_1d(np.arange(N_DRAWS)[rows])
        found, weights = draws.take(rows), draws.weights[at]
        assert_array_equal(found.labels, draws.labels[at], name)
        assert_array_equal(found.samples.draw, draws.samples.draw[at], name)
        assert_allclose(found.weights, weights / weights.sum(), rtol=1e-15, err_msg=name)
        if draws.counted_draws is None:
            assert_array_equal(found.probabilities, draws.probabilities[at], name)


@pytest.mark.parametrize("rows", [[], [7], [True], [[0, 1]], 0.5, np.zeros(4, bool)])
def test_take_refuses_what_selects_no_draws(rows, small_draws):
    check(small_draws.isel(chain=0, draw=slice(4)).take, rows, IndexError, ["`rows`", "4 draws"])


def test_draws_in_a_notebook(z, rng):
    shown = pc.as_partition_draws(z.rename(obs="<obs>"))._repr_html_()
    assert "<strong>PartitionDraws</strong>" in shown and "2 of 6 draws" in shown and "4 (&lt;obs&gt;)" in shown
    soft = pc.as_allocation_probabilities(rng.dirichlet(np.ones(3), (5, 4)))
    assert "<strong>AllocationDraws</strong>" in soft._repr_html_() and "(one sample)" in repr(soft)
    assert "3 components (component)" in soft._repr_html_()
