"""Colours, patterns, sizes and names in all plots: what the reader is to tell apart differs, and follows the style."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.text import Text

import posterior_consensus as pc
from posterior_consensus.plots.axes import cluster_entries, label_items
from posterior_consensus.plots.colours import COLOURS, MARK, chain_colour, chain_line
from posterior_consensus.plots.four_panels import four_panels
from tests.catalogue.posteriors import draws_of

DRAWS = draws_of(3, 40, 12)
LABELS = np.arange(12) % 3
BALL = pc.credible_ball(DRAWS, LABELS)
QUIET = {"random_seed": 1, "progressbar": False}
BY_N_CLUSTERS = pc.loss_by_n_clusters(DRAWS, n_clusters=[2, 3, 4], **QUIET)
COMPARED = pc.compare_posteriors(DRAWS, draws_of(4, 40, 12), n_particles=1, **QUIET)
SEVERAL = pc.particles(DRAWS, 3, random_seed=1, progressbar=False)
PARTIAL = pc.partial_partition(DRAWS, 0.3, random_seed=1)
COMPONENTS = {"mean": np.tile([0.0, 2.0, 9.0], (40, 1)), "sd": 1.0}
SIMILAR = pc.component_similarity(np.array([LABELS] * 40), **COMPONENTS)
CLUSTERS = pc.cluster_summary(np.array([LABELS] * 40), LABELS, mu=COMPONENTS["mean"])
STABLE = pc.stable_components(DRAWS, 0.7)
SENSITIVITY = pc.prior_sensitivity(
    DRAWS, pc.priors.crp(1.0), alternatives={"b": pc.priors.crp(1.2), "c": pc.priors.crp(1e9)}, **QUIET
)
PATH = pc.agreement_path([DRAWS, draws_of(4, 40, 12)], prices=[0.5], **QUIET)
EXPERTS = pc.expert_views(pc.as_constraints(DRAWS, random_seed=1), n_clusters=3, random_seed=1)
PLOTS = {
    "experts": lambda **kw: pc.plot_experts(EXPERTS, **kw),
    "expert_views": lambda **kw: pc.plot_expert_views(EXPERTS, **kw),
    "psm": lambda **kw: pc.plot_psm(DRAWS, LABELS, **kw),
    "psm_by_chain": lambda **kw: pc.plot_psm_by_chain(DRAWS, LABELS, **kw),
    "credible_ball": lambda **kw: pc.plot_credible_ball(BALL, **kw),
    "particles": lambda **kw: pc.plot_particles(SEVERAL, **kw),
    "membership": lambda **kw: pc.plot_membership(pc.membership(DRAWS, LABELS), **kw),
    "links": lambda **kw: pc.plot_links(pc.links(DRAWS, LABELS), **kw),
    "cluster_sizes": lambda **kw: pc.plot_cluster_sizes(pc.links(DRAWS, LABELS), **kw),
    "component_similarity": lambda **kw: pc.plot_component_similarity(SIMILAR, **kw),
    "cluster_summary": lambda **kw: pc.plot_cluster_summary(CLUSTERS, **kw),
    "stable_components": lambda **kw: pc.plot_stable_components(STABLE, **kw),
    "prior_sensitivity": lambda **kw: pc.plot_prior_sensitivity(SENSITIVITY, **kw),
    "agreement_path": lambda **kw: pc.plot_agreement_path(PATH, **kw),
    "density_peaks": lambda **kw: pc.plot_density_peaks(pc.partition_density(DRAWS, random_seed=1), **kw),
    "n_clusters": lambda **kw: pc.plot_n_clusters(DRAWS, LABELS, **kw),
    "loss_path": lambda **kw: pc.plot_loss_path(
        pc.loss_path(DRAWS, loss="binder", values=[0.01, 0.6], method="best_draw"), **kw
    ),
    "loss_by_n_clusters": lambda **kw: pc.plot_loss_by_n_clusters(BY_N_CLUSTERS, **kw),
    "posterior_comparison": lambda **kw: pc.plot_posterior_comparison(COMPARED, LABELS, **kw),
    "item_uncertainty": lambda **kw: pc.plot_item_uncertainty(pc.item_uncertainty(DRAWS, LABELS), **kw),
    "partial_partition": lambda **kw: pc.plot_partial_partition(PARTIAL, **kw),
    "data": lambda **kw: pc.plot_data(np.arange(24.0).reshape(12, 2), LABELS, **kw),
    "cluster_profiles": lambda **kw: pc.plot_cluster_profiles(np.arange(24.0).reshape(12, 2) ** 2, LABELS, **kw),
    "alluvial": lambda **kw: pc.plot_alluvial([LABELS, DRAWS.labels[0]], **kw),
    "traces": lambda **kw: pc.plot_traces(pc.diagnose(DRAWS, LABELS), **kw),
    "sequence": lambda **kw: pc.plot_sequence(pc.diagnostics.sequential_distances(DRAWS), **kw),
    "near_independence": lambda **kw: pc.plot_near_independence(pc.diagnostics.near_independence(DRAWS), **kw),
    "regimes": lambda **kw: pc.plot_regimes(np.arange(12.0), pc.membership(DRAWS, LABELS), **kw),
    "items_map": lambda **kw: pc.plot_items_map(DRAWS, LABELS, **kw),
    "dendrogram": lambda **kw: pc.plot_dendrogram(pc.cluster_merges(DRAWS, LABELS), **kw),
    "draws_map": lambda **kw: pc.plot_draws_map(DRAWS, LABELS, ball=BALL, **kw),
}
OVER_A_MATRIX = ("psm_by_chain", "posterior_comparison")
WITH_CMAP = ("psm", "psm_by_chain", "cluster_profiles", "loss_path", "posterior_comparison")


def figure_of(drawn):
    return np.ravel(drawn)[0].figure


def test_every_plot_is_tested_here():
    assert {f"plot_{name}" for name in PLOTS} == {name for name in dir(pc) if name.startswith("plot_")}


@pytest.mark.parametrize("name", PLOTS)
def test_ink_is_that_of_the_style(name):
    with plt.style.context("dark_background"):
        figure = figure_of(PLOTS[name]())
        figure.canvas.draw()
        texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        inside = [t for t in texts if t.get_bbox_patch() is not None]  # of a cluster's colour, on which it is read
        assert texts and {to_hex(text.get_color()) for text in texts if text not in inside} == {"#ffffff"}
        lines = [line for ax in figure.axes for line in ax.lines]
        assert "#222222" not in {to_hex(line.get_color()) for line in lines} or name in OVER_A_MATRIX
        edges = [spine for ax in figure.axes for spine in ax.spines.values() if spine.get_visible()]
        assert {to_hex(spine.get_edgecolor()) for spine in edges} <= {to_hex(rcParams["axes.edgecolor"])}
    plt.close("all")


def contrast(colours, page):
    """Least contrast of colours with a page, from 1 to 21, as the Web Content Accessibility Guidelines define it."""
    channels = np.vstack([to_rgba_array(page), to_rgba_array(colours)])[:, :3]
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    page, *others = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    return min(max(other / page, page / other) for other in others)


@pytest.mark.parametrize("name", [name for name in PLOTS if name not in (*OVER_A_MATRIX, "cluster_profiles")])
def test_lines_and_points_are_seen_on_a_dark_page(name):
    with plt.style.context("dark_background"):
        figure = figure_of(PLOTS[name]())
        figure.canvas.draw()
        for ax in figure.axes:
            shown = [line.get_color() for line in ax.lines]
            shown += [drawn.get_edgecolor() for drawn in ax.findobj(LineCollection) if len(drawn.get_edgecolor())]
            shown += [dots.get_facecolor() for dots in ax.findobj(PathCollection) if len(dots.get_facecolor())]
            assert all(contrast(colours, ax.get_facecolor()) >= 2.9 for colours in shown)
    plt.close("all")


@pytest.mark.parametrize("name", PLOTS)
def test_figures_have_the_size_that_is_asked_for(name):
    assert figure_of(PLOTS[name](figsize=(4.5, 3))).get_size_inches().tolist() == [4.5, 3]
    for wrong in (3, (3,), (3, -1), (3, np.inf)):
        with pytest.raises(ValueError, match="`figsize` must be a width and a height in inches"):
            PLOTS[name](figsize=wrong)
    with pytest.raises(TypeError, match="`figsize` must be numbers"):
        PLOTS[name](figsize="large")
    several = ("psm_by_chain", "traces", "sequence", "loss_by_n_clusters", "posterior_comparison", "agreement_path")
    several += ("prior_sensitivity", "regimes", "links")
    where = "axes" if name in several else "ax"
    with pytest.raises(ValueError, match=f"`figsize` is for a new figure, and `{where}` has one"):
        PLOTS[name](figsize=(3, 3), **{where: plt.subplots()[1]})
    plt.close("all")


@pytest.mark.parametrize("name", WITH_CMAP)
def test_colours_of_values_are_those_asked_for(name):
    for cmap in ("magma", plt.get_cmap("magma")):
        ax = np.ravel(PLOTS[name](cmap=cmap))[0]
        assert (ax.images or [ax.collections[0]])[0].get_cmap().name == "magma"
    with pytest.raises(ValueError, match="`cmap` must be a Colormap of Matplotlib or the name of one.* got 'magmo'"):
        PLOTS[name](cmap="magmo")
    plt.close("all")


def test_chains_and_clusters_share_no_colour():
    items = pc.item_uncertainty(DRAWS, LABELS)
    four = four_panels(DRAWS, LABELS, BALL, items)
    chains = {to_hex(line.get_color()) for line in four[0, 1].lines if line.get_marker() != "None"}
    clusters = {to_hex(patch.get_facecolor()) for patch in four[1, 1].patches}
    assert len(chains) == 3 and len(clusters) == 3 and not chains & clusters
    every = {chain_colour(k, 4) for k in range(4)} | {MARK}
    assert len(every) == 5 and not every & set(COLOURS)
    assert len({tuple(chain_line(k, 12).values()) for k in range(12)}) == 12
    plt.close("all")


def test_thirty_clusters_look_different():
    labels = np.repeat(np.arange(30), 4)
    draws = np.random.default_rng(1).permuted(np.tile(labels, (5, 1)), axis=1)

    def looks(patches):
        return {(to_hex(patch.get_facecolor(), keep_alpha=False), patch.get_hatch() or "") for patch in patches}

    ax = pc.plot_item_uncertainty(pc.item_uncertainty(draws, labels))
    assert len(looks(ax.patches)) == 30 and "repeat" not in ax.get_xlabel()
    assert len(looks(pc.plot_alluvial([labels, labels]).patches)) == 30
    ball = pc.credible_ball(np.tile(labels, (5, 1)), labels)
    hatched = looks(pc.plot_credible_ball(ball).patches)
    assert len(hatched) == 10 and all(hatch for _, hatch in hatched)
    ax = pc.plot_data(np.arange(240.0).reshape(120, 2), labels)
    dots = [found for found in ax.collections if isinstance(found, PathCollection)]
    shapes = {
        (to_hex(colour), found.get_paths()[0].vertices.tobytes()) for found in dots for colour in found.get_edgecolors()
    }
    assert len(shapes) == 30
    plt.close("all")


def test_the_axis_says_where_colours_repeat():
    labels = np.arange(200)
    ax = pc.plot_item_uncertainty(pc.item_uncertainty([labels], labels), order="data")
    assert ax.get_xlabel().endswith("colours repeat after 20 clusters")
    ax = pc.plot_alluvial([labels, labels])
    assert ax.get_xlabel() == "colours repeat after 20 clusters"
    ax = pc.plot_alluvial([labels, labels], figsize=(4, 20))
    assert ax.get_xlabel() == "colours and patterns repeat after 120 clusters"
    plt.close("all")


def test_a_fixed_number_of_clusters_is_said_in_words():
    ax = pc.plot_n_clusters(np.random.default_rng(1).permuted(np.tile(LABELS, (3, 20, 1)), axis=2))
    assert ax.get_title() == "Every draw has 3 clusters."
    assert len(ax.patches) == 1 and not [line for line in ax.lines if line.get_marker() == "o"]


@pytest.mark.parametrize("n_items", [82, 300, 1500])
def test_dots_are_seen_for_many_items(n_items):
    labels = np.arange(n_items) % 3
    draws = np.random.default_rng(1).permuted(np.tile(labels, (4, 1)), axis=1)
    ax = pc.plot_item_uncertainty(pc.item_uncertainty(draws, labels))
    (points,) = [found for found in ax.collections if isinstance(found, PathCollection)]
    assert np.all(points.get_sizes() >= 9) and np.all(points.get_linewidths() > 0)
    plt.close("all")


def test_small_clusters_have_ticks_and_names_where_there_is_room():
    labels = np.array([0] * 200 + [1] + [2] * 100 + [3])
    draws = np.tile(labels, (4, 1))
    for axis in (pc.plot_psm(draws, labels).xaxis, pc.plot_item_uncertainty(pc.item_uncertainty(draws, labels)).xaxis):
        np.testing.assert_allclose(axis.minor.locator(), [99.5, 200, 250.5, 301])
        assert [tick.get_text() for tick in axis.get_ticklabels()] == ["0", "1", "2", "3"]
    plt.close("all")


def test_names_of_clusters_do_not_touch():
    labels = np.repeat(np.arange(40), np.random.default_rng(2).integers(1, 30, 40))
    ax = pc.plot_psm(np.tile(labels, (2, 1)), labels)
    ax.figure.canvas.draw()
    boxes = sorted((label.get_window_extent() for label in ax.get_xticklabels()), key=lambda box: box.x0)
    assert len(boxes) > 10
    assert all(before.x1 < after.x0 for before, after in pairwise(boxes))
    plt.close("all")


@pytest.mark.parametrize(("number", "last"), [(12, "11 (n = 1)"), (13, "and 1 smaller ones")])
def test_a_legend_counts_the_clusters_that_it_does_not_name(number, last):
    labels = np.arange(number)
    assert cluster_entries(labels, labels, labels)[-1].get_label() == last


def test_long_names_of_features_leave_room_for_the_cells():
    names = [f"a measurement with a name of sixty characters, in mg/l, day {i}" for i in range(9)]
    data = pd.DataFrame(np.random.default_rng(1).normal(size=(12, 9)), columns=names)
    ax = pc.plot_cluster_profiles(data, LABELS)
    ax.figure.canvas.draw()
    assert ax.get_window_extent().height > 0.3 * ax.figure.bbox.height
    shown = [tick.get_text() for tick in ax.get_xticklabels()]
    assert len(set(shown)) == 9 and max(map(len, shown)) <= 24 and all("…" in name for name in shown)
    labels = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(before.x1 <= after.x0 for before, after in pairwise(labels))
    plt.close("all")


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
    plt.close("all")


def test_the_map_explains_hollow_points_and_axes_that_show_little():
    ax = pc.plot_draws_map(DRAWS, ball=pc.credible_ball(DRAWS, LABELS, prob=0.5))
    assert "outside of the 50% ball" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert "Draws that are close on it can be at a large distance." in ax.get_title(loc="left")
    assert "of the variation" in ax.get_xlabel()
    few = pc.plot_draws_map([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]])
    assert not few.get_title(loc="left")
    plt.close("all")


def test_profiles_of_many_clusters_are_few_artists():
    labels = np.repeat(np.arange(1000), 2)
    ax = pc.plot_cluster_profiles(np.arange(2000.0), labels)
    assert len(ax.collections) + len(ax.lines) < 10
    ax = pc.plot_cluster_profiles(np.arange(4000.0).reshape(2000, 2) ** 2, labels)
    assert len(ax.collections) + len(ax.lines) < 10
    plt.close("all")


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
    plt.close("all")


def test_profiles_say_what_their_lines_are():
    assert pc.plot_cluster_profiles(np.arange(12.0), LABELS).get_title(loc="left") == (
        "line: quartiles of the cluster; tick: median"
    )
    several = pc.plot_cluster_profiles(np.arange(24.0).reshape(12, 2) ** 2, LABELS)
    assert several.get_title(loc="left").startswith("line: standard deviation within the cluster")
    plt.close("all")


def test_long_names_are_written_where_they_take_little_of_the_shorter_side():
    names = np.array(["a name of an item"] * 5)
    for height, written in ((2, False), (10, True)):
        ax = plt.figure(figsize=(10, height)).gca()
        assert label_items(ax, "x", names) is written
    plt.close("all")
