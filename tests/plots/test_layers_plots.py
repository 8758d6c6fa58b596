"""Figures of layers show what the comparison says."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.plots import layers as figures
from posterior_consensus.results.palette import COLOURS

QUIET = {"random_seed": 1, "progressbar": False}


@cache
def compared(n_layers):
    """Two clusters; after the first layer, each layer's third item changes sides in half of the draws."""
    z = np.tile(np.repeat([0, 1], 4), (2, 20, n_layers, 1))
    z[:, ::2, 1:, 2] = 1
    dims = ("chain", "draw", "year", "firm")
    coords = {"year": np.arange(1990, 1990 + n_layers), "firm": [f"f{k}" for k in range(8)]}
    layers = pc.as_layers(xr.DataArray(z, dims=dims, coords=coords, name="z"), layer_dim="year")
    return layers, pc.compare_layers(layers, **QUIET)


def height(path):
    """Width of a band at its beginning."""
    return abs(path.vertices[-2, 1] - path.vertices[0, 1])


def test_bands_are_as_wide_as_the_expected_flows():
    _, comparison = compared(2)
    (ax,) = comparison.plot()
    (bands,) = ax.collections
    widths = sorted(
        height(path) for path, colour in zip(bands.get_paths(), bands.get_facecolors(), strict=True) if colour[3]
    )
    expected = comparison.flows["expected"].values
    np.testing.assert_allclose(widths, np.sort(expected[expected > 0.05]) / 8, atol=1e-12)


def test_bands_of_items_that_clearly_moved_are_named():
    z = np.tile(np.repeat([0, 1], 4), (2, 100, 3, 1))
    z[:, :, 2, [1, 6]] = [1, 0]
    (ax,) = pc.compare_layers(pc.as_layers(z), **QUIET).plot()
    assert ax.get_title().replace("\n", " ").endswith("; 1 (probability 100%) and 6 (100%) moved")
    assert {"1", "6"} <= {text.get_text() for text in ax.texts if text.get_zorder() == 4}


def test_a_flow_that_is_sure_is_more_opaque():
    _, comparison = compared(2)
    (bands,) = comparison.plot()[0].collections
    opacity = {
        round(height(path) * 8, 6): colour[3]
        for path, colour in zip(bands.get_paths(), bands.get_facecolors(), strict=True)
    }
    assert opacity[0.5] < opacity[3.5] < opacity[4.0]


def test_a_page_holds_the_figure_and_its_legend_explains_opacity_and_grey():
    _, comparison = compared(30)
    (ax,) = comparison.plot()
    assert ax.figure.get_size_inches()[0] * 25.4 < 181
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(texts) == 2 and "sure" in texts[0] and "90% interval" in texts[1]
    sure, none = (handle.get_facecolor()[3] for handle in ax.get_legend().legend_handles)
    bands = [colour[3] for bands in ax.collections for colour in bands.get_facecolors() if colour[3]]
    assert none == pytest.approx(min(bands)) and sure == pytest.approx(max(bands))
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    assert len(boxes) > 9 and all(before.x1 < after.x0 for before, after in pairwise(boxes))
    named = {round(text.get_position()[0]) for text in ax.texts if text.get_text()}
    assert named == {0, 29}  # where clusters begin, and the end


def test_of_many_layers_some_are_shown(monkeypatch):
    monkeypatch.setattr(figures, "_MOST_COLUMNS", 3)
    _, comparison = compared(6)
    (ax,) = comparison.plot()
    assert "3 of 6" in ax.get_xlabel()
    assert {tick.get_text()[:4] for tick in ax.get_xticklabels()} >= {"1990", "1991"}


def test_layers_without_common_items_are_columns_without_bands():
    layers, _ = compared(2)
    apart = {"rows": layers[1990], "columns": pc.as_partition_draws(layers[1991].labels.reshape(2, 20, 8))}
    (ax,) = pc.compare_layers(apart, **QUIET).plot()
    assert [len(bands.get_paths()) for bands in ax.collections] == [0]
    assert "elsewhere" not in {text.get_text() for text in ax.texts}


@pytest.mark.parametrize("column", ["expected_loss", "ari"])
def test_distances_and_their_profile(column):
    _, comparison = compared(4)
    matrix, profile = pc.plot_layer_distances(comparison, column)
    (alone,) = pc.plot_layer_distances(replace(comparison, ordered=False), column)
    np.testing.assert_array_equal(alone.images[0].get_array(), comparison.distances[column])
    np.testing.assert_array_equal(matrix.images[0].get_array(), comparison.distances[column])
    (line,) = (one for one in profile.lines if one.get_label() == "mean")
    means = comparison.to_dataframe()[column].groupby(np.array([1, 1, 1, 2, 2, 3])).mean()
    np.testing.assert_allclose(line.get_ydata(), means)


def test_items_have_the_colours_of_their_clusters_names():
    layers, comparison = compared(3)
    strips = pc.plot_layer_items(comparison)[0].images
    for image, row in zip(strips, comparison.partitions.labels.values, strict=True):
        assert {to_hex(colour).upper() for colour in image.get_array()[0]} == {COLOURS[k].upper() for k in row}
    memberships = {name: pc.membership(draws, comparison.partitions[name]) for name, draws in layers.items()}
    axes = pc.plot_layer_items(memberships)
    assert len(axes) == 3 and axes[0].get_ylabel() == "1990"


def test_clear_moves_are_marked_above_the_layer_that_they_lead_to():
    z = np.tile(np.repeat([0, 1], 4), (2, 100, 3, 1))
    z[:, :, 2, [1, 6]] = [1, 0]
    comparison = pc.compare_layers(pc.as_layers(z), **QUIET)
    assert [np.flatnonzero(row).tolist() for row in comparison.overlaps["clear"].values] == [[], [1, 6]]
    (ax,) = pc.plot_layer_items(comparison, order="data")
    filled, hollow = ax.collections[::2], ax.collections[1::2]
    assert [marks.get_offsets().tolist() for marks in filled] == [[], [[1.0, 1.5], [6.0, 1.5]]]
    assert not any(len(marks.get_offsets()) for marks in hollow)


def test_a_summary_stands_for_its_comparison_and_its_memberships():
    layers, _ = compared(2)
    summary = pc.summarize(layers, modes=False, n_starts=1, **QUIET)
    for plot in (lambda one: one.plot(), pc.plot_layer_distances, pc.plot_layer_items):
        assert [len(plot(one)) for one in (summary, summary.comparison)] in ([1, 1], [2, 2])
    values = np.arange(8.0)
    axes = pc.plot_regimes(values, summary[1990])
    expected = pc.plot_regimes(values, pc.membership(summary[1990]))
    assert len(axes[-1].patches) == len(expected[-1].patches) and expected[-1].get_ylabel()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda c: pc.plot_layer_distances(c.distances), TypeError, "compare_layers"),
        (lambda c: pc.plot_layer_distances(c, "loss"), ValueError, "'loss'"),
        (lambda c: pc.plot_layer_items({"a": c}), TypeError, "memberships"),
    ],
)
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call(compared(2)[1])
    plt.close("all")
