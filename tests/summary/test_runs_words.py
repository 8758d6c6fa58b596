"""No text or figure of independent runs speaks of posteriors, chains, draws or convergence."""

import re
from contextlib import suppress
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.runtime import memory
from posterior_consensus_command import main
from tests.catalogue.functions import functions_of

pytestmark = pytest.mark.xdist_group("words of runs")  # which share their summaries

QUIET = {"random_seed": 1, "progressbar": False}
FORBIDDEN = re.compile(
    r"posterior|\bprior|\bchains?\b|\bdraws?\b|mcmc|monte carlo|mcse|r-hat|\brhat|converge|sampler|burn.?in|credible"
    r"|probab|effective sample",
    re.IGNORECASE,
)
CODE = re.compile(r"`[^`]*`|\b[A-Z]\w*[a-z][A-Z]\w*|\b\w+_\w*|https?://\S+")
ALLOWED = re.compile(
    r"A share of runs is not a probability|Draw a box|in one mode with probability above"
    r"|partitions from posterior draws of clusterings|Point estimation and credible balls",  # titles of references
    re.IGNORECASE,
)
# Of chains, of strings without their runs, about priors, which runs have not, or with a weight for each of other draws.
OTHERS = {"sequential_distances", "from_a_strings", "prior_sensitivity", "plot_prior_sensitivity", "reweight"}


def said(text, where):
    """Fail if a text has words of chains; names of code are left out."""
    plain = ALLOWED.sub("", CODE.sub("", text))
    found = [plain[max(0, one.start() - 60) : one.end() + 40] for one in FORBIDDEN.finditer(plain)]
    assert not found, f"{where}: {found}"


def clustered(rng, truth, n_runs, changed):
    """Runs that find the same clusters but for a share of the items."""
    labels = np.tile(truth, (n_runs, 1))
    moved = rng.random(labels.shape) < changed
    labels[moved] = rng.integers(truth.max() + 1, size=int(moved.sum()))
    return labels


def of_two(rng):
    truth = np.repeat(np.arange(4), 10)
    return np.concatenate([clustered(rng, truth, 20, 0.05), clustered(rng, np.roll(truth // 2, 5), 20, 0.05)])


def few_clusters(rng, n_runs=40, changed=0.1):
    return clustered(rng, np.repeat(np.arange(4), 10), n_runs, changed)


def small_clusters(rng):
    return clustered(rng, np.repeat(np.arange(60), 2), 30, 0.05)


def with_noise(rng):
    labels = few_clusters(rng)
    labels[:, 35:] = np.where(rng.random((40, 5)) < 0.7, -1, labels[:, 35:])
    return labels


NAMES = [f"cell {k}" for k in range(40)]
TWO = ["leiden"] * 20 + ["louvain"] * 20
CASES = {
    "many": lambda rng: (few_clusters(rng, 150), {}),
    "some": lambda rng: (few_clusters(rng), {}),
    "few": lambda rng: (few_clusters(rng, 3), {}),
    "one": lambda rng: (few_clusters(rng, 1), {}),
    "equal": lambda rng: (few_clusters(rng, 8, 0.0), {}),
    "groups that agree": lambda rng: (few_clusters(rng), {"groups": TWO}),
    "groups that differ": lambda rng: (of_two(rng), {"groups": TWO}),
    "small groups that differ": lambda rng: (of_two(rng)[15:25], {"groups": TWO[15:25]}),
    "two kinds": lambda rng: (of_two(rng), {}),
    "small clusters": lambda rng: (small_clusters(rng), {}),
    "noise": lambda rng: (with_noise(rng), {"noise": -1}),
    "noise in groups": lambda rng: (with_noise(rng), {"noise": -1, "groups": TWO}),
}


def without_table(shown):
    """What a record prints above its table, whose columns are names of code."""
    return shown.partition("\n\n")[0]


def runs_of(name):
    labels, options = CASES[name](np.random.default_rng(7))
    return pc.as_runs(labels, **options)


@cache
def summary_of(name, **options):
    return pc.summarize(runs_of(name), **QUIET, **options)


def texts_of(axes):
    """Every text that the figure of some axes shows."""
    figure = np.ravel(axes)[0].figure
    figure.draw_without_rendering()
    shown = [text.get_text() for text in figure.findobj(plt.Text) if text.get_visible()]
    plt.close(figure)
    return "\n".join(shown)


def records(summary):
    """What a summary holds and what can be computed from its runs, by name."""
    runs, best = summary.draws, summary.partition
    yield from ((name, value) for name, value in vars(summary).items() if hasattr(value, "_parts"))
    yield "pairs", PairSimilarity.of(runs)
    yield "membership", pc.membership(runs, best)
    yield "links", pc.links(runs, best)
    yield "stable components", pc.stable_components(runs, 0.8)
    yield "merges", pc.cluster_merges(runs, best, progressbar=False)
    with suppress(ValueError):  # no run has exactly the consensus
        yield "cluster summary", pc.cluster_summary(runs, best)
    yield "comparison", pc.compare_partitions(runs, [best, np.zeros(runs.n_items, int)])
    if runs.n_draws > 1:
        yield "partial partition", pc.partial_partition(runs, 0.5, random_seed=1)
        yield "density", pc.partition_density(runs, **QUIET)
        yield "posteriors", pc.compare_posteriors(runs, runs.take(slice(0, runs.n_draws // 2)), n_particles=1, **QUIET)


@pytest.mark.parametrize("name", CASES)
def test_texts(name, tmp_path):
    summary = summary_of(name)
    for text in (without_table(repr(summary)), *summary.findings(), *summary.left_out(), summary.methods_text()):
        said(text, "summary")
    assert not re.search("gelman1992|vehtari2021|miller2014|gelfand1990", summary.methods_text())
    written = summary.to_csv(tmp_path / "tables")
    assert "comparison.csv" in {path.name for path in written.iterdir()}


@pytest.mark.parametrize("name", ["some", "equal", "groups that differ", "small clusters", "noise in groups"])
def test_what_is_said(name, approved):
    summary = summary_of(name)
    sentences, _, _ = summary.methods_text().rpartition("\n\n")
    shown = without_table(repr(summary)) + "\n"
    text = "\n".join([shown, *summary.findings(), "", re.sub(r"(?<=_consensus )\d[\w.]*", "VERSION", sentences)])
    approved("runs", name, text)


@pytest.mark.parametrize("name", CASES)
def test_records(name):
    for what, record in records(summary_of(name)):
        said(without_table(repr(record)), what)


@pytest.fixture(scope="module")
def all_functions():
    """Every function of draws, of runs in two groups."""
    return functions_of(pc.as_runs(few_clusters(np.random.default_rng(7))[:, ::6], groups=TWO), np.arange(7) // 2)


@pytest.mark.parametrize("name", sorted(functions_of(None, None).keys() - OTHERS))
def test_every_function(name, all_functions):
    found = all_functions[name]()
    for one in found if isinstance(found, list | tuple) else [found]:
        if hasattr(one, "_repr_html_") and hasattr(one, "_parts"):
            said(without_table(repr(one)), name)
            said(re.sub(r"(?s)<table style.*|<[^>]*>", " ", one._repr_html_()), name)
        elif isinstance(one, plt.Axes) or (isinstance(one, np.ndarray) and one.dtype == object):
            said(texts_of(one), name)


def test_a_summary_that_time_ends():
    summary = summary_of("groups that differ", seconds=1e-3)
    for text in (without_table(repr(summary)), *summary.findings(), *summary.left_out(), summary.methods_text()):
        said(text, "summary")
    assert "time limit" in " ".join(summary.left_out())


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    names = [f"{name}_{k}" for k, name in enumerate(TWO)]
    pd.DataFrame(of_two(np.random.default_rng(7)).T, NAMES, names).to_csv(path)
    for options in ([], ["--groups", "{}_*"], ["--seconds", "0.001"]):
        main([str(path), "--runs", "columns", *options])
        shown = capsys.readouterr()
        assert "40, taken as independent" in shown.out
        said(without_table(shown.out) + shown.err, options)


def test_warnings_and_errors(rng):
    labels = few_clusters(rng, 12)
    with pytest.warns(UserWarning, match="`missing`") as warned:
        pc.as_runs(labels, missing=-1)
    pairs = pc.as_runs(np.where(rng.random(labels.shape) < 0.1, 9, labels), missing=9)
    texts = [str(one.message) for one in warned]
    runs = pc.as_runs(labels)
    for call in (
        lambda: pc.membership(pairs, labels[0]),
        lambda: pc.as_partition_draws(runs, weights=[1.0, 2.0]),
        lambda: pc.as_partition_draws(runs, weights=[-1.0, *[1.0] * 11]),
        lambda: runs.take([12]),
        lambda: runs.take([]),
        lambda: pc.consensus_partition(runs, method="best_draw", n_clusters=9),
        lambda: pc.particles(runs, n_particles=13, **QUIET),
        lambda: pc.diagnostics.near_independence(runs),
        lambda: pc.agreement.agreement_path(runs),
    ):
        with pytest.raises((ValueError, IndexError)) as refused:
            call()
        texts.append(str(refused.value))
    for text in texts:
        said(text.removeprefix("`draws`"), "warning or error")
        assert "run" in text


def test_errors_for_want_of_memory(monkeypatch):
    labels = few_clusters(np.random.default_rng(7))
    best = pc.consensus_partition(labels, **QUIET)
    monkeypatch.setattr(memory, "budget", lambda: 1000)
    for call in (
        lambda runs: pc.partial_partition(runs, 0.5, random_seed=1),
        lambda runs: pc.consensus_partition(runs, **QUIET),
        lambda runs: pc.membership(runs, best),
        lambda runs: pc.partition_loss(runs),
        lambda runs: pc.consensus.fit_modes(runs, 1, **QUIET),
        lambda runs: pc.consensus_partition(runs, method="mcla", **QUIET),
    ):
        with pytest.raises(MemoryError) as refused:
            call(pc.as_runs(labels))
        said(str(refused.value), "error")


@pytest.mark.parametrize("name", ["some", "groups that differ"])
def test_stored_records_keep_their_words(name):
    summary = summary_of(name)
    for what, record in records(summary):
        if hasattr(record, "to_dataset"):
            again = type(record).from_dataset(record.to_dataset())
            said(without_table(repr(again)), what)
    again = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    assert again.findings() == summary.findings()


def figures(summary):
    """What draws each figure of runs, by name."""
    runs, best = summary.draws, summary.partition
    return {
        "summary": lambda: summary.plot(),
        "psm": lambda: pc.plot_psm(runs, best),
        "psm by group": lambda: pc.plot_psm(runs, best, by="chain"),
        "numbers": lambda: pc.plot_n_clusters(runs, best),
        "map": lambda: pc.plot_draws_map(runs, best, ball=summary.ball),
        "items map": lambda: pc.plot_items_map(runs, best),
        "traces": lambda: summary.diagnosis.plot(),
        "ball": lambda: summary.ball.plot(),
        "items": lambda: summary.items.plot(),
        "membership": lambda: pc.membership(runs, best).plot(),
        "links": lambda: pc.links(runs, best).plot(),
        "sizes": lambda: pc.plot_cluster_sizes(pc.links(runs, best)),
        "components": lambda: pc.stable_components(runs, 0.8).plot(),
        "dendrogram": lambda: pc.cluster_merges(runs, best, progressbar=False).plot(),
        "particles": lambda: pc.particles(runs, **QUIET).plot(),
        "density": lambda: pc.partition_density(runs, **QUIET).plot(),
        "partial partition": lambda: pc.partial_partition(runs, 0.5, random_seed=1).plot(),
        "by number": lambda: pc.loss_by_n_clusters(runs, n_clusters=[2, 3, 4], **QUIET).plot(),
        "path": lambda: pc.loss_path(runs, loss="binder", values=[0.2, 0.6], method="best_draw").plot(),
        "data": lambda: pc.plot_data(np.arange(80.0).reshape(40, 2), best),
    }


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("some", 0),
        ("equal", 1),
        pytest.param("noise in groups", 0, marks=pytest.mark.slow),
        pytest.param("groups that differ", 1, marks=pytest.mark.slow),
    ],
)
def test_figures(name, first):
    """Each without groups and with; with groups, those of a function alone are in `test_every_function` too."""
    for what, draw in list(figures(summary_of(name)).items())[first::2]:
        said(texts_of(draw()), what)


@pytest.mark.parametrize("name", ["some", "groups that differ", "small clusters"])
def test_reports(name, request, tmp_path):
    """That of groups with the pictures that answer clicks."""
    summary = summary_of(name)
    request.getfixturevalue("undrawn" if name == "groups that differ" else "still")
    page = summary.to_html(tmp_path / "report.html", progressbar=False).read_text(encoding="utf-8")
    page = re.sub(r"(?s)<(script|style).*?</\1>", "", page)
    alt = " ".join(re.findall(r'alt="([^"]*)"', page))
    said(alt + re.sub(r"(?s)<[^>]*>", "\n", page), "report")


@pytest.mark.parametrize(("n_runs", "n_second"), [(20, 8), (50, 8), (20, 10)])
def test_a_kind_of_eight_runs_is_found_as_particles_finds_it(n_runs, n_second):
    rng = np.random.default_rng(1)
    first = np.repeat(np.arange(6), [60, 40, 30, 30, 20, 20])
    labels = np.where(np.arange(n_runs)[:, np.newaxis] < n_second, np.where(first == 3, 2, first), first)
    stray = rng.random(labels.shape) < 0.003
    runs = pc.as_runs(rng.permutation(np.where(stray, rng.integers(6, size=labels.shape), labels)))
    of_runs, alone = pc.summarize(runs, **QUIET), pc.particles(runs, **QUIET)
    np.testing.assert_allclose(of_runs.modes.weights, np.array([n_runs - n_second, n_second]) / n_runs, rtol=1e-12)
    np.testing.assert_array_equal(of_runs.modes.weights, alone.weights)
    assert of_runs.modes.verdict == alone.verdict
