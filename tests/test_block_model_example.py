"""The sampler of the example draws from the posterior that it claims."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from posterior_consensus.ensemble.partitions import canonical_labels, enumerate_partitions
from tests.helpers import example

LINKS = np.array([[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0]], np.uint8)


@pytest.fixture(scope="module")
def block_model():
    return example("sample_block_model")


def weight(z, alpha):
    """Probability of the partition and the links, up to a constant."""
    sizes = np.bincount(z)
    prior = alpha**sizes.size * math.prod(math.factorial(size - 1) for size in sizes)
    linked, pairs = Counter(), Counter()
    for i, j in combinations(range(z.size), 2):
        blocks = tuple(sorted((z[i], z[j])))
        pairs[blocks] += 1
        linked[blocks] += int(LINKS[i, j])
    likelihood = [
        math.factorial(linked[b]) * math.factorial(n - linked[b]) / math.factorial(n + 1) for b, n in pairs.items()
    ]
    return prior * math.prod(likelihood)


def test_shares_of_the_draws_are_the_posterior_probabilities(block_model, rng):
    partitions = np.concatenate(list(enumerate_partitions(5))).astype(int)
    expected = np.array([weight(z, 1.5) for z in partitions])
    expected /= expected.sum()
    draws = block_model.sample(LINKS, np.array([0, 0, 1, 1, 4]), 60_000, 1.5, rng)[100::3]
    rows, counts = np.unique(draws, axis=0, return_counts=True)
    found = Counter()
    for row, count in zip(rows, counts, strict=True):
        found[tuple(canonical_labels(row).tolist())] += int(count)
    shares = np.array([found[tuple(z.tolist())] for z in partitions]) / len(draws)
    np.testing.assert_allclose(shares, expected, atol=0.01)
    assert np.abs(shares - expected).sum() < 0.03


def test_network_is_what_it_is_called(block_model, rng):
    links, blocks = block_model.simulate(rng)
    assert np.array_equal(links, links.T) and not np.diag(links).any()
    assert np.bincount(blocks).tolist() == list(block_model.SIZES)
    same = blocks[:, np.newaxis] == blocks
    off = ~np.eye(len(blocks), dtype=bool)
    assert links[same & off].mean() == pytest.approx(block_model.P_WITHIN, abs=0.02)
    assert links[~same].mean() == pytest.approx(block_model.P_BETWEEN, abs=0.01)


def test_every_node_can_start_on_its_own(block_model, rng):
    draws = block_model.sample(np.zeros((300, 300), np.uint8), np.arange(300), 1, 1.0, rng)
    assert draws.tolist() == [list(range(300))]
