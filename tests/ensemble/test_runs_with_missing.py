"""Runs of some items each: losses of the items in common, the search for their least mean, and what a summary says."""

from dataclasses import replace
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.answers.membership import own_membership
from posterior_consensus.diagnostics.chance import chance_losses, loss_without_structure
from posterior_consensus.diagnostics.groups import run_distances
from posterior_consensus.diagnostics.new_runs import _agreement
from posterior_consensus.ensemble import labels as labels_module
from posterior_consensus.ensemble.chains import largest_difference
from posterior_consensus.ensemble.expectation import loss_matrix
from posterior_consensus.runtime import memory
from posterior_consensus.search import large
from tests import reference
from tests.helpers import check, check_all
from tests.kernels.checks import compiled_only

QUIET = {"random_seed": 1, "progressbar": False}
LOSSES = {
    "vi": (pc.losses.vi(), reference.vi),
    "vi(a=1.6)": (pc.losses.vi(1.6), partial(reference.vi, a=1.6)),
    "binder": (pc.losses.binder(), reference.binder),
    "binder(tau=0.3)": (pc.losses.binder(tau=0.3), partial(reference.binder, a=1.4)),
}


def some_runs(seed, n_runs, n_items, share=0.3, noise=0.0, k=3):
    """Labels, NaN for missing items and -1 for noise; each item is in a run."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_items) % k
    labels = np.where(rng.random((n_runs, n_items)) < 0.3, rng.integers(k, size=(n_runs, n_items)), truth).astype(float)
    labels[rng.random(labels.shape) < noise] = -1
    gone = rng.random(labels.shape) < share
    gone[np.arange(n_items) % n_runs, np.arange(n_items)] = False
    labels[gone] = np.nan
    return labels


def alone(labels):
    """Labels without noise: each item of noise is a cluster of its own."""
    return np.where(labels == -1, 100 + np.arange(labels.shape[1]), labels)


def read(labels, **options):
    noise = {"noise": -1} if np.any(labels == -1) else {}
    return pc.as_runs(labels, missing=np.nan, **noise, **options)


def weighted(runs, weights):
    return replace(runs, samples=runs.samples.weighted(weights))


@pytest.mark.parametrize("noise", [0.0, 0.15])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_search_finds_the_least_of_all_partitions(loss, noise):
    record, definition = LOSSES[loss]
    for seed, n_items in enumerate((2, 5, 6, 7)):
        labels = some_runs(seed, 5, n_items, noise=noise)
        weights = np.random.default_rng(seed).dirichlet(np.ones(5)) if seed % 2 else np.full(5, 0.2)
        runs = weighted(read(labels), weights)
        every = np.array(list(reference.partitions(n_items)))
        by_run = reference.on_common(definition)
        expected = [reference.expected(one, alone(labels), by_run, weights) for one in every]
        assert_allclose(pc.expected_loss(runs, every, loss=record)["expected_loss"], expected, atol=1e-12)
        best = pc.consensus_partition(runs, loss=record, **QUIET)
        assert best.expected_loss == pytest.approx(min(expected), abs=1e-12)
        listed = pc.consensus_partition(runs, loss=record, method="enumeration", **QUIET)
        assert listed.expected_loss == pytest.approx(min(expected), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_eight_items_and_a_number_of_clusters(loss):
    record, definition = LOSSES[loss]
    labels = some_runs(8, 9, 8)
    every = np.array(list(reference.partitions(8)))
    expected = pc.expected_loss(read(labels), every, loss=record)["expected_loss"].values
    by_run = reference.on_common(definition)
    for at in range(0, len(every), 97):
        assert expected[at] == pytest.approx(reference.expected(every[at], labels, by_run), abs=1e-12)
    for number in (1, 3, 5, 8):
        best = pc.consensus_partition(read(labels), loss=record, n_clusters=number, **QUIET)
        assert best.n_clusters == number
        assert best.expected_loss == pytest.approx(expected[every.max(axis=1) + 1 == number].min(), abs=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_complete_runs_have_the_answers_that_they_have_otherwise(loss):
    labels = some_runs(3, 12, 40, share=0.0)
    with pytest.warns(UserWarning, match="`missing`"):
        found = pc.consensus_partition(read(labels), loss=loss, **QUIET)
    expected = pc.consensus_partition(pc.as_runs(labels.astype(int)), loss=loss, **QUIET)
    assert_array_equal(found.labels, expected.labels)
    assert found.expected_loss == pytest.approx(expected.expected_loss, rel=1e-12)
    assert found.mcse == pytest.approx(expected.mcse, rel=1e-9)


@compiled_only
@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_a_search_over_blocks_ends_where_no_item_gains(loss, monkeypatch):
    runs = read(some_runs(5, 20, 300, k=5))
    ordinary = pc.consensus_partition(runs, loss=loss, **QUIET)
    assert ordinary.info.sample is None
    monkeypatch.setattr(large, "_ITEMS", 60)
    found = []
    for aligned, in_block in ((7, 1), (64, 1), (256, 2**24)):
        monkeypatch.setattr(labels_module, "ALIGNED", aligned)
        monkeypatch.setattr(memory, "LABELS_IN_BLOCK", in_block)
        found.append(pc.consensus_partition(runs, loss=loss, **QUIET))
        assert found[-1].info.sample == [60, 20]
        assert_array_equal(found[-1].labels, found[0].labels)
    assert found[0].expected_loss <= ordinary.expected_loss * (1 + 1e-3)
    labels = found[0].labels.values
    moved = np.tile(labels, (300 * (labels.max() + 2), 1))
    rows = np.arange(len(moved))
    moved[rows, rows % 300] = rows // 300  # each item to each cluster, and alone
    values = pc.expected_loss(runs, moved, loss=loss)["expected_loss"].values
    assert values.min() >= found[0].expected_loss * (1 - 1e-9)


@pytest.mark.parametrize("loss", ["vi", "binder", "one_minus_ari", "nid", "nvi", "jaccard"])
def test_distances_of_runs_are_of_the_items_in_common(loss):
    labels = some_runs(2, 6, 9, k=4)
    record, definition = pc.losses.LOSSES[loss](), reference.LOSSES[loss]
    runs, expected = read(labels), np.zeros((6, 6))
    for one, other in combinations(range(6), 2):
        both = ~np.isnan(labels[one]) & ~np.isnan(labels[other])
        expected[one, other] = expected[other, one] = definition(labels[one][both], labels[other][both])
    assert_allclose(run_distances(runs, record), expected, atol=1e-12)
    partition = np.array([[0, 1, 2, 0, 1, 2, 0, 0, 0]])
    by_run = reference.on_common(definition)
    assert_allclose(loss_matrix(partition, runs, record)[0], [by_run(partition[0], run) for run in labels], atol=1e-12)


def test_many_clusters_are_counted_by_items():
    """Tables of more cells than sixteen an item, as of noise."""
    labels = some_runs(4, 6, 80, noise=0.6)
    runs, by_run = read(labels), reference.on_common(reference.vi)
    partition = np.arange(80) // 2
    expected = [by_run(partition, run) for run in alone(labels)]
    assert_allclose(loss_matrix(partition[np.newaxis], runs, pc.losses.vi())[0], expected, atol=1e-12)


def test_runs_without_common_items_count_as_the_others_do():
    runs = pc.as_runs([[0, 0, -1, -1], [-1, -1, 0, 1], [0, 1, 0, 1]], missing=-1)
    distances = run_distances(runs, pc.losses.vi())
    known = (distances[0, 2] + distances[1, 2]) / 2
    assert distances[0, 1] == distances[1, 0] == pytest.approx(known)


def test_what_random_labels_have():
    labels = some_runs(6, 3, 6)
    runs, by_run = read(labels), reference.on_common(reference.vi)
    both = ~np.isnan(labels[0]) & ~np.isnan(labels[1])
    mine, theirs = labels[0][both], labels[1][both]
    expected = np.mean([reference.vi(mine, np.array(order)) for order in permutations(theirs)])
    found = chance_losses(runs, np.array([0]), np.array([1]), pc.losses.vi())
    assert found[0] == pytest.approx(expected, abs=1e-12)
    none = np.mean([[by_run(one, run) for run in labels] for one in (np.zeros(6, int), np.arange(6))], axis=1).min()
    assert loss_without_structure(runs, pc.losses.vi()) == pytest.approx(none, abs=1e-12)


def test_how_surely_items_are_in_their_clusters():
    labels = np.array([[0, 0, 1, 1, np.nan], [0, 0, 0, 1, 1], [np.nan, 0, 1, 1, 1], [0, 0, 1, np.nan, 1]])
    partition = np.array([0, 0, 1, 1, 1])
    own = own_membership(read(labels), partition)
    assert_allclose(own.membership, [1, 1, 3 / 4, 1, 1])
    assert_allclose(own.misplaced, [0, 1, 0, 0])
    found = pc.item_uncertainty(read(labels), partition)
    # Item 2 with 3: runs 0 and 2 of 0, 1, 2; with 4: runs 2 and 3 of 1, 2, 3.
    assert_allclose(found.similarity.values[[0, 2]], [1, 4 / 6])
    assert_allclose(found.nearest_similarity.values[2], 2 / 7)  # run 1 only, which has both 0 and 1, of seven meetings
    assert_allclose(_agreement(read(labels), partition), [1, (4 * 2 / 3 + 1 / 5) / 5, 1, 1])


def test_noise_is_counted_in_the_runs_that_have_an_item():
    labels = np.array([[0, 0, -1, 1], [0, np.nan, -1, 1], [0, 0, np.nan, -1], [0, 0, 1, 1]])
    runs = read(labels)
    assert runs.n_clusters.tolist() == [2, 2, 1, 2]
    assert_allclose(pc.item_uncertainty(runs, [0, 0, 1, 1]).noise, [0, 0, 2 / 3, 1 / 4])
    assert runs.of_items(np.array([2, 0])).noise[:, 0].tolist() == [True, True, False, False]
    assert runs.take([2, 0]).n_clusters.tolist() == [1, 2]


def test_groups_differ_by_the_runs_that_have_both_items():
    labels = np.array([[0, 0, 1], [0, 0, np.nan], [0, 1, 1], [np.nan, 0, 0], [0, 1, np.nan], [0, 1, 1]])
    found = largest_difference(read(labels, groups=[0, 0, 0, 1, 1, 1]))
    assert (found.items, found.size) == ((1, 2), pytest.approx(0.5)) or found.size == pytest.approx(2 / 3)
    assert found.items == (0, 1) and found.shares == pytest.approx((0, 2 / 3))
    sizes, added = np.array([4, 5]), np.array([1 / 4, 3 / 5])  # one run with, and one without, added to each group
    assert found.mcse == pytest.approx(np.sqrt(np.sum(added * (1 - added) / sizes)))


def test_a_summary_says_how_many_pairs_never_met():
    labels = some_runs(1, 12, 30)
    labels[:, :3] = np.nan
    labels[0, 0], labels[1, 1], labels[2, 2] = 0, 1, 2  # three items, each in one run alone
    there = ~np.isnan(labels)
    never = sum(not np.any(there[:, i] & there[:, j]) for i, j in combinations(range(30), 2))
    runs = read(labels)
    assert (runs.met.never, runs.met.pairs) == (never, 435) and never >= 3
    check(lambda one: one.similarity(), runs, ValueError, [f"{never} of 435", "'0' and '1'", "Make more runs"])
    summary = pc.summarize(runs, **QUIET)
    low, high = there.sum(axis=1).min(), there.sum(axis=1).max()
    said = f"a run has {low} to {high} of 30 items; {never} pairs of 435 are in no run"
    assert said in " ".join(str(summary).split())
    assert summary.certificate is None and "not assessed" in summary.no_certificate
    assert summary.new_runs is not None and 0 < summary.new_runs.agreement <= 1
    assert "no bound" in str(summary)
    farthest = summary.ball.distances.values[summary.ball.distances.values <= summary.ball.radius].argmax()
    assert summary.ball.n_clusters[1] == runs.n_clusters[farthest]
    for function in (pc.posterior_similarity_matrix, partial(pc.stable_components, threshold=0.5)):
        check(function, runs, ValueError, [f"{never} of 435"])
    check(partial(pc.consensus_partition, loss="pear"), runs, ValueError, [f"{never} of 435"])


def test_pictures_and_the_report_are_of_the_pairs_that_met(tmp_path):
    labels = some_runs(1, 12, 20)
    labels[:, :2] = np.nan
    labels[0, 0], labels[1, 1] = 0, 1
    runs = read(labels, groups=np.arange(12) % 2)
    summary = pc.summarize(runs, **QUIET)
    summary.plot()
    pc.plot_draws_map(runs, summary.partition, ball=summary.ball)
    for by in (None, "chain"):
        pc.plot_psm(runs, summary.partition, by=by)
    path = tmp_path / "report.html"
    summary.to_html(path)
    assert f"{runs.met.never} pairs of 190 are in no run together" in path.read_text(encoding="utf-8")
    again = pc.results.Summary.from_dataset(summary.to_dataset(), runs)
    assert again.findings() == summary.findings()


def test_numbers_of_clusters_are_searched():
    runs = read(some_runs(3, 8, 7))
    every = np.array(list(reference.partitions(7)))
    losses = pc.expected_loss(runs, every, loss="vi")["expected_loss"].values
    found = pc.loss_by_n_clusters(runs, loss="vi", n_clusters=[1, 2, 4], **QUIET)
    expected = [losses[every.max(axis=1) == k - 1].min() for k in (1, 2, 4)]
    assert_allclose(found.table["expected_loss"], expected, atol=1e-12)


@pytest.mark.slow
def test_two_kinds_of_subsamples_are_found():
    """Half of the runs have three clusters, and half have two of these as one."""
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1, 2], 20)
    labels = np.array([np.where(truth == 2, 1, truth) if k % 2 else truth for k in range(40)]).astype(float)
    labels[rng.random(labels.shape) < 0.2] = np.nan
    found = pc.particles(read(labels), **QUIET)
    assert sorted(found.partitions.values.max(axis=1).tolist()) == [1, 2]
    assert_allclose(found.weights, [0.5, 0.5])
    assert_array_equal(pc.summarize(read(labels), **QUIET).modes.weights, [0.5, 0.5])


def test_a_planted_partition_is_found_from_subsamples_of_a_third():
    """Few pairs meet often, and some never; the truth is the consensus."""
    rng = np.random.default_rng(4)
    truth = np.repeat(np.arange(4), 30)
    labels = np.array([rng.permutation(4)[truth] for _ in range(25)]).astype(float)
    labels[rng.random(labels.shape) < 0.67] = np.nan
    kept = ~np.isnan(labels).all(axis=0)
    runs = read(labels[:, kept])
    for loss in ("vi", "binder"):
        best = pc.consensus_partition(runs, loss=loss, **QUIET)
        assert pc.partition_loss(best, truth[kept], loss="vi") == 0 and best.expected_loss == 0


def test_what_needs_all_items_is_refused_with_the_next_step():
    runs = read(some_runs(1, 8, 9))
    consensus = partial(pc.consensus_partition, runs, **QUIET)
    cases = [
        ({"loss": "nid"}, ValueError, "loss 'nid' needs runs that have all items", "loss='vi' or loss='binder'"),
        ({"method": "kcc"}, ValueError, "method 'kcc' needs", "method='greedy'"),
        ({"method": "spectral"}, ValueError, "method 'spectral' needs", "method='greedy'"),
        ({"loss": "binder", "method": "exact"}, ValueError, "method 'exact' needs", "method='greedy'"),
        ({"refine": "jacobi"}, ValueError, "refine='jacobi' needs", "Leave it out"),
        ({"loss": "ballet"}, ValueError, "loss 'ballet' needs", "loss='vi'"),
    ]
    check_all(lambda given: consensus(**given), cases)
    best = consensus()
    check(lambda one: pc.certify(one, best), runs, ValueError, ["A bound needs runs that have all items"])
    check(lambda one: pc.certify(one, best, loss="binder"), runs, ValueError, ["A bound needs"])
    check(pc.diagnose, runs, ValueError, ["`partition` must be given", "consensus_partition(runs)"])
    check(lambda one: pc.membership(one, best), runs, ValueError, ["needs runs that have all items", "credible_ball"])
    assert pc.diagnose(runs, best).status == "runs"


def test_layers_of_subsamples_have_their_stability():
    labels = np.vstack([some_runs(seed, 8, 40, k=k, share=0.2) for seed, k in ((1, 2), (2, 4))])
    runs = read(labels, groups=np.repeat(["coarse", "fine"], 8))
    table = pc.compare_layers(runs, **QUIET).to_dataframe()
    assert table["n_runs"].tolist() == [8, 8]
    for name, own in zip(("coarse", "fine"), (labels[:8], labels[8:]), strict=True):
        distances = [
            reference.vi(one[both], other[both])
            for one, other in combinations(own, 2)
            if (both := ~np.isnan(one) & ~np.isnan(other)).any()
        ]
        assert table["distance"][name] == pytest.approx(np.mean(distances), abs=1e-12)
