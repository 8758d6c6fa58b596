"""Independent runs of some of the items each, as of subsamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws, links_alone
from posterior_consensus.ensemble.labels import ArrayLabels, Result
from posterior_consensus.ensemble.memberships import Pairs
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import canonical_rows, smallest_dtype
from posterior_consensus.kernels import ensemble
from posterior_consensus.kernels.tables import CLUSTERS_FROM
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.tolerances import SAME

_INSTEAD = {
    "loss ": "Choose loss='vi' or loss='binder', which are of the items that a run has",
    "method ": "Take method='greedy'",
    "refine=": "Leave it out",
}
_OTHERWISE = "consensus_partition, summarize, credible_ball, item_uncertainty, diagnose and compare_layers take them"
_SOME = 3  # pairs named in an error
_MATRICES = 4  # of 8 bytes a pair that the similarities take while they are counted


class Met(NamedTuple):
    """Numbers of pairs of items of which no run had both, and of all pairs, of the items looked at."""

    never: int
    pairs: int
    n_items: int


@dataclass(frozen=True, eq=False, repr=False)
class RunsWithMissing(PartitionDraws):
    """Independent runs of some of the items each, returned by :func:`as_runs` for runs with missing items.

    A loss is that of the items that a run has, or that two runs have in common. Similarities of pairs are shares of the
    runs that have both items.

    Attributes
    ----------
    labels : ndarray of shape (n_runs, n_items), dtype int32
        Labels of the runs by first appearance, -1 for an item that a run did not have. Each item that a run calls noise
        has a label of its own, after those of the clusters.
    n_clusters : ndarray of shape (n_runs,), dtype int64
        Number of clusters of each run, without items that it calls noise.
    present : ndarray of shape (n_runs, n_items), dtype bool
        Whether each run has each item.
    noise : ndarray of shape (n_runs, n_items), dtype bool
        Whether each run calls each of its items noise, which is then a cluster of its own.
    """

    # 0 for items that a run does not have, 1 for noise, whether it has some or not, and clusters from CLUSTERS_FROM on.
    backend: ArrayLabels

    lacks_items: ClassVar[bool] = True

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Cluster of each item in each run, of noise an own one each, -1 for items that the run does not have."""
        clusters, noise = self.marked_labels(), self.noise
        return np.where(noise, self.n_clusters[:, np.newaxis] - 1 + np.cumsum(noise, axis=1), clusters).astype(np.int32)

    @property
    def n_clusters(self) -> npt.NDArray[np.int64]:
        """Number of clusters of each run, without items that it calls noise."""
        return self.backend.n_clusters - CLUSTERS_FROM

    @property
    def most_clusters(self) -> int:
        """Largest number of clusters among runs with positive weight."""
        return max(1, int(self.n_clusters[self.weights > 0].max()))

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Whether each run has each item."""
        return self.backend.array > 0

    @property
    def noise(self) -> npt.NDArray[np.bool_]:
        """Whether each run calls each of its items noise."""
        return self.backend.array == 1

    @property
    def cluster_sizes(self) -> npt.NDArray[np.int32]:
        """Number of items (R,) of each cluster of each run, stacked; 0 for the rows that are none."""
        sizes = self.backend.sizes.copy()
        sizes[self.noise_rows] = 0
        return sizes

    @property
    def n_present(self) -> npt.NDArray[np.int64]:
        """Number of items (n_runs,) that each run has."""
        return self.n_items - self.backend.sizes[self.starts[:-1]].astype(np.int64)

    @cached_property
    def met(self) -> Met:
        """How many pairs of items no run had; of 10,000 items, always the same, if there are more."""
        at = self.of_some_items()[0]
        there = self.present[self.weights > 0][:, at].astype(np.float32)
        never = sum(int(np.count_nonzero(there[:, part].T @ there == 0)) for part in memory.parts(at.size, 4 * at.size))
        alone = int(np.count_nonzero(~there.any(axis=0)))  # an item that no run has does not meet itself
        return Met((never - alone) // 2, at.size * (at.size - 1) // 2, at.size)

    def as_draws(self, what: str = "This", *, lacking: bool = False) -> Self:
        """Return the runs, or raise ValueError if `what` needs runs of all items."""
        if lacking:
            return self
        instead = next((step for kind, step in _INSTEAD.items() if what.startswith(kind)), _OTHERWISE)
        raise ValueError(
            f"{what} needs runs that have all items; got runs with missing ones, which are partitions of some items "
            f"each. {instead}."
        )

    def relative_scales(self, loss: PartitionLoss) -> Floats:
        """Factor (n_runs,) of each run's part in an expected loss, relative to the loss's scale of all items.

        A run without items, as a part of the items may leave, has no part.
        """
        sizes, of_run = np.unique(self.n_present, return_inverse=True)
        scales = np.array([loss.scale(int(size)) if size else 0.0 for size in sizes])[of_run]
        return np.asarray(scales / loss.scale(self.n_items) / max(float(self.weights[scales > 0].sum()), SAME))

    def canonical(self, codes: npt.NDArray[Any], n_codes: int) -> ArrayLabels:
        """Number labels (N, n) below `n_codes` by first appearance, as `backend` does."""
        reserved = np.broadcast_to(np.arange(CLUSTERS_FROM, dtype=codes.dtype), (len(codes), CLUSTERS_FROM))
        labels, n_clusters = canonical_rows(np.hstack([reserved, codes]), n_codes)
        return ArrayLabels(np.ascontiguousarray(labels[:, CLUSTERS_FROM:]), n_clusters)

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        backend = self.canonical(self.backend.array.take(at, axis=1), int(self.backend.n_clusters.max()))
        return replace(self, items=self.items.take(at), backend=backend)

    def marked_labels(self, rows: npt.NDArray[np.intp] | slice = slice(None)) -> npt.NDArray[Any]:
        """Cluster of each item in each run, or in some, and -1 where the run does not have it or calls it noise."""
        return np.maximum(self.backend.array[rows].astype(np.int32) - CLUSTERS_FROM, -1)

    def in_clusters(self) -> npt.NDArray[np.bool_]:
        """Whether each run has each item in a cluster (N, n)."""
        return self.backend.array >= CLUSTERS_FROM

    @property
    def noise_rows(self) -> npt.NDArray[np.int64]:
        """Rows of items that runs do not have, or call noise, where their :attr:`clusters` are stacked: two of each."""
        return (self.starts[:-1, np.newaxis] + np.arange(CLUSTERS_FROM)).ravel()

    def some_labels(self, most: int) -> npt.NDArray[Any]:
        """No labels: runs are no partitions of all items."""
        return np.empty((0, self.n_items), np.int32)

    def denominator(self) -> None:
        """None: pairs are counted over different numbers of runs."""

    @property
    def has_small_clusters(self) -> bool:
        """False, as pairs are counted from the matrix."""
        return False

    @cached_property
    def shared_similarity(self) -> Floats:
        """Share (n, n) of the runs that co-cluster each pair among those that have both, read-only; 0 if none has both.

        For pictures, and for the starts of searches: :meth:`similarity` refuses pairs that no run has.
        """
        together, held = self.pair_counts()
        values = np.divide(together, held, out=np.zeros_like(held), where=held > 0)
        np.fill_diagonal(values, 1.0)
        return values

    def similarity(self) -> Floats:
        """Share (n, n) of the runs that co-cluster each pair among those that have both, as a copy.

        Raises ValueError if no run of positive weight has both items of a pair.
        """
        return self._known_similarity.copy()

    @property
    def _known_similarity(self) -> Floats:
        never = np.triu(self.pair_counts()[1] <= 0, 1)
        if never.any():
            n, lost = self.n_items, np.flatnonzero((never | never.T).sum(axis=1) == self.n_items - 1)
            pairs = ", ".join(
                "{!r} and {!r}".format(*self.items.named(pair).tolist()) for pair in np.argwhere(never)[:_SOME]
            )
            alone = ""
            if lost.size:
                alone = f"; items that meet no other: {lost.size}, such as {self.items.named(lost[:1])[0]!r}"
            raise ValueError(
                f"Similarities need, for every pair of items, a run of positive weight that has both; the number of "
                f"pairs without one is {never.sum():,} of {n * (n - 1) // 2:,}, such as {pairs}{alone}. Make more runs "
                "or larger subsamples, or leave out items; a consensus under 'vi' or 'binder' needs no similarities."
            )
        return self.shared_similarity

    def pair_counts(self) -> tuple[Floats, Floats]:
        """Weight (n, n) of the runs that co-cluster each pair of items, and of those that have both."""
        what = f"The similarities of {self.n_items} items and their standard errors"
        memory.check(8 * _MATRICES * self.n_items**2, what)
        total = self.samples.addends[1]
        counts = [np.rint(one * total) if not self.samples.is_weighted else one * total for one in self._shares()]
        return counts[0], counts[1]

    def _shares(self) -> Iterator[Floats]:
        """Shares (n, n) of all runs that co-cluster each pair, and that have both."""
        codes = self.backend.array
        for labels, in_no_cluster in ((codes, codes < CLUSTERS_FROM), ((codes > 0).astype(np.uint8), codes == 0)):
            highest = int(labels.max()) + 1 + self.n_items
            alone = np.where(in_no_cluster, highest - self.n_items + np.arange(self.n_items), labels)
            rows, _ = canonical_rows(alone.astype(smallest_dtype(highest)), highest)
            share = PartitionDraws.of(rows, samples=self.samples, items=self.items).similarity()
            np.fill_diagonal(share, self.samples.mean((codes > 0).T.astype(np.float64)))
            yield share

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Rows of the matrix."""
        return self.as_pairs().row_blocks()

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""
        return self.shared_similarity[item]

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the matrix and `columns` (n, c)."""
        return self.shared_similarity @ columns

    def pairs_above(self, threshold: float) -> Iterator[Pairs]:
        """Pairs of two items of larger similarity, see :meth:`PairSource.pairs_above`."""
        return self.as_pairs().pairs_above(threshold)

    @property
    def mean_similarity(self) -> float:
        """Mean similarity of all pairs of different items; 1/2 for a single item."""
        return self.as_pairs().mean_similarity

    def as_pairs(self) -> PairSimilarity:
        """The similarities alone."""
        return PairSimilarity(self.items, self._known_similarity, samples=self.samples)

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Mean agreement (n, K) with the other members of each cluster, times their number; see :meth:`map_links`."""
        return np.concatenate([found for _, found in self.map_links(labels, links_alone)]), 1.0

    def map_links(
        self, labels: npt.NDArray[Any], function: Callable[..., Result], *arguments: Any
    ) -> Iterator[tuple[slice, Result]]:
        """Call ``function(links, labels, total, *arguments)`` with the links of each block of items, in order.

        The mean similarity of an item to a cluster is the share of its co-memberships among its meetings with the other
        members, over all runs: sums over runs, without a matrix. It is 0 if they never met.
        """
        addends = self.samples.addends[0]
        counts = self.backend.joint_counts(labels)
        together, sizes = counts.copy(), np.bincount(labels, minlength=counts.shape[1])
        lacked = self.starts[:-1]
        met = (sizes - counts[lacked]).repeat(np.diff(self.starts), axis=0).astype(np.int32)
        together[self.noise_rows] = met[lacked] = 0
        given = self.starts, addends, together, met, labels, sizes, function, arguments
        return self.backend.map_blocks(_apply_to_shares, *given)

    def own_and_nearest(
        self, labels: npt.NDArray[Any], noise: int | None = None
    ) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
        """See :meth:`PairSource.own_and_nearest`."""
        return PairSource.own_and_nearest(self, labels, noise)

    def jackknife(self, value: Callable[[PairSource], Floats]) -> Floats:
        """Pseudo-values (..., R) of ``value(similarities)``, from the similarities without each of the R runs.

        NaN if only one run has a pair.
        """
        of_all = value(self)
        without = np.stack([value(one) for one in self._without_each()], axis=-1)
        return of_all[..., np.newaxis] + (self.n_draws - 1) * (of_all[..., np.newaxis] - without)

    def _without_each(self) -> Iterator[PairSimilarity]:
        together, held = self.pair_counts()
        for labels in self.labels:  # of noise, each item has its own
            there = np.flatnonzero(labels >= 0)
            own, both, one = np.ix_(there, there), held.copy(), together.copy()
            both[own] -= 1
            one[own] -= labels[there, np.newaxis] == labels[there]
            with np.errstate(invalid="ignore", divide="ignore"):
                values = one / both
            np.fill_diagonal(values, 1.0)
            yield PairSimilarity(self.items, values)

    def _lines(self) -> list[tuple[str, str]]:
        lines, there = super()._lines(), self.n_present
        share = (
            f"{there.min():,} to {there.max():,} of the {self.n_items:,} items a run; losses are of the items in common"
        )
        return [*lines[:-1], ("present", share), lines[-1]]


def _apply_to_shares(
    labels: npt.NDArray[Any],
    items: slice,
    starts: npt.NDArray[np.int64],
    addends: Floats,
    together: npt.NDArray[np.int32],
    met: npt.NDArray[np.int32],
    partition: npt.NDArray[Any],
    sizes: npt.NDArray[np.intp],
    function: Callable[..., Result],
    arguments: tuple[Any, ...],
) -> Result:
    """Call a function with the links of the block's items, each less the item itself."""
    labels, own = np.ascontiguousarray(labels), partition[items]
    rows = np.arange(own.size)
    co, all_met = (ensemble.links(labels, starts, addends, table) for table in (together, met))
    for sums, least in ((co, CLUSTERS_FROM), (all_met, 1)):
        sums[rows, own] -= addends @ (labels >= least)
    co *= sizes - (own[:, np.newaxis] == np.arange(sizes.size))
    return function(np.divide(co, all_met, out=np.zeros_like(co), where=all_met > SAME), own, 1.0, *arguments)
