"""Similarities of the pairs that were scored, one number for all others, and constraints on the partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.memberships import Pairs
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels, connected
from posterior_consensus.results.display import counted
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Integers
from posterior_consensus.runtime.tolerances import ROUNDING

DATA_SET, NAME = "source_dataset", "unique_id"  # of a record, as splink has them
_NO_PAIRS = np.empty((0, 2), np.int64)
_EVEN = 0.5


@dataclass(frozen=True, eq=False)
class PairConstraints:
    """What a partition of records has to keep."""

    # (n_pairs, 2): positions of items that must be in one cluster, and of items that must not.
    must_link: Integers = field(default_factory=lambda: _NO_PAIRS)
    cannot_link: Integers = field(default_factory=lambda: _NO_PAIRS)
    # (n_items,): number of each item's data set, of which a cluster has at most one item; -1 for an item that any
    # cluster may have. None if clusters may have any number.
    data_set: npt.NDArray[np.int32] | None = None
    max_cluster_size: int | None = None  # most items of a cluster; None for any number
    # (n_items,): number of each item's earlier cluster, which stays whole and is joined with no other one; -1 for a new
    # item. None if no earlier cluster is fixed.
    earlier: Integers | None = None

    def __bool__(self) -> bool:
        is_limited = any(one is not None for one in (self.data_set, self.max_cluster_size, self.earlier))
        return is_limited or self.must_link.size + self.cannot_link.size > 0

    def groups(self, n_items: int) -> npt.NDArray[np.int32]:
        """Group (n_items,) of each item: items of a group must be in one cluster."""
        one, other = self.must_link.T
        if self.earlier is not None:
            order = np.argsort(self.earlier, kind="stable")
            linked = (np.diff(self.earlier[order]) == 0) & (self.earlier[order[1:]] >= 0)
            one, other = np.append(one, order[:-1][linked]), np.append(other, order[1:][linked])
        return connected(one, other, n_items)

    def at_most_one(self) -> tuple[npt.NDArray[np.intp], Integers]:
        """Items of sets of which a cluster has at most one group, and the number of the set of each.

        All earlier clusters that are fixed, each of which is a group, are one more set.
        """
        found, sets, number = [np.empty(0, np.intp)], [np.empty(0, np.int64)], 0
        if self.data_set is not None:
            found.append(np.flatnonzero(self.data_set >= 0))
            sets.append(self.data_set[found[-1]].astype(np.int64))
            number = int(self.data_set.max(initial=-1)) + 1
        if self.earlier is not None:
            found.append(np.flatnonzero(self.earlier >= 0))
            sets.append(np.full(found[-1].size, number))
        return np.concatenate(found), np.concatenate(sets)

    def of_items(self, at: npt.NDArray[np.intp], n_items: int) -> PairConstraints:
        """Constraints between some of the items, by position."""
        place = np.full(n_items, -1, np.int64)
        place[at] = np.arange(at.size)
        must, cannot = (pairs[(pairs >= 0).all(axis=1)] for pairs in (place[self.must_link], place[self.cannot_link]))
        data_set = None if self.data_set is None else self.data_set[at]
        earlier = None if self.earlier is None else self.earlier[at]
        return PairConstraints(must, cannot, data_set, self.max_cluster_size, earlier)

    def first_broken(self, labels: Labels) -> tuple[int, int] | None:
        """Positions of two items whose clusters break a constraint; None if none does."""
        for pairs, joined in ((self.must_link, False), (self.cannot_link, True)):
            broken = np.flatnonzero((labels[pairs[:, 0]] == labels[pairs[:, 1]]) == joined)
            if broken.size:
                return int(pairs[broken[0], 0]), int(pairs[broken[0], 1])
        if self.data_set is not None:
            order = _sorted(self.data_set, labels)
            same = (np.diff(labels[order]) == 0) & (np.diff(self.data_set[order]) == 0)
            if same.any():
                return int(order[same.argmax()]), int(order[same.argmax() + 1])
        if self.earlier is not None:
            order = _sorted(self.earlier, labels)
            joined = (np.diff(labels[order]) == 0) & (np.diff(self.earlier[order]) != 0)
            if joined.any():
                return int(order[joined.argmax()]), int(order[joined.argmax() + 1])
        if self.max_cluster_size is not None:
            large = np.flatnonzero(np.bincount(labels) > self.max_cluster_size)
            if large.size:
                one, other = np.flatnonzero(labels == large[0])[:2]
                return int(one), int(other)
        return None

    def why_apart(self, one: int, other: int) -> str:
        """Why two items must not be in one cluster, in words that follow "which"."""
        if self.data_set is not None and self.data_set[one] == self.data_set[other] >= 0:
            return "are of one data set, of which a cluster has at most one item"
        if self.earlier is not None and -1 != self.earlier[one] != self.earlier[other] != -1:
            return "are in two clusters of `previous`, which fixed=True keeps apart"
        if (np.sort(self.cannot_link) == sorted((one, other))).all(axis=1).any():
            return "`cannot_link` separates"
        return f"are in a cluster larger than `max_cluster_size`, {self.max_cluster_size}"

    def in_words(self) -> str:
        """Describe the constraints; empty if there are none."""
        words = []
        if self.must_link.size:
            words.append(f"{counted(len(self.must_link), 'pair')} must be together")
        if self.cannot_link.size:
            words.append(f"{counted(len(self.cannot_link), 'pair')} must be apart")
        if self.data_set is not None:
            sets = counted(int(self.data_set.max(initial=-1)) + 1, "data set")
            words.append(f"at most one item of each of {sets} in a cluster")
        if self.max_cluster_size is not None:
            words.append(f"at most {counted(self.max_cluster_size, 'item')} in a cluster")
        if self.earlier is not None:
            words.append("earlier clusters stay whole and apart")
        return "; ".join(words)


def _sorted(sets: npt.NDArray[Any], labels: Labels) -> npt.NDArray[np.intp]:
    """Positions of the items in a set, 0 or more, in the order of their labels, sets and positions."""
    known = np.flatnonzero(sets >= 0)
    return known[np.lexsort((known, sets[known], labels[known]))]


@dataclass(frozen=True, eq=False, repr=False)
class ScoredPairs(PairSource):
    """Similarities of scored pairs, and one for all other pairs; returned by :func:`as_pair_similarity`.

    Attributes
    ----------
    items : Items
        The items, with their coordinates.
    scored : scipy.sparse.csr_array of shape (n_items, n_items), dtype float64
        Similarity of each pair that was scored, 0 included: symmetric, in [0, 1], with sorted indices and nothing on
        the diagonal.
    unscored : float
        Similarity of every other pair.
    constraints : PairConstraints
        What a partition has to keep.
    """

    items: Items
    scored: sparse.csr_array
    unscored: float = 0.0
    constraints: PairConstraints = field(default_factory=PairConstraints)

    def as_draws(self, what: str = "This", *, lacking: bool = False) -> NoReturn:
        """Raise ValueError: scored pairs have no draws."""
        instead = {"loss": "Choose loss='binder'", "method": "Choose method='greedy'"}.get(
            what.partition(" ")[0],
            "Functions that need similarities only, such as consensus_partition and links, take them",
        )
        raise ValueError(
            f"{what} needs posterior draws; got scored pairs alone, which have probabilities, but no partitions. "
            f"{instead}."
        )

    @property
    def n_scored(self) -> int:
        """Number of pairs that were scored."""
        return int(self.scored.nnz) // 2

    @property
    def n_unscored(self) -> int:
        """Number of pairs that were not scored."""
        return self.n_items * (self.n_items - 1) // 2 - self.n_scored

    @property
    def pairs(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]:
        """The scored pairs in order: position of the first item, of the second, which is later, and similarity."""
        upper = sparse.triu(self.scored, 1, format="coo")
        return *upper.coords, upper.data

    @property
    def rows(self) -> npt.NDArray[np.int32]:
        """Row (nnz,) of each entry of `scored`."""
        return np.repeat(np.arange(self.n_items, dtype=np.int32), np.diff(self.scored.indptr))

    @cached_property
    def shared_similarity(self) -> Floats:
        """Similarity matrix (n, n), read-only, if the memory budget holds it."""
        self.check_memory()
        values = np.full((self.n_items, self.n_items), self.unscored)
        values[self.rows, self.scored.indices] = self.scored.data
        np.fill_diagonal(values, 1.0)
        values.flags.writeable = False
        return values

    def of_items(self, at: npt.NDArray[np.intp]) -> Self:
        """Select items by position."""
        scored = self.scored[at][:, at].tocsr()
        scored.sort_indices()
        constraints = self.constraints.of_items(np.asarray(at), self.n_items)
        return replace(self, items=self.items.take(at), scored=scored, constraints=constraints)

    def groups(self) -> npt.NDArray[np.int32]:
        """Group (n_items,) of each item: items of a group must be in one cluster.

        Raises
        ------
        ValueError
            If two items of a group must not be in one cluster; the message names them.
        """
        groups = self.constraints.groups(self.n_items)
        pair = self.constraints.first_broken(groups)
        if pair is None:
            return groups
        one, other = self.items.named(np.array(pair)).tolist()
        why = self.constraints.why_apart(*pair)
        if self.constraints.earlier is not None:
            raise ValueError(
                "`fixed` must be False if clusters of `previous` break the constraints of the pairs; these clusters "
                f"and `must_link` join {one!r} and {other!r}, which {why}. Leave out a constraint, or fixed=True."
            )
        raise ValueError(
            f"`must_link` must agree with the other constraints; directly or through other pairs it joins {one!r} and "
            f"{other!r}, which {why}. Leave out one of these pairs."
        )

    def check_keeps(self, labels: Labels) -> None:
        """Raise ValueError if clusters break a constraint; the message names two items."""
        pair = self.constraints.first_broken(labels)
        if pair is not None:
            one, other = self.items.named(np.array(pair)).tolist()
            apart = labels[pair[0]] != labels[pair[1]]
            what = f"separates {one!r} and {other!r}, which `must_link` joins"
            if not apart:
                what = f"joins {one!r} and {other!r}, which {self.constraints.why_apart(*pair)}"
            raise ValueError(
                f"`partition` must keep the constraints; it {what}. Find one that does by consensus_partition(pairs)."
            )

    def check_unconstrained(self, what: str, instead: str) -> None:
        """Raise ValueError if there are constraints, which `what` would not keep; `instead` is the next step."""
        if self.constraints:
            raise ValueError(
                f"{what} must be left out where pairs must be together or apart: it keeps no constraints. {instead}"
            )

    def as_pairs(self) -> PairSimilarity:
        """Return the similarity matrix without constraints."""
        return PairSimilarity.of(self)

    def all_pairs(self, what: str, instead: str) -> PairSimilarity:
        """The similarity matrix for `what` of a call, which needs all pairs; errors give `instead` as the next step.

        Raises
        ------
        ValueError
            If there are constraints, which nothing keeps that needs the matrix.
        MemoryError
            If it exceeds the memory budget.
        """
        self.check_unconstrained(what, instead)
        self.check_memory(instead)
        return self.as_pairs()

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Blocks of rows (m, n) of the similarity matrix."""
        for rows in memory.parts(self.n_items, 8 * self.n_items):
            at = np.arange(self.n_items)[rows]
            yield rows.start, np.stack([self.row(item) for item in at])

    def row(self, item: int) -> Floats:
        """Similarities (n,) of one item to all."""
        values = np.full(self.n_items, self.unscored)
        own = slice(*self.scored.indptr[item : item + 2])
        values[self.scored.indices[own]] = self.scored.data[own]
        values[item] = 1.0
        return values

    def pairs_above(self, threshold: float) -> Iterator[Pairs]:
        """Pairs of two items of larger similarity, in order: the first, the second, and their similarity."""
        if self.unscored > threshold:
            yield from super().pairs_above(threshold)
            return
        one, other, values = self.pairs
        above = values > threshold
        yield one[above], other[above].astype(np.int64), values[above]

    def nearest(self, n_others: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """Of each item the most similar others (n, n_others), the first of equals, and their similarities."""
        nearest, similarities = np.empty((self.n_items, n_others), np.int64), np.empty((self.n_items, n_others))
        for item in range(self.n_items):
            own = slice(*self.scored.indptr[item : item + 2])
            near, values = self.scored.indices[own], self.scored.data[own]
            # Of the items without a score only the first can be among them.
            first = np.setdiff1d(np.arange(min(self.n_items, near.size + n_others + 1)), np.append(near, item))
            columns = np.concatenate([near, first]).astype(np.int64)
            values = np.concatenate([values, np.full(first.size, self.unscored)])
            order = np.lexsort((columns, -values))[:n_others]
            nearest[item], similarities[item] = columns[order], values[order]
        return nearest, similarities

    def product(self, columns: Floats) -> Floats:
        """Product (n, c) of the similarity matrix with `columns` (n, c)."""
        excess = self._excess @ columns + (1.0 - self.unscored) * columns
        return excess + self.unscored * columns.sum(axis=0)

    @cached_property
    def _excess(self) -> sparse.csr_array:
        """Similarities of the scored pairs less that of the others."""
        values = self.scored.data - self.unscored
        return sparse.csr_array((values, self.scored.indices, self.scored.indptr), self.scored.shape)

    def links(self, labels: npt.NDArray[Any]) -> tuple[Floats, float]:
        """Sums (n, K) of each item's similarities to the other members of each cluster, and divisor 1."""
        sizes = np.bincount(labels)
        memory.check(8 * self.n_items * sizes.size, f"Similarities of {self.n_items} items to {sizes.size} clusters")
        members = sparse.csr_array(
            (np.ones(labels.size), labels, np.arange(labels.size + 1)), (labels.size, sizes.size)
        )
        sums = (self._excess @ members).toarray() + self.unscored * sizes
        sums[np.arange(labels.size), labels] -= self.unscored
        return sums, 1.0

    def sums(self, partitions: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """Sums (P, n) of every item's similarities to its cluster, and (n,) to all items, itself included."""
        own = [self._links_to_own(partition) + 1.0 for partition in partitions]
        return np.array(own), self._excess.sum(axis=1) + self.unscored * (self.n_items - 1) + 1.0

    def _links_to_own(self, labels: npt.NDArray[Any]) -> Floats:
        """Sum (n,) of every item's similarities to the others of its cluster."""
        rows = self.rows
        within = labels[rows] == labels[self.scored.indices]
        sums = np.bincount(rows[within], self._excess.data[within], self.n_items)
        return sums + self.unscored * (np.bincount(labels)[labels] - 1)

    def similarity_to_own(self, labels: Labels) -> Floats:
        """Mean similarity (n,) of every item to the others of its cluster; NaN for an item alone."""
        others = np.bincount(labels)[labels] - 1
        own = np.divide(self._links_to_own(labels), others, out=np.full(self.n_items, np.nan), where=others > 0)
        return np.clip(own, 0.0, 1.0)

    def own_and_nearest(
        self, labels: npt.NDArray[Any], noise: int | None = None
    ) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
        """See :meth:`PairSource.own_and_nearest`, of which this is the sparse counterpart; records are no noise."""
        n, sizes, own = self.n_items, np.bincount(labels), self.similarity_to_own(labels)
        if sizes.size == 1:
            return own, np.full(n, -1, np.int32), np.full(n, np.nan)
        # Sums over the pairs that were scored, and each item's own cluster, by clusters in order.
        rows = np.concatenate([self.rows, np.arange(n, dtype=np.int32)])
        clusters = np.concatenate([labels[self.scored.indices], labels])
        sums = sparse.csr_array((np.concatenate([self._excess.data, np.zeros(n)]), (rows, clusters)), (n, sizes.size))
        sums.sum_duplicates()
        row, starts = np.repeat(np.arange(n), np.diff(sums.indptr)), sums.indptr[:-1]
        means = np.where(sums.indices == labels[row], -1.0, sums.data / sizes[sums.indices] + self.unscored)
        rank = np.arange(row.size) - starts[row]
        # The first cluster without a scored pair, to which the mean is `unscored`.
        unknown = np.minimum.reduceat(np.where(sums.indices == rank, sizes.size, rank), starts)
        unknown = np.minimum(unknown, np.diff(sums.indptr))
        most = np.maximum(np.maximum.reduceat(means, starts), np.where(unknown < sizes.size, self.unscored, -1.0))
        near = np.where(means >= most[row] - ROUNDING, sums.indices, sizes.size)
        nearest = np.minimum.reduceat(near, starts)
        nearest = np.where(self.unscored >= most - ROUNDING, np.minimum(nearest, unknown), nearest)
        to_nearest = np.where(nearest == unknown, self.unscored, 0.0)
        at = np.flatnonzero(sums.indices == nearest[row])
        to_nearest[row[at]] = means[at]
        return own, nearest.astype(np.int32), np.clip(to_nearest, 0.0, 1.0)

    def certain_groups(self) -> npt.NDArray[np.intp]:
        """A group for each item."""
        return np.arange(self.n_items)

    def signatures(self) -> npt.NDArray[np.intp]:
        """Number of each item's row of the matrix among the distinct rows, if the memory budget holds it."""
        return self.as_pairs().signatures()

    def _lines(self) -> list[tuple[str, str]]:
        _, _, values = self.pairs
        shares = f"mean {values.mean():.3g}, above {_EVEN:g}: {np.mean(values > _EVEN):.0%}" if values.size else "none"
        unknown = f"{self.n_unscored:,}, taken as {self.unscored:g}"
        if self.unscored == 0 and self.n_unscored:
            unknown += "; they are not known to be non-matches"
        return [
            ("records", f"{self.n_items:,}"),
            ("scored pairs", f"{self.n_scored:,}, {shares}"),
            ("unscored pairs", unknown),
            *([("constraints", self.constraints.in_words())] if self.constraints else []),
            ("draws", "none: similarities of pairs alone"),
            ("values", f"{self.scored.data.nbytes / 1e6:.1f} MB"),
        ]
