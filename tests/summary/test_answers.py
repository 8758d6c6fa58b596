"""What a summary says of further answers, and of a consensus that hides what the draws hold."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.cli import as_json

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
FIRST = np.repeat([0, 1, 2], [20, 12, 8])
SECOND = np.repeat([0, 3, 1, 2], [10, 10, 12, 8])  # the first cluster in two


def draws_of(rng, chosen, noise=0.02):
    """Draws (chain, draw, item) near the partitions chosen, 0 or 1, in each draw of each chain."""
    labels = np.where(np.asarray(chosen)[..., np.newaxis] == 0, FIRST, SECOND)
    stray = rng.random(labels.shape) < noise
    return np.where(stray, rng.integers(4, size=labels.shape), labels)


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(1)
    return pc.summarize(draws_of(rng, rng.random((4, 200)) < 0.3), random_seed=1, progressbar=False)


def test_two_answers_are_told_with_what_differs(two):
    said = two.findings()
    at = next(k for k, sentence in enumerate(said) if sentence.startswith("Two modes"))
    assert "every chain visits both" in said[at] and "weights" in said[at]
    first, second = (f"{weight:.0%} of the draws" for weight in two.answers.weights.values)
    assert said[at + 1] == f"The first mode ({first}) is the partition above."
    assert said[at + 2] == f"In the second mode ({second}), cluster 0 splits into clusters of 10 and 10."
    assert (
        f"2, with {first.split()[0]}" in str(two)
        and "Wasserstein" in two.methods_text()
        and "@misc{balocchi2025" in two.bibtex()
    )


def test_weights_of_answers_are_those_of_the_draws(two):
    expected = np.mean(two.draws.labels[:, 0] == two.draws.labels[:, 15])  # 0.7, up to noise
    np.testing.assert_allclose(two.answers.weights[0], expected, atol=0.05)
    np.testing.assert_array_equal(two.answers.partitions[0], FIRST)
    assert two.seconds.keys() >= {"answers"} and as_json(two)["answers"]["status"] == "several modes"
    assert len(as_json(two)["answers"]["labels"]) == 2


def test_the_report_shows_the_answers(two, tmp_path):
    page = two.to_html(tmp_path / "report.html").read_text()
    assert "Further modes" in page and "In the second mode" in page


def test_answers_come_back(two):
    again = pc.Summary.from_dataset(two.to_dataset(), two.draws)
    assert again.findings() == two.findings() and again.answers.status == two.answers.status


def test_chains_in_different_modes_are_named_and_not_reported():
    chosen = np.zeros((4, 150))
    chosen[2:] = 1
    summary = pc.summarize(draws_of(np.random.default_rng(2), chosen), random_seed=1, progressbar=False)
    assert summary.answers.status == "chains in different modes"
    told = " ".join(summary.findings())
    told = told.lower()  # the two weigh the same, so that either may be the first
    assert "chains 0 and 1" in told and "chains 2 and 3" in told and "do not estimate probabilities" in told
    assert "Wasserstein" not in summary.methods_text() and "the chains do not mix between them" in str(summary)


def test_one_answer_is_not_spoken_of():
    rng = np.random.default_rng(3)
    summary = pc.summarize(draws_of(rng, np.zeros((4, 150)), noise=0.1), random_seed=1, progressbar=False)
    assert summary.answers.n_particles == 1
    assert not any("mode" in sentence for sentence in summary.findings())
    assert (
        "no second mode found (searched on 300 of the draws)" in str(summary)
        and "Wasserstein" not in summary.methods_text()
    )


def test_one_cluster_because_the_draws_disagree_says_what_to_do():
    rng = np.random.default_rng(4)
    draws = draws_of(rng, np.zeros((4, 100)), noise=0.75)
    summary = pc.summarize(draws, random_seed=1, progressbar=False)
    assert summary.consensus.n_clusters == 1
    told = " ".join(summary.findings())
    assert "because the draws disagree" in told
    assert all(word in told for word in ("most probable number is", "separate modes", "calibrated pair threshold"))
    assert "`" not in told


def test_chains_that_disagree_leave_it_open_whether_there_is_one_answer():
    tree = xr.open_datatree(EXAMPLES / "galaxies_not_converged.nc", engine="h5netcdf").load()
    summary = pc.summarize(tree, random_seed=1, progressbar=False)
    assert summary.diagnosis.status == "disagree" and summary.answers.status == "one mode"
    assert "one or several: undecided, because the chains disagree" in str(summary) and "no second mode" not in str(
        summary
    )
