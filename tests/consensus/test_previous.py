"""Records that come later: what was solved before stays, clusters keep their names, and changes are counted."""

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.problems import components
from posterior_consensus.search import components as searches

QUIET = {"random_seed": 1, "progressbar": False}


def random_pairs(rng, n_records, n_entities):
    """A table of scored pairs, which noise connects, with names in random order."""
    names = np.array([f"r{number:03d}" for number in rng.permutation(1000)[:n_records]])
    truth = rng.integers(n_entities, size=n_records)
    first, second = np.triu_indices(n_records, 1)
    same = truth[first] == truth[second]
    kept = rng.random(first.size) < np.where(same, 0.8, 2 / n_records)
    scores = np.where(same, rng.beta(3, 2, first.size), rng.beta(2, 3, first.size))
    columns = {"unique_id_l": names[first], "unique_id_r": names[second], "match_probability": scores}
    return names, pd.DataFrame(columns)[kept]


def read(rng, names, table, **constraints):
    """Pairs among some records, named and listed in random order."""
    among = table[table["unique_id_l"].isin(names) & table["unique_id_r"].isin(names)]
    among = among.sample(frac=1.0, random_state=int(rng.integers(1 << 30)))
    sources = pd.DataFrame({"unique_id": names, "source_dataset": [f"s{name[-1]}" for name in names]})
    kept = {name: one for name, one in constraints.items() if name == "max_per_source"}
    for name in ("must_link", "cannot_link"):
        kept[name] = [pair for pair in constraints.get(name, []) if set(pair) <= set(names)]
    return pc.as_pair_similarity(among, items=sources.sample(frac=1.0, random_state=1), **kept)


def setting(seed):
    """All names, those before, and pairs of both; constraints in most settings."""
    rng = np.random.default_rng(seed)
    names, table = random_pairs(rng, int(rng.integers(20, 90)), int(rng.integers(8, 30)))
    pairs = [tuple(sorted(rng.choice(names, 2, replace=False))) for _ in range(4)]
    constraints = [{}, {"must_link": pairs[:2]}, {"cannot_link": pairs}, {"max_per_source": 1}][seed % 4]
    before = rng.choice(names, int(0.8 * names.size), replace=False)
    now = names[rng.random(names.size) < 0.97]  # some records have gone
    return read(rng, before, table, **constraints), read(rng, now, table, **constraints)


def by_name(best, names=None):
    labels = best.named_labels.to_series() if names is None else best.named_labels.to_series()[list(names)]
    return labels.sort_index()


@pytest.mark.parametrize("seed", range(40))
def test_it_is_as_good_as_solving_anew(seed):
    old, pairs = setting(seed)
    tau = (0.3, 0.5, 0.7)[seed % 3]
    options = QUIET | {"loss": "binder", "tau": tau, "method": ("greedy", "exact")[seed % 2]}
    before, anew = (pc.consensus_partition(one, **options) for one in (old, pairs))
    later = pc.consensus_partition(pairs, previous=before, **options)
    assert later.expected_loss == pytest.approx(anew.expected_loss, rel=1e-12)
    assert later.lower_bound == pytest.approx(anew.lower_bound, rel=1e-12)
    assert later.info == anew.info
    np.testing.assert_array_equal(later.labels, anew.labels)
    assert pairs.constraints.first_broken(later.labels.values) is None


def test_components_that_did_not_change_are_not_searched(monkeypatch):
    rng = np.random.default_rng(1)
    names, table = random_pairs(rng, 300, 10)
    blocks = pd.Series(rng.integers(6, size=names.size), names)
    within = table["unique_id_l"].map(blocks).to_numpy() == table["unique_id_r"].map(blocks).to_numpy()
    table = table[within]
    old = read(rng, names[1:], table)
    before = pc.consensus_partition(old, **QUIET)
    searched = []
    search = searches.search_component
    monkeypatch.setattr(
        searches, "search_component", lambda one, *rest: searched.append(one.n_groups) or search(one, *rest)
    )
    again = pc.consensus_partition(read(rng, names[1:], table), previous=before, **QUIET)
    assert not searched and again.info == before.info
    later = pc.consensus_partition(read(rng, names, table), previous=before, **QUIET)
    assert len(set(searched)) == 1  # the component of the first record, and no other
    searched.clear()
    other = pc.consensus_partition(old, previous=before, loss=pc.binder(tau=0.4), **QUIET)
    assert len(set(searched)) > 3 and other.loss != later.loss


@pytest.mark.parametrize("what", ["score", "record", "pair", "constraint"])
def test_a_component_that_changed_in_anything_is_solved(what, monkeypatch):
    rng = np.random.default_rng(2)
    names = np.array([f"r{number:03d}" for number in range(9)])
    first, second = np.triu_indices(9, 1)
    table = pd.DataFrame({"unique_id_l": names[first], "unique_id_r": names[second]})
    table["match_probability"] = rng.uniform(0.3, 0.8, first.size)
    before = pc.consensus_partition(read(rng, names, table), **QUIET)
    checksums = set(before.checksums.values.tolist())
    assert len(checksums) == 1 and 0 not in checksums
    options = {"cannot_link": [("r000", "r001")]} if what == "constraint" else {}
    if what == "score":
        table.loc[3, "match_probability"] += 1e-9
    elif what == "record":
        names = np.where(names == "r003", "s003", names)
        table = table.replace("r003", "s003")
    elif what == "pair":
        table = table.drop(index=5)
    later = pc.consensus_partition(read(rng, names, table, **options), previous=before, **QUIET)
    assert checksums.isdisjoint(later.checksums.values.tolist())


@pytest.mark.parametrize("seed", range(20))
def test_fixed_clusters_stay_whole_and_apart(seed):
    old, pairs = setting(4 * seed + (0, 1, 3)[seed % 3])
    before = pc.consensus_partition(old, **QUIET)
    later = pc.consensus_partition(pairs, previous=before, fixed=True, **QUIET)
    names = old.items.coords["item"].to_index().intersection(pairs.items.coords["item"].to_index())
    pd.testing.assert_series_equal(by_name(later, names), by_name(before, names))
    assert set(later.changes["kind"]) <= {"new", "grown"}
    assert pairs.constraints.first_broken(later.labels.values) is None
    free = pc.consensus_partition(pairs, previous=before, **QUIET)
    assert later.expected_loss >= free.expected_loss - 1e-12
    assert later.lower_bound <= later.expected_loss


def test_fixed_finds_the_best_assignment():
    """Two new records, two old clusters: all assignments are compared."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        names = np.array(list("abcdexy"))
        first, second = np.triu_indices(7, 1)
        table = pd.DataFrame({"left": names[first], "right": names[second], "probability": rng.random(first.size)})
        pairs = pc.as_pair_similarity(table, left="left", right="right", probability="probability")
        old = pd.Series([7, 7, 9, 9, 9], list("abcde"))
        later = pc.consensus_partition(pairs, previous=old, fixed=True, **QUIET)
        every = [canonical_labels(np.array([0, 0, 1, 1, 1, x, y])) for x in range(4) for y in range(4)]
        losses = pc.expected_loss(pairs, every)["expected_loss"].values
        assert later.expected_loss == pytest.approx(losses.min()), seed
        assert later.optimality_gap == 0 and list(later.names[:2]) == [7, 9]


def test_names_and_changes_of_clusters():
    links = {"ab": 0.9, "cd": 0.9, "ef": 0.9, "gh": 0.9, "ij": 0.9, "kl": 0.9, "mn": 0.9}
    first, second = zip(*[*links, "bc", "ad", "ac", "bd", "kx", "lx", "yz"], strict=True)
    scores = [0.9] * 8 + [0.8] * 3 + [0.9] * 3
    table = pd.DataFrame({"left": first, "right": second, "probability": scores})
    table.loc[table["left"] == "e", "probability"] = 0.1
    pairs = pc.as_pair_similarity(table, left="left", right="right", probability="probability")
    old = pd.Series(dict(zip("abcdefghijklmn", [3, 3, 5, 5, 8, 8, 9, 9, 11, 11, 12, 12, 14, 14], strict=True)))
    best = pc.consensus_partition(pairs, previous=old, **QUIET)
    found = {name: "".join(members) for name, members in best.clusters.items()}
    assert found == {3: "abcd", 8: "e", 15: "f", 9: "gh", 11: "ij", 12: "klx", 14: "mn", 16: "yz"}
    rows = best.changes.astype(object).where(best.changes.notna(), None).values.tolist()
    assert sorted(rows, key=str) == sorted(
        [
            [3, "merged", 3, 2],
            [3, "merged", 5, 2],
            [8, "split", 8, 1],
            [15, "split", 8, 1],
            [12, "grown", None, 1],
            [12, "grown", 12, 2],
            [16, "new", None, 2],
        ],
        key=str,
    )
    assert "3 kept, 1 new, 1 grown, 1 merged, 2 split" in str(best)


def test_names_that_are_text_stay_and_new_ones_differ():
    table = pd.DataFrame({"left": ["a", "c"], "right": ["b", "d"], "probability": [0.9, 0.9]})
    pairs = pc.as_pair_similarity(table, left="left", right="right", probability="probability")
    best = pc.consensus_partition(pairs, previous=pd.Series({"a": "new 1", "b": None}), **QUIET)
    assert best.names == ("new 1", "new 2")
    assert best.changes["kind"].tolist() == ["grown", "grown", "new"]


def test_a_stored_result_is_a_previous_one(monkeypatch):
    old, pairs = setting(0)
    before = pc.consensus_partition(old, **QUIET)
    stored = pc.results.ConsensusPartition.from_dataset(before.to_dataset())
    np.testing.assert_array_equal(stored.checksums, before.checksums)
    one, two = (pc.consensus_partition(pairs, previous=previous, **QUIET) for previous in (before, stored))
    np.testing.assert_array_equal(one.labels, two.labels)
    again = pc.results.ConsensusPartition.from_dataset(one.to_dataset())
    pd.testing.assert_frame_equal(again.changes, one.changes)


def test_a_search_that_was_stopped_is_gone_on_with(monkeypatch):
    rng = np.random.default_rng(1)
    names, table = random_pairs(rng, 90, 8)
    pairs = read(rng, names, table)
    monkeypatch.setattr(searches, "_SHARE_TO_SEARCH", 1e-9)
    monkeypatch.setattr(searches, "bound_components", lambda *some, **more: None)
    stopped = pc.consensus_partition(pairs, seconds=1e-9, **QUIET)
    assert stopped.info.stopped and stopped.info.unproven_gaps
    monkeypatch.undo()
    anew, later = (pc.consensus_partition(pairs, previous=before, **QUIET) for before in (None, stopped))
    assert later.info == anew.info and later.expected_loss == pytest.approx(anew.expected_loss)


def test_what_previous_cannot_be():
    old, pairs = setting(0)
    before = pc.consensus_partition(old, **QUIET)
    draws = [[0, 0, 1], [0, 1, 1]]
    unnamed = pc.as_pair_similarity(pairs.scored)
    twice = pd.Series([0, 0, 1], ["a", "a", "b"])
    for data, options, error, words in [
        (draws, {"previous": before}, ValueError, "`previous` must be None for PartitionDraws.*starts="),
        (pairs, {"previous": before, "n_clusters": 3}, ValueError, "`n_clusters` must be left out with `previous`"),
        (pairs, {"previous": before, "method": "hierarchical"}, ValueError, "`method` must be left out.*hierarchical"),
        (pairs, {"previous": before, "refine": "jacobi"}, ValueError, "`refine` must be left out"),
        (pairs, {"fixed": True}, ValueError, "`fixed` must be False without `previous`"),
        (pairs, {"previous": before, "fixed": 1}, TypeError, "`fixed`"),
        (pairs, {"previous": before.to_dataframe()}, TypeError, "`previous`.*DataFrame.*set_index"),
        (pairs, {"previous": twice}, ValueError, "`previous` must have each record once.*'a'"),
        (pairs, {"previous": pd.Series([0], ["?"])}, ValueError, r"`previous` must have records of the pairs.*'\?'"),
        (unnamed, {"previous": before}, ValueError, "`previous` needs names of records.*the pairs"),
    ]:
        with pytest.raises(error, match=words):
            pc.consensus_partition(data, **options, **QUIET)
    with pytest.raises(ValueError, match="`changes` needs earlier clusters"):
        _ = before.changes


def test_fixed_clusters_that_break_a_constraint_are_refused():
    table = pd.DataFrame({"left": ["a", "c"], "right": ["b", "d"], "probability": [0.9, 0.9]})
    columns = {"left": "left", "right": "right", "probability": "probability"}
    old = pd.Series({"a": 0, "b": 0, "c": 1})
    for constraint, words in [
        ({"cannot_link": [("a", "b")]}, "`fixed`.*'a' and 'b', which `cannot_link` separates"),
        ({"must_link": [("a", "c")]}, "`fixed`.*two clusters of `previous`"),
    ]:
        pairs = pc.as_pair_similarity(table, **columns, **constraint)
        with pytest.raises(ValueError, match=words):
            pc.consensus_partition(pairs, previous=old, fixed=True, **QUIET)


def test_links_keep_clusters_that_were_fixed():
    table = pd.DataFrame({"left": [*"aabc"], "right": [*"bccd"], "probability": [0.9, 0.7, 0.4, 0.8]})
    pairs = pc.as_pair_similarity(table, left="left", right="right", probability="probability")
    best = pc.consensus_partition(pairs, previous=pd.Series({"b": 2, "a": 1, "c": 1}), fixed=True, **QUIET)
    for partition in (best, pc.results.ConsensusPartition.from_dataset(best.to_dataset())):
        found = pc.links(pairs, partition)
        for links in (found, pc.results.ScoredLinks.from_dataset(found.to_dataset())):
            review = links.review()
            assert review[["first", "second"]].to_numpy().tolist() == [["c", "d"]] and review["increase"][0] > 0
    free = pc.consensus_partition(pairs, previous=best, **QUIET)
    assert free.fixed is False and len(pc.links(pairs, free).review()) > 1


def test_all_components_or_some():
    """A part of a decomposition has the same components."""
    _, pairs = setting(4)
    parts = components.decomposed(pairs, pc.binder())
    chosen = np.arange(len(parts)) % 2 == 0
    some = parts.those(chosen)
    for number, one in enumerate(np.flatnonzero(chosen).tolist()):
        mine, theirs = some.component(number), parts.component(one)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(some.members[some.place(number)], parts.members[parts.place(one)])
