"""Products with the labels of all draws: what the steps of the model read labels for.

Labels are an array, or they are read in blocks of items. Sums over blocks are exact, and so the same for blocks of any
size: values between 0 and 1 are rounded to a grid on which a sum over all items needs no more bits than a float has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from posterior_consensus.ensemble.labels import DrawnLabels
from posterior_consensus.kernels import ensemble, perturbation
from posterior_consensus.runtime import memory, sizes

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Labels = npt.NDArray[Any] | DrawnLabels

_BITS = 53  # of a float


def is_large(drawn: DrawnLabels, n_clusters: int) -> bool:
    """Whether labels are read in blocks, by sizes alone."""
    small_tables = memory.fits(8 * int(drawn.starts[-1]) * n_clusters / sizes.SHARE_OF_MODEL_TABLE)
    return drawn.n_items * drawn.n_draws >= sizes.LABELS_OF_LARGE_MODEL and small_tables


def differ(drawn: DrawnLabels) -> bool:
    """Whether two draws differ; reads as far as the first block that has both."""
    return any(result for _, result in drawn.map_blocks(_differ))


def rarity(labels: Labels, n_clusters: Integers, rows: Rows, counts: Floats) -> Floats:
    """Sum (n,) over some draws of the reciprocal sizes of an item's clusters."""
    starts = np.concatenate([[0], np.cumsum(n_clusters[rows])])
    sizes = sum(part for _, part in _mapped(labels, _sizes, rows, starts))
    parts = [part for _, part in _mapped(labels, _gathered, rows, starts, counts, 1 / sizes)]
    return np.concatenate(parts).ravel()


def table(labels: Labels, starts: Integers, memberships: Floats) -> Floats:
    """Sums (R, K) of the memberships over the clusters of each draw."""
    total: Floats = sum(part for _, part in _mapped(labels, _scattered, starts, _grid(labels), memberships))
    return total


def expectation(
    labels: Labels, starts: Integers, weights: Floats, matches: Floats, logits: Floats
) -> tuple[Floats, Floats, Floats | None]:
    """Memberships (n, K) by the votes of the draws and these logits (K,), their normalizers (n,) and their table.

    Of an array there is no table, as it costs as much later, if it is needed at all.
    """
    arguments = starts, _grid(labels), weights, matches, logits
    own, totals, tables = zip(*(part for _, part in _mapped(labels, _expected, *arguments)), strict=True)
    return np.concatenate(own), np.concatenate(totals), None if tables[0] is None else sum(tables)


def held_out_votes(labels: Labels, *arguments: Any) -> Floats:
    """Do what `perturbation.held_out_votes` does."""
    return np.concatenate([votes for _, votes in _mapped(labels, _held_out, *arguments)])


def is_in_blocks(labels: Labels) -> bool:
    """Whether labels are read in blocks of items, and not held as an array."""
    return isinstance(labels, DrawnLabels)


def _mapped(labels: Any, function: Callable[..., Any], *arguments: Any) -> Iterable[tuple[slice, Any]]:
    """The function's results by blocks of items; an array is one block."""
    if is_in_blocks(labels):
        return labels.map_blocks(function, *arguments)
    items = slice(0, labels.shape[1])
    return [(items, function(labels, items, *arguments))]


def _grid(labels: Any) -> float:
    """Number of steps of the grid from 0 to 1; 0 for no grid, as of an array there is a single sum."""
    return 2.0 ** (_BITS - labels.n_items.bit_length()) if is_in_blocks(labels) else 0.0


def _rounded(values: Floats, grid: float) -> Floats:
    return np.round(values * grid) / grid if grid else values


def _differ(labels: npt.NDArray[Any], items: slice) -> bool:
    return bool((labels != labels[0]).any())


def _sizes(labels: npt.NDArray[Any], items: slice, rows: Rows, starts: Integers) -> Floats:
    sizes: Floats = ensemble.scatter(labels[rows], starts, np.ones((labels.shape[1], 1)))
    return sizes


def _gathered(
    labels: npt.NDArray[Any], items: slice, rows: Rows, starts: Integers, weights: Floats, values: Floats
) -> Floats:
    gathered: Floats = ensemble.gather(labels[rows], starts, weights, values)
    return gathered


def _scattered(labels: npt.NDArray[Any], items: slice, starts: Integers, grid: float, memberships: Floats) -> Floats:
    values = _rounded(memberships[items], grid)
    scattered: Floats = ensemble.scatter(np.ascontiguousarray(labels), starts, values)
    return scattered


def _expected(
    labels: npt.NDArray[Any],
    items: slice,
    starts: Integers,
    grid: float,
    weights: Floats,
    matches: Floats,
    logits: Floats,
) -> tuple[Floats, Floats, Floats | None]:
    labels = np.ascontiguousarray(labels)
    votes = ensemble.gather(labels, starts, weights, matches) + logits
    totals = logsumexp(votes, axis=1, keepdims=True)
    memberships = np.exp(votes - totals)
    table = ensemble.scatter(labels, starts, _rounded(memberships, grid)) if grid else None
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
    votes: Floats = perturbation.held_out_votes(labels, starts, counts, gains, matches, memberships[items])
    return votes
