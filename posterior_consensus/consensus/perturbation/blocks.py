"""Products with the labels of all draws in blocks of items: what the steps of the model read labels for.

Sums over items are exact, and so the same for blocks of any size: values between 0 and 1 are rounded to a grid on which
a sum over all items needs no more bits than a float has.
"""

from __future__ import annotations

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

_BITS = 53  # of a float


def is_large(drawn: DrawnLabels, n_clusters: int) -> bool:
    """Whether labels are read in blocks, by sizes alone."""
    small_tables = memory.fits(8 * int(drawn.starts[-1]) * n_clusters / sizes.SHARE_OF_MODEL_TABLE)
    return drawn.n_items * drawn.n_draws >= sizes.LABELS_OF_LARGE_MODEL and small_tables


def differ(drawn: DrawnLabels) -> bool:
    """Whether two draws differ; reads as far as the first block that has both."""
    return any(result for _, result in drawn.map_blocks(_differ))


def rarity(drawn: DrawnLabels, rows: Rows, counts: Floats) -> Floats:
    """Sum (n,) over some draws of the reciprocal sizes of an item's clusters."""
    starts = np.concatenate([[0], np.cumsum(drawn.n_clusters[rows])])
    sizes = sum(part for _, part in drawn.map_blocks(_sizes, rows, starts))
    parts = [part for _, part in drawn.map_blocks(_gathered, rows, starts, counts, 1 / sizes)]
    return np.concatenate(parts).ravel()


def table(drawn: DrawnLabels, memberships: Floats) -> Floats:
    """Sums (R, K) of the memberships over the clusters of each draw."""
    total = np.zeros((int(drawn.starts[-1]), memberships.shape[1]))
    for _, part in drawn.map_blocks(_scattered, drawn.starts, _grid(drawn.n_items), memberships):
        total += part
    return total


def expectation(drawn: DrawnLabels, weights: Floats, matches: Floats, logits: Floats) -> tuple[Floats, Floats, Floats]:
    """Memberships (n, K) by the votes of the draws and these logits (K,), their normalizers (n,) and their table."""
    memberships, totals = np.empty((drawn.n_items, logits.size)), np.empty(drawn.n_items)
    total = np.zeros(matches.shape)
    arguments = drawn.starts, _grid(drawn.n_items), weights, matches, logits
    for items, (own, normalisers, part) in drawn.map_blocks(_expected, *arguments):
        memberships[items], totals[items] = own, normalisers
        total += part
    return memberships, totals, total


def held_out_votes(drawn: DrawnLabels, *arguments: Any) -> Floats:
    """Do what `perturbation.held_out_votes` does."""
    return np.concatenate([votes for _, votes in drawn.map_blocks(_held_out, drawn.starts, *arguments)])


def _grid(n_items: int) -> float:
    return 2.0 ** (_BITS - n_items.bit_length())


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
    values = np.round(memberships[items] * grid) / grid
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
) -> tuple[Floats, Floats, Floats]:
    labels = np.ascontiguousarray(labels)
    votes = ensemble.gather(labels, starts, weights, matches) + logits
    totals = logsumexp(votes, axis=1, keepdims=True)
    memberships = np.exp(votes - totals)
    return memberships, totals[:, 0], ensemble.scatter(labels, starts, np.round(memberships * grid) / grid)


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
