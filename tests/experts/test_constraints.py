"""Constraints of experts: tables, arrays, partitions and draws become statements, or an error says what is wrong."""

import numpy as np
import pandas as pd
import xarray as xr

import posterior_consensus as pc
from tests.helpers import array, check

ROWS = [("Ann", "fern", "moss", "must"), ("Bo", "oak", "fern", "cannot"), ("Ann", "moss", "oak", "cannot")]
TABLE = pd.DataFrame(ROWS, columns=["expert", "i", "j", "kind"])
PLANTS = ["oak", "fern", "pine", "moss"]


def same(one, other):
    assert one.experts == other.experts
    for name in ("expert", "i", "j", "must"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_table_is_taken_by_name():
    said = pc.experts.as_constraints(TABLE, PLANTS)
    assert said.experts == ("Ann", "Bo") and len(said) == 3
    np.testing.assert_array_equal(said.expert, [0, 1, 0])
    np.testing.assert_array_equal(np.column_stack([said.i, said.j]), [[1, 3], [0, 1], [0, 3]])
    np.testing.assert_array_equal(said.must, [True, False, False])
    assert said.to_dataframe()["i"].tolist() == ["fern", "oak", "oak"]
    assert pc.experts.as_constraints(TABLE).items.n_items == 3


def test_positions_booleans_and_items_from_names_and_from_features_are_taken():
    by_position = {"expert": ["Ann", "Bo", "Ann"], "i": [1, 0, 3], "j": [3, 1, 0], "kind": [True, False, False]}
    for data, items in ((by_position, 4), (by_position, PLANTS), (by_position | {"kind": np.array([1, 0, 0])}, None)):
        same(pc.experts.as_constraints(data, items), pc.experts.as_constraints(TABLE, PLANTS))
    for items in (
        np.array(PLANTS),
        pd.DataFrame({"height": range(4)}, index=PLANTS),
        array(np.zeros((4, 2)), ("plant", "feature"), plant=PLANTS),
        pc.results.Items(4, "plant", xr.Coordinates({"plant": PLANTS})),
    ):
        same(pc.experts.as_constraints(TABLE, items), pc.experts.as_constraints(TABLE, PLANTS))


def test_what_cannot_be_asked_is_said():
    def table(**columns):
        return {"expert": [0], "i": [0], "j": [1], "kind": ["must"]} | columns

    no_kind = pd.DataFrame(table()).drop(columns="kind")
    for data, items, *parts in [
        (TABLE.assign(i=["fern", "elm", "moss"]), PLANTS, "no 'elm' among 4 items"),
        (TABLE.assign(j=["moss", "oak", "oak"]), PLANTS, "row 1", "'oak' twice"),
        (TABLE.assign(kind=["must", "may", "must"]), PLANTS, "'kind' of `data`", "got 'may'"),
        (TABLE.assign(expert=["Ann", None, "Bo"]), PLANTS, "missing", "'expert' has 1"),
        (TABLE[:0], None, "got none"),
        (table(j=[7]), 3, "0 to 2; got 7"),
        (TABLE, 4, "by position", "got 'fern'"),
        (table(i=[0, 1]), None, "one length", "expert 1, i 2"),
        ({"Ann": [0]}, None, "two items"),
        ({"Ann": [0, 0, 1], "Bo": [0, 1]}, None, "'Bo' has 2 of 3"),
        ({}, None, "expert; got none"),
        (no_kind, None, "'expert', 'i', 'j' and 'kind'", "no 'kind'"),
    ]:
        check(lambda x, at=items: pc.experts.as_constraints(x, at), data, ValueError, parts)
    check(lambda x: pc.experts.as_constraints({"Ann": [0, 1]}, n_pairs=x), 0, ValueError, ["`n_pairs`", "at least 1"])
    for wrong in ("abc", True, 2.5):
        check(
            lambda x: pc.experts.as_constraints(TABLE, x), wrong, TypeError, ["`items`", "integer, names, or a table"]
        )


def test_pairs_of_a_partition_are_different_and_all_are_as_likely():
    labels = np.array([0, 0, 1, 1, 2])
    said = pc.experts.as_constraints({"Ann": labels}, n_pairs=100)
    assert len(said) == 10 == len(set(zip(said.i, said.j, strict=True)))
    np.testing.assert_array_equal(said.must, labels[said.i] == labels[said.j])
    for number in (1, 37, 1000):
        said = pc.experts.as_constraints({k: np.zeros(50, int) for k in range(40)}, n_pairs=number, random_seed=3)
        assert len(said) == 40 * number and np.all(said.i < said.j)
        assert len(set(zip(said.expert, said.i, said.j, strict=True))) == len(said)
    named = np.bincount(np.concatenate([said.i, said.j]), minlength=50) / len(said)
    np.testing.assert_allclose(named, 2 / 50, atol=0.004)
    assert set(np.bincount(said.expert)) == {1000}


def test_chains_answer_with_their_draws_by_weight():
    draws = np.array([[[0, 0, 1], [0, 1, 1]], [[0, 0, 0], [0, 0, 0]]])
    z = xr.DataArray(draws, {"chain": ["left", "right"], "plant": list("abc")}, ("chain", "draw", "plant"))
    said = pc.experts.as_constraints(pc.as_partition_draws(z, weights=[0, 1, 1, 1]), random_seed=1)
    assert said.experts == ("left", "right") and said.items.dim == "plant"
    left = said.to_dataframe()[lambda rows: rows["expert"] == "left"]
    assert dict(zip(left["i"] + left["j"], left["kind"], strict=True)) == {"ab": "cannot", "ac": "cannot", "bc": "must"}
    no_weight = pc.experts.as_constraints(pc.as_partition_draws(z, weights=[0, 0, 1, 1]))
    assert no_weight.experts == ("right",)


def test_partitions_are_taken_by_the_names_of_their_items():
    labels = pd.Series([0, 0, 1, 1], index=PLANTS)
    said = pc.experts.as_constraints({"Ann": labels, "Bo": labels[::-1]}, PLANTS)
    first, second = (said.must[said.expert == k] for k in (0, 1))
    np.testing.assert_array_equal(first, second)
    others = {"Ann": labels, "Bo": pd.Series([0, 1, 1, 2], index=list("abcd"))}
    check(lambda x: pc.experts.as_constraints(x, PLANTS), others, ValueError, ["'Bo'", "names"])


def test_statements_of_several_sources_are_joined_and_counted():
    chains = pc.experts.as_constraints(pc.as_partition_draws(np.zeros((2, 3, 4), int)), PLANTS)
    said = pc.experts.as_constraints(TABLE, PLANTS) + chains
    assert said.experts == ("Ann", "Bo", 0, 1) and len(said) == 3 + 2 * 6
    assert said.counts()["must"].values.tolist() == [1, 0, 6, 6]
    twice = said + pc.experts.as_constraints(TABLE[1:2], PLANTS)
    assert twice.experts == said.experts and twice.counts()["cannot"].values.tolist() == [1, 2, 0, 0]
    check(lambda x: said + x, pc.experts.as_constraints(TABLE), ValueError, ["same items; got 4 and 3"])
    rows = [("Ann", 0, 1, "must"), ("Ann", 1, 0, "cannot"), ("Ann", 0, 2, "must"), ("Bo", 0, 1, "cannot")]
    said = pc.experts.as_constraints(pd.DataFrame(rows, columns=TABLE.columns))
    assert said.counts()["contradictory"].values.tolist() == [1, 0]
    assert "1 pair with both kinds by one expert" in repr(said)


def test_statements_move_to_the_items_of_features():
    said = pc.experts.as_constraints(TABLE)
    same(pc.experts.as_constraints(said, PLANTS), pc.experts.as_constraints(TABLE, PLANTS))
    check(lambda x: pc.experts.as_constraints(said, x), PLANTS[1:], ValueError, ["none for 'oak'"])


def test_names_of_items_outlast_what_has_none():
    named = xr.DataArray([0, 0, 1], {"plant": ["fern", "moss", "oak"]}, "plant")
    for data in ({"Ann": named, "Bo": [0, 1, 1]}, {"Bo": [0, 1, 1], "Ann": named}):
        said = pc.experts.as_constraints(data, 3, random_seed=1)
        assert said.items.coords["plant"].values.tolist() == ["fern", "moss", "oak"]
        assert pc.experts.as_constraints(said, np.zeros((3, 2))).items is said.items
