"""plot_regimes shows values along time, over the clusters and their probabilities."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import posterior_consensus as pc
from posterior_consensus.results.palette import COLOURS
from tests.helpers import check_all

YEARS = np.array([1897, 1898, 1899, 1901])
FLOW = pd.Series([9.0, 8.0, 5.0, 4.0], index=pd.Index(YEARS, name="year"), name="flow")
DAYS = np.array([f"{year}-07-01" for year in YEARS], "M8[ns]")
DRAWS = xr.DataArray(
    [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]],
    dims=("sample", "year"),
    coords={
        "year": YEARS,
        "day": ("year", DAYS),
        "depth": ("year", [4.0, 3.0, 2.0, 1.0]),
        "name": ("year", list("abcd")),
    },
)


@pytest.fixture(scope="module")
def membership():
    return pc.membership(DRAWS, [0, 0, 1, 1])


def background(ax):
    """Ends and colour of each rectangle behind the values, which goes from the bottom to the top."""
    paths = ax.collections[0].get_paths()
    assert all((path.vertices[:, 1].min(), path.vertices[:, 1].max()) == (0, 1) for path in paths)
    return [
        (path.vertices[:, 0].min(), path.vertices[:, 0].max(), to_hex(colour).upper())
        for path, colour in zip(paths, ax.collections[0].get_facecolors(), strict=True)
    ]


def test_values_clusters_and_probabilities_share_the_axis_of_time(membership):
    above, below = pc.plot_regimes(FLOW, membership)
    np.testing.assert_array_equal(above.lines[0].get_xydata(), np.column_stack([YEARS, FLOW]))
    assert background(above) == [(1897, 1898.5, COLOURS[0]), (1898.5, 1901, COLOURS[1])]
    first = below.patches[0].get_data()
    np.testing.assert_allclose(first.edges, [1897, 1897.5, 1898.5, 1900, 1901])
    np.testing.assert_allclose(first.values, membership.probabilities.values[:, 0])
    assert above.get_ylabel() == "flow" and below.get_xlabel() == "year"
    assert above.get_xlim() == below.get_xlim() == (1897, 1901)
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["0", "1", "elsewhere"]


def test_any_coordinate_is_an_axis_and_data_are_aligned(membership):
    turned = pc.plot_regimes(FLOW[::-1], membership, order="depth")
    assert turned[0].lines[0].get_xydata().tolist() == [[1, 4], [2, 5], [3, 8], [4, 9]]
    assert background(turned[0]) == [(1, 2.5, COLOURS[1]), (2.5, 4, COLOURS[0])]
    dated = pc.plot_regimes(FLOW, membership, order="day")[1]
    dated.figure.draw_without_rendering()
    assert dated.get_xlabel() == "day" and "1899" in [tick.get_text() for tick in dated.get_xticklabels()]
    given = pc.plot_regimes(FLOW, membership, order=[3.0, 1.0, 2.0, 0.0])
    assert given[0].lines[0].get_ydata().tolist() == [4, 8, 5, 9]
    plain = pc.plot_regimes(FLOW.to_numpy(), pc.membership(DRAWS.values, [0, 0, 1, 1]))
    assert plain[0].lines[0].get_xdata().tolist() == [0, 1, 2, 3] and plain[1].get_xlabel() == "item"
    named = pc.plot_regimes(FLOW, pc.membership(DRAWS.values, [0, 0, 1, 1]))
    assert named[1].get_xlabel() == "year" and named[0].lines[0].get_xdata().tolist() == YEARS.tolist()


def test_each_feature_has_a_panel_and_missing_values_a_gap(membership):
    frame = pd.DataFrame({"flow": FLOW, "rain": [1.0, np.nan, 3.0, 4.0]})
    axes = pc.plot_regimes(frame, membership)
    assert [ax.get_ylabel().split() for ax in axes] == [["flow"], ["rain"], ["posterior", "probability"]]
    assert np.isnan(axes[1].lines[0].get_ydata()[1])
    axes = pc.plot_regimes(frame, membership, features=["rain"], axes=plt.subplots(2)[1])
    assert axes[0].get_ylabel() == "rain"


def test_bad_arguments(membership):
    cases = [
        ([FLOW, {"order": "clusters"}], ValueError, "`order` must be 'data', the name of a coordinate"),
        ([FLOW, {"order": "time"}], ValueError, "`order`", "'year', 'day'", "got 'time'"),
        ([FLOW, {"order": "name"}], TypeError, "numbers or dates; 'name' has dtype"),
        ([FLOW, {"features": ["rain"]}], ValueError, "`features`", "got ['rain'], present: 'flow'"),
        ([FLOW, {"features": "flow"}], ValueError, "`features` must be a list"),
        ([np.zeros((4, 7)), {}], ValueError, "`features` must be a list of 1 to 6"),
        ([FLOW[:3], {}], ValueError, "`membership` must label all 3 items of the data; got 4 labels"),
        ([FLOW.set_axis([1, 2, 3, 4]), {}], ValueError, "`data` must be of the same items", "1897 is missing"),
        ([FLOW, {"axes": plt.subplots(3)[1]}], ValueError, "`axes` must hold 2 matplotlib Axes; got 3"),
    ]
    check_all(lambda given: pc.plot_regimes(given[0], membership, **given[1]), cases)
    with pytest.raises(TypeError, match=r"`membership` .* membership\(\) returns; got list"):
        pc.plot_regimes(FLOW, [0, 0, 1, 1])


def test_one_item_has_a_width():
    axes = pc.plot_regimes([2.0], pc.membership([[0], [0]], [0]))
    assert axes[0].get_xlim() == (-0.5, 0.5)
