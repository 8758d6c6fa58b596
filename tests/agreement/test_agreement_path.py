"""Chains pulled together by a price: search noise goes early, modes of their own stay."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from sklearn.metrics import adjusted_rand_score

import posterior_consensus as pc
from posterior_consensus.agreement.record import EARLY
from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests import reference
from tests.catalogue.posteriors import noisy_draws
from tests.helpers import array

DATA = Path(__file__).parents[2] / "examples" / "data"
QUIET = {"random_seed": 1, "progressbar": False}


def stored_draws(name, variable=None):
    return pc.as_partition_draws(xr.load_dataset(DATA / f"{name}.nc", group="posterior", engine="h5netcdf"), variable)


def noisy_chains(seed=0, n_chains=6, length=6):
    """Few draws of one truth in every chain, with the threshold that suits them."""
    made = pc.simulate.random_perturbation(100, 6, n_draws=n_chains * length, noise=0.45, random_seed=seed)
    tau = pc.consensus.pair_threshold(made.draws, **QUIET).tau
    return made.draws.labels.reshape(n_chains, length, 100), made.truth, pc.binder(tau=tau)


def chains_in_two_modes(seed=0):
    rng = np.random.default_rng(seed)
    truths = rng.integers(6, size=(2, 100))
    draws = [
        pc.simulate.random_perturbation(
            100, 6, n_draws=30, noise=0.45, truth=truths[c // 3], random_seed=rng
        ).draws.labels
        for c in range(6)
    ]
    return np.stack(draws), truths


def mean_ari(labels, truth):
    return np.mean([adjusted_rand_score(truth, one) for one in labels])


def test_search_noise_goes_early():
    draws, truth, loss = noisy_chains()
    path = pc.agreement_path(draws, loss=loss, **QUIET)
    agreement = path.table["averaged_jaccard"]
    assert float(agreement[0]) < 0.55 and float(agreement.sel(price=0.5)) > 0.95
    assert mean_ari(path.labels.sel(price=0).values, truth) < 0.85
    assert mean_ari(path.labels.sel(price=0.5).values, truth) > 0.95
    assert path.status == "search noise" and path.groups == [list(range(6))]
    assert path.verdict.startswith("Search noise or few effective draws: a penalty weight of 0.25 raises")


def test_chains_in_two_modes_stay_apart_until_a_price_near_1():
    draws, truths = chains_in_two_modes()
    path = pc.agreement_path(draws, loss=pc.binder(tau=0.21), **QUIET)
    agreement = path.table["averaged_jaccard"].sel(price=slice(0, 0.8)).values
    assert np.ptp(agreement) < 0.03 and agreement.max() < 0.55
    assert float(path.table["averaged_jaccard"].sel(price=2.0)) == 1.0
    assert path.status == "different modes" and path.groups == [[0, 1, 2], [3, 4, 5]]
    early = path.labels.sel(price=EARLY).values
    assert mean_ari(early[:3], truths[0]) > 0.95 and mean_ari(early[3:], truths[1]) > 0.95
    assert path.verdict.startswith(
        "Chains in different modes, 0, 1, 2 against 3, 4, 5: a penalty weight of 0.25 changes"
    )


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_one_stuck_chain_of_a_posterior(loss):
    """The galaxies: four chains that mix, one of another sampler that has not converged, and one that never moves."""
    good, other = stored_draws("galaxies", "z"), stored_draws("galaxies_not_converged")
    chains = [good.isel(chain=c, draw=slice(None, None, 4)) for c in range(4)]
    for stuck in (other.isel(chain=1), other.isel(chain=0, draw=[0] * 50)):
        path = pc.agreement_path([*chains, stuck], loss=loss, prices=[0.5, 1.0], **QUIET)
        assert path.status == "different modes" and path.groups == [[0, 1, 2, 3], [4]]
        assert "Analyses in different modes, 0, 1, 2, 3 against 4" in path.verdict
    alone = pc.agreement_path(good, loss=loss, prices=[0.5], **QUIET)
    assert alone.status == "agreement" and alone.verdict.startswith("The chains agree")


@pytest.mark.parametrize("loss", ["vi", "binder", pc.binder(a=1.4), pc.vi(a=0.6), "nvi", "omari"])
def test_the_objective_is_the_definition_and_never_rises(loss):
    rng = np.random.default_rng(3)
    chains = [noisy_draws(rng, 9, 12, 3, 0.4) for _ in range(3)]
    weights = [rng.exponential(size=9) for _ in range(3)]
    draws = [pc.as_partition_draws(one, weights=w) for one, w in zip(chains, weights, strict=True)]
    prices = {} if loss == "vi" else {"prices": [0.25, 0.5, 1.0, 2.0]}
    path = pc.agreement_path(draws, loss=loss, **prices, **QUIET)
    name = path.loss.name.partition("(")[0]
    between, prices = reference.LOSSES[name], path.table["price"].values

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
    for c, (draws_of, w) in enumerate(zip(chains, weights, strict=True)):
        if "a" not in path.loss.parameters or path.loss.parameters["a"] == 1:
            for at in (0, -1):
                expected = reference.expected(path.labels.values[at, c], draws_of, between, w)
                assert float(path.table["own_loss"][at, c]) == pytest.approx(expected, abs=1e-12)
    assert float(path.table["disagreement"][-1]) <= float(path.table["disagreement"][0]) + 1e-12


def test_no_chain_alone_gains_at_the_end():
    """Every partition of six items is tried in place of one estimate, the others fixed."""
    rng = np.random.default_rng(5)
    chains = [pc.as_partition_draws(noisy_draws(rng, 5, 6, 3, 0.5)) for _ in range(3)]
    every = np.concatenate(list(enumerate_partitions(6)))
    path = pc.agreement_path(chains, loss="binder", prices=[0.3], **QUIET)
    estimates = path.labels.sel(price=0.3).values
    for c, draws in enumerate(chains):
        own = pc.expected_loss(draws, every, loss="binder")["expected_loss"].values
        others = pc.expected_loss(np.delete(estimates, c, axis=0), every, loss="binder")["expected_loss"].values
        at = int(np.flatnonzero((every == estimates[c]).all(axis=1))[0])
        assert own[at] + 0.3 * others[at] == pytest.approx((own + 0.3 * others).min(), abs=1e-12)


def test_names_of_clusters_and_threads_do_not_matter(monkeypatch):
    draws, _, loss = noisy_chains(1, 3, 5)
    renamed = np.array([[np.random.default_rng(9).permutation(20)[z] for z in chain] for chain in draws])
    found = pc.agreement_path(draws, loss=loss, **QUIET)
    xr.testing.assert_identical(pc.agreement_path(renamed, loss=loss, **QUIET).to_dataset(), found.to_dataset())
    monkeypatch.setattr("posterior_consensus.runtime.executor.n_threads", lambda: 1)
    xr.testing.assert_identical(pc.agreement_path(draws, loss=loss, **QUIET).to_dataset(), found.to_dataset())


def test_a_matrix_that_does_not_fit_changes_nothing_but_the_way(monkeypatch):
    draws, _, _ = noisy_chains(2, 3, 5)
    found = pc.agreement_path(draws[..., :20], loss="binder", **QUIET)
    monkeypatch.setattr("posterior_consensus.agreement.path.memory", SimpleNamespace(fits=lambda size: False))
    by_draws = pc.agreement_path(draws[..., :20], loss="binder", **QUIET)
    np.testing.assert_allclose(by_draws.table["objective"], found.table["objective"], rtol=0.03)


def test_analyses_by_name_over_the_same_items():
    rng = np.random.default_rng(2)
    names = list("abcdefgh")
    one = array(noisy_draws(rng, 10, 8, 2, 0.1), ("sample", "obs"), obs=names)
    order = rng.permutation(8)
    path = pc.agreement_path({"mine": one, "yours": one.isel(obs=order)}, loss="binder", **QUIET)
    assert path.names == ("mine", "yours") and float(path.table["averaged_jaccard"][0]) == 1.0
    assert path.labels["obs"].values.tolist() == names and not path.of_chains
    assert path.verdict.startswith("The analyses agree")
    pairs = [pc.as_pair_similarity(pc.posterior_similarity_matrix(one)), one]
    assert pc.agreement_path(pairs, loss="binder", **QUIET).status == "agreement"
    with pytest.raises(ValueError, match="needs posterior draws"):
        pc.agreement_path(pairs, **QUIET)


def test_chains_of_a_posterior_and_those_without_weight():
    rng = np.random.default_rng(4)
    z = xr.DataArray(rng.integers(2, size=(3, 5, 6)), {"chain": [2, 4, 9]}, ("chain", "draw", "obs"))
    path = pc.agreement_path(z, prices=[0.5], **QUIET)
    assert path.names == (2, 4, 9) and path.of_chains
    assert path.table["price"].values.tolist() == [0.0, 0.25, 0.5]
    weights = np.repeat([1.0, 0.0, 1.0], 5)
    assert pc.agreement_path(pc.as_partition_draws(z, weights=weights), **QUIET).names == (2, 9)


def test_one_cluster_is_no_agreement_to_be_proud_of():
    path = pc.agreement_path(np.zeros((2, 4, 5), int), **QUIET)
    assert path.verdict.startswith(
        "The chains agree on one cluster of all items, which carries no information about modes"
    )
    assert pc.agreement_path(np.zeros((2, 4, 1), int), **QUIET).status == "agreement"


@pytest.mark.parametrize(
    ("draws", "options", "error", "message"),
    [
        (
            [[0, 1], [0, 0]],
            {},
            ValueError,
            "`draws` must have at least two chains, or be a list of several analyses; got 1",
        ),
        ([[[0, 1]], [[0, 1, 1]]], {}, ValueError, "`draws` must label the same 2 items; got 3"),
        (np.zeros((2, 2, 2), int), {"prices": [-1]}, ValueError, "`prices` must be several finite numbers from 0"),
        (np.zeros((2, 2, 2), int), {"prices": [np.inf]}, ValueError, "`prices` must be several finite numbers from 0"),
        (np.zeros((2, 2, 2), int), {"prices": "low"}, TypeError, "`prices` must be numbers"),
        (np.zeros((2, 2, 2), int), {"n_starts": 0}, ValueError, "`n_starts` must be at least 1; got 0"),
    ],
)
def test_what_is_refused(draws, options, error, message):
    with pytest.raises(error, match=message):
        pc.agreement_path(draws, **options, **QUIET)


def test_a_loss_must_be_symmetric():
    lopsided = pc.losses.PartitionLoss("mine", "B - A", pc.losses.vi().h, {"A": -1.0, "B": 1.0})
    with pytest.raises(ValueError, match="`loss` must be symmetric, or binder or vi with any costs; got 'mine'"):
        pc.agreement_path(np.zeros((2, 2, 2), int), loss=lopsided)
