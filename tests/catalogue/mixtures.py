"""Posteriors of mixtures, and their allocation probabilities in closed form."""

import numpy as np
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import posterior_consensus as pc

CHAINS, DRAWS, N, K = 2, 3, 7, 3


def posterior(**variables):
    """A posterior of arrays (chains, draws, ...), with coordinates that are not the default."""
    coords = {"chain": [1, 4], "draw": [10, 20, 30]}
    data = {name: (("chain", "draw", *(f"{name}_{k}" for k in range(v.ndim - 2))), v) for name, v in variables.items()}
    return xr.Dataset(data, coords)


def weights(rng, *shape):
    return rng.dirichlet(np.ones(K), (CHAINS, DRAWS, *shape))


def normals(rng, *shape):
    return rng.normal(0.0, 2.0, (CHAINS, DRAWS, *shape))


def positive(rng, *shape):
    return rng.uniform(0.5, 2.0, (CHAINS, DRAWS, *shape))


def spd(rng, *shape, d=2):
    """Lower Cholesky factors of covariances."""
    return np.tril(rng.normal(0.0, 0.3, (CHAINS, DRAWS, *shape, d, d)), -1) + np.eye(d) * rng.uniform(0.5, 2.0, d)


def expected(w, log_density):
    """Closed form: (chains, draws, n, K) weights and log densities, to rows per draw."""
    with np.errstate(divide="ignore"):
        joint = np.log(w) + log_density
    p = np.exp(joint - joint.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True)).reshape(-1, *p.shape[2:])


def over_items(values):
    return values[:, :, np.newaxis]


def check(soft, wanted, atol=1e-10):
    assert isinstance(soft, pc.results.AllocationDraws)
    assert soft.probabilities.dtype == np.float64
    assert_allclose(soft.probabilities, wanted, rtol=0, atol=atol)
    assert np.ptp(wanted, axis=(0, 1)).min() > 1e-3  # the case would show a wrong component, item or draw


def mvn(y, mean, factor):
    """Log density (chains, draws, n, K) of a normal with means (chains, draws, K, d) and Cholesky factors."""
    found = np.empty((*mean.shape[:2], len(y), mean.shape[2]))
    for c, t, k in np.ndindex(*mean.shape[:3]):
        covariance = factor[c, t, k] @ factor[c, t, k].T
        found[c, t, :, k] = stats.multivariate_normal(mean[c, t, k], covariance).logpdf(y)
    return found


def normal_mixture(pm):
    """A normal mixture with names, its posterior and the answer."""
    rng = np.random.default_rng(20180614)
    y, w, mu, sigma = rng.normal(0.0, 2.0, N), weights(rng), normals(rng, K), positive(rng, K)
    with pm.Model(coords={"obs": list("abcdefg"), "component": ["low", "mid", "high"]}) as model:
        pw = pm.Dirichlet("w", np.ones(K), dims="component")
        pmu = pm.Normal("mu", 0, 5, dims="component")
        psigma = pm.HalfNormal("sigma", 2, dims="component")
        pm.NormalMixture("y", w=pw, mu=pmu, sigma=psigma, observed=y, dims="obs")
    log_density = stats.norm.logpdf(y[:, np.newaxis], over_items(mu), over_items(sigma))
    return model, posterior(w=w, mu=mu, sigma=sigma), expected(over_items(w), log_density)
