"""Time of allocation probabilities from a PyMC model, each in a process of its own so that compilation counts."""

import warnings

import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._runner import apart, used

N_FEATURES = 5


def posterior(n_draws: int, **variables: np.ndarray) -> xr.Dataset:
    """One chain of arrays (n_draws, ...)."""
    return xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{k}" for k in range(v.ndim - 1))), v[np.newaxis])
            for name, v in variables.items()
        },
        {"chain": [0], "draw": np.arange(n_draws)},
    )


def normal(pm, n_draws, n_items, n_components):
    rng = np.random.default_rng(1)
    shape = n_draws, n_components
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(n_components))
        mu = pm.Normal("mu", 0, 5, shape=n_components)
        sigma = pm.HalfNormal("sigma", 1, shape=n_components)
        pm.NormalMixture("y", w=w, mu=mu, sigma=sigma, observed=rng.normal(size=n_items))
    w = rng.dirichlet(np.ones(n_components), n_draws)
    return model, posterior(n_draws, w=w, mu=rng.normal(size=shape), sigma=rng.uniform(0.5, 2, shape))


def batched_normal(pm, n_draws, n_items, n_components):
    rng = np.random.default_rng(1)
    shape = n_draws, n_components, N_FEATURES
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(n_components))
        mu = pm.Normal("mu", 0, 5, shape=shape[1:])
        factor = pm.Normal("factor", shape=(*shape[1:], N_FEATURES))
        components = pm.MvNormal.dist(mu, chol=factor)
        pm.Mixture("y", w=w, comp_dists=components, observed=rng.normal(size=(n_items, N_FEATURES)))
    w = rng.dirichlet(np.ones(n_components), n_draws)
    factor = np.tril(rng.normal(0, 0.3, (*shape, N_FEATURES)), -1) + np.eye(N_FEATURES)
    return model, posterior(n_draws, w=w, mu=rng.normal(size=shape), factor=factor)


def listed_normal(pm, n_draws, n_items, n_components):
    _, idata = batched_normal(pm, n_draws, n_items, n_components)
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(n_components))
        mu = pm.Normal("mu", 0, 5, shape=(n_components, N_FEATURES))
        components = []
        for k in range(n_components):
            factor, *_ = pm.LKJCholeskyCov(f"chol_{k}", n=N_FEATURES, eta=2, sd_dist=pm.Exponential.dist(1.0))
            components.append(pm.MvNormal.dist(mu[k], chol=factor))
        pm.Mixture("y", w=w, comp_dists=components, observed=rng.normal(size=(n_items, N_FEATURES)))
    packed = idata["factor"].values[0][..., *np.tril_indices(N_FEATURES)]
    factors = {f"chol_{k}": packed[:, k] for k in range(n_components)}
    return model, posterior(n_draws, w=idata["w"].values[0], mu=idata["mu"].values[0], **factors)


MODELS = {
    "NormalMixture": normal,
    "MvNormal in one batch": batched_normal,
    "list of MvNormal with LKJ": listed_normal,
}


def tables(smallest):
    yield "", (_row(name, *((3, 10, 2) if smallest else (1000, 1000, 20))) for name in MODELS)


def _row(name, *size):
    seconds = apart(seconds_of, name, *size)
    return {"model": name} | dict(zip(("first call (s)", "second (s)"), seconds, strict=True))


def seconds_of(name: str, *size: int) -> list[float]:
    """Seconds of a first call and of a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymc as pm
    model, idata = MODELS[name](pm, *size)
    return [used(pc.allocation_probabilities, model, idata, progressbar=False).seconds for _ in range(2)]
