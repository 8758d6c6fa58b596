"""Draws of allocation probabilities: the labels averaged out given the parameters of each draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.pairs import PairSource, Result
from posterior_consensus.ensemble.partitions import canonical_rows
from posterior_consensus.ensemble.switching import expected_common_items, is_matched, most_in_common
from posterior_consensus.losses.partition_losses import pairs
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.arguments import as_generator

_BLOCK = 4_000_000  # probabilities at once, 32 MB


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AllocationProbabilities(PartitionDraws):
    """Draws of allocation probabilities; made by :func:`as_allocation_probabilities` or `allocation_probabilities`.

    They are :class:`PartitionDraws`, so that every function takes them: `labels` is one sample from the probabilities
    of each draw. Similarities and expected Binder losses are computed from the probabilities themselves, which removes
    the noise of the sampled labels (Rao-Blackwellisation).

    Attributes
    ----------
    probabilities : ndarray of shape (n_draws, n_items, n_components), float32 or float64
        P(z_i = k | theta_t, y_i), summing to 1 over the components, which are in the model's order.
    components : ndarray of shape (n_draws, n_items), smallest unsigned dtype
        The component sampled for each item; `labels` numbers them by first appearance.
    component_dim : str
        Name of the components' dimension.

    Notes
    -----
    Given the parameters of a draw, items are allocated independently, so that the probability of i and j being
    together is p_ti' p_tj. By the Rao-Blackwell theorem the mean of these has no larger variance than the share of
    sampled labels that agree [1]_.

    References
    ----------
    .. [1] Gelfand and Smith (1990), Journal of the American Statistical Association 85(410), 398-409.
       https://doi.org/10.1080/01621459.1990.10476213
    """

    probabilities: npt.NDArray[np.floating]
    components: npt.NDArray[Any]
    component_dim: str
    labels_are_sure: ClassVar[bool] = False

    @property
    def n_components(self) -> int:
        """Number of components of the model."""
        return self.probabilities.shape[2]

    @property
    def is_counted(self) -> bool:
        """False: a similarity is a mean of probabilities, not a share of draws."""
        return False

    def labels_only(self) -> PartitionDraws:
        """Return the draws of the sampled labels, without the probabilities."""
        return PartitionDraws(self.items, self.samples, self.drawn)

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """Keep some draws, by row number; their weights sum to 1 again, and equal ones where all of them were 0."""
        return replace(super().take(rows), probabilities=self.probabilities[rows], components=self.components[rows])

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Return the probabilities of some items, by position."""
        return replace(super().of_items(at), probabilities=self.probabilities[:, at], components=self.components[:, at])

    def sample(self, random_seed: int | np.random.Generator | np.random.SeedSequence | None = None) -> PartitionDraws:
        """Draw one partition from the probabilities of each draw.

        Parameters
        ----------
        random_seed : int, Generator, SeedSequence or None

        Returns
        -------
        PartitionDraws

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> soft = pc.as_allocation_probabilities([[[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]]])
        >>> soft.sample(random_seed=1).labels
        array([[0, 1, 1]], dtype=uint8)
        """
        components = sampled_components(self.probabilities, random_seed)
        return PartitionDraws(self.items, self.samples, LabelsInMemory(*canonical_rows(components, self.n_components)))

    def membership(self, partition: Any) -> xr.DataArray:
        """Posterior probability of each item to belong to each cluster of a partition.

        Parameters
        ----------
        partition : result object, DataArray or label vector of shape (n_items,)
            As a rule the consensus.

        Returns
        -------
        xarray.DataArray of shape (n_items, n_clusters), dtype float64
            Named ``membership``, over the items and ``consensus_cluster``. One less the sum of an item's row is
            the probability of a component that is none of these clusters.

        Raises
        ------
        ValueError
            If the partition is not one of these items.

        Notes
        -----
        With C clusters, each of them gets a component pi_t(c) of its own in draw t, the ones of largest

            sum_c m_t(c, pi_t(c)),    m_t(c, k) = sum_{i in c} p_tik,

        the expected number of items in common (ECR) [1]_. To this sum each component of less than half an expected
        item adds 1 / (C + 1), so that a cluster that is missing from a draw gets an empty component, and not a part of
        another cluster. Then

            P(i in c) = sum_t w_t p_{t,i,pi_t(c)} 1{m_t(c, pi_t(c)) >= 1/2}:

        a cluster without half an item in common is not there in that draw. Ties between components, which certain
        allocations can have, are broken by their order. :func:`relabel` starts from the same components.

        References
        ----------
        .. [1] Papastamoulis and Iliopoulos (2010), Journal of Computational and Graphical Statistics 19(2), 313-331.
           https://doi.org/10.1198/jcgs.2010.09008

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> soft = pc.as_allocation_probabilities([[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [1.0, 0.0]]])
        >>> soft.membership([0, 1]).values
        array([[0.8, 0.2],
               [0.1, 0.9]])
        """
        reference = self.as_labels(partition)
        n_clusters = int(reference.max()) + 1
        common = expected_common_items(self.probabilities, reference)
        missing = max(0, n_clusters - self.n_components)  # components for clusters that no draw can have
        common = np.pad(common, ((0, 0), (0, missing), (0, 0)))
        probability = np.zeros((self.n_items, n_clusters))
        draws = zip(self.weights, self.probabilities, most_in_common(common), common, strict=True)
        for weight, draw, assigned, shared in draws:
            matched = np.flatnonzero(is_matched(shared[assigned, np.arange(n_clusters)]))
            probability[:, matched] += weight * draw[:, assigned[matched]]
        return xr.DataArray(
            np.minimum(probability, 1.0),
            dims=(self.items.dim, "consensus_cluster"),
            coords=self.items.coords,
            name="membership",
        )

    @cached_property
    def shared_similarity(self) -> Floats:
        """Mean probability of being together (n, n), sum_t w_t p_ti' p_tj, with ones on the diagonal."""
        self.check_memory()
        total = np.zeros((self.n_items, self.n_items))
        for block, weights in self._blocks():
            rows = np.ascontiguousarray((block * np.sqrt(weights)[:, np.newaxis, np.newaxis]).transpose(1, 0, 2))
            rows = rows.reshape(self.n_items, -1)
            total += rows @ rows.T
        np.fill_diagonal(total, 1.0)
        return np.minimum(total, 1.0, out=total)

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Rows (m, n) of the similarity matrix, but for rounding."""
        for part in memory.parts(self.n_items, 16 * self.n_items):
            rows = np.zeros((part.stop - part.start, self.n_items))
            for block, weights in self._blocks():
                columns = np.ascontiguousarray(block.transpose(0, 2, 1)).reshape(-1, self.n_items)
                rows += (columns[:, part] * np.repeat(weights, self.n_components)[:, np.newaxis]).T @ columns
            rows[np.arange(len(rows)), np.arange(part.start, part.stop)] = 1.0
            yield part.start, np.minimum(rows, 1.0, out=rows)

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all, at n x N x components cost."""
        row = self.product((np.arange(self.n_items) == item)[:, np.newaxis].astype(np.float64))[:, 0]
        row[item] = 1.0
        return np.clip(row, 0.0, 1.0)

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix with `columns` (n, c), at n x N x components cost."""
        return self._product_with_others(columns) + columns

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of every item's similarities to the other members of each cluster, and 1."""
        return self._product_with_others(np.eye(labels.max() + 1)[labels]), 1.0

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(links, labels, total, *arguments)`` with the links of all items."""
        return PairSource.map_links(self, labels, function, *arguments)

    def signatures(self) -> npt.NDArray[np.intp]:
        """A number for each item: allocation probabilities have no labels in common over all draws."""
        return np.arange(self.n_items)

    def _product_with_others(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix, its diagonal 0, with `columns` (n, c), in n x N x components."""
        total = np.zeros_like(columns)
        alone = np.zeros(self.n_items)
        for block, weights in self._blocks():
            sums = np.einsum("tnk,nc->tkc", block, columns, optimize=True)
            total += np.einsum("t,tnk,tkc->nc", weights, block, sums, optimize=True)
            alone += np.einsum("t,tnk,tnk->n", weights, block, block, optimize=True)
        return total - alone[:, np.newaxis] * columns

    def marginal_losses(self, partitions: npt.NDArray[Any], loss: PartitionLoss) -> Floats | None:
        """Losses of partitions (P, n) expected given each draw's parameters, (P, N); None for others than Binder's."""
        if loss.as_binder() is None:
            return None
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
        """Probabilities of a few draws at once, in double precision, with their weights."""
        step = max(1, _BLOCK // (self.n_items * self.n_components))
        for first in range(0, self.n_draws, step):
            rows = slice(first, first + step)
            yield self.probabilities[rows].astype(np.float64), self.weights[rows]

    def _facts(self) -> list[tuple[str, str]]:
        *before, (name, labels) = super()._facts()
        size = f"{self.probabilities.dtype}, {self.probabilities.nbytes / 1e6:.1f} MB"
        soft = f"{self.n_components} components ({self.component_dim}), {size}"
        return [*before, (name, f"{labels} (one sample)"), ("soft", soft)]


def sampled_components(
    probabilities: npt.NDArray[np.floating], random_seed: int | np.random.Generator | np.random.SeedSequence | None
) -> npt.NDArray[Any]:
    """A component of each item (N, n), by inversion of its distribution function."""
    rng = as_generator(random_seed, otherwise=0)
    n_draws, n_items, n_components = probabilities.shape
    components = np.empty((n_draws, n_items), np.min_scalar_type(max(n_components - 1, 0)))
    for t, block in enumerate(probabilities):
        cumulative = np.cumsum(block, axis=1, dtype=np.float64)
        below = rng.random((n_items, 1)) * cumulative[:, -1:] >= cumulative
        components[t] = np.minimum(below.sum(axis=1), n_components - 1)
    return components
