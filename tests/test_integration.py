"""From what ArviZ and PyMC hand out to a summary that is stored beside it and read back."""

import warnings

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from tests.helpers import written


def as_tree(data):
    return data if isinstance(data, xr.DataTree) else xr.DataTree.from_dict({g: data[g] for g in data.groups()})


def summarise_and_read_back(data, path, **arguments):
    """Return the draws, the results and the group as the file holds it."""
    draws = pc.as_partition_draws(data, **arguments)
    best = pc.consensus_partition(draws, random_seed=1, n_starts=4)
    ball, items = pc.credible_ball(draws, best), pc.item_uncertainty(draws, best)
    attached = pc.attach(data, best, ball, items)
    assert type(attached) is type(data)
    written(attached if path.suffix == ".nc" else as_tree(attached), path)  # ArviZ 0.23 refuses Zarr 3
    with xr.open_datatree(path, engine="zarr" if path.suffix == ".zarr" else "h5netcdf") as tree:
        stored = tree["consensus"].to_dataset().load()
    return draws, best, ball, items, stored


@pytest.mark.parametrize("name", ["posterior.nc", "posterior.zarr"])
def test_posterior_of_arviz(posterior, tmp_path, name):
    draws, best, ball, items, stored = summarise_and_read_back(posterior, tmp_path / name)
    assert_array_equal(stored["labels"].values, best.labels.values)
    assert_array_equal(stored["item_probability"].values, items.probability.values)
    assert_array_equal(stored["horizontal"].values, ball.horizontal.values)
    assert float(stored["ball_radius"]) == ball.radius
    assert stored["obs"].values.tolist() == list("abcd")
    # The file serves as data, and what it holds as a partition.
    again = pc.expected_loss(tmp_path / name, stored["labels"])
    assert float(again["expected_loss"]) == best.expected_loss
    assert float(again["mcse"]) == best.mcse
    psm = pc.posterior_similarity_matrix(tmp_path / name)
    assert_array_equal(psm.values, pc.posterior_similarity_matrix(draws).values)
    assert psm.dims == ("obs", "obs_bis")


def test_a_file_of_arviz_holds_the_same_draws(posterior, tmp_path):
    draws = pc.as_partition_draws(written(posterior, tmp_path / "posterior.nc"))
    assert_array_equal(draws.labels, pc.as_partition_draws(posterior).labels)
    assert draws.items.coords["obs"].values.tolist() == list("abcd")


def test_arviz_computes_on_the_distances(arviz, posterior):
    """The distances of the draws are a trace like any other."""
    draws = pc.as_partition_draws(posterior)
    best = pc.consensus_partition(draws, loss="binder", random_seed=1, n_starts=2)
    distances = pc.credible_ball(draws, best).distances
    trace = xr.Dataset({"d": (("chain", "draw"), distances.values.reshape(2, 6))})
    assert float(arviz.mcse(trace)["d"]) == pytest.approx(best.mcse, rel=1e-10)
    assert float(trace["d"].mean()) == pytest.approx(best.expected_loss, rel=1e-12)


def test_wrong_group_of_a_posterior(posterior):
    with pytest.raises(ValueError, match="`group` must name a group of the data; got 'prior', present: 'posterior'"):
        pc.as_partition_draws(posterior, group="prior")
    with pytest.raises(ValueError, match="`var_name` must name a variable of the group; got 'y', present: 'z', 'mu'"):
        pc.as_partition_draws(posterior, "y")
    with pytest.raises(ValueError, match=r"must be integers; got 0\.1 at .*allocation probabilities"):
        pc.as_partition_draws(posterior, "mu")


@pytest.fixture(scope="module")
def mixture():
    """A small mixture with explicit labels, sampled by whichever PyMC there is."""
    pytest.importorskip("pymc", exc_type=ImportError)
    with warnings.catch_warnings():  # of PyMC's imports, and of so few draws
        warnings.simplefilter("ignore")
        import pymc as pm

        y = np.array([-5.2, -5.0, -4.9, 4.8, 5.0, 5.1, 5.3])
        with pm.Model(coords={"obs": list("abcdefg"), "component": range(3)}):
            mu = pm.Normal("mu", 0, 5, dims="component", initval=[-5.0, 0.0, 5.0])
            z = pm.Categorical("z", p=np.full(3, 1 / 3), dims="obs", initval=[0, 0, 0, 2, 2, 2, 2])
            pm.Normal("y", mu[z], 0.5, observed=y, dims="obs")
            step = [pm.Metropolis([mu]), pm.CategoricalGibbsMetropolis([z])]
            quiet = {"progressbar": False, "compute_convergence_checks": False}
            return pm.sample(50, tune=50, chains=2, cores=1, random_seed=1, step=step, **quiet)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sampled.nc", "sampled.zarr"])
def test_posterior_of_pymc(mixture, tmp_path, name):
    draws, best, ball, _, stored = summarise_and_read_back(mixture, tmp_path / name)
    assert (draws.n_draws, draws.n_items, len(draws.samples.chains)) == (100, 7, 2)
    assert draws.items.dim == "obs"
    left, right = best.labels.values[:3], best.labels.values[3:]
    assert len(set(left)) == len(set(right)) == 1
    assert left[0] != right[0]
    assert_array_equal(stored["labels"].values, best.labels.values)
    assert stored["obs"].values.tolist() == list("abcdefg")
    z = mixture["posterior"]["z"].values.reshape(-1, 7)
    together = np.mean(z[:, :, np.newaxis] == z[:, np.newaxis], axis=0)
    assert_allclose(pc.posterior_similarity_matrix(mixture).values, together, rtol=0, atol=1e-15)
    own = [together[i, [j for j in range(7) if best.labels[j] == best.labels[i] and j != i]].mean() for i in range(7)]
    assert_allclose(stored["item_probability"].values, own, rtol=1e-12)
    assert float(stored["ball_coverage"]) == ball.coverage >= 0.95


@pytest.mark.slow
def test_multitrace_is_to_be_converted(mixture):
    from pymc.backends.base import MultiTrace

    with pytest.raises(TypeError, match=r"Convert it with pymc\.to_inference_data first"):
        pc.as_partition_draws(MultiTrace.__new__(MultiTrace))


@pytest.fixture(scope="module")
def marginalised():
    """A small mixture without labels, and its model."""
    pytest.importorskip("pymc", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymc as pm

        y = np.array([-5.2, -5.0, -4.9, 4.8, 5.0, 5.1, 5.3])
        with pm.Model(coords={"obs": list("abcdefg"), "component": range(3)}) as model:
            w = pm.Dirichlet("w", np.ones(3), dims="component")
            mu = pm.Normal("mu", 0, 5, dims="component", initval=[-5.0, 0.0, 5.0])
            pm.NormalMixture("y", w=w, mu=mu, sigma=0.5, observed=y, dims="obs")
            quiet = {"progressbar": False, "compute_convergence_checks": False}
            return model, pm.sample(60, tune=100, chains=2, cores=1, random_seed=1, nuts_sampler="pymc", **quiet)


@pytest.mark.slow
def test_marginalised_posterior_of_pymc(marginalised, arviz, tmp_path):
    """From pm.sample to a report, to component parameters by cluster, and to where new observations belong."""
    model, idata = marginalised
    with pytest.raises(ValueError, match=r"summarize\(idata, model=model\)"):
        pc.summarize(idata)
    summary = pc.summarize(idata, model=model, random_seed=1, progressbar=False)
    labels = summary.consensus.labels.values
    assert len(set(labels[:3])) == len(set(labels[3:])) == 1 and labels[0] != labels[3]
    together = pc.posterior_similarity_matrix(summary.draws).values
    sampled = pc.posterior_similarity_matrix(summary.draws.sample(2)).values
    assert np.abs(together - sampled).max() < 0.25
    attached = pc.attach(idata, summary)
    written(attached, tmp_path / "sampled.nc")
    relabelled = pc.relabel(attached, summary.consensus, component_dim="component", allocations=summary.draws)
    table = arviz.summary(relabelled, var_names=["mu"])
    assert np.allclose(table["mean"].astype(float), [-5.0, 5.0], atol=0.6)
    new = pc.allocation_probabilities(model, idata, observed={"y": np.array([-5.1, 5.0])}, progressbar=False)
    predicted = pc.predict_allocation(new, summary.draws, partition=summary.consensus)
    assert_array_equal(predicted["cluster"].values, labels[[0, 3]])
