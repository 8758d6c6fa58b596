"""What a summary says of further modes, and of a consensus that hides what the draws hold."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.answers import modes
from posterior_consensus.answers.particle_search import ParticleSearch
from posterior_consensus.cli import summary_as_json
from posterior_consensus.summary import steps

EXAMPLES = Path(__file__).parents[2] / "posterior_consensus" / "example_data"
FIRST = np.repeat([0, 1, 2], [20, 12, 8])
SECOND = np.repeat([0, 3, 1, 2], [10, 10, 12, 8])  # the first cluster in two


def summary_of(seed, chosen, noise=0.02):
    """Of draws (chain, draw, item) near the partitions chosen, 0 or 1, in each draw of each chain."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.asarray(chosen)[..., np.newaxis] == 0, FIRST, SECOND)
    stray = rng.random(labels.shape) < noise
    draws = np.where(stray, rng.integers(4, size=labels.shape), labels)
    return pc.summarize(draws, random_seed=1, progressbar=False)


@pytest.fixture(scope="module")
def two():
    return summary_of(1, np.random.default_rng(1).random((4, 200)) < 0.3)


def test_two_modes_are_told_with_what_differs(two, told):
    told("two modes", two)
    assert "@misc{balocchi2025" in two.bibtex()


def test_weights_of_modes_are_those_of_the_draws(two):
    expected = np.mean(two.draws.labels[:, 0] == two.draws.labels[:, 15])  # 0.7, up to noise
    np.testing.assert_allclose(two.modes.weights[0], expected, atol=0.05)
    np.testing.assert_array_equal(two.modes.partitions[0], FIRST)
    assert two.seconds.keys() >= {"modes"} and summary_as_json(two)["modes"]["status"] == "several modes"
    assert len(summary_as_json(two)["modes"]["labels"]) == 2
    again = pc.results.Summary.from_dataset(two.to_dataset(), two.draws)
    assert again.findings() == two.findings() and again.modes.status == two.modes.status


@pytest.mark.parametrize("share", [0.014, 0.031, 0.4])
def test_shares_are_of_all_draws(share):
    second = np.random.default_rng(5).permuted(np.arange(3_000) < share * 3_000).reshape(4, 750)
    summary = summary_of(5, second)
    assert summary.modes.n_particles == 2 and summary.modes.n_draws_searched == 3_000
    np.testing.assert_allclose(summary.modes.weights, [1 - share, share], rtol=1e-12)
    np.testing.assert_array_equal(summary.modes.assignment, second.ravel())


def test_a_search_on_some_draws_says_on_how_many_and_gives_shares_of_all(monkeypatch):
    monkeypatch.setattr(steps, "_MOST_LABELS", 40 * 600)
    second = np.random.default_rng(5).permuted(np.arange(3_000) < 0.3 * 3_000).reshape(4, 750)
    summary = summary_of(5, second)
    np.testing.assert_allclose(summary.modes.weights, [0.7, 0.3], rtol=1e-12)
    assert summary.modes.n_draws_searched == 600 and summary.modes.assignment.size == 3_000
    assert any("600 of 3,000 draws" in sentence for sentence in summary.left_out())
    alone = summary_of(5, np.zeros((4, 750)))
    assert alone.modes.n_particles == 1 and alone.modes.least_share >= modes.FEWEST / 600
    assert "600 of 3,000 draws" in str(alone) and "600 of 3,000 draws" in alone.methods_text()
    again = pc.results.Summary.from_dataset(alone.to_dataset(), alone.draws)
    assert again.modes.n_draws_searched == 600 and str(again) == str(alone)


@pytest.mark.parametrize("reason", ["seconds", "interrupted"])
def test_a_search_that_ended_early_does_not_deny_modes(reason, still, monkeypatch, tmp_path):
    along = ParticleSearch.along

    def halted(self, *given):
        self._executor.halt(reason)
        return along(self, *given)

    monkeypatch.setattr(ParticleSearch, "along", halted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the search was interrupted
        summary = summary_of(1, np.random.default_rng(1).random((4, 200)) < 0.5)
    again = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    page = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    by = "time limit" if reason == "seconds" else "Ctrl-C"
    for said in (str(summary), str(again), summary.methods_text(), " ".join(summary.findings()), page):
        assert "none found" not in said and "no second" not in said and by in said
    assert summary_as_json(summary)["modes"]["status"] == "unknown"


@pytest.mark.parametrize("independent", [False, True])
def test_the_finding_gives_the_reason_of_the_line(independent, monkeypatch):
    """Also if there are too few draws or runs to find groups."""
    along = ParticleSearch.along

    def halted(self, *given):
        self._executor.halt("seconds")
        return along(self, *given)

    monkeypatch.setattr(ParticleSearch, "along", halted)
    rng = np.random.default_rng(1)
    draws = rng.integers(3, size=(8, 15)) if independent else np.repeat(rng.integers(3, size=(4, 2, 15)), 100, axis=1)
    found = pc.summarize(pc.as_runs(draws) if independent else draws, random_seed=1, progressbar=False).modes
    assert found.n_particles == 1 and found.stopped == "seconds" and "time limit" in found.verdict


def test_the_report_shows_the_modes(two, still, tmp_path):
    page = two.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    section = page[page.index(">Modes</h2>") :]
    assert "of the second mode" in page and section.index("<table") < section.index("The partitions of the modes")


def test_chains_in_different_modes_are_named_and_not_reported():
    summary = summary_of(2, np.repeat([[0, 0, 1, 1]], 150, axis=0).T)
    assert summary.modes.status == "chains in different modes"
    said = " ".join(summary.findings()).lower()  # the two weigh the same, so that either may be the first
    assert all(words in said for words in ("chains 0 and 1", "chains 2 and 3", "not estimate probabilities"))
    assert "Wasserstein" not in summary.methods_text() and "no chain visits both" in " ".join(str(summary).split())


def test_one_mode_is_not_spoken_of(told):
    summary = summary_of(3, np.zeros((4, 150)), noise=0.1)
    assert summary.modes.n_particles == 1
    told("one mode, searched for on some of the draws", summary)


def test_one_cluster_because_the_draws_disagree_says_what_to_do(told):
    summary = summary_of(4, np.zeros((4, 100)), noise=0.75)
    assert summary.partition.n_clusters == 1
    told("one cluster, because the draws disagree", summary)


def test_chains_that_disagree_leave_it_open_whether_there_is_one_mode(told):
    tree = xr.open_datatree(EXAMPLES / "galaxies_not_converged.nc", engine="h5netcdf").load()
    summary = pc.summarize(tree, random_seed=1, progressbar=False)
    assert summary.diagnosis.status == "disagree" and summary.modes.status == "unknown"
    told("galaxies, not converged", summary)


def test_weights_are_honoured(rng, told):
    one, other = np.repeat([0, 1, 2], 5), np.repeat([0, 1], [8, 7])
    first = rng.permuted(np.tile(np.arange(400) % 4 == 0, (4, 1)), axis=1)
    draws = np.where(first[..., np.newaxis], one, other)
    found = pc.summarize(draws, weights=np.where(first, 0.0, 1.0), random_seed=1).modes
    assert found.n_particles == 1 and found.distance == 0
    np.testing.assert_array_equal(found.partitions[0], other)
    heavy = np.where(first, 6.0, rng.random((4, 400)))
    summary = pc.summarize(draws, weights=heavy, random_seed=1)
    told("two modes of weighted draws", summary)
    np.testing.assert_array_equal(summary.modes.partitions, [one, 2 * other])  # as the consensus numbers clusters
    assert summary.modes.weights[0] == pytest.approx(heavy[first].sum() / heavy.sum(), rel=1e-12)


@pytest.mark.parametrize("lengths", [(10,) * 200, (1500, 12)])
def test_they_are_looked_for_where_chains_are_short(lengths, rng):
    total = sum(lengths)
    both = np.array([np.repeat([0, 1, 2], 5), np.repeat([0, 1], [8, 7])])
    at = {"chain": ("sample", np.repeat(np.arange(len(lengths)), lengths)), "draw": ("sample", np.arange(total))}
    draws = xr.DataArray(both[rng.integers(2, size=total)], dims=("sample", "obs"), coords=at)
    assert pc.summarize(draws, random_seed=1).modes.n_particles == 2
