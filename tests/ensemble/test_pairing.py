"""What comes with draws is paired with them by chain and draw, in every function that takes some."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import unequal_chains
from tests.helpers import check_all

IDS, NAMES = ("chain", "draw"), {"chain": [1, 3], "draw": np.arange(10, 16)}
RNG = np.random.default_rng(1)
Z = xr.DataArray(RNG.integers(3, size=(2, 6, 4)), NAMES, (*IDS, "obs"), name="z")
MU = xr.DataArray(RNG.normal(size=(2, 6, 3)), NAMES, (*IDS, "k"), name="mu")
SOFT = xr.DataArray(RNG.dirichlet(np.full(3, 0.2), size=(2, 6, 4)), NAMES, (*IDS, "obs", "k"))
W = xr.DataArray(np.arange(1.0, 13.0).reshape(2, 6), NAMES, IDS)
PARTITION = np.array([0, 0, 1, 1])
QUIET = {"random_seed": 1, "progressbar": False}


def by_chain_and_draw(values):
    """A Series, or a table that has further dimensions as columns."""
    rows = values.stack(row=IDS).transpose("row", ...)
    return rows.to_series() if rows.ndim == 1 else pd.DataFrame(rows.values, rows.indexes["row"])


SAME = {
    "as they are": lambda values: values,
    "draws reversed": lambda values: values.isel(draw=slice(None, None, -1)),
    "chains reversed": lambda values: values.isel(chain=[1, 0]),
    "draws before chains": lambda values: values.transpose("draw", "chain", ...),
    "without names": lambda values: values.drop_vars(IDS).transpose("draw", "chain", ...),
}
ARRAYS = {
    "stacked": lambda values: values.stack(sample=("draw", "chain")).transpose("sample", ...),
    "stacked, no index": lambda values: values.stack(sample=("draw", "chain")).reset_index("sample"),
    "names of chains alone": lambda values: values.drop_vars("draw").isel(chain=[1, 0]),
    "table": lambda values: by_chain_and_draw(values).sample(frac=1.0, random_state=1),
    "chains": lambda values: values.values,
    "rows": lambda values: values.values.reshape(12, *values.shape[2:]),
}
OTHER = {
    "other chains": lambda values: values.assign_coords(chain=[7, 9]),
    "other draws": lambda values: values.assign_coords(draw=values["draw"] + 1),
    "fewer draws": lambda values: values.isel(draw=slice(5)),
}


def statistics(function):
    return lambda values: function(values).parameters["mean"].values


def tree_with(values, group):
    return xr.DataTree.from_dict({"posterior": Z.to_dataset(), group: values.rename("own").to_dataset()})


@cache
def made():
    return pc.as_partition_draws(Z)


@cache
def particles():
    return pc.results.Particles.from_dataset(pc.particles(made(), n_particles=2, **QUIET).to_dataset())


@cache
def summary():
    return pc.summarize(Z.to_dataset(), modes=False, **QUIET).to_dataset()


def draws_of_summary(values):
    return pc.results.Summary.from_dataset(summary(), values.to_dataset(name="z")).draws.labels


# What takes values, those values, and whether it takes arrays too: arrays as posteriors are numbered from 0.
FUNCTIONS = {
    "weights": (lambda v: pc.as_partition_draws(Z, weights=v).weights, W, True),
    "weights of draws": (lambda v: pc.as_partition_draws(made(), weights=v).weights, W, True),
    "log_weights": (lambda v: pc.as_partition_draws(Z, log_weights=v).weights, W, True),
    "weights of probabilities": (lambda v: pc.as_allocation_probabilities(SOFT, weights=v).weights, W, True),
    "reweight": (lambda v: pc.reweight(made(), v, max_pareto_k=np.inf).weights, W, True),
    "cluster_summary": (statistics(lambda v: pc.cluster_summary(Z, [0, 0, -1, -1], mu=v)), MU, True),
    "component_similarity": (lambda v: pc.component_similarity(Z, mean=v, sd=1.0).values, MU, True),
    "predict_allocation": (
        lambda v: (
            pc.predict_allocation(v, pc.as_allocation_probabilities(SOFT), partition=PARTITION).probabilities.values
        ),
        SOFT,
        False,
    ),
    "relabel": (
        lambda v: (
            pc.relabel(MU.to_dataset(), PARTITION, component_dim="k", allocations=pc.as_allocation_probabilities(v))[
                "mu"
            ].values
        ),
        SOFT,
        False,
    ),
    "prior_sensitivity": (
        lambda v: pc.prior_sensitivity(tree_with(v, "log_prior"), **QUIET).to_dataframe().to_numpy(),
        W,
        False,
    ),
    "region": (lambda v: particles().similarity(0, v).values, Z, False),
    "from_dataset": (draws_of_summary, Z, False),
}


@pytest.mark.filterwarnings("ignore:(The components|Components)")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_draws_are_paired_by_name(name):
    function, values, takes_arrays = FUNCTIONS[name]
    expected = function(values)
    for kind, change in (SAME | (ARRAYS if takes_arrays else {})).items():
        for found, wanted in zip(function(change(values)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=kind)
    check_all(lambda change: function(change(values)), [(change, ValueError, "`") for change in OTHER.values()])


def test_chains_of_different_lengths_have_no_rows_of_chains():
    draws = pc.as_partition_draws(unequal_chains(np.random.default_rng(2), (40, 20), 4))
    rows = np.arange(60.0)
    ids = {name: ("sample", getattr(draws.samples, name)[::-1]) for name in IDS}
    reversed_rows = xr.DataArray(rows[::-1], ids, ("sample",))
    expected = pc.reweight(draws, rows, max_pareto_k=np.inf).weights
    np.testing.assert_array_equal(pc.reweight(draws, reversed_rows, max_pareto_k=np.inf).weights, expected)
    assert pc.as_partition_draws(draws, log_weights=reversed_rows).weights.argmax() == 59
    check_all(lambda ratio: pc.reweight(draws, ratio), [(rows.reshape(2, 30), ValueError, "`log_ratio`", "(60,); got")])


@pytest.mark.parametrize("dim", ["draw", "sweep"])
def test_draws_of_one_chain_are_paired_by_their_index(dim):
    z, weights = (values[0].drop_vars("chain").rename(draw=dim) for values in (Z, W))
    table, draws = weights.to_series()[::-1], pc.as_partition_draws(z, sample_dims=dim)
    assert draws.samples.draw.tolist() == NAMES["draw"].tolist()
    for given in (weights[::-1], table, table.rename_axis(None)):
        for found in (
            pc.as_partition_draws(draws, weights=given),
            pc.as_partition_draws(z, sample_dims=dim, weights=given),
        ):
            np.testing.assert_allclose(found.weights, weights / weights.sum(), rtol=1e-15)


CLUSTERS = pd.Series([0, 0, 1, 1], list("abcd"), name="cluster")
Y = pd.Series([1.0, 2.0, 5.0, 6.0], list("abcd"), name="y")


def along(dim):
    return lambda values: xr.DataArray(values.to_numpy(), {dim: values.index.to_numpy()}, (dim,), values.name)


NAMED_ITEMS = {"obs": along("obs"), "another dimension": along("county"), "series": lambda values: values}


def row_of_points(ax):
    """The x axis and the colour of each point."""
    points = [one for one in ax.collections if one.get_offsets().shape[0] and one.get_facecolor().size]
    rows = [
        np.column_stack([one.get_offsets()[:, 0], np.resize(one.get_facecolor(), (len(one.get_offsets()), 4))])
        for one in points
    ]
    return np.unique(np.concatenate(rows).round(9), axis=0).tolist()


BY_ITEM = {
    "plot_data": lambda y, p: row_of_points(pc.plot_data(y, p)),
    "plot_cluster_profiles": lambda y, p: row_of_points(pc.plot_cluster_profiles(y, p)),
    "plot_alluvial": lambda y, p: len(pc.plot_alluvial({"a": CLUSTERS, "b": p}).patches),
    "partition_loss": lambda y, p: (pc.partition_loss(p, CLUSTERS, loss="vi"), pc.partition_loss(CLUSTERS, p)),
    "align_partitions": lambda y, p: pc.align_partitions({"a": p, "b": CLUSTERS})["b"].in_words(),
    "align_partitions, one without names": (
        lambda y, p: pc.align_partitions({"a": CLUSTERS, "b": p, "c": [0, 0, 1, 1]})["b"].in_words()
    ),
    "item_uncertainty": lambda y, p: pc.item_uncertainty(
        Z.assign_coords(obs=list("abcd")), p
    ).similarity.values.tolist(),
}


@pytest.mark.parametrize("name", BY_ITEM)
def test_items_are_paired_by_name_whatever_names_them(name):
    expected = BY_ITEM[name](Y, CLUSTERS)
    for kind, change in NAMED_ITEMS.items():
        for other, as_data in NAMED_ITEMS.items():
            found = BY_ITEM[name](as_data(Y.iloc[[3, 1, 0, 2]]), change(CLUSTERS.iloc[[2, 0, 3, 1]]))
            assert found == expected, (kind, other)


def test_an_index_that_counts_backwards_names_items():
    labels = pd.Series([0, 0, 1, 1])
    z = Z.assign_coords(obs=np.arange(4))
    assert pc.partition_loss(z.isel(chain=0, draw=0, drop=True), z[0, 0].to_series()[::-1]) == 0
    assert row_of_points(pc.plot_data(pd.DataFrame({"y": Y.to_numpy()})[::-1], labels[::-1])) == row_of_points(
        pc.plot_data(Y.to_numpy(), labels)
    )


def test_items_that_cannot_be_paired_are_refused():
    """Names that ArviZ counted for a variable without names are none."""
    counted = along("z_dim_0")(CLUSTERS.reset_index(drop=True))
    assert pc.partition_loss(counted, along("county")(CLUSTERS)) == 0
    assert row_of_points(pc.plot_data(along("county")(Y), counted)) == row_of_points(pc.plot_data(Y, CLUSTERS))
    other = along("county")(CLUSTERS.set_axis(list("abce")))
    with pytest.raises(ValueError, match="'county' and 'obs' differ: 'd' is missing. .*by place"):
        pc.item_uncertainty(Z.assign_coords(obs=list("abcd")), other)
    with pytest.raises(ValueError, match="`data` must be of the same items"):
        pc.plot_data(along("obs")(Y), other)


def test_items_of_a_stored_summary_are_paired_by_name():
    named = Z.assign_coords(obs=list("abcd")).to_dataset()
    stored = pc.summarize(named, modes=False, **QUIET).to_dataset()
    found = pc.results.Summary.from_dataset(stored, named.isel(obs=[2, 0, 3, 1]))
    np.testing.assert_array_equal(found.draws.labels, made().labels)
    assert found.draws.items.names.tolist() == list("abcd")
    other = named.assign_coords(obs=list("abce"))
    check_all(lambda z: pc.results.Summary.from_dataset(stored, z), [(other, ValueError, "`draws`", "'d' is missing")])


def test_features_keep_their_names_wherever_the_draws_are():
    mu = xr.concat([MU, MU + 1], xr.IndexVariable("feature", ["low", "high"])).transpose("k", "feature", *IDS)
    found = pc.cluster_summary(Z, [0, 0, -1, -1], mu=mu).parameters
    assert found["parameter"].values.tolist() == ["mu[low]", "mu[high]"]
    assert float(np.ptp(found["mean"].values)) == pytest.approx(1.0)


def test_errors_show_names_as_they_were_given():
    with pytest.raises(ValueError, match="'chain' differ: 1 is missing"):
        pc.as_partition_draws(Z, weights=W.assign_coords(chain=[7, 9]))
    with pytest.raises(ValueError, match="'chain' differ: 3 is the name"):
        pc.as_partition_draws(Z, weights=W.assign_coords(chain=[3, 3]))
