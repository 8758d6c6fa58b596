"""Figures at the widths of journals: no text is too small, lies on another or leaves the figure."""

import re
from dataclasses import replace
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

import posterior_consensus as pc
from tests.catalogue.plots import PLOTS, drawn
from tests.catalogue.posteriors import around, linked_records
from tests.helpers import array, check_all, scored_pairs

QUIET = {"random_seed": 1, "progressbar": False, "modes": False}
WIDTHS = {"column": 89.0, "page": 180.0}  # mm
SMALLEST = 6.0  # points


def forty_clusters(rng, **coords):
    """Chains of one posterior of 300 items, of 40 clusters of very different sizes."""
    truth = np.repeat(np.arange(40), np.append(np.full(20, 2), np.full(20, 13)))
    z = np.stack([around(rng, truth, 60, 0.08, 42) for _ in range(4)])
    return array(z, ("chain", "draw", "obs"), **coords)


def long_names(rng):
    """Few items, clusters, chains and a dimension with long names."""
    dim = "hospital admission of a patient in the winter of 2019"
    names = [f"patient number {k} of the hospital in the city" for k in range(30)]
    z = np.stack([around(rng, np.arange(30) % 5, 60, 0.1) for _ in range(5)])
    chains = [f"a chain with a long name, from start {k}" for k in range(5)]
    return xr.DataArray(z, {"chain": chains, dim: names}, ("chain", "draw", dim))


def many_pairs(rng):
    """Scored pairs of records with long names, along a line."""
    names = [f"record {k} of the register of firms in the city" for k in range(60)]
    scores = {(k, k + step): rng.random() for step in (1, 2) for k in range(60 - step)}
    return scored_pairs(60, scores, names=names)


@pytest.fixture(scope="module", params=["galaxies", "40 clusters", "long names", "records", "scored pairs"])
def summary(request):
    rng = np.random.default_rng(1)
    if request.param == "galaxies":
        return pc.summarize(pc.load_example("galaxies"), **QUIET)
    if request.param == "records":
        return pc.summarize(linked_records(400, 200)[0].reshape(4, 50, 400), **QUIET)
    if request.param == "scored pairs":
        return pc.summarize(many_pairs(rng), random_seed=1, progressbar=False)
    if request.param == "40 clusters":
        return pc.summarize(forty_clusters(rng), **QUIET)
    found = pc.summarize(long_names(rng), **QUIET)
    names = [f"a cluster with a long name, {k}" for k in range(found.n_clusters)]
    return replace(found, partition=found.partition.with_names(names))


def drawn_texts(figure, monkeypatch):
    """The texts that a drawing of the figure writes, with their sizes in points and their boxes."""
    written, draw = {}, Text.draw

    def record(text, renderer):
        if text.get_visible() and text.get_text().strip():
            written[text] = text.get_fontsize()
        return draw(text, renderer)

    monkeypatch.setattr(Text, "draw", record)
    figure.draw_without_rendering()
    return [(text.get_text(), size, text.get_window_extent()) for text, size in written.items()]


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_texts_are_legible_and_apart(summary, width, monkeypatch):
    axes = summary.plot(width=width)
    assert axes.shape == ((4, 1) if width == "column" else (2, 2))
    check_texts(axes[0, 0].figure, width, monkeypatch, 20)


@pytest.mark.slow
def test_texts_of_a_small_figure_are_legible_and_apart(monkeypatch):
    summary = pc.summarize(pc.load_example("galaxies"), **QUIET)
    check_apart(summary.plot(figsize=(6, 5))[0, 0].figure, monkeypatch, 20)


def check_texts(figure, width, monkeypatch, fewest):
    assert 25.4 * figure.get_figwidth() == pytest.approx(WIDTHS[width]) and 25.4 * figure.get_figheight() <= 240.01
    check_apart(figure, monkeypatch, fewest)


def check_apart(figure, monkeypatch, fewest):
    texts = drawn_texts(figure, monkeypatch)
    assert len(texts) > fewest and min(size for _, size, _ in texts) >= SMALLEST
    page = figure.bbox
    outside = [text for text, _, box in texts if not (page.x0 <= box.x0 and box.x1 <= page.x1)]
    outside += [text for text, _, box in texts if not (page.y0 <= box.y0 and box.y1 <= page.y1)]
    assert not outside
    over = [
        (one, other)
        for (one, _, box), (other, _, place) in combinations(texts, 2)
        if min(box.x1, place.x1) - max(box.x0, place.x0) > 0.5 and min(box.y1, place.y1) - max(box.y0, place.y0) > 0.5
    ]
    assert not over


@pytest.mark.parametrize("name", sorted({*PLOTS} - {"traces"}))  # which has seven rows
def test_texts_of_a_figure_as_narrow_as_a_column_are_legible_and_apart(name, monkeypatch):
    check_apart(drawn(name, figsize=(3.5, 4.5))[0].figure, monkeypatch, 3)


@pytest.mark.parametrize(("across", "font"), [(3.5, 7.5), (5.0, 10.0)])
def test_a_figure_as_narrow_as_a_column_is_in_small_print(across, font):
    ax = drawn("n_clusters", figsize=(across, 3.0))[0]
    assert ax.xaxis.label.get_fontsize() == font == ax.title.get_fontsize()
    ax.set_ylim(0, 5000)  # new ticks, after the style's end
    ax.figure.draw_without_rendering()
    assert {text.get_fontsize() for text in ax.get_yticklabels()} == {0.9 * font if font < 10 else font}


@pytest.fixture(scope="module")
def of_layers():
    """Summaries of layers of draws, and of runs with noise."""
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(4), [12, 9, 6, 3])
    draws = np.stack([around(rng, np.minimum(truth, most), 40, 0.05) for most in (1, 2, 3)], axis=1)
    runs = np.concatenate([around(rng, np.minimum(truth, most), 10, 0.05) for most in (1, 2, 3)])
    runs[:, -2:] = -1
    runs = pc.as_runs(runs, axis=0, noise=-1, groups=np.repeat(["resolution 0.5", "resolution 1", "resolution 2"], 10))
    return [pc.summarize(one, **QUIET) for one in (pc.as_layers(draws, layer_dim="layer"), pc.as_layers(runs))]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [0, 1])
def test_texts_of_layers_are_legible_and_apart(of_layers, kind, width, monkeypatch):
    summary = of_layers[kind]
    grid = summary.plot(width=width)
    assert grid.shape == ((1,), (3,))[kind]
    check_texts(grid[0].figure, width, monkeypatch, 8)
    with pytest.raises(ValueError, match="`width` is for a new figure"):
        summary.plot(width=width, axes=grid)
    with pytest.raises(ValueError, match="`width` and `figsize`"):
        summary.plot(width=width, figsize=(3, 3))


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    draws = around(rng, np.repeat(np.arange(6), [7, 2, 36, 32, 2, 3]), 60, 0.02)
    return pc.summarize(draws.reshape(2, 30, 82), **QUIET)


def test_widths_are_those_of_journals_and_fonts_follow_the_style(small):
    cases = [
        (width, ValueError, "`width`", "'column' (89 mm), 'page' (180 mm)", f"got {width!r}") for width in ("a4", 89)
    ]
    check_all(lambda width: small.plot(width=width), cases)
    with pytest.raises(ValueError, match="`width` and `figsize`"):
        small.plot(width="page", figsize=(7, 5))
    assert small.plot()[0, 0].figure.get_size_inches().tolist() == [11.0, 8.2]
    for font, label, tick in ((12, 7.5, 6.75), (6, 6, 5.4)):
        with plt.rc_context({"font.size": font, "axes.labelsize": 20}):
            ax = small.plot(width="page")[0, 1]
        assert ax.xaxis.label.get_fontsize() == label
        ax.set_ylim(0, 5000)  # new ticks, in the style of the user
        ax.figure.draw_without_rendering()
        assert [text.get_fontsize() for text in ax.get_yticklabels()] == pytest.approx([tick] * len(ax.get_yticks()))


@pytest.mark.parametrize("width", [None, "column"])
def test_small_clusters_are_named_and_the_colour_bar_is_as_high_as_the_matrix(small, width):
    axes = small.plot(width=width)
    axes[0, 0].figure.draw_without_rendering()
    for ax in axes.ravel()[[0, 2, 3]]:
        assert [tick.get_text() for tick in ax.get_xticklabels()] == list("012345")
    matrix = axes[0, 0].get_window_extent()
    bar = axes[0, 0].images[0].colorbar.ax.get_window_extent()
    assert (bar.y0, bar.y1) == pytest.approx((matrix.y0, matrix.y1))
    assert axes[0, 0].get_position().x0 == pytest.approx(axes.ravel()[2].get_position().x0)


def test_a_matrix_on_axes_without_a_layout_keeps_its_colour_bar_within_them(small):
    ax = plt.figure(figsize=(4, 3)).add_axes((0.1, 0.1, 0.5, 0.8))
    pc.plot_psm(small.draws, ax=ax).figure.draw_without_rendering()
    assert ax.images[0].colorbar.ax.get_position().x1 <= 0.6


def test_points_on_bars_of_a_like_colour_have_an_edge(small):
    (points,) = [one for one in small.items.plot().collections if isinstance(one, PathCollection)]
    assert points.get_linewidths().min() >= 0.4 and to_hex(points.get_edgecolors()[0]) == "#000000"


def test_names_of_many_clusters_stay_at_their_clusters():
    labels = np.repeat(np.arange(40), [400, *[1] * 39])
    ax = pc.plot_psm(np.tile(labels, (2, 1)), labels)
    named = {int(tick.get_text()): place for tick, place in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)}
    assert 1 < len(named) < 40
    assert all(labels[round(place)] == name for name, place in named.items())


def test_pdf_has_fonts_that_journals_take(small, tmp_path):
    for kind, font in ((42, b"/FontFile2"), (3, b"/Type3")):
        with plt.rc_context({"pdf.fonttype": kind, "pdf.compression": 0}):
            small.plot(width="column")[0, 0].figure.savefig(tmp_path / "figure.pdf")
        written = (tmp_path / "figure.pdf").read_bytes()
        assert font in written and (b"/Type3" in written) == (kind == 3)
        left, low, right, high = map(float, re.search(rb"/MediaBox \[([\d. ]+)\]", written).group(1).split())
        assert (right - left) / 72 * 25.4 == pytest.approx(89)
        assert 220 <= (high - low) / 72 * 25.4 < 240  # titles of two lines have room
