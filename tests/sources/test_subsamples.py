"""Draws in which items are missing: pairs counted over the draws that hold both, and errors that say what to do."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.diagnostics import similarity_mcse
from posterior_consensus.results.words import RUNS
from posterior_consensus.runtime import memory
from tests import reference
from tests.helpers import check, check_all

NAMES = list("abcdef")


def pairwise(data, **options):
    return pc.as_pair_similarity(data, missing="pairwise", **options)


@pytest.fixture(scope="module")
def runs():
    """Labels of 2 chains of 30 runs of 6 items, of which about a third is missing."""
    rng = np.random.default_rng(3)
    labels = np.array([0, 0, 0, 1, 1, 2])[np.newaxis] + (rng.random((60, 6)) < 0.2)
    labels[rng.random((60, 6)) < 0.35] = -1
    return labels.reshape(2, 30, 6)


def test_pairs_are_counted_over_the_draws_that_hold_both(runs, rng):
    assert_allclose(pairwise(runs).values, reference.pairwise_similarities(runs.reshape(60, 6), None), rtol=1e-14)
    weights = rng.random((2, 30))
    found, expected = (
        pairwise(runs, weights=weights),
        reference.pairwise_similarities(runs.reshape(60, 6), weights.ravel()),
    )
    assert_allclose(found.values, expected, rtol=1e-14)
    assert_array_equal(found.values, found.values.T)
    assert_allclose(pairwise(runs, log_weights=np.log(weights) - 900).values, expected, rtol=1e-12)


def test_missing_labels_of_every_kind(runs, tmp_path):
    labels, expected = runs.reshape(60, 6), pairwise(runs.reshape(60, 6)).values
    gone = labels < 0
    nan = np.where(gone, np.nan, labels)
    words = np.where(gone, None, np.array(["x", "y", "z", "u"])[labels])
    nullable = pd.DataFrame(labels, columns=NAMES).astype("Int64").mask(gone)
    named = xr.DataArray(runs.astype(float), dims=("chain", "draw", "gene"), coords={"gene": NAMES}, name="z")
    table, path = pd.DataFrame(nan, columns=NAMES), tmp_path / "runs.csv"
    table.to_csv(path, index=False, na_rep="NA")
    arrays = nan, nan.tolist(), words, np.where(gone, np.nan, 10**9 * labels)
    masked = np.ma.masked_less(labels, 0), np.ma.masked_less(labels.astype(np.int8), 0)
    posteriors = named.where(named >= 0).to_dataset(), xr.DataTree.from_dict({"posterior": named.to_dataset()})
    for given in (*arrays, *masked, table, path, nullable, named, *posteriors):
        assert_array_equal(pairwise(given).values, expected)
    assert pairwise(named).items.coords["gene"].values.tolist() == NAMES
    assert pairwise(named.rename(draw="run"), sample_dims=("chain", "run")).items.dim == "gene"
    two = xr.Dataset({"z": named, "other": named})
    assert_array_equal(pairwise(two, var_name="other").values, expected)


def test_errors_name_the_function_called_and_its_argument(runs):
    parts = ["dimensions of `data`", "as_pair_similarity(data, missing='pairwise', sample_dims='run')"]
    check(pairwise, xr.DataArray(runs[0], dims=("run", "gene")), ValueError, parts)
    check(pairwise, 3, TypeError, ["`data` must be an InferenceData"])
    check(lambda p: pairwise(p, weights=[1.0]), runs, ValueError, ["`weights` must"])


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_without_missing_labels_are_those_of_the_draws(weighted, rng):
    labels = rng.integers(3, size=(2, 40, 5))
    draws = pc.as_partition_draws(labels, weights=rng.random((2, 40)) if weighted else None)
    for given, weights in ((draws, None), (labels, draws.weights)):
        found = pairwise(given, weights=weights)
        assert_allclose(found.values, pc.posterior_similarity_matrix(draws))
        assert_allclose(found.errors, similarity_mcse(draws), atol=1e-15)
    soft = pc.as_allocation_probabilities(rng.dirichlet(np.ones(3), (2, 40, 5)))
    assert_allclose(pairwise(soft).values, pc.posterior_similarity_matrix(soft))
    assert_allclose(pairwise(soft).errors, similarity_mcse(soft), atol=1e-15)


@pytest.mark.slow
def test_errors_are_the_spread_over_repetitions(rng):
    """Independent runs of four items, of which each holds three: estimates scatter as their errors say."""
    scores = []
    for _ in range(150):
        labels = rng.integers(2, size=(100, 4))
        labels[np.arange(100), rng.integers(4, size=100)] = -1
        found = pairwise(labels)
        scores.append((found.values[0, 1] - 0.5) / found.errors[0, 1])
    assert 0.8 < np.std(scores) < 1.35  # a t distribution of about 9 degrees of freedom has 1.13


def test_errors_that_are_not_known_or_of_pairs_that_all_draws_agree_on():
    labels = np.zeros((16, 4), int)
    labels[:, 3] = 1
    labels[3:, 2] = -1  # only in the first of four batches
    found = pairwise(labels)
    expected = np.full((4, 4), reference.probability_errors(0.0, 0.0, n_draws=16)) * (1 - np.eye(4))
    expected[2, [0, 1, 3]] = expected[[0, 1, 3], 2] = np.nan
    assert_allclose(found.errors, expected)
    assert "unknown for 50% of pairs" in repr(found)
    assert np.isnan(pairwise(labels[:3]).errors).all()
    assert "unknown for 100% of pairs" in repr(pairwise(labels[:3]))
    labels = np.tile([0, 0, 1], (16, 1))  # four batches, of which a pair is in two, the others in one
    labels[:2, 1] = 1
    labels[8:, 1] = labels[4:, 2] = -1
    errors = pairwise(labels).errors
    assert errors[0, 1] > 0 and np.isnan([errors[0, 2], errors[1, 2]]).all()


def test_what_needs_pairs_goes_on(runs):
    pairs = pairwise(pd.DataFrame(runs.reshape(60, 6), columns=NAMES))
    best = pc.consensus_partition(pairs, loss="binder", random_seed=1, progressbar=False)
    assert best.labels.values.tolist() == [0, 0, 0, 1, 1, 2]
    assert pc.certify(pairs, best, progressbar=False).status == "optimal"
    assert pc.consensus_partition(pairs, loss="pear", random_seed=1, progressbar=False).n_clusters == 3
    errors = similarity_mcse(pairs)
    assert errors["item"].values.tolist() == NAMES
    assert "standard errors" in repr(pairs)
    some = pairs.of_items(np.array([4, 1]))
    assert_array_equal(some.errors, errors.values[np.ix_([4, 1], [4, 1])])
    check(lambda p: pc.credible_ball(p, best), pairs, ValueError, ["needs posterior draws"])


def test_pairs_that_are_never_together_are_counted():
    labels = np.array([[0, 0, -1, 1, -1], [0, -1, 0, 1, -1], [1, 1, -1, 0, -1]])
    named = pd.DataFrame(labels[:, :4], columns=list("abcd"))
    cases = [
        (
            labels,
            ValueError,
            "5 of 10, such as '0' and '4', '1' and '2', '1' and '4'",
            "1, such as '4'.",
            "Make more runs",
        ),
        (named, ValueError, "1 of 6, such as 'b' and 'c'. Make"),
        (np.full((3, 2), -1), ValueError, "not all be missing; got 6"),
    ]
    check_all(pairwise, cases)
    parts = ["3 of 6, such as 'a' and 'c'", "no other: 1, such as 'c'"]
    check(lambda z: pairwise(z, weights=[1, 0, 1]), named, ValueError, parts)


def test_what_cannot_be_counted_is_refused(runs):
    cases = [
        ([[0, 1, 1], [0, -2, 1]], ValueError, "negative; got -2 at draw 1, item 1"),
        ([[0, 1.5, 1], [0, -1, 1]], ValueError, "integers; got 1.5 at draw 0, item 1"),
        ([0, 1, -1], ValueError, "a single partition"),
    ]
    check_all(pairwise, cases)
    check(lambda m: pc.as_pair_similarity(runs, missing=m), "drop", ValueError, ["`missing`", "'pairwise' or"])
    options = {"weights": np.ones(3)}, {"var_name": "z"}
    cases = [(one, ValueError, "must be None for a matrix", "missing='pairwise'") for one in options]
    check_all(lambda option: pc.as_pair_similarity(np.eye(3), **option), cases)


def test_memory_is_asked_for_first(runs, monkeypatch):
    monkeypatch.setattr(memory, "budget", lambda: 1000)
    check(pairwise, runs, MemoryError, ["The similarities of 6 items and their standard errors"])


def test_elsewhere_the_error_says_where_and_what_to_do(runs):
    labels = np.abs(runs)
    labels[0, 0, 1] = -1
    gone, where = labels < 0, "at chain 0, draw 0, item 1 (from 0)"
    instead = [f"as_runs(data, {meaning}=" for meaning in ("noise", "missing")]
    cases = [(labels, ValueError, f"got -1 {where}", *(f"{call}-1)" for call in instead))]
    nan = (ValueError, f"got 1 NaN {where}", *(f"{call}numpy.nan)" for call in instead))
    cases += [(missing, *nan) for missing in (np.where(gone, np.nan, labels), np.ma.masked_array(labels, gone))]
    check_all(pc.as_partition_draws, cases)
    with pytest.raises(ValueError, match="negative") as raised:
        pc.credible_ball(np.abs(runs), [0, 0, -1, 1, 1, 2])
    assert "as_runs" not in str(raised.value)


@pytest.mark.parametrize("loss", ["binder", "pear", "vi_lower_bound"])
def test_errors_of_losses_are_those_of_the_jackknife_over_runs(loss, runs):
    labels = runs.reshape(60, 6)
    found = pc.consensus_partition(pc.as_runs(labels, missing=-1), loss=loss, random_seed=1)
    assert found.words is RUNS and found.ess == 60
    rest = (pc.as_runs(np.delete(labels, k, axis=0), missing=-1) for k in range(60))
    without = [pc.expected_loss(one, found, loss=loss)["expected_loss"].item() for one in rest]
    assert_allclose(found.mcse, np.sqrt(59 / 60 * np.sum(np.square(without - np.mean(without)))), rtol=1e-9)
    both = np.stack([found.labels.values, np.zeros(6, int)])
    table = pc.expected_loss(pc.as_runs(labels, missing=-1), both, loss=loss)
    assert table["mcse"].values[0] == pytest.approx(found.mcse)


def test_errors_of_losses_are_unknown_if_a_pair_is_in_one_run(runs):
    labels = runs.reshape(60, 6).copy()
    labels[1:, 0] = -1
    labels[0] = [0, 0, 0, 1, 1, 2]
    assert np.isnan(pc.consensus_partition(pc.as_runs(labels, missing=-1), loss="pear", random_seed=1).mcse)
    assert np.isnan(pc.consensus_partition(pairwise(runs), random_seed=1).mcse)  # draws of chains
