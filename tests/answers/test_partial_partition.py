"""Partial partitions against enumeration, in other orders, with weights, on degenerate draws, and against salso."""

from collections import Counter
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import posterior_consensus as pc
from posterior_consensus.answers import partial_partition as module
from posterior_consensus.runtime import executor
from tests import reference
from tests.catalogue.posteriors import DEGENERATE, noisy_draws, random_draws, two_modes
from tests.helpers import GOOD, array, check, press_ctrl_c
from tests.strategies import small_draws

GOLDEN = Path(__file__).parents[1] / "golden"


def best_by_size(draws, weights=None):
    """The largest probability of any partition of so many items, by the definition."""
    draws = np.asarray(draws)
    shares = reference.shares(draws, weights)
    curve = [1.0]
    for size in range(1, draws.shape[1] + 1):
        best = Counter()
        for chosen in combinations(range(draws.shape[1]), size):
            for row, share in zip(draws[:, chosen], shares, strict=True):
                best[chosen, *reference.canonical(row)] += share
        curve.append(max(best.values()))
    return np.array(curve)


def halves(draws, weights=None):
    """The draws that choose, every second chain or a first half, and the others, each with their weights."""
    draws = np.asarray(draws)
    if draws.ndim == 3 and len(draws) > 1:
        return [(np.concatenate(draws[first::2]), None) for first in (0, 1)]
    draws = draws.reshape(-1, draws.shape[-1])
    weights = np.ones(len(draws)) if weights is None else np.asarray(weights, float)
    draws, weights = draws[weights > 0], weights[weights > 0]
    first = -(-len(draws) // 2)
    return [(draws[:first], weights[:first]), (draws[first:], weights[first:])]


def share_that_agrees(partial, draws, weights=None):
    sure = np.flatnonzero(partial.labels.values >= 0)
    wanted = partial.labels.values[sure]
    agrees = [np.array_equal(reference.canonical(row), wanted) for row in np.asarray(draws)[:, sure]]
    return np.average(agrees, weights=weights)


def partial_of(draws, prob=0.8, **options):
    return pc.partial_partition(draws, prob, **{"random_seed": 1} | options)


@given(draws=small_draws(), prob=st.sampled_from([0.25, 0.5, 0.75, 0.95]), data=st.data())
def test_enumeration_of_any_draws(draws, prob, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(draws), max_size=len(draws)))
    weights = weights if any(weights) else None
    partial = partial_of(pc.as_partition_draws(draws, weights=weights), prob)
    choosing, others = halves(draws, weights)
    curve = best_by_size(*choosing)
    np.testing.assert_allclose(partial.curve, curve, atol=1e-12)
    largest = np.flatnonzero(curve >= prob - 1e-9).max()
    assert partial.n_items_bound == largest
    assert partial.n_items == largest or (partial.is_shown and 1 < partial.n_items < largest)
    assert partial.search_probability == pytest.approx(curve[partial.n_items], abs=1e-12)
    assert partial.search_probability == pytest.approx(share_that_agrees(partial, *choosing), abs=1e-12)
    if len(others[0]):
        assert partial.probability == pytest.approx(share_that_agrees(partial, *others), abs=1e-12)


@pytest.mark.parametrize("weights", ["none", "whole", "any"])
def test_search_against_enumeration(weights, monkeypatch):
    """The search that larger problems take, on those that can be enumerated."""
    monkeypatch.setattr(module, "_ALL_SUBSETS", 0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        draws = noisy_draws(rng, 70, 7, 3, 0.25)
        given = {"none": None, "whole": rng.integers(1, 5, 70), "any": rng.random(70)}[weights]
        choosing = halves(draws, given)[0]
        curve = best_by_size(*choosing)
        for prob in (0.3, 0.5, 0.8):
            partial = partial_of(pc.as_partition_draws(draws, weights=given), prob)
            share = partial.search_probability
            assert share == pytest.approx(share_that_agrees(partial, *choosing), abs=1e-9)
            assert share == pytest.approx(curve[partial.n_items], abs=1e-9)
            largest = np.flatnonzero(curve >= prob - 1e-9).max()
            assert partial.n_items == largest or partial.is_shown
            assert partial.n_items_bound >= largest
            assert np.all(partial.curve.values <= curve + 1e-9)
            assert partial.area >= curve[:-1].mean() - 0.01


def test_threads_and_the_order_of_draws_that_choose_do_not_matter(monkeypatch):
    rng, asked = np.random.default_rng(40), {"complete": "vi", "n_starts": 6}
    draws = noisy_draws(rng, 120, 40, 3, 0.05)
    partial = partial_of(draws, **asked)
    assert 1 < partial.n_items < 40
    for number in (1, 2, 5):
        monkeypatch.setattr(executor, "n_threads", lambda number=number: number)
        found = partial_of(draws, **asked)
        for name in ("labels", "curve", "completion"):
            np.testing.assert_array_equal(getattr(found, name), getattr(partial, name))
    (labels, curve, _), (others, other_curve, _) = (
        module.grown(pc.as_partition_draws(one), 0.8, 6, np.random.default_rng(1), None, False)
        for one in (draws, draws[rng.permutation(120)])
    )
    np.testing.assert_array_equal(labels, others)
    np.testing.assert_array_equal(curve, other_curve)


@pytest.mark.parametrize("enumerated", [True, False])
def test_degenerate_draws(enumerated, monkeypatch):
    if not enumerated:
        monkeypatch.setattr(module, "_ALL_SUBSETS", 0)
    for draws in DEGENERATE.values():
        partial = partial_of(draws, 0.9, complete="vi")
        largest = np.flatnonzero(best_by_size(halves(draws)[0][0]) >= 0.9).max()
        assert partial.n_items == largest or partial.is_shown
        if len(np.unique([reference.canonical(row) for row in draws], axis=0)) == 1:
            assert partial.n_items == draws.shape[1] and partial.search_probability == partial.area == 1.0
            np.testing.assert_equal(partial.probability, np.nan if len(draws) == 1 else 1.0)
            np.testing.assert_array_equal(partial.labels, reference.canonical(draws[0]))
            assert partial.expected_loss == 0.0
        assert partial.in_words() in repr(partial).replace("\n              ", " ")


@pytest.mark.parametrize("n_chains", [1, 2, 4])
def test_the_probability_is_counted_on_the_half_that_did_not_choose(n_chains):
    draws = noisy_draws(np.random.default_rng(3), 64, 7, 4, 0.25).reshape(n_chains, -1, 7)
    partial = partial_of(draws, 0.4)
    choosing, others = (rows for rows, _ in halves(draws))
    given = pc.as_partition_draws(others.reshape(max(n_chains // 2, 1), -1, 7))
    agrees = np.array([share_that_agrees(partial, [row]) for row in given.labels])
    assert partial.probability == pytest.approx(agrees.mean())
    assert partial.search_probability == pytest.approx(share_that_agrees(partial, choosing))
    mcse = given.samples.probability_mcse(agrees, given.n_clusters.astype(float))
    assert partial.mcse == pytest.approx(float(mcse))
    assert partial.ess == pytest.approx(float(given.samples.mcse_and_ess(agrees)[1]))


def test_a_set_that_falls_short_is_replaced_by_a_smaller_one():
    """Items 3 and 4 agree in 85% of the choosing draws, in 70% of the others; items 0 to 2 in all."""
    certain = np.tile([0, 0, 1, 1, 2], (400, 1))
    certain[:200:7, 3] = certain[200::3, 3] = 2
    partial = partial_of(certain, 0.8)
    assert partial.n_items_bound == 5 and partial.n_items == 4 and partial.is_shown
    assert partial.probability == partial.search_probability == 1
    never = partial_of(certain[150:250:4], 0.9)  # in 25 draws nothing is shown
    assert not never.is_shown and never.n_items == never.n_items_bound and "is not shown" in never.in_words()
    assert "at least 0.9 of the draws that chose it" in repr(never) and "MCSEs" not in repr(never)


@pytest.mark.slow
def test_a_probability_that_is_shown_is_true():
    """Noisy posteriors of 60 items, 200 draws: sets chosen by all draws are too large in most of them."""
    below, shown, before = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        base, noise = rng.integers(0, 5, 60), 0.3 * rng.random(60) ** 2
        rows = np.where(rng.random((5_200, 60)) < noise, rng.integers(0, 6, (5_200, 60)), base)
        partial = partial_of(rows[:200])
        shown.append(partial.is_shown)
        below.append(partial.is_shown and share_that_agrees(partial, rows[200:]) < 0.8)
        of_all = pc.as_partition_draws(rows[:200])
        labels, _, _ = module.grown(of_all, 0.8, 8, rng, None, False)
        before.append(module.agreement(pc.as_partition_draws(rows[200:]), labels).mean() < 0.8)
    assert np.mean(shown) > 0.8 and np.mean(before) > 0.5
    assert np.mean(below) <= 0.05


def test_words_stand_alone(approved):
    draws = np.array(([[0, 0, 1, 1, 1, 0]] * 3 + [[0, 0, 1, 1, 1, 1]]) * 3)
    approved("verdicts_partial_partition", "some", partial_of(draws).in_words())
    alone = partial_of(random_draws(np.random.default_rng(0), 60, 4, 4), 0.99)
    approved("verdicts_partial_partition", "none", alone.in_words())


def test_the_bound_is_the_number_of_certain_items():
    certain = np.tile([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], (50, 1))
    certain[:, 5:] = random_draws(np.random.default_rng(5), 50, 5, 4)
    assert partial_of(certain, 0.9).n_items_bound == 5


def test_starts_are_made_when_they_are_needed():
    """A million million starts in an array would need more than any memory."""
    draws = noisy_draws(np.random.default_rng(1), 50, 12, 3, 0.1)
    some, many = (pc.partial_partition(draws, 0.5, n_starts=n, random_seed=1, progressbar=False) for n in (64, 10**12))
    np.testing.assert_array_equal(many.labels, some.labels)
    orders = list(islice(module._orders(5, np.random.default_rng(1)), 10))
    assert all(sorted(order) == list(range(5)) for order in orders)
    assert sorted(order[0] for order in orders[:5]) == sorted(order[0] for order in orders[5:]) == list(range(5))


def test_seconds_end_it(monkeypatch):
    grown, grow = [], module.partial.grow
    monkeypatch.setattr(module.partial, "grow", lambda *given: grown.append(given) or grow(*given))
    monkeypatch.setattr(module, "_AGREE", 100)
    draws = noisy_draws(np.random.default_rng(0), 30, 20, 3, 0.1)
    partial_of(draws, 0.5, n_starts=20)
    assert len(grown) >= 20 > module._AT_ONCE
    grown.clear()
    found = partial_of(draws, 0.5, n_starts=20, seconds=1e-9)
    assert len(grown) == module._AT_ONCE and found.stopped == "seconds"
    assert found.n_items >= 1 and found.search_probability >= 0.5


def test_an_interrupt_of_the_search_is_said(monkeypatch):
    monkeypatch.setattr(module, "_LITTLE", 0)
    draws = noisy_draws(np.random.default_rng(0), 80, 20, 3, 0.1)
    whole = partial_of(draws, 0.5)
    with monkeypatch.context() as patch:
        calls = press_ctrl_c(patch, executor, "wait", 1)
        with pytest.warns(UserWarning, match=r"search.*interrupted"):
            found = partial_of(draws, 0.5, n_starts=8)
    assert found.stopped == "interrupted" and len(calls) <= 5
    choosing, others = halves(draws)
    assert 0.5 <= found.search_probability == pytest.approx(share_that_agrees(found, *choosing))
    assert found.probability == pytest.approx(share_that_agrees(found, *others))
    assert found.n_items_bound >= whole.n_items
    assert pc.results.PartialPartition.from_dataset(found.to_dataset()).stopped == "interrupted"


@pytest.mark.parametrize("loss", ["vi", "nid", "nmi", pc.binder(0.7)])
def test_completion_keeps_what_is_sure(loss):
    rng = np.random.default_rng(8)
    draws = two_modes(rng, [[0] * 6 + [1] * 6, [0] * 3 + [1] * 9], 60, 0.9, [0] * 12)
    draws = rng.permutation(np.where(rng.random(draws.shape) < 0.03, 2, draws).reshape(-1, 12))
    partial = partial_of(draws, 0.4, complete=loss)
    sure = partial.labels.values >= 0
    assert 0 < sure.sum() < 12
    completion = partial.completion.values
    np.testing.assert_array_equal(reference.canonical(completion), completion)
    np.testing.assert_array_equal(reference.canonical(completion[sure]), partial.labels.values[sure])
    judged = pc.expected_loss(draws, completion, loss=loss)
    assert partial.expected_loss == pytest.approx(float(judged["expected_loss"]))
    assert partial.expected_loss_mcse == pytest.approx(float(judged["mcse"]))
    clusters = range(min(completion.max() + 2, 3))
    moved = [np.where(np.arange(12) == i, k, completion) for i in np.flatnonzero(~sure) for k in clusters]
    losses = pc.expected_loss(draws, [completion, *moved], loss=loss)["expected_loss"].values
    assert np.all(losses >= losses[0] - 1e-9)


@pytest.mark.parametrize("n_items", [7, 12])
def test_names_and_errors(n_items):
    names = [f"star {k}" for k in range(n_items)]
    draws = noisy_draws(np.random.default_rng(2), 40, n_items, 3, 0.1)
    z = array(draws.reshape(2, 20, n_items), ("chain", "draw", "obs"), obs=names)
    partial = partial_of(z, 0.6, complete=pc.vi(0.8))
    assert partial.labels.dims == partial.completion.dims == ("obs",)
    np.testing.assert_array_equal(partial.labels["obs"], names)
    table = partial.to_dataframe()
    assert list(table["size"]) == np.bincount(partial.labels[partial.labels >= 0]).tolist()
    assert table["obs"].iloc[0].startswith("star")
    np.testing.assert_array_equal(np.asarray(partial), partial.labels)


def test_arguments():
    for argument, value, error, part in [
        ("n_starts", 0, ValueError, "at least 1; got 0"),
        ("n_starts", 2.5, TypeError, "integer; got 2.5"),
        ("seconds", 0, ValueError, "positive; got 0"),
        ("complete", "pear", ValueError, "`complete`"),
        ("complete", True, TypeError, "PartitionLoss"),
        ("random_seed", -1, ValueError, "from 0"),
    ]:
        check(lambda v, name=argument: pc.partial_partition(GOOD, **{name: v}), value, error, [f"`{argument}`", part])


def test_a_partial_partition_is_no_partition_and_memory_has_a_limit(monkeypatch):
    draws = noisy_draws(np.random.default_rng(0), 500, 60, 3, 0.3)
    partial = partial_of(draws)
    check(lambda p: pc.credible_ball(draws, p), partial, ValueError, ["negative; got -1"])
    monkeypatch.setenv("POSTERIOR_CONSENSUS_MEMORY", "10KB")
    check(partial_of, draws, MemoryError, ["partial partition", "Take fewer draws"])


SALSO = {0.5: 20, 0.8: 5, 0.95: 3}  # items of chips() with 64 runs on these draws, by probability
SALSO_AREA = 0.049132


def test_no_smaller_than_salso(monkeypatch):
    draws = pc.as_partition_draws(np.load(GOLDEN / "dpmm_draws.npz")["labels"])
    for prob, n_items in SALSO.items():
        labels, curve, _ = module.grown(draws, prob, 64, np.random.default_rng(1), None, False)
        assert (labels >= 0).sum() >= n_items
        assert curve[:-1].mean() >= SALSO_AREA
    monkeypatch.setattr(module, "_LAST_SIZE", 0)  # no member leaves again
    assert module.grown(draws, prob, 64, np.random.default_rng(1), None, False)[1][:-1].mean() < curve[:-1].mean()
