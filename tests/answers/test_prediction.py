"""New items: memberships of items that were not among those that decide which component is which cluster."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import posterior_consensus as pc
from posterior_consensus import results
from tests.helpers import check_all


@pytest.fixture
def known(rng):
    return pc.as_allocation_probabilities(rng.dirichlet(np.full(4, 0.3), size=(2, 15, 6)), weights=rng.random(30))


@pytest.fixture
def new(rng, known):
    p = rng.dirichlet(np.ones(4), size=(30, 3))
    p = xr.DataArray(p, dims=("sample", "obs", "k"), coords={"obs": list("xyz")})
    return pc.as_allocation_probabilities(p, weights=known.weights)


PARTITION = np.array([0, 0, 1, 1, 1, 2])


def test_known_items_that_are_passed_as_new_have_their_memberships(known):
    expected = pc.membership(known, PARTITION)
    for items in (slice(None), slice(1, 4)):
        predicted = pc.predict_allocation(known.of_items(np.arange(6)[items]), known, partition=PARTITION)
        assert_allclose(predicted.probabilities, expected.probabilities[items], rtol=0, atol=1e-14)
        # the effective sample size is pooled over the items given
        assert_allclose(predicted.mcse, expected.mcse[items], rtol=1e-12 if items == slice(None) else 0.05)
        assert np.isfinite(predicted.mcse).all()


def of_normals(rng, y, names):
    """Allocations of observations to two normals of mean -1 and 1, by Bayes' rule."""
    p = 1 / (1 + np.exp(2 * np.asarray(y, float)))
    both = np.stack([p, 1 - p], axis=-1)
    return pc.as_allocation_probabilities(np.stack([both[:, order] for order in names]))


def test_far_from_all_known_items_it_is_the_probability_of_the_component(rng):
    names = [rng.permutation(2) for _ in range(40)]
    y = rng.choice([-1, 1], 50) + rng.normal(size=50)
    known = of_normals(rng, y, names)
    predicted = pc.predict_allocation(
        of_normals(rng, [-6, 0, 1], names), known, partition=np.where(y < 0, "low", "high")
    )
    low = predicted.probabilities.sel(consensus_cluster="low")
    assert_allclose(low, 1 / (1 + np.exp([-12, 0, 2])), rtol=0, atol=1e-12)
    assert_allclose(predicted.probabilities.sel(consensus_cluster="elsewhere"), 0, atol=1e-12)


def test_a_component_without_known_items_is_elsewhere(new):
    known = pc.as_allocation_probabilities([[[1.0, 0.0], [1.0, 0.0]]])
    predicted = pc.predict_allocation(pc.as_allocation_probabilities([[[0.1, 0.9]]]), known, partition=["a", "a"])
    assert_allclose(predicted.probabilities.values, [[0.1, 0.9]])
    assert predicted.to_dataframe()["cluster"].tolist() == ["elsewhere"]
    for partition in (["a", "a"], [0, 1]):
        two = pc.as_allocation_probabilities([[[0.1, 0.9], [0.8, 0.2]]])
        predicted = pc.predict_allocation(two, known, partition=partition)
        ax = predicted.plot()
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [
            *map(str, dict.fromkeys(partition)),
            "elsewhere",
        ]
        pc.plot_regimes([3.0, 4.0], predicted)
    plt.close("all")


def test_draws_are_paired_by_name_and_have_the_weights_of_the_known_items(rng):
    p = rng.dirichlet(np.full(3, 0.3), size=(2, 10, 8))
    p = xr.DataArray(p, dims=("chain", "draw", "obs", "k"), coords={"chain": [1, 3], "draw": np.arange(5, 15)})
    weights = rng.random((2, 10))
    known = pc.as_allocation_probabilities(p, weights=weights)
    expected = pc.membership(known, PARTITION[[0, 1, 2, 3, 4, 5, 5, 5]]).probabilities
    changed = [p, p.isel(chain=[1, 0]), p.isel(draw=slice(None, None, -1))]
    for new in (*changed, pc.as_allocation_probabilities(p[:, ::-1], weights=weights[:, ::-1])):
        found = pc.predict_allocation(new, known, partition=PARTITION[[0, 1, 2, 3, 4, 5, 5, 5]]).probabilities
        assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_the_result_is_of_the_new_items(known, new):
    predicted = pc.predict_allocation(new, known, partition=PARTITION)
    assert predicted.probabilities.dims == ("obs", "consensus_cluster")
    assert predicted.probabilities["obs"].values.tolist() == list("xyz")
    assert_array_equal(predicted.cluster, predicted.probabilities.argmax("consensus_cluster"))
    assert_array_equal(predicted.own, predicted.probabilities.max("consensus_cluster"))


class Grid:
    """Two normals of equal weight, means and one standard deviation unknown: the posterior on a grid, exactly."""

    def __init__(self, y):
        means, sizes = np.linspace(-6, 6, 60), np.linspace(-1.8, 1.8, 40)
        self.parameters = [one.ravel() for one in np.meshgrid(means, means, sizes, indexing="ij")]
        first, second, log_sd = self.parameters
        log_posterior = -(first**2) / 18 - second**2 / 18 - 2 * log_sd**2
        for value in y:
            log_posterior = log_posterior + np.logaddexp(*self.joint(value))
        log_posterior[first >= second] = -np.inf
        self.posterior = np.exp(log_posterior - log_posterior.max())
        self.posterior /= self.posterior.sum()

    def joint(self, y, parameters=None):
        """Log of weight times density of each component."""
        first, second, log_sd = self.parameters if parameters is None else parameters
        return np.log(0.5) + np.array([norm.logpdf(y, first, 1), norm.logpdf(y, second, np.exp(log_sd))])

    def first_given(self, y):
        """Probability of the first component given the old data and the new value, and given the old data."""
        one, other = self.joint(y)
        both = np.logaddexp(one, other)
        ours = self.posterior @ np.exp(one), self.posterior @ np.exp(both)
        return ours[0] / ours[1], self.posterior @ np.exp(one - both)

    def draws(self, y, rng, n_draws):
        """Allocations of observations in draws that are spread over the cells of the grid, and log densities."""
        at = rng.choice(self.posterior.size, n_draws, p=self.posterior)
        cells = (12 / 59, 12 / 59, 3.6 / 39)
        drawn = [
            one[at] + width * (rng.random(n_draws) - 0.5) for one, width in zip(self.parameters, cells, strict=True)
        ]
        joint = np.stack([self.joint(value, drawn) for value in y], axis=2).transpose(1, 2, 0)
        chains = joint.reshape(4, -1, *joint.shape[1:])
        density = np.logaddexp(chains[..., 0], chains[..., 1])
        return pc.as_allocation_probabilities(chains, log=True), xr.DataArray(density, dims=("chain", "draw", "item"))


def test_a_new_value_updates_the_parameters_as_on_a_grid(rng):
    y = np.concatenate([rng.normal(-2.5, 1, 8), rng.normal(2.5, 1, 8)])
    grid, new = Grid(y), [-3.0, 0.0, 1.0, 4.0]
    seed = rng.integers(1000)
    known, _ = grid.draws(y, np.random.default_rng(seed), 4000)
    soft, density = grid.draws(new, np.random.default_rng(seed), 4000)
    exact, before = np.transpose([grid.first_given(value) for value in new])
    predicted = pc.predict_allocation(soft, known, partition=y > 0, log_density=density)
    errors = predicted.mcse.values[:, 0]
    assert np.all(np.abs(predicted.probabilities.values[:, 0] - exact) < 4 * errors + 2e-3) and errors.max() < 0.02
    assert predicted.ess.min() >= 100 and "own value" in predicted.conditional_on
    old = pc.predict_allocation(soft, known, partition=y > 0)
    assert np.all(np.abs(old.probabilities.values[:, 0] - before) < 4 * old.mcse.values[:, 0] + 2e-3)
    assert np.abs(exact - before).max() > 0.05 and "does not update" in old.conditional_on and old.ess is None


def gibbs(y, rng, n_draws):
    """Means (n_draws, 2) of two normals of variance 1 and equal weight, normal around 0 with standard deviation 3."""
    means, drawn = np.array([-2.0, 2.0]), np.empty((n_draws, 2))
    for draw in drawn:
        first = rng.random(y.size) < 1 / (1 + np.exp(norm.logpdf(y, means[1]) - norm.logpdf(y, means[0])))
        sizes, sums = np.array([first.sum(), y.size - first.sum()]), np.array([y[first].sum(), y[~first].sum()])
        means = (sums + rng.normal(size=2) * np.sqrt(sizes + 1 / 9)) / (sizes + 1 / 9)
        draw[:] = means
    return drawn


def test_a_new_value_updates_the_parameters_as_in_a_sampler_run_with_it(rng):
    y, value = np.array([-2.8, -2.1, -1.6, 1.4, 2.0, 2.9]), np.array([0.6])

    def allocations(values, means):
        joint = norm.logpdf(values[:, np.newaxis], means[:, np.newaxis]).reshape(4, -1, values.size, 2)
        return pc.as_allocation_probabilities(joint, log=True), np.logaddexp(*np.moveaxis(joint, -1, 0))

    old, new = gibbs(y, rng, 6000), gibbs(np.append(y, value), rng, 6000)
    soft, density = allocations(value, old)
    sides = {"partition": [0, 0, 0, 1, 1, 1]}
    without = pc.predict_allocation(soft, allocations(y, old)[0], **sides)
    weighted = pc.predict_allocation(soft, allocations(y, old)[0], log_density=density, **sides)
    run = pc.predict_allocation(allocations(value, new)[0], allocations(y, new)[0], **sides)
    error = np.hypot(weighted.mcse, run.mcse).values[0]
    assert np.all(np.abs(weighted.probabilities - run.probabilities).values[0] < 4 * error)
    assert np.abs(without.probabilities - run.probabilities).values[0].max() > 3 * error.max()


def test_few_effective_draws_give_a_probability_with_a_rough_error():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(-2.5, 1, 8), rng.normal(2.5, 1, 8)])
    grid = Grid(y)
    known, _ = grid.draws(y, np.random.default_rng(3), 400)
    soft, density = grid.draws([0.0, 5.0], np.random.default_rng(3), 400)
    predicted = pc.predict_allocation(soft, known, partition=np.where(y > 0, "high", "low"), log_density=density)
    assert predicted.ess[0] > 100 > predicted.ess[1] > 20 and np.isfinite(predicted.probabilities).all()
    assert "errors rough for 1 item" in repr(predicted)


def test_an_outlier_has_too_few_draws_and_no_probability(rng):
    y = np.concatenate([rng.normal(-2.5, 1, 8), rng.normal(2.5, 1, 8)])
    grid, seed = Grid(y), 3
    known, _ = grid.draws(y, np.random.default_rng(seed), 400)
    soft, density = grid.draws([0.0, 11.0], np.random.default_rng(seed), 400)
    predicted = pc.predict_allocation(soft, known, partition=np.where(y > 0, "high", "low"), log_density=density)
    assert np.isnan(predicted.probabilities[1]).all() and np.isnan(predicted.mcse[1]).all()
    assert np.isfinite(predicted.probabilities[0]).all()
    first, second = predicted.reason.values
    assert not first and "weights" in second
    table = predicted.to_dataframe()
    assert table["cluster"].isna().tolist() == [False, True] and table["other"].isna().tolist() == [False, True]
    assert "not estimated" in repr(predicted) and "`reason`" in repr(predicted)
    predicted.plot()
    pc.plot_regimes([0.0, 11.0], predicted)
    plt.close("all")
    restored = results.Membership.from_dataset(predicted.to_dataset())
    assert restored.conditional_on == predicted.conditional_on
    xr.testing.assert_equal(restored.ess, predicted.ess)
    xr.testing.assert_equal(restored.reason, predicted.reason)


def test_equal_densities_change_nothing_and_densities_go_with_draws_and_items(rng):
    p = xr.DataArray(
        rng.dirichlet(np.full(3, 0.5), size=(2, 300, 6)),
        dims=("chain", "draw", "obs", "k"),
        coords={"chain": [1, 3], "draw": np.arange(5, 305), "obs": list("abcdef")},
    )
    known = pc.as_allocation_probabilities(p)
    plain = pc.predict_allocation(p, known, partition=PARTITION)
    equal = pc.predict_allocation(p, known, partition=PARTITION, log_density=np.full((600, 6), -7.0))
    assert_allclose(equal.probabilities, plain.probabilities, rtol=0, atol=1e-14)
    density = xr.DataArray(rng.normal(size=p.shape[:3]), {dim: p[dim] for dim in p.dims[:3]}, p.dims[:3])
    predicted = pc.predict_allocation(p, known, partition=PARTITION, log_density=density)
    one = pc.predict_allocation(p, pc.as_allocation_probabilities(p, log_weights=density[..., 2]), partition=PARTITION)
    assert_allclose(predicted.probabilities[2], one.probabilities[2], atol=0.02)  # the tail is smoothed
    for turned in (density[::-1, ::-1], density.transpose("obs", "draw", "chain"), density[..., ::-1]):
        found = pc.predict_allocation(p, known, partition=PARTITION, log_density=turned)
        assert_allclose(found.probabilities, predicted.probabilities, rtol=0, atol=1e-14)


def test_bad_arguments(known, new):
    fewer = pc.as_allocation_probabilities(np.full((29, 3, 4), 0.25))

    def predicted(changes):
        return pc.predict_allocation(**{"new": new, "known": known, "partition": PARTITION} | changes)

    cases = [
        ({"new": fewer}, ValueError, "`new`", "same 30 draws", "got 29"),
        ({"new": np.full((30, 3, 5), 0.2)}, ValueError, "`new`", "4 components", "got 5"),
        (
            {"new": pc.as_allocation_probabilities(np.full((2, 15, 3, 4), 0.25), weights=known.weights[::-1])},
            ValueError,
            "`new`",
            "weights of `known`",
        ),
        ({"new": known.labels}, TypeError, "`new`", "allocation probabilities"),
        ({"known": known.labels}, TypeError, "`known`", "allocation probabilities"),
        ({"partition": [0, 1]}, ValueError, "partition", "6", "2"),
        ({"log_density": np.zeros((30, 2))}, ValueError, "`log_density`", "(30, 3)", "(30, 2)"),
        ({"log_density": np.zeros((29, 3))}, ValueError, "`log_density`", "(30,)", "(29, 3)"),
        ({"log_density": np.full((30, 3), np.nan)}, ValueError, "`log_density`", "NaN"),
        ({"partition": ["elsewhere"] * 6}, ValueError, "`partition`", "'elsewhere'"),
    ]
    check_all(predicted, cases)
