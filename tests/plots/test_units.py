"""Figures have the units that the user's data, coordinates and parameters have."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import posterior_consensus as pc

LABELS = np.array([0, 0, 1, 1, 1, 0])
DRAWS = np.array([LABELS] * 20)
KM = xr.DataArray([0.0, 1.0, 2.0, 4.0, 7.0, 9.0], dims="site", attrs={"units": "km"})
DATA = xr.DataArray(
    [[1.0, 5.0], [2.0, 4.0], [8.0, 2.0], [9.0, 1.0], [7.0, 3.0], [0.0, 5.0]],
    {"site": list("abcdef"), "km": KM, "feature": ["length", "width"]},
    ("site", "feature"),
    attrs={"units": "cm"},
)
TABLE = DATA.to_pandas()
TABLE.attrs["units"] = "cm"


@pytest.mark.parametrize("data", [DATA, TABLE], ids=["DataArray", "DataFrame"])
def test_axes_of_data_have_its_unit(data):
    ax = pc.plot_data(data, LABELS)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length (cm)", "width (cm)")
    one = data.isel(feature=0) if isinstance(data, xr.DataArray) else data["length"]
    assert pc.plot_cluster_profiles(one.rename("length"), LABELS).get_xlabel().startswith("length (cm)\n")
    axes = pc.plot_regimes(data, pc.membership(DRAWS, LABELS))
    assert [ax.get_ylabel() for ax in axes[:2]] == ["length (cm)", "width (cm)"]


def test_axes_of_coordinates_have_their_unit():
    best = xr.DataArray(LABELS, DATA.isel(feature=0, drop=True).coords, "site")
    ax = pc.plot_data(DATA, best, features=["km", "length"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("km (km)", "length (cm)")
    draws = pc.as_partition_draws(best.expand_dims(sample=20))
    assert pc.plot_regimes(DATA, pc.membership(draws, best), order="km")[-1].get_xlabel().startswith("km (km)")
    assert pc.plot_psm(draws, best, order="km").get_xlabel().startswith("site, by km (km)")
    assert pc.plot_psm(draws, best, order=KM.rename("way")).get_xlabel().startswith("site, by way (km)")


def test_parameters_have_their_unit_also_when_restored():
    mu = xr.DataArray(np.tile([1.0, 8.0], (20, 1)), dims=("sample", "component"), attrs={"units": "km/s"})
    found = pc.cluster_summary(DRAWS, pd.Series(LABELS).where(LABELS < 1, -1), mu=mu, sd=mu.values)
    restored = type(found).from_dataset(found.to_dataset())
    for one in (found, restored):
        assert one.plot().get_xlabel().startswith("mu (km/s)\n")
        assert one.plot("sd").get_xlabel().startswith("sd\n")
        assert "unit" not in one.to_dataframe()
    xr.testing.assert_identical(restored.parameters, found.parameters)


def test_clusters_have_the_share_of_draws_and_intervals_are_named():
    draws = np.concatenate([DRAWS, DRAWS[:, ::-1]])  # half of them split items 0 and 1
    mu = np.tile([1.0, 8.0], (40, 1))
    ax = pc.cluster_summary(draws, [0, 0, 1, 1, -1, -1], mu=mu, first_label=0).plot()
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert shown == ["0 (n = 2, 50%)", "1 (n = 2, 100%)"]
    assert "90% credible" in ax.get_xlabel() and "20 draws" in ax.get_xlabel()


def test_a_comparison_says_which_posterior_is_subtracted():
    comparison = pc.compare_posteriors(DRAWS, DRAWS[:, ::-1], names=("old", "new"), n_particles=1, random_seed=1)
    matrix, _ = comparison.plot()
    assert "new minus old" in matrix.images[0].colorbar.ax.get_ylabel()
