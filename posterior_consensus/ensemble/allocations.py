"""Allocation probabilities of the items, given the parameters of each draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import ArrayLabels, slices
from posterior_consensus.ensemble.partitions import canonical_rows
from posterior_consensus.losses.record import PartitionLoss, pairs
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import RandomSeed, as_generator


@dataclass(frozen=True, eq=False)
class AllocationProbabilities:
    """Allocation probabilities of the items in each draw, the part `soft` of :class:`PartitionDraws` that have them.

    The draws' `labels` are one sample from them. Similarities and expected Binder losses are computed from the
    probabilities themselves, which removes the noise of the sampled labels (Rao-Blackwellization).

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
    >>> draws.soft.probabilities.shape
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
    def _n_items(self) -> int:
        return self.probabilities.shape[1]

    def take(self, rows: npt.NDArray[np.intp]) -> AllocationProbabilities:
        """Keep some draws, by row number."""
        return self._at(rows)

    def of_items(self, at: npt.NDArray[np.intp]) -> AllocationProbabilities:
        """Keep some items, by position."""
        return self._at((slice(None), at))

    def _at(self, at: Any) -> AllocationProbabilities:
        density = None if self.log_density is None else self.log_density[at]
        return replace(self, probabilities=self.probabilities[at], components=self.components[at], log_density=density)

    def sampled(self, random_seed: RandomSeed) -> ArrayLabels:
        """Sample the labels of each draw."""
        return ArrayLabels(*canonical_rows(sampled_components(self.probabilities, random_seed), self.n_components))

    def similarity(self, weights: Floats) -> Floats:
        """Similarity matrix (n, n): sum_t w_t p_ti' p_tj, with 1 on the diagonal."""
        total = np.zeros((self._n_items, self._n_items))
        for block, own in self._blocks(weights):
            rows = np.ascontiguousarray((block * np.sqrt(own)[:, np.newaxis, np.newaxis]).transpose(1, 0, 2))
            rows = rows.reshape(self._n_items, -1)
            total += rows @ rows.T
        np.fill_diagonal(total, 1.0)
        return np.minimum(total, 1.0, out=total)

    def row_blocks(self, weights: Floats) -> Iterator[tuple[int, Floats]]:
        """Blocks of rows (m, n) of the similarity matrix, equal to it up to rounding."""
        n_items = self._n_items
        for part in memory.parts(n_items, 16 * n_items):
            rows = np.zeros((part.stop - part.start, n_items))
            for block, own in self._blocks(weights):
                columns = np.ascontiguousarray(block.transpose(0, 2, 1)).reshape(-1, n_items)
                rows += (columns[:, part] * np.repeat(own, self.n_components)[:, np.newaxis]).T @ columns
            rows[np.arange(len(rows)), np.arange(part.start, part.stop)] = 1.0
            yield part.start, np.minimum(rows, 1.0, out=rows)

    def product_with_others(self, columns: Floats, weights: Floats) -> Floats:
        """Product (n, c) of the similarities, with diagonal 0, and `columns` (n, c); cost n x N x components."""
        total = np.zeros_like(columns)
        alone = np.zeros(self._n_items)
        for block, own in self._blocks(weights):
            sums = np.einsum("tnk,nc->tkc", block, columns, optimize=True)
            total += np.einsum("t,tnk,tkc->nc", own, block, sums, optimize=True)
            alone += np.einsum("t,tnk,tnk->n", own, block, block, optimize=True)
        return total - alone[:, np.newaxis] * columns

    def losses(self, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats | None:
        """Expected losses (P, N) of partitions (P, n) given each draw's parameters; None unless Binder's."""
        if loss.as_binder() is None:
            return None
        a, b, c = (loss.numerator[term] for term in "ABC")
        n_draws, n_items, _ = self.probabilities.shape
        table = pairs(n_items)
        own = np.array([table[np.bincount(partition)].sum() for partition in partitions])
        losses = np.empty((len(partitions), n_draws))
        first = 0
        for block, _ in self._blocks(np.empty(n_draws)):
            rows = slice(first, first + len(block))
            squares = np.einsum("tnk,tnk->tn", block, block)
            drawn = (np.square(block.sum(axis=1)).sum(axis=1) - squares.sum(axis=1)) / 2
            for row, partition in enumerate(partitions):
                sums = np.einsum("tnk,nc->tkc", block, np.eye(partition.max() + 1)[partition], optimize=True)
                joint = (np.square(sums).sum(axis=(1, 2)) - squares.sum(axis=1)) / 2
                losses[row, rows] = a * joint + b * own[row] + c * drawn
            first += len(block)
        return loss.scale(n_items) * losses

    def _blocks(self, weights: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Probabilities in double precision, a block of draws at a time, with the draws' weights."""
        n_draws, n_items, n_components = self.probabilities.shape
        for rows in slices(n_draws, max(1, memory.PROBABILITIES_AT_ONCE // (n_items * n_components))):
            yield self.probabilities[rows].astype(np.float64), weights[rows]

    @property
    def fact(self) -> str:
        """Description for the shown result."""
        size = f"{self.probabilities.dtype}, {self.probabilities.nbytes / 1e6:.1f} MB"
        return f"{self.n_components} components ({self.component_dim}), {size}"


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
