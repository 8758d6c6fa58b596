"""audit() and evaluate(): error rates by a sample of pairs, and by the truth."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import posterior_consensus as pc
from tests.helpers import check, check_all, scored_pairs

NAMES = [f"r{k}" for k in range(12)]


@pytest.fixture
def pairs():
    """Three clusters of records: of four, of which a pair was not scored, of three and of two; others are alone."""
    scores = {(0, 1): 0.9, (0, 2): 0.8, (0, 3): 0.7, (1, 2): 0.95, (1, 3): 0.6, (4, 5): 0.9, (4, 6): 0.9, (5, 6): 0.4}
    scores |= {(7, 8): 0.99, (8, 9): 0.3, (3, 4): 0.2, (9, 10): 0.45, (10, 11): 0.1}
    return scored_pairs(12, scores, names=NAMES)


@pytest.fixture
def best():
    return [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5]


TRUTH = pd.Series(["a", "a", "a", "b", "c", "c", "c", "d", "d", "d", "e", "e"], NAMES)


def answers_of(sample):
    return TRUTH[sample["first"]].to_numpy() == TRUTH[sample["second"]].to_numpy()


def test_answers_on_all_pairs_are_the_truth(pairs, best):
    made = pc.audit(pairs, best, n=100, random_seed=1)
    assert len(made.sample) == 14 and (made.sample["inclusion"] == 1).all()  # 13 scored, and one joined without
    found = made.answered(answers_of(made.sample))
    truth = pc.evaluate(pd.Series(best, NAMES), TRUTH)
    assert_allclose(found.precision, truth.table.loc["pairs", "precision"])
    assert_allclose(found.bcubed_precision, truth.table.loc["B-cubed", "precision"])
    assert found.recall == 7 / 9  # of the matches 0 to 2, 4 to 6, 7 to 8, 8 to 9 and 10 to 11, the last two are apart
    assert found.precision_interval == pytest.approx((found.precision,) * 2)
    assert np.isnan(found.recall_of_all) and "blocking" in str(found)


def test_pairs_without_a_score_give_the_recall_of_all_matches(pairs, best):
    made = pc.audit(pairs, best, n=100, n_unscored=1000, random_seed=1)
    assert len(made.sample) == 12 * 11 // 2
    found = made.answered(answers_of(made.sample))
    assert_allclose(found.recall_of_all, pc.evaluate(best, TRUTH).table.loc["pairs", "recall"])


def test_no_pair_is_drawn_twice_or_against_a_constraint(pairs, best):
    constrained = pc.as_pair_similarity(pairs, must_link=[("r0", "r1")], cannot_link=[("r8", "r9")])
    sample = pc.audit(constrained, best, n=100, n_unscored=100, random_seed=1).sample
    drawn = {frozenset(pair) for pair in zip(sample["first"], sample["second"], strict=True)}
    assert len(drawn) == len(sample) == 12 * 11 // 2 - 2
    assert not {frozenset(("r0", "r1")), frozenset(("r8", "r9"))} & drawn
    found = pc.audit(constrained, best, n=100, random_seed=1)
    assert_allclose(found.answered(answers_of(found.sample)).precision, 7 / 10)


def test_estimates_are_means_over_strata(rng):
    """With the stratum means of a sample, by the formulas of the docstring."""
    n = 300
    truth = np.repeat(np.arange(n // 3), 3)
    first, second = (one[np.arange(one.size) % 7 < 4] for one in np.triu_indices(n, 1))
    near = second - first < 12
    first, second = first[near], second[near]
    match = truth[first] == truth[second]
    scores = np.clip(np.where(match, 0.75, 0.3) + rng.normal(0, 0.15, match.size), 0.01, 0.99)
    table = pd.DataFrame({"unique_id_l": first, "unique_id_r": second, "match_probability": scores})
    source = pc.as_pair_similarity(table, items=np.arange(n))
    found = pc.consensus_partition(source, random_seed=1, progressbar=False)
    made = pc.audit(source, found, n=120, random_seed=2)
    sample, strata = made.sample, made.strata
    assert (
        len(sample) == 120
        and strata["n_drawn"].min() >= 5
        and strata["n_pairs"].sum() == made.links.n_joined + (~made.links.joined).sum()
    )
    answers = truth[sample["first"]] == truth[sample["second"]]
    one = made.answered(answers)
    share = pd.Series(answers).groupby(sample["stratum"]).mean()
    totals = share * strata["n_pairs"]
    inside, outside = totals[strata["joined"]].sum(), totals[~strata["joined"]].sum()
    assert_allclose(one.precision, inside / made.links.n_joined)
    assert_allclose(one.recall, inside / (inside + outside))
    low, high = one.recall_interval
    assert low < one.recall < high
    weighted = (answers[sample["joined"]] / sample["inclusion"][sample["joined"]]).sum()
    assert_allclose(weighted, inside)


def test_scores_of_one_and_zero_are_not_taken_for_certain():
    scores = {(i, i + 1): 1.0 for i in range(0, 80, 2)} | {(i, i + 1): 0.0 for i in range(1, 79, 2)}
    made = pc.audit(scored_pairs(80, scores), np.arange(80) // 2, n=20, random_seed=1)
    found = made.answered(made.sample["joined"])
    for share, (low, high) in ((found.precision, found.precision_interval), (found.recall, found.recall_interval)):
        assert share == high == pytest.approx(1.0) and 0.7 < low < 0.95


def test_answers_are_paired_by_name_and_may_be_missing(pairs, best):
    made = pc.audit(pairs, best, n=100, random_seed=1)
    table = made.sample[["first", "second"]].assign(match=answers_of(made.sample))
    turned = table.rename(columns={"first": "second", "second": "first"}).sample(frac=1, random_state=3)
    assert made.answered(turned).to_dataframe().equals(made.answered(table["match"]).to_dataframe())
    some = made.answered(table.head(9))
    assert np.isnan(some.match).sum() == 5 and some.precision_interval[0] < some.precision <= some.precision_interval[1]


def test_answers_become_constraints_and_scores_follow_them(pairs, best):
    made = pc.audit(pairs, best, n=100, random_seed=1)
    found = made.answered(answers_of(made.sample))
    must, cannot = found.constraints
    assert len(must) == 9 and len(cannot) == 5
    again = pc.consensus_partition(found.recalibrated(), random_seed=1, progressbar=False)
    assert pc.evaluate(again, TRUTH).table.loc["pairs"].tolist() == [1, 1, 1]
    old, new = pairs.pairs[2], found.recalibrated().pairs[2]
    assert (np.diff(new[np.argsort(old)]) >= 0).all()


def test_fields_of_both_records_come_with_the_sample(pairs, best):
    fields = pd.DataFrame({"name": [f"name of {name}" for name in NAMES]}, NAMES)
    sample = pc.audit(pairs, best, n=10, fields=fields, random_seed=1).sample
    assert (sample["name_second"] == "name of " + sample["second"]).all()
    check(lambda table: pc.audit(pairs, best, fields=table), fields.iloc[:1], ValueError, ["`fields`", "'r"])


def test_mistakes_are_named(pairs, best):
    made = pc.audit(pairs, best, n=20, random_seed=1)
    stranger = pd.DataFrame({"first": ["r0"], "second": ["x"], "match": [1]})
    cases = [
        ([1, 0], ValueError, "`answers`", "(2,)"),
        ([2] * len(made.sample), ValueError, "`answers`", "2"),
        (["yes"] * len(made.sample), ValueError, "`answers`", "'yes'"),
        ([None] * len(made.sample), ValueError, "`answers`", "none"),
        (stranger, ValueError, "`answers`", "'x'"),
        (stranger[["first", "second"]], ValueError, "`answers`", "'match'"),
    ]
    check_all(made.answered, cases)
    check(lambda n: pc.audit(pairs, best, n=n), 0, ValueError, ["`n`", "0"])
    check(lambda n: pc.audit(pairs, best, n_unscored=n), -1, ValueError, ["`n_unscored`", "-1"])
    check(lambda draws: pc.audit(draws, [0, 0]), [[0, 1], [0, 0]], ValueError, ["`draws`", "as_pair_similarity"])
    check(lambda reference: pc.evaluate(best, reference), TRUTH.iloc[:11], ValueError, ["`reference`", "items="])
    check(lambda reference: pc.evaluate([0, 0, 1], reference), ["a", None, "b"], ValueError, ["`reference`", "1"])


def test_the_truth_says_how_well_scores_are_calibrated(pairs, best):
    table = pc.evaluate(best, TRUTH, pairs=pairs).calibration
    assert table["n_pairs"].sum() == 13
    row = table.loc["0.3 to 0.5"]  # 0.4, 0.3 and 0.45
    assert (row["n_pairs"], row["matches"]) == (3, pytest.approx(2 / 3)) and row["score"] == pytest.approx(1.15 / 3)
    exact = pc.evaluate(best, TRUTH).table.loc["exact clusters"]
    assert (exact["precision"], exact["recall"]) == (1 / 6, 1 / 5)
