"""The summary that several tests read, and what a summary says."""

import re

import numpy as np
import pytest

import posterior_consensus as pc
from tests.catalogue.posteriors import recovered


@pytest.fixture(scope="session")
def summary():
    """Of the tree that `posterior_tree` is; whoever changes it takes a copy."""
    return pc.summarize(recovered(np.random.default_rng(20180614)), random_seed=1, progressbar=False)


@pytest.fixture
def told(approved):
    """Compare the findings, the methods text and the print of a summary with the approved ones of this name."""

    def compare(name, summary):
        approved("findings", name, "\n".join(summary.findings()))
        sentences, _, _ = summary.methods_text().rpartition("\n\n")
        approved("methods", name, re.sub(r"(?<=_consensus )\d[\w.]*", "VERSION", sentences))
        approved("summary", name, repr(summary))

    return compare
