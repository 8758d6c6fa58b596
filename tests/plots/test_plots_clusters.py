"""Plots of items, of observed data and of several partitions show what they should."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.plots import alluvial
from posterior_consensus.plots.colours import colours_of
from tests.catalogue.plots import plotted
from tests.helpers import CENTRE, GOOD, check_all

NAMES = ["Bonn", "Kiel", "Ulm", "Jena"]
LABELS = xr.DataArray(CENTRE, dims="city", coords={"city": NAMES})


def dots(ax):
    return [found for found in ax.collections if isinstance(found, PathCollection)]


def segments(ax):
    (lines,) = [found for found in ax.collections if isinstance(found, LineCollection)]
    return lines.get_segments()


def test_items_stand_by_cluster_with_the_most_certain_first():
    draws = xr.DataArray(GOOD, dims=("sample", "city"), coords={"city": NAMES})
    items = pc.item_uncertainty(draws, LABELS)
    table = items.to_dataframe()
    ax = items.plot()
    order = [tick.get_text() for tick in ax.get_xticklabels()]
    own = table.assign(own=-table["similarity"])
    assert order == own.sort_values(["cluster", "own", "nearest_similarity"]).index.tolist()
    bars = np.concatenate([patch.get_data().values for patch in ax.patches])
    np.testing.assert_allclose(bars, table.loc[order, "similarity"])
    (points,) = dots(ax)
    np.testing.assert_allclose(points.get_offsets()[:, 1], table.loc[order, "nearest_similarity"])
    assert len({to_hex(colour) for colour in points.get_facecolors()}) == 2
    entries = ["to own cluster", "to nearest other cluster (its colour)"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == entries


def test_an_item_on_its_own_has_no_bar_and_one_cluster_no_points():
    ax = pc.item_uncertainty(GOOD, [0, 0, 0, 1]).plot()
    assert ax.patches[1].get_data().values.tolist() == [0]
    assert len(dots(ax)[0].get_offsets()) == 4
    ax = pc.item_uncertainty(GOOD, [0, 0, 0, 0]).plot()
    assert not dots(ax)


def test_points_of_one_feature_are_in_the_rows_of_their_clusters():
    values, labels = np.array([1.0, 3.0, np.nan, 7.0, 2.0, 9.0, 4.0, 5.0]), [0, 0, 0, 1, 0, 1, 0, 0]
    ax = pc.plot_cluster_profiles(xr.DataArray(values, dims="city", name="height"), labels)
    assert ax.get_xlabel().startswith("height\n")
    (points,) = dots(ax)
    x, y = points.get_offsets().T
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0]
    np.testing.assert_array_equal(np.round(y), [0, 0, 0, 0, 0, 1, 1])
    wanted = [colour.lower() for colour in colours_of(np.array([0] * 5 + [1] * 2))]
    assert [to_hex(colour) for colour in points.get_facecolors()] == wanted
    *_, quartiles, median = (found.get_segments() for found in ax.collections if isinstance(found, LineCollection))
    np.testing.assert_array_equal(quartiles, [[[2, 0], [4, 0]]])  # two items have none
    assert np.array(median)[0, :, 0].tolist() == [3, 3] and len(median) == 1


def test_cells_are_standardized_means_and_spreads():
    rng = np.random.default_rng(4)
    labels = np.arange(12) % 3
    values = rng.normal(size=(12, 4)) + labels[:, None]
    values[0, 1] = np.nan
    values[:, 3] = 5.0
    ax = pc.plot_cluster_profiles(pd.DataFrame(values, columns=list("abcd")), labels)
    shown = ax.images[0].get_array()
    widths = np.reshape([np.ptp(ends[:, 0]) for ends in segments(ax)], (3, 3))  # none of the constant feature
    for k in range(3):
        for f in range(3):
            column = values[:, f][~np.isnan(values[:, f])]
            own = values[labels == k, f]
            own = own[~np.isnan(own)]
            assert shown[k, f] == pytest.approx((own.mean() - column.mean()) / column.std())
            assert widths[k, f] == pytest.approx(min(1.0, own.std() / column.std()))
    assert shown.mask[:, 3].all()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == list("abcd")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [f"{k} (n = 4)" for k in range(3)]
    assert ax.images[0].colorbar.ax.get_ylabel() == "standardized mean"


def test_data_are_aligned_with_the_partition_by_the_names_of_the_items():
    values = np.array([[1.0, 8.0], [2.0, 9.0], [11.0, 3.0], [12.0, 5.0]])
    expected = pc.plot_cluster_profiles(values, CENTRE).images[0].get_array()
    frame = pd.DataFrame(values, index=NAMES)
    array = xr.DataArray(values.T, dims=("year", "city"), coords={"city": NAMES, "year": [1, 2]})
    for data in (frame, frame[::-1], array, array[:, ::-1]):
        ax = pc.plot_cluster_profiles(data, LABELS)
        np.testing.assert_allclose(ax.images[0].get_array(), expected)
    series = pd.Series(values[:, 0], index=NAMES, name="size")[::-1]
    ax = pc.plot_cluster_profiles(series, LABELS)
    assert dots(ax)[0].get_offsets()[:, 0].tolist() == [1, 2, 11, 12]
    assert ax.get_xlabel().startswith("size\n")
    assert [t.get_text() for t in pc.plot_cluster_profiles(array, LABELS).get_xticklabels()] == ["1", "2"]


def test_bands_are_as_wide_as_the_items_in_common():
    left, right = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 1, 0])
    ax = pc.plot_alluvial([left, right])
    (bands,) = ax.collections
    heights = np.array([path.vertices[:, 1] for path in bands.get_paths()])
    widths = heights[:, 7] - heights[:, 0]
    np.testing.assert_allclose(widths, heights[:, 4] - heights[:, 3])
    np.testing.assert_allclose(np.sort(widths), np.array([1, 1, 2, 2]) / 6)
    heights = [patch.get_height() * 6 for patch in ax.patches]
    np.testing.assert_allclose(heights, [3, 2, 1, 2, 4])
    colours = [to_hex(patch.get_facecolor()) for patch in ax.patches]
    assert sorted({to_hex(colour) for colour in bands.get_facecolors()}) == sorted(set(colours[:3]))
    assert colours[4] == colours[1] and colours[3] in (colours[0], colours[2])


@pytest.mark.parametrize(
    ("partitions", "said", "counts"),
    [
        ([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]], "1 of 6 items change cluster from partition 1 to 2", [1]),
        ([[0, 0, 1, 1]] * 3, "no item changes its cluster", [0, 0]),
        (
            {"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 0, 2, 1, 1], "c": [0, 0, 1, 1, 1, 1]},
            "2 of 6 .* from b to c",
            [1, 2],
        ),
    ],
)
def test_items_that_change_cluster_are_counted(partitions, said, counts):
    ax = pc.plot_alluvial(partitions)
    assert re.match(said, ax.get_title())
    assert [int(tick.get_text().split()[0]) for tick in ax.get_xticklabels(minor=True)] == counts


def test_gaps_between_many_clusters_take_at_most_a_quarter_of_the_items():
    bars = pc.plot_alluvial([np.arange(50), np.arange(50) // 25]).patches
    column = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars if bar.get_height() < 0.1)
    gaps = np.diff(np.array(column).ravel())[1::2]
    np.testing.assert_allclose(gaps, np.full(49, 0.25 / 50))


def test_clusters_of_the_same_name_have_one_colour():
    labels = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    names = ["cats", "dogs", "birds"], ["dogs", "fish"]  # by its items, the second "dogs" would be the first "cats"
    columns = [
        pc.consensus_partition(np.array([z] * 4), progressbar=False).with_names(dict(enumerate(n)))
        for z, n in zip(labels, names, strict=True)
    ]
    cats, dogs, birds, dogs_too, fish = (to_hex(patch.get_facecolor()) for patch in pc.plot_alluvial(columns).patches)
    assert dogs_too == dogs and len({cats, dogs, birds, fish}) == 4


def test_matched_clusters_keep_their_colour():
    ax = pc.plot_alluvial([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 1, 2, 2, 2]])
    first, second, third = ([to_hex(p.get_facecolor()) for p in ax.patches[a:b]] for a, b in ((0, 2), (2, 4), (4, 7)))
    assert first == second
    assert third[0] == first[0] and third[2] == first[1] and third[1] not in first
    ax = pc.plot_alluvial([[0, 0, 0, 1, 1, 2], [0, 1, 1, 2, 2, 2]])
    first, second = ([to_hex(p.get_facecolor()) for p in ax.patches[a:b]] for a, b in ((0, 3), (3, 6)))
    assert second[1] == first[0] and second[2] == first[1] and second[0] not in first


def crossings(left, right, orders):
    """Pairs of items whose bands cross, counted one by one."""
    rank = [np.argsort(order) for order in orders]
    a, b = rank[0][left], rank[1][right]
    return sum((a[i] - a[j]) * (b[i] - b[j]) < 0 for i in range(a.size) for j in range(i))


@pytest.mark.parametrize("seed", range(2))
def test_crossings_are_counted_and_fewer_than_before(seed):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, 6, 40)
    left[:6] = np.arange(6)
    right = rng.permutation(6)[left]
    moved = rng.random(40) < 0.2
    right[moved] = rng.integers(0, 6, moved.sum())
    left, right = (alluvial.canonical_labels(labels) for labels in (left, right))
    tables = [alluvial.contingency_table(left, right)]
    plain = [np.arange(n) for n in tables[0].shape]
    orders = alluvial._orders_of_clusters(tables)
    for order, first in zip(orders, plain, strict=True):
        np.testing.assert_array_equal(np.sort(order), first)
    assert alluvial._crossings(tables, orders) == crossings(left, right, orders)
    assert alluvial._crossings(tables, plain) == crossings(left, right, plain)
    assert crossings(left, right, orders) <= crossings(left, right, plain)


def test_the_same_clusters_in_another_order_do_not_cross():
    left = np.array([0, 1, 2, 3, 4, 5, 0, 1, 2, 3])
    right = np.array([9, 3, 7, 1, 4, 2, 9, 3, 7, 1])[::-1]
    columns = [alluvial.canonical_labels(left[::-1]), alluvial.canonical_labels(right), alluvial.canonical_labels(left)]
    tables = [alluvial.contingency_table(columns[0], columns[1])]
    assert alluvial._crossings(tables, alluvial._orders_of_clusters(tables)) == 0


def test_columns_have_names_and_items_are_aligned():
    ax = pc.plot_alluvial(pc.credible_ball(GOOD, CENTRE))
    names = [tick.get_text().split("\n")[0] for tick in ax.get_xticklabels()]
    assert names == ["fewest clusters", "partition", "most clusters"]
    ax = pc.plot_alluvial({"one": LABELS, "two": LABELS[::-1], "three": CENTRE})
    assert len(ax.collections) == 2
    assert all(len(bands.get_paths()) == 2 for bands in ax.collections)


def test_what_cannot_be_drawn_is_refused():
    others, named = LABELS.assign_coords(city=list("abcd")), pd.Series([1.0] * 4, index=list("abcd"))
    cases = [
        (["cluster_profiles", [1.0, 2.0], CENTRE], ValueError, "`partition` must label all 2 items", "got 4 labels"),
        *(
            (["cluster_profiles", data, CENTRE], ValueError, "`data` must be of shape", f"got {np.shape(data)}")
            for data in (np.zeros((4, 2, 2)), 3.0, np.zeros((4, 0)))
        ),
        (["cluster_profiles", list("abcd"), CENTRE], TypeError, "`data` must be numbers; got dtype"),
        (["cluster_profiles", named, LABELS], ValueError, "`data`", "coordinates of 'city' differ"),
        (["cluster_profiles", CENTRE, CENTRE, {"ax": "x"}], TypeError, "`ax` must be a matplotlib Axes or None"),
        (["alluvial", [CENTRE]], ValueError, "`partitions`", "at least two partitions; got 1"),
        (["alluvial", {}, {}], ValueError, "`partitions`", "at least two partitions; got 0"),
        (["alluvial", [CENTRE, CENTRE[1:]]], ValueError, "the same items; got 4 labels of '1' and 3 of '2'"),
        (["alluvial", {"a": CENTRE, "b": 3}, {}], ValueError, "`partitions['b']` must be a vector of labels"),
        (["alluvial", [LABELS, others]], ValueError, "`partitions['2']`", "the same"),
        (["alluvial", CENTRE[0]], TypeError, "`partitions`", "CredibleBall or Particles; got int"),
        (["alluvial", "ab"], TypeError, "`partitions`", "CredibleBall or Particles; got str"),
        (["alluvial", [CENTRE, CENTRE], {"ax": "x"}], TypeError, "`ax` must be a matplotlib Axes or None"),
        (["item_uncertainty", pc.item_uncertainty(GOOD, CENTRE), {"ax": 3}], TypeError, "`ax`", "Axes or None"),
    ]
    check_all(plotted, cases)


def test_modes_are_rows_of_items_that_fade_and_of_draws_chain_by_chain():
    labels = np.array([[[0, 0, 1, 1]] * 2 + [[0, 1, 0, 1]]] * 3)[:, [2, 0, 1]]
    draws = xr.DataArray(labels, {"chain": ["a", "b", "c"], "city": NAMES}, ("chain", "draw", "city"))
    modes = pc.consensus.fit_modes(draws.stack(sample=["draw", "chain"]), 2, random_seed=1, progressbar=False)
    half = replace(modes, memberships=modes.memberships * 0.5)
    items, rows = half.plot()
    assert [tick.get_text() for tick in items.get_xticklabels()] == ["Bonn", "Kiel", "Ulm", "Jena"]
    assert [tick.get_text() for tick in rows.get_yticklabels()] == ["a", "b", "c"]
    for k, strip in enumerate(items.images):
        np.testing.assert_allclose(strip.get_array()[0, :, 3], half.memberships[k].max("consensus_cluster"))
    of_chains = modes.responsibilities[:, 0].values.reshape(3, 3).T  # the first mode is black, the second white
    np.testing.assert_array_equal([row.get_array()[0] for row in rows.images], of_chains)
    shares = [f"{share:.2f}" for own in of_chains for share in (own.mean(), 1 - own.mean())]
    assert [text.get_text() for text in rows.texts] == [*shares, "0", "1", "share of mode"]
