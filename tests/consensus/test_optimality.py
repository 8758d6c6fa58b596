"""The default search against every partition of a few items."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

import posterior_consensus as pc
from posterior_consensus.ensemble.expectation import mean_loss
from posterior_consensus.ensemble.partitions import canonical_labels, enumerate_partitions
from tests.catalogue.posteriors import noisy_draws
from tests.strategies import small_draws

RECORDS = {name: factory() for name, factory in pc.LOSSES.items()} | {
    record.name: record for record in (pc.binder(0.5), pc.vi(1.5))
}


@cache
def every(n_items):
    return np.concatenate(list(enumerate_partitions(n_items)))


def find(draws, loss, **options):
    return pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False, **options)


def some_ensemble(seed, most_items=7):
    rng = np.random.default_rng(seed)
    n_items, n_clusters = int(rng.integers(5, most_items + 1)), int(rng.integers(2, 6))
    n_draws, noise = int(rng.choice([1, 2, 3, 5, 10, 20, 40, 70])), rng.choice([0.2, 0.4, 0.6, 0.8, 1.0])
    labels = noisy_draws(rng, n_draws, n_items, n_clusters, noise)
    return pc.as_partition_draws(labels, weights=rng.exponential(size=n_draws) if rng.random() < 0.3 else None)


@pytest.mark.parametrize(
    ("seeds", "most_items"),
    [(range(16), 7), pytest.param(range(16, 50), 8, marks=[pytest.mark.slow, pytest.mark.nightly])],
)
@pytest.mark.parametrize("name", RECORDS)
def test_the_default_search_finds_the_optimum(name, seeds, most_items):
    """Of every other ensemble; those between meet the other losses."""
    record = RECORDS[name]
    missed = []
    for seed in seeds[list(RECORDS).index(name) % 2 :: 2]:
        draws = some_ensemble(seed, most_items)
        least = mean_loss(draws, every(draws.n_items), record).min()
        if find(draws, record).expected_loss > least + 1e-10:
            missed.append(seed)
    assert missed == []


@pytest.mark.parametrize("name", RECORDS)
def test_the_default_search_finds_the_best_of_so_many_clusters(name):
    record = RECORDS[name]
    for seed in range(5)[list(RECORDS).index(name) % 2 :: 2]:
        draws = some_ensemble(seed)
        of_three = every(draws.n_items)[every(draws.n_items).max(axis=1) == 2]
        least = mean_loss(draws, of_three, record).min()
        result = find(draws, record, n_clusters=3)
        assert result.n_clusters == 3 and result.expected_loss == pytest.approx(least, abs=1e-10)


def neighbourhood(labels, draws):
    """Every partition one move of an item, one merge, or one split of a cluster away.

    Splits are by the labels of each draw, and in every way in two where a cluster has at most eight items.
    """
    labels = canonical_labels(labels)
    n_clusters = labels.max() + 1
    for item in range(labels.size):
        for k in range(n_clusters + 1):
            yield np.where(np.arange(labels.size) == item, k, labels)
    for kept in range(n_clusters):
        members = np.flatnonzero(labels == kept)
        for gone in range(kept):
            yield np.where(labels == gone, kept, labels)
        for draw in draws:
            yield np.where(labels == kept, n_clusters + draw, labels)
        if members.size <= 8:
            for subset in range(1, 2 ** (members.size - 1)):
                apart = labels.copy()
                apart[members[[subset >> bit & 1 == 1 for bit in range(members.size)]]] = n_clusters
                yield apart


@pytest.mark.parametrize("name", RECORDS)
@settings(max_examples=4)
@given(draws=small_draws(max_items=12, max_draws=8))
def test_no_move_merge_or_split_improves_the_answer(name, draws):
    record = RECORDS[name]
    taken = pc.as_partition_draws(draws)
    result = find(taken, record)
    around = np.array([canonical_labels(p) for p in neighbourhood(result.labels.values, taken.labels.astype(int))])
    assert result.expected_loss <= mean_loss(taken, around, record).min() + 1e-10
