"""Draws as the input of the random perturbation model, and products with their labels.

Labels are read in blocks of items if there are many. Sums over blocks are exact, and hence independent of the size of
blocks: values between 0 and 1 are rounded to a grid on which a sum over all items fits into the bits of a float.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from posterior_consensus.ensemble.draws import PartitionDraws, gather
from posterior_consensus.ensemble.labels import ArrayLabels, LabelBackend, Result
from posterior_consensus.kernels import ensemble, perturbation
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers, Positions

_BITS = 53  # of a float


class ModelDraws(NamedTuple):
    """Labels, numbers of labels and counts of the draws."""

    labels: LabelBackend
    n_labels: Integers  # (N,), at least the number of clusters: some labels may have no item by chance
    counts: Floats  # (N,), equivalent number of independent draws
    per_draw: bool  # whether each draw has its own noise
    in_blocks: bool = False  # whether labels are read in blocks instead of as one array

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.labels.n_items

    @property
    def starts(self) -> Integers:
        """First row of each draw (N + 1,) among the stacked clusters of all draws."""
        return self.labels.starts

    def widths(self, n_clusters: int) -> Integers:
        """Number of labels (N,) of each draw, at least `n_clusters`."""
        return np.maximum(self.n_labels, n_clusters)

    def of_items(self, items: Positions) -> ModelDraws:
        """Select items of all draws, as an array; some clusters may then be empty."""
        if items.size == self.n_items and not self.in_blocks:
            return self
        labels = np.ascontiguousarray(self.labels.columns(items).T)
        return self._replace(labels=ArrayLabels(labels, self.labels.n_clusters), in_blocks=False)

    def take(self, rows: Positions) -> ModelDraws:
        """Select draws of all items."""
        if rows.size == self.counts.size:
            return self
        return self._replace(labels=self.labels.take(rows), n_labels=self.n_labels[rows], counts=self.counts[rows])

    def rarity(self, rows: Positions) -> Floats:
        """Sum (n,) over the draws `rows` of the reciprocal sizes of an item's clusters."""
        labels = self.labels.take(rows)
        shares = 1 / labels.sizes[:, np.newaxis]
        parts = [part for _, part in labels.map_blocks(gather, labels.starts, self.counts[rows], shares)]
        return np.concatenate(parts).ravel()

    def table(self, memberships: Floats) -> Floats:
        """Sums (R, K) of the memberships over the clusters of each draw."""
        return reduce(np.add, self._by_block(_scattered, self._grid, memberships))

    def expectation(self, weights: Floats, matches: Floats, logits: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Memberships (n, K) by the votes of the draws and the logits (K,), their normalizers (n,) and their table.

        Without blocks the table is None: computing it later costs the same, and may not be needed.
        """
        parts = self._by_block(_expected, self._grid, weights, matches, logits)
        own, totals, tables = zip(*parts, strict=True)
        return np.concatenate(own), np.concatenate(totals), sum(tables) if self.in_blocks else None

    def held_out_votes(self, *arguments: Any) -> Floats:
        """Call `perturbation.held_out_votes` block by block."""
        return np.concatenate(list(self._by_block(_held_out, self.counts, *arguments)))

    def _by_block(self, function: Callable[..., Result], *arguments: Any) -> Iterator[Result]:
        blocks = None if self.in_blocks else [slice(0, self.n_items)]
        return (part for _, part in self.labels.map_blocks(function, self.starts, *arguments, blocks=blocks))

    @property
    def _grid(self) -> float:
        """Number of steps of the grid from 0 to 1; 0 for no grid, because without blocks there is a single sum."""
        return 2.0 ** (_BITS - self.n_items.bit_length()) if self.in_blocks else 0.0


def model_draws(
    draws: PartitionDraws, n_clusters: int | None, *, per_draw: bool = False, in_blocks: bool = False
) -> ModelDraws:
    """Prepare draws for the model, without draws of weight 0.

    Weighted draws count as 1 / sum(weights^2) draws (Kish). A draw has as many labels as requested clusters, by default
    the number of clusters of the median draw. Some labels may have no item by chance: otherwise a draw of one cluster
    would not indicate little noise.
    """
    used = draws.without_zero_weights()
    counts = used.weights / np.square(used.weights).sum()
    if used.samples.is_weighted:
        median = np.quantile(used.n_clusters, 0.5, weights=used.weights, method="inverted_cdf")
    else:
        median = np.median(used.n_clusters)
    typical = min(n_clusters or int(median), int(used.n_clusters.max()))
    labels = used.backend if in_blocks else ArrayLabels(used.labels, used.backend.n_clusters)
    return ModelDraws(labels, np.maximum(used.backend.n_clusters, typical), counts, per_draw, in_blocks)


def is_large(backend: LabelBackend, n_clusters: int) -> bool:
    """Whether labels are read in blocks; depends on sizes only."""
    small_tables = memory.fits(8 * int(backend.starts[-1]) * n_clusters / memory.SHARE_OF_MODEL_TABLE)
    return backend.n_items * backend.n_draws >= memory.LABELS_OF_LARGE_MODEL and small_tables


def draws_differ(backend: LabelBackend) -> bool:
    """Whether any two draws differ; reads blocks until one shows it."""
    return any(result for _, result in backend.map_blocks(_differ))


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
    votes = gather(labels, items, starts, weights, matches) + logits
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
