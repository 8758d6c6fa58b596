from concurrent.futures import wait
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import posterior_consensus as pc
from benchmarks.records import records
from posterior_consensus.runtime import executor
from posterior_consensus.search.local_search import OnDraws, OnPairs
from posterior_consensus.search.runs import SearchRuns
from tests import reference
from tests.catalogue.posteriors import noisy_draws, random_draws
from tests.helpers import check_all
from tests.kernels.checks import compiled_only

search = import_module("posterior_consensus.search.engine")
partition = import_module("posterior_consensus.consensus.partition")
GOLDEN = Path(__file__).parents[1] / "golden"
FEW = ["vi", "binder", "nid"]  # by draws, by pairs, and a ratio
NOISY = noisy_draws(np.random.default_rng(8), 30, 30, 5, 0.6)
CLEAR = noisy_draws(np.random.default_rng(6), 30, 30, 4, 0.1)
COUNTS = ["n_starts", "n_starts_at_best", "n_scans", "n_moves", "n_merges", "n_chains", "n_zealous_updates", "n_splits"]


def find(draws, loss="vi", **options):
    return pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False, **options)


@pytest.mark.parametrize(("loss", "weighted"), [(loss, number % 2 == 0) for number, loss in enumerate(pc.LOSSES)])
def test_no_move_and_no_merge_improves_a_larger_answer(loss, weighted):
    rng = np.random.default_rng(1)
    draws = pc.as_partition_draws(
        noisy_draws(rng, 25, 20, 5, 0.5), weights=rng.exponential(size=25) if weighted else None
    )
    result = find(draws, loss, n_starts=1)
    around = np.unique(list(reference.neighbours(result.labels)), axis=0)
    assert result.expected_loss <= float(pc.expected_loss(draws, around, loss=loss)["expected_loss"].min()) + 1e-10


@pytest.mark.parametrize("loss", FEW)
def test_more_clusters_than_any_draw_has_and_no_more(loss):
    draws = random_draws(np.random.default_rng(2), 10, 30, 3)
    for n_clusters in (7, 30):
        assert find(draws, loss, n_clusters=n_clusters, n_starts=2).n_clusters == n_clusters
    assert find(draws[:4], loss, max_clusters="draws").n_clusters <= 3


def test_tables_widen_where_the_best_partition_has_more_clusters_than_any_draw():
    """Two items of a pair are always together, two pairs in about a third of the draws."""
    rng = np.random.default_rng(3)
    pairs = np.array([rng.permutation(12) % 3 for _ in range(150)]).repeat(2, axis=1)
    result = find(pairs, "binder", n_starts=2)
    np.testing.assert_array_equal(result.labels, np.arange(12).repeat(2))
    assert pc.as_partition_draws(pairs).n_clusters.max() == 3


@compiled_only
def test_more_than_256_clusters():
    truth = np.random.default_rng(4).permutation(np.arange(300) % 260)
    draws = np.tile(truth, (2, 1))
    result = find(draws, n_starts=1)
    np.testing.assert_array_equal(result.labels, reference.canonical(truth))
    assert result.expected_loss == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("loss", "n_items"), [("vi", 9), ("binder", 30), ("nid", 30)])
def test_info_tells_the_runs_and_fits_the_answer(loss, n_items):
    draws = noisy_draws(np.random.default_rng(5), 30, n_items, 5, 0.6)
    result = find(draws, loss, n_agree=100)
    info = result.info
    losses = np.array(info.expected_losses)
    assert info.n_starts == len(losses) >= 16
    assert info.n_starts_at_best == np.sum(losses <= losses.min() + 1e-10) >= 1
    np.testing.assert_array_equal(info.trace, np.minimum.accumulate(losses))
    assert result.expected_loss == pytest.approx(info.trace[-1], abs=1e-12)
    assert result.expected_loss == pytest.approx(
        reference.expected(result.labels.values, draws, reference.LOSSES[loss]), abs=1e-12
    )
    assert all(isinstance(getattr(info, name), int) and getattr(info, name) >= 0 for name in COUNTS)
    assert info.n_scans >= info.n_starts_at_best and info.seconds > 0


@compiled_only
@pytest.mark.parametrize("loss", FEW)
def test_single_cluster_counts_as_a_run(loss):
    draws = np.random.default_rng(3).integers(0, 6, (60, 40))
    result = find(draws, loss, max_clusters=3)
    assert result.info.n_starts_at_best >= 1
    assert result.expected_loss == pytest.approx(result.info.trace[-1], abs=1e-12)


@compiled_only
def test_a_search_ends_where_runs_agree_and_more_runs_are_no_worse():
    def allocations(*arguments, **options):
        return find(CLEAR, *arguments, **options).info.kinds.count("allocation")

    assert allocations() == 3 and allocations("binder") == 10
    assert allocations(n_agree=5) == 6 and allocations(n_agree=100, n_starts=6) == 6
    noisy = noisy_draws(np.random.default_rng(5), 30, 40, 8, 0.6)
    few, many = (find(noisy, "vi", n_starts=n, n_agree=100) for n in (1, 12))
    assert many.expected_loss <= few.expected_loss + 1e-12


@compiled_only
@pytest.mark.parametrize("loss", ["one_minus_ari", "information_distance"])
def test_losses_that_are_not_linear_start_from_three_cuts_of_a_tree_too(loss):
    rugged = noisy_draws(np.random.default_rng(12), 300, 60, 8, 0.75)
    few, many = (find(rugged, loss, n_agree=number, n_perturbations=0) for number in (3, 100))
    assert 1 <= many.info.kinds.count("tree") <= 3 and few.info.n_starts < many.info.n_starts
    assert many.expected_loss <= few.expected_loss + 1e-12
    assert min(many.info.expected_losses) == pytest.approx(many.expected_loss, abs=1e-12)
    assert find(CLEAR, loss).info.n_starts_at_best >= 3


@compiled_only
@pytest.mark.parametrize(("loss", "n_items"), [("vi", 40), ("binder", 8), ("binder", 40), ("one_minus_ari", 8)])
def test_number_of_threads_does_not_matter(loss, n_items, monkeypatch):
    draws = noisy_draws(np.random.default_rng(7), 90, n_items, 6, 0.6)
    alone = find(draws, loss)
    monkeypatch.setattr(search, "_LITTLE", (0, 0))
    results = [alone] + [find(draws, loss, n_jobs=n_jobs) for n_jobs in (1, 2, 5, -1)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].labels, other.labels)
        assert replace(results[0].info, seconds=0) == replace(other.info, seconds=0)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_starts_are_runs_too_and_the_answer_is_no_worse(loss):
    best = find(NOISY, loss)
    names = ["x" if k else "y" for k in best.labels.values]
    starts = ["best_draw", "hierarchical", "spectral", best, best.labels, best.labels.values + 7, names]
    result = find(NOISY, loss, starts=starts, n_starts=1, n_agree=1)
    assert result.info.kinds.count("given") == len(starts) and result.info.kinds.count("allocation") == 1
    assert result.expected_loss <= best.expected_loss + 1e-12
    np.testing.assert_allclose(result.info.expected_losses[3:6], best.expected_loss, atol=1e-12)


@pytest.mark.parametrize("loss", FEW)
def test_starts_where_items_are_too_many_for_a_tree(loss, monkeypatch):
    monkeypatch.setattr("posterior_consensus.search.local_search._MOST_IN_TREE", 20)
    result = find(NOISY, loss, starts=["best_draw"], n_starts=2)
    assert result.info.n_starts >= 3
    assert result.expected_loss == pytest.approx(result.info.trace[-1], abs=1e-12)


@pytest.mark.parametrize("loss", [*FEW, "pear"])
def test_starts_of_any_number_of_clusters_keep_to_the_limits(loss):
    draws = noisy_draws(np.random.default_rng(9), 20, 15, 4, 0.5)
    starts = [np.arange(15), np.zeros(15, int)]
    assert find(draws, loss, n_clusters=4, starts=starts).n_clusters == 4
    assert find(draws, loss, max_clusters=2, starts=starts).n_clusters <= 2
    assert find(draws, loss, n_clusters=4, starts=starts, seconds=1e-9).n_clusters == 4


@compiled_only
@pytest.mark.parametrize(("loss", "n_items"), [("vi", 150), ("binder", 200)])
def test_a_number_far_from_the_optimum_is_no_worse_than_items_split_off_it(loss, n_items):
    draws = pc.as_partition_draws(records(n_items, 40))
    n_clusters = int(draws.n_clusters.max())
    free = find(draws, loss)
    labels = free.labels.values
    while (number := labels.max() + 1) < n_clusters:
        shared = np.flatnonzero(np.bincount(labels)[labels] > 1)
        split = np.tile(labels, (shared.size, 1))
        split[np.arange(shared.size), shared] = number
        expected = pc.expected_loss(draws, split, loss=loss)["expected_loss"].values
        labels, least = split[expected.argmin()], expected.min()
    assert free.n_clusters < n_clusters - 20
    for starts, kind in (([], "unconstrained"), ([free], "given")):
        found = find(draws, loss, n_clusters=n_clusters, n_starts=1, n_perturbations=0, starts=starts)
        assert found.expected_loss <= least + 1e-12
        assert ("unconstrained" in found.info.kinds) == (kind == "unconstrained") and kind in found.info.kinds


def test_the_optimum_of_any_number_merges_where_fewer_clusters_are_requested():
    draws = noisy_draws(np.random.default_rng(4), 40, 24, 6, 0.3)
    found, free = find(draws, "vi", n_clusters=3, n_starts=1), find(draws, "vi")
    assert found.n_clusters == 3 < free.n_clusters and "unconstrained" in found.info.kinds
    assert found.info.n_merges > 0


def test_bad_options_are_refused():
    cases = [
        ({"starts": ["nearest"]}, ValueError, "`starts`", "'nearest'", "hierarchical"),
        ({"starts": [[0, 1]]}, ValueError, "starts", "2", "30"),
        ({"starts": "best_draw"}, TypeError, "`starts`", "list", "'best_draw'"),
        *(({name: 0}, ValueError, f"`{name}`", "0") for name in ("seconds", "n_jobs", "n_starts", "n_agree")),
        ({"seconds": "5"}, TypeError, "`seconds`", "'5'"),
        ({"seconds": float("nan")}, ValueError, "`seconds`", "nan"),
        ({"n_jobs": 1.5}, TypeError, "`n_jobs`", "1.5"),
        ({"n_agree": True}, TypeError, "`n_agree`", "True"),
        ({"max_clusters": "all"}, ValueError, "`max_clusters`", "'all'", "'draws'"),
    ]
    check_all(lambda given: find(NOISY, **given), cases)


@pytest.mark.parametrize(("loss", "n_clusters"), [*((loss, None) for loss in FEW), ("vi", 3), ("binder", 3)])
def test_a_tiny_time_limit_gives_a_partition(loss, n_clusters):
    result = find(NOISY, loss, seconds=1e-9, n_clusters=n_clusters)
    np.testing.assert_array_equal(result.labels, reference.canonical(result.labels.values))
    assert n_clusters is None or result.n_clusters == n_clusters
    assert result.info.n_starts >= 1 and result.info.stopped == "seconds"
    assert result.lower_bound is None  # which would take as long again


def test_an_interrupt_of_the_bound_leaves_the_partition(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    whole = find(NOISY, "binder")
    assert whole.info.stopped == "" and whole.lower_bound is not None
    monkeypatch.setattr(partition, "quick_bound", interrupted)
    with pytest.warns(UserWarning, match="lower bound.*interrupted"):
        result = find(NOISY, "binder")
    np.testing.assert_array_equal(result.labels, whole.labels)
    assert result.lower_bound is None


@pytest.mark.parametrize(
    ("loss", "at", "threads"),
    [
        ("vi", 0, False),
        ("binder", 1, False),
        ("one_minus_ari", 3, False),
        ("binder", 0, True),
        ("vi", 3, True),
    ],
)
def test_an_interrupt_gives_the_best_so_far(loss, at, threads, monkeypatch):
    draws = noisy_draws(np.random.default_rng(8), 30, 30, 5, 0.8)
    calls = []

    def interrupted(function):
        def called(*arguments, **options):
            calls.append(arguments)
            if len(calls) == at + 1:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return called

    if threads:
        monkeypatch.setattr(search, "_LITTLE", (0, 0))
        monkeypatch.setattr(executor, "wait", interrupted(wait))
    else:
        for local in (OnDraws, OnPairs):
            monkeypatch.setattr(local, "_descend", interrupted(local._descend))
    with pytest.warns(UserWarning, match="search was interrupted"):
        result = find(draws, loss, n_starts=80, n_agree=100)
    assert 1 <= result.info.n_starts < 80 and result.info.stopped == "interrupted"
    assert result.expected_loss == pytest.approx(result.info.trace[-1], abs=1e-12)


@pytest.mark.parametrize("loss", FEW)
def test_draws_of_weight_zero_are_not_there(loss):
    rng = np.random.default_rng(3)
    labels = noisy_draws(rng, 60, 30, 5, 0.6)
    weights = rng.exponential(size=60) * (rng.random(60) < 0.6)
    some = find(pc.as_partition_draws(labels[weights > 0], weights=weights[weights > 0]), loss)
    others = find(pc.as_partition_draws(labels, weights=weights), loss)
    np.testing.assert_array_equal(some.labels, others.labels)
    np.testing.assert_allclose(some.info.expected_losses, others.info.expected_losses, atol=1e-12)


@pytest.mark.parametrize(("a", "weighted"), [(0.5, False), (1.0, True), (1.4, True)])
def test_both_forms_of_the_search_agree(a, weighted, monkeypatch):
    rng = np.random.default_rng(10)
    weights = rng.exponential(size=60) if weighted else None
    draws = pc.as_partition_draws(noisy_draws(rng, 60, 25, 4, 0.4), weights=weights)
    pairwise = find(draws, pc.binder(a))
    monkeypatch.setattr(search, "_WORTH_A_MATRIX", 0)
    assert find(draws, pc.binder(a)).expected_loss == pytest.approx(pairwise.expected_loss, abs=1e-12)


@compiled_only
@pytest.mark.parametrize("loss", ["nid", "information_distance", "jaccard"])
def test_nearly_equal_losses_do_not_cycle(loss):
    """Every draw sets a different item apart, so that all moves are worth the same but for rounding."""
    n_items = 150
    draws = np.eye(n_items, dtype=int)
    result = find(draws, loss, n_starts=1)
    assert np.isfinite(result.expected_loss)
    assert result.info.n_scans < 20 * (result.info.n_starts + result.info.n_perturbations)


@compiled_only
def test_no_one_sample_of_the_draws_decides_where_runs_for_a_ratio_end():
    """A sample of 128 draws, the same for all runs, once led all of them to 0.40115."""
    labels = np.load(GOLDEN / "dpmm_draws.npz")["labels"]
    rng = np.random.default_rng(323)
    draws = labels[np.ix_(rng.permutation(1000), rng.choice(1000, 25, replace=False))]
    found = [pc.consensus_partition(draws, loss="nvi", random_seed=seed, progressbar=False) for seed in range(4)]
    assert min(result.expected_loss for result in found) < 0.4006


def test_rounds_along_thresholds_search_without_constraints_only_if_there_is_no_such_start(monkeypatch):
    kinds, start_from = [], SearchRuns.start_from

    def noted(self, partitions, kind):
        kinds.append(kind)
        start_from(self, partitions, kind)

    monkeypatch.setattr(SearchRuns, "start_from", noted)
    draws = noisy_draws(np.random.default_rng(9), 20, 15, 4, 0.5)
    free = find(draws, "pear")
    for starts in ([], [free]):
        kinds.clear()
        find(draws, "pear", n_clusters=3, starts=starts)
        assert ("unconstrained" in kinds) == (not starts)


def test_rounding_of_many_scores_is_no_gain(rng):
    """Clusters of thousands of items, dissolved and made again, have the same loss but for the error of a long sum."""
    n, n_pairs = 50_000, 8
    truth = rng.choice(2 * n_pairs, n, p=rng.dirichlet(np.full(2 * n_pairs, 3.0)))
    runs = np.where(rng.random((40, n)) < 0.15, truth ^ 1, truth)
    is_joined = np.take_along_axis(rng.random((40, n_pairs)) < 0.3, runs // 2, axis=1)
    found = pc.consensus_partition(np.where(is_joined, runs & ~1, runs), seconds=60, random_seed=1, progressbar=False)
    assert found.info.stopped == ""
