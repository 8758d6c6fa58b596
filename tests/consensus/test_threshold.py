import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings

import posterior_consensus as pc
from posterior_consensus.consensus import threshold as implementation
from posterior_consensus.consensus.selection import Candidate
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, around, noisy_draws
from tests.strategies import small_draws


def perturbed(seed, n_draws, n_items, n_labels, noise):
    """Draws of the random perturbation model around clusters of one size, and the truth."""
    rng, truth = np.random.default_rng(seed), np.arange(n_items) % n_labels
    return np.array([rng.permutation(n_labels)[row] for row in around(rng, truth, n_draws, noise)]), truth


def means(similarity, labels):
    """Mean similarity of the pairs together and of those apart, pair by pair."""
    kinds = {True: [], False: []}
    for i in range(len(labels)):
        for j in range(i):
            kinds[bool(labels[i] == labels[j])].append(similarity[i, j])
    return [float(np.mean(kind)) if kind else np.nan for kind in (kinds[True], kinds[False])]


@pytest.mark.parametrize(("noise", "tau"), [(0.45, 0.246), (0.55, 0.223), (0.65, 0.203)])
def test_model_of_random_perturbations(noise, tau):
    draws, truth = perturbed(1, 200, 120, 6, noise)
    found = pc.consensus.pair_threshold(draws, random_seed=1)
    assert found.tau == pytest.approx(tau, abs=0.002)
    noise = noise * (2 - noise)  # that two items are not both as they truly are
    assert found.within == pytest.approx(1 - noise * 5 / 6, abs=0.005)
    assert found.between == pytest.approx(noise / 6, abs=0.005)
    assert found.converged and reference.same(found.labels.values, truth)
    best = pc.consensus_partition(draws, loss="binder", tau="auto", random_seed=1)
    assert reference.same(best.labels.values, truth)
    assert pc.consensus_partition(draws, loss="binder", random_seed=1).n_clusters > 100


def test_of_many_pairs_some_are_looked_at_for_the_start(monkeypatch, rng):
    monkeypatch.setattr(implementation, "_PAIRS", 200)
    draws = noisy_draws(rng, 40, 30, 3, 0.5)
    found = implementation._sampled_similarities(pc.as_partition_draws(draws), rng)
    every = reference.similarity(draws)[np.triu_indices(30, 1)]  # below 1, unlike that of an item with itself
    assert found.size == 200 and np.isin(found.round(12), every.round(12)).all()
    assert found.mean() == pytest.approx(every.mean(), abs=3 * every.std() / np.sqrt(200))


def test_many_clusters_are_few_of_the_pairs():
    draws, truth = perturbed(2, 100, 240, 40, 0.4)  # more pairs than are looked at for the start
    assert reference.same(pc.consensus.pair_threshold(draws, random_seed=1).labels.values, truth)


def test_the_text_for_a_paper_has_it():
    draws, _ = perturbed(1, 40, 12, 3, 0.3)
    summary = pc.summarize(draws, loss="binder", tau="auto", modes=False, random_seed=1, progressbar=False)
    tau = summary.partition.threshold.tau
    assert f"at a pair threshold of {tau:.3g}, calibrated on the same draws, " in summary.methods_text()


@pytest.mark.parametrize("weighted", [False, True])
def test_fixed_point_of_the_definition(weighted):
    rng = np.random.default_rng(3)
    draws = noisy_draws(rng, 40, 30, 3, 0.5)
    weights = rng.exponential(size=40) if weighted else None
    data = pc.as_partition_draws(draws, weights=weights)
    found = pc.consensus.pair_threshold(data, random_seed=1)
    expected = means(reference.similarity(draws, weights), found.labels.values)
    assert [found.within, found.between] == pytest.approx(expected, abs=1e-12)
    a, b = found.within, 1 - found.between
    assert found.tau == pytest.approx(np.log(b / (1 - a)) / np.log(a * b / ((1 - a) * (1 - b))), abs=1e-12)
    best = pc.consensus_partition(data, loss="binder", tau=found.tau, random_seed=1)
    assert reference.same(best.labels.values, found.labels.values)


def test_probabilities_count():
    rng = np.random.default_rng(8)
    p = 0.6 * rng.dirichlet([0.3] * 3, size=(20, 24)) + 0.4 * np.eye(3)[np.arange(24) % 3]
    soft = pc.as_allocation_probabilities(p, weights=rng.exponential(size=20))
    found = pc.consensus.pair_threshold(soft, random_seed=1)
    expected = means(pc.posterior_similarity_matrix(soft).values, found.labels.values)
    assert [found.within, found.between] == pytest.approx(expected, abs=1e-12)
    best = pc.consensus_partition(soft, loss="binder", tau="auto", random_seed=1)
    assert [best.threshold.within, best.threshold.between] == pytest.approx(expected, abs=1e-12)


def test_rounds_that_run_out_are_told(monkeypatch):
    draws = perturbed(1, 60, 60, 6, 0.45)[0]
    rounds = pc.consensus.pair_threshold(draws, random_seed=1).n_rounds
    assert rounds > 1
    monkeypatch.setattr(implementation, "_MOST_ROUNDS", rounds - 1)
    found = pc.consensus.pair_threshold(draws, random_seed=1)
    assert not found.converged and found.n_rounds == rounds - 1 and "not converged" in repr(found)


def test_start_is_halfway_between_two_means():
    x = np.random.default_rng(4).random(9)
    cuts = [(np.sort(x)[:k], np.sort(x)[k:]) for k in range(1, 9)]
    low, high = min(cuts, key=lambda groups: sum(np.sum((g - g.mean()) ** 2) for g in groups))
    assert implementation._first_threshold(x) == pytest.approx((low.mean() + high.mean()) / 2, abs=1e-12)


@given(draws=small_draws())
@settings(max_examples=15)
def test_an_optimum_has_its_threshold_between_the_means(draws):
    for tau in (0.2, 0.5, 0.7):
        best = pc.consensus_partition(draws, loss="binder", method="enumeration", tau=tau)
        within, between = means(reference.similarity(draws), best.labels.values)
        assert np.isnan(within) or within >= tau - 1e-12
        assert np.isnan(between) or between <= tau + 1e-12
        found = [best.threshold.within, best.threshold.between]
        assert found == pytest.approx([within, between], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_draws(name):
    draws = DEGENERATE[name]
    found = pc.consensus.pair_threshold(draws, random_seed=1)
    assert found.tau == pytest.approx(0.5)  # all pairs are alike, or surely together and surely apart
    expected = means(reference.similarity(draws), found.labels.values)
    assert [found.within, found.between] == pytest.approx(expected, nan_ok=True)
    assert found.converged == (name in ("one draw", "equal draws"))
    best = pc.consensus_partition(draws, loss="binder", tau="auto", random_seed=1)
    plain = pc.consensus_partition(draws, loss="binder", random_seed=1)
    assert best.expected_loss == pytest.approx(plain.expected_loss) and best.threshold.tau == found.tau
    assert repr(found).startswith("PairThreshold: tau 0.5\n") and "nan" not in repr(found)
    assert "tau 0.5 (consistent: " in repr(best) and "tau 0.5 (consistent: " in best._repr_html_()


def test_certain_pairs_beside_uncertain_ones():
    """Pairs that no draw parts have the odds of half a draw, so that tau stays below 1."""
    draws = np.array([[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]])
    found = pc.consensus.pair_threshold(draws, random_seed=1)
    assert (found.within, found.between) == pytest.approx((1, 0.2))
    a, b = 1 - 1 / 12, 0.8
    assert found.tau == pytest.approx(np.log(b / (1 - a)) / np.log(a * b / ((1 - a) * (1 - b))))
    more = pc.as_partition_draws(np.repeat(draws, 3, axis=0), weights=[1, 0, 0] * 5)
    assert pc.consensus.pair_threshold(more, random_seed=1).tau == pytest.approx(found.tau)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_threshold_of_consensus_is_that_of_the_loss(tau):
    draws = noisy_draws(np.random.default_rng(5), 25, 12, 3, 0.4)
    one = pc.consensus_partition(draws, loss="Binder", tau=tau, random_seed=1)
    other = pc.consensus_partition(draws, loss=pc.binder(2 * (1 - tau)), random_seed=1)
    xr.testing.assert_identical(one.labels, other.labels)
    assert one.expected_loss == pytest.approx(other.expected_loss, abs=1e-15)
    assert one.loss.name == other.loss.name
    assert one.threshold.tau == tau and other.threshold is None
    within, between = means(reference.similarity(draws), one.labels.values)
    if one.n_clusters in (1, 12):
        assert f"tau {tau} (consistent: unknown" in repr(one)
    else:
        assert f"tau {tau} (consistent: {between:.2g} to {within:.2g})" in repr(one)


def test_a_partition_against_the_draws_has_no_consistent_threshold():
    def crossed(draws, loss, task):
        return Candidate(np.array([0, 1, 0, 1]))

    found = pc.consensus_partition([[0, 0, 1, 1]] * 3, loss="binder", method=crossed, tau=0.3)
    assert "tau 0.3 (consistent: none: pairs of different clusters" in " ".join(repr(found).split())


def test_result_shows_where_the_threshold_lies():
    found = pc.consensus.pair_threshold(perturbed(1, 200, 60, 6, 0.45)[0], random_seed=1)
    assert repr(found).splitlines()[0] == f"PairThreshold: tau {found.tau:.4g}"
    assert f"{found.between:.2g} to {found.within:.2g}" in repr(found)
    share = (found.tau - found.between) / (found.within - found.between)
    assert f"{share:.0%} into the interval" in repr(found) and f"{share:.0%} into the interval" in found._repr_html_()
    table = found.to_dataframe()
    assert table["pairs"].to_list() == [6 * 45, 60 * 59 // 2 - 6 * 45]
    assert table["similarity"].to_list() == [found.within, found.between]
