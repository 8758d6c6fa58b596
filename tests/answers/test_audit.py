"""audit() and evaluate(): error rates by a sample of pairs, and by the truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import posterior_consensus as pc
from tests.answers.conftest import NAMES, TRUTH, answers_of
from tests.helpers import check, check_all, scored_pairs


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


def of_three(rng):
    """Scored pairs of entities of three records, some of which were not scored, and the entities."""
    n = 300
    truth = np.repeat(np.arange(n // 3), 3)
    first, second = (one[np.arange(one.size) % 7 < 4] for one in np.triu_indices(n, 1))
    near = second - first < 12
    first, second = first[near], second[near]
    match = truth[first] == truth[second]
    scores = np.clip(np.where(match, 0.75, 0.3) + rng.normal(0, 0.15, match.size), 0.01, 0.99)
    table = pd.DataFrame({"unique_id_l": first, "unique_id_r": second, "match_probability": scores})
    return pc.as_pair_similarity(table, items=np.arange(n)), truth


def test_estimates_are_means_over_strata(rng):
    """With the stratum means of a sample, by the formulas of the docstring."""
    source, truth = of_three(rng)
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
    low, high = one.recall_interval
    assert low < one.recall < high and low < inside / (inside + outside) < high  # a curve estimates the outside
    weighted = (answers[sample["joined"]] / sample["inclusion"][sample["joined"]]).sum()
    assert_allclose(weighted, inside)


def test_scores_of_one_are_not_taken_for_certain():
    scores = {(i, i + 1): 1.0 for i in range(0, 80, 2)} | {(i, i + 1): 0.0 for i in range(1, 79, 2)}
    made = pc.audit(scored_pairs(80, scores), np.arange(80) // 2, n=20, random_seed=1)
    found = made.answered(made.sample["joined"])
    low, high = found.precision_interval
    assert found.precision == high == pytest.approx(1.0) and 0.7 < low < 0.95


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


def test_rates_along_the_threshold_are_the_truth_where_all_pairs_are_answered(pairs, best):
    made = pc.audit(pairs, best, n=100, random_seed=1)
    found = made.answered(answers_of(made.sample))
    chosen = found.threshold(values=[0.4, 0.6, 0.9], random_seed=1, progressbar=False)
    unconstrained = replace(found.recalibrated(), constraints=pairs.constraints)
    path = pc.loss_path(unconstrained, loss="binder", values=[0.4, 0.6, 0.9], random_seed=1, progressbar=False)
    n_seen = 9  # matches that were scored or are joined
    for tau, labels in zip(path.partitions["tau"].values, path.partitions.values, strict=True):
        row, true = chosen.table.loc[tau], pc.evaluate(pd.Series(labels, NAMES), TRUTH).table.loc["pairs", "precision"]
        n_joined = (np.bincount(labels) * (np.bincount(labels) - 1)).sum() / 2
        assert_allclose([row["precision"], row["recall"]], [true, true * n_joined / n_seen])
        assert row["f1_low"] == pytest.approx(row["f1"])
    assert chosen.tau == chosen.table["gain_low"].idxmax() and chosen.gain_interval == pytest.approx((chosen.gain,) * 2)
    before = 2 * found.precision * found.recall / (found.precision + found.recall)
    assert chosen.gain == pytest.approx(chosen.table["f1"].max() - before)
    assert "do not show" not in str(chosen)


def test_rates_of_another_partition_are_means_over_the_pairs_that_it_joins(rng):
    """Each stratum divided by the other partition, whose numbers of pairs are known."""
    source, truth = of_three(rng)
    found = pc.consensus_partition(source, random_seed=1, progressbar=False)
    made = pc.audit(source, found, n=200, random_seed=2)
    answers = truth[made.sample["first"]] == truth[made.sample["second"]]
    one = made.answered(answers)
    chosen = one.threshold(values=[0.3, 0.7], random_seed=1, progressbar=False)
    unconstrained = replace(one.recalibrated(), constraints=source.constraints)
    labels = pc.consensus_partition(
        unconstrained, loss=pc.binder(tau=0.7), random_seed=1, progressbar=False
    ).labels.values
    first, second, _ = source.pairs
    cells = made._of_link * 2 + (labels[first] == labels[second])
    own = 2 * made.sample["stratum"] + (labels[made.sample["first"]] == labels[made.sample["second"]])
    share = pd.Series(answers).groupby(own).mean()
    listed = cells[made.strata["scored"].to_numpy()[made._of_link]]
    numbers = pd.Series(1, listed).groupby(level=0).sum()
    inside = sum(share[cell] * number for cell, number in numbers.items() if cell % 2 and cell in share)
    n_joined = (np.bincount(labels) * (np.bincount(labels) - 1)).sum() / 2
    row = chosen.table.loc[0.7]
    assert row["precision"] == pytest.approx(inside / n_joined, abs=0.02)
    assert row["precision_low"] < row["precision"] <= row["precision_high"] and row["gain_low"] < row["gain"]
    precise = one.threshold(0.9 * chosen.table["precision"].max(), values=[0.3, 0.7], random_seed=1, progressbar=False)
    assert precise.precision is not None and precise.table.loc[precise.tau, "precision"] >= precise.precision


def test_fields_of_both_records_come_with_the_sample(pairs, best):
    fields = pd.DataFrame({"name": [f"name of {name}" for name in NAMES]}, NAMES)
    sample = pc.audit(pairs, best, n=10, fields=fields, random_seed=1).sample
    assert (sample["name_second"] == "name of " + sample["second"]).all()
    check(lambda table: pc.audit(pairs, best, fields=table), fields.iloc[:1], ValueError, ["`fields`", "'r"])


def test_answers_come_back_from_a_file_whatever_the_names(tmp_path):
    scores = {(0, 1): 0.9, (1, 2): 0.4, (2, 3): 0.8, (3, 4): 0.1}
    names = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]).to_flat_index()
    for of_records in (names, pd.Index(["01", "02", "03", "04", "05"]), pd.RangeIndex(5)):
        source = pc.as_pair_similarity(
            pd.DataFrame(
                {
                    "left": [of_records[i] for i, _ in scores],
                    "right": [of_records[j] for _, j in scores],
                    "probability": list(scores.values()),
                }
            ),
            left="left",
            right="right",
            probability="probability",
        )
        made = pc.audit(source, [0, 0, 1, 1, 2], n=10, random_seed=1)
        made.sample.assign(match=made.sample["joined"]).to_csv(tmp_path / "sample.csv", index=False)
        read = pd.read_csv(tmp_path / "sample.csv", dtype={"first": str, "second": str})
        assert made.answered(read.sample(frac=1, random_state=1)).match.tolist() == made.sample["joined"].tolist()


def test_no_match_among_some_pairs_without_a_score_does_not_show_that_there_is_none(pairs, best):
    made = pc.audit(pairs, best, n=100, n_unscored=10, random_seed=1)
    assert made.strata["n_drawn"][~made.strata["scored"] & ~made.strata["joined"]].sum() == 10
    found = made.answered(made.sample["joined"])
    low, high = found.recall_of_all_interval
    assert found.recall_of_all == high == 1 and low < 0.6


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
    answered = made.answered(answers_of(made.sample))
    check(answered.threshold, 1.5, ValueError, ["`precision`", "1.5"])
    never = made.answered(np.zeros(len(made.sample)))
    check(
        lambda share: never.threshold(share, values=[0.5], progressbar=False), 0.9, ValueError, ["`precision`", "0.9"]
    )
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
