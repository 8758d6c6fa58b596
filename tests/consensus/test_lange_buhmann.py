from functools import partial

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.consensus import factors as implementation
from tests import reference
from tests.catalogue.posteriors import noisy_draws

find = partial(pc.consensus_partition, method="lange_buhmann", random_seed=1)


def em(pairs, start, n_iter):
    """The definition: responsibilities of every cluster for every pair; p(i, v) and the log-likelihoods."""
    n_items, n_clusters = start.shape
    p, conditional = start.sum(axis=0) / start.sum(), start / start.sum(axis=0)
    likelihoods = []
    for _ in range(n_iter + 1):
        joint = np.zeros((n_items, n_clusters))
        total = 0.0
        for i in range(n_items):
            for j in range(n_items):
                shares = p * conditional[i] * conditional[j]
                total += pairs[i, j] * np.log(shares.sum()) if pairs[i, j] > 0 else 0.0
                joint[i] += pairs[i, j] * shares / shares.sum()
        likelihoods.append(total)
        before = p * conditional
        p, conditional = joint.sum(axis=0), joint / joint.sum(axis=0)
    return before, likelihoods


@pytest.mark.parametrize("n_iter", [10, 25])
def test_iterations_follow_the_definition(n_iter):
    rng = np.random.default_rng(n_iter)
    pairs = reference.similarity(noisy_draws(rng, 12, 9, 3, 0.5), rng.exponential(size=12))
    pairs /= pairs.sum()
    start = rng.random((9, 3)) + 0.5
    found, info = implementation._fitted_by_em(pairs, start, n_iter, 1e-300)
    joint, likelihoods = em(pairs, start, n_iter)
    np.testing.assert_allclose(found, joint, rtol=1e-9, atol=1e-300)
    looks = [*range(0, n_iter, 10), n_iter]
    assert info.trace == pytest.approx([likelihoods[at] for at in looks], abs=1e-12)
    assert info.n_iter == n_iter and not info.converged


@pytest.mark.parametrize("weighted", [False, True])
def test_the_likelihood_only_rises_and_the_likeliest_labels_are_taken(weighted, monkeypatch):
    fits = []
    real = implementation._fitted_by_em
    monkeypatch.setattr(implementation, "_fitted_by_em", lambda *arguments: fits.append(real(*arguments)) or fits[-1])
    rng = np.random.default_rng(1)
    draws = noisy_draws(rng, 30, 50, 4, 0.5)
    weights = rng.exponential(size=30) if weighted else None
    best = find(pc.as_partition_draws(draws, weights=weights), n_clusters=4, n_starts=5)
    joint, info = max(fits, key=lambda one: one[1].objective)
    assert len(fits) == 5 and reference.same(best.labels.values, joint.argmax(axis=1))
    assert best.info.trace == info.trace and np.all(np.diff(info.trace) > -1e-13)
    assert best.info.objective == info.trace[-1] and best.info.n_iter == info.n_iter
    mixture = joint @ (joint / joint.sum(axis=0)).T
    similarity = reference.similarity(draws, weights)
    likelihood = np.sum(similarity / similarity.sum() * np.log(mixture))
    assert best.info.objective == pytest.approx(likelihood, abs=1e-12)


def test_the_end_is_told():
    draws = noisy_draws(np.random.default_rng(3), 30, 40, 4, 0.6)
    short, long = find(draws, n_clusters=4, max_iter=15), find(draws, n_clusters=4, max_iter=100_000)
    assert not short.info.converged and short.info.n_iter == 15 and len(short.info.trace) == 3
    assert long.info.converged and long.info.trace[-1] - long.info.trace[-2] <= 1e-7
    sooner = find(draws, n_clusters=4, max_iter=100_000, tol=1e-3)
    assert sooner.info.n_iter < long.info.n_iter


def test_labels_that_are_likeliest_for_no_item():
    for n_clusters in (2, 4):
        assert find(np.zeros((3, 4), int), n_clusters=n_clusters).n_clusters == n_clusters
