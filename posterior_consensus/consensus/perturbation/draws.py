"""The draws as the random perturbation model sees them, and products with their labels.

Labels are read in blocks of items if there are many. Sums over blocks are exact, and so the same for blocks of any
size: values between 0 and 1 are rounded to a grid on which a sum over all items needs no more bits than a float has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from posterior_consensus.ensemble import on_blocks
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import DrawnLabels, LabelsInMemory, Result
from posterior_consensus.kernels import ensemble, perturbation
from posterior_consensus.runtime import memory, sizes

Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

_BITS = 53  # of a float


class ModelDraws(NamedTuple):
    """What the model sees of the draws."""

    labels: DrawnLabels
    n_labels: Integers  # (N,), at least as many as it has clusters: some may have had no item by chance
    counts: Floats  # (N,), as how many independent draws each one counts
    per_draw: bool  # whether each draw has a noise of its own
    in_blocks: bool = False  # whether labels are read in blocks, and not as one array

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.labels.n_items

    @property
    def starts(self) -> Integers:
        """First row of each draw (N + 1,) where the clusters of all draws are stacked."""
        return self.labels.starts

    def widths(self, n_clusters: int) -> Integers:
        """Number of labels (N,) of each draw that can stand for so many clusters."""
        return np.maximum(self.n_labels, n_clusters)

    def of_items(self, items: Rows) -> ModelDraws:
        """Some items of all draws, as an array; clusters may be empty there."""
        if items.size == self.n_items and not self.in_blocks:
            return self
        labels = np.ascontiguousarray(self.labels.columns(items).T)
        return self._replace(labels=LabelsInMemory(labels, self.labels.n_clusters), in_blocks=False)

    def take(self, rows: Rows) -> ModelDraws:
        """Some draws of all items."""
        if rows.size == self.counts.size:
            return self
        return self._replace(labels=self.labels.take(rows), n_labels=self.n_labels[rows], counts=self.counts[rows])

    def rarity(self, rows: Rows) -> Floats:
        """Sum (n,) over some draws of the reciprocal sizes of an item's clusters."""
        labels = self.labels.take(rows)
        shares = 1 / labels.sizes[:, np.newaxis]
        parts = [part for _, part in labels.map_blocks(on_blocks.gather, labels.starts, self.counts[rows], shares)]
        return np.concatenate(parts).ravel()

    def table(self, memberships: Floats) -> Floats:
        """Sums (R, K) of the memberships over the clusters of each draw."""
        return reduce(np.add, self._by_block(_scattered, self._grid, memberships))

    def expectation(self, weights: Floats, matches: Floats, logits: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Memberships (n, K) by the votes of the draws and these logits (K,), their normalizers (n,) and their table.

        Of an array there is no table, as it costs as much later, if it is needed at all.
        """
        parts = self._by_block(_expected, self._grid, weights, matches, logits)
        own, totals, tables = zip(*parts, strict=True)
        return np.concatenate(own), np.concatenate(totals), sum(tables) if self.in_blocks else None

    def held_out_votes(self, *arguments: Any) -> Floats:
        """Do what `perturbation.held_out_votes` does."""
        return np.concatenate(list(self._by_block(_held_out, self.counts, *arguments)))

    def _by_block(self, function: Callable[..., Result], *arguments: Any) -> Iterator[Result]:
        blocks = None if self.in_blocks else [slice(0, self.n_items)]
        return (part for _, part in self.labels.map_blocks(function, self.starts, *arguments, blocks=blocks))

    @property
    def _grid(self) -> float:
        """Number of steps of the grid from 0 to 1; 0 for no grid, as of an array there is a single sum."""
        return 2.0 ** (_BITS - self.n_items.bit_length()) if self.in_blocks else 0.0


def model_draws(
    draws: PartitionDraws, n_clusters: int | None, *, per_draw: bool = False, in_blocks: bool = False
) -> ModelDraws:
    """The draws as the model sees them; those of weight 0 take no part.

    Weighted draws count as 1 / sum(weights^2) equal ones (Kish). A draw has as many labels as clusters are requested,
    by default as many as the median draw. Some of them may have no item by chance: otherwise a draw of one cluster
    would not be evidence of little noise.
    """
    used = draws.without_zero_weights()
    counts = used.weights / np.square(used.weights).sum()
    if used.samples.is_weighted:
        median = np.quantile(used.n_clusters, 0.5, weights=used.weights, method="inverted_cdf")
    else:
        median = np.median(used.n_clusters)
    typical = min(n_clusters or int(median), int(used.n_clusters.max()))
    labels = used.drawn if in_blocks else LabelsInMemory(used.labels, used.n_clusters)
    return ModelDraws(labels, np.maximum(used.n_clusters, typical), counts, per_draw, in_blocks)


def is_large(drawn: DrawnLabels, n_clusters: int) -> bool:
    """Whether labels are read in blocks, by sizes alone."""
    small_tables = memory.fits(8 * int(drawn.starts[-1]) * n_clusters / sizes.SHARE_OF_MODEL_TABLE)
    return drawn.n_items * drawn.n_draws >= sizes.LABELS_OF_LARGE_MODEL and small_tables


def differ(drawn: DrawnLabels) -> bool:
    """Whether two draws differ; reads as far as the first block that has both."""
    return any(result for _, result in drawn.map_blocks(_differ))


def _differ(labels: npt.NDArray[Any], items: slice) -> bool:
    return bool((labels != labels[0]).any())


def _rounded(values: Floats, grid: float) -> Floats:
    return np.round(values * grid) / grid if grid else values


def _scattered(labels: npt.NDArray[Any], items: slice, starts: Integers, grid: float, memberships: Floats) -> Floats:
    return ensemble.scatter(np.ascontiguousarray(labels), starts, _rounded(memberships[items], grid))


def _expected(
    labels: npt.NDArray[Any],
    items: slice,
    starts: Integers,
    grid: float,
    weights: Floats,
    matches: Floats,
    logits: Floats,
) -> tuple[Floats, Floats, Floats | None]:
    votes = on_blocks.gather(labels, items, starts, weights, matches) + logits
    totals = logsumexp(votes, axis=1, keepdims=True)
    memberships = np.exp(votes - totals)
    table = ensemble.scatter(np.ascontiguousarray(labels), starts, _rounded(memberships, grid)) if grid else None
    return memberships, totals[:, 0], table


def _held_out(
    labels: npt.NDArray[Any],
    items: slice,
    starts: Integers,
    counts: Floats,
    gains: Floats,
    matches: Floats,
    memberships: Floats,
) -> Floats:
    labels = np.ascontiguousarray(labels)
    return perturbation.held_out_votes(labels, starts, counts, gains, matches, memberships[items])
