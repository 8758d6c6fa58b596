"""Scored pairs and a partition: pairs against their score, expected precision and recall, and pairs to review."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import expit, logit

from posterior_consensus.answers.next_scores import next_scores
from posterior_consensus.bounds.decisions import closest_decisions
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.memberships import symmetric
from posterior_consensus.ensemble.partitions import Labels, connected
from posterior_consensus.ensemble.scored_pairs import PairConstraints, ScoredPairs
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.partition_losses import binder, tau_of
from posterior_consensus.losses.record import Loss, PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime.aliases import Flags, Floats, Integers, Positions
from posterior_consensus.runtime.arguments import check_count

_LARGEST = 10  # larger clusters are counted together
_CERTAIN = 2.0**-53  # the least probability of either answer: a score of 0 or 1 has finite odds
IF_RIGHT = "if scores were right; errors may have either sign"


@dataclass(frozen=True, eq=False, repr=False)
class ScoredLinks(Stored):
    """Scored pairs as a partition decides them; made by :func:`links`.

    Attributes
    ----------
    cluster : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each record in the partition.
    pairs : xarray.Dataset
        The scored pairs, over ``link``: ``first`` and ``second`` are the positions of the two records, ``probability``
        is their score.
    unscored : float
        Probability of a pair that was not scored, within a component of linked records; see `expected_errors`.
    loss : PartitionLoss
        Binder's loss whose threshold decides which pairs are against their score.
    names : tuple
        Names of the clusters in the partition, by number.
    decided : xarray.Dataset
        Pairs that constraints decide, over ``decision``: positions ``first`` and ``second``, and whether they must be
        ``together``.
    data_set : xarray.DataArray or None
        Number of each record's data set, of which a cluster has at most one record; -1 for any number. None if clusters
        may have any number of all.
    max_cluster_size : int or None
        The most records that a cluster may have.
    earlier : xarray.DataArray or None
        Number of the earlier cluster of each record, -1 for a new one, if the partition had to keep these clusters by
        ``fixed=True``; else None.
    """

    _figure = "links.plot_links"

    cluster: xr.DataArray = field(metadata=stored_as.array("scored_link_cluster", of_items=True))
    pairs: xr.Dataset = field(metadata=stored_as.table("scored_link_{}", ("first", "second", "probability")))
    unscored: float = field(metadata=stored_as.number("scored_links_unscored"))
    loss: PartitionLoss = field(metadata=stored_as.loss("scored_links_"))
    names: tuple[Hashable, ...] = field(metadata=stored_as.names("scored_link_cluster_names"))
    decided: xr.Dataset = field(metadata=stored_as.table("decided_{}", ("first", "second", "together")))
    data_set: xr.DataArray | None = field(default=None, metadata=stored_as.array("scored_link_data_set", of_items=True))
    max_cluster_size: int | None = field(default=None, metadata=stored_as.number("scored_links_max_cluster_size"))
    earlier: xr.DataArray | None = field(default=None, metadata=stored_as.array("scored_link_earlier", of_items=True))

    @property
    def tau(self) -> float:
        """Pair threshold of the loss: joining a pair lowers the expected loss if its probability is above."""
        return tau_of(self.loss)

    @property
    def joined(self) -> Flags:
        """Whether the partition joins each of `pairs`."""
        cluster = self.cluster.values
        return np.equal(cluster[self.pairs["first"].values], cluster[self.pairs["second"].values])

    @property
    def n_joined(self) -> int:
        """Number of pairs that the partition joins, scored or not."""
        sizes = np.bincount(self.cluster.values)
        return int((sizes * (sizes - 1) // 2).sum())

    @property
    def n_joined_unscored(self) -> int:
        """Number of pairs that the partition joins although they were not scored."""
        return self.n_joined - int(np.count_nonzero(self.joined))

    @property
    def is_cut(self) -> bool:
        """Whether pairs were not scored and no score is below the threshold: lower ones were probably left out."""
        scores = self.pairs["probability"].values
        n = self.cluster.size
        return bool(0 < scores.size < n * (n - 1) // 2 and scores.min() >= self.tau)

    @property
    def expected_errors(self) -> tuple[float, float]:
        """Expected number of joined pairs that do not match, and of matches that are not joined, by single scores.

        A pair that was not scored counts with the probability `unscored` within a cluster, and within a component of
        the records that scores above the threshold and pairs that must be together link. Elsewhere it counts with 0.
        """
        joined, probability = self.joined, self.pairs["probability"].values
        within = self.n_joined_unscored
        wrong = float((1.0 - probability[joined]).sum()) + (1.0 - self.unscored) * within
        missed = float(probability[~joined].sum())
        if self.unscored:
            missed += self.unscored * (self._n_unscored_linked - within)
        return wrong, missed

    @property
    def component(self) -> Labels:
        """Component (n_items,) of each record: scores above the threshold, constraints and clusters link records."""
        n = self.cluster.size
        if self.unscored > self.tau:  # which links all records
            return np.zeros(n, np.int32)
        together = self.decided["together"].values.astype(np.bool_)
        linked = self.pairs["probability"].values > self.tau
        one = self.pairs["first"].values[linked], self.decided["first"].values[together], np.arange(n)
        other = self.pairs["second"].values[linked], self.decided["second"].values[together], n + self.cluster.values
        n_clusters = int(self.cluster.values.max()) + 1
        return connected(np.concatenate(one), np.concatenate(other), n + n_clusters)[:n]

    @property
    def _n_unscored_linked(self) -> int:
        """Number of pairs within components that were not scored; a cluster is in one component."""
        component = self.component
        sizes = np.bincount(component)
        first, second = (self.pairs[end].values for end in ("first", "second"))
        return int((sizes * (sizes - 1) // 2).sum()) - int(np.count_nonzero(component[first] == component[second]))

    @property
    def precision(self) -> float:
        """Expected share of matches among the joined pairs, by single scores; NaN if none is joined."""
        return 1.0 - self.expected_errors[0] / self.n_joined if self.n_joined else np.nan

    @property
    def precision_range(self) -> tuple[float, float]:
        """Expected precision by single scores, and by products of odds; NaN if no pair is joined.

        A single score does not use that both records match a third one. The product of the odds of all scored pairs
        between a record and the rest of its cluster does, as if these pairs were independent. A pair counts with the
        largest of its own score and the probabilities by the products of its two records. With calibrated scores, the
        true precision is between both, but for about 0.01, or 0.11 if scores are weak and the threshold is low
        (measured, no bound). Scores that are not calibrated shift both.
        """
        if not self.n_joined:
            return np.nan, np.nan
        joined, labels = self.joined, self.cluster.values
        first, second = (self.pairs[end].values[joined] for end in ("first", "second"))
        scores = self.pairs["probability"].values[joined]
        by_product = np.maximum(_by_products(first, second, scores, labels.size), self.unscored)
        order = np.lexsort((by_product, labels))
        own = labels[order]
        below = np.arange(own.size) - np.searchsorted(own, own)  # records of its cluster whose product is smaller
        larger = np.maximum(by_product[first], by_product[second])
        matches = below @ by_product[order] + np.maximum(scores - larger, 0.0).sum()
        return self.precision, min(float(matches) / self.n_joined, 1.0)

    @property
    def recall(self) -> float:
        """Share of the expected number of matches that are joined, by single scores; NaN if no match is expected.

        Matches among pairs that were not scored count as in `expected_errors`: by default, not at all.
        """
        wrong, missed = self.expected_errors
        matches = self.n_joined - wrong
        return matches / (matches + missed) if matches + missed else np.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of `precision` and `recall`: the F1 of expected numbers of pairs; NaN if both are NaN."""
        wrong, missed = self.expected_errors
        matches = self.n_joined - wrong
        return 2 * matches / (2 * matches + wrong + missed) if 2 * matches + wrong + missed else np.nan

    def precision_in_words(self) -> str:
        """Say what precision is expected."""
        low, high = self.precision_range
        if np.isnan(low):
            return "none, as no pair is joined"
        if f"{low:.3g}" == f"{high:.3g}":
            return f"{low:.3g}"
        return f"{low:.3g} (single scores) to {high:.3g} (products of odds in clusters)"

    def cut_in_words(self) -> str:
        """Say that low scores were left out, where `is_cut`."""
        least = display.at_least(self.pairs["probability"].values.min(), ".3g")
        return (
            f"no score is below {least}, and the threshold is {self.tau:.3g}: pairs with lower scores were "
            "probably left out, and recall counts none of their matches"
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the scored pairs.

        Returns
        -------
        pandas.DataFrame
            A row for each pair, the nearest to the threshold first: names of both records, probability, whether the
            pair is joined, and both clusters.
        """
        return self._table(self._nearest)

    @property
    def _nearest(self) -> Positions:
        """Pairs in the order of their distance from the threshold."""
        return np.argsort(np.abs(self.pairs["probability"].values - self.tau), kind="stable")

    @property
    def against(self) -> pd.DataFrame:
        """The rows of :meth:`to_dataframe` that the partition decides against their score, the farthest first.

        Their probability is below the threshold and they are joined, or it is above and they are not.
        """
        return self._table(self._against)

    @property
    def _against(self) -> Positions:
        distance = self.pairs["probability"].values - self.tau
        wrong = np.flatnonzero(np.where(self.joined, distance < 0, distance > 0))
        return wrong[np.argsort(-np.abs(distance[wrong]), kind="stable")]

    def _table(self, at: Positions) -> pd.DataFrame:
        """Rows of some pairs."""
        first, second = (self.pairs[end].values[at] for end in ("first", "second"))
        ends = named_ends(self.cluster, self.names, first, second)
        values = {"probability": self.pairs["probability"].values[at], "joined": self.joined[at]}
        names = ("first", "second", "probability", "joined", "first_cluster", "second_cluster")
        return pd.DataFrame({name: (ends | values)[name] for name in names})

    def review(self, n: int = 20) -> pd.DataFrame:
        """List the pairs that a clerk should look at first: the closest calls.

        Parameters
        ----------
        n : int
            Largest number of decisions.

        Returns
        -------
        pandas.DataFrame
            A row for each decision: the columns of :meth:`to_dataframe`, and

            - ``increase``: by how much the expected loss rises if the pair is decided the other way and everything else
              in its component, or its two components, is chosen anew at best, with the constraints kept. The unit is
              that of the loss without its scale: for Binder's default loss, the expected number of pairs on which the
              partition is wrong. The smallest is first. It is negative if another partition that keeps the constraints
              is better.
            - ``exact``: whether it is that number. Otherwise, for components of more than 14 records, it is a bound
              from above: only either record moves, their clusters are joined, or a small cluster is divided at best.

        Raises
        ------
        ValueError
            If `n` is not positive, if the partition breaks a constraint, or if constraints contradict each other.

        Notes
        -----
        Joining a pair of probability p lowers the loss by its weight W = c p - b (1 - p), where b and c are the costs
        of joining and of separating: 2 - a and a of ``binder(a)``. The optimum for each of the two decisions is found
        by dynamic programming over the subsets of a component of at most 14 records (groups of records that must be
        together count as one). A pair of two components has a weight of at most 0, and joining it raises the loss by
        at least abs(W); these pairs are taken in the order of abs(W) until `n` are found.

        Pairs that constraints decide are left out. Of the pairs between two groups that must be together, the most
        probable one is listed, since its decision holds for all. Of pairs that one decision decides the other way,
        the first is listed: their clusters and increase are the same, and stay so if all scores are shifted a little at
        random. Pairs whose scores are merely tied are listed each.

        The rows that a clerk confirms or rejects are constraints as they are: ``must_link`` and ``cannot_link`` of
        :func:`as_pair_similarity` take tables with the columns ``first`` and ``second``.

        Examples
        --------
        A clerk decides the closest call, and the decision is kept as a constraint:

        >>> import pandas as pd
        >>> import posterior_consensus as pc
        >>> table = pd.DataFrame({"unique_id_l": ["a", "a", "b", "c"], "unique_id_r": ["b", "c", "c", "d"]})
        >>> pairs = pc.as_pair_similarity(table.assign(match_probability=[0.9, 0.7, 0.4, 0.2]))
        >>> best = pc.consensus_partition(pairs, loss="binder", random_seed=1)
        >>> pc.links(pairs, best).review(2)[["first", "second", "probability", "joined", "increase", "exact"]]
          first second  probability  joined  increase  exact
        0     a      c          0.7    True       0.2   True
        1     a      b          0.9    True       0.6   True
        >>> pairs = pc.as_pair_similarity(pairs, cannot_link=pc.links(pairs, best).review(1))
        >>> pc.consensus_partition(pairs, loss="binder", random_seed=1).clusters
        {0: ['a', 'b'], 1: ['c'], 2: ['d']}
        """
        check_count("n", n)
        source = self.source
        labels = self.cluster.values
        source.check_keeps(labels)
        found = closest_decisions(source, self.loss, labels, n)
        first = found.is_first
        table = self._table(found.pairs[first])
        # A narrow window hides the columns in the middle.
        return table.assign(joined=table.pop("joined"), increase=found.increase[first], exact=found.exact[first])

    def to_score(self, n: int = 20) -> pd.DataFrame:
        """List the pairs without a score that are to be scored first: those whose scores may join clusters.

        Parameters
        ----------
        n : int
            Largest number of pairs.

        Returns
        -------
        pandas.DataFrame
            A row for each pair, which the partition separates: names ``first`` and ``second`` of both records, and

            - ``probability``: that the pair matches, by the scored pairs between the same records.
            - ``decrease``: by how much a better partition is expected to lower the loss once the pair is scored, in the
              unit of :meth:`review`. The largest is first.
            - ``first_cluster`` and ``second_cluster``: both clusters.

        Raises
        ------
        ValueError
            If `n` is not positive, if the partition breaks a constraint, or if constraints contradict each other.

        Notes
        -----
        A pair that was not scored counts with the probability `unscored`, so that clusters whose records blocking
        compared in part stay apart. Take a change that joins records A to a cluster D: one record moves, or a whole
        cluster is joined. Of the t pairs between A and D, s have a score, with the sum S, and m = t - s have none. If
        these m pairs match, the change lowers the loss by

            G = (b + c) (S + m) - b t - L,

        where b and c are the costs of joining and of separating, and L is the weight (see :meth:`review`) of a record
        that moves with the rest of its cluster, 0 for a union. It is assumed that all pairs between two clusters match
        or none does: the m pairs match with probability S / s, the mean score, and if they do not, nothing changes. The
        decrease for each pair scored is

            (S / s) max(G, 0) / m,

        and a pair has the largest one of the changes that join it. Only changes with a scored pair (s > 0) are looked
        at, and none that a constraint forbids. Pairs within clusters are not listed: they are joined without a score.

        Examples
        --------
        Blocking compared a with b and b with c, but not a with c:

        >>> import pandas as pd
        >>> import posterior_consensus as pc
        >>> table = pd.DataFrame({"unique_id_l": ["a", "b"], "unique_id_r": ["b", "c"]})
        >>> pairs = pc.as_pair_similarity(table.assign(match_probability=[0.9, 0.6]))
        >>> best = pc.consensus_partition(pairs, loss="binder", random_seed=1)
        >>> best.clusters
        {0: ['a', 'b'], 1: ['c']}
        >>> pc.links(pairs, best).to_score()[["first", "second", "probability", "decrease"]].round(3)
          first second  probability  decrease
        0     a      c          0.6      0.72
        """
        check_count("n", n)
        source, labels = self.source, self.cluster.values
        source.check_keeps(labels)
        found = next_scores(source, self.loss, labels, n)
        ends = named_ends(self.cluster, self.names, found.first, found.second)
        columns = ends | {"probability": found.probability, "decrease": found.decrease}
        names = ("first", "second", "probability", "decrease", "first_cluster", "second_cluster")
        return pd.DataFrame({name: columns[name] for name in names})

    @property
    def source(self) -> ScoredPairs:
        """The scored pairs, in the order of `pairs`."""
        n = self.cluster.size
        first, second, values = (self.pairs[name].values for name in ("first", "second", "probability"))
        scored = symmetric(first, second, values, n)
        pairs = np.stack([self.decided["first"].values, self.decided["second"].values], axis=1)
        together = self.decided["together"].values.astype(np.bool_)
        data_set, earlier = (None if one is None else one.values for one in (self.data_set, self.earlier))
        items = Items.along(self.cluster, str(self.cluster.dims[0]))
        constraints = PairConstraints(pairs[together], pairs[~together], data_set, self.max_cluster_size, earlier)
        return ScoredPairs(items, scored, self.unscored, constraints)

    @property
    def n_by_size(self) -> pd.Series:
        """Number of clusters of each size: "1", "2", ... up to "10 or more"."""
        sizes = np.bincount(self.cluster.values)
        largest = min(_LARGEST, int(sizes.max()))
        counts = np.bincount(np.minimum(sizes, largest), minlength=largest + 1)[1:]
        last = f"{largest} or more" if largest < sizes.max() else str(largest)
        return pd.Series(counts, pd.Index([*map(str, range(1, largest)), last], name="size"), name="clusters")

    def _parts(self) -> display.Parts:
        against = self._against
        n_joined_against = int(np.count_nonzero(self.joined[against]))
        sizes = np.bincount(self.cluster.values)
        counts = f"{self.n_joined:,}, of which {self.n_joined_unscored:,} were never scored"
        of_one = f"{np.count_nonzero(sizes == 1):,} of one record, the largest of {sizes.max():,}"
        below = f"{n_joined_against:,} joined below tau {self.tau:.3g}"
        lines = [
            ("clusters", f"{sizes.size:,}: {of_one}"),
            ("joined pairs", counts),
            ("against score", f"{below}, {against.size - n_joined_against:,} separated above"),
            ("precision", f"{self.precision_in_words()}, {IF_RIGHT}"),
            ("recall", f"{self.recall:.3g} of scored pairs, {IF_RIGHT}"),
        ]
        if self.is_cut:
            lines.append(("left out", self.cut_in_words()))
        if decided := self.decided.sizes["decision"]:
            lines.append(("constraints", f"{display.counted(decided, 'pair')} decided"))
        pairs = display.counted(self.pairs.sizes["link"], "scored pair")
        title = f"ScoredLinks: {pairs} of {display.counted(self.cluster.size, 'item')} ({self.cluster.dims[0]})"
        shown = self._table(self._nearest[: display.MOST_ROWS])
        return title, lines, shown if len(shown) else None

    def _not_shown(self, table: pd.DataFrame) -> tuple[int, str]:
        return self.pairs.sizes["link"] - display.MOST_ROWS, "to_dataframe()"


def _by_products(first: Integers, second: Integers, scores: Floats, n: int) -> Floats:
    """Probability (n,) of each record to be with its cluster by its joined pairs: the product of their odds.

    It is 0 without such a pair.
    """
    odds = logit(np.clip(scores, _CERTAIN, 1.0 - _CERTAIN))
    has_score = np.bincount(first, minlength=n) + np.bincount(second, minlength=n) > 0
    return np.where(has_score, expit(np.bincount(first, odds, n) + np.bincount(second, odds, n)), 0.0)


def named_ends(cluster: xr.DataArray, names: Sequence[Hashable], first: Any, second: Any) -> dict[str, pd.Index]:
    """Columns of pairs of items: their names, and the names of their clusters."""
    dim = str(cluster.dims[0])
    items = cluster.indexes.get(dim, pd.RangeIndex(cluster.size)).to_flat_index()
    of_clusters = np.empty(len(names), dtype=object)
    of_clusters[:] = names
    columns = dict[str, pd.Index]()
    for end, at in (("first", first), ("second", second)):
        columns[end] = items[at]
        columns[f"{end}_cluster"] = pd.Index(of_clusters[cluster.values[at]], tupleize_cols=False).infer_objects()
    return columns


def scored_links(
    source: ScoredPairs, labels: Any, names: tuple[Hashable, ...], loss: str | Loss | None, partition: Any
) -> ScoredLinks:
    """The scored pairs as labels (n_items,) of a partition decide them."""
    given = as_loss(loss, partition).as_binder()
    if given is None and loss is not None:
        raise ValueError(f"`loss` of scored pairs must be Binder's, such as binder(tau=0.3); got {loss!s}.")
    first, second, probability = source.pairs
    constraints = source.constraints
    decided = np.concatenate([constraints.must_link, constraints.cannot_link])
    together = np.arange(len(decided)) < len(constraints.must_link)
    data_set = constraints.data_set
    is_fixed = getattr(partition, "fixed", None)
    return ScoredLinks(
        cluster=source.items.array(labels, "cluster"),
        pairs=xr.Dataset({"first": ("link", first), "second": ("link", second), "probability": ("link", probability)}),
        unscored=source.unscored,
        loss=binder() if given is None else given,
        names=names,
        decided=xr.Dataset(
            {
                "first": ("decision", decided[:, 0]),
                "second": ("decision", decided[:, 1]),
                "together": ("decision", together),
            }
        ),
        data_set=None if data_set is None else source.items.array(data_set, "data_set"),
        max_cluster_size=constraints.max_cluster_size,
        earlier=source.items.array(source.items.reordered(partition.previous), "earlier") if is_fixed else None,
    )
