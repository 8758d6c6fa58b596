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

pytest.importorskip("bokeh")
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

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


def noisy(n_items, n_draws, n_clusters=5, names=None):
    """Draws in which a tenth of the labels is random, with names of the items."""
    rng = np.random.default_rng(1)
    labels = np.tile(np.sort(np.arange(n_items) % n_clusters), (2, n_draws, 1))
    wrong = rng.random(labels.shape) < 0.1
    labels[wrong] = rng.integers(n_clusters, size=wrong.sum())
    names = [f"item {k}" for k in range(n_items)] if names is None else names
    return xr.DataArray(labels, dims=("chain", "draw", "name"), coords={"name": names})


def summary_of(draws):
    return pc.summarize(draws, modes=False, n_starts=1, random_seed=1, progressbar=False)


class Report:
    """A page with what went wrong in it."""

    def __init__(self, browser, path, **context):
        self.wrong = []
        self.page = page = browser.new_context(accept_downloads=True, **context).new_page()
        page.set_default_timeout(300_000)  # of a busy machine
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

    def words(self):
        """What is said of the partition shown."""
        return self.page.locator("#partition").inner_text()

    def colours_of_clusters(self):
        """Colour of each cluster's mark, by its name."""
        code = "marks => Object.fromEntries(marks.map(m => [m.parentNode.title.slice(15), m.style.color]))"
        return self.page.locator("#legend .mark").evaluate_all(code)

    def chosen(self):
        return self.page.locator("#item h3").inner_text()

    def press(self, name, key):
        self.page.locator(name).focus()
        self.page.keyboard.press(key)

    def matrix(self):
        """Bytes of the picture of the matrix."""
        return self.page.locator("#of-matrix").screenshot()

    def click(self, x, y):
        """Click on the matrix, at shares of its width and height."""
        frame = "(({left, top, width, height}) => [left, top, width, height])(%s.frame.bbox)"
        left, top, width, height = self.page.evaluate(frame % "Bokeh.index.find_one(Bokeh.documents[0].roots()[0])")
        place = {"x": left + x * width, "y": top + y * height}
        self.page.locator("#of-matrix .bk-Figure").click(position=place)

    def nameless(self):
        """Tab stops of the pictures that have no role or no name."""
        return self.page.evaluate(
            """() => {
              const inside = root => [...root.querySelectorAll("*")].flatMap(
                one => one.shadowRoot ? [one, ...inside(one.shadowRoot)] : [one]);
              return inside(document.querySelector(".pictures")).filter(
                one => one.tabIndex === 0 && one.tagName === "DIV" && !(one.role && one.ariaLabel)).length;
            }"""
        )


@pytest.fixture(scope="module")
def galaxies(tmp_path_factory):
    with xr.open_dataset(
        "posterior_consensus/example_data/galaxies.nc", group="posterior", engine="h5netcdf"
    ) as posterior:
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
        assert report.chosen() == names[10]
        similarity = pc.posterior_similarity_matrix(summary.draws).values[10]
        similarity[10] = 0
        assert f"{similarity.max():.2f}" in page.locator("#item ol li").first.inner_text()
        assert report.matrix() != before
        report.click(0.3, 0.3)
        assert report.chosen() in names and report.chosen() != names[10]
        panel = page.locator("#item").bounding_box()
        assert 0 <= panel["y"] and panel["y"] + panel["height"] <= page.viewport_size["height"] + 1
        assert report.nameless() == 0
        assert page.locator("tr.selected").count() <= 1
        for extreme in (np.nanmin, np.nanmax):
            page.locator("#table th button", has_text="margin").click()
            assert float(report.column(7)[0]) == pytest.approx(extreme(summary.items.margin.values), abs=0.005)
        assert page.locator("#table th").last.get_attribute("aria-sort") == "descending"


def test_sliders_chains_and_orders_change_the_pictures(chromium, galaxies):
    _, path = galaxies
    with Report(chromium, path, color_scheme="dark") as report:
        page = report.page
        seen = {report.matrix()}
        numbers = []
        for key in ("Home", "End"):
            report.press("#clusters", key)
            numbers.append(int(re.search(r"(\d+) cluster", report.words())[1]))
            assert "above the minimum" in report.words() and page.locator("#legend button").count() == numbers[-1]
            seen.add(report.matrix())
        assert numbers[0] < numbers[1]
        report.press("#threshold", "Home")
        assert "pair threshold 0.1" in report.words()
        page.select_option("#order", "data")
        seen.add(report.matrix())
        page.locator("#chains input").first.uncheck()
        seen.add(report.matrix())
        assert len(seen) == 5
        for box in page.locator("#chains input").all()[1:]:
            box.click()  # the last one stays on
        assert page.locator("#chains input:checked").count() == 1
        page.locator("#modes input").first.check()
        assert report.words().startswith("Shown: the partition reported, ")
        visible = "all => all.filter(one => one.checkVisibility()).map(one => one.className)"
        assert set(page.locator("figure img").evaluate_all(visible)) == {"dark"}
        page.emulate_media(media="print")
        assert set(page.locator("figure img").evaluate_all(visible)) == {"light"}
        assert page.locator("#look").is_hidden() and page.locator("h1").is_visible()


def test_items_keep_the_order_of_the_still_figures_while_one_explores(chromium, galaxies):
    summary, path = galaxies
    own, other = np.nan_to_num(summary.items.similarity), np.nan_to_num(summary.items.nearest_similarity)
    still = np.lexsort((other, -own, summary.items.cluster))
    with Report(chromium, path) as report:
        page, bars = (
            report.page,
            "Bokeh.index.find_one(Bokeh.documents[0].roots()[2]).model.renderers[0].data_source.data",
        )
        first = page.evaluate(f"[...{bars}.rank]")
        np.testing.assert_allclose(own[np.argsort(first)], own[still], atol=1e-4)
        assert "Not the reported result" not in report.words()
        report.press("#clusters", "End")
        assert "Not the reported result" in report.words() and page.evaluate(f"[...{bars}.rank]") == first
        page.select_option("#order", "clusters")
        assert page.evaluate(f"[...{bars}.rank]") != first
        page.locator("#modes input").first.check()
        assert "Not the reported result" not in report.words() and page.evaluate(f"[...{bars}.rank]") == first
        page.locator("#chains input").first.uncheck()
        assert "Not the reported result" in report.words()
        sliders = "document.querySelector('#explore').contains(document.querySelector('{}'))"
        assert all(page.evaluate(sliders.format(name)) for name in ("#clusters", "#threshold", "#chains"))


def test_paper_has_at_most_eight_pages(chromium, galaxies):
    with Report(chromium, galaxies[1]) as report:
        pdf = report.page.pdf(format="A4", prefer_css_page_size=True)
        assert 2 < len(re.findall(rb"/Type /Page\b", pdf)) <= 8


def test_keys_and_the_key_of_clusters_select(chromium, galaxies):
    summary, path = galaxies
    with Report(chromium, path) as report:
        page = report.page
        focused = "document.activeElement.textContent"
        page.locator("#table tbody button").nth(3).focus()
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == report.chosen() == summary.draws.items.names[3]
        page.get_by_text("(after it)").focus()
        for _ in range(2):
            page.keyboard.press("Enter")
            assert page.evaluate(focused).endswith("(after it)")
        page.locator("#legend button").first.click()
        first = np.sum(summary.partition.labels.values == 0)
        assert report.chosen() == f"{first} items are selected"
        page.get_by_text("Clear the selection").click()
        page.fill("#search", "no such name")
        page.keyboard.press("Enter")
        assert "No item is named" in page.locator("#item").inner_text()
        page.fill("#search", "no such")
        assert "No item is named" not in page.locator("#item").inner_text()
        page.fill("#search", "")
        assert "Select an item" in page.locator("#item").inner_text()


def test_a_page_without_sliders_and_for_fingers(chromium, undrawn, tmp_path):
    path = summary_of(np.tile(np.arange(240) // 2, (2, 10, 1))).to_html(tmp_path / "report.html")
    with Report(chromium, path, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True) as report:
        page = report.page
        assert not page.locator("#clusters").is_visible() and not page.locator("#threshold").is_visible()
        assert page.locator("#legend").is_hidden() and "sliders'" not in page.locator("#notes").inner_text()
        assert page.locator("#of-matrix .bk-events").evaluate("one => getComputedStyle(one).touchAction") != "none"


def test_a_slider_goes_through_layers(chromium, undrawn, tmp_path):
    one = noisy(12, 40, 3)
    layers = pc.as_layers({"<b>old</b>": one, "new": one[:, :, [5, 11, 0, 1, 2, 3]]}, ordered=True)
    made = pc.summarize(layers, modes=False, n_starts=1, random_seed=1, progressbar=False)
    path = made.to_html(tmp_path / "report.html", progressbar=False)
    with Report(chromium, path) as report:
        assert report.words().startswith("Shown: layer <b>old</b>, 3 clusters")
        assert report.page.locator("#name-of-layers").inner_text() == "layer"
        assert not report.page.locator("#explore").is_visible() and "reported result" not in report.words()
        before, colours = report.matrix(), report.colours_of_clusters()
        report.press("#layer", "ArrowRight")
        assert report.words().startswith("Shown: layer new, ") and report.matrix() != before
        assert report.page.locator("#of-layer").inner_text() == "new"
        assert report.column(2).count("not there") == 6
        now = report.colours_of_clusters()
        assert {name: colours[name] for name in now if name != "not there"} == {
            name: colour for name, colour in now.items() if name != "not there"
        }
        report.press("#layer", "ArrowLeft")
        assert report.matrix() == before
        report.press("#layer", "ArrowRight")
        report.page.get_by_role("button", name="item 7").first.click()
        assert "not there" in report.page.locator("#item").inner_text()
        assert "alone" not in report.page.locator("#item").inner_text()


def test_twenty_thousand_items_are_found_though_few_are_shown(chromium, undrawn, tmp_path):
    path = summary_of(noisy(20_000, 10)).to_html(tmp_path / "report.html")
    assert path.stat().st_size < 10e6
    with Report(chromium, path) as report:
        page = report.page
        said = page.locator("#notes").inner_text()
        assert "2,000 of 20,000 items" in said and "no slider for the pair threshold" in said
        assert page.locator("#rows").inner_text() == "1 to 25 of 20,000"
        for name in ("item 19998", "item 19999", "item 19997"):
            page.fill("#search", name)
            assert report.chosen() == name
        assert "not among those in the pictures" in page.locator("#item").inner_text()
        page.locator("#table th button", has_text="margin").click()
        margins = [float(cell) for cell in report.column(7)]
        assert margins == sorted(margins)
        first = report.words()
        report.press("#clusters", "Home")
        assert report.words() != first
        page.fill("#filter", "item 1999")
        assert page.locator("#rows").inner_text() == "1 to 11 of 11"  # 1999, and 19990 to 19999
        page.fill("#filter", "")
        page.select_option("#of-cluster", index=2)
        assert set(report.column(2)) == {"1"}
        report.click(0.7, 0.2)
        assert "Most probable co-members" in page.locator("#item").inner_text()


def test_names_are_shown_as_they_are_and_never_run(chromium, undrawn, tmp_path):
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
        assert "similarity" in page.locator("#tip").inner_text()
        assert page.locator("#look img, #look i, #look b").count() == 0
        assert "<i>one</i>" in page.locator("#chains").inner_text()
        with page.expect_download() as download:
            page.locator("#csv").click()
        rows = list(csv.reader(io.StringIO(download.value.path().read_text("utf-8-sig"), newline="")))
        assert [row[0] for row in rows[1:]] == shown


def test_posteriors_of_one_of_each(chromium, undrawn, tmp_path):
    for labels in ([[[0]] * 8], [[[0] * 5] * 8], [[[0, 1, 2]] * 8]):
        path = summary_of(np.array(labels)).to_html(tmp_path / "report.html")
        with Report(chromium, path, viewport={"width": 390, "height": 800}) as report:
            report.page.fill("#search", "0")
            assert report.chosen() == "0"
            assert not report.page.locator("#chains").is_visible()
            assert report.page.evaluate("document.documentElement.scrollWidth") <= 390
