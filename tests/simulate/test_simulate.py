from itertools import product

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.simulate import theory
from posterior_consensus.simulate.theory import (
    basic_error_bound,
    bayes_error,
    chernoff_information,
    draws_needed,
    oracle_error,
    refined_error_bound,
    similarity_moments,
)
from tests.helpers import check_all

simulate = pc.simulate


def label_probabilities(n_clusters, noise):
    """Row k: the probabilities of an item's label in a draw if its true cluster is k."""
    return (1 - noise) * np.eye(n_clusters) + noise / n_clusters


def outcomes(n_clusters, noise, n_draws):
    """Every sequence of labels of one item, with its probability under each true cluster."""
    table = label_probabilities(n_clusters, noise)
    for labels in product(range(n_clusters), repeat=n_draws):
        yield labels, table[:, list(labels)].prod(axis=1)


def test_draws_follow_the_model():
    made = simulate.random_perturbation(2_000, 4, n_draws=100, noise=0.6, sizes=[0.4, 0.3, 0.2, 0.1], random_seed=1)
    assert made.draws.labels.shape == (100, 2_000) and made.truth.shape == (2_000,)
    np.testing.assert_allclose(np.bincount(made.truth) / 2_000, [0.4, 0.3, 0.2, 0.1], atol=0.04)
    expected = label_probabilities(4, 0.6)
    aligned = made.aligned_labels()
    for k in range(4):
        shares = np.bincount(aligned[:, made.truth == k].ravel(), minlength=4) / (100 * (made.truth == k).sum())
        np.testing.assert_allclose(shares, expected[k], atol=0.01)


def test_noise_of_each_draw():
    noise = np.linspace(0, 1, 11)
    made = simulate.random_perturbation(4_000, 5, n_draws=11, noise=noise, random_seed=2)
    kept = (made.aligned_labels() == made.truth).mean(axis=1)
    np.testing.assert_allclose(kept, 1 - noise + noise / 5, atol=0.03)
    np.testing.assert_array_equal(made.noise, noise)


def test_sizes():
    for sizes, expected in [("balanced", 1 / 3), (0.9, [0.9, 0.05, 0.05]), (0.0, [0, 0.5, 0.5])]:
        truth = simulate.random_perturbation(9_000, 3, n_draws=1, noise=0.1, sizes=sizes, random_seed=4).truth
        np.testing.assert_allclose(np.bincount(truth) / 9_000, expected, atol=0.02)
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
    made = simulate.random_perturbation(40, 3, n_draws=8, noise=0.2, modes=[0.5, 0.5], random_seed=5)
    assert made.truths.shape == (2, 40)


def test_the_oracle_is_the_plurality_vote_by_weights():
    noise = [0.0, 1.0, 1.0, 1.0]
    made = simulate.random_perturbation(200, 3, n_draws=4, noise=noise, weights=[4, 1, 1, 1], random_seed=6)
    np.testing.assert_allclose(made.draws.weights, np.array([4, 1, 1, 1]) / 7)
    np.testing.assert_array_equal(made.oracle(), made.truth)
    made = simulate.random_perturbation(200, 4, n_draws=7, noise=0.7, random_seed=7)  # ties among them
    for votes, won in zip(made.aligned_labels().T, made.oracle(), strict=True):
        counts = [votes.tolist().count(k) for k in range(4)]
        assert won == counts.index(max(counts))


def test_clusters_missing_from_a_draw_have_no_alignment():
    made = simulate.random_perturbation(2, 5, n_draws=6, noise=0.5, random_seed=7)
    assert ((made.alignment >= 0).sum(axis=1) == made.draws.n_clusters).all()
    assert "5 of sizes" in repr(made)


def test_bad_arguments():
    cases = [
        ({"n_clusters": 0}, ValueError, "`n_clusters`", "at least 1", "0"),
        ({"n_items": 2.5}, TypeError, "`n_items`", "2.5"),
        ({"noise": 1.2}, ValueError, "`noise`", "between 0 and 1", "1.2"),
        ({"noise": np.nan}, ValueError, "`noise`", "nan"),
        ({"noise": [0.1, 0.2]}, ValueError, "`noise`", "4 draws", "(2,)"),
        ({"noise": "much"}, TypeError, "`noise`", "numbers", "'much'"),
        ({"sizes": "equal"}, ValueError, "`sizes`", "'balanced'", "'equal'"),
        ({"sizes": [0.5, 0.2, 0.2]}, ValueError, "`sizes`", "3 probabilities", "sum to 1"),
        ({"sizes": 1.5}, ValueError, "`sizes`", "from 0 to 1", "1.5"),
        ({"sizes": 1.0, "n_clusters": 1}, ValueError, "`sizes`", "several clusters", "1.0"),
        ({"sizes": ["large", "small", "small"]}, TypeError, "`sizes`", "numbers", "'large'"),
        ({"modes": "two"}, TypeError, "`modes`", "numbers", "'two'"),
        ({"modes": [0.5, 0.2]}, ValueError, "`modes`", "sum to 1"),
        ({"truth": [[0, 1], [1]]}, ValueError, "`truth`", "(1, 10)", "[[0, 1], [1]]"),
        ({"truth": [0, 1]}, ValueError, "`truth`", "(1, 10)", "(1, 2)"),
        ({"truth": [0, 3] * 5}, ValueError, "`truth`", "0 to 2"),
        ({"truth": [0, 1] * 5, "sizes": 0.5}, ValueError, "`sizes`", "`truth`"),
        ({"weights": [1, 2]}, ValueError, "weights"),
        ({"random_seed": -1}, ValueError, "`random_seed`", "-1"),
    ]
    usual = {"n_items": 10, "n_clusters": 3, "n_draws": 4, "noise": 0.2}
    check_all(lambda given: simulate.random_perturbation(**(usual | given)), cases)
    made = simulate.random_perturbation(5, 2, n_draws=3, noise=0.1, random_seed=1)
    check_all(made.oracle, [(1, ValueError, "`mode`", "(0)", "got 1")])


def test_chernoff_information_is_the_definition():
    """The largest of -log sum_l P_0(l)^s P_1(l)^(1-s) over s, here at a half by symmetry."""
    for n_clusters, noise in [(2, 0.4), (3, 0.9), (10, 0.2)]:
        one, other = label_probabilities(n_clusters, noise)[:2]
        largest = max(-np.log((one**s * other ** (1 - s)).sum()) for s in np.linspace(0, 1, 101))
        assert chernoff_information(n_clusters, noise) == pytest.approx(largest, rel=1e-12)
    found = chernoff_information(3, [0.0, 0.5, 1.0])
    assert found[0] == np.inf and found[1] == chernoff_information(3, 0.5) and abs(found[2]) < 1e-15


@pytest.mark.parametrize(("n_clusters", "n_draws"), [(2, 1), (3, 2), (4, 2), (2, 5), (3, 5), (4, 5)])
@pytest.mark.parametrize("noise", [0.0, 0.6, 1.0])
def test_errors_by_enumeration(n_clusters, noise, n_draws):
    between_two = among_all = 0.0
    for labels, probabilities in outcomes(n_clusters, noise, n_draws):
        between_two += probabilities[:2].min() / 2
        votes = np.bincount(labels, minlength=n_clusters)
        right = (votes[0] == votes.max()) / (votes == votes.max()).sum()
        among_all += probabilities[0] * (1 - right)
    assert bayes_error(n_clusters, noise, n_draws=n_draws) == pytest.approx(between_two, abs=1e-12)
    assert oracle_error(n_clusters, noise, n_draws=n_draws) == pytest.approx(among_all, abs=1e-12)


def test_oracle_error_at_many_draws():
    few, many = (oracle_error(6, 0.65, n_draws=n) for n in (20, 300))
    between_two = bayes_error(6, 0.65, n_draws=300)
    bound = 5 * np.exp(-300 * chernoff_information(6, 0.65))
    assert 4.9 * between_two < many < 5 * between_two < bound < 1e-13 < few  # ties of three are rarer still
    assert oracle_error(2, 0.8, n_draws=501) == pytest.approx(bayes_error(2, 0.8, n_draws=501))


def test_draws_needed():
    for noise, expected in [(0.45, 21), (0.65, 49), (0.0, 1)]:
        assert draws_needed(6, noise, error=0.01) == expected
        assert oracle_error(6, noise, n_draws=expected) <= 0.01


@pytest.mark.parametrize("noise", [0.0, 0.45])
def test_similarity_moments(noise):
    truth = np.repeat([0, 1, 2, 3], 10)
    together = np.equal.outer(truth, truth) & ~np.eye(40, dtype=bool)
    apart = ~np.equal.outer(truth, truth)
    inside, outside = [], []
    for seed in range(40):
        made = simulate.random_perturbation(40, 4, n_draws=25, noise=noise, truth=truth, random_seed=seed)
        similarity = pc.posterior_similarity_matrix(made.draws).values
        inside.append(similarity[together])
        outside.append(similarity[apart])
    moments = similarity_moments(4, noise, n_draws=25)
    for values, mean, sd in (
        (inside, moments.within, moments.within_sd),
        (outside, moments.between, moments.between_sd),
    ):
        assert np.mean(values) == pytest.approx(mean, abs=0.008)
        assert np.std(values) == pytest.approx(sd, rel=0.05, abs=1e-12)


def test_half_splits_every_cluster_beyond_the_printed_noise():
    for n_clusters in (3, 6, 20):
        breakdown = 1 - np.sqrt(1 - n_clusters / (2 * (n_clusters - 1)))
        assert similarity_moments(n_clusters, breakdown).within == pytest.approx(0.5)


def test_basic_error_bound():
    """Values worked out by hand; the largest cluster decides beta in the first, the smallest in the second."""
    bound = basic_error_bound
    assert bound([30, 30, 60], 0.5, n_draws=10) == pytest.approx(19.74375)  # beta = 3/2, xi = 3/4: 81 (9/40 + 3/160)
    assert bound([30, 50, 100], 0.3, n_draws=40) == pytest.approx(0.66402 / 0.2401)  # 2, 0.51: 6.12 (0.1 + 0.0085)
    assert bound([60, 100, 200], 0.3, n_draws=80, constant=6) == pytest.approx(3 * 0.66402 / 0.2401)
    assert bound([5, 5], 0.0, n_draws=1) == 0


@pytest.mark.parametrize(("n_clusters", "noise", "n_draws"), [(2, 0.6, 5), (3, 0.4, 4), (4, 0.9, 3)])
def test_refined_rate_is_the_overlap_of_two_clusters_labels(n_clusters, noise, n_draws):
    """Bhattacharyya's coefficient, the sum of sqrt(P_0 P_1) over every sequence of labels of an item."""
    overlap = sum(np.sqrt(chances[0] * chances[1]) for _, chances in outcomes(n_clusters, noise, n_draws))
    found = [refined_error_bound(n_clusters, noise, n_draws=n_draws, slack=slack) for slack in (0, 0.5, 0.75)]
    np.testing.assert_allclose(found, overlap ** np.array([1, 0.5, 0.25]), rtol=1e-12)


def test_bad_arguments_of_the_theory():
    two = {"n_clusters": 2, "noise": 0.5, "n_draws": 3}
    sizes, needed = {"sizes": [3, 3], "noise": 0.5, "n_draws": 3}, {"n_clusters": 2, "noise": 0.5, "error": 0.1}
    for name, usual, *cases in [
        ("chernoff_information", {"n_clusters": 2, "noise": 0.5}, ("n_clusters", 1, "at least 2"), ("noise", -0.1)),
        ("bayes_error", two, ("noise", 1.1)),
        ("oracle_error", two, ("noise", "much"), ("n_draws", 0)),
        ("draws_needed", needed, ("noise", 1.0, "below 1"), ("error", 0), ("error", 1)),
        ("basic_error_bound", sizes, ("sizes", [3, np.inf]), ("sizes", [3, 0], "above 0"), ("noise", 1, "below 1")),
        ("basic_error_bound", sizes, ("constant", -1, "above 0")),
        ("refined_error_bound", two, ("slack", "some"), ("slack", 1)),
    ]:
        function = getattr(theory, name)
        wrong = [({key: value}, ValueError, f"`{key}`", *(parts or [repr(value)])) for key, value, *parts in cases]
        check_all(lambda given, function=function, usual=usual: function(**usual | given), wrong)
    check_all(lambda noise: chernoff_information(2, noise), [("much", TypeError, "`noise`", "'much'")])
    check_all(lambda error: draws_needed(2, 0.5, error=error), [("1%", TypeError, "`error`", "a number")])
    wrong = [({"sizes": "equal"}, TypeError, "`sizes`", "'equal'"), ({"constant": "C"}, TypeError, "`constant`", "'C'")]
    check_all(lambda given: basic_error_bound(**sizes | given), wrong)
