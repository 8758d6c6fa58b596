"""How one partition differs from another, in words."""

import numpy as np
import pytest

from posterior_consensus.answers.alignment import differences_in_words
from posterior_consensus.ensemble.partitions import canonical_labels


def said(reference, partition, names=("a", "b", "c", "d", "e", "f")):
    return differences_in_words(canonical_labels(np.array(reference)), canonical_labels(np.array(partition)), names)


BASE = [0] * 10 + [1] * 8 + [2] * 6


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("a split", [0] * 6 + [3] * 4 + BASE[10:]),
        ("two merged", [0] * 18 + [2] * 6),
        ("all merged", [0] * 24),
        ("one item moved", [0] * 9 + [1] * 9 + [2] * 6),
        ("two exchange many", [0] * 5 + [1] * 9 + [0] * 4 + [2] * 6),
        ("one item alone", [0] * 9 + [9] + BASE[10:]),
        ("two merged but for two items, and a split", [0] * 16 + [4] * 2 + [2] * 3 + [3] * 3),
        ("singletons", [*range(20, 30), *BASE[10:]]),
        ("a split, and one item moved", [0] * 9 + [1] * 9 + [2] * 3 + [3] * 3),
    ],
)
def test_each_kind_of_change(name, partition, approved):
    approved("verdicts_differences", name, "\n".join(said(BASE, partition)))


def test_what_is_equal_and_what_comes_first():
    assert said(BASE, BASE) == said(BASE, [k + 5 for k in BASE]) == []
    partition = [0] * 9 + [1] * 9 + [2] * 3 + [3] * 3
    assert said([0] * 8 + BASE, [4] * 8 + partition, "abc")[0].startswith("cluster a splits")
