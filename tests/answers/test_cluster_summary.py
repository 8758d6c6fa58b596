"""Parameters of clusters over the draws that have them, and that names of components do not matter."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import posterior_consensus as pc
from tests.helpers import check

PARTIAL = np.array([0, 0, 0, 1, 1, -1, -1])


def posterior(rng, n_draws=400, wrong=0.15):
    """Labels of three components whose names switch, and parameters by component that say which is which."""
    labels, mu = np.empty((n_draws, 7), int), np.empty((n_draws, 4))
    for t in range(n_draws):
        z = np.array([0, 0, 0, 1, 1, rng.integers(3), rng.integers(3)])
        if rng.random() < wrong:
            z[0] = 1
        names = rng.permutation(4)
        labels[t] = names[z]
        mu[t, names] = rng.normal([0, 10, 20, 1000], 1)
    return labels, mu


def expected(labels, values, weights, partial=PARTIAL):
    """By loops: draws in A, statistics of each cluster, and where each item goes."""
    weights = weights / weights.sum()
    some = partial >= 0
    together = partial[some][:, np.newaxis] == partial[some]
    inside = [t for t, z in enumerate(labels) if np.array_equal(z[some][:, np.newaxis] == z[some], together)]
    share = weights[inside].sum()
    means, allocation = [], np.zeros((7, partial.max() + 2))
    for k in range(partial.max() + 1):
        first = partial.tolist().index(k)
        means.append(sum(weights[t] * values[t, labels[t, first]] for t in inside) / share)
        for i in range(7):
            allocation[i, k] = sum(weights[t] * (labels[t, i] == labels[t, first]) for t in inside) / share
    allocation[:, -1] = 1 - allocation.sum(axis=1)
    return inside, share, np.array(means), allocation


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_over_the_draws_that_have_the_clusters(rng, weighted):
    labels, mu = posterior(rng)
    weights = rng.exponential(size=400) if weighted else np.ones(400)
    given = {"log_weights": np.log(weights) + 900} if weighted else {}
    found = pc.cluster_summary(labels, PARTIAL, mu=mu, first_label=0, **given)
    inside, share, means, allocation = expected(labels, mu, weights)
    assert found.n_draws == len(inside) and found.probability == pytest.approx(share)
    assert_allclose(found.parameters["mean"].values[:, 0], means)
    assert_allclose(found.allocation.values, allocation, atol=1e-12)
    assert found.allocation["to"].values.tolist() == ["0", "1", "elsewhere"]
    together = np.array([np.all(labels[:, at] == labels[:, at[:1]], axis=1) for at in ([0, 1, 2], [3, 4])])
    assert_allclose(found.clusters["probability"], together @ weights / weights.sum())
    values = np.array([[mu[t, labels[t, first]] for t in inside] for first in (0, 3)])
    own = weights[inside]
    for row, one in enumerate(values):
        order = np.argsort(one)
        reached = np.cumsum(own[order]) / own.sum()
        wanted = [one[order][np.searchsorted(reached, level - 1e-12)] for level in (0.05, 0.25, 0.5, 0.75, 0.95)]
        assert_allclose(found.parameters["quantiles"].sel(cluster=row)[:, 0], wanted)
        sd = np.sqrt(np.average((one - means[row]) ** 2, weights=own))
        assert found.parameters["sd"].values[row, 0] == pytest.approx(sd)


def test_the_error_is_that_of_repetitions(rng):
    found = []
    for _ in range(80):
        labels, mu = posterior(rng, 60)
        found.append(pc.cluster_summary(labels, PARTIAL, mu=mu, first_label=0).parameters.isel(parameter=0))
    errors, means = ([one[name].values for one in found] for name in ("mcse", "mean"))
    assert_allclose(np.mean(errors, axis=0), np.std(means, axis=0), rtol=0.2)


def test_entries_have_names(rng):
    labels, mu = posterior(rng)
    both = xr.DataArray(np.stack([mu, -mu], axis=2), dims=("sample", "k", "trait"), coords={"trait": ["long", "wide"]})
    found = pc.cluster_summary(labels, PARTIAL, mu=both, nu=np.stack([mu, mu], axis=2), w=mu, scale=mu[:, 0])
    names = ["mu[long]", "mu[wide]", "nu[0]", "nu[1]", "w", "scale"]
    assert found.parameters["parameter"].values.tolist() == names
    means = found.parameters["mean"]
    assert_allclose(means.sel(parameter="mu[long]"), -means.sel(parameter="mu[wide]"))
    assert_allclose(means.sel(parameter="nu[1]"), means.sel(parameter="w"))
    assert np.ptp(means.sel(parameter="scale").values) == 0
    assert found.to_dataframe().loc[(1, "w"), "mean"] == pytest.approx(means.sel(cluster=1, parameter="w").item())


def test_a_partial_partition_probabilities_and_one_draw(rng):
    labels, mu = posterior(rng)
    partial = pc.partial_partition(labels, 0.7, random_seed=1, progressbar=False)
    found = pc.cluster_summary(labels, partial, mu=mu, first_label=0)
    sure = partial.labels.values >= 0
    chosen = pc.as_partition_draws(labels[..., sure])
    agrees = np.all(chosen.labels == partial.labels.values[sure], axis=1).astype(float)
    assert found.probability == pytest.approx(agrees.mean())
    number = pc.as_partition_draws(labels).n_clusters.astype(float)
    assert found.mcse == pytest.approx(float(chosen.samples.probability_mcse(agrees, number)))
    assert_array_equal(found.labels, partial.labels)
    soft = pc.as_allocation_probabilities(np.eye(4)[labels])
    same = pc.cluster_summary(soft, partial, mu=mu)
    xr.testing.assert_allclose(same.parameters, found.parameters)
    bare = pc.cluster_summary(pc.as_partition_draws(labels), partial)
    assert bare.parameters is None and bare.probability == found.probability
    assert bare.to_dataframe()["size"].tolist() == np.bincount(partial.labels[partial.labels >= 0]).tolist()
    assert "elsewhere" in repr(bare) and "mu" in repr(found)
    alone = pc.cluster_summary(labels[:1], np.unique(labels[0], return_inverse=True)[1], mu=mu[:1], first_label=0)
    assert alone.n_draws == 1 and np.all(alone.allocation[:, -1] == 0) and np.isnan(alone.parameters["mcse"]).all()


def test_bad_arguments_are_named(rng):
    labels, mu = posterior(rng, 30)

    def summary(partition=PARTIAL, draws=labels, **parameters):
        return pc.cluster_summary(draws, partition, **parameters)

    bare, named = summary(), summary(mu=mu, first_label=0)
    for function, argument, error, parts in [
        (summary, list(range(7)), ValueError, ["none of 30 draws", "7 assigned items"]),
        (summary, [-1] * 7, ValueError, ["`partition`", "at least one item; got -1"]),
        (summary, [0, -1, 1], ValueError, ["`partition`", "all 7 items; got 3"]),
        (lambda x: summary(draws=x, mu=mu), pc.as_partition_draws(labels), TypeError, ["PartitionDraws", "renumbered"]),
        (lambda x: summary(mu=x, first_label=0), np.full_like(mu, np.nan), ValueError, ["`mu` must be finite"]),
        (lambda x: summary(mu=x), mu[:7], ValueError, ["`mu`", "draws first"]),
        (lambda x: x.plot(), bare, ValueError, ["`clusters` must have parameters"]),
        (lambda x: named.plot(x), "nu", ValueError, ["`parameter`", "'mu'; got 'nu'"]),
    ]:
        check(function, argument, error, parts)
