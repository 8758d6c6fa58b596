"""The interactive report without a browser: one file, the same every time, and what it holds."""

import base64
import gzip
import json
import re
import sys

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from posterior_consensus.summary.report.payload import payload_of

pytest.importorskip("bokeh")

NAMES = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", '"', "@{x}", "\u202eback", "x" * 500]


@pytest.fixture(scope="module")
def draws():
    rng = np.random.default_rng(1)
    labels = np.tile(np.array([0, 0, 0, 1, 1, 1, 2]), (2, 30, 1))
    wrong = rng.random(labels.shape) < 0.2
    labels[wrong] = rng.integers(3, size=wrong.sum())
    return xr.DataArray(labels, dims=("chain", "draw", "name"), coords={"name": [*NAMES, "plain"]}, name="z")


def summary_of(draws, **options):
    return pc.summarize(draws, answers=False, random_seed=1, progressbar=False, **options)


def unpacked(summary):
    whole = gzip.decompress(base64.b64decode(payload_of(summary)))
    length = int.from_bytes(whole[:8], "little")
    meta, body = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    arrays = {
        name: np.frombuffer(body, np.dtype(one["dtype"]), one["size"], one["at"])
        for name, one in meta["arrays"].items()
    }
    return meta, arrays


@pytest.fixture(scope="module")
def page(draws, tmp_path_factory):
    summary, folder = summary_of(draws), tmp_path_factory.mktemp("report")
    pages = [summary.to_html(folder / name).read_bytes() for name in ("one.html", "two.html")]
    assert pages[0] == pages[1]
    return pages[0].decode()


def test_the_page_loads_nothing(page):
    assert not re.search(r"<script[^>]+src=|<link|@import|url\(\s*['\"]?http", page)
    places = [page.index(f"<h2>{head}</h2>") for head in ("Findings", "Interactive pictures", "Clusters")]
    assert places == sorted(places)


def test_names_are_in_no_script_and_escaped_elsewhere(page):
    assert "alert(1)" not in re.sub("&lt;script&gt;alert\\(1\\)|&lt;/script&gt;", "", page)
    assert page.count("<script") == page.count("</script>")
    for name in NAMES[:2]:
        assert name not in page


def test_similarities_are_those_of_the_chains(draws):
    weights = np.random.default_rng(2).random((2, 30)) * np.array([[1.0], [3.0]])
    for given in ({}, {"weights": weights}):
        summary = summary_of(draws, **given)
        meta, arrays = unpacked(summary)
        assert meta["names"] == [*NAMES, "plain"]
        shares = [chain["share"] for chain in meta["chains"]]
        mean = shares @ arrays["similarities"].reshape(2, -1) / 255
        expected = pc.posterior_similarity_matrix(summary.draws).values[np.triu_indices(7, 1)]
        assert_allclose(mean, expected, atol=0.5 / 255 + 1e-12)


def test_partitions_and_their_items_are_those_of_the_summary(draws):
    summary = summary_of(draws)
    meta, arrays = unpacked(summary)
    table = summary.items.to_dataframe()
    labels = arrays["labels"].reshape(-1, 7)
    assert_array_equal(labels[0], summary.consensus.labels)
    for name, column in (("own", "probability"), ("other", "nearest_probability"), ("membership", "membership")):
        stored = arrays[name].reshape(-1, 7)[0]
        assert_array_equal(stored == 65535, table[column].isna())
        assert_allclose(stored[stored < 65535] / 1e4, table[column].dropna(), atol=5e-5)
    for one in meta["partitions"]:
        if one["kind"] == "clusters":
            assert np.unique(labels[one["row"]]).size == one["value"]
    other = next(one["row"] for one in meta["partitions"] if np.unique(labels[one["row"]]).size == 2)
    items = pc.item_uncertainty(draws, labels[other])
    assert_allclose(arrays["own"].reshape(-1, 7)[other] / 1e4, items.probability, atol=5e-5)
    nearest = arrays["nearest"].reshape(-1, 7)[other]
    assert set(nearest) <= set(labels[other]) and np.all(nearest != labels[other])


def test_items_stand_along_numbers_that_are_not_in_order(draws):
    coordinate = np.array([3.0, 1.0, 2.0, 7.0, 5.0, 6.0, 4.0])
    meta, arrays = unpacked(summary_of(draws.assign_coords(name=coordinate)))
    assert meta["coordinate"] == "name"
    assert_array_equal(arrays["along"], coordinate)
    assert unpacked(summary_of(draws.assign_coords(name=np.sort(coordinate))))[0]["coordinate"] is None


def test_allocation_probabilities_and_many_chains(draws):
    soft = np.random.default_rng(3).dirichlet(np.ones(3), (2, 20, 7))
    probabilities = xr.DataArray(soft, dims=("chain", "draw", "item", "component"))
    meta, _ = unpacked(summary_of(pc.as_allocation_probabilities(probabilities)))
    assert len(meta["chains"]) == 2 and not meta["said"]
    many = xr.DataArray(draws.values.reshape(10, 6, 7), dims=("chain", "draw", "name"))
    meta, arrays = unpacked(summary_of(many))
    assert len(meta["chains"]) == 1 and arrays["similarities"].size == 21
    assert meta["said"] == ["The chains are shown together, because there are more than 8."]


def test_without_bokeh_the_pictures_are_still(draws, monkeypatch, tmp_path):
    find = sys.modules["importlib.util"].find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "bokeh" else find(name, *more))
    page = summary_of(draws).to_html(tmp_path / "report.html").read_text("utf-8")
    assert "<script" not in page and "<h2>Posterior similarity of pairs</h2>" in page


def test_findings_name_no_function(draws):
    for sentence in summary_of(draws).findings():
        assert "`" not in sentence and not re.search(r"\w\(|\w=\w", sentence)
