"""The interactive report without a browser: one file, the same every time, and what it holds."""

import base64
import gzip
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

import posterior_consensus as pc
from posterior_consensus.summary.report import choices, payload, still
from tests.helpers import array, draw_nothing

pytest.importorskip("bokeh")

NAMES = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", '"', "@{x}", "\u202eback", "x" * 500]
PAIRS = np.triu_indices(7, 1)


def draws():
    rng = np.random.default_rng(1)
    labels = np.tile(np.array([0, 0, 0, 1, 1, 1, 2]), (2, 30, 1))
    wrong = rng.random(labels.shape) < 0.2
    labels[wrong] = rng.integers(3, size=wrong.sum())
    return array(labels, ("chain", "draw", "name"), name=[*NAMES, "plain"])


def summary_of(draws, **options):
    return pc.summarize(draws, modes=False, n_starts=1, random_seed=1, progressbar=False, **options)


@pytest.fixture(scope="module")
def summary():
    return summary_of(draws())


def unpacked(summary, *more, of=payload.payload_of):
    whole = gzip.decompress(base64.b64decode(of(summary, *more, progressbar=False)))
    length = int.from_bytes(whole[:8], "little")
    meta, body = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    arrays = {
        name: np.frombuffer(body, np.dtype(one["dtype"]), one["size"], one["at"])
        for name, one in meta["arrays"].items()
    }
    return meta, arrays


@pytest.fixture(scope="module")
def written(summary, tmp_path_factory):
    """The page with progress bars, the page without, and which of its searches showed a bar."""
    folder, shown = tmp_path_factory.mktemp("report"), []
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        patch.setenv("SOURCE_DATE_EPOCH", "86400")
        for name in ("loss_by_n_clusters", "loss_path"):
            search = getattr(choices, name)

            def noted(*arguments, search=search, progressbar, **options):
                shown.append(progressbar)
                return search(*arguments, progressbar=False, **options)

            patch.setattr(choices, name, noted)
        one = summary.to_html(folder / "one.html").read_text("utf-8")
        return one, summary.to_html(folder / "two.html", progressbar=False).read_text("utf-8"), shown


def test_a_page_is_the_same_every_time(written):
    one, two, shown = written
    assert one == two and shown == [True, True, False, False]


def test_the_page_loads_nothing_and_runs_no_name(written):
    page = written[0]
    assert not re.search(r"<script[^>]+src=|<link|@import|url\(\s*['\"]?http", page)
    heads = ["Partition", "Items", "Chains", "What was left out", "For the section on methods", "Explore", "Time"]
    places = [page.index(part) for part in ('class="verdict', "<figure>", *(f">{head}</h2>" for head in heads))]
    assert places == sorted(places)
    assert "alert(1)" not in re.sub("&lt;script&gt;alert\\(1\\)|&lt;/script&gt;", "", page)
    assert page.count("<script") == page.count("</script>")
    assert not any(name in page for name in NAMES[:2])


def test_head_contents_and_glossary_are_those_of_the_page(written):
    page = written[0]
    assert page.count("Date: 1970-01-02. Random seed: 1.") == 1
    assert re.search(r"<p>.*Draws: 60; chains: 2 of 30 draws\. Loss: variation of information, exp", page)
    headings = re.findall('<h2 id="(.*?)">', page)
    skip, *links = re.findall('<a [^>]*href="#(.*?)">', page)
    assert f'id="{skip}"' in page and links == headings and len(set(headings)) == len(headings)
    terms = re.findall("<dt>(.*?)</dt>", page[page.index("<dl>") :])
    assert {"expected loss", "margin", "R-hat", "credible ball"} <= set(terms) and len(set(terms)) == len(terms)
    assert not {"layer", "flow", "noise", "stability"} & set(terms)


def test_a_wrong_date_is_refused(summary, still, monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH.*'yesterday'"):
        summary.to_html(tmp_path / "report.html", progressbar=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("weighted", [False, True])
def test_similarities_are_those_of_the_chains(weighted, summary):
    if weighted:
        weights = np.random.default_rng(2).random((2, 30)) * np.array([[1.0], [3.0]])
        summary = summary_of(draws(), weights=weights)
    meta, arrays = unpacked(summary)
    assert meta["names"] == [*NAMES, "plain"]
    shares = [chain["share"] for chain in meta["chains"]]
    mean = shares @ arrays["similarities"].reshape(2, -1) / 255
    expected = pc.posterior_similarity_matrix(summary.draws).values[PAIRS]
    assert_allclose(mean, expected, atol=0.5 / 255 + 1e-12)


def test_partitions_and_their_items_are_those_of_the_summary(summary):
    meta, arrays = unpacked(summary)
    table = summary.items.to_dataframe()
    labels = arrays["labels"].reshape(-1, 7)
    assert_array_equal(labels[0], summary.partition.labels)
    for name, column in (("own", "similarity"), ("other", "nearest_similarity"), ("membership", "membership")):
        stored = arrays[name].reshape(-1, 7)[0]
        assert_array_equal(stored == 65535, table[column].isna())
        assert_allclose(stored[stored < 65535] / 1e4, table[column].dropna(), atol=5e-5)
    other = next(one["row"] for one in meta["partitions"] if np.unique(labels[one["row"]]).size == 2)
    items = pc.item_uncertainty(summary.draws, labels[other])
    assert_allclose(arrays["own"].reshape(-1, 7)[other] / 1e4, items.similarity, atol=5e-5)
    nearest = arrays["nearest"].reshape(-1, 7)[other]
    assert set(nearest) <= set(labels[other]) and np.all(nearest != labels[other])


def test_sliders_have_the_numbers_of_clusters_and_the_thresholds(summary):
    meta, arrays = unpacked(summary)
    labels, by_kind = arrays["labels"].reshape(-1, 7), {"mode": [], "clusters": [], "threshold": []}
    for one in meta["partitions"]:
        by_kind[one["kind"]].append(one["value"])
        if one["kind"] == "clusters":
            assert np.unique(labels[one["row"]]).size == one["value"]
            assert one["words"].startswith(f"{one['value']:.0f} cluster") and "above the minimum" in one["words"]
        if one["kind"] == "threshold":
            assert one["words"].startswith(f"pair threshold {one['value']:.1f}, ")
    held = summary.draws.n_clusters
    assert by_kind["mode"] == [0.0] and by_kind["threshold"] == [k / 10 for k in range(1, 10)]
    assert by_kind["clusters"] == [*range(max(1, held.min() - 1), held.max() + 2)]


def test_of_many_items_some_are_shown_and_sliders_left_out(summary, monkeypatch):
    for module in (choices, payload):
        monkeypatch.setattr(module, "SOME_OF_PAIRS", 5)
    meta, arrays = unpacked(summary)
    assert "5 of 7 items" in meta["notes"][0] and "no slider for the pair threshold" in meta["notes"][1]
    assert arrays["shown"].size == 5 and arrays["similarities"].size == 2 * 10 and arrays["labels"].size % 7 == 0
    assert {one["kind"] for one in meta["partitions"]} == {"mode", "clusters"}
    monkeypatch.setattr(choices, "_MOST_CLUSTERS", 1)
    meta, _ = unpacked(summary)
    assert "no slider for the number of clusters and no slider" in meta["notes"][1] and len(meta["partitions"]) == 1


def test_items_stand_along_numbers_that_are_not_in_order(summary):
    coordinate = np.array([3.0, 1.0, 2.0, 7.0, 5.0, 6.0, 4.0])
    meta, arrays = unpacked(summary_of(draws().assign_coords(name=coordinate)))
    assert meta["coordinate"] == "name"
    assert_array_equal(arrays["along"], coordinate)
    assert unpacked(summary_of(draws().assign_coords(name=np.sort(coordinate))))[0]["coordinate"] is None


def test_allocation_probabilities_and_many_chains():
    soft = np.random.default_rng(3).dirichlet(np.ones(3), (2, 20, 7))
    probabilities = xr.DataArray(soft, dims=("chain", "draw", "item", "component"))
    meta, _ = unpacked(summary_of(pc.as_allocation_probabilities(probabilities)))
    assert len(meta["chains"]) == 2 and not meta["notes"]
    meta, arrays = unpacked(summary_of(array(draws().values.reshape(10, 6, 7), ("chain", "draw", "name"))))
    assert len(meta["chains"]) == 1 and arrays["similarities"].size == 21
    assert len(meta["notes"]) == 1 and "more than 8" in meta["notes"][0]


def test_posteriors_of_one_of_each():
    for labels in ([[[0]] * 8], [[[0] * 5] * 8], [[[0, 1, 2]] * 8]):
        meta, arrays = unpacked(summary_of(np.array(labels)))
        assert_array_equal(arrays["labels"][: len(labels[0][0])], labels[0][0])
        assert len(meta["chains"]) == 1 and np.isfinite(arrays["features"]).all()


def test_layers_have_a_matrix_and_a_partition_each_over_all_their_items():
    z = draws().drop_vars(["chain", "draw"], errors="ignore")
    one, other = z, z[:, :, [6, 4, 3, 0, 2]].isel(draw=slice(None, None, -1))
    layers = pc.summarize(pc.as_layers({"one": one, "other": other}), modes=False, n_starts=1, random_seed=1)
    partitions = pc.align_partitions({name: summary.partition for name, summary in layers.items()})
    meta, arrays = unpacked(layers.summaries, partitions, "kind", of=payload.payload_of_layers)
    assert [step["value"] for step in meta["partitions"]] == ["one", "other"] and meta["layers"] == "kind"
    assert meta["names"] == [*NAMES, "plain"] and meta["clusters"][-1] == "not there"
    labels, gone = arrays["labels"].reshape(2, 7), [1, 5]
    assert_array_equal(labels[0], layers["one"].labels)
    assert (labels[1, gone] == len(meta["clusters"]) - 1).all()
    assert_array_equal(labels[1][[6, 4, 3, 0, 2]], partitions["other"].labels.sel(name=other["name"]))
    own = np.where(arrays["own"] == 65_535, np.nan, arrays["own"] / 10_000).reshape(2, 7)
    assert np.isnan(own[1, gone]).all()
    assert_allclose(own[1][[6, 4, 3, 0, 2]], layers["other"].items.similarity, atol=6e-5)
    similarities = arrays["similarities"].reshape(2, -1) / 255
    psm = pc.posterior_similarity_matrix(z).values
    assert_allclose(similarities[0], psm[PAIRS], atol=0.003)
    psm[gone], psm[:, gone] = 0, 0
    assert_allclose(similarities[1], psm[PAIRS], atol=0.003)


def test_without_bokeh_the_pictures_are_still(summary, still, tmp_path):
    page = summary.to_html(tmp_path / "report.html").read_text("utf-8")
    assert "<script" not in page and ">Explore</h2>" not in page and "posterior similarity matrix" in page


class Controls(HTMLParser):
    """The controls of a page without a name for those who hear it."""

    def __init__(self, page):
        super().__init__()
        self.labels, self.button, self.nameless, self.n_named = 0, None, [], 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        named = any(name in ("aria-label", "aria-labelledby") and value for name, value in attrs)
        self.labels += tag == "label"
        if tag in ("input", "select", "nav", "form") or "tabindex" in dict(attrs):
            is_named = named or (self.labels > 0 and tag in ("input", "select")) or tag == "main"
            self.n_named += is_named
            self.nameless += [] if is_named else [(tag, attrs)]
        if tag == "button":
            self.button = named

    def handle_data(self, data):
        self.button = self.button or (self.button is not None and bool(data.strip())) or self.button

    def handle_endtag(self, tag):
        self.labels -= tag == "label"
        if tag == "button":
            self.nameless += [] if self.button else ["button"]
            self.button = None


def test_every_control_has_a_name(written):
    found = Controls(re.sub(r"(?s)<(script|style).*?</\1>", "", written[0]))
    assert not found.nameless and found.n_named > 15


def test_what_moves_is_not_printed(written):
    page = written[0]
    printed = re.sub('(?s)<section class="screen">.*?</section>', "", page)
    assert "<input" not in printed and "<select" not in printed and "<script" not in printed
    css = re.search(r"@media print {(.*?)\n}", page, re.DOTALL)[1]
    assert re.search(r"\.screen[^{]*{ display: none", css)


def test_items_are_listed_by_margin_without_columns_of_one_value(summary):
    rows = still.uncertain(summary)
    assert rows["margin"].dropna().is_monotonic_increasing
    table = pd.DataFrame({"nearest_similarity": [0.25, 0.5, 0.75]}).assign(cluster=2, found_mcse=0.125, exact=True)
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", still.table_as_html(table)))
    assert "similarity to nearest" in text and "_" not in text
    assert text.endswith("All rows are exact. In all rows, cluster is 2 and MCSE of found is 0.12. ")
    assert "In all rows" not in still.table_as_html(table.head(2))


def test_cells_of_a_wide_table_have_their_headings():
    table = pd.DataFrame(
        [["x" * 24, 1, 2], ["y", 3, 4]], pd.Index([4, 5], name="item"), ["name", "n", "<several words>"]
    )
    names = re.findall('data-name="([^"]*)"', still.table_as_html(table))
    assert names == 2 * ["item", "name", "n", "&lt;several words&gt;"]
    assert "data-name" not in still.table_as_html(table.iloc[:, :2])


def test_still_figures_of_dark_screens_keep_colours_and_turn_greys_and_similarities():
    def changed(*colour):
        return still.for_dark_screens(Image.new("RGBA", (4, 4), colour)).convert("RGBA").getpixel((0, 0))

    yellow = (221, 204, 119, 255)
    assert changed(30, 30, 30, 255) == (225, 225, 225, 255) and changed(*yellow) == yellow
    assert changed(255, 255, 255, 0)[3] == 0
    navy, pink, white = (8, 48, 107, 255), (142, 1, 82, 255), (247, 251, 255, 255)
    assert min(changed(*navy)) > 100 and min(changed(*pink)) > 100 and max(changed(*white)[:3]) <= 20
    bar = Image.new("RGBA", (30, 30), yellow)
    bar.putpixel((15, 15), (30, 30, 30, 255))  # a word on it
    bar.paste((189, 189, 189, 255), (0, 20, 30, 30))  # another area beside it
    dark = still.for_dark_screens(bar).convert("RGBA")
    assert dark.getpixel((15, 15)) == (30, 30, 30, 255)
    assert {dark.getpixel((15, y)) for y in range(20, 30)} == {(66, 66, 66, 255)}


def test_findings_name_no_function(summary):
    for sentence in summary.findings():
        assert "`" not in sentence and not re.search(r"\w\(|\w=\w", sentence)
