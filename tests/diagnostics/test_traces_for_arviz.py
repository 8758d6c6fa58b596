"""The traces of a diagnosis as ArviZ takes them, of unequal chains too."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.posteriors import noisy_draws, unequal_chains


def test_arviz_summarizes_the_traces_as_diagnose_does():
    labels = noisy_draws(np.random.default_rng(0), 90, 8, 3, 0.3).reshape(3, 30, 8)
    draw = xr.DataArray(labels, dims=("chain", "draw", "obs"), coords={"chain": [2, 5, 7], "draw": np.arange(10, 40)})
    found = pc.diagnose(draw)
    traces = found.traces_by_chain
    assert traces.sizes == {"chain": 3, "draw": 30} and list(traces) == found.traces["summary"].values.tolist()
    np.testing.assert_array_equal(traces["number of clusters"], labels_counted(labels))
    assert traces["chain"].values.tolist() == [2, 5, 7] and traces["draw"].values[0] == 10
    assert traces["entropy of sizes"].attrs["units"] == "bits"
    table = az.summary(traces, round_to="none") if hasattr(az, "diagnose") else az.summary(traces)
    r_hat = found.summaries["rhat"].to_series()
    np.testing.assert_allclose(table["r_hat"].astype(float), r_hat[table.index], atol=0.006)


def labels_counted(labels):
    return np.array([[np.unique(row).size for row in chain] for chain in labels])


def test_chains_are_cut_to_the_shortest():
    found = pc.diagnose(unequal_chains(np.random.default_rng(1), (12, 20), 6))
    traces = found.traces_by_chain
    assert traces.sizes == {"chain": 2, "draw": 12}
    np.testing.assert_array_equal(np.stack([traces[name].values[1] for name in traces]), found.traces.values[:, 12:24])


@pytest.mark.slow
def test_arviz_plots_the_traces():
    traces = pc.diagnose(noisy_draws(np.random.default_rng(0), 40, 6, 3, 0.3).reshape(2, 20, 6)).traces_by_chain
    az.plot_rank(traces[["number of clusters"]])
