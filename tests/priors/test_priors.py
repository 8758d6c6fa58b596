"""Priors on partitions against enumeration, exact fractions and the definition."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

import posterior_consensus as pc
from tests import reference
from tests.helpers import check_all

PARTITIONS = np.array(list(reference.partitions(7)))
EXCHANGEABLE = {
    "crp": pc.priors.crp(3.0),
    "crp, gamma": pc.priors.crp((2, 4)),
    "crp, tiny shape": pc.priors.crp((0.01, 0.01)),
    "crp, uniform": pc.priors.crp(stats.uniform(0.1, 5)),
    "crp, heavy tail": pc.priors.crp(stats.halfcauchy()),
    "pitman_yor": pc.priors.pitman_yor(1.0, 0.3),
    "pitman_yor, negative": pc.priors.pitman_yor(-0.2, 0.3),
    "pitman_yor, gamma": pc.priors.pitman_yor((2.0, 1.0), 0.6),
    "finite": pc.priors.dirichlet_multinomial(0.5, 5),
    "finite, gamma": pc.priors.dirichlet_multinomial((1, 20), 10),
    "mixture of finite": pc.priors.mixture_of_finite_mixtures(1.0, stats.geom(0.1)),
    "mixture of finite, few": pc.priors.mixture_of_finite_mixtures(0.5, stats.randint(1, 4)),
    "mixture of finite, gamma": pc.priors.mixture_of_finite_mixtures((3, 3), stats.randint(2, 9)),
}


@pytest.mark.parametrize("name", EXCHANGEABLE)
def test_probabilities_of_all_partitions_sum_to_one_and_give_the_number_of_clusters(name):
    prior = EXCHANGEABLE[name]
    chances = np.exp(prior.log_prob(PARTITIONS).values)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    by_number = np.bincount(PARTITIONS.max(axis=1) + 1, chances, minlength=8)[1:]
    found = prior.n_clusters(7)
    np.testing.assert_array_equal(found["n_clusters"], np.arange(1, found.size + 1))
    np.testing.assert_allclose(found.values, by_number[: found.size], atol=1e-12)
    np.testing.assert_allclose(prior.n_clusters(1), [1.0], atol=1e-12)
    assert prior.log_prob([[0], [0]]).values == pytest.approx([0, 0], abs=1e-12)


@pytest.mark.parametrize("concentration", [0.7, (4, 4)])
def test_probabilities_of_all_labels_of_sticks_sum_to_one(concentration):
    prior = pc.priors.stick_breaking(concentration, 3)
    labels = np.array(list(itertools.product(range(3), repeat=6)))
    chances = np.exp(prior.log_prob(labels).values)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    numbers = np.array([len(set(row)) for row in labels.tolist()])
    np.testing.assert_allclose(prior.n_clusters(1), [1.0], atol=1e-12)
    np.testing.assert_allclose(prior.n_clusters(6), np.bincount(numbers, chances)[1:], atol=1e-12)


def by_definition(labels, a, n_components):
    sizes = np.bincount(labels, minlength=n_components)
    later = labels.size - np.cumsum(sizes)
    return sum(betaln(1 + sizes[k], a + later[k]) - betaln(1, a) for k in range(n_components - 1))


def test_sticks_take_labels_as_sampled_and_not_renumbered(rng, tmp_path):
    labels = rng.integers(4, size=(20, 9))
    labels[0] = [3, 3, 0, 0, 1, 1, 2, 2, 3]
    prior, expected = pc.priors.stick_breaking(0.7, 4), [by_definition(row, 0.7, 4) for row in labels]
    np.testing.assert_allclose(prior.log_prob(labels), expected, rtol=1e-12)
    np.testing.assert_allclose(prior.log_prob(labels + 1), expected, rtol=1e-12)
    soft = pc.as_allocation_probabilities(np.eye(4)[labels])
    np.testing.assert_allclose(prior.log_prob(soft), expected, rtol=1e-12)
    stored = pc.as_partition_draws(labels, store=tmp_path / "store")
    for renumbered in (pc.as_partition_draws(labels), stored, tmp_path / "store"):
        with pytest.raises(TypeError, match="labels as sampled, .* got .* renumbered"):
            prior.log_prob(renumbered)
    for first in (0, 1):  # the first stick may be empty
        found = pc.priors.stick_breaking(0.7, 5, first_label=first).log_prob(labels + 1)
        np.testing.assert_allclose(found, [by_definition(row + 1 - first, 0.7, 5) for row in labels], rtol=1e-12)
    for n_components, given, words in [
        (2, labels, "numbers of the 2 components, from 0; .* 0 to 3"),
        (5, labels + 1, "`first_label` must .* 0 or"),
        (5, soft, "as many components .* 5; got those of 4"),
    ]:
        with pytest.raises(ValueError, match=words):
            pc.priors.stick_breaking(0.7, n_components).log_prob(given)


def exact_numbers(n, opens):
    """Distribution of the number of clusters in exact fractions; opens(i, k) is the chance of a new one."""
    chances = {1: Fraction(1)}
    for i in range(1, n):
        after = dict.fromkeys(range(1, i + 2), Fraction(0))
        for k, chance in chances.items():
            after[k + 1] += chance * opens(i, k)
            after[k] += chance * (1 - opens(i, k))
        chances = after
    return np.array([float(chances[k]) for k in range(1, n + 1)])


@pytest.mark.parametrize("hyper", [stats.halfcauchy(), stats.lognorm(3), stats.gamma(2, scale=0.25)])
def test_priors_of_the_concentration_are_integrated(hyper):
    log_a = np.arange(-80, 100, 1 / 64)
    a = np.exp(log_a)
    log_counts = np.log(exact_numbers(60, lambda i, k: Fraction(1, 1 + i))) + gammaln(61)  # those at a = 1
    log_terms = hyper.logpdf(a) + log_a - np.log(a[:, np.newaxis] + np.arange(60)).sum(axis=1) - np.log(64)
    expected = np.exp(log_counts + np.arange(1, 61) * log_a[:, np.newaxis] + log_terms[:, np.newaxis]).sum(axis=0)
    found = pc.priors.crp(hyper).n_clusters(60)
    np.testing.assert_allclose(found, expected[: found.size], rtol=1e-11, atol=1e-19)
    assert expected[found.size :].sum() < 1e-15
    found = pc.priors.crp(hyper).n_clusters(3000)
    means = [(one[:, np.newaxis] / (one[:, np.newaxis] + np.arange(3000))).sum(axis=1) for one in np.array_split(a, 10)]
    expected = np.concatenate(means) @ np.exp(hyper.logpdf(a) + log_a) / 64
    assert float(found["n_clusters"] @ found) == pytest.approx(expected, rel=1e-9)


def test_draws_keep_their_coordinates_and_stores_are_taken(tmp_path, rng):
    labels = rng.integers(3, size=(2, 30, 8))
    kept = pc.as_partition_draws(labels, store=tmp_path / "store")
    found = pc.priors.crp(1.0).log_prob(kept)
    assert found.dims == ("sample",) and found.name == "log_prior" and found["chain"].values.tolist()[30] == 1
    np.testing.assert_array_equal(found, pc.priors.crp(1.0).log_prob(labels))


def test_mistyped_arguments():
    make = pc.priors
    for function, *cases in [
        (
            make.crp,
            (0, ValueError, "`concentration`", "a finite number above 0", "got 0"),
            ("1", TypeError, "(shape, rate) of a Gamma", "got '1'"),
            (True, TypeError, "got True"),
            ((1, -1), ValueError, "a positive shape and rate", "got (1, -1)"),
            (stats.norm(0, 1), ValueError, "positive numbers", "got support"),
            (stats.poisson(3), TypeError, "a frozen SciPy distribution"),
        ),
        (
            lambda discount: make.pitman_yor(1.0, discount),
            (1.0, ValueError, "`discount`", "between 0 and 1"),
            ("a", TypeError, "`discount`", "a number", "got 'a'"),
        ),
        (lambda concentration: make.pitman_yor(concentration, 0.2), (-0.2, ValueError, "above -0.2")),
        (lambda number: make.dirichlet_multinomial(1.0, number), (0, ValueError, "`n_components`", "at least 1")),
        (
            lambda number: make.mixture_of_finite_mixtures(1.0, number),
            (3, TypeError, "dirichlet_multinomial"),
            (stats.poisson(3), ValueError, "integers from 1", "Add loc=1"),
            (stats.zipf(2), ValueError, "1,000,000"),
        ),
        (lambda number: make.stick_breaking(1.0, number), (1, ValueError, "`n_components`", "at least 2", "got 1")),
        (make.crp(1.0).n_clusters, (0, ValueError, "`n_items`", "at least 1")),
    ]:
        check_all(function, cases)
