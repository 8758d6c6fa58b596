"""Searches by component against all partitions of a few records."""

import numpy as np
import pytest
import xarray as xr
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

import posterior_consensus as pc
from posterior_consensus.bounds.components import decomposed
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.ensemble.scored_pairs import Constraints, ScoredPairs
from posterior_consensus.search import components
from tests.helpers import check, press_ctrl_c

QUIET = {"random_seed": 1, "progressbar": False}


def scored(n_items, pairs, values, unscored=0.0, constraints=None, names=None):
    """Scored pairs of items without names, or with these."""
    one, other = np.reshape(pairs, (-1, 2)).T
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    matrix = sparse.csr_array((np.concatenate([values, values]).astype(float), ends), (n_items, n_items))
    matrix.sort_indices()
    coords = xr.Coordinates({} if names is None else {"record": names})
    return ScoredPairs(Items(n_items, "record", coords), matrix, unscored, constraints or Constraints())


def random_pairs(rng):
    """Random scored pairs of up to nine records, and a threshold: ties, constraints that agree, unscored values."""
    n = int(rng.integers(1, 10))
    pairs = np.argwhere(np.triu(rng.random((n, n)) < rng.choice([0.2, 0.5, 0.9]), 1))
    tau = round(rng.uniform(0.1, 0.9), 2)
    values = rng.random(len(pairs)) if rng.random() < 0.5 else rng.choice([0.0, 0.3, 0.5, tau, 0.8, 1.0], len(pairs))
    unscored = float(rng.choice([0.0, 0.0, 0.05, tau, rng.random()]))
    allowed = rng.integers(3, size=n)  # constraints agree with this partition
    every = np.argwhere(np.triu(np.ones((n, n), bool), 1))
    same = allowed[every[:, 0]] == allowed[every[:, 1]]
    must, cannot = (every[kind & (rng.random(len(every)) < share)] for kind, share in ((same, 0.15), (~same, 0.2)))
    data_set = None
    if rng.random() < 0.4:
        data_set = rng.integers(-1, 3, n).astype(np.int32)
        for k in range(3):  # a second record of a data set in one of these clusters is free
            own = np.flatnonzero((allowed == k) & (data_set >= 0))
            first = np.unique(data_set[own], return_index=True)[1]
            data_set[np.delete(own, first)] = -1
    if rng.random() < 0.3:
        must, cannot, data_set = must[:0], cannot[:0], None
    return scored(n, pairs, values, unscored, Constraints(must, cannot, data_set)), tau


def matrix_of(source):
    n = source.n_items
    values = np.full((n, n), source.unscored)
    rows, columns = source.scored.nonzero()  # zeros that are scored are set below
    values[rows, columns] = source.scored.toarray()[rows, columns]
    for row in range(n):
        own = source.scored.indices[slice(*source.scored.indptr[row : row + 2])]
        values[row, own] = source.scored.toarray()[row, own]
    np.fill_diagonal(values, 1.0)
    return values


def keeps(partitions, constraints):
    """Which of the partitions (P, n) keep the constraints."""
    kept = np.ones(len(partitions), bool)
    for one, other in constraints.must_link:
        kept &= partitions[:, one] == partitions[:, other]
    for one, other in constraints.cannot_link:
        kept &= partitions[:, one] != partitions[:, other]
    if constraints.data_set is not None:
        for one, other in np.argwhere(np.triu(np.ones((partitions.shape[1],) * 2, bool), 1)):
            if constraints.data_set[one] == constraints.data_set[other] >= 0:
                kept &= partitions[:, one] != partitions[:, other]
    return kept


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


def linked_records(rng, n_items, n_entities):
    """Scored pairs of records of a few entities that noise connects."""
    truth = rng.integers(n_entities, size=n_items)
    every = np.argwhere(np.triu(np.ones((n_items, n_items), bool), 1))
    same = truth[every[:, 0]] == truth[every[:, 1]]
    kept = rng.random(len(every)) < np.where(same, 0.8, 0.25)
    values = np.where(same, rng.beta(3, 2, len(every)), rng.beta(2, 3, len(every)))
    return every[kept], values[kept]


def assert_is_the_optimum(seed):
    source, tau = random_pairs(np.random.default_rng(seed))
    values, constraints = matrix_of(source), source.constraints
    optimum = least_loss(values, tau, constraints)
    best = pc.consensus_partition(source, loss="binder", tau=tau, **QUIET)
    assert best.expected_loss == pytest.approx(optimum, abs=1e-12), seed
    assert best.lower_bound == best.expected_loss and best.gap == 0, seed
    assert keeps(best.labels.values[np.newaxis], constraints).all(), seed
    if not constraints:
        dense = pc.consensus_partition(pc.as_pair_similarity(values), loss="binder", tau=tau, **QUIET)
        assert dense.expected_loss == pytest.approx(optimum, abs=1e-12), seed


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_the_best_of_all_partitions_that_keep_the_constraints_is_found_and_proven(first):
    for seed in range(first, first + 50):
        assert_is_the_optimum(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(300, 2300, 200))
def test_so_it_is_of_many_more(first):
    for seed in range(first, first + 200):
        assert_is_the_optimum(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_components_of_forty_records_reach_the_loss_of_an_integer_programme(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 41))
    pairs, values = linked_records(rng, n, n // 5)
    source, tau = scored(n, pairs, values, 0.05), round(rng.uniform(0.4, 0.7), 2)
    best = pc.consensus_partition(source, loss="binder", tau=tau, **QUIET)
    found = pc.consensus_partition(source, loss="binder", tau=tau, method="exact", **QUIET)
    assert best.info.largest > 14 and found.gap == 0
    assert found.expected_loss == pytest.approx(least_by_programme(matrix_of(source), tau), abs=1e-9)
    assert found.lower_bound <= best.expected_loss + 1e-12
    assert best.expected_loss == pytest.approx(found.expected_loss, abs=1e-9)


def least_by_programme(values, tau):
    """Least expected loss by HiGHS, with an inequality for each triangle that the solution violates."""
    n = len(values)
    one, other = np.triu_indices(n, 1)
    number = np.zeros((n, n), int)
    number[one, other] = number[other, one] = np.arange(one.size)
    gains = (2 * tau * (1 - values) - 2 * (1 - tau) * values)[one, other]  # of a pair joined
    rows = np.empty((0, 3), int)
    while True:
        across = np.arange(len(rows))
        ends = np.repeat(across, 3), rows.ravel()
        table = sparse.csr_array((np.tile([1.0, 1.0, -1.0], len(rows)), ends), (len(rows), one.size))
        limits = [] if not len(rows) else [LinearConstraint(table, -np.inf, 1.0)]
        joined = milp(gains, integrality=np.ones(one.size), bounds=Bounds(0, 1), constraints=limits).x > 0.5
        together = np.eye(n, dtype=bool)
        together[one, other] = together[other, one] = joined
        i, j, k = np.nonzero(together[:, :, np.newaxis] & together[np.newaxis] & ~together[:, np.newaxis])
        if not i.size:
            return float((gains @ joined + (2 * (1 - tau) * values)[one, other].sum()) * 2 / n**2)
        rows = np.concatenate([rows, np.stack([number[i, j], number[j, k], number[i, k]], axis=1)])


NAMES = ["ann", "bob", "cid", "dan"]
CHAIN = [[0, 1], [1, 2], [2, 3]]


def chain(**constraints):
    """Four records in a chain of scores 0.9, 0.6 and 0.9."""
    return scored(4, CHAIN, [0.9, 0.6, 0.9], 0.5, Constraints(**constraints), NAMES)


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]}, ["'ann'", "'cid'", "`cannot_link`"]),
        ({"must_link": [[1, 3]], "data_set": np.array([0, 1, 0, 1], np.int32)}, ["'bob'", "'dan'", "one data set"]),
    ],
)
def test_constraints_that_contradict_each_other_are_named(constraints, said):
    constraints = {name: np.array(value) for name, value in constraints.items()}
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
        ({"cannot_link": np.array([[1, 2]])}, ["joins 'bob' and 'cid'", "`cannot_link`"]),
        ({"must_link": np.array([[0, 3]])}, ["separates 'ann' and 'dan'", "`must_link`"]),
        ({"data_set": np.array([-1, 2, 2, -1], np.int32)}, ["joins 'bob' and 'cid'", "one data set"]),
    ],
)
def test_a_partition_that_breaks_a_constraint_has_no_certificate(constraints, said):
    check(lambda x: pc.certify(x, [0, 1, 1, 2]), chain(**constraints), ValueError, ["`partition`", *said])


@pytest.mark.parametrize("options", [{"n_clusters": 2}, {"method": "hierarchical"}, {"refine": "jacobi"}])
def test_what_keeps_no_constraints_is_refused_and_else_answers_over_all_pairs(options):
    free, bound = chain(), chain(cannot_link=np.array([[1, 2]]))
    ((name, value),) = options.items()
    check(lambda x: pc.consensus_partition(x, **options, **QUIET), bound, ValueError, [f"{name}={value!r}", "greedy"])
    ours, theirs = (pc.consensus_partition(source, **options, **QUIET) for source in (free, free.as_pairs()))
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    assert ours.expected_loss == pytest.approx(theirs.expected_loss, abs=1e-15)


@pytest.mark.parametrize("loss", ["pear", "vi_lower_bound"])
def test_losses_that_are_no_sums_over_pairs_are_refused(loss):
    said = ["`loss`", f"'{loss}'", "'binder'", "as_pairs()"]
    check(lambda x: pc.consensus_partition(x, loss=loss, **QUIET), chain(), ValueError, said)


def hard_component():
    """Two components that have to be searched, and constraints within them."""
    rng = np.random.default_rng(5)
    pairs, values = linked_records(rng, 40, 6)
    both, apart = np.concatenate([pairs, pairs + 40]), pairs[values > 0.8][:5]
    data_set = np.arange(80, dtype=np.int32) // 2
    constraints = Constraints(cannot_link=apart + 40, data_set=np.where(data_set < 20, data_set, -1).astype(np.int32))
    return scored(80, both, np.concatenate([values, values]), 0.0, constraints)


def test_the_number_of_threads_changes_nothing():
    one, two = (pc.consensus_partition(hard_component(), n_jobs=n, **QUIET) for n in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.lower_bound == two.lower_bound and one.info == two.info
    assert one.gap == 0 and one.info.n_proven == one.info.n_components == 2 and one.info.n_enumerated == 0


@pytest.mark.parametrize("limit", [1e-9, 0.2])
def test_a_time_limit_leaves_a_partition_that_keeps_the_constraints_and_a_bound(limit):
    pairs = hard_component()
    found, best = (pc.consensus_partition(pairs, seconds=seconds, **QUIET) for seconds in (limit, None))
    assert pairs.constraints.first_broken(found.labels.values) is None
    assert found.lower_bound <= best.expected_loss + 1e-12
    assert found.info.n_proven + len(found.info.unproven_sizes) == found.info.n_components == 2
    gap = found.expected_loss - found.lower_bound
    assert gap == pytest.approx(2 / 80**2 * sum(found.info.unproven_gaps), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("where", "at"), [("search_component", 1), ("bound_components", 1), ("bound_components", 2)])
def test_ctrl_c_leaves_a_partition_that_keeps_the_constraints_and_a_bound(where, at, monkeypatch):
    pairs = hard_component()
    best = pc.consensus_partition(pairs, **QUIET)
    parts = decomposed(pairs, pc.binder())
    if at == 2:
        monkeypatch.setattr(components, "_SHARE_AT_FIRST", 0.0)  # so that bounds are left for later
    press_ctrl_c(monkeypatch, components, where, at)
    with pytest.warns(UserWarning, match="interrupted"):
        found = components.search_components(parts, np.random.default_rng(1), n_jobs=0)
    assert found.info.stopped == "interrupted" and len(found.info.unproven_sizes) == 2
    assert pairs.constraints.first_broken(found.labels) is None
    expected = pc.expected_loss(pairs, found.labels)["expected_loss"].item()
    assert expected - found.gap <= best.expected_loss + 1e-12 and found.gap > 0
