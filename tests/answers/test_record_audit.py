"""audit_records(): error rates of whole clusters by all pairs of a sample of records."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import posterior_consensus as pc
from tests.answers.conftest import NAMES, TRUTH, answers_of
from tests.helpers import check, scored_pairs


def test_all_records_give_the_rates_of_what_their_pairs_show(pairs, best):
    made = pc.audit_records(pairs, best, n=100, random_seed=1)
    assert made.n == 12 and len(made.sample) == 14  # 13 scored, and one joined without
    found = made.answered(answers_of(made.sample))
    truth = pc.evaluate(pd.Series(best, NAMES), TRUTH).table
    assert_allclose(found.bcubed_precision, truth.loc["B-cubed", "precision"])
    assert_allclose(found.precision, truth.loc["pairs", "precision"])
    assert_allclose(found.recall, 7 / 9)  # of the matches seen, 8 to 9 and 10 to 11 are apart
    # Records 8, 9, 10 and 11 have a match in another cluster; that of 7, with 9, was not scored.
    assert_allclose(found.bcubed_recall, (8 + 2 / 3 + 3 / 2) / 12)
    right = 1 + 1 / 2  # the cluster 4 to 6, and half of 7 and 8, of which 8 has the match 9
    assert_allclose(found.exact_precision, right / 6)
    assert_allclose(found.exact_recall, right / (1 + 1 + 1 + 1 / 2 + 1 / 3 + 1 / 2 + 1))
    assert found.exact_recall_interval == pytest.approx((found.exact_recall,) * 2)
    assert "not scored" in str(found) and "0.01" in str(found)


def test_a_pair_of_two_drawn_records_and_a_decided_one_are_not_asked_again(pairs, best):
    constrained = pc.as_pair_similarity(pairs, must_link=[("r0", "r1")], cannot_link=[("r8", "r9")])
    made = pc.audit_records(constrained, best, n=12, random_seed=1)
    drawn = {frozenset(pair) for pair in zip(made.sample["first"], made.sample["second"], strict=True)}
    assert len(drawn) == len(made.sample) == 12
    assert not {frozenset(("r0", "r1")), frozenset(("r8", "r9"))} & drawn
    assert_allclose(made.answered(answers_of(made.sample)).bcubed_precision, (9 + 3 * 3 / 4 + 1 / 4 - 1) / 12)


def test_low_scores_between_clusters_are_left_out_and_joined_pairs_come_first(pairs, best):
    sample = pc.audit_records(pairs, best, n=12, threshold=0.3, random_seed=2).sample
    assert sample["probability"][~sample["joined"]].min() == 0.3
    for _, of_record in sample.groupby("first"):
        assert of_record["joined"].is_monotonic_decreasing


def test_records_without_all_answers_do_not_count(pairs, best):
    made = pc.audit_records(pairs, best, n=12, random_seed=1)
    first = made.sample["first"][0]
    table = made.sample[["first", "second"]].assign(match=answers_of(made.sample))
    some = made.answered(table[table["first"] == first])
    assert 1 <= some.n_answered < 12
    low, high = some.bcubed_recall_interval
    assert low <= some.bcubed_recall <= high and high - low > 0.1


def test_intervals_hold_in_samples(rng):
    """Of entities of three records, of which some lose one and others are joined by twos."""
    n = 600
    truth = np.arange(n) // 3
    labels = truth.copy()
    labels[rng.random(n) < 0.05] += 200  # apart, or with another one
    first, second = np.triu_indices(n, 1)
    near = second - first < 9
    table = pd.DataFrame({"unique_id_l": first[near], "unique_id_r": second[near], "match_probability": 0.5})
    source = pc.as_pair_similarity(table, items=np.arange(n))
    held = {"recall": 0, "exact_precision": 0, "exact_recall": 0, "bcubed_recall": 0}
    every = pc.audit_records(source, labels, n=n, random_seed=0)
    true = every.answered(truth[every.sample["first"]] == truth[every.sample["second"]])
    for seed in range(40):
        made = pc.audit_records(source, labels, n=60, random_seed=seed)
        found = made.answered(truth[made.sample["first"]] == truth[made.sample["second"]])
        for name in held:
            low, high = getattr(found, f"{name}_interval")
            held[name] += low <= getattr(true, name) <= high
    assert min(held.values()) >= 34, held


def test_without_a_joined_pair_there_is_no_precision():
    pairs = scored_pairs(3, {(0, 1): 0.4, (1, 2): 0.3})
    found = pc.audit_records(pairs, [0, 1, 2], n=3, random_seed=1).answered([True, False])
    assert np.isnan(found.precision) and found.recall == 0 and found.exact_precision == pytest.approx(1 / 3)


def test_mistakes_are_named(pairs, best):
    some = pc.audit_records(pairs, [0] * 12, n=1, random_seed=1)
    part = np.append(np.nan, np.ones(len(some.sample) - 1))
    check(some.answered, part, ValueError, ["`answers`", "all pairs"])
    check(lambda n: pc.audit_records(pairs, best, n=n), 0, ValueError, ["`n`", "0"])
    check(lambda t: pc.audit_records(pairs, best, threshold=t), 0, ValueError, ["`threshold`", "0"])
    check(
        lambda draws: pc.audit_records(draws, [0, 0]), [[0, 1], [0, 0]], ValueError, ["`draws`", "as_pair_similarity"]
    )
