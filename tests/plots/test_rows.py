"""Items in a row stand by cluster, in the order of the data or along a coordinate, and many clusters stay readable."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_rgba_array

import posterior_consensus as pc
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.four_panels import four_panels
from posterior_consensus.plots.rows import check_order
from posterior_consensus.results.palette import COLOURS
from tests.catalogue.plots import COORDS, KM, LABELS, N_ITEMS, PLOTS, ball, drawn, draws, function_of, items, membership
from tests.helpers import check_all

IN_ROWS = [name for name in PLOTS if "order" in signature(function_of(name)).parameters and name != "regimes"]
ORDERS = {"site, by km": "km", "site, by day": "day", "site, by x": pd.Series(KM, name="x")}


def ticks(axis):
    return [tick.get_text() for tick in axis.get_ticklabels() if tick.get_text()]


@pytest.mark.parametrize("name", [*IN_ROWS, "four panels"])
def test_every_figure_of_items_takes_an_order(name):
    def of_order(order):
        return drawn(name, order=order) if name in PLOTS else four_panels(draws(), LABELS, ball(), items(), order=order)

    number = [*IN_ROWS, "four panels"].index(name)
    if name != "expert_views":  # their constraints keep the names of the items only
        for text in list(ORDERS) if name == "psm" else [list(ORDERS)[number % 3]]:
            assert np.ravel(of_order(ORDERS[text]))[0].get_xlabel().partition("\n")[0] == text
    ax = np.ravel(of_order("data"))[0]
    assert ticks(ax.xaxis)[0] == "s0" and "cluster" not in ax.get_xlabel()
    wrong = ("time", KM[1:], 3, None)
    cases = [(order, ValueError, "`order`", "'clusters', 'data'", "each of the 12") for order in wrong]
    missing = np.where(KM == KM.max(), np.nan, KM), ValueError, "`order`", "each item; got 1 missing"
    check_all(of_order, [*(cases if name == "psm" else [cases[number % 4]]), missing])


def test_all_figures_of_items_in_a_row_are_tested_here():
    assert len(IN_ROWS) == 10 and "psm" in IN_ROWS


def test_items_stand_along_the_coordinate():
    order = np.argsort(KM)
    psm = pc.posterior_similarity_matrix(draws()).values
    np.testing.assert_array_equal(pc.plot_psm(draws(), LABELS, order="km").images[0].get_array(), psm[order][:, order])
    np.testing.assert_allclose(
        pc.plot_psm(draws(), by="chain", order="km")[1].images[0].get_array(),
        pc.posterior_similarity_matrix(draws().isel(chain=1)).values[order][:, order],
    )
    strip = ball().plot(order="km").images[0].get_array()[0]
    np.testing.assert_allclose(strip, to_rgba_array([COLOURS[k] for k in LABELS[order]]))
    bars = items().plot(order="km").patches
    heights = np.full(N_ITEMS, np.nan)
    for patch in bars:
        values, edges, _ = patch.get_data()
        at = (edges[:-1] + 0.5).astype(int)
        heights[at] = np.where(np.isnan(values), heights[at], values)
    np.testing.assert_allclose(heights, items().similarity.values[order])
    lowest = membership().plot(order="km").patches[0].get_data().values
    np.testing.assert_allclose(lowest, membership().probabilities.values[order, 0])


def test_an_array_with_names_is_aligned_by_them():
    by_name = xr.DataArray(KM, dims="site", coords={"site": COORDS["site"]}, name="km")[::-1]
    expected = check_order("km", draws().items).rank
    for order in (by_name, by_name.to_series(), KM, KM.tolist()):
        np.testing.assert_array_equal(check_order(order, draws().items).rank, expected)


def of(values):
    """A figure of so many items along a coordinate."""
    values = np.asarray(values)
    draws = xr.DataArray(np.zeros((2, len(values)), int), dims=("sample", "unit"), coords={"t": ("unit", values)})
    return pc.membership(pc.as_partition_draws(draws), np.zeros(len(values), int)).plot(order="t")


def places(ax):
    return dict(zip(ticks(ax.xaxis), ax.get_xticks().tolist(), strict=True))


def test_marks_are_where_their_values_are_in_the_row():
    values = np.concatenate([np.arange(0, 100), np.arange(1000, 1100)])  # a gap, then as many again
    found = places(of(values))
    assert found == {"0": 0, "1000": 100}
    assert places(of(np.repeat([0, 10, 20, 30], 25)))["10"] == 37  # in the middle of the items that have the value
    assert "1,000,000" in places(of(np.linspace(0, 2e6, 300)))


def test_dates_have_marks_of_dates_and_text_has_its_groups():
    months = np.datetime64("2019-11-01", "ns") + np.arange(200) * np.timedelta64(1, "D")
    found = places(of(months))
    assert found["2020"] == 61 and "Feb" in found
    assert places(of(np.repeat(["chr2", "chr1"], [60, 40]))) == {"chr1": 19.5, "chr2": 69.5}
    assert places(of(np.repeat(np.datetime64("2020-02-03"), 200).astype("M8[ns]"))) == {"2020-02-03": 99.5}


def test_times_of_a_zone_and_periods_are_dates():
    zoned = pd.date_range("2020-01-01", periods=N_ITEMS, tz="Europe/Berlin")
    for order in (zoned, pd.Series(zoned), pd.period_range("2020-01-01", periods=N_ITEMS)):
        assert check_order(order, draws().items).values.tolist() == zoned.tz_localize(None).to_numpy().tolist()


def test_a_matrix_keeps_the_coordinates_of_its_items():
    psm = pc.posterior_similarity_matrix(draws())
    for given in (psm, pc.as_pair_similarity(psm)):
        shown = pc.plot_psm(given, order="km").images[0].get_array()
        np.testing.assert_array_equal(shown, psm.values[np.argsort(KM)][:, np.argsort(KM)])


def test_few_items_are_named_whatever_they_stand_by():
    ax = drawn("credible_ball", order="km")[0]
    assert ticks(ax.xaxis) == [COORDS["site"][k] for k in np.argsort(KM)]


def many(n_clusters, each=40, alone=0):
    """A partition with large clusters first, one of them with items in doubt in most draws, and some items alone."""
    sizes = np.r_[np.arange(n_clusters, 0, -1) + each, np.ones(alone, int)]
    labels = np.repeat(np.arange(sizes.size), sizes)
    draws = np.tile(labels, (10, 1))
    for k in (n_clusters - 1, n_clusters - 2):
        draws[:6, np.flatnonzero(labels == k)[::2]] = 0
    return draws, labels


def test_of_many_clusters_the_largest_and_the_least_certain_are_shown():
    draws, labels = many(60, alone=30)
    ax = pc.item_uncertainty(draws, labels).plot()
    text = ax.get_xlabel()
    assert "largest and the" in text and "least certain of 90 clusters,\nat most 6 items of each" in text
    shown = ticks(ax.xaxis)
    assert shown[:5] == ["0", "1", "2", "3", "4"] and {"58", "59"} <= set(shown)
    assert not {str(k) for k in range(60, 90)} & set(shown)  # alone in every draw: in no doubt
    widths = [patch.get_data().edges[-1] - patch.get_data().edges[0] for patch in ax.patches]
    assert max(widths) == 6
    everything = pc.item_uncertainty(draws, labels).plot(order="data")
    assert everything.get_xlim()[1] == labels.size - 0.5 and "largest" not in everything.get_xlabel()


@pytest.mark.parametrize(("n_clusters", "cut"), [(20, False), (60, True)])
def test_clusters_have_room(n_clusters, cut):
    draws, labels = many(n_clusters, each=5)
    for ax in (
        pc.item_uncertainty(draws, labels).plot(),
        pc.membership(draws, labels).plot(),
        pc.credible_ball(draws, labels).plot(),
    ):
        assert ("largest and the" in ax.get_xlabel()) == cut
        assert not cut or ax.get_xlim()[1] < 130


def test_names_of_small_clusters_at_the_end_do_not_lengthen_the_axis():
    labels = np.repeat(np.arange(10), [200] * 8 + [1] * 2)
    draws = pc.as_partition_draws([labels] * 4)
    ax = pc.item_uncertainty(draws, labels).plot(figsize=(9, 3))
    assert ax.get_xlim() == (-0.5, labels.size - 0.5)


def test_strips_show_the_clusters_that_change_most():
    draws, labels = many(60)
    ax = pc.credible_ball(draws, labels).plot()
    assert "least stable of 60 clusters" in ax.get_xlabel()
    assert {"58", "59"} <= set(ticks(ax.xaxis))


def test_the_order_of_the_data_needs_no_coordinate():
    assert check_order("data", Items(3, "item", xr.Coordinates())).rank.tolist() == [0, 1, 2]
    assert check_order("clusters", Items(3, "item", xr.Coordinates())) is None
