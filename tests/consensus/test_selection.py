"""Which numbers of clusters are tried."""

from dataclasses import dataclass

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus.selection import Candidate, Task, best_number
from posterior_consensus.losses import vi
from posterior_consensus.results.work import NumbersInfo
from posterior_consensus.sources.conversion import as_partition_draws
from tests import reference
from tests.catalogue.posteriors import around, noisy_draws

RNG = np.random.default_rng(1)
TRYING = ["basic", "spectral", "kcc", "lange_buhmann"]


def first_items_alone(n_clusters, n_items=600):
    """The first items on their own, all others together."""
    return np.minimum(np.arange(n_items), n_clusters - 1).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class Told(NumbersInfo):
    k: int


def search(truth, most, loss=None):
    """The candidate found for draws that are sure, and the numbers of clusters in the order they were fitted."""
    fitted = []

    def fit(k):
        fitted.append(k)
        return Candidate(first_items_alone(k), Told(k=k))

    draws = as_partition_draws([first_items_alone(truth)])
    return best_number(draws, loss or vi(), Task(RNG, max_clusters=most), fit, title=""), fitted


def test_every_number_up_to_thirty_is_tried_once():
    for most in (1, 2, 29, 30):
        found, fitted = search(12, most)
        assert fitted == found.info.n_clusters_tried == list(range(1, most + 1))
        assert found.info.k == min(12, most) == found.labels.max() + 1


@pytest.mark.parametrize(
    ("truth", "most"),
    [(1, 600), (2, 31), (7, 60), (9, 200), (30, 31), (31, 60), (31, 600), (97, 200), (333, 60), (333, 600), (600, 600)],
)
def test_of_many_numbers_few_are_tried(truth, most):
    found, fitted = search(truth, most)
    assert len(fitted) == len(set(fitted)) <= 30
    wanted = min(truth, most)
    assert abs(found.info.k - wanted) <= wanted // 30
    assert found.info.n_clusters_tried == sorted(fitted) and {1, most} <= set(fitted)
    tried = [first_items_alone(k) for k in sorted(fitted)]
    losses = pc.expected_loss([first_items_alone(truth)], tried, loss="vi")["expected_loss"]
    assert found.info.expected_losses == losses.values.tolist()


def test_the_smaller_of_equally_good_numbers_wins():
    draws = as_partition_draws(np.zeros((2, 50), int))

    def fit(k):
        return Candidate(np.zeros(50, np.int32), Told(k=k))

    found = best_number(draws, vi(), Task(RNG, max_clusters=50), fit, title="")
    assert found.info.k == 1


def test_starts_are_fewer_where_each_takes_longer():
    assert [Task(RNG).effort(10, k) for k in (1, 30, 31, 60, 100, 500)] == [10, 10, 9, 5, 3, 1]
    assert Task(RNG, n_clusters=100).effort(10, 100) == 10


@pytest.mark.parametrize("method", TRYING)
def test_clear_clusters_are_found_with_their_number(method):
    rng = np.random.default_rng(2)
    truth = rng.integers(4, size=60)
    best = pc.consensus_partition(around(rng, truth, 80, 0.15), method=method, random_seed=1, progressbar=False)
    assert reference.same(best.labels.values, truth)
    assert best.info.n_clusters_tried == [1, 2, 3, 4] and len(best.info.expected_losses) == 4


@pytest.mark.parametrize("method", ["align_and_vote", "rpm_em", "cspa", "mcla", "hbgf", "nmf", *TRYING])
def test_noisy_copies_of_a_partition(method):
    made = pc.simulate.random_perturbation(120, 4, n_draws=60, noise=0.4, random_seed=3)
    found = pc.consensus_partition(made.draws, method=method, n_clusters=4, random_seed=1, progressbar=False)
    assert pc.partition_loss(found, made.truth, loss="one_minus_ari") < 0.05


@pytest.mark.parametrize("method", TRYING)
def test_methods_try_few_of_many_numbers(method):
    draws = noisy_draws(np.random.default_rng(1), 12, 90, 60, 0.1)
    best = pc.consensus_partition(draws, method=method, random_seed=1, progressbar=False)
    tried = best.info.n_clusters_tried
    assert len(tried) <= 30 < max(tried) == max(np.unique(draw).size for draw in draws)
    assert best.expected_loss == pytest.approx(min(best.info.expected_losses), abs=1e-12)
    assert best.expected_loss < pc.expected_loss(draws, np.arange(90))["expected_loss"]


@pytest.mark.parametrize("method", TRYING)
def test_all_items_alone_in_every_draw(method):
    best = pc.consensus_partition(np.tile(np.arange(80), (3, 1)), method=method, random_seed=1, progressbar=False)
    assert len(best.info.n_clusters_tried) <= 30
    if method != "lange_buhmann":  # EM does not get that far
        assert best.n_clusters == 80


def test_a_given_number_takes_all_starts(monkeypatch):
    import sklearn.cluster

    asked = []

    class Spy(sklearn.cluster.KMeans):
        def __init__(self, n_clusters, **options):
            asked.append((n_clusters, options["n_init"]))
            super().__init__(n_clusters, **options)

    monkeypatch.setattr(sklearn.cluster, "KMeans", Spy)
    draws = noisy_draws(np.random.default_rng(1), 6, 90, 70, 0.1)
    pc.consensus_partition(draws, method="basic", n_clusters=60, random_seed=1)
    assert asked == [(60, 10)]
    asked.clear()
    pc.consensus_partition(draws, method="basic", max_clusters=60, random_seed=1, progressbar=False)
    assert dict(asked)[60] == 5 and dict(asked)[8] == 10
