"""Allocation probabilities of PyMC's mixtures equal closed forms in NumPy and SciPy, in both generations of PyMC."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp

import posterior_consensus as pc
from posterior_consensus.sources.mixtures import posterior as module
from tests.catalogue.mixtures import (
    CHAINS,
    DRAWS,
    K,
    N,
    check,
    expected,
    mvn,
    normals,
    over_items,
    positive,
    posterior,
    spd,
    weights,
)

pytestmark = pytest.mark.xdist_group("pymc")
EQUAL = np.full(K, 1 / K)


def test_normal_mixture_and_its_names(normal_mixture):
    model, idata, wanted = normal_mixture
    soft = pc.allocation_probabilities(model, idata, random_seed=4)
    check(soft, wanted)
    assert (soft.items.dim, soft.component_dim) == ("obs", "component")
    assert soft.items.coords["obs"].values.tolist() == list("abcdefg")
    assert soft.samples.chain.tolist() == [1, 1, 1, 4, 4, 4]
    assert soft.samples.draw.tolist() == [10, 20, 30, 10, 20, 30]
    again = pc.allocation_probabilities(model, idata, var_name="y", random_seed=4)
    assert_array_equal(again.components, soft.components)


def test_containers(normal_mixture, arviz, tmp_path):
    model, idata, wanted = normal_mixture
    path, values = tmp_path / "posterior.nc", {name: v.values for name, v in idata.items()}
    idata.to_netcdf(path, group="posterior", engine="h5netcdf")
    is_old = hasattr(arviz, "convert_to_inference_data")
    made = arviz.from_dict(posterior=values) if is_old else arviz.from_dict({"posterior": values})
    stacked, transposed = idata.stack(sample=("chain", "draw")), idata.transpose("mu_0", "draw", ...)
    for data in (path, str(path), made, stacked, transposed):
        check(pc.allocation_probabilities(model, data), wanted)
    check(pc.allocation_probabilities(model, xr.DataTree.from_dict({"prior": idata}), group="prior"), wanted)


def test_only_what_the_allocation_depends_on_is_needed(pm, y, rng):
    """Draws of other variables may be missing or broken; data are known; potentials and transforms do not matter."""
    w, mu, sigma, before = weights(rng), np.sort(normals(rng, K), axis=-1), positive(rng), rng.normal(size=N)
    with pm.Model() as model:
        shrink = pm.HalfNormal("shrink", 1)
        pw = pm.StickBreakingWeights("w", pm.Gamma("alpha", 1, 1), K=K - 1)
        ordered = pm.distributions.transforms.ordered
        pmu = pm.Normal("mu", 0, shrink, shape=K, transform=ordered, initval=np.arange(K))
        psigma = pm.Deterministic("sigma", pm.math.exp(pm.Normal("log_sigma")))
        pm.Normal("other", pmu.sum(), observed=0.3)
        first = pm.Normal("first", 0, 1, observed=before)
        pm.Potential("order", pm.math.switch(pmu[0] < pmu[1], 0.0, -np.inf))
        pm.NormalMixture("y", w=pw, mu=pmu * first[:, None], sigma=psigma, observed=y)
    idata = posterior(w=w, mu=mu, log_sigma=np.log(sigma), mu_log__=np.full((CHAINS, DRAWS, 2), np.nan))
    soft = pc.allocation_probabilities(model, idata)
    means = over_items(mu) * before[:, np.newaxis]
    log_density = stats.norm.logpdf(y[:, np.newaxis], means, sigma[:, :, np.newaxis, np.newaxis])
    check(soft, expected(over_items(w), log_density))
    assert (soft.items.dim, soft.component_dim) == ("y_dim_0", "component")


def test_different_families(pm, y, rng):
    w, mu = rng.dirichlet(np.ones(2), (CHAINS, DRAWS)), normals(rng, 2)
    with pm.Model(coords={"kind": ["core", "tail"]}) as model:
        pw, pmu = pm.Dirichlet("w", np.ones(2), dims="kind"), pm.Normal("mu", shape=2)
        components = [pm.Normal.dist(pmu[0], 0.7), pm.StudentT.dist(nu=3, mu=pmu[1], sigma=2.0)]
        pm.Mixture("y", w=pw, comp_dists=components, observed=y)
    soft = pc.allocation_probabilities(model, posterior(w=w, mu=mu))
    at = mu[:, :, np.newaxis]
    first, second = stats.norm.logpdf(y, at[..., 0], 0.7), stats.t.logpdf(y, 3, at[..., 1], 2.0)
    # Of PyMC's small constants, such as nu, some are of single precision.
    check(soft, expected(over_items(w), np.stack([first, second], axis=-1)), atol=1e-8)
    assert soft.component_dim == "kind"


@pytest.mark.parametrize("shared", ["nothing", "covariance", "mean"])
def test_batched_multivariate_normal(pm, rng, shared):
    data, w, mean, factor = rng.normal(size=(N, 2)), weights(rng), normals(rng, K, 2), spd(rng, K)
    if shared == "covariance":
        factor = factor[:, :, :1].repeat(K, axis=2)
    if shared == "mean":
        mean = mean[:, :, :1].repeat(K, axis=2)
    with pm.Model(coords={"component": list("uvw"), "feature": ["f", "g"]}) as model:
        pw = pm.Dirichlet("w", np.ones(K))
        one_mean, one_factor = shared == "mean", shared == "covariance"
        pmean = pm.Normal("mean", dims="feature" if one_mean else ("component", "feature"))
        pfactor = pm.Normal("factor", shape=(2, 2) if one_factor else (K, 2, 2))
        pm.Mixture("y", w=pw, comp_dists=pm.MvNormal.dist(pmean, chol=pfactor, shape=(K, 2)), observed=data)
    stored = posterior(w=w, mean=mean[:, :, 0] if one_mean else mean, factor=factor[:, :, 0] if one_factor else factor)
    soft = pc.allocation_probabilities(model, stored)
    check(soft, expected(over_items(w), mvn(data, mean, factor)))
    assert soft.component_dim == "component"


def test_covariance_per_item(pm, rng):
    """PyMC's own density, for which no shortcut is there."""
    data, mean, scale = rng.normal(size=(N, 2)), normals(rng, K, 2), positive(rng, N, 1)
    with pm.Model() as model:
        pmean, pscale = pm.Normal("mean", shape=(K, 2)), pm.HalfNormal("scale", shape=(N, 1))
        components = pm.MvNormal.dist(pmean, cov=pscale[:, :, None, None] * np.eye(2), shape=(N, K, 2))
        pm.Mixture("y", w=EQUAL, comp_dists=components, observed=data)
    soft = pc.allocation_probabilities(model, posterior(mean=mean, scale=scale))
    deviation = ((data[:, np.newaxis] - over_items(mean)) ** 2).sum(axis=-1)
    check(soft, expected(1 / K, -deviation / (2 * scale) - np.log(scale)))


def test_mixture_of_regressions_with_weights_by_covariates(pm, y, rng):
    x, slope, gate = rng.normal(size=N), normals(rng, K), normals(rng, K)
    with pm.Model(coords={"obs": np.arange(N), "expert": np.arange(K)}) as model:
        px = pm.Data("x", x, dims="obs")
        pslope, pgate = pm.Normal("slope", dims="expert"), pm.Normal("gate", dims="expert")
        pw = pm.Deterministic("w", pm.math.softmax(px[:, None] * pgate, axis=-1), dims=("obs", "expert"))
        data = pm.Data("d", y, dims="obs")
        pm.NormalMixture("y", w=pw, mu=px[:, None] * pslope, sigma=1.0, observed=data, dims="obs")
    idata = posterior(slope=slope, gate=gate)

    def wanted(x, y):
        logit = x[:, np.newaxis] * over_items(gate)
        w = np.exp(logit) / np.exp(logit).sum(axis=-1, keepdims=True)
        return expected(w, stats.norm.logpdf(y[:, np.newaxis], x[:, np.newaxis] * over_items(slope), 1.0))

    soft = pc.allocation_probabilities(model, idata)
    check(soft, wanted(x, y))
    assert (soft.items.dim, soft.component_dim) == ("obs", "expert")
    new_x, new_y = rng.normal(size=4), rng.normal(size=4)
    for values in (new_y, new_y[:1]):
        with pytest.raises(ValueError, match=r"`observed`.*each item.* pm\.set_data"):
            pc.allocation_probabilities(model, idata, observed={"y": values})
    with model:
        pm.set_data({"x": new_x}, coords={"obs": np.arange(4)})
    new = pc.allocation_probabilities(model, idata, observed={"y": xr.DataArray(new_y, [("new", list("pqrs"))])})
    check(new, wanted(new_x, new_y))
    assert new.items.dim == "new"
    assert new.items.coords["new"].values.tolist() == list("pqrs")


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("d", [1, 2])
def test_missing_observations(pm, y, rng, d):
    """The values of those missing are the posterior's, also where only a part of an item is missing."""
    mu = normals(rng, K, d)
    data = rng.normal(size=(N, d))
    gone = np.zeros((N, d), bool)
    gone[[1, 4], 0] = True
    masked = np.where(gone, np.nan, data)
    with pm.Model(coords={"obs": list("abcdefg"), "feature": np.arange(d)}) as model:
        pmu = pm.Normal("mu", shape=(K, d))
        if d == 1:
            pm.NormalMixture("y", w=EQUAL, mu=pmu[:, 0], sigma=1.0, observed=masked[:, 0], dims="obs")
        else:
            normal = pm.MvNormal.dist(pmu, cov=np.eye(d))
            pm.Mixture("y", w=EQUAL, comp_dists=normal, observed=masked, dims=("obs", "feature"))
    filled = np.broadcast_to(data, (CHAINS, DRAWS, N, d)).copy()
    filled[..., [1, 4], 0] = normals(rng, 2)
    soft = pc.allocation_probabilities(model, posterior(mu=mu, y_unobserved=filled[..., [1, 4], 0]))
    deviation = ((filled[:, :, :, np.newaxis] - over_items(mu)) ** 2).sum(axis=-1)
    check(soft, expected(1 / K, -deviation / 2))
    assert soft.items.dim == "obs"
    assert soft.items.coords["obs"].values.tolist() == list("abcdefg")


def test_multivariate_components_of_two_families(pm, rng):
    mu, data, cov = normals(rng, 2, 2), rng.normal(size=(N, 2)), np.array([[1.5, 0.4], [0.4, 0.8]])
    with pm.Model() as model:
        pmu = pm.Normal("mu", shape=(2, 2))
        parts = [pm.MvNormal.dist(pmu[0], cov=cov), pm.MvStudentT.dist(nu=4, mu=pmu[1], scale=cov)]
        pm.Mixture("y", w=[0.5, 0.5], comp_dists=parts, observed=data)
    deviations = data[:, np.newaxis] - over_items(mu)
    families = stats.multivariate_normal(np.zeros(2), cov), stats.multivariate_t(np.zeros(2), cov, df=4)
    log_p = [family.logpdf(deviations[..., k, :]) for k, family in enumerate(families)]
    check(pc.allocation_probabilities(model, posterior(mu=mu)), expected(0.5, np.stack(log_p, axis=-1)))


def test_latent_mixture(pm, y, rng):
    mu, x = normals(rng, K), normals(rng, N)
    with pm.Model() as model:
        pmu = pm.Normal("mu", shape=K)
        px = pm.NormalMixture("x", w=EQUAL, mu=pmu, sigma=1.0, shape=N)
        pm.Normal("y", px, 0.5, observed=y)
    soft = pc.allocation_probabilities(model, posterior(mu=mu, x=x))
    check(soft, expected(1 / K, stats.norm.logpdf(x[..., np.newaxis], over_items(mu), 1.0)))
    with pytest.raises(ValueError, match="`draws`.* draws of 'x'"):
        pc.allocation_probabilities(model, posterior(mu=mu))


def test_items_in_two_dimensions_are_stacked(pm, rng):
    data, mu = rng.normal(size=(4, 2)), normals(rng, K)
    with pm.Model(coords={"row": list("abcd"), "column": [0, 1]}) as model:
        pmu = pm.Normal("mu", shape=K)
        pm.NormalMixture("y", w=EQUAL, mu=pmu, sigma=1.0, observed=data, dims=("row", "column"))
    with pytest.warns(UserWarning, match="4 x 2 .* 'y' .* 8 items.* 4 rows.*MvNormal") as warned:
        soft = pc.allocation_probabilities(model, posterior(mu=mu))
    assert len(warned) == 1 and warned[0].filename == __file__
    check(soft, expected(1 / K, stats.norm.logpdf(data.reshape(-1, 1), over_items(mu), 1.0)))
    assert soft.items.dim == "item"
    assert soft.items.coords["row"].values.tolist() == list("aabbccdd")


def test_inflated_and_hurdle_only_when_named(pm, rng):
    counts = np.array([0, 0, 1, 3, 0, 2, 5])
    rate, psi = positive(rng, 1), rng.uniform(0.2, 0.9, (CHAINS, DRAWS, 1))
    with pm.Model() as model:
        prate, ppsi = pm.Exponential("rate", 1.0), pm.Beta("psi", 1, 1)
        pm.ZeroInflatedPoisson("counts", psi=ppsi, mu=prate, observed=counts)
        pm.HurdleGamma("amount", psi=ppsi, alpha=0.5, beta=prate, observed=np.array([0.0, 0.4, 1.0]))
    idata = posterior(rate=rate[..., 0], psi=psi[..., 0])
    with pytest.raises(ValueError, match="'counts', 'amount' .*zeros.* `var_name`"):
        pc.allocation_probabilities(model, idata)
    zeros = (counts == 0) * (1 - psi)
    zeros = zeros / (zeros + psi * stats.poisson.pmf(counts, rate))
    soft = pc.allocation_probabilities(model, idata, var_name="counts").probabilities
    assert_allclose(soft, np.stack([zeros, 1 - zeros], axis=-1).reshape(-1, N, 2), rtol=0, atol=1e-10)
    hurdle = pc.allocation_probabilities(model, idata, var_name="amount")
    assert_array_equal(hurdle.probabilities, np.broadcast_to([[1, 0], [0, 1], [0, 1]], (6, 3, 2)))


def test_new_observations(normal_mixture, rng):
    model, idata, _ = normal_mixture
    new = rng.normal(size=11)
    soft = pc.allocation_probabilities(model, idata, observed={"y": new})
    w, mu, sigma = (over_items(idata[name].values) for name in ("w", "mu", "sigma"))
    check(soft, expected(w, stats.norm.logpdf(new[:, np.newaxis], mu, sigma)))
    joint = np.log(w) + stats.norm.logpdf(new[:, np.newaxis], mu, sigma)
    assert_allclose(soft.log_density, logsumexp(joint, axis=-1).reshape(-1, 11), rtol=1e-10)
    assert_allclose(soft.take([-1, 0]).of_items(np.array([3])).log_density, soft.log_density[[-1, 0], 3:4])
    assert pc.allocation_probabilities(model, idata).log_density is None
    assert soft.items.dim == "obs"
    assert "obs" not in soft.items.coords  # the model's names are those of other items
    assert soft.component_dim == "component"


def test_repeated_draws_are_computed_once(normal_mixture, monkeypatch):
    model, idata, wanted = normal_mixture
    calls = []
    normalized = module._normalized_in_draw
    monkeypatch.setattr(module, "_normalized_in_draw", lambda *a: calls.append(1) or normalized(*a))
    repeated = idata.isel(draw=[0, 0, 1, 1, 1])
    soft = pc.allocation_probabilities(model, repeated)
    assert len(calls) == 4
    wanted = wanted.reshape(CHAINS, DRAWS, N, K)[:, [0, 0, 1, 1, 1]].reshape(-1, N, K)
    assert_allclose(soft.probabilities, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("compiles", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_numba_computes_what_is_large_and_agrees_with_numpy(normal_mixture, monkeypatch, compiles):
    model, idata, wanted = normal_mixture
    modes, function = [], module.Density.function

    def counted(self, mode=None):
        modes.append(mode)
        return function(self, mode if compiles else None)

    monkeypatch.setattr(module, "_loops_in_python", lambda _: True)
    monkeypatch.setattr(module.Density, "function", counted)
    for least in (wanted.size, wanted.size + 1):
        monkeypatch.setattr(module, "_COMPILED_FROM", least)
        check(pc.allocation_probabilities(model, idata), wanted)
    assert modes == [None, "NUMBA", None]


def test_memory(normal_mixture, monkeypatch):
    model, idata, wanted = normal_mixture
    size = wanted.size
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", f"{16 * size}")
    check(pc.allocation_probabilities(model, idata), wanted)
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", f"{16 * size - 1}")
    single = pc.allocation_probabilities(model, idata)
    assert single.probabilities.dtype == np.float32
    assert_allclose(single.probabilities, wanted, rtol=0, atol=1e-6)
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", f"{8 * size - 1}")
    with pytest.raises(MemoryError, match=r" 6 x 7 x 3 .* 1\.01 KB .* Thin"):
        pc.allocation_probabilities(model, idata)
