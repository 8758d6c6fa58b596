"""Draws that some chains never visit: independent visits, which chains, and what the verdict says."""

import re

import numpy as np
import pytest

import posterior_consensus as pc
from posterior_consensus.diagnostics import diagnosis
from posterior_consensus.diagnostics.traces import merge_traces
from posterior_consensus.diagnostics.unvisited import could_miss, independent_visits, unvisited

LENGTH = 1_000


def samples_of(n_chains, length=LENGTH):
    return pc.as_partition_draws(np.zeros((n_chains, length, 2), int)).samples


def visiting(rng, n_visits, duration, length=LENGTH):
    """Whether each draw is in one of some visits that begin at random places and do not touch."""
    inside = np.zeros(length, bool)
    begins = np.sort(rng.choice(length - n_visits * (duration + 1), n_visits, replace=False))
    for begin in begins + np.arange(n_visits) * (duration + 1):
        inside[begin : begin + duration] = True
    return inside


@pytest.mark.parametrize(("number", "duration"), [(40, 1), (40, 10), (200, 20)])
def test_visits_are_counted_whatever_they_last(rng, number, duration):
    found = [independent_visits(visiting(rng, number, duration, 100 * number)) for _ in range(20)]
    assert np.mean(found) == pytest.approx(number, rel=0.2) and np.max(found) <= number


def test_a_visit_that_flickers_is_one(rng):
    inside = visiting(rng, 40, 30, 20_000)
    flickers = inside & (rng.random(inside.size) < 0.5)
    entries = np.count_nonzero(np.diff(np.append(0, flickers.astype(int))) > 0)
    assert entries > 250 and independent_visits(flickers) == pytest.approx(40, rel=0.3)


def test_visits_do_not_depend_on_where_the_circle_is_cut(rng):
    inside = visiting(rng, 30, 7)
    assert independent_visits(inside) == pytest.approx(independent_visits(np.roll(inside, 403)), rel=1e-12)


@pytest.mark.parametrize(("inside", "visits"), [([0, 0, 0], 0), ([0, 1, 0], 1), ([1, 1, 1], 1), ([0, 1, 1, 1, 0], 1)])
def test_few_visits(inside, visits):
    assert independent_visits(np.array(inside, bool)) == visits


@pytest.mark.parametrize("sign", [1, -1])
def test_the_chain_that_never_visits_is_named_with_its_limit(rng, sign):
    high = np.stack([visiting(rng, 25 * (k != 2), 3) for k in range(4)])
    trace = sign * (high + 0.1 * rng.random(high.shape))
    found = unvisited(np.stack([np.ones(high.size), trace.ravel()]), samples_of(4))
    assert (found.trace, found.chains, found.is_above) == (1, [2], sign > 0)
    assert 0 <= sign * found.limit <= 0.1 and found.share == pytest.approx(0.075, abs=5e-3) and found.own_share < 0.011
    assert "in none of chain d" in re.sub("1% of those", "none", found.in_words(["a", "b"], ["", "bits"], list("abde")))


def test_two_chains_may_miss_it_together(rng):
    high = np.stack([visiting(rng, 25 * (k in (0, 3)), 3) for k in range(4)])
    found = unvisited((high + 0.1 * rng.random(high.shape)).reshape(1, -1), samples_of(4))
    assert found.chains == [1, 2] and found.own_share < 0.011


@pytest.mark.parametrize("visits", [(25, 25, 25, 25), (25, 25, 20, 25), (5, 5, 0, 5)])
def test_chance_is_no_sign(visits):
    rng = np.random.default_rng(13)
    high = np.stack([visiting(rng, number, 10) for number in visits])
    assert unvisited((high + 0.1 * rng.random(high.shape)).reshape(1, -1), samples_of(4)) is None


def test_a_small_part_does_not_matter(rng):
    high = np.stack([visiting(rng, 200 * (k > 0), 1, 20_000) for k in range(4)])  # 1% of the draws
    assert unvisited(high.reshape(1, -1).astype(float), samples_of(4, 20_000)) is None


def test_one_chain_and_runs_have_nothing_to_miss(rng):
    inside = visiting(rng, 50, 3).astype(float)[np.newaxis]
    assert unvisited(inside, samples_of(1)) is None
    assert unvisited(inside, pc.as_runs(np.zeros((LENGTH, 2), int)).samples) is None


def test_the_share_that_goes_unnoticed_is_that_of_the_fewest_visits_found(rng):
    """Each visit is one draw, so that the visits are their number times the share."""
    share = could_miss(7, 1, 4, LENGTH)  # 8 traces
    needed = round(share * 3 * LENGTH)
    other = rng.random((7, 4 * LENGTH))
    for number, is_found in ((needed - 3, False), (2 * needed, True)):
        high = np.stack([visiting(rng, 0 if k == 0 else number // 3 + (k <= number % 3), 1) for k in range(4)])
        found = unvisited(np.concatenate([high.reshape(1, -1), other]), samples_of(4))
        assert (found is not None and found.share > 0.02) == (is_found and number / 3 / LENGTH > 0.02)
    assert could_miss(7, 1, 4, 100) == pytest.approx(33 / 300) and could_miss(7, 1, 4, 1e6) == 0.02
    assert could_miss(7, 1, 4, 1) == 1


def test_pairs_of_clusters_are_those_of_the_items(rng):
    draws = pc.as_partition_draws(rng.integers(3, size=(2, 30, 40)))
    labels = np.repeat(np.arange(13), [1, 2, 4, 3, 3, 3, 4, 3, 3, 3, 4, 3, 4]).astype(np.int32)
    found = merge_traces(draws, labels)
    assert len(found) == 55 and not any(name.endswith((" 0", "r 1")) for name in found)
    for name, trace in found.items():
        k, *more = map(int, re.findall(r"\d+", name))
        other = more[0] if more else k
        pairs = [(i, j) for i in np.flatnonzero(labels == k) for j in np.flatnonzero(labels == other) if i != j]
        one, two = np.array(pairs).T
        np.testing.assert_allclose(trace, (draws.labels[:, one] == draws.labels[:, two]).mean(axis=1), err_msg=name)


def two_modes(rng, misses):
    """Chains of 24 items in three clusters; now and then, four items move."""
    one = np.repeat(np.arange(3), 8)
    both = np.stack([one, np.where(np.arange(24) < 4, 1, one)])
    at = np.stack([visiting(rng, 0 if k in misses else 25, 4) for k in range(4)])
    labels = both[at.astype(int)]
    return np.where(rng.random(labels.shape) < 0.05, rng.integers(4, size=labels.shape), labels)


def test_a_mode_of_a_tenth_that_one_chain_misses_is_found(rng):
    found = pc.diagnose(two_modes(rng, [3]))
    assert found.status == "disagree" and "chain 3" in found.verdict and found.partition_rhat < 1.05
    assert "The chains do not agree yet: the " in found.verdict and " of the draws of the other chains" in found.verdict
    agreeing = pc.diagnose(two_modes(rng, []))
    assert agreeing.status == "agree" and 0.02 <= agreeing.could_miss < 0.15
    assert f"below about {np.ceil(100 * agreeing.could_miss):.0f}% of the draws" in agreeing.verdict


@pytest.mark.parametrize(("given", "whose"), [(True, "consensus"), (False, "central draw")])
def test_clusters_of_a_clause_are_those_of_a_named_partition(given, whose, rng, monkeypatch):
    at = np.stack([visiting(rng, 0 if k == 3 else 25, 4) for k in range(4)])
    monkeypatch.setattr(diagnosis, "merge_traces", lambda *_: {"share of pairs of cluster 3": at.ravel().astype(float)})
    found = pc.diagnose(two_modes(rng, range(4)), np.repeat(np.arange(3), 8) if given else None)
    assert found.status == "disagree" and f"cluster 3 of the {whose} is above 0" in found.verdict


@pytest.mark.parametrize("chains", [[0], [0, 1, 2, 3]])
def test_clusters_are_not_followed_where_nothing_can_be_said_of_them(chains, rng, monkeypatch):
    """In one chain, or if the chains disagree by other signs."""
    monkeypatch.delattr(diagnosis, "merge_traces")
    labels = two_modes(rng, [])
    labels[1:, :, :8] = 3
    assert pc.diagnose(labels[chains]).status == ("unknown" if chains == [0] else "disagree")
