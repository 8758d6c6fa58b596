"""The bound for the loss "within_variance": below the least, at any stop, merged or not, and often at it."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

import posterior_consensus as pc
from benchmarks.semidefinite import iris_ensemble
from posterior_consensus.bounds import sdp
from posterior_consensus.bounds.budget import WorkBudget
from posterior_consensus.bounds.sdp_cuts import Cuts
from posterior_consensus.losses import within_variance
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws
from tests.helpers import check, one_hot

PARTITIONS = {n: np.array(list(reference.partitions(n))) for n in (6, 7)}


def certify(draws, partition, **options):
    return pc.certify(draws, partition, loss="within_variance", progressbar=False, **options)


def bound_within(source, partition, seconds):
    source = pc.as_partition_draws(source)
    return sdp.sum_of_squares_bound(source, within_variance(), source.as_labels(partition), budget=WorkBudget(seconds))


def least_by_number(draws, n_items):
    """Least objective by number of clusters, of all partitions."""
    partitions = PARTITIONS[n_items]
    values = pc.expected_loss(draws, partitions, loss="within_variance")["expected_loss"].values
    return {k: values[partitions.max(axis=1) + 1 == k].min() for k in range(1, n_items + 1)}


@pytest.mark.parametrize("seed", range(10))
def test_never_above_the_least_of_all_partitions(seed):
    """200 ensembles: 10 seeds, 20 each."""
    rng = np.random.default_rng(seed)
    for number in range(20):
        n_items = 6 + number % 2
        make = random_draws if number % 3 else noisy_draws
        labels = make(rng, int(rng.integers(2, 9)), n_items, 3, *([] if make is random_draws else [0.4]))
        draws = pc.as_partition_draws(labels, weights=rng.exponential(size=len(labels)) if number % 4 == 0 else None)
        least = least_by_number(draws, n_items)
        k = int(rng.integers(1, n_items))
        start = PARTITIONS[n_items][PARTITIONS[n_items].max(axis=1) + 1 == k][0]
        proof = certify(draws, start, seconds=None if number == seed == 0 else 0.02)
        assert proof.lower_bound <= least[k] + 1e-12
        assert proof.better_loss >= least[k] - 1e-12 or proof.better.max() + 1 < k
        if proof.gap < 1e-9:
            assert proof.expected_loss == pytest.approx(least[k], abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_that_of_k_means_on_the_one_hot_matrix(weighted):
    rng = np.random.default_rng(1)
    labels = noisy_draws(rng, 15, 60, 4, 0.5)
    draws = pc.as_partition_draws(labels, weights=rng.exponential(size=15) if weighted else None)
    theirs = KMeans(4, n_init=50, random_state=1).fit(
        one_hot(draws.labels, draws.starts) * np.repeat(np.sqrt(draws.weights), draws.n_clusters)
    )
    proof = certify(draws, theirs.labels_)
    assert proof.expected_loss == pytest.approx(theirs.inertia_ / 60, rel=1e-9)
    assert proof.expected_loss == pytest.approx(
        reference.sum_of_squares(theirs.labels_, labels, draws.weights), rel=1e-9
    )
    assert proof.lower_bound <= proof.better_loss <= proof.expected_loss
    by_utility = pc.consensus_partition(draws, loss="within_variance", method="kcc", n_clusters=4, random_seed=1)
    concentration = (
        np.repeat(draws.weights, draws.n_clusters) * one_hot(draws.labels, draws.starts).mean(0) ** 2
    ).sum()
    assert by_utility.expected_loss == pytest.approx(1 - concentration - by_utility.info.objective, abs=1e-12)


def test_any_multipliers_give_a_bound():
    rng = np.random.default_rng(2)
    labels = noisy_draws(rng, 9, 7, 3, 0.5)
    draws = pc.as_partition_draws(labels)
    least = least_by_number(draws, 7)
    merged = sdp.merge(draws)
    for k in range(1, merged.counts.size):
        for scale in (0.0, 1e-3, 0.1, 1.0):
            search = sdp.Relaxation(merged, k, WorkBudget(0))
            noise = rng.exponential(scale=max(scale, 1e-300), size=(2, *merged.similarity.shape))
            search._raise_bound(noise[0] + noise[0].T, "")
            assert search.lower_bound <= least[k] + 1e-12


def test_any_prices_of_triangle_inequalities_give_a_bound():
    rng = np.random.default_rng(8)
    draws = pc.as_partition_draws(noisy_draws(rng, 9, 7, 3, 0.5)[:, [0, 1, 2, 3, 4, 5, 0]])
    partitions = PARTITIONS[7]
    values = pc.expected_loss(draws, partitions, loss="within_variance")["expected_loss"].values
    merged = sdp.merge(draws)
    u = merged.counts.size
    cuts = Cuts(np.sqrt(merged.counts))
    cuts.rows = np.array([(i, j, k) for i in range(u) for j in range(u) for k in range(j, u) if i not in (j, k)])
    for k in range(1, u):
        for scale in (1e-3, 0.03, 1.0):
            cuts.prices = rng.exponential(scale=scale / 7, size=len(cuts.rows))
            search = sdp.Relaxation(merged, k, WorkBudget(0))
            search._raise_bound(cuts.matrix(), "")
            assert search.lower_bound <= values[partitions.max(axis=1) + 1 == k].min() + 1e-12


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
    for i, j, k in cuts.rows:
        both = matrix[i, j] - matrix[i, i] + (matrix[i, k] - matrix[j, k] if j != k else 0.0)
        assert both > 0
    cuts.prices = rng.random(n_new)
    added = sum(
        price * (matrix[i, i] - matrix[i, j] + (matrix[j, k] - matrix[i, k] if j != k else 0.0))
        for price, (i, j, k) in zip(cuts.prices, cuts.rows, strict=True)
    )
    assert np.sum(cuts.matrix() * matrix * np.outer(roots, roots)) == pytest.approx(added)
    before = cuts.prices.copy()
    cuts.reprice(matrix * np.outer(roots, roots), 0.1)
    assert np.all(cuts.prices > before)
    assert cuts.separate(matrix * np.outer(roots, roots)) == 0 and len(cuts.rows) == n_new


def test_triangle_inequalities_prove_what_the_relaxation_leaves_open(monkeypatch):
    draws = iris_ensemble(0)
    best = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=3, progressbar=False)
    assert best.gap < 1e-9
    monkeypatch.setattr(sdp, "_STEPS_BEFORE_CUTS", 10**6)
    monkeypatch.setattr(Cuts, "separate", lambda self, spread: 0)
    plain = bound_within(draws, best.labels, 10.0)
    assert plain.method == "semidefinite relaxation" and plain.info.n_iter > 0
    unit = 150 * 20
    assert unit * plain.value == pytest.approx(unit - 2272.935, abs=0.05)  # the relaxation's own value


def test_valid_and_rising_wherever_it_stops():
    draws = noisy_draws(np.random.default_rng(3), 10, 40, 4, 0.7)
    best = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=4, progressbar=False)
    bounds = [bound_within(draws, best.labels, seconds) for seconds in (0, 0.01, 0.025, 0.15, 1)]
    values = [bound.value for bound in bounds]
    assert values == sorted(values) and values[0] < values[-1] <= best.expected_loss
    assert bounds[0].info.n_iter == 0 < bounds[1].info.n_iter < bounds[-1].info.n_iter
    assert bounds[0].method in {"spectral bound", "multipliers in closed form"}
    assert bounds[1].method == "semidefinite relaxation"
    assert bounds[-1].method == "semidefinite relaxation with triangle inequalities"


@pytest.mark.parametrize("seed", range(4))
def test_merged_items_change_nothing(seed):
    rng = np.random.default_rng(seed)
    few = noisy_draws(rng, 8, 18, 3, 0.5)
    labels = few[:, rng.integers(18, size=45)]
    draws = pc.as_partition_draws(labels)
    alone = pc.as_pair_similarity(pc.posterior_similarity_matrix(draws))  # of which nothing is merged
    best = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=3, progressbar=False)
    merged, whole = (certify(source, best) for source in (draws, alone))
    assert merged.info.n_signatures <= 18 < 45 == whole.info.n_signatures
    in_units_of_the_paper = 45 * 8  # the number of items times that of draws
    assert in_units_of_the_paper * merged.lower_bound == pytest.approx(
        in_units_of_the_paper * whole.lower_bound, abs=1e-3
    )
    assert merged.better_loss == pytest.approx(whole.better_loss, abs=1e-12)


def test_clear_clusters_are_proven_without_a_step():
    draws = noisy_draws(np.random.default_rng(4), 20, 120, 4, 0.25)
    best = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=4, progressbar=False)
    assert best.gap < 1e-9 and best.info.n_iter == 0 and best.info.lower_bounds[0] == best.lower_bound
    proof = certify(draws, best)
    assert (proof.status, proof.method, proof.better) == ("optimal", "multipliers in closed form", None)
    worse = np.where(np.arange(120) < 3, 0, best.labels)
    again = certify(draws, worse)
    assert again.status == "bounded" and again.better_loss == pytest.approx(best.expected_loss, abs=1e-12)
    assert reference.same(again.better.values, best.labels.values)


@pytest.mark.slow
def test_noisy_draws_of_300_items_are_proven():
    made = pc.simulate.random_perturbation(300, 6, n_draws=20, noise=0.45, random_seed=1)
    best = pc.consensus_partition(made.draws, loss="within_variance", method="sdp", n_clusters=6, progressbar=False)
    assert best.gap < 1e-5 and best.info.n_iter > 0
    k_means = pc.consensus_partition(
        made.draws, loss="within_variance", method="kcc", n_clusters=6, random_seed=1, progressbar=False
    )
    assert best.expected_loss <= k_means.expected_loss + 1e-12


def test_as_tight_as_the_best_of_many_k_means():
    for seed in range(3):
        draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(seed), 20, 40, 5, 0.6))
        best = pc.consensus_partition(draws, loss="within_variance", method="sdp", n_clusters=5, progressbar=False)
        k_means = pc.consensus_partition(
            draws, loss="within_variance", method="kcc", n_clusters=5, n_starts=50, random_seed=1
        )
        assert best.lower_bound <= best.expected_loss <= k_means.expected_loss * (1 + 1e-3)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    n_items = draws.shape[1]
    for partition in (draws[0], np.zeros(n_items, int), np.arange(n_items)):
        proof = certify(draws, partition)
        assert 0 <= proof.lower_bound <= proof.better_loss <= proof.expected_loss
        assert proof.expected_loss == pytest.approx(reference.sum_of_squares(partition, draws), abs=1e-12)
        assert proof.gap < 1e-9 or proof.better is not None or proof.lower_bound > 0


def test_a_matrix_that_is_no_share_of_draws():
    values = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])  # not positive semidefinite
    assert np.linalg.eigvalsh(values)[0] < 0
    pairs = pc.as_pair_similarity(values)
    partitions = np.array(list(reference.partitions(3)))
    losses = pc.expected_loss(pairs, partitions, loss="within_variance")["expected_loss"].values
    for k in (1, 2):
        proof = certify(pairs, partitions[partitions.max(axis=1) + 1 == k][0])
        assert proof.lower_bound <= losses[partitions.max(axis=1) + 1 == k].min() + 1e-12


@pytest.mark.parametrize("total", [0, 1, 2, 5, 6, 9])
def test_capped_simplex(total):
    for seed in range(20):
        values = np.sort(np.random.default_rng(seed).normal(scale=2, size=6))
        found = sdp.capped_simplex(values, total)
        assert found.sum() == pytest.approx(min(total, 6), abs=1e-9) and found.min() >= 0 and found.max() <= 1
        inside = (found > 1e-9) & (found < 1 - 1e-9)
        shift = (values - found)[inside]
        assert np.ptp(shift) < 1e-9 if shift.size else True
        if 0 < inside.sum():
            assert np.all(values[found == 0] <= shift[0] + 1e-9) and np.all(values[found == 1] >= shift[0] + 1 - 1e-9)


def test_on_the_user_s_items_and_back():
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(5), 20, 12, 3, 0.5))
    proof = certify(draws, [0, 1, 2] * 4)
    back = pc.Certificate.from_dataset(proof.to_dataset())
    assert back.loss == within_variance() and back.info == proof.info and back.lower_bound == proof.lower_bound
    assert "within_variance" in repr(proof) and proof.better is not None


def test_the_number_of_clusters_must_be_given():
    draws = noisy_draws(np.random.default_rng(6), 10, 8, 3, 0.3)
    check(
        lambda v: pc.consensus_partition(draws, loss=v),
        "within_variance",
        ValueError,
        ["'within_variance' needs `n_clusters` or `max_clusters`"],
    )
    with pytest.raises(ValueError, match="'within_variance' needs `n_clusters`"):
        pc.loss_by_n_clusters(draws, loss="within_variance")
    by_number = pc.loss_by_n_clusters(draws, loss="within_variance", n_clusters=range(1, 5), random_seed=1)
    assert np.all(np.diff(by_number.table["expected_loss"]) < 0)
    for method in ("greedy", "sdp", "kcc", "hierarchical"):
        assert (
            pc.consensus_partition(
                draws, loss="within_variance", method=method, max_clusters=3, random_seed=1
            ).n_clusters
            == 3
        )


def test_numbers_of_clusters_that_were_tried():
    truth = np.repeat(np.arange(3), 10)
    rng = np.random.default_rng(7)
    draws = np.where(rng.random((30, 30)) < 0.15, rng.integers(4, size=(30, 30)), truth)
    best = pc.consensus_partition(draws, method="sdp", progressbar=False)
    assert reference.same(best.labels.values, truth) and best.lower_bound is None
    info = best.info
    assert info.n_clusters_tried == [1, 2, 3, 4] and len(info.objectives) == len(info.lower_bounds) == 4
    assert np.all(np.diff(info.objectives) < 0)
    gaps = 1 - np.array(info.lower_bounds) / info.objectives
    assert np.all(gaps >= -1e-12) and gaps[0] < 1e-9 and gaps[2] < 1e-9


@pytest.mark.parametrize(("seconds", "error"), [(0, ValueError), ("1", TypeError)])
def test_seconds(seconds, error):
    find = lambda v: pc.consensus_partition([[0, 0, 1]] * 3, loss="vi", method="sdp", seconds=v)  # noqa: E731
    check(find, seconds, error, ["`seconds` must be", str(seconds)])
    assert pc.consensus_partition([[0, 0, 1]] * 3, loss="vi", method="sdp", seconds=1.0).n_clusters == 2
