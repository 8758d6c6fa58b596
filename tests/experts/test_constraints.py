"""The door of the experts: tables, arrays, partitions and draws become statements, or an error says what is wrong."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc

ROWS = [("Ann", "fern", "moss", "must"), ("Bo", "oak", "fern", "cannot"), ("Ann", "moss", "oak", "cannot")]
TABLE = pd.DataFrame(ROWS, columns=["expert", "i", "j", "kind"])
PLANTS = ["oak", "fern", "pine", "moss"]


def same(one, other):
    assert one.experts == other.experts
    for name in ("expert", "i", "j", "must"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_table_is_taken_by_name():
    said = pc.as_constraints(TABLE, PLANTS)
    assert said.experts == ("Ann", "Bo") and len(said) == 3
    np.testing.assert_array_equal(said.expert, [0, 1, 0])
    np.testing.assert_array_equal(np.column_stack([said.i, said.j]), [[1, 3], [0, 1], [0, 3]])
    np.testing.assert_array_equal(said.must, [True, False, False])
    assert said.to_dataframe()["i"].tolist() == ["fern", "oak", "oak"]
    assert pc.as_constraints(TABLE).items.n_items == 3


@pytest.mark.parametrize(
    "items",
    [
        np.array(PLANTS),
        pd.DataFrame({"height": range(4)}, index=PLANTS),
        xr.DataArray(np.zeros((4, 2)), {"plant": PLANTS}, ("plant", "feature")),
        pc.Items(4, "plant", xr.Coordinates({"plant": PLANTS})),
    ],
)
def test_items_come_from_names_and_from_features(items):
    same(pc.as_constraints(TABLE, items), pc.as_constraints(TABLE, PLANTS))


def test_arrays_booleans_and_positions_are_taken():
    by_position = {"expert": ["Ann", "Bo", "Ann"], "i": [1, 0, 3], "j": [3, 1, 0], "kind": [True, False, False]}
    same(pc.as_constraints(by_position, 4), pc.as_constraints(TABLE, PLANTS))
    same(pc.as_constraints(by_position, PLANTS), pc.as_constraints(TABLE, PLANTS))
    same(pc.as_constraints(by_position | {"kind": np.array([1, 0, 0])}), pc.as_constraints(TABLE, PLANTS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"i": ["fern", "elm", "moss"]}, "there is no 'elm' among 4 items"),
        ({"j": ["moss", "oak", "oak"]}, "row 1 has 'oak' twice"),
        ({"kind": ["must", "may", "must"]}, "Column 'kind' of `data` must be 'must' or 'cannot'; got 'may'"),
        ({"expert": ["Ann", None, "Bo"]}, "no missing values; column 'expert' has 1"),
    ],
)
def test_what_is_wrong_in_a_table_is_said(change, message):
    with pytest.raises(ValueError, match=message):
        pc.as_constraints(TABLE.assign(**change), PLANTS)


def test_what_cannot_be_asked_is_said():
    with pytest.raises(ValueError, match="at least one constraint; got none"):
        pc.as_constraints(TABLE[:0])
    with pytest.raises(ValueError, match="must name items that exist, 0 to 2; got 7"):
        pc.as_constraints({"expert": [0], "i": [0], "j": [7], "kind": ["must"]}, 3)
    with pytest.raises(ValueError, match="must name items by position, since they have no names; got 'fern'"):
        pc.as_constraints(TABLE, 4)
    with pytest.raises(ValueError, match="columns of one length; got expert 1, i 2"):
        pc.as_constraints({"expert": [0], "i": [0, 1], "j": [1], "kind": ["must"]})
    with pytest.raises(ValueError, match="at least two items"):
        pc.as_constraints({"Ann": [0]})
    with pytest.raises(ValueError, match="'Bo' has 2 of 3 items"):
        pc.as_constraints({"Ann": [0, 0, 1], "Bo": [0, 1]})
    with pytest.raises(ValueError, match="at least one expert; got none"):
        pc.as_constraints({})
    with pytest.raises(ValueError, match="`n_pairs` must be at least 1"):
        pc.as_constraints({"Ann": [0, 1]}, n_pairs=0)


def test_contradictions_are_counted():
    rows = [("Ann", 0, 1, "must"), ("Ann", 1, 0, "cannot"), ("Ann", 0, 2, "must"), ("Bo", 0, 1, "cannot")]
    said = pc.as_constraints(pd.DataFrame(rows, columns=TABLE.columns))
    assert said.counts()["contradictory"].values.tolist() == [1, 0]
    assert "1 pair with both kinds by one expert" in repr(said)


def test_a_partition_answers_as_it_is():
    labels = np.array([0, 0, 1, 1, 2])
    said = pc.as_constraints({"Ann": labels}, n_pairs=100)
    assert len(said) == 10 == len(set(zip(said.i, said.j, strict=True)))
    np.testing.assert_array_equal(said.must, labels[said.i] == labels[said.j])


@pytest.mark.parametrize("number", [1, 37, 1000])
def test_pairs_are_different_and_all_are_as_likely(number):
    said = pc.as_constraints({k: np.zeros(50, int) for k in range(40)}, n_pairs=number, random_seed=3)
    assert len(said) == 40 * number and np.all(said.i < said.j)
    for expert in range(40):
        own = said.expert == expert
        assert len(set(zip(said.i[own], said.j[own], strict=True))) == number
    if number == 1000:
        named = np.bincount(np.concatenate([said.i, said.j]), minlength=50) / len(said)
        np.testing.assert_allclose(named, 2 / 50, atol=0.004)


def test_chains_answer_with_their_draws_by_weight():
    draws = np.array([[[0, 0, 1], [0, 1, 1]], [[0, 0, 0], [0, 0, 0]]])
    z = xr.DataArray(draws, {"chain": ["left", "right"], "plant": list("abc")}, ("chain", "draw", "plant"))
    said = pc.as_constraints(pc.as_partition_draws(z, weights=[0, 1, 1, 1]), random_seed=1)
    assert said.experts == ("left", "right") and said.items.dim == "plant"
    left = said.to_dataframe()[lambda rows: rows["expert"] == "left"]
    assert dict(zip(left["i"] + left["j"], left["kind"], strict=True)) == {"ab": "cannot", "ac": "cannot", "bc": "must"}
    no_weight = pc.as_constraints(pc.as_partition_draws(z, weights=[0, 0, 1, 1]))
    assert no_weight.experts == ("right",)


def test_labels_of_draws_may_switch():
    draws = np.random.default_rng(0).integers(3, size=(2, 20, 9))
    switched = np.array([2, 0, 1])[draws]
    same(pc.as_constraints(draws, random_seed=4), pc.as_constraints(switched, random_seed=4))


def test_partitions_are_taken_by_the_names_of_their_items():
    labels = pd.Series([0, 0, 1, 1], index=PLANTS)
    said = pc.as_constraints({"Ann": labels, "Bo": labels[::-1]}, PLANTS)
    first, second = (said.must[said.expert == k] for k in (0, 1))
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="those of 'Bo' have other names"):
        pc.as_constraints({"Ann": labels, "Bo": pd.Series([0, 1, 1, 2], index=list("abcd"))}, PLANTS)


def test_statements_of_several_sources_are_joined():
    chains = pc.as_constraints(pc.as_partition_draws(np.zeros((2, 3, 4), int)), PLANTS)
    said = pc.as_constraints(TABLE, PLANTS) + chains
    assert said.experts == ("Ann", "Bo", 0, 1) and len(said) == 3 + 2 * 6
    assert said.counts()["must"].values.tolist() == [1, 0, 6, 6]
    twice = said + pc.as_constraints(TABLE[1:2], PLANTS)
    assert twice.experts == said.experts and twice.counts()["cannot"].values.tolist() == [1, 2, 0, 0]
    with pytest.raises(ValueError, match="about the same items; got 4 and 3"):
        said + pc.as_constraints(TABLE)


def test_statements_move_to_the_items_of_features():
    said = pc.as_constraints(TABLE)
    moved = pc.as_constraints(said, PLANTS)
    same(moved, pc.as_constraints(TABLE, PLANTS))
    with pytest.raises(ValueError, match="none for 'oak'"):
        pc.as_constraints(said, PLANTS[1:])


@pytest.mark.parametrize("lost", ["expert", "kind"])
@pytest.mark.parametrize("kind", [pd.DataFrame, dict])
def test_a_table_without_a_column_is_not_taken_for_partitions(lost, kind):
    table = {"expert": [0, 0], "i": [0, 1], "j": [1, 2], "kind": [1, 0]}
    del table[lost]
    with pytest.raises(ValueError, match=f"must have columns 'expert', 'i', 'j' and 'kind'; there is no '{lost}'"):
        pc.as_constraints(kind(table))


@pytest.mark.parametrize("wrong", ["abc", True, 2.5])
def test_items_that_are_none_are_refused_by_name(wrong):
    with pytest.raises(TypeError, match="`items` must be an integer, names, or a table"):
        pc.as_constraints(TABLE, wrong)


def test_names_of_items_outlast_what_has_none():
    named = xr.DataArray([0, 0, 1], {"plant": ["fern", "moss", "oak"]}, "plant")
    for data in ({"Ann": named, "Bo": [0, 1, 1]}, {"Bo": [0, 1, 1], "Ann": named}):
        said = pc.as_constraints(data, 3, random_seed=1)
        assert said.items.coords["plant"].values.tolist() == ["fern", "moss", "oak"]
        assert pc.as_constraints(said, np.zeros((3, 2))).items is said.items
