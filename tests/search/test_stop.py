"""How often searches look at whether to stop, and what they do once they are to: counted without compilation."""

import numpy as np
import pytest

from posterior_consensus.kernels import pair_moves
from posterior_consensus.kernels.tables import SCANS
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.search import local_search
from posterior_consensus.search.local_search import Depth
from tests import reference
from tests.kernels.checks import in_plain_python
from tests.kernels.searching import KINDS, draws_of, mean_loss, similarity_of

N = 24


class Flag(np.ndarray):
    """Says that it is time to stop once it has been looked at so many times."""

    def __getitem__(self, key):
        self.looks += 1
        return int(self.looks > self.until)


def flag(until):
    made = np.zeros(1, np.uint8).view(Flag)
    made.looks, made.until = 0, until
    return made


def some_draws():
    rng = np.random.default_rng(3)
    noisy = np.where(rng.random((8, N)) < 0.4, rng.integers(6, size=(8, N)), np.arange(N) // 5)
    return draws_of(noisy, np.full(8, 1 / 8))


def settled(name, kind, until, most):
    """How often the search looked, how many clusters it left, and how many scans there were."""
    draws, record = some_draws(), as_loss(name)
    stop, partition, order = flag(until), np.arange(N, dtype=np.int32), np.arange(N)
    with in_plain_python():
        if kind == "pairs":
            similarity, costs = similarity_of(draws), pair_moves.Costs(record.numerator["A"], record.numerator["B"])
            value, tally = local_search.descend_pairs(similarity, costs, partition, order, (1, most), stop)
            value += record.numerator["C"] * similarity.sum() / 2
        else:
            value, _, tally = local_search.descend_draws(
                *(KINDS[kind](*draws), record.arrays(N), partition, order, (1, most), stop),
                depth=Depth.REARRANGEMENTS,
                confirm=True,
            )
    assert record.scale(N) * value == pytest.approx(mean_loss(partition, draws, reference.LOSSES[name]), abs=1e-9)
    return stop.looks, np.unique(partition).size, tally[SCANS]


@pytest.mark.parametrize(
    ("loss", "kind"), [("vi", "dense"), ("nid", "dense"), ("vi", "sparse"), ("binder", "dense"), ("binder", "pairs")]
)
def test_a_search_looks_at_every_item_and_ends_at_once(loss, kind):
    whole, _, n_scans = settled(loss, kind, np.inf, N)
    assert n_scans > 1 and whole > N * n_scans
    for number, until in enumerate(range(0, whole, whole // 12)):
        most = (3, N)[number % 2]
        looks, n_clusters, _ = settled(loss, kind, until, most)
        assert n_clusters <= most
        assert looks <= until + 4 * (N if kind == "pairs" else 4)  # of pairs, clusters too many merge one by one
