"""From what ArviZ and PyMC hand out to a summary that is stored beside it and read back."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from tests.helpers import written

IRIS = Path(__file__).parents[1] / "posterior_consensus" / "example_data" / "iris.nc"


def as_tree(data):
    return data if isinstance(data, xr.DataTree) else xr.DataTree.from_dict({g: data[g] for g in data.groups()})


def summarize_and_read_back(data, path, **arguments):
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
    draws, best, ball, items, stored = summarize_and_read_back(posterior, tmp_path / name)
    assert_array_equal(stored["labels"].values, best.labels.values)
    assert_array_equal(stored["item_similarity"].values, items.similarity.values)
    assert_array_equal(stored["horizontal"].values, ball.horizontal.values)
    assert float(stored["ball_radius"]) == ball.radius
    assert stored["obs"].values.tolist() == draws.items.coords["obs"].values.tolist() == list("abcd")
    # The file serves as data, and what it holds as a partition.
    again = pc.expected_loss(tmp_path / name, stored["labels"])
    assert (float(again["expected_loss"]), float(again["mcse"])) == (best.expected_loss, best.mcse)
    psm = pc.posterior_similarity_matrix(tmp_path / name)
    assert_array_equal(psm.values, pc.posterior_similarity_matrix(draws).values)
    assert psm.dims == ("obs", "obs_bis")


def test_arviz_computes_on_the_distances(arviz, posterior):
    """The distances of the draws are a trace like any other."""
    draws = pc.as_partition_draws(posterior)
    best = pc.consensus_partition(draws, loss="binder", random_seed=1, n_starts=2)
    distances = pc.credible_ball(draws, best).distances
    trace = xr.Dataset({"d": (("chain", "draw"), distances.values.reshape(2, 6))})
    assert float(arviz.mcse(trace)["d"]) == pytest.approx(best.mcse, rel=1e-10)
    assert float(trace["d"].mean()) == pytest.approx(best.expected_loss, rel=1e-12)


def test_wrong_group_of_a_posterior(posterior):
    with pytest.raises(ValueError, match="`group` .* got 'prior', present: 'posterior'"):
        pc.as_partition_draws(posterior, group="prior")
    with pytest.raises(ValueError, match="`var_name` .* got 'y', present: 'z', 'mu'"):
        pc.as_partition_draws(posterior, "y")
    with pytest.raises(ValueError, match=r"must be integers; got 0\.1 at .*allocation probabilities"):
        pc.as_partition_draws(posterior, "mu")
    with pytest.raises(ValueError, match=r"summarize\(idata, model=model\)"):
        pc.summarize(as_tree(posterior)["posterior"].to_dataset()[["mu"]])


def test_stored_posterior_of_pymc(tmp_path):
    with xr.open_datatree(IRIS, engine="h5netcdf") as tree:
        data = tree.load()
    draws, best, ball, _, stored = summarize_and_read_back(data, tmp_path / "iris.nc", var_name="z")
    assert (draws.n_draws, draws.n_items, len(draws.samples.chains), draws.items.dim) == (4000, 30, 4, "flower")
    assert_array_equal(stored["labels"].values, best.labels.values)
    z = data["posterior"]["z"].values.reshape(-1, 30)
    together = np.mean(z[:, :, np.newaxis] == z[:, np.newaxis], axis=0)
    assert_allclose(pc.posterior_similarity_matrix(draws).values, together, rtol=0, atol=1e-13)
    with_own = np.equal.outer(best.labels.values, best.labels.values) & ~np.eye(30, dtype=bool)
    assert_allclose(stored["item_similarity"].values, together.mean(axis=1, where=with_own), rtol=1e-12)
    assert float(stored["ball_coverage"]) == ball.coverage >= 0.95


@pytest.mark.slow
def test_marginalized_posterior_of_pymc(arviz, tmp_path):
    """From pm.sample to a report, to component parameters by cluster, and to where new observations belong."""
    pytest.importorskip("pymc", exc_type=ImportError)
    with warnings.catch_warnings():  # of PyMC's imports, and of so few draws
        warnings.simplefilter("ignore")
        import pymc as pm
        from pymc.backends.base import MultiTrace

        with pm.Model(coords={"obs": list("abcdefg"), "component": range(3)}) as model:
            w = pm.Dirichlet("w", np.ones(3), dims="component")
            mu = pm.Normal("mu", 0, 5, dims="component", initval=[-5.0, 0.0, 5.0])
            y = np.array([-5.2, -5.0, -4.9, 4.8, 5.0, 5.1, 5.3])
            pm.NormalMixture("y", w=w, mu=mu, sigma=0.5, observed=y, dims="obs")
            quiet = {"progressbar": False, "compute_convergence_checks": False, "nuts_sampler": "pymc"}
            idata = pm.sample(1000, tune=500, chains=2, cores=1, random_seed=1, **quiet)
    with pytest.raises(TypeError, match=r"pymc\.to_inference_data first"):
        pc.as_partition_draws(MultiTrace.__new__(MultiTrace))
    with pytest.raises(ValueError, match=r"summarize\(idata, model=model\)"):
        pc.summarize(idata)
    summary = pc.summarize(idata, model=model, random_seed=1, progressbar=False)
    labels = summary.partition.labels.values
    assert len(set(labels[:3])) == len(set(labels[3:])) == 1 and labels[0] != labels[3]
    together = pc.posterior_similarity_matrix(summary.draws).values
    sampled = pc.posterior_similarity_matrix(summary.draws.sample(2)).values
    assert np.abs(together - sampled).max() < 0.25
    attached = pc.attach(idata, summary)
    written(attached, tmp_path / "sampled.nc")
    relabelled = pc.relabel(attached, summary.partition, component_dim="component", allocations=summary.draws)
    table = arviz.summary(relabelled, var_names=["mu"])
    assert np.allclose(table["mean"].astype(float), [-5.0, 5.0], atol=0.6)
    new = pc.allocation_probabilities(model, idata, observed={"y": np.array([-5.1, 5.0])}, progressbar=False)
    predicted = pc.predict_allocation(new, summary.draws, partition=summary.partition)
    assert_array_equal(predicted.cluster.values, labels[[0, 3]])
