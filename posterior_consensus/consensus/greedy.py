"""Greedy search for the partition of least expected loss: allocation, sweetening scans, merges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posterior_consensus.consensus.selection import Candidate, check_count
from posterior_consensus.draws import PartitionDraws
from posterior_consensus.expectation import combine_sums, mean_loss
from posterior_consensus.kernels import search
from posterior_consensus.losses import PartitionLoss
from posterior_consensus.partitions import Labels, canonical_labels
from posterior_consensus.progress import track
from posterior_consensus.similarity import mean_similarity

_SAME = 1e-10  # relative difference below which two runs reached the same loss
_MOST_BYTES = 8e9


def greedy(
    draws: PartitionDraws,
    loss: PartitionLoss,
    *,
    n_clusters: int | None,
    max_clusters: int | None,
    rng: np.random.Generator,
    progressbar: bool,
    n_runs: int = 8,
) -> Candidate:
    """Search from several random orders of the items, each until no item's move and no merge lowers the expected loss.

    Parameters
    ----------
    n_runs : int
        Number of runs from random orders. One more starts from a single cluster, which is the answer where draws have
        little in common but which merges of two clusters do not always reach.

    Notes
    -----
    A run allocates the items one by one, in random order, to the cluster that is best for the items allocated so far,
    then lets every item move until none wants to (sweetening), as Dahl, Johnson and Mueller (2022) do,
    https://doi.org/10.1080/10618600.2022.2069779, and at the end tries to merge every two clusters, with scans after
    each merge.
    """
    check_count("n_runs", n_runs)
    fewest, most = (n_clusters, n_clusters) if n_clusters is not None else (1, max_clusters or draws.n_items)
    orders = [rng.permutation(draws.n_items) for _ in range(n_runs)]

    def runs() -> Iterator[_Run]:
        for order in track(orders, "Greedy search", progressbar=progressbar):
            yield _Run(draws, loss, fewest, most).allocate(order).improve(order)
        if fewest == 1:
            yield _Run(draws, loss, fewest, most).join().improve(orders[0])

    # A run's tables can be large: only what is told of it is kept.
    partitions, n_scans, n_merges = zip(*((run.labels, run.n_scans, run.n_merges) for run in runs()), strict=True)
    losses = mean_loss(draws, np.stack(partitions), loss)
    best = int(losses.argmin())
    reached = int(np.sum(losses <= losses[best] + _SAME * max(1.0, abs(losses[best]))))
    info = {
        "n_runs": len(partitions),
        "n_runs_at_best": reached,
        "n_scans": sum(n_scans),
        "n_merges": sum(n_merges),
        "expected_losses": losses.tolist(),
    }
    return Candidate(partitions[best], info)


@dataclass
class _Run:
    """One search; `state` holds the partition and its contingency with every draw."""

    draws: PartitionDraws
    loss: PartitionLoss
    fewest: int
    most: int
    n_scans: int = 0
    n_merges: int = 0

    def __post_init__(self) -> None:
        draws = self.draws
        self._draws = search.Draws(draws.labels, draws.starts, draws.weights)
        self._loss = self.loss.arrays(draws.n_items)
        n_rows, width = int(draws.starts[-1]), min(self.most, int(draws.n_clusters.max())) + 4
        self._check_memory(width)
        self.state = search.State(
            partition=np.full(draws.n_items, -1, np.int32),
            sizes=np.zeros(width, np.int64),
            counts=np.zeros((n_rows, width), np.int32),
            totals=np.zeros(n_rows, np.int32),
            joint=np.zeros(draws.n_draws),
            drawn=np.zeros(draws.n_draws),
        )

    @property
    def labels(self) -> Labels:
        return canonical_labels(self.state.partition)

    def allocate(self, order: Any) -> _Run:
        """Put the items, in this order, where they are best with the items before them."""
        self._place(order)
        self._open_clusters()
        return self

    def join(self) -> _Run:
        """Put all items into one cluster."""
        self.state.partition[:] = 0
        self.state.sizes[0] = self.draws.n_items
        rows = (self.draws.starts[:-1, np.newaxis] + self.draws.labels).ravel()
        self.state.totals[:] = self.state.counts[:, 0] = np.bincount(rows, minlength=self.state.totals.size)
        return self

    def improve(self, order: Any) -> _Run:
        """Let items move, in this order, and clusters merge until neither lowers the expected loss."""
        self._scan(order)
        while self._merge_once():
            self._scan(order)
        return self

    def _place(self, order: Any) -> int:
        """Place the items in this order, widening the state where columns run out; return how many moved."""
        moved, handled = 0, 0
        while handled < len(order):
            now, moves = search.place_items(
                self._draws, self._loss, self.state, order[handled:], self.fewest, self.most
            )
            handled, moved = handled + now, moved + moves
            if handled < len(order):
                self._widen()
        return moved

    def _scan(self, order: Any) -> None:
        while True:
            search.refresh_sums(self._draws, self._loss, self.state)
            self.n_scans += 1
            if self._place(order) == 0:
                return

    def _widen(self) -> None:
        width = 2 * self.state.sizes.size
        self._check_memory(width)
        more = width - self.state.sizes.size
        self.state = self.state._replace(
            sizes=np.pad(self.state.sizes, (0, more)), counts=np.pad(self.state.counts, ((0, 0), (0, more)))
        )

    def _check_memory(self, width: int) -> None:
        needed = 4 * int(self.draws.starts[-1]) * width
        if needed > _MOST_BYTES:
            raise MemoryError(
                f"A search among {width} clusters needs {needed / 1e9:.0f} GB of tables; set `max_clusters` to fewer."
            )

    def _open_clusters(self) -> None:
        """Give the item that fits its cluster least a cluster of its own until there are `fewest`."""
        while np.count_nonzero(self.state.sizes) < self.fewest:
            partition = canonical_labels(self.state.partition)
            fit = mean_similarity(self.draws, partition)[np.arange(partition.size), partition]
            if np.all(self.state.sizes > 0):
                self._widen()
            self._move(int(np.nanargmin(fit)), int(np.flatnonzero(self.state.sizes == 0)[0]))

    def _move(self, item: int, cluster: int) -> None:
        state = self.state
        rows = self.draws.starts[:-1] + self.draws.labels[:, item]
        old = state.partition[item]
        state.counts[rows, old] -= 1
        state.counts[rows, cluster] += 1
        state.sizes[old] -= 1
        state.sizes[cluster] += 1
        state.partition[item] = cluster

    def _merge_once(self) -> bool:
        """Merge the two clusters whose union lowers the expected loss most; whether there are such two."""
        clusters = np.flatnonzero(self.state.sizes)
        if clusters.size <= self.fewest:
            return False
        search.refresh_sums(self._draws, self._loss, self.state)
        h, sizes = self._loss.h, self.state.sizes
        own = np.array([h[sizes].sum()])
        now = self._expected(self.state.joint[np.newaxis], own)[0]
        best = (now - 1e-12 * max(1.0, abs(now)), -1, -1)
        for k in clusters[:-1]:
            others = clusters[clusters > k]
            joint = self.state.joint + search.merge_sums(self._draws, self._loss, self.state, k)[others]
            expected = self._expected(joint, own + h[sizes[k] + sizes[others]] - h[sizes[k]] - h[sizes[others]])
            least = int(expected.argmin())
            if expected[least] < best[0]:
                best = (float(expected[least]), int(k), int(others[least]))
        _, kept, gone = best
        if gone < 0:
            return False
        self.state.partition[self.state.partition == gone] = kept
        for array in (self.state.counts.T, self.state.sizes):
            array[kept] += array[gone]
            array[gone] = 0
        self.n_merges += 1
        return True

    def _expected(self, joint: Any, own: Any) -> Any:
        return self.draws.mean(combine_sums(self.loss, self.draws.n_items, joint, own, self.state.drawn))
