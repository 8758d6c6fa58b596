"""How often searches look at whether to stop, and what they do once they are to: counted without compilation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import json, sys
import numpy as np
from posterior_consensus.kernels import cells, pair_moves
from posterior_consensus.search import descent
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.ensemble.partitions import canonical_rows
from tests import reference

N, name, kind = 24, sys.argv[1], sys.argv[2]


class Flag(np.ndarray):
    def __getitem__(self, key):
        self.looks += 1
        return int(self.looks > self.until)


def flag(until):
    made = np.zeros(1, np.uint8).view(Flag)
    made.looks, made.until = 0, until
    return made


rng = np.random.default_rng(3)
noisy = np.where(rng.random((8, N)) < 0.4, rng.integers(6, size=(8, N)), np.arange(N) // 5)
labels, counts = canonical_rows(noisy.astype(np.uint8), 6)
starts = np.concatenate([[0], np.cumsum(counts)])
weights = np.full(8, 1 / 8)
record = as_loss(name)
similarity = reference.similarity(labels, weights)
np.fill_diagonal(similarity, 0.0)


def settled(until, most):
    stop, partition = flag(until), np.arange(N, dtype=np.int32)
    order = np.arange(N)
    if kind == "pairs":
        costs = pair_moves.Costs(record.numerator["A"], record.numerator["B"])
        value, tally = descent.settle_pairs(similarity, costs, partition, order, (1, most), stop)
        value += record.numerator["C"] * similarity.sum() / 2
    else:
        draws = {"dense": cells.Draws, "sparse": cells.sparse_draws}[kind](labels, starts, weights)
        value, _, tally = descent.settle(
            draws, record.arrays(N), partition, order, (1, most), stop, effort=2, exactly=True
        )
    definition = reference.LOSSES[name]
    mean = reference.expected(partition, labels, definition, weights)
    assert abs(record.scale(N) * value - mean) < 1e-9, (until, value, mean)
    return stop.looks, int(np.unique(partition).size), tally.tolist()


whole, _, tally = settled(np.inf, N)
stopped = [(at, *settled(at, most)[:2], most) for at in range(0, whole, max(1, whole // 40)) for most in (3, N)]
print(json.dumps({"looks": whole, "scans": tally[0], "stopped": stopped}))
"""


@pytest.mark.parametrize(
    ("loss", "kind"), [("vi", "dense"), ("nid", "dense"), ("vi", "sparse"), ("binder", "dense"), ("binder", "pairs")]
)
def test_a_search_looks_at_every_item_and_ends_at_once(loss, kind):
    root = Path(__file__).parents[2]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, loss, kind], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["scans"] > 1 and found["looks"] > 24 * found["scans"]
    for until, looks, n_clusters, most in found["stopped"]:
        assert n_clusters <= most
        assert looks <= until + 4 * (24 if kind == "pairs" else 4)  # of pairs, clusters too many merge one by one
