"""Restarts: partitions near a good one, from which a search may leave its basin, and the best of two block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.partitions import Labels

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Companions = Callable[[int, float], npt.NDArray[np.bool_]]

_CLUSTERS_A_SITE = 16  # clusters for each of which a loss that is a sum over clusters is changed at one more place
_SCATTERED = 0.1, 0.3  # shares of the items that are taken out of their clusters at once


def without_gaps(labels: Codes) -> Labels:
    """Number the clusters from 0 on, in the order of their labels; -1 stays."""
    names, codes = np.unique(labels, return_inverse=True)
    return np.asarray(codes - int(names[0] < 0), np.int32)


def changes(
    elite: Sequence[Labels],
    drawn: npt.NDArray[Any],
    companions: Companions,
    n_clusters: int | None,
    is_sum: bool,
    rng: np.random.Generator,
) -> Iterator[tuple[Labels, npt.NDArray[np.intp]]]:
    """Give changed partitions without end, in which -1 stands for items to allocate, and an order of the items.

    They come from the first of the `elite`, the best, as often as from any of them; two of each round are draws.

    Parameters
    ----------
    elite : sequence of int32 array of shape (n,)
        Read anew for each change.
    drawn : integer array of shape (m, n)
        Some of the draws; none if there are no draws.
    companions : callable
        ``companions(i, u)`` are the items that item i is with in the draw at quantile u; or those whose similarity to
        it is above u, if there are no draws.
    n_clusters : int, optional
        If it is given, draws come with their clusters merged at random into so many.
    is_sum : bool
        Whether the loss is a sum over clusters, so that changes at many places are judged apart.
    rng : Generator
    """
    given = _Given(elite, drawn, companions, n_clusters, is_sum, rng)
    for change in cycle(_KINDS):
        labels = elite[0 if rng.random() < 0.5 else int(rng.integers(len(elite)))].astype(np.int64)
        yield without_gaps(change(labels, given)), rng.permutation(labels.size)


class _Given(NamedTuple):
    """What changes are made of, as `changes` takes it."""

    elite: Sequence[Labels]
    drawn: npt.NDArray[Any]
    companions: Companions
    n_clusters: int | None
    is_sum: bool
    rng: np.random.Generator


def _at_sites(
    change: Callable[[Codes, int, npt.NDArray[np.bool_], np.random.Generator], None],
) -> Callable[[Codes, _Given], Codes]:
    """The change of a partition, in place, around one item or several."""

    def changed(labels: Codes, given: _Given) -> Codes:
        n_sites = 1 + (int(labels.max()) // _CLUSTERS_A_SITE if given.is_sum else 0)
        for i in given.rng.integers(labels.size, size=n_sites).tolist():
            change(labels, i, given.companions(i, given.rng.random()), given.rng)
        return labels

    return changed


def _gather(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    labels[near] = labels.max() + 1


def _split(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    labels[near & (labels == labels[i])] = labels.max() + 1


def _merge(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    others = np.flatnonzero(near & (labels != labels[i]))
    if others.size:
        labels[labels == labels[rng.choice(others)]] = labels[i]


def _trade(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Split one cluster and merge two others: the sum of h over the sizes stays near what the loss asks for."""
    _split(labels, int(rng.integers(labels.size)), near, rng)
    _merge(labels, i, near, rng)


def _dissolve(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    others = np.flatnonzero(near & (labels != labels[i]))
    with_i = (labels == labels[i]) & (labels >= 0)
    if others.size:
        with_i |= labels == labels[rng.choice(others)]
    labels[with_i] = -1


def _scatter(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    labels[rng.random(labels.size) < rng.choice(_SCATTERED)] = -1


def _mix(labels: Codes, i: int, near: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Give some items the clusters of others: allocation would put them back to where they were."""
    mixed = np.flatnonzero(rng.random(labels.size) < rng.choice(_SCATTERED))
    labels[mixed] = labels[rng.integers(labels.size, size=mixed.size)]


def _meet(labels: Codes, given: _Given) -> Codes:
    """The meet with another of the elite."""
    return labels * labels.size + given.elite[int(given.rng.integers(len(given.elite)))]


def _draw(labels: Codes, given: _Given) -> Codes:
    """A draw instead, or a mixed partition if there are none."""
    drawn, rng = given.drawn, given.rng
    if not len(drawn):
        return _at_sites(_mix)(labels, given)
    draw = drawn[int(rng.integers(len(drawn)))].astype(np.int64)
    return draw if given.n_clusters is None else rng.integers(given.n_clusters, size=draw.max() + 1)[draw]


_KINDS = (
    *(_at_sites(_gather), _at_sites(_dissolve), _draw, _at_sites(_trade), _at_sites(_scatter), _meet),
    *(_at_sites(_merge), _at_sites(_mix), _draw, _at_sites(_dissolve), _at_sites(_split)),
)


def best_of_both(one: Labels, other: Labels, terms: Callable[[Labels], Floats]) -> Labels:
    """Take the better of two partitions in each block of items that both make a union of clusters.

    `terms` gives what each cluster adds to a loss that is a sum over clusters, of a partition in which -1 stands for
    items left out. No partition that agrees with one of the two in each block has a smaller loss.
    """
    n_one, n_other = int(one.max()) + 1, int(other.max()) + 1
    cells = one.astype(np.int64) * n_other + other
    _, cell, n_shared = np.unique(cells, return_inverse=True, return_counts=True)
    shared = n_shared[cell]
    differ = np.flatnonzero((shared < np.bincount(one)[one]) | (shared < np.bincount(other)[other]))
    if differ.size == 0:
        return one
    edges = coo_array(
        (np.ones(differ.size, np.int8), (one[differ], n_one + other[differ])), shape=(n_one + n_other,) * 2
    )
    n_blocks, block = connected_components(edges, directed=False)
    parts = np.full((2, one.size), -1, np.int32)
    parts[0, differ], parts[1, differ] = one[differ], other[differ]
    gains = np.zeros(n_blocks)
    for part, blocks, sign in ((parts[0], block[:n_one], 1.0), (parts[1], block[n_one:], -1.0)):
        added = terms(part)
        gains += sign * np.bincount(blocks[: added.size], added, n_blocks)
    taken = np.isin(one, one[differ]) & (gains[block[one]] > 0)
    return without_gaps(np.where(taken, n_one + other, one).astype(np.int64))


def above_a_half(similarity: Floats) -> Labels:
    """Components of the graph of the pairs that are together in more than half of the posterior."""
    _, labels = connected_components(similarity > 0.5, directed=False)
    return np.asarray(labels, np.int32)


def cores(similarity: Floats, shares: Sequence[float]) -> Iterator[Labels]:
    """Give partitions of one cluster, of these shares of the items, and single items: those that are least at home."""
    order = np.argsort(-similarity.sum(axis=1), kind="stable")
    for share in shares:
        n_core = max(1, int(share * order.size))
        labels = np.zeros(order.size, np.int32)
        labels[order[n_core:]] = 1 + np.arange(order.size - n_core)
        yield labels
