"""The bound for the loss "within_variance": below the least, at any stop, merged or not, and often at it."""

from itertools import product

import numpy as np
import pytest
from sklearn.cluster import KMeans

import posterior_consensus as pc
from benchmarks.semidefinite import iris_ensemble
from posterior_consensus.bounds import sdp
from posterior_consensus.bounds.bound import WorkBudget
from posterior_consensus.bounds.certificate import certificate_within
from posterior_consensus.bounds.sdp import Cuts
from posterior_consensus.losses import within_variance
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, around, noisy_draws, random_draws
from tests.helpers import one_hot

PARTITIONS = np.array(list(reference.partitions(7)))
SIZES = PARTITIONS.max(axis=1) + 1


def certify(source, partition, work=60.0):
    source = pc.as_partition_draws(source) if isinstance(source, np.ndarray) else source
    return certificate_within(WorkBudget(work), source, partition, within_variance(), progressbar=False)


def find(draws, method="sdp", **options):
    options = {"loss": "within_variance", "random_seed": 1, "progressbar": False} | options
    return pc.consensus_partition(draws, method=method, **options)


def bound_within(source, partition, seconds):
    source = pc.as_partition_draws(source)
    return sdp.sum_of_squares_bound(source, within_variance(), source.as_labels(partition), budget=WorkBudget(seconds))


def least_by_number(draws):
    """Least objective of all partitions of seven items, by number of clusters."""
    values = pc.expected_loss(draws, PARTITIONS, loss="within_variance")["expected_loss"].values
    return {k: values[SIZES == k].min() for k in range(1, 8)}


@pytest.mark.parametrize("seed", range(4))
def test_never_above_the_least_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    for number in range(12):
        n_draws = int(rng.integers(2, 9))
        labels = random_draws(rng, n_draws, 7, 3) if number % 3 else noisy_draws(rng, n_draws, 7, 3, 0.4)
        draws = pc.as_partition_draws(labels, weights=rng.exponential(size=n_draws) if number % 4 == 0 else None)
        least = least_by_number(draws)
        k = int(rng.integers(1, 7))
        proof = certify(draws, PARTITIONS[SIZES == k][0], 10.0 if number == seed == 0 else 0.02)
        assert proof.lower_bound <= least[k] + 1e-12
        assert proof.better_loss >= least[k] - 1e-12 or proof.better.max() + 1 < k
        if proof.optimality_gap < 1e-9:
            assert proof.expected_loss == pytest.approx(least[k], abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_that_of_k_means_on_the_one_hot_matrix(weighted):
    rng = np.random.default_rng(1)
    labels = noisy_draws(rng, 15, 60, 4, 0.5)
    draws = pc.as_partition_draws(labels, weights=rng.exponential(size=15) if weighted else None)
    weights, table = np.repeat(draws.weights, draws.n_clusters), one_hot(draws.labels, draws.starts)
    theirs = KMeans(4, n_init=10, random_state=1).fit(table * np.sqrt(weights))
    proof = certify(draws, theirs.labels_, 0.5)
    assert proof.expected_loss == pytest.approx(theirs.inertia_ / 60, rel=1e-9)
    by_definition = reference.sum_of_squares(theirs.labels_, labels, draws.weights)
    assert proof.expected_loss == pytest.approx(by_definition, rel=1e-9)
    assert proof.lower_bound <= proof.better_loss <= proof.expected_loss
    by_utility = find(draws, "kcc", n_clusters=4)
    concentration = (weights * table.mean(axis=0) ** 2).sum()
    assert by_utility.expected_loss == pytest.approx(1 - concentration - by_utility.info.objective, abs=1e-12)


def test_any_multipliers_give_a_bound():
    rng = np.random.default_rng(2)
    labels = noisy_draws(rng, 9, 7, 3, 0.5)
    draws = pc.as_partition_draws(labels)
    least = least_by_number(draws)
    merged = sdp.merge_equal_items(draws)
    for k in range(1, merged.counts.size):
        for scale in (0.0, 1e-3, 0.1, 1.0):
            search = sdp.Relaxation(merged, k, WorkBudget(0))
            noise = rng.exponential(scale=max(scale, 1e-300), size=(2, *merged.similarity.shape))
            search._raise_bound(noise[0] + noise[0].T, "")
            assert search.lower_bound <= least[k] + 1e-12


def test_any_prices_of_triangle_inequalities_give_a_bound():
    rng = np.random.default_rng(8)
    draws = pc.as_partition_draws(noisy_draws(rng, 9, 7, 3, 0.5)[:, [0, 1, 2, 3, 4, 5, 0]])
    least = least_by_number(draws)
    merged = sdp.merge_equal_items(draws)
    u = merged.counts.size
    cuts = Cuts(np.sqrt(merged.counts))
    cuts.rows = np.array([(i, j, k) for i in range(u) for j in range(u) for k in range(j, u) if i not in (j, k)])
    for k in range(1, u):
        for scale in (1e-3, 0.03, 1.0):
            cuts.prices = rng.exponential(scale=scale / 7, size=len(cuts.rows))
            search = sdp.Relaxation(merged, k, WorkBudget(0))
            search._raise_bound(cuts.matrix(), "")
            assert search.lower_bound <= least[k] + 1e-12


def test_triangle_inequalities_are_those_of_partitions():
    rng = np.random.default_rng(9)
    counts = rng.integers(1, 4, size=8)
    roots = np.sqrt(counts)
    cuts = Cuts(roots)
    labels = rng.integers(3, size=8)
    of_partition = (labels[:, np.newaxis] == labels) / np.bincount(labels, counts)[labels]
    assert cuts.separate(of_partition * np.outer(roots, roots)) == 0
    half = rng.random((8, 8))
    matrix = np.eye(8) * 0.5 + (half + half.T) / 2
    n_new = cuts.separate(matrix * np.outer(roots, roots))
    assert n_new == len(cuts.rows) == len(np.unique(cuts.rows, axis=0)) > 0
    i, j, k = cuts.rows.T
    slack = matrix[i, i] - matrix[i, j] + np.where(j == k, 0.0, matrix[j, k] - matrix[i, k])
    assert slack.max() < 0
    cuts.prices = rng.random(n_new)
    assert np.sum(cuts.matrix() * matrix * np.outer(roots, roots)) == pytest.approx(cuts.prices @ slack)
    before = cuts.prices.copy()
    cuts.reprice(matrix * np.outer(roots, roots), 0.1)
    assert np.all(cuts.prices > before)
    assert cuts.separate(matrix * np.outer(roots, roots)) == 0 and len(cuts.rows) == n_new


def test_triangle_inequalities_prove_what_the_relaxation_leaves_open(monkeypatch):
    draws = iris_ensemble(0)
    best = find(draws, n_clusters=3)
    assert best.optimality_gap < 1e-9
    monkeypatch.setattr(sdp, "_STEPS_BEFORE_CUTS", 10**6)
    monkeypatch.setattr(Cuts, "separate", lambda self, spread: 0)
    plain = bound_within(draws, best.labels, 10.0)
    assert plain.method == "semidefinite relaxation" and plain.info.n_iter > 0
    unit = 150 * 20
    assert unit * plain.value == pytest.approx(unit - 2272.935, abs=0.05)  # the relaxation's own value


def test_valid_and_rising_wherever_it_stops():
    draws = noisy_draws(np.random.default_rng(3), 10, 40, 4, 0.7)
    best = find(draws, n_clusters=4)
    bounds = [bound_within(draws, best.labels, seconds) for seconds in (0, 0.01, 0.025, 0.15, 1)]
    values = [bound.value for bound in bounds]
    assert best.expected_loss <= find(draws, "kcc", n_clusters=4, n_starts=20).expected_loss * (1 + 1e-3)
    assert values == sorted(values) and values[0] < values[-1] <= best.expected_loss
    assert bounds[0].info.n_iter == 0 < bounds[1].info.n_iter < bounds[-1].info.n_iter
    assert bounds[0].method in {"spectral bound", "multipliers in closed form"}
    assert bounds[1].method == "semidefinite relaxation"
    assert bounds[-1].method == "semidefinite relaxation with triangle inequalities"


@pytest.mark.parametrize("seed", range(2))
def test_merged_items_change_nothing(seed):
    rng = np.random.default_rng(seed)
    few = noisy_draws(rng, 8, 18, 3, 0.5)
    labels = few[:, rng.integers(18, size=45)]
    draws = pc.as_partition_draws(labels)
    alone = pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))  # of which nothing is merged
    best = find(draws, n_clusters=3)
    merged, whole = (certify(source, best) for source in (draws, alone))
    assert merged.info.n_signatures <= 18 < 45 == whole.info.n_signatures
    assert merged.lower_bound == pytest.approx(whole.lower_bound, abs=1e-3 / (45 * 8))  # in the paper's unit
    assert merged.better_loss == pytest.approx(whole.better_loss, abs=1e-12)


def test_clear_clusters_are_proven_without_a_step():
    draws = noisy_draws(np.random.default_rng(4), 20, 120, 4, 0.25)
    best = find(draws, n_clusters=4)
    assert best.optimality_gap < 1e-9 and best.info.n_iter == 0 and best.info.lower_bounds[0] == best.lower_bound
    proof = certify(draws, best)
    assert (proof.status, proof.method, proof.better) == ("optimal", "multipliers in closed form", None)
    worse = np.where(np.arange(120) < 3, 0, best.labels)
    again = certify(draws, worse)
    assert again.status == "bounded" and again.better_loss == pytest.approx(best.expected_loss, abs=1e-12)
    assert reference.same(again.better.values, best.labels.values)


@pytest.mark.slow
def test_noisy_draws_of_300_items_are_proven():
    draws = pc.simulate.random_perturbation(300, 6, n_draws=20, noise=0.45, random_seed=1).draws
    best = find(draws, n_clusters=6)
    assert best.optimality_gap < 1e-5 and best.info.n_iter > 0
    assert best.expected_loss <= find(draws, "kcc", n_clusters=6).expected_loss + 1e-12


def test_degenerate_draws():
    for draws in DEGENERATE.values():
        for partition in (draws[0], np.zeros(draws.shape[1], int), np.arange(draws.shape[1])):
            proof = certify(draws, partition)
            assert 0 <= proof.lower_bound <= proof.better_loss <= proof.expected_loss
            assert proof.expected_loss == pytest.approx(reference.sum_of_squares(partition, draws), abs=1e-12)
            assert proof.optimality_gap < 1e-9 or proof.better is not None or proof.lower_bound > 0


def test_a_matrix_that_is_no_share_of_draws():
    values = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])  # not positive semidefinite
    assert np.linalg.eigvalsh(values)[0] < 0
    pairs = pc.as_pair_similarity(values)
    partitions = np.array(list(reference.partitions(3)))
    losses = pc.expected_loss(pairs, partitions, loss="within_variance")["expected_loss"].values
    for k in (1, 2):
        proof = certify(pairs, partitions[partitions.max(axis=1) + 1 == k][0])
        assert proof.lower_bound <= losses[partitions.max(axis=1) + 1 == k].min() + 1e-12


def test_capped_simplex():
    for seed, total in product(range(10), [0, 1, 2, 5, 6, 9]):
        values = np.sort(np.random.default_rng(seed).normal(scale=2, size=6))
        found = sdp.capped_simplex(values, total)
        assert found.sum() == pytest.approx(min(total, 6), abs=1e-9) and found.min() >= 0 and found.max() <= 1
        inside = (found > 1e-9) & (found < 1 - 1e-9)
        if inside.any():
            shift = (values - found)[inside]
            assert np.ptp(shift) < 1e-9
            assert np.all(values[found == 0] <= shift[0] + 1e-9) and np.all(values[found == 1] >= shift[0] + 1 - 1e-9)


def test_the_loss_and_the_work_are_stored():
    proof = certify(noisy_draws(np.random.default_rng(5), 20, 12, 3, 0.5), [0, 1, 2] * 4)
    back = pc.results.Certificate.from_dataset(proof.to_dataset())
    assert back.loss == within_variance() and back.info == proof.info and back.lower_bound == proof.lower_bound
    assert "within-cluster variance" in repr(proof) and proof.better is not None


def test_the_number_of_clusters_must_be_given():
    draws = noisy_draws(np.random.default_rng(6), 10, 8, 3, 0.3)
    for function in (pc.consensus_partition, pc.loss_by_n_clusters):
        with pytest.raises(ValueError, match="'within_variance' needs `n_clusters`"):
            function(draws, loss="within_variance")
    by_number = pc.loss_by_n_clusters(draws, loss="within_variance", n_clusters=range(1, 5), random_seed=1)
    assert np.all(np.diff(by_number.table["expected_loss"]) < 0)
    for method in ("greedy", "sdp", "kcc", "hierarchical"):
        assert find(draws, method, max_clusters=3).n_clusters == 3


def test_numbers_of_clusters_that_were_tried():
    truth = np.repeat(np.arange(3), 10)
    rng = np.random.default_rng(7)
    best = find(around(rng, truth, 30, 0.15, 4), loss="vi")
    assert reference.same(best.labels.values, truth) and best.lower_bound is None
    info = best.info
    assert info.n_clusters_tried == [1, 2, 3, 4] and len(info.objectives) == len(info.lower_bounds) == 4
    assert np.all(np.diff(info.objectives) < 0)
    gaps = 1 - np.array(info.lower_bounds) / info.objectives
    assert np.all(gaps >= -1e-12) and gaps[0] < 1e-9 and gaps[2] < 1e-9


def test_a_limit_of_time_is_taken():
    assert find([[0, 0, 1]] * 3, loss="vi", seconds=1.0).n_clusters == 2
