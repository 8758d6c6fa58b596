"""Methods whose memory must not grow with the square of the number of items."""

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.refinement import refine_partition
from tests import reference
from tests.catalogue.posteriors import around

N_ITEMS = 6000  # more than those of which some methods make a matrix
CASES = [
    ("align_and_vote", {"n_starts": 2}),
    ("cc_pivot", {"threshold": 0.5}),
    ("kcc", {"n_clusters": 3, "n_starts": 2}),
    ("spectral", {"n_clusters": 3, "n_starts": 1}),
    ("spectral", {"n_clusters": 3, "n_starts": 1, "affinity": "association"}),
    ("cspa", {"n_clusters": 3, "n_starts": 1}),
    ("mcla", {"n_clusters": 3, "n_starts": 1}),
    ("hbgf", {"n_clusters": 3, "n_starts": 1}),
    ("nmf", {"n_clusters": 3, "n_starts": 1, "max_iter": 2}),
]


@contextmanager
def less_than_a_byte_for_each_pair():
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < N_ITEMS**2 / 2


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(2).integers(3, size=N_ITEMS)


@pytest.fixture(scope="module")
def draws(truth):
    return pc.as_partition_draws(around(np.random.default_rng(3), truth, 20, 0.1))


@pytest.mark.parametrize(("method", "options"), CASES)
def test_no_matrix_of_all_pairs(method, options, draws, truth, monkeypatch):
    if method == "nmf":  # takes rows of the matrix, as many as the budget holds
        monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "8MB")
    with less_than_a_byte_for_each_pair():
        found = pc.consensus_partition(draws, method=method, random_seed=1, progressbar=False, **options)
    assert reference.same(found.labels.values, truth)


@pytest.mark.parametrize("order", ["jacobi", "gauss-seidel"])
def test_refinement_without_a_matrix_of_all_pairs(order, draws, truth):
    start = around(np.random.default_rng(4), truth, 1, 0.1)[0]
    with less_than_a_byte_for_each_pair():
        refined = refine_partition(draws, start, order=order)
    assert reference.same(refined.values, truth)
