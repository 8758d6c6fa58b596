"""The summary that several tests read."""

import pytest

import posterior_consensus as pc


@pytest.fixture
def summary(posterior_tree):
    return pc.summarize(posterior_tree, random_seed=1)
