"""Stacking weights of chains, against closed forms and an optimizer, and as weights of a summary."""

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import posterior_consensus as pc
from tests.catalogue.posteriors import around
from tests.helpers import check

stacking_weights = pc.diagnostics.stacking_weights


def tree_of(logs, **groups):
    y = xr.DataArray(logs, dims=("chain", "draw", "item"))
    return xr.DataTree.from_dict({**groups, "log_likelihood": y.to_dataset(name="y")})


def test_weights_maximize_the_score_of_the_mixture(rng):
    means = rng.normal(size=(3, 1, 30))
    logs = means + rng.normal(scale=0.1, size=(3, 200, 30))
    found = stacking_weights(tree_of(logs))
    assert found.dims == ("chain", "draw") and float(found.sum()) == pytest.approx(1.0)
    assert np.all(found == found[:, :1]) and found["pareto_k"].shape == (3,)
    left_out = -logsumexp(-logs, axis=1) + np.log(200)  # importance sampling without smoothing: its tail is light

    def score(free):
        return -np.mean(logsumexp(left_out + np.log(softmax(free))[:, np.newaxis], axis=0))

    best = softmax(minimize(score, np.zeros(3)).x)
    np.testing.assert_allclose(found.sum("draw"), best, atol=0.02)


def test_a_chain_that_predicts_worse_gets_no_weight(rng):
    one, other = np.repeat([0, 1], 6), np.tile([0, 1], 6)
    labels = np.stack([around(rng, truth, 60, 0.1) for truth in (one, one, other)])
    z = xr.DataArray(labels, dims=("chain", "draw", "item"), coords={"chain": [2, 5, 7], "draw": np.arange(60)})
    logs = np.array([-1.0, -1.0, -3.0])[:, np.newaxis, np.newaxis] + rng.normal(scale=0.1, size=(3, 60, 12))
    tree = tree_of(logs, posterior=z.to_dataset(name="z"))
    tree["log_likelihood"] = tree["log_likelihood"].to_dataset().assign_coords(chain=[2, 5, 7])
    weights = stacking_weights(tree)
    assert float(weights.sel(chain=7).sum()) < 1e-3
    draws = pc.as_partition_draws(tree, weights=weights)
    similarity = pc.posterior_similarity_matrix(draws).values
    np.testing.assert_array_equal(similarity > 0.5, one[:, np.newaxis] == one)


def test_what_is_refused(rng):
    check(stacking_weights, np.zeros((2, 3)), TypeError, ["`draws`", "got ndarray"])
    check(stacking_weights, xr.DataTree(), ValueError, ["`group`", "'log_likelihood'"])
    check(stacking_weights, tree_of(np.full((2, 9, 3), np.nan)), ValueError, ["`draws`", "finite", "got none"])
    of_samples = {"log_likelihood": xr.Dataset({"y": (("sample", "item"), np.zeros((4, 2)))})}
    check(stacking_weights, xr.DataTree.from_dict(of_samples), ValueError, ["`chain` and `draw`", "sample"])
