from functools import cache
from itertools import product

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.links import own_and_nearest_by_counts, own_and_nearest_of
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.ensemble.similarity import similarity_operator
from posterior_consensus.kernels import coclustering
from posterior_consensus.runtime import memory
from posterior_consensus.sources.conversion import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import check_all

SIZES = [(1, 1, 1), (70, 6, 3), (63, 33, 20), (130, 65, 60), (4096, 10, 3), (4097, 7, 4), (9000, 5, 3)]


@pytest.mark.parametrize(("n_draws", "n_items", "n_clusters"), [*SIZES, (5, 400, 390)])
def test_entries_are_exact(n_draws, n_items, n_clusters):
    draws = random_draws(np.random.default_rng(n_items), n_draws, n_items, n_clusters)
    psm = pc.posterior_similarity_matrix(draws)
    np.testing.assert_array_equal(psm.values, reference.similarity(draws))


@pytest.mark.parametrize(("n_draws", "n_items", "n_clusters"), SIZES[:4])
def test_counts_of_pairs_give_the_same_means_bit_for_bit(n_draws, n_items, n_clusters):
    rng = np.random.default_rng(n_items)
    draws = as_partition_draws(random_draws(rng, n_draws, n_items, n_clusters))
    for k in (1, 2, n_clusters, n_items):
        labels = canonical_labels(rng.integers(k, size=n_items))
        blocks = [one for _, one in draws.map_links(labels, own_and_nearest_of, np.bincount(labels), None)]
        expected = [np.concatenate(column) for column in zip(*blocks, strict=True)]
        for found in (
            own_and_nearest_by_counts(draws.shared_similarity, n_draws, labels),
            draws.own_and_nearest(labels),
        ):
            for one, other in zip(found, expected, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


def test_more_than_256_clusters_go_through_every_path():
    draws = random_draws(np.random.default_rng(0), 5, 600, 590)
    ours = as_partition_draws(draws)
    assert ours.labels.dtype == np.uint16
    weights = np.array([1, 2, 1, 0, 3])
    expected = reference.similarity(draws, weights)
    weighted = as_partition_draws(draws, weights=weights)
    np.testing.assert_allclose(pc.posterior_similarity_matrix(weighted), expected, atol=1e-15)
    np.testing.assert_allclose(similarity_operator(weighted) @ np.eye(600), expected, atol=1e-15)


@pytest.mark.parametrize(("n_draws", "n_items", "n_clusters"), SIZES[:4])
def test_weights(n_draws, n_items, n_clusters):
    rng = np.random.default_rng(n_items)
    draws, weights = random_draws(rng, n_draws, n_items, n_clusters), rng.exponential(size=n_draws)
    psm = pc.posterior_similarity_matrix(as_partition_draws(draws, weights=weights))
    np.testing.assert_allclose(psm, reference.similarity(draws, weights), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(psm, psm.values.T)
    np.testing.assert_array_equal(np.diag(psm), 1.0)


def test_degenerate_draws():
    for name, draws in DEGENERATE.items():
        psm = pc.posterior_similarity_matrix(draws)
        np.testing.assert_array_equal(psm, reference.similarity(draws), err_msg=name)


@pytest.mark.parametrize("weights", [None, "random"])
def test_the_operator_is_the_matrix(weights):
    rng = np.random.default_rng(2)
    labels = noisy_draws(rng, 30, 150, 20, 0.4)
    draws = as_partition_draws(labels, weights=None if weights is None else rng.exponential(size=30))
    operator, matrix = similarity_operator(draws), pc.posterior_similarity_matrix(draws).values
    for values in (rng.standard_normal(150), rng.standard_normal((150, 7))):
        np.testing.assert_allclose(operator @ values, matrix @ values, atol=1e-11)
        np.testing.assert_allclose(operator.H @ values, matrix @ values, atol=1e-11)


def test_slow_similarities_are_computed_once(rng, monkeypatch):
    calls = []
    add = coclustering.add_coclustering_weights
    monkeypatch.setattr(coclustering, "add_coclustering_weights", lambda *given: calls.append(1) or add(*given))
    draws = as_partition_draws(rng.integers(3, size=(40, 12)), weights=rng.random(40))
    pc.consensus_partition(draws, loss="binder", method="hierarchical", random_seed=1, progressbar=False)
    assert len(calls) == 1
    taken = draws.similarity()
    taken[:] = 7.0
    assert draws.similarity().max() == 1.0


@pytest.mark.parametrize(("weighted", "at_once"), [(False, 1), (True, 7), (False, 64), (True, 64), (False, 100)])
def test_blocks_of_any_size_give_the_same_bits(rng, monkeypatch, weighted, at_once):
    labels = rng.integers(4, size=(150, 11))
    labels[:, 3] = labels[:, 8]
    given = {"weights": rng.random(150) * (rng.random(150) < 0.8)} if weighted else {}
    whole = as_partition_draws(labels, **given)
    similarity, signatures = whole.similarity(), whole.signatures()
    assert signatures.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 3, 8, 9]
    monkeypatch.setattr(memory, "DRAWS_IN_BIT_PLANES", at_once)
    monkeypatch.setattr(memory, "LABELS_TO_COMPARE", 150 * at_once)
    again = as_partition_draws(labels, **given)
    np.testing.assert_array_equal(again.similarity(), similarity)
    np.testing.assert_array_equal(again.signatures(), signatures)


@cache
def source_of(kind):
    rng = np.random.default_rng(8)
    labels = noisy_draws(rng, 70, 150, 6, 0.3)
    if kind == "probabilities":
        return pc.as_allocation_probabilities(rng.dirichlet(np.full(4, 0.2), (30, 150)))
    draws = as_partition_draws(labels, weights=rng.exponential(size=70) if kind == "weighted" else None)
    return pc.as_pair_similarity(draws) if kind == "pairs" else draws


of_every_kind = pytest.mark.parametrize("kind", ["draws", "weighted", "probabilities", "pairs"])


def assert_same(kind, found, expected):
    """Entries of allocation probabilities come from matrix products of other shapes."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 if kind == "probabilities" else 0)


@of_every_kind
def test_the_nearest_are_entries_of_the_matrix(kind, monkeypatch):
    source = source_of(kind)
    psm = pc.posterior_similarity_matrix(source).values
    others = psm - 2 * np.eye(150)
    for budget in ("200KB", "4GB"):
        monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", budget)
        found = pc.posterior_similarity_matrix(source, nearest=7)
        assert found.shape == (150, 150) and found.has_canonical_format
        np.testing.assert_array_equal(np.diff(found.indptr), 7)
        for i in range(150):
            row = slice(*found.indptr[i : i + 2])
            assert_same(kind, found.data[row], psm[i, found.indices[row]])
            assert_same(kind, np.sort(found.data[row]), np.sort(others[i])[-7:])
            if kind != "probabilities":
                first = np.argsort(-others[i], kind="stable")[:7]
                np.testing.assert_array_equal(found.indices[row], np.sort(first))


@of_every_kind
def test_pairs_above_a_threshold_are_entries_of_the_matrix(kind, monkeypatch):
    psm = pc.posterior_similarity_matrix(source_of(kind)).values
    for threshold, budget in product((0, 0.3, 0.95), ("2MB", "4GB")):
        expected = np.where((psm > threshold) & ~np.eye(150, dtype=bool), psm, 0.0)
        monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", budget)
        found = pc.posterior_similarity_matrix(source_of(kind), threshold=threshold)
        assert_same(kind, found.toarray(), expected)
        assert found.nnz == np.count_nonzero(expected)
        np.testing.assert_array_equal(found.toarray(), found.toarray().T)


def test_a_similarity_equal_to_the_threshold_is_not_above_it():
    draws = [[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 2, 2]]
    assert pc.posterior_similarity_matrix(draws, threshold=0.5).nnz == 2
    assert pc.posterior_similarity_matrix(draws, threshold=0.75).nnz == 0
    assert pc.posterior_similarity_matrix(draws, nearest=2).nnz == 6


@of_every_kind
def test_some_items_are_rows_and_columns_of_the_matrix(kind):
    source, chosen = source_of(kind), [140, 3, 77]
    psm, part = pc.posterior_similarity_matrix(source), pc.posterior_similarity_matrix(source, items=chosen)
    assert part.dims == psm.dims and part.attrs == psm.attrs
    assert_same(kind, part.values, psm.values[np.ix_(chosen, chosen)])
    some = np.isin(np.arange(150), chosen)
    assert_same(kind, pc.posterior_similarity_matrix(source, items=some).values, psm.values[np.ix_(some, some)])
    assert pc.posterior_similarity_matrix(source, items=slice(10, 20)).shape == (10, 10)


def test_items_go_by_name_where_they_have_one():
    years = xr.DataArray(
        np.random.default_rng(1).integers(3, size=(1, 20, 5)),
        dims=("chain", "draw", "year"),
        coords={"year": [1990, 1995, 2000, 2005, 2010], "place": ("year", list("abcde"))},
    )
    psm = pc.posterior_similarity_matrix(years)
    found = pc.posterior_similarity_matrix(years, items=[2005, 1990])
    xr.testing.assert_identical(found, psm.sel(year=[2005, 1990], year_bis=[2005, 1990]))
    assert found["place"].values.tolist() == ["d", "a"]
    sliced = pc.posterior_similarity_matrix(years, items=slice(1995, 2005))
    assert sliced["year_bis"].values.tolist() == [1995, 2000, 2005]
    with pytest.raises(KeyError, match="`items`.* names .*1990 to 2010; got"):
        pc.posterior_similarity_matrix(years, items=[1, 2])


def test_parts_that_do_not_exist_are_refused():
    cases = [
        ({"items": [0], "threshold": 0.5}, ValueError, "Only one of `items`, `nearest` and `threshold`"),
        ({"items": [0, 3]}, IndexError, "`items`", "positions below 3, or 3 booleans", "got"),
        ({"items": []}, ValueError, "`items`", "at least one"),
        ({"items": [1, 1]}, ValueError, "`items`", "each of them once", "got"),
        ({"items": "a"}, KeyError, "`items`", "positions below 3, or 3 booleans", "got 'a'"),
        ({"nearest": 0}, ValueError, "`nearest`", "at least 1", "got 0"),
        ({"nearest": 3}, ValueError, "`nearest`", "other items, 2", "got 3"),
        ({"nearest": 1.5}, TypeError, "`nearest`", "an integer", "got 1.5"),
        *(
            ({"threshold": x}, ValueError, "`threshold`", "from 0 and below 1", f"got {x}")
            for x in (1, -0.1, float("nan"))
        ),
        ({"threshold": "half"}, TypeError, "`threshold`", "a number", "got 'half'"),
    ]
    check_all(lambda part: pc.posterior_similarity_matrix([[0, 0, 1], [0, 1, 1]], **part), cases)


def test_a_matrix_beyond_the_budget_names_its_parts(monkeypatch):
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "100KB")
    draws = source_of("draws")
    with pytest.raises(MemoryError, match="of 150 items .*`items`, `nea"):
        pc.posterior_similarity_matrix(draws)
    assert pc.posterior_similarity_matrix(draws, nearest=3).nnz == 450
    assert pc.posterior_similarity_matrix(draws, items=[1, 2]).shape == (2, 2)
    with pytest.raises(MemoryError, match="above 0 .* a larger `threshold`"):
        pc.posterior_similarity_matrix(draws, threshold=0)
