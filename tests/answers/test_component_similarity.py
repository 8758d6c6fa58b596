"""Similarities of components: distances by integration, risks by enumeration, groups that a normal mixture splits."""

import itertools

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

import posterior_consensus as pc
from posterior_consensus.answers import component_similarity as module
from posterior_consensus.answers.component_similarity import _by_quadrature, grouped, similarities
from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests import reference
from tests.helpers import check, check_all

QUIET = {"random_seed": 1, "progressbar": False}
MEAN_TAU = pc.binder(tau="mean")
N_DRAWS, K = 2, 3


def uniform(rng, low, high):
    return rng.uniform(low, high, (N_DRAWS, K))


FAMILIES = {
    "normal": lambda rng: (stats.norm, {"loc": uniform(rng, -2, 2), "scale": uniform(rng, 0.3, 2)}),
    "Poisson": lambda rng: (stats.poisson, {"mu": uniform(rng, 0.2, 20)}),
    "gamma": lambda rng: (stats.gamma, {"a": uniform(rng, 0.5, 4), "scale": uniform(rng, 0.3, 4)}),
    "exponential": lambda rng: (stats.expon, {"scale": uniform(rng, 0.3, 4)}),
    "Bernoulli": lambda rng: (stats.bernoulli, {"p": uniform(rng, 0, 1)}),
    "binomial": lambda rng: (stats.binom, {"n": np.full((N_DRAWS, K), 9.0), "p": uniform(rng, 0.1, 0.9)}),
    "t": lambda rng: (stats.t, {"df": uniform(rng, 2, 5), "loc": uniform(rng, -2, 2), "scale": uniform(rng, 0.3, 2)}),
    "Weibull": lambda rng: (stats.weibull_min, {"c": uniform(rng, 0.5, 3), "scale": uniform(rng, 0.3, 3)}),
    "negative binomial": lambda rng: (stats.nbinom, {"n": uniform(rng, 0.5, 9), "p": uniform(rng, 0.2, 0.9)}),
    "shifted": lambda rng: (stats.poisson, {"mu": uniform(rng, 1, 9), "loc": np.tile([0.0, 2.0, 5.0], (N_DRAWS, 1))}),
    "other n": lambda rng: (stats.binom, {"n": np.tile([4.0, 6.0, 9.0], (N_DRAWS, 1)), "p": uniform(rng, 0.1, 0.9)}),
}


def distance(distribution, one, other):
    """Hellinger distance of two distributions, by SciPy's integration between quantiles or by a long sum."""
    if hasattr(distribution, "pmf"):
        roots = [np.sqrt(distribution.pmf(np.arange(400), **parameters)) for parameters in (one, other)]
        return np.sqrt(0.5 * np.sum(np.subtract(*roots) ** 2))
    levels = [1e-10, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6]
    low, high = distribution.support(**one)
    ends = np.sort([low, *distribution.ppf(levels, **one), *distribution.ppf(levels, **other), high])

    def root(x):
        return np.sqrt(distribution.pdf(x, **one) * distribution.pdf(x, **other))

    parts = [integrate.quad(root, *pair, epsabs=1e-9, epsrel=1e-7, limit=50)[0] for pair in itertools.pairwise(ends)]
    return np.sqrt(1 - sum(parts))


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("name", FAMILIES)
def test_distances_are_those_of_integration(name, rng):
    distribution, parameters = FAMILIES[name](rng)
    found = similarities([(distribution, {key: value[..., np.newaxis] for key, value in parameters.items()})])
    logs = _by_quadrature(distribution, parameters)
    assert np.all(found[:, np.arange(K), np.arange(K)] == 1) and np.array_equal(found, found.swapaxes(1, 2))
    for t, (k, m) in itertools.product(range(N_DRAWS), itertools.combinations(range(K), 2)):
        one, other = ({key: value[t, at] for key, value in parameters.items()} for at in (k, m))
        wanted = distance(distribution, one, other)
        assert 1 - found[t, k, m] == pytest.approx(wanted, abs=2e-6)
        assert np.sqrt(-np.expm1(logs[t, k, m])) == pytest.approx(wanted, abs=2e-6)


def test_normals_that_are_close_or_of_several_variables(rng):
    mean, sd = np.array([[[0.0], [1e-9]]]), np.ones((1, 2, 1))
    found = similarities([(stats.norm, {"loc": mean, "scale": sd})])
    assert 1 - found[0, 0, 1] == pytest.approx(1e-9 / np.sqrt(8), rel=1e-6)  # no digits are lost
    mean, factor = rng.normal(size=(1, 2, 2)), rng.normal(0, 0.4, (1, 2, 2, 2)) + np.eye(2)
    cov = factor @ factor.swapaxes(-1, -2)
    first, second = (stats.multivariate_normal(mean[0, k], cov[0, k]) for k in range(2))
    x = np.linspace(-12, 12, 401)
    grid = np.stack(np.meshgrid(x, x), axis=-1)
    affinity = np.sqrt(first.pdf(grid) * second.pdf(grid)).sum() * (x[1] - x[0]) ** 2
    found = similarities([(None, {"mean": mean, "cov": cov})])[0, 0, 1]
    assert found == pytest.approx(1 - np.sqrt(1 - affinity), abs=1e-9)
    sd = rng.uniform(0.5, 2, (1, 2, 2))
    own = similarities([(None, {"mean": mean, "cov": sd[..., np.newaxis] ** 2 * np.eye(2)})])
    assert_allclose(own, similarities([(stats.norm, {"loc": mean, "scale": sd})]), atol=1e-12)


def posterior(rng, n_draws=12, n=9):
    labels = rng.integers(K, size=(n_draws, n))
    labels[:, 4] = labels[:, 0]
    return labels, rng.normal(0, 2, (n_draws, K)), rng.uniform(0.5, 2, (n_draws, K))


def normal_similarity(mean, sd):
    """Between normals of these means and standard deviations, all with all."""
    squares = np.add.outer(sd**2, sd**2)
    overlap = np.sqrt(2 * np.outer(sd, sd) / squares) * np.exp(-(np.subtract.outer(mean, mean) ** 2) / (4 * squares))
    return 1 - np.sqrt(np.maximum(1 - overlap, 0))


@pytest.mark.parametrize("at_once", [1, 4_000_000])
def test_the_similarity_is_the_mean_over_draws(rng, monkeypatch, at_once):
    monkeypatch.setattr(module.memory, "PROBABILITIES_AT_ONCE", at_once)
    labels, mean, sd = posterior(rng)
    weights = rng.exponential(size=len(labels))
    found = pc.component_similarity(labels, mean=mean, sd=sd, weights=weights)
    every = [normal_similarity(m[z], s[z]) for z, m, s in zip(labels, mean, sd, strict=True)]
    wanted = np.average(every, axis=0, weights=weights)
    assert_allclose(found.values, wanted, atol=1e-7)
    assert np.all(np.diag(found.values) == 1) and np.array_equal(found.values, found.values.T)
    assert found.values[0, 4] == pytest.approx(1, abs=1e-12)
    assert found.tau == pytest.approx(wanted[np.triu_indices(9, 1)].mean())
    assert found.partitions.weights == pytest.approx(weights / weights.sum())
    logs = pc.component_similarity(labels, mean=mean, sd=sd, log_weights=np.log(weights))
    assert logs.values == pytest.approx(found.values, abs=1e-12)
    assert found.n_components.tolist() == [np.unique(z).size for z in labels]


def test_allocation_probabilities_take_the_mean_over_components(rng):
    _, mean, sd = posterior(rng)
    p = rng.dirichlet(np.ones(K), (12, 9))
    soft = pc.as_allocation_probabilities(p)
    found = pc.component_similarity(soft, mean=mean, sd=sd)
    wanted = np.mean([p[t] @ normal_similarity(mean[t], sd[t]) @ p[t].T for t in range(12)], axis=0)
    np.fill_diagonal(wanted, 1)
    assert_allclose(found.values, wanted, atol=1e-7)
    sampled = pc.component_similarity(soft.components, mean=mean, sd=sd)
    assert_array_equal(found.n_components, sampled.n_components)
    certain = pc.as_allocation_probabilities(np.eye(K)[soft.components])
    assert_allclose(pc.component_similarity(certain, mean=mean, sd=sd).values, sampled.values, atol=1e-12)


def test_the_best_partition_minimizes_the_risk_of_the_paper(rng):
    labels, mean, sd = posterior(rng, n=7)
    found = pc.component_similarity(labels, mean=mean, sd=sd)
    pairs = np.triu_indices(7, 1)
    delta = 1 - found.values[pairs]
    omega = delta.sum() / (1 - delta).sum()
    together = [(p[:, np.newaxis] == p)[pairs] for p in np.concatenate(list(enumerate_partitions(7)))]
    risks = [np.sum(np.where(one, delta, omega * (1 - delta))) for one in together]
    best = pc.consensus_partition(found, loss=MEAN_TAU, **QUIET)
    assert_array_equal((best.labels.values[:, np.newaxis] == best.labels.values)[pairs], together[np.argmin(risks)])
    assert best.loss.parameters["a"] == pytest.approx(2 * (1 - found.tau))
    assert best.expected_loss == pytest.approx(pc.expected_loss(found, best, loss=MEAN_TAU)["expected_loss"].item())
    for loss in (MEAN_TAU, None):
        assert pc.certify(found, best, loss=loss, progressbar=False).status == "optimal"


def test_the_partition_of_each_draw_has_least_risk_under_its_own_distances(rng):
    labels, mean, sd = posterior(rng)
    found = pc.component_similarity(labels, mean=mean, sd=sd)
    every = np.concatenate(list(enumerate_partitions(K)))
    for t in range(len(labels)):
        gains = found.tau - normal_similarity(mean[t][labels[t]], sd[t][labels[t]])
        partitions = [found.partitions.labels[t], *(one[labels[t]] for one in every)]
        risks = [np.sum(gains[np.triu(one[:, np.newaxis] == one, 1)]) for one in partitions]
        assert risks[0] == pytest.approx(min(risks[1:]), abs=1e-6)
    assert isinstance(pc.credible_ball(found.partitions, np.zeros(9, int)).radius, float)


def test_many_components_are_merged_along_a_tree(rng):
    mean = np.repeat([0.0, 50.0, 100.0], 4) + rng.normal(0, 0.1, (5, 12))
    similar = similarities([(stats.norm, {"loc": mean[..., np.newaxis], "scale": np.ones((5, 12, 1))})])
    groups = grouped(similar, np.full((5, 12), 3.0), 0.4)
    assert all(reference.canonical(row).tolist() == np.repeat([0, 1, 2], 4).tolist() for row in groups)


def test_shapes_and_names_of_parameters(rng):
    labels, mean, sd = posterior(rng)

    def values(labels=labels, **parameters):
        return pc.component_similarity(labels, **parameters).values

    wanted = values(mean=mean, sd=sd)
    chains = labels.reshape(2, 6, 9)
    z = xr.DataArray(chains, dims=("chain", "draw", "star"), coords={"star": list("abcdefghi")})
    mu = xr.DataArray(mean.reshape(2, 6, K), dims=("chain", "draw", "k")).transpose("k", "draw", "chain")
    found = pc.component_similarity(z, mean=mu, sd=sd.reshape(2, 6, K))
    assert_allclose(found.values, wanted, atol=1e-12)
    assert found.items.names.tolist() == list("abcdefghi")
    assert_allclose(values(labels + 1, mean=mean, sd=sd), wanted, atol=1e-12)
    cov = sd[..., np.newaxis, np.newaxis] ** 2
    assert_allclose(values(mean=mean[..., np.newaxis], cov=cov), wanted, atol=1e-12)
    twice = [np.repeat(value[..., np.newaxis], 2, axis=2) for value in (mean, sd)]
    assert np.all(values(mean=twice[0], sd=twice[1]) <= wanted + 1e-12)
    assert_allclose(values(mean=mean, sd=sd[:, 0]), values(mean=mean, sd=np.repeat(sd[:, :1], K, axis=1)))
    spare = np.column_stack([mean, np.full(12, np.nan)])
    assert_allclose(values(mean=spare, sd=np.column_stack([sd, sd[:, 0]])), wanted)


def test_bad_arguments_are_named(rng):
    labels, mean, sd = posterior(rng)
    mu = np.zeros((12, 3))
    cases = [
        ({"mean": mu}, TypeError, "`mean` and either `sd` or `cov`; got ['mean']"),
        ({"mean": mu, "sd": 0.0}, ValueError, "'norm' allows; got loc 0, scale 0"),
        ({"mean": mu[:11], "sd": 1.0}, ValueError, "`mean`", "draws first", "(12,)"),
        ({"mean": mu[:, :2], "sd": 1.0}, ValueError, "the 2 components, from 0; they run from 0 to"),
        ({"mean": mu, "sd": np.ones((12, 2))}, ValueError, "same components and features"),
        ({"mean": np.full((12, 3), "a"), "sd": 1.0}, TypeError, "must hold numbers; got ndarray of <U1"),
        ({"distribution": "poisson", "mu": 1.0}, TypeError, "a distribution of scipy.stats", "got str"),
        ({"distribution": stats.poisson, "rate": mu + 1}, TypeError, "'mu', 'loc'; ", "'rate'"),
    ]
    check_all(lambda options: pc.component_similarity(labels, **options), cases)
    soft = pc.as_allocation_probabilities(rng.dirichlet(np.ones(3), (12, 9)))
    cases = [
        (pc.as_partition_draws(labels), TypeError, "got PartitionDraws", "renumbered"),
        (soft, ValueError, "as many components as parameters", "2; got those of 3"),
    ]
    check_all(lambda draws: pc.component_similarity(draws, mean=mean[:, :2], sd=sd[:, :2]), cases)


def test_one_component_one_item_one_draw():
    one = pc.component_similarity(np.zeros((3, 4), int), mean=np.zeros((3, 1)), sd=1.0)
    assert one.tau == 1 and np.all(one.values == 1) and one.partitions.n_clusters.tolist() == [1, 1, 1]
    alone = pc.component_similarity([[1], [0]], mean=[[0.0, 1.0]] * 2, sd=1.0)
    assert alone.values.tolist() == [[1.0]] and alone.tau == 0.5
    for similarity in (one, alone):
        assert pc.consensus_partition(similarity, loss=MEAN_TAU, **QUIET).n_clusters == 1
    assert "1 components" in repr(one)
    shares, probabilities = alone.plot()
    assert "share of distance within" in shares.get_ylabel() and probabilities.patches[0].get_height() == 1


def test_the_curve_is_the_distance_within_clusters(rng):
    found = pc.component_similarity(posterior(rng)[0], mean=posterior(rng)[1], sd=1.0)
    assert found.curve[0] == pytest.approx(1) and found.curve[-1] == pytest.approx(0, abs=1e-12)
    table = found.to_dataframe()
    assert table["clusters"].sum() == pytest.approx(1) and table["components"].sum() == pytest.approx(1)
    some = found.of_items(np.array([0, 3, 5]))
    assert_array_equal(some.values, found.values[np.ix_([0, 3, 5], [0, 3, 5])])
    assert some.partitions.n_items == 3


def test_a_mean_threshold_is_a_loss_of_any_similarities(rng):
    draws = rng.integers(3, size=(20, 8))
    mean = reference.similarity(draws)[np.triu_indices(8, 1)].mean()
    for data in (draws, pc.as_pair_similarity(pc.as_partition_draws(draws))):
        best = pc.consensus_partition(data, loss=MEAN_TAU, **QUIET)
        assert best.loss.parameters["a"] == pytest.approx(2 * (1 - mean))
    check(lambda loss: pc.partition_loss([0, 1], [0, 0], loss=loss), MEAN_TAU, ValueError, ["between two partitions"])
    check(lambda tau: pc.binder(tau=tau), "median", TypeError, ["`tau`", "0 and 1, or 'mean'; got 'median'"])
    check(lambda a: pc.binder(a=a, tau="mean"), 1.0, ValueError, ["`a` and `tau` must not both"])
