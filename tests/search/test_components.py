"""Searches by component against all partitions of a few records."""

import numpy as np
import pytest
import xarray as xr
from scipy import sparse

import posterior_consensus as pc
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.ensemble.scored_pairs import Constraints, ScoredPairs

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
