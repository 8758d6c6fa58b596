"""One budget of memory: what is told when it does not hold something, and what goes on with less."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.runtime import memory
from tests.catalogue.posteriors import noisy_draws

BUDGET = "POSTERIOR_CONSENSUS_MEMORY"
DRAWS = noisy_draws(np.random.default_rng(1), 40, 30, 5, 0.5)
N_ROWS = sum(np.unique(row).size for row in DRAWS)


def find(draws=DRAWS, loss="vi", method="greedy", **options):
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


def test_the_budget_is_what_the_environment_says(monkeypatch):
    monkeypatch.delenv(BUDGET, raising=False)
    assert memory.budget() == 4e9
    said = {"2GB": 2e9, "500MB": 5e8, " 1.5 gb ": 1.5e9, "4000": 4000, "3KB": 3000, "7 b": 7, "1TB": 1e12}
    for text, size in said.items():
        monkeypatch.setenv(BUDGET, text)
        assert memory.budget() == size and memory.fits(size) and not memory.fits(size + 1)
    for text in ("", "much", "-1GB", "0", "2 GiB", "1e9", "nan"):
        monkeypatch.setenv(BUDGET, text)
        with pytest.raises(ValueError, match=f"{BUDGET} must be a size such as '2GB' or '500MB'; got {text!r}"):
            find()


def test_an_error_says_what_takes_how_much_and_what_to_do(monkeypatch):
    monkeypatch.setenv(BUDGET, "2GB")
    memory.check(2e9, "It")
    with pytest.raises(MemoryError, match=rf"^It .* 3 GB .* 2 GB\. Thin the draws\. .* {BUDGET}=3\.15GB"):
        memory.check(3e9, "It", "Thin the draws.")


@pytest.mark.parametrize("size", [1.0, 999.4, 999.6, 951e9, 952e9, 999.7e9, 1e12, 999.9e12, 1.234e17])
def test_the_advice_is_a_size_that_is_enough(size, monkeypatch):
    monkeypatch.setenv(BUDGET, f"{size / 2:f}")
    with pytest.raises(MemoryError) as raised:
        memory.check(size, "It")
    monkeypatch.setenv(BUDGET, advised(raised.value))
    memory.check(size, "It")
    assert memory.budget() < 1.06 * size + 1


def advised(error):
    return re.search(rf"{BUDGET}=(\S+)", str(error))[1]


@pytest.mark.parametrize(("length", "each", "sizes"), [(10, 25, [4, 4, 2]), (3, 1e9, [1, 1, 1]), (5, 1, [5])])
def test_parts_make_up_the_whole(length, each, sizes, monkeypatch):
    monkeypatch.setenv(BUDGET, "1600")
    parts = list(memory.parts(length, each))
    assert [part.stop - part.start for part in parts] == sizes
    np.testing.assert_array_equal(np.concatenate([np.arange(length)[part] for part in parts]), np.arange(length))


SOFT = np.random.default_rng(2).dirichlet(np.ones(3), (2, 10, 30))
MATRIX = "The similarity matrix of 30 items"
TOO_MUCH = {
    "matrix": (7199, MATRIX, lambda: pc.posterior_similarity_matrix(DRAWS)),
    "matrix, weights": (
        7199,
        MATRIX,
        lambda: pc.posterior_similarity_matrix(pc.as_partition_draws(DRAWS, weights=np.arange(40))),
    ),
    "matrix, soft": (7199, MATRIX, lambda: pc.posterior_similarity_matrix(pc.as_allocation_probabilities(SOFT))),
    "tree": (7199, MATRIX, lambda: find(method="hierarchical")),
    "search": (8 * N_ROWS, "A search among 3 clusters", lambda: find(n_clusters=3)),
    "search, as many as drawn": (8 * N_ROWS, "A search among 6 clusters", lambda: find(loss="binder")),
    "k-means": (3000, "K-means of 30 items in 5 clusters", lambda: find(method="kcc", n_clusters=5)),
    "model": (3000, "The perturbation model of 4 clusters", lambda: find(method="rpm_em", n_clusters=4)),
    "bound": (20_000, "The bound for Binder's loss of 30 items", lambda: pc.certify(DRAWS, DRAWS[0], loss="binder")),
}


@pytest.mark.parametrize("kind", list(TOO_MUCH))
def test_what_the_budget_does_not_hold_is_refused_in_words(kind, monkeypatch):
    size, what, call = TOO_MUCH[kind]
    monkeypatch.setenv(BUDGET, str(size))
    with pytest.raises(MemoryError, match=f"{what} .* {BUDGET}="):
        call()


@pytest.mark.parametrize("method", ["greedy", "impurity"])
def test_advice_is_followed_once(method, monkeypatch):
    monkeypatch.setenv(BUDGET, "100")
    with pytest.raises(MemoryError) as raised:
        find(method=method, loss="vi")
    monkeypatch.setenv(BUDGET, advised(raised.value))
    with warnings.catch_warnings(action="ignore"):  # of what the budget still does not hold
        find(method=method, loss="vi")


@pytest.mark.parametrize("utility", ["category", "entropy", "lp"])
def test_k_means_takes_some_draws_at_a_time_and_gives_the_same_answer(utility, monkeypatch):
    draws = pc.as_partition_draws(DRAWS, weights=np.random.default_rng(3).exponential(size=40))
    at_once = find(draws, method="kcc", n_clusters=4, utility=utility)
    monkeypatch.setenv(BUDGET, "30KB")  # two draws or three
    in_parts = find(draws, method="kcc", n_clusters=4, utility=utility)
    np.testing.assert_array_equal(in_parts.labels, at_once.labels)
    assert in_parts.info == at_once.info


def test_k_means_of_many_clusters_stays_within_the_budget(monkeypatch):
    labels = np.random.default_rng(4).integers(150, size=(200, 600))
    table = 8 * int(pc.as_partition_draws(labels).n_clusters.sum()) * 150
    monkeypatch.setenv(BUDGET, "20MB")
    assert memory.budget() < table
    tracemalloc.start()
    find(labels, method="kcc", n_clusters=150, n_starts=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < memory.budget() / 2


def test_pivots_are_the_same_without_the_matrix(monkeypatch):
    formed = find(method="cc_pivot")
    monkeypatch.setenv(BUDGET, "7000")
    np.testing.assert_array_equal(find(method="cc_pivot").labels, formed.labels)


def test_the_search_goes_by_draws_and_without_a_bound_where_the_matrix_is_too_large(monkeypatch):
    clear = noisy_draws(np.random.default_rng(5), 40, 30, 5, 0.2)
    by_matrix = find(clear, "binder")
    monkeypatch.setenv(BUDGET, "20KB")
    by_draws = find(clear, "binder")
    assert by_matrix.lower_bound is not None and by_draws.lower_bound is None
    assert by_draws.expected_loss == pytest.approx(by_matrix.expected_loss, abs=1e-12)


def test_a_bound_stops_where_its_triangles_are_too_many(monkeypatch):
    noisy = noisy_draws(np.random.default_rng(1), 60, 60, 6, 0.4)
    best = find(noisy, "binder")
    proof = pc.certify(noisy, best, progressbar=False)
    monkeypatch.setenv(BUDGET, "200KB")
    weaker = pc.certify(noisy, best, progressbar=False)
    assert proof.info.n_rounds > 0 == weaker.info.n_rounds
    assert 0 < weaker.lower_bound <= proof.lower_bound
