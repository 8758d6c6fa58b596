"""Posterior draws of a partition: items, samples, and the labels of each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.items import Floats, Items
from posterior_consensus.ensemble.labels import DrawnLabels, LabelsInMemory
from posterior_consensus.ensemble.pairs import PairSource, Result
from posterior_consensus.ensemble.partitions import smallest_dtype
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.kernels import coclustering, ensemble
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display
from posterior_consensus.runtime import memory

_DRAWS_AT_ONCE = 4096  # bounds the memory of the bit planes, and is a block that could come from disk
_LABELS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class PartitionDraws(PairSource):
    """Posterior draws of a partition, each numbered by first appearance; made by :func:`as_partition_draws`.

    Attributes
    ----------
    items : Items
        The items: `dim`, the name of their dimension, and `coords`, their coordinates as the user had them.
    samples : Samples
        The draws: `chain` and `draw`, where each comes from, their `weights`, and :meth:`~Samples.mean` and
        :meth:`~Samples.mcse` over them.
    drawn : DrawnLabels
        What `labels` and `n_clusters` are read from.
    labels : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        Cluster of each item in each draw, from 0 in order of first appearance.
    n_clusters : ndarray of shape (n_draws,), dtype int64
        Number of clusters of each draw.
    weights : ndarray of shape (n_draws,), dtype float64
        Weight of each draw; they sum to 1.
    """

    items: Items
    samples: Samples
    drawn: DrawnLabels
    labels_are_sure: ClassVar[bool] = True

    @classmethod
    def of(
        cls, labels: npt.NDArray[Any], *, weights: Floats | None = None, items: Items | None = None
    ) -> PartitionDraws:
        """Take canonical labels (n_draws, n_items) as the draws of one chain, by default of equal weight."""
        n_draws, n_items = labels.shape
        n_clusters = labels.max(axis=1).astype(np.int64) + 1
        drawn = LabelsInMemory(labels.astype(smallest_dtype(int(n_clusters.max())), copy=False), n_clusters)
        samples = Samples.of_one_chain(n_draws)
        items = Items(n_items, "item", xr.Coordinates()) if items is None else items
        return PartitionDraws(items, samples if weights is None else samples.weighted(weights), drawn)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Cluster of each item in each draw."""
        return self.drawn.values

    @property
    def n_clusters(self) -> npt.NDArray[np.int64]:
        """Number of clusters of each draw."""
        return self.drawn.n_clusters

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """First row of each draw (n_draws + 1,) where the clusters of all draws are stacked."""
        return self.drawn.starts

    @property
    def weights(self) -> Floats:
        """Weight of each draw."""
        return self.samples.weights

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.samples.n_draws

    def __len__(self) -> int:
        return self.n_draws

    @property
    def is_counted(self) -> bool:
        """Whether a similarity is a number of draws divided by the number of all draws."""
        return not self.samples.is_weighted

    def as_draws(self, what: str = "This") -> Self:
        """Return the draws as they are."""
        return self

    def labels_only(self) -> PartitionDraws:
        """Return the draws of labels, without the soft assignments that these may be sampled from."""
        return self

    def marginal_losses(self, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats | None:
        """Losses of partitions (P, n) expected given each draw's parameters, (P, N); None: only labels are known."""
        return None

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """Keep some draws, by row number; their weights sum to 1 again, and equal ones where all of them were 0."""
        drawn = self.drawn.take(rows)
        self.drawn.hand_on(drawn, rows)
        return replace(self, samples=self.samples.take(rows), drawn=drawn)

    def of_some_items(self) -> tuple[npt.NDArray[np.intp], PartitionDraws]:
        """Positions of all items, or of 10,000 by a fixed rule, and the draws of their labels."""
        at, some = self.drawn.some_items
        return at, self if some is self.drawn else PartitionDraws(self.items.take(at), self.samples, some)

    def isel(self, *, chain: Any = slice(None), draw: Any = slice(None)) -> Self:
        """Keep some draws by their position, as xarray's ``isel`` does on a posterior.

        Parameters
        ----------
        chain : int, slice or array_like of int or bool
            Positions of chains.
        draw : int, slice or array_like of int or bool
            Positions within each of these chains: ``slice(500, None)`` drops a burn-in of 500 draws from each chain,
            ``slice(None, None, 5)`` keeps every fifth draw.

        Returns
        -------
        PartitionDraws or AllocationProbabilities
            Chain after chain in the order that was asked for. Weights sum to 1 again, as by :meth:`take`.

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
        """Keep some draws by the values of `samples.chain` and `samples.draw`, else as :meth:`isel`.

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
        """The largest number of clusters in any draw; those of weight 0 are not in the posterior."""
        return int(self.n_clusters[self.weights > 0].max())

    @property
    def shared_similarity(self) -> Floats:
        """Share of draws (n, n) that have two items together; without weights it takes no longer than a copy."""
        return self._weighted_similarity if self.samples.is_weighted else self.similarity()

    def similarity(self) -> Floats:
        """Share of draws (n, n) that have two items together, as an array of the caller's own."""
        if not self.is_counted:
            return super().similarity()
        self.check_memory()
        similarity = np.empty((self.n_items, self.n_items))
        for rows, block in self.drawn.blocks(_DRAWS_AT_ONCE):
            planes = coclustering.pack_bit_planes(block, self.drawn.n_planes)
            divisor = float(self.n_draws) if rows.stop >= self.n_draws else 1.0
            coclustering.add_coclustering_counts(planes, len(block), similarity, rows.start == 0, divisor)
        return similarity

    @cached_property
    def _weighted_similarity(self) -> Floats:
        self.check_memory()
        similarity = np.zeros((self.n_items, self.n_items))
        for rows, block in self.drawn.blocks(_DRAWS_AT_ONCE):
            coclustering.add_coclustering_weights(block, self.weights[rows], similarity)
        similarity /= similarity[0, 0]  # the sum of all weights in the same order: rounding takes none above it
        return similarity

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Return the draws of some items, by position."""
        return replace(self, items=self.items.take(at), drawn=self.drawn.of_items(at))

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Rows (m, n) of the similarity matrix, with the bits that they have there."""
        n, n_rows, addends = self.n_items, coclustering.ROWS, self.samples.addends[0]
        counted = self.drawn.blocks(_DRAWS_AT_ONCE) if self.is_counted else ()
        memory.check(n * self.n_draws * self.drawn.n_planes / 8, "Rows of the similarity matrix from packed labels")
        packed = [(len(block), coclustering.pack_bit_planes(block, self.drawn.n_planes)) for _, block in counted]
        for part in memory.parts(-(-n // n_rows), 8 * n * n_rows):
            first, last = n_rows * part.start, min(n, n_rows * part.stop)
            if packed:
                rows = np.empty((last - first, n))
                for number, (n_draws, planes) in enumerate(packed, 1):
                    divisor = float(self.n_draws) if number == len(packed) else 1.0
                    coclustering.add_row_counts(planes, n_draws, first, rows, number == 1, divisor)
            else:
                rows = np.empty((last - first, n))
                chosen = self.drawn.columns(slice(first, last))
                for items, found in self.drawn.map_blocks(_similarity_rows, addends, chosen):
                    rows[:, items] = found
                rows /= rows[0, first]
            yield first, rows

    def without_zero_weights(self) -> Self:
        """Return the draws whose weight is not 0."""
        return self if self.weights.all() else self.take(np.flatnonzero(self.weights))

    def some_labels(self, most: int) -> npt.NDArray[Any]:
        """Labels (at most `most`, n) of the draws that differ, among as many as that from all over the posterior."""
        rows = np.linspace(0, self.n_draws - 1, min(most, self.n_draws)).round().astype(np.intp)
        return np.unique(self.drawn.take(rows).values, axis=0)

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all, at n x N cost."""
        row = np.empty(self.n_items)
        chosen = self.drawn.columns(np.array([item]))
        for items, found in self.drawn.map_blocks(_similarity_rows, self.samples.addends[0], chosen):
            row[items] = found[0]
        return row / row[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix with `columns` (n, c), at n x N x c cost."""
        addends, total = self.samples.addends
        columns, table = np.ascontiguousarray(columns), np.zeros((self.starts[-1], columns.shape[1]))
        for items, block in self._whole_blocks():
            ensemble.scatter_more(block, self.starts, columns[items], table)
        product = np.empty(columns.shape)
        for items, found in self.drawn.map_blocks(_gather, self.starts, addends, table):
            product[items] = found
        product /= total
        return product

    def _whole_blocks(self) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Labels of all items, or block by block: sums of floats must be taken item by item to be the same."""
        if self.drawn.are_in_memory:
            return iter([(slice(None), self.labels)])
        return self.drawn.map_blocks(_labels)

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of every item's similarities to the other members of each cluster, and what to divide them by."""
        links = np.empty((self.n_items, int(labels.max()) + 1))
        for items, found in self.map_links(labels, _links_alone):
            links[items] = found
        return links, self.samples.addends[1]

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(links, labels, total, *arguments)`` with :meth:`links` of blocks of items, in their order."""
        addends, total = self.samples.addends
        counts = self.drawn.joint_counts(labels)
        given = self.starts, addends, counts, labels, total, function, arguments
        return self.drawn.map_blocks(_apply_to_links, *given)

    def signatures(self) -> npt.NDArray[np.intp]:
        """Number (n,) of each item's labels over all draws."""
        drawn, step = self.without_zero_weights().drawn, max(1, _LABELS_AT_ONCE // self.n_draws)
        numbers: dict[bytes, int] = {}
        blocks = (drawn.columns(slice(at, at + step)) for at in range(0, self.n_items, step))
        return np.array([numbers.setdefault(column.tobytes(), len(numbers)) for block in blocks for column in block])

    def _facts(self) -> list[tuple[str, str]]:
        clusters, drawn = self.n_clusters, self.drawn
        size = f"{self.n_draws * self.n_items * drawn.dtype.itemsize / 1e6:.1f} MB"
        quantiles = np.quantile(clusters, [0.05, 0.5, 0.95], method="inverted_cdf", weights=self.weights)
        return [
            *self.samples.facts(),
            ("items", f"{self.n_items} ({self.items.dim})"),
            ("clusters", f"{clusters.min()} to {clusters.max()}; 5%, 50%, 95%: {', '.join(str(q) for q in quantiles)}"),
            ("labels", f"{drawn.dtype}, {size}{drawn.place}"),
        ]

    def __repr__(self) -> str:
        return display.as_text(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return display.as_html(type(self).__name__, self._facts())


def _labels(labels: npt.NDArray[Any], items: slice) -> npt.NDArray[Any]:
    return np.ascontiguousarray(labels)


def _similarity_rows(labels: npt.NDArray[Any], items: slice, weights: Floats, chosen: npt.NDArray[Any]) -> Floats:
    rows: Floats = ensemble.similarity_rows(np.ascontiguousarray(labels), weights, chosen)
    return rows


def _gather(
    labels: npt.NDArray[Any], items: slice, starts: npt.NDArray[np.int64], weights: Floats, table: npt.NDArray[Any]
) -> Floats:
    sums: Floats = ensemble.gather(np.ascontiguousarray(labels), starts, weights, table)
    return sums


def _apply_to_links(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    weights: Floats,
    counts: npt.NDArray[np.int32],
    partition: npt.NDArray[Any],
    total: float,
    function: Callable[..., Result],
    arguments: tuple[Any, ...],
) -> Result:
    links, own = _gather(labels, items, starts, weights, counts), partition[items]
    links[np.arange(own.size), own] -= total
    return function(links, own, total, *arguments)


def _links_alone(links: Floats, labels: npt.NDArray[Any], total: float) -> Floats:
    return links
