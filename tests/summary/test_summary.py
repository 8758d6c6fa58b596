"""summarize(): what it finds, what it says, and what it writes."""

import html
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
from posterior_consensus.diagnostics.comparison import ExcessLoss
from posterior_consensus.plots.four_panels import number_or_sizes
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import check, scored_pairs

DIMS = ("chain", "draw", "obs", "component")
QUICK = {"random_seed": 1, "n_starts": 1, "modes": False, "progressbar": False}


def changed(tree, change):
    """The tree with another posterior."""
    other = tree.copy()
    other["posterior"] = xr.DataTree(change(tree["posterior"].to_dataset()))
    return other


def test_soft_assignments_are_preferred_to_labels_drawn_from_them(posterior_tree, summary):
    assert isinstance(summary.draws, pc.results.AllocationDraws)
    assert summary.source == "allocation probabilities `lp_z`; the labels `z` are sampled from them"
    labels = pc.summarize(posterior_tree, "z", **QUICK)
    assert labels.source == "labels `z`" and labels.draws.counted_draws is not None
    named = pc.summarize(posterior_tree, "lp_z", **QUICK)
    assert named.source == "allocation probabilities `lp_z`"
    without = changed(posterior_tree, lambda data: data.drop_vars("lp_z"))
    assert pc.summarize(without, **QUICK).source == "labels `z`"
    from_one = changed(posterior_tree, lambda data: data.assign(z=data["z"] + 1))
    stacked = posterior_tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    for other in (from_one, stacked):
        assert pc.summarize(other, **QUICK).source == summary.source


def test_labels_of_something_else_are_not_passed_over(posterior_tree, rng):
    permuted = rng.permuted(posterior_tree["posterior"]["z"], axis=-1)
    other = changed(posterior_tree, lambda data: data.assign(z=data["z"].copy(data=permuted)))
    with pytest.raises(ValueError, match="`var_name` .*'z' are not"):
        pc.summarize(other)
    assert pc.summarize(other, "z", **QUICK).source == "labels `z`"


def test_nothing_to_summarize_says_how_to_go_on(posterior_tree):
    nothing = changed(posterior_tree, lambda data: data.drop_vars(["z", "lp_z"]))
    parts = ["one dimension more); present: ", "summarize(idata, model=model)", "mu ('chain', 'draw', 'component')"]
    parts += ["infer_discrete", "`group`, such as 'posterior_predictive'"]
    check(pc.summarize, nothing, ValueError, parts)


def test_results_are_those_of_the_functions(summary):
    draws = summary.draws
    best = pc.consensus_partition(draws, random_seed=1)
    assert_array_equal(summary.partition.labels, best.labels)
    assert summary.ball.radius == pc.credible_ball(draws, best).radius
    assert_array_equal(summary.items.similarity, pc.item_uncertainty(draws, best).similarity)
    assert summary.diagnosis.verdict == pc.diagnose(draws, best).verdict
    assert summary.certificate.expected_loss == pytest.approx(best.expected_loss)
    assert summary.observed.name == "y"
    steps = {"draws", "consensus", "certificate", "credible ball", "items", "clusters", "diagnosis", "halves", "modes"}
    steps |= {"labels sampled anew"} if summary.draws.counted_draws is None else set()
    assert set(summary.seconds) == steps


def test_a_loss_that_is_no_metric_has_a_ball_under_vi(posterior_tree):
    for options in ({"loss": "one_minus_ari"}, {"loss": "binder", "tau": "auto"}):
        summary = pc.summarize(posterior_tree, **options, **QUICK)
        assert summary.ball.loss.name == "vi"
        assert (summary.partition.threshold is not None) == ("tau" in options)
        assert (summary.certificate is None) == (options["loss"] == "one_minus_ari")


def test_it_prints_on_one_screen_with_the_numbers(summary):
    lines = repr(summary).splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 100 and "<table" in summary._repr_html_()
    best, text = summary.partition, summary.methods_text()
    assert summary.diagnosis.status == "short" and summary.diagnosis.verdict == summary.findings()[0]
    assert f"{best.n_clusters} clusters" in summary.findings()[1]
    for part in (f"{best.expected_loss:.4f} bits", f"{best.mcse:.2g}", f"{summary.ball.radius:.3g} bits", "100 draws"):
        assert part in text


class Page(html.parser.HTMLParser):
    """Open tags of a page, and addresses outside it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.sources, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        self.sources += [value for key, value in attrs if key in ("src", "href") and not value.startswith("#")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


CAPTIONS = [
    *("similarity matrix.*number of clusters.*credible ball", "^Items: mean", "^Observed y, and each item"),
    *("^Observed y, cluster by cluster", "Scalar summaries", "matrix of each chain", "Each point is a draw"),
]


def test_report_stands_alone(summary, undrawn, tmp_path):
    report = summary.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(report)
    assert page.open == [] and "@import" not in report
    assert len(page.sources) >= 7 and all(source.startswith("data:image/png;base64,") for source in page.sources)
    captions = re.findall("<figcaption>(.*?)</figcaption>", report)
    found = [next(k for k, one in enumerate(captions) if re.search(part, one)) for part in CAPTIONS]
    assert found == sorted(set(found)), captions
    text = " ".join(page.text)
    assert all(sentence in text for sentence in summary.findings())


def test_a_report_compares_the_clusters_in_further_data(summary, undrawn, tmp_path):
    y = pd.Series(np.arange(summary.labels.size) % 7.0, name="dose <mg>")
    report = summary.to_html(tmp_path / "report.html", y=y).read_text(encoding="utf-8")
    section = report.partition("What differs between clusters: dose &lt;mg&gt;</h2>")[2].partition("<h2")[0]
    found = pc.contrast(summary, y=y)
    assert html.escape(found.in_words()) in section and "<figcaption>dose &lt;mg&gt; by cluster" in section
    assert section.count("<table") == 2 and "<dt>misclassification</dt>" in report
    with pytest.raises(ValueError, match=r"`y`.*\(3,\)"):
        summary.to_html(tmp_path / "other.html", y=np.ones(3))
    assert not (tmp_path / "other.html").exists()


def test_a_path_that_cannot_be_written_is_refused_before_the_work(summary, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "posterior_consensus.summary.report.page.page", lambda *_, **__: pytest.fail("the report was made")
    )
    with pytest.raises(FileNotFoundError, match="`path` .*'.*none/report.html'"):
        summary.to_html(tmp_path / "none" / "report.html")
    with pytest.raises(IsADirectoryError, match="`path` .*directory"):
        summary.to_html(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["draws", "pairs"])
def test_report_has_its_figures(kind, summary, tmp_path, request):
    if kind == "pairs":
        summary = pc.summarize(scored_pairs(3, {(0, 1): 0.9, (1, 2): 0.4}), random_seed=1, progressbar=False)
    drawn = summary.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    assert min(map(len, Page(drawn).sources)) > 5000
    request.getfixturevalue("undrawn")
    undrawn = summary.to_html(tmp_path / "b.html").read_text(encoding="utf-8")
    pictures = "<img[^>]*data:image/png;base64,[^>]*>"
    assert re.sub(pictures, "", drawn) == re.sub(pictures, "", undrawn)
    figures = len(re.findall(pictures, undrawn)) + 3  # the first is four images
    assert len(re.findall(pictures, drawn)) == 2 * figures  # on light, on dark


def test_names_are_escaped_in_the_report(still, tmp_path):
    z = xr.DataArray(np.array([[0, 0, 1], [0, 1, 1]] * 4), dims=("draw", "<i>"), coords={"<i>": ["<item 1>", "&", "c"]})
    report = pc.summarize(z.expand_dims("chain"), **QUICK).to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<item 1>" not in report and "&lt;item 1&gt;" in report
    names = pd.MultiIndex.from_product([["a", "b", "c"], [1, 2]], names=["group", "number"])
    z = xr.DataArray(np.arange(240).reshape(2, 20, 6) % 7 % 2, dims=("chain", "draw", "obs"))
    z = z.assign_coords(xr.Coordinates.from_pandas_multiindex(names, "obs"))
    report = pc.summarize(z, **QUICK).to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "a: 1" in report and "(&#x27;a&#x27;, 1)" not in report


def test_where_all_draws_have_the_same_number_their_sizes_are_shown():
    draws = pc.as_partition_draws([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 0]], weights=[1, 2, 1, 1])
    ax = pc.summarize(draws, **QUICK).plot()[0, 1]
    assert [float(bar.get_height()) for bar in ax.patches] == pytest.approx([2.6, 1.4])
    assert ax.get_title() == "Every draw has 2 clusters." and ax.get_ylabel() == "items"


def test_a_partition_may_have_more_clusters_than_every_draw():
    ax = number_or_sizes(pc.as_partition_draws([[0, 0, 1, 1], [0, 1, 1, 1]]), [0, 0, 1, 2])
    assert [bar.get_height() for bar in ax.patches] == [2.5, 1.5, 0.0]
    [own] = [line for line in ax.lines if line.get_label() == "partition"]
    assert own.get_xydata().tolist() == [[1, 2], [2, 1], [3, 1]]


def test_figure_has_four_panels(summary):
    axes = summary.plot()
    assert axes.shape == (2, 2)  # a Figure would be drawn twice in a notebook
    letters = [text.get_text() for ax in axes.flat for text in ax.texts]
    assert [letter for letter in letters if letter in tuple("abcd")] == list("abcd")


def test_posterior_of_arviz(posterior):
    summary = pc.summarize(posterior, item_dim="obs", weights=np.arange(1, 13), **QUICK)
    assert summary.source == "labels `z`" and summary.observed.name == "y" and summary.draws.samples.is_weighted
    attached = pc.attach(posterior, summary)
    assert type(attached) is type(posterior)
    assert_array_equal(attached["consensus"]["labels"], summary.partition.labels)
    assert attached["consensus"].attrs["source"] == summary.source


def test_observed_data_of_other_items_are_left_out(posterior_tree):
    other = posterior_tree["observed_data"].to_dataset().assign_coords(obs=np.arange(20))
    posterior_tree["observed_data"] = xr.DataTree(other)
    assert pc.summarize(posterior_tree, **QUICK).observed is None


def test_a_summary_is_a_partition(summary):
    assert_array_equal(pc.as_partition_draws(summary.labels.values[np.newaxis]).labels[0], summary.labels)
    assert pc.partition_loss(summary, summary.partition) == 0
    assert pc.expected_loss(summary.draws, summary)["expected_loss"] == pytest.approx(summary.partition.expected_loss)
    for result in (summary, summary.partition):
        labels = np.asarray(result)
        assert_array_equal(labels, summary.labels.values)
        assert labels.dtype == np.int32 and np.asarray(result, float).dtype == float
        assert not np.shares_memory(np.array(result), summary.labels.values)


def test_topics_are_no_items(rng):
    """Proportions that sum to one belong to components where parameters do so too."""
    topics = rng.dirichlet(np.ones(5), size=(2, 20, 3))
    weights = rng.dirichlet(np.ones(3), size=(2, 20))
    posterior = xr.Dataset({"topics": (("chain", "draw", "k", "word"), topics), "w": (("chain", "draw", "k"), weights)})
    check(pc.summarize, posterior, ValueError, ["no label variable", "topics"])
    assert pc.summarize(posterior, "topics", **QUICK).draws.n_items == 3


def test_soft_assignments_without_a_container(rng):
    p = rng.dirichlet(np.ones(3), size=(2, 20, 6))
    for data, name in ((p, None), (xr.DataArray(p, dims=DIMS), None), ({"p": p, "w": p[:, :, 0]}, "p")):
        assert isinstance(pc.summarize(data, name, **QUICK).draws, pc.results.AllocationDraws)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_nothing_but_the_time_depends_on_the_clock(loss, monkeypatch):
    """On a machine so busy that seconds pass whenever the clock is looked at."""
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(2), 80, 16, 4, 0.5).reshape(2, 40, 16))

    def told():
        summary = pc.summarize(draws, loss=loss, random_seed=1, progressbar=False)
        said = {"print": repr(summary), "findings": summary.findings()}
        stored = summary.to_dataset()
        attrs = {key: re.sub(r'"seconds": [^,}]*', "", str(stored.attrs.pop(key))) for key in list(stored.attrs)}
        for key in ("certificate_seconds", "summary_seconds"):
            attrs.pop(key)
        return said | attrs | {"methods": summary.methods_text(), "stored": stored}

    before = told()
    clock = itertools.count(0.0, 2.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    after = told()
    xr.testing.assert_identical(after.pop("stored"), before.pop("stored"))
    assert after == before


def test_unknown_arguments_near_a_known_one_name_it(posterior_tree):
    draws = [[0, 0, 1], [0, 1, 1]]
    meant = {"seed": "random_seed", "n_cluster": "n_clusters", "nstarts": "n_starts", "random_state": "random_seed"}
    for wrong, known in meant.items():
        for call in (pc.consensus_partition, pc.summarize, pc.loss_path):
            with pytest.raises(TypeError, match=rf"argument `{wrong}`\. .* `{known}`\?"):
                call(draws, **{wrong: 1})
    for method, wrong, known in [
        ("greedy", "weight", "weights"),
        ("kcc", "utilities", "utility"),
        ("rpm_em", "nstarts", "n_starts"),
        ("hierarchical", "link", "linkage"),
    ]:
        with pytest.raises(TypeError, match=rf"argument `{wrong}`\. .* `{known}`\? Method '{method}' takes "):
            pc.summarize(draws, method=method, **{wrong: 1})
    with pytest.raises(TypeError, match=r"`zzz`\. Method 'hierarchical' takes linkage"):
        pc.consensus_partition(draws, method="hierarchical", zzz=1)
    with pytest.raises(TypeError, match="`sample_dims` must be a name"):
        pc.summarize(posterior_tree, sample_dims=3)


def test_ctrl_c_in_any_search_is_known(summary):
    stopped = replace(summary.partition, info=replace(summary.partition.info, stopped="interrupted"))
    assert not summary.interrupted
    for name in ("partition", "resampled", "alternative"):
        assert replace(summary, **{name: stopped}).interrupted
    assert replace(summary, modes=replace(summary.modes, stopped="interrupted")).interrupted
    halves = ExcessLoss(0.0, 0.0, summary.labels, stopped="interrupted")
    assert replace(summary, excess=halves).interrupted
