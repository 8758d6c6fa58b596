"""How long a summary may take, what it says it left out, and how much work its look for further modes is."""

import json
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import rich.console
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.answers.particle_search import ParticleSearch
from posterior_consensus.cli import summary_as_json
from posterior_consensus.runtime import executor, progress
from posterior_consensus.summary import steps
from tests.helpers import Impatient

QUIET = {"random_seed": 1, "progressbar": False}


def noisy(n_items=200, n_draws=80, noise=0.3, seed=1):
    """Draws (chain, draw, item) around five clusters, each item astray by itself."""
    rng = np.random.default_rng(seed)
    astray = rng.random((4, n_draws // 4, n_items)) < noise
    return np.where(astray, rng.integers(5, size=astray.shape), np.arange(n_items) % 5)


def varied(seed=1):
    """Draws around five clusters, of which some have far more items astray than others."""
    rng = np.random.default_rng(seed)
    astray = rng.random((4, 60, 100)) < rng.uniform(0.02, 0.6, (4, 60, 1))
    return np.where(astray, rng.integers(5, size=astray.shape), np.arange(100) % 5)


def two_modes(n_items=200, n_draws=80, seed=1):
    """The same, two of the clusters being one in a third of the draws."""
    labels, joined = noisy(n_items, n_draws, 0.1, seed), np.random.default_rng(seed).random((4, n_draws // 4, 1)) < 0.3
    return np.where(joined & (labels == 1), 0, labels)


def test_no_time_leaves_out_what_can_be_and_says_so(still, tmp_path):
    summary = pc.summarize(noisy(), seconds=1e-9, **QUIET)
    assert summary.partition.info.stopped == "seconds" and summary.partition.labels.size == 200
    assert summary.certificate is None and summary.modes is None and {"certificate", "modes"} <= set(summary.cut)
    assert summary.excess is None
    assert summary.diagnosis.n_compared < 200
    sentences = summary.left_out()
    compared = f"pairs of {summary.diagnosis.n_compared} items"
    for part in (
        "search was stopped by the time limit",
        "No certificate",
        "No search for further modes",
        compared,
    ):
        assert any(part in sentence for sentence in sentences), part
    for text in (summary.methods_text(), str(summary)):
        assert all(sentence in " ".join(text.split()) for sentence in sentences)
    report = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No search for further modes was made" in report
    again = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    assert again.cut == summary.cut and again.modes is None and again.findings() == summary.findings()
    assert json.loads(json.dumps(summary_as_json(summary)))["modes"] is None


def test_time_enough_changes_nothing():
    free, limited = pc.summarize(noisy(60), **QUIET), pc.summarize(noisy(60), seconds=1e9, **QUIET)
    assert limited.cut == () and free.findings() == limited.findings()
    assert free.seconds.keys() == limited.seconds.keys()


def test_modes_are_left_out_if_that_is_asked():
    summary = pc.summarize(two_modes(), modes=False, **QUIET)
    assert summary.modes is None and summary.cut == () and "modes" not in summary.seconds
    assert summary.left_out() == ["No search for further modes was made, as requested."]
    assert "not searched for" in str(summary)
    assert pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws).modes is None


def test_the_clock_shares_out_what_is_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(executor.time, "monotonic", lambda: now[0])
    clock = executor.Clock(8.0)

    def work(seconds):
        now[0] += seconds
        return seconds

    assert clock.part(0.5) == 4.0 and clock("search", work, 3.0) == 3.0
    assert clock.part(0.2) == 1.0 and clock.within_limit("bound", work, 4.0) == 4.0 and clock.cut == []
    assert clock.within_limit("modes", work, 2.0) == 2.0 and clock.cut == ["modes"]  # until the time was over
    assert clock.within_limit("more", work, 2.0) is None and clock.cut == ["modes", "more"]
    assert clock.seconds == {"search": 3.0, "bound": 4.0, "modes": 2.0}
    free = executor.Clock(None)
    assert free.part(0.5) is None and free.within_limit("bound", work, 1e9) == 1e9 and free.cut == []


def test_a_look_for_modes_is_bounded_work(monkeypatch):
    searches = []

    def looking(self, *arguments):
        searches.append(self)
        return one_more(self, *arguments)

    one_more = ParticleSearch.one_more
    monkeypatch.setattr(ParticleSearch, "one_more", looking)
    monkeypatch.setattr(steps, "_EFFORT", steps._EFFORT._replace(most_work=1e5))
    summary = pc.summarize(noisy(3000, noise=0.6), **QUIET)
    assert summary.modes.n_searched == 300 and len(searches) == 1  # of two and three particles, only two were tried
    assert any("on 300 items, chosen at random" in sentence for sentence in summary.left_out())


def test_groups_are_searched_for_on_all_draws_that_are_said_to_be_searched(monkeypatch):
    numbers, one_more = [], ParticleSearch.one_more

    def looking(self, fewer, *arguments):
        numbers.append((len(fewer.partitions), fewer.losses.shape[1]))
        return one_more(self, fewer, *arguments)

    monkeypatch.setattr(ParticleSearch, "one_more", looking)
    summary = pc.summarize(varied(), **QUIET)
    np.testing.assert_array_equal(summary.modes.partitions[0], summary.partition.labels)
    assert summary.modes.n_particles == 1 and summary.modes.status == "one mode"
    assert numbers == [(1, summary.modes.n_draws_searched), (2, summary.modes.n_draws_searched)]


@pytest.mark.parametrize("n_items", [200, 3000])
def test_two_modes_are_found_among_some_of_the_items(n_items):
    summary = pc.summarize(two_modes(n_items), **QUIET)
    assert summary.modes.n_particles == 2 and summary.modes.partitions.shape[1] == n_items
    assert sorted(summary.modes.n_clusters.values) == [4, 5]


class Shown:
    """In place of rich's bar: what was shown."""

    def __init__(self, *_, **__):
        pass

    def add_task(self, description, **_):
        self.descriptions.append(description)

    def start(self):
        pass

    stop = update = lambda self, *_, **__: None


@pytest.mark.parametrize(
    ("function", "described"),
    [
        (pc.partition_density, {"Losses between draws", "Greedy search", "Peaks of the density"}),
        (lambda draws, **o: pc.partial_partition(draws, complete="vi", **o), {"Partial partition", "Unassigned items"}),
        (pc.consensus.random_perturbation_em, {"Random perturbation model"}),
        (pc.summarize, {"Greedy search", "Diagnosis"}),
    ],
)
def test_long_calls_show_how_far_they_are(function, described, monkeypatch):
    from rich import progress as rich_progress

    monkeypatch.setattr(Shown, "descriptions", [], raising=False)
    monkeypatch.setattr(rich_progress, "Progress", Shown)
    monkeypatch.setattr(progress, "Timer", Impatient)
    monkeypatch.setattr(progress, "_can_be_seen", lambda: True)
    draws = xr.DataArray(noisy(20, 40), dims=("chain", "draw", "item"))
    function(draws, random_seed=1)
    assert described <= set(Shown.descriptions)
    Shown.descriptions.clear()
    function(draws, random_seed=1, progressbar=False)
    assert Shown.descriptions == [] and not progress._screen.locked()


def test_progress_can_be_seen_in_terminals_and_notebooks(monkeypatch):
    for terminal, notebook in product((False, True), repeat=2):
        monkeypatch.setattr(rich.console.Console, "is_terminal", terminal)
        monkeypatch.setattr(rich.console, "_is_jupyter", lambda notebook=notebook: notebook)
        assert progress._can_be_seen() is (terminal or notebook)


def test_a_notebook_shows_percentages_and_keeps_nothing_to_see(monkeypatch):
    shown = []

    def display(data, **_):
        shown.append(data["text/plain"])
        return SimpleNamespace(update=display)

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "Timer", Impatient)
    assert list(progress.track(range(400), "Search", progressbar=True)) == list(range(400))
    assert shown[:2] == ["Search: 0%", "Search: 1%"] and shown[-2:] == ["Search: 100%", ""] and len(shown) < 110
    shown.clear()
    with progress.waiting("Work", progressbar=True):
        pass
    assert shown == ["Work ...", ""]
