"""Figures of runs with noise: one grey, one place in a row, no cluster."""

from itertools import groupby

from matplotlib.colors import to_hex
from numpy.testing import assert_array_equal

import posterior_consensus as pc
from posterior_consensus.plots.colours import NOISE_GREY
from posterior_consensus.results.palette import COLOURS

RUNS = [[0, -1, 0, 0, 1, -1, 1, 1, -1, -1]] * 7 + [[0, 0, 0, 0, 1, -1, 1, 1, 1, -1], [0, -1, 0, 0, 0, -1, 0, 0, -1, -1]]


def runs(**given):
    return pc.as_runs([[*run] for run in RUNS], noise=-1, **given)


def colours_of(image):
    return [to_hex(colour).upper() for colour in image.get_array()[0]]


def test_noise_is_one_grey_at_the_end_of_matrices_and_strips():
    summary = pc.summarize(runs(), random_seed=1, progressbar=False)
    ax = pc.plot_psm(runs(), summary)
    shown = [int(tick.get_text()) for tick in ax.get_xticklabels()]
    assert shown[:6] == [0, 2, 3, 4, 6, 7] and len(shown) == 10
    assert len(ax.patches) == 2  # outlines of clusters alone
    assert [to_hex(colour).upper() for colour in ax.collections[-1].get_facecolors()] == [*COLOURS[:2], NOISE_GREY]
    partition, *bounds = map(colours_of, summary.ball.plot().images)
    assert partition == [COLOURS[0]] * 3 + [COLOURS[1]] * 3 + [NOISE_GREY] * 4
    assert all(set(bound) <= {*COLOURS[:2], NOISE_GREY} for bound in bounds)
    found = pc.particles(runs(), 2, random_seed=1, progressbar=False)
    lengths = [[len([*same]) for _, same in groupby(colours_of(row))] for row in found.plot().images]
    assert lengths == [[3, 3, 4], [3, 3, 1, 1, 2]]
    assert [text.get_text() for text in pc.plot_alluvial(found).texts] == ["0", "1", "noise"] * 2


def test_balls_and_particles_say_which_clusters_are_items_of_noise():
    summary = pc.summarize(runs(), random_seed=1, progressbar=False)
    ball = pc.credible_ball(runs(), summary, prob=0.99)
    assert ball.n_clusters == (2, 2, 1, 2)
    assert_array_equal(ball.partition < ball.noise_from, ~summary.noise)
    found = pc.particles(runs(), 2, random_seed=1, progressbar=False, partition=summary)
    assert found.n_clusters.values.tolist() == [2, 2]
    assert_array_equal(found.partitions[0] < found.noise_from, ~summary.noise)
    for record in (ball, found):
        assert type(record).from_dataset(record.to_dataset()).noise_from == record.noise_from


def test_modes_say_which_items_are_noise():
    asked = {"n_modes": 1, "random_seed": 1, "progressbar": False}
    found = pc.consensus.fit_modes(runs(), **asked)
    assert found.n_clusters.item() == 2 and found.to_dataframe()["clusters"].tolist() == [2]
    assert_array_equal(type(found).from_dataset(found.to_dataset()).is_noise, found.is_noise)
    shown = colours_of(found.plot()[0].images[0])
    assert shown == [COLOURS[0]] * 3 + [COLOURS[1]] * 3 + [NOISE_GREY] * 4 and found.is_noise.sum() == 4
    assert pc.consensus.fit_modes(runs().labels, **asked).is_noise is None


def test_labels_of_a_run_are_a_partition_for_runs_with_noise():
    assert pc.expected_loss(runs(), RUNS[0], loss="vi") == pc.expected_loss(runs(), runs().labels[0], loss="vi")


def test_the_legend_of_item_uncertainty_is_no_wider_than_its_axes():
    axes = pc.summarize(runs(), random_seed=1, progressbar=False).plot()
    axes[0, 0].figure.draw_without_rendering()
    legend, box = axes[1, 1].get_legend(), axes[1, 1].get_window_extent()
    assert legend.get_window_extent().x0 >= box.x0


def test_noise_of_aligned_partitions_is_grey():
    summary = pc.summarize(runs(), random_seed=1, progressbar=False)
    ax = pc.plot_alluvial(pc.align_partitions([summary, summary]))
    faces = {to_hex(patch.get_facecolor()).upper() for patch in ax.patches}
    assert faces == {*COLOURS[:2], NOISE_GREY}
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0\n2 clusters", "1\n2 clusters"]


def test_noise_of_data_is_one_entry_of_the_legend():
    best = pc.consensus_partition(runs(), random_seed=1, progressbar=False)
    ax = pc.plot_data([[k, k % 3] for k in range(10)], best)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0 (n = 3)", "1 (n = 3)", "noise (n = 4)"]
    assert to_hex(ax.get_legend().legend_handles[2].get_color()).upper() == NOISE_GREY
