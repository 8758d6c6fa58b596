"""A consensus partition with its expected loss."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr

import posterior_consensus
from posterior_consensus.bounds.bound import gap_in_words, relative_gap
from posterior_consensus.bounds.components import ComponentsInfo, among_of
from posterior_consensus.consensus.changes import count_changes, table_of_changes
from posterior_consensus.consensus.threshold import Threshold, consistent_interval
from posterior_consensus.ensemble.draws import PairSource
from posterior_consensus.ensemble.items import NOISE, by_level, members_of
from posterior_consensus.ensemble.partitions import HasLabels, Labels
from posterior_consensus.ensemble.scored_pairs import DATA_SET, NAME, ScoredPairs
from posterior_consensus.losses.record import Loss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.annotations import Annotations, as_categories
from posterior_consensus.results.stored_as import InWords, own_in
from posterior_consensus.results.work import ClusterLimits, Info
from posterior_consensus.runtime.arguments import check_integer, is_integer
from posterior_consensus.search.runs import SearchInfo

_FREE = ClusterLimits()
_OF_RECORD = ("size", "similarity", "outside", "outside_probability")


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusPartition(HasLabels, InWords):
    """A consensus partition with its expected loss; made by :func:`consensus_partition`.

    For scored pairs of records, it also has `records`, and names and changes of clusters by `previous`.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_items,), dtype int32
        Cluster of each item, numbered by first appearance from 0, on the user's item coordinate; -1 for items that are
        noise, in no cluster.
    expected_loss : float
        Posterior expected loss, in the loss's unit.
    mcse : float
        Monte Carlo standard error of the expected loss. NaN with fewer than four draws in a chain, for a similarity
        matrix alone, and for "vi_lower_bound", "pear" and "within_variance", which are not means over draws.
    ess : float
        Effective sample size of the expected loss; NaN if `mcse` is NaN. Below 100 `mcse` is rough, and much too small
        if a chain changes mode only a few times.
    lower_bound : float or None
        Lower bound of the minimum expected loss over all partitions, or, for scored pairs with constraints, over the
        partitions that keep them. For Binder's loss, and for "within_variance" by the method "sdp", over the numbers of
        clusters that it tried. Else None; :func:`certify` bounds most losses.
    loss : PartitionLoss, NoiseLoss or PairLoss
        Loss of `expected_loss`, with its parameters and its unit.
    method : str
        Name of the method, and of the refinement if there was one.
    n_draws : int or None
        Number of draws; None without draws.
    doubt : str or None
        How the chains disagree, by the R-hat of the loss or of the number of clusters, such as "do not agree: the R-hat
        of the loss is 1.12; see `diagnose`". None if these show no disagreement; :func:`diagnose` looks at more.
    noise : xarray.DataArray of shape (n_items,), dtype bool, or None
        Whether each item is noise, in no cluster; None for a loss without noise. Functions without noise see each such
        item as a cluster of its own.
    cluster_limits : ClusterLimits
        Requested ``n_clusters`` and ``max_clusters``, see :class:`ClusterLimits`.
    threshold : Threshold or None
        The pair threshold if ``tau`` was given, see :class:`Threshold`.
    info : Info or None
        Record of the search, :class:`SearchInfo` for "greedy", or :class:`ComponentsInfo` if the search under Binder's
        loss went by component: of scored pairs, and of draws of many small clusters.
    given_names : tuple
        Names of the clusters from :meth:`with_names` or from `previous`, else empty; `names` has them in any case.
    records : xarray.Dataset or None
        For scored pairs, of each record: ``size`` of its cluster; ``similarity``, its mean probability with the rest of
        the cluster, NaN if the record is alone in its cluster; ``outside``, the position of the record outside the
        cluster with which it was scored highest, the first if several were, -1 if none was scored;
        ``outside_probability``, their probability, or NaN.
    previous : xarray.DataArray of shape (n_items,), dtype int32, or None
        For scored pairs, the number of the cluster in ``previous_names`` that each record had before, -1 for a new one;
        None if `previous` was not given.
    previous_names : tuple
        For scored pairs, the names of these clusters.
    fixed : bool or None
        For scored pairs, whether these clusters had to stay whole and apart; None if `previous` was not given.
    checksums : xarray.DataArray of shape (n_items,), dtype uint64, or None
        For scored pairs of named records, a checksum of the records, pairs, scores and constraints of each record's
        component, 0 if it is linked to no other: by it, `previous` recognizes components that did not change.

    See Also
    --------
    plot_psm : ``plot_psm(draws, best)`` plots the similarities, with the clusters outlined.
    certify : Compute a lower bound, and the optimality gap.
    credible_ball, item_uncertainty : Uncertainty of the partition and of its items.
    attach : Save the partition with the posterior.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1], [0, 1, 1]], random_seed=1, progressbar=False)
    >>> best.labels.values, best.n_clusters, best.cluster_sizes.values
    (array([0, 0, 1], dtype=int32), 2, array([2, 1]))
    >>> best.loss.name, round(best.expected_loss, 3), best.loss.unit
    ('vi', 0.444, 'bits')
    >>> best.clusters
    {0: [0, 1], 1: [2]}
    """

    labels: xr.DataArray = field(metadata=stored_as.array("labels", of_items=True))
    expected_loss: float = field(metadata=stored_as.number("expected_loss", measured=True))
    mcse: float = field(metadata=stored_as.number("mcse", measured=True))
    ess: float = field(metadata=stored_as.number("ess"))
    loss: Loss = field(metadata=stored_as.loss())
    method: str = field(metadata=stored_as.attribute("method"))
    n_draws: int | None = field(metadata=stored_as.attribute("n_draws"))
    lower_bound: float | None = field(default=None, metadata=stored_as.number("lower_bound", measured=True))
    info: Info | None = field(default=None, metadata=stored_as.work("info"))
    cluster_limits: ClusterLimits = field(default=_FREE, metadata=stored_as.work("cluster_limits"))
    threshold: Threshold | None = field(default=None, metadata=stored_as.work("threshold"))
    given_names: tuple[Hashable, ...] = field(default=(), metadata=stored_as.names("names"))
    records: xr.Dataset | None = field(default=None, metadata=stored_as.table("record_{}", _OF_RECORD, of_items=True))
    _of_runs: ClassVar = "consensus_independent"
    noise: xr.DataArray | None = field(default=None, metadata=stored_as.array("noise", of_items=True))
    doubt: str | None = field(default=None, metadata=stored_as.attribute("consensus_doubt"))
    checksums: xr.DataArray | None = field(default=None, metadata=stored_as.array("component_checksum", of_items=True))
    previous: xr.DataArray | None = field(default=None, metadata=stored_as.array("previous_cluster", of_items=True))
    previous_names: tuple[Hashable, ...] = field(default=(), metadata=stored_as.names("previous_names"))
    fixed: bool | None = field(default=None, metadata=stored_as.flag("previous_fixed"))

    _also_stored: ClassVar = {
        "cluster_sizes": stored_as.array("cluster_size"),
        "optimality_gap": stored_as.number("optimality_gap"),
    }

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Name of each cluster: 0, 1, ... unless set by :meth:`with_names` or by earlier clusters, `previous`."""
        return self.given_names or tuple(range(self.n_clusters))

    @property
    def named_labels(self) -> xr.DataArray:
        """Name of each item's cluster, "noise" in none, on the user's item coordinate."""
        names = pd.Index([*self.names, *[NOISE] * (self.n_noise > 0)], tupleize_cols=False)
        return self.labels.copy(data=names.to_numpy()[self.labels.values])

    def with_names(self, names: Mapping[int, Hashable] | Sequence[Hashable] | None = None, *, first: int = 0) -> Self:
        """Name the clusters, or number them from another number than 0, in tables and stored results.

        Parameters
        ----------
        names : sequence of length n_clusters, or mapping from numbers of clusters, optional
            Cluster k of `labels` gets ``names[k]``. Clusters that a mapping omits keep their number.
        first : int
            Number of the first cluster, such as 1 for numbers as in R.

        Returns
        -------
        ConsensusPartition
            The same partition. `labels` are still numbers from 0; `named_labels` has the names.

        Raises
        ------
        ValueError
            If there are too few or too many names, a name occurs twice, or a mapping names a cluster that does not
            exist.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1], [0, 1, 1]], random_seed=1, progressbar=False)
        >>> best.with_names(["small", "large"]).named_labels.values
        array(['small', 'small', 'large'], dtype=object)
        >>> best.with_names(first=1).named_labels.values
        array([1, 1, 2])
        """
        check_integer("first", first)
        given: list[Hashable] = [first + k for k in range(self.n_clusters)]
        if isinstance(names, Mapping):
            unknown = [k for k in names if k not in range(self.n_clusters)]
            if unknown:
                raise ValueError(
                    f"`names` must name clusters 0 to {self.n_clusters - 1}, the numbers in `labels`; "
                    f"got {unknown[0]!r}."
                )
            given = [names.get(k, number) for k, number in enumerate(given)]
        elif names is not None:
            given = list(names)
            if isinstance(names, str) or len(given) != self.n_clusters:
                raise ValueError(f"`names` must be {self.n_clusters}, one for each cluster; got {names!r}.")
        if len(set(given)) < len(given):
            raise ValueError(f"`names` must differ from each other; got {given}.")
        return replace(self, given_names=tuple(given))

    @property
    def optimality_gap(self) -> float | None:
        """Optimality gap, the largest possible excess relative to the expected loss; None without a lower bound."""
        return None if self.lower_bound is None else relative_gap(self.expected_loss, self.lower_bound)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, without noise."""
        return int(self.labels.values.max()) + 1

    @property
    def n_noise(self) -> int:
        """Number of items that are noise."""
        return 0 if self.noise is None else int(self.noise.sum())

    @property
    def cluster_sizes(self) -> xr.DataArray:
        """Number of items of each cluster, over ``consensus_cluster``, with the given names as coordinate."""
        in_clusters = self.labels.values[self.labels.values >= 0]
        sizes = xr.DataArray(np.bincount(in_clusters), dims="consensus_cluster", name="cluster_size")
        if not self.given_names:
            return sizes
        names = pd.Index(self.given_names)
        return sizes.assign_coords(consensus_cluster=names.astype(str) if names.dtype == object else names)

    @property
    def changes(self) -> pd.DataFrame:
        """What became of the clusters of `previous`: a row for each cluster that changed and each one it had been in.

        Columns: name of the ``cluster``; ``kind``, "new", "grown" by new records, "merged" from several clusters,
        "split" from one, or "merged and split"; ``previous``, the name of the earlier cluster, missing for new records;
        and ``n_records``, how many they share. Clusters of the same records as before are left out.
        """
        if self.previous is None:
            raise ValueError("`changes` needs earlier clusters: pass them to consensus_partition by `previous`.")
        return table_of_changes(self.labels.values, self.names, self.previous.values, self.previous_names)

    @property
    def clusters(self) -> dict[Hashable, list[Any]]:
        """Items of each cluster by name of the cluster; items by coordinate or else by position."""
        return dict(zip(self.names, members_of(self.labels, self.n_clusters), strict=True))

    def members(self, k: int) -> list[Any]:
        """List the items of one cluster, by coordinate or else by position.

        Parameters
        ----------
        k : int
            Number of the cluster in `labels`, from 0, also if it has a name.

        Returns
        -------
        list
            Names or positions of the items.

        Raises
        ------
        TypeError
            If `k` is not an integer.
        ValueError
            If there is no such cluster.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1], [0, 1, 1]], random_seed=1, progressbar=False)
        >>> best.members(0)
        [0, 1]
        >>> best.with_names(["small", "large"]).clusters
        {'small': [0, 1], 'large': [2]}
        """
        if not is_integer(k):
            raise TypeError(f"`k` must be the number of a cluster in `labels`; got {k!r}. `clusters` has them by name.")
        if not 0 <= k < self.n_clusters:
            raise ValueError(f"`k` must lie between 0 and {self.n_clusters - 1}; got {k}.")
        items = self.labels.indexes.get(self.labels.dims[0], pd.RangeIndex(self.labels.size))
        return items[np.flatnonzero(self.labels.values == k)].tolist()

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the clusters, or the records of scored pairs.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster: its size, its share of the items, and its first items; the last row, "noise", has
            the items in no cluster, if there are any. For scored pairs a row for each record, as splink has it: the
            name of its cluster ``cluster_id``, its data set ``source_dataset`` if it has one, its name ``unique_id``,
            and the columns of `records`, with the name of the record ``outside``, missing if none was scored. If names
            have data sets, that is ``outside_source_dataset`` and ``outside_unique_id``.
        """
        return self._of_clusters() if self.records is None else self._of_records(self.records)

    def _annotations(self) -> dict[str, Annotations]:
        facts = {
            "loss": self.loss.name,
            "unit": self.loss.unit,
            "expected_loss": self.expected_loss,
            "mcse": self.mcse,
            "method": self.method,
            "n_clusters": self.n_clusters,
            f"n_{self.words.draws}": self.n_draws,
            "lower_bound": self.lower_bound,
            "versions": {"posterior_consensus": posterior_consensus.__version__, "numpy": np.__version__},
        }
        facts = {name: value for name, value in facts.items() if value is not None}
        labels, columns = self.labels.values, dict[str, Any]()
        if self.noise is not None:
            columns["noise"] = self.noise.values
            facts["n_noise"] = self.n_noise
        return {"": Annotations(self.labels, {"": as_categories(labels, self.names)} | columns, facts)}

    def _of_clusters(self, most: int | None = None) -> pd.DataFrame:
        """A row for each cluster, at most `most`."""
        members = self._members(most)
        names = [*self.names[:most], NOISE][: len(members)]
        index = pd.Index(names, name="cluster", tupleize_cols=False)
        return display.table_of_members(members, self.labels.size, str(self.labels.dims[0]), index)

    def _members(self, most: int | None = None) -> list[list[Any]]:
        """Items of each cluster, at most `most` of them, and those of noise if there are any."""
        members = members_of(self.labels, self.n_clusters)[:most]
        if self.noise is None or not self.noise.any():
            return members
        noise = self.labels.indexes.get(self.labels.dims[0], pd.RangeIndex(self.labels.size))[self.noise.values]
        return [*members, noise.tolist()]

    def _of_records(self, records: xr.Dataset) -> pd.DataFrame:
        """A row for each record, with the names of its cluster and of the record outside."""
        items = self.labels.indexes.get(self.labels.dims[0], pd.RangeIndex(self.labels.size))
        size, similarity, outside, probability = (own_in(records, name).values for name in _OF_RECORD)
        columns: dict[str, Any] = {"cluster_id": pd.Index(self.names, tupleize_cols=False)[self.labels.values]}
        if DATA_SET in self.labels.coords:
            columns[DATA_SET] = self.labels.coords[DATA_SET].values
        if items.nlevels == 1:
            columns[NAME] = items
        else:
            columns |= {str(level): items.get_level_values(k) for k, level in enumerate(items.names)}
        columns |= {"size": size, "similarity": similarity}
        for name, values in by_level("outside", items[np.maximum(outside, 0)]).items():
            named = pd.Series(values)
            if pd.api.types.is_integer_dtype(named.dtype):
                named = named.astype("Int64")  # stays an integer beside missing ones
            columns[name] = named.mask(outside < 0).array
        return pd.DataFrame(columns | {"outside_probability": probability})

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        dim = self.labels.dims[0]
        items, clusters = display.counted_items(self.labels.size, dim), display.counted(self.n_clusters, "cluster")
        noise = f", {self.n_noise:,} of noise" if self.n_noise else ""
        title = f"ConsensusPartition: {items} in {clusters}{noise}"
        reached = f", {how}" if (how := reached_in_words(self.info)) else ""
        words, name = self.words, display.short_name_of(self.loss)
        expected = display.with_error(self.expected_loss, self.mcse, self.ess, words, self.loss.unit)
        if self.n_draws is None and np.isnan(self.mcse):
            expected = display.quantity(self.expected_loss, self.loss.unit, 3)
        lines = [
            (f"{words.expected} {name}", expected),
            ("method", self.method + reached),
            (words.draws, display.number_of_draws(self.n_draws, words)),
        ]
        if self.doubt is not None:
            lines.insert(0, (words.chains, self.doubt))
        if self.previous is not None:
            numbers = count_changes(self.labels.values, self.previous.values)
            lines.append(("since previous", ", ".join(f"{number:,} {kind}" for kind, number in numbers.items())))
        if self.threshold is not None:
            interval = consistent_interval(self.threshold.within, self.threshold.between)
            lines.insert(1, ("threshold", f"tau {self.threshold.tau:.3g} (consistent: {interval})"))
        if self.optimality_gap is not None:
            gap = gap_in_words(self.optimality_gap, words.expected, among_of(self.info))
            lines.insert(1, ("optimality gap", gap))
        return title, lines, self._of_clusters(display.MOST_ROWS)

    def _not_shown(self, table: pd.DataFrame) -> tuple[int, str]:
        return self.n_clusters - display.MOST_ROWS, "to_dataframe()" if self.records is None else "clusters"


def reached_in_words(info: Info | None) -> str:
    """How sure a search is of its partition, as a part of a sentence; empty for other work."""
    if isinstance(info, SearchInfo):
        return info.agreement()
    return info.in_words() if isinstance(info, ComponentsInfo) else ""


def stopped(best: ConsensusPartition) -> str:
    """Reason for an early end of the search; empty if it was completed."""
    return best.info.stopped if isinstance(best.info, SearchInfo | ComponentsInfo) else ""


@singledispatch
def by_record(source: PairSource, labels: Labels) -> xr.Dataset | None:
    """`records` of the partition of scored pairs; None for another posterior. The cost is linear in the pairs."""
    return None


@by_record.register
def _(source: ScoredPairs, labels: Labels) -> xr.Dataset | None:
    size = np.bincount(labels)[labels]
    pairs, rows = source.scored, source.rows
    others = np.flatnonzero(labels[rows] != labels[pairs.indices])
    outside, probability = np.full(size.size, -1), np.full(size.size, np.nan)
    if others.size:
        starts = np.flatnonzero(np.diff(rows[others], prepend=-1))
        most = np.maximum.reduceat(pairs.data[others], starts)
        items = rows[others[starts]]
        probability[items] = most
        best = others[pairs.data[others] == np.repeat(most, np.diff(starts, append=others.size))]
        outside[rows[best[::-1]]] = pairs.indices[best[::-1]]  # the first comes last
    columns = (size, source.similarity_to_own(labels), outside, probability)
    return source.items.dataset(dict(zip(_OF_RECORD, columns, strict=True)))
