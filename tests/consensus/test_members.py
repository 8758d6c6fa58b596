"""The items of each consensus cluster, by the names that they have, and clusters under names that the user gives."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.helpers import array, check_all, written

GROUPS = np.array([0, 1, 0, 2, 1, 0])
SPLIT = [[0, 2, 5], [1, 4], [3]]


def best_of(**coords):
    draws = array(np.tile(GROUPS, (1, 5, 1)), ("chain", "draw", "obs"), **coords)
    return pc.consensus_partition(draws, random_seed=1, progressbar=False)


def test_items_without_names_are_positions():
    best = best_of()
    assert best.clusters == dict(enumerate(SPLIT))
    assert [best.members(k) for k in range(3)] == SPLIT
    assert all(type(item) is int for members in best.clusters.values() for item in members)


NAMES = {
    "text": list("abcdef"),
    "numbers": [10, 20, 30, 40, 50, 60],
    "dates": pd.date_range("2026-01-01", periods=6).tolist(),
    "pairs": [(letter, number) for letter in "xy" for number in (1, 2, 3)],
}


@pytest.mark.parametrize("kind", NAMES)
def test_items_have_the_names_of_their_coordinate(kind):
    names, coords = NAMES[kind], {"obs": NAMES[kind]}
    if kind == "pairs":
        index = pd.MultiIndex.from_tuples(names, names=["letter", "number"])
        coords = xr.Coordinates.from_pandas_multiindex(index, "obs")
    best = best_of(**coords)
    assert list(best.clusters.values()) == [[names[i] for i in rows] for rows in SPLIT]
    assert best.members(1) == [names[1], names[4]]
    shown = best.to_dataframe()["obs"].tolist()
    text = [": ".join(map(str, one)) if kind == "pairs" else str(one).removesuffix(" 00:00:00") for one in names]
    assert shown == [", ".join(text[i] for i in rows) for rows in SPLIT]


def test_every_item_is_in_one_list(rng):
    z = rng.integers(4, size=(30, 25))
    best = pc.consensus_partition(z, random_seed=1, progressbar=False)
    assert sorted(item for members in best.clusters.values() for item in members) == list(range(25))
    assert [len(members) for members in best.clusters.values()] == best.cluster_sizes.values.tolist()
    long = best.to_dataframe()["item"].str.endswith(", ...")
    assert (long == (best.cluster_sizes.values > 4)).all()


def test_given_names_are_keys_and_numbers_stay_positions():
    best = best_of().with_names({0: "large", 2: "alone"}, first=1)
    assert best.clusters == {"large": [0, 2, 5], 2: [1, 4], "alone": [3]}
    assert best.members(2) == [3] and best.members(np.int64(0)) == [0, 2, 5]


def test_clusters_that_are_not_there():
    of_no_number = [
        (k, TypeError, "`k`", "number of a cluster", repr(k), "`clusters`") for k in ("large", 1.0, None, True)
    ]
    beyond = [(k, ValueError, "`k`", "between 0 and 2", f"got {k}") for k in (-1, 3)]
    check_all(best_of().members, of_no_number + beyond)


@pytest.fixture
def best(z):
    return pc.consensus_partition(z, n_clusters=3, random_seed=1)


NAMED = {
    "a list": ({"names": ["a", "b", "c"]}, ["a", "b", "c"]),
    "an array": ({"names": np.array(["a", "b", "c"])}, ["a", "b", "c"]),
    "a mapping": ({"names": {0: "a", 1: "b", 2: "c"}}, ["a", "b", "c"]),
    "some of them": ({"names": {1: "b"}, "first": 1}, [1, "b", 3]),
    "from 1": ({"first": 1}, [1, 2, 3]),
    "from 0": ({}, [0, 1, 2]),
}


@pytest.mark.parametrize("kind", NAMED)
def test_tables_show_the_names_and_the_rest_stays(z, best, kind, tmp_path):
    arguments, names = NAMED[kind]
    named = best.with_names(**arguments)
    assert list(named.names) == names
    assert named.to_dataframe().index.tolist() == names and named.to_dataframe().index.name == "cluster"
    rows = repr(named).splitlines()[-3:]
    assert [row.split()[0] for row in rows] == [str(name) for name in names]
    assert f">{names[1]}</th>" in named._repr_html_()
    assert [names[k] for k in best.labels.values] == named.named_labels.values.tolist()
    assert named.named_labels["obs"].values.tolist() == list("abcd")
    assert named.cluster_sizes["consensus_cluster"].values.tolist() == (
        [str(name) for name in names] if "b" in names else names
    )
    path = written(named.to_dataset(), tmp_path / "best.nc")
    assert path.stat().st_size > 0
    assert_array_equal(named.labels, best.labels)
    assert named.expected_loss == best.expected_loss and best.names == (0, 1, 2)
    assert pc.partition_loss(named, best) == 0


def test_named_labels_are_a_partition(z, best):
    named = best.with_names(["a", "b", "c"])
    assert_array_equal(pc.as_partition_draws(z).as_labels(named.named_labels), best.labels)


def test_names_that_do_not_fit(best):
    refused = [
        (["a", "b"], ValueError, "`names`", "3, one for each", "['a', 'b']"),
        ("abc", ValueError, "`names`", "3, one for each", "'abc'"),
        (["a", "b", "a"], ValueError, "`names`", "differ", "['a', 'b', 'a']"),
        ({0: 1}, ValueError, "`names`", "differ", "[1, 1, 2]"),
        ({3: "d"}, ValueError, "`names`", "clusters 0 to 2", "got 3"),
    ]
    check_all(best.with_names, refused)
