"""The rivals of expert_views, on what their papers show of them on paper."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import posterior_consensus as pc
from posterior_consensus.experts import competing_methods
from posterior_consensus.experts.competing_methods import (
    PairwiseKMeans,
    complete_matrix,
    expert_similarity,
    information_theoretic_metric,
    meta_clustering,
    neighbourhoods,
    normalized_cut,
    semi_crowd,
)
from tests.experts.study import features, statements
from tests.helpers import check

METHODS = ("semi_crowd", "itml_k_means", "mpck_means")


def two_stripes(rng, n=60):
    """Two groups that only the first feature shows, beside a second one that varies more."""
    truth = np.arange(n) % 2
    return np.column_stack([3.0 * truth + 0.2 * rng.normal(size=n), 20 * rng.random(n)]), truth


def test_experts_are_grouped_by_the_rand_index_of_common_pairs():
    rows = {"expert": list("aaabbbc"), "i": [0, 0, 1, 0, 0, 2, 3], "j": [1, 2, 2, 1, 2, 3, 4]}
    found = expert_similarity(pc.experts.as_constraints(rows | {"kind": [True, False, True, True, True, True, True]}))
    np.testing.assert_allclose(found, [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    rng = np.random.default_rng(0)
    one, other = np.repeat([0, 1, 2], 8), np.arange(24) % 3
    experts = {f"{name}{k}": np.where(rng.random(24) < 0.1, rng.integers(3, size=24), truth)
               for name, truth in (("a", one), ("b", other)) for k in range(3)}  # fmt: skip
    found = meta_clustering(pc.experts.as_constraints(experts), 2, random_seed=1)
    assert found.values.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.indexes["expert"].tolist() == list(experts)
    apart = pc.experts.as_constraints(
        {"expert": list("abcd"), "i": [0, 0, 4, 4], "j": [1, 1, 5, 5], "kind": ["must"] * 4}
    )
    assert meta_clustering(apart, random_seed=1).values.tolist() == [0, 0, 1, 1]
    check(lambda k: meta_clustering(apart, k), 5, ValueError, ["at most", "experts, 4"])


def test_the_graph_of_statements_is_cut():
    truth = np.repeat([0, 1, 2], 10)
    said = pc.experts.as_constraints(dict.fromkeys(range(3), truth), n_pairs=200, random_seed=1)
    np.testing.assert_array_equal(normalized_cut(said, n_clusters=3, random_seed=1), truth)
    apart = {"expert": [0], "i": [0], "j": [1], "kind": ["cannot"]}
    check(lambda x: normalized_cut(x, n_clusters=2), apart, ValueError, ["linked"])


def test_a_matrix_of_low_rank_is_completed_in_spite_of_errors(rng):
    truth = np.equal.outer(np.arange(120) % 3, np.arange(120) % 3).astype(float)
    seen, wrong = (np.triu(rng.random((120, 120)) < share, 1) for share in (0.6, 0.03))
    seen, wrong = seen | seen.T, wrong | wrong.T
    found = complete_matrix(np.where(wrong, 1 - truth, truth), seen)
    assert np.abs(found - truth).max() < 0.05


def test_errors_are_filtered_before_the_metric_is_learnt():
    rng = np.random.default_rng(2)
    values, truth = two_stripes(rng)
    said = pc.experts.as_constraints(statements([truth] * 5, (0.9,) * 5, 400, rng), 60)
    assert adjusted_rand_score(truth, semi_crowd(said, values, n_clusters=2, random_seed=1)) > 0.9
    split = pc.experts.as_constraints({"expert": [0, 1], "i": [0, 0], "j": [1, 1], "kind": ["must", "cannot"]})
    check(lambda x: semi_crowd(x, np.arange(4.0), n_clusters=2), split, ValueError, ["disagree about all"])
    for wrong, error, *parts in [
        ({"certain": 0.5}, ValueError, "`certain`", "two shares"),
        ({"certain": (0.8, 0.2)}, ValueError, "`certain`", "two shares"),
        ({"certain": "ab"}, TypeError, "`certain`", "numbers"),
        ({"ridge": -1}, ValueError, "`ridge`", "above 0"),
    ]:
        check(lambda x: semi_crowd({"Ann": [0, 0, 1]}, np.eye(3), n_clusters=2, **x), wrong, error, parts)


def test_one_bound_is_met_by_the_rank_one_update():
    x = np.array([3.0, 4.0])
    for must, limits in ((True, (4.0, 100.0)), (False, (1.0, 100.0))):
        found = information_theoretic_metric(x[np.newaxis], np.array([must]), limits, slack=1e9, enough=1e-9)
        aim = limits[0] if must else limits[1]
        assert x @ found @ x == pytest.approx(aim, rel=1e-5)
        # Across the pair nothing changes, and along it the length does: the metric of least LogDet divergence.
        expected = np.eye(2) + (aim / 25 - 1) * np.outer(x, x) / 25
        np.testing.assert_allclose(found, expected, atol=1e-4)
    x = np.array([[1.0, 0.0], [0.0, 9.0], [0.0, 0.0]])  # bounds that hold change nothing, and none neither
    found = information_theoretic_metric(x, np.array([True, False, True]), (2.0, 50.0))
    np.testing.assert_array_equal(found, np.eye(2))
    np.testing.assert_array_equal(information_theoretic_metric(x[:0], np.zeros(0, bool), (1.0, 2.0)), np.eye(2))


def test_neighbourhoods_are_what_must_links_connect():
    pairs = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [0, 5]])
    must = np.array([True, True, True, False, False])
    assert [one.tolist() for one in neighbourhoods(pairs, must, 8)] == [[0, 1, 2], [3, 4]]


def test_the_objective_is_its_definition_and_never_rises(rng):
    values, one, _ = features(rng, 60)
    said = pc.experts.as_constraints(statements([one] * 3, (0.8,) * 3, 200, rng), 60)
    pairs, votes = said.average_vote()
    must = votes > 0.5
    run = PairwiseKMeans(values, pairs, must, 0.7).run(3, rng)
    assert len(run.trace) > 1 and np.diff(run.trace).max() < 1e-6 * abs(run.trace[0])
    total = -60 * np.log(run.metric).sum()
    for k in range(3):
        own = values[run.labels == k]
        total += (((own - own.mean(axis=0)) ** 2) @ run.metric).sum()
    for (i, j), linked in zip(pairs, must, strict=True):
        length = run.metric @ (values[i] - values[j]) ** 2
        if linked and run.labels[i] != run.labels[j]:
            total += 0.7 * length
        elif not linked and run.labels[i] == run.labels[j]:
            total += 0.7 * (run.metric @ np.ptp(values, axis=0) ** 2 - length)
    assert run.trace[-1] == pytest.approx(total)


@pytest.mark.parametrize("name", METHODS)
def test_statements_show_what_features_hide(name):
    rng = np.random.default_rng(4)
    values, truth = two_stripes(rng)
    values[:, 1] = np.repeat([0.0, 20.0], 30) + values[:, 1] / 10  # plain k-means finds this
    said = pc.experts.as_constraints({"Ann": truth, "Bo": truth}, n_pairs=300, random_seed=1)
    found = getattr(competing_methods, name)(said, values, n_clusters=2, random_seed=1)
    assert adjusted_rand_score(truth, found) > 0.9


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kinds", [1, 2])
def test_features_with_ties(name, kinds):
    truth = np.repeat(np.arange(2), 20)
    said = pc.experts.as_constraints({"Ann": truth}, n_pairs=100, random_seed=1)
    few = np.minimum(truth, kinds - 1.0)[:, np.newaxis]
    found = getattr(competing_methods, name)(said, few, n_clusters=2, random_seed=1)
    assert kinds == 1 or adjusted_rand_score(truth, found) == 1


@pytest.mark.parametrize("name", METHODS)
def test_one_statement_is_enough_and_labels_have_names(name):
    rival, letters = getattr(competing_methods, name), list("abcdef")
    values = pd.DataFrame(np.random.default_rng(5).normal(size=(6, 2)), index=letters)
    for kind in ("must", "cannot"):
        said = {"expert": [0], "i": ["a"], "j": ["b"], "kind": [kind]}
        found = rival(said, values, n_clusters=2, random_seed=1)
        assert found.indexes["item"].tolist() == letters and found.dtype == np.int32 and found[0] == 0
        check(lambda k, x=said: rival(x, values, n_clusters=k), 7, ValueError, ["`n_clusters`", "6; got 7"])
    named = pc.experts.as_constraints(said, letters)  # features without names leave those of the statements
    found = rival(named, values.to_numpy(), n_clusters=2, random_seed=1)
    assert found.indexes["item"].tolist() == letters
