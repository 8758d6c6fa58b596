"""Verdicts on runs: groups that agree, differ, or only vary more; one group; few runs; and kinds of runs."""

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.diagnostics import groups as implementation
from posterior_consensus.diagnostics.chance import mean_chance
from posterior_consensus.results import display
from tests import reference

QUIET = {"random_seed": 1, "progressbar": False}
FOUR, FIVE = (np.arange(40) * k // 40 for k in (4, 5))


def some_runs(rng, truth, n_runs, changed=0.1):
    """Runs that find these clusters but for items at random."""
    labels = np.tile(truth, (n_runs, 1))
    moved = rng.random(labels.shape) < changed
    labels[moved] = rng.integers(truth.max() + 1, size=int(moved.sum()))
    return labels


def diagnosed(*groups, named=True):
    names = np.repeat([f"program {k}" for k in range(len(groups))], [len(one) for one in groups])
    return pc.diagnose(pc.as_runs(np.concatenate(groups), groups=names if named else None))


def test_groups_that_agree(rng):
    found = diagnosed(some_runs(rng, FOUR, 10), some_runs(rng, FOUR, 14))
    spread = found.spread
    assert (found.status, found.n_chains, found.partition_ess, found.least_ess) == ("agree", 2, 24, 24)
    assert spread.p_value > 0.01 > spread.least_p_value == 1 / 2000
    assert spread.between == pytest.approx(spread.within, rel=0.05)
    assert spread.shift < 0
    assert np.isnan(found.partition_rhat) and np.isnan(found.worst_rhat)
    assert f"p = {spread.p_value:.2g}" in found.verdict and "do not differ by more than their runs do" in found.verdict


def test_of_very_many_runs_some_of_each_group_are_compared(rng, monkeypatch):
    monkeypatch.setattr(implementation, "_MOST_RUNS", 20)
    few, many = some_runs(rng, FOUR, 10), some_runs(rng, FIVE, 30)
    labels, names, order = np.concatenate([few, many]), np.repeat(["few", "many"], [10, 30]), rng.permutation(40)
    one, other = (pc.diagnose(pc.as_runs(labels[rows], groups=names[rows])).spread for rows in (np.arange(40), order))
    assert one == other and one.n_runs == 5 + 15
    assert one.between == pytest.approx(np.mean([reference.vi(x, y) for x in few for y in many]), rel=0.05)
    assert one.shift > 0.1  # runs of a group are nearer to each other


def test_groups_that_differ(rng):
    groups = some_runs(rng, FOUR, 10), some_runs(rng, FIVE, 10)
    found, spread = diagnosed(*groups), diagnosed(*groups).spread
    assert (found.status, spread.p_value) == ("disagree", 1 / 2000)
    across = np.mean([reference.vi(x, y) for x in groups[0] for y in groups[1]])
    inside = [[reference.vi(one[s], one[t]) for s in range(10) for t in range(s)] for one in groups]
    assert spread.between == pytest.approx(across)
    assert spread.within == pytest.approx(np.mean(inside))
    assert spread.most_within == pytest.approx(np.mean(inside, axis=1).max())
    assert spread.shift == pytest.approx(across - np.mean(inside, axis=1).max())
    shares = [
        np.mean(one[:, found.largest_difference.items[0]] == one[:, found.largest_difference.items[1]])
        for one in groups
    ]
    assert found.largest_difference.size == pytest.approx(abs(shares[0] - shares[1]))
    assert all(name in found.verdict for name in ("program 0", "program 1", *found.difference_items))


def test_groups_that_only_vary_more_have_no_verdict(rng):
    found = diagnosed(some_runs(rng, FOUR, 40, 0.1), some_runs(rng, FOUR, 40, 0.3))
    assert found.status == "unknown" and found.spread.p_value <= 0.01 and found.spread.shift <= 0
    assert "vary more" in found.verdict


@pytest.mark.parametrize(("size", "status", "least"), [(4, "unknown", 1 / 35), (5, "disagree", 1 / 126)])
def test_five_runs_in_each_group_are_enough(rng, size, status, least):
    found = diagnosed(some_runs(rng, FOUR, size), some_runs(rng, FIVE, size))
    assert found.status == status
    assert found.spread.least_p_value == pytest.approx(least) == found.spread.p_value
    assert ("Five runs in each group are enough" in found.verdict) == (size == 4)


def test_one_group_has_a_mean_distance_and_no_test(rng):
    labels = some_runs(rng, FOUR, 12)
    found = diagnosed(labels, named=False)
    distances = np.array([[reference.vi(x, y) for x in labels] for y in labels])
    without = [np.delete(np.delete(distances, k, 0), k, 1).sum() / (11 * 10) for k in range(12)]
    assert (
        found.status == "runs"
        and np.isnan([found.spread.p_value, found.spread.between, found.largest_difference.size]).all()
    )
    assert found.spread.distance == pytest.approx(distances.sum() / (12 * 11))
    unseen = mean_chance(pc.as_runs(labels), pc.vi()) * 2 / 12**2 / 16  # every run is another partition
    assert found.spread.distance_mcse == pytest.approx(np.sqrt(11 * np.var(without) + unseen**2))
    distance, error = display.rounded(found.spread.distance, found.spread.distance_mcse)
    assert f"{distance} bits (SE {error})" in found.verdict


def test_too_few_runs_and_equal_runs(rng):
    one, three, equal = (diagnosed(labels, named=False) for labels in (FOUR[None], some_runs(rng, FOUR, 3), [FOUR] * 6))
    assert one.status == equal.status == "unknown"
    assert np.isnan(one.spread.distance) and equal.spread.distance == 0
    assert (equal.spread.most_equal, three.spread.most_equal) == (6, 1)
    assert three.status == "runs" and np.isnan(three.spread.distance_mcse) and three.spread.distance > 0


def test_kinds_of_runs(rng):
    groups = some_runs(rng, FOUR, 15, 0.05), some_runs(rng, np.roll(FOUR // 2, 5), 25, 0.05)
    both = np.concatenate(groups)
    found = pc.particles(pc.as_runs(both), **QUIET)
    assert (found.status, found.n_particles, found.chains) == ("several modes", 2, ())
    np.testing.assert_allclose(found.weights, [25 / 40, 15 / 40])
    errors = [np.sqrt(np.var(np.arange(40) < n, ddof=1) / 40) for n in (25, 15)]
    assert np.all(found.weights_mcse.values >= np.array(errors) - 1e-12)
    assert found.weights_mcse.values.max() < 1.1 * errors[0]
    np.testing.assert_array_equal(found.assignment, [1] * 15 + [0] * 25)
    names = ["first"] * 15 + ["second"] * 25
    apart = pc.particles(pc.as_runs(both, groups=names), **QUIET)
    assert (apart.status, apart.chains) == ("chains in different modes", ("first", "second"))
    np.testing.assert_allclose(apart.by_chain, [[0, 1], [1, 0]])
    mixed = pc.particles(pc.as_runs(both, groups=["a", "b"] * 20), **QUIET)
    assert (mixed.status, mixed.chains) == ("several modes", ()) and "Every group has both" in mixed.verdict


@pytest.mark.parametrize(("n_runs", "status"), [(3, "unknown"), (12, "unknown"), (15, "one mode")])
def test_one_kind_of_runs_is_found_from_fifteen_on(rng, n_runs, status):
    found = pc.particles(pc.as_runs(some_runs(rng, FOUR, n_runs)), **QUIET)
    assert (found.status, found.n_particles) == (status, 1)
    least = f"below {np.ceil(100 * found.least_share):.0f}%"
    assert ("add runs" if status == "unknown" else least) in found.verdict
