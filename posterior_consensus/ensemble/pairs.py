"""Similarities of pairs of items, whether from draws, allocation probabilities or a similarity matrix alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Clusters, Items
from posterior_consensus.ensemble.partitions import Labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.kernels import coclustering
from posterior_consensus.results import display
from posterior_consensus.results.words import DRAWS, Words
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.tolerances import ROUNDING

if TYPE_CHECKING:
    from posterior_consensus.ensemble.draws import PartitionDraws

Result = TypeVar("Result")
Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], Floats]

_SMALL = 32  # items of a cluster
_LOSSES_OF_PAIRS = "loss='binder' or loss='vi_lower_bound', which need similarities only"
_OF_SHARES = "consensus_partition, item_uncertainty, certify, cluster_merges and plot_psm take them"


class PairSource(ABC, display.Shown):
    """A source of the posterior similarity of every pair of items.

    Attributes
    ----------
    items : Items
        The items, with their coordinates.
    n_draws : int or None
        Number of posterior draws; None if it is not known.
    """

    _figure = "psm.plot_psm"
    usual_loss: ClassVar[str] = "binder"

    items: Items

    @property
    def words(self) -> Words:
        """What draws and chains are called in texts and figures."""
        return DRAWS

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.items.n_items

    def as_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Canonical labels (n_items,) of a result, a DataArray or a label vector over these items."""
        return self.items.as_labels(partition, name)

    def as_marked_labels(self, partition: Any, name: str = "partition") -> Labels:
        """Canonical labels (n_items,), with -1 for noise of runs that have some."""
        return self.as_labels(partition, name)

    def clusters_of(self, partition: Any) -> Clusters:
        """Clusters of a partition, and noise after them if it has some."""
        return self.items.clusters_of(partition)

    @property
    @abstractmethod
    def n_draws(self) -> int | None:
        """Number of posterior draws; None if there are none."""

    @property
    def draws(self) -> PartitionDraws | None:
        """The draws; None where there are similarities alone."""
        return None

    @abstractmethod
    def as_draws(self, what: str = "This") -> PartitionDraws:
        """Return the draws, or raise ValueError that names `what`, which needs them."""

    @property
    def counted_draws(self) -> PartitionDraws | None:
        """The draws if similarities are the shares of draws in which two items are in one cluster, else None."""
        return None

    def as_pairs(self) -> PairSimilarity:
        """Return the similarities of pairs alone."""
        return PairSimilarity(self.items, self.similarity())

    def denominator(self) -> int | None:
        """Number of draws if similarities are plain counts / N, else None."""
        return None

    @property
    @abstractmethod
    def most_clusters(self) -> int:
        """Upper bound of the number of clusters under the posterior."""

    @property
    @abstractmethod
    def shared_similarity(self) -> Floats:
        """Posterior similarity matrix (n, n), read-only; kept if it is slow to compute."""

    def similarity(self) -> Floats:
        """Posterior similarity matrix (n, n), as a copy."""
        return self.shared_similarity.copy()

    @property
    def mean_similarity(self) -> float:
        """Mean similarity of all pairs of different items; 1/2 for a single item."""
        n = self.n_items
        links, total = self.links(np.zeros(n, np.int32))
        return float(links.sum() / total) / (n * (n - 1)) if n > 1 else 0.5

    def check_memory(self, hint: str = "") -> None:
        """Raise an error if the similarity matrix exceeds the memory budget; `hint` is appended as the next step."""
        memory.check(8 * self.n_items**2, f"The similarity matrix of {self.n_items} items", hint)

    def without_zero_weights(self) -> Self:
        """Return the same posterior without draws of weight 0."""
        return self

    def in_fixed_order(self) -> Self:
        """Return the same posterior with independent runs, if it has some, in an order of their own."""
        return self

    def some_labels(self, most: int) -> npt.NDArray[Any]:
        """Distinct canonical labels (at most `most`, n) of draws; no rows if there are no draws."""
        return np.empty((0, self.n_items), np.int32)

    @abstractmethod
    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""

    @abstractmethod
    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Blocks of rows (m, n) of the similarity matrix, read-only, each with the position of its first item."""

    @abstractmethod
    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""

    @abstractmethod
    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix and `columns` (n, c)."""

    @abstractmethod
    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of each item's similarities to the other members of each cluster, and their divisor."""

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(links, labels, total, *arguments)`` with :meth:`links` of each block of items, in order."""
        links, total = self.links(labels)
        yield slice(0, self.n_items), function(links, labels, total, *arguments)

    def sums(self, partitions: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """Sums (P, n) of every item's similarities to its cluster, and (n,) to all items, itself included."""
        similarity = self.shared_similarity
        return np.array([_own_links(similarity, partition) for partition in partitions]), similarity.sum(axis=1)

    def pairs_above(self, threshold: float) -> Iterator[Pairs]:
        """Pairs of two items of larger similarity, in order: the first, the second, and their similarity."""
        for first, rows in self.row_blocks():
            # Pairs of these items and later ones: where entries are rounded, both of a pair must come from one sum.
            later = rows[:, first:]
            row, column = np.nonzero(np.triu(later > threshold, 1))
            yield row + first, column + first, later[row, column]

    def nearest(self, n_others: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """Of each item the most similar others (n, n_others), the first of equals, and their similarities."""
        columns, values = np.empty((self.n_items, n_others), np.int64), np.empty((self.n_items, n_others))
        for first, rows in self.row_blocks():
            own = slice(first, first + len(rows))
            columns[own], values[own] = coclustering.nearest_in_rows(rows, first, n_others)
        return columns, values

    def own_and_nearest(
        self, labels: npt.NDArray[Any], noise: int | None = None
    ) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
        """Mean similarity (n,) of items to the others of their cluster, the nearest other cluster, and that to it.

        NaN for an item alone, and -1 and NaN if there is no other cluster. `noise` is the label of items in no cluster.
        """
        found = [one for _, one in self.map_links(labels, own_and_nearest_of, np.bincount(labels), noise)]
        own, nearest, other = (np.concatenate(column) for column in zip(*found, strict=True))
        return own, nearest, other

    def check_keeps(self, labels: Labels) -> None:
        """Raise ValueError if clusters break a constraint, which scored pairs may have."""

    def check_unconstrained(self, what: str, instead: str) -> None:
        """Raise ValueError if there are constraints, which `what` would not keep; `instead` is the next step."""

    def all_pairs(self, what: str, instead: str) -> PairSource:
        """The source for `what` of a call, which needs the similarities of all pairs; `instead` is the next step."""
        return self

    @property
    def has_small_clusters(self) -> bool:
        """Whether pairs in one cluster of a draw are counted faster than the matrix is gone through."""
        return False

    def certain_groups(self) -> npt.NDArray[np.intp]:
        """The :meth:`signatures`, or a group for each item where finding them takes the matrix."""
        return self.signatures()

    @abstractmethod
    def signatures(self) -> npt.NDArray[np.intp]:
        """Group (n,) of each item: items of a group are always co-clustered."""

    @abstractmethod
    def _lines(self) -> list[tuple[str, str]]:
        """Names and values of the lines shown."""

    def _parts(self) -> display.Parts:
        return type(self).__name__, self._lines(), None


@dataclass(frozen=True, eq=False, repr=False)
class PairSimilarity(PairSource):
    """A posterior similarity matrix without draws, returned by :func:`as_pair_similarity`.

    Attributes
    ----------
    items : Items
        The items, with their coordinates.
    values : ndarray of shape (n_items, n_items), dtype float64
        Co-clustering probabilities: symmetric, in [0, 1], 1 on the diagonal.
    errors : ndarray of shape (n_items, n_items), dtype float64, or None
        Standard errors of the values, if these are shares of the draws that contain both items.
    samples : Samples or None
        These draws.
    words : Words
        What draws are called.
    """

    items: Items
    values: Floats
    errors: Floats | None = None
    samples: Samples | None = None

    @property
    def words(self) -> Words:
        """What draws are called; "draws" where they are unknown."""
        return DRAWS if self.samples is None else self.samples.words

    @property
    def n_draws(self) -> None:
        """None: the number of draws behind the matrix is unknown."""
        return None

    def as_draws(self, what: str = "This") -> NoReturn:
        """Raise ValueError: a matrix has no draws."""
        losses = f", or choose {_LOSSES_OF_PAIRS}" * what.startswith("loss ")
        raise ValueError(
            f"{what} needs posterior draws; got a similarity matrix alone, which has pairwise probabilities, but no "
            f"partitions. Pass the draws it was computed from{losses}."
        )

    @property
    def most_clusters(self) -> int:
        """Number of items, since a matrix does not bound the number of clusters."""
        return self.n_items

    def as_pairs(self) -> PairSimilarity:
        """Return the matrix as it is."""
        return self

    @property
    def shared_similarity(self) -> Floats:
        """The matrix."""
        return self.values

    def check_memory(self, hint: str = "") -> None:
        """Do nothing: the matrix is in memory."""

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        pairs = np.ix_(at, at)
        errors = None if self.errors is None else self.errors[pairs]
        return replace(self, items=self.items.take(at), values=self.values[pairs], errors=errors)

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Rows of the matrix."""
        for rows in memory.parts(self.n_items, 8 * self.n_items):
            yield rows.start, self.values[rows]

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""
        return self.values[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the matrix with `columns` (n, c)."""
        return self.values @ columns

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of each item's similarities to the other members of each cluster, and divisor 1."""
        sums = self.values @ np.eye(labels.max() + 1)[labels]
        sums[np.arange(labels.size), labels] -= 1.0
        return sums, 1.0

    def signatures(self) -> npt.NDArray[np.intp]:
        """Number of each item's row among the distinct rows: as the diagonal is 1, equal rows have similarity 1."""
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in self.values])

    def _lines(self) -> list[tuple[str, str]]:
        above = self.values[np.triu_indices(self.n_items, 1)]
        shares = (
            f"mean {above.mean():.3g}, of 0 {np.mean(above == 0):.0%}, of 1 {np.mean(above == 1):.0%}"
            if above.size
            else "none"
        )
        return [
            ("items", f"{self.n_items:,} ({self.items.dim})"),
            ("pairs", shares),
            *self._error_lines(),
            *self._lines_of_draws(),
            ("values", f"{self.values.dtype}, {self.values.nbytes / 1e6:.1f} MB"),
        ]

    def _lines_of_draws(self) -> list[tuple[str, str]]:
        if self.samples is None or self.samples.series:
            return [("draws", "none: a similarity matrix alone")]
        (name, number), *groups = self.samples.lines()
        return [(name, f"{number}, of which each pair is counted over those that had both items"), *groups]

    def _error_lines(self) -> list[tuple[str, str]]:
        if self.errors is None or self.n_items == 1:
            return []
        above = self.errors[np.triu_indices(self.n_items, 1)]
        unknown = f"unknown for {np.isnan(above).mean():.0%} of pairs"
        if np.isnan(above).all():
            return [("standard errors", unknown)]
        known = f"median {np.nanmedian(above):.2g}, largest {np.nanmax(above):.2g}"
        return [("standard errors", f"{known}; {unknown}" if np.isnan(above).any() else known)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RunsWithMissing(PairSimilarity):
    """Shares of the runs that have both items of a pair, returned by :func:`as_runs` for runs with missing items.

    Attributes
    ----------
    labels : ndarray of shape (n_runs, n_items), dtype int64
        Labels of the runs, -1 for an item that a run did not have.
    """

    samples: Samples
    labels: npt.NDArray[np.int64]

    def as_draws(self, what: str = "This") -> NoReturn:
        """Raise ValueError: runs of some items are no partitions of all."""
        instead = "Choose " + _LOSSES_OF_PAIRS if what.startswith("loss ") else _OF_SHARES
        raise ValueError(
            f"{what} needs runs that have all items; got runs with missing ones, which have shares of pairs, but no "
            f"partitions. {instead}."
        )

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        return replace(super().of_items(at), labels=self.labels[:, at])

    def jackknife(self, value: Callable[[PairSource], Floats]) -> Floats:
        """Pseudo-values (..., R) of ``value(similarities)``, from the similarities without each of the R runs.

        NaN if only one run has a pair.
        """
        of_all = value(self)
        without = np.stack([value(one) for one in self._without_each()], axis=-1)
        return of_all[..., np.newaxis] + (len(self.labels) - 1) * (of_all[..., np.newaxis] - without)

    def _without_each(self) -> Iterator[PairSimilarity]:
        present = self.labels >= 0
        held = present.T.astype(np.float64) @ present
        for labels in self.labels:
            there = np.flatnonzero(labels >= 0)
            values, own = self.values.copy(), np.ix_(there, there)
            together = labels[there, np.newaxis] == labels[there]
            with np.errstate(invalid="ignore"):
                values[own] = (held[own] * values[own] - together) / (held[own] - 1)
            np.fill_diagonal(values, 1.0)
            yield PairSimilarity(self.items, values)


def _own_links(similarity: Floats, partition: npt.NDArray[Any]) -> Floats:
    """Sum (n,) of every item's similarities to the members of its cluster, itself included."""
    order = np.argsort(partition, kind="stable")
    sizes = np.bincount(partition)
    starts = np.cumsum(sizes) - sizes
    links = np.empty(partition.size)
    for k in np.flatnonzero(sizes > _SMALL):
        members = order[starts[k] : starts[k] + sizes[k]]
        links[members] = similarity[np.ix_(members, members)].sum(axis=1)
    for size in np.unique(sizes[sizes <= _SMALL]):  # clusters of one size at once: there can be thousands
        members = order[starts[sizes == size][:, np.newaxis] + np.arange(size)]
        links[members] = similarity[members[:, :, np.newaxis], members[:, np.newaxis]].sum(axis=2)
    return links


def own_and_nearest_of(
    links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp], noise: int | None
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Result of :meth:`PairSource.own_and_nearest` for a block of items."""
    items, means = np.arange(labels.size), mean_similarities(links, labels, total, sizes)
    own = means[items, labels]
    if means.shape[1] == 1:
        return own, np.full(labels.size, -1, np.int32), np.full(labels.size, np.nan)
    means[items, labels] = -1.0
    if noise is not None:
        own[labels == noise] = np.nan
        means[:, noise:] = -1.0
    ties = means >= means.max(axis=1, keepdims=True) - ROUNDING
    nearest = ties.argmax(axis=1).astype(np.int32)
    other = means[items, nearest]
    if noise is not None:
        nearest[other < 0], other[other < 0] = -1, np.nan
    return own, nearest, other


def mean_similarities(links: Floats, labels: npt.NDArray[Any], total: float, sizes: npt.NDArray[np.intp]) -> Floats:
    """Mean similarity (m, K) of a block's items to the other members of each cluster; NaN where there are none."""
    others = np.tile(sizes, (labels.size, 1))
    others[np.arange(labels.size), labels] -= 1
    means = np.divide(links, total * others, out=np.full(links.shape, np.nan), where=others > 0)
    return np.clip(means, 0.0, 1.0)


def own_and_nearest_by_counts(
    similarity: Floats, n_draws: int, labels: npt.NDArray[Any]
) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Return :meth:`PairSource.own_and_nearest` of draws without weights and noise by their matrix: equal bit for bit.

    Numbers of draws are integers, whose sums are exact in any order. For many partitions of the same draws.
    """
    links = np.rint(n_draws * similarity) @ np.eye(labels.max() + 1)[labels]
    links[np.arange(labels.size), labels] -= n_draws
    return own_and_nearest_of(links, labels, float(n_draws), np.bincount(labels), None)
