"""How one partition differs from another, in words."""

import numpy as np
import pytest

from posterior_consensus.answers.differences import differences
from posterior_consensus.ensemble.partitions import canonical_labels


def said(reference, partition, names=("a", "b", "c", "d", "e", "f")):
    return differences(canonical_labels(np.array(reference)), canonical_labels(np.array(partition)), names)


BASE = [0] * 10 + [1] * 8 + [2] * 6


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        (BASE, []),
        ([k + 5 for k in BASE], []),
        ([0] * 6 + [3] * 4 + BASE[10:], ["cluster a splits into clusters of 6 and 4"]),
        ([0] * 18 + [2] * 6, ["clusters a and b are one"]),
        ([0] * 24, ["clusters a, b and c are one"]),
        ([0] * 9 + [1] * 9 + [2] * 6, ["1 item changes clusters"]),
        (
            [0] * 5 + [1] * 9 + [0] * 4 + [2] * 6,
            ["clusters a and b are partitioned differently, into clusters of 9 and 9"],
        ),
        ([0] * 9 + [9] + BASE[10:], ["cluster a splits into clusters of 9 and 1"]),
        (
            [0] * 16 + [4] * 2 + [2] * 3 + [3] * 3,
            ["clusters a and b are partitioned differently, into clusters of 16 and 2"],
        ),
        (list(range(20, 30)) + BASE[10:], ["cluster a splits into 10 clusters, the largest of 1 item"]),
    ],
)
def test_each_kind_of_change(partition, words):
    found = said(BASE, partition)
    assert found[: len(words)] == words
    assert bool(found) == bool(words)


def test_the_largest_change_comes_first_and_moved_items_last():
    partition = [0] * 9 + [1] * 9 + [2] * 3 + [3] * 3
    assert said(BASE, partition) == ["cluster c splits into clusters of 3 and 3", "1 item changes clusters"]
    assert said([0] * 8 + BASE, [4] * 8 + partition, "abc")[0].startswith("cluster a splits into")


def test_what_is_said_does_not_depend_on_the_order_of_items(rng):
    for n_clusters in (2, 3, 4, 6):
        reference = rng.integers(n_clusters, size=60)
        partition = np.where(rng.random(60) < 0.3, rng.integers(n_clusters + 1, size=60), reference)
        partition[reference == 0] += 10 * (rng.random(np.count_nonzero(reference == 0)) < 0.5)

        def words(order, reference=reference, partition=partition):
            found = reference[order]
            names = found[np.sort(np.unique(found, return_index=True)[1])]
            return sorted("".join(sorted(text)) for text in said(found, partition[order], names))

        before = words(np.arange(60))
        assert before
        assert words(rng.permutation(60)) == before
