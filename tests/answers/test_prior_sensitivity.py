"""The consensus under other priors, against enumeration and against what ArviZ's groups hold."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from benchmarks.prior_sensitivity import log_likelihoods
from posterior_consensus.ensemble.partitions import enumerate_partitions
from tests.helpers import check

PRIOR = pc.priors.crp(3.0)
OTHERS = {"a = 1": pc.priors.crp(1.0), "a = 5": pc.priors.crp(5.0), "py": pc.priors.pitman_yor(1.0, 0.3)}
QUIET = {"random_seed": 1, "progressbar": False}
PARTITIONS = np.vstack(list(enumerate_partitions(7)))


def exact(prior):
    weights = np.exp(prior.log_prob(PARTITIONS).values + log_likelihoods(PARTITIONS))
    return weights / weights.sum()


@pytest.fixture(scope="module")
def draws():
    rows = np.random.default_rng(5).choice(len(PARTITIONS), 2000, p=exact(PRIOR))
    return pc.as_partition_draws(PARTITIONS[rows].reshape(4, 500, 7))


@pytest.fixture(scope="module")
def found(draws):
    return pc.prior_sensitivity(draws, PRIOR, alternatives=OTHERS, **QUIET)


def test_numbers_are_those_of_enumeration(found):
    def losses_of(partition):
        return np.array([pc.partition_loss(partition, z) for z in PARTITIONS])

    of_partition = losses_of(found.partition.values)
    for name, prior in OTHERS.items():
        row, weights = found.table.sel(alternative=name), exact(prior)
        assert abs(row["n_clusters"] - weights @ (PARTITIONS.max(axis=1) + 1)) < 4 * row["n_clusters_mcse"]
        best = found.partitions.sel(alternative=name).values
        excess = weights @ (of_partition - losses_of(best))
        assert abs(row["excess_loss"] - excess) <= 4 * row["excess_mcse"] + 1e-12
        assert abs(row["expected_loss"] - weights @ of_partition) < 0.05
        assert row["n_moved"] == len(found.moved[name])
        assert row["partition_clusters"] == best.max() + 1


def test_a_row_is_what_reweighted_draws_give(draws, found):
    other = pc.reweight(draws, OTHERS["a = 5"].log_prob(draws) - PRIOR.log_prob(draws))
    row = found.table.sel(alternative="a = 5")
    one, best = pc.expected_loss(other, [found.partition, found.partitions.sel(alternative="a = 5")])["expected_loss"]
    assert row["excess_loss"].item() == pytest.approx(float(one - best), abs=1e-12)
    assert 0.7 < row["effective_draws"].item() / other.samples.effective_draws <= 1  # the draws are independent
    assert found.table["concentration"].values == pytest.approx([1, 5, np.nan], nan_ok=True)


def test_where_the_draws_cannot_tell_there_are_no_numbers(draws, approved):
    far = {"far": pc.priors.crp(1e-6)}  # the single cluster, which hardly any draw has
    found = pc.prior_sensitivity(draws, PRIOR, alternatives={**far, "a = 5": OTHERS["a = 5"]}, **QUIET)
    row = found.table.sel(alternative="far")
    assert np.isnan(row["n_clusters"]) and np.isnan(row["excess_loss"])
    assert row["unseen"] == 0 and row["effective_draws"] < 16
    assert np.all(found.partitions.sel(alternative="far") == -1) and "far" not in found.moved
    approved("verdicts_prior_sensitivity", "far and near", found.verdict)
    alone = pc.prior_sensitivity(draws, PRIOR, alternatives=far, n_starts=2, **QUIET)
    approved("verdicts_prior_sensitivity", "far", alone.verdict)
    assert not pc.prior_sensitivity([[0, 0, 1], [0, 1, 1]], PRIOR, **QUIET).is_reliable.any()
    one = pc.prior_sensitivity(np.zeros((100, 5), int), PRIOR, alternatives={"b": pc.priors.crp(5.0)}, **QUIET)
    assert one.table["excess_loss"].item() == 0 and one.table["n_clusters"].item() == 1


def test_numbers_of_clusters_that_no_draw_has_are_expected():
    """A flat likelihood: draws of the prior of 30 items, weighted upwards and downwards."""
    seats, n_items = np.random.default_rng(3), 30
    labels = np.zeros((4_000, n_items), int)
    for i in range(1, n_items):  # a table of its own, or that of an earlier item
        alone = seats.random(4_000) < 1 / (1 + i)
        labels[:, i] = np.where(alone, i, labels[np.arange(4_000), seats.integers(i, size=4_000)])
    others = {str(a): pc.priors.crp(a) for a in (0.1, 0.5, 2.0, 10.0)}
    draws = labels.reshape(4, 1_000, n_items)
    found = pc.prior_sensitivity(
        draws, pc.priors.crp(1.0), alternatives=others, partition=labels[0], n_starts=1, **QUIET
    )
    assert found.is_reliable.tolist() == [True, True, True, False]
    assert found.table["unseen"].values[3] > 1 / 3 > found.table["unseen"].values[:3].max()
    for name, row in found.table.isel(alternative=slice(3)).groupby("alternative"):
        prior = others[name].n_clusters(n_items)
        assert abs(row["n_clusters"].item() - prior.n_clusters @ prior) < 3 * row["n_clusters_mcse"].item()
    ratio = others["10.0"].log_prob(draws) - pc.priors.crp(1.0).log_prob(draws)
    check(lambda x: pc.reweight(draws, x), ratio, ValueError, ["`log_ratio`", "clusters, which no draw has"])


def test_one_rule_for_reweighting_with_a_warning_between(rng):
    """A fifth of the weight is to be expected at a number that no draw has: reported, and reweighted with a warning."""
    draws = pc.as_partition_draws(np.where(rng.random((4, 500, 6)) < 0.02, rng.integers(5, size=(4, 500, 6)), 0))
    prior, shares = pc.priors.crp(1.0), {}
    others = {str(a): pc.priors.crp(a) for a in (1.5, 3.0, 5.0, 8.0, 12.0, 30.0)}
    found = pc.prior_sensitivity(draws, prior, alternatives=others, partition=[0] * 6, n_starts=1, **QUIET)
    for (name, other), reliable in zip(others.items(), found.is_reliable, strict=True):
        ratio = other.log_prob(draws) - prior.log_prob(draws)
        shares[name] = unseen = found.table["unseen"].sel(alternative=name).item()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if reliable:
                assert pc.reweight(draws, ratio).samples.is_weighted
            else:
                with pytest.raises(ValueError, match="log_ratio"):
                    pc.reweight(draws, ratio)
        said = [f"{unseen:.0%} of the weight" in str(one.message) for one in caught]
        assert said == [True] * int(reliable and unseen > 0.1)
    assert any(0.1 < one <= 1 / 3 for one in shares.values()) and max(shares.values()) > 1 / 3


def test_draws_of_one_number_of_clusters_count_on_another():
    """100 draws of the single cluster: the ratio of two clusters comes from the priors."""
    single, own = np.zeros((4, 100, 10), int), pc.priors.crp(0.001)
    others = {"mild": pc.priors.crp(0.002), "far": pc.priors.crp(1.0)}
    found = pc.prior_sensitivity(single, own, alternatives=others, powers=[0.5], **QUIET)
    assert found.is_reliable.tolist() == [True, True, False]
    assert found.table["unseen"].values == pytest.approx(
        [np.sqrt(9_000) / (np.sqrt(9_000) + 400), 2 / 402, 1_000 / 1_400]
    )
    assert found.table["n_clusters_mcse"].values[1] == pytest.approx(2 / 400)


def test_verdict_names_the_prior_that_the_partition_depends_on(approved):
    two, one = [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]
    draws = np.random.default_rng(1).permutation([two] * 60 + [one] * 40)
    few = {"few": pc.priors.dirichlet_multinomial(0.1, 2)}
    found = pc.prior_sensitivity(np.tile(draws, (5, 1)), PRIOR, alternatives=few, **QUIET)
    approved("verdicts_prior_sensitivity", "depends", found.verdict)
    mixed = np.array([two, one])[np.arange(1000) % 25 % 2]  # 52% and 48%
    near = pc.prior_sensitivity(mixed, PRIOR, alternatives={"near": pc.priors.crp(2.6)}, **QUIET)
    approved("verdicts_prior_sensitivity", "little is lost, though items change clusters", near.verdict)
    known = found.table.isel(alternative=[0, 0]).assign_coords(alternative=["rough", "clear"])
    columns = {"excess_loss": [0.05, 0.045], "excess_mcse": [0.03, 0.001], "expected_loss": [0.5, 0.5]}
    both = replace(found, table=known.assign({name: ("alternative", column) for name, column in columns.items()}))
    assert "depends on the prior: under clear" in both.verdict
    same = pc.prior_sensitivity(draws, PRIOR, alternatives={"same": PRIOR}, **QUIET)
    approved("verdicts_prior_sensitivity", "same", same.verdict)
    judged = pc.prior_sensitivity(draws, PRIOR, alternatives={"same": PRIOR}, partition=one, **QUIET)
    assert judged.table["excess_loss"].item() == pytest.approx(0.2, abs=1e-12)


def test_powers_of_the_prior_and_of_stored_groups(draws):
    asked = {"powers": (0.5, 1.5), "n_starts": 2, **QUIET}
    found = pc.prior_sensitivity(draws, PRIOR, **asked)
    assert found.table["alternative"].values.tolist() == ["prior^0.5", "prior^1.5"]
    weights = exact(PRIOR) * np.exp(-0.5 * PRIOR.log_prob(PARTITIONS).values)
    wanted = weights @ (PARTITIONS.max(axis=1) + 1) / weights.sum()
    row = found.table.sel(alternative="prior^0.5")
    assert abs(row["n_clusters"] - wanted) < 4 * row["n_clusters_mcse"]
    labels, logs = draws.labels.reshape(4, 500, 7), PRIOR.log_prob(draws).values.reshape(4, 500)
    dims = ("chain", "draw")
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({"z": ((*dims, "item"), labels)}),
            "log_prior": xr.Dataset({"z": ((*dims, "k"), np.stack([logs / 2, logs / 2], -1)), "b": (dims, 0 * logs)}),
            "log_likelihood": xr.Dataset({"y": ((*dims, "item"), 0 * labels + 0.5)}),
        }
    )
    stored = pc.prior_sensitivity(tree, **asked)
    assert stored.table["alternative"].values.tolist()[2:] == ["likelihood^0.5", "likelihood^1.5"]
    np.testing.assert_allclose(stored.table["n_clusters"][:2], found.table["n_clusters"], rtol=1e-9)
    assert np.all(stored.table["excess_loss"][2:] == 0)
    own = pc.prior_sensitivity(tree, "b", **asked)
    assert own.table["pareto_k"].values[:2].tolist() == [0.0, 0.0]
    alone = tree["posterior"].to_dataset()
    check(lambda x: pc.prior_sensitivity(x, **QUIET), alone, TypeError, ["log_prior", "got None"])
    check(lambda x: pc.prior_sensitivity(tree, x, **QUIET), ["c"], ValueError, ["`prior`", "'c', present: 'z', 'b'"])
    no_groups = xr.DataTree.from_dict({"posterior": alone})
    check(lambda x: pc.prior_sensitivity(x, **QUIET), no_groups, ValueError, ["`group`", "got 'log_prior'"])


def test_sticks_weigh_labels_as_they_were_sampled(rng):
    labels = np.where(rng.random((400, 8)) < 0.7, np.repeat([0, 1], 4), rng.integers(4, size=(400, 8)))
    prior, other = (pc.priors.stick_breaking(a, 4) for a in (1.0, 1.5))
    found = pc.prior_sensitivity(labels, prior, alternatives={"more": other}, **QUIET)
    summed_out = pc.as_allocation_probabilities(0.9 * np.eye(4)[labels] + 0.025)
    of_probabilities = pc.prior_sensitivity(summed_out, prior, alternatives={"more": other}, **QUIET)
    for posterior, result in ((labels, found), (summed_out, of_probabilities)):
        weighted = pc.reweight(posterior, other.log_prob(posterior) - prior.log_prob(posterior))
        mean = weighted.samples.mean(weighted.n_clusters)
        assert result.table["n_clusters"].item() == pytest.approx(mean, rel=1e-12)
    asked = {"prior": prior, **QUIET}
    check(lambda x: pc.prior_sensitivity(labels, alternatives=x, **asked), {"a": PRIOR}, ValueError, ["priors.crp"])


def test_mistyped_arguments_and_impossible_draws(draws):
    for changes, error, *parts in [
        ({"alternatives": {"a": 2.0}}, TypeError, "priors.crp", "got 2.0 for 'a'"),
        ({"alternatives": [PRIOR]}, TypeError, "`alternatives`", "got list"),
        ({"powers": (0,)}, ValueError, "`powers`", "finite", "above 0"),
        ({"prior": 2.0}, TypeError, "`prior`", "priors.crp(1.0)", "got 2.0"),
        ({"prior": pc.priors.dirichlet_multinomial(1.0, 2)}, ValueError, "`prior`", "every draw", "under diri"),
        ({"alternatives": {"a": PRIOR}, "loss": "zz"}, ValueError, "`loss`"),
    ]:
        check(lambda x: pc.prior_sensitivity(draws, **{"prior": PRIOR} | x, **QUIET), changes, error, parts)


def test_runs_have_no_prior():
    parts = ["`draws`", "4 independent runs", "as_layers"]
    runs = pc.as_runs(PARTITIONS[:4], axis=0)
    check(lambda runs: pc.prior_sensitivity(runs, PRIOR, **QUIET), runs, ValueError, parts)
