"""Where allocation probabilities cannot be had, the message says which case it is, why, and what else to do."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from tests.catalogue.mixtures import N, normal_mixture, normals, posterior  # noqa: F401

WAYS_OUT = r"pm\.Deterministic 'log_prob_z'.* use as_allocation_probabilities; or write the labels as a pm\.Categorical"


def test_no_mixture(pm, rng):
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        pm.Potential("likelihood", -(mu**2).sum())
    idata = posterior(mu=normals(rng, 2))

    def fails(model, message, var_name=None):
        with pytest.raises(ValueError, match=message):
            pc.allocation_probabilities(model, idata, var_name=var_name)

    fails(model, f"`model` must have a pm.Mixture; .*in a pm.Potential, 'likelihood'.*{WAYS_OUT}")
    with model:
        z = pm.Categorical("z", p=[0.5, 0.5], shape=3)
        pm.Normal("y", mu[z], observed=np.zeros(3))
    fails(model, f"it has explicit labels, 'z'.*as_partition_draws. Else: either.*{WAYS_OUT}")
    fails(model, f"`var_name` must name a mixture of the model; got 'y', present: none.*{WAYS_OUT}", "y")
    with pm.Model() as model:
        pm.Normal("mu")
    fails(model, f"must have a pm.Mixture; got the variables 'mu'.*{WAYS_OUT}")


def test_two_mixtures(pm, rng):
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        pm.NormalMixture("first", w=[0.5, 0.5], mu=mu, sigma=1.0, observed=np.zeros(3))
        pm.NormalMixture("second", w=[0.5, 0.5], mu=mu, sigma=1.0, observed=np.zeros(4))
    idata = posterior(mu=normals(rng, 2))
    with pytest.raises(
        ValueError, match=r"`var_name` must name the mixture; .* 'first', 'second', whose .* independent"
    ):
        pc.allocation_probabilities(model, idata)
    with pytest.raises(ValueError, match="`var_name` must name a mixture of the model; got 'mu', present: 'first'"):
        pc.allocation_probabilities(model, idata, var_name="mu")
    assert pc.allocation_probabilities(model, idata, var_name="second").n_items == 4


def changed(idata, **variables):
    return idata.drop_vars(list(variables)).assign({k: v for k, v in variables.items() if v is not None})


def test_posterior_that_does_not_fit(normal_mixture):  # noqa: F811
    model, idata, _ = normal_mixture

    def fails(data, message, error=ValueError):
        with pytest.raises(error, match=message):
            pc.allocation_probabilities(model, data)

    fails(changed(idata, mu=None), rf"`idata` must hold draws of 'mu', .* has 'w', 'sigma'\. Sample again .*{WAYS_OUT}")
    fails(changed(idata, mu=idata["mu"][..., :2]), r"'mu' has shape \(2,\) in the posterior and \(3,\) in the model")
    fails(changed(idata, mu=idata["mu"][..., 0]), r"'mu' has shape \(\) in the posterior and \(3,\) in the model")
    fails(changed(idata, mu=idata["mu"] * np.nan), "`idata` must not hold NaN; 'mu' does")
    fails(changed(idata, mu=idata["mu"].astype(str)), "`idata` must hold numbers; 'mu' has dtype <U")
    fails(
        changed(idata, sigma=-idata["sigma"]), r"cannot be computed at chain \d, draw \d0: .*sigma > 0.*Build the model"
    )
    fails(changed(idata, w=0 * idata["w"]), r"The density of item 0 must be positive.* is -inf at chain \d, draw \d0")
    fails(idata.isel(draw=slice(0)), r"`idata` must hold at least one draw; got \{'chain': 2, 'draw': 0\}")
    fails(
        idata.rename(chain="kette"), "`idata` must have the dimensions 'chain' and 'draw', or 'sample'; 'posterior' has"
    )
    fails(
        {"mu": np.zeros((2, 3, 3))}, "`idata` must be an InferenceData, DataTree, Dataset or path; got dict", TypeError
    )
    fails("nowhere.nc", "there is no 'nowhere.nc'", FileNotFoundError)
    fails(xr.DataTree.from_dict({"prior": idata}), "`group` must name a group of the data; got 'posterior'")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"var_name": 3}, TypeError, "`var_name` must be a name; got 3"),
        ({"var_name": "w"}, ValueError, "`var_name` must name a mixture of the model; got 'w', present: 'y'"),
        ({"observed": [0.1, 0.2]}, TypeError, "`observed` must be a dict, {'y': new values}; got list"),
        ({"observed": {"x": [0.1]}}, ValueError, "`observed` must have new values of 'y' and no other; got 'x'"),
        ({"observed": {"y": [[0.1]]}}, ValueError, r"`observed` must have 1 dimensions, .*; got shape \(1, 1\)"),
        ({"observed": {"y": []}}, ValueError, r"at least one item; got shape \(0,\)"),
        ({"observed": {"y": [[1], [1, 2]]}}, ValueError, "`observed` must be an array of new observations; "),
        ({"observed": {"y": ["a"]}}, TypeError, "`observed` must be an array of numbers; got list of <U1"),
        ({"observed": {"y": [np.nan]}}, ValueError, "`observed` must be finite; got NaN"),
        ({"group": 3}, ValueError, "`group` must name a group of the data; got 3"),
        ({"random_seed": "a"}, TypeError, "`random_seed` must be an integer from 0, .*; got 'a'"),
        ({"random_seed": -1}, ValueError, "`random_seed` must be an integer from 0, .*; got -1"),
    ],
)
def test_mistyped_arguments(normal_mixture, arguments, error, message):  # noqa: F811
    model, idata, _ = normal_mixture
    with pytest.raises(error, match=message):
        pc.allocation_probabilities(model, xr.DataTree.from_dict({"posterior": idata}), **arguments)


def test_no_model(normal_mixture):  # noqa: F811
    model, idata, _ = normal_mixture
    with pytest.raises(TypeError, match="`model` must be a pymc.Model; got Dataset. The model comes first"):
        pc.allocation_probabilities(idata, model)
    with pytest.raises(TypeError, match="`model` must be a pymc.Model; got NoneType.$"):
        pc.allocation_probabilities(None, idata)


def test_new_counts_are_whole(pm, rng):
    with pm.Model() as model:
        rate = pm.Exponential("rate", 1.0, shape=2)
        pm.Mixture("y", w=[0.5, 0.5], comp_dists=pm.Poisson.dist(rate, shape=2), observed=np.arange(N))
    idata = posterior(rate=np.exp(normals(rng, 2)))
    with pytest.raises(ValueError, match="`observed` must be integers, as 'y' is discrete; got 0.5"):
        pc.allocation_probabilities(model, idata, observed={"y": [1.0, 0.5]})
    assert pc.allocation_probabilities(model, idata, observed={"y": [1.0, 2.0]}).n_items == 2


def test_without_pymc():
    code = """
import sys
sys.modules["pymc"] = None
import posterior_consensus as pc
try:
    pc.allocation_probabilities(None, None)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("Reading a model needs the package pymc: pip install 'posterior-consensus[pymc]'.")
