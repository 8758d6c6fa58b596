"""Plots of the matrix, of numbers of clusters and of the path show what they should."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.results.palette import COLOURS
from tests.catalogue.posteriors import draws_of


def test_matrix_is_ordered_by_the_partition_and_outlined():
    draws = draws_of(1, 50, 12)
    labels = np.arange(12) % 3
    ax = pc.plot_psm(draws, labels)
    shown = ax.images[0].get_array()
    psm = pc.posterior_similarity_matrix(draws).values
    for k, patch in enumerate(ax.patches):
        start = round(patch.get_x() + 0.5)
        block = shown[start : start + 4, start : start + 4]
        members = np.flatnonzero(labels == k)
        np.testing.assert_allclose(np.sort(block, axis=None), np.sort(psm[np.ix_(members, members)], axis=None))
    assert len(ax.patches) == 3
    assert sorted(int(tick.get_text()) for tick in ax.get_xticklabels()) == list(range(12))


def test_matrix_in_the_order_of_the_data_has_runs_outlined():
    draws = draws_of(2, 20, 100, names=np.arange(1871, 1971))
    labels = np.repeat([3, 5, 3, 4], [40, 30, 1, 29])
    ax = pc.plot_psm(draws, labels, order="data")
    np.testing.assert_array_equal(ax.images[0].get_array(), pc.posterior_similarity_matrix(draws))
    assert [(patch.get_x() + 0.5, patch.get_width()) for patch in ax.patches] == [(0, 40), (40, 30), (70, 1), (71, 29)]
    (strip,) = ax.collections
    assert [to_hex(colour).upper() for colour in strip.get_facecolor()] == [COLOURS[k] for k in (3, 5, 3, 4)]
    for ticks in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [tick.get_text() for tick in ticks] == [str(year) for year in range(1871, 1971, 5)]
    few = pc.plot_psm(draws_of(1, 9, 3, names=["b", "a long name of an item", "c"]), order="data")
    assert [tick.get_text() for tick in few.get_yticklabels()] == ["b", "a long n…an item", "c"]
    days = np.datetime64("2024-02-28", "ns") + np.arange(3) * np.timedelta64(1, "D")
    dated = pc.plot_psm(draws_of(1, 9, 3, names=days), order="data")
    assert [tick.get_text() for tick in dated.get_yticklabels()] == ["2024-02-28", "2024-02-29", "2024-03-01"]
    with pytest.raises(ValueError, match=r"`order` .* a coordinate of the items \('obs'\), .*; got 'time'"):
        pc.plot_psm(draws, order="time")


def test_columns_of_a_matrix_follow_the_names_of_its_rows():
    psm = pc.posterior_similarity_matrix(draws_of(1, 9, 6, names=list("abcdef")))
    one, other = (
        pc.plot_psm(given, [0, 0, 0, 1, 1, 1]).images[0] for given in (psm, psm.isel(obs_bis=[3, 0, 5, 1, 4, 2]))
    )
    np.testing.assert_array_equal(one.get_array(), other.get_array())


def test_matrix_of_other_than_probabilities_is_refused():
    psm = pc.posterior_similarity_matrix(draws_of(1, 9, 6, names=list("abcdef")))
    renamed, cut = psm.assign_coords(obs_bis=list("abcdeg")), psm.isel(obs=slice(0, 4))
    for bad in (renamed, cut, psm * 3 - 1, psm.where(psm > 0.5)):
        with pytest.raises(ValueError, match="`draws` must"):
            pc.plot_psm(bad)


def test_names_are_written_where_they_can_be_read():
    def names(labels):
        return [tick.get_text() for tick in pc.plot_psm(draws_of(1, 9, len(labels), names=labels)).get_yticklabels()]

    assert sorted(names(list("abcdef"))) == list("abcdef")
    assert names([f"Country of the long name {i}" for i in range(40)]) == []
    assert names([f"{i}" for i in range(200)]) == []


def test_bars_are_probabilities_and_chains_are_crosses():
    draws = draws_of(3, 20, 6)
    ax = pc.plot_n_clusters(draws, np.zeros(6, int))
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(1)
    points = [line for line in ax.lines if line.get_marker() == "x"]
    assert [sum(line.get_ydata()) for line in points] == pytest.approx([1, 1, 1])
    assert len(pc.plot_n_clusters(draws_of(20, 6, 8)).get_legend().get_texts()) == 2  # many chains share an entry
    assert all(float(tick).is_integer() for tick in pc.plot_n_clusters([[0, 0, 1, 1, 2]]).get_xticks())


def test_the_prior_s_distribution_is_shown_as_far_as_it_can_be_seen():
    ax = pc.plot_n_clusters(np.zeros((5, 6), int), prior=pc.priors.crp(1.0))
    (line,) = (line for line in ax.lines if line.get_label() == "prior")
    chances = pc.priors.crp(1.0).n_clusters(6)
    np.testing.assert_array_equal(line.get_ydata(), chances.sel(n_clusters=line.get_xdata()))
    shown = line.get_xdata()
    assert shown[0] == 1 and shown[-1] < 6 and chances.sel(n_clusters=slice(shown[-1] + 1, None)).sum() < 0.01
    assert ax.get_xlim()[1] > shown[-1]


@pytest.mark.parametrize("loss", ["binder", "vi"])
def test_path_shows_numbers_of_clusters_and_where_nothing_changes(loss):
    path = pc.loss_path(draws_of(1, 9, 6), loss=loss, random_seed=1)
    ax = path.plot()
    (dots,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots.get_ydata(), path.table["n_clusters"])
    np.testing.assert_array_equal(dots.get_xdata(), path.table["tau" if loss == "binder" else "a"])
    (steps,) = ax.collections
    distances = path.table["distance_to_previous"].values[1:]
    np.testing.assert_array_equal(steps.get_array(), distances)
    assert len(set(steps.get_linewidths())) == 2
    np.testing.assert_array_equal(np.array(steps.get_linewidths()) > 3, distances == 0)
    for i, step in enumerate(steps.get_segments()):
        x, y = dots.get_xydata()[i : i + 2].T
        np.testing.assert_allclose(step, [(x[0], y[0]), (x.mean(), y[0]), (x.mean(), y[1]), (x[1], y[1])])
    default = "0.5" if loss == "binder" else "1"
    assert [text.get_text() for text in ax.texts] == [f"default: {default}"]
    assert ax.get_title().startswith(f"{np.sum(distances > 0)} changes")


def test_path_of_one_value_away_from_the_default():
    ax = pc.loss_path(draws_of(1, 9, 6), loss="binder", values=[0.8], random_seed=1).plot()
    assert not ax.collections and not ax.texts and ax.get_title().endswith("at the threshold 0.8")


@pytest.mark.parametrize(("n_items", "scale"), [(9, "linear"), (10, "log"), (150, "log")])
def test_many_clusters_are_on_a_logarithmic_axis(n_items, scale):
    path = pc.loss_path([[0] * n_items, range(n_items)], loss="binder", values=[0.3, 0.7], random_seed=1)
    assert path.table["n_clusters"].values.tolist() == [1, n_items]
    ax = path.plot()
    ax.figure.draw_without_rendering()
    assert ax.get_yscale() == scale
    assert all(float(tick.get_text()).is_integer() for tick in ax.get_yticklabels())


def test_items_of_a_cluster_at_one_place_are_one_larger_point():
    draws, partition = [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], [0, 0, 0, 1]
    points, *exemplars = pc.plot_items_map(draws, partition).collections
    np.testing.assert_allclose(points.get_offsets(), pc.item_embedding(draws, n_axes=2).values[[0, 3]])
    np.testing.assert_allclose(points.get_sizes()[0] / points.get_sizes()[1], np.sqrt(3))
    assert len(exemplars) == 2
