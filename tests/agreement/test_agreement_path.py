"""Chains pulled together by a price: search noise goes early, modes of their own stay."""

from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from sklearn.metrics import adjusted_rand_score

import posterior_consensus as pc
from posterior_consensus.agreement.path import EARLY
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import array, check, check_all

NOISY = pc.binder(tau=0.21)  # suits the draws below
path_of = partial(pc.agreement.agreement_path, random_seed=1, progressbar=False)


def noisy_chains(truths, length, seed=0):
    """Few draws of a truth in each chain."""
    rng = np.random.default_rng(seed)
    options = {"n_draws": length, "noise": 0.45, "random_seed": rng}
    made = [pc.simulate.random_perturbation(len(truth), 6, truth=truth, **options) for truth in truths]
    return np.stack([one.draws.labels for one in made])


def mean_ari(labels, truth):
    return np.mean([adjusted_rand_score(truth, one) for one in labels])


def test_search_noise_goes_early(approved):
    truth = np.random.default_rng(1).integers(6, size=60)
    path = path_of(noisy_chains([truth] * 6, 6), loss=NOISY, prices=[0.5])
    agreement = path.table["averaged_jaccard"]
    assert float(agreement[0]) < 0.55 and float(agreement.sel(price=0.5)) > 0.95
    assert mean_ari(path.labels.sel(price=0).values, truth) < 0.85
    assert mean_ari(path.labels.sel(price=0.5).values, truth) > 0.95
    assert path.status == "search noise" and path.groups == [list(range(6))]
    approved("verdicts_agreement", "search noise", path.verdict)


def test_chains_in_two_modes_stay_apart_until_a_price_near_1(approved):
    truths = np.random.default_rng(0).integers(6, size=(2, 100))
    draws = noisy_chains(truths.repeat(3, axis=0), 30)
    path = path_of(draws, loss=NOISY)
    agreement = path.table["averaged_jaccard"].sel(price=slice(0, 0.8)).values
    assert np.ptp(agreement) < 0.03 and agreement.max() < 0.55
    assert float(path.table["averaged_jaccard"].sel(price=2.0)) == 1.0
    assert path.status == "different modes" and path.groups == [[0, 1, 2], [3, 4, 5]]
    early = path.labels.sel(price=EARLY).values
    assert mean_ari(early[:3], truths[0]) > 0.95 and mean_ari(early[3:], truths[1]) > 0.95
    approved("verdicts_agreement", "chains in different modes", path.verdict)
    stuck = path_of([*draws[:2], draws[3, :1].repeat(30, axis=0)], loss=NOISY, prices=[0.5])
    assert stuck.groups == [[0, 1], [2]]
    approved("verdicts_agreement", "analyses in different modes, one stuck", stuck.verdict)
    approved("verdicts_agreement", "agreement of chains", path_of(draws[:2], loss=NOISY, prices=[0.5]).verdict)


def slow_chains(seed):
    """Four chains of 250 draws around two partitions of 20 items; each stays at one with probability 0.98."""
    rng = np.random.default_rng(seed)
    at = (rng.integers(2, size=(4, 1)) + np.cumsum(rng.random((4, 250)) < 0.02, axis=1)) % 2
    modes, noisy = np.stack([np.arange(20) // 5, np.arange(20) % 4]), rng.random((4, 250, 20)) < 0.15
    return np.where(noisy, rng.integers(4, size=noisy.shape), modes[at])


def test_chains_that_visit_both_modes_are_not_in_different_ones(approved):
    draws = slow_chains(4)
    path = path_of(draws, prices=[0.5])
    assert len(path.groups) == 2 and path.status == "shared modes"
    early = path.labels.sel(price=EARLY).values
    nearest = np.array([[np.argmin([reference.vi(one, z) for one in early]) for z in chain[::25]] for chain in draws])
    assert np.all((nearest == 0).any(axis=1) & (nearest == 2).any(axis=1))  # the partitions of the two groups
    np.testing.assert_allclose(path.visits.sum("partition"), 1.0)
    approved("verdicts_agreement", "chains that share modes", path.verdict)
    assert pc.results.AgreementPath.from_dataset(path.to_dataset()).verdict == path.verdict
    between = path_of(slow_chains(9), prices=[0.5])  # the partition of chain 3 lies between the modes
    assert float(between.visits.max("chain")[3]) < 0.05 and between.status == "shared modes"


@pytest.mark.slow
def test_slow_mixing_between_two_modes_is_seldom_called_different_modes():
    found = [path_of(slow_chains(seed), prices=[0.25]).status for seed in range(25)]
    assert found.count("different modes") <= 2


@pytest.mark.parametrize("loss", ["vi", "binder", pc.binder(a=1.4), pc.vi(a=0.6), "nvi"])
def test_the_objective_is_the_definition_and_never_rises(loss):
    rng = np.random.default_rng(3)
    chains = [noisy_draws(rng, 7, 9, 3, 0.4) for _ in range(3)]
    weights = [rng.exponential(size=7) for _ in range(3)]
    draws = [pc.as_partition_draws(one, weights=w) for one, w in zip(chains, weights, strict=True)]
    path = path_of(draws, loss=loss, **({} if loss == "vi" else {"prices": [0.5, 1.0, 2.0]}))
    between, prices = reference.LOSSES[path.loss.name.partition("(")[0]], path.table["price"].values

    def objective(price, estimates):
        own = sum(
            float(pc.expected_loss(one, x, loss=loss)["expected_loss"]) for one, x in zip(draws, estimates, strict=True)
        )
        pairs = sum(between(estimates[i], estimates[j]) for i in range(3) for j in range(i))
        return (own + price / 2 * pairs) / 3

    for at, price in enumerate(prices):
        now = objective(price, path.labels.values[at])
        assert float(path.table["objective"][at]) == pytest.approx(now, abs=1e-12)
        if at:
            assert now <= objective(price, path.labels.values[at - 1]) + 1e-10
    if path.loss.parameters.get("a", 1) == 1:
        for at, c in product((0, -1), range(3)):
            expected = reference.expected(path.labels.values[at, c], chains[c], between, weights[c])
            assert float(path.table["own_loss"][at, c]) == pytest.approx(expected, abs=1e-12)
    assert float(path.table["disagreement"][-1]) <= float(path.table["disagreement"][0]) + 1e-12


def test_threads_and_a_matrix_that_does_not_fit_do_not_matter(monkeypatch):
    draws = noisy_chains([np.arange(20) % 6] * 3, 5, seed=1)
    found = path_of(draws, loss=NOISY, prices=[0.5])
    monkeypatch.setattr("posterior_consensus.runtime.executor.n_threads", lambda: 1)
    xr.testing.assert_identical(path_of(draws, loss=NOISY, prices=[0.5]).to_dataset(), found.to_dataset())
    monkeypatch.setattr("posterior_consensus.agreement.path.memory", SimpleNamespace(fits=lambda size: False))
    by_draws = path_of(draws, loss=NOISY, prices=[0.5])
    np.testing.assert_allclose(by_draws.table["objective"], found.table["objective"], rtol=0.03)


def test_analyses_by_name_over_the_same_items(approved):
    rng = np.random.default_rng(2)
    names = list("abcdefgh")
    one = array(noisy_draws(rng, 10, 8, 2, 0.1), ("sample", "obs"), obs=names)
    path = path_of({"mine": one, "yours": one.isel(obs=rng.permutation(8))}, loss="binder")
    assert path.names == ("mine", "yours") and float(path.table["averaged_jaccard"][0]) == 1.0
    assert path.labels["obs"].values.tolist() == names and not path.of_chains
    approved("verdicts_agreement", "agreement of analyses", path.verdict)
    pairs = [pc.as_pair_similarity(pc.posterior_similarity_matrix(one)), one]
    assert path_of(pairs, loss="binder").status == "agreement"
    with pytest.raises(ValueError, match="needs posterior draws"):
        path_of(pairs)


def test_chains_of_one_cluster_and_those_without_weight(approved):
    z = xr.DataArray(np.arange(90).reshape(3, 5, 6) % 5 % 2, {"chain": [2, 4, 9]}, ("chain", "draw", "obs"))
    path = path_of(pc.as_partition_draws(z, weights=np.repeat([1.0, 0.0, 1.0], 5)), prices=[0.5])
    assert path.names == (2, 9) and path.of_chains and path.table["price"].values.tolist() == [0.0, 0.25, 0.5]
    approved("verdicts_agreement", "one cluster", path_of(np.zeros((2, 4, 5), int)).verdict)
    assert path_of(np.zeros((2, 4, 1), int)).status == "agreement"


LOPSIDED = pc.losses.PartitionLoss("mine", "B - A", pc.losses.vi().h, {"A": -1.0, "B": 1.0})


def test_what_is_refused():
    cases = [
        ({"prices": [-1]}, ValueError, "`prices`", "finite", "-1"),
        ({"prices": [np.inf]}, ValueError, "`prices`", "finite", "inf"),
        ({"prices": "low"}, TypeError, "`prices` must be numbers"),
        ({"n_starts": 0}, ValueError, "`n_starts`", "at least 1; got 0"),
        ({"loss": LOPSIDED}, ValueError, "`loss` must be symmetric", "'mine'"),
    ]
    check_all(lambda options: path_of(np.zeros((2, 2, 2), int), **options), cases)
    check(path_of, [[0, 1], [0, 0]], ValueError, ["`draws` must have at least two chains", "list", "got 1"])
    check(path_of, [[[0, 1]], [[0, 1, 1]]], ValueError, ["`draws` must label the same 2 items; got 3"])
