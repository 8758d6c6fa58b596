"""All figures speak one grammar: open axes, units in brackets, one meaning of colours and marks, findings as titles."""

import re
import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import posterior_consensus as pc
from posterior_consensus.plots import frame, grammar
from posterior_consensus.plots.colours import MARK, on_page
from posterior_consensus.results.palette import COLOURS
from tests.catalogue.plots import PLOTS, drawn

# Figures without clusters, in which no cluster's colour may be.
WITHOUT_CLUSTERS = {
    *("agreement_path", "cluster_sizes", "component_similarity", "density_peaks", "draws_map", "experts", "factors"),
    *("layer_distances", "links", "loss_by_n_clusters", "loss_path", "n_clusters", "near_independence"),
    *("partial_partition", "posterior_comparison", "prior_sensitivity", "psm by chain", "sequence"),
    *("stable_components", "traces", "tree"),
}
WITH_THE_PARTITION = {"cluster_sizes", "draws_map", "n_clusters", "partial_partition", "psm", "stable_components"}
WITH_ERRORS = {
    *("cluster_stability", "layer_stability", "links", "loss_by_n_clusters", "posterior_comparison"),
    *("partial_partition", "prior_sensitivity"),
}


def looks(figure):
    """Lines, areas and points of a figure, each with its colours."""
    for artist in figure.findobj(lambda one: isinstance(one, (Line2D, Patch, Collection))):
        if artist.get_visible():
            own = (
                [artist.get_color(), artist.get_markeredgecolor(), artist.get_markerfacecolor()]
                if isinstance(artist, Line2D)
                else [*np.atleast_2d(artist.get_facecolor()), *np.atleast_2d(artist.get_edgecolor())]
            )
            yield artist, {to_hex(colour).upper() for colour in own if np.size(colour)}


def labels_of(figure):
    return [label for ax in figure.axes for label in (ax.get_xlabel(), ax.get_ylabel())]


@pytest.mark.parametrize("name", PLOTS)
def test_figures_speak_one_grammar(name):
    axes = drawn(name)
    figure = axes[0].figure
    figure.draw_without_rendering()
    for ax in axes:
        assert not ax.spines["top"].get_visible() and not ax.spines["right"].get_visible()
    for label in labels_of(figure):
        assert not re.search(r"\bbits\b", re.sub(r"\(bits\)", "", label)), label
    coloured = list(looks(figure))
    if name in WITHOUT_CLUSTERS:
        assert not [artist for artist, own in coloured if own & set(COLOURS)]
    red = [artist for artist, own in coloured if MARK in own]
    assert bool(red) == (name in WITH_THE_PARTITION)
    dashed = [line for line in red if isinstance(line, Line2D) and line.get_linestyle() == "--"]
    assert all(line.get_label().startswith("partition") for line in dashed)
    said = [ax.get_title() for ax in axes if ax.get_title()] or [figure.get_suptitle()]
    assert said[0]
    entries = [text.get_text() for ax in axes if ax.get_legend() for text in ax.get_legend().get_texts()]
    assert any("±" in label for label in [*labels_of(figure), *entries]) or name not in WITH_ERRORS


@pytest.mark.parametrize("name", PLOTS)
def test_titles_and_names_of_lines_are_within_the_figure(name):
    figure = drawn(name)[0].figure
    figure.draw_without_rendering()
    box = figure.bbox
    for text in (text for ax in figure.axes for text in (ax.title, *ax.texts)):
        own = text.get_window_extent()
        assert not text.get_text() or (own.x0 >= box.x0 - 1 and own.x1 <= box.x1 + 1), text.get_text()


NARROW = "cluster_stability", "cluster_summary", "credible_ball", "draws_map", "near_independence", "stable_components"


@pytest.mark.parametrize("name", NARROW)
def test_axes_have_labels_within_a_narrow_figure(name):
    figure = drawn(name, figsize=(3.5, 3.5))[0].figure
    figure.draw_without_rendering()
    box = figure.bbox
    for label in (axis.label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        own = label.get_window_extent()
        assert not label.get_text() or (own.x0 >= box.x0 - 2 and own.x1 <= box.x1 + 2), label.get_text()


def test_numbers_have_all_their_digits_and_the_minus_of_the_axes():
    shown = [grammar.in_digits(*case) for case in ((1.1, 3, "bits"), (12.0, 2), (-0.02, 2), (0.0, 2), (0.9, 2, "bits"))]
    assert shown == ["1.10 bits", "12", "\N{MINUS SIGN}0.020", "0", "0.90 bits"]


def test_the_merge_that_costs_least_need_not_join_similar_clusters():
    draws = np.array([[0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3]] * 9 + [[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3]])
    ax = pc.cluster_merges(draws, draws[0], loss="binder").plot()
    said = "merging clusters 2 (n = 1) and 3 (n = 1) raises the expected Binder loss least, by 0.014"
    assert ax.get_title().replace("\n", " ") == said


def test_lines_that_end_together_share_a_name():
    ax = plt.figure().gca()
    for name, end in (("a", 0.0), ("b", 1.0), ("c", 0.001)):
        ax.plot([0, 1], [0, end], label=name)
    grammar.name_ends(ax)
    assert [text.get_text() for text in ax.texts] == ["a\nc", "b"]


@pytest.mark.parametrize("along", ["x", "y"])
@pytest.mark.parametrize("value", [0.2, 0.8])
def test_a_limit_is_named_inside_of_the_axes(along, value):
    ax = plt.figure().gca()
    grammar.mark_limit(ax, value, "a limit", along)
    ax.figure.draw_without_rendering()
    (line,), (text,) = ax.lines, ax.texts
    assert line.get_linestyle() == ":" and set(line.get_xdata() if along == "x" else line.get_ydata()) == {value}
    inside = text.get_window_extent()
    assert ax.bbox.x0 <= inside.x0 and inside.x1 <= ax.bbox.x1 and ax.bbox.y0 <= inside.y0 and inside.y1 <= ax.bbox.y1


def test_an_excess_has_no_error_bar_below_zero():
    draws = np.array([[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 2]] * 50)
    others = {f"a = {a}": pc.priors.crp(a) for a in (0.5, 2.0)}
    found = pc.prior_sensitivity(draws, pc.priors.crp(1.0), alternatives=others, random_seed=1, progressbar=False)
    excess = found.plot()[1]
    assert excess.get_ylim()[0] == 0
    assert min(bar[:, 1].min() for bars in excess.collections for bar in bars.get_segments()) >= 0


def test_items_below_the_limit_are_named():
    draws = np.tile(np.repeat([0, 1], 5), (10, 1))
    draws[:6, 4] = 1
    ax = pc.item_uncertainty(draws, np.repeat([0, 1], 5)).plot()
    said = "1 of 10 items has a mean similarity to own cluster below 0.5: 4 (nearer to cluster 1)"
    assert ax.get_title().replace("\n", " ") == said
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["4"]
    (name,) = [text for text in ax.texts if text.get_text()]
    assert name.xy[1] > max(bar.get_data().values.max() for bar in ax.patches) - 0.2  # above its neighbours


@pytest.mark.parametrize("size", [4, 300])
def test_the_least_supported_node_of_a_tree_that_is_not_small_has_its_number(size):
    few = np.repeat([0, 1], [size, 2])
    split = np.where(np.arange(size + 2) == 0, 2, few)
    layers = pc.as_layers(np.array([[[few, split]] * 6 + [[few, few]] * 5]), ordered=True)
    tree = pc.consensus_tree(layers, random_seed=1, progressbar=False)
    ax, sizes = tree.plot(), tree.nodes["size"].values
    (large,) = np.nonzero((sizes >= 5) | (sizes.max() < 5))
    least = large[tree.nodes["support"].values[large].argmin()]
    assert str(least) in {text.get_text() for text in ax.texts}
    said = ax.get_title().replace("\n", " ")
    assert said.startswith("2 clusters at 0 split into 3 at 1; ") and f"node {least}" in said


@pytest.mark.parametrize("n_below", [2, 7])
def test_items_that_a_title_names_are_in_the_picture(n_below):
    draws = np.tile(np.repeat([0, 1], 40), (10, 1))
    draws[:7, :n_below] = 2 + np.arange(n_below)
    labels = np.repeat([0, 1], 40)
    for ax in (pc.item_uncertainty(draws, labels).plot(), pc.membership(draws, labels).plot()):
        items = re.sub(r"\(.*?\)", "", ax.get_title().replace("\n", " ").split(": ")[1])
        named = re.findall(r"\d+", items.partition(" and ")[0])
        assert named and set(named) <= {text.get_text() for text in ax.texts}
        assert ax.get_title().endswith(f"{n_below - 3} more") == (n_below > 3)


def test_the_partition_outside_of_the_draws_sizes_is_said():
    draws = np.array([[0, 0, 1, 2]] * 40)
    assert pc.plot_cluster_sizes(pc.links(draws, [0, 0, 1, 2])).get_title() == "the partition is within every interval"
    ax = pc.plot_cluster_sizes(pc.links(draws, [0, 1, 2, 3]))
    said = "the partition has 4 clusters of size 1 (above the 90% interval, 2), 0 of size 2 (below, 1)"
    assert ax.get_title().replace("\n", " ") == said


def test_the_items_that_differ_beyond_error_are_counted():
    rng, one = np.random.default_rng(1), np.tile([0, 0, 0, 1, 1, 1], (2, 100, 1))
    one[:, :, 3] = rng.random((2, 100)) < 0.5
    other = one.copy()
    other[:, :, 0] = 1  # which item 3, in either cluster in half of the draws, does not notice
    for second, said in (
        (other, "5 of 6 items differ beyond Monte Carlo error (p ≤ 0.05), at most by"),
        (one[::-1], "no"),
    ):
        comparison = pc.compare_posteriors(one, second, n_particles=1, random_seed=1)
        assert comparison.plot()[1].get_title().replace("\n", " ").startswith(said)


def test_the_similarity_of_the_nearest_clusters_is_at_their_line():
    ax = pc.plot_items_map([[0, 0, 1, 1, 2, 2]] * 3 + [[0, 0, 1, 1, 1, 1]], [0, 0, 1, 1, 2, 2])
    assert ax.get_title().replace("\n", " ") == "clusters 1 and 2 are most alike: mean similarity 0.25 (at the line)"
    (line,) = ax.lines
    (place,) = [text.xy for text in ax.texts if text.get_text() == "0.25"]
    assert np.allclose(place, line.get_xydata().mean(axis=0))


def test_lines_of_a_title_are_as_few_as_possible_and_about_equally_long():
    assert frame.balanced("one two three four five", 20) == ["one two three", "four five"]
    assert frame.balanced("a longername", 4) == ["a", "longername"]
    assert frame.balanced("x" * 40, 4) == textwrap.wrap("x" * 40, 20)


def test_areas_are_less_transparent_on_a_dark_page():
    with plt.style.context("dark_background"):
        assert on_page(1.0) == 1.0 and on_page(0.1) > 0.2
    assert on_page(0.1) == 0.1
