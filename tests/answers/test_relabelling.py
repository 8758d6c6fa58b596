"""Label switching undone: against known permutations and brute force, and what is left out is told."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble import switching
from tests.helpers import check, written

SIZES = (4, 3, 4, 1)  # of the true clusters
TRUTH = np.repeat(range(4), SIZES)
CHAINS, DRAWS = 2, 5


def truth_of(n_components):
    """A posterior whose component k is cluster k in every draw, before names are switched."""
    rng, k, by_dim = np.random.default_rng(7), np.arange(n_components), ("chain", "draw", "component")
    by_draw = rng.normal(scale=0.01, size=(CHAINS, DRAWS, 1))
    centres = 10.0 * k[:, None] + by_draw[..., None]
    variables = {
        "mu": (by_dim, (10.0 * k + by_draw).astype(np.float32), {"unit": "km/s"}),
        "center": ((*by_dim, "feature"), centres + np.array([0.1, 0.2])),
        "turned": (("component", "chain", "draw"), 10 * k[:, None, None] + np.zeros((1, CHAINS, DRAWS), np.int64)),
        "move": ((*by_dim, "component_bis"), 10 * centres + k),
        "beta": (("chain", "draw", "stick"), rng.random((CHAINS, DRAWS, n_components - 1))),
        "alpha": (("chain", "draw"), rng.random((CHAINS, DRAWS))),
        "z": (("chain", "draw", "obs"), np.broadcast_to(TRUTH, (CHAINS, DRAWS, TRUTH.size)).astype(np.int16)),
    }
    coords = {"chain": [1, 3], "draw": np.arange(10, 10 + DRAWS), "component": [f"part {i}" for i in k]}
    coords |= {"obs": [f"i{i}" for i in range(TRUTH.size)], "level": ("obs", np.arange(TRUTH.size))}
    return xr.Dataset(variables, coords, {"inference_library": "none"})


def switched(posterior, seed=1):
    """The same posterior with the components of every draw in an order of its own."""
    rng = np.random.default_rng(seed)
    out = posterior.copy(deep=True)
    for c, d in itertools.product(range(CHAINS), range(DRAWS)):
        order = rng.permutation(posterior.sizes["component"])
        for name in ("mu", "center"):
            out[name].values[c, d] = posterior[name].values[c, d][order]
        out["turned"].values[:, c, d] = posterior["turned"].values[order, c, d]
        out["move"].values[c, d] = posterior["move"].values[c, d][np.ix_(order, order)]
        out["z"].values[c, d] = np.argsort(order)[posterior["z"].values[c, d]]
    return out


def soft_of(posterior, sharpness=8.0):
    """Allocation probabilities around the labels, with the same items doubtful in every draw."""
    noise = np.random.default_rng(3).random((TRUTH.size, 1))
    one_hot = posterior["z"].values[..., None] == np.arange(posterior.sizes["component"])
    p = np.exp(sharpness * one_hot * (0.3 + noise))
    coords = {dim: posterior.coords[dim] for dim in ("chain", "draw", "obs")}
    p = xr.DataArray(p / p.sum(-1, keepdims=True), coords, ("chain", "draw", "obs", "part"))
    return pc.as_allocation_probabilities(p, item_dim="obs", component_dim="part")


BOTH = ["component", "component_bis"]


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "probabilities"])
@pytest.mark.parametrize("n_components", [4, 7])
def test_known_permutations_are_undone(n_components, soft):
    true = truth_of(n_components)
    posterior = switched(true)
    before = posterior.copy(deep=True)
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": xr.Dataset({"y": ("obs", np.arange(12.0))})})
    found = pc.relabel(tree, TRUTH, component_dim=BOTH, allocations=soft_of(posterior) if soft else None)
    expected = true.isel(dict.fromkeys(BOTH, slice(4))).assign_coords(dict.fromkeys(BOTH, np.arange(4)))
    xr.testing.assert_identical(found["posterior"].to_dataset(), expected)
    assert {name: v.dtype for name, v in expected.items()} == {n: v.dtype for n, v in found["posterior"].items()}
    assert list(found["posterior"].data_vars) == list(true.data_vars)
    xr.testing.assert_identical(tree["posterior"].to_dataset(), before)
    assert list(tree.children) == ["posterior", "observed_data"]
    record = found["relabelling"]
    np.testing.assert_array_equal(record["match_share"], 1.0)
    taken = np.take_along_axis(posterior["mu"].values, record["permutation"].values, axis=2)
    np.testing.assert_array_equal(taken, found["posterior"]["mu"])
    assert record.attrs["method"] == ("Stephens" if soft else "ECR")
    if not soft:
        assert float(record["agreement"]) == 1.0
        np.testing.assert_array_equal(record["cluster_agreement"], 1.0)
    assert ("extra_components" in found.children) == (n_components > 4)
    if n_components > 4:  # components without a cluster are kept in the order of the draw
        extra = found["extra_components"].to_dataset()
        assert set(extra.data_vars) == {"mu", "center", "turned", "move"}
        assert extra["component"].values.tolist() == extra["component_bis"].values.tolist() == [4, 5, 6]
        for own, mu in zip(extra["mu"].values.reshape(-1, 3), posterior["mu"].values.reshape(-1, 7), strict=True):
            np.testing.assert_array_equal(own, mu[mu > 35])
        assert extra["move"].dims == ("chain", "draw", "component", "component_bis")


def tree_of(z, mu):
    variables = {"z": (("chain", "draw", "obs"), z), "mu": (("chain", "draw", "k"), mu)}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


def test_items_of_other_components_have_the_numbers_of_these():
    tree = tree_of([[[3, 3, 0, 0, 2], [1, 1, 3, 3, 3]]], [[[5.0, -1.0, 7.0, 1.0], [-1.0, 1.0, -2.0, 5.0]]])
    with pytest.warns(UserWarning, match="without a cluster have 10% of the items"):
        found = pc.relabel(tree, [0, 0, 1, 1, 1], component_dim="k")
    np.testing.assert_array_equal(found["posterior"]["mu"], [[[1.0, 5.0], [1.0, 5.0]]])
    np.testing.assert_array_equal(found["posterior"]["z"], [[[0, 0, 1, 1, 3], [0, 0, 1, 1, 1]]])
    np.testing.assert_array_equal(found["extra_components"]["mu"], [[[-1.0, 7.0], [-1.0, -2.0]]])
    record = found["relabelling"]
    np.testing.assert_array_equal(record["permutation"], [[[3, 0], [1, 3]]])
    np.testing.assert_allclose(record["cluster_agreement"], [1.0, 5 / 6])
    assert float(record["agreement"]) == 0.9


def test_a_cluster_that_a_draw_lacks_takes_an_empty_component():
    """Not the one that is a part of another cluster, though it has as few items in common."""
    names = np.array(list(itertools.permutations(range(4))))
    merged = names[:, [2, 2, 2, 2, 0, 3, 3]]  # clusters 0 and 1 are component 2, cluster 2 is 0 and 3, 1 is empty
    apart = names[:, [0, 0, 2, 2, 3, 3, 3]]
    with pytest.warns(UserWarning, match="The components hold only"):
        found = pc.relabel(tree_of([merged, apart], np.ones((2, 24, 4))), [0, 0, 1, 1, 2, 2, 2], component_dim="k")
    record = found["relabelling"]
    np.testing.assert_array_equal(record["matched"].values.sum(axis=2), [[2] * 24, [3] * 24])
    np.testing.assert_array_equal(np.sort(record["permutation"][0, :, :2], axis=1), np.sort(names[:, [1, 2]], axis=1))
    np.testing.assert_array_equal(record["permutation"][0, :, 2], names[:, 3])
    np.testing.assert_array_equal(record["permutation"][1], names[:, [0, 2, 3]])
    assert record["match_share"].values.sum() == 2.5


def test_most_items_in_common_over_all_assignments(rng):
    components, reference = rng.integers(0, 5, (50, 9)), np.array([0, 1, 2, 0, 1, 2, 0, 0, 1], np.int32)
    common = switching.common_items(components, reference, 5)
    for draw, row, assigned in zip(components, common, switching.most_in_common(common), strict=True):
        counts = [[np.sum((draw == k) & (reference == c)) for c in range(3)] for k in range(5)]
        np.testing.assert_array_equal(row, counts)
        best = max(sum(row[k, c] for c, k in enumerate(ks)) for ks in itertools.permutations(range(5), 3))
        assert sum(row[k, c] for c, k in enumerate(assigned)) == best


@pytest.mark.parametrize("weighted", [False, True])
def test_no_order_of_any_draw_has_less_divergence(rng, weighted):
    p = rng.dirichlet(np.full(4, 0.7), (12, 6))
    weights = rng.dirichlet(np.ones(12)) if weighted else np.full(12, 1 / 12)
    start = np.array([rng.permutation(4) for _ in range(12)])
    order = switching.least_divergence(p, weights, start)

    q = np.einsum("t,tik->ik", weights, np.stack([draw[:, own] for draw, own in zip(p, order, strict=True)]))
    for draw, own in zip(p, order, strict=True):
        candidates = [draw[:, one] for one in (own, *map(list, itertools.permutations(range(4))))]
        losses = [np.sum(one * np.log(one / q)) for one in candidates]  # of Stephens
        assert losses[0] == pytest.approx(min(losses), abs=1e-9)


def test_probabilities_of_zero_and_single_precision():
    p = np.zeros((3, 4, 3), np.float32)
    orders = [(0, 1, 2), (2, 0, 1), (1, 2, 0)]
    for t, order in enumerate(orders):
        p[t, range(4), [order[k] for k in (0, 0, 1, 2)]] = 1
    common = switching.expected_common_items(p, np.array([0, 0, 1, 2], np.int32))
    start = switching.with_the_rest(switching.most_in_common(common), 3)
    np.testing.assert_array_equal(switching.least_divergence(p, np.full(3, 1 / 3), start), orders)


def test_probabilities_without_labels_and_their_own_dimension():
    posterior = switched(truth_of(4))
    soft = soft_of(posterior)
    log_p = np.log(soft.probabilities.reshape(CHAINS, DRAWS, TRUTH.size, 4))
    posterior = posterior.drop_vars("z").assign(lp=(("chain", "draw", "obs", "part"), log_p))
    found = pc.relabel(posterior, TRUTH, component_dim=BOTH, allocations=soft)
    np.testing.assert_array_equal(found["mu"].values.round(), [[[0, 10, 20, 30]] * DRAWS] * CHAINS)
    assert (found["lp"].argmax("part") == TRUTH).all()


def test_labels_as_floats_from_one_stacked_draws_a_node_and_other_orders_change_nothing():
    posterior = switched(truth_of(4))
    tree = xr.DataTree.from_dict({"posterior": posterior})
    expected = pc.relabel(posterior, TRUTH, component_dim=BOTH)
    by_name = pc.as_partition_draws(posterior["z"]).items.array(TRUTH, "labels")
    for same, partition in (
        (posterior.assign(z=posterior["z"].astype(float)), TRUTH),
        (posterior.assign(z=posterior["z"] + 1), TRUTH),
        (posterior, by_name[::-1]),
    ):
        xr.testing.assert_equal(pc.relabel(same, partition, component_dim=BOTH), expected)
    of_node, of_tree = (pc.relabel(data, TRUTH, component_dim=BOTH) for data in (tree["posterior"], tree))
    xr.testing.assert_identical(of_node, of_tree)
    stacked = posterior.stack(sample=("chain", "draw")).transpose(..., "sample")
    found = pc.relabel(stacked, TRUTH, component_dim=BOTH)
    order = ("chain", "draw", *BOTH, ...)
    one, other = (x.transpose(*order, missing_dims="ignore") for x in (found.unstack("sample"), expected))
    xr.testing.assert_equal(one, other)
    soft = pc.relabel(stacked, TRUTH, component_dim=BOTH, allocations=soft_of(posterior))
    xr.testing.assert_equal(soft, found)


def test_the_first_label_of_few_labels_must_be_said():
    few = switched(truth_of(4)).isel(obs=slice(0, 1), draw=slice(0, 1), chain=slice(0, 1))
    few = few.assign(z=few["z"] * 0 + 2)
    parts = ["`first_label`", "'z'", "from 2 to 2"]
    check(lambda x: pc.relabel(x, [0], component_dim=BOTH), few, ValueError, parts)
    for first in (0, 1):
        found = pc.relabel(few, [0], component_dim=BOTH, first_label=first)
        assert found["mu"].values.ravel().tolist() == [few["mu"].values[0, 0, 2 - first]]
        assert int(found["z"].squeeze()) == 0


def test_a_dimension_without_a_name_is_not_forgotten():
    posterior = switched(truth_of(4)).drop_vars("component")
    posterior["w"] = posterior["mu"].rename(component="w_dim_0")
    with pytest.warns(UserWarning, match="4 entries: 'w_dim_0' of 'w'"):
        left = pc.relabel(posterior, TRUTH, component_dim=BOTH)
    xr.testing.assert_equal(left["w"], posterior["w"])
    found = pc.relabel(posterior, TRUTH, component_dim=[*BOTH, "w_dim_0"])
    np.testing.assert_array_equal(found["w"], found["mu"])
    assert found["w"].dims == ("chain", "draw", "w_dim_0")


def test_arviz_reads_the_result_and_it_survives_a_file(arviz, tmp_path):
    """What a sampler leaves behind is InferenceData of ArviZ 0.x or a DataTree of ArviZ 1.x, and so is the result."""
    posterior, observed = switched(truth_of(6))[["mu", "z", "alpha"]], xr.Dataset({"y": ("obs", np.arange(12))})
    groups = {"posterior": posterior, "observed_data": observed}
    of_old = hasattr(arviz, "convert_to_inference_data")
    fitted = arviz.InferenceData(**groups) if of_old else xr.DataTree.from_dict(groups)
    found = pc.relabel(fitted, TRUTH, component_dim="component")
    assert type(found) is type(fitted)
    assert set(fitted["posterior"].dims) == {"chain", "draw", "component", "obs"}
    table = arviz.summary(found, var_names=["mu", "alpha"])
    assert table.index.tolist() == ["mu[0]", "mu[1]", "mu[2]", "mu[3]", "alpha"]
    np.testing.assert_allclose(table["mean"].astype(float)[:4], [0, 10, 20, 30], atol=0.1)
    with xr.open_datatree(written(found, tmp_path / "a.nc"), engine="h5netcdf") as read:
        read = read.load()
    for group in ("posterior", "observed_data", "extra_components", "relabelling"):
        stored = found[group] if of_old else found[group].to_dataset()
        xr.testing.assert_equal(read[group].to_dataset(), stored)
    assert read["relabelling"]["matched"].dtype == bool
    assert read["relabelling"].attrs == {"method": "ECR", "component_dim": "component"}


def test_what_does_not_fit_is_refused():
    posterior, numbers = switched(truth_of(4)), np.zeros((CHAINS, DRAWS, TRUTH.size))

    def of(first_label=None, **changes):
        z = {name: (("chain", "draw", "obs"), values) for name, values in changes.items()}
        return {"draws": posterior.assign(z), "first_label": first_label}

    later = posterior.assign_coords(draw=posterior["draw"] + 1)
    soft, of_six, fewer, shifted = map(
        soft_of, (posterior, switched(truth_of(6)), posterior.isel(draw=slice(4)), later)
    )
    two = posterior.assign(z2=posterior["z"])
    for changes, error, *parts in [
        ({"component_dim": "part"}, ValueError, "`component_dim`", "got 'part', present: 'chain'"),
        ({"component_dim": ["component", "obs"]}, ValueError, "same length", "'component' 4, 'obs' 12"),
        ({"component_dim": 3}, TypeError, "`component_dim`", "got 3"),
        ({"component_dim": []}, TypeError, "`component_dim`", "got []"),
        ({"partition": TRUTH[1:]}, ValueError, "`partition`", "12 items; got 11"),
        ({"partition": np.arange(12)}, ValueError, "`partition`", "4; got 12", "max_clusters=4"),
        ({"var_name": "zz"}, ValueError, "`var_name`", "got 'zz'"),
        ({"first_label": 2}, ValueError, "`first_label`", "0, 1 or None; got 2"),
        (of(z=numbers + 4, first_label=0), ValueError, "from 0;", "from 4 to 4"),
        (of(z=numbers, first_label=1), ValueError, "from 1;", "from 0 to 0"),
        (of(z=numbers + 10**6), ValueError, "the 4 components"),
        (of(z=numbers - 1), ValueError, "negative"),
        (of(z=numbers.astype(str)), TypeError, "'z'", "numbers of components"),
        (of(z2=numbers.astype(int)), ValueError, "`var_name`", "'z', 'z2'"),
        ({"draws": posterior.assign(c=("component", np.arange(4)))}, ValueError, "'c'", "dim"),
        ({"draws": posterior.drop_vars("z")}, ValueError, "no label variable"),
        ({"draws": "a.nc"}, TypeError, "`draws`", "got str", "Open"),
        ({"draws": xr.DataTree()}, ValueError, "`group`", "got 'posterior'"),
        ({"allocations": soft.labels}, TypeError, "`allocations`", "got draws of labels"),
        ({"allocations": of_six}, ValueError, "`allocations`", "4 components of 'component'", "of 6"),
        ({"allocations": fewer}, ValueError, "`allocations`", "same 10 draws; got 8"),
        ({"allocations": shifted}, ValueError, "`allocations`", "same draws; 'chain "),
        ({"allocations": soft, "sample_dims": "step"}, ValueError, "`sample_dims`", "got ('step',)"),
        ({"allocations": soft, "var_name": "mu"}, ValueError, "`var_name`", "integers"),
        ({"allocations": soft, "draws": two}, ValueError, "`var_name`", "candidates: 'z', 'z2'"),
    ]:
        arguments = {"draws": posterior, "partition": TRUTH, "component_dim": BOTH}
        check(lambda x, given=arguments: pc.relabel(**given | x), changes, error, parts)
    assert (pc.relabel(two, TRUTH, component_dim=BOTH, allocations=soft, var_name="z2")["z2"] == TRUTH).all()


def divided(share, soft):
    """Two clusters of six items, the second divided between two components in this share of twenty draws."""
    z = np.tile(np.repeat([0, 1], 6), (1, 20, 1))
    z[0, : round(20 * share), 9:] = 2
    p = (z[..., np.newaxis] == np.arange(3)).astype(float)
    soft = pc.as_allocation_probabilities(p) if soft else None
    return tree_of(z, p.mean(axis=2)), {"component_dim": "k", "allocations": soft}


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
    left_out = 1 - found["posterior"]["mu"].sum("k").mean()
    assert float(record["left_out"]) == pytest.approx(0.125) == float(left_out)
    with pytest.warns(UserWarning, match=message):  # a Dataset has no room for the record
        pc.relabel(tree["posterior"].to_dataset(), np.repeat([0, 1], 6), **arguments)
    tree, arguments = divided(0.1, soft)  # rarely, which is not warned of
    record = pc.relabel(tree, np.repeat([0, 1], 6), **arguments)["relabelling"]
    assert float(record["left_out"]) == pytest.approx(0.025)


def test_a_cluster_that_never_has_a_component_has_no_agreement():
    with pytest.warns(UserWarning, match="0% of cluster 1"):
        found = pc.relabel(tree_of([[[0, 0, 0]] * 4], np.zeros((1, 4, 2))), [0, 0, 1], component_dim="k")
    np.testing.assert_allclose(found["relabelling"]["component_agreement"], [2 / 3, np.nan], rtol=1e-14)
