"""Labels that pymc-extras has marginalized, shared by several observed variables."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import posterior_consensus as pc
from tests.catalogue.mixtures import K, N, check, expected, normals, over_items, posterior, weights

pytestmark = pytest.mark.xdist_group("pymc")


@pytest.fixture(scope="module", autouse=True)
def extras(pm):
    return pytest.importorskip("pymc_extras", exc_type=ImportError)


def marginalized(model, *names):
    from pymc_extras import marginalize

    return marginalize(model, list(names))


def test_several_labels(pm, rng, monkeypatch):
    x, values = np.array([0.3, 0.9, 2.0]), normals(rng, 2)
    with pm.Model(coords={"obs": list("uvw")}) as model:
        a, b = pm.Categorical("a", p=[0.4, 0.6], shape=3), pm.Bernoulli("b", p=0.3, dims="obs")
        mu = pm.Normal("mu", shape=2)
        pm.Normal("y", mu[a], 1.0, observed=[0.1, 0.2, 1.0])
        pm.Normal("x", mu[b] * 2, 1.0, observed=x, dims="obs")
    marginal, idata = marginalized(model, "a", "b"), posterior(mu=values)

    def probabilities(data=idata, **given):
        return pc.allocation_probabilities(marginal, data, **{"var_name": "b"} | given)

    soft = probabilities()
    check(soft, expected(np.array([0.7, 0.3]), stats.norm.logpdf(x[:, np.newaxis], 2 * over_items(values), 1.0)))
    assert (soft.items.dim, soft.component_dim) == ("obs", "component")
    assert soft.items.coords["obs"].values.tolist() == list("uvw")
    assert_array_equal(soft.samples.draw, [10, 20, 30] * 2)
    with pytest.raises(ValueError, match="`var_name`.* 'a', 'b'"):
        probabilities(var_name=None)
    with pytest.raises(ValueError, match="`draws`.* draws of 'mu'"):
        probabilities(idata.drop_vars("mu"))
    with pytest.raises(ValueError, match="`observed` must be None .*pymc-extras"):
        probabilities(observed={"x": x})
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "50")
    with pytest.raises(MemoryError, match="probabilities .* the budget is 50 B"):
        probabilities()


@pytest.mark.slow
def test_label_shared_by_two_variables(pm, rng):
    y, counts = rng.normal(0, 2, N), rng.poisson(3, N)
    w, mu, rate = weights(rng), normals(rng, K), normals(rng, K) / 3
    with pm.Model() as model:
        pw, pmu, prate = pm.Dirichlet("w", np.ones(K)), pm.Normal("mu", shape=K), pm.Normal("rate", shape=K)
        z = pm.Categorical("z", p=pw, shape=N)
        pm.Normal("y", pmu[z], 1.0, observed=y)
        pm.Poisson("counts", pm.math.exp(prate[z]), observed=counts)
    log_density = stats.norm.logpdf(y[:, np.newaxis], over_items(mu), 1.0)
    log_density = log_density + stats.poisson.logpmf(counts[:, np.newaxis], np.exp(over_items(rate)))
    soft = pc.allocation_probabilities(marginalized(model, "z"), posterior(w=w, mu=mu, rate=rate))
    check(soft, expected(over_items(w), log_density))


@pytest.mark.slow
def test_multivariate_observations(pm, rng):
    y, w, mu = rng.normal(size=(N, 2)), weights(rng), normals(rng, K, 2)
    with pm.Model() as model:
        pw, pmu = pm.Dirichlet("w", np.ones(K)), pm.Normal("mu", shape=(K, 2))
        z = pm.Categorical("z", p=pw, shape=N)
        pm.MvNormal("y", pmu[z], cov=np.eye(2), observed=y)
    deviation = ((y[:, np.newaxis] - over_items(mu)) ** 2).sum(axis=-1)
    soft = pc.allocation_probabilities(marginalized(model, "z"), posterior(w=w, mu=mu))
    check(soft, expected(over_items(w), -deviation / 2))


def test_states_of_a_markov_chain_are_refused(pm):
    from pymc_extras.distributions import DiscreteMarkovChain

    with pm.Model() as model:
        transitions, mu = pm.Dirichlet("P", np.ones((2, 2))), pm.Normal("mu", shape=2)
        state = DiscreteMarkovChain("state", P=transitions, init_dist=pm.Categorical.dist(p=[0.5, 0.5]), steps=3)
        pm.Normal("y", mu[state], 1.0, observed=np.arange(4.0))
    idata = posterior(mu=np.zeros((2, 3, 2)))
    match = r"'state' is a DiscreteMarkovChain, .* sampled .*: summarize\(idata, 'state'\)\. .*marginal\.recover,"
    for one in (model, marginalized(model, "state")):
        by_name = [lambda m, i, one=one: one(i, model=m) for one in (pc.component_similarity, pc.summarize)]
        for function in (pc.allocation_probabilities, *by_name):
            with pytest.raises(ValueError, match=match):
                function(one, idata)


def test_labels_that_share_a_marginalized_label_are_refused(pm):
    with pm.Model() as model:
        mu, g = pm.Normal("mu", shape=2), pm.Bernoulli("g", 0.5)
        z = pm.Categorical("z", p=pm.math.switch(g, np.array([0.9, 0.1]), np.array([0.2, 0.8])), shape=3)
        pm.Normal("y", mu[z], 1.0, observed=[0.1, 0.2, 1.0])
    values = {"mu": np.tile([0.0, 1.0], (2, 3, 1))}
    with pytest.raises(ValueError, match="'z' share .* 'g', .* Marginalize 'z' alone, .* 'g'"):
        pc.allocation_probabilities(marginalized(model, "g", "z"), posterior(**values), var_name="z")
    g = np.array([[0, 1, 0], [1, 1, 0]])
    soft = pc.allocation_probabilities(marginalized(model, "z"), posterior(**values, g=g))
    assert soft.items.dim == "z_dim_0"
    w, mu = np.where(g[..., np.newaxis] == 1, [0.9, 0.1], [0.2, 0.8]), over_items(values["mu"])
    check(soft, expected(over_items(w), stats.norm.logpdf(np.array([[0.1], [0.2], [1.0]]), mu, 1.0)))
