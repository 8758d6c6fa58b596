"""Colours, patterns, sizes and names in all plots: what the reader is to tell apart differs, and follows the style."""

import sys
from inspect import signature
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.text import Text

import posterior_consensus as pc
from posterior_consensus.plots.colours import MARK, MARKERS, chain_colour, chain_cross, chain_line
from posterior_consensus.plots.four_panels import four_panels
from posterior_consensus.plots.frame import label_items, short_names
from posterior_consensus.plots.grammar import cluster_entries
from posterior_consensus.results.palette import COLOURS
from tests.catalogue.functions import FIGURES
from tests.catalogue.plots import LABELS, PLOTS, ball, drawn, draws, function_of, items
from tests.helpers import check_all

OVER_A_MATRIX = ("psm by chain", "posterior_comparison")
WITH_CMAP = ("psm", "psm by chain", "cluster_profiles", "loss_path", "posterior_comparison")


def contrast(colours, page):
    """Least contrast of colours with a page, from 1 to 21, as the Web Content Accessibility Guidelines define it."""
    channels = np.vstack([to_rgba_array(page), to_rgba_array(colours)])[:, :3]
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    page, *others = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    return min(max(other / page, page / other) for other in others)


def test_every_plot_is_tested_here():
    assert {function_of(name).__name__ for name in PLOTS} == set(FIGURES)


@pytest.mark.parametrize("name", PLOTS)
def test_ink_is_that_of_the_style_and_is_seen_on_a_dark_page(name):
    with plt.style.context("dark_background"):
        figure = drawn(name, figsize=(9.5, 7))[0].figure
        assert figure.get_size_inches().tolist() == [9.5, 7]
        figure.draw_without_rendering()
        texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        inside = [t for t in texts if t.get_bbox_patch() is not None]  # of a cluster's colour, on which it is read
        assert texts and {to_hex(text.get_color()) for text in texts if text not in inside} == {"#ffffff"}
        edges = [spine for ax in figure.axes for spine in ax.spines.values() if spine.get_visible()]
        assert {to_hex(spine.get_edgecolor()) for spine in edges} <= {to_hex(rcParams["axes.edgecolor"])}
    for ax in figure.axes if name not in OVER_A_MATRIX else ():
        shown = [line.get_color() for line in ax.lines]
        assert "#222222" not in map(to_hex, shown)
        shown += [drawn.get_edgecolor() for drawn in ax.findobj(LineCollection) if len(drawn.get_edgecolor())]
        shown += [dots.get_facecolor() for dots in ax.findobj(PathCollection) if len(dots.get_facecolor())]
        if name != "cluster_profiles":
            assert all(contrast(colours, ax.get_facecolor()) >= 2.9 for colours in shown)


@pytest.mark.parametrize("name", PLOTS)
def test_sizes_and_colours_that_cannot_be_are_refused(name):
    ax = plt.figure().gca()
    with pytest.raises(ValueError, match="`figsize` must be a width and a height in inches"):
        drawn(name, figsize=(3,))
    where = "ax" if "ax" in signature(function_of(name)).parameters and name != "psm by chain" else "axes"
    with pytest.raises(ValueError, match=f"`figsize` .* `{where}`"):
        drawn(name, figsize=(3, 3), **{where: ax})
    if name in WITH_CMAP:
        with pytest.raises(
            ValueError, match="`cmap` must be a Colormap of Matplotlib or the name of one.* got 'magmo'"
        ):
            drawn(name, cmap="magmo")


def test_sizes_are_two_positive_numbers_and_colours_may_be_a_colormap():
    cases = [(size, ValueError, "`figsize`", f"got {size!r}") for size in (3, (3, -1), (0, 3), (3, np.inf))]
    for name in ("psm", "traces"):
        check_all(lambda size, name=name: drawn(name, figsize=size), [*cases, ("large", TypeError, "`figsize`")])
    for name in WITH_CMAP:
        for cmap in ("magma", plt.get_cmap("magma")):
            ax = drawn(name, cmap=cmap)[0]
            assert (ax.images or [ax.collections[0]])[0].get_cmap().name == "magma"


def test_chains_and_clusters_share_no_colour():
    four = four_panels(draws(), LABELS, ball(), items())
    chains = {to_hex(line.get_color()) for line in four[0, 1].lines if line.get_marker() != "None"}
    clusters = {to_hex(patch.get_facecolor()) for patch in four[1, 1].patches}
    assert len(chains) == 3 and len(clusters) == 3 and not chains & clusters
    forms = {line.get_marker() for line in four[0, 1].lines} - {"None"}
    assert forms and not forms & {*Line2D.filled_markers, *MARKERS}  # areas of clusters, and their points, are filled
    forms = [{chain_cross(k, 12)[name] for k in own} for own in (range(12), range(4)) for name in ("marker", "color")]
    assert [len(form) for form in forms] == [3, 4, 1, 4]
    every = {chain_colour(k, 4) for k in range(4)} | {MARK}
    assert len(every) == 5 and not every & set(COLOURS)
    assert len({tuple(chain_line(k, 12).values()) for k in range(12)}) == 12


def test_thirty_clusters_look_different():
    labels = np.repeat(np.arange(30), 4)
    draws = np.random.default_rng(1).permuted(np.tile(labels, (5, 1)), axis=1)

    def looks(patches):
        return {(to_hex(patch.get_facecolor(), keep_alpha=False), patch.get_hatch() or "") for patch in patches}

    ax = pc.item_uncertainty(draws, labels).plot()
    assert len(looks(ax.patches)) == 30 and "repeat" not in ax.get_xlabel()
    assert len(looks(pc.plot_alluvial([labels, labels]).patches)) == 30
    ball = pc.credible_ball(np.tile(labels, (5, 1)), labels)
    hatched = looks(ball.plot().patches)
    assert len(hatched) == 10 and all(hatch for _, hatch in hatched)
    ax = pc.plot_data(np.arange(240.0).reshape(120, 2), labels)
    dots = [found for found in ax.collections if isinstance(found, PathCollection)]
    shapes = {
        (to_hex(colour), found.get_paths()[0].vertices.tobytes()) for found in dots for colour in found.get_edgecolors()
    }
    assert len(shapes) == 30


def test_the_axis_says_where_colours_repeat():
    labels = np.arange(200)
    ax = pc.item_uncertainty([labels], labels).plot(order="data")
    assert ax.get_xlabel().endswith("colours repeat after 20 clusters")
    for figsize, repeated in ((None, "colours repeat after 20"), ((4, 20), "colours and patterns repeat after 120")):
        ax = pc.plot_alluvial([labels, labels], figsize=figsize)
        assert ax.get_xlabel().replace("\n", " ") == f"{repeated} clusters"


def test_a_fixed_number_of_clusters_is_said_in_words():
    ax = pc.plot_n_clusters(np.random.default_rng(1).permuted(np.tile(LABELS, (3, 20, 1)), axis=2))
    assert ax.get_title() == "Every draw has 3 clusters."
    assert len(ax.patches) == 1 and not [line for line in ax.lines if line.get_marker() == "o"]


@pytest.mark.parametrize("n_items", [82, 1500])
def test_dots_are_seen_for_many_items(n_items):
    labels = np.arange(n_items) % 3
    draws = np.random.default_rng(1).permuted(np.tile(labels, (4, 1)), axis=1)
    ax = pc.item_uncertainty(draws, labels).plot()
    (points,) = [found for found in ax.collections if isinstance(found, PathCollection)]
    assert np.all(points.get_sizes() >= 9) and np.all(points.get_linewidths() > 0)


def test_small_clusters_have_ticks_and_names_where_there_is_room():
    labels = np.array([0] * 200 + [1] + [2] * 100 + [3])
    draws = np.tile(labels, (4, 1))
    for axis in (pc.plot_psm(draws, labels).xaxis, pc.item_uncertainty(draws, labels).plot().xaxis):
        np.testing.assert_allclose(axis.minor.locator(), [99.5, 200, 250.5, 301])
        assert [tick.get_text() for tick in axis.get_ticklabels()] == ["0", "1", "2", "3"]


def test_names_of_clusters_do_not_touch():
    labels = np.repeat(np.arange(40), np.random.default_rng(2).integers(1, 30, 40))
    ax = pc.plot_psm(np.tile(labels, (2, 1)), labels)
    ax.figure.draw_without_rendering()
    boxes = sorted((label.get_window_extent() for label in ax.get_xticklabels()), key=lambda box: box.x0)
    assert len(boxes) > 10 and all(before.x1 < after.x0 for before, after in pairwise(boxes))


@pytest.mark.parametrize(("number", "last"), [(12, "11 (n = 1)"), (13, "and 1 smaller ones")])
def test_a_legend_counts_the_clusters_that_it_does_not_name(number, last):
    labels = np.arange(number)
    assert cluster_entries(labels, labels, labels)[-1].get_label() == last


def test_long_names_of_features_leave_room_for_the_cells():
    names = [f"a measurement with a name of sixty characters, in mg/l, day {i}" for i in range(9)]
    data = pd.DataFrame(np.random.default_rng(1).normal(size=(12, 9)), columns=names)
    ax = pc.plot_cluster_profiles(data, LABELS)
    ax.figure.draw_without_rendering()
    assert ax.get_window_extent().height > 0.3 * ax.figure.bbox.height
    shown = [tick.get_text() for tick in ax.get_xticklabels()]
    assert len(set(shown)) == 9 and max(map(len, shown)) <= 24 and all("…" in name for name in shown)
    labels = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(before.x1 <= after.x0 for before, after in pairwise(labels))


def test_names_that_the_user_gave_stay():
    classes = ["B", "B", "A", "A", "C", "C"]
    ax = pc.plot_alluvial({"class": classes, "found": [7, 7, 7, 3, 3, 3]})
    assert [text.get_text() for text in ax.texts] == ["B", "A", "C", "7", "3"]
    found = [tick.get_text() for tick in pc.plot_cluster_profiles(np.arange(6.0), classes).get_yticklabels()]
    assert found == ["B (n = 2)", "A (n = 2)", "C (n = 2)"]
    draws = np.array([[0, 0, 1, 1, 2, 2]] * 4)
    best = pc.consensus_partition(draws, method="best_draw").with_names(["x", "y", "z"])
    ax = pc.plot_alluvial({"best": best, "long names": pd.Series(classes).map({k: 9 * f"name {k}" for k in "ABC"})})
    texts = [text.get_text() for text in ax.texts]
    assert texts[:3] == ["x", "y", "z"] and all(len(text) == 24 and "…" in text for text in texts[3:])
    ax = pc.plot_psm(np.repeat(draws, 40, axis=1), np.repeat(classes, 40))
    assert sorted(tick.get_text() for tick in ax.get_yticklabels()) == ["A", "B", "C"]


def test_the_map_explains_hollow_points_and_axes_that_show_little():
    ax = pc.plot_draws_map(draws(), ball=pc.credible_ball(draws(), LABELS, prob=0.5))
    assert "outside of the 50% ball" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert "far apart" in ax.get_xlabel()
    assert "of the variation" in ax.get_xlabel()
    few = pc.plot_draws_map([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]])
    assert "far apart" not in few.get_xlabel()


def test_equal_draws_are_one_point_whose_area_is_their_number():
    draws = np.array([[0, 0, 1, 1, 2]] * 60 + [[0, 0, 1, 1, 1]] * 12 + [[0, 1, 1, 1, 2]])
    ax = pc.plot_draws_map(draws)
    (dots,) = [found for found in ax.collections if len(found.get_offsets()) > 1]
    areas = np.sort(dots.get_sizes())
    np.testing.assert_allclose(areas / areas[0], [1, 12, 60])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[1] == "1 draw" and texts[2].endswith("equal draws") and texts[3] == "(largest: 60 equal draws)"
    apart = pc.plot_draws_map([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]])
    assert apart.get_legend() is None


def test_profiles_say_what_their_lines_are_and_are_few_artists():
    labels = np.repeat(np.arange(400), 5)
    for data, said in ((np.arange(2000.0), "median"), (np.arange(4000.0).reshape(2000, 2) ** 2, "standard deviation")):
        ax = pc.plot_cluster_profiles(data, labels)
        assert said in ax.get_xlabel()
        assert len(ax.collections) + len(ax.lines) < 20


def test_long_names_are_written_where_they_take_little_of_the_shorter_side():
    names = np.array(["a name of an item"] * 5)
    for height, written in ((2, False), (10, True)):
        ax = plt.figure(figsize=(10, height)).gca()
        assert label_items(ax, "x", names) is written


def test_long_names_that_begin_and_end_alike_are_told_apart():
    shown = short_names([f"patient number {k} of the hospital in the city" for k in range(5)], 16)
    assert len(set(shown)) == 5 and max(map(len, shown)) <= 16
    assert short_names(["x" * 20, "y" * 20, "y" * 20], 5) == ["xx…xx", "yy…yy", "yy…yy"]


def test_names_of_a_colour_bar_and_of_the_next_axis_do_not_touch():
    axes = four_panels(draws(), LABELS, ball(), items())
    axes[0, 0].figure.draw_without_rendering()
    (bar,) = [ax for ax in axes[0, 0].child_axes if ax.get_ylabel()]
    name, beside = (ax.yaxis.label.get_window_extent() for ax in (bar, axes[0, 1]))
    assert beside.x0 - name.x1 > 0.5 * name.width


@pytest.mark.parametrize(
    "plot",
    [
        lambda: pc.plot_psm(draws()),
        lambda: items().plot(),
        lambda: ball().plot(),
        lambda: four_panels(draws(), LABELS, ball(), items(), width="column"),
    ],
    ids=["psm", "items", "ball", "four panels"],
)
def test_without_matplotlib_the_error_has_the_next_step(plot, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"posterior-consensus\[plots\]"):
        plot()
