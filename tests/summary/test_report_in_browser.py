"""The interactive report in a real browser: it loads nothing, and answers."""

import csv
import io
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.summary.report.still import PAIRS

pytest.importorskip("bokeh")
playwright = pytest.importorskip("playwright.sync_api")

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"double\" and 'single'",
    "@{x} $index @names{safe} {{ item }}",
    "\u05e9\u05dc\u05d5\u05dd \u202eevil",
    "long " + "x" * 495,
    "two\nlines",
    "-->",
    "=1+1",
    "&lt;b&gt;",
]


@pytest.fixture(scope="module")
def chromium():
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("No Chromium is installed, so that the report is not tested in a browser.")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def noisy(n_items, n_draws, n_clusters=5, names=None, chains=2):
    """Draws in which a tenth of the labels is random, with names of the items."""
    rng = np.random.default_rng(1)
    labels = np.tile(np.sort(np.arange(n_items) % n_clusters), (chains, n_draws, 1))
    wrong = rng.random(labels.shape) < 0.1
    labels[wrong] = rng.integers(n_clusters, size=wrong.sum())
    names = [f"item {k}" for k in range(n_items)] if names is None else names
    return xr.DataArray(labels, dims=("chain", "draw", "name"), coords={"name": names})


def number_in(words):
    """Number of clusters in the words on the partition shown."""
    return int(re.search(r"(\d+) cluster", words)[1])


def summary_of(draws):
    return pc.summarize(draws, answers=False, n_starts=1, random_seed=1, progressbar=False)


@pytest.fixture
def no_stills(monkeypatch):
    """Leave out the still pictures, which other tests look at."""
    monkeypatch.setattr("posterior_consensus.summary.report.page.figures", lambda summary: {PAIRS: []})


class Report:
    """A page with what went wrong in it."""

    def __init__(self, browser, path, **context):
        self.wrong = []
        self.page = page = browser.new_context(accept_downloads=True, **context).new_page()
        page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda one: self.wrong.append(one.url) if one.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_selector("#look[data-ready]", state="attached")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.page.context.close()
        if kind is None:
            assert self.wrong == []

    def column(self, number):
        return self.page.locator(f"#table tbody td:nth-child({number})").all_inner_texts()

    def slide(self, name, to):
        self.page.locator(name).fill(str(to))

    def matrix(self):
        """Bytes of the picture of the matrix."""
        return self.page.locator("#of-matrix").screenshot()

    def click(self, x, y):
        """Click on the matrix, at shares of its width and height."""
        area = self.page.locator("#of-matrix .bk-Figure")
        box = area.bounding_box()
        side = min(box["width"], box["height"])
        area.click(position={"x": box["width"] - side * (1 - x), "y": box["height"] - side * (1 - y)})


@pytest.fixture(scope="module")
def galaxies(tmp_path_factory):
    with xr.open_dataset("examples/data/galaxies.nc", group="posterior", engine="h5netcdf") as posterior:
        draws = posterior.isel(draw=slice(None, None, 20)).load()
    summary = pc.summarize(draws, random_seed=1, progressbar=False)
    return summary, summary.to_html(tmp_path_factory.mktemp("galaxies") / "report.html")


def test_galaxies_are_selected_sorted_and_coloured(chromium, galaxies):
    summary, path = galaxies
    names = summary.draws.items.names
    with Report(chromium, path) as report:
        page = report.page
        before = report.matrix()
        page.fill("#search", names[10])
        assert page.locator("#item h3").inner_text() == names[10]
        similarity = pc.posterior_similarity_matrix(summary.draws).values[10]
        similarity[10] = 0
        assert f"{similarity.max():.2f}" in page.locator("#item ol li").first.inner_text()
        assert report.matrix() != before
        report.click(0.3, 0.3)
        chosen = page.locator("#item h3").inner_text()
        assert chosen in names and chosen != names[10]
        assert page.locator("tr.selected").count() <= 1
        page.locator("#table th button", has_text="margin").click()
        margins = summary.items.margin.values
        assert float(report.column(7)[0]) == pytest.approx(np.nanmin(margins), abs=0.005)
        page.locator("#table th button", has_text="margin").click()
        assert float(report.column(7)[0]) == pytest.approx(np.nanmax(margins), abs=0.005)
        assert page.locator("#table th").last.get_attribute("aria-sort") == "descending"


def test_sliders_chains_and_orders_change_the_pictures(chromium, galaxies):
    _, path = galaxies
    with Report(chromium, path, color_scheme="dark") as report:
        page = report.page
        seen = {report.matrix()}
        page.locator("#clusters").focus()
        page.keyboard.press("Home")
        words = page.locator("#partition").inner_text()
        fewest = number_in(words)
        assert "above the minimum" in words and page.locator("#legend button").count() == fewest
        seen.add(report.matrix())
        page.keyboard.press("End")
        assert number_in(page.locator("#partition").inner_text()) > fewest
        page.locator("#threshold").focus()
        page.keyboard.press("Home")
        assert "pair threshold 0.1" in page.locator("#partition").inner_text()
        page.select_option("#order", "data")
        seen.add(report.matrix())
        page.locator("#chains input").first.uncheck()
        seen.add(report.matrix())
        assert len(seen) == 4
        for box in page.locator("#chains input").all()[1:]:
            box.click()  # the last one stays on
        assert page.locator("#chains input:checked").count() == 1
        page.locator("#answers input").first.check()
        assert page.locator("#partition").inner_text().startswith("Shown: the partition reported, ")


def test_keys_and_the_key_of_clusters_select(chromium, galaxies):
    summary, path = galaxies
    with Report(chromium, path) as report:
        page = report.page
        focused = "document.activeElement.textContent"
        page.locator("#table tbody button").nth(3).focus()
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == page.locator("#item h3").inner_text() == summary.draws.items.names[3]
        page.get_by_text("(after it)").focus()
        for _ in range(2):
            page.keyboard.press("Enter")
            assert page.evaluate(focused).endswith("(after it)")
        page.locator("#legend button").first.click()
        first = np.sum(summary.consensus.labels.values == 0)
        assert page.locator("#item h3").inner_text() == f"{first} items are selected"
        page.get_by_text("Clear the selection").click()
        page.fill("#search", "no such name")
        page.keyboard.press("Enter")
        assert "No item is named" in page.locator("#item").inner_text()
        page.fill("#search", "")
        assert "Select an item" in page.locator("#item").inner_text()


def test_a_page_without_sliders_and_for_fingers(chromium, no_stills, tmp_path):
    path = summary_of(np.tile(np.arange(240) // 2, (2, 10, 1))).to_html(tmp_path / "report.html")
    with Report(chromium, path, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True) as report:
        page = report.page
        assert not page.locator("#clusters").is_visible() and not page.locator("#threshold").is_visible()
        assert page.locator("#legend").is_hidden() and "sliders'" not in page.locator("#said").inner_text()
        assert page.locator("#of-matrix .bk-events").evaluate("one => getComputedStyle(one).touchAction") != "none"


def test_a_thousand_items_on_a_page_of_six_megabytes(chromium, tmp_path):
    draws = noisy(1000, 25, chains=4)
    path = summary_of(draws).to_html(tmp_path / "report.html")
    assert path.stat().st_size < 6e6
    with Report(chromium, path) as report:
        report.click(0.5, 0.5)
        assert report.page.locator("#item h3").inner_text().startswith("item ")
        first = report.page.locator("#partition").inner_text()
        report.page.locator("#clusters").focus()
        report.page.keyboard.press("End")
        assert report.page.locator("#partition").inner_text() != first
        report.page.fill("#filter", "item 99")
        assert report.page.locator("#rows").inner_text() == "1 to 11 of 11"  # 99, and 990 to 999
        report.page.fill("#filter", "")
        report.page.select_option("#of-cluster", index=2)
        assert set(report.column(2)) == {"1"}


def test_twenty_thousand_items_are_found_though_few_are_shown(chromium, no_stills, tmp_path):
    path = summary_of(noisy(20_000, 10)).to_html(tmp_path / "report.html")
    assert path.stat().st_size < 10e6
    with Report(chromium, path) as report:
        page = report.page
        said = page.locator("#said").inner_text()
        assert "2,000 of 20,000 items, chosen at random" in said and "no slider for the pair threshold" in said
        assert page.locator("#rows").inner_text() == "1 to 25 of 20,000"
        for name in ("item 19998", "item 19999", "item 19997"):
            page.fill("#search", name)
            assert page.locator("#item h3").inner_text() == name
        texts = [page.locator("#item").inner_text()]
        assert "not among those in the pictures" in texts[0]
        page.locator("#table th button", has_text="margin").click()
        margins = [float(cell) for cell in report.column(7)]
        assert margins == sorted(margins)
        first = page.locator("#partition").inner_text()
        page.locator("#clusters").focus()
        page.keyboard.press("Home")
        assert page.locator("#partition").inner_text() != first
        report.click(0.7, 0.2)
        assert "Most probable co-members" in page.locator("#item").inner_text()


def test_names_are_shown_as_they_are_and_never_run(chromium, no_stills, tmp_path):
    draws = noisy(len(HOSTILE) * 2, 20, 2, [*HOSTILE, *(f"plain {k}" for k in range(len(HOSTILE)))])
    draws = draws.rename(name="</script><b>", chain="chain").rename("z</script>@{x}")
    draws = draws.assign_coords(chain=["<i>one</i>", "</script><script>alert(3)</script>"])
    features = {"feature": [r"$$\alpha$$", r"\(x\) <b>bold</b> @{y}"]}
    data = xr.DataArray(np.arange(40.0).reshape(20, 2), dims=("</script><b>", "feature"), coords=features, name="<i>")
    path = replace(summary_of(draws), observed=data, source="<i>z</i>").to_html(tmp_path / "report.html")
    with Report(chromium, path) as report:
        page = report.page
        assert page.locator("#across option").first.inner_text() == features["feature"][0]
        shown = page.locator("#table tbody td:first-child button").evaluate_all("all => all.map(one => one.title)")
        assert sorted(shown) == sorted(draws["</script><b>"].values.tolist())
        for name in HOSTILE:
            page.locator("#search").fill(name)
            assert page.locator("#item h3").evaluate("one => one.textContent") == name
        page.locator("#of-matrix .bk-Figure").hover(position={"x": 60, "y": 200})
        page.wait_for_selector("#tip:not([hidden])")
        assert "probability" in page.locator("#tip").inner_text()
        assert page.locator("#look img, #look i, #look b").count() == 0
        assert "<i>one</i>" in page.locator("#chains").inner_text()
        with page.expect_download() as download:
            page.locator("#csv").click()
        rows = list(csv.reader(io.StringIO(download.value.path().read_text("utf-8-sig"), newline="")))
        assert [row[0] for row in rows[1:]] == shown


@pytest.mark.parametrize("labels", [[[[0]] * 8], [[[0] * 5] * 8], [[[0, 1, 2]] * 8]], ids=["item", "cluster", "alone"])
def test_posteriors_of_one_of_each(chromium, no_stills, labels, tmp_path):
    path = summary_of(np.array(labels)).to_html(tmp_path / "report.html")
    with Report(chromium, path, viewport={"width": 390, "height": 800}) as report:
        report.page.fill("#search", "0")
        assert report.page.locator("#item h3").inner_text() == "0"
        assert not report.page.locator("#chains").is_visible()
        width = report.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
