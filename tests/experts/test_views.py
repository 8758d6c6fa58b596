"""expert_views(): a known truth is found, whatever things are called; and what is degenerate is finite or refused."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.metrics import adjusted_rand_score

import posterior_consensus as pc
from tests.experts.study import ACCURACY, features, statements
from tests.helpers import check

QUIET = {"random_seed": 1, "progressbar": False}
LITTLE = {"n_starts": 6, **QUIET}


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(5)
    values, one, other = features(rng, 90)
    table = statements([one] * 3 + [other] * 3, ACCURACY[::2] + ACCURACY[::2], 300, rng)
    return values, one, other, table


@pytest.fixture(scope="module")
def found(study):
    values, _, _, table = study
    return pc.experts.expert_views(table, values, n_clusters=4, **LITTLE)


def test_views_clusters_and_reliability_are_found(study, found, approved):
    _, one, other, _ = study
    np.testing.assert_array_equal(found.expert_view, [0, 0, 0, 1, 1, 1])
    assert found.n_views == 2 and found.n_clusters.values.tolist() == [3, 3]
    for view, truth in enumerate((one, other)):
        assert adjusted_rand_score(truth, found.labels[view]) > 0.85
    for measure in (found.sensitivity, found.specificity):
        np.testing.assert_allclose(measure, ACCURACY[::2] * 2, atol=0.05)
    assert np.all(found.view_probability.max("view") > 0.99)
    approved("verdicts_experts", "two views", found.verdict)
    np.testing.assert_allclose(found.memberships.sum("cluster"), 1)
    assert np.all(np.diff(found.trace) > -1e-8 * abs(found.bound))


def test_views_are_found_without_features(study):
    _, one, other, table = study
    free = pc.experts.expert_views(table, n_clusters=4, **LITTLE)
    np.testing.assert_array_equal(free.expert_view, [0, 0, 0, 1, 1, 1])
    for view, truth in enumerate((one, other)):
        assert adjusted_rand_score(truth, free.labels[view]) > 0.7
    assert np.all(np.diff(free.trace) > -1e-8 * abs(free.bound))
    check(free.predict, np.zeros((2, 6)), ValueError, ["without"])


def test_weights_are_expected_log_odds(found):
    drawn = np.random.default_rng(0).beta(*np.moveaxis(found.reliability.values, -1, 0), size=(40_000, 6, 2))
    odds = (np.log(drawn) - np.log1p(-drawn)).sum(axis=2)
    np.testing.assert_allclose(found.expert_weight, odds.mean(axis=0), atol=0.02)
    ends = np.quantile(drawn, [0.05, 0.95], axis=0)
    for k, measure in enumerate(("sensitivity", "specificity")):
        np.testing.assert_allclose(found.intervals()[measure], ends[:, :, k].T, atol=0.005)


def test_an_irrelevant_expert_says_no_more_than_chance(study, approved):
    values, one, other, _ = study
    rng = np.random.default_rng(8)
    table = statements([one, one, other, other, rng.permutation(one)], (0.9,) * 5, 600, rng)
    seen = pc.experts.expert_views(table, values, n_clusters=3, **LITTLE)
    assert seen.informative.values.tolist() == [True, True, True, True, False]
    assert abs(seen.expert_weight[-1]) < 0.5 < 2 < seen.expert_weight[:-1].min()
    approved("verdicts_experts", "one of chance", seen.verdict)


def test_new_items_are_predicted(study, found):
    known = found.predict(study[0])
    np.testing.assert_array_equal(known["labels"], found.labels)
    np.testing.assert_allclose(known["memberships"], found.memberships)
    new, *truths = features(np.random.default_rng(6), 90)
    new = pd.DataFrame(new, index=[f"new {k}" for k in range(90)])
    predicted = found.predict(new)
    assert predicted.indexes["item"].tolist() == new.index.tolist()
    assert all(adjusted_rand_score(t, z) > 0.8 for t, z in zip(truths, predicted["labels"], strict=True))
    check(found.predict, new.iloc[:, :2], ValueError, ["`features`", "6 columns; got 2"])


def test_names_orders_and_threads_change_nothing(study, found, monkeypatch):
    values, _, _, table = study
    names = np.array([f"item {k:03}" for k in range(len(values))])
    order = np.random.default_rng(3).permutation(len(values))
    named = table.assign(i=names[table["i"]], j=names[table["j"]])
    swapped = named.assign(i=named["j"], j=named["i"])
    table_of_features = pd.DataFrame(values, index=names)
    with monkeypatch.context() as patched:
        patched.setattr("posterior_consensus.experts.views.n_threads", lambda: 1)
        again = pc.experts.expert_views(swapped, table_of_features, n_clusters=4, **LITTLE)
    assert again.bound == pytest.approx(found.bound, rel=1e-9)
    np.testing.assert_array_equal(again.labels, found.labels)
    turned = pc.experts.expert_views(named, table_of_features.iloc[order], n_clusters=4, **LITTLE)
    assert turned.bound == pytest.approx(found.bound, rel=1e-5)
    assert turned.labels.indexes["item"].tolist() == names[order].tolist()
    for own, other in zip(turned.labels.sel(item=names), found.labels, strict=True):
        assert adjusted_rand_score(own, other) > 0.99


FEW = {
    "one statement": [("a", 0, 1, "must")],
    "an expert with one": [("a", 0, 1, "must"), ("a", 1, 2, "cannot"), ("b", 2, 3, "must")],
    "contradictory only": [("a", 0, 1, "must"), ("a", 0, 1, "cannot"), ("a", 1, 2, "must"), ("a", 1, 2, "cannot")],
}


def said_in(case, n_items=None):
    return pc.experts.as_constraints(pd.DataFrame(FEW[case], columns=["expert", "i", "j", "kind"]), n_items)


@pytest.mark.parametrize("case", FEW)
@pytest.mark.parametrize("with_features", [True, False])
def test_little_is_enough_for_a_finite_answer(case, with_features):
    values = np.column_stack([np.arange(5.0), np.ones(5)]) if with_features else None
    for n_clusters in (1, 3, 9):
        seen = pc.experts.expert_views(said_in(case, 5), values, n_clusters=n_clusters, n_starts=3, **QUIET)
        for name in ("memberships", "view_probability", "reliability", "trace", "expert_weight", "bound"):
            assert np.isfinite(getattr(seen, name)).all(), name
        assert repr(seen) and seen._repr_html_()
        assert seen.labels.shape[1] == 5 and int(seen.labels.max()) < n_clusters


def test_what_cannot_be_answered_is_refused():
    for changes, error, *parts in [
        ({"n_clusters": 0}, ValueError, "`n_clusters`", "got 0"),
        ({"n_clusters": 2.5}, TypeError, "`n_clusters`", "got 2.5"),
        ({"n_clusters": True}, TypeError, "`n_clusters`", "got True"),
        ({"max_views": 0}, ValueError, "`max_views`", "at least 1"),
        ({"n_starts": 0}, ValueError, "`n_starts`", "at least 1"),
        ({"features": [[0.0]]}, ValueError, "item 1 has constraints", "rows are 1"),
        ({"features": [[0.0], [np.nan]]}, ValueError, "finite; got 1"),
        ({"features": np.zeros((2, 2, 2))}, ValueError, "items x features; got shape"),
    ]:
        asked = {"constraints": said_in("one statement"), "n_clusters": 2}
        check(lambda x, given=asked: pc.experts.expert_views(**given | x), changes, error, parts)


def test_more_views_than_experts_are_not_looked_for():
    said = pc.experts.as_constraints({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    assert pc.experts.expert_views(said, n_clusters=2, max_views=10, **QUIET).n_views == 2
    assert pc.experts.expert_views(said, n_clusters=2, max_views=1, **QUIET).n_views == 1


def test_named_features_are_taken_by_name_in_any_order():
    values = pd.DataFrame(np.random.default_rng(1).normal(size=(9, 2)) * [1, 50], columns=["x", "y"])
    said = pc.experts.as_constraints({"Ann": np.repeat([0, 1, 2], 3)}, random_seed=1)
    found = pc.experts.expert_views(said, values, n_clusters=2, n_starts=2, **QUIET)
    expected = found.predict(values)
    restored = pc.results.ExpertViews.from_dataset(found.to_dataset())
    for view, given in ((found, values[["y", "x"]]), (found, values.to_numpy()), (restored, values)):
        xr.testing.assert_identical(view.predict(given), expected)
    for wrong in (["x", "z"], ["x", "x"]):
        check(found.predict, values.set_axis(wrong, axis=1), ValueError, ["`features`", "['x', 'y']", "once"])
