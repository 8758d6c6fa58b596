"""summarize(): what it finds, what it says, and what it writes."""

import html.parser
import itertools
import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from tests.catalogue.posteriors import DEGENERATE, noisy_draws
from tests.helpers import check, written

DIMS = ("chain", "draw", "obs", "component")


def without(tree, *names):
    changed = tree.copy()
    changed["posterior"] = xr.DataTree(tree["posterior"].to_dataset().drop_vars(names))
    return changed


def test_soft_assignments_are_preferred_to_labels_drawn_from_them(posterior_tree, summary):
    assert isinstance(summary.draws.soft, pc.AllocationProbabilities)
    assert summary.source == "allocation probabilities `lp_z`; the labels `z` are sampled from them"
    labels = pc.summarize(posterior_tree, "z", random_seed=1)
    assert labels.source == "labels `z`" and labels.draws.soft is None
    named = pc.summarize(posterior_tree, "lp_z", random_seed=1)
    assert named.source == "allocation probabilities `lp_z`"
    assert pc.summarize(without(posterior_tree, "lp_z"), random_seed=1).source == "labels `z`"


def test_labels_from_one_are_drawn_from_the_probabilities_too(posterior_tree):
    changed = posterior_tree.copy()
    changed["posterior"] = xr.DataTree(posterior_tree["posterior"].to_dataset().assign(z=lambda d: d["z"] + 1))
    assert "sampled from them" in pc.summarize(changed, random_seed=1).source


def test_labels_of_something_else_are_not_passed_over(posterior_tree, rng):
    other = posterior_tree["posterior"].to_dataset().assign(z=lambda d: d["z"].copy(data=rng.permuted(d["z"], axis=-1)))
    changed = posterior_tree.copy()
    changed["posterior"] = xr.DataTree(other)
    with pytest.raises(ValueError, match="`var_name` must name the variable to take: the labels 'z' are not"):
        pc.summarize(changed)
    assert pc.summarize(changed, "z", random_seed=1).source == "labels `z`"


def test_nothing_to_summarise_says_how_to_go_on(posterior_tree):
    parts = [
        "has no label variable",
        "summarize(idata, model=model)",
        "mu ('chain', 'draw', 'component')",
    ]
    check(pc.summarize, without(posterior_tree, "z", "lp_z"), ValueError, parts)


def test_results_are_those_of_the_functions(summary):
    draws = summary.draws
    best = pc.consensus_partition(draws, random_seed=1)
    assert_array_equal(summary.consensus.labels, best.labels)
    assert summary.ball.radius == pc.credible_ball(draws, best).radius
    assert_array_equal(summary.items.probability, pc.item_uncertainty(draws, best).probability)
    assert summary.diagnosis.verdict == pc.diagnose(draws, best).verdict
    assert summary.certificate.expected_loss == pytest.approx(best.expected_loss)
    assert summary.observed.name == "y"
    assert set(summary.seconds) == {
        "draws",
        "consensus",
        "certificate",
        "credible ball",
        "items",
        "diagnosis",
        "answers",
    }


def test_a_loss_that_is_no_metric_has_a_ball_under_vi(posterior_tree):
    summary = pc.summarize(posterior_tree, loss="omari", random_seed=1)
    assert summary.certificate is None
    assert summary.ball.loss.name == "vi"
    assert "reached this loss" in repr(summary)


def test_it_prints_on_one_screen(summary):
    lines = repr(summary).splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 125
    for part in (
        "20 items (obs)",
        f"{summary.consensus.n_clusters} clusters",
        "allocation probabilities",
        "95% ball",
        summary.diagnosis.verdict[:30],
    ):
        assert part in repr(summary)
    assert "<table" in summary._repr_html_()


def test_findings_and_methods_have_the_numbers(summary):
    best = summary.consensus
    said = " ".join(summary.findings())
    assert f"{best.n_clusters} clusters" in said and summary.diagnosis.verdict in said
    text = summary.methods_text()
    sentences, references = text.split("\n\n")
    assert len(re.findall(r"[.](?= [A-Z])", sentences)) == 3
    for part in (f"{best.expected_loss:.4g} bits", f"{best.mcse:.2g}", f"{summary.ball.radius:.3g} bits", "100 draws"):
        assert part in sentences
    cited = set(re.findall(r"\[(\w+)\]", sentences))
    assert (
        cited
        == set(re.findall(r"\[(\w+)\]", references))
        == {*("gelfand1990", "dahl2022", "wade2018", "vehtari2021", "meila2007", "posterior_consensus")}
    )
    assert references.count("https://doi.org/") == 5


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    summary = pc.summarize(DEGENERATE[name], random_seed=1)
    assert repr(summary) and summary.findings() and summary.methods_text()


class Page(html.parser.HTMLParser):
    """Open tags and addresses of a page."""

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        self.sources += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_report_stands_alone(summary, tmp_path):
    path = summary.to_html(tmp_path / "report.html")
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert len(page.sources) >= 7 and all(source.startswith("data:image/png;base64,") for source in page.sources)
    captions = re.findall("<figcaption>(.*?)</figcaption>", path.read_text(encoding="utf-8"))
    order = [
        "co-clustering|similarity matrix",
        "credible ball",
        "Number of clusters",
        "Scalar summaries",
        "matrix of each chain",
    ]
    order += ["Map of the draws by their distances", "^Observed y, and each item", "^Observed y, cluster by cluster"]
    found = [next(k for k, one in enumerate(captions) if re.search(part, one)) for part in order]
    assert found == sorted(set(found)), captions
    text = " ".join(page.text)
    for sentence in summary.findings():
        assert sentence in text
    assert (
        "mean posterior similarity to the rest of its cluster" in text
    )  # the data, of which the tree has one variable
    assert "@import" not in path.read_text(encoding="utf-8")


def test_names_are_escaped_in_the_report(tmp_path):
    z = xr.DataArray(np.array([[0, 0, 1], [0, 1, 1]] * 4), dims=("draw", "<i>"), coords={"<i>": ["<item 1>", "&", "c"]})
    report = pc.summarize(z.expand_dims("chain"), random_seed=1).to_html(tmp_path / "report.html").read_text()
    assert "<item 1>" not in report and "&lt;item 1&gt;" in report


def test_figure_has_four_panels(summary):
    axes = summary.plot()
    assert axes.shape == (2, 2)  # a Figure would be drawn twice in a notebook
    letters = [text.get_text() for ax in axes.flat for text in ax.texts]
    assert [letter for letter in letters if letter in tuple("abcd")] == list("abcd")


def test_attached_to_the_posterior(posterior_tree, summary, tmp_path):
    attached = pc.attach(posterior_tree, summary)
    with xr.open_datatree(written(attached, tmp_path / "p.nc"), engine="h5netcdf") as tree:
        stored = tree["consensus"].to_dataset().load()
    assert_array_equal(stored["labels"], summary.consensus.labels)
    assert float(stored["ball_radius"]) == summary.ball.radius
    assert float(stored["partition_rhat"]) == summary.diagnosis.partition_rhat
    assert stored.attrs["source"] == summary.source


def test_posterior_of_arviz(posterior):
    summary = pc.summarize(posterior, random_seed=1)
    assert summary.source == "labels `z`"
    assert summary.observed.name == "y"
    attached = pc.attach(posterior, summary)
    assert type(attached) is type(posterior)
    assert_array_equal(attached["consensus"]["labels"], summary.consensus.labels)


def test_weights_and_item_dim(rng):
    z = xr.DataArray(noisy_draws(rng, 60, 8, 3, 0.1).reshape(2, 30, 8), dims=("chain", "draw", "obs"), name="z")
    weights = rng.random(60)
    summary = pc.summarize(z.to_dataset(), item_dim="obs", weights=weights, random_seed=1)
    assert summary.draws.samples.is_weighted
    assert "weighted draws" in repr(summary)


def test_further_answers_honour_weights(rng):
    one, other = np.repeat([0, 1, 2], 5), np.repeat([0, 1], [8, 7])
    draws = np.where((np.arange(1600) % 4 == 0)[:, np.newaxis], one, other).reshape(4, 400, 15)
    without_weight = np.where(np.arange(400) % 4 == 0, 0.0, 1.0)  # of all draws at one answer
    answers = pc.summarize(draws, weights=np.tile(without_weight, (4, 1)), random_seed=1).answers
    assert answers.n_particles == 1 and answers.distance == 0
    assert_array_equal(answers.partitions[0], other)
    heavy = np.where(np.arange(400) % 4 == 0, 6.0, rng.random((4, 400)))
    summary = pc.summarize(draws, weights=heavy, random_seed=1)
    answers = summary.answers
    assert "% of the weight) is the partition above" in " ".join(summary.findings())
    assert "of the draws" not in " ".join(summary.findings())
    assert_array_equal(answers.partitions, [one, other])
    assert answers.weights[0] == pytest.approx(heavy[:, ::4].sum() / heavy.sum(), abs=0.01)


def test_few_draws_cannot_tell_of_further_answers():
    facts = dict(pc.summarize([[0, 0, 1, 1, 1], [0, 1, 0, 1, 0]], random_seed=1)._parts()[1])
    assert facts["modes"] == "too few draws in a chain to find modes"


@pytest.mark.parametrize("lengths", [(10,) * 200, (1500, 12)])
def test_further_answers_are_looked_for_where_chains_are_short(lengths, rng):
    total = sum(lengths)
    modes = np.array([np.repeat([0, 1, 2], 5), np.repeat([0, 1], [8, 7])])
    at = {"chain": ("sample", np.repeat(np.arange(len(lengths)), lengths)), "draw": ("sample", np.arange(total))}
    draws = xr.DataArray(modes[rng.integers(2, size=total)], dims=("sample", "obs"), coords=at)
    assert pc.summarize(draws, random_seed=1).answers.n_particles == 2


def test_stacked_draws_that_hold_both(posterior_tree, summary):
    stacked = posterior_tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    assert pc.summarize(stacked, random_seed=1).source == summary.source


def test_a_calibrated_binder_loss_has_a_ball_under_vi(posterior_tree):
    summary = pc.summarize(posterior_tree, loss="binder", tau="auto", random_seed=1)
    assert summary.ball.loss.name == "vi" and summary.consensus.threshold is not None


def test_the_text_says_what_was_computed_from_the_probabilities(posterior_tree):
    binder, vi = (pc.summarize(posterior_tree, loss=loss, random_seed=1).methods_text() for loss in ("binder", "vi"))
    assert "given by their probabilities in each draw [gelfand1990]" in binder
    assert "sampled from their probabilities in each draw" in vi


def test_the_text_says_that_the_number_of_clusters_was_given(posterior_tree):
    given = {"n_clusters": "partition into 2 clusters of", "max_clusters": "partition into at most 2 clusters of"}
    for number, words in given.items():
        summary = pc.summarize(posterior_tree, random_seed=1, **{number: 2})
        assert getattr(summary.consensus.cluster_limits, number) == 2
        assert words in summary.methods_text()


def test_probabilities_and_bounds_are_not_rounded_to_something_untrue(rng):
    summary = pc.summarize(noisy_draws(rng, 60, 12, 3, 0.4), prob=0.995, random_seed=1)
    assert "99.5% ball" in repr(summary) and "99.5% credible ball" in summary.methods_text()
    barely = replace(
        summary, certificate=replace(summary.certificate, lower_bound=summary.consensus.expected_loss * 0.999999)
    )
    assert "more than 0.01% smaller" in repr(barely)


def test_one_of_each():
    summary = pc.summarize([[0]], random_seed=1)
    assert repr(summary).startswith("Summary: 1 item (item) in 1 cluster\n")
    assert "1 draw of 1 chain" in repr(summary) and summary.findings()[0] == "There is one cluster, of 1 item."


def test_items_of_two_names(rng, tmp_path):
    names = pd.MultiIndex.from_product([["a", "b", "c"], [1, 2]], names=["group", "number"])
    z = xr.DataArray(rng.integers(2, size=(2, 20, 6)), dims=("chain", "draw", "obs"))
    z = z.assign_coords(xr.Coordinates.from_pandas_multiindex(names, "obs"))
    report = pc.summarize(z, random_seed=1).to_html(tmp_path / "report.html")
    assert "(&#x27;a&#x27;, 1)" in report.read_text()


def test_observed_data_of_other_items_are_left_out(posterior_tree):
    other = posterior_tree["observed_data"].to_dataset().assign_coords(obs=np.arange(20))
    posterior_tree["observed_data"] = xr.DataTree(other)
    assert pc.summarize(posterior_tree, random_seed=1).observed is None


def test_sample_dims_are_names(posterior_tree):
    with pytest.raises(TypeError, match="`sample_dims` must be a name"):
        pc.summarize(posterior_tree, sample_dims=3)


def test_a_summary_is_a_partition(summary):
    assert_array_equal(pc.as_partition_draws(summary.labels.values[np.newaxis]).labels[0], summary.labels)
    assert pc.partition_loss(summary, summary.consensus) == 0
    assert pc.expected_loss(summary.draws, summary)["expected_loss"] == pytest.approx(summary.consensus.expected_loss)


def test_topics_are_no_items(rng):
    """Proportions that sum to one belong to components where parameters do so too."""
    topics = rng.dirichlet(np.ones(5), size=(2, 20, 3))
    weights = rng.dirichlet(np.ones(3), size=(2, 20))
    posterior = xr.Dataset({"topics": (("chain", "draw", "k", "word"), topics), "w": (("chain", "draw", "k"), weights)})
    check(pc.summarize, posterior, ValueError, ["has no label variable", "topics"])
    assert pc.summarize(posterior, "topics", random_seed=1).draws.n_items == 3


@pytest.mark.parametrize("kind", ["array", "DataArray", "dict"])
def test_soft_assignments_without_a_container(rng, kind):
    p = rng.dirichlet(np.ones(3), size=(2, 20, 6))
    data = {"array": p, "DataArray": xr.DataArray(p, dims=DIMS), "dict": {"p": p, "w": p[:, :, 0]}}[kind]
    summary = pc.summarize(data, "p" if kind == "dict" else None, random_seed=1)
    assert isinstance(summary.draws.soft, pc.AllocationProbabilities)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_nothing_but_the_time_depends_on_the_clock(loss, monkeypatch):
    """On a machine so busy that seconds pass whenever the clock is looked at."""
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(2), 200, 25, 4, 0.5).reshape(2, 100, 25))

    def told():
        summary = pc.summarize(draws, loss=loss, random_seed=1, progressbar=False)
        lines = [line for line in repr(summary).splitlines() if not line.startswith("  time")]
        return summary.to_dataset(), lines, summary.findings(), summary.methods_text()

    stored, *text = told()
    clock = itertools.count(0.0, 2.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    stored_again, *text_again = told()
    assert text_again == text
    xr.testing.assert_identical(stored_again.drop_attrs(), stored.drop_attrs())
    seconds = re.compile(r'"seconds": [^,}]*')
    differing = {key for key in stored.attrs if stored.attrs[key] != stored_again.attrs[key]}
    assert differing <= {"certificate_seconds", "summary_seconds", "info", "alternative_info"}
    for name in ("info", "alternative_info"):
        assert seconds.sub("", stored.attrs[name]) == seconds.sub("", stored_again.attrs[name])


def test_numpy_takes_results_for_their_labels(summary):
    for result in (summary, summary.consensus):
        labels = np.asarray(result)
        assert_array_equal(labels, summary.labels.values)
        assert labels.dtype == np.int32 and np.asarray(result, float).dtype == float
        assert not np.shares_memory(np.array(result), summary.labels.values)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("seed", "random_seed"), ("n_cluster", "n_clusters"), ("nstarts", "n_starts"), ("random_state", "random_seed")],
)
def test_unknown_arguments_near_a_known_one_name_it(wrong, meant):
    draws = [[0, 0, 1], [0, 1, 1]]
    for call in (pc.consensus_partition, pc.summarize, pc.loss_path):
        with pytest.raises(TypeError, match=rf"got `{wrong}`\. Did you mean `{meant}`\?"):
            call(draws, **{wrong: 1})


def test_unknown_arguments_of_summarize_and_of_methods():
    draws = [[0, 0, 1], [0, 1, 1]]
    for method, wrong, meant in [
        ("greedy", "weight", "weights"),
        ("kcc", "utilities", "utility"),
        ("rpm_em", "nstarts", "n_starts"),
        ("hierarchical", "link", "linkage"),
    ]:
        with pytest.raises(TypeError, match=rf"method '{method}' takes .*got `{wrong}`\. Did you mean `{meant}`"):
            pc.summarize(draws, method=method, **{wrong: 1})
    with pytest.raises(TypeError, match="method 'hierarchical' takes linkage; got `zzz`"):
        pc.consensus_partition(draws, method="hierarchical", zzz=1)
