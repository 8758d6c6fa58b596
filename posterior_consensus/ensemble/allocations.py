"""Allocation probabilities of the items, given the parameters of each draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.labels import ArrayLabels, Result, slices
from posterior_consensus.ensemble.partitions import canonical_rows
from posterior_consensus.losses.record import PartitionLoss, pairs
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.arguments import RandomSeed, as_generator


@dataclass(frozen=True, eq=False, repr=False)
class AllocationDraws(PartitionDraws):
    """Posterior draws of allocation probabilities; see :func:`as_allocation_probabilities`.

    `labels` are one sample from them. Similarities and expected Binder losses are computed from the probabilities
    themselves, which removes the noise of the sampled labels (Rao-Blackwellization).

    Attributes
    ----------
    probabilities : ndarray of shape (n_draws, n_items, n_components), float32 or float64
        P(z_i = k | theta_t, y_i), summing to 1 over the components, which are in the model's order.
    components : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        The component sampled for each item; `labels` numbers them by first appearance.
    component_dim : str
        Name of the components' dimension.
    log_density : ndarray of shape (n_draws, n_items), dtype float64, or None
        Log density of each item, log p(y_i | theta_t) = log sum_k w_tk f_k(y_i | theta_t), of new observations that
        :func:`allocation_probabilities` took; else None.

    Notes
    -----
    Items must be independent given the parameters of a draw, as in mixtures. Then the co-clustering probability of i
    and j is p_ti' p_tj. In hidden Markov models, smoothed probabilities of single items do not determine those of
    pairs: pass sampled paths to :func:`as_partition_draws` instead. By the Rao-Blackwell theorem, the mean of
    p_ti' p_tj has no larger variance than the share of sampled labels that agree [1]_.

    References
    ----------
    .. [1] Gelfand and Smith (1990), Journal of the American Statistical Association 85(410), 398-409.
       https://doi.org/10.1080/01621459.1990.10476213

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = pc.as_allocation_probabilities([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> draws.probabilities.shape
    (2, 2, 2)
    """

    probabilities: npt.NDArray[np.floating]
    components: npt.NDArray[Any]
    component_dim: str
    log_density: Floats | None = None

    @property
    def n_components(self) -> int:
        """Number of components of the model."""
        return self.probabilities.shape[2]

    @property
    def counted_draws(self) -> None:
        """None: similarities are means of probabilities."""
        return None

    def labels_only(self) -> PartitionDraws:
        """Return the labels without allocation probabilities."""
        return PartitionDraws(self.items, self.samples, self.backend)

    def take(self, rows: Any) -> Self:
        """Select draws by row number, see :meth:`PartitionDraws.take`."""
        rows = self.samples.row_numbers(rows)
        return replace(super().take(rows), **self._at(rows))

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        part = self._at((slice(None), at))
        return replace(self, items=self.items.take(at), backend=self.backend.of_items(at), **part)

    def _at(self, at: Any) -> dict[str, Any]:
        density = None if self.log_density is None else self.log_density[at]
        return {"probabilities": self.probabilities[at], "components": self.components[at], "log_density": density}

    def sample(self, random_seed: RandomSeed = None) -> PartitionDraws:
        """Sample a partition from the allocation probabilities of each draw.

        Parameters
        ----------
        random_seed : int, Generator, SeedSequence or None
            Seed for sampling; None samples the same partitions each time.

        Returns
        -------
        PartitionDraws
            Draws with labels only.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> soft = pc.as_allocation_probabilities([[[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]]])
        >>> soft.sample(random_seed=1).labels
        array([[0, 1, 1]], dtype=uint8)
        """
        return PartitionDraws(
            self.items,
            self.samples,
            ArrayLabels(*canonical_rows(sampled_components(self.probabilities, random_seed), self.n_components)),
        )

    @cached_property
    def shared_similarity(self) -> Floats:
        """Similarity matrix (n, n), sum_t w_t p_ti' p_tj with 1 on the diagonal; kept, as searches ask for it often."""
        self.check_memory()
        total = np.zeros((self.n_items, self.n_items))
        for block, own in self._blocks():
            rows = np.ascontiguousarray((block * np.sqrt(own)[:, np.newaxis, np.newaxis]).transpose(1, 0, 2))
            rows = rows.reshape(self.n_items, -1)
            total += rows @ rows.T
        np.fill_diagonal(total, 1.0)
        return np.minimum(total, 1.0, out=total)

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Blocks of rows (m, n) of the similarity matrix, equal to it up to rounding."""
        n_items = self.n_items
        for part in memory.parts(n_items, 16 * n_items):
            rows = np.zeros((part.stop - part.start, n_items))
            for block, own in self._blocks():
                columns = np.ascontiguousarray(block.transpose(0, 2, 1)).reshape(-1, n_items)
                rows += (columns[:, part] * np.repeat(own, self.n_components)[:, np.newaxis]).T @ columns
            rows[np.arange(len(rows)), np.arange(part.start, part.stop)] = 1.0
            yield part.start, np.minimum(rows, 1.0, out=rows)

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""
        item = range(self.n_items)[item]
        row = self.product((np.arange(self.n_items) == item)[:, np.newaxis].astype(np.float64))[:, 0]
        row[item] = 1.0
        return np.clip(row, 0.0, 1.0)

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix and `columns` (n, c)."""
        return self._product_with_others(columns) + columns

    def _product_with_others(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarities, with diagonal 0, and `columns` (n, c); cost n x N x components."""
        total = np.zeros_like(columns)
        alone = np.zeros(self.n_items)
        for block, own in self._blocks():
            sums = np.einsum("tnk,nc->tkc", block, columns, optimize=True)
            total += np.einsum("t,tnk,tkc->nc", own, block, sums, optimize=True)
            alone += np.einsum("t,tnk,tnk->n", own, block, block, optimize=True)
        return total - alone[:, np.newaxis] * columns

    def columns(self) -> npt.NDArray[np.floating]:
        """Probabilities of each item's components in each draw (n, N, K)."""
        return self.probabilities.swapaxes(0, 1)

    @staticmethod
    def together(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Floats:
        """Probability that pairs (P, N) of items with these :meth:`columns` are in one component."""
        return np.einsum("ptk,ptk->pt", one, other, dtype=np.float64)

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of each item's similarities to the other members of each cluster, and divisor 1."""
        return self._product_with_others(np.eye(labels.max() + 1)[labels]), 1.0

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(links, labels, total, *arguments)`` with :meth:`links` of all items."""
        return PairSource.map_links(self, labels, function, *arguments)

    def signatures(self) -> npt.NDArray[np.intp]:
        """Group (n,) of each item: one each, as no two are together for certain."""
        return np.arange(self.n_items)

    def marginal_losses(self, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats:
        """Binder losses of partitions (P, n) expected given each draw's parameters, (P, N)."""
        a, b, c = (loss.numerator[term] for term in "ABC")
        table = pairs(self.n_items)
        own = np.array([table[np.bincount(partition)].sum() for partition in partitions])
        losses = np.empty((len(partitions), self.n_draws))
        first = 0
        for block, _ in self._blocks():
            rows = slice(first, first + len(block))
            squares = np.einsum("tnk,tnk->tn", block, block)
            drawn = (np.square(block.sum(axis=1)).sum(axis=1) - squares.sum(axis=1)) / 2
            for row, partition in enumerate(partitions):
                sums = np.einsum("tnk,nc->tkc", block, np.eye(partition.max() + 1)[partition], optimize=True)
                joint = (np.square(sums).sum(axis=(1, 2)) - squares.sum(axis=1)) / 2
                losses[row, rows] = a * joint + b * own[row] + c * drawn
            first += len(block)
        return loss.scale(self.n_items) * losses

    def _blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Probabilities in double precision, a block of draws at a time, with the draws' weights."""
        n_draws, n_items, n_components = self.probabilities.shape
        for rows in slices(n_draws, max(1, memory.PROBABILITIES_AT_ONCE // (n_items * n_components))):
            yield self.probabilities[rows].astype(np.float64), self.weights[rows]

    def _lines(self) -> list[tuple[str, str]]:
        *lines, (name, labels) = super()._lines()
        size = f"{self.probabilities.dtype}, {self.probabilities.nbytes / 1e6:.1f} MB"
        soft = f"{self.n_components} components ({self.component_dim}), {size}"
        return [*lines, (name, f"{labels} (one sample)"), ("soft", soft)]


def as_soft(draws: PartitionDraws, what: str) -> AllocationDraws:
    """Return draws of allocation probabilities, or raise TypeError that names `what`, which needs them."""
    if isinstance(draws, AllocationDraws):
        return draws
    raise TypeError(
        f"{what} needs allocation probabilities; got draws of labels. Read those that the posterior holds by "
        "as_allocation_probabilities, or compute them by allocation_probabilities(model, idata)."
    )


def sampled_components(probabilities: npt.NDArray[np.floating], random_seed: RandomSeed) -> npt.NDArray[Any]:
    """Sample a component of each item (N, n) by inversion of its distribution function."""
    rng = as_generator(random_seed, otherwise=0)
    n_draws, n_items, n_components = probabilities.shape
    components = np.empty((n_draws, n_items), np.min_scalar_type(max(n_components - 1, 0)))
    for t, block in enumerate(probabilities):
        cumulative = np.cumsum(block, axis=1, dtype=np.float64)
        below = rng.random((n_items, 1)) * cumulative[:, -1:] >= cumulative
        components[t] = np.minimum(below.sum(axis=1), n_components - 1)
    return components
