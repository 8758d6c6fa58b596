"""Clusters of a consensus under names that the user gives them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.helpers import check_all, written


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
    assert f"<th>{names[1]}</th>" in named._repr_html_()
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
        ({3: "d"}, ValueError, "`names`", "clusters 0 to 2", "got one of 3"),
    ]
    check_all(best.with_names, refused)
