"""How near new runs are to a partition: runs left out of the search, and what the errors allow for."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.diagnostics.chance import mean_chance

QUIET = {"random_seed": 1, "progressbar": False}
FIELDS = ("distance", "distance_error", "agreement", "agreement_error")
COLUMNS = ("to_consensus", "to_consensus_error", "agreement", "agreement_error")


def made(n_runs, n_items, wrong, seed, k=3):
    rng = np.random.default_rng(seed)
    return np.where(
        rng.random((n_runs, n_items)) < wrong, rng.integers(k, size=(n_runs, n_items)), np.arange(n_items) % k
    )


def noisy(labels, seed=1):
    """The same runs, which call some items noise."""
    return np.where(np.random.default_rng(seed).random(labels.shape) < 0.2, -1, labels)


def agreement(partition, run):
    """Mean over items of the Jaccard similarity of their clusters in the partition and in the run."""
    here, there = np.equal.outer(partition, partition), np.equal.outer(run, run)
    return np.mean((here & there).sum(axis=1) / (here | there).sum(axis=1))


def test_each_run_is_compared_with_the_best_partition_of_the_others():
    """Means and errors as the formula has them, of all partitions of eight items."""
    labels = made(6, 8, 0.4, seed=2)
    runs = pc.as_runs(labels)
    best = pc.summarize(runs, **QUIET)
    known, unknown = np.zeros((2, 2, 6))
    for k, run in enumerate(labels):
        rest = pc.consensus_partition(pc.as_runs(np.delete(labels, k, axis=0)), method="enumeration").labels.values
        for partition, column in ((best.labels.values, known), (rest, unknown)):
            column[:, k] = pc.partition_loss(partition, run), agreement(partition, run)
    changes, new = unknown - known, best.new_runs
    np.testing.assert_allclose([new.distance, new.agreement], unknown.mean(axis=1), rtol=1e-10)
    assert changes[0].mean() > 0.1
    assert np.unique(labels, axis=0).shape[0] == 6  # so that every run is a partition of its own
    unseen = np.array([mean_chance(runs, pc.vi()), new.agreement]) / 36 / 10
    spread = (known.std(axis=1, ddof=1) + changes.std(axis=1, ddof=1)) / np.sqrt(6)
    expected = np.sqrt(spread**2 + (changes.mean(axis=1) / 2) ** 2 + unseen**2)
    np.testing.assert_allclose([new.distance_error, new.agreement_error], expected, rtol=1e-10)


@pytest.mark.parametrize(("n_runs", "noise"), [(5, -1), (11, None)])
def test_a_summary_and_a_comparison_of_layers_say_the_same(n_runs, noise):
    labels = made(n_runs, 12, 0.4, seed=3)
    runs = pc.as_runs(labels if noise is None else noisy(labels), noise=noise)
    own = pc.summarize(runs, **QUIET)
    row = pc.compare_layers({"a": runs}, **QUIET).to_dataframe().loc["a"]
    assert [getattr(own.new_runs, name) for name in FIELDS] == [row[name] for name in COLUMNS]
    assert own.new_runs.distance > own.ball.distances.mean()
    assert own.diagnosis.spread.distance == row["distance"]
    assert own.diagnosis.spread.distance_mcse == row["error"]
    assert pc.summarize(pc.as_layers({"a": runs, "b": runs}), **QUIET)["b"].new_runs == own.new_runs
    given = pc.compare_layers({"a": runs}, partitions={"a": own}, **QUIET).to_dataframe().loc["a"]
    assert given["to_consensus"] == row["to_consensus"]


def test_an_answer_that_no_run_gave_is_allowed_for():
    """Of N equal runs, two errors reach an answer in 2 / (N + 4) of all runs that is as far away as by chance."""
    runs = pc.as_runs(np.tile(np.arange(30) % 3, (10, 1)))
    summary, chance = pc.summarize(runs, **QUIET), mean_chance(runs, pc.vi())
    new, spread = summary.new_runs, summary.diagnosis.spread
    assert (new.distance, new.agreement, spread.distance) == (0, 1, 0)
    assert (2 * new.distance_error, 2 * new.agreement_error) == pytest.approx((chance * 2 / 14, 2 / 14))
    assert spread.distance_mcse == pytest.approx(chance * 2 / 14)


@pytest.mark.parametrize("other", [[0, 0, 0, 0, 1, 1], [0, 0, 1, 2, 3, 3]])
def test_agreement_counts_clusters_that_are_joined_as_those_that_are_split(other):
    """Of ten runs, four join or split two clusters; their four items have a Jaccard similarity of a half there."""
    runs = pc.as_runs([[0, 0, 1, 1, 2, 2]] * 6 + [other] * 4)
    given = pc.compare_layers({"a": runs}, partitions=[[0, 0, 1, 1, 2, 2]], progressbar=False).stability
    assert given["agreement"].item() == pytest.approx(1 - 0.4 * (4 if other[1] == other[2] else 2) / 6 / 2)


def test_components_are_searched_without_a_run():
    """Of pairs of records, Binder's loss is minimized by component; the correction is that of any search."""
    rng = np.random.default_rng(4)
    labels = np.where(rng.random((6, 400)) < 0.3, 200 + np.arange(400), np.arange(400) // 2)
    summary = pc.summarize(pc.as_runs(labels), loss="binder", **QUIET)
    assert summary.partition.info.n_components > 1
    assert summary.new_runs.distance > summary.partition.expected_loss


@pytest.mark.parametrize(
    ("runs", "options"),
    [
        (pc.as_partition_draws(made(20, 12, 0.3, seed=5)), {}),
        (pc.as_runs(made(1, 12, 0.3, seed=5)), {}),
        (pc.as_runs(made(20, 12, 0.3, seed=5)), {"method": "best_draw"}),
        (pc.as_runs(pc.as_partition_draws(made(4, 12, 0.3, seed=5), weights=[1, 2, 3, 4])), {}),
        (pc.as_runs([[0, 0, 0, 1, 1, 1]] * 8 + [[0, 1, 0, 1, 0, 1]] * 8, groups=[0] * 8 + [1] * 8), {}),
    ],
    ids=["draws", "one run", "another method", "weights", "groups that differ"],
)
def test_nothing_is_said_where_no_search_can_leave_runs_out(runs, options):
    summary = pc.summarize(runs, **options, **QUIET)
    assert summary.new_runs is None
    assert "new runs" not in dict(summary._parts()[1])


def test_two_runs_have_no_error():
    new = pc.summarize(pc.as_runs(made(2, 12, 0.3, seed=6)), **QUIET).new_runs
    assert new.distance > 0 and np.isnan(new.distance_error) and np.isnan(new.agreement_error)


def test_new_runs_are_stored_and_said():
    runs = pc.as_runs(made(8, 12, 0.4, seed=7))
    summary = pc.summarize(runs, **QUIET)
    again = pc.results.Summary.from_dataset(summary.to_dataset(), runs)
    assert again.new_runs == summary.new_runs
    [said] = [sentence for sentence in summary.findings() if "of a new run" in sentence]
    assert f"{summary.new_runs.distance:.1f} bits" in said and said in summary.methods_text()


def test_many_items_are_searched_by_a_sample(monkeypatch):
    """Both the correction and its error, whatever the order of the runs."""
    monkeypatch.setattr("posterior_consensus.diagnostics.new_runs._ITEMS", 20)
    labels = made(6, 40, 0.5, seed=8)
    one, other = (pc.summarize(pc.as_runs(rows), **QUIET).new_runs for rows in (labels, labels[::-1]))
    assert one == other
    assert 0 < one.distance < 2 * mean_chance(pc.as_runs(labels), pc.vi())
