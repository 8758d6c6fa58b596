"""Pictures of the chains show what they should."""

from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.catalogue.plots import plotted
from tests.catalogue.posteriors import draws_of
from tests.helpers import check_all


def test_traces_are_drawn_by_chain_and_ranks_compared():
    draws = draws_of(3, 60, 8)
    found = pc.diagnose(draws)
    axes = found.plot()
    assert [text.get_text() for text in axes[0, 1].get_legend().get_texts()] == ["0", "1", "2"]
    for row, name in zip(axes, found.traces["summary"].values, strict=True):
        values = found.traces.sel(summary=name).values.reshape(3, 60)
        np.testing.assert_array_equal([line.get_ydata() for line in row[0].lines], values)
        assert row[0].get_title(loc="left").startswith(name)
        assert f"{float(found.summaries['rhat'].sel(summary=name)):.3f}" in row[1].get_title(loc="right")
        heights = np.array([patch.get_data().values for patch in row[1].patches])
        np.testing.assert_allclose(heights.mean(axis=0), 1)  # each bin has its share, over all chains
        np.testing.assert_allclose(heights.mean(axis=1), 1)


def test_values_of_runs_are_sorted_points_by_group():
    runs = pc.as_runs(draws_of(1, 40, 8).labels, groups=["b"] * 10 + ["a"] * 30)
    found = pc.diagnose(runs)
    axes = found.plot()
    assert [text.get_text() for text in axes[0, 1].get_legend().get_texts()] == ["a", "b"]
    for ax, values in zip(axes[:, 0], found.traces.values, strict=True):
        for line, own in zip(ax.lines, (values[10:], values[:10]), strict=True):
            assert line.get_linestyle() == "None" and line.get_marker() != "None"
            np.testing.assert_array_equal(line.get_ydata(), np.sort(own))
            np.testing.assert_allclose(line.get_xdata().mean(), 0.5)
        assert ax.get_xlim() == (0, 1)
    assert axes[-1, 0].get_xlabel().startswith("share of the runs, sorted by value\n")


def test_rows_of_traces_are_of_one_height():
    axes = pc.diagnose(draws_of(12, 20, 6)).plot()
    axes[0, 0].figure.draw_without_rendering()
    heights = [ax.get_window_extent().height for ax in axes[:, 0]]
    np.testing.assert_allclose(heights, heights[0], rtol=1e-3)
    gaps = -np.diff([ax.get_window_extent().y0 for ax in axes[:, 0]])
    np.testing.assert_allclose(gaps, gaps[0], rtol=0.02)


def test_ranks_of_chains_apart_are_apart():
    chains = np.array([[[0, 0, 0, 0]] * 30, [[0, 1, 2, 3]] * 30])
    ranks = pc.diagnose(chains).plot()[0, 1]
    low, high = (patch.get_data().values for patch in ranks.patches)
    np.testing.assert_allclose(low, [2] * 5 + [0] * 5)
    np.testing.assert_allclose(high, [0] * 5 + [2] * 5)


def test_matrices_of_the_chains_have_one_order_and_one_scale():
    draws = draws_of(3, 40, 10)
    labels = np.arange(10) % 2
    axes = pc.plot_psm(draws, labels, by="chain")
    difference = pc.diagnose(draws).largest_difference
    order = None
    for ax, rows, name in zip(axes, draws.samples.chains, [0, 1, 2], strict=True):
        shown = ax.images[0].get_array()
        matrix = reference.similarity(draws.labels[rows])
        marks = ax.lines[-1].get_xydata().astype(int)
        assert ax.get_title() == f"chain {name}" and ax.images[0].get_clim() == (0, 1)
        for i, j in marks:
            assert shown[i, j] == pytest.approx(matrix[difference.items])
        np.testing.assert_allclose(np.sort(shown, axis=None), np.sort(matrix, axis=None))
        assert order is None or np.array_equal(order, marks)
        order = marks
    title = f"largest difference {difference.size:.2f}: obs {difference.items[0]} and {difference.items[1]}"
    assert axes[0].figure.get_suptitle().startswith(title)


def test_lines_lie_between_clusters_unless_they_would_cover_the_matrix():
    draws = draws_of(1, 10, 62)
    for n_clusters, n_lines in ((1, 0), (30, 58), (31, 0)):
        assert len(pc.plot_psm(draws, np.arange(62) % n_clusters, by="chain")[0].lines) == n_lines
    across, down = pc.plot_psm(draws, np.arange(62) % 2, by="chain")[0].lines
    assert list(across.get_ydata()) == list(down.get_xdata()) == [30.5, 30.5]


def test_long_names_of_items_stay_within_the_figure():
    draws = draws_of(2, 40, 5, names=[f"patient number {i} of the university hospital in the city" for i in range(5)])
    figure = pc.plot_psm(draws, by="chain")[0].figure
    figure.draw_without_rendering()
    title, box = figure.texts[0].get_window_extent(), figure.bbox
    assert 0 <= title.x0 and title.x1 <= box.width and title.y1 <= box.height


def test_map_keeps_distances_that_a_plane_can_hold():
    partitions = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]])  # VI 1, 1 and 2: on a line
    ax = pc.plot_draws_map(np.repeat(partitions, 3, axis=0)[np.newaxis], partitions[1], n_draws=9)
    points = ax.collections[0].get_offsets().data
    found = np.linalg.norm(points[:, np.newaxis] - points, axis=2)  # equal draws are one point
    np.testing.assert_allclose(found, [[0, 1, 1], [1, 0, 2], [1, 2, 0]], atol=1e-7)
    estimate = ax.collections[-1].get_offsets().data[0]
    np.testing.assert_allclose(estimate, points[1], atol=1e-7)
    assert "100% of the variation" in ax.get_xlabel() and ax.get_ylabel() == "VI (bits), second axis: 0%"


def test_map_shows_some_of_every_chain_and_what_is_outside_of_the_ball():
    draws = draws_of(3, 200, 12)
    ball = pc.credible_ball(draws, draws.labels[0], prob=0.6)
    ax = pc.plot_draws_map(draws, ball=ball, n_draws=90)
    numbers = np.array([len(dots.get_offsets()) for dots in ax.collections[:48]]).reshape(8, 3, 2)  # in eight turns
    assert numbers.sum(axis=(0, 2)).tolist() == [30, 30, 30] and numbers[:, :, 0].sum(axis=1).max() < 30
    shown = draws.take(np.concatenate([rows[np.linspace(0, 199, 30).astype(int)] for rows in draws.samples.chains]))
    outside = sum(reference.vi(draws.labels[0], row) > ball.radius + 1e-9 for row in shown.labels)
    assert numbers[:, :, 1].sum() == outside > 0
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    marks = ["partition", "ball: farthest", "ball: fewest clusters", "ball: most clusters"]
    assert legend == ["chain 0", "chain 1", "chain 2", "outside of the 60% ball", *marks]


def test_sequence_and_the_end_of_the_burn_in_are_drawn_by_chain():
    draws = draws_of(3, 130, 12)
    found = pc.diagnostics.sequential_distances(draws, loss="binder", lag=2)
    axes = found.plot()
    for ax, values in zip(axes, (found.steps, found.to_second_half), strict=True):
        traces, means, ends = (ax.lines[k::3] for k in range(3))
        series = values.values.reshape(3, 130)
        np.testing.assert_array_equal([line.get_ydata() for line in traces], series)
        for line, own in zip(means, series, strict=True):
            x, y = line.get_xydata()[10]
            assert y == pytest.approx(own[int(x) - 2 : int(x) + 3].mean())
        assert [line.get_xdata()[0] for line in ends] == found.burn_in["burn_in"].values.tolist()
        styles = ["--" if settled else ":" for settled in found.burn_in["settled"]]
        assert [line.get_linestyle() for line in ends] == styles
    assert axes[0].get_ylabel().split() == "Binder loss from the draw 2 before".split()
    assert axes[0].get_title() == (
        f"burn-in ends by draw {found.burn_in['burn_in'].values.max()}"
        if found.burn_in["settled"].all()
        else "the end of the burn-in is not determined"
    )
    for name, end, settled in zip("012", *(found.burn_in[key].values for key in ("burn_in", "settled")), strict=True):
        (text,) = [text for text in axes[0].texts if text.get_text().startswith(f"chain {name}: ")]
        assert (f"{end:,}" in text.get_text()) == settled
    short = pc.diagnostics.sequential_distances(draws_of(1, 60, 5)).plot()
    assert short[0].lines[2].get_linestyle() == ":" and short[0].lines[2].get_xdata()[0] == 30
    no_steps = pc.diagnostics.sequential_distances(draws_of(1, 4, 5), lag=4).plot()
    no_steps[0].figure.draw_without_rendering()


def test_histograms_hold_all_resamples(rng):
    found = pc.diagnostics.near_independence(rng.integers(3, size=(200, 1)) * np.ones(6, int) * [0, 0, 0, 1, 1, 1])
    mine = plt.figure().subplots()
    ax = found.plot(ax=mine)
    assert ax is mine
    first, second = ax.containers
    names = [text.get_text() for text in ax.texts]
    assert names == ["draws vs\nother draws", "draws vs\nindependent items"]
    np.testing.assert_allclose([text.xy[0] for text in ax.texts], found.resampled.median("resample").values)
    heights = np.array([[bar.get_height() for bar in one] for one in (first, second)])
    assert heights.sum(axis=1).tolist() == [500, 500]
    edges = [bar.get_x() for bar in first]
    for row, values in zip(heights, found.resampled.values, strict=True):
        assert np.average(edges, weights=row) == pytest.approx(values.mean(), abs=edges[1] - edges[0])
    assert ax.get_title().replace("\n", " ").endswith("(999 permutations: p = 0.001)")
    same = pc.diagnostics.near_independence(np.zeros((30, 4), int)).plot()
    same.figure.draw_without_rendering()


def test_labels_below_the_histograms_do_not_touch(rng):
    found = pc.diagnostics.near_independence(rng.integers(2, size=(60, 6)))
    wide = found.resampled.copy(data=np.tile(np.linspace(-0.0015, 0.0025, 500), (2, 1)))
    ax = replace(found, resampled=wide).plot()
    ax.figure.draw_without_rendering()
    labels = [label.get_window_extent() for label in ax.get_xticklabels()]
    shown = [box for box in labels if ax.bbox.x0 <= (box.x0 + box.x1) / 2 <= ax.bbox.x1]
    assert all(after.x0 > before.x1 + 3 for before, after in pairwise(shown))


def test_bad_arguments():
    draws, short = draws_of(2, 5, 4), "`partition` must label all 4 items"
    cases = [
        (["psm", draws, {"by": "chain", "axes": [1, 2]}], TypeError, "`axes` must hold matplotlib Axes; got int"),
        (["psm", draws, {"by": "chain", "axes": plt.subplots()[1]}], ValueError, "`axes` must hold 2", "got 1"),
        (["psm", draws, [0], {"by": "chain"}], ValueError, short),
        (["psm", draws, {"by": "draw"}], ValueError, "`by` must be 'chain' or None; got 'draw'"),
        (["psm", draws, {"by": "chain", "ax": plt.gca()}], ValueError, "`ax` is for one matrix", "give `axes`"),
        (["psm", draws, {"axes": [plt.gca()] * 2}], ValueError, "`axes`", "by='chain'", "give `ax`"),
        (["draws_map", draws, [0]], ValueError, short),
        (["draws_map", draws, {"n_draws": 1}], ValueError, "`n_draws`", "an integer from 2; got 1"),
        (["draws_map", draws, {"ball": 3}], TypeError, "`ball` must be what credible_ball() returns; got int"),
    ]
    check_all(plotted, cases)
