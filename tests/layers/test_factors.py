"""compare_factors(): distances of runs that differ in one factor alone, counted by hand, and tests within strata."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import posterior_consensus as pc
from posterior_consensus.diagnostics.groups import permutation_p_value, run_distances
from tests.helpers import check, check_all

PATTERN = "{merges}_{splits}_{nothing}_*"


def moved(rng, labels, share):
    return np.where(rng.random(labels.size) < share, rng.integers(6, size=labels.size), labels)


@pytest.fixture
def table(rng):
    """Runs of 2 x 3 x 2 settings: the first factor merges clusters, the second splits one, the third does nothing."""
    truth, runs = np.repeat(np.arange(4), 10), {}
    for merges in range(2):
        for splits in range(3):
            for nothing in "ab":
                labels = np.where(truth < 1 + merges, 0, truth)
                labels = np.where((truth == 3) & (np.arange(40) % 10 < splits), 5, labels)
                for run in range(3):
                    runs[f"{merges}_{splits}_{nothing}_{run}"] = moved(rng, labels, 0.05)
    return pd.DataFrame(runs, index=[f"cell {k}" for k in range(40)])


def test_distances_and_errors_are_those_of_settings(table):
    found = pc.compare_factors(pc.as_runs(table), PATTERN)
    settings = list(dict.fromkeys(name[:5] for name in table))

    def between(one, other):
        pairs = [(a, b) for a in table if a[:5] == one for b in table if b[:5] == other and a != b]
        return np.mean([pc.partition_loss(table[a], table[b]) for a, b in pairs])

    for place, name in zip((0, 2, 4), ("merges", "splits", "nothing"), strict=True):
        pairs = [(s, t) for s, t in combinations(settings, 2) if [k for k in range(5) if s[k] != t[k]] == [place]]
        values = np.array([between(*pair) for pair in pairs])
        without = np.array([values[[one not in pair for pair in pairs]].mean() for one in settings])
        error = np.sqrt(11 / 12 * np.square(without - without.mean()).sum())
        row = found.to_dataframe().loc[name]
        assert row["n_pairs"] == len(pairs)
        assert_allclose(row[["distance", "error"]].astype(float), [values.mean(), error])
        excess = np.mean([between(s, t) - (between(s, s) + between(t, t)) / 2 for s, t in pairs])
        assert_allclose(row["excess"], excess)
        assert (row["p_value"] <= 0.01) == (row["excess"] > row["excess_limit"])
    within = [between(one, one) for one in settings]
    assert_allclose([found.within, found.within_error], [np.mean(within), np.std(within, ddof=1) / np.sqrt(12)])


def test_levels_are_compared_with_all_else_equal(table):
    levels = pc.compare_factors(pc.as_runs(table), PATTERN).levels("splits")
    alike = [(a, b) for a in table for b in table if (a[2], b[2]) == ("0", "2") and a[0] + a[4] == b[0] + b[4]]
    assert_allclose(levels.loc["0", "2"], np.mean([pc.partition_loss(table[a], table[b]) for a, b in alike]))
    assert list(levels) == ["0", "1", "2"] and levels.loc["2", "0"] == levels.loc["0", "2"]


def test_a_factor_is_tested_within_strata_of_the_others(table):
    runs = pc.as_runs(table)
    p = pc.compare_factors(runs, PATTERN).to_dataframe()["p_value"]
    assert p["merges"] < 0.001 and p["splits"] < 0.001 and p["nothing"] > 0.05
    splits = np.array([int(name[2]) for name in table])
    assert permutation_p_value(run_distances(runs, pc.vi()), splits) > p["splits"]


def test_the_order_of_runs_and_how_factors_are_given_change_nothing(table):
    expected = pc.compare_factors(pc.as_runs(table), PATTERN)
    factors = pd.DataFrame([name.split("_")[:3] for name in table], table.columns, ["merges", "splits", "nothing"])
    shuffled = pc.as_runs(table[table.columns[::-1]])
    by_name = {"merges": "{}_*", "splits": dict(factors["splits"]), "nothing": factors["nothing"][::-1]}
    for given in (factors.sample(frac=1, random_state=1), by_name):
        found = pc.compare_factors(shuffled, given)
        pd.testing.assert_frame_equal(found.to_dataframe(), expected.to_dataframe())
        assert found.verdict == expected.verdict


def test_a_setting_is_a_group_of_runs(table):
    runs = pc.as_runs(table, groups={"merges": "{}_*", "nothing": "?_?_{}_*"})
    assert list(dict.fromkeys(runs.samples.chain)) == [
        f"merges={merges}, nothing={nothing}" for merges in range(2) for nothing in "ab"
    ]


def test_the_figure_says_which_factors_are_shown_to_matter(table):
    found = pc.compare_factors(pc.as_runs(table), PATTERN)
    ax = found.plot()
    rows = found.to_dataframe().sort_values("excess")
    assert [tick.get_text().split("\n")[0] for tick in ax.get_yticklabels()] == list(rows.index)
    filled, hollow = (line.get_xdata() for line in ax.lines[:2])
    assert filled.tolist() == rows["excess"][["splits", "merges"]].tolist()
    assert hollow.tolist() == [rows["excess"]["nothing"]]
    assert ax.get_title().replace("\n", " ").endswith("more than another run; also splits")
    single = pc.compare_factors(pc.as_runs({f"{x}_{y}": [0, x, y] for x in range(2) for y in range(3)}), "{x}_{y}")
    assert "no factor is tested" in single.plot().get_title()


def test_kinds_of_runs_have_a_level():
    labels = {
        f"{a}_{b}_{k}": [0, 0, 0, 1, 1, 1] if a else [0, 1, 2, 0, 1, 2]
        for a in (0, 1)
        for b in (0, 1)
        for k in range(9)
    }
    runs = pc.as_runs(labels)
    kinds = pc.compare_factors(runs, "{first}_{second}_*").kinds(pc.particles(runs, random_seed=1, progressbar=False))
    assert sorted(zip(kinds["factor"], kinds["level"], strict=True)) == [("first", "0"), ("first", "1")]
    assert (kinds[["share_of_kind", "share_of_level"]] == 1).all(axis=None) and kinds["n_runs"].tolist() == [18, 18]


def test_what_cannot_be_told_is_unknown():
    one_each = pc.compare_factors(pc.as_runs({"a_1": [0, 0, 1], "b_2": [0, 1, 1]}), "{x}_{y}")
    assert "cannot be told" in one_each.verdict and np.isnan(one_each.within)
    single = pc.compare_factors(pc.as_runs({f"{x}_{y}": [0, x, y] for x in range(2) for y in range(3)}), "{x}_{y}")
    assert "Not tested" in single.verdict and single.to_dataframe()[["p_value", "excess"]].isna().all(axis=None)


def test_runs_have_weights_by_name():
    table = {"a": [0, 0, 1], "b": [0, 1, 1], "c": [0, 1, 2]}
    runs = pc.as_runs(table, weights={"c": 6, "a": 1, "b": 1})
    assert_allclose(runs.samples.weights, [1 / 8, 1 / 8, 6 / 8])
    assert pc.consensus_partition(runs, random_seed=1, progressbar=False).labels.values.tolist() == [0, 1, 2]
    again = pc.as_runs(runs, weights=[1, 0, 0])
    assert_allclose(again.samples.weights, [1, 0, 0])


RUNS = {"a_1": [0, 0, 1], "b_1": [0, 1, 1]}


def test_mistakes_are_named():
    runs = pc.as_runs(RUNS)
    cases = [
        ("{}_*", ValueError, "`factors`", "'{}_*'"),
        ("{x}_2", ValueError, "`factors`", "'a_1'"),
        (3, TypeError, "`factors`", "int"),
        ({}, ValueError, "`factors`", "none"),
        ({"x": {"a_1": 1}}, ValueError, "`factors`", "'b_1'"),
        (pd.DataFrame({"x": [1, 2]}), ValueError, "`factors`", "index"),
    ]
    check_all(lambda factors: pc.compare_factors(runs, factors), cases)
    check(lambda draws: pc.compare_factors(draws, "{x}_*"), [[0, 1], [1, 1]], ValueError, ["`draws`", "as_runs"])
    check(pc.compare_factors(runs, "{x}_{y}").levels, "z", ValueError, ["`factor`", "'z'"])
    check(lambda groups: pc.as_runs(RUNS, groups=groups), "{x}_{x}", ValueError, ["`groups`", "'{x}_{x}'"])
    cases = [([1.0], ValueError, "`weights`", "(1,)"), ([1.0, -1.0], ValueError, "`weights`", "-1.0")]
    check_all(lambda weights: pc.as_runs(RUNS, weights=weights), cases)
