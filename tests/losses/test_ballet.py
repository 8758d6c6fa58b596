"""BALLET's loss of runs that call items noise."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.losses import ballet
from posterior_consensus.problems.problem import Problem, as_partitions
from posterior_consensus.search import with_noise
from tests import reference

CASES = [(1.0, 1.0), (0.5, 1.0), (0.25, 0.5), (2.0, 1.6)]  # cost of noise, and of separating a pair


def random_runs(rng, n_items, weighted=False):
    """Labels of runs that often call items noise, -1, and the runs."""
    n_runs = int(rng.integers(2, 10))
    labels = rng.integers(0, rng.integers(1, 4), (n_runs, n_items))
    agree = rng.random(labels.shape) < rng.choice([0.0, 0.6])
    labels = np.where(agree, rng.integers(0, 3, n_items), labels)
    labels = np.where(rng.random(labels.shape) < rng.choice([0.1, 0.3, 0.5]), -1, labels)
    labels[0, 0], labels[-1, -1] = 0, -1
    runs = pc.as_runs(labels, noise=-1)
    weights = rng.random(n_runs) if weighted else np.ones(n_runs)
    return labels, replace(runs, samples=runs.samples.weighted(weights / weights.sum()))


@pytest.mark.parametrize(("noise", "a"), CASES)
def test_value_is_the_definition(noise, a):
    rng = np.random.default_rng(1)
    labels, runs = random_runs(rng, 7)
    others = random_runs(rng, 7)[0]
    expected = [[reference.ballet(one, other, noise, a) for other in labels] for one in labels]
    assert_allclose(pc.partition_loss(runs, loss=ballet(noise, a=a)), expected, rtol=1e-12)
    for one, other in zip(labels, others, strict=False):
        found = pc.partition_loss(one, other, loss=ballet(noise, a=a))
        assert found == pytest.approx(reference.ballet(one, other, noise, a), rel=1e-12)


@pytest.mark.parametrize("a", [1.0, 0.5])
def test_without_noise_it_is_binders_loss(a):
    draws = pc.as_partition_draws(np.random.default_rng(2).integers(0, 3, (20, 8)))
    options = {"random_seed": 1, "progressbar": False}
    ours, theirs = (pc.consensus_partition(draws, loss=one, **options) for one in (ballet(a=a), pc.binder(a)))
    assert_array_equal(ours.labels, theirs.labels)
    assert ours.expected_loss == theirs.expected_loss
    assert not ours.noise.any()
    assert theirs.noise is None


@pytest.mark.parametrize("seed", range(12))
def test_search_finds_the_minimum(seed):
    rng = np.random.default_rng(seed)
    labels, runs = random_runs(rng, int(rng.integers(2, 7)), weighted=seed % 2 == 1)
    noise, a = CASES[seed % 4]
    best = pc.consensus_partition(runs, loss=ballet(noise, a=a), random_seed=1, progressbar=False)
    distinct = list(reference.partitions_with_noise(labels.shape[1]))
    values = [
        sum(w * reference.ballet(one, run, noise, a) for w, run in zip(runs.weights, labels, strict=True))
        for one in distinct
    ]
    assert best.expected_loss == pytest.approx(min(values), abs=1e-12)
    listed = pc.consensus_partition(runs, loss=ballet(noise, a=a), method="enumeration", progressbar=False)
    assert listed.expected_loss == pytest.approx(min(values), abs=1e-12)
    assert listed.info.n_candidates == len(distinct)
    assert best.noise.values[runs.noise_share > 0.5].all()
    draw = pc.consensus_partition(runs, loss=ballet(noise, a=a), method="best_draw", progressbar=False)
    assert draw.expected_loss == pytest.approx(
        min(runs.weights @ row for row in pc.partition_loss(runs, loss=ballet(noise, a=a)).values)
    )


def test_the_majority_of_runs_decides():
    # Items 0 to 4 are together wherever they are in clusters; the last two are noise in 3 and 2 of 5 runs.
    labels = np.zeros((5, 7), int)
    labels[:3, 5], labels[:2, 6] = -1, -1
    runs = pc.as_runs(labels, noise=-1)
    best = pc.consensus_partition(runs, random_seed=1, progressbar=False)
    assert best.noise.values.tolist() == [False] * 5 + [True, False]
    assert best.loss == ballet()
    proof = pc.certify(runs, best, progressbar=False)
    assert_array_equal(proof.partition, best.labels)
    assert proof.to_dataframe()["n_clusters"].iloc[0] == best.n_clusters == 1


def test_an_item_on_which_the_others_disagree_is_noise():
    # Two clusters of ten; an item is in either in 3 of 10 runs, and noise in 4.
    labels = np.repeat([[0] * 10 + [1] * 10 + [-1]], 10, axis=0)
    labels[:3, -1], labels[3:6, -1] = 0, 1
    runs = pc.as_runs(labels, noise=-1)
    by_cost = {
        m: pc.consensus_partition(runs, loss=ballet(m), random_seed=1, progressbar=False).n_noise for m in (1, 2)
    }
    # Its 20 pairs cost 10 x 0.3 for the other cluster, and 10 x 0.3 for its own; noise costs m x 20 x (1 - 2 x 0.4).
    assert by_cost == {1: 1, 2: 0}


@pytest.mark.parametrize(("noise", "holds"), [(0.5, True), (1.0, True), (0.4, False)])
def test_it_is_a_metric_if_noise_costs_half_a_pair(noise, holds):
    loss = ballet(noise)
    assert loss.metric is holds
    distinct = np.array(list(reference.partitions_with_noise(4)))
    values = np.array([[reference.ballet(one, other, noise) for other in distinct] for one in distinct])
    over = (values[:, :, np.newaxis] + values[np.newaxis]).min(axis=1)
    assert np.all(over >= values - 1e-12) is np.bool_(holds)
    assert_array_equal(values == 0, np.eye(len(distinct), dtype=bool))
    assert not ballet(noise, a=0.9).metric


@pytest.mark.parametrize(
    "limits", [{"n_clusters": 1}, {"n_clusters": 3}, {"max_clusters": 1}, {"max_clusters": "draws"}]
)
def test_limits_count_clusters_without_noise(limits):
    labels, runs = random_runs(np.random.default_rng(5), 6)
    best = pc.consensus_partition(runs, **limits, random_seed=1, progressbar=False)
    number = limits.get("n_clusters")
    most = limits.get("max_clusters", number)
    most = int(runs.n_clusters.max()) if most == "draws" else most
    assert best.n_clusters == number if number else best.n_clusters <= most
    allowed = [
        one for one in reference.partitions_with_noise(6) if (max(one) + 1 == number if number else max(one) < most)
    ]
    least = min(reference.expected(one, labels, reference.ballet) for one in allowed)
    assert best.expected_loss == pytest.approx(least, abs=1e-12)


def test_bound_is_below_the_minimum():
    rng = np.random.default_rng(3)
    for weighted, _ in product((False, True), range(3)):
        _, runs = random_runs(rng, 5, weighted)
        best = pc.consensus_partition(runs, method="enumeration", progressbar=False)
        proof = pc.certify(runs, best, progressbar=False)
        assert proof.expected_loss == pytest.approx(best.expected_loss)
        assert 0 <= proof.lower_bound <= best.expected_loss + 1e-12


def test_a_partition_with_noise_names_it():
    labels = [[0, -1, 0, 1, 1, -1]] * 3
    best = pc.consensus_partition(pc.as_runs(labels, noise=-1), random_seed=1, progressbar=False)
    assert best.labels.values.tolist() == [0, -1, 0, 1, 1, -1]
    assert pc.partition_loss(best, [0, 2, 0, 1, 1, 3], loss="vi") == 0  # each item of noise is alone
    assert best.n_clusters == 2
    assert best.n_noise == 2
    assert best.cluster_sizes.values.tolist() == [2, 2]
    assert best.clusters == {0: [0, 2], 1: [3, 4]}
    assert best.with_names(["x", "y"]).named_labels.values.tolist() == ["x", "noise", "x", "y", "y", "noise"]
    assert best.to_dataframe().loc["noise", "size"] == 2
    again = pc.results.ConsensusPartition.from_dataset(best.to_dataset())
    assert again.noise.equals(best.noise)
    assert again.loss == best.loss
    assert pc.partition_loss(best, labels[0], loss="ballet") == 0
    assert pc.expected_loss(pc.as_runs(labels, noise=-1), best)["expected_loss"] == 0
    assert pc.partition_loss(best, [0, 1, 0, 2, 2, 3], loss="vi") == 0  # noise items are clusters of their own


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda runs: ballet(0.0), "`noise` must be a positive number"),
        (lambda runs: ballet(a=2.0), "`a` must"),
        (lambda runs: pc.consensus_partition(runs, loss="ballet", method="kcc"), "`method` must .* 'greedy'"),
        (lambda runs: pc.consensus_partition(runs, refine="jacobi"), "`refine` must be None"),
        (lambda runs: pc.credible_ball(runs, [0, 0, 1], loss="ballet"), "between two partitions"),
    ],
)
def test_what_has_no_noise_says_so(call, words):
    runs = pc.as_runs([[0, 0, -1], [0, 0, 1]], noise=-1)
    with pytest.raises(ValueError, match=words):
        call(runs)


def test_other_methods_have_no_noise():
    runs = pc.as_runs([[0, 0, -1], [0, 0, 1], [0, 0, -1]], noise=-1)
    best = pc.consensus_partition(runs, method="hierarchical", progressbar=False)
    assert best.loss == pc.vi()
    assert best.noise is None


def test_all_items_can_be_noise():
    labels = np.full((4, 3), -1)
    labels[0] = 0
    best = pc.consensus_partition(pc.as_runs(labels, noise=-1), random_seed=1, progressbar=False)
    assert best.noise.all()
    assert best.n_clusters == 0
    assert best.clusters == {}
    assert "3 of noise" in repr(best)


def test_scores_of_all_items_are_differences_of_the_loss():
    rng = np.random.default_rng(6)
    for noise, a in CASES:
        _, runs = random_runs(rng, 10, weighted=a != 1)
        loss = ballet(noise, a=a)
        problem = as_partitions(Problem(runs, loss))
        labels = np.unique(rng.integers(0, 4, problem.items.size + 1), return_inverse=True)[1].astype(np.int32)

        def value_of(own, runs=runs, problem=problem, loss=loss):
            return pc.expected_loss(runs, problem.whole(own), loss=loss)["expected_loss"].item() / loss.scale(10)

        all_items = np.arange(labels.size)
        sample = with_noise.SampleWithNoise(source=problem.source, loss=problem.loss, items=all_items, of=problem)
        every = with_noise.OnAllWithNoise(sample, lambda: False)
        scores = every._scored(labels)
        assert scores.value + problem.fixed / loss.scale(10) == pytest.approx(value_of(labels))
        for i in range(labels.size - 1):
            moved = labels.copy()
            moved[i] = scores.targets[i]
            assert scores.gains[i] == pytest.approx(value_of(labels) - value_of(moved), abs=1e-9)
        best, value = every._descend(labels)
        assert value + problem.fixed / loss.scale(10) == pytest.approx(value_of(best))
        assert value <= scores.value


def test_many_items_are_searched_by_a_sample(monkeypatch):
    rng = np.random.default_rng(7)
    truth = np.repeat([0, 1, 2, -1], 25)
    labels = np.where(rng.random((20, 100)) < 0.2, rng.integers(-1, 3, (20, 100)), truth)
    runs, options = pc.as_runs(labels, noise=-1), {"random_seed": 1, "progressbar": False}
    whole = pc.consensus_partition(runs, **options)
    monkeypatch.setattr(with_noise, "_MOST", 10)
    monkeypatch.setattr(with_noise, "_SAMPLE", 30)
    best = pc.consensus_partition(runs, **options)
    assert best.info.sample == [30, 20]
    assert_array_equal(best.labels, whole.labels)
    assert best.expected_loss == whole.expected_loss
    again = pc.consensus_partition(runs.take(rng.permutation(20)), starts=[truth], **options)
    assert_array_equal(again.labels, whole.labels)


def test_items_have_their_share_of_noise():
    labels = np.array([[0, 0, 1, 1, -1, -1], [0, 0, 1, 1, -1, 1], [0, 0, 1, -1, -1, -1], [1, 1, 0, 0, 0, -1]])
    runs = pc.as_runs(labels, noise=-1)
    best = pc.consensus_partition(runs, random_seed=1, progressbar=False)
    items = pc.item_uncertainty(runs, best)
    share = np.mean(labels == -1, axis=0)
    assert_allclose(items.noise, share)
    assert_array_equal(runs.noise_share, share)
    table = items.to_dataframe()
    assert table["cluster"].tolist() == [0, 0, 1, 1, "noise", "noise"]
    assert np.isnan(table["similarity"]).tolist() == [False] * 4 + [True] * 2
    assert table["nearest"].tolist() == [1, 1, 0, 0, 1, 1]  # never noise
    assert_allclose(items.nearest_similarity[4], np.mean([0.25, 0.25]))
    assert_allclose(items.membership, [1, 1, 1, 0.75, 0.75, 0.75])
    assert (items.noise_mcse > 0).all()

    found = pc.membership(runs, best)
    assert found.probabilities["consensus_cluster"].values.tolist() == [0, 1, "noise", "elsewhere"]
    assert_allclose(found.probabilities[:, 2], share)
    assert_allclose(found.mcse[:, 2], items.noise_mcse)
    assert_allclose(found.probabilities.sum(axis=1), 1)
    assert "in 2 clusters" in repr(found)
    assert_allclose(pc.membership(runs, [0, 0, 1, 1, 1, 1]).probabilities[:, 2], share)


def test_runs_count_clusters_without_noise():
    runs = pc.as_runs([[0, 0, -1, -1], [0, 1, 2, 2], [-1, -1, -1, 0]], noise=-1)
    assert runs.n_clusters.tolist() == [1, 3, 1]
    assert runs.backend.n_clusters.tolist() == [3, 3, 4]
    assert runs.clusters.values.tolist() == [[1, 1, 0, 0], [1, 2, 3, 3], [0, 0, 0, 1]]
    assert runs.clusters.starts.tolist() == [0, 2, 6, 8] and runs.noise_rows.tolist() == [0, 2, 6]
    assert runs.labels.tolist() == [[0, 0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 3]]
    assert runs.marked_labels().tolist() == [[0, 0, -1, -1], [0, 1, 2, 2], [-1, -1, -1, 0]]


def test_summary_speaks_of_noise():
    rng = np.random.default_rng(8)
    truth = np.repeat([0, 1, -1], [12, 10, 8])
    labels = np.where(rng.random((40, 30)) < 0.15, rng.integers(-1, 2, (40, 30)), truth)
    labels[:18, 0] = -1
    runs = pc.as_runs(labels, noise=-1)
    summary = pc.summarize(runs, random_seed=1, progressbar=False)
    found = summary.findings()
    assert found[:2] == [
        "The 22 items fall into 2 clusters, of 12 and 10 items.",
        "8 further items are noise, in no cluster.",
    ]
    assert found[2].startswith("1 item is called noise by 30% to 70% of the runs: 0")
    assert summary.ball.loss == pc.vi()
    assert "2 clusters and 8 items of noise" in summary.methods_text()
    assert "[buch2024]" in summary.methods_text()
    assert "2 clusters" in next(line for line in found if "within" in line)
    assert summary.to_dataframe().loc["noise", "size"] == 8
    assert summary.certificate.lower_bound <= summary.partition.expected_loss


def test_other_results_take_runs_with_noise():
    labels = np.random.default_rng(9).integers(-1, 2, (12, 8))
    runs, options = pc.as_runs(labels, noise=-1), {"random_seed": 1, "progressbar": False}
    best = pc.consensus_partition(runs, **options)
    along = pc.loss_by_n_clusters(runs, **options)
    assert along.loss == ballet()
    assert along.table["expected_loss"].min() >= best.expected_loss - 1e-12
    assert pc.cluster_merges(runs, best, progressbar=False).loss == ballet()
    ball = pc.credible_ball(runs, best)
    assert ball.loss == pc.vi()
    assert ball.n_clusters[0] == best.n_clusters
    inside = runs.n_clusters[ball.distances.values <= ball.radius]
    assert ball.n_clusters[2:] == (inside.min(), inside.max())
    again = pc.results.CredibleBall.from_dataset(ball.to_dataset())
    assert again.to_dataframe().equals(ball.to_dataframe())
    assert pc.compare_partitions(runs, {"best": best}).table["n_clusters"].item() == best.n_clusters
    assert pc.partial_partition(runs).labels.size == 8
    assert pc.particles(runs, 2, **options).n_particles == 2


def test_summary_names_the_clusters_of_the_most_frequent_number():
    """Of runs that divide a cluster, each in another way, which the partition leaves whole; some items are noise."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(80) // 20, (24, 1))
    labels[(labels == 0) & (rng.random(labels.shape) < 0.25)] = 4
    labels[:, :6] = np.where(rng.random((24, 6)) < 0.8, -1, labels[:, :6])
    summary = pc.summarize(pc.as_runs(labels, noise=-1), random_seed=1, progressbar=False)
    assert summary.alternative.n_clusters == 5 > summary.n_clusters
    assert set(summary.alternative.names) >= set(range(1, summary.n_clusters))
