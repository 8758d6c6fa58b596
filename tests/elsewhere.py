"""Labels that are not in memory, for tests: blocks of odd sizes, counted passes and labels."""

from dataclasses import replace

import numpy as np

from posterior_consensus.ensemble.dask_labels import DaskLabels
from posterior_consensus.ensemble.labels import ArrayLabels, LabelBackend


class Elsewhere(LabelBackend):
    """Labels that can be read block by block only.

    `passes` counts how often all blocks were read, `reads` the reads of some items alone.
    """

    of_draws = DaskLabels.of_draws

    def __init__(self, labels, n_clusters):
        self._labels, self.n_clusters = labels, n_clusters
        self.passes = self.reads = 0

    @property
    def n_items(self):
        return self._labels.shape[1]

    @property
    def dtype(self):
        return self._labels.dtype

    @property
    def values(self):
        raise AssertionError("all labels were asked for at once")

    @property
    def item_blocks(self):
        sizes = np.random.default_rng(self.n_items).integers(1, 2 + self.n_items // 3, size=self.n_items)
        ends = np.unique(np.minimum(np.cumsum(sizes), self.n_items))
        return [slice(first, last) for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]

    def map_blocks(self, function, *arguments, blocks=None):
        self.passes += blocks is None
        for items in self.item_blocks if blocks is None else blocks:
            yield items, function(self._labels[:, items].copy(), items, *arguments)

    def blocks(self, n_draws):
        self.passes += 1
        for first in range(0, self.n_draws, n_draws):
            rows = slice(first, first + n_draws)
            yield rows, self._labels[rows].copy()

    def columns(self, items):
        self.reads += 1
        return np.ascontiguousarray(self._labels[:, items].T)

    def of_items(self, at):
        self.reads += 1
        return ArrayLabels(self._labels, self.n_clusters).of_items(at)

    def take(self, rows):
        return Elsewhere(self._labels[rows], self.n_clusters[rows])


class Counted(LabelBackend):
    """Labels that are read block by block, as on workers; `read` counts the labels that these and those taken gave."""

    blocks, of_draws = DaskLabels.blocks, DaskLabels.of_draws

    def __init__(self, labels, n_clusters, read):
        self._labels, self.n_clusters, self.read = labels, n_clusters, read

    @property
    def n_items(self):
        return self._labels.shape[1]

    @property
    def dtype(self):
        return self._labels.dtype

    def map_blocks(self, function, *arguments, blocks=None):
        for items in self.item_blocks if blocks is None else blocks:
            block = self._labels[:, items].copy()
            self.read["labels"] += block.size
            yield items, function(block, items, *arguments)

    def take(self, rows):
        return Counted(self._labels[rows], self.n_clusters[rows], self.read)


def elsewhere(draws):
    """The same draws, their labels not in memory."""
    return replace(draws, backend=Elsewhere(draws.labels, draws.n_clusters))
