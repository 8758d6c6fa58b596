"""component_similarity() of PyMC models equals that of arrays, for marginalized and explicit labels."""

import warnings

import numpy as np
import pytest
from scipy import stats

import posterior_consensus as pc
from tests.catalogue.mixtures import CHAINS, DRAWS, K, N, posterior

pytestmark = pytest.mark.xdist_group("pymc")
D = 2


def arrays(rng, *shape):
    return rng.normal(0.0, 2.0, (CHAINS, DRAWS, *shape)), rng.uniform(0.5, 2.0, (CHAINS, DRAWS, *shape))


def check(found, wanted):
    np.testing.assert_allclose(found.values, wanted.values, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.partitions.labels, wanted.partitions.labels)
    assert 1e-3 < found.values.min() < found.values[0, 1:].max() < 1 - 1e-3


def test_a_marginalized_mixture(normal_mixture):
    model, idata, _ = normal_mixture
    soft = pc.allocation_probabilities(model, idata)
    wanted = pc.component_similarity(soft, mean=idata["mu"].values, sd=idata["sigma"].values)
    check(pc.component_similarity(idata, model=model), wanted)


def test_components_that_share_a_parameter_or_are_listed(pm, y, rng):
    mu, sigma = arrays(rng, K)
    sigma = sigma[..., 0]
    idata = posterior(mu=mu, sigma=sigma)
    with pm.Model() as model:
        means, sd = pm.Normal("mu", shape=K), pm.HalfNormal("sigma")
        pm.Mixture("y", np.ones(K) / K, [pm.Normal.dist(means[k], sd) for k in range(K)], observed=y)
    wanted = pc.component_similarity(pc.allocation_probabilities(model, idata), mean=mu, sd=sigma)
    check(pc.component_similarity(idata, model=model), wanted)


def test_multivariate_normals(pm, rng):
    mu, _ = arrays(rng, K, D)
    idata, cov = posterior(mu=mu), np.array([[1.0, 0.3], [0.3, 0.7]])
    with pm.Model() as model:
        means = pm.Normal("mu", shape=(K, D))
        parts = [pm.MvNormal.dist(means[k], cov) for k in range(K)]
        pm.Mixture("y", np.ones(K) / K, parts, observed=rng.normal(size=(N, D)))
    soft = pc.allocation_probabilities(model, idata)
    wanted = pc.component_similarity(soft, mean=mu, cov=np.broadcast_to(cov, (CHAINS, DRAWS, D, D)))
    check(pc.component_similarity(idata, model=model), wanted)


FAMILIES = {
    "Poisson": (lambda dist, p: dist(p), stats.poisson, lambda p: {"mu": p}),
    "Gamma": (lambda dist, p: dist(2.0, p), stats.gamma, lambda p: {"a": 2.0, "scale": 1 / p}),
    "Exponential": (lambda dist, p: dist(p), stats.expon, lambda p: {"scale": 1 / p}),
    "StudentT": (lambda dist, p: dist(3.0, mu=p, sigma=1.0), stats.t, lambda p: {"df": 3.0, "loc": p}),
    "LogNormal": (lambda dist, p: dist(p, 0.5), stats.lognorm, lambda p: {"s": 0.5, "scale": np.exp(p)}),
    "Binomial": (lambda dist, p: dist(5, p / 3), stats.binom, lambda p: {"n": 5, "p": p / 3}),
    "NegativeBinomial": (lambda dist, p: dist(p, 2.0), stats.nbinom, lambda p: {"n": 2.0, "p": 2.0 / (2.0 + p)}),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(pm, rng, name):
    make, distribution, parameters = FAMILIES[name]
    _, rate = arrays(rng, K)
    idata, observed = posterior(rate=rate), rng.integers(1, 5, N)
    with pm.Model() as model:
        parts = make(getattr(pm, name).dist, pm.HalfNormal("rate", shape=K))
        pm.Mixture("y", np.ones(K) / K, parts, observed=observed)
    soft = pc.allocation_probabilities(model, idata)
    wanted = pc.component_similarity(soft, distribution=distribution, **parameters(rate))
    check(pc.component_similarity(idata, model=model), wanted)


def test_explicit_labels_of_several_observed_variables(pm, rng):
    mu, sigma = arrays(rng, K, D)
    _, rate = arrays(rng, K)
    z = rng.permuted(np.tile(np.arange(N) % K, (CHAINS, DRAWS, 1)), axis=-1)
    with pm.Model() as model:
        label = pm.Categorical("z", np.ones(K) / K, shape=N)
        means, spread = pm.Normal("mu", shape=(K, D)), pm.HalfNormal("sigma", shape=(K, D))
        pm.Normal("y", means[label], spread[label], observed=rng.normal(size=(N, D)))
        pm.Poisson("counts", pm.HalfNormal("rate", shape=K)[label], observed=rng.integers(5, size=N))
    found = pc.component_similarity(posterior(mu=mu, sigma=sigma, rate=rate, z=z), model=model)
    normal = pc.component_similarity(z, mean=mu, sd=sigma).values
    counts = pc.component_similarity(z, distribution=stats.poisson, mu=rate).values
    assert np.all(found.values <= np.minimum(normal, counts) + 1e-12)
    one = pc.component_similarity(posterior(mu=mu, sigma=sigma, rate=np.ones_like(rate), z=z), model=model)
    np.testing.assert_allclose(one.values, normal, atol=1e-12)


def test_labels_that_are_marginalized_by_pymc_extras(pm, y, rng):
    extras = pytest.importorskip("pymc_extras", exc_type=ImportError)
    mu, _ = arrays(rng, K)
    with pm.Model() as model:
        label = pm.Categorical("z", np.ones(K) / K, shape=N)
        pm.Normal("y", pm.Normal("mu", shape=K)[label], 1.0, observed=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hidden = extras.marginalize(model, ["z"])
        idata = posterior(mu=mu)
        wanted = pc.component_similarity(pc.allocation_probabilities(hidden, idata), mean=mu, sd=1.0)
        check(pc.component_similarity(idata, model=hidden), wanted)


def test_what_has_no_distance_of_components_is_refused(pm, y, rng):
    mu, _ = arrays(rng, K)
    x = rng.normal(size=N)
    with pm.Model() as regressions:
        slope = pm.Normal("mu", shape=K)
        pm.NormalMixture("y", np.ones(K) / K, x[:, np.newaxis] * slope, 1.0, observed=y)
    with pytest.raises(ValueError, match="'loc' varies with the item"):
        pc.component_similarity(posterior(mu=mu), model=regressions)
    with pm.Model() as unknown:
        parts = pm.Wald.dist(pm.HalfNormal("mu", shape=K), 1.0)
        pm.Mixture("y", np.ones(K) / K, parts, observed=np.abs(y))
    with pytest.raises(ValueError, match="'NormalRV', .*; got WaldRV"):
        pc.component_similarity(posterior(mu=np.abs(mu)), model=unknown)
    with pytest.raises(TypeError, match="model .*own components"):
        pc.component_similarity(posterior(mu=np.abs(mu)), model=unknown, sd=1.0)
    with pytest.raises(TypeError, match="`draws` must be the posterior .*model=model"):
        pc.component_similarity(unknown, posterior(mu=mu))
