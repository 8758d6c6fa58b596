"""Which pairs to score next: by the definition, and by what their scores bring."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import posterior_consensus as pc
from posterior_consensus.answers.next_scores import next_scores
from posterior_consensus.ensemble.partitions import canonical_labels
from tests.helpers import check, keeps, random_scored_pairs, scored_pairs
from tests.reference import canonical

QUIET = {"random_seed": 1, "progressbar": False}


def by_definition(source, tau, labels):
    """Decrease {(first, second): value} of each pair that a change joins, from the weights of all pairs."""
    n, groups, values = source.n_items, source.groups(), source.shared_similarity
    scored = np.zeros((n, n), bool)
    scored[source.rows, source.scored.indices] = True
    one, other = np.triu_indices(n, 1)

    def loss(partition, values):
        together = partition[one] == partition[other]
        value = values[one, other]
        return np.where(together, 2 * tau * (1 - value), 2 * (1 - tau) * value).sum()

    found = {}
    moved = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    moved += [np.flatnonzero(labels == k) for k in np.unique(labels)]
    for those in moved:
        for cluster in np.setdiff1d(labels, labels[those]):
            others = np.flatnonzero(labels == cluster)
            changed = np.where(np.isin(np.arange(n), those), cluster, labels)
            block = np.ix_(those, others)
            m, s = np.count_nonzero(~scored[block]), np.count_nonzero(scored[block])
            if not m or not s or not keeps(canonical(changed)[np.newaxis], source.constraints)[0]:
                continue
            matching = values.copy()
            matching[block] = np.where(scored[block], values[block], 1.0)
            matching[np.ix_(others, those)] = matching[block].T
            gain = loss(labels, matching) - loss(changed, matching)
            value = values[block][scored[block]].mean() * gain / m
            for i in those:
                for j in others:
                    if not scored[i, j] and gain > 1e-12:
                        pair = min(i, j), max(i, j)
                        found[pair] = max(found.get(pair, 0.0), value)
    return found


def test_decrease_as_defined(rng):
    n_found = 0
    for _ in range(80):
        source, tau = random_scored_pairs(rng, int(rng.integers(2, 9)))
        labels = source.groups()
        if rng.random() < 0.7:
            labels = pc.consensus_partition(source, loss="binder", tau=tau, **QUIET).labels.values
        found = next_scores(source, pc.binder(tau=tau), canonical_labels(labels), 1000)
        expected = by_definition(source, tau, labels)
        pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
        assert sorted(pairs) == sorted(expected) and np.all(np.diff(found.decrease) <= 1e-12)
        assert found.decrease == pytest.approx([expected[pair] for pair in pairs], abs=1e-9)
        few = next_scores(source, pc.binder(tau=tau), canonical_labels(labels), 2)
        np.testing.assert_allclose(few.decrease, found.decrease[:2], atol=1e-12)
        n_found += len(pairs)
    assert n_found > 40


def three_sources(rng, n_entities):
    """Scores of A with B and of B with C, none of A with C; the entity of each record, and scores of any pairs."""
    n, first = 3 * n_entities, np.arange(n_entities)
    truth = np.tile(first, 3)

    def scores(one, other):
        return np.where(truth[one] == truth[other], rng.beta(4, 2, one.size), rng.beta(2, 6, one.size))

    one = np.concatenate([truth[: 2 * n_entities], rng.integers(n_entities, size=4 * n_entities)])
    one += np.repeat([0, n_entities] * 3, n_entities)
    other = np.concatenate([truth[: 2 * n_entities], rng.integers(n_entities, size=4 * n_entities)])
    other += np.repeat([n_entities, 2 * n_entities] * 3, n_entities)
    one, other = np.divmod(np.unique(one * n + other), n)
    return truth, dict(zip(zip(one.tolist(), other.tolist(), strict=True), scores(one, other), strict=True)), scores


def recall(pairs, truth):
    """Share of the true pairs that the best partition joins."""
    labels = pc.consensus_partition(scored_pairs(truth.size, pairs), loss="binder", **QUIET).labels.values
    one, other = np.triu_indices(truth.size, 1)
    same = truth[one] == truth[other]
    return np.mean(labels[one[same]] == labels[other[same]])


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_the_first_pairs_bring_more_recall_than_those_of_others_in_components(seed):
    rng = np.random.default_rng(seed)
    truth, pairs, scores = three_sources(rng, 100)
    source = scored_pairs(truth.size, pairs)
    best = pc.consensus_partition(source, loss="binder", **QUIET)
    found = next_scores(source, pc.binder(), best.labels.values, 30)
    component = connected_components(source.scored > 0.5)[1]
    within = np.triu(component[:, np.newaxis] == component, 1) & ~(source.scored.toarray() > 0)
    some = rng.permutation(np.argwhere(within))[:30].T
    before = recall(pairs, truth)
    first, others = (
        recall(pairs | dict(zip(zip(*map(np.ndarray.tolist, ends), strict=True), scores(*ends), strict=True)), truth)
        for ends in ((found.first, found.second), some)
    )
    assert first - before > 1.5 * (others - before)


def test_table_and_what_is_refused():
    source = scored_pairs(4, {(0, 1): 0.9, (1, 2): 0.6}, names=["a", "b", "c", "d"])
    links = pc.links(source, [0, 0, 1, 2], loss="binder")
    table = links.to_score()
    assert table.columns.tolist() == ["first", "second", "probability", "decrease", "first_cluster", "second_cluster"]
    assert table.values.tolist() == [["a", "c", 0.6, pytest.approx(0.72), 0, 1]]
    assert links.to_score(1).equals(table)
    check(links.to_score, 0, ValueError, ["`n`", "at least 1", "got 0"])
    apart = scored_pairs(4, {(0, 1): 0.9, (1, 2): 0.6}, cannot_link=[(0, 2)])
    assert pc.links(apart, [0, 0, 1, 2], loss="binder").to_score().empty
    assert pc.links(scored_pairs(3, {}), [0, 1, 2], loss="binder").to_score().empty
    check(pc.links(apart, [0, 0, 0, 1]).to_score, 5, ValueError, ["`partition`", "`cannot_link` separates"])
