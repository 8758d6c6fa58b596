import inspect
from itertools import product

import numpy as np
import pytest

import posterior_consensus as pc
from tests import reference
from tests.helpers import check

simulate = pc.simulate


def label_probabilities(n_clusters, noise):
    """Row k: the probabilities of an item's label in a draw if its true cluster is k."""
    return (1 - noise) * np.eye(n_clusters) + noise / n_clusters


def outcomes(n_clusters, noise, n_draws):
    """Every sequence of labels of one item, with its probability under each true cluster."""
    table = label_probabilities(n_clusters, noise)
    for labels in product(range(n_clusters), repeat=n_draws):
        yield labels, table[:, list(labels)].prod(axis=1)


# The model


def test_draws_follow_the_model():
    made = simulate.random_perturbation(2_000, 4, n_draws=300, noise=0.6, sizes=[0.4, 0.3, 0.2, 0.1], random_seed=1)
    assert made.draws.labels.shape == (300, 2_000) and made.truth.shape == (2_000,)
    np.testing.assert_allclose(np.bincount(made.truth) / 2_000, [0.4, 0.3, 0.2, 0.1], atol=0.04)
    expected = label_probabilities(4, 0.6)
    aligned = made.aligned_labels()
    for k in range(4):
        shares = np.bincount(aligned[:, made.truth == k].ravel(), minlength=4) / (300 * (made.truth == k).sum())
        np.testing.assert_allclose(shares, expected[k], atol=0.01)


def test_noise_of_each_draw():
    noise = np.linspace(0, 1, 11)
    made = simulate.random_perturbation(20_000, 5, n_draws=11, noise=noise, random_seed=2)
    kept = (made.aligned_labels() == made.truth).mean(axis=1)
    np.testing.assert_allclose(kept, 1 - noise + noise / 5, atol=0.02)
    np.testing.assert_array_equal(made.noise, noise)


def test_without_noise_every_draw_is_the_truth():
    made = simulate.random_perturbation(30, 3, n_draws=5, noise=0.0, random_seed=3)
    np.testing.assert_array_equal(made.draws.labels, np.tile(reference.canonical(made.truth), (5, 1)))


def test_sizes():
    balanced = simulate.random_perturbation(30_000, 3, n_draws=1, noise=0.1, random_seed=4).truth
    np.testing.assert_allclose(np.bincount(balanced) / 30_000, 1 / 3, atol=0.015)
    dominant = simulate.random_perturbation(30_000, 3, n_draws=1, noise=0.1, sizes=0.9, random_seed=4).truth
    np.testing.assert_allclose(np.bincount(dominant) / 30_000, [0.9, 0.05, 0.05], atol=0.015)
    empty = simulate.random_perturbation(40, 3, n_draws=1, noise=0.1, sizes=0.0, random_seed=4).truth
    assert np.unique(empty).size == 2
    truth = np.arange(12) % 3
    given = simulate.random_perturbation(12, 4, n_draws=3, noise=0.2, truth=truth, random_seed=4)
    np.testing.assert_array_equal(given.truth, truth)


def test_modes():
    truths = [[0] * 50 + [1] * 50, [0, 1] * 50]
    made = simulate.random_perturbation(100, 2, n_draws=400, noise=0.3, modes=[0.75, 0.25], truth=truths, random_seed=5)
    assert 0.68 < (made.mode == 0).mean() < 0.82
    agreement = (made.aligned_labels()[:, np.newaxis] == np.array(truths)).mean(axis=2)
    np.testing.assert_array_equal(agreement.argmax(axis=1), made.mode)
    for mode in (0, 1):
        np.testing.assert_array_equal(made.oracle(mode), truths[mode])
    assert simulate.random_perturbation(40, 3, n_draws=8, noise=0.2, modes=[0.5, 0.5], random_seed=5).truths.shape == (
        2,
        40,
    )


def test_weights_count_in_the_vote():
    noise = [0.0, 1.0, 1.0, 1.0]
    made = simulate.random_perturbation(200, 3, n_draws=4, noise=noise, weights=[4, 1, 1, 1], random_seed=6)
    np.testing.assert_allclose(made.draws.weights, np.array([4, 1, 1, 1]) / 7)
    np.testing.assert_array_equal(made.oracle(), made.truth)
    unweighted = simulate.random_perturbation(200, 3, n_draws=4, noise=noise, random_seed=6)
    assert (unweighted.oracle() != made.truth).any()


@pytest.mark.parametrize("n_draws", [1, 2, 7])
def test_oracle_is_the_plurality_vote(n_draws):
    made = simulate.random_perturbation(60, 4, n_draws=n_draws, noise=0.7, random_seed=n_draws)
    for votes, won in zip(made.aligned_labels().T, made.oracle(), strict=True):
        counts = [votes.tolist().count(k) for k in range(4)]
        assert won == counts.index(max(counts))


def test_same_seed_same_draws():
    one, same, other = (
        simulate.random_perturbation(20, 3, n_draws=4, noise=0.5, random_seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.draws.labels, same.draws.labels)
    assert (one.draws.labels != other.draws.labels).any()


def test_clusters_missing_from_a_draw_have_no_alignment():
    made = simulate.random_perturbation(2, 5, n_draws=6, noise=0.5, random_seed=7)
    assert ((made.alignment >= 0).sum(axis=1) == made.draws.n_clusters).all()
    assert "5 of sizes" in repr(made)


@pytest.mark.parametrize(
    ("arguments", "error", "parts"),
    [
        ({"n_clusters": 0}, ValueError, ["`n_clusters`", "at least 1", "0"]),
        ({"n_items": 2.5}, TypeError, ["`n_items`", "2.5"]),
        ({"noise": 1.2}, ValueError, ["`noise`", "between 0 and 1", "1.2"]),
        ({"noise": np.nan}, ValueError, ["`noise`", "nan"]),
        ({"noise": [0.1, 0.2]}, ValueError, ["`noise`", "4 draws", "(2,)"]),
        ({"sizes": "equal"}, ValueError, ["`sizes`", "'balanced'", "'equal'"]),
        ({"sizes": [0.5, 0.2, 0.2]}, ValueError, ["`sizes`", "3 probabilities", "sum to 1"]),
        ({"noise": "much"}, TypeError, ["`noise`", "numbers", "'much'"]),
        ({"sizes": 1.5}, ValueError, ["`sizes`", "from 0 to 1", "1.5"]),
        ({"sizes": 1.0, "n_clusters": 1}, ValueError, ["`sizes`", "several clusters", "1.0"]),
        ({"sizes": ["large", "small", "small"]}, TypeError, ["`sizes`", "numbers", "'large'"]),
        ({"modes": "two"}, TypeError, ["`modes`", "numbers", "'two'"]),
        ({"truth": [[0, 1], [1]]}, ValueError, ["`truth`", "(1, 10)", "[[0, 1], [1]]"]),
        ({"modes": [0.5, 0.2]}, ValueError, ["`modes`", "sum to 1"]),
        ({"truth": [0, 1]}, ValueError, ["`truth`", "(1, 10)", "(1, 2)"]),
        ({"truth": [0, 3] * 5}, ValueError, ["`truth`", "0 to 2"]),
        ({"truth": [0, 1] * 5, "sizes": 0.5}, ValueError, ["`sizes`", "`truth`"]),
        ({"weights": [1, 2]}, ValueError, ["weights"]),
        ({"random_seed": -1}, ValueError, ["`random_seed`", "-1"]),
    ],
)
def test_bad_arguments(arguments, error, parts):
    usual = {"n_items": 10, "n_clusters": 3, "n_draws": 4, "noise": 0.2}
    check(lambda given: simulate.random_perturbation(**(usual | given)), arguments, error, parts)


def test_bad_mode():
    made = simulate.random_perturbation(5, 2, n_draws=3, noise=0.1, random_seed=1)
    check(made.oracle, 1, ValueError, ["`mode`", "(0)", "got 1"])


# The theory


@pytest.mark.parametrize(
    ("n_clusters", "noise", "expected"), [(6, 0.45, 0.3106), (6, 0.65, 0.1290), (2, 0.3, 0.3367), (2, 0.6, 0.0872)]
)
def test_chernoff_information(n_clusters, noise, expected):
    assert simulate.chernoff_information(n_clusters, noise) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("n_clusters", "noise"), [(2, 0.4), (3, 0.9), (10, 0.2)])
def test_chernoff_information_is_the_definition(n_clusters, noise):
    """The largest of -log sum_l P_0(l)^s P_1(l)^(1-s) over s, here at a half by symmetry."""
    one, other = label_probabilities(n_clusters, noise)[:2]
    largest = max(-np.log((one**s * other ** (1 - s)).sum()) for s in np.linspace(0, 1, 101))
    assert simulate.chernoff_information(n_clusters, noise) == pytest.approx(largest, rel=1e-12)


def test_chernoff_information_of_many():
    found = simulate.chernoff_information(3, [0.0, 0.5, 1.0])
    assert found[0] == np.inf and found[1] == simulate.chernoff_information(3, 0.5) and abs(found[2]) < 1e-15


@pytest.mark.parametrize(("n_draws", "expected"), [(2, 0.974), (10, 0.500), (30, 0.390), (100, 0.340)])
def test_exponent_of_the_bayes_error(n_draws, expected):
    error = simulate.bayes_error(6, 0.45, n_draws=n_draws)
    assert -np.log(error) / n_draws == pytest.approx(expected, abs=5e-4)
    assert error <= np.exp(-n_draws * simulate.chernoff_information(6, 0.45))


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("n_draws", [1, 2, 5])
def test_errors_by_enumeration(n_clusters, noise, n_draws):
    between_two = among_all = 0.0
    for labels, probabilities in outcomes(n_clusters, noise, n_draws):
        between_two += probabilities[:2].min() / 2
        votes = np.bincount(labels, minlength=n_clusters)
        right = (votes[0] == votes.max()) / (votes == votes.max()).sum()
        among_all += probabilities[0] * (1 - right)
    assert simulate.bayes_error(n_clusters, noise, n_draws=n_draws) == pytest.approx(between_two, abs=1e-12)
    assert simulate.oracle_error(n_clusters, noise, n_draws=n_draws) == pytest.approx(among_all, abs=1e-12)


def test_oracle_error_is_what_oracles_do():
    errors = []
    for seed in range(20):
        made = simulate.random_perturbation(2_000, 6, n_draws=20, noise=0.65, random_seed=seed)
        errors.append((made.oracle() != made.truth).mean())
    standard_error = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - simulate.oracle_error(6, 0.65, n_draws=20)) < 4 * standard_error


def test_oracle_error_at_many_draws():
    few, many = (simulate.oracle_error(6, 0.65, n_draws=n) for n in (20, 300))
    between_two = simulate.bayes_error(6, 0.65, n_draws=300)
    bound = 5 * np.exp(-300 * simulate.chernoff_information(6, 0.65))
    assert 4.9 * between_two < many < 5 * between_two < bound < 1e-13 < few  # ties of three are rarer still
    assert simulate.oracle_error(2, 0.8, n_draws=501) == pytest.approx(simulate.bayes_error(2, 0.8, n_draws=501))


@pytest.mark.parametrize(("noise", "error", "expected"), [(0.45, 0.01, 21), (0.65, 0.01, 49), (0.0, 0.01, 1)])
def test_draws_needed(noise, error, expected):
    assert simulate.draws_needed(6, noise, error=error) == expected
    assert simulate.oracle_error(6, noise, n_draws=expected) <= error


@pytest.mark.parametrize("noise", [0.0, 0.45, 1.0])
def test_similarity_moments(noise):
    truth = np.repeat([0, 1, 2, 3], 10)
    together = np.equal.outer(truth, truth) & ~np.eye(40, dtype=bool)
    apart = ~np.equal.outer(truth, truth)
    inside, outside = [], []
    for seed in range(100):
        made = simulate.random_perturbation(40, 4, n_draws=25, noise=noise, truth=truth, random_seed=seed)
        similarity = pc.posterior_similarity_matrix(made.draws).values
        inside.append(similarity[together])
        outside.append(similarity[apart])
    moments = simulate.similarity_moments(4, noise, n_draws=25)
    for values, mean, sd in (
        (inside, moments.within, moments.within_sd),
        (outside, moments.between, moments.between_sd),
    ):
        assert np.mean(values) == pytest.approx(mean, abs=0.005)
        assert np.std(values) == pytest.approx(sd, rel=0.05, abs=1e-12)


def test_half_splits_every_cluster_beyond_the_printed_noise():
    for n_clusters in (3, 6, 20):
        breakdown = 1 - np.sqrt(1 - n_clusters / (2 * (n_clusters - 1)))
        assert simulate.similarity_moments(n_clusters, breakdown).within == pytest.approx(0.5)


def test_basic_error_bound():
    sizes, noise, n_draws = [30, 50, 100], 0.3, 40
    xi, beta, n_clusters = 0.51, max(100 * 3 / 180, 180 / (3 * 30)), 3
    expected = xi * beta**2 * n_clusters / (1 - xi) ** 2 * (beta**2 / n_draws + xi * n_clusters / 180)
    assert simulate.basic_error_bound(sizes, noise, n_draws=n_draws) == pytest.approx(expected)
    assert simulate.basic_error_bound(sizes, noise, n_draws=n_draws, constant=2) == pytest.approx(2 * expected)


def test_basic_aggregation_keeps_the_bound():
    errors = []
    for seed in range(5):
        made = simulate.random_perturbation(
            200, 2, n_draws=10, noise=0.2, truth=np.repeat([0, 1], 100), random_seed=seed
        )
        found = pc.consensus_partition(
            made.draws, loss="vi", method="basic", n_clusters=2, random_seed=seed, progressbar=False
        )
        errors.append(pc.simulate.misclassification_distance(found, made.truth))
    assert np.mean(errors) <= simulate.basic_error_bound([100, 100], 0.2, n_draws=10) < 1


def test_refined_error_bound():
    information = simulate.chernoff_information(6, 0.65)
    assert simulate.refined_error_bound(6, 0.65, n_draws=20) == pytest.approx(np.exp(-20 * information))
    assert simulate.refined_error_bound(6, 0.65, n_draws=20, slack=0.5) == pytest.approx(np.exp(-10 * information))


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (lambda noise: simulate.chernoff_information(1, noise), ["`n_clusters`", "at least 2"]),
        (lambda noise: simulate.chernoff_information(2, -0.1), ["`noise`", "-0.1"]),
        (lambda noise: simulate.bayes_error(2, 1.1, n_draws=3), ["`noise`", "1.1"]),
        (lambda noise: simulate.oracle_error(2, "much", n_draws=3), ["`noise`", "'much'"]),
        (lambda noise: simulate.oracle_error(2, noise, n_draws=0), ["`n_draws`", "0"]),
        (lambda noise: simulate.draws_needed(2, 1.0, error=0.1), ["`noise`", "below 1"]),
        (lambda noise: simulate.draws_needed(2, noise, error=0), ["`error`", "0"]),
        (lambda noise: simulate.basic_error_bound([3, np.inf], noise, n_draws=3), ["`sizes`", "inf"]),
        (lambda noise: simulate.basic_error_bound([3, 3], noise, n_draws=3, constant=-1), ["`constant`", "above 0"]),
        (lambda noise: simulate.refined_error_bound(2, noise, n_draws=3, slack="some"), ["`slack`", "'some'"]),
        (lambda noise: simulate.basic_error_bound([3, 0], noise, n_draws=3), ["`sizes`", "above 0"]),
        (lambda noise: simulate.basic_error_bound([3, 3], 1, n_draws=3), ["`noise`", "below 1"]),
        (lambda noise: simulate.refined_error_bound(2, noise, n_draws=3, slack=1), ["`slack`", "1"]),
    ],
)
def test_bad_arguments_of_the_theory(function, parts):
    check(function, 0.5, ValueError, parts)


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (lambda noise: simulate.chernoff_information(2, "much"), ["`noise`", "numbers", "'much'"]),
        (lambda noise: simulate.draws_needed(2, noise, error="1%"), ["`error`", "a number"]),
        (lambda noise: simulate.basic_error_bound("equal", noise, n_draws=3), ["`sizes`", "numbers", "'equal'"]),
        (lambda noise: simulate.basic_error_bound([3, 3], noise, n_draws=3, constant="C"), ["`constant`", "'C'"]),
    ],
)
def test_arguments_of_the_theory_that_are_no_numbers(function, parts):
    check(function, 0.5, TypeError, parts)


@pytest.mark.parametrize("name", simulate.__all__)
def test_every_name_is_documented(name):
    doc = inspect.getdoc(getattr(simulate, name))
    assert doc
    if inspect.isfunction(getattr(simulate, name)):
        assert "\nExamples\n" in doc and "\nReturns\n" in doc
        assert all(parameter in doc for parameter in inspect.signature(getattr(simulate, name)).parameters)
