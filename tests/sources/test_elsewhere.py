"""What is read of labels that are not in memory gives the bits that labels in memory give."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.answers.particles import ParticleLimits
from posterior_consensus.consensus.refinement import refine_partition
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.ensemble.expectation import all_losses, loss_matrix, losses_of_draws, paired_losses
from posterior_consensus.losses import LOSSES
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.runtime import memory
from tests.catalogue.posteriors import noisy_draws, random_draws
from tests.elsewhere import elsewhere

KINDS = ("plain", "weighted", "unequal", "alone", "one item", "one draw")


def draws_of(kind):
    rng = np.random.default_rng(3)
    if kind == "one item":
        return pc.as_partition_draws(np.zeros((2, 5, 1), int))
    if kind == "one draw":
        return pc.as_partition_draws(rng.integers(3, size=(1, 1, 20)))
    if kind == "alone":  # tables of more cells than items are made another way
        labels = np.concatenate([np.tile(np.arange(70), (9, 1)), random_draws(rng, 9, 70, 60)])
        return pc.as_partition_draws(xr.DataArray(labels, dims=("sample", "item")))
    draws = pc.as_partition_draws(noisy_draws(rng, 80, 70, 5, 0.3).reshape(4, 20, 70))
    if kind == "weighted":
        return pc.as_partition_draws(draws, weights=np.r_[0.0, rng.exponential(size=79)])
    if kind == "unequal":
        return draws.take(np.r_[0:20, 20:33, 40:60, 60:71])
    return draws


def same(one, other):
    for a, b in zip(one.to_dataset().variables.values(), other.to_dataset().variables.values(), strict=True):
        assert_array_equal(a.values, b.values)
    assert one.to_dataset().attrs == other.to_dataset().attrs


@pytest.fixture(params=KINDS)
def both(request, monkeypatch):
    if request.param != "alone":
        monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "20KB")  # which does not hold the labels
    draws = draws_of(request.param)
    return draws, elsewhere(draws)


def test_losses_are_the_same_bits(both):
    draws, away = both
    rng = np.random.default_rng(1)
    partitions = pc.as_partition_draws(random_draws(rng, 5, draws.n_items, 4)).labels.astype(np.int32)
    rows, others = rng.integers(draws.n_draws, size=(2, 30))
    for record in map(as_loss, LOSSES):
        for one in (partitions, partitions[:1]):
            assert_array_equal(loss_matrix(one, away, record), loss_matrix(one, draws, record))
        assert_array_equal(losses_of_draws(rows, away, record), losses_of_draws(rows, draws, record))
        assert_array_equal(paired_losses(away, rows, others, record), paired_losses(draws, rows, others, record))
        assert_array_equal(all_losses(away, record), all_losses(draws, record))


def test_tables_that_are_many_go_through_the_blocks_in_parts(monkeypatch):
    draws = draws_of("plain")
    away, rows = elsewhere(draws), np.arange(80)
    monkeypatch.setattr(memory, "CELLS_AT_ONCE", 5000)
    assert_array_equal(all_losses(away, as_loss("vi")), all_losses(draws, as_loss("vi")))
    assert away.backend.passes > 3
    wanted = paired_losses(draws, rows, rows[::-1], as_loss("vi"))
    assert_array_equal(paired_losses(away, rows, rows[::-1], as_loss("vi")), wanted)


def test_results_are_the_same_bits(both):
    draws, away = both
    centre = draws.labels[-1]
    same(pc.credible_ball(away, centre), pc.credible_ball(draws, centre))
    same(pc.item_uncertainty(away, centre), pc.item_uncertainty(draws, centre))
    same(pc.diagnose(away, centre), pc.diagnose(draws, centre))
    same(pc.diagnose(away), pc.diagnose(draws))
    one = pc.expected_loss(away, [centre, centre])
    xr.testing.assert_identical(one, pc.expected_loss(draws, [centre, centre]))
    assert one["expected_loss"][0] == one["expected_loss"][1]
    refine = refine_partition
    xr.testing.assert_identical(refine(away, centre, passes=3), refine(draws, centre, passes=3))
    columns = np.random.default_rng(1).standard_normal((draws.n_items, 2))
    assert_array_equal(away.product(columns), draws.product(columns))
    assert_array_equal(away.row(0), draws.row(0))
    same(pc.diagnostics.sequential_distances(away), pc.diagnostics.sequential_distances(draws))


@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_parts_of_the_matrix_are_the_same_bits(kind):
    draws = draws_of(kind)
    away = elsewhere(draws)
    whole = pc.posterior_similarity_matrix
    for part in ({"items": [3, 1, 60]}, {"nearest": 4}, {"threshold": 0.4}):
        one, other = whole(away, **part), whole(draws, **part)
        assert_array_equal(*(m.toarray() if hasattr(m, "toarray") else m.values for m in (one, other)))


def test_of_many_items_pairs_are_of_a_sample(monkeypatch):
    monkeypatch.setattr(memory, "ITEMS_OF_ALL_PAIRS", 40)
    draws = draws_of("plain")
    away = elsewhere(draws)
    found = pc.diagnose(draws, draws.labels[0])
    same(pc.diagnose(away, draws.labels[0]), found)
    at, some = draws.of_some_items()
    alone = pc.diagnose(draws.of_items(at), draws.labels[0][at])
    assert found.n_compared == 40 and "of 40 of the 70 items, chosen at random" in str(found)
    assert found.partition_rhat == alone.partition_rhat and found.partition_ess == alone.partition_ess
    assert found.largest_difference.items == tuple(at[list(alone.largest_difference.items)])
    assert found.largest_difference.size == alone.largest_difference.size and found.difference_items == tuple(
        map(str, found.largest_difference.items)
    )
    assert set(map(int, found.pairs["pair_first"].values)) <= set(at.tolist())
    assert some.n_items == 40


def test_still_chains_are_told_though_a_sample_does_not_show_that_others_move(monkeypatch):
    monkeypatch.setattr(memory, "ITEMS_OF_ALL_PAIRS", 4)
    labels = np.tile(np.arange(50) % 2, (3, 40, 1))
    at, _ = pc.as_partition_draws(labels).of_some_items()
    moving = np.setdiff1d(np.arange(2, 50), at)[0]
    labels[1:, ::2, moving] = 2
    for draws in (pc.as_partition_draws(labels), elsewhere(pc.as_partition_draws(labels))):
        assert "chain 0 never moves" in pc.diagnose(draws).verdict


@pytest.fixture
def short_summary(monkeypatch):
    """A summary of more items than any of its parts takes."""
    monkeypatch.setattr(memory, "ITEMS_OF_ALL_PAIRS", 30)
    monkeypatch.setattr("posterior_consensus.summary.steps._EFFORT", ParticleLimits(most_labels=1000))
    for name, most in {"MOST_OF_PAIRS": 50, "SOME_OF_PAIRS": 20, "MOST_IN_ROW": 25}.items():
        for module in ("plots.frame", "summary.about_draws"):
            monkeypatch.setattr(f"posterior_consensus.{module}.{name}", most, raising=False)
    monkeypatch.setattr("posterior_consensus.summary.report.still._MOST_LISTED", 20)
    monkeypatch.setattr("posterior_consensus.bounds.certificate.BYTES_A_PAIR", 1e9)
    return pc.summarize(draws_of("plain"), random_seed=1, progressbar=False)


def test_a_summary_of_very_many_items_says_what_it_leaves_out(short_summary):
    assert len(short_summary.left_out()) == 5
    for text in (str(short_summary), " ".join(short_summary.findings()), short_summary.methods_text()):
        words = " ".join(text.split())
        assert "pairs of 30 items" in words and "Further modes were searched for on 30" in words
    restored = pc.results.Summary.from_dataset(short_summary.to_dataset(), short_summary.draws)
    assert restored.left_out() == short_summary.left_out()


@pytest.mark.slow
def test_pictures_of_very_many_items_are_of_some(short_summary, tmp_path):
    page = short_summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The first" in page and "certify" not in page
    assert sum("of 70, at random" in ax.get_xlabel() for ax in short_summary.plot().ravel()) == 3


def test_a_summary_reads_the_labels_eight_times_beside_its_search(monkeypatch):
    monkeypatch.setattr(memory, "ITEMS_OF_ALL_PAIRS", 30)
    monkeypatch.setattr("posterior_consensus.summary.steps._EFFORT", ParticleLimits(most_labels=1000))
    monkeypatch.setattr(memory, "LABELS_TO_BOUND", 1000)
    monkeypatch.setattr(memory, "LABELS_TO_SEARCH_AGAIN", 1000)  # halves are searched, too
    rng = np.random.default_rng(1)
    draws = pc.as_partition_draws(noisy_draws(rng, 700, 70, 3, 0.1).reshape(4, 175, 70))
    best = Candidate(pc.consensus_partition(draws, random_seed=1, progressbar=False).labels.values)
    away = elsewhere(draws)
    summary = pc.summarize(away, method=lambda *_, **__: best, random_seed=1, progressbar=False)
    assert summary.modes.n_particles == 1
    assert away.backend.passes + away.backend.reads <= 8  # one assigns all draws to the groups of some
    assert_array_equal(summary.modes.partitions[0], summary.partition.labels)


def test_items_of_very_many_clusters_need_no_table_of_them(monkeypatch):
    rng = np.random.default_rng(2)
    for weights in (None, np.r_[0.0, rng.exponential(size=59)]):
        draws = pc.as_partition_draws(noisy_draws(rng, 60, 90, 12, 0.4), weights=weights)
        for partition in (np.arange(90), draws.labels[3], np.arange(90) // 2, np.r_[0, np.ones(89, int)]):
            one, refined = pc.item_uncertainty(draws, partition), refine_partition(draws, partition)
            with monkeypatch.context() as patch:
                patch.setenv("POSTERIOR_CONSENSUS_MEMORY", "4KB")
                other = pc.item_uncertainty(draws, partition)
                xr.testing.assert_identical(refine_partition(draws, partition), refined)
            assert_array_equal(other.nearest, one.nearest)
            np.testing.assert_allclose(other.similarity, one.similarity, atol=1e-12)
            np.testing.assert_allclose(other.nearest_similarity, one.nearest_similarity, atol=1e-12)


def test_particles_of_very_many_items_are_those_of_a_sample_extended(monkeypatch):
    rng = np.random.default_rng(4)
    modes = np.arange(90) // 30, np.arange(90) % 2
    labels = np.stack(
        [np.where(rng.random(90) < 0.1, rng.integers(3, size=90), modes[int(t % 5 > 2)]) for t in range(160)]
    )
    draws = pc.as_partition_draws(labels.reshape(2, 80, 90))
    whole = pc.particles(draws, random_seed=1, progressbar=False)
    monkeypatch.setattr(memory, "ITEMS_OF_ALL_PAIRS", 40)
    monkeypatch.setattr("posterior_consensus.answers.particles._LONG", ParticleLimits(most_labels=1000))
    found = pc.particles(draws, random_seed=1, progressbar=False)
    assert found.n_searched == 40 and "searched on 40 of 90" in str(found)
    assert_array_equal(found.partitions, whole.partitions)
    assert found.distance == whole.distance and found.verdict == whole.verdict
    away = elsewhere(draws)
    same(pc.particles(away, random_seed=1, progressbar=False), found)
    assert away.backend.passes + away.backend.reads == 4
