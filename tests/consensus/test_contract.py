"""What every method promises, and the default one under every loss."""

import json
import warnings
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings

import posterior_consensus as pc
from posterior_consensus.consensus.selection import Candidate
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.strategies import degenerate, small_draws

LOSSES = list(pc.LOSSES)
METHODS = list(pc.METHODS)
ANY_LOSS = [method for method in METHODS if method != "exact"]  # which takes Binder's alone
K_MEANS = ["basic", "spectral", "kcc", "sdp", "cspa", "hbgf"]  # which find fewer where fewer items differ

pytestmark = pytest.mark.filterwarnings("ignore:The partition has:UserWarning")


def with_one_loss(loss):
    """Every method with one loss, by which all choose in the same way, and greedy search with each."""
    others = [(m, loss if m in ANY_LOSS else "binder") for m in METHODS if m != "greedy"]
    return pytest.mark.parametrize(("method", "loss"), [("greedy", name) for name in LOSSES] + others)


def find(draws, loss="vi", method="greedy", **options):
    return pc.consensus_partition(draws, loss=loss, method=method, random_seed=1, progressbar=False, **options)


def without_seconds(result):
    """The result as a Dataset that does not tell how long it took."""
    dataset = result.to_dataset()
    info = json.loads(dataset.attrs.get("info", "{}"))
    info.pop("seconds", None)
    return dataset.assign_attrs(info=info)


def recomputed(result, draws, weights=None):
    return reference.expected(result.labels.values, draws, reference.LOSSES[result.loss.name], weights)


@pytest.fixture(scope="module")
def draws():
    return noisy_draws(np.random.default_rng(1), 25, 7, 3, 0.4)


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(2).exponential(size=25)


@pytest.fixture(scope="module")
def least(draws, weights):
    """Least expected loss of any partition, or of any with so many clusters."""
    return cache(lambda loss, k: reference.least_expected(draws, reference.LOSSES[loss], weights, k))


@with_one_loss("binder")
def test_labels_are_canonical_and_the_reported_loss_is_theirs(method, loss, draws, weights, least):
    result = find(pc.as_partition_draws(draws, weights=weights), loss, method)
    assert result.labels.dtype == np.int32 and result.labels.dims == ("item",)
    np.testing.assert_array_equal(result.labels, reference.canonical(result.labels.values))
    assert result.expected_loss == pytest.approx(recomputed(result, draws, weights), abs=1e-12)
    assert result.expected_loss >= least(loss, None) - 1e-12
    assert result.mcse > 0 and result.loss.name == loss and result.method == method
    if loss == "binder":
        assert 0 < result.lower_bound <= least(loss, None) + 1e-12


@with_one_loss("nid")
def test_names_of_clusters_do_not_matter_and_a_seed_repeats(method, loss, draws):
    rng = np.random.default_rng(3)
    renamed = np.array([rng.permutation(9)[draw] for draw in draws])
    results = [find(d, loss, method) for d in (draws, draws, renamed)]
    for other in results[1:]:
        xr.testing.assert_identical(without_seconds(results[0]), without_seconds(other))


@pytest.mark.parametrize("method", ["hierarchical", "best_draw", "enumeration"])
def test_order_of_the_items_does_not_matter(method, draws, weights):
    order = np.random.default_rng(4).permutation(7)
    for loss in LOSSES:
        one, other = (find(pc.as_partition_draws(d, weights=weights), loss, method) for d in (draws, draws[:, order]))
        assert one.expected_loss == pytest.approx(other.expected_loss, abs=1e-12)
        assert reference.same(one.labels.values[order], other.labels.values)


@with_one_loss("binder")
def test_whole_weights_are_repeated_draws(method, loss, draws):
    weights = np.random.default_rng(5).integers(0, 4, size=25)
    weighted = find(pc.as_partition_draws(draws, weights=weights), loss, method)
    repeated = find(np.repeat(draws, weights, axis=0), loss, method)
    assert weighted.expected_loss == pytest.approx(repeated.expected_loss, abs=1e-12)
    if hasattr(weighted.info, "objective") and method != "rpm_em":  # a likelihood of the effective number of draws
        assert weighted.info.objective == pytest.approx(repeated.info.objective, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_draws_of_weight_0_are_not_there(method):
    for seed, options in enumerate([{}, {"max_clusters": "draws"}] if method in ANY_LOSS else [{}]):
        rng = np.random.default_rng(seed)
        some = noisy_draws(rng, 8, 9, 3, 0.4)
        more = np.concatenate([some, [range(9)], noisy_draws(rng, 4, 9, 6, 0.5)])
        weighted = find(pc.as_partition_draws(more, weights=np.arange(13) < 8), "binder", method, **options)
        alone = find(some, "binder", method, **options)
        assert weighted.expected_loss == pytest.approx(alone.expected_loss, abs=1e-12)


@with_one_loss("nid")
def test_numbers_of_clusters_are_honoured(method, loss, draws):
    if method in ANY_LOSS:
        for n_clusters in {np.unique(draw).size for draw in draws}:  # best_draw can have no others
            assert find(draws, loss, method, max_clusters=n_clusters).n_clusters <= n_clusters
            assert find(draws, loss, method, n_clusters=n_clusters).n_clusters == n_clusters


@pytest.mark.parametrize("method", [method for method in ANY_LOSS if method != "best_draw"])
def test_numbers_of_clusters_that_degenerate_draws_do_not_have(method):
    for draws in DEGENERATE.values():
        for n_clusters in {1, min(2, draws.shape[1]), draws.shape[1]}:
            result = find(draws, "nid", method, n_clusters=n_clusters)
            assert np.isfinite(result.expected_loss)
            may_be_fewer = method in {*K_MEANS, "rpm_em"}
            assert result.n_clusters == n_clusters or (may_be_fewer and result.n_clusters < n_clusters)


@settings(max_examples=5)
@degenerate
@given(draws=small_draws(max_items=5))
@pytest.mark.parametrize("method", METHODS)
def test_no_draws_break_a_method(method, draws):
    losses = LOSSES if method == "greedy" else ["nid" if method in ANY_LOSS else "binder"]
    for loss in losses:
        result = find(draws, loss, method)
        assert result.expected_loss >= reference.least_expected(draws, reference.LOSSES[loss]) - 1e-12
        assert result.expected_loss == pytest.approx(recomputed(result, draws), abs=1e-12)
        if len(np.unique(draws, axis=0)) == 1:  # the draws are sure
            assert reference.same(result.labels.values, draws[0])


@pytest.mark.parametrize("method", [method for method in ANY_LOSS if method != "best_draw"])
def test_one_draw_of_singletons_changes_little(method):
    best = find([[0, 0, 0, 1, 1, 1]] * 20 + [[0, 1, 2, 3, 4, 5]], method=method)
    assert best.labels.values.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("loss", LOSSES)
def test_enumeration_finds_the_optimum(loss, draws, weights, least):
    for n_clusters in (None, 2, 5):
        result = find(pc.as_partition_draws(draws, weights=weights), loss, "enumeration", n_clusters=n_clusters)
        assert result.expected_loss == pytest.approx(least(loss, n_clusters), abs=1e-12)
        assert result.info.n_candidates == 877 or n_clusters


def test_losses_with_parameters(draws):
    for loss in (pc.binder(0.5), pc.binder(1.6), pc.vi(0.5), pc.vi(1.6), pc.losses.nmi("min")):
        best = find(draws, loss, "enumeration")
        for method in ("greedy", "hierarchical", "best_draw"):
            found = find(draws, loss, method)
            assert found.expected_loss >= best.expected_loss - 1e-12
            assert found.method == method and found.loss is loss


def test_a_function_is_a_method_too(draws):
    def alternate(draws, loss, task, *, step=2):
        return Candidate(np.array(["b", "a"] * draws.n_items)[: draws.n_items][::step].repeat(step)[:7])

    result = find(draws, "vi", alternate, step=1)
    np.testing.assert_array_equal(result.labels, [0, 1, 0, 1, 0, 1, 0])
    assert result.method == "alternate" and result.info is None
    assert result.expected_loss == pytest.approx(recomputed(result, draws), abs=1e-12)


def test_a_generator_is_a_seed(draws):
    one = pc.consensus_partition(draws, random_seed=np.random.default_rng(1), progressbar=False)
    xr.testing.assert_identical(without_seconds(one), without_seconds(find(draws)))


def test_fewer_clusters_than_asked_for_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="has 1 clusters, not 3"):
            find(np.zeros((4, 6), int), method="basic", n_clusters=3)
