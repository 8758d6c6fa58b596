"""Runs in another order: every number is the same, with what belongs to a run at the run of that name."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import cycle, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.summary import record
from tests.catalogue.functions import LENGTH, N_DRAWS, N_ITEMS, functions_of
from tests.catalogue.posteriors import noisy_draws

PARTITION = np.array([0, 0, 0, 1, 1, 2, 2])
NAMES = np.array([f"leiden_{k:02}" for k in range(N_DRAWS)])
GROUPS = np.repeat(["0.5", "1.0"], LENGTH)
WEIGHTS = np.random.default_rng(4).exponential(size=N_DRAWS)
ORDERS = np.arange(N_DRAWS), np.random.default_rng(3).permutation(N_DRAWS)
# Sums in another order: of weights, and of the losses of two draws where one or the other is the estimate.
ROUNDED = ("weights", "partition_loss")
# A bound has limited seconds; the others are compared in their own tests. Figures have no numbers that could differ.
OTHERS = {"certify", "sequential_distances", "compare_layers", "prior_sensitivity"}
FUNCTIONS = sorted(name for name in functions_of(None, None).keys() - OTHERS if not name.startswith("plot_"))
EXACT = ("names", "array", "groups", "noise")
WEIGHTED = ("consensus_partition", "credible_ball", "diagnose", "item_uncertainty", "links", "membership", "particles")


def runs_in(order, kind):
    """The same runs in an order, as columns of a table with names, or as rows of an array."""
    labels = noisy_draws(np.random.default_rng(2), N_DRAWS, N_ITEMS, 3, 0.3)[order]
    groups = GROUPS[order] if kind in ("groups", "weights") else None
    data = labels if kind == "array" else pd.DataFrame(labels.T, columns=NAMES[order])
    runs = pc.as_runs(data, groups=groups, noise=2 if kind == "noise" else None)
    return pc.as_partition_draws(runs, weights=WEIGHTS[order]) if kind == "weights" else runs


def numbers(value, order, path=""):
    """Every number of a result by its place in it, with the values of runs in the order of their names."""
    if isinstance(value, pc.results.PartitionDraws):
        return {f"{path}.runs": value.labels[np.argsort(order)]}
    if isinstance(value, xr.DataArray):
        for dim in value.dims:
            for name in ("draw", "draw_bis"):
                if name in value.coords and value[name].dims == (dim,):
                    names = value[name].values
                    at = np.argsort(order[names] if names.dtype.kind == "i" else names)
                    value = value.isel({dim: at})
        return {path: value.values}
    if isinstance(value, plt.Axes | plt.Figure | Samples):
        return {}
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        return {k: v for name, one in value.items() for k, v in numbers(one, order, f"{path}.{name}").items()}
    return {path: np.asarray(value)} if isinstance(value, np.ndarray | np.generic | int | float | str) else {}


def differences(function, name, kind):
    """Places of numbers that differ between the two orders."""
    first, second = (numbers(function(runs_in(order, kind)), order) for order in ORDERS)
    plt.close("all")
    assert first.keys() == second.keys()
    same = np.array_equal if kind not in ROUNDED and name not in ROUNDED else close
    return [path for path, one in first.items() if "seconds" not in path and not equal(one, second[path], same)]


def equal(one, other, same):
    return np.array_equal(one, other) if one.dtype.kind not in "fc" else same(one, other, equal_nan=True)


def close(one, other, equal_nan):
    return np.allclose(one, other, rtol=1e-11, atol=1e-11, equal_nan=equal_nan)


@pytest.mark.parametrize(
    ("name", "kind"), [*product(WEIGHTED, ["weights"]), *zip(FUNCTIONS, cycle(EXACT), strict=False)]
)
def test_numbers_are_those_of_runs_in_another_order(name, kind):
    """Bit for bit of one kind, and some up to rounding with weights and groups: all take runs in one fixed order."""
    if (name, kind) == ("partition_density", "array"):
        return  # which of two equal runs without names is used for training is decided by their places
    assert differences(lambda runs: functions_of(runs, PARTITION)[name](), name, kind) == []


@pytest.mark.parametrize("method", pc.METHODS)
def test_methods_find_the_same_of_runs_in_another_order(method):
    loss = "binder" if method == "exact" else "vi"

    def found(runs):
        return pc.consensus_partition(runs, loss=loss, method=method, random_seed=1, progressbar=False)

    assert differences(found, method, "names") == []


@pytest.mark.parametrize("kind", ["names", "groups", "noise", "weights"])
def test_fixed_order_is_one_of_the_same_runs(kind):
    first, second = (runs_in(order, kind).in_fixed_order() for order in ORDERS)
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.samples.draw, second.samples.draw)
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-14)
    assert first.in_fixed_order() is first
    given = runs_in(ORDERS[1], kind)
    np.testing.assert_array_equal(first.samples.draw[given.own_order], given.samples.draw)


@pytest.mark.parametrize("named", [True, False])
def test_repeated_runs_take_random_places_in_the_fixed_order(named):
    labels = np.repeat([[0, 0, 1, 1], [0, 1, 1, 1]], [24, 16], axis=0)

    def ordered(rows):
        columns = np.arange(40)[rows] if named else None
        return pc.as_runs(pd.DataFrame(labels[rows].T, columns=columns)).in_fixed_order()

    first, second = ordered(np.arange(40)), ordered(np.random.default_rng(3).permutation(40))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.in_fixed_order() is first
    of_first = [int(np.sum(half[:, 1] == half[:, 0])) for half in np.split(first.labels, 2)]
    assert sum(of_first) == 24 and min(of_first) > 8


def test_draws_of_chains_stay_in_their_order():
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(2), 20, 7, 3, 0.3))
    assert draws.in_fixed_order() is draws


@pytest.mark.parametrize("kind", ["names", "array", "weights"])
def test_some_of_very_many_runs_are_the_same_in_another_order(kind):
    some = [record.some_draws(pc.as_partition_draws(runs_in(order, kind)), 5) for order in ORDERS]
    one, other = (np.unique(found.labels, axis=0) for found in some)
    np.testing.assert_array_equal(one, other)
    assert 1 < some[0].n_draws == some[1].n_draws <= 5
