"""Where allocation probabilities cannot be had, the message says which case it is, why, and what else to do."""

import sys

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import posterior_consensus as pc
from tests.catalogue.mixtures import N, check, expected, normals, over_items, posterior
from tests.helpers import check_all

pytestmark = pytest.mark.xdist_group("pymc")
WAYS_OUT = r"pm\.Deterministic 'log_prob_z'.* as_allocation_probabilities;.* pm\.Categorical"


def test_no_mixture(pm, rng):
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        pm.Potential("likelihood", -(mu**2).sum())
    idata = posterior(mu=normals(rng, 2))

    def fails(model, message, var_name=None):
        with pytest.raises(ValueError, match=f"{message}.*{WAYS_OUT}"):
            pc.allocation_probabilities(model, idata, var_name=var_name)

    fails(model, r"`model` .*pm\.Mixture.*pm\.Potential, 'likelihood'")
    with model:
        z = pm.Categorical("z", p=[0.5, 0.5], shape=3)
        pm.Normal("y", mu[z], observed=np.zeros(3))
    fails(model, "labels, 'z'.*as_partition_draws. Else: either")
    fails(model, "`var_name`.* got 'y', present: none", "y")
    with pm.Model() as model:
        pm.Normal("mu")
    fails(model, r"pm\.Mixture; got .*'mu'")


def test_two_mixtures(pm, rng):
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        pm.NormalMixture("first", w=[0.5, 0.5], mu=mu, sigma=1.0, observed=np.zeros(3))
        pm.NormalMixture("second", w=[0.5, 0.5], mu=mu, sigma=1.0, observed=np.zeros(4))
    idata = posterior(mu=normals(rng, 2))
    with pytest.raises(ValueError, match="`var_name`.* 'first', 'second', .* independent"):
        pc.allocation_probabilities(model, idata)
    with pytest.raises(ValueError, match="`var_name`.* got 'mu', present: 'first'"):
        pc.allocation_probabilities(model, idata, var_name="mu")
    assert pc.allocation_probabilities(model, idata, var_name="second").n_items == 4


def test_posterior_that_does_not_fit(normal_mixture):
    model, idata, _ = normal_mixture
    mu, row = idata["mu"], r"at chain \d, draw \d0"
    bad = [
        (idata.drop_vars("mu"), rf"`draws`.* 'mu', .* has 'w', 'sigma'\. Sample again .*{WAYS_OUT}"),
        (idata.assign(mu=mu[..., 0]), r"'mu' has shape \(\) .*\(3,\) in the model"),
        (idata.drop_vars("mu").assign(mu=mu[..., :2]), r"'mu' has shape \(2,\) .*\(3,\) in the model"),
        (idata.assign(mu=mu * np.nan), "`draws`.* NaN; 'mu'"),
        (idata.assign(mu=mu.astype(str)), "`draws`.* numbers; 'mu' has dtype <U"),
        (idata.assign(sigma=-idata["sigma"]), rf"computed {row}: .*sigma > 0.*Build the model"),
        (idata.assign(w=0 * idata["w"]), rf"item 0 .*positive.* -inf {row}"),
        (idata.isel(draw=slice(0)), r"`draws`.* one draw; got \{'chain': 2, 'draw': 0\}"),
        (idata.rename(chain="kette"), "`draws`.*'chain' and 'draw', or 'sample'; 'posterior' has"),
        (xr.DataTree.from_dict({"prior": idata}), "`group`.* got 'posterior'"),
    ]
    for data, message in bad:
        with pytest.raises(ValueError, match=message):
            pc.allocation_probabilities(model, data)
    with pytest.raises(TypeError, match="`draws`.* path; got dict"):
        pc.allocation_probabilities(model, {"mu": np.zeros((2, 3, 3))})
    with pytest.raises(FileNotFoundError, match="'nowhere.nc'"):
        pc.allocation_probabilities(model, "nowhere.nc")


def test_mistyped_arguments(normal_mixture):
    model, idata, _ = normal_mixture
    tree = xr.DataTree.from_dict({"posterior": idata})
    cases = [
        ({"var_name": 3}, TypeError, "`var_name`", "got 3"),
        ({"var_name": "w"}, ValueError, "`var_name`", "got 'w', present: 'y'"),
        ({"observed": [0.1, 0.2]}, TypeError, "`observed`", "dict, {'y': new values}", "got list"),
        ({"observed": {"x": [0.1]}}, ValueError, "`observed`", "'y' and no other; got 'x'"),
        ({"observed": {"y": [[0.1]]}}, ValueError, "`observed`", "1 dimensions", "got shape (1, 1)"),
        ({"observed": {"y": []}}, ValueError, "at least one item; got shape (0,)"),
        ({"observed": {"y": [[1], [1, 2]]}}, ValueError, "`observed`", "an array"),
        ({"observed": {"y": ["a"]}}, TypeError, "`observed`", "numbers; got list of <U1"),
        ({"observed": {"y": [np.nan]}}, ValueError, "`observed`", "finite; got NaN"),
        ({"group": 3}, ValueError, "`group`", "got 3"),
        ({"random_seed": "a"}, TypeError, "`random_seed`", "from 0", "got 'a'"),
        ({"random_seed": -1}, ValueError, "`random_seed`", "from 0", "got -1"),
    ]
    check_all(lambda arguments: pc.allocation_probabilities(model, tree, **arguments), cases)


def test_no_model(normal_mixture):
    model, idata, _ = normal_mixture
    with pytest.raises(TypeError, match="`model`.* got Dataset. .*exchange"):
        pc.allocation_probabilities(idata, model)
    with pytest.raises(TypeError, match="`model`.* got NoneType.$"):
        pc.allocation_probabilities(None, idata)


def test_counts(pm, rng):
    rate, data = np.exp(normals(rng, 2)), np.arange(N)
    with pm.Model() as model:
        parts = pm.Poisson.dist(pm.Exponential("rate", 1.0, shape=2), shape=2)
        pm.Mixture("y", w=[0.5, 0.5], comp_dists=parts, observed=data)
    idata = posterior(rate=rate)
    with pytest.raises(ValueError, match="`observed`.*integers.* 'y' .*; got 0.5"):
        pc.allocation_probabilities(model, idata, observed={"y": [1.0, 0.5]})
    check(
        pc.allocation_probabilities(model, idata), expected(0.5, stats.poisson.logpmf(data[:, None], over_items(rate)))
    )
    assert pc.allocation_probabilities(model, idata, observed={"y": [1.0, 2.0]}).n_items == 2


def test_without_pymc(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(ImportError, match=r"pymc: pip install 'posterior-consensus\[pymc\]'"):
        pc.allocation_probabilities(None, None)
