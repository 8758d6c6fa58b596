"""Flows, overlaps and names between layers: by going over the draws, with errors, of items that come and go."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import posterior_consensus as pc
from posterior_consensus.ensemble.items import Items
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import check_all

PROB = 0.8


def compared(layers, partitions):
    """Partitions with names that go on, flows and overlaps."""
    found = pc.compare_layers(layers, partitions=partitions, prob=PROB, progressbar=False)
    return found.partitions, found.flows, found.overlaps


def draws_of(rng, n_layers, n_chains=2, n_draws=12, n_items=7):
    """Labels (chain, draw, layer, item) that change a little from layer to layer."""
    z = [noisy_draws(rng, n_chains * n_draws, n_items, 3, 0.4)]
    for _ in range(n_layers - 1):
        z.append(np.where(rng.random(z[0].shape) < 0.3, rng.integers(0, 3, z[0].shape), z[-1]))
    return np.stack(z, axis=1).reshape(n_chains, n_draws, n_layers, n_items)


def array(z, items=None, dim="person"):
    coords = {} if items is None else {dim: items}
    return xr.DataArray(z, dims=("chain", "draw", "time", dim)[-z.ndim :], coords=coords, name="z")


def with_gaps(rng):
    gone = array(draws_of(rng, 4), pd.date_range("2001-01-01", periods=7)).astype(float)
    gone[:, :, 1, 2:4] = gone[:, :, 2, 5] = np.nan
    return pc.as_layers(gone, layer_dim="time", weights=rng.exponential(size=24))


def in_other_order(rng):
    z, names, order = draws_of(rng, 2), np.array(list("pqrstuv")), rng.permutation(7)
    sides = [(z[:, :, 0], names), (z[:, :, 1][..., order], names[order])]
    return pc.as_layers({k: xr.DataArray(one, {"person": own}, DIMS) for k, (one, own) in enumerate(sides)})


def of_two_kinds(rng):
    z, names = draws_of(rng, 4), {"person": list("pqrstuv"), "gene": None}
    dims = ["person", "gene", "person", "gene"]
    return pc.as_layers(
        {
            k: xr.DataArray(z[:, :, k], {dim: names[dim]} if names[dim] else {}, ("chain", "draw", dim))
            for k, dim in enumerate(dims)
        }
    )


def without_common_items(rng):
    items = {"x": list("pqrs"), "y": list("tuv")}
    z = {name: draws_of(rng, 1, n_items=len(own))[:, :, 0] for name, own in items.items()}
    return pc.as_layers({name: xr.DataArray(one, {"person": items[name]}, DIMS) for name, one in z.items()})


DIMS = ("chain", "draw", "person")
LAYERS = {
    "numbered items": lambda rng: pc.as_layers(draws_of(rng, 3)),
    "missing items, weights": with_gaps,
    "another order": in_other_order,
    "two kinds of items": of_two_kinds,
    "no common items": without_common_items,
    "one layer": lambda rng: pc.as_layers(draws_of(rng, 1)),
    "one draw": lambda rng: pc.as_layers(draws_of(rng, 3, 1, 1)),
    "weights, one of them 0": lambda rng: pc.as_layers(draws_of(rng, 2), weights=[0, *rng.exponential(size=23)]),
}


def names_of(layers):
    """Name of each item of each layer, apart for items of another dimension."""
    return {name: [(draws.items.dim, item) for item in draws.items.names] for name, draws in layers.items()}


def cluster_in_draw(draws, partition, t):
    """Cluster of the partition that each item's cluster in draw t is matched with, -1 for none."""
    found = pc.membership(draws.take(np.array([t])), partition).probabilities.values.argmax(axis=1)
    return np.where(found == partition.max() + 1, -1, found)


def error(samples, values):
    """Error of a mean of values (draws, ...), from three batches of each of two chains of 12 draws."""
    if samples.n_draws < 8:
        return np.full(values.shape[1:], np.nan)
    w, squares = samples.weights, 0.0
    mean = np.tensordot(w, values, 1)
    for rows in np.array_split(np.arange(24), 6):
        moved = np.tensordot(w[rows], values[rows] - mean, 1) * (1 - len(rows) / 24) / (1 - w[rows].sum())
        squares = squares + moved**2
    return np.sqrt(6 / 5 * squares)


def interval(weights, values):
    """The smallest values that draws of 10% and of 90% of the weight do not exceed."""
    levels = ((1 - PROB) / 2, (1 + PROB) / 2)
    return [min(v for v in values if weights[values <= v].sum() >= level - 1e-12) for level in levels]


def step_in_draws(layers, partitions, before, after):
    """Numbers of items (draws, K + 1, L + 1) that go from cluster to cluster, overlaps (draws, common items), and ends.

    The ends (2, draws, common items) are the clusters between which an item goes.
    """
    names, n_draws = names_of(layers), layers.samples.n_draws
    common = [item for item in names[before] if item in names[after]]
    sides = [(layers[k], partitions[k], [names[k].index(item) for item in common]) for k in (before, after)]
    counts = np.zeros((n_draws, *(partition.max() + 2 for _, partition, _ in sides)))
    overlaps, ends = np.zeros((n_draws, len(common))), np.zeros((2, n_draws, len(common)), int)
    for t in range(n_draws):
        source, target = (cluster_in_draw(draws, partition, t)[at] for draws, partition, at in sides)
        np.add.at(counts[t], (source, target), 1)
        ends[:, t] = source, target
        ours, theirs = (draws.labels[t, at] for draws, _, at in sides)
        for i in range(len(common)):
            one, other = set(np.flatnonzero(ours == ours[i])), set(np.flatnonzero(theirs == theirs[i]))
            overlaps[t, i] = len(one & other) / len(one | other)
    return common, counts, overlaps, ends


def steps_by_hand(layers):
    """Each layer with the last one before it that has common items."""
    names, order = names_of(layers), list(layers)
    for row, after in enumerate(order):
        earlier = [one for one in order[:row] if set(names[one]) & set(names[after])]
        if earlier:
            yield earlier[-1], after


def places_of(layers, aligned):
    """Where each item, by its dimension and name, is among all of them."""
    names = Items.along(aligned.labels, aligned.labels.dims[1]).names.tolist()
    own = {item for of_layer in names_of(layers).values() for item in of_layer}
    is_one = len({dim for dim, _ in own}) == 1
    found = {item: names.index(item[1] if is_one else ": ".join(item)) for item in own}
    assert sorted(found.values()) == list(range(len(names)))
    return found


def numbers_of(layers, aligned, name):
    """Number of the cluster of each of a layer's items; all others are not there."""
    at = [places_of(layers, aligned)[item] for item in names_of(layers)[name]]
    own = aligned.labels.sel(partition=name).values
    assert (np.delete(own, at) == -1).all()
    return own[at]


@pytest.mark.parametrize("kind", LAYERS)
def test_flows_and_overlaps_are_what_the_draws_say(rng, kind):
    layers = LAYERS[kind](rng)
    partitions = {name: draws.labels[-1].astype(int) for name, draws in layers.items()}
    aligned, flows, overlaps = compared(layers, partitions)
    steps, samples = list(steps_by_hand(layers)), layers.samples
    assert list(zip(overlaps["before"].values, overlaps["after"].values, strict=True)) == steps
    assert overlaps["step"].values.tolist() == [f"{before} to {after}" for before, after in steps]
    assert len(np.unique(flows["step"])) == len(steps) == overlaps.sizes["step"]
    places = places_of(layers, aligned)
    for row, (before, after) in enumerate(steps):
        common, counts, shares, ends = step_in_draws(layers, partitions, before, after)
        at = [places[item] for item in common]
        of_items = overlaps.isel(step=row)
        assert_allclose(of_items["overlap"][at], samples.weights @ shares, rtol=1e-12)
        assert_allclose(of_items["mcse"][at], error(samples, shares), rtol=1e-9, atol=1e-15)
        assert np.isnan(of_items["overlap"].values[np.setdiff1d(np.arange(len(places)), at)]).all()
        own = [dict(zip(partitions[k], numbers_of(layers, aligned, k), strict=True)) for k in (before, after)]
        numbers = [np.vectorize(own[k].get, otypes=[int])(ends[k], -1) for k in (0, 1)]
        moved = (numbers[0] >= 0) & (numbers[1] >= 0) & (numbers[0] != numbers[1])
        assert_allclose(of_items["moved"][at], samples.weights @ moved, rtol=1e-12)
        as_found = moved.copy()
        for k, name in enumerate((before, after)):
            positions = [names_of(layers)[name].index(item) for item in common]
            as_found &= ends[k] == partitions[name][positions]
        for flag, odds in (("likely", 1.0), ("clear", 3.0)):
            lead = as_found - odds * ~moved
            np.testing.assert_array_equal(of_items[flag][at], samples.weights @ lead > 2 * error(samples, lead))
        expected = {
            (own[0].get(k, -1), own[1].get(c, -1)): counts[:, k, c]
            for k in range(counts.shape[1])
            for c in range(counts.shape[2])
            if samples.weights @ counts[:, k, c] > 0
        }
        found = flows.isel(flow=flows["step"].values == row).to_dataframe()
        assert set(zip(found["source"], found["target"], strict=True)) == set(expected)
        for flow in found.itertuples():
            values = expected[flow.source, flow.target]
            assert flow.expected == pytest.approx(samples.weights @ values, rel=1e-12)
            assert flow.mcse == pytest.approx(error(samples, values), rel=1e-9, abs=1e-15, nan_ok=True)
            assert [flow.low, flow.high] == interval(samples.weights, values)


def test_a_cluster_loses_no_item_on_its_way(rng):
    layers = with_gaps(rng)
    partitions = {name: pc.consensus_partition(draws, random_seed=1) for name, draws in layers.items()}
    aligned, flows, _ = compared(layers, partitions)
    for row, (before, after) in enumerate(itertools.pairwise(layers)):
        here = layers.common(before, after)[0]
        table = flows.isel(flow=flows["step"].values == row).to_dataframe()
        sizes = pc.membership(layers[before], partitions[before]).probabilities.values[here].sum(axis=0)
        numbers = dict(zip(partitions[before].labels.values, numbers_of(layers, aligned, before), strict=True))
        for k, size in enumerate(sizes):
            assert table.loc[table["source"] == numbers.get(k, -1), "expected"].sum() == pytest.approx(size)


@pytest.mark.parametrize("kind", LAYERS)
def test_names_of_one_draw_are_those_of_aligned_partitions(rng, kind):
    layers = LAYERS[kind](rng)
    one = pc.as_layers({name: draws.take(np.array([3 % draws.n_draws])) for name, draws in layers.items()})
    partitions = {name: draws.items.array(draws.labels[0].astype(int), "z") for name, draws in one.items()}
    aligned = compared(one, partitions)[0]
    if kind in ("two kinds of items", "one layer"):
        return
    expected = pc.align_partitions(partitions | ({"again": partitions[next(iter(one))]} if len(one) == 1 else {}))
    np.testing.assert_array_equal(aligned.labels, expected.labels)
    assert aligned.names == expected.names


@pytest.mark.parametrize(
    ("rest", "expected"), [([0, 1, 1, 1, 0, 0, 0, 1], [1, 1, 0, 0] * 2), ([0, 0, 0, 1, 0, 1, 1, 1], [0, 0, 1, 1] * 2)]
)
def test_names_go_on_by_what_all_draws_say_and_not_by_the_estimates(rest, expected):
    first, other = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]  # whose clusters have two items in common, each
    draws = np.array([[first, other]] * 3 + [[first, rest]] * 2)
    assert compared(pc.as_layers(draws), {0: first, 1: other})[0].labels.values[1].tolist() == expected


@pytest.mark.parametrize(("n_apart", "number"), [(4, 2), (5, 0)])
def test_clusters_with_less_than_half_an_expected_item_in_common_have_two_names(n_apart, number):
    estimate, one = [0, 1, 1, 1, 1, 1], [0] * 6
    draws = np.array([[estimate, estimate]] * n_apart + [[estimate, one]] * (10 - n_apart))
    found = compared(pc.as_layers(draws), {0: estimate, 1: estimate})[0]
    assert found.labels.values[1].tolist() == [number, 1, 1, 1, 1, 1]


def test_names_of_the_first_partition_go_on(rng):
    draws = np.tile([[[0, 0, 1, 1, 1], [0, 0, 1, 1, 2]]], (6, 1, 1))
    partitions = {"a": pc.consensus_partition(draws[:, 0], random_seed=1).with_names(["x", "y"]), "b": draws[0, 1]}
    found = compared(pc.as_layers({"a": draws[None, :, 0], "b": draws[None, :, 1]}), partitions)[0]
    assert found.names == ("x", "y", "new 1")
    assert found["b"].named_labels.values.tolist() == ["x", "x", "y", "y", "new 1"]


def test_labels_on_disk_and_other_labels_change_nothing(rng, tmp_path):
    z = draws_of(rng, 3)
    partitions = {k: z[0, 0, k] for k in range(3)}
    stored = {k: pc.as_partition_draws(z[:, :, k], store=tmp_path / str(k)) for k in range(3)}
    expected = compared(pc.as_layers(z), partitions)
    for given in (pc.as_layers(stored), pc.as_layers(rng.permutation(3)[z])):
        aligned, *tables = compared(given, partitions)
        xr.testing.assert_identical(aligned.labels, expected[0].labels)
        for found, table in zip(tables, expected[1:], strict=True):
            xr.testing.assert_identical(found, table)


def test_the_table_of_flows_has_names(rng):
    found = pc.compare_layers(in_other_order(rng), random_seed=1, progressbar=False)
    table, names = found.flow_table(), (*found.partitions.names, "elsewhere")
    assert set(table["before"]) == {0} and set(table["after"]) == {1} and len(table) == found.flows.sizes["flow"]
    for column in ("source", "target"):
        assert table[column].tolist() == [names[k] for k in found.flows[column].values]


def test_partitions_are_given_by_name_or_in_order_or_searched(rng):
    layers = with_gaps(rng)
    best = {name: pc.consensus_partition(draws, loss="binder") for name, draws in layers.items()}
    expected = compared(layers, best)[0].labels
    xr.testing.assert_identical(compared(layers, list(best.values()))[0].labels, expected)
    rows = expected.rename(partition="time")[::-1]
    xr.testing.assert_identical(compared(layers, rows)[0].labels, expected)
    xr.testing.assert_identical(compared(layers, rows[::-1].drop_vars("time"))[0].labels, expected)
    found = pc.compare_layers(layers, loss="binder", random_seed=1, progressbar=False)
    for name, one in best.items():
        labels = found.partitions[name].labels
        assert pc.partition_loss(labels.sel(person=one.labels["person"]), one) == pytest.approx(0)
    cases = [
        (list(best.values())[:2], ValueError, "`partitions`", "4 layers; got 2", "none for 2, 3"),
        ({0: best[0]}, ValueError, "`partitions`", "got 1"),
        ([*best.values(), [0]], ValueError, "`partitions`", "got 5"),
        (3, TypeError, "`partitions` must be a dict or a list"),
        ([[0, 1], *list(best.values())[1:]], ValueError, "`partitions[", "must label all 7 items; got 2"),
    ]
    check_all(lambda given: pc.compare_layers(layers, partitions=given, progressbar=False), cases)


def test_stores_of_layers_are_opened_once(rng, tmp_path):
    z, partitions = draws_of(rng, 2).astype(np.uint8), {k: np.arange(7) % 3 for k in range(2)}
    layers = {k: xr.DataArray(z[:, :, k], dims=DIMS) for k in range(2)}
    here = pc.as_layers(layers)
    there = pc.as_layers({k: pc.as_partition_draws(one, store=tmp_path / f"{k}") for k, one in layers.items()})
    for k in range(2):
        (tmp_path / f"{k}").unlink()
    for one, other in zip(compared(here, partitions)[1:], compared(there, partitions)[1:], strict=True):
        xr.testing.assert_identical(one, other)
