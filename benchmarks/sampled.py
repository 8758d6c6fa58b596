"""Greedy search on all items and from half of them, in turn: expected losses and CPU seconds, by items x draws.

Four kinds of draws. Few clusters are those of the benchmark "scale". Many are 100 of unequal size, and small ones 300,
of which pairs merge, while a fifth of the items go where others are. Noisy draws put 30% of the items anywhere in 30.
The difference of expected losses is that of the search from half of the items less the other, in percent of it: above 0
is worse. Each row has a process of its own, and each search a call of few items before it, for its kernels.
"""

from functools import partial

import numpy as np

import posterior_consensus as pc
from benchmarks._runner import apart, used
from benchmarks.scale import draws_of
from posterior_consensus.search import large

SIZES = {
    "few": ((33_000, 32), (33_000, 128), (33_000, 512), (66_000, 16), (66_000, 64), (66_000, 256), (131_000, 32)),
    "many": ((33_000, 32), (33_000, 128)),
    "noisy": ((33_000, 128),),
    "small": ((33_000, 128),),
}
LOSSES = {"few": ("vi", "binder"), "many": ("vi", "binder"), "noisy": ("vi",), "small": ("vi",)}  # Binder's takes long
SMALLEST = {"few": ((300, 20),)}
WARM_UP = 3_000, 50


def tables(smallest):
    sizes = SMALLEST if smallest else SIZES
    yield "", (apart(_row, kind, *size, loss) for kind in sizes for size in sizes[kind] for loss in LOSSES[kind])


def _row(kind: str, n_items: int, n_draws: int, loss: str) -> dict[str, object]:
    draws, few = (pc.as_partition_draws(KINDS[kind](*size)) for size in ((n_items, n_draws), WARM_UP))
    calls = []
    for sampled in (False, True):
        for one in (few, draws):
            call = used(_searched, one, loss, sampled)
        calls.append(call)
    (all_items, sample), losses = calls, [call.result.expected_loss for call in calls]
    return {
        **{"clusters": kind, "items": n_items, "draws": n_draws, "labels": n_items * n_draws, "loss": loss},
        **{"all items, CPU": all_items.cpu, "half, CPU": sample.cpu, "expected loss": f"{losses[0]:.6g}"},
        "difference": f"{100 * (losses[1] - losses[0]) / losses[0]:+.5f}%",
    }


def _searched(draws: pc.results.PartitionDraws, loss: str, sampled: bool) -> pc.results.ConsensusPartition:
    large._LABELS, large._LEAST_ITEMS = 0 if sampled else np.inf, 1
    return pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False)


def many(n_items: int, n_draws: int, n_clusters: int = 100) -> np.ndarray:
    rng = np.random.default_rng(1)
    truth = rng.choice(n_clusters, n_items, p=rng.dirichlet(np.full(n_clusters, 2.0)))
    draws = np.empty((n_draws, n_items), np.int32)
    for draw in draws:
        pairs, name = rng.choice(n_clusters // 2, n_clusters // 10, replace=False), np.arange(n_clusters)
        name[2 * pairs + 1] = 2 * pairs
        draw[:] = name[np.where(rng.random(n_items) < 0.2, rng.permuted(truth), truth)]
    return draws


def noisy(n_items: int, n_draws: int, n_clusters: int = 30) -> np.ndarray:
    rng = np.random.default_rng(1)
    truth = rng.choice(n_clusters, n_items, p=rng.dirichlet(np.ones(n_clusters)))
    anywhere = rng.integers(n_clusters, size=(n_draws, n_items), dtype=np.int32)
    return np.where(rng.random((n_draws, n_items)) < 0.3, anywhere, truth)


KINDS = {"few": draws_of, "many": many, "noisy": noisy, "small": partial(many, n_clusters=300)}
