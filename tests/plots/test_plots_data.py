"""plot_data shows every item where its data are, in its cluster's colour, and how sure it is."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from sklearn.decomposition import PCA

import posterior_consensus as pc
from posterior_consensus.results.palette import COLOURS
from tests.helpers import CENTRE, check_all

NAMES = ["Bonn", "Kiel", "Ulm", "Jena"]
DRAWS = xr.DataArray(
    [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 2]], dims=("sample", "city"), coords={"city": NAMES}
)
LABELS = xr.DataArray(CENTRE, dims="city", coords={"city": NAMES})
VALUES = np.array([[1.0, 8.0], [2.0, 9.0], [11.0, 3.0], [12.0, 5.0]])


def points(ax):
    """What is drawn: by its place, the colour, size and whether it is full."""
    found = {}
    for dots in (dots for dots in ax.collections if isinstance(dots, PathCollection)):
        full = len(dots.get_facecolors()) > 0
        for place, colour, size in zip(dots.get_offsets(), dots.get_edgecolors(), dots.get_sizes(), strict=True):
            found[tuple(place.tolist())] = to_hex(colour).upper(), size, full
    return found


def test_items_are_where_their_data_are_and_smaller_or_hollow_where_uncertain():
    items = pc.item_uncertainty(DRAWS, LABELS)
    assert items.similarity.values.tolist() == [0.25, 0.25, 0.75, 0.75]
    ax = pc.plot_data(VALUES, LABELS, items=items)
    found = points(ax)
    assert sorted(found) == sorted(map(tuple, VALUES.tolist()))
    drawn = [found[tuple(row)] for row in VALUES.tolist()]
    assert [colour for colour, _, _ in drawn] == [COLOURS[k] for k in CENTRE]
    assert [full for _, _, full in drawn] == [False, False, True, True]
    sizes = [size for _, size, _ in drawn]
    assert sizes[0] == sizes[1] < sizes[2] == sizes[3]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["0 (n = 2)", "1 (n = 2)"] and "2 of mean similarity below 0.5 (hollow)" in ax.get_title()
    assert [(text.get_text(), text.xy) for text in ax.texts] == [("or cluster 1", tuple(VALUES[k])) for k in (0, 1)]


def test_data_and_items_are_aligned_by_names():
    items = pc.item_uncertainty(DRAWS, LABELS)
    expected = points(pc.plot_data(VALUES, LABELS, items=items))
    turned = pd.DataFrame(VALUES, index=NAMES, columns=["height", "width"])[::-1]
    ax = pc.plot_data(turned, LABELS, items=pc.item_uncertainty(DRAWS[:, ::-1], LABELS[::-1]))
    assert points(ax) == expected
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "width")


def test_one_feature_is_a_histogram_above_a_strip():
    values, labels = np.array([1.0, 1.1, 5.0, 5.2, 9.0]), ["low", "low", "high", "high", "high"]
    ax = pc.plot_data(values, labels)
    low, high = (patch.get_data() for patch in ax.patches)
    assert (low.values - low.baseline).sum() == 2 and (high.values - high.baseline).sum() == 3
    np.testing.assert_array_equal(high.baseline, low.values)
    assert sorted(x for x, _ in points(ax)) == values.tolist()
    assert all(y < 0 for _, y in points(ax))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["low (n = 2)", "high (n = 3)"]


def test_many_features_are_shown_by_principal_components(rng):
    values = rng.normal(size=(40, 5)) * [1, 5, 1, 1, 100]
    ax = pc.plot_data(values, np.arange(40) % 3)
    standardized = (values - values.mean(axis=0)) / values.std(axis=0)
    pca = PCA(2).fit(standardized)
    np.testing.assert_allclose(sorted(points(ax)), sorted(map(tuple, pca.transform(standardized).tolist())))
    first, second = pca.explained_variance_ratio_
    assert ax.get_xlabel() == f"first principal component: {first:.0%} of the variance"
    assert ax.get_ylabel().replace("\n", " ") == f"second principal component: {second:.0%} of the variance"


def test_chosen_features_are_drawn():
    frame = pd.DataFrame(np.column_stack([VALUES, VALUES[:, 0] ** 2]), columns=["a", "b", "c"])
    ax = pc.plot_data(frame, CENTRE, features=["c", "a"])
    assert sorted(points(ax)) == [(x**2, x) for x in VALUES[:, 0]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    assert pc.plot_data(frame, CENTRE, features=["b"]).get_xlabel() == "b"


def test_items_with_missing_values_are_counted_and_one_on_its_own_is_a_cross():
    values = VALUES.copy()
    values[0, 1] = np.nan
    ax = pc.plot_data(values, [0, 0, 0, 1], items=pc.item_uncertainty(DRAWS, [0, 0, 0, 1]))
    assert "1 with missing values" in ax.get_title()
    shown = [place for dots in ax.collections for place in dots.get_offsets().tolist()]
    assert sorted(shown) == VALUES[1:].tolist()
    assert ax.collections[-1].get_offsets().tolist() == [VALUES[3].tolist()]
    assert ax.get_legend().get_texts()[-1].get_text() == "on its own"


def test_bad_arguments():
    other, features = pc.item_uncertainty(DRAWS, [0, 0, 0, 1]), "`features` must be one or two names"
    cases = [
        ({"items": 3}, TypeError, "`items` must be what item_uncertainty() returns; got int"),
        ({"items": other}, ValueError, "`items`", "this partition; got other clusters"),
        ({"features": ["x"]}, ValueError, features, "got ['x'], present: '0', '1'"),
        ({"features": "01"}, ValueError, features),
        ({"features": [0, 1, 0]}, ValueError, features),
        ({"ax": 3}, TypeError, "`ax` must be a matplotlib Axes or None; got int"),
    ]
    check_all(lambda options: pc.plot_data(VALUES, LABELS, **options), cases)
    with pytest.raises(ValueError, match="`data` .* an item without a missing value"):
        pc.plot_data(np.full((4, 2), np.nan), CENTRE)


SITES = xr.DataArray(
    CENTRE,
    dims="city",
    coords={"city": NAMES, "lon": ("city", [7.1, 10.1, 10.0, 11.6]), "lat": ("city", [50.7, 54.3, 48.4, 50.9])},
)


def test_columns_of_an_array_take_the_names_given():
    ax = pc.plot_data(VALUES, CENTRE, features=["time", "return"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "return")
    assert pc.plot_data(VALUES[:, 0], CENTRE, features=["speed"]).get_xlabel() == "speed"
    assert sorted(points(pc.plot_data(VALUES, CENTRE, features=[1, 0]))) == sorted(map(tuple, VALUES[:, ::-1].tolist()))
    with pytest.raises(ValueError, match="got \\['time', 'return'\\], present: 'a', 'b'"):
        pc.plot_data(pd.DataFrame(VALUES, columns=["a", "b"]), CENTRE, features=["time", "return"])


def test_coordinates_of_the_items_are_axes():
    series = pd.Series(VALUES[:, 1], index=pd.Index([1871, 1872, 1873, 1874], name="year"), name="flow")
    ax = pc.plot_data(series, CENTRE, features=["year", "flow"])
    assert sorted(points(ax)) == list(zip(series.index, series, strict=True))
    ax = pc.plot_data(VALUES[:, 0], SITES, features=["lat", "value"])
    assert sorted(points(ax)) == sorted(zip(SITES["lat"].values, VALUES[:, 0], strict=True))
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=4), "x": VALUES[:, 0]})
    ax = pc.plot_data(frame, CENTRE, features=["day", "x"])
    ax.figure.draw_without_rendering()
    assert "02" in [tick.get_text() for tick in ax.get_xticklabels()] and ax.get_xlabel() == "day"
    with pytest.raises(TypeError, match="must be numbers or dates; 'city' has dtype"):
        pc.plot_data(VALUES, SITES, features=["city", "lat"])


def test_without_data_two_coordinates_are_a_map():
    items = pc.item_uncertainty(DRAWS, SITES)
    ax = pc.plot_data(None, SITES, items=items, features=["lon", "lat"])
    assert sorted(points(ax)) == sorted(zip(SITES["lon"].values, SITES["lat"].values, strict=True))
    assert ax.get_aspect() == pytest.approx(1 / np.cos(np.radians(SITES["lat"].values.mean())))
    places = SITES.rename(lon="x", lat="y")
    assert pc.plot_data(None, places, features=["x", "y"]).get_aspect() == 1
    for features in (None, ["x"], "xy"):
        with pytest.raises(ValueError, match="`features` must name two coordinates of the items if `data` is None"):
            pc.plot_data(None, places, features=features)
