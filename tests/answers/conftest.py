"""Twelve records for audits: scored pairs, clusters, and a clerk who knows the persons."""

import pandas as pd
import pytest

from tests.helpers import scored_pairs

NAMES = [f"r{k}" for k in range(12)]
TRUTH = pd.Series(["a", "a", "a", "b", "c", "c", "c", "d", "d", "d", "e", "e"], NAMES)


@pytest.fixture
def pairs():
    """Three clusters of records: of four, of which a pair was not scored, of three and of two; others are alone."""
    scores = {(0, 1): 0.9, (0, 2): 0.8, (0, 3): 0.7, (1, 2): 0.95, (1, 3): 0.6, (4, 5): 0.9, (4, 6): 0.9, (5, 6): 0.4}
    scores |= {(7, 8): 0.99, (8, 9): 0.3, (3, 4): 0.2, (9, 10): 0.45, (10, 11): 0.1}
    return scored_pairs(12, scores, names=NAMES)


@pytest.fixture
def best():
    return [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5]


def answers_of(sample):
    return TRUTH[sample["first"]].to_numpy() == TRUTH[sample["second"]].to_numpy()
