"""The excess of the expected loss against all partitions of two halves; fresh draws; when nothing is said of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.diagnostics.comparison import excess_loss
from posterior_consensus.ensemble.samples import folds
from tests import reference
from tests.catalogue.posteriors import noisy_draws

QUIET = {"random_seed": 1, "progressbar": False}


def excess_of(draws, loss="vi", **options):
    return excess_loss(draws, pc.consensus_partition(draws, loss=loss, **QUIET, **options), "vi", random_seed=1)


def by_definition(rows, weights, parts):
    """X under VI, from the best of all partitions by each half, and the share of it that is the excess."""
    partitions = list(reference.partitions(rows.shape[1]))
    losses = np.array(
        [[reference.expected(p, rows[part], reference.vi, weights[part]) for p in partitions] for part in parts]
    )
    (a, b), (of_a, of_b) = losses.argmin(axis=1), losses
    errors = [np.square(reference.shares(rows[part], weights[part])).sum() for part in (*parts, np.concatenate(parts))]
    return (of_b[a] - of_b[b] + of_a[b] - of_a[a]) / 2, errors[2] / (errors[0] + errors[1])


def noisy_pairs(rng):
    """Draws of five items, two of which are as often with one pair as with the other or alone."""
    rows = np.tile([0, 0, 1, 1, 2], (24, 1))
    rows[:, 1] = rng.integers(0, 2, 24)
    rows[:, 4] = rng.integers(0, 3, 24)
    return rows


@pytest.mark.parametrize("kind", ["one chain", "chains", "unequal chains", "weights"])
def test_by_the_definition(kind):
    """Halves that have different best partitions."""
    rng = np.random.default_rng(6)
    rows = noisy_pairs(rng)
    weights = rng.integers(0, 4, 24).astype(float) if kind == "weights" else np.ones(24)
    cuts = {"chains": [0, 6, 12, 18, 24], "unequal chains": [0, 16, 24]}.get(kind, [0, 24])
    chain, kept = np.searchsorted(cuts[1:], np.arange(24), side="right"), np.flatnonzero(weights)
    table = pd.DataFrame(rows, index=pd.MultiIndex.from_arrays([chain, np.arange(24)], names=["chain", "draw"]))
    draws = pc.as_partition_draws(table, weights=weights)
    first = kept[: kept.size - kept.size // 2] if len(cuts) == 2 else kept[chain % 2 == 0]
    parts = [first, np.setdiff1d(kept, first)]
    apart, share = by_definition(rows, weights, parts)
    found = excess_of(draws)
    assert apart > 0.01 and found.distance > 0
    assert found.value == pytest.approx(share * apart) and found.limit == pytest.approx(4 * found.value)
    assert kind not in ("one chain", "chains") or share == pytest.approx(0.25)
    assert found.distance == pytest.approx(pc.partition_loss(*found.partitions.values, loss="vi"))


def test_limits_losses_and_probabilities():
    rng = np.random.default_rng(5)
    draws = pc.as_partition_draws(noisy_draws(rng, 40, 9, 4, 0.4))
    found = excess_of(draws, n_clusters=3)
    assert np.all(found.partitions.max("item") == 2) and found.value > 0
    assert excess_of(draws, max_clusters=2).partitions.max() <= 1
    for loss in ("one_minus_ari", "nid", pc.vi(0.4)):
        assert excess_of(draws, loss).value >= 0
    soft = pc.as_allocation_probabilities(rng.dirichlet(np.ones(3), size=(40, 9)))
    assert excess_of(soft, "binder").value >= 0


def test_folds_are_chains_or_successive_draws():
    labels = np.zeros((3, 8, 2), int)
    samples = pc.as_partition_draws(labels).samples
    halves, quarters, few = (
        [part.tolist() for part in folds(one, n)]
        for one, n in ((samples, 2), (samples, 4), (pc.as_partition_draws(labels[:1, :2]).samples, 4))
    )
    assert halves == [[*range(8), *range(16, 24)], [*range(8, 16)]]
    assert quarters == [[k, k + 1, k + 8, k + 9, k + 16, k + 17] for k in (0, 2, 4, 6)]
    assert few == [[0], [1]]


def halves_that_differ():
    """200 draws of 40 items in two chains; each item moves between two clusters, with a probability of its own."""
    rng = np.random.default_rng(20)
    (home, other), moves = rng.integers(0, 5, (2, 40)), 0.9 * rng.random(40)
    return np.where(rng.random((2, 100, 40)) < moves, other, home)


def test_a_summary_says_what_more_draws_would_change(approved):
    summary = pc.summarize(halves_that_differ(), modes=False, **QUIET)
    share = summary.excess.value / summary.partition.expected_loss
    sentence = next(one for one in summary.findings() if "halves" in one)
    assert share > 0.01 and f"({100 * share:.2g}%)" in sentence and f"({100 * share:.2g}%)" in summary.methods_text()
    approved("more_draws", "finding", sentence)
    approved("more_draws", "methods", next(one for one in summary.methods_text().split(". ") if "halves" in one))
    approved("more_draws", "row", repr(summary).split("more draws ")[1].split("\n  optimality")[0])
    again = pc.results.Summary.from_dataset(summary.to_dataset(), summary.draws)
    assert again.findings() == summary.findings() and again.excess.limit == summary.excess.limit
    np.testing.assert_array_equal(again.excess.partitions, summary.excess.partitions)
    fewer = pc.summarize(halves_that_differ()[:, :45], modes=False, **QUIET)
    assert fewer.excess is None and "halves" not in " ".join(fewer.findings())
    approved("more_draws", "few draws", repr(fewer).split("more draws ")[1].split("\n  optimality")[0])


def test_searches_that_time_or_size_ends_are_left_out(monkeypatch):
    draws = halves_that_differ()
    monkeypatch.setattr("posterior_consensus.runtime.memory.LABELS_TO_SEARCH_AGAIN", 7_999)
    summary = pc.summarize(draws, modes=False, **QUIET)
    assert summary.excess is None and any("20,000,000 labels" in one for one in summary.left_out())
    monkeypatch.undo()
    record = excess_loss(summary.draws, summary.partition, "vi", seconds=1e-9, random_seed=1)
    assert record.stopped == "seconds"
    for excess in (record, replace(record, stopped="interrupted", value=0.1)):
        ended = replace(summary, excess=excess)
        assert not any(one.startswith(("More draws", "No effect")) for one in ended.findings())
        assert "exceeds" not in ended.methods_text()
        assert "effect unknown, because the searches on two halves" in " ".join(repr(ended).split())
        assert any("halves" in one for one in ended.left_out())


@pytest.mark.slow
@pytest.mark.nightly
def test_a_quarter_estimates_the_excess_and_the_whole_bounds_it():
    """Independent and slow chains: means within a third of the excess, which is at most the limit in nine of ten."""
    from benchmarks.excess import measured

    for stay, n_draws in ((0.0, 200), (0.9, 1000)):
        excess, value, limit = measured("vi", stay, n_draws, 60)
        assert value.mean() == pytest.approx(excess.mean(), rel=0.35)
        assert 0.82 < np.mean(excess <= limit + 1e-12) <= 1.0


def test_halves_of_repeated_runs_are_runs_at_random():
    labels = np.repeat([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]], [60, 40], axis=0)
    assert excess_of(pc.as_runs(labels)).value == 0.0
