"""One name for each cluster in all draws, so that items have marginal distributions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from posterior_consensus.diagnostics.traces import central_draw
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.partitions import canonical_labels
from posterior_consensus.ensemble.switching import most_in_common
from posterior_consensus.kernels import ensemble
from posterior_consensus.losses.partition_losses import binder

_MOST_ROUNDS = 10


def matched_labels(draws: PartitionDraws) -> npt.NDArray[np.uint32]:
    """Labels (n_draws, n_items) with clusters renumbered to fit one reference partition, the items' plurality votes.

    The reference starts as a central draw, and votes are repeated until it no longer changes. A draw's clusters without
    a match are numbered after those of the reference, in order of size.
    """
    reference = central_draw(draws, binder())
    for _ in range(_MOST_ROUNDS):
        labels = _matched_to(draws, reference)
        counts = np.zeros((draws.n_items, int(labels.max()) + 1), np.int64)
        items = np.arange(draws.n_items)
        for row in labels:
            counts[items, row] += 1
        voted = canonical_labels(counts.argmax(axis=1))
        if np.array_equal(voted, reference):
            break
        reference = voted
    return labels


def _matched_to(draws: PartitionDraws, reference: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    n_clusters = int(reference.max()) + 1
    counts = ensemble.joint_counts(draws.labels, draws.starts, reference, n_clusters)
    labels = np.empty(draws.labels.shape, np.uint32)
    for t, row in enumerate(draws.labels):
        table = counts[draws.starts[t] : draws.starts[t + 1]]
        spare = max(n_clusters - len(table), 0)
        common = np.concatenate([table, np.zeros((spare, n_clusters), table.dtype)]).astype(np.float64)
        numbers = np.full(len(common), -1)
        numbers[most_in_common(common[np.newaxis])[0]] = np.arange(n_clusters)
        rest = np.flatnonzero(numbers < 0)
        numbers[rest[np.argsort(-common[rest].sum(axis=1), kind="stable")]] = n_clusters + np.arange(rest.size)
        labels[t] = numbers[row]
    return labels
