import tracemalloc

import numpy as np
import pytest
from sklearn.cluster import KMeans

import posterior_consensus as pc
from posterior_consensus.consensus import kcc as implementation
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import one_hot

UTILITIES = list(implementation.UTILITIES)


def find(draws, **options):
    return pc.consensus_partition(draws, method="kcc", random_seed=1, **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("utility", UTILITIES)
def test_objective_is_the_utility_and_only_rises(utility, weighted):
    norm = reference.UTILITY_NORMS[utility]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        draws = noisy_draws(rng, 15, 60, 5, 0.6)
        weights = rng.exponential(size=15) * (rng.random(15) < 0.8) if weighted else None
        best = find(pc.as_partition_draws(draws, weights=weights), n_clusters=5, utility=utility, n_starts=1)
        expected = reference.utility(best.labels.values, draws, norm, weights)
        assert best.info.objective == best.info.trace[-1] == pytest.approx(expected, abs=1e-12)
        assert np.all(np.diff(best.info.trace) >= -1e-12) and best.info.converged
        assert best.info.n_iter == len(best.info.trace) and best.info.utility == utility
        by_category = find(pc.as_partition_draws(draws, weights=weights), n_clusters=5, n_starts=1)
        assert by_category.info.n_iter > 1
        before = reference.utility(by_category.labels.values, draws, norm, weights)
        assert best.info.trace[0] == pytest.approx(before) or utility == "category"


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_greatest_utility_of_all_partitions(utility, n_clusters):
    norm = reference.UTILITY_NORMS[utility]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        draws, weights = noisy_draws(rng, 6, 7, 3, 0.5), rng.exponential(size=6)
        data = pc.as_partition_draws(draws, weights=weights)
        best = find(data, n_clusters=n_clusters, utility=utility, n_starts=200)
        every = (p for p in reference.partitions(7) if max(p) + 1 <= n_clusters)
        greatest = max(reference.utility(p, draws, norm, weights) for p in every)
        assert best.info.objective == pytest.approx(greatest, abs=1e-12)


@pytest.mark.parametrize("p", [300.0, 1e4])
def test_a_norm_of_high_order_is_nearly_the_largest_share(p):
    draws = np.random.default_rng(6).integers(30, size=(10, 60))  # shares whose powers vanish
    best = find(draws, n_clusters=4, utility="lp", p=p)
    shares = [np.array([np.bincount(draw[best.labels.values == k]).max() for k in range(4)]) / 60 for draw in draws]
    least = np.mean([np.bincount(draw).max() / 60 for draw in draws])
    assert best.info.objective == pytest.approx(np.sum(shares) / 10 - least, rel=0.01)
    assert np.all(np.diff(best.info.trace) >= -1e-12)


def test_entropy_is_mutual_information_in_nats():
    draws = noisy_draws(np.random.default_rng(1), 10, 30, 4, 0.5)
    best = find(draws, n_clusters=4, utility="entropy")
    bits = np.mean([reference.mutual_information(best.labels.values, draw) for draw in draws])
    assert best.info.objective == pytest.approx(bits * np.log(2), abs=1e-12)


def test_category_utility_is_k_means_on_the_one_hot_matrix():
    rng = np.random.default_rng(2)
    draws = pc.as_partition_draws(noisy_draws(rng, 20, 80, 4, 0.6), weights=rng.exponential(size=20))
    roots = np.repeat(np.sqrt(draws.weights), draws.n_clusters)
    matrix = one_hot(draws.labels, draws.starts) * roots
    theirs = KMeans(4, n_init=100, random_state=1).fit(matrix)
    best = find(draws, n_clusters=4, n_starts=100)
    shares = one_hot(draws.labels, draws.starts).mean(axis=0)
    squares = 80 * (1 - np.sum((roots * shares) ** 2) - best.info.objective)
    assert squares == pytest.approx(theirs.inertia_, rel=1e-9)
    assert reference.same(best.labels.values, theirs.labels_)


@pytest.mark.parametrize("utility", UTILITIES)
def test_clear_clusters_are_found_with_their_number_from_a_sample_of_the_items_too(utility, monkeypatch):
    rng = np.random.default_rng(3)
    truth = rng.integers(4, size=90)
    draws = np.where(rng.random((60, 90)) < 0.2, rng.integers(4, size=(60, 90)), truth)
    best = find(draws, utility=utility)
    assert reference.same(best.labels.values, truth) and best.info.n_clusters_tried == [1, 2, 3, 4]
    monkeypatch.setattr(implementation, "_ITEMS_AT_START", 40)
    sampled = find(draws, utility=utility, n_clusters=4)
    assert reference.same(sampled.labels.values, truth)
    assert sampled.info.objective == pytest.approx(best.info.objective, abs=1e-12)


def test_weights_are_repeated_draws():
    draws, weights = noisy_draws(np.random.default_rng(4), 8, 40, 4, 0.6), np.arange(8)
    one = find(pc.as_partition_draws(draws, weights=weights), n_clusters=4)
    other = find(np.repeat(draws, weights, axis=0), n_clusters=4)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.info.objective == pytest.approx(other.info.objective, abs=1e-12)


def test_fewer_distinct_items_than_clusters():
    with pytest.warns(UserWarning, match="The partition has 2 clusters, not 3"):
        best = find([[0, 0, 1, 1], [1, 1, 0, 0]], n_clusters=3)
    assert best.labels.values.tolist() == [0, 0, 1, 1]


def test_no_matrix_of_all_pairs():
    n_items = 30_000
    rng = np.random.default_rng(5)
    truth = rng.integers(3, size=n_items)
    draws = pc.as_partition_draws(np.where(rng.random((20, n_items)) < 0.1, rng.integers(3, size=(20, n_items)), truth))
    tracemalloc.start()
    best = find(draws, n_clusters=3, n_starts=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_items**2 / 20
    assert reference.same(best.labels.values, truth)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"utility": "gini"}, ValueError, "`utility` must be one of 'category', 'entropy', 'cosine', 'lp'; got 'gini'"),
        ({"p": 1}, ValueError, "`p` must be a finite number above 1; got 1"),
        ({"p": np.nan}, ValueError, "`p` must be a finite number above 1; got nan"),
        ({"p": "2"}, TypeError, "`p` must be a number; got '2'"),
        ({"n_starts": 0}, ValueError, "`n_starts` must be at least 1; got 0"),
        ({"n_starts": 2.0}, TypeError, "`n_starts` must be an integer; got 2.0"),
    ],
)
def test_options(options, error, message):
    with pytest.raises(error, match=message):
        find([[0, 0, 1], [0, 1, 1]], **options)
