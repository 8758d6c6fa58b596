"""Items in a row stand by cluster, in the order of the data or along a coordinate, and many clusters stay readable."""

from inspect import signature

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_rgb

import posterior_consensus as pc
from posterior_consensus.ensemble.items import Items
from posterior_consensus.plots.colours import COLOURS
from posterior_consensus.plots.four_panels import four_panels
from posterior_consensus.plots.rows import check_order

N = 12
RNG = np.random.default_rng(3)
DAYS = np.datetime64("2020-01-15", "ns") + RNG.permutation(N) * np.timedelta64(31, "D")
KM = RNG.permutation(N) * 0.5
COORDS = {"site": [f"s{k}" for k in range(N)], "day": ("site", DAYS), "km": ("site", KM)}
DRAWS = pc.as_partition_draws(
    xr.DataArray(RNG.integers(3, size=(2, 20, N)), dims=("chain", "draw", "site"), coords=COORDS)
)
LABELS = np.arange(N) % 3
BALL = pc.credible_ball(DRAWS, LABELS)
ITEMS = pc.item_uncertainty(DRAWS, LABELS)
QUIET = {"random_seed": 1, "progressbar": False}
COMPARED = pc.compare_posteriors(DRAWS.isel(chain=0), DRAWS.isel(chain=1), n_particles=1, **QUIET)
VIEWS = pc.expert_views(pc.as_constraints(DRAWS, random_seed=1), n_clusters=3, random_seed=1)
PLOTS = {
    "psm": lambda **kw: pc.plot_psm(DRAWS, LABELS, **kw),
    "psm_by_chain": lambda **kw: pc.plot_psm_by_chain(DRAWS, LABELS, **kw),
    "posterior_comparison": lambda **kw: pc.plot_posterior_comparison(COMPARED, LABELS, **kw),
    "membership": lambda **kw: pc.plot_membership(pc.membership(DRAWS, LABELS), **kw),
    "item_uncertainty": lambda **kw: pc.plot_item_uncertainty(ITEMS, **kw),
    "credible_ball": lambda **kw: pc.plot_credible_ball(BALL, **kw),
    "particles": lambda **kw: pc.plot_particles(pc.particles(DRAWS, 2, **QUIET), **kw),
    "expert_views": lambda **kw: pc.plot_expert_views(VIEWS, **kw),
    "four panels": lambda **kw: four_panels(DRAWS, LABELS, BALL, ITEMS, **kw),
}
MATRICES = ("psm", "psm_by_chain", "posterior_comparison", "four panels")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def first(drawn):
    return np.ravel(drawn)[0]


def ticks(axis):
    return [tick.get_text() for tick in axis.get_ticklabels() if tick.get_text()]


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_of_items_takes_an_order(name):
    if name != "expert_views":  # their constraints keep the names of the items only
        for order, text in (("km", "site, by km"), ("day", "site, by day"), (pd.Series(KM, name="x"), "site, by x")):
            assert first(PLOTS[name](order=order)).get_xlabel() == text
    ax = first(PLOTS[name](order="data"))
    assert ticks(ax.xaxis)[0] == "s0" and "cluster" not in ax.get_xlabel()
    for wrong in ("time", KM[1:], 3, None):
        with pytest.raises(ValueError, match="`order` must be 'clusters', 'data'.* or one value for each of the 12"):
            PLOTS[name](order=wrong)
    with pytest.raises(ValueError, match="`order` must have a value for each item; got 1 missing"):
        PLOTS[name](order=np.where(KM == KM.max(), np.nan, KM))


def test_every_figure_that_takes_an_order_is_tested_here():
    figures = [name for name in dir(pc) if name.startswith("plot_")]
    taking = {name.removeprefix("plot_") for name in figures if "order" in signature(getattr(pc, name)).parameters}
    assert taking - {"regimes"} == set(PLOTS) - {"four panels"}


def test_items_stand_along_the_coordinate():
    order = np.argsort(KM)
    psm = pc.posterior_similarity_matrix(DRAWS).values
    np.testing.assert_array_equal(pc.plot_psm(DRAWS, LABELS, order="km").images[0].get_array(), psm[order][:, order])
    np.testing.assert_allclose(
        pc.plot_psm_by_chain(DRAWS, order="km")[1].images[0].get_array(),
        pc.posterior_similarity_matrix(DRAWS.isel(chain=1)).values[order][:, order],
    )
    strip = pc.plot_credible_ball(BALL, order="km").images[0].get_array()[0]
    np.testing.assert_allclose(strip, [to_rgb(COLOURS[k]) for k in LABELS[order]])
    bars = pc.plot_item_uncertainty(ITEMS, order="km").patches
    heights = np.full(N, np.nan)
    for patch in bars:
        values, edges, _ = patch.get_data()
        at = (edges[:-1] + 0.5).astype(int)
        heights[at] = np.where(np.isnan(values), heights[at], values)
    np.testing.assert_allclose(heights, ITEMS.probability.values[order])
    membership = pc.membership(DRAWS, LABELS)
    lowest = pc.plot_membership(membership, order="km").patches[0].get_data().values
    np.testing.assert_allclose(lowest, membership.probabilities.values[order, 0])


def test_an_array_with_names_is_aligned_by_them():
    by_name = xr.DataArray(KM, dims="site", coords={"site": COORDS["site"]}, name="km")[::-1]
    expected = check_order("km", DRAWS.items).rank
    for order in (by_name, by_name.to_series(), KM, KM.tolist()):
        np.testing.assert_array_equal(check_order(order, DRAWS.items).rank, expected)


def of(values):
    """A figure of so many items along a coordinate."""
    values = np.asarray(values)
    draws = xr.DataArray(np.zeros((2, len(values)), int), dims=("sample", "unit"), coords={"t": ("unit", values)})
    return pc.plot_membership(pc.membership(pc.as_partition_draws(draws), np.zeros(len(values), int)), order="t")


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
    zoned = pd.date_range("2020-01-01", periods=N, tz="Europe/Berlin")
    for order in (zoned, pd.Series(zoned), pd.period_range("2020-01-01", periods=N)):
        assert check_order(order, DRAWS.items).values.tolist() == zoned.tz_localize(None).to_numpy().tolist()


def test_a_matrix_keeps_the_coordinates_of_its_items():
    psm = pc.posterior_similarity_matrix(DRAWS)
    for given in (psm, pc.as_pair_similarity(psm)):
        shown = pc.plot_psm(given, order="km").images[0].get_array()
        np.testing.assert_array_equal(shown, psm.values[np.argsort(KM)][:, np.argsort(KM)])


def test_few_items_are_named_whatever_they_stand_by():
    ax = first(PLOTS["credible_ball"](order="km"))
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
    ax = pc.plot_item_uncertainty(pc.item_uncertainty(draws, labels))
    text = ax.get_xlabel()
    assert "largest and the" in text and "least certain of 90 clusters,\nat most 6 items of each" in text
    shown = ticks(ax.xaxis)
    assert shown[:5] == ["0", "1", "2", "3", "4"] and {"58", "59"} <= set(shown)
    assert not {str(k) for k in range(60, 90)} & set(shown)  # alone in every draw: in no doubt
    widths = [patch.get_data().edges[-1] - patch.get_data().edges[0] for patch in ax.patches]
    assert max(widths) == 6
    everything = pc.plot_item_uncertainty(pc.item_uncertainty(draws, labels), order="data")
    assert everything.get_xlim()[1] == labels.size - 0.5 and "largest" not in everything.get_xlabel()


@pytest.mark.parametrize(("n_clusters", "cut"), [(3, False), (20, False), (60, True), (100, True)])
def test_clusters_have_room(n_clusters, cut):
    draws, labels = many(n_clusters, each=5)
    for ax in (
        pc.plot_item_uncertainty(pc.item_uncertainty(draws, labels)),
        pc.plot_membership(pc.membership(draws, labels)),
        pc.plot_credible_ball(pc.credible_ball(draws, labels)),
    ):
        assert ("largest and the" in ax.get_xlabel()) == cut
        assert not cut or ax.get_xlim()[1] < 130


def test_strips_show_the_clusters_that_change_most():
    draws, labels = many(60)
    ax = pc.plot_credible_ball(pc.credible_ball(draws, labels))
    assert "least stable of 60 clusters" in ax.get_xlabel()
    assert {"58", "59"} <= set(ticks(ax.xaxis))


def test_the_order_of_the_data_needs_no_coordinate():
    assert check_order("data", Items(3, "item", xr.Coordinates())).rank.tolist() == [0, 1, 2]
    assert check_order("clusters", Items(3, "item", xr.Coordinates())) is None
