"""What all kinds of posteriors answer about their pairs of items; and draws: items, samples and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Clusters, Items
from posterior_consensus.ensemble.labels import ArrayLabels, LabelBackend, Result
from posterior_consensus.ensemble.links import own_and_nearest_by_counts, own_and_nearest_of, own_links
from posterior_consensus.ensemble.memberships import Memberships, Pairs, has_small_clusters
from posterior_consensus.ensemble.partitions import Labels, canonical_rows, distinct_rows
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.results.words import DRAWS, Words
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats

_ITEMS_IN_MATRIX, _MANY, _SHARE = 4_000, 16, 8  # where the matrix costs less than links with many clusters


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
    def n_draws(self) -> int | None:
        """Number of posterior draws; None if there are none."""
        return None

    @property
    def draws(self) -> PartitionDraws | None:
        """The draws; None where there are similarities alone."""
        return None

    @abstractmethod
    def as_draws(self, what: str = "This", *, lacking: bool = False) -> PartitionDraws:
        """Return the draws, or raise ValueError that names `what`, which needs them, what came, and the next step.

        `what` begins the sentence: "loss 'vi'", "method 'kcc'", "`links`" or "This". If `lacking`, runs that lack items
        will do.
        """

    @property
    def counted_draws(self) -> PartitionDraws | None:
        """The draws if similarities are the shares of draws in which two items are in one cluster, else None."""
        return None

    def denominator(self) -> int | None:
        """Number of draws if similarities are plain counts / N, else None."""
        draws = self.counted_draws
        return None if draws is None or draws.samples.is_weighted else draws.n_draws

    @property
    def most_clusters(self) -> int:
        """Upper bound of the number of clusters under the posterior."""
        return self.n_items

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
        return np.array([own_links(similarity, partition) for partition in partitions]), similarity.sum(axis=1)

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
class PartitionDraws(PairSource):
    """Posterior draws of a partition, or independent runs, as labels numbered by first appearance.

    Returned by :func:`as_partition_draws` and :func:`as_runs`. Two kinds descend from it, which every function takes
    that takes draws: :class:`AllocationDraws` and :class:`NoisyRuns`. A third, :class:`RunsWithMissing`, is taken where
    a loss of the items in common is enough.

    Attributes
    ----------
    items : Items
        The items: `dim`, the name of their dimension, and `coords`, their coordinates as the user had them.
    samples : Samples
        The draws: `chain` and `draw` of each, their `weights`, and :meth:`~Samples.mean` and
        :meth:`~Samples.mcse` over them.
    backend : LabelBackend
        Storage that `labels` and `n_clusters` are read from.
    labels : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        Cluster of each item in each draw, from 0 in order of first appearance.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    has_noise : bool
        Whether draws may call items noise.
    lacks_items : bool
        Whether draws may lack items.
    weights : ndarray of shape (n_draws,), dtype float64
        Weight of each draw; they sum to 1.
    """

    items: Items
    samples: Samples
    backend: LabelBackend

    has_noise: ClassVar[bool] = False
    lacks_items: ClassVar[bool] = False
    usual_loss: ClassVar[str] = "vi"

    @classmethod
    def of(
        cls, labels: npt.NDArray[Any], *, samples: Samples | None = None, items: Items | None = None
    ) -> PartitionDraws:
        """Build draws from canonical labels (n_draws, n_items), by default of one chain with equal weights."""
        n_draws, n_items = labels.shape
        items = items or Items(n_items, "item", xr.Coordinates())
        return PartitionDraws(items, samples or Samples.of_one_chain(n_draws), ArrayLabels.of(labels))

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Cluster of each item in each draw."""
        return self.backend.values

    @property
    def n_clusters(self) -> npt.NDArray[np.int64]:
        """Number of clusters of each draw."""
        return self.backend.n_clusters

    @property
    def clusters(self) -> LabelBackend:
        """The labels; those of runs with noise have it in one cluster."""
        return self.backend

    @property
    def noise_rows(self) -> npt.NDArray[np.int64]:
        """Rows of noise where the :attr:`clusters` of all draws are stacked: none."""
        return np.empty(0, np.int64)

    def marked_labels(self, rows: npt.NDArray[np.intp] | slice = slice(None)) -> npt.NDArray[Any]:
        """Cluster of each item in each draw, or in some, and -1 for noise of runs that have some."""
        return self.backend.of_draws(rows).astype(np.int32)

    def with_noise_of(self, labels: Labels, weights: Floats) -> Labels:
        """Labels of a partition, -1 for items that runs of these weights (n_draws,) call noise: none."""
        return labels

    def in_clusters(self) -> npt.NDArray[np.bool_]:
        """Whether each draw has each item in a cluster (N, n), which only noise is not."""
        return np.ones((self.n_draws, self.n_items), np.bool_)

    def marginal_losses(self, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats | None:
        """Binder losses (P, N) of partitions (P, n) given each draw, if allocations can be averaged out; else None."""
        return None

    @property
    def cluster_sizes(self) -> npt.NDArray[np.int32]:
        """Number of items (R,) of each cluster of each draw, stacked; 0 for the row of items that a run lacks."""
        return self.backend.sizes

    @property
    def n_present(self) -> npt.NDArray[np.int64]:
        """Number of items (n_draws,) that each draw has."""
        return np.full(self.n_draws, self.n_items)

    def relative_scales(self, loss: PartitionLoss) -> Floats:
        """Factor (n_draws,) of each draw's part in an expected loss, which differs from 1 where draws lack items."""
        return np.ones(self.n_draws)

    def canonical(self, codes: npt.NDArray[Any], n_codes: int) -> ArrayLabels:
        """Number labels (N, n) below `n_codes` by first appearance, as `backend` does."""
        return ArrayLabels(*canonical_rows(codes, n_codes))

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """First row of each draw (n_draws + 1,) where the clusters of all draws are stacked."""
        return self.backend.starts

    @property
    def weights(self) -> Floats:
        """Weight of each draw."""
        return self.samples.weights

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.samples.n_draws

    @property
    def words(self) -> Words:
        """What draws and chains are called in texts and figures."""
        return self.samples.words

    def __len__(self) -> int:
        return self.n_draws

    def labels_only(self) -> PartitionDraws:
        """Return the labels without allocation probabilities."""
        return self

    def as_sampled(self) -> PartitionDraws:
        """Return the labels without weights and allocation probabilities."""
        return replace(self.labels_only(), samples=self.samples.weighted(np.ones(self.n_draws)))

    @property
    def draws(self) -> Self:
        """The draws."""
        return self

    def as_draws(self, what: str = "This", *, lacking: bool = False) -> Self:
        """Return the draws, which `what` needs."""
        return self

    @property
    def counted_draws(self) -> PartitionDraws | None:
        """The draws, as similarities are shares of them."""
        return self

    def take(self, rows: Any) -> Self:
        """Select draws by row number, as NumPy's indexing does; weights are normalized again, and equal if all were 0.

        Parameters
        ----------
        rows : int, slice or array_like of int or bool
            Row numbers, negative ones from the last draw, or a mask of shape (n_draws,).

        Returns
        -------
        PartitionDraws
            The selected draws in the order requested.

        Raises
        ------
        IndexError
            If there is no such row, the mask has another length, or no draw is left.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 1], [0, 0, 0]])
        >>> draws.take(draws.n_clusters == 2).labels
        array([[0, 0, 1],
               [0, 1, 1]], dtype=uint8)
        """
        rows = self.samples.row_numbers(rows)
        return replace(self, samples=self.samples.take(rows), backend=self.backend.take(rows))

    def in_fixed_order(self) -> Self:
        """Return independent runs in an order that depends on the runs alone, and draws of chains as they are.

        Runs are sorted by a hash of their labels and noise. Repeated ones take random places, so that parts of this
        order are runs at random. What is sampled, cut into parts or added up does not depend on the order in which the
        runs came.
        """
        return self if self._ordered is None else self._ordered

    @property
    def own_order(self) -> npt.NDArray[np.intp]:
        """Positions (n_draws,) of these draws in :meth:`in_fixed_order`."""
        return np.arange(self.n_draws) if self._fixed_order is None else np.argsort(self._fixed_order)

    @cached_property
    def _ordered(self) -> Self | None:
        return None if self._fixed_order is None else self.take(self._fixed_order)

    @cached_property
    def _fixed_order(self) -> npt.NDArray[np.intp] | None:
        """Row numbers (n_draws,) of runs in fixed order; None if they are, or are draws of chains."""
        if self.samples.series:
            return None
        hashes = self._fingerprints()
        groups = np.unique(self.samples.chain, return_inverse=True)[1]
        names = np.unique(self.samples.draw.astype(str), return_inverse=True)[1] * self.samples.named
        keys = (names, groups, self.weights, hashes)
        by_hash = np.lexsort(keys)
        places = hashes[by_hash]
        repeated = np.flatnonzero(places[1:] == places[:-1]) + 1
        if repeated.size == 0:
            return None if np.array_equal(by_hash, np.arange(self.n_draws)) else by_hash
        rng = np.random.default_rng(int(hashes.sum()))
        places[repeated] = rng.integers(2**64 - 1, size=repeated.size, dtype=np.uint64, endpoint=True)
        is_new = np.any([key[by_hash][1:] != key[by_hash][:-1] for key in keys], axis=0)
        kinds = np.append(0, np.cumsum(is_new))[np.argsort(places, kind="stable")]
        order = np.empty_like(by_hash)
        order[np.argsort(kinds, kind="stable")] = by_hash  # runs equal in all keys keep their order
        return None if np.array_equal(order, np.arange(self.n_draws)) else order

    def _fingerprints(self) -> npt.NDArray[np.uint64]:
        """Hashes (n_draws,), equal for draws that are alike."""
        return self.backend.fingerprints()

    def of_some_items(self, most: int | None = None) -> tuple[npt.NDArray[np.intp], PartitionDraws]:
        """Positions of all items, or of at most 10,000 chosen by a fixed rule, and the draws of these items.

        Their labels are read at each call; functions of one answer pass them on.
        """
        at, backend = np.arange(self.n_items), self.backend
        for number in (memory.ITEMS_OF_ALL_PAIRS, at.size if most is None else most):
            if number < at.size:
                at = at[np.sort(np.random.default_rng(0).choice(at.size, number, replace=False))]
        if at.size < self.n_items:
            return at, self.labels_only().of_items(at)
        if backend.in_memory() is not None or not memory.fits(4 * self.n_draws * self.n_items * backend.dtype.itemsize):
            return at, self
        return at, replace(self, backend=ArrayLabels(backend.of_draws(np.arange(self.n_draws)), backend.n_clusters))

    def by_chain(self) -> list[tuple[Any, Self]]:
        """Name and draws of each chain with positive weight."""
        chains = [rows for rows in self.samples.chains if self.weights[rows].any()]
        return [(self.samples.chain[rows[0]], self.take(rows)) for rows in chains]

    def isel(self, *, chain: Any = slice(None), draw: Any = slice(None)) -> Self:
        """Select draws by position, like xarray's ``isel``.

        Parameters
        ----------
        chain : int, slice or array_like of int or bool
            Positions of chains.
        draw : int, slice or array_like of int or bool
            Positions within each of these chains: ``slice(500, None)`` drops a burn-in of 500 draws from each chain,
            ``slice(None, None, 5)`` keeps every fifth draw.

        Returns
        -------
        PartitionDraws
            The selected draws, chain after chain in the order requested, with weights normalized to sum 1.

        Raises
        ------
        IndexError
            If there is no such chain or draw, or no draw is left.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = pc.as_partition_draws([[[0, 0], [0, 1], [0, 0]], [[0, 1], [0, 1], [0, 0]]])
        >>> draws.isel(draw=slice(1, None)).samples.draw
        array([1, 2, 1, 2])
        >>> draws.isel(chain=1, draw=[0, 2]).labels
        array([[0, 1],
               [0, 0]], dtype=uint8)
        """
        return self.take(self.samples.rows("isel", chain=chain, draw=draw))

    def sel(self, *, chain: Any = slice(None), draw: Any = slice(None)) -> Self:
        """Select draws by the values of `samples.chain` and `samples.draw`, like xarray's ``sel``.

        Slices include both ends.

        Raises
        ------
        KeyError
            If there is no such chain or draw, or no draw is left.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = pc.as_partition_draws([[[0, 0], [0, 1], [0, 0]], [[0, 1], [0, 1], [0, 0]]])
        >>> len(draws.sel(chain=[0], draw=slice(1, 2)))
        2
        """
        return self.take(self.samples.rows("sel", chain=chain, draw=draw))

    @property
    def most_clusters(self) -> int:
        """Largest number of clusters among draws with positive weight."""
        return int(self.backend.n_clusters[self.weights > 0].max())

    @property
    def shared_similarity(self) -> Floats:
        """Posterior similarity matrix (n, n), read-only."""
        return self._slow_similarity if self.denominator() is None else self.similarity()

    def similarity(self) -> Floats:
        """Posterior similarity matrix (n, n), as a copy."""
        if self.denominator() is None:
            return super().similarity()
        self.check_memory()
        similarity = np.empty((self.n_items, self.n_items))
        for rows, block in self.backend.blocks(memory.DRAWS_IN_BIT_PLANES):
            planes = coclustering.pack_bit_planes(block, self.backend.n_planes)
            divisor = float(self.n_draws) if rows.stop >= self.n_draws else 1.0
            coclustering.add_coclustering_counts(planes, len(block), similarity, rows.start == 0, divisor)
        return similarity

    @cached_property
    def _slow_similarity(self) -> Floats:
        """The matrix of weighted draws or probabilities, which searches ask for up to forty times.

        Kept as long as these draws, 8 n^2 bytes. It depends on their fields alone, which never change.
        """
        self.check_memory()
        similarity = np.zeros((self.n_items, self.n_items))
        for rows, block in self.backend.blocks(memory.DRAWS_IN_BIT_PLANES):
            coclustering.add_coclustering_weights(block, self.weights[rows], similarity)
        similarity /= similarity[0, 0]  # the sum of all weights in the same order, so that no value exceeds 1
        return similarity

    def reordered_to(self, samples: Samples, name: str) -> PartitionDraws:
        """Return these draws in the order of `samples`, which must hold the same draws; errors use `name`."""
        rows = self.samples.order_of(samples, name)
        return self if np.array_equal(rows, np.arange(self.n_draws)) else self.take(rows)

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        return replace(self, items=self.items.take(at), backend=self.backend.of_items(at))

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Blocks of rows (m, n) of the similarity matrix, bit for bit the same if labels are counted."""
        n, n_rows, addends = self.n_items, coclustering.ROWS, self.samples.addends[0]
        counted = self.backend.blocks(memory.DRAWS_IN_BIT_PLANES) if self.denominator() is not None else ()
        memory.check(n * self.n_draws * self.backend.n_planes / 8, "Rows of the similarity matrix from packed labels")
        packed = [(len(block), coclustering.pack_bit_planes(block, self.backend.n_planes)) for _, block in counted]
        for part in memory.parts(-(-n // n_rows), 8 * n * n_rows):
            first, last = n_rows * part.start, min(n, n_rows * part.stop)
            rows = np.empty((last - first, n))
            if packed:
                for number, (n_draws, planes) in enumerate(packed, 1):
                    divisor = float(self.n_draws) if number == len(packed) else 1.0
                    coclustering.add_row_counts(planes, n_draws, first, rows, number == 1, divisor)
            else:
                chosen = self.backend.columns(slice(first, last))
                for items, similarities in self.backend.map_blocks(_similarity_rows, addends, chosen):
                    rows[:, items] = similarities
                rows /= rows[0, first]
            yield first, rows

    def without_zero_weights(self) -> Self:
        """Return the draws with positive weight."""
        return self if self.weights.all() else self.take(np.flatnonzero(self.weights))

    def some_labels(self, most: int) -> npt.NDArray[Any]:
        """Distinct labels (at most `most`, n) among `most` draws evenly spaced over the posterior."""
        rows = np.linspace(0, self.n_draws - 1, min(most, self.n_draws)).round().astype(np.intp)
        labels = self.backend.of_draws(rows)
        return labels[distinct_rows(labels)[0]]

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all; cost n x N."""
        item = range(self.n_items)[item]
        row = np.empty(self.n_items)
        chosen = self.backend.columns(np.array([item]))
        for items, similarities in self.backend.map_blocks(_similarity_rows, self.samples.addends[0], chosen):
            row[items] = similarities[0]
        return row / row[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix and `columns` (n, c); cost n x N x c."""
        addends, total = self.samples.addends
        columns, table = np.ascontiguousarray(columns), np.zeros((self.starts[-1], columns.shape[1]))
        held = self.backend.in_memory()  # all items, or blocks in order: the order of items fixes the rounding
        whole = self.backend.map_blocks(as_they_are) if held is None else [(slice(None), held)]
        for items, block in whole:
            ensemble.scatter_more(block, self.starts, columns[items], table)
        product = np.empty(columns.shape)
        for items, similarities in self.backend.map_blocks(gather, self.starts, addends, table):
            product[items] = similarities
        product /= total
        return product

    def columns(self) -> npt.NDArray[Any]:
        """What each item has in each draw (n, N, ...), for :meth:`together`: its cluster."""
        return self.backend.columns(slice(None))

    @staticmethod
    def together(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Whether, or with which probability, pairs (P, N) of items with these :meth:`columns` are together."""
        return np.equal(one, other)

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of each item's similarities to the other members of each cluster, and their divisor."""
        links = np.empty((self.n_items, int(labels.max()) + 1))
        for items, similarities in self.map_links(labels, links_alone):
            links[items] = similarities
        return links, self.samples.addends[1]

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(links, labels, total, *arguments)`` with :meth:`links` of each block of items, in order."""
        addends, total = self.samples.addends
        counts, itself = self.backend.joint_counts(labels), np.array([total])
        given = self.backend.starts, addends, counts, labels, total, itself, function, arguments
        return self.backend.map_blocks(apply_to_links, *given)

    @property
    def has_small_clusters(self) -> bool:
        """Whether pairs in one cluster of a draw are counted faster than the matrix is gone through."""
        return self.counted_draws is not None and has_small_clusters(self.backend)

    def pairs_above(self, threshold: float) -> Iterator[Pairs]:
        """Pairs of two items of larger similarity, in order: the first, the second, and their similarity."""
        if not self.has_small_clusters:
            return super().pairs_above(threshold)
        own = self.without_zero_weights()
        return Memberships.of(own.backend, own.samples).pairs_above(threshold)

    def own_and_nearest(
        self, labels: npt.NDArray[Any], noise: int | None = None
    ) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
        """See :meth:`PairSource.own_and_nearest`; by items or by the matrix where a table of clusters is large."""
        n_clusters = int(labels.max()) + 1
        if n_clusters == 1 or noise is not None or self.counted_draws is None:
            return super().own_and_nearest(labels, noise)
        if not memory.fits(4 * int(self.starts[-1]) * n_clusters):
            begins = np.concatenate([[0], np.cumsum(self.backend.sizes, dtype=np.int64)])
            addends, total = self.samples.addends
            sizes, kernel = np.bincount(labels), ensemble.own_and_nearest
            own, nearest, other = kernel(self.labels, self.starts, begins, addends, total, labels, sizes)
            return own, nearest, other
        of_all_pairs = self.n_items <= _ITEMS_IN_MATRIX and _MANY * n_clusters > self.n_items
        of_all_pairs &= memory.fits(8 * self.n_items**2)
        if of_all_pairs and _SHARE * self.n_draws >= self.n_items and not self.samples.is_weighted:
            return own_and_nearest_by_counts(self.shared_similarity, self.n_draws, labels)
        return super().own_and_nearest(labels, noise)

    def signatures(self) -> npt.NDArray[np.intp]:
        """Group (n,) of each item: items with equal labels in all draws share one."""
        backend, step = self.without_zero_weights().backend, max(1, memory.LABELS_TO_COMPARE // self.n_draws)
        numbers: dict[bytes, int] = {}
        blocks = (backend.columns(slice(at, at + step)) for at in range(0, self.n_items, step))
        return np.array([numbers.setdefault(column.tobytes(), len(numbers)) for block in blocks for column in block])

    def _lines(self) -> list[tuple[str, str]]:
        clusters, backend = self.n_clusters, self.backend
        size = f"{self.n_draws * self.n_items * backend.dtype.itemsize / 1e6:.1f} MB"
        quantiles = np.quantile(clusters, [0.05, 0.5, 0.95], method="inverted_cdf", weights=self.weights)
        numbers = f"{clusters.min()} to {clusters.max()}; 5%, 50%, 95%: {', '.join(str(q) for q in quantiles)}"
        if clusters.min() == clusters.max():
            numbers = f"{clusters.min()} in all {self.samples.words.draws}"
        return [
            *self.samples.lines(),
            ("items", f"{self.n_items:,} ({self.items.dim})"),
            ("clusters", numbers),
            ("labels", f"{backend.dtype}, {size}{backend.place}"),
        ]


def as_they_are(labels: npt.NDArray[Any], items: slice) -> npt.NDArray[Any]:
    """The labels, contiguous for each draw."""
    return np.ascontiguousarray(labels)


def _similarity_rows(labels: npt.NDArray[Any], items: slice, weights: Floats, chosen: npt.NDArray[Any]) -> Floats:
    """Similarities of `chosen` items to the items of the block, as sums of weights."""
    return ensemble.similarity_rows(np.ascontiguousarray(labels), weights, chosen)


def gather(
    labels: npt.NDArray[Any], items: slice, starts: npt.NDArray[np.int64], weights: Floats, table: npt.NDArray[Any]
) -> Floats:
    """Sum over draws the weighted rows of `table` that belong to each item's clusters."""
    return ensemble.gather(np.ascontiguousarray(labels), starts, weights, table)


def apply_to_links(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    weights: Floats,
    counts: npt.NDArray[np.int32],
    partition: npt.NDArray[Any],
    total: float,
    itself: Floats,
    function: Callable[..., Result],
    arguments: tuple[Any, ...],
) -> Result:
    """Call a function with the links of the block's items; `itself` is what all or each (n,) have with themselves."""
    links, own = ensemble.links(np.ascontiguousarray(labels), starts, weights, counts), partition[items]
    links[np.arange(own.size), own] -= itself if itself.size == 1 else itself[items]
    return function(links, own, total, *arguments)


def links_alone(links: Floats, labels: npt.NDArray[Any], total: float) -> Floats:
    """Return the links themselves."""
    return links
