"""What other programs give, as the page on input says: NumPyro, JAX, PyTorch, brms, Bambi and long tables."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from tests.helpers import check, source_in

N_DRAWS, N_ITEMS, N_COMPONENTS = 400, 9, 3


@pytest.fixture
def p(rng):
    """Probabilities of two chains of 200 draws, chain after chain."""
    return rng.dirichlet(np.full(N_COMPONENTS, 0.3), (N_DRAWS, N_ITEMS))


@pytest.fixture
def z(rng):
    return rng.integers(N_COMPONENTS, size=(N_DRAWS, N_ITEMS))


def predicted(z, rng):
    """Dicts as Predictive(infer_discrete=True) gives them: draws of all chains, then each site's own dimensions."""
    y, features = rng.normal(size=(N_DRAWS, N_ITEMS)), rng.normal(size=(N_DRAWS, N_ITEMS, 2))
    parameters = {"mu": features[:, :N_COMPONENTS], "w": y[:, :N_COMPONENTS], "sigma": y[:, 0]}
    return [{"z": z}, {"z": z, "y": y}, {"z": z, "y": features}, {"z": z, "y": features, **parameters}]


def test_draws_of_all_chains_in_one(z, rng):
    wanted = pc.as_partition_draws(z)
    for sites in predicted(z, rng):
        for draws in (
            pc.as_partition_draws(sites),
            pc.as_partition_draws(sites, "z"),
            source_in(sites).source,
            source_in(sites, "z").source,
        ):
            assert_array_equal(draws.labels, wanted.labels)
            assert [rows.size for rows in draws.samples.chains] == [N_DRAWS]


def test_probabilities_of_all_chains_in_one(p, rng):
    wanted = pc.as_allocation_probabilities(p).probabilities
    for sites in ({"q": p}, {"q": p, "w": p[:, 0], "sigma": p[:, 0, 0]}, {"q": np.log(p), "y": p[..., 0]}):
        for name in (None, "q"):
            assert_allclose(pc.as_allocation_probabilities(sites, name).probabilities, wanted)
            assert_allclose(source_in(sites, name).source.probabilities, wanted)


@pytest.mark.parametrize("n_chains", [2, 20])
def test_chains_and_draws_stay_what_they_are(n_chains, z, rng):
    shape = n_chains, N_DRAWS // n_chains
    mu = rng.normal(size=(*shape, N_COMPONENTS))
    sites = {"z": z.reshape(*shape, N_ITEMS), "k": z[:, 0].reshape(shape), "mu": mu, "sigma": mu[..., 0]}
    for draws in (pc.as_partition_draws(sites), source_in(sites, "z").source):
        assert_array_equal(draws.labels, pc.as_partition_draws(z).labels)
        assert len(draws.samples.chains) == n_chains


class Array:
    """An array of another library."""

    def __init__(self, values):
        self._values, self.shape, self.dtype, self.ndim = values, values.shape, "int32", values.ndim


class AsArray(Array):
    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)


class ByDLPack(Array):
    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


@pytest.mark.parametrize("kind", [AsArray, ByDLPack])
def test_arrays_of_other_libraries(kind, z, p):
    for draws in (pc.as_partition_draws(kind(z)), source_in(kind(z)).source, pc.as_partition_draws({"z": kind(z)})):
        assert_array_equal(draws.labels, pc.as_partition_draws(z).labels)
    for soft in (pc.as_allocation_probabilities(kind(p)), source_in(kind(p)).source):
        assert_array_equal(soft.probabilities, pc.as_allocation_probabilities(p).probabilities)


@pytest.mark.parametrize(("package", "array"), [("jax.numpy", "asarray"), ("torch", "as_tensor")])
def test_arrays_of_jax_and_pytorch(package, array, z):
    other = getattr(pytest.importorskip(package), array)
    for data in (other(z), {"z": other(z)}, [other(z)] * 2):
        assert_array_equal(pc.as_partition_draws(data).labels[:N_DRAWS], pc.as_partition_draws(z).labels)


def test_numpyro_samples_labels():
    pytest.importorskip("numpyro")
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS, Predictive

    y = np.concatenate([np.linspace(-4, -3, 6), np.linspace(3, 4, 6)])

    def model():
        mu = numpyro.sample("mu", dist.Normal(np.array([-3.0, 3.0]), 1))
        with numpyro.plate("items", y.size):
            z = numpyro.sample("z", dist.Categorical(np.array([0.5, 0.5])), infer={"enumerate": "parallel"})
            numpyro.sample("y", dist.Normal(mu[z], 1), obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=50, num_samples=30, num_chains=2, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(1))
    by_chain = mcmc.get_samples(group_by_chain=True)
    for samples, n_dims in ((mcmc.get_samples(), 1), (by_chain, 2)):
        sites = Predictive(model, samples, infer_discrete=True, batch_ndims=n_dims)(jax.random.PRNGKey(2))
        draws = pc.as_partition_draws(sites, "z")
        assert (draws.n_draws, draws.n_items, len(draws.samples.chains)) == (60, 12, n_dims)


def test_brms_in_a_table_and_in_numpy(p, tmp_path):
    """The R of the page: a column for each observation and component, observations first, and one for the chain."""
    names = [f"p[{i + 1},{k + 1}]" for k in range(N_COMPONENTS) for i in range(N_ITEMS)]
    table = pd.DataFrame(p.transpose(0, 2, 1).reshape(N_DRAWS, -1), columns=names)
    table.insert(0, ".chain", np.repeat([1, 2], N_DRAWS // 2))
    table.to_csv(tmp_path / "p.csv", index=False)
    np.save(tmp_path / "p.npy", p)
    for name, n_chains in (("p.csv", 2), ("p.npy", 1)):
        for soft in (pc.as_allocation_probabilities(tmp_path / name), source_in(tmp_path / name).source):
            assert_allclose(soft.probabilities, p, rtol=1e-14)
            assert len(soft.samples.chains) == n_chains


def test_a_long_table_of_probabilities(p, tmp_path):
    index = ["chain", "draw", "person", "class"]
    array = xr.DataArray(p.reshape(2, -1, N_ITEMS, N_COMPONENTS), dims=index, name="prob")
    array = array.assign_coords({dim: np.arange(size) for dim, size in array.sizes.items()})
    frame = array.to_series().reset_index()
    soft = pc.as_allocation_probabilities(frame.set_index(index)["prob"].to_xarray())
    assert_array_equal(soft.probabilities, pc.as_allocation_probabilities(p).probabilities)
    assert (soft.items.dim, soft.component_dim, len(soft.samples.chains)) == ("person", "class", 2)
    frame.to_csv(tmp_path / "long.csv", index=False)
    parts = ["a row for each 'person' and 'class' of each draw", f".set_index({index})['prob'].to_xarray()"]
    for function in (pc.as_allocation_probabilities, pc.summarize):
        for data in (frame, tmp_path / "long.csv"):
            check(function, data, ValueError, parts)


def test_a_model_of_bambi_has_one_of_pymc():
    pm = pytest.importorskip("pymc")

    class Backend:
        model = pm.Model()

    class Model:
        backend = Backend()

    parts = ["`model` must be a pymc.Model; got Model", "model.backend.model", "center_predictors=False"]
    check(lambda model: pc.allocation_probabilities(model, xr.Dataset()), Model(), TypeError, parts)


@pytest.mark.slow
def test_a_mixture_that_bambi_fits(rng):
    bambi = pytest.importorskip("bambi")
    data = pd.DataFrame({"y": np.concatenate([rng.normal(-3, 1, 20), rng.normal(3, 1, 20)])})
    if not hasattr(bambi, "MixtureNormal"):
        pytest.skip("this Bambi has no mixtures")
    formula = bambi.Formula("y ~ mixture(mu)", "mu ~ 1", "weights ~ 1")
    model = bambi.Model(formula, data, family=bambi.MixtureNormal(n=2), center_predictors=False)
    idata = model.fit(draws=50, tune=100, chains=2, progressbar=False)
    assert pc.allocation_probabilities(model.backend.model, idata).n_items == len(data)
