"""Scored pairs as a partition decides them: against their score, expected precision and recall, closest calls."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.bounds import decisions
from posterior_consensus.bounds.decisions import _Changes, closest_decisions
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.kernels import components
from posterior_consensus.results import ScoredLinks
from tests.catalogue.results import assert_equal
from tests.helpers import check_all, keeps, random_scored_pairs, scored_pairs

PAIRS = {(0, 1): 0.9, (0, 2): 0.7, (1, 2): 0.4, (2, 3): 0.3, (3, 4): 0.6}


def example(**more):
    return pc.links(scored_pairs(6, PAIRS, names=list("abcdef"), **more), [0, 0, 0, 1, 2, 1], loss=pc.binder())


def test_pairs_against_their_score_and_expected_pairs():
    found = example(unscored=0.1)
    assert found.against[["first", "second", "joined"]].values.tolist() == [["b", "c", True], ["d", "e", False]]
    assert found.to_dataframe()["probability"].tolist() == [0.4, 0.6, 0.7, 0.3, 0.9]
    assert (found.n_joined, found.n_joined_unscored) == (4, 1)
    matches, total = 0.9 + 0.7 + 0.4 + 0.1, sum(PAIRS.values()) + 0.1 * 2  # d and f, in a cluster, are linked to e
    assert found.precision == pytest.approx(matches / 4) and found.recall == pytest.approx(matches / total)
    assert found.f1 == pytest.approx(2 / (1 / found.precision + 1 / found.recall))
    assert found.n_by_size.to_dict() == {"1": 1, "2": 1, "3": 1}


def test_threshold_is_that_of_the_partition():
    source = scored_pairs(6, PAIRS)
    best = pc.consensus_partition(source, loss=pc.binder(tau=0.35), random_seed=1, progressbar=False)
    assert pc.links(source, best).tau == pytest.approx(0.35)
    assert pc.links(source, best, loss="binder").tau == 0.5
    assert pc.links(source, best.labels.values).tau == 0.5


def test_nothing_joined_and_nothing_expected():
    found = pc.links(scored_pairs(3, {}), [0, 1, 2])
    assert np.isnan(found.precision) and np.isnan(found.recall) and np.isnan(found.f1)
    assert found.review().empty and found.against.empty and "0 scored pairs" in repr(found)


def test_unscored_pairs_count_within_components_alone():
    pairs = {(0, 1): 0.9, (1, 2): 0.8, (3, 4): 0.7, (4, 5): 0.2}
    found = pc.links(scored_pairs(7, pairs, 0.1, must_link=[(5, 6)]), [0, 0, 1, 2, 2, 3, 3], loss=pc.binder())
    assert found.expected_errors == pytest.approx((0.1 + 0.3 + 0.9, 0.8 + 0.2 + 0.1))  # 0 and 2 alone
    many = scored_pairs(5_000, {(2 * k, 2 * k + 1): 0.9 for k in range(2_500)}, 0.1)
    best = pc.consensus_partition(many, random_seed=1, progressbar=False)
    assert pc.links(many, best).expected_errors == pytest.approx((250, 0))
    path = pc.loss_path(many, loss="binder", values=[0.3, 0.5], random_seed=1, progressbar=False)
    assert path.table["recall"].values.tolist() == [1, 1]
    above = pc.links(scored_pairs(4, {(0, 1): 0.1}, 0.6), [0, 1, 2, 2])  # all are linked
    assert above.expected_errors == pytest.approx((0.4, 0.1 + 4 * 0.6))


def by_definition(source, labels):
    """Expected precision by products of odds, from one pair after the other."""
    values, n = source.similarity(), source.n_items
    known = source.scored.toarray() > 0
    known &= np.equal.outer(labels, labels)
    odds = [np.prod([values[i, j] / (1 - values[i, j]) for j in range(n) if known[i, j]]) for i in range(n)]
    by_product = [one / (1 + one) if known[i].any() else 0 for i, one in enumerate(odds)]
    own = np.maximum(by_product, source.unscored)
    joined = [(i, j) for i in range(n) for j in range(i) if labels[i] == labels[j]]
    return np.mean([max(own[i], own[j], values[i, j]) for i, j in joined])


def test_precision_by_products_of_odds():
    rng = np.random.default_rng(1)
    for unscored in (0.0, 0.05, 0.4):
        pairs = {(i, j): rng.uniform(0.01, 0.99) for i in range(9) for j in range(i) if rng.random() < 0.7}
        source, labels = scored_pairs(9, pairs, unscored), rng.integers(3, size=9)
        low, high = pc.links(source, labels).precision_range
        assert low == pc.links(source, labels).precision <= high
        assert high == pytest.approx(by_definition(source, labels))
    constrained = scored_pairs(4, {(0, 1): 0.2}, 0.1, must_link=[(1, 2), (2, 3)])
    alone = pc.links(constrained, [0, 0, 0, 0]).precision_range  # 2 and 3 are in no scored pair
    assert alone == pytest.approx(((0.2 + 5 * 0.1) / 6, (5 * 0.2 + 0.1) / 6))
    certain = pc.links(scored_pairs(3, {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 0.0}), [0, 0, 0])
    assert certain.precision_range == pytest.approx((2 / 3, 2.5 / 3))  # odds of 1 and 0 are even together
    assert np.isnan(pc.links(scored_pairs(3, {}), [0, 1, 2]).precision_range).all()


def test_says_how_good_the_numbers_are():
    shown = " ".join(repr(example()).split())
    for part in ("1 joined below tau 0.5", "1 separated above", "1 were never scored", "errors may have either sign"):
        assert part in shown
    assert "of scored pairs" in shown.split("recall ")[1] and "left out" not in shown


def test_says_that_low_scores_were_left_out():
    pairs = {(0, 1): 0.9, (1, 2): 0.5}
    assert "no score is below 0.5, and the threshold is 0.5" in repr(pc.links(scored_pairs(4, pairs), [0, 0, 1, 2]))
    all_pairs = scored_pairs(3, pairs | {(0, 2): 0.7})
    for source in (scored_pairs(4, pairs | {(2, 3): 0.4}), all_pairs, scored_pairs(3, {})):
        assert not pc.links(source, np.arange(source.n_items)).is_cut


@pytest.mark.parametrize("constraints", [{}, {"must_link": [(0, 1)], "cannot_link": [(1, 3), (0, 3)]}])
def test_stored_links_are_reviewed_alike(constraints):
    more = {"data_set": np.array([0, -1, 1, 1, 0, 2], np.int32), "max_cluster_size": 5} if constraints else {}
    links = example(unscored=0.25, **constraints, **more)
    back = ScoredLinks.from_dataset(links.to_dataset())
    assert_equal(back, links)
    pd.testing.assert_frame_equal(back.review(), links.review())
    if constraints:  # which decide the others: b stays with a, and d is of c's data set
        assert sorted(map(tuple, back.review()[["first", "second"]].values)) == [("a", "c"), ("d", "e")]


def test_refused():
    source = scored_pairs(3, {(0, 1): 0.5}, names=["a", "b", "c"], cannot_link=[(0, 1)])
    check_all(
        lambda options: pc.links(source, [0, 1, 2], **options),
        [
            ({"loss": "vi"}, ValueError, "`loss`", "binder(tau=0.3)", "vi"),
            ({"threshold": 0.5}, ValueError, "`threshold`", "0.5", "draws"),
            ({"prior": pc.priors.crp(1.0)}, ValueError, "`prior`", "draws"),
        ],
    )
    with pytest.raises(ValueError, match="`loss` .* draws"):
        pc.links([[0, 0, 1], [0, 1, 1]], [0, 0, 1], loss="binder")
    check_all(
        pc.links(source, [0, 1, 2]).review,
        [(0, ValueError, "`n`", "0"), (2.5, TypeError, "`n`", "2.5")],
    )
    with pytest.raises(ValueError, match="'a' and 'b'"):
        pc.links(source, [0, 0, 1]).review()


def weight(source, tau):
    """Weights of all pairs: expected cost apart less together."""
    similarity = source.shared_similarity
    return 2 * (1 - tau) * similarity - 2 * tau * (1 - similarity)


def assert_as_enumerated(rng, n, is_optimal):
    """Each pair's rise is that of the best of all partitions with it the other way, or no less if it is a bound."""
    partitions = np.concatenate(list(enumerate_partitions(n)))
    source, tau = random_scored_pairs(rng, n)
    one, other = np.triu_indices(n, 1)
    values = (partitions[:, one] == partitions[:, other]) @ weight(source, tau)[one, other]
    values[~keeps(partitions, source.constraints)] = -np.inf
    chosen = values.argmax() if is_optimal else rng.choice(np.flatnonzero(np.isfinite(values)))
    labels = source.as_labels(partitions[chosen])
    block = _Changes.of(source, pc.binder(tau=tau), labels)
    block_of, groups = block.block_of[block.groups], block.groups
    found = closest_decisions(source, pc.binder(tau=tau), labels, 1000)
    first, second, _ = source.pairs
    assert np.all(np.diff(found.increase) >= 0)
    seen = set()
    for pair, increase, exact in zip(*found[:3], strict=True):
        i, j = first[pair], second[pair]
        changed = (partitions[:, i] == partitions[:, j]) != (labels[i] == labels[j])
        for x in np.flatnonzero((block_of != block_of[i]) & (block_of != block_of[j])):
            changed &= np.all((partitions == partitions[:, [x]]) == (labels == labels[x]), axis=1)
        expected = values[chosen] - values[changed].max()
        assert abs(increase - expected) < 1e-9 if exact else increase > expected - 1e-9
        seen.add(frozenset((groups[i], groups[j])))
    for i, j in zip(first, second, strict=True):  # those left out are decided
        together = partitions[:, i] == partitions[:, j]
        known = frozenset((groups[i], groups[j])) in seen
        assert known or not all(np.isfinite(values[some].max(initial=-np.inf)) for some in (together, ~together))
    return found.exact


@pytest.mark.parametrize("is_optimal", [True, False])
def test_rise_of_the_loss_as_enumerated(rng, is_optimal):
    exact = [assert_as_enumerated(rng, int(rng.integers(2, 8)), is_optimal) for _ in range(60)]
    assert np.concatenate(exact).all()


def test_bounds_of_large_components(rng, monkeypatch):
    """A component is large from three records on, so that enumeration shows what bounds are worth."""
    monkeypatch.setattr(components, "MOST", 2)
    exact = [assert_as_enumerated(rng, int(rng.integers(3, 8)), is_optimal) for is_optimal in (True, False) * 30]
    assert not np.concatenate(exact).all()


def test_review_agrees_with_a_search_under_the_opposite_constraint():
    source = scored_pairs(6, PAIRS, names=list("abcdef"), unscored=0.05)
    best = pc.consensus_partition(source, loss="binder", random_seed=1, progressbar=False)
    table = pc.links(source, best).review()
    assert len(table) == 4 and table["exact"].all()  # c leaves a and b alike
    for row in table.itertuples():
        pair = [tuple("abcdef".index(name) for name in (row.first, row.second))]
        other = {"cannot_link": pair} if row.joined else {"must_link": pair}
        decided = scored_pairs(6, PAIRS, names=list("abcdef"), unscored=0.05, **other)
        found = pc.consensus_partition(decided, loss="binder", random_seed=1, progressbar=False)
        rise = (found.expected_loss - best.expected_loss) / pc.binder().scale(6)
        assert row.increase == pytest.approx(rise, abs=1e-9)


def test_first_pairs_are_those_of_all_and_take_fewer_looks(rng, monkeypatch):
    n = 300
    of = np.sort(rng.integers(120, size=n))
    near = [(i, j) for i in range(n) for j in range(i + 1, min(i + 6, n))]
    pairs = {(i, j): rng.beta(8, 2) if of[i] == of[j] else rng.beta(1, 3) for i, j in near if rng.random() < 0.8}
    source = scored_pairs(n, pairs)
    found = pc.links(source, pc.consensus_partition(source, loss="binder", random_seed=1, progressbar=False))
    everything = found.review(10**6)
    assert closest_decisions(source, pc.binder(), found.cluster.values, 10**6).pairs.size == len(pairs)
    ends = everything[["first_cluster", "second_cluster"]].to_numpy()
    kinds = set(zip(ends.min(axis=1), ends.max(axis=1), everything["increase"].round(9), strict=True))
    assert len(kinds) > 0.995 * len(everything) > len(pairs) / 2 and everything["increase"].min() >= 0
    monkeypatch.setattr(decisions, "_AT_ONCE", 4)
    across, looks = _Changes.across_blocks, []
    monkeypatch.setattr(_Changes, "across_blocks", lambda *some: looks.append(some[1].size) or across(*some))
    for n_pairs in (1, 15, 150, len(everything) - 1):
        pd.testing.assert_frame_equal(found.review(n_pairs), everything.head(n_pairs))
        assert max(looks) <= 4
    looks.clear()
    assert len(found.review(15)) == 15 and sum(looks) < len(pairs) / 10


def test_one_pair_stands_for_those_between_two_groups():
    source = scored_pairs(3, {(0, 1): 0.9, (0, 2): 0.6, (1, 2): 0.7}, must_link=[(0, 1)])
    table = pc.links(source, [0, 0, 0]).review()
    assert table[["first", "second"]].values.tolist() == [[1, 2]]
    assert table["increase"].item() == pytest.approx(2 * (0.6 + 0.7) - 2)


def test_a_decision_is_listed_once_and_rows_are_constraints(tmp_path):
    clique = {(i, j): 0.9 for i in range(4) for j in range(i)}
    hanging = {(4, k): 0.6 for k in range(4)}  # joined with four pairs: one decision
    source = scored_pairs(7, clique | hanging | {(5, 6): 0.3}, names=list("abcdefg"))
    best = pc.consensus_partition(source, random_seed=1, progressbar=False)
    review = pc.links(source, best).review(3)
    assert review[["first", "second"]].values.tolist() == [["f", "g"], ["a", "e"], ["a", "b"]]
    assert len(pc.links(source, best).review(1)) == 1
    assert pc.as_pair_similarity(source, cannot_link=review[1:2]).constraints.cannot_link.tolist() == [[0, 4]]
    linked = [("crm", 1, "web", 1, 0.9), ("web", 1, "crm", 2, 0.4)]
    columns = ["source_dataset_l", "unique_id_l", "source_dataset_r", "unique_id_r", "match_probability"]
    pairs = pc.as_pair_similarity(pd.DataFrame(linked, columns=columns))
    pc.summarize(pairs, random_seed=1, progressbar=False).to_csv(tmp_path)
    for given in (pc.links(pairs, [0, 1, 0]).review(), tmp_path / "review.csv"):
        assert pc.as_pair_similarity(pairs, must_link=given).constraints.must_link.tolist() == [[0, 2], [1, 2]]


def test_decisions_whose_scores_are_tied_are_all_listed():
    """Apart, a and b differ by a alone or by b alone; neither says whether a and c are apart."""
    three = scored_pairs(3, {(0, 1): 0.9, (0, 2): 0.9, (1, 2): 0.9})
    assert len(pc.links(three, [0, 0, 0]).review(5)) == 3
    tight = {(0, 1): 1.0, (2, 3): 1.0, (4, 5): 1.0}  # of three couples, one leaves: three decisions between them
    between = {(i, j): 0.52 for i in range(6) for j in range(i + 1, 6) if (i, j) not in tight}
    review = pc.links(scored_pairs(6, tight | between), [0] * 6).review(20)
    assert len(review[review["probability"] == 0.52]) == 3


def test_figure():
    axes = example().plot()
    assert axes.shape == (2, 2)
    assert [name.get_text() for name in axes[1, 0].get_yticklabels()] == ["d and e", "b and c"]
    assert [name.get_text() for name in axes[1, 1].get_yticklabels()][-1] == "d and e"
    assert isinstance(example(), ScoredLinks) and isinstance(example().pairs, xr.Dataset)
    pc.links(scored_pairs(2, {}), [0, 1]).plot()
