"""Searches by component against all partitions of a few records."""

import time
from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

import posterior_consensus as pc
from posterior_consensus.bounds import stars
from posterior_consensus.bounds.decisions import closest_decisions
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.problems.components import decomposed, first_members
from posterior_consensus.search import components
from posterior_consensus.search.effort import Effort
from posterior_consensus.search.sparse_search import improved_by_decisions
from tests.helpers import check, keeps, press_ctrl_c, random_scored_pairs, scored_pairs

QUIET = {"random_seed": 1, "progressbar": False}


def least_loss(values, tau, constraints):
    """Least expected loss of Binder with threshold tau over all partitions that keep the constraints."""
    n = len(values)
    least = np.inf
    for block in enumerate_partitions(n):
        block = block[keeps(block, constraints)]
        together = block[:, :, np.newaxis] == block[:, np.newaxis]
        costs = np.where(together, 2 * tau * (1 - values), 2 * (1 - tau) * values)
        least = min(least, *(costs.sum(axis=(1, 2)) / n**2), np.inf)
    return least


def connected_entities(rng, n_items, n_entities):
    """Scores {(first, second): probability} of records of a few entities that noise connects."""
    truth = rng.integers(n_entities, size=n_items)
    every = np.transpose(np.triu_indices(n_items, 1))
    same = truth[every[:, 0]] == truth[every[:, 1]]
    kept = rng.random(len(every)) < np.where(same, 0.8, 0.25)
    values = np.where(same, rng.beta(3, 2, len(every)), rng.beta(2, 3, len(every)))
    return dict(zip(map(tuple, every[kept].tolist()), values[kept], strict=True))


def assert_is_the_optimum(seed):
    rng = np.random.default_rng(seed)
    source, tau = random_scored_pairs(rng, int(rng.integers(1, 10)))
    values, constraints = source.shared_similarity, source.constraints
    optimum = least_loss(values, tau, constraints)
    best = pc.consensus_partition(source, loss="binder", tau=tau, **QUIET)
    assert best.expected_loss == pytest.approx(optimum, abs=1e-12), seed
    assert best.lower_bound == best.expected_loss and best.optimality_gap == 0, seed
    assert keeps(best.labels.values[np.newaxis], constraints).all(), seed
    if not constraints:
        dense = pc.consensus_partition(pc.as_pair_similarity(values), loss="binder", tau=tau, **QUIET)
        assert dense.expected_loss == pytest.approx(optimum, abs=1e-12), seed


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_the_best_of_all_partitions_that_keep_the_constraints_is_found_and_proven(first):
    for seed in range(first, first + 50):
        assert_is_the_optimum(seed)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("first", range(300, 2300, 200))
def test_so_it_is_of_many_more(first):
    for seed in range(first, first + 200):
        assert_is_the_optimum(seed)


@pytest.mark.parametrize("seed", range(4))
def test_clusters_of_four_records_at_most_reach_the_loss_of_an_integer_programme(seed):
    rng = np.random.default_rng(seed)
    source = scored_pairs(17, connected_entities(rng, 17, 3), 0.05, max_cluster_size=4)
    best = pc.consensus_partition(source, loss="binder", tau=0.4, **QUIET)
    least = least_by_programme(source.shared_similarity, 0.4, 4)
    assert best.info.largest > 14 and np.bincount(best.labels).max() == 4
    assert best.lower_bound - 1e-9 <= least <= best.expected_loss + 1e-9
    assert best.expected_loss == pytest.approx(least, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_components_of_forty_records_reach_the_loss_of_an_integer_programme(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 41))
    source, tau = scored_pairs(n, connected_entities(rng, n, n // 5), 0.05), round(rng.uniform(0.4, 0.7), 2)
    best = pc.consensus_partition(source, loss="binder", tau=tau, **QUIET)
    found = pc.consensus_partition(source, loss="binder", tau=tau, method="exact", **QUIET)
    assert best.info.largest > 14 and found.optimality_gap == 0
    assert found.expected_loss == pytest.approx(least_by_programme(source.shared_similarity, tau), abs=1e-9)
    assert found.lower_bound <= best.expected_loss + 1e-12
    assert best.expected_loss == pytest.approx(found.expected_loss, abs=1e-9)


def least_by_programme(values, tau, most=np.inf):
    """Least expected loss of clusters of at most `most` items by HiGHS, with an inequality for each triangle broken."""
    n = len(values)
    one, other = np.triu_indices(n, 1)
    number = np.zeros((n, n), int)
    number[one, other] = number[other, one] = np.arange(one.size)
    gains = (2 * tau * (1 - values) - 2 * (1 - tau) * values)[one, other]  # of a pair joined
    items = sparse.csr_array((np.ones(2 * one.size), (np.append(one, other), np.tile(np.arange(one.size), 2))))
    rows = np.empty((0, 3), int)
    while True:
        across = np.arange(len(rows))
        ends = np.repeat(across, 3), rows.ravel()
        table = sparse.csr_array((np.tile([1.0, 1.0, -1.0], len(rows)), ends), (len(rows), one.size))
        limits = [
            LinearConstraint(items, -np.inf, most - 1),
            *([LinearConstraint(table, -np.inf, 1.0)] * bool(len(rows))),
        ]
        joined = milp(gains, integrality=np.ones(one.size), bounds=Bounds(0, 1), constraints=limits).x > 0.5
        together = np.eye(n, dtype=bool)
        together[one, other] = together[other, one] = joined
        i, j, k = np.nonzero(together[:, :, np.newaxis] & together[np.newaxis] & ~together[:, np.newaxis])
        if not i.size:
            return float((gains @ joined + (2 * (1 - tau) * values)[one, other].sum()) * 2 / n**2)
        rows = np.concatenate([rows, np.stack([number[i, j], number[j, k], number[i, k]], axis=1)])


NAMES = ["ann", "bob", "cid", "dan"]
CHAIN = {(0, 1): 0.9, (1, 2): 0.6, (2, 3): 0.9}


def chain(**constraints):
    """Four records in a chain."""
    return scored_pairs(4, CHAIN, 0.5, NAMES, **constraints)


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]}, ["'ann'", "'cid'", "`cannot_link`"]),
        ({"must_link": [[1, 3]], "data_set": np.array([0, 1, 0, 1], np.int32)}, ["'bob'", "'dan'", "one data set"]),
        ({"must_link": [[0, 1], [1, 2]], "max_cluster_size": 2}, ["'ann'", "'bob'", "`max_cluster_size`, 2"]),
    ],
)
def test_constraints_that_contradict_each_other_are_named(constraints, said):
    check(lambda x: pc.consensus_partition(x, **QUIET), chain(**constraints), ValueError, ["`must_link`", *said])


def test_a_certificate_has_the_bound_of_the_decomposition_and_a_better_partition():
    pairs = chain()
    best = pc.consensus_partition(pairs, **QUIET)
    assert best.loss == pc.binder() and pc.certify(pairs, best, progressbar=False).better is None
    proof = pc.certify(pairs, [0, 1, 2, 3], progressbar=False)
    assert proof.lower_bound == proof.better_loss == best.expected_loss == best.lower_bound < proof.expected_loss
    np.testing.assert_array_equal(proof.better, best.labels)
    assert proof.info.n_components == proof.info.n_enumerated == 1


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"cannot_link": [[1, 2]]}, ["joins 'bob' and 'cid'", "`cannot_link`"]),
        ({"must_link": [[0, 3]]}, ["separates 'ann' and 'dan'", "`must_link`"]),
        ({"data_set": np.array([-1, 2, 2, -1], np.int32)}, ["joins 'bob' and 'cid'", "one data set"]),
        ({"max_cluster_size": 1}, ["joins 'bob' and 'cid'", "larger than `max_cluster_size`, 1"]),
    ],
)
def test_a_partition_that_breaks_a_constraint_has_no_certificate(constraints, said):
    check(lambda x: pc.certify(x, [0, 1, 1, 2]), chain(**constraints), ValueError, ["`partition`", *said])


@pytest.mark.parametrize("options", [{"n_clusters": 2}, {"method": "hierarchical"}, {"refine": "jacobi"}])
def test_what_keeps_no_constraints_is_refused_and_else_answers_over_all_pairs(options):
    free = chain()
    ((name, value),) = options.items()
    for bound in (chain(cannot_link=[[1, 2]]), chain(max_cluster_size=2)):
        says = [f"{name}={value!r}", "greedy"]
        check(lambda x: pc.consensus_partition(x, **options, **QUIET), bound, ValueError, says)
    ours, theirs = (pc.consensus_partition(source, **options, **QUIET) for source in (free, PairSimilarity.of(free)))
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    assert ours.expected_loss == pytest.approx(theirs.expected_loss, abs=1e-15)


@pytest.mark.parametrize("loss", ["pear", "vi_lower_bound"])
def test_losses_that_are_no_sums_over_pairs_are_refused(loss):
    said = ["`loss`", f"'{loss}'", "'binder'", "as_pairs()"]
    check(lambda x: pc.consensus_partition(x, loss=loss, **QUIET), chain(), ValueError, said)


def hard_component():
    """Two components that have to be searched, and constraints within them."""
    rng = np.random.default_rng(5)
    once = connected_entities(rng, 40, 6)
    again = {(i + 40, j + 40): value for (i, j), value in once.items()}
    apart = [pair for pair, value in again.items() if value > 0.8][:5]
    data_set = np.where(np.arange(80) < 40, np.arange(80) // 2, -1).astype(np.int32)
    return scored_pairs(80, once | again, cannot_link=apart, data_set=data_set)


def test_no_decision_on_a_pair_gains_once_what_it_would_gain_is_applied():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        source, tau = random_scored_pairs(rng, 30)
        parts = decomposed(source, pc.binder(tau=tau))
        clusters = np.arange(parts.members.size, dtype=np.int32)
        for one in parts.large.tolist():
            component, at = parts.component(one), parts.place(one)
            begun = component.without_losses(rng.integers(4, size=component.n_groups))
            found = improved_by_decisions(component, begun, np.zeros(1, np.uint8))
            assert component.value(found) >= component.value(begun)
            clusters[at] = at.start + first_members(found)
        labels = parts.whole(clusters)
        assert source.constraints.first_broken(labels) is None
        found = closest_decisions(source, pc.binder(tau=tau), labels, 500)
        assert (found.increase[~found.exact] >= 0).all(), seed


def test_a_search_that_was_stopped_leaves_no_gain_by_a_decision(monkeypatch):
    rng = np.random.default_rng(1)
    source = scored_pairs(120, connected_entities(rng, 120, 40))
    monkeypatch.setattr(components, "_SHARE_TO_SEARCH", 1e-9)  # the search has no time
    best = pc.consensus_partition(source, loss="binder", seconds=4, **QUIET)
    assert best.info.stopped == "seconds" and best.info.unproven_sizes
    assert pc.links(source, best).review(120)["increase"].min() >= 0


def test_a_bound_of_many_pairs_is_not_begun_without_time_for_it(monkeypatch):
    rng = np.random.default_rng(1)
    source = scored_pairs(200, connected_entities(rng, 200, 60))
    monkeypatch.setattr(stars, "_SECONDS_TO_BEGIN", 1.0)
    monkeypatch.setattr(stars, "StarBound", None)
    best = pc.consensus_partition(source, loss="binder", seconds=1, **QUIET)
    assert best.info.unproven_gaps and best.lower_bound < best.expected_loss


def test_progress_moves_within_the_search_of_a_component(monkeypatch):
    shown = []
    monkeypatch.setattr(components, "counting", lambda *_, **__: nullcontext(shown.append))
    source = scored_pairs(60, connected_entities(np.random.default_rng(1), 60, 60))
    components.search_components(decomposed(source, pc.binder()), np.random.default_rng(1), work=10.0)
    assert len(shown) > 10 and set(shown[shown.index(0) :]) <= set(range(61)) and shown[-1] == 60


def test_the_number_of_threads_changes_nothing():
    one, two = (pc.consensus_partition(hard_component(), n_jobs=n, **QUIET) for n in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.lower_bound == two.lower_bound and one.info == two.info
    assert one.optimality_gap == 0 and one.info.n_proven == one.info.n_components == 2 and one.info.n_enumerated == 0


@pytest.mark.parametrize("limit", [1e-9, 0.2])
def test_a_time_limit_leaves_a_partition_that_keeps_the_constraints_and_a_bound(limit):
    pairs = hard_component()
    found, best = (pc.consensus_partition(pairs, seconds=seconds, **QUIET) for seconds in (limit, None))
    assert pairs.constraints.first_broken(found.labels.values) is None
    assert found.lower_bound <= best.expected_loss + 1e-12
    assert found.info.n_proven + len(found.info.unproven_sizes) == found.info.n_components == 2
    gap = found.expected_loss - found.lower_bound
    assert gap == pytest.approx(2 / 80**2 * sum(found.info.unproven_gaps), rel=1e-9, abs=1e-12)


def test_a_time_limit_stops_the_search_of_a_component_and_what_it_breaks_is_mended(monkeypatch):
    def one_cluster(component, starts, rng, stop, *_):
        assert any(stop[0] or time.sleep(0.01) for _ in range(2000))  # the flag of the limit, which comes at once
        return np.zeros(component.n_groups, np.int32)

    monkeypatch.setattr(components, "search_component", one_cluster)
    monkeypatch.setattr(components, "bound_components", lambda *some, **more: None)  # which mends too
    pairs = hard_component()
    found = components.search_components(
        decomposed(pairs, pc.binder()), np.random.default_rng(1), Effort(seconds=0.1), work=10.0
    )
    assert pairs.constraints.first_broken(found.labels) is None and found.info.stopped == "seconds"


@pytest.mark.parametrize(("where", "at"), [("search_component", 1), ("bound_components", 1), ("bound_components", 2)])
def test_ctrl_c_leaves_a_partition_that_keeps_the_constraints_and_a_bound(where, at, monkeypatch):
    pairs = hard_component()
    best = pc.consensus_partition(pairs, **QUIET)
    parts = decomposed(pairs, pc.binder())
    if at == 2:
        monkeypatch.setattr(components, "_SHARE_AT_FIRST", 0.0)  # so that bounds are left for later
    in_this_thread = components.Executor
    monkeypatch.setattr(components, "Executor", lambda n_jobs, seconds: in_this_thread(0, seconds))
    press_ctrl_c(monkeypatch, components, where, at)
    with pytest.warns(UserWarning, match="interrupted"):
        found = components.search_components(parts, np.random.default_rng(1), work=10.0)
    assert found.info.stopped == "interrupted" and len(found.info.unproven_sizes) == 2
    assert pairs.constraints.first_broken(found.labels) is None
    expected = pc.expected_loss(pairs, found.labels)["expected_loss"].item()
    assert found.lower_bound <= best.expected_loss + 1e-12 and found.lower_bound < expected
