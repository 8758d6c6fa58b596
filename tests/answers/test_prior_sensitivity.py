"""The consensus under other priors, against enumeration and against what ArviZ's groups hold."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from benchmarks.prior_sensitivity import log_likelihoods
from posterior_consensus.ensemble.partitions import enumerate_partitions

PRIOR = pc.priors.crp(3.0)
OTHERS = {"a = 1": pc.priors.crp(1.0), "a = 5": pc.priors.crp(5.0), "py": pc.priors.pitman_yor(1.0, 0.3)}
QUIET = {"random_seed": 1, "progressbar": False}
PARTITIONS = np.vstack(list(enumerate_partitions(7)))


def exact(prior):
    weights = np.exp(prior.log_prob(PARTITIONS).values + log_likelihoods(PARTITIONS))
    return weights / weights.sum()


@pytest.fixture(scope="module")
def draws():
    rows = np.random.default_rng(5).choice(len(PARTITIONS), 4000, p=exact(PRIOR))
    return pc.as_partition_draws(PARTITIONS[rows].reshape(4, 1000, 7))


@pytest.fixture(scope="module")
def found(draws):
    return pc.prior_sensitivity(draws, PRIOR, alternatives=OTHERS, **QUIET)


@pytest.mark.parametrize("name", OTHERS)
def test_numbers_are_those_of_enumeration(found, name):
    row, weights = found.table.sel(alternative=name), exact(OTHERS[name])
    clusters = PARTITIONS.max(axis=1) + 1
    assert abs(row["n_clusters"] - weights @ clusters) < 4 * row["n_clusters_mcse"]
    best = found.partitions.sel(alternative=name).values
    losses = [np.array([pc.partition_loss(one, z) for z in PARTITIONS]) for one in (found.reference.values, best)]
    assert abs(row["excess_loss"] - weights @ (losses[0] - losses[1])) <= 4 * row["excess_mcse"] + 1e-12
    assert abs(row["expected_loss"] - weights @ losses[0]) < 0.05
    assert row["n_moved"] == len(found.moved[name])
    assert row["partition_clusters"] == best.max() + 1


def test_a_row_is_what_reweighted_draws_give(draws, found):
    ratio = OTHERS["a = 5"].log_prob(draws) - PRIOR.log_prob(draws)
    other = pc.reweight(draws, ratio)
    row = found.table.sel(alternative="a = 5")
    expected = pc.expected_loss(other, [found.reference, found.partitions.sel(alternative="a = 5")])
    difference = expected["expected_loss"][0] - expected["expected_loss"][1]
    assert row["excess_loss"].item() == pytest.approx(difference.item(), abs=1e-12)
    assert row["effective_draws"].item() == pytest.approx(other.samples.effective_draws)
    assert found.table["concentration"].values == pytest.approx([1, 5, np.nan], nan_ok=True)


def test_where_the_draws_cannot_tell_there_are_no_numbers(draws):
    found = pc.prior_sensitivity(draws, PRIOR, alternatives={"far": pc.priors.crp(1e6), **OTHERS}, **QUIET)
    row = found.table.sel(alternative="far")
    assert np.isnan(row["n_clusters"]) and np.isnan(row["excess_loss"]) and row["pareto_k"] > 0.7
    assert np.all(found.partitions.sel(alternative="far") == -1) and "far" not in found.moved
    assert "The draws cannot tell what holds under far" in found.verdict
    alone = pc.prior_sensitivity(draws, PRIOR, alternatives={"far": pc.priors.crp(1e6)}, **QUIET)
    assert alone.verdict == "The draws cannot tell what holds under far: sample under it."
    few = pc.prior_sensitivity([[0, 0, 1], [0, 1, 1]], PRIOR, **QUIET)
    assert not few.can_tell.any()


def test_verdict_names_the_prior_that_the_partition_depends_on():
    two, one = [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]
    draws = [two] * 60 + [one] * 40
    found = pc.prior_sensitivity(np.tile(draws, (5, 1)), PRIOR, alternatives={"few": pc.priors.crp(0.1)}, **QUIET)
    assert found.verdict.startswith("The partition depends on the prior: under few it loses 0.905 bits")
    assert found.verdict.endswith("more; 3 of 6 items change clusters.")
    same = pc.prior_sensitivity(draws, PRIOR, alternatives={"same": PRIOR}, **QUIET)
    assert same.verdict == "The partition is the best one found under every alternative."
    judged = pc.prior_sensitivity(draws, PRIOR, alternatives={"same": PRIOR}, reference=one, **QUIET)
    assert judged.table["excess_loss"].item() == pytest.approx(0.2, abs=1e-12)


def test_powers_of_the_prior_and_of_stored_groups(draws):
    found = pc.prior_sensitivity(draws, PRIOR, powers=(0.5, 1.5), **QUIET)
    assert found.table["alternative"].values.tolist() == ["prior^0.5", "prior^1.5"]
    weights = exact(PRIOR) * np.exp(-0.5 * PRIOR.log_prob(PARTITIONS).values)
    wanted = weights @ (PARTITIONS.max(axis=1) + 1) / weights.sum()
    row = found.table.sel(alternative="prior^0.5")
    assert abs(row["n_clusters"] - wanted) < 4 * row["n_clusters_mcse"]
    logs = PRIOR.log_prob(draws).values.reshape(4, 1000)
    dims = ("chain", "draw")
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({"z": ((*dims, "item"), draws.labels.reshape(4, 1000, 7))}),
            "log_prior": xr.Dataset({"z": ((*dims, "k"), np.stack([logs / 2, logs / 2], -1)), "b": (dims, 0 * logs)}),
            "log_likelihood": xr.Dataset({"y": ((*dims, "item"), 0 * draws.labels.reshape(4, 1000, 7) + 0.5)}),
        }
    )
    stored = pc.prior_sensitivity(tree, powers=(0.5, 1.5), **QUIET)
    assert stored.table["alternative"].values.tolist()[2:] == ["likelihood^0.5", "likelihood^1.5"]
    np.testing.assert_allclose(stored.table["n_clusters"][:2], found.table["n_clusters"], rtol=1e-9)
    assert np.all(stored.table["excess_loss"][2:] == 0)
    own = pc.prior_sensitivity(tree, "b", **QUIET)
    assert own.table["pareto_k"].values[:2].tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="names of variables of the group log_prior if `draws` have one; got None"):
        pc.prior_sensitivity(tree["posterior"].to_dataset(), **QUIET)
    with pytest.raises(ValueError, match="`prior` must name variables of log_prior; got 'c', present: 'z', 'b'"):
        pc.prior_sensitivity(tree, ["c"], **QUIET)
    with pytest.raises(ValueError, match="`group` must name a group of the data; got 'log_prior'"):
        pc.prior_sensitivity(xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()}), **QUIET)


def test_sticks_weigh_labels_as_they_were_sampled(rng):
    labels = np.where(rng.random((400, 8)) < 0.7, np.repeat([0, 1], 4), rng.integers(4, size=(400, 8)))
    prior, other = (pc.priors.stick_breaking(a, 4) for a in (1.0, 1.5))
    found = pc.prior_sensitivity(labels, prior, alternatives={"more": other}, **QUIET)
    weighted = pc.reweight(labels, other.log_prob(labels) - prior.log_prob(labels))
    assert found.table["n_clusters"].item() == pytest.approx(weighted.samples.mean(weighted.n_clusters), rel=1e-12)
    with pytest.raises(ValueError, match="must be priors on labels if `prior` is one.* take priors.crp for stick"):
        pc.prior_sensitivity(labels, prior, alternatives={"crp": PRIOR}, **QUIET)


def test_mistyped_arguments_and_impossible_draws(draws):
    for options, error, words in [
        ({"alternatives": {"a": 2.0}}, TypeError, "must hold priors such as priors.crp.* got 2.0 for 'a'"),
        ({"alternatives": [PRIOR]}, TypeError, "`alternatives` must be a dict of priors by name; got list"),
        ({"powers": (0,)}, ValueError, "`powers` must be a finite number above 0"),
        ({"prior": 2.0}, TypeError, r"`prior` must be a PartitionPrior such as priors.crp\(1.0\).* got 2.0"),
        ({"prior": None}, TypeError, "names of variables of the group log_prior"),
        ({"prior": pc.priors.dirichlet_multinomial(1.0, 2)}, ValueError, "`prior` must allow every draw; under diri"),
        ({"alternatives": {"a": PRIOR}, "loss": "zz"}, ValueError, "`loss` must be"),
    ]:
        with pytest.raises(error, match=words):
            pc.prior_sensitivity(draws, **({"prior": PRIOR} | options), **QUIET)


def test_one_cluster_and_many_small_ones(rng):
    one = pc.prior_sensitivity(np.zeros((100, 5), int), PRIOR, alternatives={"b": pc.priors.crp(5.0)}, **QUIET)
    assert one.table["excess_loss"].item() == 0 and one.table["n_clusters"].item() == 1
    many = np.where(rng.random((200, 60)) < 0.05, rng.integers(60, size=(200, 60)), np.arange(60))
    found = pc.prior_sensitivity(
        many, pc.priors.crp(30.0), alternatives={"c": pc.priors.crp(32.0)}, n_starts=1, **QUIET
    )
    assert found.can_tell.all() and found.table["n_clusters"].item() > 50
